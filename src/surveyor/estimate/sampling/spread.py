"""How far a weighted mean along walks may be off: neighbouring steps are alike, and walks may disagree.

The ratio R = Σ w f / Σ w is off by about Σ z, where z = w (f − R) / Σ w is the influence of each row. Rows of a
reversible chain have covariances whose sums over neighbouring pairs of lags are positive and fall with the lag; they
are added up until the first pair that is not (Geyer 1992, initial monotone sequence). Covariances are taken about the
*common* mean of all walks and added over walks. Where walks disagree for good by little, noise ends the sum before that
shows: if whole walks differ by more than chance would in one of five samples (Fisher), what they differ by counts.

Degrees of freedom for Student's law are as many as there are stretches of 1.5 times the lags that were added up, and no
fewer than walks less one. Over a few thousand rows, sums of blocks of rows take the place of rows.

Which of several ways (whole walks, batches of √n or of some multiples of the autocorrelation, this one) keeps its
promise was tried on chains with a known truth; `tests/unit/test_sampling_estimates.py` keeps some of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surveyor.arrays import AnyIntArray, FloatArray, IntArray
from surveyor.errors import UsageError
from surveyor.estimate.sampling.laws import f_tail

BLOCKS = 4096  # about so many at most, but
LEAST = 20  # for each walk, unless it has fewer rows
STRETCH = 1.5  # of the lags added up: as good as independent
LEFT, KNOWN = 0.05, 10  # of the variance if steps go to and fro, and how many rows at least tell that from chance
APART = 0.2  # the chance that walks which agree differ so much


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Consecutive rows of one walk each: what sums and covariances are taken over. Rows come walk after walk."""

    begins: IntArray  # the first row of each block
    walk: IntArray  # of each block; walks are numbered in their order

    def sums(self, values: FloatArray) -> FloatArray:
        """Add up values of rows."""
        summed: FloatArray = np.add.reduceat(values, self.begins)
        return summed

    def of_rows(self, rows: int) -> IntArray:
        """Return the block of each of so many rows."""
        return np.repeat(np.arange(self.begins.size), np.diff(np.r_[self.begins, rows]))

    def sums_by(self, codes: IntArray, kinds: int, weights: FloatArray) -> FloatArray:
        """Add up weights of rows for each kind: one row for each block, one column for each kind."""
        cell = self.of_rows(codes.size) * kinds + codes
        cells = np.bincount(cell, weights=weights, minlength=self.begins.size * kinds)
        return cells.reshape(self.begins.size, kinds).astype(np.float64, copy=False)

    def shares(self) -> FloatArray:
        """Return how much of its walk lies before each block, by blocks."""
        counts = np.bincount(self.walk)
        place = np.arange(self.walk.size) - np.repeat(np.cumsum(counts) - counts, counts)
        shares: FloatArray = place / np.repeat(counts, counts)
        return shares


class Spread(NamedTuple):
    """Variances of sums over all rows, one for each column, and how well they are known."""

    variance: FloatArray
    freedom: FloatArray  # degrees of freedom

    def one(self) -> tuple[float, float]:
        """Return those of the only column."""
        return float(self.variance[0]), float(self.freedom[0])


def walk_order(walk: AnyIntArray) -> IntArray:
    """Return the order of rows that puts walk after walk, each in the order of time."""
    if walk.size == 0 or (walk[1:] >= walk[:-1]).all():
        return np.arange(walk.size)
    small = walk - walk.min()
    # Small numbers are sorted by their digits: ten times as fast.
    return np.argsort(small.astype(np.uint16) if small.max() < 2**16 else small, kind="stable")


def runs(sorted_rows: AnyIntArray) -> tuple[IntArray, IntArray]:
    """Return where each run of equal numbers begins, and how long it is."""
    begins = np.flatnonzero(np.r_[sorted_rows.size > 0, sorted_rows[1:] != sorted_rows[:-1]])
    return begins, np.diff(np.r_[begins, sorted_rows.size])


