"""Sweeps over the in-links: one PageRank update of a block of pages.

Every page p holds `rank[p]`, and the share it passes on over each of its links, rank[p] / links of p, lies
in a vector of its own, so that a link costs one gathered read. The new rank of a page is

    damping · (sum of the shares of the pages that link to it) + weight · jump[page]

`jump` may have a single entry, for a uniform teleport: it is read at `page & mask`. Rows are summed in
four strands, in a fixed order: faster than one, and the same bytes every time. Indices are unsigned, which
spares the check for Python's negative ones: a quarter of the time of a sweep.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from surveyor.arrays import FloatArray, IntArray, KeyArray
from surveyor.kernels._jit import kernel

CHUNK = 256  # pages blended at a time: their rows stay in the first cache
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


class Web(NamedTuple):
    """What a sweep reads: the in-links, one over the out-degree (0 on dangling pages), the jump vector."""

    indptr: KeyArray
    indices: npt.NDArray[np.uint32]
    inverse: FloatArray
    jump: FloatArray
    damping: float


class Sums(NamedTuple):
    """What a sweep over a block found."""

    change: float  # L1 distance between the ranks before and after
    total: float  # sum of the ranks after
    stuck: float  # of those, on dangling pages
    rounding: float  # bounds the rounding error of the new ranks, in units of the float spacing


@kernel
def power_block(
    web: Web, weight: float, before: FloatArray, after: FloatArray, shares: FloatArray, fresh: FloatArray,
    first: int, last: int,
) -> Sums:  # fmt: skip
    """Update a block from the shares of the previous sweep; write the new ranks and the new shares."""
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
        # Additions in the longest strand, and at most 15 more roundings from the shares to the sum.
        rounding += (0.25 * length + 15.0) * rank
        stuck += rank if web.inverse[page] == 0.0 else 0.0
        after[page] = rank
        fresh[page] = rank * web.inverse[page]
    return Sums(change, total, stuck, rounding)


@kernel
def seidel_block(
    web: Web, weight: float, before: FloatArray, after: FloatArray, shares: FloatArray, fresh: FloatArray,
    first: int, last: int,
) -> Sums:  # fmt: skip
    """Update a block using its own new shares at once and the published shares of all other pages.

    Rows are sorted, so the first and last source tell whether a row lies within the block; most rows of a
    host-ordered web do, and need no choice between the two vectors.
    """
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
    return Sums(change, total, stuck, 0.0)


@kernel
def gram_block(history: FloatArray, order: IntArray, first: int, last: int) -> FloatArray:
    """Return the inner products of the differences between successive ranks; `order` lists rows, oldest first.

    Products are summed per place in a chunk, over all chunks, and at the end over the places: loops without
    a carried sum run in vector registers, in an order that is always the same.
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
    history: FloatArray, order: IntArray, parts: FloatArray, inverse: FloatArray, shares: FloatArray,
    first: int, last: int,
) -> Sums:  # fmt: skip
    """Replace the newest ranks by a blend of the last ones, never below zero; renew the shares."""
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
    return Sums(0.0, total, stuck, 0.0)
