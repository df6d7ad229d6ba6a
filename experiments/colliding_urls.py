"""URLs that crowd into a few neighbouring slots of a hash table whose hash function has no key (FNV-1a, mixed).

Whoever knows the function can try spellings of a URL until its hash is one of the wanted ones. A table with linear
probing then compares each new URL with all before it. A keyed hash function leaves nothing to try.

    >>> urls = colliding_urls("http://example.org/", 3)
    >>> {int(fnv(url.encode())) & (TABLE - 1) < SLOTS for url in urls}
    {True}
"""

from __future__ import annotations

import numpy as np

from surveyor.arrays import KeyArray

TABLE = 1 << 15  # slots of the table under attack
SLOTS = 16  # of them that the URLs take
BATCH = 1 << 20
START, PRIME, MIX = 14695981039346656037, 1099511628211, 0x9E3779B97F4A7C15
LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz012345", np.uint8)  # a power of two of them


def colliding_urls(prefix: str, count: int) -> list[str]:
    """Return so many URLs that begin alike and have neighbouring hashes."""
    state = START
    for byte in prefix.encode():
        state = (state ^ byte) * PRIME % (1 << 64)
    urls: list[str] = []
    batch = 0
    while len(urls) < count:
        numbers = np.arange(batch * BATCH, (batch + 1) * BATCH)
        letters = np.stack([LETTERS[(numbers >> shift) & 31] for shift in range(0, 35, 5)])
        states = np.full(BATCH, state, np.uint64)
        for row in letters:
            states = (states ^ row) * np.uint64(PRIME)
        hits = np.flatnonzero((_mixed(states) & np.uint64(TABLE - 1)) < SLOTS)
        urls += [prefix + row.tobytes().decode() for row in letters[:, hits].T]
        batch += 1
    return urls[:count]


def fnv(text: bytes) -> np.uint64:
    """Return the hash of a text."""
    state = START
    for byte in text:
        state = (state ^ byte) * PRIME % (1 << 64)
    return np.uint64(_mixed(np.array([state], np.uint64))[0])


def _mixed(states: KeyArray) -> KeyArray:
    states = states ^ (states >> np.uint64(32))
    states = states * np.uint64(MIX)
    return states ^ (states >> np.uint64(29))
