"""Intern byte strings: each distinct string has a dense id, in order of first appearance.

Strings that servers send are hashed with a secret key (`kernels/string_table.py`). A survey has its own key, so that a
replay stores the same data; tables that live in one process use the key of the process. Ids and strings do not depend
on the key.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from surveyor.arrays import ByteArray, IdArray, IntArray, KeyArray
from surveyor.errors import UsageError

if TYPE_CHECKING:
    from surveyor.kernels.string_table import HashTable

KEY_SIZE = 16  # bytes


@cache
def process_key() -> bytes:
    """Return the random hash key of this process."""
    return os.urandom(KEY_SIZE)


def key_words(key: bytes | None = None) -> KeyArray:
    """Return a key (default: that of the process) as the two integers that kernels take."""
    key = process_key() if key is None else key
    if len(key) != KEY_SIZE:
        raise UsageError(f"a hash key of {len(key)} bytes", hint=f"give {KEY_SIZE} random bytes")
    return np.frombuffer(key, "<u8").astype(np.uint64)


class StringTable:
    """A hash table from byte strings to dense ids; grows as needed."""

    def __init__(self, expected: int = 1 << 16, key: bytes | None = None) -> None:
        """Reserve space for `expected` strings; the default key is that of the process."""
        self.known = 0
        self._key = key_words(key)
        self._slots: IdArray = np.full(1 << max(10, int(expected * 1.5).bit_length()), -1, np.int32)
        self._hashes: KeyArray = np.empty(expected + 1, np.uint64)
        self._offsets: IntArray = np.zeros(expected + 2, np.int64)
        self._blob: ByteArray = np.empty(64 * expected, np.uint8)

    def __len__(self) -> int:
        return self.known

    def __getitem__(self, number: int) -> bytes:
        if not 0 <= number < self.known:
            raise IndexError(number)
        return self._blob[self._offsets[number] : self._offsets[number + 1]].tobytes()

    @property
    def offsets(self) -> IntArray:
        """Offset of each string in the blob, and the end of the last one."""
        return self._offsets[: self.known + 1]

    @property
    def blob(self) -> ByteArray:
        """All strings, concatenated; there may be unused space at the end."""
        return self._blob

    @property
    def probes(self) -> IntArray:
        """Number of slots probed to find each string."""
        places = np.flatnonzero(self._slots >= 0)
        size = np.uint64(self._slots.size)
        homes = self._hashes[self._slots[places]] % size
        return ((places.astype(np.uint64) - homes) % size).astype(np.int64) + 1

    def intern(self, text: ByteArray, spans: IntArray) -> IdArray:
        """Return the ids of text[first:last] for each row (first, last) of spans; new ones get the next ids."""
        from surveyor.kernels.string_table import intern_spans

        ids = np.empty(spans.shape[0], np.int32)
        done = 0
        while True:
            count, self.known = intern_spans(self._table(), self.known, text, spans[done:], ids[done:])
            done += count
            if done == spans.shape[0]:
                return ids
            self._grow(int(spans[done, 1] - spans[done, 0]))

    def find(self, text: bytes) -> int | None:
        """Return the id of a string, or None."""
        from surveyor.kernels.string_table import find_string

        number = int(find_string(self._table(), np.frombuffer(text, np.uint8)))
        return number if number >= 0 else None

    def _table(self) -> HashTable:
        from surveyor.kernels.string_table import HashTable

        return HashTable(self._slots, self._hashes, self._offsets, self._blob, self._key)

    def _grow(self, needed: int) -> None:
        """Reserve space for at least one more string; reserved memory is used only as it is filled."""
        from surveyor.kernels.string_table import rehash

        if 3 * (self.known + 1) > 2 * self._slots.size:
            self._slots = np.full(self._slots.size * 2, -1, np.int32)
            rehash(self._hashes, self.known, self._slots)
        if self.known + 1 >= self._offsets.size:
            room = 2 * self.known + 16
            hashes, offsets = np.empty(room, np.uint64), np.empty(room + 1, np.int64)
            hashes[: self.known] = self._hashes[: self.known]
            offsets[: self.known + 1] = self._offsets[: self.known + 1]
            self._hashes, self._offsets = hashes, offsets
        used = int(self._offsets[self.known])
        if used + needed > self._blob.size:
            blob = np.empty(2 * used + needed, np.uint8)
            blob[:used] = self._blob[:used]
            self._blob = blob
