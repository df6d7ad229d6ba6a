"""Parts of a topic that no walk can leave: exact on a graph, and seen in the walks themselves elsewhere.

On a graph whose links are all known, the parts are its connected components, where pages on topic are connected if a
walk of the method can go from one to the other. On a survey or the live web, walks that have visited a common page are
in one part; walks that never met may be in different ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from surveyor.arrays import BoolArray, IdArray, IntArray
from surveyor.estimate.sampling.compiled_walks import NeighbourLists
from surveyor.estimate.sampling.walk_methods import WalkPlan, method_named
from surveyor.estimate.sampling.walk_trace import WalkTrace

FAR = 1 << 20  # pages off topic in a row: as many as there are


def pages_off_topic(plan: WalkPlan) -> int:
    """Return how many pages off topic a walk crosses in a row."""
    reach = method_named(plan.method).reach if plan.reach is None else plan.reach
    if plan.method.startswith("trial"):
        return reach
    if plan.method in ("mixture", "neighbourhood-paper"):
        return plan.radius if plan.method == "neighbourhood-paper" else 1
    return FAR if plan.method == "webwalker" else 0


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The parts of a topic, largest first."""

    of_page: IntArray  # number of the part of each page of the graph, -1 off topic
    sizes: IntArray

    @classmethod
    def of(cls, neighbours: NeighbourLists, topic: BoolArray, off: int) -> Parts:
        """Find the parts of a topic whose pages are connected over at most `off` pages off topic in a row."""
        from surveyor.kernels.topic_parts import connect

        roots: IdArray = connect(neighbours.starts, neighbours.pages, topic, off)
        _, number, sizes = np.unique(roots[topic], return_inverse=True, return_counts=True)
        order = np.argsort(-sizes, kind="stable")
        rank = np.empty(order.size, np.int64)
        rank[order] = np.arange(order.size)
        of_page = np.full(topic.size, -1, np.int64)
        of_page[topic] = rank[number]
        return cls(of_page, sizes[order])

    def share(self, parts: IntArray) -> float:
        """Return the share of the pages on topic that are in some parts."""
        return float(self.sizes[parts].sum() / self.sizes.sum())


def groups_of_walks(trace: WalkTrace) -> IntArray:
    """Return the group of each walk of a trace, in order of walk number: walks that visited a common page share one."""
    used = trace.on_topic
    walks, walk = np.unique(trace.walk[used], return_inverse=True)
    if not walks.size:
        return np.empty(0, np.int64)
    _, page = np.unique(trace.page[used], return_inverse=True)
    pairs = np.unique(page.astype(np.int64) * walks.size + walk)
    page, walk = pairs // walks.size, pairs % walks.size
    group = np.arange(walks.size)
    while True:
        lowest = np.full(int(page[-1]) + 1, walks.size)
        np.minimum.at(lowest, page, group[walk])
        merged = group.copy()
        np.minimum.at(merged, walk, lowest[page])
        merged = merged[merged]
        if (merged == group).all():
            return np.unique(group, return_inverse=True)[1].astype(np.int64)
        group = merged


def start_pages_of(trace: WalkTrace) -> IdArray:
    """Return the first page on topic of each walk, in order of walk number."""
    used = np.flatnonzero(trace.on_topic)
    _, first = np.unique(trace.walk[used], return_index=True)
    pages: IdArray = trace.page[used[first]]
    return pages


def largest_missed(starts: int, level: float = 0.95) -> float:
    """Return the share of a part that so many independent uniform starts miss with probability 1 - level.

    >>> round(largest_missed(400), 4)
    0.0075
    """
    return 1.0 if starts < 1 else -math.expm1(math.log1p(-level) / starts)
