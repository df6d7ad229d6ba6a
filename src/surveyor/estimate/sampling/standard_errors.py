"""Standard errors of weighted means over autocorrelated random walks, and the burn-in that all estimates leave out.

**Variance.** The error of the ratio R = Σ w f / Σ w is about Σ z, where z = w (f − R) / Σ w is the influence of each
row. In a reversible chain the sums of neighbouring pairs of autocovariances are positive and decrease with the lag.
They are added up to the first non-positive pair (Geyer 1992, initial monotone sequence). Autocovariances are taken
about the *common* mean of all walks and summed over walks. Where walks differ permanently but slightly, noise ends
that sum too early; therefore the between-walk variance is used where an F test at level 0.2 shows that it is larger.

**Degrees of freedom** of Student's t are the number of batches of 1.5 times the lags that were summed, and at least
the number of walks minus one. Above a few thousand rows, block sums take the place of rows.

**Burn-in.** The first tenth of each walk depends on its start and is discarded. A sample with an effective sample size
of 400 has walks some fifty times as long as their autocorrelation time, so a tenth is several of these. The burn-in is
the same for all estimates, so that all are based on the same steps. After a jump, the first 50 steps of the new segment
are discarded.

The alternatives (whole walks, batches of √n, batches of a multiple of the autocorrelation time) were compared on chains
with known answers; `tests/unit/test_sampling_estimates.py` keeps some of the comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surveyor.arrays import AnyIntArray, BoolArray, FloatArray, IntArray
from surveyor.errors import UsageError, check_range
from surveyor.estimate.sampling.distributions import f_tail
from surveyor.estimate.sampling.walk_trace import WalkTrace

MAX_BLOCKS = 4096  # approximate
MIN_BLOCKS_PER_WALK = 20  # unless the walk has fewer rows
LAGS_PER_BATCH = 1.5  # batches of so many times the summed lags are nearly independent
MIN_VARIANCE_RATIO = 0.05  # lower limit of the variance, relative to independent rows, under negative autocorrelation
ROWS_TO_TRUST_RATIO = 10  # with few rows, negative autocorrelation may be an artefact of the common mean
BETWEEN_WALKS_LEVEL = 0.2  # of the F test

BURN_IN, MAX_BURN_IN = 0.1, 0.5  # share of each walk
BURN_IN_AFTER_JUMP = 50  # steps


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Blocks of consecutive rows, each within one walk; rows are ordered by walk, then time."""

    starts: IntArray  # first row of each block
    walk: IntArray  # of each block; walks are numbered in their order

    def sums(self, values: FloatArray) -> FloatArray:
        """Sum row values over each block."""
        summed: FloatArray = np.add.reduceat(values, self.starts)
        return summed

    def block_of_rows(self, rows: int) -> IntArray:
        """Return the block number of each row."""
        return np.repeat(np.arange(self.starts.size), np.diff(np.r_[self.starts, rows]))

    def category_sums(self, codes: IntArray, categories: int, weights: FloatArray) -> FloatArray:
        """Sum row weights by block (rows of the result) and category (columns)."""
        cell = self.block_of_rows(codes.size) * categories + codes
        cells = np.bincount(cell, weights=weights, minlength=self.starts.size * categories)
        return cells.reshape(self.starts.size, categories).astype(np.float64, copy=False)

    def walk_positions(self) -> FloatArray:
        """Return the share of its walk that precedes each block, counted in blocks."""
        counts = np.bincount(self.walk)
        index = np.arange(self.walk.size) - np.repeat(np.cumsum(counts) - counts, counts)
        positions: FloatArray = index / np.repeat(counts, counts)
        return positions


class VarianceEstimate(NamedTuple):
    """Estimated variances of sums over all rows, one per column, with their degrees of freedom."""

    variance: FloatArray
    df: FloatArray

    def scalar(self) -> tuple[float, float]:
        """Return variance and degrees of freedom of a single column."""
        return float(self.variance[0]), float(self.df[0])


def walk_order(walk: AnyIntArray) -> IntArray:
    """Return the row order that sorts by walk and keeps time order within each walk."""
    if walk.size == 0 or (walk[1:] >= walk[:-1]).all():
        return np.arange(walk.size)
    small = walk - walk.min()
    # 16-bit integers are radix sorted: ten times as fast.
    return np.argsort(small.astype(np.uint16) if small.max() < 2**16 else small, kind="stable")


def runs(values: AnyIntArray) -> tuple[IntArray, IntArray]:
    """Return the start and the length of each run of equal values."""
    starts = np.flatnonzero(np.r_[values.size > 0, values[1:] != values[:-1]])
    return starts, np.diff(np.r_[starts, values.size])


