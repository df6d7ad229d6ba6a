"""What pages that were read tell of a web: the links among them, and which pages not read they link to.

Pages read get *places* from 0 on, in the order of their ids, so that vectors over them are short; pages not read to
which they link are the frontier. Two passes over the links of the pages read; nothing is done for each id of the web.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surveyor.arrays import IdArray, IntArray
from surveyor.kernels._jit import kernel
from surveyor.kernels.mass import Rows

NOWHERE = np.int32(-1)  # a page of which nothing is known


class Known(NamedTuple):
    """The pages read, by place, and the frontier."""

    pages: IdArray  # ids of the pages read, rising; the place of a page is where it stands here
    indptr: IntArray
    indices: IdArray  # places that each page read links to
    leaving: IntArray  # links of each page read to pages not read
    frontier: IdArray  # ids of the pages not read to which pages read link, as they are met
    parents_indptr: IntArray
    parents: IdArray  # places of the pages that link to each page of the frontier, rising

    @property
    def degrees(self) -> IntArray:
        """How many pages read each page read links to."""
        return np.diff(self.indptr)


def known(rows: Rows, pages: IdArray, stands_for: IdArray | None = None, scratch: IdArray | None = None) -> Known:
    """Put together what pages read (by id, rising) tell; `stands_for` names the page that each is another address of.

    `scratch` has an entry per page of the web, all -1, before and after: whoever asks again and again spares making it.
    """
    final = np.empty(0, np.int32) if stands_for is None else stands_for
    if scratch is None:
        size = max(int(rows.targets.max(initial=-1)), int(pages.max(initial=-1)), int(final.max(initial=-1))) + 1
        scratch = np.full(size, NOWHERE, np.int32)
    held = pages[: np.searchsorted(pages, rows.start.size)]
    most = int((rows.end[held] - rows.start[held]).sum())
    scratch[pages] = np.arange(pages.size, dtype=np.int32)
    indptr, leaving = np.zeros(pages.size + 1, np.int64), np.zeros(pages.size, np.int64)
    frontier, counts = np.empty(most, np.int32), np.zeros(most + 1, np.int64)
    size = _count(rows, held, scratch, final, indptr, leaving, frontier, counts)
    np.cumsum(indptr, out=indptr)
    frontier, parents_indptr = frontier[:size].copy(), np.cumsum(counts[: size + 1])
    indices, parents = np.empty(indptr[-1], np.int32), np.empty(parents_indptr[-1], np.int32)
    _fill(rows, held, scratch, final, indices, parents_indptr[:-1].copy(), parents)
    scratch[pages] = scratch[frontier] = NOWHERE
    return Known(pages, indptr, indices, leaving, frontier, parents_indptr, parents)


@kernel
def _count(
    rows: Rows, pages: IdArray, place: IdArray, final: IdArray, indptr: IntArray, leaving: IntArray, frontier: IdArray,
    counts: IntArray,
) -> int:  # fmt: skip
    """Count links among pages read, links that leave, and links into each page not read, all one entry further on.

    The places of pages not read become -2, -3, … in the order in which they are met; returns how many there are.
    """
    met = 0
    for at in range(pages.shape[0]):
        page = pages[at]
        inner = 0
        for link in range(rows.start[page], rows.end[page]):
            target = rows.targets[link] if final.shape[0] == 0 else final[rows.targets[link]]
            if target == page:
                continue
            where = place[target]
            if where >= 0:
                inner += 1
                continue
            if where == NOWHERE:
                where = np.int32(-2 - met)
                place[target] = where
                frontier[met] = target
                met += 1
            counts[-1 - where] += 1
            leaving[at] += 1
        indptr[at + 1] = inner
    return met


@kernel
def _fill(
    rows: Rows, pages: IdArray, place: IdArray, final: IdArray, indices: IdArray, free: IntArray, parents: IdArray
) -> None:
    """Write the links; `free` says where the next parent of each page not read goes."""
    at_link = 0
    for at in range(pages.shape[0]):
        page = pages[at]
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
