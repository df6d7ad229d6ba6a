"""What a sample refuses, and what it bears: odd arguments, graphs without URLs, walks that cannot move."""

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


def ready(**how: Any) -> sv.Sample:
    return sv.sample(GRAPH, "url:left|right", until="steps=3000", **how)


SAMPLE = ready()


@pytest.mark.parametrize("names", [None, ["a", "b", "c", "d"], ["a.example", "b.example", "c.example", "d.example"]])
def test_pages_need_no_urls(names: list[str] | None) -> None:
    graph = sv.Graph.from_arrays(np.array([0, 1, 2, 2]), np.array([1, 2, 3, 0]), nodes=4, names=names)
    found = sv.sample(graph, "everything", until="steps=2000")
    assert found.has_estimates
    assert found.mean("out_degree").value == pytest.approx(1.0, abs=0.2)
    assert not any("too few" in note for note in found.notes)


def test_a_walk_that_never_moved_does_not_count() -> None:
    """One page alone took half of all weight."""
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
    assert found.ending == "ess"
    assert 50 not in found.trace.page
    assert any("left out that never moved" in note for note in found.notes)
    alone = sv.sample(graph, np.array([50]), method="hard", until="steps=100")
    assert set(alone.trace.page.tolist()) == {50}  # nothing else is there


def test_steps_are_as_many_as_asked_for() -> None:
    for steps in (1, 100, 2000):
        assert sv.sample(GRAPH, "tld:test", until=f"steps={steps}").steps == steps


@pytest.mark.parametrize("start", [[np.int64(3)], np.array([1, 2]), 3, np.int64(3), "https://left.example/0"])
def test_walks_begin_at_names_and_numbers_of_any_kind(start: Any) -> None:
    assert ready(start=start).steps == 3000


def test_what_no_page_has_does_not_hold_up_the_rest() -> None:
    """Leaves of a star link nowhere: none of them has a share of links that stay on topic."""
    star = sv.Graph.from_arrays(np.zeros(200, np.int64), np.arange(1, 201), nodes=201)
    found = sv.sample(star, np.arange(1, 201), of="topic_link_share", until="ess=100, steps=100k")
    assert found.ending == "ess"
    assert found.to_dict()["estimates"] == {}
    assert found._repr_html_().endswith("<table></table>")
    alone = sv.sample(star, np.arange(1, 201), of="topic_link_share", until="width=3%, steps=20k")
    assert alone.ending == "steps"


def test_means_stay_where_they_can_be() -> None:
    """Few steps have long intervals."""
    sources, targets = np.random.default_rng(1).integers(0, 60, (2, 240))
    web = sv.Graph.from_arrays(sources, targets, nodes=60)
    few = sv.sample(web, np.arange(54), until="steps=12", walks=4, rng=0)
    assert estimates.mean(few.weighted, few.values("topic_link_share")).high > 1
    assert estimates.mean(few.weighted, few.values("degree")).low < 1
    assert few.mean("topic_link_share").high == 1
    assert few.mean("degree").low == 1


def test_limits_may_be_as_large_as_one_likes() -> None:
    assert sv.sample(GRAPH, "tld:test", until="fetches=9999999999999999999999, steps=500").steps == 500


def words_nice(page: sv.SampledPage) -> bool:
    return "off" not in page.url


def test_a_function_may_have_any_name() -> None:
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
        (lambda: ready(start=[True]), "start must hold .* got True"),
        (lambda: ready(window=-1), "window must be an integer from 0 to 100,000, got -1"),
        (lambda: ready(reach=0), "reach must be"),
        (lambda: ready(walks=2.5), "walks must be"),
        (lambda: ready(walks=True), "walks must be"),
        (lambda: ready(rng=-1), "rng must be"),
        (lambda: ready(rng=None), "rng must be"),
        (lambda: ready(rng=2**63), "rng must be"),
        (lambda: ready(of=5), "of must be a string .* got 5"),
        (lambda: ready(of=broken), "of must be a string"),
        (lambda: ready(walk=3), "no option walk"),
        (lambda: sv.sample("https://a.example/", "arts", limit=500), "no option limit"),
        (lambda: sv.sample(GRAPH, "tld:test", until=None), "is not a stopping rule"),  # type: ignore[arg-type]
        (lambda: sv.sample(GRAPH, (page for page in range(3))), "topic must be .* got a generator"),  # type: ignore[arg-type]
        (lambda: sv.sample(GRAPH, {1, 2}), "topic must be .* got a set"),  # type: ignore[arg-type]
    ],
)
def test_odd_questions_get_one_sentence(ask: Callable[[], object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ask()


def test_a_rare_category_is_no_surer_than_one_never_seen() -> None:
    """Seen once on a page that many link to, which weighs little, it hardly varies; but others may be unseen."""
    star = [(0, page) for page in range(1, 200)] + [(page, page % 199 + 1) for page in range(1, 200)]
    sources, targets = np.array(star).T
    graph = sv.Graph.from_arrays(sources, targets, nodes=200)
    found = sv.sample(graph, "everything", until="steps=150", rng=1)
    assert 0 in found.trace.page
    told, never = found.share(np.arange(200) == 0), found.share(np.zeros(200))
    assert told.ess <= found.steps
    assert told.high > 0.5 * never.high
