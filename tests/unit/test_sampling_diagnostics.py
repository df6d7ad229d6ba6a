from __future__ import annotations

import json
import math
import re
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surveyor.errors import UsageError
from surveyor.estimate.sampling.diagnostics import LOG_DEGREE, diagnose, geweke_z, split_rhat
from surveyor.estimate.sampling.distributions import normal_scores
from surveyor.estimate.sampling.estimates import mean, share
from surveyor.estimate.sampling.standard_errors import split_into_blocks, variance_of_sum
from surveyor.estimate.sampling.walk_trace import WalkTrace
from walk_webs import communities, lazy_walks, many_traces, trace_of

WEB = communities(np.random.default_rng(1))
SAMPLE = many_traces(WEB, 1, 8, 500, np.random.default_rng(3))[0]


def rhat_by_loops(walks: list[list[float]]) -> float:
    """Follow Vehtari et al. (2021), equation by equation, for walks of equal even length."""
    everything = [value for one in walks for value in one]
    ordered = sorted(everything)

    def score(value: float) -> float:
        rank = ordered.index(value) + (ordered.count(value) + 1) / 2
        return NormalDist().inv_cdf((rank - 3 / 8) / (len(ordered) + 1 / 4))

    half = len(walks[0]) // 2
    chains = [[score(value) for value in part] for one in walks for part in (one[:half], one[half:])]
    means = [sum(one) / half for one in chains]
    within = sum(sum((v - m) ** 2 for v in c) / (half - 1) for c, m in zip(chains, means, strict=True)) / len(chains)
    middle = sum(means) / len(means)
    between = half * sum((m - middle) ** 2 for m in means) / (len(means) - 1)
    return math.sqrt(((half - 1) / half * within + between / half) / within)


@given(st.lists(st.lists(st.integers(0, 9), min_size=8, max_size=8), min_size=1, max_size=5))
def test_rhat_follows_the_paper(walks: list[list[int]]) -> None:
    rows = np.array(walks, np.float64)
    found = split_rhat(np.repeat(np.arange(len(walks)), 8), rows.ravel())
    halves = rows.reshape(-1, 4)
    if (halves == halves[:, :1]).all():
        assert found == 1.0 if (rows == rows[0, 0]).all() else found == math.inf
    else:
        assert found == pytest.approx(rhat_by_loops(rows.tolist()), rel=1e-6)


def test_rhat_ignores_a_middle_step_and_short_walks() -> None:
    walk = np.repeat([0, 1, 2], [9, 9, 3])
    values = np.random.default_rng(3).normal(size=21)
    scores = normal_scores(values)  # of all rows
    halves = np.array([scores[0:4], scores[5:9], scores[9:13], scores[14:18]])
    within = halves.var(axis=1, ddof=1).mean()
    expected = math.sqrt(3 / 4 + halves.mean(axis=1).var(ddof=1) / within)
    assert split_rhat(walk, values) == pytest.approx(expected)
    assert math.isnan(split_rhat(walk[18:], values[18:]))


def test_ess_of_independent_pages_is_their_number_and_repeated_steps_add_nothing() -> None:
    rng = np.random.default_rng(4)
    pages = rng.integers(0, 1000, (8, 500))
    ones = np.ones(1000)
    values = (pages.T.ravel() % 3).astype(np.float64)
    assert mean(trace_of(pages, ones), values, burn_in=0.0).ess == pytest.approx(4000, rel=0.15)
    thrice = np.repeat(pages, 3, axis=1)
    values = (thrice.T.ravel() % 3).astype(np.float64)
    assert mean(trace_of(thrice, ones), values, burn_in=0.0).ess == pytest.approx(4000, rel=0.2)


def test_unequal_weights_reduce_the_ess() -> None:
    rng = np.random.default_rng(5)
    degree = np.array([1.0, 10.0])
    # The stationary distribution is proportional to the degree.
    pages = (rng.random((8, 500)) < 10 / 11).astype(np.int64)
    found = mean(trace_of(pages, degree), pages.T.ravel(), burn_in=0.0).ess
    # Var of the ratio is Σ π w² (f − R)² / (n (Σ π w)²) with w = 1/d: ESS / n = (2/11)² · ¼ / (¼ (1 + 1/10) / 11).
    assert found / 4000 == pytest.approx((2 / 11) ** 2 / (1.1 / 11), rel=0.15)


