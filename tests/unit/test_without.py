"""Rank without some links, compared with a dense solve; shortest paths, compared with a plain search."""

from __future__ import annotations

from collections import deque
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import dense_pagerank
from surveyor import Graph, pagerank
from surveyor.rank.explain import rank_without_links, remove_links, shortest_path
from webs import graphs, random_web


def slow_without(graph: Graph, target: int, sources: set[int]) -> Graph:
    links = [
        (page, goal)
        for page in range(graph.pages)
        for goal in graph.links_of(page).tolist()
        if not (page in sources and goal == target)
    ]
    pairs = np.array(links, np.int64).reshape(-1, 2)
    return Graph.from_arrays(pairs[:, 0], pairs[:, 1], graph.pages)


@given(graphs(), st.data())
def test_links_are_removed_in_both_directions(graph: Graph, data: st.DataObject) -> None:
    target = data.draw(st.integers(0, graph.pages - 1))
    into = graph.in_links_of(target)
    sources = into[np.array([data.draw(st.booleans()) for _ in into], np.bool_)]
    fewer, plain = remove_links(graph, target, sources), slow_without(graph, target, set(sources.tolist()))
    assert fewer == plain
    assert np.array_equal(fewer.in_links.indptr, plain.in_links.indptr)
    assert np.array_equal(fewer.in_links.indices, plain.in_links.indices)


@given(
    graphs(), st.data(), st.booleans(), st.sampled_from(["teleport", "uniform", "custom"]), st.sampled_from([0.1, 1e-9])
)
@settings(max_examples=200, deadline=None)
def test_share_and_position_are_those_of_a_dense_solve(graph, data, personal, dangling, tolerance):  # type: ignore[no-untyped-def]
    target = data.draw(st.integers(0, graph.pages - 1))
    sources = graph.in_links_of(target)[: data.draw(st.integers(0, 30))]
    uniform = np.full(graph.pages, 1 / graph.pages)
    jump = np.eye(graph.pages)[0] if personal else uniform
    last = np.eye(graph.pages)[-1]
    dangling_weights = {"teleport": jump, "uniform": uniform, "custom": last}[dangling]
    ranking = pagerank(
        graph, 0.85, tolerance, jump if personal else None, dangling=last if dangling == "custom" else dangling
    )
    result = rank_without_links(graph, ranking, target, sources)
    truth = dense_pagerank(slow_without(graph, target, set(sources.tolist())), 0.85, jump, dangling_weights)
    assert result.links == sources.size
    assert abs(result.share - truth[target]) <= result.error
    above = int(np.count_nonzero(truth > truth[target] + 1e-12))  # ties: the dense solve is not exact either
    assert result.best <= above + 1 <= result.worst
    assert result.best <= result.position <= result.worst


def test_a_certain_position_is_the_true_one_and_ties_are_not_certain() -> None:
    graph = random_web(300, 3000, 5)
    ranking = pagerank(graph, tolerance=1e-3)
    target = int(ranking.top(1)[0])
    sources = graph.in_links_of(target)[5:]
    result = rank_without_links(graph, ranking, target, sources)
    uniform = np.full(300, 1 / 300)
    truth = dense_pagerank(slow_without(graph, target, set(sources.tolist())), 0.85, uniform, uniform)
    assert result.certain
    assert result.position == np.count_nonzero(truth > truth[target]) + 1 > ranking.position(target)
    star = Graph.from_arrays(np.array([0, 0, 0, 1, 2, 3]), np.array([1, 2, 3, 0, 0, 0]), 4)
    twin = rank_without_links(star, pagerank(star), 1, np.array([], np.int32))
    assert not twin.certain
    assert (twin.best, twin.worst) == (2, 4)


@given(graphs(), st.data())
def test_paths_are_shortest(graph: Graph, data: st.DataObject) -> None:
    page = st.integers(0, graph.pages - 1)
    target, starts = data.draw(page), data.draw(st.lists(page, max_size=3, unique=True))
    chain = shortest_path(graph, np.array(starts, np.int64), target)
    steps = dict.fromkeys(starts, 0)
    queue = deque(starts)
    while queue:
        here = queue.popleft()
        for goal in graph.links_of(here).tolist():
            if goal not in steps:
                steps[goal] = steps[here] + 1
                queue.append(goal)
    assert len(chain) == (steps[target] + 1 if target in steps else 0)
    if chain:
        assert chain[0] in starts
        assert chain[-1] == target
    for before, after in pairwise(chain):
        assert after in graph.links_of(before)


@pytest.mark.parametrize("length", [1, 2, 400])
def test_long_paths(length: int) -> None:
    ids = np.arange(length - 1)
    graph = Graph.from_arrays(ids, ids + 1, length)
    assert shortest_path(graph, np.array([0]), length - 1) == tuple(range(length))
