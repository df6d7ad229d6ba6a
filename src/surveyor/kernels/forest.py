"""Pages by priority, one heap for each host, so that the best page among the hosts that may be asked now is at hand.

Each host has a pairing heap of its waiting pages (Fredman, Sedgewick, Sleator and Tarjan 1986): a page that rises
costs a few writes, one that falls or leaves O(log n) on average. The hosts that may be asked stand in a queue of their
own (`queue.py`), by the priority of their best page. Ties go to the smaller page id within a host and to the smaller
host id between hosts. A page that was handed out keeps its place in no heap, but its priority is kept up to date, so
that it can come back.

28 bytes per page, 40 per host.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surveyor.arrays import AnyInt, ByteArray, FloatArray, IdArray
from surveyor.kernels._jit import bare
from surveyor.kernels.mass import LIFE, UNKNOWN, WAITING
from surveyor.kernels.queue import Queue, best, drop, place

NONE, ROOT, ABSENT, LEASED = -1, -1, -2, -3  # in `before`: top of its heap, nowhere, handed out


class Forest(NamedTuple):
    """The arrays of the heaps."""

    priority: FloatArray
    child: IdArray  # the first page below
    sibling: IdArray  # the next page below the same one
    before: IdArray  # the page whose child or sibling this is, or ROOT, ABSENT, LEASED
    host: IdArray  # of each page; NONE where it is not known yet
    root: IdArray  # the best page of each host
    awake: ByteArray  # hosts that may be asked now


def new_forest(pages: int, hosts: int) -> Forest:
    """Make room for so many pages and hosts."""
    return Forest(
        np.zeros(pages),
        np.full(pages, NONE, np.int32),
        np.full(pages, NONE, np.int32),
        np.full(pages, ABSENT, np.int32),
        np.full(pages, NONE, np.int32),
        np.full(hosts, NONE, np.int32),
        np.zeros(hosts, np.uint8),
    )


@bare
def reorder(
    forest: Forest, hosts: Queue, state: ByteArray, pages: IdArray, priorities: FloatArray, also: AnyInt
) -> int:
    """Set the priorities of pages that wait or have `also` that life; return -1, or the place of a wrong entry.

    At a page whose host is not known it stops: -2, -3, … stand for the places 0, 1, …
    """
    for entry in range(pages.shape[0]):
        page = pages[entry]
        if page < 0 or page >= state.shape[0] or np.isnan(priorities[entry]):
            return entry
        life = state[page] & LIFE
        if life == UNKNOWN:
            return entry
        if forest.host[page] == NONE:
            return -2 - entry
        if life in (WAITING, also):
            put(forest, hosts, page, priorities[entry])
    return -1


@bare
def put(forest: Forest, hosts: Queue, page: AnyInt, priority: float) -> None:
    """Put a page into the heap of its host, or change its priority."""
    where, old = forest.before[page], forest.priority[page]
    forest.priority[page] = priority
    if where == LEASED or (where != ABSENT and priority == old):
        return
    host = forest.host[page]
    if where == ABSENT:
        _add(forest, host, page)
    elif priority > old:
        if where != ROOT:
            _cut(forest, page)
            _add(forest, host, page)
    elif forest.child[page] != NONE:
        _take_out(forest, host, page)
        _add(forest, host, page)
    show(forest, hosts, host)


@bare
def lease(forest: Forest, hosts: Queue, host: AnyInt) -> int:
    """Hand out the best page of a host; -1 if it has none."""
    page = forest.root[host]
    if page != NONE:
        _take_out(forest, host, page)
        forest.before[page] = LEASED
        show(forest, hosts, host)
    return int(page)


@bare
def next_host(forest: Forest, hosts: Queue, host: AnyInt, leases: AnyInt, rests: AnyInt) -> int:
    """Hand out the best page of a host, let it rest, either, both or none; return the best host then, -1 if none."""
    if leases:
        lease(forest, hosts, host)
    if rests:
        rest(forest, hosts, host)
    return best(hosts)


@bare
def give_back(forest: Forest, hosts: Queue, page: AnyInt) -> None:
    """Put a page that was handed out into its heap again, with the priority that it has by now."""
    if forest.before[page] == LEASED:
        forest.before[page] = ABSENT
        put(forest, hosts, page, forest.priority[page])


@bare
def forget(forest: Forest, hosts: Queue, page: AnyInt) -> bool:
    """Take a page out, wherever it is; return whether it was waiting in a heap."""
    where = forest.before[page]
    if where in (ABSENT, LEASED):
        forest.before[page] = ABSENT
        return False
    _take_out(forest, forest.host[page], page)
    show(forest, hosts, forest.host[page])
    return True


@bare
def wake(forest: Forest, hosts: Queue, host: AnyInt) -> None:
    """Let a host be asked."""
    forest.awake[host] = 1
    show(forest, hosts, host)


@bare
def wake_all(forest: Forest, hosts: Queue, woken: IdArray) -> None:
    """Let hosts be asked."""
    for host in woken:
        wake(forest, hosts, host)


@bare
def rest(forest: Forest, hosts: Queue, host: AnyInt) -> None:
    """Let a host not be asked for now."""
    forest.awake[host] = 0
    drop(hosts, host)


@bare
def show(forest: Forest, hosts: Queue, host: AnyInt) -> None:
    """Rank a host by its best page, if it may be asked."""
    if not forest.awake[host]:
        return
    page = forest.root[host]
    if page == NONE:
        drop(hosts, host)
    else:
        place(hosts, host, forest.priority[page])


@bare
def _add(forest: Forest, host: AnyInt, page: AnyInt) -> None:
    """Put a page that is in no heap into that of its host."""
    forest.before[page] = ROOT
    forest.sibling[page] = NONE
    root = forest.root[host]
    forest.root[host] = page if root == NONE else _meld(forest, root, page)


@bare
def _take_out(forest: Forest, host: AnyInt, page: AnyInt) -> None:
    """Take a page out of the heap; the pages below it stay."""
    rest_ = _gather(forest, page)
    if forest.before[page] == ROOT:
        forest.root[host] = rest_
    else:
        _cut(forest, page)
        if rest_ != NONE:
            forest.root[host] = _meld(forest, forest.root[host], rest_)
    forest.before[page] = ABSENT


@bare
def _meld(forest: Forest, one: AnyInt, other: AnyInt) -> int:
    """Join two heaps; return the better top."""
    mine, its = forest.priority[one], forest.priority[other]
    if mine < its or (mine == its and other < one):
        one, other = other, one
    first = forest.child[one]
    forest.sibling[other] = first
    if first != NONE:
        forest.before[first] = other
    forest.before[other] = one
    forest.child[one] = other
    return int(one)


@bare
def _cut(forest: Forest, page: AnyInt) -> None:
    """Take a page with all below it from the page above."""
    above, following = forest.before[page], forest.sibling[page]
    if forest.child[above] == page:
        forest.child[above] = following
    else:
        forest.sibling[above] = following
    if following != NONE:
        forest.before[following] = above
    forest.sibling[page] = NONE
    forest.before[page] = ROOT


@bare
def _gather(forest: Forest, page: AnyInt) -> int:
    """Join the heaps below a page: pairs from left to right, then all from right to left; return the top or NONE."""
    one, pairs = np.int64(forest.child[page]), np.int64(NONE)
    forest.child[page] = NONE
    while one != NONE:
        other = np.int64(forest.sibling[one])
        following = np.int64(NONE)
        forest.sibling[one], forest.before[one] = NONE, ROOT
        if other != NONE:
            following = np.int64(forest.sibling[other])
            forest.sibling[other], forest.before[other] = NONE, ROOT
            one = np.int64(_meld(forest, one, other))
        forest.sibling[one] = pairs  # a list of the pairs, last first
        pairs = one
        one = following
    top = np.int64(NONE)
    while pairs != NONE:
        following = np.int64(forest.sibling[pairs])
        forest.sibling[pairs] = NONE
        top = pairs if top == NONE else np.int64(_meld(forest, top, pairs))
        pairs = following
    return int(top)
