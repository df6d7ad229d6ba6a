"""Compare two score vectors over the same pages: distance, order, and the best.

- `l1`: Σ |a - b|. Between two distributions it runs from 0 to 2, and half of it is the share misplaced.
- `kendall`: of all pairs of pages, how many more are in the same order than in opposite order; from -1 to 1.
  Ties count as in Kendall's tau-b: with n pairs in all, of which t are tied in one vector and u in the other,
  τ = (concordant - discordant) / √((n - t)(n - u)). Pages are sorted by one vector; the discordant pairs are
  then the inversions of the other, counted by merge sort (Knight 1966): O(n log n), exact integers.
- `overlap`: the share of pages that the best of both have in common. It says nothing of their order.

Scores must be finite. L1 weighs pages by their score, Kendall weighs all pairs alike: on a long tail of
nearly equal scores it is dominated by pages that nobody asks for, so compare the pages that matter.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from surveyor.arrays import FloatArray, IntArray
from surveyor.errors import UsageError


def l1(one: npt.ArrayLike, other: npt.ArrayLike) -> float:
    """Return the sum of absolute differences.

    >>> l1([0.5, 0.25, 0.25], [0.5, 0.5, 0.0])
    0.5
    """
    left, right = _pair(one, other)
    return float(np.abs(left - right).sum())


def kendall(one: npt.ArrayLike, other: npt.ArrayLike) -> float:
    """Return Kendall's tau-b, 1 for the same order and -1 for the opposite one.

    If one vector is constant it orders nothing and the answer is 0; if both are (or with fewer than two
    pages) they agree on everything there is, and it is 1.

    >>> kendall([1, 2, 3, 4], [1, 2, 4, 3])
    0.6666666666666666
    """
    from surveyor.kernels.kendall import count_inversions

    left, right = _pair(one, other)
    (left_ranks, tied_left), (right_ranks, tied_right) = _dense_ranks(left), _dense_ranks(right)
    pairs = left.size * (left.size - 1) // 2
    if tied_left == pairs or tied_right == pairs:
        return float(tied_left == tied_right)
    keys = np.sort(left_ranks * left.size + right_ranks)  # by one vector, ties by the other
    tied_both = _tied_pairs(keys[1:] != keys[:-1])
    discordant = int(count_inversions(keys % left.size, np.empty_like(keys)))
    balance = pairs - tied_left - tied_right + tied_both - 2 * discordant
    return max(-1.0, min(1.0, balance / math.sqrt((pairs - tied_left) * (pairs - tied_right))))


def overlap(one: npt.ArrayLike, other: npt.ArrayLike, count: int) -> float:
    """Return the share of pages that the best `count` of both have in common; ties are broken by id.

    >>> overlap([0.4, 0.3, 0.2, 0.1], [0.4, 0.1, 0.2, 0.3], 2)
    0.5
    """
    if count < 1:
        raise UsageError(f"the best {count} pages are none", hint="compare 1 or more")
    left, right = _pair(one, other)
    count = min(count, left.size)
    if count == 0:
        return 1.0
    return np.intersect1d(_best(left, count), _best(right, count), assume_unique=True).size / count


def _pair(one: npt.ArrayLike, other: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    left, right = np.asarray(one, np.float64), np.asarray(other, np.float64)
    if left.ndim != 1 or left.shape != right.shape:
        raise UsageError(
            f"scores of shape {left.shape} and {right.shape} cannot be compared",
            hint="give one score per page, the same pages in both",
        )
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise UsageError("scores must be finite to be compared", hint="leave out pages without a score")
    return left, right


def _dense_ranks(scores: FloatArray) -> tuple[IntArray, int]:
    """Number the distinct scores from the smallest; return each page's number, and how many pairs are tied."""
    order = np.argsort(scores)
    new = scores[order[1:]] != scores[order[:-1]]
    ranks = np.zeros(scores.size, np.int64)
    ranks[order[1:]] = np.cumsum(new)
    return ranks, _tied_pairs(new)


def _tied_pairs(new: npt.NDArray[np.bool_]) -> int:
    """Count the pairs inside runs; `new` marks the entries, after the first, that begin a run."""
    edges = np.flatnonzero(new) + 1
    runs = np.diff(edges, prepend=0, append=new.size + 1)
    return int((runs * (runs - 1) // 2).sum())


def _best(scores: FloatArray, count: int) -> IntArray:
    edge = np.partition(scores, -count)[-count]
    above = np.flatnonzero(scores > edge)
    return np.concatenate([above, np.flatnonzero(scores == edge)[: count - above.size]])
