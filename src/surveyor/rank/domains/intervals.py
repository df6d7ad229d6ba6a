"""Confidence intervals of scores, by estimator.

    Exact       counted, not estimated
    Within      a proven bound on the error of every score (PageRank)
    Counted     a count among sampled domains: Binomial(truth, p)
    Relative    an estimate whose relative standard deviation is known
    Grained     an estimate with the precision of a count of grains of known size per domain (bit vectors, HyperLogLog)

The stated confidence holds for each domain by itself. Errors of different domains are not independent: all were
estimated from the same sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Protocol

import numpy as np
import numpy.typing as npt

from surveyor.arrays import AnyIntArray, FloatArray

CONFIDENCE = 0.95
Interval = tuple[FloatArray, FloatArray]


class Certainty(Protocol):
    """The error model of scores."""

    @property
    def confidence(self) -> float:
        """The coverage of an interval; 1 if it is proven."""

    def intervals(self, scores: FloatArray) -> Interval:
        """Return the lower and upper bounds for these scores."""


@dataclass(frozen=True, slots=True)
class Exact:
    """A score that was counted, not estimated."""

    confidence: float = 1.0

    def intervals(self, scores: FloatArray) -> Interval:
        """Return the scores themselves."""
        return scores, scores


@dataclass(frozen=True, slots=True)
class Within:
    """A score with a proven bound `error` on its error."""

    error: float
    confidence: float = 1.0

    def intervals(self, scores: FloatArray) -> Interval:
        """Return the scores minus and plus the bound, never below 0."""
        return np.maximum(scores - self.error, 0.0), scores + self.error


@dataclass(frozen=True, slots=True)
class Relative:
    """A relative error: the estimate is the truth times 1 + sd · z, with z approximately normal."""

    sd: float
    confidence: float = CONFIDENCE

    def intervals(self, scores: FloatArray) -> Interval:
        """Return the truths for which the estimate would be an end of its own interval."""
        reach = NormalDist().inv_cdf(0.5 + self.confidence / 2) * self.sd
        high = scores / (1 - reach) if reach < 1 else np.where(scores > 0, np.inf, 0.0)
        return scores / (1 + reach), high


@dataclass(frozen=True, slots=True)
class Counted:
    """A count among domains of which each was sampled with probability p, divided by p.

    The bounds are the truths N for which Binomial(N, p) is so high, or so low, with half of the allowed probability of
    a miss: exact, so coverage is never too low. Where at least 1,000 were counted, and as many left out, they are
    the bounds of the score interval, (c - N p)² = z² N p (1 - p), which agree to a thousandth.
    """

    p: float
    confidence: float = CONFIDENCE

    def intervals(self, scores: FloatArray) -> Interval:
        """Return the bounds, computed once for each distinct count."""
        from surveyor.kernels.binomial import trial_intervals

        if self.p >= 1:
            return scores, scores
        counts, place = np.unique(np.rint(scores * self.p).astype(np.int64), return_inverse=True)
        z = NormalDist().inv_cdf(0.5 + self.confidence / 2)
        low, high = np.empty(counts.size), np.empty(counts.size)
        trial_intervals(counts, self.p, (1 - self.confidence) / 2, z, low, high)
        return low[place], high[place]

    def relative(self, score: float) -> float:
        """Return the relative standard deviation of the estimate of a score of this size."""
        return math.sqrt((1 - self.p) / (self.p * score)) if score > 0 else math.inf


@dataclass(frozen=True, slots=True, eq=False)
class Grained:
    """An estimate whose variance is the truth times a grain, which differs between domains.

    This is the distribution of a Poisson count of grains, and the bounds are those of its score interval:
    (estimate - N)² = z² N · grain. Where the estimate is 0 they are 0 and z² grains. No truth is above
    `most`; the bounds of counts are rounded outwards to integers.
    """

    grain: npt.NDArray[np.float32]
    most: float = math.inf
    whole: bool = False
    confidence: float = CONFIDENCE

    def at(self, domains: AnyIntArray) -> Grained:
        """Return the error model of some domains."""
        return replace(self, grain=self.grain[domains])

    def intervals(self, scores: FloatArray) -> Interval:
        """Return the bounds for the scores of the domains of this model, in their order."""
        half = NormalDist().inv_cdf(0.5 + self.confidence / 2) ** 2 * self.grain.astype(np.float64) / 2
        reach = np.sqrt(half * (2 * scores + half))
        low, high = np.maximum(scores + half - reach, 0.0), scores + half + reach
        if self.whole:
            low, high = np.floor(low), np.ceil(high)
        return low, np.minimum(high, np.maximum(self.most, scores))
