"""String interning: each distinct byte string gets a number, in the order of first appearance.

An open-addressing table contains ids; the strings are in one blob with offsets. The caller grows both: the kernel stops
when either is full and returns its progress.

Strings come from servers, which may choose them. The hash is SipHash-1-3 with a secret key (Aumasson and Bernstein,
"SipHash: a fast short-input PRF", 2012): without the key, colliding strings cannot be constructed. Numbers depend
on the order of the strings only, never on the key.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surveyor.arrays import ByteArray, IdArray, IntArray, KeyArray
from surveyor.kernels._jit import kernel

ROUNDS, LAST_ROUNDS = 1, 3  # of SipHash: per eight bytes, and at the end


class HashTable(NamedTuple):
    """Ids by slot (a power of two of slots, -1 if empty), and each string with its hash."""

    slots: IdArray
    hashes: KeyArray
    offsets: IntArray
    blob: ByteArray
    key: KeyArray  # two integers


@kernel
def sip_hash(text: ByteArray, first: int, last: int, key: KeyArray, rounds: int, last_rounds: int) -> int:
    """Hash text[first:last] to 64 bits with SipHash."""
    v0, v1 = key[0] ^ np.uint64(0x736F6D6570736575), key[1] ^ np.uint64(0x646F72616E646F6D)
    v2, v3 = key[0] ^ np.uint64(0x6C7967656E657261), key[1] ^ np.uint64(0x7465646279746573)
    at, end, one = np.uint64(first), np.uint64(last), np.uint64(1)
    words = (last - first) // 8
    for block in range(words + 2):
        if block < words:  # unsigned indices need no check for negative ones
            word = np.uint64(text[at])
            word |= np.uint64(text[at + one]) << np.uint64(8)
            word |= np.uint64(text[at + np.uint64(2)]) << np.uint64(16)
            word |= np.uint64(text[at + np.uint64(3)]) << np.uint64(24)
            word |= np.uint64(text[at + np.uint64(4)]) << np.uint64(32)
            word |= np.uint64(text[at + np.uint64(5)]) << np.uint64(40)
            word |= np.uint64(text[at + np.uint64(6)]) << np.uint64(48)
            word |= np.uint64(text[at + np.uint64(7)]) << np.uint64(56)
            at += np.uint64(8)
            turns = rounds
        elif block == words:
            word = np.uint64(last - first) << np.uint64(56)
            shift = np.uint64(0)
            while at < end:
                word |= np.uint64(text[at]) << shift
                shift += np.uint64(8)
                at += one
            turns = rounds
        else:
            word = np.uint64(0)
            v2 ^= np.uint64(0xFF)
            turns = last_rounds
        v3 ^= word
        for _ in range(turns):
            v0 += v1
            v1 = ((v1 << np.uint64(13)) | (v1 >> np.uint64(51))) ^ v0
            v0 = (v0 << np.uint64(32)) | (v0 >> np.uint64(32))
            v2 += v3
            v3 = ((v3 << np.uint64(16)) | (v3 >> np.uint64(48))) ^ v2
            v0 += v3
            v3 = ((v3 << np.uint64(21)) | (v3 >> np.uint64(43))) ^ v0
            v2 += v1
            v1 = ((v1 << np.uint64(17)) | (v1 >> np.uint64(47))) ^ v2
            v2 = (v2 << np.uint64(32)) | (v2 >> np.uint64(32))
        v0 ^= word
    return v0 ^ v1 ^ v2 ^ v3  # type: ignore[no-any-return]  # a uint64


@kernel
def hash_bytes(text: ByteArray, first: int, last: int, key: KeyArray) -> int:
    """Hash text[first:last] to 64 bits with SipHash-1-3."""
    return sip_hash(text, first, last, key, ROUNDS, LAST_ROUNDS)


@kernel
def same_bytes(a: ByteArray, a_first: int, a_last: int, b: ByteArray, b_first: int, b_last: int) -> bool:
    """Return whether two byte ranges are equal."""
    if a_last - a_first != b_last - b_first:
        return False
    for step in range(a_last - a_first):
        if a[a_first + step] != b[b_first + step]:
            return False
    return True


@kernel
def find_slot(table: HashTable, text: ByteArray, first: int, last: int, value: int) -> int:
    """Return the slot of a string with this hash: the slot of its id, or the empty slot for it."""
    mask = np.uint64(table.slots.shape[0] - 1)
    slot = np.int64(np.uint64(value) & mask)
    while True:
        candidate = table.slots[slot]
        if candidate < 0 or (
            table.hashes[candidate] == value
            and same_bytes(text, first, last, table.blob, table.offsets[candidate], table.offsets[candidate + 1])
        ):
            return slot  # type: ignore[return-value]  # an int64
        slot = np.int64(np.uint64(slot + 1) & mask)


@kernel
def find_string(table: HashTable, text: ByteArray) -> int:
    """Return the id of a string, or -1."""
    value = hash_bytes(text, 0, text.shape[0], table.key)
    return table.slots[find_slot(table, text, 0, text.shape[0], value)]  # type: ignore[no-any-return]


@kernel
def intern_spans(table: HashTable, known: int, text: ByteArray, spans: IntArray, ids: IdArray) -> tuple[int, int]:
    """Number the strings text[spans[i, 0]:spans[i, 1]]; return (spans done, ids known).

    Stops early when the table is two thirds full or the blob or offsets have no room for the next string; the caller
    grows them and calls again.
    """
    slots, offsets, blob = table.slots, table.offsets, table.blob
    for place in range(spans.shape[0]):
        first, last = spans[place, 0], spans[place, 1]
        value = hash_bytes(text, first, last, table.key)
        slot = find_slot(table, text, first, last, value)
        if slots[slot] < 0:
            room = known + 1 < offsets.shape[0] and offsets[known] + last - first <= blob.shape[0]
            if not room or 3 * (known + 1) > 2 * slots.shape[0]:
                return place, known
            slots[slot] = known
            table.hashes[known] = value
            start = offsets[known]
            for step in range(last - first):
                blob[start + step] = text[first + step]
            offsets[known + 1] = start + last - first
            known += 1
        ids[place] = slots[slot]
    return spans.shape[0], known


@kernel
def rehash(hashes: KeyArray, known: int, slots: IdArray) -> None:
    """Fill empty slots with the ids of all known strings."""
    mask = np.uint64(slots.shape[0] - 1)
    for candidate in range(known):
        slot = np.int64(hashes[candidate] & mask)
        while slots[slot] >= 0:
            slot = np.int64(np.uint64(slot + 1) & mask)
        slots[slot] = candidate


@kernel
def hash_all(blob: ByteArray, offsets: IntArray, key: KeyArray, hashes: KeyArray) -> None:
    """Hash every string of a name table."""
    for name in range(offsets.shape[0] - 1):
        hashes[name] = hash_bytes(blob, offsets[name], offsets[name + 1], key)


@kernel
def hash_spans(text: ByteArray, spans: IntArray, key: KeyArray, hashes: KeyArray) -> None:
    """Hash the strings text[spans[i, 0]:spans[i, 1]]."""
    for row in range(spans.shape[0]):
        hashes[row] = hash_bytes(text, spans[row, 0], spans[row, 1], key)


@kernel
def host_spans(blob: ByteArray, offsets: IntArray, pages: IdArray, spans: IntArray) -> None:
    """Find the spans of the hosts, without port, of normalised URLs in the blob."""
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
        spans[place, 0], spans[place, 1] = first, port if blob[port] == colon else last
