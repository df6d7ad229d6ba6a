"""Links, numbers and vertices as lines of text: each kernel fills a buffer and returns the bytes written."""

from __future__ import annotations

from surveyor.arrays import AnyIntArray, ByteArray, IntArray
from surveyor.kernels._jit import kernel

NEWLINE, TAB, ZERO = b"\n\t0"


@kernel
def put_number(value: int, out: ByteArray, at: int) -> int:
    """Write a decimal number; return its end."""
    digits, rest = 1, value
    while rest >= 10:
        rest //= 10
        digits += 1
    for place in range(at + digits - 1, at - 1, -1):
        out[place] = ZERO + value % 10
        value //= 10
    return at + digits


@kernel
def put_name(blob: ByteArray, first: int, last: int, out: ByteArray, at: int) -> int:
    """Write a name; return its end."""
    for place in range(first, last):
        out[at] = blob[place]
        at += 1
    return at


@kernel
def write_numbers(numbers: IntArray, offsets: IntArray, blob: ByteArray) -> None:
    """Write each number in decimal at its offset."""
    for row in range(numbers.shape[0]):
        put_number(numbers[row], blob, offsets[row])


@kernel
def write_pairs(sources: AnyIntArray, targets: AnyIntArray, separator: int, out: ByteArray) -> int:
    """Write one line per link, as ids; return the bytes written."""
    at = 0
    for link in range(sources.shape[0]):
        at = put_number(sources[link], out, at)
        out[at] = separator
        at = put_number(targets[link], out, at + 1)
        out[at] = NEWLINE
        at += 1
    return at


@kernel
def write_named(
    sources: AnyIntArray,
    targets: AnyIntArray,
    offsets: IntArray,
    blob: ByteArray,
    separator: int,
    out: ByteArray,
) -> int:
    """Write one line per link, as names; return the bytes written."""
    at = 0
    for link in range(sources.shape[0]):
        source, target = sources[link], targets[link]
        at = put_name(blob, offsets[source], offsets[source + 1], out, at)
        out[at] = separator
        at = put_name(blob, offsets[target], offsets[target + 1], out, at + 1)
        out[at] = NEWLINE
        at += 1
    return at


@kernel
def write_vertices(first: int, last: int, offsets: IntArray, blob: ByteArray, out: ByteArray) -> int:
    """Write `id TAB name` for the pages first..last-1; return the bytes written."""
    at = 0
    for page in range(first, last):
        at = put_number(page, out, at)
        out[at] = TAB
        at = put_name(blob, offsets[page], offsets[page + 1], out, at + 1)
        out[at] = NEWLINE
        at += 1
    return at
