"""Edge lists as sorted 64-bit keys: building, transposing and counting the links of a graph.

A link is one key, `source << 32 | target`, so that sorting keys sorts links by source and target.
"""

from __future__ import annotations

import numpy as np

from surveyor.arrays import AnyIntArray, BoolArray, IdArray, IntArray, KeyArray
from surveyor.kernels._jit import kernel

CHUNK = 4096  # keys compared at a time


@kernel
def pack(sources: AnyIntArray, targets: AnyIntArray, keys: KeyArray) -> tuple[int, int]:
    """Write one key per link; return the number of self-links and the largest id (huge if one is negative)."""
    selves, largest = np.uint64(0), np.uint64(0)
    for link in range(sources.shape[0]):  # branch-free, so that it is vectorised
        source, target = np.uint64(sources[link]), np.uint64(targets[link])
        keys[link] = source << np.uint64(32) | target
        selves += np.uint64(source == target)
        largest = max(largest, max(source, target))
    return selves, largest  # type: ignore[return-value]  # uint64


@kernel
def is_clean(sources: AnyIntArray, targets: AnyIntArray, pages: int) -> bool:
    """Return whether links are sorted by source and target, distinct, in range and without self-links."""
    before = np.uint64(0)
    for start in range(0, sources.shape[0], CHUNK):
        from_, to = sources[start : start + CHUNK], targets[start : start + CHUNK]
        wrong = np.int64(0)
        for place in range(from_.shape[0]):
            source, target = np.uint64(from_[place]), np.uint64(to[place])
            wrong += np.int64(source == target) + np.int64(max(source, target) >= np.uint64(pages))
        for place in range(1, from_.shape[0]):
            rises = from_[place] > from_[place - 1] or (from_[place] == from_[place - 1] and to[place] > to[place - 1])
            wrong += np.int64(not rises)
        first = np.uint64(from_[0]) << np.uint64(32) | np.uint64(to[0])
        if wrong or (start > 0 and first <= before):
            return False
        last = from_.shape[0] - 1
        before = np.uint64(from_[last]) << np.uint64(32) | np.uint64(to[last])
    return True


@kernel
def row_starts(sources: AnyIntArray, indptr: IntArray) -> None:
    """Write the start of the row of each page in links sorted by source."""
    row = 0
    for link in range(sources.shape[0]):
        while row <= sources[link]:
            indptr[row] = link
            row += 1
    while row < indptr.shape[0]:
        indptr[row] = sources.shape[0]
        row += 1


@kernel
def is_sorted(keys: KeyArray) -> bool:
    """Return whether the keys are sorted."""
    size = keys.shape[0] - 1
    for start in range(0, size, CHUNK):
        before, after = keys[start : start + CHUNK], keys[start + 1 : start + 1 + CHUNK]
        falls = np.int64(0)
        for place in range(after.shape[0]):
            falls += np.int64(after[place] < before[place])
        if falls:
            return False
    return True


@kernel
def drop_duplicates(keys: KeyArray) -> int:
    """Move the distinct keys of sorted keys to the front; return their number."""
    if keys.shape[0] == 0:
        return 0
    kept = 1
    for place in range(1, keys.shape[0]):
        if keys[place] != keys[kept - 1]:
            keys[kept] = keys[place]
            kept += 1
    return kept


@kernel
def unpack(keys: KeyArray, new_ids: IdArray, degrees: IntArray, targets: IdArray) -> int:
    """Write the targets of sorted keys without duplicates and self-links, and count the links of each source.

    Returns how many were written. Page p becomes new_ids[p], unless that table is empty. New ids rise with
    the old, so rows stay sorted.
    """
    low = np.uint64(0xFFFFFFFF)
    renamed = new_ids.shape[0] > 0
    count, row_start = np.uint64(0), np.uint64(0)
    row, before = ~np.uint64(0), ~np.uint64(0)
    for place in range(keys.shape[0]):
        key = keys[place]
        source, target = key >> np.uint64(32), key & low
        if key == before or source == target:
            continue
        before = key
        if source != row:
            if count > row_start:
                degrees[np.uint64(new_ids[row]) if renamed else row] += np.int64(count - row_start)
            row, row_start = source, count
        targets[count] = new_ids[target] if renamed else np.int32(target)
        count += np.uint64(1)
    if count > row_start:
        degrees[np.uint64(new_ids[row]) if renamed else row] += np.int64(count - row_start)
    return count  # type: ignore[return-value]  # uint64


@kernel
def count_range(indices: IdArray, first: int, last: int, counts: IntArray) -> None:
    """Count the links into each of the pages first..last-1."""
    start, span = np.uint32(first), np.uint32(last - first)
    for link in range(indices.shape[0]):
        row = np.uint32(np.uint32(indices[link]) - start)
        if row < span:
            counts[row] += 1


@kernel
def transpose_range(indptr: IntArray, indices: IdArray, first: int, last: int, cursor: KeyArray, out: IdArray) -> None:
    """Write the sources of the links into pages first..last-1; `cursor[p - first]` is the start of the row of p.

    Sources are ascending because rows are read in order. Every call reads all links and writes
    only its own range, so ranges run on several threads, or one after another in bounded memory. Unsigned
    differences make one comparison of two, and unsigned indices need no check for negative ones.
    """
    start, span = np.uint32(first), np.uint32(last - first)
    for source in range(indptr.shape[0] - 1):
        for link in range(np.uint64(indptr[source]), np.uint64(indptr[source + 1])):
            row = np.uint32(np.uint32(indices[link]) - start)
            if row < span:
                place = cursor[row]
                out[place] = source
                cursor[row] = place + np.uint64(1)


@kernel
def count_links_into(indptr: IntArray, indices: IdArray, inside: BoolArray) -> IntArray:
    """Count the links of each page to the pages of a mask."""
    counts = np.zeros(indptr.shape[0] - 1, np.int64)
    for page in range(counts.shape[0]):
        for link in range(indptr[page], indptr[page + 1]):
            counts[page] += inside[indices[link]]
    return counts
