"""A whole crawl of a known graph in one kernel, for the orders that need nothing but the ledger and the queue.

It calls the same `step` for each page as the loop over objects does, and takes pages from the same queue: only
the loop around them differs. Tests compare the two page for page.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surveyor.arrays import AnyInt, ByteArray, FloatArray, IdArray, IntArray
from surveyor.kernels._jit import bare
from surveyor.kernels.closure import bury, step
from surveyor.kernels.mass import (
    BLOCKED,
    BLOCKS,
    COUNT,
    DYING,
    LIFE,
    LOST,
    MOVING,
    OVERFLOW,
    POOL,
    SIZE,
    UNKNOWN,
    WAITING,
    WAITS,
    Mass,
    Rows,
    bounds,
    forget_touched,
    total,
    turn,
)
from surveyor.kernels.queue import ABSENT, Queue, drop, lease, place
from surveyor.kernels.synthetic import chance

# What ranks waiting pages: their mass, how few links they are from the seeds, or chance.
BY_MASS, BY_DEPTH, BY_CHANCE = map(np.int64, range(3))
# What happens to a page that is asked for.
FINE, GONE, SHUT = map(np.int64, range(3))
# Why a crawl ended.
DONE, EMPTY, HOPELESS, PAUSED = map(np.int64, range(4))
ORDER = np.int64(0)  # what chance is drawn for
ENDLESS = 2**63 - 1  # reads, where none are the limit
CALM = 0.01  # mass still in motion when a goal out of reach is given up


class Trace(NamedTuple):
    """What a crawl leaves behind: one entry per page read; `counts` has pages read and pages asked for."""

    pages: IdArray
    at_least: FloatArray
    at_most: FloatArray
    counts: IntArray
    batch: IdArray  # room for the pages taken at a time


class Goal(NamedTuple):
    """When to stop or to pause, and how many pages are taken at a time."""

    coverage: float
    reads: int
    pause: int
    batch: int


@bare
def chances(seed: np.uint64, pages: IdArray, out: FloatArray) -> None:
    """Write a random number for each page, which depends on the seed and the page only."""
    for entry in range(pages.shape[0]):
        out[entry] = chance(seed, np.int64(pages[entry]), ORDER)


@bare
def reorder(queue: Queue, state: ByteArray, pages: IdArray, priorities: FloatArray, also: AnyInt) -> int:
    """Set the priorities of pages that wait or have `also` that life; return the place of a wrong entry, or -1."""
    for entry in range(pages.shape[0]):
        page = pages[entry]
        if page < 0 or page >= state.shape[0] or np.isnan(priorities[entry]):
            return entry
        life = state[page] & LIFE
        if life == UNKNOWN:
            return entry
        if life in (WAITING, also):
            place(queue, page, priorities[entry])
    return -1


@bare
def _rank(mass: Mass, queue: Queue, page: AnyInt, order: AnyInt, seed: np.uint64, parent: AnyInt) -> None:
    if mass.state[page] & LIFE != WAITING:
        return
    if order == BY_MASS:
        place(queue, page, mass.residual[page])
    elif queue.before[page] == ABSENT:  # only a page just heard of is in no place
        place(queue, page, queue.priority[parent] - 1.0 if order == BY_DEPTH else chance(seed, page, ORDER))


@bare
def _rank_touched(mass: Mass, queue: Queue, order: AnyInt, seed: np.uint64, parent: AnyInt) -> None:
    if mass.counts[OVERFLOW]:
        for page in range(mass.counts[SIZE]):
            _rank(mass, queue, page, order, seed, parent)
    else:
        for entry in range(mass.counts[COUNT]):
            _rank(mass, queue, np.int64(mass.touched[entry]), order, seed, parent)


@bare
def visit(mass: Mass, rows: Rows, page: AnyInt, fate: AnyInt, trace: Trace) -> None:
    """Ask for one page and account for what comes of it."""
    forget_touched(mass)
    if fate == SHUT:
        turn(mass, page, BLOCKED)
        return
    trace.counts[1] += 1
    if fate == GONE:
        bury(mass, rows, page)
        return
    step(mass, rows, page)
    reads = trace.counts[0]
    trace.pages[reads] = page
    trace.at_least[reads], trace.at_most[reads] = bounds(mass)
    trace.counts[0] = reads + 1


@bare
def ended(mass: Mass, goal: Goal, reads: int) -> int:
    """Say why to stop now; -1 to go on."""
    if reads >= goal.reads or bounds(mass)[0] >= goal.coverage:
        return int(DONE)
    shut = total(mass, BLOCKS) + total(mass, LOST) + total(mass, DYING)
    moving = total(mass, MOVING) + total(mass, POOL) + total(mass, WAITS)
    if goal.reads == ENDLESS and 1.0 - shut < goal.coverage and moving <= CALM:
        return int(HOPELESS)
    return int(PAUSED) if reads >= goal.pause else -1


@bare
def crawl(
    mass: Mass, rows: Rows, queue: Queue, fates: ByteArray, trace: Trace, goal: Goal, order: AnyInt, seed: np.uint64
) -> int:
    """Read pages in order until the goal is reached, is out of reach, or none is left; return which."""
    batch = trace.batch
    while True:
        why = ended(mass, goal, trace.counts[0])
        if why >= 0:
            return why
        taken = 0
        while taken < goal.batch:
            best = lease(queue)
            if best < 0:
                break
            batch[taken] = best
            taken += 1
        if taken == 0:
            return int(EMPTY)
        for entry in range(taken):
            page = np.int64(batch[entry])
            visit(mass, rows, page, np.int64(fates[page]), trace)
            drop(queue, page)
            _rank_touched(mass, queue, order, seed, page)


@bare
def crawl_these(mass: Mass, rows: Rows, pages: IdArray, fates: ByteArray, trace: Trace, goal: Goal) -> tuple[int, int]:
    """Read the given pages in order; return how many were, and why it ended (-1: all were read)."""
    for entry in range(pages.shape[0]):
        if entry % goal.batch == 0:
            why = ended(mass, goal, trace.counts[0])
            if why >= 0:
                return entry, why
        page = np.int64(pages[entry])
        visit(mass, rows, page, np.int64(fates[page]), trace)
    return pages.shape[0], -1
