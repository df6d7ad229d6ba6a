"""Ids of strings by hash alone: 8 bytes for the hash and 6 to 12 for the slots of each string, which is not stored.

Two strings with the same 64-bit hash get the same id. The hash is SipHash-1-3 with a secret key (`string_table.py`), so
that no server can construct such strings; among n random ones the probability that any two agree is below n² / 2^65:
3e-6 for ten million, 3e-4 for a hundred million.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surveyor.arrays import ByteArray, IdArray, IntArray, KeyArray
from surveyor.kernels._jit import kernel
from surveyor.kernels.string_table import hash_bytes


class HashIndex(NamedTuple):
    """Ids by slot (a power of two of slots, -1 if empty), and the hash of each id."""

    slots: IdArray
    hashes: KeyArray
    key: KeyArray  # two integers


@kernel
def slot_of(index: HashIndex, value: int) -> int:
    """Return the slot of the id with this hash, or the empty slot for it."""
    mask = np.uint64(index.slots.shape[0] - 1)
    slot = np.int64(np.uint64(value) & mask)
    while index.slots[slot] >= 0 and index.hashes[index.slots[slot]] != value:
        slot = np.int64(np.uint64(slot + 1) & mask)
    return slot  # type: ignore[return-value]  # an int64


@kernel
def find_hash(index: HashIndex, text: ByteArray) -> int:
    """Return the id of a string, or -1."""
    return index.slots[slot_of(index, hash_bytes(text, 0, text.shape[0], index.key))]  # type: ignore[no-any-return]


@kernel
def intern_hashes(index: HashIndex, known: int, text: ByteArray, spans: IntArray, ids: IdArray) -> tuple[int, int]:
    """Number the strings text[spans[i, 0]:spans[i, 1]]; return (spans done, ids known).

    Stops early when the index is two thirds full or has no room for a hash; the caller grows it and calls again.
    """
    slots, hashes = index.slots, index.hashes
    for place in range(spans.shape[0]):
        value = hash_bytes(text, spans[place, 0], spans[place, 1], index.key)
        slot = slot_of(index, value)
        if slots[slot] < 0:
            if known >= hashes.shape[0] or 3 * (known + 1) > 2 * slots.shape[0]:
                return place, known
            slots[slot] = known
            hashes[known] = value
            known += 1
        ids[place] = slots[slot]
    return spans.shape[0], known
