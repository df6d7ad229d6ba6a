"""How far weighted means may be off: covariances along walks, walks that disagree, few rows that matter, skewness."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surveyor.arrays import FloatArray, IntArray
from surveyor.estimate.sampling import laws
from surveyor.estimate.sampling.estimates import distribution, mean, share
from surveyor.estimate.sampling.spread import blocks, skewness, spread, stretches, tail_freedom
from surveyor.estimate.sampling.walk_trace import WalkTrace
from walking import trail_of

PAGES = st.lists(st.lists(st.integers(0, 5), min_size=6, max_size=6), min_size=2, max_size=5)
DEGREES = np.array([1.0, 2.0, 4.0, 1.0, 3.0, 7.0])
VALUES = np.array([0.5, -1.0, 3.0, 2.0, 2.0, 10.0])


def trace(pages: list[list[int]]) -> WalkTrace:
    return trail_of(np.array(pages), DEGREES)


def covariances_by_loops(walks: IntArray, influence: FloatArray) -> float:
    """Compute the variance as the module says it, one pair of rows after another."""
    longest = max(int((walks == walk).sum()) for walk in set(walks.tolist()))
    lags = [0.0] * (longest + longest % 2)
    for walk in set(walks.tolist()):
        own = influence[walks == walk]
        for first in range(own.size):
            for second in range(first, own.size):
                lags[second - first] += own[first] * own[second]
    total, least = -lags[0], math.inf
    for k in range(0, len(lags), 2):
        pair = lags[k] + lags[k + 1]
        if pair <= 1e-15:
            break
        least = min(least, pair)
        total += 2 * least
    total = max(total, lags[0] * min(max(0.05, 10 / walks.size), 1))
    return total * (1 + 2 * max(total / lags[0], 1) / walks.size)


@given(PAGES.filter(lambda pages: len({page for one in pages for page in one}) > 2))
def test_the_standard_error_is_that_of_covariances_added_one_by_one(pages: list[list[int]]) -> None:
    sample = trace(pages)
    found = mean(sample, VALUES[sample.page], burn=0.0)
    weights = 1 / sample.degree
    influence = weights * (VALUES[sample.page] - found.value) / weights.sum()
    order = np.argsort(sample.walk, kind="stable")
    expected = covariances_by_loops(sample.walk[order].astype(np.int64), influence[order])
    if expected > 1e-9:
        assert found.se**2 == pytest.approx(expected, rel=0.2)  # a pair that is zero but for rounding may count or not
        assert found.se**2 == pytest.approx(expected, rel=1e-6) or len(set(map(tuple, pages))) < 6


def test_covariances_of_unequal_walks_are_added_within_walks() -> None:
    rng = np.random.default_rng(3)
    walks = np.repeat([0, 1, 2], [50, 31, 40])
    influence = np.convolve(rng.normal(size=130), np.ones(10), "valid")
    influence -= influence.mean()
    found, freedom = spread(walks, influence).one()
    assert found == pytest.approx(covariances_by_loops(walks, influence))
    assert 2 <= freedom < 121


def test_walks_that_disagree_for_good_are_compared_as_wholes() -> None:
    influence = np.repeat([1.0, -1.0, 2.0, -2.0], 100)
    variance, freedom = spread(np.repeat(np.arange(4), 100), influence).one()
    assert variance >= (influence.reshape(4, 100).sum(axis=1) ** 2).sum()
    assert freedom == 3


def test_few_rows_that_matter_leave_few_degrees_of_freedom() -> None:
    even = np.tile([1.0, -1.0, 2.0, -2.0], 25)
    few = np.zeros(100)
    few[[10, 40, 70]] = 1.0, 1.0, -2.0
    assert tail_freedom(even, 100.0) == 100
    # By hand: Σ s² = 6, Σ s⁴ = 18.
    assert tail_freedom(few, 100.0) == pytest.approx(2 * 36 / (18 - 36 / 100))


def test_skewness_is_that_of_the_sum_of_stretches() -> None:
    rows = np.array([1.0, 2.0, -1.0, -2.0, 4.0, 1.0, -5.0])
    walk = np.array([0, 0, 0, 1, 1, 1, 1])
    sums = stretches(walk, rows, 2.0)  # the first walk, and two halves of the second
    assert (4 * sums).tolist() == pytest.approx([2.0, 2.0, -4.0])
    assert skewness(sums) == pytest.approx((8 + 8 - 64) / 24**1.5)
    assert skewness(stretches(walk, 1e200 * rows, 2.0)) == pytest.approx(skewness(sums))
    assert skewness(np.tile([1.0, -1.0], 50)) == 0
    assert skewness(np.zeros(3)) == 0


def test_steps_to_and_fro_are_worth_no_more_than_twenty_times_as_many() -> None:
    """On two pages in turn, blocks of two rows do not vary at all."""
    sample = trail_of(np.tile([0, 1], (4, 5000)), np.ones(2))
    there = np.array([1.0, 0.0])[sample.page]
    by_mean = mean(sample, there, burn=0)
    assert by_mean.ess == pytest.approx(20 * 40_000, rel=0.01)
    for one in (by_mean, share(sample, there, burn=0), *distribution(sample, there, burn=0).shares):
        assert one.value == pytest.approx(0.5)
        assert one.low < 0.5 < one.high


def test_two_rows_are_not_worth_more_than_two_pages() -> None:
    sample = trace([[0, 2]])
    for one in (mean(sample, VALUES[sample.page], burn=0), share(sample, sample.page == 0, burn=0)):
        assert one.ess <= 2
        assert one.margin > 0.4


@given(st.floats(-40, 40), st.floats(-1, 1))
def test_a_quantile_without_its_skewness_is_where_halls_polynomial_has_it(quantile: float, skew: float) -> None:
    x = laws.unskewed(quantile, skew)
    assert x + skew * x**2 / 3 + skew**2 * x**3 / 27 + skew / 6 == pytest.approx(quantile, rel=1e-3, abs=1e-3)


def test_intervals_of_skewed_means_miss_as_often_on_either_side() -> None:
    """Independent log-normal values: Student's intervals are below the truth in 5 % and above it in one of 500."""
    truth, sample = math.exp(0.5), trail_of(np.arange(200).reshape(4, 50), np.ones(200))
    found = [mean(sample, values, burn=0) for values in np.random.default_rng(5).lognormal(0, 1, (1000, 200))]
    assert 0.02 <= np.mean([one.high < truth for one in found]) <= 0.045
    assert 0.005 <= np.mean([one.low > truth for one in found]) <= 0.02


def test_how_walks_are_numbered_does_not_matter_where_they_disagree_for_good() -> None:
    """Then each walk counts as one, and not pieces of two."""
    values = np.random.default_rng(3).normal(size=(8, 60))
    values[0] += 4
    pages = np.arange(480).reshape(8, 60)
    found = []
    for first in range(8):
        sample = trail_of(np.roll(pages, first, axis=0), np.ones(480))
        told = mean(sample, values.ravel()[sample.page], burn=0)
        found.append((told.low, told.high))
    np.testing.assert_allclose(found, np.tile(found[0], (8, 1)))


def test_blocks_divide_each_walk_evenly() -> None:
    found = blocks(np.repeat([4, 7, 9], [1000, 10, 1]), most=100, least=5)
    counts = np.bincount(found.walk)
    assert counts.tolist() == [99, 5, 1]
    assert found.sums(np.ones(1011)).sum() == 1011
    assert set(np.diff(found.begins[:99]).tolist()) <= {10, 11}


# --- invariances -----------------------------------------------------------------------------------------------------
