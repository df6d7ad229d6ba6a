"""Push tracking of a web that changes, in one kernel: the steps of `strategies/tracking.py` over known arrays.

Pages keep the number of their links here, so that the rows as last seen and the rows as they are lie alike.
"""

from __future__ import annotations

import numpy as np

from surveyor.arrays import FloatArray, IdArray
from surveyor.kernels._jit import bare
from surveyor.kernels.closure import step
from surveyor.kernels.mass import COUNT, DAMPING, LIFE, READ, WAITING, Mass, Rows, forget_touched, undo
from surveyor.kernels.queue import Queue, place, take

READS, PACE, POWER = map(np.int64, range(3))  # in `clock`


@bare
def track(mass: Mass, seen: Rows, copy: IdArray, web: Rows, queue: Queue, clock: FloatArray, reads: int) -> None:
    """Read so many pages, each when it is due; `copy` is `seen.targets`, to write to."""
    for _ in range(reads):
        page = np.int64(take(queue))
        if page < 0:
            return
        clock[READS] += 1.0
        forget_touched(mass)
        first, last = seen.start[page], seen.end[page]
        shift = web.start[page] - first
        same = True
        for link in range(first, last):
            same = same and copy[link] == web.targets[link + shift]
        if not same:
            if mass.state[page] & LIFE == READ:
                undo(mass, page, seen.targets[first:last])
            for link in range(first, last):
                copy[link] = web.targets[link + shift]
        step(mass, seen, page)
        sure = mass.settled[page] + (1.0 - mass.rules[DAMPING]) * max(mass.residual[page], 0.0)
        place(queue, page, -(clock[READS] + clock[PACE] / max(sure, 1e-12) ** clock[POWER]))
        for entry in range(mass.counts[COUNT]):
            other = np.int64(mass.touched[entry])
            if mass.state[other] & LIFE == WAITING:
                place(queue, other, mass.residual[other])
