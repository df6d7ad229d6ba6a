"""Estimates over the pages of a topic: shares, means, quantiles, distributions, size; each with a confidence interval.

Walks visit pages in proportion to their degree, so each row has the importance weight 1/degree, and the estimate is the
ratio Σ w f / Σ w (Hansen and Hurwitz 1943). `standard_errors` gives its variance.

- *Means* have Student's t interval with Hall's transformation (1992), which lengthens the side where the true mean is
  more likely to lie: pages with few links are rare and have large weights, and a sample without them does not show it.
- *Shares* have the Clopper-Pearson interval at the effective sample size (Korn and Graubard 1998): it stays between 0
  and 1, and a property that was never observed may still have a positive share.
- *Quantiles* invert the interval of a share (Woodruff 1952).

Intervals do not account for pages that no walk can reach, nor for in-links that the walks did not know.

**Topic size** by collisions (capture-recapture). Steps of two different walks are on the same page with probability Σ
d² / (Σ d)². Under the stationary distribution, the mean of d is Σ d² / Σ d and that of 1/d is N / Σ d, so

    N = Σ (Σ d of one walk) (Σ 1/d of another) / collisions,

over ordered pairs of different walks, of any lengths (Katzir, Liberty and Somekh 2011). Steps within one walk are
dependent and are not compared.

The variance of log N is estimated from pairs of batches of walks: if a pair of batches contributes h, the variance is Σ
(Σ h of the pairs of a batch)² − Σ h², which includes the covariance of any two pairs with a batch in common (Aronow,
Samii and Assenova 2015). Neighbouring batches are correlated, so the first sum comes from `variance_of_sum`. The
inverse of the variance is an effective number of independent collisions, with Garwood's interval. Without a collision
the size is at least the number of distinct pages, and no more is known.

The size is that of the part of the topic that the walks explore: walks in disconnected parts never collide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from surveyor.arrays import BoolArray, FloatArray, IdArray, IntArray
from surveyor.errors import UsageError, check_range
from surveyor.estimate.sampling.distributions import (
    clopper_pearson,
    garwood,
    hall_quantile,
    normal_two_sided,
    student_two_sided,
)
from surveyor.estimate.sampling.standard_errors import (
    BURN_IN,
    MAX_BLOCKS,
    MIN_BLOCKS_PER_WALK,
    Blocks,
    after_burn_in,
    batch_sums,
    min_variance_ratio,
    runs,
    satterthwaite_df,
    skewness,
    split_into_blocks,
    variance_of_sum,
)
from surveyor.estimate.sampling.walk_trace import WalkTrace

LEVEL = 0.95
MIN_DISTINCT = 10  # distinct pages with and without a property that its variance can be estimated from
MAX_CELLS = 2_000_000  # block sums in memory at once
COLUMN_BATCH = 64  # categories whose variances are estimated together
MAX_BATCHES = 64  # that are compared; more walks are grouped, and walks of one group are not compared
MAX_COUNTS = 4_000_000  # page counts by batch in memory at once


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate over the pages of a topic, with its confidence interval."""

    value: float
    low: float
    high: float
    level: float
    standard_error: float
    ess: float  # effective sample size: number of independent uniform pages with the same variance
    steps: int
    pages: int  # distinct
    walks: int
    method: str
    is_share: bool = False  # value, low and high are proportions between 0 and 1

    @property
    def margin(self) -> float:
        """Half the length of the interval."""
        return (self.high - self.low) / 2

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON; None replaces numbers that are not finite."""
        return {name: _finite(value) for name, value in asdict(self).items()}

    def __str__(self) -> str:
        if self.is_share:
            return f"{100 * self.value:.1f} % ({100 * self.low:.1f} to {100 * self.high:.1f})"
        return f"{self.value:,.4g} ({self.low:,.4g} to {self.high:,.4g})"


@dataclass(frozen=True, slots=True)
class Distribution:
    """Shares of categories, largest first, or of bins in order; intervals are marginal, not simultaneous."""

    labels: tuple[Any, ...]
    shares: tuple[Estimate, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the labels and shares for JSON."""
        return {
            "labels": [
                _finite(label) if not isinstance(label, tuple) else list(map(_finite, label)) for label in self.labels
            ],
            "shares": [share.to_dict() for share in self.shares],
        }


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float
    level: float


