"""Standard errors of weighted means: autocovariances, disagreeing walks, dominant rows and skewness."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surveyor.arrays import FloatArray, IntArray
from surveyor.estimate.sampling import distributions
from surveyor.estimate.sampling.estimates import distribution, mean, share
from surveyor.estimate.sampling.standard_errors import (
    batch_sums,
    satterthwaite_df,
    skewness,
    split_into_blocks,
    variance_of_sum,
)
from surveyor.estimate.sampling.walk_trace import WalkTrace
from walk_webs import trace_of

PAGES = st.lists(st.lists(st.integers(0, 5), min_size=6, max_size=6), min_size=2, max_size=5)
DEGREES = np.array([1.0, 2.0, 4.0, 1.0, 3.0, 7.0])
VALUES = np.array([0.5, -1.0, 3.0, 2.0, 2.0, 10.0])


def make_trace(pages: list[list[int]]) -> WalkTrace:
    return trace_of(np.array(pages), DEGREES)


def variance_by_loops(walks: IntArray, influence: FloatArray) -> float:
    """Compute the initial monotone sequence estimator, or the between-walk variance, pair by pair."""
    numbers = sorted(set(walks.tolist()))
    longest = max(int((walks == walk).sum()) for walk in numbers)
    lags = [0.0] * (longest + longest % 2)
    for walk in numbers:
        own = influence[walks == walk]
        for first in range(own.size):
            for second in range(first, own.size):
                lags[second - first] += own[first] * own[second]
    total, least, added = -lags[0], math.inf, 0
    for k in range(0, len(lags), 2):
        pair = lags[k] + lags[k + 1]
        if pair <= 1e-15:
            break
        least, added = min(least, pair), added + 2
        total += 2 * least
    total = max(total, lags[0] * min(max(0.05, 10 / walks.size), 1))
    variance = total * (1 + 2 * max(total / lags[0], 1) / walks.size)
    walks_df = max(len(numbers) - 1, 1)
    between = sum(float(influence[walks == walk].sum()) ** 2 for walk in numbers) * (1 + 1 / walks_df)
    df = max(walks.size / (1.5 * max(added, 1)), walks_df)
    differ = between > variance and distributions.f_tail(between / variance, walks_df, df) < 0.2
    return between if differ else variance


@given(PAGES.filter(lambda pages: len({page for one in pages for page in one}) > 2))
def test_standard_error_equals_the_pairwise_computation(pages: list[list[int]]) -> None:
    sample = make_trace(pages)
    found = mean(sample, VALUES[sample.page], burn_in=0.0)
    weights = 1 / sample.degree
    influence = weights * (VALUES[sample.page] - found.value) / weights.sum()
    order = np.argsort(sample.walk, kind="stable")
    expected = variance_by_loops(sample.walk[order].astype(np.int64), influence[order])
    if expected > 1e-9:
        # A pair of autocovariances that is zero up to rounding may be included or not.
        assert found.standard_error**2 == pytest.approx(expected, rel=0.2)
        assert found.standard_error**2 == pytest.approx(expected, rel=1e-6) or len(set(map(tuple, pages))) < 6


def test_autocovariances_of_unequal_walks_are_summed_within_walks() -> None:
    rng = np.random.default_rng(3)
    walks = np.repeat([0, 1, 2], [50, 31, 40])
    influence = np.convolve(rng.normal(size=130), np.ones(10), "valid")
    influence -= influence.mean()
    found, df = variance_of_sum(walks, influence).scalar()
    assert found == pytest.approx(variance_by_loops(walks, influence))
    assert 2 <= df < 121


def test_permanently_different_walks_use_the_between_walk_variance() -> None:
    influence = np.repeat([1.0, -1.0, 2.0, -2.0], 100)
    variance, df = variance_of_sum(np.repeat(np.arange(4), 100), influence).scalar()
    assert variance >= (influence.reshape(4, 100).sum(axis=1) ** 2).sum()
    assert df == 3


def test_dominant_batches_reduce_the_degrees_of_freedom() -> None:
    even = np.tile([1.0, -1.0, 2.0, -2.0], 25)
    few = np.zeros(100)
    few[[10, 40, 70]] = 1.0, 1.0, -2.0
    assert satterthwaite_df(even, 100.0) == 100
    # By hand: Σ s² = 6, Σ s⁴ = 18.
    assert satterthwaite_df(few, 100.0) == pytest.approx(2 * 36 / (18 - 36 / 100))


def test_skewness_of_the_total_of_batches() -> None:
    rows = np.array([1.0, 2.0, -1.0, -2.0, 4.0, 1.0, -5.0])
    walk = np.array([0, 0, 0, 1, 1, 1, 1])
    sums = batch_sums(walk, rows, 2.0)  # the first walk and both halves of the second
    assert (4 * sums).tolist() == pytest.approx([2.0, 2.0, -4.0])
    assert skewness(sums) == pytest.approx((8 + 8 - 64) / 24**1.5)
    assert skewness(batch_sums(walk, 1e200 * rows, 2.0)) == pytest.approx(skewness(sums))
    assert skewness(np.tile([1.0, -1.0], 50)) == 0
    assert skewness(np.zeros(3)) == 0


def test_effective_sample_size_of_alternating_steps_is_limited() -> None:
    """On two alternating pages, blocks of two rows have no variance."""
    sample = trace_of(np.tile([0, 1], (4, 5000)), np.ones(2))
    flags = np.array([1.0, 0.0])[sample.page]
    by_mean = mean(sample, flags, burn_in=0)
    assert by_mean.ess == pytest.approx(20 * 40_000, rel=0.01)
    for one in (by_mean, share(sample, flags, burn_in=0), *distribution(sample, flags, burn_in=0).shares):
        assert one.value == pytest.approx(0.5)
        assert one.low < 0.5 < one.high


def test_effective_sample_size_of_two_rows_is_at_most_two() -> None:
    sample = make_trace([[0, 2]])
    for one in (mean(sample, VALUES[sample.page], burn_in=0), share(sample, sample.page == 0, burn_in=0)):
        assert one.ess <= 2
        assert one.margin > 0.4


@given(st.floats(-40, 40), st.floats(-1, 1))
def test_hall_quantile_inverts_halls_polynomial(quantile: float, skew: float) -> None:
    x = distributions.hall_quantile(quantile, skew)
    assert x + skew * x**2 / 3 + skew**2 * x**3 / 27 + skew / 6 == pytest.approx(quantile, rel=1e-3, abs=1e-3)


def test_intervals_of_skewed_means_are_balanced() -> None:
    """Independent log-normal values; plain t intervals miss below in 5 % of samples and above in 0.2 %."""
    truth, sample = math.exp(0.5), trace_of(np.arange(200).reshape(4, 50), np.ones(200))
    found = [mean(sample, values, burn_in=0) for values in np.random.default_rng(5).lognormal(0, 1, (1000, 200))]
    assert 0.02 <= np.mean([one.high < truth for one in found]) <= 0.045
    assert 0.005 <= np.mean([one.low > truth for one in found]) <= 0.02


def test_intervals_do_not_depend_on_the_numbering_of_walks() -> None:
    values = np.random.default_rng(3).normal(size=(8, 60))
    values[0] += 4
    pages = np.arange(480).reshape(8, 60)
    found = []
    for first in range(8):
        sample = trace_of(np.roll(pages, first, axis=0), np.ones(480))
        estimate = mean(sample, values.ravel()[sample.page], burn_in=0)
        found.append((estimate.low, estimate.high))
    np.testing.assert_allclose(found, np.tile(found[0], (8, 1)))


def test_blocks_split_each_walk_evenly() -> None:
    found = split_into_blocks(np.repeat([4, 7, 9], [1000, 10, 1]), max_blocks=100, min_per_walk=5)
    counts = np.bincount(found.walk)
    assert counts.tolist() == [99, 5, 1]
    assert found.sums(np.ones(1011)).sum() == 1011
    assert set(np.diff(found.starts[:99]).tolist()) <= {10, 11}
