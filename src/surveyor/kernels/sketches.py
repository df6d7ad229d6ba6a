"""Sketches of balls around domains: bit vectors, HyperLogLog counters, and the estimator of both.

A ball of level t is the set of domains that reach a domain in t steps. The sketch of a union is the bitwise or (bit
vectors) or the maximum (counters), so the ball of the next level combines the sketches of the in-neighbours.

*Bit vectors* (Becchetti and others 2008) have `LANES` words of 64 bits; a lane is a round of the paper, with its own
density. Eight words are one cache line, so eight rounds cost one pass over the links and as many memory reads as one.

*HyperLogLog* counters have m registers of a byte. The hash of a domain selects one register, and a value: 1 plus the
leading zeros of the rest of the hash; a register keeps the maximum. Only domains that changed at the previous level are
examined, and unchanged rows are written only if necessary: two buffers alternate, and both hold the same row of a
domain that has not changed for a level.

*Estimation*: the number of domains added to a sketch, by maximum likelihood from the cells they changed. S added
domains leave a cell unchanged with probability exp(-x), and change a cell to level k with a probability proportional to
1 - exp(-x) at that level, where x = S · unit · 2^-k. With `changed[k]` such cells, and `slope` the sum
of unit · 2^-k over the cells that did not change, the log-likelihood is

    sum over k of changed[k] · ln(1 - exp(-S · unit · 2^-k))  -  slope · S

Its derivative times S decreases and is convex, so Newton's method from below converges to the unique root (Ertl 2017,
"New cardinality estimation algorithms for HyperLogLog sketches"). The root depends on the previous content only through
the cells that were left to change, so known domains add no noise.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

from surveyor.arrays import AnyInt, ByteArray, FloatArray, IntArray, KeyArray
from surveyor.kernels._jit import kernel
from surveyor.kernels.hash_random import random_bits

LANES = 8  # words of a bit vector
UNIT = math.log(2)  # a bit of level 0 is set in half of the domains
HIGHEST = 52  # higher register values would need more domains than there are ids
NEWTON_TOLERANCE = 0.01  # relative step that ends Newton's method: the remaining error is about its square
NEWTON_STEPS = 30  # at most; two to five are needed
ZERO, ONE, EIGHT = np.uint64(0), np.uint64(1), np.uint64(LANES)
AHEAD = np.uint64(8)  # links between prefetching a sketch and reading it
ODD, PAIRS, NIBBLES = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
BYTES, TOP = np.uint64(0x0101010101010101), np.uint64(56)


class Adjacency(NamedTuple):
    """Links in one direction.

    Indices are unsigned, which avoids the check for negative ones.
    """

    indptr: KeyArray
    indices: npt.NDArray[np.uint32]


class DomainHashes(NamedTuple):
    """The register and the value that each domain is hashed to."""

    register: npt.NDArray[np.uint16]
    value: ByteArray


class CounterBuffers(NamedTuple):
    """The counters before and after a level, and which of them changed at the previous and at this level."""

    before: ByteArray
    after: ByteArray
    changed: ByteArray
    fresh: ByteArray


class LevelEstimates(NamedTuple):
    """Estimates per domain that are updated while balls grow."""

    newest: npt.NDArray[np.float32]  # number of domains at exactly this level
    grain: npt.NDArray[np.float32]  # its variance divided by it
    harmonic: FloatArray
    variance: FloatArray


def _emit_prefetch(typing: Any, array: Any, index: Any) -> Any:  # noqa: ARG001  # the signature that Numba requires
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        proxy: Any = cgutils.create_struct_proxy(signature.args[0])  # type: ignore[no-untyped-call]
        place, whole = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place, whole, whole, whole])
        name = "llvm.prefetch.p0i8"
        function = cgutils.get_or_insert_function(builder.module, kind, name)  # type: ignore[no-untyped-call]
        data = proxy(context, builder, arguments[0]).data
        at = builder.bitcast(builder.gep(data, [arguments[1]]), place)
        builder.call(function, [at, whole(0), whole(3), whole(1)])  # for reading, high locality, data cache
        return context.get_dummy_value()

    return types.void(array, types.uint64), emit


def _no_prefetch(array: Any, index: Any) -> None:
    """Do nothing: the JIT is disabled."""


_settings: Any = numba.config
# prefetch(array, index: uint64): loads ahead of use make random reads of 64-byte rows twice as fast.
prefetch: Any = _no_prefetch if _settings.DISABLE_JIT else intrinsic(_emit_prefetch)


@kernel
def count_ones(word: np.uint64) -> np.uint64:
    """Count the set bits of a word."""
    word -= (word >> ONE) & ODD
    word = (word & PAIRS) + ((word >> np.uint64(2)) & PAIRS)
    return (((word + (word >> np.uint64(4))) & NIBBLES) * BYTES) >> TOP


@kernel
def maximum_likelihood(changed: IntArray, lowest: int, highest: int, slope: float, unit: float) -> tuple[float, float]:
    """Return the maximum-likelihood number of domains and its weight, the inverse of the relative variance.

    The weight is the observed information times the square of the estimate.
    """
    cells, linear = 0.0, 0.0
    for level in range(lowest, highest + 1):
        cells += changed[level]
        linear += changed[level] * math.ldexp(0.5 * unit, -level)
    if cells == 0 or slope <= 0:
        return 0.0, 0.0
    least = math.ldexp(unit, -highest)
    guess = cells / (slope + linear)
    weight = cells
    for _ in range(NEWTON_STEPS):
        x = guess * least
        grown = math.expm1(x)
        value, turn = 0.0, 0.0
        for level in range(highest, lowest - 1, -1):
            part = changed[level] * (x / grown)
            value += part
            turn += part * (x + x / grown)
            grown *= grown + 2.0  # exp(2 x) - 1
            x *= 2.0
            if grown > 1e100:  # the remaining terms are negligible
                break
        weight = turn
        # The value is convex in the guess; its derivative times the guess is `value - turn`.
        step = (value - slope * guess) / (turn - value + slope * guess)
        guess *= 1.0 + step
        if abs(step) < NEWTON_TOLERANCE:
            break
    return guess, weight


@kernel
def init_bit_vectors(seed: np.uint64, digits: KeyArray, turn: int, vectors: KeyArray, first: int, last: int) -> None:
    """Set each bit of a block of domains with the probability of its lane, digits / 2**64.

    64 random numbers at a time are compared with it, binary digit by digit, until all are decided.
    """
    for node in range(first, last):
        for lane in range(LANES):
            undecided, below = ~ZERO, ZERO
            rest = digits[lane]
            step = 0
            while undecided and rest:
                random = random_bits(seed, node, (turn * LANES + lane) * 64 + step)
                if rest >> np.uint64(63):
                    below |= undecided & ~random
                    undecided &= random
                else:
                    undecided &= ~random
                rest <<= ONE
                step += 1
            vectors[node * LANES + lane] = below


@kernel
def grow_bit_vectors(links: Adjacency, before: KeyArray, after: KeyArray, first: int, last: int) -> None:
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
def count_new_bits(
    inner: KeyArray,
    outer: KeyArray,
    levels: IntArray,
    counts: npt.NDArray[np.uint16],
    slope: FloatArray,
    first: int,
    last: int,
) -> None:
    """Add, per density level, the bits set at the last level of the ball, and the slope of the bits still clear."""
    for node in range(first, last):
        for lane in range(levels.shape[0]):
            entry = node * LANES + lane
            counts[node, levels[lane]] += np.int64(count_ones(outer[entry] & ~inner[entry]))
            slope[node] += (64 - np.int64(count_ones(outer[entry]))) * math.ldexp(UNIT, -levels[lane])


@kernel
def estimate_from_bits(
    counts: npt.NDArray[np.uint16],
    slope: FloatArray,
    estimate: npt.NDArray[np.float32],
    grain: npt.NDArray[np.float32],
    first: int,
    last: int,
) -> None:
    """Write the maximum-likelihood number of domains at the last level, and its variance divided by it."""
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
            value, weight = maximum_likelihood(changed, lowest, highest, slope[node], UNIT)
            estimate[node], grain[node] = value, value / weight


@kernel
def init_registers(seed: np.uint64, hashes: DomainHashes, first: int, last: int, bits: int) -> None:
    """Hash the domains of a block to a register and a value."""
    for node in range(first, last):
        _init_register(seed, node, hashes, node, bits)


@kernel
def init_numbered_registers(seed: np.uint64, numbers: IntArray, hashes: DomainHashes, bits: int) -> None:
    """Hash domains with these numbers to a register and a value."""
    for place in range(numbers.size):
        _init_register(seed, numbers[place], hashes, place, bits)


@kernel
def _init_register(seed: np.uint64, number: AnyInt, hashes: DomainHashes, place: int, bits: int) -> None:
    hashed = random_bits(seed, number, 0)
    hashes.register[place] = hashed & ((ONE << np.uint64(bits)) - ONE)
    rest = hashed >> np.uint64(bits)
    zeros = 1
    while zeros < HIGHEST and not rest & ONE:
        rest >>= ONE
        zeros += 1
    hashes.value[place] = zeros


@kernel
def first_level(
    links: Adjacency, hashes: DomainHashes, after: ByteArray, fresh: ByteArray, registers: int, first: int, last: int
) -> int:
    """Write the counters of the balls of level 1 from the hashes; return the number of domains with in-links."""
    place, value = hashes.register, hashes.value
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
def grow_counters(
    links: Adjacency, buffers: CounterBuffers, found: LevelEstimates, level: int, first: int, last: int
) -> int:
    """Grow the balls of a block by one level; estimate the domains added; return the number of counters changed."""
    before, after, changed, fresh = buffers.before, buffers.after, buffers.changed, buffers.fresh
    width = np.uint64(before.shape[0] // changed.shape[0])
    size = np.uint64(links.indices.shape[0])
    counts = np.zeros(HIGHEST + 1, np.int64)
    moved = 0
    for node in range(np.uint64(first), np.uint64(last)):
        row = node * width
        if changed[node] != 0:  # otherwise both buffers have the same row
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
        fresh[node] = touched and update_estimate(before, after, width, counts, found, node, level)
        moved += fresh[node]
    return moved


@kernel
def update_estimate(
    before: ByteArray,
    after: ByteArray,
    width: np.uint64,
    counts: IntArray,
    found: LevelEstimates,
    node: AnyInt,
    level: int,
) -> bool:
    """Estimate the number of domains added to a counter; return whether it changed."""
    row = node * width
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
    lowest, highest = HIGHEST, 0
    for entry in range(row, row + width):
        now = int(np.int64(after[entry]))
        if now != before[entry]:
            counts[now] += 1
            lowest, highest = min(lowest, now), max(highest, now)
    estimate, weight = maximum_likelihood(counts, lowest, highest, slope, 1 / width)
    for entry in range(lowest, highest + 1):
        counts[entry] = 0
    # The likelihood assumes a Poisson number of domains, which adds one to the grain; the number is fixed.
    grain = max(estimate / weight - 1, 0.0)
    # To first order, the estimate is biased upwards by half the mean share of a register in the slope.
    estimate /= 1 + 0.5 * np.float64(squares) * 2.0**HIGHEST / (np.float64(total) * np.float64(total))
    found.newest[node] = estimate
    found.grain[node] = grain
    found.harmonic[node] += estimate / level
    found.variance[node] += estimate * grain / (level * level)
    return True


@kernel
def bound_unseen_growth(
    links: Adjacency, counters: ByteArray, grain: npt.NDArray[np.float32], level: int, first: int, last: int
) -> None:
    """Write the possible growth of balls whose counters were not examined: those of negative grain.

    At level 2 their in-neighbours had no in-links, and without in-links a ball cannot grow: both are certain.
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
