from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from oracles import first_bad_row
from surveyor import Graph, InputError, Names, UsageError
from surveyor.arrays import MAX_PAGES, AnyIntArray
from surveyor.graph.build import sorted_rows
from webs import graphs, random_web


@given(graphs())
@settings(max_examples=100, deadline=None)
def test_both_directions_hold_the_same_links(graph: Graph) -> None:
    there = {(page, int(target)) for page in range(graph.pages) for target in graph.links_of(page)}
    back = {(int(source), page) for page in range(graph.pages) for source in graph.in_links_of(page)}
    assert there == back
    assert len(there) == graph.links
    assert first_bad_row(graph.indptr, graph.indices) == -1
    assert first_bad_row(graph.in_links.indptr, graph.in_links.indices) == -1
    assert graph.reversed().reversed() == graph


def test_repeats_merge_and_self_links_drop() -> None:
    graph = Graph.from_arrays(np.array([0, 0, 0, 2]), np.array([1, 1, 0, 2]), 4)
    assert (graph.pages, graph.links) == (4, 1)
    assert graph.provenance == {"links_read": 4, "self_links_dropped": 2, "repeats_merged": 1}


def test_isolated_pages_are_kept() -> None:
    assert Graph.from_arrays(np.array([0]), np.array([1]), 10).pages == 10
    assert Graph.from_arrays(np.array([0]), np.array([9])).pages == 10


def test_names_lead_to_pages_and_back() -> None:
    graph = Graph.from_edges([("a", "b"), ("ü", "a")])
    assert [graph.name(page) for page in range(3)] == ["a", "b", "ü"]
    assert graph.page("ü") == 2
    assert repr(graph) == "Graph(3 pages, 2 links, named)"
    with pytest.raises(UsageError, match="missing"):
        graph.page("missing")


def test_a_graph_without_names_is_asked_by_id() -> None:
    graph = random_web(10, 20, seed=1)
    assert graph.page("7") == 7
    for wrong in ("10", "x", "-1", "²"):
        with pytest.raises(UsageError, match="no names"):
            graph.page(wrong)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_links_given_in_order_need_no_sorting(dtype: type) -> None:
    graph = random_web(3_000, 20_000, seed=9)
    sources: AnyIntArray = np.repeat(np.arange(graph.pages), graph.out_degrees).astype(dtype)
    targets: AnyIntArray = graph.indices.astype(dtype)
    assert sorted_rows(sources, targets, graph.pages) is not None
    assert Graph.from_arrays(sources, targets, graph.pages) == graph
    smallest = int(max(sources[-1], targets.max())) + 1
    assert Graph.from_arrays(sources, targets).pages == smallest
    for place, source, target in [(7, 0, 0), (4096, 0, 0), (9000, -1, 5), (9000, 5, 3_000), (4097, 3, 3)]:
        other_sources, other_targets = sources.copy(), targets.copy()
        other_sources[place], other_targets[place] = source, target
        assert sorted_rows(other_sources, other_targets, graph.pages) is None
    repeated = np.append(sources[:4096], sources[4095]), np.append(targets[:4096], targets[4095])
    assert sorted_rows(*repeated, graph.pages) is None
    assert Graph.from_arrays(*repeated, graph.pages).links == 4096


def test_arrays_cannot_be_written() -> None:
    graph = random_web(10, 20, seed=1)
    for array in (graph.indptr, graph.indices, graph.in_links.indptr, graph.in_links.indices):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.uint32, np.int64, np.uint64, ">i4"])
def test_any_integer_type_builds_the_same_graph(dtype: type | str) -> None:
    sources, targets = np.array([0, 1, 2, 2]), np.array([1, 2, 0, 1])
    assert Graph.from_arrays(sources.astype(dtype), targets.astype(dtype)) == Graph.from_arrays(sources, targets)


@pytest.mark.parametrize("bad", [-1, MAX_PAGES, 2**40, -(2**40)])
def test_ids_that_do_not_fit_are_rejected(bad: int) -> None:
    with pytest.raises(InputError, match="page ids must be from 0"):
        Graph.from_arrays(np.array([0, 1]), np.array([1, bad]))


def test_an_unsigned_id_beyond_int64_is_rejected() -> None:
    with pytest.raises(InputError, match="page ids must be from 0"):
        Graph.from_arrays(np.array([2**64 - 1], np.uint64), np.array([0], np.uint64))


@pytest.mark.parametrize(
    ("sources", "targets", "nodes", "names", "message"),
    [
        ([0, 1], [1], None, None, "2 sources but 1 targets"),
        ([0.5], [1.0], None, None, "array of integers, got float64"),
        ([[0]], [[1]], None, None, "one-dimensional array"),
        ([0], [1], 2, ["a", "a"], "the same name"),
        ([0], [5], 3, None, "page id 5"),
        ([0], [1], None, ["a"], "page id 1"),
        ([0], [1], 2, ["a"], "1 names for 2 pages"),
    ],
)
def test_mismatched_arguments_are_rejected(sources, targets, nodes, names, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises((UsageError, InputError), match=message):
        Graph.from_arrays(np.array(sources), np.array(targets), nodes, names)


def test_more_pages_than_ids_are_rejected() -> None:
    indptr = np.broadcast_to(np.int64(0), MAX_PAGES + 2)
    with pytest.raises(UsageError, match="more than page ids can number"):
        Graph(indptr, np.empty(0, np.int32))


@pytest.mark.parametrize(
    ("edges", "problem"),
    [
        ([("a",)], r"edges\[0\] must be a pair of names, got \('a',\)"),
        ([("a", "b"), ("a", "b", "c")], r"edges\[1\] must be a pair of names"),
        (["ab"], r"edges\[0\] must be a pair of names, got 'ab'"),
        ([(1, 2)], r"edges\[0\] must be a pair of names, got \(1, 2\)"),
        ([("a", None)], r"edges\[0\] must be a pair of names"),
        ([([], "a")], r"edges\[0\] must be a pair of names"),
        ([3], r"edges\[0\] must be a pair of names, got 3"),
        ("ab", r"edges\[0\] must be a pair of names, got 'a'"),
        (3, "edges must be pairs of names, got 3"),
    ],
)
def test_edges_that_are_not_pairs_of_names_are_rejected(edges: Any, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        Graph.from_edges(edges)


def test_no_links_and_no_pages() -> None:
    none = np.empty(0, np.int64)
    assert repr(Graph.from_arrays(none, none)) == "Graph(0 pages, 0 links)"
    assert Graph.from_arrays(none, none, 3).in_links.indptr.tolist() == [0, 0, 0, 0]
    assert Graph.from_edges([]).names == Names.of([])
