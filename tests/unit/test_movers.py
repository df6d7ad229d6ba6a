"""Pages that move a local domain: against dense solves without their links."""

from __future__ import annotations

import json
import math
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surveyor import pagerank
from surveyor.errors import UsageError
from surveyor.estimate.community.movers import Mover, movers
from surveyor.graph.csr import Graph
from surveyor.kernels.crawled_graph import CrawledGraph, build_crawled_graph
from surveyor.kernels.mass import Rows
from webs import graphs, random_web

Array = np.ndarray[Any, np.dtype[np.float64]]
Method = Literal["crawled", "frontier"]


def known_links(graph: Graph, read: Array | Any) -> CrawledGraph:
    return build_crawled_graph(
        Rows(graph.indptr[:-1], graph.indptr[1:], graph.indices), np.flatnonzero(read).astype(np.int32)
    )


def counts(found: CrawledGraph) -> Array:
    """Links among pages read, by place."""
    matrix = np.zeros((found.pages.size, found.pages.size))
    for place in range(found.pages.size):
        for goal in found.indices[found.indptr[place] : found.indptr[place + 1]]:
            matrix[place, goal] += 1
    return matrix


def dense_ranks(links: Array, leaving: Array, damping: float) -> Array:
    """Every page gets 1 and what links bring; links that leave carry their part away."""
    degrees = links.sum(axis=1) + leaving
    steps = links / np.maximum(degrees, 1)[:, None]
    ranks = np.linalg.solve(np.eye(len(links)) - damping * steps.T, np.ones(len(links)))
    return np.asarray(ranks / ranks.sum())


def shares_without(links: Array, leaving: Array, damping: float, inside: Array, place: int) -> Array:
    fewer = links.copy()
    fewer[place, inside] = 0
    ranks = dense_ranks(fewer, leaving, damping)[inside]
    return np.asarray(ranks / ranks.sum())


@st.composite
def domains(draw: st.DrawFn) -> tuple[CrawledGraph, Array, Array]:
    """What is known of a random web, which pages read are local, and links that leave under either method."""
    graph = draw(graphs(max_pages=16))
    kinds = [draw(st.sampled_from(["local", "read", "not read"])) for _ in range(graph.pages)]
    kinds[draw(st.integers(0, graph.pages - 1))] = "local"
    read = np.array([kind != "not read" for kind in kinds])
    inside = np.array([kind == "local" for kind in kinds])[read]
    found = known_links(graph, read)
    return found, inside, found.leaving.astype(np.float64)


@settings(deadline=None, max_examples=200)
@given(domains(), st.sampled_from(["crawled", "frontier"]), st.sampled_from([0.5, 0.85, 0.97]), st.data())
def test_movers_are_those_of_a_dense_solve(
    domain: tuple[CrawledGraph, Array, Array], method: Method, damping: float, data: st.DataObject
) -> None:
    found, inside, leaving = domain
    leaving = leaving if method == "frontier" else np.zeros_like(leaving)
    links = counts(found)
    ranks = dense_ranks(links, leaving, damping)
    local = np.flatnonzero(inside)
    page = data.draw(st.none() | st.sampled_from(local.tolist()))
    target = local if page is None else np.array([page])
    flow = damping * ranks * links[:, target].sum(axis=1) / np.maximum(links.sum(axis=1) + leaving, 1)
    flow[inside] = 0
    result = movers(found, ranks, local, page, 100, damping=damping, method=method)
    assert {mover.index for mover in result} == set(np.flatnonzero(flow).tolist())
    assert [mover.flow for mover in result] == sorted((mover.flow for mover in result), reverse=True)
    shares = ranks[inside] / ranks[inside].sum()
    for mover in result:
        assert mover.page == found.pages[mover.index]
        assert mover.flow == pytest.approx(flow[mover.index], rel=1e-12)
        change = shares_without(links, leaving, damping, inside, mover.index) - shares
        truth = np.abs(change).sum() / 2 if page is None else change[local.tolist().index(page)]
        assert abs(mover.change - truth) <= mover.error + 1e-12
        assert mover.error <= 1e-4 * mover.flow / ranks[inside].sum() + 1e-9


def test_ranks_are_those_of_the_solver_without_the_links() -> None:
    """The same as ranking the pages read again, whole, with every page without links going anywhere."""
    graph = random_web(600, 5000, 3)
    read = np.random.default_rng(1).random(600) < 0.7
    found = known_links(graph, read)
    inside = np.zeros(found.pages.size, np.bool_)
    inside[:120] = True
    ranks = pagerank(Graph(found.indptr, found.indices), tolerance=1e-13).scores
    page = int(np.argmax(np.where(inside, ranks, 0)))
    result = movers(found, ranks, inside, page, 5)
    assert len(result) == 5
    for mover in result:
        owners = np.repeat(np.arange(found.pages.size), found.degrees)
        stays = ~((owners == mover.index) & inside[found.indices])
        fewer = Graph.from_arrays(owners[stays], found.indices[stays], found.pages.size)
        again = pagerank(fewer, tolerance=1e-13).scores
        change = again[page] / again[inside].sum() - ranks[page] / ranks[inside].sum()
        assert abs(mover.change - change) <= mover.error + 1e-11
        assert abs(change) > 10 * mover.error  # it says something


def test_a_page_outside_that_all_rank_comes_from() -> None:
    """0 and 1 are local, 2 is outside and links to 0 alone: without it both are alike."""
    found = known_links(Graph.from_arrays(np.array([2]), np.array([0]), 3), np.ones(3, np.bool_))
    ranks = np.array([1.85, 1, 1]) / 3.85
    (mover,) = movers(found, ranks, np.array([0, 1]), 0)
    assert (mover.page, mover.index) == (2, 2)
    assert mover.flow == pytest.approx(0.85 / 3.85)
    assert mover.change == pytest.approx(0.5 - 1.85 / 2.85)
    (of_all,) = movers(found, ranks, np.array([0, 1]))
    assert of_all.change == pytest.approx(1.85 / 2.85 - 0.5)
    assert movers(found, ranks, np.array([0, 1]), 1) == []
    assert movers(found, ranks, np.array([0, 1]), count=0) == []
    assert movers(found, ranks, np.arange(3)) == []
    assert json.loads(json.dumps(mover.to_dict())) == mover.to_dict()
    assert Mover(**mover.to_dict()) == mover


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ranks": [0.5, 0.5]}, "ranks must have one entry per fetched page"),
        ({"ranks": [0.5, math.nan, 0.5]}, "finite"),
        ({"ranks": [0.5, 0.0, 0.5]}, "greater than 0"),
        ({"local": np.array([], np.int64)}, "local names no page"),
        ({"local": np.array([3])}, "no page 3"),
        ({"page": 2}, "page 2 is not the index of a local page"),
        ({"page": -3}, "page -3"),
        ({"damping": 1.0}, r"damping must be in \(0, 1\), got 1"),
        ({"count": -1}, "count must be at least 0, got -1"),
        ({"method": "auto"}, "choose crawled or frontier"),
    ],
)
def test_invalid_options(options: dict[str, Any], message: str) -> None:
    found = known_links(Graph.from_arrays(np.array([2]), np.array([0]), 3), np.ones(3, np.bool_))
    with pytest.raises(UsageError, match=message):
        movers(**({"known": found, "ranks": [0.4, 0.3, 0.3], "local": np.array([0, 1])} | options))
