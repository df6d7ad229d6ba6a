"""What pages that were read tell of a web: the links among them, and which pages not read they link to.

Pages read get *places* from 0 on, in the order of their ids, so that vectors over them are short; pages not read to
which they link are the frontier. Two passes over the links of the pages read, and two over all ids.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surveyor.arrays import BoolArray, IdArray, IntArray
from surveyor.kernels._jit import kernel
from surveyor.kernels.mass import Rows

NOWHERE = np.int32(-1)  # a page of which nothing is known


class Known(NamedTuple):
    """The pages read, by place, and the frontier."""

    pages: IdArray  # ids of the pages read, rising; the place of a page is where it stands here
    indptr: IntArray
    indices: IdArray  # places that each page read links to
    leaving: IntArray  # links of each page read to pages not read
    frontier: IdArray  # ids of the pages not read to which pages read link, rising
    parents_indptr: IntArray
    parents: IdArray  # places of the pages that link to each page of the frontier, rising

    @property
    def degrees(self) -> IntArray:
        """How many pages read each page read links to."""
        return np.diff(self.indptr)


def known(rows: Rows, read: BoolArray, stands_for: IdArray | None = None) -> Known:
    """Put together what pages read tell; `stands_for` names the page that each page is another address of."""
    pages = np.flatnonzero(read).astype(np.int32)
    final = np.empty(0, np.int32) if stands_for is None else stands_for
    place = np.full(read.size, NOWHERE, np.int32)
    place[pages] = np.arange(pages.size, dtype=np.int32)
    indptr, leaving = np.zeros(pages.size + 1, np.int64), np.zeros(pages.size, np.int64)
    into = np.zeros(read.size, np.int32)
    _count(rows, pages, place, final, indptr, leaving, into)
    np.cumsum(indptr, out=indptr)
    frontier = np.flatnonzero(into).astype(np.int32)
    parents_indptr = np.concatenate([[0], np.cumsum(into[frontier], dtype=np.int64)])
    place[frontier] = NOWHERE - 1 - np.arange(frontier.size, dtype=np.int32)
    indices, parents = np.empty(indptr[-1], np.int32), np.empty(parents_indptr[-1], np.int32)
    _fill(rows, pages, place, final, indices, parents_indptr[:-1].copy(), parents)
    return Known(pages, indptr, indices, leaving, frontier, parents_indptr, parents)


@kernel
def _count(
    rows: Rows, pages: IdArray, place: IdArray, final: IdArray, indptr: IntArray, leaving: IntArray, into: IdArray
) -> None:
    """Count links among pages read (one place further on), links that leave, and links into pages not read."""
    for at in range(pages.shape[0]):
        page = pages[at]
        if page >= rows.start.shape[0]:
            continue
        inner = 0
        for link in range(rows.start[page], rows.end[page]):
            target = rows.targets[link] if final.shape[0] == 0 else final[rows.targets[link]]
            if target == page:
                continue
            if place[target] >= 0:
                inner += 1
            else:
                into[target] += 1
                leaving[at] += 1
        indptr[at + 1] = inner


@kernel
def _fill(
    rows: Rows, pages: IdArray, place: IdArray, final: IdArray, indices: IdArray, free: IntArray, parents: IdArray
) -> None:
    """Write the links; `place` of a page of the frontier is -2, -3, …, and `free` where its next parent goes."""
    at_link = 0
    for at in range(pages.shape[0]):
        page = pages[at]
        if page >= rows.start.shape[0]:
            continue
        for link in range(rows.start[page], rows.end[page]):
            target = rows.targets[link] if final.shape[0] == 0 else final[rows.targets[link]]
            where = place[target]
            if target == page:
                continue
            if where >= 0:
                indices[at_link] = where
                at_link += 1
            else:
                outer = -2 - where
                parents[free[outer]] = at
                free[outer] += 1