class WeightedRows(NamedTuple):
    """The rows of a trace that an estimate uses, ordered by walk, then time.

    They are on topic, after the burn-in, and have a known value.
    """

    trace_index: IntArray
    walk: IdArray
    page: IdArray
    weight: FloatArray
    degree: FloatArray
    pages: int  # distinct
    walks: int

    def subset(self, mask: BoolArray) -> WeightedRows:
        """Return the rows that a mask selects."""
        if mask.all():
            return self
        walk, page = self.walk[mask], self.page[mask]
        counts = _count_distinct(page), runs(walk)[0].size
        return WeightedRows(self.trace_index[mask], walk, page, self.weight[mask], self.degree[mask], *counts)

    def estimate(
        self,
        value: float,
        interval: Interval,
        standard_error: float,
        ess: float,
        method: str,
        *,
        is_share: bool = False,
    ) -> Estimate:
        """Return an estimate from these rows."""
        counts = int(self.walk.size), self.pages, self.walks
        return Estimate(value, *interval, standard_error, ess, *counts, method, is_share)


class WeightedMean(NamedTuple):
    """A weighted mean and its uncertainty."""

    value: float
    variance: float
    df: float  # degrees of freedom
    tail_df: float  # fewer if a few rows dominate; binomial intervals account for that without it
    skewness: float
    ess: float

    @property
    def standard_error(self) -> float:
        """The square root of the variance."""
        return math.sqrt(self.variance)


def mean_or_share(
    trace: WalkTrace, values: npt.ArrayLike, *, level: float = LEVEL, burn_in: float = BURN_IN
) -> Estimate:
    """Estimate the mean of values over the pages of the topic; if all values are 0 or 1, it is a share.

    Parameters
    ----------
    values : one per row; rows with NaN are ignored.
    """
    return estimate_rows(*_known_rows(trace, values, burn_in), level)


def estimate_rows(rows: WeightedRows, values: FloatArray, level: float = LEVEL) -> Estimate:
    """Estimate the mean of row values, or the share if all are 0 or 1."""
    return (_share if bool(np.isin(values, (0.0, 1.0)).all()) else _mean)(rows, values, level)


def mean(trace: WalkTrace, values: npt.ArrayLike, *, level: float = LEVEL, burn_in: float = BURN_IN) -> Estimate:
    """Estimate the mean of values over the pages of the topic; the interval may be asymmetric."""
    return _mean(*_known_rows(trace, values, burn_in), level)


def _mean(rows: WeightedRows, values: FloatArray, level: float) -> Estimate:
    mean = _weighted_mean(rows, values)
    t = student_two_sided(check_level(level), round(mean.tail_df, 1))
    low, high = (mean.value - mean.standard_error * hall_quantile(end, mean.skewness) for end in (t, -t))
    if (values >= 0).all():  # such as counts
        low = max(low, 0.0)
    if rows.walk.size == 1:
        low, high = -math.inf, math.inf
    interval = Interval(low, high, level)
    return rows.estimate(mean.value, interval, mean.standard_error, mean.ess, "weighted mean, Hall interval")


def share(trace: WalkTrace, flags: npt.ArrayLike, *, level: float = LEVEL, burn_in: float = BURN_IN) -> Estimate:
    """Estimate the share of the pages of the topic that have a property: 1 or True; rows with NaN are ignored."""
    numbers = row_values(trace, flags)
    known = ~np.isnan(numbers)
    if not np.isin(numbers[known], (0.0, 1.0)).all():
        wrong = numbers[known & (numbers != 0) & (numbers != 1)][0]
        raise UsageError(
            f"a share needs values of 0 or 1, got {wrong:g}",
            hint="estimate the mean instead, or use a rule that is true or false for each page",
        )
    rows = select_rows(trace, known, burn_in)
    return _share(rows, numbers[rows.trace_index], level)


