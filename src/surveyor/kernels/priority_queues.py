"""Priority queues of pages: one queue (`Queue`), and one heap per host (`HostHeaps`).

`Queue`: highest priority first, ties by the smaller id. Most changes affect pages far from the top and must be cheap;
at the top the order must be exact. Pages are kept in buckets by the first 14 bits of their priority (four buckets per
doubling), unsorted, as doubly linked lists; only the best bucket is opened into a binary heap. A change within a bucket
writes one number, a change of bucket a few, and removing the best page costs O(log of the open bucket). The order in
which changes arrive does not affect the order in which pages leave. A leased page cannot return before it is removed.
20 bytes per page. Any float is a priority, infinities included; NaN is not.

`HostHeaps`: each host has a pairing heap of its waiting pages (Fredman, Sedgewick, Sleator and Tarjan 1986). Raising a
priority costs a few writes, lowering or removing O(log n) amortised. The hosts that are ready for a request are in a
`Queue` by the priority of their best page. Ties go to the smaller page id within a host and to the smaller host id
between hosts. A leased page is in no heap, but its priority is kept up to date for its return. 28 bytes per page, 40
per host.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surveyor.arrays import AnyInt, ByteArray, FloatArray, IdArray, IntArray, KeyArray
from surveyor.kernels._jit import kernel_without_refcounts
from surveyor.kernels.mass import STATUS, UNKNOWN, WAITING

BUCKETS = 1 << 14
SHIFT = np.uint64(50)
SIGN = np.uint64(1 << 63)
NONE, ABSENT, OPEN, LEASED = -1, -2, -3, -4  # in `Queue.before`: first of its bucket, not queued, in the heap, leased
SIZE, FLOOR, COUNT = 0, 1, 2  # in `Queue.counts`: pages in the heap, the lowest open bucket, all pages


class Queue(NamedTuple):
    """The arrays of a queue; `bits` is another view of `priority`."""

    priority: FloatArray
    bits: KeyArray
    after: IdArray  # the next page of the bucket, or the index in the heap
    before: IdArray  # the previous page of the bucket, or NONE, ABSENT, OPEN, LEASED
    heads: IdArray  # the first page of each bucket
    used: KeyArray  # one bit per bucket
    heap: IdArray
    counts: IntArray


def new_queue(pages: int) -> Queue:
    """Allocate a queue for page ids below `pages`."""
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


@kernel_without_refcounts
def bucket_of(queue: Queue, page: AnyInt) -> int:
    """Return the bucket of a page: the first bits of its priority, mapped so that integers sort like floats."""
    bits = queue.bits[page]
    bits = ~bits if bits & SIGN else bits | SIGN
    return int(np.int64(bits >> SHIFT))


@kernel_without_refcounts
def set_priority(queue: Queue, page: AnyInt, priority: float) -> None:
    """Add a page to the queue, or change its priority."""
    if queue.before[page] == LEASED:
        return
    old = BUCKETS
    if queue.before[page] > ABSENT:
        old = bucket_of(queue, page)
    queue.priority[page] = priority + 0.0  # minus zero would be in another bucket than zero
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


@kernel_without_refcounts
def remove(queue: Queue, page: AnyInt) -> None:
    """Remove a page; a leased page may be queued again from now on."""
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


@kernel_without_refcounts
def best_page(queue: Queue) -> int:
    """Return the page of highest priority, or -1."""
    if queue.counts[SIZE] == 0 and not _open(queue):
        return -1
    return int(queue.heap[0])


@kernel_without_refcounts
def lease_best(queue: Queue) -> int:
    """Lease the page of highest priority; return it, or -1."""
    page = best_page(queue)
    if page >= 0:
        _leave_heap(queue, page)
        queue.before[page] = LEASED
        queue.counts[COUNT] -= 1
    return page


@kernel_without_refcounts
def pop_best(queue: Queue) -> int:
    """Remove the page of highest priority; return it, or -1."""
    page = lease_best(queue)
    if page >= 0:
        remove(queue, page)
    return page


@kernel_without_refcounts
def update_priorities(queue: Queue, state: ByteArray, pages: IdArray, priorities: FloatArray, also: AnyInt) -> int:
    """Set the priorities of pages with status WAITING or `also`, or of any status if it is negative.

    Return the index of an invalid entry, or -1.
    """
    for entry in range(pages.shape[0]):
        page = pages[entry]
        if page < 0 or page >= state.shape[0] or np.isnan(priorities[entry]):
            return entry
        status = state[page] & STATUS
        if status == UNKNOWN:
            return entry
        if status in (WAITING, also) or also < 0:
            set_priority(queue, page, priorities[entry])
    return -1


@kernel_without_refcounts
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


@kernel_without_refcounts
def _link(queue: Queue, page: AnyInt, bucket: AnyInt) -> None:
    first = queue.heads[bucket]
    queue.after[page] = first
    queue.before[page] = NONE
    if first == NONE:
        queue.used[bucket >> 6] |= np.uint64(1) << np.uint64(bucket & 63)
    else:
        queue.before[first] = page
    queue.heads[bucket] = page


@kernel_without_refcounts
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


@kernel_without_refcounts
def _enter_heap(queue: Queue, page: AnyInt) -> None:
    size = queue.counts[SIZE]
    queue.counts[SIZE] = size + 1
    queue.heap[size] = page
    queue.after[page] = size
    queue.before[page] = OPEN
    _sift(queue, size)


@kernel_without_refcounts
def _leave_heap(queue: Queue, page: AnyInt) -> None:
    hole = queue.after[page]
    size = queue.counts[SIZE] - 1
    queue.counts[SIZE] = size
    if hole < size:
        last = queue.heap[size]
        queue.heap[hole] = last
        queue.after[last] = hole
        _sift(queue, hole)


@kernel_without_refcounts
def _first(queue: Queue, page: AnyInt, other: AnyInt) -> bool:
    one_priority, other_priority = queue.priority[page], queue.priority[other]
    return bool(one_priority > other_priority or (one_priority == other_priority and page < other))


@kernel_without_refcounts
def _sift(queue: Queue, hole: AnyInt) -> None:
    """Restore the heap order at this index."""
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


@kernel_without_refcounts
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


HEAP_ROOT, HEAP_ABSENT, HEAP_LEASED = -1, -2, -3  # in `HostHeaps.before`: top of its heap, in no heap, leased


class HostHeaps(NamedTuple):
    """The arrays of the heaps."""

    priority: FloatArray
    child: IdArray  # the first child
    sibling: IdArray  # the next child of the same parent
    before: IdArray  # the parent or previous sibling, or HEAP_ROOT, HEAP_ABSENT, HEAP_LEASED
    host: IdArray  # of each page; NONE if unknown
    root: IdArray  # the best page of each host
    ready: ByteArray  # hosts that may be requested now


def new_host_heaps(pages: int, hosts: int) -> HostHeaps:
    """Allocate heaps for ids below `pages` and `hosts`."""
    return HostHeaps(
        np.zeros(pages),
        np.full(pages, NONE, np.int32),
        np.full(pages, NONE, np.int32),
        np.full(pages, HEAP_ABSENT, np.int32),
        np.full(pages, NONE, np.int32),
        np.full(hosts, NONE, np.int32),
        np.zeros(hosts, np.uint8),
    )


@kernel_without_refcounts
def update_host_priorities(
    heaps: HostHeaps, hosts: Queue, state: ByteArray, pages: IdArray, priorities: FloatArray, also: AnyInt
) -> int:
    """Set the priorities of pages with status WAITING or `also`, or of any status if it is negative.

    Return -1, or the index of an invalid entry. It stops at a page whose host is unknown: -2, -3, … mean the entries
    0, 1, …
    """
    for entry in range(pages.shape[0]):
        page = pages[entry]
        if page < 0 or page >= state.shape[0] or np.isnan(priorities[entry]):
            return entry
        status = state[page] & STATUS
        if status == UNKNOWN:
            return entry
        if heaps.host[page] == NONE:
            return -2 - entry
        if status in (WAITING, also) or also < 0:
            set_page_priority(heaps, hosts, page, priorities[entry])
    return -1


@kernel_without_refcounts
def set_page_priority(heaps: HostHeaps, hosts: Queue, page: AnyInt, priority: float) -> None:
    """Add a page to the heap of its host, or change its priority."""
    where, old = heaps.before[page], heaps.priority[page]
    heaps.priority[page] = priority
    if where == HEAP_LEASED or (where != HEAP_ABSENT and priority == old):
        return
    host = heaps.host[page]
    if where == HEAP_ABSENT:
        _add(heaps, host, page)
    elif priority > old:
        if where != HEAP_ROOT:
            _cut(heaps, page)
            _add(heaps, host, page)
    elif heaps.child[page] != NONE:
        _take_out(heaps, host, page)
        _add(heaps, host, page)
    update_host(heaps, hosts, host)


@kernel_without_refcounts
def lease_from_host(heaps: HostHeaps, hosts: Queue, host: AnyInt) -> int:
    """Lease the best page of a host; return it, or -1."""
    page = heaps.root[host]
    if page != NONE:
        _take_out(heaps, host, page)
        heaps.before[page] = HEAP_LEASED
        update_host(heaps, hosts, host)
    return int(page)


@kernel_without_refcounts
def next_host(heaps: HostHeaps, hosts: Queue, host: AnyInt, lease: AnyInt, release: AnyInt) -> int:
    """Lease the best page of a host and/or mark the host as not ready; return the best ready host then, or -1."""
    if lease:
        lease_from_host(heaps, hosts, host)
    if release:
        mark_not_ready(heaps, hosts, host)
    return best_page(hosts)


@kernel_without_refcounts
def return_page(heaps: HostHeaps, hosts: Queue, page: AnyInt) -> None:
    """Return a leased page to its heap, with its current priority."""
    if heaps.before[page] == HEAP_LEASED:
        heaps.before[page] = HEAP_ABSENT
        set_page_priority(heaps, hosts, page, heaps.priority[page])


@kernel_without_refcounts
def remove_page(heaps: HostHeaps, hosts: Queue, page: AnyInt) -> bool:
    """Remove a page; return whether it was in a heap."""
    where = heaps.before[page]
    if where in (HEAP_ABSENT, HEAP_LEASED):
        heaps.before[page] = HEAP_ABSENT
        return False
    _take_out(heaps, heaps.host[page], page)
    update_host(heaps, hosts, heaps.host[page])
    return True


@kernel_without_refcounts
def mark_ready(heaps: HostHeaps, hosts: Queue, host: AnyInt) -> None:
    """Mark a host as ready for a request."""
    heaps.ready[host] = 1
    update_host(heaps, hosts, host)


@kernel_without_refcounts
def mark_all_ready(heaps: HostHeaps, hosts: Queue, ready: IdArray) -> None:
    """Mark hosts as ready for a request."""
    for host in ready:
        mark_ready(heaps, hosts, host)


@kernel_without_refcounts
def mark_not_ready(heaps: HostHeaps, hosts: Queue, host: AnyInt) -> None:
    """Mark a host as not ready."""
    heaps.ready[host] = 0
    remove(hosts, host)


@kernel_without_refcounts
def update_host(heaps: HostHeaps, hosts: Queue, host: AnyInt) -> None:
    """Queue a ready host by the priority of its best page."""
    if not heaps.ready[host]:
        return
    page = heaps.root[host]
    if page == NONE:
        remove(hosts, host)
    else:
        set_priority(hosts, host, heaps.priority[page])


@kernel_without_refcounts
def _add(heaps: HostHeaps, host: AnyInt, page: AnyInt) -> None:
    """Add a page that is in no heap to that of its host."""
    heaps.before[page] = HEAP_ROOT
    heaps.sibling[page] = NONE
    root = heaps.root[host]
    heaps.root[host] = page if root == NONE else _meld(heaps, root, page)


@kernel_without_refcounts
def _take_out(heaps: HostHeaps, host: AnyInt, page: AnyInt) -> None:
    """Remove a page from the heap; its descendants stay."""
    children = _gather(heaps, page)
    if heaps.before[page] == HEAP_ROOT:
        heaps.root[host] = children
    else:
        _cut(heaps, page)
        if children != NONE:
            heaps.root[host] = _meld(heaps, heaps.root[host], children)
    heaps.before[page] = HEAP_ABSENT


@kernel_without_refcounts
def _meld(heaps: HostHeaps, one: AnyInt, other: AnyInt) -> int:
    """Meld two heaps; return the root."""
    one_priority, other_priority = heaps.priority[one], heaps.priority[other]
    if one_priority < other_priority or (one_priority == other_priority and other < one):
        one, other = other, one
    first = heaps.child[one]
    heaps.sibling[other] = first
    if first != NONE:
        heaps.before[first] = other
    heaps.before[other] = one
    heaps.child[one] = other
    return int(one)


@kernel_without_refcounts
def _cut(heaps: HostHeaps, page: AnyInt) -> None:
    """Cut the subtree of a page from its parent."""
    above, following = heaps.before[page], heaps.sibling[page]
    if heaps.child[above] == page:
        heaps.child[above] = following
    else:
        heaps.sibling[above] = following
    if following != NONE:
        heaps.before[following] = above
    heaps.sibling[page] = NONE
    heaps.before[page] = HEAP_ROOT


@kernel_without_refcounts
def _gather(heaps: HostHeaps, page: AnyInt) -> int:
    """Meld the children of a page: pairs from left to right, then all from right to left; return the root or NONE."""
    one, pairs = np.int64(heaps.child[page]), np.int64(NONE)
    heaps.child[page] = NONE
    while one != NONE:
        other = np.int64(heaps.sibling[one])
        following = np.int64(NONE)
        heaps.sibling[one], heaps.before[one] = NONE, HEAP_ROOT
        if other != NONE:
            following = np.int64(heaps.sibling[other])
            heaps.sibling[other], heaps.before[other] = NONE, HEAP_ROOT
            one = np.int64(_meld(heaps, one, other))
        heaps.sibling[one] = pairs  # a list of the pairs, last first
        pairs = one
        one = following
    top = np.int64(NONE)
    while pairs != NONE:
        following = np.int64(heaps.sibling[pairs])
        heaps.sibling[pairs] = NONE
        top = pairs if top == NONE else np.int64(_meld(heaps, top, pairs))
        pairs = following
    return int(top)