def blocks(walk: AnyIntArray, most: int = BLOCKS, least: int = LEAST) -> Blocks:
    """Divide rows, which come walk after walk, into blocks of about equal length within each walk."""
    if walk.size == 0:
        raise UsageError("no row of the sample is left to count", hint="walk longer, or ask about pages on topic")
    first, rows = runs(walk)
    counts = np.minimum(rows, np.maximum(-(-rows * most // walk.size), least))
    of_block = np.repeat(np.arange(rows.size), counts)
    place = np.arange(of_block.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return Blocks(first[of_block] + place * rows[of_block] // counts[of_block], of_block)


def spread(walk: IntArray, influence: FloatArray) -> Spread:
    """Return how much the sum of each column varies, given the walk and the influence of each block.

    Columns sum to 0: influence is taken about the common mean.
    """
    columns = influence.reshape(walk.size, -1)
    lags = _lag_sums(walk, columns)
    pairs = lags.reshape(-1, 2, columns.shape[1]).sum(axis=1)
    positive = np.logical_and.accumulate(pairs > 0, axis=0)
    falling = np.where(positive, np.minimum.accumulate(pairs, axis=0), 0.0)
    alone = lags[0]
    total = np.maximum(2 * falling.sum(axis=0) - alone, to_and_fro(walk.size) * alone)
    alike = np.maximum(np.divide(total, alone, out=np.ones_like(total), where=alone > 0), 1.0)
    added = np.maximum(2 * positive.sum(axis=0), 1)
    others = max(int(np.count_nonzero(walk[1:] != walk[:-1])), 1)  # walks less one
    freedom = np.maximum(walk.size / (STRETCH * added), others)
    variance = total * (1 + 2 * alike / walk.size)  # one mean has been taken out
    by_walk = (np.add.reduceat(columns, runs(walk)[0], axis=0) ** 2).sum(axis=0) * (1 + 1 / others)
    for column in np.flatnonzero(by_walk > variance).tolist():
        if f_tail(by_walk[column] / variance[column], others, freedom[column]) < APART:
            variance[column], freedom[column] = by_walk[column], others
    return Spread(variance, freedom)


def to_and_fro(rows: int) -> float:
    """Return which part of the variance of as many independent rows is left at the least if steps go to and fro.

    About a common mean, the fewer rows there are the more they seem to do so: two always do.
    """
    return min(max(LEFT, KNOWN / rows), 1.0)


def stretches(walk: IntArray, influence: FloatArray, freedom: float) -> FloatArray:
    """Return sums of one column over about as many stretches as there are degrees of freedom, as parts of the largest.

    They are as good as independent, and each lies within a walk.
    """
    found = blocks(walk, round(freedom), least=1)
    sums = found.sums(influence)
    largest = float(abs(sums).max())
    return sums / largest if largest > 0 else sums


def tail_freedom(sums: FloatArray, freedom: float) -> float:
    """Return the degrees of freedom of a variance where few stretches matter more than others.

    The mean square of stretches varies as chi-square with so many degrees would, were they normal (Satterthwaite 1946).
    """
    squares = float((sums**2).sum())
    noise = float((sums**4).sum()) - squares**2 / sums.size
    return min(freedom, max(2 * squares**2 / noise, 1.0)) if noise > 0 else freedom


def skewness(sums: FloatArray) -> float:
    """Return the skewness of the sum of all stretches: between -1 and 1, and 0 where they lie evenly about it."""
    squares = float((sums**2).sum())
    return float((sums**3).sum()) / squares**1.5 if squares > 0 else 0.0


def _lag_sums(walk: IntArray, columns: FloatArray) -> FloatArray:
    """Return Σ z(t) z(t + k) within walks, for k = 0, 1, …; one transform of all walks with gaps between them."""
    first, lengths = runs(walk)
    lags = int(min(lengths.max(), 4 * walk.size // lengths.size))  # few long walks among short ones: enough of them
    lags += lags % 2  # pairs
    places = np.arange(walk.size) + lags * np.repeat(np.arange(first.size), lengths)
    size = _smooth(walk.size + lags * lengths.size)
    laid = np.zeros((size, columns.shape[1]))
    laid[places] = columns
    power = np.abs(np.fft.rfft(laid, axis=0)) ** 2
    sums: FloatArray = np.fft.irfft(power, size, axis=0)[:lags]
    return sums


def _smooth(least: int) -> int:
    """Return a length that the transform is fast for: a power of 2, or 5 or 3 times one."""
    power = 1 << max(least - 1, 3).bit_length()
    sizes = power // 8 * 5, power // 8 * 6, power
    return next(size for size in sizes if size >= least)
