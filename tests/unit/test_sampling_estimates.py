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
from surveyor.estimate.sampling import laws
from surveyor.estimate.sampling.burn_in import kept
from surveyor.estimate.sampling.diagnostics import diagnose
from surveyor.estimate.sampling.draws import uniform_draws
from surveyor.estimate.sampling.estimates import Estimate, distribution, histogram, mean, quantile, ratio, share
from surveyor.estimate.sampling.walk_trace import WalkTrace
from walking import Web, communities, many_trails, trail_of, walked

WEB = communities(np.random.default_rng(1))
PAGES = st.lists(st.lists(st.integers(0, 5), min_size=6, max_size=6), min_size=2, max_size=5)
DEGREES = np.array([1.0, 2.0, 4.0, 1.0, 3.0, 7.0])
VALUES = np.array([0.5, -1.0, 3.0, 2.0, 2.0, 10.0])


def trace(pages: list[list[int]]) -> WalkTrace:
    return trail_of(np.array(pages), DEGREES)


# --- by hand ---------------------------------------------------------------------------------------------------------


def test_every_page_counts_by_the_inverse_of_its_degree() -> None:
    sample = trace([[0, 2, 2, 1], [1, 2, 5, 0]])
    weights = [1, 1 / 4, 1 / 4, 1 / 2, 1 / 2, 1 / 4, 1 / 7, 1]
    values = [0.5, 3.0, 3.0, -1.0, -1.0, 3.0, 10.0, 0.5]
    by_hand = sum(w * f for w, f in zip(weights, values, strict=True)) / sum(weights)
    found = mean(sample, VALUES[sample.page], burn=0.0)
    assert found.value == pytest.approx(by_hand)
    assert found.low < found.value < found.high
    assert (found.rows, found.pages, found.walks) == (8, 4, 2)
    assert found.margin == pytest.approx((found.high - found.low) / 2)


def test_pages_off_topic_and_unknown_values_do_not_count() -> None:
    pages = np.array([[0, 1, 2, 3, 4, 5] * 4, [5, 4, 3, 2, 1, 0] * 4])
    sample = trail_of(pages, DEGREES, np.array([True, True, True, True, False, False]))
    values = np.where(sample.page == 3, np.nan, VALUES[sample.page])
    found = mean(sample, values, burn=0.0)
    weights = 1 / DEGREES[:3]
    assert found.value == pytest.approx((weights * VALUES[:3]).sum() / weights.sum())
    assert found.rows == 24


@given(PAGES, st.floats(0.01, 100), st.randoms(use_true_random=False))
def test_neither_the_scale_of_degrees_nor_the_order_of_walks_matters(
    pages: list[list[int]], scale: float, chance: object
) -> None:
    plain = trace(pages)
    shuffled = pages.copy()
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    scaled = trail_of(np.array(shuffled), DEGREES * scale)
    one = mean(plain, VALUES[plain.page], burn=0.0)
    other = mean(scaled, VALUES[scaled.page], burn=0.0)
    assert other.value == pytest.approx(one.value)
    blocked = plain.rows(np.argsort(plain.walk, kind="stable"))  # the same rows, walk after walk
    again = mean(blocked, VALUES[blocked.page], burn=0.0)
    assert again.value == pytest.approx(one.value)
    assert again.se == pytest.approx(one.se)


@given(PAGES)
@example([[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 4, 4]])  # all of one category, whose share is 1 but for rounding
def test_shares_of_a_distribution_are_those_of_each_category_and_sum_to_one(pages: list[list[int]]) -> None:
    sample = trace(pages)
    kinds = np.array(["a", "b", "b", "c", "a", "c"])[sample.page]
    found = distribution(sample, kinds, burn=0.0)
    assert sum(one.value for one in found.shares) == pytest.approx(1)
    for label, one in zip(found.labels, found.shares, strict=True):
        single = share(sample, kinds == label, burn=0.0)
        assert one.value == pytest.approx(single.value)
        assert 0 <= one.low <= one.value <= one.high <= 1


def test_distributions_take_words_with_gaps_and_list_the_largest_first() -> None:
    sample = many_trails(WEB, 1, 8, 300, np.random.default_rng(2))[0]
    words = np.array(["de", None, "en", "en"], object)[sample.page % 4]
    found = distribution(sample, words)
    assert found.labels == ("en", "de")
    assert [one.value for one in found.shares] == sorted((one.value for one in found.shares), reverse=True)
    known = share(sample, np.array([1.0, np.nan, 0.0, 0.0])[sample.page % 4])
    assert found.shares[1].value == pytest.approx(known.value, abs=0.05)  # its burn-in may differ
    assert json.loads(json.dumps(found.to_dict()))["labels"] == ["en", "de"]