def split_into_blocks(
    walk: AnyIntArray, max_blocks: int = MAX_BLOCKS, min_per_walk: int = MIN_BLOCKS_PER_WALK
) -> Blocks:
    """Split rows, ordered by walk, into blocks of about equal length within each walk."""
    if walk.size == 0:
        raise UsageError("no steps remain to estimate from", hint="walk longer, or choose a property of pages on topic")
    first, rows = runs(walk)
    counts = np.minimum(rows, np.maximum(-(-rows * max_blocks // walk.size), min_per_walk))
    walk_of_block = np.repeat(np.arange(rows.size), counts)
    index = np.arange(walk_of_block.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return Blocks(first[walk_of_block] + index * rows[walk_of_block] // counts[walk_of_block], walk_of_block)


def variance_of_sum(walk: IntArray, influence: FloatArray) -> VarianceEstimate:
    """Estimate the variance of the sum of each column of block influences.

    Each column must sum to 0: influence is taken about the common mean.
    """
    columns = influence.reshape(walk.size, -1)
    lags = _autocovariance_sums(walk, columns)
    pairs = lags.reshape(-1, 2, columns.shape[1]).sum(axis=1)
    positive = np.logical_and.accumulate(pairs > 0, axis=0)
    monotone = np.where(positive, np.minimum.accumulate(pairs, axis=0), 0.0)
    independent = lags[0]
    total = np.maximum(2 * monotone.sum(axis=0) - independent, min_variance_ratio(walk.size) * independent)
    inflation = np.maximum(np.divide(total, independent, out=np.ones_like(total), where=independent > 0), 1.0)
    summed_lags = np.maximum(2 * positive.sum(axis=0), 1)
    walks_df = max(int(np.count_nonzero(walk[1:] != walk[:-1])), 1)
    df = np.maximum(walk.size / (LAGS_PER_BATCH * summed_lags), walks_df)
    variance = total * (1 + 2 * inflation / walk.size)  # corrects for the estimated mean
    between_walks = (np.add.reduceat(columns, runs(walk)[0], axis=0) ** 2).sum(axis=0) * (1 + 1 / walks_df)
    for column in np.flatnonzero(between_walks > variance).tolist():
        if f_tail(between_walks[column] / variance[column], walks_df, df[column]) < BETWEEN_WALKS_LEVEL:
            variance[column], df[column] = between_walks[column], walks_df
    return VarianceEstimate(variance, df)


def min_variance_ratio(rows: int) -> float:
    """Return the smallest accepted ratio of a variance to that of independent rows.

    Negative autocorrelation reduces the variance. About a common mean, few rows always appear negatively correlated;
    two are perfectly so.
    """
    return min(max(MIN_VARIANCE_RATIO, ROWS_TO_TRUST_RATIO / rows), 1.0)


def batch_sums(walk: IntArray, influence: FloatArray, df: float) -> FloatArray:
    """Return sums of one column over about `df` batches within walks, divided by the largest; nearly independent."""
    sums = split_into_blocks(walk, round(df), min_per_walk=1).sums(influence)
    largest = float(abs(sums).max())
    return sums / largest if largest > 0 else sums


def satterthwaite_df(sums: FloatArray, df: float) -> float:
    """Reduce the degrees of freedom of a variance that a few batches dominate.

    The mean square of the batches varies like chi-square with so many degrees of freedom (Satterthwaite 1946).
    """
    squares = float((sums**2).sum())
    noise = float((sums**4).sum()) - squares**2 / sums.size
    return min(df, max(2 * squares**2 / noise, 1.0)) if noise > 0 else df


def skewness(sums: FloatArray) -> float:
    """Return the skewness of the total of independent batch sums, between -1 and 1."""
    squares = float((sums**2).sum())
    return float((sums**3).sum()) / squares**1.5 if squares > 0 else 0.0


def _autocovariance_sums(walk: IntArray, columns: FloatArray) -> FloatArray:
    """Return Σ z(t) z(t + k) within walks for k = 0, 1, …, by one FFT of all walks separated by zero padding."""
    first, lengths = runs(walk)
    lags = int(min(lengths.max(), 4 * walk.size // lengths.size))  # sufficient for a few long walks among short ones
    lags += lags % 2  # pairs
    positions = np.arange(walk.size) + lags * np.repeat(np.arange(first.size), lengths)
    size = _fast_fft_size(walk.size + lags * lengths.size)
    padded = np.zeros((size, columns.shape[1]))
    padded[positions] = columns
    power = np.abs(np.fft.rfft(padded, axis=0)) ** 2
    sums: FloatArray = np.fft.irfft(power, size, axis=0)[:lags]
    return sums


def _fast_fft_size(least: int) -> int:
    """Return a fast transform length: a power of 2, or 3 or 5 times one."""
    power = 1 << max(least - 1, 3).bit_length()
    sizes = power // 8 * 5, power // 8 * 6, power
    return next(size for size in sizes if size >= least)


def after_burn_in(trace: WalkTrace, burn_in: float = BURN_IN) -> IntArray:
    """Return the rows that remain after the burn-in, ordered by walk, then time."""
    check_range("burn_in", burn_in, f"[0, {MAX_BURN_IN}]", hint="give a share of each walk, such as 0.1")
    order = walk_order(trace.walk)
    _, rows = runs(trace.walk[order])
    remains = _from_index(rows, np.floor(burn_in * rows))
    if trace.segment.size and trace.segment.max() > 0:
        segments, lengths = trace.segment[order].astype(np.int64), _segment_lengths(trace, order)
        discarded = np.minimum(BURN_IN_AFTER_JUMP, lengths // 2)
        starts = np.cumsum(lengths) - lengths
        remains &= _from_index(lengths, np.where(segments[starts] > 0, discarded, 0))
    remaining: IntArray = order[remains]
    return remaining


def _segment_lengths(trace: WalkTrace, order: IntArray) -> IntArray:
    walk, segment = trace.walk[order], trace.segment[order]
    changes = np.r_[True, (walk[1:] != walk[:-1]) | (segment[1:] != segment[:-1])]
    lengths: IntArray = np.diff(np.r_[np.flatnonzero(changes), order.size])
    return lengths


def _from_index(lengths: IntArray, first: FloatArray | IntArray) -> BoolArray:
    """Mark the rows of consecutive runs whose index within the run is at least `first`."""
    index = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    marked: BoolArray = index >= np.repeat(first, lengths)
    return marked
