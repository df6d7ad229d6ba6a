from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from surveyor.arrays import FloatArray
from surveyor.errors import UsageError
from surveyor.estimate.sampling import distributions
from surveyor.estimate.sampling.diagnostics import diagnose
from surveyor.estimate.sampling.estimates import (
    Estimate,
    distribution,
    histogram,
    mean,
    mean_or_share,
    quantile,
    share,
    uniform_draws,
)
from surveyor.estimate.sampling.standard_errors import after_burn_in
from surveyor.estimate.sampling.walk_trace import WalkTrace
from walk_webs import Web, communities, lazy_walks, many_traces, trace_of

WEB = communities(np.random.default_rng(1))
PAGES = st.lists(st.lists(st.integers(0, 5), min_size=6, max_size=6), min_size=2, max_size=5)
DEGREES = np.array([1.0, 2.0, 4.0, 1.0, 3.0, 7.0])
VALUES = np.array([0.5, -1.0, 3.0, 2.0, 2.0, 10.0])


def make_trace(pages: list[list[int]]) -> WalkTrace:
    return trace_of(np.array(pages), DEGREES)


# --- hand-computed values ---


def test_weights_are_inverse_degrees() -> None:
    sample = make_trace([[0, 2, 2, 1], [1, 2, 5, 0]])
    weights = [1, 1 / 4, 1 / 4, 1 / 2, 1 / 2, 1 / 4, 1 / 7, 1]
    values = [0.5, 3.0, 3.0, -1.0, -1.0, 3.0, 10.0, 0.5]
    expected = sum(w * f for w, f in zip(weights, values, strict=True)) / sum(weights)
    found = mean(sample, VALUES[sample.page], burn_in=0.0)
    assert found.value == pytest.approx(expected)
    assert found.low < found.value < found.high
    assert (found.steps, found.pages, found.walks) == (8, 4, 2)
    assert found.margin == pytest.approx((found.high - found.low) / 2)


def test_pages_off_topic_and_unknown_values_are_ignored() -> None:
    pages = np.array([[0, 1, 2, 3, 4, 5] * 4, [5, 4, 3, 2, 1, 0] * 4])
    sample = trace_of(pages, DEGREES, np.array([True, True, True, True, False, False]))
    values = np.where(sample.page == 3, np.nan, VALUES[sample.page])
    found = mean(sample, values, burn_in=0.0)
    weights = 1 / DEGREES[:3]
    assert found.value == pytest.approx((weights * VALUES[:3]).sum() / weights.sum())
    assert found.steps == 24


@given(PAGES, st.floats(0.01, 100), st.randoms(use_true_random=False))
def test_estimates_do_not_depend_on_the_scale_of_degrees_or_the_order_of_walks(
    pages: list[list[int]], scale: float, random: object
) -> None:
    plain = make_trace(pages)
    shuffled = pages.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    scaled = trace_of(np.array(shuffled), DEGREES * scale)
    one = mean(plain, VALUES[plain.page], burn_in=0.0)
    other = mean(scaled, VALUES[scaled.page], burn_in=0.0)
    assert other.value == pytest.approx(one.value)
    blocked = plain.rows(np.argsort(plain.walk, kind="stable"))  # the same rows, sorted by walk
    again = mean(blocked, VALUES[blocked.page], burn_in=0.0)
    assert again.value == pytest.approx(one.value)
    assert again.standard_error == pytest.approx(one.standard_error)


@given(PAGES)
@example([[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 4, 4]])  # a single category, whose share is 1 up to rounding
def test_distribution_shares_equal_single_shares_and_sum_to_one(pages: list[list[int]]) -> None:
    sample = make_trace(pages)
    kinds = np.array(["a", "b", "b", "c", "a", "c"])[sample.page]
    found = distribution(sample, kinds, burn_in=0.0)
    assert sum(one.value for one in found.shares) == pytest.approx(1)
    for label, one in zip(found.labels, found.shares, strict=True):
        single = share(sample, kinds == label, burn_in=0.0)
        assert one.value == pytest.approx(single.value)
        assert 0 <= one.low <= one.value <= one.high <= 1


