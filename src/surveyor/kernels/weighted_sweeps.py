"""PageRank sweeps over links with weights: the forms of `power_block` and `seidel_block` with a probability per link.

`web.inverse` is 1 for a page with links and 0 for one without, so that a share is the rank itself; a link passes its
probability times that. They are separate kernels, because a test for weights inside would slow the sweeps without.
"""

from __future__ import annotations

import numpy as np

from surveyor.arrays import FloatArray
from surveyor.kernels._jit import kernel
from surveyor.kernels.pagerank_iterations import FOUR, ONE, THREE, TWO, SweepGraph, SweepSums, SweepVectors


@kernel
def weighted_power_block(
    web: SweepGraph, chances: FloatArray, weight: float, vectors: SweepVectors, first: int, last: int
) -> SweepSums:
    """Update a block from the ranks of the previous sweep; `chances` are the probabilities of the in-links."""
    before, after, shares, fresh = vectors.before, vectors.after, vectors.shares, vectors.fresh
    mask = np.uint64(0) if web.jump.shape[0] == 1 else ~np.uint64(0)
    change, total, stuck, rounding = 0.0, 0.0, 0.0, 0.0
    indices = web.indices
    for page in range(np.uint64(first), np.uint64(last)):
        link, end = web.indptr[page], web.indptr[page + ONE]
        length = end - link
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        while link + FOUR <= end:
            a += chances[link] * shares[indices[link]]
            b += chances[link + ONE] * shares[indices[link + ONE]]
            c += chances[link + TWO] * shares[indices[link + TWO]]
            d += chances[link + THREE] * shares[indices[link + THREE]]
            link += FOUR
        while link < end:
            a += chances[link] * shares[indices[link]]
            link += ONE
        rank = web.damping * ((a + b) + (c + d)) + weight * web.jump[page & mask]
        change += abs(rank - before[page])
        total += rank
        # As without weights, and in addition the roundings of a probability (six) and of the product.
        rounding += (0.25 * length + 22.0) * rank
        stuck += rank if web.inverse[page] == 0.0 else 0.0
        after[page] = rank
        fresh[page] = rank * web.inverse[page]
    return SweepSums(change, total, stuck, rounding)


@kernel
def weighted_seidel_block(
    web: SweepGraph, chances: FloatArray, weight: float, vectors: SweepVectors, first: int, last: int
) -> SweepSums:
    """Update a block with its own new ranks and the published ranks of all other pages."""
    before, after, shares, fresh = vectors.before, vectors.after, vectors.shares, vectors.fresh
    mask = np.uint64(0) if web.jump.shape[0] == 1 else ~np.uint64(0)
    change, total, stuck = 0.0, 0.0, 0.0
    indices = web.indices
    start, width = np.uint32(first), np.uint32(last - first)
    for page in range(np.uint64(first), np.uint64(last)):
        link, end = web.indptr[page], web.indptr[page + ONE]
        a, b = 0.0, 0.0
        while link < end:
            source = indices[link]
            # One unsigned comparison: is the source within the block?
            a += chances[link] * (fresh if np.uint32(source - start) < width else shares)[source]
            a, b = b, a
            link += ONE
        rank = web.damping * (a + b) + weight * web.jump[page & mask]
        change += abs(rank - before[page])
        total += rank
        stuck += rank if web.inverse[page] == 0.0 else 0.0
        after[page] = rank
        fresh[page] = rank * web.inverse[page]
    return SweepSums(change, total, stuck, 0.0)
