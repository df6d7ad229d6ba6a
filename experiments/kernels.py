"""Kernels that only experiments use: shape measures of graphs, RankMass as printed, push tracking in one loop."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surveyor.arrays import FloatArray, IdArray, IntArray
from surveyor.kernels._jit import kernel, kernel_without_refcounts
from surveyor.kernels.mass import COUNT, DAMPING, FETCHED, STATUS, WAITING, Mass, Rows, clear_touched, retract, step
from surveyor.kernels.priority_queues import Queue, pop_best, set_priority

FETCHES, PACE = map(np.int64, range(2))  # in `clock`: pages fetched so far, fetches between visits at importance 1
LEAST = 1e-12  # importance below which all pages have the same revisit interval


@kernel
def count_mutual(indptr: IntArray, indices: IdArray, in_indptr: IntArray, in_indices: IdArray) -> int:
    """Count the links whose target links back: pages in both sorted rows of a page."""
    mutual = 0
    for page in range(indptr.shape[0] - 1):
        link, back = indptr[page], in_indptr[page]
        while link < indptr[page + 1] and back < in_indptr[page + 1]:
            if indices[link] == in_indices[back]:
                mutual += 1
            if indices[link] <= in_indices[back]:
                link += 1
            else:
                back += 1
    return mutual


@kernel
def count_near(indptr: IntArray, indices: IdArray, distance: int) -> int:
    """Count the links between pages whose ids differ by less than `distance`."""
    near = 0
    for page in range(indptr.shape[0] - 1):
        for link in range(indptr[page], indptr[page + 1]):
            if abs(indices[link] - page) < distance:
                near += 1
    return near


@kernel
def count_inside(indptr: IntArray, indices: IdArray, group: IntArray) -> int:
    """Count the links between pages of the same group."""
    inside = 0
    for page in range(indptr.shape[0] - 1):
        for link in range(indptr[page], indptr[page + 1]):
            if group[indices[link]] == group[page]:
                inside += 1
    return inside


@kernel
def gather_sweep(in_indptr: IntArray, in_indices: IdArray, share: FloatArray, base: float, out: FloatArray) -> float:
    """Write `base` plus the shares of all in-links of each page; return the L1 change of `out`."""
    change = 0.0
    for page in range(in_indptr.shape[0] - 1):
        score = base
        for link in range(in_indptr[page], in_indptr[page + 1]):
            score += share[in_indices[link]]
        change += abs(score - out[page])
        out[page] = score
    return change


@kernel_without_refcounts
def rankmass_as_printed(
    rows: Rows, seeds: IdArray, damping: float, queue: Queue, fetched: IdArray, goals: FloatArray, fetches: IntArray
) -> None:
    """Run RankMass as its paper prints it: always push the page with the largest residual, fetched or not.

    Writes the fetches needed to settle each of the ascending goals; `fetched` has one zero per page. The guarantee is
    the settled mass alone. Two errors are fixed: a page is emptied before it gives, and a page without links gives to
    the seeds.
    """
    for seed in range(seeds.shape[0]):
        set_priority(queue, seeds[seed], 1.0 / seeds.shape[0])
    captured, count, goal = 0.0, 0, 0
    while goal < goals.shape[0]:
        page = pop_best(queue)
        if page < 0:
            return
        count += 1 - fetched[page]
        fetched[page] = 1
        mass = queue.priority[page]
        queue.priority[page] = 0.0
        captured += (1.0 - damping) * mass
        while goal < goals.shape[0] and captured >= goals[goal]:
            fetches[goal] = count
            goal += 1
        first, last = rows.start[page], rows.end[page]
        links = rows.targets
        if first == last:
            first, last, links = 0, seeds.shape[0], seeds
        share = damping * mass / (last - first)
        for link in range(first, last):
            set_priority(queue, links[link], queue.priority[links[link]] + share)


class Seen(NamedTuple):
    """The rows as last fetched: `rows` to read, and its `end` and `targets` to write."""

    rows: Rows
    end: IntArray
    targets: IdArray


@kernel_without_refcounts
def track(mass: Mass, seen: Seen, web: Rows, queue: Queue, clock: FloatArray, fetches: int) -> None:
    """Track a changing web by push: fetch this number of pages, each when it is due.

    The steps of `crawler/strategies/tracking.py`. All pages are known and none gets more links than it had, so that the
    rows as last fetched have the layout of the rows of the web.
    """
    for _ in range(fetches):
        page = np.int64(pop_best(queue))
        if page < 0:
            return
        clock[FETCHES] += 1.0
        clear_touched(mass)
        first, last, end = web.start[page], seen.end[page], web.end[page]
        same = last == end
        for link in range(first, min(last, end)):
            same = same and seen.targets[link] == web.targets[link]
        if not same:
            if mass.state[page] & STATUS == FETCHED:
                retract(mass, page, seen.rows.targets[first:last])
            for link in range(first, end):
                seen.targets[link] = web.targets[link]
            seen.end[page] = end
        step(mass, seen.rows, page)
        sure = mass.settled[page] + (1.0 - mass.rules[DAMPING]) * max(mass.residual[page], 0.0)
        set_priority(queue, page, -(clock[FETCHES] + clock[PACE] / math.sqrt(max(sure, LEAST))))
        for entry in range(mass.counts[COUNT]):
            other = np.int64(mass.touched[entry])
            if mass.state[other] & STATUS == WAITING:
                set_priority(queue, other, mass.residual[other])
