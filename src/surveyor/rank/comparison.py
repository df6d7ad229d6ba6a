"""Compare two score vectors over the same pages: distances, rank correlations and top lists.

- `l1`: Σ |a - b|. Between two distributions it ranges from 0 to 2, and half of it is the misplaced mass.
  `l2` and `l_inf` are √Σ (a - b)² and the largest |a - b|.
- `overlap`: the share of pages that the two top lists have in common, whatever their order.
- `kendall`: concordant minus discordant pairs of pages, as a share of all pairs; from -1 to 1.
  Ties count as in Kendall's tau-b: with n pairs in all, of which t are tied in one vector and u in the other,
  τ = (concordant - discordant) / √((n - t)(n - u)). Pages are sorted by one vector; the discordant pairs are
  then the inversions of the other, counted by merge sort (Knight 1966): O(n log n), exact integers.
- `kendall_a` divides by n instead, as papers often do: it cannot exceed 1 - `tie_share`.
- `weighted_tau`: every pair has weight 1/p + 1/q, where p and q are the positions of its two pages, 1 for the best
  (Vigna 2015, additive hyperbolic). So the top dominates. Positions are taken from one vector, with ties broken by the
  other, and vice versa; the result is the mean of both. Ties as in tau-b; O(n log n).
- `compare_ranks`: all of these as one `Comparison`.

Scores must be finite. L1 weighs pages by their score, and `overlap` depends on the top pages only; Kendall's tau weighs
all pairs alike: on a long tail of nearly equal scores it is dominated by unimportant pages. There, scores that should
be equal differ in their last digits, depending on the order of summation: the rank correlations other than `kendall`
round to 12 significant digits first by default. Two scores that are closer may still be rounded differently.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from surveyor.arrays import FloatArray, IntArray
from surveyor.errors import UsageError, check_range
from surveyor.frames import Tabular, draw_bars, html_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class Comparison(Tabular):
    """Distances of estimated scores from the true ones, and rank correlations."""

    l1: float  # between two distributions from 0 to 2: twice the misplaced mass
    l2: float
    l_inf: float
    kendall: float | None  # tau-a of scores rounded to 12 digits; None if either is constant
    weighted: float | None  # the same, weighted towards the top
    overlap: dict[int, float]  # top k -> share of pages in both lists
    ties: float  # share of pairs tied in either: `kendall` is at most 1 minus this

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain values, with the keys of `overlap` as text."""
        return asdict(self) | {"overlap": {str(count): share for count, share in self.overlap.items()}}

    def _columns(self) -> dict[str, Any]:
        rows = {"l1": self.l1, "l2": self.l2, "l_inf": self.l_inf, "kendall": self.kendall, "weighted": self.weighted}
        rows |= {f"overlap of the top {count:,}": share for count, share in self.overlap.items()}
        return {"measure": list(rows), "value": list(rows.values())}

    def _draw(self, axes: Axes) -> None:
        columns = self._columns()
        draw_bars(axes, columns["measure"], [value or 0.0 for value in columns["value"]], "value")

    def _html(self) -> str:
        columns = self._columns()
        return html_table(("measure", "value"), list(zip(columns["measure"], columns["value"], strict=True)))


def compare_ranks(estimate: npt.ArrayLike, truth: npt.ArrayLike, top: Sequence[int] = (10, 100)) -> Comparison:
    """Compare estimated scores with the true ones; distances use the scores without rounding.

    >>> comparison = compare_ranks([0.4, 0.3, 0.2, 0.1], [0.4, 0.3, 0.1, 0.2], top=(1, 3))
    >>> comparison.kendall, comparison.overlap, comparison.ties
    (0.6666666666666666, {1: 1.0, 3: 0.6666666666666666}, 0.0)
    """
    left, right = comparable(estimate, truth)
    return Comparison(
        l1=l1(left, right),
        l2=l2(left, right),
        l_inf=l_inf(left, right),
        kendall=kendall_a(left, right),
        weighted=weighted_tau(left, right),
        overlap={count: overlap(left, right, count) for count in top},
        ties=tie_share(left, right),
    )


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
    check_range("count", count, "[1, inf)", hint="compare the best 1 or more pages")
    left, right = comparable(one, other)
    count = min(count, left.size)
    if count == 0:
        return 1.0
    return np.intersect1d(_best(left, count), _best(right, count), assume_unique=True).size / count


