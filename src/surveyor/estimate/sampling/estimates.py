"""What a sample tells of the pages of its topic: shares, means, quantiles and distributions, each with its interval.

Walks visit pages in proportion to their degree, so that each row counts 1/degree (Hansen and Hurwitz): the estimate is
Σ w f / Σ w. How far it may be off is told by `spread`. Means get Student's interval, which Hall's transformation (1992)
makes longer on the side where the truth is likelier to lie far off: pages with few links are rare and weigh much, and a
sample that lacks them does not know it. Shares get Clopper and Pearson's for as many independent pages as would vary as
much (Korn and Graubard 1998): it stays between 0 and 1, and a property that was never seen may still have some share.
Quantiles are where the interval of a share begins and ends (Woodruff 1952).

Intervals know nothing of pages that no walk can get to, nor of links that nobody told the walk of.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from surveyor.arrays import BoolArray, FloatArray, IdArray, IntArray
from surveyor.errors import UsageError
from surveyor.estimate.sampling.burn_in import BURN, kept
from surveyor.estimate.sampling.laws import proportion, student, two_sided, unskewed
from surveyor.estimate.sampling.spread import (
    BLOCKS,
    LEAST,
    Blocks,
    blocks,
    runs,
    skewness,
    spread,
    stretches,
    tail_freedom,
    to_and_fro,
)
from surveyor.estimate.sampling.walk_trace import WalkTrace

LEVEL = 0.95
FEW = 10  # different pages with a property, or without it: fewer tell little of how much its share varies
CELLS = 2_000_000  # sums of blocks held at once
COLUMNS = 64  # of them looked at together


@dataclass(frozen=True, slots=True)
class Estimate:
    """One number about the pages of a topic, and the interval that holds the truth at its level."""

    value: float
    low: float
    high: float
    level: float
    se: float  # standard error
    ess: float  # as many independent uniform pages would tell as much
    rows: int
    pages: int  # different ones
    walks: int
    how: str
    share: bool = False  # of pages: value, low and high lie between 0 and 1

    @property
    def margin(self) -> float:
        """Half of the length of the interval."""
        return (self.high - self.low) / 2

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; what is not a finite number is None."""
        plain = asdict(self)
        return {name: _finite(value) for name, value in plain.items()}

    def __str__(self) -> str:
        if self.share:
            return f"{100 * self.value:.1f} % ({100 * self.low:.1f} to {100 * self.high:.1f})"
        return f"{self.value:,.4g} ({self.low:,.4g} to {self.high:,.4g})"


@dataclass(frozen=True, slots=True)
class Distribution:
    """Shares of categories, largest first or in the order of bins; each interval is for its category alone."""

    labels: tuple[Any, ...]
    shares: tuple[Estimate, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "labels": [
                _finite(label) if not isinstance(label, tuple) else list(map(_finite, label)) for label in self.labels
            ],
            "shares": [one.to_dict() for one in self.shares],
        }


class Rows(NamedTuple):
    """Rows that count: on topic, after the burn-in, with a known value. Walk after walk, each in the order of time."""

    place: IntArray  # in the trace
    walk: IdArray
    page: IdArray
    weight: FloatArray
    degree: FloatArray
    pages: int  # different ones
    walks: int

    def only(self, some: BoolArray) -> Rows:
        """Return some of the rows."""
        if some.all():
            return self
        walk, page = self.walk[some], self.page[some]
        sizes = _different(page), runs(walk)[0].size
        return Rows(self.place[some], walk, page, self.weight[some], self.degree[some], *sizes)


def values_of(trace: WalkTrace, values: npt.ArrayLike) -> FloatArray:
    """Return values as numbers, one per row."""
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise UsageError("values that are not numbers", hint="give numbers, or ask for a distribution") from None
    if numbers.shape != (len(trace),):
        raise UsageError(
            f"{numbers.size:,} values for {len(trace):,} rows of the sample", hint="give one value per row"
        )
    return numbers


