"""Distances to each of some pages: by breadth-first search, and by Dijkstra's algorithm for links with lengths."""

from __future__ import annotations

import numpy as np

from surveyor.arrays import BoolArray, FloatArray, IdArray, IntArray
from surveyor.kernels._jit import kernel
from surveyor.kernels.priority_queues import ABSENT, Queue, pop_best, set_priority


@kernel
def harmonic_of_pages(
    indptr: IntArray, indices: IdArray, is_source: BoolArray, pages: IntArray, sums: FloatArray
) -> None:
    """Write the sum of 1 / distance over the sources that reach each page; rows are in-links.

    Sources are counted level by level, so that a sum has as few roundings as levels.
    """
    size = indptr.shape[0] - 1
    seen, queue = np.full(size, -1, np.int64), np.empty(size, np.int64)
    for place in range(pages.shape[0]):
        first, last, distance = 0, 1, 0
        queue[0] = pages[place]
        seen[pages[place]] = place
        total = 0.0
        while first < last:
            distance += 1
            found, end = 0, last
            for entry in range(first, last):
                page = queue[entry]
                for link in range(indptr[page], indptr[page + 1]):
                    source = indices[link]
                    if seen[source] != place:
                        seen[source] = place
                        queue[end] = source
                        end += 1
                        found += is_source[source]
            total += found / distance
            first, last = last, end
        sums[place] = total


@kernel
def harmonic_of_pages_by_length(
    rows: tuple[IntArray, IdArray, FloatArray],
    queue: Queue,
    is_source: BoolArray,
    pages: IntArray,
    sums: FloatArray,
) -> None:
    """Write the sum of 1 / distance over the sources at a positive distance to each page.

    `rows` are the in-links and their lengths, which must not be negative; `queue` is empty. A page is queued by its
    negative distance so far.
    """
    indptr, indices, lengths = rows
    reached = np.full(indptr.shape[0] - 1, -1, np.int64)
    for place in range(pages.shape[0]):
        total = 0.0
        set_priority(queue, pages[place], 0.0)
        page = pop_best(queue)
        while page >= 0:
            distance = -queue.priority[page]
            reached[page] = place
            if is_source[page] and distance > 0.0:
                total += 1.0 / distance
            for link in range(indptr[page], indptr[page + 1]):
                source = indices[link]
                if reached[source] != place:
                    closer = distance + lengths[link]
                    if queue.before[source] == ABSENT or -queue.priority[source] > closer:
                        set_priority(queue, source, -closer)
            page = pop_best(queue)
        sums[place] = total
