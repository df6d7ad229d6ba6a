"""Links as sorted 64-bit keys, and back: the core of building and turning round a graph.

A link is one key, `source << 32 | target`, so that sorting keys sorts links by source and target.
"""

from __future__ import annotations

import numpy as np

from surveyor.arrays import AnyIntArray, IdArray, IntArray, KeyArray
from surveyor.kernels._jit import kernel


@kernel
def pack(sources: AnyIntArray, targets: AnyIntArray, keys: KeyArray, limit: int) -> tuple[int, int, int]:
    """Write one key per link that is not a self-link; return (keys, largest id, position of a bad id or -1)."""
    count = 0
    largest = -1
    for link in range(sources.shape[0]):
        source, target = int(sources[link]), int(targets[link])
        if source < 0 or source >= limit or target < 0 or target >= limit:
            return count, largest, link
        largest = max(largest, source, target)
        if source != target:
            keys[count] = np.uint64(source) << np.uint64(32) | np.uint64(target)
            count += 1
    return count, largest, -1


@kernel
def is_sorted(keys: KeyArray) -> bool:
    """Say whether the keys never fall."""
    for place in range(1, keys.shape[0]):
        if keys[place] < keys[place - 1]:
            return False
    return True


@kernel
def drop_repeats(keys: KeyArray) -> int:
    """Move the distinct ones of sorted keys to the front; return how many there are."""
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
    """Write the targets of sorted keys without repeats, count the links of each source; return how many.

    Page p becomes new_ids[p], unless that table is empty. New ids rise with the old, so rows stay sorted.
    """
    low = np.uint64(0xFFFFFFFF)
    renamed = new_ids.shape[0] > 0
    count, row, row_start = 0, np.int64(-1), 0
    before = ~np.uint64(0)
    for place in range(keys.shape[0]):
        key = keys[place]
        if key == before:
            continue
        before = key
        source, target = np.int64(key >> np.uint64(32)), np.int64(key & low)
        if source != row:
            if row >= 0:
                degrees[new_ids[row] if renamed else row] += count - row_start
            row, row_start = source, count
        targets[count] = new_ids[target] if renamed else target
        count += 1
    if row >= 0:
        degrees[new_ids[row] if renamed else row] += count - row_start
    return count


@kernel
def count_range(indices: IdArray, first: int, last: int, counts: IntArray) -> None:
    """Count the links into each of the pages first..last-1."""
    span = last - first
    for link in range(indices.shape[0]):
        row = indices[link] - first
        if 0 <= row < span:
            counts[row] += 1


@kernel
def transpose_range(indptr: IntArray, indices: IdArray, first: int, last: int, cursor: IntArray, out: IdArray) -> None:
    """Write the sources of the links into pages first..last-1; `cursor[p - first]` is where p's row begins.

    Sources come out in rising order because rows are read in order. Every call reads all links and writes
    only its own range, so ranges run on several threads, or one after another in bounded memory.
    """
    span = last - first
    for source in range(indptr.shape[0] - 1):
        for link in range(indptr[source], indptr[source + 1]):
            row = indices[link] - first
            if 0 <= row < span:
                out[cursor[row]] = source
                cursor[row] += 1


@kernel
def check_rows(indptr: IntArray, indices: IdArray) -> int:
    """Return the first page whose row is not strictly rising, in range and free of itself; -1 if all are fine."""
    pages = indptr.shape[0] - 1
    for page in range(pages):
        if indptr[page] > indptr[page + 1]:
            return page
        before = -1
        for link in range(indptr[page], indptr[page + 1]):
            target = indices[link]
            if target <= before or target >= pages or target == page:
                return page
            before = target
    return -1