def chosen(trace: WalkTrace, known: BoolArray, burn: float) -> Rows:
    """Choose the rows that count."""
    counts = trace.on_topic & (trace.degree > 0) & known
    if not counts.any():
        raise UsageError(
            "no step of the sample stands on a page on topic whose value is known",
            hint="walk longer, begin at pages on topic, or ask for a property that pages have",
        )
    place = kept(trace, burn)
    place = place[counts[place]]
    if not place.size:
        raise UsageError(
            "no step after the first tenth of each walk stands on a page on topic whose value is known",
            hint="walk longer, or ask for a property that more pages have",
        )
    degree = trace.degree[place].astype(np.float64)
    walk, page = trace.walk[place], trace.page[place]
    return Rows(place, walk, page, 1 / degree, degree, _different(page), runs(walk)[0].size)


def _known(trace: WalkTrace, values: npt.ArrayLike, burn: float) -> tuple[Rows, FloatArray]:
    """Return the rows that count and whose values are known, and these."""
    numbers = values_of(trace, values)
    rows = chosen(trace, ~np.isnan(numbers), burn)
    return rows, numbers[rows.place]


def ratio(trace: WalkTrace, values: npt.ArrayLike, *, level: float = LEVEL, burn: float = BURN) -> Estimate:
    """Estimate the mean of values over the pages of the topic; of zeros and ones it is a share.

    Parameters
    ----------
    values : one per row; NaN where it is not known, which leaves the row out.
    """
    return estimate_of(*_known(trace, values, burn), level)


def estimate_of(rows: Rows, values: FloatArray, level: float = LEVEL) -> Estimate:
    """Estimate the mean of the values of rows, or the share if there are only zeros and ones."""
    return (_share if bool(np.isin(values, (0.0, 1.0)).all()) else _mean)(rows, values, level)


def mean(trace: WalkTrace, values: npt.ArrayLike, *, level: float = LEVEL, burn: float = BURN) -> Estimate:
    """Estimate the mean of values over the pages of the topic; its interval may be longer on one side."""
    return _mean(*_known(trace, values, burn), level)


def _mean(rows: Rows, values: FloatArray, level: float) -> Estimate:
    found = _weighted(rows, values)
    t = student(valid(level), round(found.tails, 1))
    low, high = (found.value - found.se * unskewed(end, found.skew) for end in (t, -t))
    if (values >= 0).all():  # such as counts
        low = max(low, 0.0)
    if rows.walk.size == 1:
        low, high = -math.inf, math.inf
    return _told(rows, found.value, low, high, level, found.se, found.ess, "weighted mean, Hall's interval")


def share(trace: WalkTrace, flags: npt.ArrayLike, *, level: float = LEVEL, burn: float = BURN) -> Estimate:
    """Estimate the share of the pages of the topic that have a property: 1 or True; NaN is not known."""
    numbers = values_of(trace, flags)
    known = ~np.isnan(numbers)
    if not np.isin(numbers[known], (0.0, 1.0)).all():
        raise UsageError(
            f"{numbers[known & (numbers != 0) & (numbers != 1)][0]:g} is neither yes nor no, so that it has no share",
            hint="ask for its mean, or for a rule that pages meet or do not",
        )
    rows = chosen(trace, known, burn)
    return _share(rows, numbers[rows.place], level)


def _share(rows: Rows, flags: FloatArray, level: float) -> Estimate:
    seen = min(_different(rows.page[flags == 1]), _different(rows.page[flags == 0]))
    return share_of(rows, _weighted(rows, flags), level, seen)


def quantile(
    trace: WalkTrace, values: npt.ArrayLike, q: float = 0.5, *, level: float = LEVEL, burn: float = BURN
) -> Estimate:
    """Estimate the value that a share q of the pages of the topic does not exceed."""
    if not 0 < q < 1:
        raise UsageError(f"a quantile at {q:g}", hint="give a share between 0 and 1, such as 0.5 for the median")
    rows, of_row = _known(trace, values, burn)
    order = np.argsort(of_row, kind="stable")
    ordered, below = of_row[order], np.cumsum(rows.weight[order])
    below /= below[-1]

    def at(chance: float) -> float:
        return float(ordered[min(int(np.searchsorted(below, chance * (1 - 1e-12))), ordered.size - 1)])

    value = at(q)
    found = _weighted(rows, (of_row <= value).astype(np.float64))
    low, high = map(at, proportion(q, _trials(found, level), level))
    se = (high - low) / (2 * two_sided(level))
    return _told(rows, value, low, high, level, se, found.ess, "weighted quantile, Woodruff's interval")