def _share(rows: WeightedRows, flags: FloatArray, level: float) -> Estimate:
    distinct = min(_count_distinct(rows.page[flags == 1]), _count_distinct(rows.page[flags == 0]))
    return _share_estimate(rows, _weighted_mean(rows, flags), level, distinct)


def quantile(
    trace: WalkTrace, values: npt.ArrayLike, q: float = 0.5, *, level: float = LEVEL, burn_in: float = BURN_IN
) -> Estimate:
    """Estimate the q-quantile of values over the pages of the topic."""
    check_range("q", q, "(0, 1)", hint="0.5 is the median")
    rows, numbers = _known_rows(trace, values, burn_in)
    order = np.argsort(numbers, kind="stable")
    ordered, cumulative = numbers[order], np.cumsum(rows.weight[order])
    cumulative /= cumulative[-1]

    def value_at(probability: float) -> float:
        index = int(np.searchsorted(cumulative, probability * (1 - 1e-12)))
        return float(ordered[min(index, ordered.size - 1)])

    value = value_at(q)
    below = _weighted_mean(rows, (numbers <= value).astype(np.float64))
    low, high = map(value_at, clopper_pearson(q, _effective_trials(below, level), level))
    standard_error = (high - low) / (2 * normal_two_sided(level))
    method = "weighted quantile, Woodruff interval"
    return rows.estimate(value, Interval(low, high, level), standard_error, below.ess, method)


def histogram(
    trace: WalkTrace, values: npt.ArrayLike, edges: Sequence[float], *, level: float = LEVEL, burn_in: float = BURN_IN
) -> Distribution:
    """Estimate the share of pages in each bin [edge, next edge); the last bin includes its upper edge.

    Pages outside all bins count in the total, so the shares may sum to less than 1. Edges may be infinite.
    """
    bounds, numbers = np.asarray(edges, np.float64), row_values(trace, values)
    if bounds.size < 2 or not (np.diff(bounds) > 0).all():
        raise UsageError("edges must be increasing", hint="give two or more bin edges, such as [0, 10, 100]")
    codes = np.searchsorted(bounds, numbers, side="right") - 1
    codes[numbers == bounds[-1]] = bounds.size - 2
    codes[(codes < 0) | (codes > bounds.size - 2)] = bounds.size - 1
    rows = select_rows(trace, ~np.isnan(numbers), burn_in)
    shares = _category_shares(rows, codes[rows.trace_index], bounds.size, level)
    return Distribution(tuple(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)), shares[:-1])


def distribution(
    trace: WalkTrace, categories: Sequence[Any] | npt.NDArray[Any], *, level: float = LEVEL, burn_in: float = BURN_IN
) -> Distribution:
    """Estimate the share of pages in each category, largest first; rows with None or NaN are ignored."""
    labels, codes = encode_categories(trace, categories)
    rows = select_rows(trace, codes >= 0, burn_in)
    observed, inverse = np.unique(codes[rows.trace_index], return_inverse=True)
    shares = _category_shares(rows, inverse, observed.size, level)
    order = sorted(range(observed.size), key=lambda k: (-shares[k].value, str(labels[observed[k]])))
    return Distribution(tuple(labels[observed[k]] for k in order), tuple(shares[k] for k in order))


def uniform_draws(trace: WalkTrace, count: int, rng: int | np.random.Generator, *, burn_in: float = BURN_IN) -> IdArray:
    """Draw pages uniformly from the topic, with replacement, ordered by walk, then time.

    The walks visit a page in proportion to its degree d. If each step lasts Geometric(d / D) time units, with D the
    largest degree, each page is occupied equally long in the limit (Bar-Yossef et al. 2000). Pages are taken at equally
    spaced times. For estimates, weights are better: they are the expectation of these durations, without their noise.
    """
    if count != int(count) or count < 1:
        raise UsageError(f"count must be a whole number of at least 1, got {count}", hint="give the number of draws")
    rows = select_rows(trace, np.ones(len(trace), np.bool_), burn_in)
    if count > rows.walk.size:
        raise UsageError(
            f"count must be at most the {rows.walk.size:,} steps on topic, got {count:,}",
            hint="walk longer, or draw fewer pages",
        )
    random = np.random.default_rng(rng)
    ends = np.cumsum(random.geometric(rows.degree / rows.degree.max()))
    times = (np.arange(count) + random.random()) * (ends[-1] / count)
    drawn: IdArray = rows.page[np.searchsorted(ends, times, side="right").clip(max=rows.degree.size - 1)]
    return drawn


