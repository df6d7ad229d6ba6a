"""Bit vectors of balls (Becchetti and others 2008): a bit is set in a ball if it is set in any of its domains.

A vector has `LANES` words of 64 bits; a lane is a round of the paper, with its own density. Eight of them are a line
of the cache, so eight rounds cost one reading of the links and as many reads of memory as one.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from surveyor.arrays import FloatArray, IntArray, KeyArray
from surveyor.kernels._jit import kernel
from surveyor.kernels.hyperball import Links
from surveyor.kernels.likelihood import added
from surveyor.kernels.prefetch import prefetch
from surveyor.kernels.synthetic import Whole, draw

LANES = 8
UNIT = math.log(2)  # a bit of level 0 is set in half of the domains
ZERO, ONE, EIGHT = np.uint64(0), np.uint64(1), np.uint64(LANES)
AHEAD = np.uint64(8)  # links between asking for a vector and reading it


@kernel
def sow(seed: np.uint64, digits: KeyArray, turn: int, vectors: KeyArray, first: int, last: int) -> None:
    """Set each bit of a block of domains with the probability of its lane, digits / 2**64.

    64 random numbers at a time are compared with it, digit by digit, until the last is decided.
    """
    for node in range(first, last):
        for lane in range(LANES):
            undecided, below = ~ZERO, ZERO
            rest = digits[lane]
            step = 0
            while undecided and rest:
                luck = draw(seed, node, (turn * LANES + lane) * 64 + step)
                if rest >> np.uint64(63):
                    below |= undecided & ~luck
                    undecided &= luck
                else:
                    undecided &= ~luck
                rest <<= ONE
                step += 1
            vectors[node * LANES + lane] = below


@kernel
def spread_block(links: Links, before: KeyArray, after: KeyArray, first: int, last: int) -> None:
    """Grow the balls of a block by one level."""
    size = np.uint64(links.indices.shape[0])
    for node in range(np.uint64(first), np.uint64(last)):
        row = node * EIGHT
        for lane in range(EIGHT):
            after[row + lane] = before[row + lane]
        for link in range(links.indptr[node], links.indptr[node + ONE]):
            if link + AHEAD < size:
                prefetch(before, np.uint64(links.indices[link + AHEAD]) * EIGHT)
            other = np.uint64(links.indices[link]) * EIGHT
            for lane in range(EIGHT):
                after[row + lane] |= before[other + lane]


@kernel
def ones(word: Whole) -> Whole:
    """Count the bits that are set."""
    word -= (word >> ONE) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel
def count_block(
    inner: KeyArray, outer: KeyArray, levels: IntArray, counts: npt.NDArray[np.uint16], slope: FloatArray,
    first: int, last: int,
) -> None:  # fmt: skip
    """Add, per level of density, the bits that the last level of the ball set; and the slope of those still clear."""
    for node in range(first, last):
        for lane in range(levels.shape[0]):
            entry = node * LANES + lane
            counts[node, levels[lane]] += ones(outer[entry] & ~inner[entry])
            slope[node] += (64 - ones(outer[entry])) * math.ldexp(UNIT, -levels[lane])


@kernel
def solve_block(
    counts: npt.NDArray[np.uint16], slope: FloatArray, estimate: npt.NDArray[np.float32],
    grain: npt.NDArray[np.float32], first: int, last: int,
) -> None:  # fmt: skip
    """Write the likeliest number of domains at the last level, and its variance divided by it."""
    changed = np.zeros(counts.shape[1], np.int64)
    for node in range(first, last):
        lowest, highest = counts.shape[1], -1
        for level in range(counts.shape[1]):
            changed[level] = counts[node, level]
            if changed[level]:
                lowest, highest = min(lowest, level), level
        if highest < 0:
            estimate[node], grain[node] = 0.0, 1 / slope[node]
        else:
            value, weight = added(changed, lowest, highest, slope[node], UNIT)
            estimate[node], grain[node] = value, value / weight
