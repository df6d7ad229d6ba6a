"""RankMass as printed: the page with the most mass is next, fetched or not; a fetched one passes its mass on again.

The queue has all pages with mass, by mass. O(links) per expansion, O(log n) per page taken from the queue.
"""

from __future__ import annotations

import numpy as np

from surveyor.arrays import AnyInt, FloatArray
from surveyor.kernels._jit import kernel_without_refcounts
from surveyor.kernels.mass import FETCHED, GONE, STATUS, WAITING, Mass, Rows, redirect_target
from surveyor.kernels.priority_queues import ABSENT, Queue, best_page, remove, set_priority

LEAST = 1e-15  # of all mass: less is not passed on


@kernel_without_refcounts
def receive(queue: Queue, mass: Mass, page: AnyInt, amount: float) -> None:
    """Add mass to a page or to the page that it redirects to."""
    page = redirect_target(mass, page)
    before = queue.priority[page] if queue.before[page] != ABSENT else 0.0
    set_priority(queue, page, before + amount)


@kernel_without_refcounts
def drop(queue: Queue, page: AnyInt) -> float:
    """Remove a page from the queue; return its mass."""
    amount = queue.priority[page] if queue.before[page] != ABSENT else 0.0
    remove(queue, page)
    return float(amount)


@kernel_without_refcounts
def expand(queue: Queue, mass: Mass, rows: Rows, page: AnyInt, damping: float) -> float:
    """Pass the mass of a page on to its links, or to the seeds if it has none; return the part that it keeps."""
    amount = drop(queue, page)
    first, last = np.int64(0), np.int64(0)
    if mass.state[page] & STATUS == FETCHED:
        first, last = rows.start[page], rows.end[page]
    for link in range(first, last):
        receive(queue, mass, np.int64(rows.targets[link]), damping * amount / (last - first))
    if first == last:
        for seed in range(mass.seeds.shape[0]):
            receive(queue, mass, np.int64(mass.seeds[seed]), damping * amount * mass.shares[seed])
    return (1.0 - damping) * amount


@kernel_without_refcounts
def next_page(queue: Queue, mass: Mass, rows: Rows, damping: float, captured: FloatArray) -> int:
    """Expand fetched pages as long as they have the most mass; return the page to fetch next, -1 if there is none."""
    while True:
        page = best_page(queue)
        if page < 0 or queue.priority[page] < LEAST:
            return -1
        status = mass.state[page] & STATUS
        if status == WAITING:
            return page
        if status in (FETCHED, GONE):
            kept = expand(queue, mass, rows, page, damping)
            captured[0] += kept if status == FETCHED else 0.0
        else:
            drop(queue, page)
