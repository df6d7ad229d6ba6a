"""The steps of random walks as columns: one row per step of each walk, in order of time.

A walk that stays on its page also takes a step: the time spent on a page is part of the stationary distribution. For
exact methods that distribution is proportional to `degree`, so the weight 1/degree makes the sample uniform; where the
published methods count pages unweighted, degree is 1.

A segment is a run of steps without a jump. `fetches` counts the distinct pages that all walks together have requested
so far, so that methods can be compared at equal cost.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from surveyor.arrays import BoolArray, FloatArray, IdArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class WalkTrace:
    """Steps of walks, as parallel arrays."""

    walk: IdArray
    segment: IdArray  # of this walk, from 0
    page: IdArray  # the current page
    on_topic: BoolArray
    degree: FloatArray
    fetches: IntArray
    drawn: IdArray | None = None  # the neighbour drawn first at the step, -1 if none; None if not recorded

    @property
    def weight(self) -> FloatArray:
        """Weight of each row: 1/degree on topic, 0 off topic."""
        return np.where(self.on_topic, 1 / self.degree, 0.0)

    @property
    def is_walked(self) -> bool:
        """Whether any walk has two steps; independent draws have one each."""
        return bool((np.bincount(self.walk) > 1).any()) if self.walk.size else False

    def __len__(self) -> int:
        return int(self.page.size)

    def rows(self, chosen: IntArray | BoolArray | slice) -> WalkTrace:
        """Return the chosen rows, in order."""
        return WalkTrace(**{name: getattr(self, name)[chosen] for name in self._recorded})

    @property
    def _recorded(self) -> list[str]:
        return [column.name for column in fields(self) if getattr(self, column.name) is not None]

    @classmethod
    def concatenate(cls, parts: list[WalkTrace]) -> WalkTrace:
        """Join traces end to end."""
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in parts[0]._recorded})
