"""Map names that are URLs to their hosts; vectorised over names."""

from __future__ import annotations

import re

import numpy as np

from surveyor.arrays import BoolArray, ByteArray, IdArray, IntArray
from surveyor.graph.names import Interner, Names

SLASH = ord("/")
NOWHERE = -1  # the host of a name that is not a URL
URL = re.compile(r"https?://[^/]")


def hosts_of(names: Names) -> tuple[IdArray, Names]:
    """Return the host number of each page (with its port, if it has one), and the names of the hosts.

    >>> at, hosts = hosts_of(Names.of(["https://a.example/x", "http://a.example", "b", "https://b.example:81/"]))
    >>> at.tolist(), list(hosts)
    ([0, 0, -1, 1], ['a.example', 'b.example:81'])
    """
    spans = authorities(names)
    urls = np.flatnonzero(spans[:, 0] < spans[:, 1])
    interner = Interner()
    at = np.full(len(names), NOWHERE, np.int32)
    at[urls] = interner.intern(names.blob, spans[urls])
    return at, interner.names()


def authorities(names: Names) -> IntArray:
    """Return the start and end in the blob of the host and port of each URL; (0, 0) for other names."""
    blob, first, last = names.blob, names.offsets[:-1], names.offsets[1:]
    begin = np.where(_starts(blob, first, last, b"http://"), first + 7, 0)
    begin = np.where(_starts(blob, first, last, b"https://"), first + 8, begin)
    slashes = np.append(np.flatnonzero(blob == SLASH), blob.size)
    end = np.minimum(slashes[np.searchsorted(slashes, begin)], last)
    return np.column_stack([begin, np.where(begin > 0, end, 0)])


def _starts(blob: ByteArray, first: IntArray, last: IntArray, with_: bytes) -> BoolArray:
    """Return which names start with these bytes."""
    long = last - first >= len(with_)
    same = long.copy()
    for step, letter in enumerate(with_):
        same[long] &= (blob[first[long] + step] | (0x20 if chr(letter).isalpha() else 0)) == letter
    return same
