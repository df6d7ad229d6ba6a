"""Decoder of successor lists in the BV format of the WebGraph framework (Boldi & Vigna, WWW 2004).

A graph is one stream of bits, most significant first. A page has its out-degree; then, copied from one of the previous
lists: which one, and alternating runs of links copied and skipped; then intervals of consecutive ids; then the gaps of
the residual ids. Every number is written in an instantaneous code:

    unary x    x zeros and a one
    gamma x    the length of x + 1 in unary, then its bits after the first
    delta x    the length in gamma instead
    zeta_k x   the length in blocks of k bits in unary, then the bits
    nibble x   groups of three bits, each after a bit that marks the last group

The stream is untrusted: a number out of range or a truncated stream stops the decoder.
"""

from __future__ import annotations

import numpy as np

from surveyor.arrays import AnyInt, ByteArray, IdArray, IntArray
from surveyor.kernels._jit import kernel

UNARY, GAMMA, DELTA, ZETA, NIBBLE = range(5)
MORE, DONE, FULL, TRUNCATED, CORRUPT = range(5)  # results of `decode_rows`
# indices in `plan`: the codes, the parameters of the stream
DEGREES, REFERENCES, BLOCK_COUNTS, BLOCKS, RESIDUALS, ZETA_K, WINDOW, MIN_INTERVAL, NODES = range(9)
# indices in `state`: the position of the decoder
POSITION, PAGE, ROWS, NEEDED = range(4)


@kernel
def peek(bits: ByteArray, at: int) -> np.uint64:
    """Return the 64 bits from bit `at`, zeros beyond the end; at least the first 57 are valid."""
    byte = at >> 3
    value = np.uint64(0)
    if byte + 8 <= bits.shape[0]:
        for step in range(8):
            value = value << np.uint64(8) | np.uint64(bits[byte + step])
    else:
        for step in range(8):
            value <<= np.uint64(8)
            if byte + step < bits.shape[0]:
                value |= np.uint64(bits[byte + step])
    return value << np.uint64(at & 7)


@kernel
def read_bits(bits: ByteArray, at: int, count: int) -> int:
    """Return `count` bits (at most 56) from bit `at`."""
    if count == 0:
        return 0
    window = peek(bits, at)
    return np.int64(window >> np.uint64(64 - count))  # type: ignore[return-value]  # an int to Numba


@kernel
def read_unary(bits: ByteArray, at: int) -> tuple[int, int]:
    """Read a unary number; return (number, next bit), or (-1, at) beyond the end."""
    end = 8 * bits.shape[0]
    start = at
    while at < end:
        value = peek(bits, at)
        if value >> np.uint64(8):
            while not value >> np.uint64(56):
                value <<= np.uint64(8)
                at += 8
            while not value >> np.uint64(63):
                value <<= np.uint64(1)
                at += 1
            return at - start, at + 1
        at += 56
    return -1, start


@kernel
def read_code(bits: ByteArray, at: int, code: int, width: int) -> tuple[int, int]:
    """Read a number in some code; return (number, next bit), number -1 if there is none."""
    if code == NIBBLE:
        value: AnyInt = np.int64(0)
        for _ in range(20):
            group = read_bits(bits, at, 4)
            value = value << 3 | (group & 7)
            at += 4
            if group & 8:
                return (int(value), at) if at <= 8 * bits.shape[0] else (-1, at)
        return -1, at
    length, at = read_unary(bits, at)
    if code == UNARY or length < 0:
        return length, at
    if code == ZETA:
        size = length * width + width - 1
        if size > 55:
            return -1, at
        value = read_bits(bits, at, size)
        at += size
        least: AnyInt = np.int64(1) << (length * width)
        if value < least:
            value += least - 1
        else:
            value = (value << 1) + read_bits(bits, at, 1) - 1
            at += 1
        return (value, at) if at <= 8 * bits.shape[0] else (-1, at)
    if code == DELTA:
        if length > 6:
            return -1, at
        size = read_bits(bits, at, length)
        at += length
        length = size + (1 << length) - 1
    if length > 55:
        return -1, at
    value = read_bits(bits, at, length) + (1 << length) - 1
    at += length
    return (value, at) if at <= 8 * bits.shape[0] else (-1, at)


@kernel
def signed(value: int) -> int:
    """Undo the folding of signed numbers: 0, -1, 1, -2, 2, ..."""
    return value >> 1 if value & 1 == 0 else -((value + 1) >> 1)


