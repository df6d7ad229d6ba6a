"""Compare two score vectors over the same pages: distance, order and top pages.

- `l1`: Σ |a - b|. Between two distributions it ranges from 0 to 2, and half of it is the misplaced share.
  `l2` and `l_inf` are √Σ (a - b)² and the largest |a - b|.
- `overlap`: the share of pages that the two top lists have in common, whatever their order.
- `compare_ranks`: these and the rank correlations (`order.py`), as one `Comparison`.

L1 weighs pages by their score, and `overlap` depends on the top pages only; Kendall's tau weighs all pairs alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surveyor.arrays import FloatArray, IntArray
from surveyor.errors import UsageError
from surveyor.rank.compare.order import comparable, kendall_a, tie_share, weighted_tau


@dataclass(frozen=True, slots=True)
class Comparison:
    """Distances of estimated scores from the true ones, and rank correlations."""

    l1: float  # between two distributions from 0 to 2: twice the misplaced share
    l2: float
    l_inf: float
    kendall: float | None  # tau-a of scores rounded to 12 digits; None if either is constant
    weighted: float | None  # the same, weighted towards the top
    overlap: dict[int, float]  # top k -> share of pages in both lists
    ties: float  # share of pairs tied in either: `kendall` is at most 1 minus this

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain values, with the keys of `overlap` as text."""
        return asdict(self) | {"overlap": {str(count): share for count, share in self.overlap.items()}}


def compare_ranks(estimate: npt.ArrayLike, truth: npt.ArrayLike, top: Sequence[int] = (10, 100)) -> Comparison:
    """Compare estimated scores with the true ones; distances use the scores as given.

    >>> comparison = compare_ranks([0.4, 0.3, 0.2, 0.1], [0.4, 0.3, 0.1, 0.2], top=(1, 3))
    >>> comparison.kendall, comparison.overlap, comparison.ties
    (0.6666666666666666, {1: 1.0, 3: 0.6666666666666666}, 0.0)
    """
    left, right = comparable(estimate, truth)
    return Comparison(
        l1(left, right), l2(left, right), l_inf(left, right), kendall_a(left, right), weighted_tau(left, right),
        {count: overlap(left, right, count) for count in top}, tie_share(left, right),
    )  # fmt: skip


def l1(one: npt.ArrayLike, other: npt.ArrayLike) -> float:
    """Return the sum of absolute differences.

    >>> l1([0.5, 0.25, 0.25], [0.5, 0.5, 0.0])
    0.5
    """
    left, right = comparable(one, other)
    return float(np.abs(left - right).sum())


def l2(one: npt.ArrayLike, other: npt.ArrayLike) -> float:
    """Return the root of the sum of squared differences.

    >>> l2([3.0, 1.0], [0.0, 5.0])
    5.0
    """
    left, right = comparable(one, other)
    return float(np.linalg.norm(left - right))


def l_inf(one: npt.ArrayLike, other: npt.ArrayLike) -> float:
    """Return the largest absolute difference.

    >>> l_inf([0.5, 0.25, 0.25], [0.5, 0.5, 0.0])
    0.25
    """
    left, right = comparable(one, other)
    return float(np.abs(left - right).max(initial=0.0))


def overlap(one: npt.ArrayLike, other: npt.ArrayLike, count: int) -> float:
    """Return the share of pages that the two top `count` lists have in common; ties are broken by id.

    >>> overlap([0.4, 0.3, 0.2, 0.1], [0.4, 0.1, 0.2, 0.3], 2)
    0.5
    """
    if count < 1:
        raise UsageError(f"the best {count} pages are none", hint="compare 1 or more")
    left, right = comparable(one, other)
    count = min(count, left.size)
    if count == 0:
        return 1.0
    return np.intersect1d(_best(left, count), _best(right, count), assume_unique=True).size / count


def _best(scores: FloatArray, count: int) -> IntArray:
    edge = np.partition(scores, -count)[-count]
    above = np.flatnonzero(scores > edge)
    return np.concatenate([above, np.flatnonzero(scores == edge)[: count - above.size]])
