"""How many back-links walks knew is estimated rightly, and corrected weights take away much of the bias."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from experiments import back_links
from hypothesis import given, settings
from hypothesis import strategies as st

import surveyor as sv
from surveyor.estimate.sampling.compiled_walks import CompiledWalks, NeighbourLists
from surveyor.estimate.sampling.coverage import (
    Seen,
    corrected,
    expected_visits,
    in_link_coverage,
    neighbour_coverage,
)
from surveyor.estimate.sampling.ground import WalkGraph
from surveyor.estimate.sampling.seen import seen_live, seen_on_graph
from surveyor.estimate.sampling.walk_methods import WalkPlan
from surveyor.estimate.sampling.walking import PythonWalks


def hand_made(told: list[int], earlier: list[int], place: list[int], out: list[int] | None = None) -> Seen:
    """Return three pages, and links into them from pages that were read."""
    flags = [np.array(some, np.bool_) for some in (told, np.ones(len(told)), earlier, np.zeros(len(told)))]
    three = np.array([4, 4, 4])
    return Seen(
        np.array([3, 5, 9], np.int32),
        np.array(out or [2, 0, 1]),
        three,
        three // 2,
        three // 4,
        np.array(place, np.int64),
        *flags,
    )


def web_with_lonely_pages(rng: np.random.Generator, pages: int = 1_500) -> sv.Graph:
    """Return a web in which nobody links to a third of the pages, and many link to a few."""
    liked = rng.permutation(pages)[: 2 * pages // 3]
    chance = 1 / np.arange(1, liked.size + 1) ** 0.7
    sources = np.repeat(np.arange(pages), rng.integers(1, 9, pages))
    targets = rng.choice(liked, sources.size, p=chance / chance.sum())
    kept = sources != targets
    return sv.Graph.from_arrays(sources[kept], targets[kept], nodes=pages)


def walked(source: NeighbourLists, steps: int, rng: int, method: str = "webwalker") -> CompiledWalks:
    starts = np.random.default_rng(rng).choice(np.flatnonzero(np.diff(source.starts) > 5), 8)
    walks = CompiledWalks(source, np.ones(source.starts.size - 1, np.bool_), starts, method=method, rng=rng)
    walks.advance(steps // 8)
    return walks


def test_coverage_is_the_share_told_of_links_from_pages_read_earlier() -> None:
    links = 60
    told = np.arange(links) % 4 == 0  # 15 of 60, and all of those read later
    seen = hand_made([*told, *[1] * 30], [1] * links + [0] * 30, [0] * 90)
    value, low, high, count = in_link_coverage(seen)
    assert value == pytest.approx(0.25, abs=1e-4)
    assert count == links
    assert low < 0.25 < high


def test_the_interval_is_wider_if_links_of_a_page_are_told_together() -> None:
    place = [0] * 30 + [1] * 30
    apart = in_link_coverage(hand_made([1, 0] * 30, [1] * 60, place))
    together = in_link_coverage(hand_made([1] * 30 + [0] * 30, [1] * 60, place))
    assert apart.value == together.value == 0.5
    assert together.high - together.low > 2 * (apart.high - apart.low)


def test_nothing_seen_tells_nothing() -> None:
    empty = hand_made([], [], [])
    assert in_link_coverage(empty) == (0, 0, 1, 0)
    assert neighbour_coverage(empty).low == 0
    assert expected_visits(empty).shape == (3,)


def test_all_told_or_none_has_an_interval_too() -> None:
    every = in_link_coverage(hand_made([1] * 60, [1] * 60, [0, 1, 2] * 20))
    none = in_link_coverage(hand_made([0] * 60, [1] * 60, [0, 1, 2] * 20))
    assert every.value == every.high == 1
    assert every.low < 0.7
    assert none.value == none.low == 0
    assert none.high > 0.3


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 1_000), told=st.sampled_from([0.0, 0.4, 1.0]), method=st.sampled_from(["hard", "mixture"]))
def test_live_and_compiled_walks_have_seen_the_same(seed: int, told: float, method: str) -> None:
    rng = np.random.default_rng(seed)
    graph = sv.Graph.from_arrays(rng.integers(30, size=90), rng.integers(30, size=90), nodes=30)
    whole = NeighbourLists.of(graph, told, rng=seed)
    source = NeighbourLists(whole.starts, whole.pages, whole.links, complete=False)
    kind = (rng.random(30) < 0.7).astype(np.uint8)
    starts = [int(page) for page in rng.choice(np.flatnonzero(kind), 3)]
    walks = CompiledWalks(source, kind, starts, method=method, rng=seed)
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
    one, other = seen_on_graph(source, walks), seen_live(ground, walking.trace())
    for name in ("pages", "out", "degree", "walked", "refused"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name
    columns = [field.name for field in fields(Seen)][5:]
    rows = [sorted(zip(*(getattr(some, name).tolist() for name in columns), strict=True)) for some in (one, other)]
    assert rows[0] == rows[1]


def test_weights_are_left_alone_if_all_back_links_are_told() -> None:
    whole = NeighbourLists.of(web_with_lonely_pages(np.random.default_rng(1)))
    source = NeighbourLists(whole.starts, whole.pages, whole.links, complete=False)
    walks = walked(source, 2_000, rng=3)
    seen = seen_on_graph(source, walks)
    np.testing.assert_allclose(expected_visits(seen), seen.degree)
    np.testing.assert_allclose(corrected(walks.trace(), seen).weight, walks.trace().weight)
    assert neighbour_coverage(seen).value == 1


@pytest.mark.parametrize("told", [0.1, 0.3, 0.6])
def test_coverage_is_found_from_walks(told: float) -> None:
    graph = web_with_lonely_pages(np.random.default_rng(2))
    held = 0
    for rng in range(20):
        source = NeighbourLists.of(graph, told, rng=rng)
        seen = seen_on_graph(source, walked(source, 1_600, rng))
        value, low, high, _ = in_link_coverage(seen)
        truth = seen.told.sum() / np.bincount(graph.indices, minlength=graph.pages)[seen.pages].sum()
        assert value == pytest.approx(truth, abs=0.1)
        held += low <= truth <= high
    assert held >= 17


def test_known_neighbours_are_estimated_from_what_was_told() -> None:
    graph = web_with_lonely_pages(np.random.default_rng(4))
    source = NeighbourLists.of(graph, 0.3)
    seen = seen_on_graph(source, walked(source, 1_600, rng=5))
    truth = seen.degree.sum() / np.diff(source.starts)[seen.pages].sum()
    assert neighbour_coverage(seen).value == pytest.approx(truth, abs=0.06)
    untold = replace(seen, told=np.zeros_like(seen.told))
    assert neighbour_coverage(untold).low == 0  # without a source it is but an upper bound
    assert neighbour_coverage(untold).value > truth


def test_correction_takes_away_most_of_the_bias_against_pages_nobody_links_to() -> None:
    graph = web_with_lonely_pages(np.random.default_rng(6))
    lonely = np.bincount(graph.indices, minlength=graph.pages) == 0
    found = []
    for rng in range(12):
        source = NeighbourLists.of(graph, 0.3, rng=rng)
        walks = walked(source, 8_000, rng)
        plain = walks.trace()
        better = corrected(plain, seen_on_graph(source, walks))
        found.append([(some.weight * lonely[some.page]).sum() / some.weight.sum() for some in (plain, better)])
    bias = np.mean(found, 0) - lonely.mean()
    assert bias[0] < -0.06
    assert abs(bias[1]) < abs(bias[0]) / 2, bias


def test_the_experiment_measures_sources_that_tell_a_share_or_the_first_few() -> None:
    _, graph, topics = next(back_links.webs(None, ((2_000, 7),)))
    scene = back_links.Scene(graph, NeighbourLists.of(graph), topics, "hard")
    share, first = back_links.measure(scene, 400, (0.3, -5.0), runs=2)
    assert share["true_told"] == pytest.approx(0.3, abs=0.1)
    into = np.bincount(graph.indices, minlength=graph.pages)
    assert (scene.source(-5.0, np.random.default_rng(0)).links & 4 != 0).sum() == np.minimum(into, 5).sum()
    assert isinstance(first["told_estimate"], float)
    assert 0 < first["told_estimate"] < 1