# --- rows and their values ---


def row_values(trace: WalkTrace, values: npt.ArrayLike) -> FloatArray:
    """Return values as floats, after checking that there is one per row."""
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise UsageError("values must be numbers", hint="give numbers, or estimate a distribution") from None
    if numbers.shape != (len(trace),):
        raise UsageError(
            f"values must have one entry for each of the {len(trace):,} steps, got {numbers.size:,}",
            hint="give one value per step of the sample",
        )
    return numbers


def encode_categories(trace: WalkTrace, categories: Sequence[Any] | npt.NDArray[Any]) -> tuple[list[Any], IntArray]:
    """Return the distinct categories, and the index of the category of each row: -1 for None and NaN."""
    values = np.asarray(categories)
    if values.shape != (len(trace),):
        raise UsageError(
            f"categories must have one entry for each of the {len(trace):,} steps, got {values.size:,}",
            hint="give one category per step of the sample",
        )
    if values.dtype != np.object_:
        labels, inverse = np.unique(values, return_inverse=True)
        codes = inverse.astype(np.int64)
        if values.dtype.kind == "f":
            codes[np.isnan(values)] = -1
        return labels.tolist(), codes
    code_of: dict[Any, int] = {}
    codes = np.fromiter(
        (-1 if value is None or value != value else code_of.setdefault(value, len(code_of)) for value in values),
        np.int64,
        values.size,
    )
    return list(code_of), codes


def select_rows(trace: WalkTrace, known: BoolArray, burn_in: float) -> WeightedRows:
    """Select the rows on topic, after the burn-in, whose values are known."""
    usable = trace.on_topic & (trace.degree > 0) & known
    if not usable.any():
        raise UsageError(
            "the sample has no step on a topic page whose value is known",
            hint="walk longer, start at pages on topic, or choose a property that pages have",
        )
    index = after_burn_in(trace, burn_in)
    index = index[usable[index]]
    if not index.size:
        raise UsageError(
            "after the burn-in, the sample has no step on a topic page whose value is known",
            hint="walk longer, or choose a property that more pages have",
        )
    degree = trace.degree[index].astype(np.float64)
    walk, page = trace.walk[index], trace.page[index]
    return WeightedRows(index, walk, page, 1 / degree, degree, _count_distinct(page), runs(walk)[0].size)


def _known_rows(trace: WalkTrace, values: npt.ArrayLike, burn_in: float) -> tuple[WeightedRows, FloatArray]:
    numbers = row_values(trace, values)
    rows = select_rows(trace, ~np.isnan(numbers), burn_in)
    return rows, numbers[rows.trace_index]


def check_level(level: float) -> float:
    """Return a confidence level; raise if it is not between 0 and 1."""
    check_range("level", level, "(0, 1)", hint="for example 0.95")
    return level


# --- weighted means and shares ---


def _weighted_mean(rows: WeightedRows, values: FloatArray) -> WeightedMean:
    blocks, total = split_into_blocks(rows.walk), float(rows.weight.sum())
    value = float((rows.weight * values).sum() / total)
    deviation = values - value
    population_variance = float((rows.weight * deviation**2).sum() / total)
    row_influence = rows.weight * deviation / total
    influence = blocks.sums(row_influence)
    variance, df = variance_of_sum(blocks.walk, influence).scalar()
    # The rows of a block may cancel out.
    variance = max(variance, min_variance_ratio(row_influence.size) * float((row_influence**2).sum()))
    if population_variance <= (1e-12 * max(abs(value), float(abs(values).max()))) ** 2:  # constant up to rounding
        return WeightedMean(value, 0.0, df, df, 0.0, _constant_ess(blocks, rows))
    sums = batch_sums(blocks.walk, influence, df)
    ess = population_variance / variance
    return WeightedMean(value, variance, df, satterthwaite_df(sums, df), skewness(sums), ess)


