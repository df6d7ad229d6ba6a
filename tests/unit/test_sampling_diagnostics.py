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
from surveyor.estimate.sampling.diagnostics import LOG_DEGREE, diagnose, geweke, split_rhat
from surveyor.estimate.sampling.estimates import mean, share
from surveyor.estimate.sampling.laws import normal_scores
from surveyor.estimate.sampling.spread import blocks, spread
from surveyor.estimate.sampling.walk_trace import WalkTrace
from walking import communities, many_trails, trail_of, walked

WEB = communities(np.random.default_rng(1))
SAMPLE = many_trails(WEB, 1, 8, 500, np.random.default_rng(3))[0]


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
def test_rhat_is_that_of_the_paper(walks: list[list[int]]) -> None:
    rows = np.array(walks, np.float64)
    found = split_rhat(np.repeat(np.arange(len(walks)), 8), rows.ravel())
    halves = rows.reshape(-1, 4)
    if (halves == halves[:, :1]).all():
        assert found == 1.0 if (rows == rows[0, 0]).all() else found == math.inf
    else:
        assert found == pytest.approx(rhat_by_loops(rows.tolist()), rel=1e-6)


def test_rhat_leaves_out_a_middle_step_and_short_walks() -> None:
    walk = np.repeat([0, 1, 2], [9, 9, 3])
    values = np.random.default_rng(3).normal(size=21)
    scores = normal_scores(values)  # of all rows
    halves = np.array([scores[0:4], scores[5:9], scores[9:13], scores[14:18]])
    within = halves.var(axis=1, ddof=1).mean()
    expected = math.sqrt(3 / 4 + halves.mean(axis=1).var(ddof=1) / within)
    assert split_rhat(walk, values) == pytest.approx(expected)
    assert math.isnan(split_rhat(walk[18:], values[18:]))


def test_independent_pages_are_worth_themselves_and_stays_are_worth_nothing() -> None:
    rng = np.random.default_rng(4)
    pages = rng.integers(0, 1000, (8, 500))
    ones = np.ones(1000)
    values = (pages.T.ravel() % 3).astype(np.float64)
    assert mean(trail_of(pages, ones), values, burn=0.0).ess == pytest.approx(4000, rel=0.15)
    thrice = np.repeat(pages, 3, axis=1)
    values = (thrice.T.ravel() % 3).astype(np.float64)
    assert mean(trail_of(thrice, ones), values, burn=0.0).ess == pytest.approx(4000, rel=0.2)


def test_weights_that_differ_cost_effective_pages() -> None:
    rng = np.random.default_rng(5)
    degree = np.array([1.0, 10.0])
    # The law is in proportion to the degree; a tenth of the weight is on the many visits to the second page.
    pages = (rng.random((8, 500)) < 10 / 11).astype(np.int64)
    found = mean(trail_of(pages, degree), pages.T.ravel(), burn=0.0).ess
    # Var of the ratio is Σ π w² (f − R)² / (n (Σ π w)²) with w = 1/d: ESS / n = (2/11)² · ¼ / (¼ (1 + 1/10) / 11).
    assert found / 4000 == pytest.approx((2 / 11) ** 2 / (1.1 / 11), rel=0.15)


def test_walks_that_disagree_are_worth_about_as_much_as_there_are_walks() -> None:
    pages = np.repeat(np.arange(8) % 2, 400).reshape(8, 400) * 2 + np.random.default_rng(6).integers(0, 2, (8, 400))
    sample = trail_of(pages, np.array([3.0, 4.0, 3.0, 4.0]))
    camp = (sample.page >= 2).astype(np.float64)
    assert mean(sample, camp).ess < 12
    told = diagnose(sample, {"camp": camp})
    assert told.rhat["camp"] > 1.5
    assert any(text.startswith("R-hat") and "hardly link to each other" in text for text in told.warnings)
    assert any(text.startswith("effective sample size") and "(camp)" in text for text in told.warnings)


def test_walks_that_disagree_by_little_for_good_are_seen_through_the_noise() -> None:
    """In one part hubs have a property, in the other leaves: walks stand on it as often, but by weight they differ."""
    rng, steps = np.random.default_rng(16), 20_000
    degree = np.array([20.0, 1.0, 20.0, 1.0])
    hub = rng.random((8, steps)) < 0.5
    pages = np.where(hub, 0, 1) + 2 * (np.arange(8) % 2)[:, None]
    sample = trail_of(pages, degree)
    having = np.isin(sample.page, (0, 3)).astype(np.float64)
    by_walk = [having[sample.walk == walk].mean() for walk in range(8)]
    assert max(by_walk) - min(by_walk) < 0.02
    told = diagnose(sample, {"having": having})
    assert told.rhat["having"] > 1.1
    found = share(sample, having)
    assert found.high - found.low > 0.5
    assert found.ess < 12
    # A quarter of the steps of each part lead over into the other: walks agree.
    mixed = np.where(hub, 0, 1) + 2 * (np.cumsum(rng.random((8, steps)) < 0.25, axis=1) % 2)
    sample = trail_of(mixed, degree)
    having = np.isin(sample.page, (0, 3)).astype(np.float64)
    assert diagnose(sample, {"having": having}).rhat["having"] < 1.01
    assert share(sample, having).ess > 2000


