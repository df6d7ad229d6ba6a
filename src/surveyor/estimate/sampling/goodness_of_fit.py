"""Chi-square goodness of fit of a sampled distribution to a known one, corrected for autocorrelated walks.

Steps of walks are not independent, so the Pearson statistic is too large by design effects n / ESS that differ between
cells. It is divided by their mean, estimated from the variances of the shares (Rao and Scott 1981, first order):

    X² = (k − 1) · Σ (p − q)² / q  /  Σ var(p) / q,

which is about chi-square with k − 1 degrees of freedom, or F, to account for the estimated variances. Cells with an
expected count of fewer than 5 effective pages are merged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surveyor.arrays import FloatArray, IntArray
from surveyor.errors import UsageError
from surveyor.estimate.sampling.distributions import f_tail
from surveyor.estimate.sampling.estimates import encode_categories, select_rows
from surveyor.estimate.sampling.standard_errors import BURN_IN, split_into_blocks, variance_of_sum
from surveyor.estimate.sampling.walk_trace import WalkTrace

MIN_EXPECTED = 5.0  # effective pages in a cell


@dataclass(frozen=True, slots=True)
class GoodnessOfFit:
    """Result of a goodness-of-fit test; a small p-value means that the distributions differ."""

    statistic: float  # corrected chi-square
    df: int  # degrees of freedom
    p_value: float
    design_effect: float  # steps per independent uniform page, averaged over the cells
    cells: int  # after merging
    merged: int  # categories in the merged cell
    ess: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return asdict(self)


def goodness_of_fit(
    trace: WalkTrace,
    categories: Sequence[Any] | npt.NDArray[Any],
    expected: Mapping[Any, float],
    *,
    burn_in: float = BURN_IN,
) -> GoodnessOfFit:
    """Test the distribution of categories over the pages of the topic against a known one.

    Parameters
    ----------
    categories : one per row; rows with None or NaN are ignored.
    expected : known share or number of pages by category; normalised to sum to 1.
    """
    labels, codes = encode_categories(trace, categories)
    known = np.array([float(share) for share in expected.values()])
    if not (known.size and np.isfinite(known).all() and (known >= 0).all() and known.max() > 0):
        raise UsageError(
            "expected must give each category a finite share or count of at least 0, with a positive sum",
            hint="for example {'a': 0.25, 'b': 0.75}",
        )
    code_of = {label: code for code, label in enumerate(expected)}
    # A category that the known distribution excludes cannot enter chi-square.
    impossible = [label for label in labels if label not in code_of or known[code_of[label]] == 0]
    if impossible:
        raise UsageError(
            f"the sample has category {impossible[0]!r}, which expected gives no share",
            hint="add the category, or merge it into one that both have",
        )
    table = np.array([code_of[label] for label in labels] + [-1])
    known = known / known.max()  # the sum of large numbers may exceed any float
    return _test(_Cells(trace, table[codes], known.size, burn_in), known / known.sum())


class _Cells:
    """Category shares of a sample, and the block sums that their variances are computed from."""

    def __init__(self, trace: WalkTrace, codes: IntArray, categories: int, burn_in: float) -> None:
        rows = select_rows(trace, codes >= 0, burn_in)
        total = rows.weight.sum()
        self.rows = rows.walk.size
        self.blocks = split_into_blocks(rows.walk)
        self.sums = self.blocks.category_sums(codes[rows.trace_index], categories, rows.weight) / total
        self.block_weights = self.blocks.sums(rows.weight) / total
        self.shares = self.sums.sum(axis=0)
        variance = self.variances(np.arange(categories))[0]
        population_variance = self.shares * (1 - self.shares)
        single_category = population_variance.sum() <= 1e-12
        self.ess = float(rows.pages if single_category else population_variance.sum() / variance.sum())

    def variances(self, cell_of: IntArray) -> tuple[FloatArray, float]:
        """Return the variances of the shares of merged cells, and their median degrees of freedom."""
        sums, shares = _merge(self.sums, cell_of), _merge(self.shares, cell_of)
        variance, df = variance_of_sum(self.blocks.walk, sums - self.block_weights[:, None] * shares)
        return variance, float(np.median(df))


def _test(cells: _Cells, known: FloatArray) -> GoodnessOfFit:
    ess, difference = cells.ess, cells.shares - known
    cell_of = _merged_cells(known * ess)
    known, difference = _merge(known, cell_of), _merge(difference, cell_of)
    if known.size < 2:
        raise UsageError(
            f"an effective sample size of {ess:.0f} is too small for two cells", hint="walk longer, or merge categories"
        )
    variance, variance_df = cells.variances(cell_of)
    df = known.size - 1
    scale = float((variance / known).sum())
    if scale <= 1e-12 * float((known * (1 - known) / known).sum()):  # a single category has no variance
        scale = df / ess
    statistic = df * float((difference**2 / known).sum()) / scale
    p_value = f_tail(statistic / df, df, df * variance_df)
    merged = int((cell_of == cell_of.max()).sum()) if known.size < cell_of.size else 0
    return GoodnessOfFit(statistic, df, p_value, cells.rows * scale / df, known.size, merged, ess)


def _merged_cells(expected: FloatArray) -> IntArray:
    """Return the cell of each category: small categories, smallest first, share the last cell until it is large."""
    order = np.argsort(expected, kind="stable")
    total, small = 0.0, 0
    while small < order.size and (expected[order[small]] < MIN_EXPECTED or 0 < total < MIN_EXPECTED):
        total += expected[order[small]]
        small += 1
    cell_of = np.empty(expected.size, np.int64)
    cell_of[np.sort(order[small:])] = np.arange(order.size - small)
    cell_of[order[:small]] = order.size - small
    return cell_of


def _merge(values: FloatArray, cell_of: IntArray) -> FloatArray:
    """Sum the last axis by cell."""
    indicator = np.zeros((cell_of.size, int(cell_of.max()) + 1))
    indicator[np.arange(cell_of.size), cell_of] = 1.0
    return values @ indicator