def test_distribution_accepts_missing_labels_and_sorts_by_share() -> None:
    sample = many_traces(WEB, 1, 8, 300, np.random.default_rng(2))[0]
    words = np.array(["de", None, "en", "en"], object)[sample.page % 4]
    found = distribution(sample, words)
    assert found.labels == ("en", "de")
    assert [one.value for one in found.shares] == sorted((one.value for one in found.shares), reverse=True)
    known = share(sample, np.array([1.0, np.nan, 0.0, 0.0])[sample.page % 4])
    assert found.shares[1].value == pytest.approx(known.value, abs=0.05)  # its burn-in may differ
    assert json.loads(json.dumps(found.to_dict()))["labels"] == ["en", "de"]


def test_the_last_histogram_bin_includes_its_upper_edge() -> None:
    sample = make_trace([[0, 1, 2, 3, 4, 5]] * 4)
    found = histogram(sample, VALUES[sample.page], [-1.0, 2.0, 3.0], burn_in=0.0)
    weights = 1 / DEGREES
    assert found.labels == ((-1.0, 2.0), (2.0, 3.0))
    assert found.shares[0].value == pytest.approx(weights[[0, 1]].sum() / weights.sum())
    assert found.shares[1].value == pytest.approx(weights[[2, 3, 4]].sum() / weights.sum())
    with pytest.raises(UsageError, match="edges must be increasing"):
        histogram(sample, VALUES[sample.page], [1.0, 1.0])
    with pytest.raises(UsageError, match="edges must be increasing"):
        histogram(sample, VALUES[sample.page], [1.0])


def test_quantiles_are_weighted() -> None:
    sample = make_trace([[0, 1, 2, 3, 4, 5]] * 4)
    # Weights 1/2, 1, 1/3+1 … of the values in order: -1, 0.5, 2, 3, 10.
    assert quantile(sample, VALUES[sample.page], 0.5, burn_in=0.0).value == 2.0
    assert quantile(sample, VALUES[sample.page], 0.15, burn_in=0.0).value == -1.0
    assert quantile(sample, VALUES[sample.page], 0.99, burn_in=0.0).value == 10.0
    with pytest.raises(UsageError, match=r"q must be in \(0, 1\), got 1"):
        quantile(sample, VALUES[sample.page], 1.0)


# --- degenerate samples ---


def test_an_unobserved_property_has_a_positive_upper_bound() -> None:
    sample = many_traces(WEB, 1, 4, 300, np.random.default_rng(4))[0]
    none, every = share(sample, np.zeros(len(sample))), share(sample, np.ones(len(sample)))
    assert (none.value, none.low) == (0, 0)
    assert 3 / len(sample) < none.high < 0.2
    assert (every.value, every.high) == (1, 1)
    assert 1 - every.low == pytest.approx(none.high)
    assert 1 < none.ess <= none.pages


def test_one_row_gives_an_uninformative_interval() -> None:
    sample = make_trace([[1]])
    assert share(sample, [1.0]).low <= 0.025
    found = mean(sample, [3.5])
    assert (found.value, found.low, found.high) == (3.5, -math.inf, math.inf)
    assert found.to_dict()["low"] is None
    json.dumps(found.to_dict(), allow_nan=False)