def test_ess_of_disagreeing_walks_is_about_their_number() -> None:
    pages = np.repeat(np.arange(8) % 2, 400).reshape(8, 400) * 2 + np.random.default_rng(6).integers(0, 2, (8, 400))
    sample = trace_of(pages, np.array([3.0, 4.0, 3.0, 4.0]))
    camp = (sample.page >= 2).astype(np.float64)
    assert mean(sample, camp).ess < 12
    diagnostics = diagnose(sample, {"camp": camp})
    assert diagnostics.rhat["camp"] > 1.5
    assert any(text.startswith("R-hat") and "start walks in each part" in text for text in diagnostics.warnings)
    assert any(text.startswith("effective sample size") and "(camp)" in text for text in diagnostics.warnings)


def test_rhat_detects_small_permanent_differences_between_walks() -> None:
    """In one part hubs have a property, in the other leaves: equal visits, but different weighted shares."""
    rng, steps = np.random.default_rng(16), 20_000
    degree = np.array([20.0, 1.0, 20.0, 1.0])
    hub = rng.random((8, steps)) < 0.5
    pages = np.where(hub, 0, 1) + 2 * (np.arange(8) % 2)[:, None]
    sample = trace_of(pages, degree)
    flags = np.isin(sample.page, (0, 3)).astype(np.float64)
    by_walk = [flags[sample.walk == walk].mean() for walk in range(8)]
    assert max(by_walk) - min(by_walk) < 0.02
    diagnostics = diagnose(sample, {"flags": flags})
    assert diagnostics.rhat["flags"] > 1.1
    found = share(sample, flags)
    assert found.high - found.low > 0.5
    assert found.ess < 12
    # If a quarter of the steps change the part, the walks agree.
    mixed = np.where(hub, 0, 1) + 2 * (np.cumsum(rng.random((8, steps)) < 0.25, axis=1) % 2)
    sample = trace_of(mixed, degree)
    flags = np.isin(sample.page, (0, 3)).astype(np.float64)
    assert diagnose(sample, {"flags": flags}).rhat["flags"] < 1.01
    assert share(sample, flags).ess > 2000


def test_between_walk_variance_detects_differences_smaller_than_the_noise() -> None:
    """Geyer's sum ends too early to include them."""
    rng, steps = np.random.default_rng(17), 20_000
    value = rng.normal(size=(8, steps)) + 0.03 * (np.arange(8) % 2)[:, None]
    walk = np.repeat(np.arange(8), steps)
    blocks = split_into_blocks(walk)
    deviation = value.ravel() - value.mean()
    variance, df = variance_of_sum(blocks.walk, blocks.sums(deviation / deviation.size)).scalar()
    assert math.sqrt(variance) == pytest.approx(0.03 / 2 / math.sqrt(7), rel=0.25)
    assert df == 7
    equal = rng.normal(size=8 * steps)
    variance, df = variance_of_sum(blocks.walk, blocks.sums((equal - equal.mean()) / equal.size)).scalar()
    assert math.sqrt(variance) == pytest.approx(1 / math.sqrt(8 * steps), rel=0.1)
    assert df > 100


def test_a_converged_sample_has_no_warnings() -> None:
    diagnostics = diagnose(SAMPLE, {"even": SAMPLE.page % 2}, host=SAMPLE.page % 7)
    (few,) = diagnostics.warnings
    assert re.match(r"effective sample size 1\d\d \(even\) is below 400", few)
    long = many_traces(WEB, 1, 8, 2500, np.random.default_rng(3))[0]
    assert diagnose(long, {"even": long.page % 2}).warnings == ()
    assert set(diagnostics.ess) == set(diagnostics.rhat) == set(diagnostics.geweke) == {LOG_DEGREE, "even"}
    assert diagnostics.ess[LOG_DEGREE] == pytest.approx(mean(SAMPLE, np.log(SAMPLE.degree)).ess)
    assert all(1 - 1e-3 < one < 1.1 for one in diagnostics.rhat.values())
    counts = diagnostics.steps, diagnostics.steps_on_topic, diagnostics.walks, diagnostics.jumps
    assert counts == (4000, 4000, 8, 0)
    assert diagnostics.stuck == ()
    assert diagnostics.burn_in_steps >= 200
    assert diagnostics.max_host_share == pytest.approx(1 / 7, abs=0.1)
    plain = json.loads(json.dumps(diagnostics.to_dict(), allow_nan=False))
    assert plain["warnings"] == [few]


