"""Push tracking of a web that changes, in one kernel: the steps of `crawler/strategies/tracking.py` over known arrays.

All pages are known, and none gets more links than it had, so that the rows as last seen lie as the rows of the web.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surveyor.arrays import FloatArray, IdArray, IntArray
from surveyor.kernels._jit import bare
from surveyor.kernels.closure import step
from surveyor.kernels.mass import COUNT, DAMPING, LIFE, READ, WAITING, Mass, Rows, forget_touched, undo
from surveyor.kernels.queue import Queue, place, take

READS, PACE = map(np.int64, range(2))  # in `clock`: pages read so far, reads from one visit to the next at importance 1
LEAST = 1e-12  # importance below which pages are read alike


class Seen(NamedTuple):
    """The rows as last seen: `rows` to read, and its `end` and `targets` to write."""

    rows: Rows
    end: IntArray
    targets: IdArray


@bare
def track(mass: Mass, seen: Seen, web: Rows, queue: Queue, clock: FloatArray, reads: int) -> None:
    """Read so many pages, each when it is due."""
    for _ in range(reads):
        page = np.int64(take(queue))
        if page < 0:
            return
        clock[READS] += 1.0
        forget_touched(mass)
        first, last, end = web.start[page], seen.end[page], web.end[page]
        same = last == end
        for link in range(first, min(last, end)):
            same = same and seen.targets[link] == web.targets[link]
        if not same:
            if mass.state[page] & LIFE == READ:
                undo(mass, page, seen.rows.targets[first:last])
            for link in range(first, end):
                seen.targets[link] = web.targets[link]
            seen.end[page] = end
        step(mass, seen.rows, page)
        sure = mass.settled[page] + (1.0 - mass.rules[DAMPING]) * max(mass.residual[page], 0.0)
        place(queue, page, -(clock[READS] + clock[PACE] / math.sqrt(max(sure, LEAST))))
        for entry in range(mass.counts[COUNT]):
            other = np.int64(mass.touched[entry])
            if mass.state[other] & LIFE == WAITING:
                place(queue, other, mass.residual[other])