def test_histograms_count_pages_in_bins_and_the_last_with_its_edge() -> None:
    sample = trace([[0, 1, 2, 3, 4, 5]] * 4)
    found = histogram(sample, VALUES[sample.page], [-1.0, 2.0, 3.0], burn=0.0)
    weights = 1 / DEGREES
    assert found.labels == ((-1.0, 2.0), (2.0, 3.0))
    assert found.shares[0].value == pytest.approx(weights[[0, 1]].sum() / weights.sum())
    assert found.shares[1].value == pytest.approx(weights[[2, 3, 4]].sum() / weights.sum())
    with pytest.raises(UsageError, match="do not rise"):
        histogram(sample, VALUES[sample.page], [1.0, 1.0])
    with pytest.raises(UsageError, match="do not rise"):
        histogram(sample, VALUES[sample.page], [1.0])


def test_the_median_is_the_weighted_one_within_its_interval() -> None:
    sample = trace([[0, 1, 2, 3, 4, 5]] * 4)
    # Weights 1/2, 1, 1/3+1 … of the values in order: -1, 0.5, 2, 3, 10.
    assert quantile(sample, VALUES[sample.page], 0.5, burn=0.0).value == 2.0
    assert quantile(sample, VALUES[sample.page], 0.15, burn=0.0).value == -1.0
    assert quantile(sample, VALUES[sample.page], 0.99, burn=0.0).value == 10.0
    with pytest.raises(UsageError, match="a quantile at 1"):
        quantile(sample, VALUES[sample.page], 1.0)


# --- degenerate ------------------------------------------------------------------------------------------------------


def test_never_seen_is_not_never() -> None:
    sample = many_trails(WEB, 1, 4, 300, np.random.default_rng(4))[0]
    none, every = share(sample, np.zeros(len(sample))), share(sample, np.ones(len(sample)))
    assert (none.value, none.low) == (0, 0)
    assert 3 / len(sample) < none.high < 0.2
    assert (every.value, every.high) == (1, 1)
    assert 1 - every.low == pytest.approx(none.high)
    assert 1 < none.ess <= none.pages


def test_one_row_says_next_to_nothing() -> None:
    sample = trace([[1]])
    assert share(sample, [1.0]).low <= 0.025
    found = mean(sample, [3.5])
    assert (found.value, found.low, found.high) == (3.5, -math.inf, math.inf)
    assert found.to_dict()["low"] is None
    json.dumps(found.to_dict(), allow_nan=False)