def test_differences_of_walks_smaller_than_the_noise_count() -> None:
    """What Geyer's sum ends before, but whole walks show."""
    rng, steps = np.random.default_rng(17), 20_000
    value = rng.normal(size=(8, steps)) + 0.03 * (np.arange(8) % 2)[:, None]
    walk = np.repeat(np.arange(8), steps)
    found = blocks(walk)
    off = value.ravel() - value.mean()
    variance, freedom = spread(found.walk, found.sums(off / off.size)).one()
    assert math.sqrt(variance) == pytest.approx(0.03 / 2 / math.sqrt(7), rel=0.25)
    assert freedom == 7
    alike = rng.normal(size=8 * steps)
    variance, freedom = spread(found.walk, found.sums((alike - alike.mean()) / alike.size)).one()
    assert math.sqrt(variance) == pytest.approx(1 / math.sqrt(8 * steps), rel=0.1)
    assert freedom > 100


def test_a_good_sample_is_not_warned_of() -> None:
    told = diagnose(SAMPLE, {"even": SAMPLE.page % 2}, host=SAMPLE.page % 7)
    (few,) = told.warnings
    assert re.match(r"effective sample size 1\d\d \(even\): below 400 intervals hold the truth less often", few)
    long = many_trails(WEB, 1, 8, 2500, np.random.default_rng(3))[0]
    assert diagnose(long, {"even": long.page % 2}).warnings == ()
    assert set(told.ess) == set(told.rhat) == set(told.geweke) == {LOG_DEGREE, "even"}
    assert told.ess[LOG_DEGREE] == pytest.approx(mean(SAMPLE, np.log(SAMPLE.degree)).ess)
    assert all(1 - 1e-3 < one < 1.1 for one in told.rhat.values())
    assert (told.steps, told.on_topic, told.walks, told.stuck, told.jumps) == (4000, 4000, 8, (), 0)
    assert told.left_out >= 200
    assert told.host_share == pytest.approx(1 / 7, abs=0.1)
    plain = json.loads(json.dumps(told.to_dict(), allow_nan=False))
    assert plain["warnings"] == [few]


def test_walks_stand_on_pages_of_more_links_than_the_topic_has() -> None:
    told = diagnose(SAMPLE)
    assert told.visited_degree == pytest.approx((WEB.degree**2).mean() / WEB.degree.mean(), rel=0.25)
    assert told.topic_degree == pytest.approx(WEB.degree.mean(), rel=0.15)
    assert told.visited_degree > 1.3 * told.topic_degree


def test_stuck_walks_single_walks_single_hosts_and_jumps_are_told() -> None:
    rng = np.random.default_rng(7)
    pages = walked(WEB, rng.integers(0, WEB.pages, 4), 400, rng)
    pages[2] = pages[2, 0]
    sample = trail_of(pages, WEB.degree)
    segment = np.where((sample.walk == 1) & (np.arange(len(sample)) > 800), 2, 0).astype(np.int32)
    jumping = WalkTrace(sample.walk, segment, sample.page, sample.on_topic, sample.degree, sample.fetches)
    told = diagnose(jumping, host=np.zeros(len(sample), np.int64))
    assert told.stuck == (2,)
    assert told.jumps == 2
    assert any("walk 2 of 4 never moved" in text for text in told.warnings)
    assert any("100% of the steps are on one host" in text for text in told.warnings)
    alone = diagnose(jumping.rows(jumping.walk == 0))
    assert any(text.startswith("one walk cannot show") for text in alone.warnings)
    short = diagnose(sample.rows(np.arange(len(sample)) < 4 * 49))
    assert any(text.startswith("walks of 49 steps are still near where they began") for text in short.warnings)
    assert not any("near where they began" in text for text in told.warnings)


def test_geweke_sees_walks_that_drift_and_is_quiet_about_others() -> None:
    rng = np.random.default_rng(8)
    walk = np.repeat(np.arange(8), 200)
    found = blocks(walk)
    below = found.sums(np.ones(walk.size))
    drift = np.tile(np.linspace(0, 1, 200), 8)
    steady = [geweke(found, found.sums(rng.normal(size=walk.size)), below) for _ in range(200)]
    assert 0.85 <= np.std(steady) <= 1.25
    assert geweke(found, found.sums(rng.normal(size=walk.size) + 3 * drift), below) < -2.5
    assert geweke(found, found.sums(np.ones(walk.size)), below) == 0
    assert geweke(found, found.sums((drift < 0.3).astype(np.float64)), below) == math.inf
    told = diagnose(
        trail_of(np.tile(np.arange(200), (4, 1)), np.full(200, 2.0)), {"place": np.repeat(np.arange(200), 4)}
    )
    assert any(text.startswith("Geweke") and "walk longer" in text for text in told.warnings)


def test_a_property_that_no_step_knows_is_an_error() -> None:
    with pytest.raises(UsageError, match="no step of the sample knows 'age'"):
        diagnose(SAMPLE, {"age": np.full(len(SAMPLE), np.nan)})
    with pytest.raises(UsageError, match="3 values for 4,000 rows"):
        diagnose(SAMPLE, {"age": [1.0, 2.0, 3.0]})


def test_two_steps_can_be_looked_at() -> None:
    told = diagnose(trail_of(np.array([[0, 1]]), np.array([1.0, 2.0])))
    assert math.isnan(told.rhat[LOG_DEGREE])
    json.dumps(told.to_dict(), allow_nan=False)
    assert any(text.startswith("effective sample size") for text in told.warnings)
