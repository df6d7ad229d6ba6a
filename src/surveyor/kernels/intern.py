"""Give each distinct byte string a number, in the order of first appearance.

An open-addressing table holds ids; the strings lie in one blob with offsets. Both grow in the caller: the
kernel stops when either is full and says how far it came.
"""

from __future__ import annotations

import numpy as np

from surveyor.arrays import ByteArray, IdArray, IntArray, KeyArray
from surveyor.kernels._jit import kernel


@kernel
def hash_bytes(text: ByteArray, first: int, last: int) -> int:
    """Hash text[first:last] to 64 bits (FNV-1a with a final mix)."""
    value = np.uint64(14695981039346656037)
    for place in range(first, last):
        value = (value ^ np.uint64(text[place])) * np.uint64(1099511628211)
    value ^= value >> np.uint64(32)
    value *= np.uint64(0x9E3779B97F4A7C15)
    return value ^ (value >> np.uint64(29))  # type: ignore[return-value]  # a uint64


@kernel
def same_bytes(a: ByteArray, a_first: int, a_last: int, b: ByteArray, b_first: int, b_last: int) -> bool:
    """Say whether two byte ranges hold the same text."""
    if a_last - a_first != b_last - b_first:
        return False
    for step in range(a_last - a_first):
        if a[a_first + step] != b[b_first + step]:
            return False
    return True


@kernel
def intern_spans(
    text: ByteArray,
    spans: IntArray,
    table: IdArray,
    hashes: KeyArray,
    offsets: IntArray,
    blob: ByteArray,
    known: int,
    ids: IdArray,
) -> tuple[int, int]:
    """Number the strings text[spans[i, 0]:spans[i, 1]]; return (spans done, ids known).

    `table` has a power of two of slots, -1 where empty. Stops early when the table is two thirds full or
    the blob or offsets have no room for the next string; the caller grows them and calls again.
    """
    mask = np.uint64(table.shape[0] - 1)
    for place in range(spans.shape[0]):
        first, last = spans[place, 0], spans[place, 1]
        value = hash_bytes(text, first, last)
        slot = np.int64(value & mask)
        while True:
            candidate = table[slot]
            if candidate < 0:
                room = known + 1 < offsets.shape[0] and offsets[known] + last - first <= blob.shape[0]
                if not room or 3 * (known + 1) > 2 * table.shape[0]:
                    return place, known
                table[slot] = known
                hashes[known] = value
                start = offsets[known]
                for step in range(last - first):
                    blob[start + step] = text[first + step]
                offsets[known + 1] = start + last - first
                candidate = known
                known += 1
                break
            if hashes[candidate] == value and same_bytes(
                text, first, last, blob, offsets[candidate], offsets[candidate + 1]
            ):
                break
            slot = np.int64(np.uint64(slot + 1) & mask)
        ids[place] = candidate
    return spans.shape[0], known


@kernel
def rehash(hashes: KeyArray, known: int, table: IdArray) -> None:
    """Fill an empty table with the ids of all known strings."""
    mask = np.uint64(table.shape[0] - 1)
    for candidate in range(known):
        slot = np.int64(hashes[candidate] & mask)
        while table[slot] >= 0:
            slot = np.int64(np.uint64(slot + 1) & mask)
        table[slot] = candidate


@kernel
def hash_all(blob: ByteArray, offsets: IntArray, hashes: KeyArray) -> None:
    """Hash every string of a name table."""
    for name in range(offsets.shape[0] - 1):
        hashes[name] = hash_bytes(blob, offsets[name], offsets[name + 1])


@kernel
def hash_hosts(blob: ByteArray, offsets: IntArray, pages: IdArray, hashes: KeyArray) -> None:
    """Hash the hosts, without port, of normalised URLs."""
    slash, colon, bracket = 47, 58, 93
    for place in range(pages.shape[0]):
        first = offsets[pages[place]] + 7
        first += blob[first] == slash  # https
        last = first
        while blob[last] != slash:
            last += 1
        port = last - 1
        while port > first and blob[port] != colon and blob[port] != bracket:
            port -= 1
        hashes[place] = hash_bytes(blob, first, port if blob[port] == colon else last)
