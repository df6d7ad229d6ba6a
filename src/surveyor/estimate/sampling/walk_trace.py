"""What walks leave behind: one row for each step of each walk, in the order of time.

A walk that stays where it is takes a step, too: how long it stays is part of what makes its law known. At a row the
walk stands on `page`. If the method claims a law, that law is in proportion to `degree`, so that the weight 1/degree
makes every page count alike; where the paper counts pages as they come, degree is 1.

A segment is a stretch without a jump. `fetches` counts the pages that all walks together have asked for so far, each
once, so that methods can be compared at equal cost.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from surveyor.arrays import BoolArray, FloatArray, IdArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class WalkTrace:
    """Steps of walks; entry i of each array is that of row i."""

    walk: IdArray
    segment: IdArray  # of this walk, from 0 on
    page: IdArray
    on_topic: BoolArray
    degree: FloatArray
    fetches: IntArray

    @property
    def weight(self) -> FloatArray:
        """How much each row counts: pages off topic do not."""
        return np.where(self.on_topic, 1 / self.degree, 0.0)

    def __len__(self) -> int:
        return int(self.page.size)

    def rows(self, chosen: IntArray | BoolArray | slice) -> WalkTrace:
        """Return some of the rows, in order."""
        return WalkTrace(*(getattr(self, one.name)[chosen] for one in fields(self)))