def test_mean_of_a_constant_has_no_standard_error() -> None:
    sample = many_traces(WEB, 1, 4, 100, np.random.default_rng(5))[0]
    found = mean(sample, np.full(len(sample), 0.1))
    assert found.value == pytest.approx(0.1)
    assert found.standard_error == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda one: mean_or_share(one, [1.0]), "values must have one entry for each of the 24 steps, got 1"),
        (lambda one: mean_or_share(one, ["a"] * 24), "values must be numbers"),
        (lambda one: mean_or_share(one, np.full(24, np.nan)), "no step on a topic page"),
        (lambda one: mean_or_share(one, np.ones(24), burn_in=0.7), r"burn_in must be in \[0, 0\.5\], got 0\.7"),
        (lambda one: mean_or_share(one, np.ones(24), level=1.0), r"level must be in \(0, 1\), got 1"),
        (lambda one: distribution(one, ["a"]), "categories must have one entry for each of the 24 steps, got 1"),
        (lambda one: uniform_draws(one, 100, 7), "count must be at most .* got 100"),
        (lambda one: uniform_draws(one, 0, 7), "count must be .* got 0"),
    ],
)
def test_invalid_arguments_raise(call: Callable[[WalkTrace], object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call(make_trace([[0, 1, 2, 3, 4, 5]] * 4))


def test_samples_without_steps_on_topic_raise() -> None:
    lost = trace_of(np.array([[0, 1, 2]]), DEGREES, np.zeros(6, np.bool_))
    for sample in (lost, lost.rows(slice(0, 0))):
        with pytest.raises(UsageError, match="no step on a topic page"):
            mean(sample, np.ones(len(sample)))


def test_values_known_only_during_the_burn_in_raise() -> None:
    sample = trace_of(np.tile(np.arange(6), (2, 50)), DEGREES)
    early = np.where(np.arange(len(sample)) < 20, 1.0, np.nan)
    estimators: list[Callable[[WalkTrace, FloatArray], object]] = [mean_or_share, mean, share, quantile, distribution]
    estimators.append(lambda trace, values: histogram(trace, values, [0, 1, 2]))
    for estimator in estimators:
        with pytest.raises(UsageError, match="after the burn-in"):
            estimator(sample, early)


def test_lower_bounds_of_means_of_counts_are_not_negative() -> None:
    values = np.zeros(6)
    values[[2, 5]] = 1, 9
    sample = make_trace([[0, 1, 3, 4, 2], [3, 0, 5, 1, 1]])
    assert mean(sample, values[sample.page], burn_in=0).low == 0
    assert mean(sample, values[sample.page] - 0.1, burn_in=0).low < 0


def test_values_of_zero_and_one_give_a_share() -> None:
    sample = many_traces(WEB, 1, 8, 300, np.random.default_rng(6))[0]
    found = mean_or_share(sample, sample.page % 2)
    assert found.is_share
    assert found == share(sample, sample.page % 2)
    assert str(Estimate(0.412, 0.38, 0.445, 0.95, 0.02, 400, 1, 1, 1, "", is_share=True)) == "41.2 % (38.0 to 44.5)"
    assert str(Estimate(1234.5, 1000, 1500, 0.95, 100, 400, 1, 1, 1, "")) == "1,234 (1,000 to 1,500)"
    assert not mean_or_share(sample, sample.degree).is_share


# --- burn-in ---


def test_burn_in_is_a_tenth_of_each_walk_and_fifty_steps_after_a_jump() -> None:
    pages = np.tile(np.arange(6), (2, 50))
    sample = trace_of(pages, DEGREES)
    segment = np.zeros_like(sample.walk)
    steps = np.arange(len(sample)) // 2
    segment[(sample.walk == 1) & (steps >= 100)] = 1
    segment[(sample.walk == 1) & (steps >= 280)] = 2
    jumping = WalkTrace(sample.walk, segment, sample.page, sample.on_topic, sample.degree, sample.fetches)
    rows = after_burn_in(jumping, 0.1)
    assert steps[rows[sample.walk[rows] == 0]].tolist() == [*range(30, 300)]
    # A segment of 20 steps loses half of them.
    assert steps[rows[sample.walk[rows] == 1]].tolist() == [*range(30, 100), *range(150, 280), *range(290, 300)]


def test_all_estimates_use_the_same_steps() -> None:
    rng = np.random.default_rng(8)
    sample = trace_of(rng.integers(0, 6, (8, 400)), DEGREES)
    assert after_burn_in(sample).size == 8 * 360
    flags, numbers = sample.page % 2, np.where(sample.page == 3, np.nan, sample.page)
    assert share(sample, flags).steps == mean(sample, sample.page).steps == 8 * 360
    assert mean(sample, numbers).steps == int((sample.page[after_burn_in(sample)] != 3).sum())
    diagnostics = diagnose(sample, {"flags": flags, "numbers": numbers})
    assert diagnostics.ess["flags"] == share(sample, flags).ess
    assert diagnostics.ess["numbers"] == mean(sample, numbers).ess


# --- uniform draws ---


def test_draws_are_uniform_and_reproducible() -> None:
    web = communities(np.random.default_rng(9), 60, count=1)
    sample = trace_of(lazy_walks(web, np.arange(50), 2000, np.random.default_rng(10)), web.degree)
    drawn = uniform_draws(sample, 3000, 7)
    assert drawn.tolist() == uniform_draws(sample, 3000, 7).tolist()
    assert drawn.tolist() != uniform_draws(sample, 3000, 8).tolist()
    counts = np.bincount(drawn, minlength=60)
    assert ((counts - 50) ** 2 / 50).sum() < 110  # chi-square of 59 degrees of df: 98.3 at 0.1 %
    visits = np.bincount(sample.page, minlength=60) * 3000 / len(sample)
    assert ((visits - 50) ** 2 / 50).sum() > 200  # the steps themselves are not uniform


# --- calibration ---

RUNS = 200


def properties(web: Web) -> dict[str, FloatArray]:
    rng = np.random.default_rng(12)
    return {
        "a community of half": (web.community % 2).astype(np.float64),
        "a tenth": (rng.random(web.pages) < 0.1).astype(np.float64),
        "a tenth in one community": ((web.community == 1) & (rng.random(web.pages) < 0.4)).astype(np.float64),
        "one in fifty": (rng.random(web.pages) < 0.02).astype(np.float64),
        "log degree": np.log(web.degree),
        "quantile": rng.lognormal(0, 1, web.pages) + web.community,
    }


@pytest.mark.parametrize(("walks", "steps"), [(4, 500), (16, 150)])
@pytest.mark.parametrize("name", list(properties(WEB)))
def test_intervals_have_nominal_coverage_and_length(name: str, walks: int, steps: int) -> None:
    values = properties(WEB)[name]
    found, truth = [], float(values.mean())
    if name == "quantile":
        truth = float(np.quantile(values, 0.7, method="inverted_cdf"))
    for sample in many_traces(WEB, RUNS, walks, steps, np.random.default_rng([walks, steps])):
        row_values = values[sample.page]
        found.append(quantile(sample, row_values, 0.7) if name == "quantile" else mean_or_share(sample, row_values))
    coverage = np.mean([one.low <= truth <= one.high for one in found])
    expected = 1.96 * np.std([one.value for one in found])
    assert 0.89 <= coverage <= 0.995  # 95 %, four standard errors of 200 runs
    assert 0.8 <= np.median([one.margin for one in found]) / expected <= 1.35


@pytest.mark.parametrize("df", [1, 2.5, 7, 40.3, 1e4, 1e9])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_distributions_match_scipy(df: float, level: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    assert distributions.student_two_sided(level, df) == pytest.approx(stats.t.ppf(0.5 + level / 2, df), rel=1e-6)
    for x in (0.01, 1.0, df, 3 * df):
        if df < 1e5:
            assert distributions.chi_square_tail(x, df) == pytest.approx(stats.chi2.sf(x, df), rel=1e-6, abs=1e-12)
        assert distributions.f_tail(x, 3, df) == pytest.approx(stats.f.sf(x, 3, df), rel=1e-5, abs=1e-12)
    if df < 1e5:
        assert distributions.chi_square_quantile(level, df) == pytest.approx(stats.chi2.ppf(level, df), rel=1e-6)
    probabilities = np.linspace(1e-6, 1 - 1e-6, 999)
    np.testing.assert_allclose(distributions.normal_quantiles(probabilities), stats.norm.ppf(probabilities), atol=1e-8)
    low, high = distributions.clopper_pearson(0.1, 40, level)
    tail = (1 - level) / 2
    assert (low, high) == pytest.approx((stats.beta.ppf(tail, 4, 37), stats.beta.ppf(1 - tail, 5, 36)))