def _share_estimate(rows: WeightedRows, mean: WeightedMean, level: float, distinct: int) -> Estimate:
    """Return a share with its interval.

    If it was observed (or its absence was) on a few `distinct` pages only, its variance cannot be estimated from them:
    on one page of low weight it hardly varies, but similar pages may have been missed. The effective sample size is
    then limited to that of the weights of all rows.
    """
    value = min(max(mean.value, 0.0), 1.0)
    weight_ess = float(rows.weight.sum() ** 2 / (rows.weight**2).sum())
    mean = mean._replace(ess=min(mean.ess, weight_ess * max(1.0, distinct / MIN_DISTINCT)))
    interval = Interval(*clopper_pearson(value, _effective_trials(mean, level), check_level(level)), level)
    method = "weighted share, Clopper-Pearson interval at the effective sample size"
    return rows.estimate(value, interval, mean.standard_error, mean.ess, method, is_share=True)


def _effective_trials(mean: WeightedMean, level: float) -> float:
    """Return the binomial sample size whose interval is as long as Student's."""
    return mean.ess * (normal_two_sided(check_level(level)) / student_two_sided(level, round(mean.df, 1))) ** 2


def _category_shares(rows: WeightedRows, codes: IntArray, categories: int, level: float) -> tuple[Estimate, ...]:
    """Estimate the shares of all categories together."""
    total = float(rows.weight.sum())
    max_blocks = max(256, min(MAX_BLOCKS, MAX_CELLS // categories))
    min_per_walk = min(MIN_BLOCKS_PER_WALK, max(1, max_blocks // rows.walks))
    blocks = split_into_blocks(rows.walk, max_blocks, min_per_walk)
    cells = blocks.category_sums(codes, categories, rows.weight) / total
    block_weights = blocks.sums(rows.weight) / total
    values = cells.sum(axis=0)
    squares = np.bincount(codes, weights=(rows.weight / total) ** 2, minlength=categories)
    independent = squares * (1 - values) ** 2 + (squares.sum() - squares) * values**2
    min_variances = min_variance_ratio(codes.size) * independent
    constant_ess = _constant_ess(blocks, rows)
    _, page_numbers = np.unique(rows.page, return_inverse=True)
    pairs = np.unique(codes * np.int64(rows.pages) + page_numbers)
    distinct = np.bincount(pairs // rows.pages, minlength=categories)
    estimates: list[Estimate] = []
    for first in range(0, categories, COLUMN_BATCH):
        batch = slice(first, first + COLUMN_BATCH)
        influence = cells[:, batch] - block_weights[:, None] * values[batch]
        variances, dfs = variance_of_sum(blocks.walk, influence)
        columns = zip(values[batch], np.maximum(variances, min_variances[batch]), dfs, strict=True)
        for value, variance, df in columns:
            population_variance = value * (1 - value)
            ess = float(population_variance / variance) if population_variance > 1e-12 else constant_ess
            mean = WeightedMean(float(value), float(variance), float(df), float(df), 0.0, ess)
            estimates.append(_share_estimate(rows, mean, level, int(distinct[len(estimates)])))
    return tuple(estimates)


def _constant_ess(blocks: Blocks, rows: WeightedRows) -> float:
    """Return the effective sample size for a constant value, which has no variance: that of the log degree."""
    total = float(rows.weight.sum())
    deviation = np.log(rows.degree)
    deviation -= (rows.weight * deviation).sum() / total
    variance = variance_of_sum(blocks.walk, blocks.sums(rows.weight * deviation / total)).scalar()[0]
    population_variance = float((rows.weight * deviation**2).sum() / total)
    ess = population_variance / variance if population_variance > 1e-12 and variance > 0 else math.inf
    return float(min(ess, total**2 / float((rows.weight**2).sum()), rows.pages))


def _count_distinct(page: IdArray) -> int:
    """Count distinct pages, without sorting unless ids are much larger than the number of rows."""
    if page.size == 0 or page.max() > 16 * page.size or page.min() < 0:
        return int(np.unique(page).size)
    return int(np.count_nonzero(np.bincount(page)))


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def topic_size(
    trace: WalkTrace, *, level: float = LEVEL, burn_in: float = BURN_IN, at_most: float = math.inf
) -> Estimate:
    """Estimate the number of pages of the topic from collisions of different walks; `at_most` are known to exist."""
    rows, level = select_rows(trace, np.ones(len(trace), np.bool_), burn_in), check_level(level)
    if rows.walks < 2:
        raise UsageError("the topic size needs at least 2 walks, got 1", hint="use two walks or more, better eight")
    group = np.repeat(np.arange(rows.walks), runs(rows.walk)[1]) * min(rows.walks, MAX_BATCHES) // rows.walks
    blocks = split_into_blocks(group, MAX_BATCHES, 1)
    degrees, inverses = blocks.sums(rows.degree), blocks.sums(rows.weight)
    different = blocks.walk[:, None] != blocks.walk
    products = np.where(different, np.outer(degrees, inverses), 0.0)
    products += products.T
    counts = np.where(different, _collision_counts(blocks, rows), 0.0)
    both_orders, collisions = float(products.sum()) / 2, float(counts.sum()) / 2
    method = f"{collisions:,.0f} collisions of {rows.walks} walks"
    if collisions == 0:
        # Steps of walks that never met may be in parts that do not connect: they are no evidence of a large topic.
        return rows.estimate(math.inf, Interval(rows.pages, at_most, level), math.inf, 0.0, method)
    value = both_orders / 2 / collisions
    influence = products / both_orders - counts / collisions
    shared, df = variance_of_sum(blocks.walk, influence.sum(axis=1)).scalar()
    variance = max(shared - float((influence**2).sum()) / 2, shared / 2, 1 / collisions)
    effective = (normal_two_sided(level) / student_two_sided(level, round(df, 1))) ** 2 / variance
    fewest, most = garwood(effective, level)
    low = max(rows.pages, value * effective / most)
    high = value * effective / fewest if fewest > 0 else math.inf
    low, high = min(low, at_most), min(max(high, low), at_most)
    interval = Interval(low, high, level)
    return rows.estimate(
        min(max(value, rows.pages), at_most), interval, value * math.sqrt(variance), 1 / variance, method
    )


def _collision_counts(blocks: Blocks, rows: WeightedRows) -> FloatArray:
    """Count the pairs of rows on the same page, for each pair of blocks."""
    size = blocks.starts.size
    key = np.sort(rows.page.astype(np.int64) * size + blocks.block_of_rows(rows.page.size))
    first, counts = runs(key)
    page, block = key[first] // size, key[first] % size
    blocks_of_page = runs(page)[1]
    shared = np.repeat(blocks_of_page > 1, blocks_of_page)  # a page in one block collides with no other
    page, block, counts = page[shared], block[shared], counts[shared]
    starts, lengths = runs(page)
    number = np.repeat(np.arange(starts.size), lengths)
    pairs, step = np.zeros((size, size)), max(1, MAX_COUNTS // size)
    for start in range(0, starts.size, step):
        begin, end = np.searchsorted(number, (start, start + step))
        cells = np.zeros((min(step, starts.size - start), size))
        cells[number[begin:end] - start, block[begin:end]] = counts[begin:end]
        pairs += cells.T @ cells
    return pairs


def relative_topic_size(trace: WalkTrace, *, level: float = LEVEL, burn_in: float = BURN_IN) -> Estimate:
    """Estimate the share of all pages that is on topic, from walks without a focus on the topic."""
    all_pages = replace(trace, on_topic=np.ones(len(trace), np.bool_))
    return share(all_pages, trace.on_topic, level=level, burn_in=burn_in)
