"""Does a sampled distribution fit a known one? Chi-square, corrected for walks.

Steps of walks are not independent draws, so that the plain statistic is too large by design effects n / ESS that differ
from cell to cell. It is divided by their mean, as variances of shares tell it (Rao and Scott 1981, first order):

    X² = (k − 1) · Σ (p − q)² / q  /  Σ var(p) / q,

whose law is about chi-square with k − 1 degrees of freedom, or Fisher's as far as variances are not known better.
Cells in which fewer than 5 effective pages are expected are taken together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surveyor.arrays import FloatArray, IntArray
from surveyor.errors import UsageError
from surveyor.estimate.sampling.burn_in import BURN
from surveyor.estimate.sampling.estimates import chosen, coded
from surveyor.estimate.sampling.laws import f_tail
from surveyor.estimate.sampling.spread import blocks, spread
from surveyor.estimate.sampling.walk_trace import WalkTrace

EXPECTED = 5.0  # effective pages in a cell, at the least


@dataclass(frozen=True, slots=True)
class Fit:
    """A test of fit: a small p-value says that the distributions differ."""

    statistic: float  # corrected
    freedom: int
    p_value: float
    design_effect: float  # how many steps tell as much as one uniform page, on average over the cells
    cells: int  # after small ones were taken together
    merged: int  # categories taken together
    ess: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def fit(
    trace: WalkTrace, categories: Sequence[Any] | npt.NDArray[Any], expected: Mapping[Any, float], *, burn: float = BURN
) -> Fit:
    """Test the distribution of categories over the pages of the topic against a known one.

    Parameters
    ----------
    categories : one per row; None and NaN are not known.
    expected : the known share or number of pages of each category; scaled to sum 1.
    """
    labels, codes = coded(trace, categories)
    known = np.array([float(share) for share in expected.values()])
    if not (known.size and np.isfinite(known).all() and (known >= 0).all() and known.sum() > 0):
        raise UsageError("no known distribution", hint="give each category a share or a number, 0 or more")
    number = {label: place for place, label in enumerate(expected)}
    strange = [label for label in labels if label not in number or known[number[label]] == 0]
    # What the known distribution rules out has no place in chi-square: it shows in the sentence, not in a p-value.
    if strange:
        raise UsageError(
            f"the known distribution has no page of category {strange[0]!r}, and the sample has",
            hint="add the category, or merge it into one that both have",
        )
    table = np.array([number[label] for label in labels] + [-1])
    return _compared(_Cells(trace, table[codes], known.size, burn), known / known.sum())


class _Cells:
    """Shares of categories of one sample, with what their variances are computed from."""

    def __init__(self, trace: WalkTrace, codes: IntArray, kinds: int, burn: float) -> None:
        rows = chosen(trace, codes >= 0, burn)
        total = rows.weight.sum()
        self.rows = rows.walk.size
        self.blocks = blocks(rows.walk)
        self.sums = self.blocks.sums_by(codes[rows.place], kinds, rows.weight) / total
        self.whole = self.blocks.sums(rows.weight) / total
        self.shares = self.sums.sum(axis=0)
        variance = self.spread(np.arange(kinds))[0]
        around = self.shares * (1 - self.shares)
        one_only = around.sum() <= 1e-12  # category: as many pages as are different, at most
        self.ess = float(rows.pages if one_only else around.sum() / variance.sum())

    def spread(self, merged: IntArray) -> tuple[FloatArray, float]:
        """Return the variances of the shares of merged cells, and their degrees of freedom."""
        sums, shares = _merge(self.sums, merged), _merge(self.shares, merged)
        told = spread(self.blocks.walk, sums - self.whole[:, None] * shares)
        return told.variance, float(np.median(told.freedom))


def _compared(found: _Cells, known: FloatArray) -> Fit:
    """Compute the corrected statistic over cells that are large enough."""
    ess, apart = found.ess, found.shares - known
    merged = _merged(known * ess)
    known, apart = _merge(known, merged), _merge(apart, merged)
    if known.size < 2:
        raise UsageError(
            f"an effective sample size of {ess:.0f} fills one cell only", hint="walk longer, or merge categories"
        )
    variance, below = found.spread(merged)
    free = known.size - 1
    spread_out = float((variance / known).sum())
    if spread_out <= 1e-12 * float((known * (1 - known) / known).sum()):  # all in one category: as if it fitted
        spread_out = free / ess
    statistic = free * float((apart**2 / known).sum()) / spread_out
    p_value = f_tail(statistic / free, free, free * below)
    together = int((merged == merged.max()).sum()) if known.size < merged.size else 0
    return Fit(statistic, free, p_value, found.rows * spread_out / free, known.size, together, ess)


def _merged(expected: FloatArray) -> IntArray:
    """Number the cells such that small ones, smallest first, share the last number until it is large enough."""
    order = np.argsort(expected, kind="stable")
    total, few = 0.0, 0
    while few < order.size and (expected[order[few]] < EXPECTED or 0 < total < EXPECTED):
        total += expected[order[few]]
        few += 1
    number = np.empty(expected.size, np.int64)
    number[np.sort(order[few:])] = np.arange(order.size - few)
    number[order[:few]] = order.size - few
    return number


def _merge(values: FloatArray, number: IntArray) -> FloatArray:
    """Add up the last axis by number."""
    into = np.zeros((number.size, int(number.max()) + 1))
    into[np.arange(number.size), number] = 1.0
    return values @ into