def histogram(
    trace: WalkTrace, values: npt.ArrayLike, edges: Sequence[float], *, level: float = LEVEL, burn: float = BURN
) -> Distribution:
    """Estimate the share of pages in each bin [edge, next edge), the last with its upper edge.

    Pages outside all bins count as pages in no bin: shares need not sum to 1. Edges may be infinite.
    """
    bounds, numbers = np.asarray(edges, np.float64), values_of(trace, values)
    if bounds.size < 2 or not (np.diff(bounds) > 0).all():
        raise UsageError("edges of bins that do not rise", hint="give two rising edges or more")
    codes = np.searchsorted(bounds, numbers, side="right") - 1
    codes[numbers == bounds[-1]] = bounds.size - 2
    codes[(codes < 0) | (codes > bounds.size - 2)] = bounds.size - 1
    rows = chosen(trace, ~np.isnan(numbers), burn)
    shares = _shares(rows, codes[rows.place], bounds.size, level)
    return Distribution(tuple(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)), shares[:-1])


def distribution(
    trace: WalkTrace, categories: Sequence[Any] | npt.NDArray[Any], *, level: float = LEVEL, burn: float = BURN
) -> Distribution:
    """Estimate the share of pages in each category, largest first; None and NaN are not known."""
    labels, codes = coded(trace, categories)
    rows = chosen(trace, codes >= 0, burn)
    seen, inverse = np.unique(codes[rows.place], return_inverse=True)
    shares = _shares(rows, inverse, seen.size, level)
    order = sorted(range(seen.size), key=lambda k: (-shares[k].value, str(labels[seen[k]])))
    return Distribution(tuple(labels[seen[k]] for k in order), tuple(shares[k] for k in order))


def coded(trace: WalkTrace, categories: Sequence[Any] | npt.NDArray[Any]) -> tuple[list[Any], IntArray]:
    """Return the categories and the number of that of each row, -1 where it is not known."""
    given = np.asarray(categories)
    if given.shape != (len(trace),):
        raise UsageError(f"{given.size:,} categories for {len(trace):,} rows of the sample", hint="give one per row")
    if given.dtype != np.object_:
        labels, inverse = np.unique(given, return_inverse=True)
        codes = inverse.astype(np.int64)
        if given.dtype.kind == "f":
            codes[np.isnan(given)] = -1
        return labels.tolist(), codes
    numbers: dict[Any, int] = {}
    codes = np.fromiter(
        (-1 if one is None or one != one else numbers.setdefault(one, len(numbers)) for one in given),
        np.int64,
        given.size,
    )
    return list(numbers), codes


class Weighted(NamedTuple):
    """A weighted mean, and how much it varies."""

    value: float
    variance: float
    freedom: float
    tails: float  # degrees of freedom where few rows matter more than others; binomial intervals know of that
    skew: float  # and of this: the skewness of the mean
    ess: float

    @property
    def se(self) -> float:
        """The standard error."""
        return math.sqrt(self.variance)


def _weighted(rows: Rows, values: FloatArray) -> Weighted:
    found, total = blocks(rows.walk), float(rows.weight.sum())
    value = float((rows.weight * values).sum() / total)
    off = values - value
    around = float((rows.weight * off**2).sum() / total)
    of_row = rows.weight * off / total
    influence = found.sums(of_row)
    variance, freedom = spread(found.walk, influence).one()
    variance = max(variance, to_and_fro(of_row.size) * float((of_row**2).sum()))  # where rows of a block cancel out
    if around <= (1e-12 * max(abs(value), float(abs(values).max()))) ** 2:  # a constant, but for rounding
        return Weighted(value, 0.0, freedom, freedom, 0.0, _plain_ess(found, rows))
    sums = stretches(found.walk, influence, freedom)
    return Weighted(value, variance, freedom, tail_freedom(sums, freedom), skewness(sums), around / variance)


