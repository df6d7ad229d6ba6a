"""Sweeps over the in-links: one PageRank update of a block of pages.

Every page p holds `rank[p]`, and the share it passes on over each of its links, rank[p] / links of p, lies
in a vector of its own, so that a link costs one gathered read. The new rank of a page is

    damping · (sum of the shares of the pages that link to it) + weight · jump[page]

`jump` may have a single entry, for a uniform teleport: it is read at `page & mask`. Rows are summed in
two strands, in a fixed order: faster than one, and the same bytes every time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surveyor.arrays import FloatArray, IdArray, IntArray
from surveyor.kernels._jit import kernel


class Web(NamedTuple):
    """What a sweep reads: the in-links, one over the out-degree (0 on dangling pages), the jump vector."""

    indptr: IntArray
    indices: IdArray
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
    mask = 0 if web.jump.shape[0] == 1 else -1
    change, total, stuck, rounding = 0.0, 0.0, 0.0, 0.0
    indices = web.indices
    for page in range(first, last):
        link, end = web.indptr[page], web.indptr[page + 1]
        length = end - link
        a, b = 0.0, 0.0
        while link + 2 <= end:
            a += shares[indices[link]]
            b += shares[indices[link + 1]]
            link += 2
        if link < end:
            a += shares[indices[link]]
        rank = web.damping * (a + b) + weight * web.jump[page & mask]
        change += abs(rank - before[page])
        total += rank
        rounding += (length // 2 + 12) * rank
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
    mask = 0 if web.jump.shape[0] == 1 else -1
    change, total, stuck = 0.0, 0.0, 0.0
    indices = web.indices
    start, width = np.int32(first), np.uint32(last - first)
    for page in range(first, last):
        link, end = web.indptr[page], web.indptr[page + 1]
        a, b = 0.0, 0.0
        if link < end and indices[link] >= first and indices[end - 1] < last:
            while link + 2 <= end:
                a += fresh[indices[link]]
                b += fresh[indices[link + 1]]
                link += 2
            if link < end:
                a += fresh[indices[link]]
        else:
            while link < end:
                source = indices[link]
                # One unsigned comparison: is the source within the block?
                a += (fresh if np.uint32(source - start) < width else shares)[source]
                a, b = b, a
                link += 1
        rank = web.damping * (a + b) + weight * web.jump[page & mask]
        change += abs(rank - before[page])
        total += rank
        stuck += rank if web.inverse[page] == 0.0 else 0.0
        after[page] = rank
        fresh[page] = rank * web.inverse[page]
    return Sums(change, total, stuck, 0.0)


@kernel
def gram_block(history: FloatArray, order: IntArray, first: int, last: int) -> FloatArray:
    """Return the inner products of the differences between successive ranks; `order` lists rows, oldest first."""
    steps = order.shape[0] - 1
    products = np.zeros((steps, steps))
    moves = np.empty(steps)
    for page in range(first, last):
        for step in range(steps):
            moves[step] = history[order[step + 1], page] - history[order[step], page]
        for step in range(steps):
            for other in range(step + 1):
                products[step, other] += moves[step] * moves[other]
    return products


@kernel
def blend_block(
    history: FloatArray, order: IntArray, parts: FloatArray, inverse: FloatArray, shares: FloatArray,
    first: int, last: int,
) -> Sums:  # fmt: skip
    """Replace the newest ranks by a blend of the last ones, never below zero; renew the shares."""
    steps = order.shape[0] - 1
    newest = order[steps]
    total, stuck = 0.0, 0.0
    for page in range(first, last):
        rank = 0.0
        for step in range(steps):
            rank += parts[step] * history[order[step + 1], page]
        rank = max(rank, 0.0)
        history[newest, page] = rank
        shares[page] = rank * inverse[page]
        total += rank
        if inverse[page] == 0.0:
            stuck += rank
    return Sums(0.0, total, stuck, 0.0)
