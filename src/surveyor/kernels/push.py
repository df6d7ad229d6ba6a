"""Residual push: move what is missing from page to page, only where something is missing.

The state is an estimate `ranks` and its residual, what one update would still add (or take: residuals are
signed). Pushing page p adds its residual to its rank and passes damping · residual on over its links. The
leaky system is solved, in which dangling pages pass nothing on; its solution is proportional to PageRank.
"""

from __future__ import annotations

import numpy as np

from surveyor.arrays import FloatArray, IdArray, IntArray
from surveyor.kernels._jit import kernel


@kernel
def missing(indptr: IntArray, indices: IdArray, ranks: FloatArray, damping: float, residual: FloatArray) -> None:
    """Write the residual of ranks in the leaky system in which every page gets 1 besides what links bring."""
    residual[:] = 1.0 - ranks
    for page in range(ranks.shape[0]):
        first, last = indptr[page], indptr[page + 1]
        if first < last:
            share = damping * ranks[page] / (last - first)
            for link in range(first, last):
                residual[indices[link]] += share


@kernel
def push(
    indptr: IntArray, indices: IdArray, ranks: FloatArray, residual: FloatArray, damping: float,
    threshold: float, most: int, queue: IdArray,
) -> int:  # fmt: skip
    """Push, first come first served, until no residual is above the threshold or `most` links are followed.

    Returns the links followed. Whatever the queue still holds then stays in the residuals.
    """
    pages = ranks.shape[0]
    queued = np.zeros(pages, np.bool_)
    head, waiting, followed = 0, 0, 0
    for page in range(pages):
        if abs(residual[page]) > threshold:
            queue[waiting] = page
            queued[page] = True
            waiting += 1
    while waiting > 0 and followed < most:
        page = queue[head]
        head = head + 1 if head + 1 < pages else 0
        waiting -= 1
        queued[page] = False
        moved = residual[page]
        residual[page] = 0.0
        ranks[page] += moved
        first, last = indptr[page], indptr[page + 1]
        if first == last:
            continue
        share = damping * moved / (last - first)
        followed += last - first
        for link in range(first, last):
            target = indices[link]
            residual[target] += share
            if not queued[target] and abs(residual[target]) > threshold:
                tail = head + waiting
                queue[tail if tail < pages else tail - pages] = target
                queued[target] = True
                waiting += 1
    return followed


@kernel
def push_in_order(
    indptr: IntArray, indices: IdArray, ranks: FloatArray, residual: FloatArray, damping: float, threshold: float,
    most: int,
) -> int:  # fmt: skip
    """Push, in the order of pages and again from the first, until no residual is above the threshold.

    Where much is to be moved this reads links in the order in which they lie: half the time of a queue. It goes over
    the pages `most` times at most. Returns the links followed.
    """
    followed = 0
    for _ in range(most):
        pushed = False
        for page in range(ranks.shape[0]):
            moved = residual[page]
            if abs(moved) <= threshold:
                continue
            pushed = True
            residual[page] = 0.0
            ranks[page] += moved
            first, last = indptr[page], indptr[page + 1]
            if first == last:
                continue
            share = damping * moved / (last - first)
            followed += last - first
            for link in range(first, last):
                residual[indices[link]] += share
        if not pushed:
            break
    return followed


@kernel
def push_back(
    indptr: IntArray, indices: IdArray, inverse: FloatArray, reached: FloatArray, residual: FloatArray,
    damping: float, threshold: float, queue: IdArray,
) -> int:  # fmt: skip
    """Follow in-links backwards from the pages already in `residual`; return the links followed.

    Afterwards reached[p] is the chance, low by at most the threshold, that a surfer who starts on page p and
    stops with probability 1 - damping at each step stops on the page explained. `queue` must
    hold the starting pages first, then -1; a page waits there at most once.
    """
    pages = residual.shape[0]
    head, waiting, followed = 0, 0, 0
    while waiting < pages and queue[waiting] >= 0:
        waiting += 1
    queued = residual > 0.0
    while waiting > 0:
        page = queue[head]
        head = head + 1 if head + 1 < pages else 0
        waiting -= 1
        queued[page] = False
        moved = residual[page]
        residual[page] = 0.0
        reached[page] += (1.0 - damping) * moved
        for link in range(indptr[page], indptr[page + 1]):
            source = indices[link]
            residual[source] += damping * moved * inverse[source]
            if not queued[source] and residual[source] > threshold:
                tail = head + waiting
                queue[tail if tail < pages else tail - pages] = source
                queued[source] = True
                waiting += 1
        followed += indptr[page + 1] - indptr[page]
    return followed