def test_constant_values_have_themselves_as_mean() -> None:
    sample = many_trails(WEB, 1, 4, 100, np.random.default_rng(5))[0]
    found = mean(sample, np.full(len(sample), 0.1))
    assert found.value == pytest.approx(0.1)
    assert found.se == 0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda one: ratio(one, [1.0]), "1 values for 24 rows"),
        (lambda one: ratio(one, ["a"] * 24), "not numbers"),
        (lambda one: ratio(one, np.full(24, np.nan)), "no step of the sample stands on a page on topic"),
        (lambda one: ratio(one, np.ones(24), burn=0.7), "a burn-in of 0.7"),
        (lambda one: ratio(one, np.ones(24), level=1.0), "an interval at level 1"),
        (lambda one: distribution(one, ["a"]), "1 categories for 24 rows"),
        (lambda one: uniform_draws(one, 100, 7), "100 pages out of"),
        (lambda one: uniform_draws(one, 0, 7), "0 pages"),
    ],
)
def test_bad_wishes_get_one_sentence(call: Callable[[WalkTrace], object], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        call(trace([[0, 1, 2, 3, 4, 5]] * 4))


def test_a_sample_off_topic_and_one_without_steps_say_so() -> None:
    lost = trail_of(np.array([[0, 1, 2]]), DEGREES, np.zeros(6, np.bool_))
    for sample in (lost, lost.rows(slice(0, 0))):
        with pytest.raises(UsageError, match="no step of the sample stands on a page on topic"):
            mean(sample, np.ones(len(sample)))


def test_values_known_in_the_burn_in_only_tell_nothing() -> None:
    sample = trail_of(np.tile(np.arange(6), (2, 50)), DEGREES)
    early = np.where(np.arange(len(sample)) < 20, 1.0, np.nan)
    asked: list[Callable[[WalkTrace, FloatArray], object]] = [ratio, mean, share, quantile, distribution]
    asked.append(lambda trace, values: histogram(trace, values, [0, 1, 2]))
    for one in asked:
        with pytest.raises(UsageError, match="no step after the first tenth"):
            one(sample, early)


def test_means_of_counts_are_not_below_zero() -> None:
    values = np.zeros(6)
    values[[2, 5]] = 1, 9
    sample = trace([[0, 1, 3, 4, 2], [3, 0, 5, 1, 1]])
    assert mean(sample, values[sample.page], burn=0).low == 0
    assert mean(sample, values[sample.page] - 0.1, burn=0).low < 0


def test_zeros_and_ones_are_a_share_and_it_reads_as_one() -> None:
    sample = many_trails(WEB, 1, 8, 300, np.random.default_rng(6))[0]
    found = ratio(sample, sample.page % 2)
    assert found.share
    assert found == share(sample, sample.page % 2)
    assert str(Estimate(0.412, 0.38, 0.445, 0.95, 0.02, 400, 1, 1, 1, "", share=True)) == "41.2 % (38.0 to 44.5)"
    assert str(Estimate(1234.5, 1000, 1500, 0.95, 100, 400, 1, 1, 1, "")) == "1,234 (1,000 to 1,500)"
    assert not ratio(sample, sample.degree).share


# --- burn-in ---------------------------------------------------------------------------------------------------------


def test_burn_in_is_a_share_of_each_walk_and_fifty_steps_after_a_jump() -> None:
    pages = np.tile(np.arange(6), (2, 50))
    sample = trail_of(pages, DEGREES)
    segment = np.zeros_like(sample.walk)
    steps = np.arange(len(sample)) // 2
    segment[(sample.walk == 1) & (steps >= 100)] = 1
    segment[(sample.walk == 1) & (steps >= 280)] = 2
    jumping = WalkTrace(sample.walk, segment, sample.page, sample.on_topic, sample.degree, sample.fetches)
    rows = kept(jumping, 0.1)
    assert steps[rows[sample.walk[rows] == 0]].tolist() == [*range(30, 300)]
    # A segment of 20 steps loses half of them.
    assert steps[rows[sample.walk[rows] == 1]].tolist() == [*range(30, 100), *range(150, 280), *range(290, 300)]


def test_all_that_is_asked_is_of_the_same_steps() -> None:
    rng = np.random.default_rng(8)
    sample = trail_of(rng.integers(0, 6, (8, 400)), DEGREES)
    assert kept(sample).size == 8 * 360
    flags, numbers = sample.page % 2, np.where(sample.page == 3, np.nan, sample.page)
    assert share(sample, flags).rows == mean(sample, sample.page).rows == 8 * 360
    assert mean(sample, numbers).rows == int((sample.page[kept(sample)] != 3).sum())
    told = diagnose(sample, {"flags": flags, "numbers": numbers})
    assert told.ess["flags"] == share(sample, flags).ess
    assert told.ess["numbers"] == mean(sample, numbers).ess


# --- draws -----------------------------------------------------------------------------------------------------------


def test_draws_are_uniform_and_follow_from_the_seed() -> None:
    web = communities(np.random.default_rng(9), 60, parts=1)
    sample = trail_of(walked(web, np.arange(50), 2000, np.random.default_rng(10)), web.degree)
    drawn = uniform_draws(sample, 3000, 7)
    assert drawn.tolist() == uniform_draws(sample, 3000, 7).tolist()
    assert drawn.tolist() != uniform_draws(sample, 3000, 8).tolist()
    counts = np.bincount(drawn, minlength=60)
    assert ((counts - 50) ** 2 / 50).sum() < 110  # chi-square of 59 degrees of freedom: 98.3 at 0.1 %
    visits = np.bincount(sample.page, minlength=60) * 3000 / len(sample)
    assert ((visits - 50) ** 2 / 50).sum() > 200  # as the steps themselves are not


# --- calibration -----------------------------------------------------------------------------------------------------

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
def test_intervals_hold_what_they_promise_and_are_no_longer_than_they_must(name: str, walks: int, steps: int) -> None:
    values = properties(WEB)[name]
    found, truth = [], float(values.mean())
    if name == "quantile":
        truth = float(np.quantile(values, 0.7, method="inverted_cdf"))
    for sample in many_trails(WEB, RUNS, walks, steps, np.random.default_rng([walks, steps])):
        of_rows = values[sample.page]
        found.append(quantile(sample, of_rows, 0.7) if name == "quantile" else ratio(sample, of_rows))
    held = np.mean([one.low <= truth <= one.high for one in found])
    needed = 1.96 * np.std([one.value for one in found])
    assert 0.89 <= held <= 0.995  # 95 %, four standard errors of 200 runs
    assert 0.8 <= np.median([one.margin for one in found]) / needed <= 1.35


@pytest.mark.parametrize("freedom", [1, 2.5, 7, 40.3, 1e4, 1e9])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_laws_are_those_of_scipy(freedom: float, level: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    assert laws.student(level, freedom) == pytest.approx(stats.t.ppf(0.5 + level / 2, freedom), rel=1e-6)
    for x in (0.01, 1.0, freedom, 3 * freedom):
        if freedom < 1e5:
            assert laws.chi_square_tail(x, freedom) == pytest.approx(stats.chi2.sf(x, freedom), rel=1e-6, abs=1e-12)
        assert laws.f_tail(x, 3, freedom) == pytest.approx(stats.f.sf(x, 3, freedom), rel=1e-5, abs=1e-12)
    if freedom < 1e5:
        assert laws.chi_square_quantile(level, freedom) == pytest.approx(stats.chi2.ppf(level, freedom), rel=1e-6)
    chances = np.linspace(1e-6, 1 - 1e-6, 999)
    np.testing.assert_allclose(laws.normal_quantiles(chances), stats.norm.ppf(chances), atol=1e-8)
    low, high = laws.proportion(0.1, 40, level)
    tail = (1 - level) / 2
    assert (low, high) == pytest.approx((stats.beta.ppf(tail, 4, 37), stats.beta.ppf(1 - tail, 5, 36)))
