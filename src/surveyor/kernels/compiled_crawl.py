"""A whole crawl of a known graph in one kernel, for crawl orders that depend only on the ledger and the queue.

It calls the same `step` per page and the same queue as the object loop; only the loop differs. Tests compare the two
page for page.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surveyor.arrays import AnyInt, ByteArray, FloatArray, IdArray, IntArray
from surveyor.kernels._jit import kernel_without_refcounts
from surveyor.kernels.hash_random import PAGE_ORDER, random_unit
from surveyor.kernels.mass import (
    BLOCKED,
    BLOCKS,
    COUNT,
    DYING,
    LOST,
    MOVING,
    OVERFLOW,
    POOL,
    SIZE,
    STATUS,
    WAITING,
    WAITS,
    Mass,
    Rows,
    bounds,
    clear_touched,
    deepen,
    goal_threshold,
    record_gone,
    set_status,
    step,
    total,
)
from surveyor.kernels.priority_queues import ABSENT, Queue, lease_best, remove, set_priority

# The priority of waiting pages: their mass, their depth (fewest links from the seeds first), or a random number.
BY_MASS, BY_DEPTH, BY_RANDOM = map(np.int64, range(3))
# The outcome of fetching a page.
OUTCOME_FETCHED, OUTCOME_GONE, OUTCOME_BLOCKED = map(np.int64, range(3))
# Why a crawl stopped.
DONE, EMPTY, UNREACHABLE, PAUSED = map(np.int64, range(4))
UNLIMITED = 2**63 - 1  # fetches, without a limit
SETTLED = 0.01  # waiting and moving mass below which an unreachable goal stops the crawl


class Trace(NamedTuple):
    """The record of a crawl: one entry per fetched page; `counts` has pages fetched and pages requested."""

    pages: IdArray
    at_least: FloatArray
    at_most: FloatArray
    counts: IntArray
    batch: IdArray  # scratch for the pages of a batch


class Goal(NamedTuple):
    """When to stop or to pause, and the batch size."""

    coverage: float
    fetches: int
    pause: int
    batch: int


class CrawlOrder(NamedTuple):
    """The priority of waiting pages, and the random seed of a random order."""

    kind: np.int64
    seed: np.uint64


@kernel_without_refcounts
def _rank(mass: Mass, queue: Queue, page: AnyInt, order: AnyInt, seed: np.uint64, parent: AnyInt) -> None:
    if mass.state[page] & STATUS != WAITING:
        return
    if order == BY_MASS:
        set_priority(queue, page, mass.residual[page])
    elif queue.before[page] == ABSENT:  # only a new page is not queued
        priority = queue.priority[parent] - 1.0 if order == BY_DEPTH else random_unit(seed, page, PAGE_ORDER)
        set_priority(queue, page, priority)


@kernel_without_refcounts
def _rank_touched(mass: Mass, queue: Queue, order: AnyInt, seed: np.uint64, parent: AnyInt) -> None:
    if mass.counts[OVERFLOW]:
        for page in range(mass.counts[SIZE]):
            _rank(mass, queue, page, order, seed, parent)
    else:
        for entry in range(mass.counts[COUNT]):
            _rank(mass, queue, np.int64(mass.touched[entry]), order, seed, parent)


@kernel_without_refcounts
def visit(mass: Mass, rows: Rows, page: AnyInt, outcome: AnyInt, trace: Trace) -> None:
    """Account for the outcome of one page."""
    if outcome == OUTCOME_BLOCKED:
        set_status(mass, page, BLOCKED)
        return
    trace.counts[1] += 1
    if outcome == OUTCOME_GONE:
        record_gone(mass, rows, page)
        return
    step(mass, rows, page)
    fetches = trace.counts[0]
    trace.pages[fetches] = page
    trace.at_least[fetches], trace.at_most[fetches] = bounds(mass)
    trace.counts[0] = fetches + 1


@kernel_without_refcounts
def stop_reason(mass: Mass, goal: Goal, fetches: int) -> int:
    """Return why to stop now, or -1 to continue."""
    if fetches >= goal.fetches or bounds(mass)[0] >= goal.coverage:
        return int(DONE)
    out_of_reach = total(mass, BLOCKS) + total(mass, LOST) + total(mass, DYING)
    moving = total(mass, MOVING) + total(mass, POOL) + total(mass, WAITS)
    if goal.fetches == UNLIMITED and 1.0 - out_of_reach < goal.coverage and moving <= SETTLED:
        return int(UNREACHABLE)
    return int(PAUSED) if fetches >= goal.pause else -1


@kernel_without_refcounts
def push_for_goal(mass: Mass, rows: Rows, coverage: float) -> None:
    """Push moving mass as long as that may reach the goal."""
    threshold = goal_threshold(mass, coverage)
    while threshold > 0.0:
        deepen(mass, rows, threshold)
        threshold = goal_threshold(mass, coverage)


@kernel_without_refcounts
def crawl(
    mass: Mass, rows: Rows, queue: Queue, outcomes: ByteArray, trace: Trace, goal: Goal, order: CrawlOrder
) -> int:
    """Fetch pages in order until the goal is reached or unreachable, or the queue is empty; return the reason."""
    batch = trace.batch
    while True:
        push_for_goal(mass, rows, goal.coverage)
        why = stop_reason(mass, goal, trace.counts[0])
        if why >= 0:
            return why
        taken = 0
        while taken < goal.batch:
            best = lease_best(queue)
            if best < 0:
                break
            batch[taken] = best
            taken += 1
        if taken == 0:
            return int(EMPTY)
        for entry in range(taken):
            page = np.int64(batch[entry])
            visit(mass, rows, page, np.int64(outcomes[page]), trace)
            remove(queue, page)
            _rank_touched(mass, queue, order.kind, order.seed, page)
            clear_touched(mass)


@kernel_without_refcounts
def crawl_pages(
    mass: Mass, rows: Rows, pages: IdArray, outcomes: ByteArray, trace: Trace, goal: Goal
) -> tuple[int, int]:
    """Fetch the given pages in order; return the number processed, and the stop reason (-1: all processed)."""
    for entry in range(pages.shape[0]):
        if entry % goal.batch == 0:
            push_for_goal(mass, rows, goal.coverage)
            why = stop_reason(mass, goal, trace.counts[0])
            if why >= 0:
                return entry, why
        page = np.int64(pages[entry])
        visit(mass, rows, page, np.int64(outcomes[page]), trace)
        clear_touched(mass)
    return pages.shape[0], -1
