"""Samples of a graph: estimates against true values, stopping rules, and invalid arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import surveyor as sv
from surveyor.errors import UsageError
from surveyor.estimate.sampling.estimates import mean_or_share
from surveyor.estimate.sampling.properties import Property
from surveyor.estimate.sampling.sample_goals import SampleGoal, check_intervals
from surveyor.estimate.sampling.walk_trace import WalkTrace


def two_camps(seed: int = 1, *, bridge: bool = True) -> tuple[sv.Graph, np.ndarray[Any, Any]]:
    """Return a topic of two camps that are connected only through pages off topic, and the camp of each page.

    Pages 0 to 299 are one camp, 300 to 399 the other, the rest is off topic and links to both.
    """
    rng = np.random.default_rng(seed)
    parts = [(0, 300, 2400), (300, 400, 800)]
    links = [rng.integers(low, high, size=(2, count)) for low, high, count in parts]
    if bridge:
        for low, high, count in (*parts[:2], (0, 400, 300)):
            links.append(np.stack([rng.integers(400, 460, size=count), rng.integers(low, high, size=count)]))
    sources, targets = np.concatenate(links, axis=1)
    camp = np.full(460, -1)
    camp[:300], camp[300:400] = 0, 1
    kinds = {-1: "https://off.example/{}", 0: "https://left.example/{}", 1: "https://right.test/{}"}
    names = [kinds[int(camp[page])].format(page) for page in range(460)]
    return sv.Graph.from_arrays(sources, targets, names=names), camp


def test_soft_focus_samples_both_camps_and_hard_focus_one() -> None:
    graph, _ = two_camps()
    topic = "url:left|right"
    truth = 0.75
    for method in ("mixture", "trial"):
        found = sv.sample(graph, topic, method=method, start=[0], of="host:left.example", until="steps=60k", rng=3)
        estimate = found.share("host:left.example")
        assert abs(estimate.value - truth) < 4 * estimate.standard_error, method
        assert estimate.margin < 0.2
    hard = sv.sample(graph, topic, method="hard", start=[0], of="host:left.example", until="steps=60k")
    assert hard.share("host:left.example").value == 1.0  # it cannot leave its camp
    both = sv.sample(graph, topic, method="hard", start=[0, 300], of="host:left.example", until="ess=400, steps=60k")
    assert both.ending == "steps"  # walks that disagree are not done
    assert any("disagree" in note for note in both.notes)


@pytest.mark.slow
def test_intervals_cover_true_values_at_their_level() -> None:
    graph, _ = two_camps()
    topic = np.arange(400)
    degrees = np.log1p(graph.out_degrees[:400])
    right = 0
    for rng in range(40):
        found = sv.sample(graph, topic, of=["tld:test"], until="ess=200", rng=rng)
        assert found.ending == "ess"
        assert min(found.diagnostics.ess.values()) >= 200
        share, mean, size = found.share("tld:test"), found.mean("log_out_degree"), found.size()
        truths = (share, 0.25), (mean, float(degrees.mean())), (size, 400)
        right += sum(estimate.low <= truth <= estimate.high for estimate, truth in truths)
    assert right >= 0.95 * 120 - 5 * np.sqrt(0.95 * 0.05 * 120)


def test_distributions_fits_recall_pages_and_draws() -> None:
    graph, _ = two_camps()
    found = sv.sample(graph, "url:left|right", of="tld:test", until="ess=300", rng=5)
    by_host = found.distribution("host")
    assert set(by_host.labels) == {"left.example", "right.test"}
    assert by_host.shares[0].value > by_host.shares[1].value
    assert found.fits("host", {"left.example": 0.75, "right.test": 0.25}).p_value > 0.001
    assert found.fits("host", {"left.example": 0.25, "right.test": 0.75}).p_value < 0.001
    assert found.recall(f"https://left.example/{page}" for page in range(300)).value == pytest.approx(
        found.share("host:left.example").value
    )
    assert found.recall([f"HTTPS://Left.example:443/{page}#top" for page in range(300)]).value == pytest.approx(
        found.share("host:left.example").value  # URLs are normalised
    )
    pages = found.pages()
    test = [weight for url, weight in zip(pages["url"], pages["weight"], strict=True) if ".test/" in url]
    assert sum(test) == pytest.approx(found.share("tld:test").value)  # weights reproduce the estimate
    assert sum(pages["weight"]) == pytest.approx(1)
    assert len(set(pages["url"])) == len(pages["url"])
    assert set(found.draws(50)) <= set(pages["url"])
    assert found.in_links.complete
    assert 0 < found.precision <= 1
    assert "url:left|right" in repr(found)
    estimate = found.to_dict()
    assert estimate["estimates"]["tld:test"]["value"] == found.share("tld:test").value
    assert estimate["reached"]
    assert found.mean("topic_link_share").value == pytest.approx(1.0)  # no page of the camps links elsewhere


@pytest.mark.parametrize("method", ["uniform", "trial"])
def test_differences_of_recall_are_covered_where_few_pages_differ(method: str) -> None:
    graph, _ = two_camps()
    names = [name for name in map(graph.name, range(graph.pages)) if "left" in name or "right" in name]
    right, runs = 0, 100 if method == "uniform" else 25
    for rng in range(runs):
        random = np.random.default_rng(rng)
        one = [name for name in names if random.random() < 0.5]
        other = one[: len(one) - 3]
        found = sv.sample(graph, "url:left|right", until="steps=120", method=method, rng=rng)
        difference = found.recall_difference(one, other)
        assert difference.low < difference.value < difference.high
        right += difference.low <= 3 / len(names) <= difference.high
    assert right >= 0.93 * runs
    everything = sv.sample(graph, "url:left|right", until="steps=1000", method="uniform")
    exact = everything.recall_difference(one, other)
    assert exact.low == exact.high == pytest.approx(3 / len(names))  # all pages were drawn


def test_functions_and_arrays_as_properties_and_topics() -> None:
    graph, camp = two_camps()
    found = sv.sample(graph, lambda page: "off" not in page.url, until="steps=20k")
    assert found.share(lambda page: page.url.endswith("7")).value == pytest.approx(0.1, abs=0.06)
    assert found.share(camp == 1).value == pytest.approx(0.25, abs=0.2)
    with pytest.raises(UsageError, match="must be a finite number"):
        found.mean("host")


def test_goal_is_confirmed_after_twice_as_many_steps() -> None:
    """Half of the goal is met first, and all of it after twice as many steps."""
    graph, _ = two_camps()
    checks: list[tuple[int, float]] = []

    def progress(trace: WalkTrace, _fetches: int, tracked: Mapping[str, Property]) -> None:
        shares = tracked["tld:test"].numbers(trace)
        checks.append(
            (len(trace), min(mean_or_share(trace, shares).ess, mean_or_share(trace, np.log(trace.degree)).ess))
        )

    found = sv.sample(graph, np.arange(400), of="tld:test", until="ess=200", rng=4, progress=progress)
    half = next(steps for steps, ess in checks if ess >= 100)
    assert found.steps >= 2 * half
    steps, ess = checks[-1]
    assert steps == found.steps
    assert ess == pytest.approx(min(found.diagnostics.ess.values()))
    assert ess >= 200


def test_narrow_interval_needs_enough_steps() -> None:
    graph, _ = two_camps()
    found = sv.sample(graph, np.arange(400), of="url:nowhere", method="trial", until="width=3%", rng=4)
    assert found.ending == "width"
    assert min(found.diagnostics.ess.values()) >= 400
    with pytest.raises(UsageError, match="until has a width, but of names no property"):
        sv.sample(graph, np.arange(400), until="width=3%")


def test_same_random_seed_gives_same_sample() -> None:
    graph, _ = two_camps()
    one, other, third = (sv.sample(graph, "tld:test", until="steps=5k", rng=rng) for rng in (1, 1, 2))
    np.testing.assert_array_equal(one.trace.page, other.trace.page)
    assert not np.array_equal(one.trace.page[:100], third.trace.page[:100])


def test_missing_in_links_are_reported() -> None:
    graph, _ = two_camps()
    found = sv.sample(graph, "url:left|right", in_links=0.1, until="steps=20k")
    assert 0 < found.in_links.reported.value < 0.3
    assert found.in_links.reported.low <= 0.1 <= found.in_links.reported.high
    assert any("in-links were reported" in note for note in found.notes)
    as_published = sv.sample(graph, "url:left|right", method="hard-paper", in_links=0.1, until="steps=20k")
    assert not as_published.in_links.complete  # unknown for a walk without a stationary distribution
    assert any("in-links were reported" in note for note in as_published.notes)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"topic": "host:nowhere.example"}, "no page of the graph is on topic"),
        ({"topic": "solar power"}, "needs page content"),
        ({"method": "soft"}, "method must be one of .* 'soft'"),
        ({"until": "ess"}, "is not a stopping rule"),
        ({"until": "ess=400%"}, "not a number of ess"),
        ({"until": "width=300%"}, "width must be above 0 and below 1, got 3"),
        ({"until": "pages=3"}, "no stopping rule 'pages'"),
        ({"walks": 0}, "walks must be an integer"),
        ({"start": ["https://unknown.example/"]}, "unknown.example"),
        ({"start": []}, "start must name at least one page"),
        ({"delay": 1}, "delay is an option of live samples"),
        ({"in_links": 7}, "in_links must be a share .* got 7"),
    ],
)
def test_invalid_arguments(how: dict[str, Any], words: str) -> None:
    graph, _ = two_camps()
    with pytest.raises(UsageError, match=words):
        sv.sample(graph, **{"topic": "tld:test", **how})


def test_starts_off_topic_find_it_or_are_lost() -> None:
    graph, _ = two_camps()
    found = sv.sample(graph, "tld:test", start=[459], until="steps=2k")
    assert found.reached
    assert not found.lost_walks
    alone, _ = two_camps(bridge=False)
    lost = sv.sample(alone, "tld:test", start=[0], until="ess=400")
    assert lost.ending == "lost"
    assert lost.lost_walks == tuple(range(8))
    assert "no walk found a page on topic" in lost.notes[0]
    assert lost.to_dict()["diagnostics"] is None


def test_isolated_page_is_reported_as_stuck() -> None:
    graph = sv.Graph.from_edges(
        [("https://a.example/", "https://b.example/"), ("https://c.example/", "https://b.example/")]
    )
    found = sv.sample(graph, "host:a.example", method="trial", until="ess=400, steps=500")
    assert found.ending == "steps"
    assert any("never moved" in note for note in found.notes)


def test_parse_goals() -> None:
    assert SampleGoal.parse("ess=400 or fetches=2k") == SampleGoal(ess=400, fetches=2000)
    assert SampleGoal.parse("width=3%") == SampleGoal(width=0.03)
    assert str(SampleGoal.parse("steps=100k")) == "100,000 steps"
    first = [rounds for rounds, _ in zip(check_intervals(), range(40), strict=False)]
    assert first[0] == 32
    assert first == sorted(first)
