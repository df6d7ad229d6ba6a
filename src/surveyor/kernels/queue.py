"""Pages by priority, where priorities change all the time: the highest first, ties by the smaller id.

Most changes touch pages far from the top and must be cheap; at the top the order must be exact. So pages lie
in buckets by the first 14 bits of their priority (four buckets for each doubling), unsorted, as doubly linked
lists; only the best bucket is opened into a binary heap. A change inside a bucket writes one number, a change
of bucket costs a few, and taking the best page costs O(log of the open bucket). The order in which changes
arrive has no influence on the order in which pages leave. A page that was handed out cannot come back before it
is dropped.

20 bytes per page. Any float is a priority, infinities included; NaN is not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surveyor.arrays import AnyInt, FloatArray, IdArray, IntArray, KeyArray
from surveyor.kernels._jit import bare

BUCKETS = 1 << 14
SHIFT = np.uint64(50)
SIGN = np.uint64(1 << 63)
NONE, ABSENT, OPEN, LEASED = -1, -2, -3, -4  # in `before`: first of its bucket, nowhere, in the heap, handed out
SIZE, FLOOR, COUNT = 0, 1, 2  # in `counts`: pages in the heap, the lowest bucket opened, pages in all


class Queue(NamedTuple):
    """The arrays of a queue; `bits` is another view of `priority`."""

    priority: FloatArray
    bits: KeyArray
    after: IdArray  # the next page of the bucket, or the place in the heap
    before: IdArray  # the page before in the bucket, or NONE, ABSENT, OPEN
    heads: IdArray  # the first page of each bucket
    used: KeyArray  # one bit per bucket
    heap: IdArray
    counts: IntArray


def new_queue(pages: int) -> Queue:
    """Make room for so many pages."""
    priority = np.zeros(pages)
    return Queue(
        priority,
        priority.view(np.uint64),
        np.empty(pages, np.int32),
        np.full(pages, ABSENT, np.int32),
        np.full(BUCKETS, NONE, np.int32),
        np.zeros(BUCKETS // 64, np.uint64),
        np.empty(pages, np.int32),
        np.array([0, BUCKETS, 0]),
    )


@bare
def bucket_of(queue: Queue, page: AnyInt) -> int:
    """Return the bucket of a page: the first bits of its priority, in an order that floats and bits share."""
    bits = queue.bits[page]
    bits = ~bits if bits & SIGN else bits | SIGN
    return int(np.int64(bits >> SHIFT))


@bare
def place(queue: Queue, page: AnyInt, priority: float) -> None:
    """Put a page into the queue, or change its priority."""
    if queue.before[page] == LEASED:
        return
    old = BUCKETS
    if queue.before[page] > ABSENT:
        old = bucket_of(queue, page)
    queue.priority[page] = priority + 0.0  # minus zero would fall into another bucket than zero
    new = bucket_of(queue, page)
    if queue.before[page] == OPEN:
        if new >= queue.counts[FLOOR]:
            _sift(queue, queue.after[page])
            return
        _leave_heap(queue, page)
    elif queue.before[page] != ABSENT:
        if new == old:
            return
        _unlink(queue, page, old)
    else:
        queue.counts[COUNT] += 1
    if new >= queue.counts[FLOOR]:
        _enter_heap(queue, page)
    else:
        _link(queue, page, new)


@bare
def drop(queue: Queue, page: AnyInt) -> None:
    """Take a page out, wherever it is; one that was handed out may come back from now on."""
    where = queue.before[page]
    queue.before[page] = ABSENT
    if where in (ABSENT, LEASED):
        return
    if where == OPEN:
        _leave_heap(queue, page)
    else:
        queue.before[page] = where
        _unlink(queue, page, bucket_of(queue, page))
        queue.before[page] = ABSENT
    queue.counts[COUNT] -= 1


@bare
def best(queue: Queue) -> int:
    """Return the page of highest priority; -1 when there is none."""
    if queue.counts[SIZE] == 0 and not _open(queue):
        return -1
    return int(queue.heap[0])


@bare
def lease(queue: Queue) -> int:
    """Hand out the page of highest priority; -1 when there is none."""
    page = best(queue)
    if page >= 0:
        _leave_heap(queue, page)
        queue.before[page] = LEASED
        queue.counts[COUNT] -= 1
    return page


@bare
def take(queue: Queue) -> int:
    """Take the page of highest priority out; -1 when there is none."""
    page = lease(queue)
    if page >= 0:
        drop(queue, page)
    return page


@bare
def _open(queue: Queue) -> bool:
    """Move the best bucket into the empty heap."""
    word = queue.used.shape[0] - 1
    while word >= 0 and queue.used[word] == 0:
        word -= 1
    if word < 0:
        queue.counts[FLOOR] = BUCKETS
        return False
    bit = 63
    while not (queue.used[word] >> np.uint64(bit)) & np.uint64(1):
        bit -= 1
    bucket = 64 * word + bit
    page = queue.heads[bucket]
    queue.heads[bucket] = NONE
    queue.used[word] ^= np.uint64(1) << np.uint64(bit)
    size = 0
    while page != NONE:
        following = queue.after[page]
        queue.heap[size] = page
        queue.after[page] = size
        queue.before[page] = OPEN
        size += 1
        page = following
    queue.counts[SIZE] = size
    queue.counts[FLOOR] = bucket
    for place_ in range(size // 2 - 1, -1, -1):
        _sink(queue, place_)
    return True


@bare
def _link(queue: Queue, page: AnyInt, bucket: AnyInt) -> None:
    first = queue.heads[bucket]
    queue.after[page] = first
    queue.before[page] = NONE
    if first == NONE:
        queue.used[bucket >> 6] |= np.uint64(1) << np.uint64(bucket & 63)
    else:
        queue.before[first] = page
    queue.heads[bucket] = page


@bare
def _unlink(queue: Queue, page: AnyInt, bucket: AnyInt) -> None:
    following, former = queue.after[page], queue.before[page]
    if following != NONE:
        queue.before[following] = former
    if former != NONE:
        queue.after[former] = following
        return
    queue.heads[bucket] = following
    if following == NONE:
        queue.used[bucket >> 6] &= ~(np.uint64(1) << np.uint64(bucket & 63))


@bare
def _enter_heap(queue: Queue, page: AnyInt) -> None:
    size = queue.counts[SIZE]
    queue.counts[SIZE] = size + 1
    queue.heap[size] = page
    queue.after[page] = size
    queue.before[page] = OPEN
    _sift(queue, size)


@bare
def _leave_heap(queue: Queue, page: AnyInt) -> None:
    hole = queue.after[page]
    size = queue.counts[SIZE] - 1
    queue.counts[SIZE] = size
    if hole < size:
        last = queue.heap[size]
        queue.heap[hole] = last
        queue.after[last] = hole
        _sift(queue, hole)


@bare
def _first(queue: Queue, page: AnyInt, other: AnyInt) -> bool:
    mine, its = queue.priority[page], queue.priority[other]
    return bool(mine > its or (mine == its and page < other))


@bare
def _sift(queue: Queue, hole: AnyInt) -> None:
    """Move the page in this place of the heap up or down to where it belongs."""
    page = queue.heap[hole]
    while hole > 0:
        parent = queue.heap[(hole - 1) >> 1]
        if not _first(queue, page, parent):
            break
        queue.heap[hole] = parent
        queue.after[parent] = hole
        hole = (hole - 1) >> 1
    queue.heap[hole] = page
    queue.after[page] = hole
    _sink(queue, hole)


@bare
def _sink(queue: Queue, hole: AnyInt) -> None:
    page = queue.heap[hole]
    size = queue.counts[SIZE]
    while True:
        child = 2 * hole + 1
        if child >= size:
            break
        if child + 1 < size and _first(queue, queue.heap[child + 1], queue.heap[child]):
            child += 1
        if not _first(queue, queue.heap[child], page):
            break
        queue.heap[hole] = queue.heap[child]
        queue.after[queue.heap[hole]] = hole
        hole = child
    queue.heap[hole] = page
    queue.after[page] = hole