def test_mean_degree_is_larger_over_steps_than_over_pages() -> None:
    diagnostics = diagnose(SAMPLE)
    assert diagnostics.mean_degree_of_steps == pytest.approx((WEB.degree**2).mean() / WEB.degree.mean(), rel=0.25)
    assert diagnostics.mean_degree_of_pages == pytest.approx(WEB.degree.mean(), rel=0.15)
    assert diagnostics.mean_degree_of_steps > 1.3 * diagnostics.mean_degree_of_pages


def test_stuck_walks_single_walks_single_hosts_and_jumps_are_reported() -> None:
    rng = np.random.default_rng(7)
    pages = lazy_walks(WEB, rng.integers(0, WEB.pages, 4), 400, rng)
    pages[2] = pages[2, 0]
    sample = trace_of(pages, WEB.degree)
    segment = np.where((sample.walk == 1) & (np.arange(len(sample)) > 800), 2, 0).astype(np.int32)
    jumping = WalkTrace(sample.walk, segment, sample.page, sample.on_topic, sample.degree, sample.fetches)
    diagnostics = diagnose(jumping, host=np.zeros(len(sample), np.int64))
    assert diagnostics.stuck == (2,)
    assert diagnostics.jumps == 2
    assert any("walk 2 of 4 never moved" in text for text in diagnostics.warnings)
    assert any("100 % of the steps are on one host" in text for text in diagnostics.warnings)
    alone = diagnose(jumping.rows(jumping.walk == 0))
    assert any(text.startswith("one walk cannot detect") for text in alone.warnings)
    short = diagnose(sample.rows(np.arange(len(sample)) < 4 * 49))
    assert any(text.startswith("walks of 49 steps still depend on where they started") for text in short.warnings)
    assert not any("depend on where they started" in text for text in diagnostics.warnings)


def test_geweke_detects_drift_only() -> None:
    rng = np.random.default_rng(8)
    walk = np.repeat(np.arange(8), 200)
    blocks = split_into_blocks(walk)
    totals = blocks.sums(np.ones(walk.size))
    drift = np.tile(np.linspace(0, 1, 200), 8)
    steady = [geweke_z(blocks, blocks.sums(rng.normal(size=walk.size)), totals) for _ in range(200)]
    assert 0.85 <= np.std(steady) <= 1.25
    assert geweke_z(blocks, blocks.sums(rng.normal(size=walk.size) + 3 * drift), totals) < -2.5
    assert geweke_z(blocks, blocks.sums(np.ones(walk.size)), totals) == 0
    assert geweke_z(blocks, blocks.sums((drift < 0.3).astype(np.float64)), totals) == math.inf
    diagnostics = diagnose(
        trace_of(np.tile(np.arange(200), (4, 1)), np.full(200, 2.0)), {"place": np.repeat(np.arange(200), 4)}
    )
    assert any(text.startswith("Geweke") and "walk longer" in text for text in diagnostics.warnings)


def test_a_property_without_values_raises() -> None:
    with pytest.raises(UsageError, match="'age' is unknown in every step"):
        diagnose(SAMPLE, {"age": np.full(len(SAMPLE), np.nan)})
    with pytest.raises(UsageError, match="values must have one entry for each of the 4,000 steps, got 3"):
        diagnose(SAMPLE, {"age": [1.0, 2.0, 3.0]})


def test_two_steps_have_diagnostics() -> None:
    diagnostics = diagnose(trace_of(np.array([[0, 1]]), np.array([1.0, 2.0])))
    assert math.isnan(diagnostics.rhat[LOG_DEGREE])
    json.dumps(diagnostics.to_dict(), allow_nan=False)
    assert any(text.startswith("effective sample size") for text in diagnostics.warnings)