def _best(scores: FloatArray, count: int) -> IntArray:
    threshold = np.partition(scores, -count)[-count]
    above = np.flatnonzero(scores > threshold)
    return np.concatenate([above, np.flatnonzero(scores == threshold)[: count - above.size]])


DIGITS = 12  # significant digits
MIN_POWER = -290  # power of ten of the smallest scores that are rounded to this many digits
TENS = np.array([float(f"1e{power}") for power in range(309)])  # a table: equal powers are equal to the last bit


def kendall(one: npt.ArrayLike, other: npt.ArrayLike) -> float:
    """Return Kendall's tau-b, 1 for the same order and -1 for the opposite one.

    If one vector is constant it orders nothing and the result is 0; if both are (or with fewer than two
    pages) they agree trivially, and it is 1.

    >>> kendall([1, 2, 3, 4], [1, 2, 4, 3])
    0.6666666666666666
    """
    pairs, tied_left, tied_right, balance = _balance(*comparable(one, other))
    if tied_left == pairs or tied_right == pairs:
        return float(tied_left == tied_right)
    return max(-1.0, min(1.0, balance / math.sqrt((pairs - tied_left) * (pairs - tied_right))))


def kendall_a(one: npt.ArrayLike, other: npt.ArrayLike, *, digits: int | None = DIGITS) -> float | None:
    """Return Kendall's tau-a; None if a vector is constant or has fewer than two pages.

    >>> kendall_a([1, 2, 3, 3], [1, 2, 4, 3])
    0.8333333333333334
    """
    left, right = comparable(one, other)
    pairs, tied_left, tied_right, balance = _balance(rounded(left, digits), rounded(right, digits))
    return None if pairs in (tied_left, tied_right) else balance / pairs


def weighted_tau(one: npt.ArrayLike, other: npt.ArrayLike, *, digits: int | None = DIGITS) -> float | None:
    """Return Vigna's weighted tau; None if a vector is constant or has fewer than two pages.

    >>> weighted_tau([4, 3, 2, 1], [4, 3, 1, 2]) > 0 > weighted_tau([4, 3, 2, 1], [1, 3, 2, 4])
    True
    """
    left, right = comparable(one, other)
    (ranks, _), (others, _) = _dense_ranks(rounded(left, digits)), _dense_ranks(rounded(right, digits))
    if left.size < 2 or not (ranks.any() and others.any()):
        return None
    return (_weighted(ranks, others) + _weighted(others, ranks)) / 2


def tie_share(one: npt.ArrayLike, other: npt.ArrayLike | None = None, *, digits: int | None = DIGITS) -> float:
    """Return the share of tied pairs; of two vectors, those tied in either; 0 without pairs.

    >>> tie_share([1, 1, 2]), tie_share([1, 1, 2], [1, 2, 2])
    (0.3333333333333333, 0.6666666666666666)
    """
    left, right = comparable(one, one if other is None else other)
    (ranks, tied), (others, tied_other) = _dense_ranks(rounded(left, digits)), _dense_ranks(rounded(right, digits))
    pairs = left.size * (left.size - 1) // 2
    keys = _keys(ranks, others)
    return (tied + tied_other - _tied_pairs(keys[1:] != keys[:-1])) / pairs if pairs else 0.0