def share_of(rows: Rows, found: Weighted, level: float, seen: int) -> Estimate:
    """Return a share with its interval.

    If only few different pages were `seen` with it (or without), how much it varies is not known from them: on one page
    of little weight it hardly does, but others of its kind may have gone unseen. Then it is worth no more independent
    pages than the weights of all rows are.
    """
    value = min(max(found.value, 0.0), 1.0)
    plain = float(rows.weight.sum() ** 2 / (rows.weight**2).sum())
    found = found._replace(ess=min(found.ess, plain * max(1.0, seen / FEW)))
    low, high = proportion(value, _trials(found, level), valid(level))
    how = "weighted share, Clopper and Pearson's interval at the effective sample size"
    return _told(rows, value, low, high, level, found.se, found.ess, how, share=True)


def _trials(found: Weighted, level: float) -> float:
    """Return how many independent pages make an interval as long as Student's."""
    return found.ess * (two_sided(valid(level)) / student(level, round(found.freedom, 1))) ** 2


def _shares(rows: Rows, codes: IntArray, kinds: int, level: float) -> tuple[Estimate, ...]:
    """Estimate the shares of all categories at once."""
    total = float(rows.weight.sum())
    most = max(256, min(BLOCKS, CELLS // kinds))
    found = blocks(rows.walk, most, min(LEAST, max(1, most // rows.walks)))
    cells, all_of_block = found.sums_by(codes, kinds, rows.weight) / total, found.sums(rows.weight) / total
    values = cells.sum(axis=0)
    squares = np.bincount(codes, weights=(rows.weight / total) ** 2, minlength=kinds)
    least = to_and_fro(codes.size) * (squares * (1 - values) ** 2 + (squares.sum() - squares) * values**2)
    plain = _plain_ess(found, rows)
    _, numbers = np.unique(rows.page, return_inverse=True)
    pairs = np.unique(codes * np.int64(rows.pages) + numbers)
    pages = np.bincount(pairs // rows.pages, minlength=kinds)
    told: list[Estimate] = []
    for first in range(0, kinds, COLUMNS):
        part = slice(first, first + COLUMNS)
        off = cells[:, part] - all_of_block[:, None] * values[part]
        variances, freedoms = spread(found.walk, off)
        columns = zip(values[part], np.maximum(variances, least[part]), freedoms, strict=True)
        for value, variance, freedom in columns:
            around = value * (1 - value)
            ess = float(around / variance) if around > 1e-12 else plain
            one = Weighted(float(value), float(variance), float(freedom), float(freedom), 0.0, ess)
            told.append(share_of(rows, one, level, int(pages[len(told)])))
    return tuple(told)


def _plain_ess(found: Blocks, rows: Rows) -> float:
    """Return how many independent pages the rows are worth where values do not differ: as many as for degrees."""
    total = float(rows.weight.sum())
    off = np.log(rows.degree)
    off -= (rows.weight * off).sum() / total
    variance = spread(found.walk, found.sums(rows.weight * off / total)).one()[0]
    around = float((rows.weight * off**2).sum() / total)
    worth = around / variance if around > 1e-12 and variance > 0 else math.inf
    return float(min(worth, total**2 / float((rows.weight**2).sum()), rows.pages))


def _told(
    rows: Rows, value: float, low: float, high: float, level: float, se: float, ess: float, how: str, *,
    share: bool = False,
) -> Estimate:  # fmt: skip
    return Estimate(value, low, high, level, se, ess, int(rows.walk.size), rows.pages, rows.walks, how, share)


def _different(page: IdArray) -> int:
    """Count the different pages; ids that are not much larger than rows are many are counted without sorting."""
    if page.size == 0 or page.max() > 16 * page.size or page.min() < 0:
        return int(np.unique(page).size)
    return int(np.count_nonzero(np.bincount(page)))


def valid(level: float) -> float:
    """Return a level, if it is one."""
    if not 0 < level < 1:
        raise UsageError(f"an interval at level {level:g}", hint="give a level between 0 and 1, such as 0.95")
    return level


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