@kernel
def read_copied(bits: ByteArray, plan: IntArray, at: int, model: IdArray, degree: int, out: IdArray) -> tuple[int, int]:
    """Copy links from the referenced list; return (links copied, next bit), -1 if the stream is corrupt."""
    count, at = read_code(bits, at, plan[BLOCK_COUNTS], plan[ZETA_K])
    if count < 0 or count > model.shape[0] + 1:
        return -1, at
    copied, place = 0, 0
    for block in range(count + 1):
        if block < count:
            length, at = read_code(bits, at, plan[BLOCKS], plan[ZETA_K])
            if length < 0:
                return -1, at
            length += block > 0
        else:
            length = model.shape[0] - place  # after an even number of blocks the rest is copied
        if length > model.shape[0] - place:
            return -1, at
        if block & 1 == 0:
            if copied + length > degree:
                return -1, at
            for step in range(length):
                out[copied + step] = model[place + step]
            copied += length
        place += length
    return copied, at


@kernel
def read_extra(bits: ByteArray, plan: IntArray, at: int, page: int, count: int, out: IdArray, spare: IdArray) -> int:
    """Read `count` links that are not copied, ascending, into `out`; return the next bit or -1."""
    nodes, size = plan[NODES], 0
    if plan[MIN_INTERVAL] > 0:
        intervals, at = read_code(bits, at, GAMMA, 0)
        if intervals < 0 or intervals > count:
            return -1
        right: AnyInt = np.int64(0)
        for interval in range(intervals):
            gap, at = read_code(bits, at, GAMMA, 0)
            length, after = read_code(bits, at, GAMMA, 0)
            left = page + signed(gap) if interval == 0 else right + gap + 1
            length += plan[MIN_INTERVAL]
            if gap < 0 or after == at or left < 0 or size + length > count or left + length > nodes:
                return -1
            for step in range(length):
                spare[size + step] = left + step
            size += length
            right, at = left + length, after
    residuals = count - size
    before: AnyInt = np.int64(-1)
    place, written = 0, 0
    for residual in range(residuals):
        gap, at = read_code(bits, at, plan[RESIDUALS], plan[ZETA_K])
        if gap < 0:
            return -1
        before = page + signed(gap) if residual == 0 else before + gap + 1
        if before < 0 or before >= nodes:
            return -1
        while place < size and spare[place] < before:
            out[written] = spare[place]
            place += 1
            written += 1
        out[written] = before
        written += 1
    for rest in range(place, size):
        out[written + rest - place] = spare[rest]
    return at


@kernel
def merge(a: IdArray, b: IdArray, out: IdArray) -> None:
    """Merge two ascending lists."""
    left, right = 0, 0
    for place in range(a.shape[0] + b.shape[0]):
        if right == b.shape[0] or (left < a.shape[0] and a[left] <= b[right]):
            out[place] = a[left]
            left += 1
        else:
            out[place] = b[right]
            right += 1


@kernel
def decode_rows(
    bits: ByteArray, plan: IntArray, state: IntArray, starts: IntArray, targets: IdArray, scratch: IdArray
) -> int:
    """Decode pages until all are done or the buffers are full; return the result code.

    Row i of the result is targets[starts[i]:starts[i + 1]]; the last row belongs to page state[PAGE] - 1,
    and at least as many rows as the window has stand before the next one. `scratch` has three rows of room
    for the links of one page; state[NEEDED] is the out-degree of the next page if it did not fit.
    """
    while state[PAGE] < plan[NODES]:
        page, rows, at = state[PAGE], state[ROWS], state[POSITION]
        if rows + 1 >= starts.shape[0]:
            return MORE
        degree, at = read_code(bits, at, plan[DEGREES], plan[ZETA_K])
        if degree < 0:
            return TRUNCATED
        if degree > plan[NODES]:
            return CORRUPT
        first = starts[rows]
        state[NEEDED] = degree
        if first + degree > targets.shape[0] or degree > scratch.shape[1]:
            return FULL
        out = targets[first : first + degree]
        copied = 0
        if degree > 0 and plan[WINDOW] > 0:
            back, at = read_code(bits, at, plan[REFERENCES], plan[ZETA_K])
            if back < 0 or back > min(plan[WINDOW], page):
                return TRUNCATED if back < 0 else CORRUPT
            if back > 0:
                model = targets[starts[rows - back] : starts[rows - back + 1]]
                copied, at = read_copied(bits, plan, at, model, degree, scratch[0])
                if copied < 0:
                    return TRUNCATED if at >= 8 * bits.shape[0] - 64 else CORRUPT
        if copied < degree:
            at = read_extra(bits, plan, at, page, degree - copied, scratch[1], scratch[2])
            if at < 0:
                return CORRUPT
        merge(scratch[0, :copied], scratch[1, : degree - copied], out)
        starts[rows + 1] = first + degree
        state[PAGE], state[ROWS], state[POSITION] = page + 1, rows + 1, at
    return DONE
