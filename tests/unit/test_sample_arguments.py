"""Edge cases of samples: invalid arguments, graphs without URLs, walks that cannot move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import surveyor as sv
from surveyor.errors import UsageError
from surveyor.estimate.sampling import estimates
from test_sample import two_camps

GRAPH, CAMP = two_camps()


def short_sample(**how: Any) -> sv.Sample:
    return sv.sample(GRAPH, "url:left|right", until="steps=3000", **how)


SAMPLE = short_sample()


@pytest.mark.parametrize("names", [None, ["a", "b", "c", "d"], ["a.example", "b.example", "c.example", "d.example"]])
def test_pages_need_no_urls(names: list[str] | None) -> None:
    graph = sv.Graph.from_arrays(np.array([0, 1, 2, 2]), np.array([1, 2, 3, 0]), nodes=4, names=names)
    found = sv.sample(graph, "everything", until="steps=2000")
    assert found.has_estimates
    assert found.mean("out_degree").value == pytest.approx(1.0, abs=0.2)
    assert not any("too few" in note for note in found.notes)


def test_stuck_walk_is_left_out() -> None:
    """Its page would get a large share of the weight."""
    sources, targets = [], []
    rng = np.random.default_rng(1)
    for _ in range(300):
        one, other = rng.integers(50, size=2)
        sources.append(one)
        targets.append(other)
    sources.append(50)
    targets.append(51)  # 50 is on topic, and its only neighbour is not
    graph = sv.Graph.from_arrays(np.array(sources), np.array(targets), nodes=52)
    found = sv.sample(graph, np.arange(51), method="hard", start=[50, 0, 1, 2], walks=4, until="ess=100, steps=20k")
    assert found.ending == "missed"  # one page of 51 is in a part of its own
    assert not found.reached
    assert 50 not in found.trace.page
    assert any("left out that never moved" in note for note in found.notes)
    alone = sv.sample(graph, np.array([50]), method="hard", until="steps=100")
    assert set(alone.trace.page.tolist()) == {50}  # the only page


def test_number_of_steps_is_exact() -> None:
    for steps in (1, 100, 2000):
        assert sv.sample(GRAPH, "tld:test", method="trial", until=f"steps={steps}").steps == steps


@pytest.mark.parametrize("start", [[np.int64(3)], np.array([1, 2]), 3, np.int64(3), "https://left.example/0"])
def test_start_pages_by_name_and_id(start: Any) -> None:
    assert short_sample(start=start).steps == 3000


def test_property_without_values_does_not_block_the_goal() -> None:
    """Leaves of a star have no links, so none of them has a share of links to pages on topic."""
    star = sv.Graph.from_arrays(np.zeros(200, np.int64), np.arange(1, 201), nodes=201)
    found = sv.sample(star, np.arange(1, 201), of="topic_link_share", until="ess=100, steps=100k")
    assert found.ending == "ess"
    assert found.to_dict()["estimates"] == {}
    assert "<table></table>" in found._repr_html_()
    how = {"of": "topic_link_share", "method": "trial", "until": "width=3%, steps=20k"}
    alone = sv.sample(star, np.arange(1, 201), **how)  # type: ignore[arg-type]
    assert alone.ending == "steps"


def test_intervals_of_means_stay_in_range() -> None:
    """Few steps give wide intervals."""
    sources, targets = np.random.default_rng(1).integers(0, 60, (2, 240))
    web = sv.Graph.from_arrays(sources, targets, nodes=60)
    few = sv.sample(web, np.arange(54), until="steps=12", walks=4, rng=0)
    assert estimates.mean(few.weighted, few.values("topic_link_share")).high > 1
    assert estimates.mean(few.weighted, few.values("degree")).low < 1
    assert few.mean("topic_link_share").high == 1
    assert few.mean("degree").low == 1


def test_very_large_limits() -> None:
    limits = "fetches=9999999999999999999999, steps=500"
    assert sv.sample(GRAPH, "tld:test", method="trial", until=limits).steps == 500


def words_nice(page: sv.SampledPage) -> bool:
    return "off" not in page.url


def test_function_name_is_the_topic_name() -> None:
    assert sv.sample(GRAPH, words_nice, until="steps=500").topic == "words_nice"


def broken(_: sv.SampledPage) -> bool:
    raise ValueError("oh")


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: SAMPLE.share("out_degree"), "values of 0 or 1, got"),
        (lambda: SAMPLE.share("word:buy"), "needs page content"),
        (lambda: SAMPLE.distribution("language"), "needs page content"),
        (lambda: SAMPLE.relative_size(), "relative_size needs unfocused walks"),
        (lambda: SAMPLE.recall("https://left.example/1"), "urls must be a list"),
        (lambda: SAMPLE.size(level=2), "level must be .* got 2"),
        (lambda: SAMPLE.draws(1.5), "count must be .* got 1.5"),  # type: ignore[arg-type]
        (lambda: sv.sample(None, "tld:test"), "where must be .* got None"),  # type: ignore[arg-type]
        (lambda: SAMPLE.mean([1.0, 2.0]), "values must have one entry for each of the 460 pages"),
        (lambda: SAMPLE.mean(np.zeros((460, 2))), "values must have one entry for each of the 460 pages"),
        (lambda: SAMPLE.mean(lambda _: object()), "must be a finite number"),
        (lambda: SAMPLE.mean(lambda _: float("inf")), "must be a finite number, got inf"),
        (lambda: SAMPLE.share(broken), "the property broken failed on https://.*ValueError: oh"),
        (lambda: sv.sample(GRAPH, broken), "the topic broken failed on https://"),
        (lambda: short_sample(start=[True]), "start must hold .* got True"),
        (lambda: short_sample(window=-1), "window must be an integer from 0 to 100,000, got -1"),
        (lambda: short_sample(reach=0), "reach must be"),
        (lambda: short_sample(walks=2.5), "walks must be"),
        (lambda: short_sample(walks=True), "walks must be"),
        (lambda: short_sample(rng=-1), "rng must be"),
        (lambda: short_sample(rng=None), "rng must be"),
        (lambda: short_sample(rng=2**63), "rng must be"),
        (lambda: short_sample(of=5), "of must be a string .* got 5"),
        (lambda: short_sample(of=broken), "of must be a string"),
        (lambda: short_sample(walk=3), "no option walk"),
        (lambda: sv.sample("https://a.example/", "arts", limit=500), "no option limit"),
        (lambda: sv.sample(GRAPH, "tld:test", until=None), "is not a stopping rule"),  # type: ignore[arg-type]
        (lambda: sv.sample(GRAPH, (page for page in range(3))), "topic must be .* got a generator"),  # type: ignore[arg-type]
        (lambda: sv.sample(GRAPH, topic=3), "topic must be a rule, a Topic, a function or a list of page ids, got 3"),  # type: ignore[arg-type]
        (lambda: sv.sample(GRAPH, True), "topic must be .* got True"),  # type: ignore[arg-type]
        (lambda: sv.sample("https://a.example/", 3), "topic must be a rule, a Topic or a function, got 3"),  # type: ignore[arg-type]
        (lambda: sv.sample(GRAPH, {1, 2}), "topic must be .* got a set"),  # type: ignore[arg-type]
    ],
)
def test_invalid_arguments(ask: Callable[[], object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ask()


def test_rare_category_is_not_more_certain_than_unseen_one() -> None:
    """Seen once on a page with many in-links and a small weight, it hardly varies; others may be unseen."""
    star = [(0, page) for page in range(1, 200)] + [(page, page % 199 + 1) for page in range(1, 200)]
    sources, targets = np.array(star).T
    graph = sv.Graph.from_arrays(sources, targets, nodes=200)
    found = sv.sample(graph, "everything", until="steps=150", rng=1)
    assert 0 in found.trace.page
    estimate, never = found.share(np.arange(200) == 0), found.share(np.zeros(200))
    assert estimate.ess <= found.steps
    assert estimate.high > 0.5 * never.high
