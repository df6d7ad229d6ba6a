"""The growing graph against a dictionary of lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surveyor.errors import UsageError
from surveyor.graph.growing import GrowingGraph

PAGES = 12
FAR = 3000  # beyond the first capacity
PAGE = st.one_of(st.integers(0, PAGES), st.integers(0, FAR))
PUTS = st.lists(st.tuples(PAGE, st.lists(PAGE, max_size=9, unique=True)), max_size=60)


def ids(links: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(links, np.int32)


def check(graph: GrowingGraph, rows: dict[int, list[int]]) -> None:
    assert graph.read == len(rows)
    assert graph.links == sum(map(len, rows.values()))
    arrays = graph.rows
    for page, links in rows.items():
        assert graph.has(page)
        assert graph.links_of(page).tolist() == links
        assert arrays.targets[arrays.start[page] : arrays.end[page]].tolist() == links
    for page in {*range(PAGES), FAR, 10 * FAR} - rows.keys():
        assert not graph.has(page)
        assert graph.links_of(page).size == 0


@settings(deadline=None, max_examples=150)
@given(PUTS, st.integers(0, 4), st.integers(0, 20))
def test_holds_what_was_put_last(puts: list[tuple[int, list[int]]], pages: int, links: int) -> None:
    graph, rows, size = GrowingGraph(pages, links), dict[int, list[int]](), 0
    for page, targets in puts:
        old = graph.put(page, ids(targets))
        assert old.tolist() == rows.get(page, [])
        assert old.dtype == np.int32
        rows[page] = targets
        check(graph, rows)
        size = max(size, page + 1, *(target + 1 for target in targets))
        assert graph.size == size  # also of links that are gone again
    whole = graph.to_graph()
    assert whole.pages == graph.size
    kept = {page: sorted({*links} - {page}) for page, links in rows.items()}
    assert all(whole.links_of(page).tolist() == links for page, links in kept.items())
    assert whole.links == sum(map(len, kept.values()))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 5, 64, 1000]))
def test_packs_rows_that_are_replaced(seed: int, room: int) -> None:
    rng = np.random.default_rng(seed)
    graph, rows = GrowingGraph(4, room), dict[int, list[int]]()
    longest = 0
    for _ in range(200):
        page, targets = int(rng.integers(8)), rng.permutation(16)[: rng.integers(0, 17)].tolist()
        assert graph.put(page, ids(targets)).tolist() == rows.get(page, [])
        rows[page] = targets
        longest = max(longest, graph.links)
    check(graph, rows)
    assert graph.rows.targets.size <= max(room, 4 * (longest + 16))  # gaps are used again


def test_old_links_are_a_copy_that_later_puts_leave_alone() -> None:
    graph = GrowingGraph(4, 8)
    graph.put(0, ids([1, 2, 3]))
    old = graph.put(0, ids([2]))
    for page in (3, 1, 2, 1):
        graph.put(page, ids([0, 5]))
    assert old.tolist() == [1, 2, 3]


def test_a_row_can_be_put_again_from_the_graph_itself() -> None:
    graph = GrowingGraph(8, 20)
    graph.put(5, ids([4, 5, 6]))
    graph.put(1, ids([7, 8, 9]))
    for links in ([10, 11, 12, 13], [13, 12, 11, 10], [10, 11, 12, 13], []):
        graph.put(2, ids(links))
    assert graph.put(3, graph.links_of(5)).size == 0  # packs in place, under the row that is given
    assert graph.links_of(5).tolist() == [4, 5, 6]
    assert graph.links_of(3).tolist() == [4, 5, 6]


def test_to_graph_takes_pages_and_names_beyond_what_was_seen() -> None:
    graph = GrowingGraph()
    assert graph.to_graph().pages == 0
    graph.put(2, ids([4, 0]))
    whole = graph.to_graph(7)
    assert (whole.pages, whole.links) == (7, 2)
    assert whole.links_of(2).tolist() == [0, 4]
    assert graph.to_graph(5000).pages == 5000  # more than there is room for
    with pytest.raises(UsageError, match=r"pages must be at least 5, got 4"):
        graph.to_graph(4)


def test_repr() -> None:
    graph = GrowingGraph()
    graph.put(0, ids([1]))
    assert repr(graph) == "GrowingGraph(1 page fetched, 1 link)"
    graph.put(1, ids([]))
    assert repr(graph) == "GrowingGraph(2 pages fetched, 1 link)"


@pytest.mark.parametrize(
    ("page", "links"), [(-1, [1]), (0, [-3]), (0, [1.5]), (0, [2**33]), (2**31, [1]), (0, [[1, 2]])]
)
def test_refuses_what_is_no_page(page: int, links: list[object]) -> None:
    graph = GrowingGraph()
    with pytest.raises(UsageError):
        graph.put(page, np.array(links))
    assert graph.read == 0


def test_rows_cannot_be_written_through() -> None:
    graph = GrowingGraph()
    graph.put(0, np.array([1, 2], np.int32))
    with pytest.raises(ValueError, match="read-only"):
        graph.links_of(0)[:] = 0
