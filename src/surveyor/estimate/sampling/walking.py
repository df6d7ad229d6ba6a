"""Several walks side by side: the pages that a round needs are read together, then the walks act in order.

What a walk does depends on what was read and on chance, which goes by walk and round: not on which page came first. So
a sample that was stopped and begins anew with the pages it has read comes to the same steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surveyor.arrays import IntArray
from surveyor.estimate.sampling.ground import WalkGraph
from surveyor.estimate.sampling.walk_methods import WalkPlan
from surveyor.estimate.sampling.walk_trace import WalkTrace
from surveyor.estimate.sampling.walks import Row, Walk

UNLIMITED = 1 << 62


class PythonWalks:
    """Walks over pages that are read as they are needed."""

    def __init__(self, ground: WalkGraph, starts: Sequence[int], plan: WalkPlan) -> None:
        self.ground, self.full = ground, False
        self._rows: list[Row] = []
        self._fetches: list[int] = []
        self.asked: dict[int, None] = {}  # pages that were needed, in order
        self.walks = [Walk(number, start, ground, plan, self._rows.append) for number, start in enumerate(starts)]
        self._running = [walk.needs() for walk in self.walks]
        self._needs = [next(walk) for walk in self._running]

    @property
    def lost(self) -> IntArray:
        """The walks that never found the topic."""
        return np.array([walk.number for walk in self.walks if walk.lost], np.int64)

    @property
    def steps(self) -> int:
        """How many steps were taken."""
        return len(self._rows)

    def missing(self, fetches: int = UNLIMITED) -> list[int]:
        """Return the pages that must be read before the next round; `full` is set if there is no room for them."""
        new = [
            page for page in dict.fromkeys(page for needs in self._needs for page in needs) if page not in self.asked
        ]
        if len(self.asked) + len(new) > fetches:
            self.full = True
            return []
        self.asked.update(dict.fromkeys(new))
        return [page for page in new if not self.ground.has(page)]

    def round(self) -> None:
        """Let each walk make one micro-step; all that is needed was read."""
        self._needs = [next(walk, []) for walk in self._running]
        self._fetches += [len(self.asked)] * (len(self._rows) - len(self._fetches))
        self.ground.round += 1

    def trace(self) -> WalkTrace:
        """Return all steps so far."""
        table = np.array(self._rows, np.int64).reshape(-1, 5).T
        ids = table[:3].astype(np.int32)
        return WalkTrace(
            ids[0], ids[1], ids[2], table[3].astype(np.bool_), table[4].astype(np.float64),
            np.array(self._fetches, np.int64),
        )  # fmt: skip
