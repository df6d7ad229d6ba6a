"""A link graph that grows during a crawl: one row per page, appended, replaced when a page is fetched again.

The caller assigns page ids, in any order; arrays grow as ids appear. Rows are stored one after another in one
array; a replaced row leaves a gap, and the array is compacted when half of it is gaps. So the amortised cost of
`put` is the length of its row.

    >>> graph = GrowingGraph()
    >>> graph.put(0, np.array([1, 2], np.int32))
    array([], dtype=int32)
    >>> graph.put(0, np.array([2], np.int32))
    array([1, 2], dtype=int32)
    >>> graph
    GrowingGraph(1 page fetched, 1 link)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surveyor.arrays import MAX_PAGES, IdArray, IntArray, read_only
from surveyor.errors import UsageError
from surveyor.graph.csr import Graph

if TYPE_CHECKING:
    from surveyor.graph.names import Names
    from surveyor.kernels.mass import Rows


class GrowingGraph:
    """The links of the pages fetched so far."""

    def __init__(self, pages: int = 1024, links: int = 4096) -> None:
        """Allocate room for this many pages and links; both grow as needed."""
        self._start: IntArray = np.full(pages, -1, np.int64)  # -1: not fetched
        self._end: IntArray = np.full(pages, -1, np.int64)
        self._targets: IdArray = np.empty(links, np.int32)
        self._used = 0
        self.links = 0  # in the current rows
        self.read = 0  # pages
        self.size = 0  # one more than the largest id seen

    def put(self, page: int, links: IdArray) -> IdArray:
        """Set the links of a page (distinct, without the page itself); return its previous links."""
        links = _checked(page, links)
        old = self.links_of(page).copy()
        largest = max(page, int(links.max()) if links.size else 0)
        self.size = max(self.size, largest + 1)
        if self._start.size < self.size:
            room = max(self.size, 2 * self._start.size) - self._start.size
            self._start = np.concatenate([self._start, np.full(room, -1)])
            self._end = np.concatenate([self._end, np.full(room, -1)])
        if np.may_share_memory(links, self._targets):
            links = links.copy()  # growing may move it
        self._make_room(links.size)
        self.read += bool(self._start[page] < 0)
        self.links += links.size - old.size
        self._start[page], self._end[page] = self._used, self._used + links.size
        self._targets[self._used : self._used + links.size] = links
        self._used += links.size
        return old

    def has(self, page: int) -> bool:
        """Return whether a page has been fetched."""
        return 0 <= page < self._start.size and bool(self._start[page] >= 0)

    def links_of(self, page: int) -> IdArray:
        """Return the links of a page, none if it has not been fetched."""
        if not self.has(page):
            return self._targets[:0]
        view: IdArray = read_only(self._targets[self._start[page] : self._end[page]])
        return view

    @property
    def rows(self) -> Rows:
        """The arrays in the form that kernels take; valid until the next `put`."""
        from surveyor.kernels.mass import Rows

        return Rows(read_only(self._start), read_only(self._end), read_only(self._targets))

    def to_graph(self, pages: int | None = None, names: Names | None = None) -> Graph:
        """Return everything known as an immutable graph; pages not fetched have no links."""
        pages = self.size if pages is None else pages
        if pages < self.size:
            problem = f"pages must be at least {self.size:,}, got {pages:,}"
            raise UsageError(problem, hint="omit it to include all known pages")
        degrees = np.zeros(pages, np.int64)
        seen = min(pages, self._start.size)
        degrees[:seen] = (self._end - self._start)[:seen]
        indptr = np.concatenate([[0], np.cumsum(degrees)])
        rows = np.flatnonzero(degrees)
        shift = np.repeat(self._start[rows] - indptr[rows], degrees[rows])
        targets = self._targets[np.arange(indptr[-1]) + shift]
        return Graph.from_arrays(np.repeat(np.arange(pages), degrees), targets, pages, names)

    def _make_room(self, links: int) -> None:
        """Compact the rows when half is gaps; then extend the array if it is still too short."""
        if self._used + links <= self._targets.size:
            return
        rows = np.flatnonzero(self._end > self._start)
        lengths = (self._end - self._start)[rows]
        kept = int(lengths.sum())
        targets = self._targets
        if 2 * (kept + links) > self._targets.size:
            targets = np.empty(2 * max(kept + links, self._targets.size), np.int32)
        ends = np.cumsum(lengths)
        targets[:kept] = self._targets[np.arange(kept) + np.repeat(self._start[rows] - ends + lengths, lengths)]
        self._start[rows], self._end[rows] = ends - lengths, ends
        self._targets, self._used = targets, kept

    def __repr__(self) -> str:
        pages, links = (
            f"{n:,} {word}{'' if n == 1 else 's'}" for n, word in ((self.read, "page"), (self.links, "link"))
        )
        return f"GrowingGraph({pages} fetched, {links})"


def _checked(page: int, links: IdArray) -> IdArray:
    links = np.asarray(links)
    if links.ndim != 1 or (links.size and links.dtype.kind not in "iu"):
        raise UsageError(
            f"the links of page {page} must be a one-dimensional array of page ids", hint="ids are integers from 0"
        )
    low, high = (int(links.min()), int(links.max())) if links.size else (page, page)
    if min(page, low) < 0 or max(page, high) >= MAX_PAGES:
        raise UsageError(f"no page {min(page, low) if min(page, low) < 0 else max(page, high)}", hint="ids start at 0")
    return links.astype(np.int32, copy=False)
