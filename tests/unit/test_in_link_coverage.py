"""In-link coverage is estimated without much error, and corrected weights remove most of the bias."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from experiments import back_links
from hypothesis import given, settings
from hypothesis import strategies as st

import surveyor as sv
from surveyor.estimate.sampling.compiled_walks import CompiledWalks, NeighbourLists
from surveyor.estimate.sampling.in_links import (
    LinkObservations,
    correct_weights,
    estimate_in_link_coverage,
    estimate_neighbour_coverage,
    expected_visits,
)
from surveyor.estimate.sampling.walk_methods import PythonWalks, WalkGraph, WalkPlan


def observations(reported: list[int], fetched_before: list[int], target: list[int]) -> LinkObservations:
    """Return three visited pages, and links into them from fetched pages."""
    count = len(reported)
    flags = [np.array(some, np.bool_) for some in (reported, np.ones(count), fetched_before, np.zeros(count))]
    three = np.array([4, 4, 4])
    return LinkObservations(
        np.array([3, 5, 9], np.int32),
        np.array([2, 0, 1]),
        three,
        three // 2,
        three // 4,
        np.array(target, np.int64),
        *flags,
    )


def web_with_pages_without_in_links(rng: np.random.Generator, pages: int = 1_500) -> sv.Graph:
    """Return a web in which a third of the pages have no in-links, and a few have many."""
    linked = rng.permutation(pages)[: 2 * pages // 3]
    popularity = 1 / np.arange(1, linked.size + 1) ** 0.7
    sources = np.repeat(np.arange(pages), rng.integers(1, 9, pages))
    targets = rng.choice(linked, sources.size, p=popularity / popularity.sum())
    kept = sources != targets
    return sv.Graph.from_arrays(sources[kept], targets[kept], nodes=pages)


def walked(source: NeighbourLists, steps: int, rng: int, method: str = "webwalker") -> CompiledWalks:
    starts = np.random.default_rng(rng).choice(np.flatnonzero(np.diff(source.starts) > 5), 8)
    walks = CompiledWalks(source, np.ones(source.starts.size - 1, np.bool_), starts, WalkPlan(method, rng=rng))
    walks.advance(steps // 8)
    return walks


def test_coverage_is_the_reported_share_of_links_from_pages_fetched_before() -> None:
    links = 60
    reported = np.arange(links) % 4 == 0  # 15 of 60, and all of those fetched later
    observed = observations([*reported, *[1] * 30], [1] * links + [0] * 30, [0] * 90)
    value, low, high, count = estimate_in_link_coverage(observed)
    assert value == pytest.approx(0.25, abs=1e-4)
    assert count == links
    assert low < 0.25 < high


def test_the_interval_is_wider_if_links_of_a_page_are_reported_together() -> None:
    target = [0] * 30 + [1] * 30
    apart = estimate_in_link_coverage(observations([1, 0] * 30, [1] * 60, target))
    together = estimate_in_link_coverage(observations([1] * 30 + [0] * 30, [1] * 60, target))
    assert apart.value == together.value == 0.5
    assert together.high - together.low > 2 * (apart.high - apart.low)


def test_coverage_without_observations_is_unknown() -> None:
    empty = observations([], [], [])
    assert estimate_in_link_coverage(empty) == (0, 0, 1, 0)
    assert estimate_neighbour_coverage(empty).low == 0
    assert expected_visits(empty).shape == (3,)


def test_coverage_of_zero_or_one_has_an_interval() -> None:
    every = estimate_in_link_coverage(observations([1] * 60, [1] * 60, [0, 1, 2] * 20))
    none = estimate_in_link_coverage(observations([0] * 60, [1] * 60, [0, 1, 2] * 20))
    assert every.value == every.high == 1
    assert every.low < 0.7
    assert none.value == none.low == 0
    assert none.high > 0.3


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 1_000), reported=st.sampled_from([0.0, 0.4, 1.0]), method=st.sampled_from(["hard", "mixture"])
)
def test_compiled_and_python_walks_have_equal_observations(seed: int, reported: float, method: str) -> None:
    rng = np.random.default_rng(seed)
    graph = sv.Graph.from_arrays(rng.integers(30, size=90), rng.integers(30, size=90), nodes=30)
    whole = NeighbourLists.of(graph, reported, rng=seed)
    source = NeighbourLists(whole.starts, whole.pages, whole.links, complete=False)
    kind = (rng.random(30) < 0.7).astype(np.uint8)
    starts = [int(page) for page in rng.choice(np.flatnonzero(kind), 3)]
    walks = CompiledWalks(source, kind, starts, WalkPlan(method, rng=seed))
    walks.advance(20)

    def row(page: int, bit: int) -> list[int]:
        some = slice(source.starts[page], source.starts[page + 1])
        near: list[int] = source.pages[some][source.links[some] & bit != 0].tolist()
        return near

    ground = WalkGraph(lambda page: row(page, 4))
    walking = PythonWalks(ground, starts, WalkPlan(method, rng=seed))
    for _ in range(20):
        for page in walking.missing():
            ground.learn(page, int(kind[page]), row(page, 1))
        walking.round()
    one, other = (
        LinkObservations.from_compiled(source, walks),
        LinkObservations.from_walk_graph(ground, walking.trace()),
    )
    for name in ("pages", "out_links", "degree", "frozen_neighbours", "rejected_neighbours"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name
    columns = [field.name for field in fields(LinkObservations)][5:]
    rows = [sorted(zip(*(getattr(some, name).tolist() for name in columns), strict=True)) for some in (one, other)]
    assert rows[0] == rows[1]


def test_weights_are_unchanged_if_all_in_links_are_reported() -> None:
    whole = NeighbourLists.of(web_with_pages_without_in_links(np.random.default_rng(1)))
    source = NeighbourLists(whole.starts, whole.pages, whole.links, complete=False)
    walks = walked(source, 2_000, rng=3)
    observed = LinkObservations.from_compiled(source, walks)
    np.testing.assert_allclose(expected_visits(observed), observed.degree)
    np.testing.assert_allclose(correct_weights(walks.trace(), observed).weight, walks.trace().weight)
    assert estimate_neighbour_coverage(observed).value == 1


@pytest.mark.parametrize("reported", [0.1, 0.3, 0.6])
def test_coverage_intervals_contain_the_true_share(reported: float) -> None:
    graph = web_with_pages_without_in_links(np.random.default_rng(2))
    covered = 0
    for rng in range(20):
        source = NeighbourLists.of(graph, reported, rng=rng)
        observed = LinkObservations.from_compiled(source, walked(source, 1_600, rng))
        value, low, high, _ = estimate_in_link_coverage(observed)
        truth = observed.reported.sum() / np.bincount(graph.indices, minlength=graph.pages)[observed.pages].sum()
        assert value == pytest.approx(truth, abs=0.1)
        covered += low <= truth <= high
    assert covered >= 17


def test_neighbour_coverage_is_estimated_from_reported_links() -> None:
    graph = web_with_pages_without_in_links(np.random.default_rng(4))
    source = NeighbourLists.of(graph, 0.3)
    observed = LinkObservations.from_compiled(source, walked(source, 1_600, rng=5))
    truth = observed.degree.sum() / np.diff(source.starts)[observed.pages].sum()
    assert estimate_neighbour_coverage(observed).value == pytest.approx(truth, abs=0.06)
    unreported = replace(observed, reported=np.zeros_like(observed.reported))
    assert estimate_neighbour_coverage(unreported).low == 0  # without a source, the value is only an upper bound
    assert estimate_neighbour_coverage(unreported).value > truth


def test_corrected_weights_remove_most_of_the_bias_against_pages_without_in_links() -> None:
    graph = web_with_pages_without_in_links(np.random.default_rng(6))
    without_in_links = np.bincount(graph.indices, minlength=graph.pages) == 0
    found = []
    for rng in range(12):
        source = NeighbourLists.of(graph, 0.3, rng=rng)
        walks = walked(source, 8_000, rng)
        plain = walks.trace()
        better = correct_weights(plain, LinkObservations.from_compiled(source, walks))
        estimates = [(trace.weight, without_in_links[trace.page]) for trace in (plain, better)]
        found.append([(weight * flags).sum() / weight.sum() for weight, flags in estimates])
    bias = np.mean(found, 0) - without_in_links.mean()
    assert bias[0] < -0.06
    assert abs(bias[1]) < abs(bias[0]) / 2, bias


def test_the_experiment_measures_sources_that_report_a_share_or_the_first_few() -> None:
    _, graph, topics = next(back_links.webs(None, ((2_000, 7),)))
    setup = back_links.Setup(graph, NeighbourLists.of(graph), topics, "hard")
    share, first = back_links.measure(setup, 400, (0.3, -5.0), runs=2)
    assert share["true_reported"] == pytest.approx(0.3, abs=0.1)
    into = np.bincount(graph.indices, minlength=graph.pages)
    assert (setup.source(-5.0, np.random.default_rng(0)).links & 4 != 0).sum() == np.minimum(into, 5).sum()
    assert isinstance(first["reported_estimate"], float)
    assert 0 < first["reported_estimate"] < 1