def rounded(scores: FloatArray, digits: int | None = DIGITS) -> FloatArray:
    """Return scores rounded to this many significant digits; the order of two scores is never reversed.

    >>> rounded(np.array([0.1 + 0.2, 0.3, 12345.6789]), 3).tolist()
    [0.3, 0.3, 12300.0]
    """
    if digits is None:
        return scores
    check_range("digits", digits, "[1, 15]", hint="None compares unrounded scores")
    size = np.abs(scores)
    powers = np.log10(size, out=np.full(size.shape, float(MIN_POWER)), where=size > TENS[1] ** MIN_POWER)
    grain = np.floor(powers).astype(np.int64) + 1 - digits
    scale = TENS[np.abs(grain)]
    with np.errstate(over="ignore"):  # both branches are computed, and one is selected
        steps = np.rint(np.where(grain < 0, scores * scale, scores / scale))
        full = np.abs(steps) == TENS[digits]  # rounded up to the next power of ten: written as that power
        steps[full] /= 10
        scale = TENS[np.abs(grain + full)]
        values: FloatArray = np.where(grain + full < 0, steps / scale, steps * scale)
    return values


def comparable(one: npt.ArrayLike, other: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return both as vectors; raise an error if they cannot be compared."""
    left, right = np.asarray(one, np.float64), np.asarray(other, np.float64)
    if left.ndim != 1 or left.shape != right.shape:
        raise UsageError(
            f"scores must be vectors of one length, got shapes {left.shape} and {right.shape}",
            hint="pass one score per page, the same pages in both",
        )
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise UsageError("scores must be finite to be compared", hint="remove pages without a score")
    return left, right


def _balance(left: FloatArray, right: FloatArray) -> tuple[int, int, int, int]:
    """Return the number of all pairs, of those tied in each vector, and concordant minus discordant pairs."""
    from surveyor.kernels.kendall import count_inversions

    (ranks, tied_left), (others, tied_right) = _dense_ranks(left), _dense_ranks(right)
    pairs = left.size * (left.size - 1) // 2
    keys = _keys(ranks, others)
    ordered = pairs - tied_left - tied_right + _tied_pairs(keys[1:] != keys[:-1])
    discordant = int(count_inversions(keys % max(left.size, 1), np.empty_like(keys)))
    return pairs, tied_left, tied_right, ordered - 2 * discordant


def _weighted(ranks: IntArray, others: IntArray) -> float:
    """Return the weighted tau with positions by `ranks`, ties broken by `others`; neither is constant."""
    from surveyor.kernels.kendall import weigh_inversions

    keys = _keys(ranks, others)
    weights = 1.0 / np.arange(keys.size, 0, -1)  # from the last to the best
    ranks, others = np.divmod(keys, keys.size)
    both = np.cumsum(np.diff(keys, prepend=keys[0]) != 0)
    total = (keys.size - 1) * weights.sum()
    # A page is in as many pairs of its group as the group has other members.
    tied, tied_other, tied_both = (
        float(((np.bincount(group) - 1) * np.bincount(group, weights)).sum()) for group in (ranks, others, both)
    )
    ordered = total - tied - tied_other + tied_both
    discordant = weigh_inversions(others.copy(), weights, np.empty_like(others), np.empty_like(weights))
    return float(max(-1.0, min(1.0, (ordered - 2 * discordant) / math.sqrt((total - tied) * (total - tied_other)))))


def _keys(ranks: IntArray, others: IntArray) -> IntArray:
    """Return both ranks of each page as one sort key: by one vector, ties by the other."""
    return np.sort(ranks * ranks.size + others)


def _dense_ranks(scores: FloatArray) -> tuple[IntArray, int]:
    """Number the distinct scores from the smallest; return each page's number and the number of tied pairs."""
    order = np.argsort(scores)
    new = scores[order[1:]] != scores[order[:-1]]
    ranks = np.zeros(scores.size, np.int64)
    ranks[order[1:]] = np.cumsum(new)
    return ranks, _tied_pairs(new)


def _tied_pairs(new: npt.NDArray[np.bool_]) -> int:
    """Count the pairs inside runs; `new` marks the entries, after the first, that start a run."""
    edges = np.flatnonzero(new) + 1
    runs = np.diff(edges, prepend=0, append=new.size + 1)
    return int((runs * (runs - 1) // 2).sum())
