"""HyperLogLog counters of balls: the domains from which a domain can be reached in so many steps.

A counter has m registers of a byte. The hash of a domain names one register, and a value: 1 plus the zeros in
front of the rest of the hash; a register keeps the largest value. The counter of a union is the larger value of
each register, so the ball of the next level is the maximum over the counters of the in-neighbours. Only domains that
changed at the level before are looked at, and rows in which nothing changed are written only if they must be:
two buffers take turns, and both hold the same row of a domain that has been at rest for a level.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from surveyor.arrays import ByteArray, FloatArray, IntArray, KeyArray
from surveyor.kernels._jit import kernel
from surveyor.kernels.likelihood import added
from surveyor.kernels.prefetch import prefetch
from surveyor.kernels.synthetic import Whole, draw

HIGHEST = 52  # values beyond it would take more domains than ids can number
ONE = np.uint64(1)
AHEAD = np.uint64(8)  # links between asking for a counter and reading it


class Links(NamedTuple):
    """The in-links; unsigned, which spares the check for negative indices."""

    indptr: KeyArray
    indices: npt.NDArray[np.uint32]


class Found(NamedTuple):
    """What is worked out while balls grow: per domain, but for the last."""

    newest: npt.NDArray[np.float32]  # domains at exactly this level
    grain: npt.NDArray[np.float32]  # the variance of that, divided by it
    harmonic: FloatArray
    variance: FloatArray


@kernel
def sow(seed: np.uint64, place: npt.NDArray[np.uint16], value: ByteArray, first: int, last: int, bits: int) -> None:
    """Hash the domains of a block: which register, which value."""
    for node in range(first, last):
        hashed = draw(seed, node, 0)
        place[node] = hashed & ((ONE << np.uint64(bits)) - ONE)
        rest = hashed >> np.uint64(bits)
        zeros = 1
        while zeros < HIGHEST and not rest & ONE:
            rest >>= ONE
            zeros += 1
        value[node] = zeros


@kernel
def first_block(
    links: Links, place: npt.NDArray[np.uint16], value: ByteArray, after: ByteArray, fresh: ByteArray,
    registers: int, first: int, last: int,
) -> int:  # fmt: skip
    """Write the counters of the balls of level 1, straight from the hashes; return how many domains have in-links."""
    width = np.uint64(registers)
    moved = 0
    for node in range(np.uint64(first), np.uint64(last)):
        row = node * width
        for entry in range(row, row + width):
            after[entry] = 0
        after[row + np.uint64(place[node])] = value[node]
        start, end = links.indptr[node], links.indptr[node + ONE]
        for link in range(start, end):
            source = links.indices[link]
            register = row + np.uint64(place[source])
            if value[source] > after[register]:
                after[register] = value[source]
        fresh[node] = start < end
        moved += start < end
    return moved


@kernel
def grow_block(
    links: Links, before: ByteArray, after: ByteArray, changed: ByteArray, fresh: ByteArray, found: Found,
    level: int, first: int, last: int,
) -> int:  # fmt: skip
    """Grow the balls of a block by one level; estimate what was added; return how many counters changed."""
    width = np.uint64(before.shape[0] // changed.shape[0])
    size = np.uint64(links.indices.shape[0])
    counts = np.zeros(HIGHEST + 1, np.int64)
    moved = 0
    for node in range(np.uint64(first), np.uint64(last)):
        row = node * width
        merged = changed[node] != 0  # if not, both buffers hold the same already
        if merged:
            for entry in range(row, row + width):
                after[entry] = before[entry]
        touched = False
        for link in range(links.indptr[node], links.indptr[node + ONE]):
            if link + AHEAD < size and changed[links.indices[link + AHEAD]]:
                prefetch(before, np.uint64(links.indices[link + AHEAD]) * width)
            source = np.uint64(links.indices[link])
            if changed[source]:
                touched = True
                other = source * width
                for place in range(width):
                    theirs, mine = before[other + place], after[row + place]
                    after[row + place] = theirs if theirs > mine else mine
        fresh[node] = touched and note(before, after, row, width, counts, found, node, level)
        moved += fresh[node]
    return moved


@kernel
def note(
    before: ByteArray, after: ByteArray, row: np.uint64, width: np.uint64, counts: IntArray, found: Found,
    node: Whole, level: int,
) -> bool:  # fmt: skip
    """Estimate how many domains a counter took in; return whether it changed."""
    total, squares, different = np.uint64(0), np.uint64(0), np.uint64(0)
    for entry in range(row, row + width):
        total += ONE << (np.uint64(HIGHEST) - np.uint64(after[entry]))
        squares += ONE << (np.uint64(HIGHEST) - min(np.uint64(2) * np.uint64(after[entry]), np.uint64(HIGHEST)))
        different += np.uint64(after[entry] != before[entry])
    slope = np.float64(total) / (2.0**HIGHEST * width)
    if different == 0:
        found.newest[node] = 0
        found.grain[node] = 1 / slope - 1
        return False
    lowest: Whole = HIGHEST
    highest: Whole = 0
    for entry in range(row, row + width):
        now: Whole = np.int64(after[entry])
        if now != before[entry]:
            counts[now] += 1
            lowest, highest = min(lowest, now), max(highest, now)
    estimate, weight = added(counts, lowest, highest, slope, 1 / width)
    for entry in range(lowest, highest + 1):
        counts[entry] = 0
    # The likelihood has them come by a Poisson law, which adds one to the grain; there is a fixed number of them.
    grain = max(estimate / weight - 1, 0.0)
    # To the first order, the likeliest number is too high by half the mean share of a register in the slope.
    estimate /= 1 + 0.5 * np.float64(squares) * 2.0**HIGHEST / (np.float64(total) * np.float64(total))
    found.newest[node] = estimate
    found.grain[node] = grain
    found.harmonic[node] += estimate / level
    found.variance[node] += estimate * grain / (level * level)
    return True


@kernel
def slack_block(
    links: Links, counters: ByteArray, grain: npt.NDArray[np.float32], level: int, first: int, last: int
) -> None:
    """Write how much the balls may have grown whose counters were not looked at: those of negative grain.

    At level 2 the in-neighbours had no in-links, and without in-links nothing can come: both are certain.
    """
    width = np.uint64(counters.shape[0] // grain.shape[0])
    for node in range(np.uint64(first), np.uint64(last)):
        if grain[node] < 0:
            grain[node] = 0
            if level > 2 and links.indptr[node] < links.indptr[node + ONE]:
                total = np.uint64(0)
                for entry in range(node * width, (node + ONE) * width):
                    total += ONE << (np.uint64(HIGHEST) - np.uint64(counters[entry]))
                grain[node] = 2.0**HIGHEST * width / np.float64(total) - 1
