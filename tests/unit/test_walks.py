"""Compiled walks and walks in plain Python take the same steps, with complete and incomplete in-links."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surveyor as sv
from surveyor.errors import UsageError
from surveyor.estimate.sampling.compiled_walks import CompiledWalks, NeighbourLists
from surveyor.estimate.sampling.walk_methods import DEAD, METHODS, PythonWalks, WalkGraph, WalkPlan
from surveyor.estimate.sampling.walk_trace import WalkTrace

Array = Any


def random_web(rng: np.random.Generator, pages: int, links: int) -> sv.Graph:
    """Return a small web with duplicate links and self-links."""
    return sv.Graph.from_arrays(rng.integers(pages, size=links), rng.integers(pages, size=links), nodes=pages)


def in_plain_python(
    neighbours: NeighbourLists,
    kind: Array,
    starts: list[int],
    rounds: int,
    free: bool,
    hosts: Array,
    **how: Any,
) -> WalkTrace:
    """Walk over a graph with the walks of live samples."""

    def row(page: int, bit: int) -> Any:
        some = slice(neighbours.starts[page], neighbours.starts[page + 1])
        return neighbours.pages[some][neighbours.links[some] & bit != 0].tolist()

    guess = (lambda page: int(kind[page])) if free else None
    known = WalkGraph(lambda page: row(page, 4), url_kind=guess, host=lambda page: int(hosts[page]))
    walks = PythonWalks(known, starts, WalkPlan(**how))
    for _ in range(rounds):
        for page in walks.missing():
            known.learn(page, int(kind[page]), row(page, 1))
        walks.round()
    assert all(
        page in known.lists[other] for page in known.lists for other in known.lists[page] if other in known.lists
    )
    return walks.trace()


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    method=st.sampled_from(list(METHODS)),
    reported=st.sampled_from([0.0, 0.3, 1.0]),
    free=st.booleans(),
    window=st.sampled_from([0, 6]),
    radius=st.sampled_from([1, 2, 3]),
)
def test_compiled_walks_equal_python_walks(
    seed: int, method: str, reported: float, free: bool, window: int, radius: int
) -> None:
    rng = np.random.default_rng(seed)
    pages = int(rng.integers(2, 60))
    graph = random_web(rng, pages, int(rng.integers(1, 5)) * pages)
    kind = rng.choice([0, 1, 2], p=[0.4, 0.5, 0.1], size=pages).astype(np.uint8)
    starts, hosts = rng.integers(pages, size=3), rng.integers(4, size=pages).astype(np.int32)
    neighbours = NeighbourLists.of(graph, reported, rng=seed)
    neighbours = NeighbourLists(neighbours.starts, neighbours.pages, neighbours.links, complete=False)  # frozen lists
    how: dict[str, Any] = {"method": method, "rng": seed, "window": window, "search_limit": 5, "radius": radius}
    compiled = CompiledWalks(neighbours, kind, starts, WalkPlan(**how), kind_from_url=free, hosts=hosts)
    compiled.advance(40)
    compiled.advance(60)
    plain = in_plain_python(neighbours, kind, starts.tolist(), 100, free, hosts, **how)
    for name in ("walk", "segment", "page", "on_topic", "degree", "fetches"):
        np.testing.assert_array_equal(getattr(compiled.trace(), name), getattr(plain, name), err_msg=name)


def test_complete_lists_equal_frozen_lists_of_all_links() -> None:
    rng = np.random.default_rng(3)
    graph = random_web(rng, 200, 900)
    kind = (rng.random(200) < 0.4).astype(np.uint8)
    whole = NeighbourLists.of(graph)
    frozen = NeighbourLists(whole.starts, whole.pages, whole.links, complete=False)
    traces = []
    for neighbours in (whole, frozen):
        walks = CompiledWalks(neighbours, kind, np.flatnonzero(kind)[:4])
        walks.advance(500)
        traces.append(walks.trace())
    np.testing.assert_array_equal(traces[0].page, traces[1].page)
    np.testing.assert_array_equal(traces[0].degree, traces[1].degree)


def test_neighbours_in_both_directions_once() -> None:
    graph = sv.Graph.from_arrays(np.array([0, 0, 1, 2, 2, 3]), np.array([1, 1, 0, 0, 2, 2]), nodes=5)
    found = NeighbourLists.of(graph)
    rows = [found.pages[found.starts[page] : found.starts[page + 1]].tolist() for page in range(5)]
    assert rows == [[1, 2], [0], [0, 3], [2], []]
    bits = [(found.links[found.starts[page] : found.starts[page + 1]] & 3).tolist() for page in range(5)]
    assert bits == [[3, 2], [3], [1, 2], [1], []]


def test_limit_of_fetches_does_not_change_steps() -> None:
    rng = np.random.default_rng(5)
    graph = random_web(rng, 400, 1600)
    kind = (rng.random(400) < 0.5).astype(np.uint8)
    starts = np.flatnonzero(kind)[:5]
    whole = CompiledWalks(NeighbourLists.of(graph), kind, starts)
    whole.advance(300)
    some = CompiledWalks(NeighbourLists.of(graph), kind, starts)
    assert some.advance(300, fetches=60)
    assert some.fetches <= 60
    assert 0 < len(some.trace()) < len(whole.trace())
    np.testing.assert_array_equal(some.trace().page, whole.trace().page[: len(some.trace())])


def test_walk_that_finds_no_topic_is_lost() -> None:
    graph = sv.Graph.from_edges([("a", "b"), ("b", "c"), ("d", "e")])
    topic = np.array([False, False, False, True, True])
    walks = CompiledWalks(NeighbourLists.of(graph), topic, [0, 3], WalkPlan(search_limit=20))
    walks.advance(100)
    assert walks.lost.tolist() == [0]
    assert set(walks.trace().walk.tolist()) == {1}


def test_walk_from_an_unreadable_start_is_lost() -> None:
    graph = sv.Graph.from_edges([("a", "b"), ("b", "c")])
    walks = CompiledWalks(NeighbourLists.of(graph), np.array([DEAD, 1, 1], np.uint8), [0])
    walks.advance(10)
    assert walks.lost.tolist() == [0]


def test_jump_out_of_a_trap_starts_a_segment() -> None:
    """Two hosts joined by one link: without a window walks stay on one of them for long."""
    rng = np.random.default_rng(1)
    side = rng.integers(30, size=(2, 300))
    sources, targets = np.concatenate([side[0], side[0] + 30, [0]]), np.concatenate([side[1], side[1] + 30, [30]])
    graph = sv.Graph.from_arrays(sources, targets, nodes=60)
    hosts = np.repeat(np.arange(2, dtype=np.int32), 30)
    walks = CompiledWalks(NeighbourLists.of(graph), np.arange(60), [0], WalkPlan("webwalker", window=20), hosts=hosts)
    walks.advance(2000)
    trace = walks.trace()
    assert trace.segment.max() > 5
    met = hosts[trace.page]
    after = met[np.flatnonzero(met == 1)[0] :]  # before that, there is no other host
    assert 0.3 < after.mean() < 0.7
    without = CompiledWalks(NeighbourLists.of(graph), np.arange(60), [0], WalkPlan("webwalker"))
    without.advance(2000)
    assert without.trace().segment.max() == 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"plan": WalkPlan("hardest")}, "method .* 'hardest'"),
        ({"starts": [99]}, "no page 99"),
        ({"plan": WalkPlan(window=10)}, "window=10 needs the hosts"),
    ],
)
def test_invalid_walks(wrong: dict[str, Any], words: str) -> None:
    graph = sv.Graph.from_edges([("a", "b")])
    how: dict[str, Any] = {"starts": [0], **wrong}
    with pytest.raises(UsageError, match=words):
        CompiledWalks(NeighbourLists.of(graph), np.array([0, 1]), **how)


def test_invalid_share_of_in_links() -> None:
    with pytest.raises(UsageError, match=r"in_links .* 1\.5"):
        NeighbourLists.of(sv.Graph.from_edges([("a", "b")]), 1.5)
