r"""Lists of page ids as bytes: zigzag-encoded deltas, seven bits per byte; an empty list is None.

The encoding is the LEB128 of Protocol Buffers and WebAssembly, so that any language can read a journal.

    >>> pack([np.array([300, 301], np.int32), NO_LINKS])
    [b'\xd8\x04\x02', None]
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from surveyor.arrays import MAX_PAGES, IdArray, read_only
from surveyor.outcome import NO_LINKS


def pack(lists: Sequence[IdArray]) -> list[bytes | None]:
    """Encode lists of ids as bytes, all at once."""
    ends = np.cumsum([ids.size for ids in lists])
    numbers = np.concatenate([*lists, NO_LINKS]).astype(np.int64)
    steps = np.diff(numbers, prepend=0)
    first = np.array([end - ids.size for end, ids in zip(ends, lists, strict=True) if ids.size], np.int64)
    steps[first] = numbers[first]
    zigzag = (steps << 1) ^ (steps >> 63)
    place = np.arange(5)
    width = 1 + (zigzag[:, None] >> 7 * place[1:] > 0).sum(1)
    septets = (zigzag[:, None] >> 7 * place) & 127 | np.where(place < width[:, None] - 1, 128, 0)
    packed = septets[place < width[:, None]].astype(np.uint8).tobytes()
    cuts = np.concatenate([[0], np.cumsum(width)])[np.concatenate([[0], ends]).astype(np.int64)].tolist()
    return [packed[start:end] or None for start, end in pairwise(cuts)]


def unpack(lists: Sequence[bytes | None]) -> list[IdArray]:
    """Decode bytes to lists of ids; raise ValueError if they are invalid."""
    raw = np.frombuffer(b"".join(item or b"" for item in lists), np.uint8)
    bytes_before = np.cumsum([0, *(len(item or b"") for item in lists)])
    last = np.flatnonzero(raw < 128)
    if raw.size and not (raw[bytes_before[bytes_before > 0] - 1] < 128).all():
        raise ValueError("links that end in the middle of a number")
    first = np.concatenate([[0], last + 1])[:-1]
    if (place := np.arange(raw.size) - np.repeat(first, last - first + 1)).max(initial=0) > 4:
        raise ValueError("a link of more than 5 bytes")
    zigzag = np.add.reduceat((raw & 127).astype(np.int64) << 7 * place, first) if raw.size else np.empty(0, np.int64)
    sums = np.concatenate([[0], np.cumsum((zigzag >> 1) ^ -(zigzag & 1))])
    bounds = np.searchsorted(last, bytes_before)
    ids = sums[1:] - np.repeat(sums[bounds[:-1]], np.diff(bounds))
    if ids.size and not (ids.min() >= 0 and ids.max() < MAX_PAGES):
        raise ValueError("a link to no page")
    whole: IdArray = read_only(ids.astype(np.int32))
    return [whole[start:end] for start, end in pairwise(bounds)]
