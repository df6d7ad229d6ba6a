"""PageRank iterations: sweeps over the in-links of a block of pages, and residual push.

**Sweeps.** Every page p has `rank[p]`; the share that it passes over each of its links, rank[p] / out-degree of p, is
in a separate vector, so that a link costs one gathered read. The new rank of a page is

    damping · (sum of the shares of the pages that link to it) + weight · jump[page]

`jump` may have a single entry, for a uniform teleport: it is read at `page & mask`. Rows are summed in four strands, in
a fixed order: faster than one, with identical bytes every time. Indices are unsigned, which avoids the check for
negative indices: a quarter of the time of a sweep.

**Residual push.** The state is an estimate `ranks` and its residual: what one update would still add (residuals are
signed). Pushing page p adds its residual to its rank and passes damping · residual over its links. The leaky system is
solved, in which dangling pages pass nothing on; its solution is proportional to PageRank.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from surveyor.arrays import FloatArray, IdArray, IntArray, KeyArray
from surveyor.kernels._jit import kernel

CHUNK = 256  # pages blended at a time: their rows stay in the L1 cache
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


class SweepGraph(NamedTuple):
    """The input of a sweep: the in-links, one over the out-degree (0 on dangling pages), the jump vector."""

    indptr: KeyArray
    indices: npt.NDArray[np.uint32]
    inverse: FloatArray
    jump: FloatArray
    damping: float


class SweepVectors(NamedTuple):
    """The ranks before and after a sweep, and the shares before and after it."""

    before: FloatArray
    after: FloatArray
    shares: FloatArray
    fresh: FloatArray


class SweepSums(NamedTuple):
    """The sums of a sweep over a block."""

    change: float  # L1 distance between the ranks before and after
    total: float  # sum of the ranks after
    stuck: float  # of those, on dangling pages
    rounding: float  # bounds the rounding error of the new ranks, in units of the float spacing


@kernel
def power_block(web: SweepGraph, weight: float, vectors: SweepVectors, first: int, last: int) -> SweepSums:
    """Update a block from the shares of the previous sweep; write the new ranks and the new shares."""
    before, after, shares, fresh = vectors.before, vectors.after, vectors.shares, vectors.fresh
    mask = np.uint64(0) if web.jump.shape[0] == 1 else ~np.uint64(0)
    change, total, stuck, rounding = 0.0, 0.0, 0.0, 0.0
    indices = web.indices
    for page in range(np.uint64(first), np.uint64(last)):
        link, end = web.indptr[page], web.indptr[page + ONE]
        length = end - link
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        while link + FOUR <= end:
            a += shares[indices[link]]
            b += shares[indices[link + ONE]]
            c += shares[indices[link + TWO]]
            d += shares[indices[link + THREE]]
            link += FOUR
        while link < end:
            a += shares[indices[link]]
            link += ONE
        rank = web.damping * ((a + b) + (c + d)) + weight * web.jump[page & mask]
        change += abs(rank - before[page])
        total += rank
        # Additions in the longest strand, and at most 15 more rounding operations from the shares to the sum.
        rounding += (0.25 * length + 15.0) * rank
        stuck += rank if web.inverse[page] == 0.0 else 0.0
        after[page] = rank
        fresh[page] = rank * web.inverse[page]
    return SweepSums(change, total, stuck, rounding)


@kernel
def seidel_block(web: SweepGraph, weight: float, vectors: SweepVectors, first: int, last: int) -> SweepSums:
    """Update a block with its own new shares and the published shares of all other pages.

    Rows are sorted, so their first and last source determine whether a row is within the block; most rows of a
    host-ordered web are, and need no choice between the two vectors.
    """
    before, after, shares, fresh = vectors.before, vectors.after, vectors.shares, vectors.fresh
    mask = np.uint64(0) if web.jump.shape[0] == 1 else ~np.uint64(0)
    change, total, stuck = 0.0, 0.0, 0.0
    indices = web.indices
    start, width = np.uint32(first), np.uint32(last - first)
    for page in range(np.uint64(first), np.uint64(last)):
        link, end = web.indptr[page], web.indptr[page + ONE]
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        if link < end and indices[link] >= first and indices[end - ONE] < last:
            while link + FOUR <= end:
                a += fresh[indices[link]]
                b += fresh[indices[link + ONE]]
                c += fresh[indices[link + TWO]]
                d += fresh[indices[link + THREE]]
                link += FOUR
            while link < end:
                a += fresh[indices[link]]
                link += ONE
        else:
            while link < end:
                source = indices[link]
                # One unsigned comparison: is the source within the block?
                a += (fresh if np.uint32(source - start) < width else shares)[source]
                a, b = b, a
                link += ONE
        rank = web.damping * ((a + b) + (c + d)) + weight * web.jump[page & mask]
        change += abs(rank - before[page])
        total += rank
        stuck += rank if web.inverse[page] == 0.0 else 0.0
        after[page] = rank
        fresh[page] = rank * web.inverse[page]
    return SweepSums(change, total, stuck, 0.0)


@kernel
def gram_matrix_block(history: FloatArray, order: IntArray, first: int, last: int) -> FloatArray:
    """Return the inner products of the differences between successive ranks; `order` lists rows, oldest first.

    Products are summed per position in a chunk, over all chunks, and finally over the positions: loops without a
    carried sum are vectorised, in an order that is always the same.
    """
    steps = order.shape[0] - 1
    moves = np.zeros((steps, CHUNK))
    sums = np.zeros((steps, steps, CHUNK))
    for start in range(first, last, CHUNK):
        end = min(start + CHUNK, last)
        for step in range(steps):
            old, new, move = history[order[step], start:end], history[order[step + 1], start:end], moves[step]
            for place in range(end - start):
                move[place] = new[place] - old[place]
            for other in range(step + 1):
                left, row = moves[other], sums[step, other]
                for place in range(end - start):
                    row[place] += move[place] * left[place]
    products = np.zeros((steps, steps))
    for step in range(steps):
        for other in range(step + 1):
            for place in range(CHUNK):
                products[step, other] += sums[step, other, place]
    return products


@kernel
def blend_block(
    history: FloatArray,
    order: IntArray,
    parts: FloatArray,
    inverse: FloatArray,
    shares: FloatArray,
    first: int,
    last: int,
) -> SweepSums:
    """Replace the newest ranks by a linear combination of the last ones, never below zero; update the shares."""
    steps = order.shape[0] - 1
    total, stuck = 0.0, 0.0
    for start in range(first, last, CHUNK):
        end = min(start + CHUNK, last)
        newest = history[order[steps], start:end]
        for place in range(end - start):
            newest[place] *= parts[steps - 1]
        for step in range(steps - 1):
            row, part = history[order[step + 1], start:end], parts[step]
            for place in range(end - start):
                newest[place] += part * row[place]
        for page in range(start, end):
            rank = max(newest[page - start], 0.0)
            newest[page - start] = rank
            shares[page] = rank * inverse[page]
            total += rank
            stuck += rank if inverse[page] == 0.0 else 0.0
    return SweepSums(0.0, total, stuck, 0.0)


class PushLimits(NamedTuple):
    """The damping of a push, the residual below which a page is not pushed, and the most links to follow."""

    damping: float
    threshold: float
    max_links: int


class BackwardLinks(NamedTuple):
    """The in-links, and the probability of following each; without weights, one over the out-degree of each page."""

    indptr: IntArray
    indices: IdArray
    inverse: FloatArray
    chances: FloatArray  # empty without weights


@kernel
def compute_residual(
    indptr: IntArray, indices: IdArray, ranks: FloatArray, damping: float, residual: FloatArray
) -> None:
    """Write the residual of ranks in the leaky system in which every page gets 1 by jumps."""
    residual[:] = 1.0 - ranks
    for page in range(ranks.shape[0]):
        first, last = indptr[page], indptr[page + 1]
        if first < last:
            share = damping * ranks[page] / (last - first)
            for link in range(first, last):
                residual[indices[link]] += share


@kernel
def push_residuals(
    indptr: IntArray, indices: IdArray, ranks: FloatArray, residual: FloatArray, limits: PushLimits, queue: IdArray
) -> int:
    """Push, first in first out, until no residual is above the threshold or enough links are followed.

    Returns the links followed. Pages still in the queue keep their residuals.
    """
    damping, threshold = limits.damping, limits.threshold
    pages = ranks.shape[0]
    queued = np.zeros(pages, np.bool_)
    head, waiting, followed = 0, 0, 0
    for page in range(pages):
        if abs(residual[page]) > threshold:
            queue[waiting] = page
            queued[page] = True
            waiting += 1
    while waiting > 0 and followed < limits.max_links:
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
def push_residuals_in_order(
    indptr: IntArray,
    indices: IdArray,
    ranks: FloatArray,
    residual: FloatArray,
    damping: float,
    threshold: float,
    max_passes: int,
) -> int:
    """Push in page order, in up to `max_passes` passes, until no residual is above the threshold.

    With many residuals this takes half the time of a queue, because links are read sequentially. Returns the links
    followed.
    """
    followed = 0
    for _ in range(max_passes):
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
def push_backward(
    links: BackwardLinks, reached: FloatArray, residual: FloatArray, damping: float, threshold: float, queue: IdArray
) -> int:
    """Push backwards along in-links from the pages already in `residual`; return the links followed.

    Afterwards reached[p] is the probability, low by at most the threshold, that a surfer who starts on page p and
    stops with probability 1 - damping at each step stops on the explained page. `queue` must contain the starting
    pages first, then -1; a page is queued at most once.
    """
    indptr, indices, inverse, chances = links.indptr, links.indices, links.inverse, links.chances
    weighted = chances.shape[0] > 0
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
            residual[source] += damping * moved * (chances[link] if weighted else inverse[source])
            if not queued[source] and residual[source] > threshold:
                tail = head + waiting
                queue[tail if tail < pages else tail - pages] = source
                queued[source] = True
                waiting += 1
        followed += indptr[page + 1] - indptr[page]
    return followed
