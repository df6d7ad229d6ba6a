from __future__ import annotations

import math
import time

import numpy as np
import numpy.typing as npt
import pytest
from experiments import freshness as experiment
from experiments.freshness import changing_pages, simulate, simulate_freshness
from hypothesis import given
from hypothesis import strategies as st

from surveyor.crawler.revisits import (
    change_rate,
    change_rate_irregular,
    change_rates,
    due_times,
    freshness,
    optimal_intervals,
    optimal_rates,
)
from surveyor.errors import UsageError

Array = npt.NDArray[np.float64]

COUNTS = st.integers(0, 60).flatmap(lambda visits: st.tuples(st.just(visits), st.integers(0, visits)))
HISTORY = st.lists(st.tuples(st.floats(1e-3, 1e3), st.booleans()), min_size=1, max_size=30)
POSITIVE = st.floats(1e-4, 1e4)
PAGES = st.lists(st.tuples(POSITIVE | st.just(0.0), POSITIVE | st.just(0.0)), min_size=1, max_size=30)


def columns(rows: list[tuple[float, float]]) -> tuple[Array, Array]:
    one, other = np.array(rows, np.float64).T
    return one, other


@given(COUNTS, st.floats(1e-3, 1e3))
def test_the_rate_at_equal_intervals_has_a_closed_form_inside_its_interval(
    counts: tuple[int, int], interval: float
) -> None:
    visits, changes = counts
    found = change_rate(visits, changes, interval)
    assert found.rate == pytest.approx(-math.log((visits - changes + 0.5) / (visits + 0.5)) / interval)
    assert 0 <= found.low <= found.rate <= found.high
    assert (found.low == 0) == (changes == 0)
    assert (found.high == math.inf) == (changes == visits)


def test_rates_of_many_pages_are_those_of_each() -> None:
    visits, changes, interval = np.array([5, 0, 9]), np.array([1, 0, 9]), np.array([1.0, 2.0, 0.5])
    found = change_rate(visits, changes, interval)
    for page in range(3):
        single = change_rate(int(visits[page]), int(changes[page]), float(interval[page]))
        assert (found.rate[page], found.low[page], found.high[page]) == (single.rate, single.low, single.high)


@pytest.mark.parametrize(("visits", "rate"), [(20, 0.1), (20, 1.0), (20, 2.0), (50, 0.3), (50, 1.0), (50, 2.0)])
def test_the_regular_estimate_is_unbiased_and_its_interval_holds_95_percent(visits: int, rate: float) -> None:
    changes = np.arange(visits + 1)
    chance = -math.expm1(-rate)
    likely = np.array([math.comb(visits, k) * chance**k * (1 - chance) ** (visits - k) for k in range(visits + 1)])
    found = change_rate(np.full(visits + 1, visits), changes, 1.0)
    assert likely @ found.rate == pytest.approx(rate, rel=1e-3)
    assert 0.93 <= likely[(found.low <= rate) & (rate <= found.high)].sum() <= 0.97


@pytest.mark.parametrize("rate", [0.05, 0.3, 1.0, 3.0])
def test_the_irregular_interval_holds_95_percent(rate: float) -> None:
    rng = np.random.default_rng(11)
    runs, visits = 2000, 30
    intervals = rng.lognormal(0, 1, (runs, visits))
    changed = rng.random((runs, visits)) < -np.expm1(-rate * intervals)
    found = change_rates(np.repeat(np.arange(runs), visits), intervals.ravel(), changed.ravel(), runs)
    assert 0.93 <= ((found.low <= rate) & (rate <= found.high)).mean() <= 0.97
    assert np.median(found.rate) == pytest.approx(rate, rel=0.1)


@given(HISTORY)
def test_the_irregular_rate_is_the_most_likely_one(history: list[tuple[float, bool]]) -> None:
    intervals, changed = np.array([row[0] for row in history]), np.array([row[1] for row in history])
    found = change_rate_irregular(intervals, changed)
    assert 0 <= found.low <= found.rate <= found.high
    if not changed.any():
        assert found.rate == found.low == 0.0
    elif changed.all():
        assert found.high == math.inf
        with np.errstate(over="ignore"):
            assert (1 / np.expm1(found.rate * intervals)).sum() == pytest.approx(0.5)
    else:

        def likelihood(rate: float) -> float:
            return float(np.log(-np.expm1(-rate * intervals[changed])).sum() - rate * intervals[~changed].sum())

        most = likelihood(found.rate) * (1 - 1e-12)  # it is negative
        assert most >= likelihood(found.rate * 0.999)
        assert most >= likelihood(found.rate * 1.001)


@given(COUNTS, st.floats(0.01, 100))
def test_irregular_and_regular_agree_where_both_apply(counts: tuple[int, int], interval: float) -> None:
    visits, changes = counts
    irregular = change_rate_irregular(np.full(visits, interval), np.arange(visits) < changes)
    regular = change_rate(visits, changes, interval)
    assert irregular.low == pytest.approx(regular.low, rel=1e-6)
    assert irregular.high == pytest.approx(regular.high, rel=1e-6)
    if changes == visits:
        assert irregular.rate == pytest.approx(regular.rate, rel=1e-6)
    else:
        assert irregular.rate == pytest.approx(-math.log((visits - changes) / visits) / interval, rel=1e-6)


@given(HISTORY, st.floats(1e-3, 1e3))
def test_rates_scale_with_time(history: list[tuple[float, bool]], scale: float) -> None:
    intervals, changed = np.array([row[0] for row in history]), np.array([row[1] for row in history])
    one, other = change_rate_irregular(intervals, changed), change_rate_irregular(intervals * scale, changed)
    assert other.rate * scale == pytest.approx(one.rate, rel=1e-6)


def test_a_prior_stands_in_where_nothing_is_known_and_yields_to_visits() -> None:
    page, intervals = np.full(200, 1), np.ones(200)
    changed = np.arange(200) < 100
    found = change_rates(page, intervals, changed, 3, prior=(5.0, 2.0))
    assert found.rate[0] == found.rate[2] == pytest.approx(5.0)
    assert found.rate[1] == pytest.approx(math.log(2), rel=0.01)
    assert found.low[0] < 5.0 < found.high[0] < math.inf


@pytest.mark.parametrize(
    ("visits", "changes", "interval"), [(3, 4, 1.0), (3, -1, 1.0), (3, 1, 0.0), (3, 1, math.nan), (math.nan, 1, 1.0)]
)
def test_impossible_counts_are_refused(visits: float, changes: float, interval: float) -> None:
    with pytest.raises(UsageError, match="hint: "):
        change_rate(visits, changes, interval)


def test_impossible_visits_are_refused() -> None:
    for intervals, changed in (([1.0, 0.0], [True, False]), ([1.0, 2.0], [True]), ([[1.0]], [[True]])):
        with pytest.raises(UsageError, match="hint: "):
            change_rate_irregular(intervals, changed)
    for page in (-1, 3):
        with pytest.raises(UsageError, match="outside 0 to 2"):
            change_rates([page], [1.0], [True], 3)
    for prior in ((0.0, 1.0), (1.0, 0.0), (math.nan, 1.0)):
        with pytest.raises(UsageError, match="prior"):
            change_rates([0], [1.0], [True], 3, prior=prior)


@given(PAGES, st.floats(0, 1e4), st.floats(0, 1))
def test_optimal_rates_satisfy_the_conditions_of_an_optimum(
    rows: list[tuple[float, float]], total: float, floor_share: float
) -> None:
    weight, change = columns(rows)
    floor = floor_share * total / weight.size
    rates = optimal_rates(weight, change, total, at_least=floor)
    slack = 1e-9 * (total + change.sum())
    assert (rates >= floor).all()
    gains = weight * change > 0
    if not gains.any():
        assert (rates == floor).all()
        return
    assert rates.sum() == pytest.approx(total, rel=1e-9, abs=slack)
    assert (rates[~gains] == floor).all()
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(gains, weight * change / (rates + change) ** 2, 0.0)  # of one more visit
    above = rates > floor + slack
    if above.any():
        assert gain[above] == pytest.approx(gain[above].max(), rel=1e-4)
        assert gain.max() <= gain[above].max() * (1 + 1e-4)


@pytest.mark.parametrize("seed", range(8))
def test_optimal_rates_are_as_good_as_a_generic_optimiser(seed: int) -> None:
    optimize = pytest.importorskip("scipy.optimize")
    rng = np.random.default_rng(seed)
    pages = int(rng.integers(2, 15))
    weight, change = rng.pareto(1.5, pages) + 0.1, rng.lognormal(0, 1, pages)
    total = float(rng.uniform(0.3, 3) * pages)
    floor = rng.uniform(0, 0.5, pages) * total / pages
    best = optimize.minimize(
        lambda rates: -freshness(weight, change, np.maximum(rates, 0)),
        np.maximum(floor, total / pages),
        jac=lambda rates: -weight * change / (rates + change) ** 2,
        bounds=[(low, total) for low in floor],
        constraints={"type": "eq", "fun": lambda rates: rates.sum() - total, "jac": lambda _: np.ones(pages)},
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    ours = freshness(weight, change, optimal_rates(weight, change, total, at_least=floor))
    assert ours == pytest.approx(-best.fun, abs=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_optimal_intervals_are_as_good_as_a_generic_optimiser(seed: int) -> None:
    optimize = pytest.importorskip("scipy.optimize")
    rng = np.random.default_rng(seed)
    pages = int(rng.integers(2, 12))
    weight, change = rng.pareto(1.5, pages) + 0.1, rng.lognormal(0, 1, pages)
    total = float(rng.uniform(0.2, 2) * pages)

    def fresh(rates: Array) -> float:
        return freshness(weight, change, np.maximum(rates, 1e-12), spacing="regular")

    best = max(
        -optimize.minimize(
            lambda rates: -fresh(rates),
            start / start.sum() * total,
            bounds=[(0, total)] * pages,
            constraints={"type": "eq", "fun": lambda rates: rates.sum() - total},
            method="SLSQP",
            options={"ftol": 1e-13, "maxiter": 1000},
        ).fun
        for start in (np.ones(pages), weight, rng.random(pages))
    )
    intervals = optimal_intervals(weight, change, total)
    assert (1 / intervals).sum() == pytest.approx(total, rel=1e-6)
    assert fresh(1 / intervals) == pytest.approx(best, abs=1e-5)
    assert fresh(1 / intervals) >= fresh(optimal_rates(weight, change, total)) - 1e-9


@given(PAGES, st.floats(1e-3, 1e4))
def test_optimal_intervals_use_the_total_at_one_price(rows: list[tuple[float, float]], total: float) -> None:
    weight, change = columns(rows)
    intervals = optimal_intervals(weight, change, total)
    gains = weight * change > 0
    assert np.isinf(intervals[~gains]).all()
    if not gains.any():
        return
    assert (1 / intervals).sum() == pytest.approx(total, rel=1e-4)
    read = gains & (np.where(gains, change, 1.0) * intervals < 25)
    x = change[read] * intervals[read]
    value = weight[read] / change[read] * np.where(x > 1e-4, -np.expm1(-x) - x * np.exp(-x), x * x / 2)
    if read.any():
        assert value == pytest.approx(value.max(), rel=1e-3)
        assert (weight[gains & ~read] / change[gains & ~read] <= value.max() * (1 + 1e-3)).all()


@pytest.mark.parametrize(
    ("weight", "change", "total"),
    [([1.0, 1e-300], [1e-200, 1e200], 3.0), ([1.0], [5.0], 1e9), ([1e-5] * 3, [1e-9] * 3, 1e-3), ([1.0], [1.0], 0.0)],
)
def test_optimal_intervals_of_extreme_pages_are_found(weight: list[float], change: list[float], total: float) -> None:
    intervals = optimal_intervals(weight, change, total)
    assert not np.isnan(intervals).any()
    assert (intervals > 0).all()


def test_optimal_rates_beat_other_plans_and_leave_out_what_changes_too_fast() -> None:
    weight, change = changing_pages(500, 3)
    rates = optimal_rates(weight, change, 150.0)
    best = freshness(weight, change, rates)
    for other in (np.ones(500), weight, change, weight * change):
        assert best > freshness(weight, change, 150 * other / other.sum())
    assert rates[np.argmax(change)] == 0.0
    assert (optimal_rates(weight, change, 150.0, at_least=0.1) >= 0.1).all()


def test_a_million_pages_are_planned_in_seconds() -> None:
    weight, change = changing_pages(1_000_000, 3)
    began = time.perf_counter()
    rates = optimal_rates(weight, change, 1e6, at_least=1e-3)
    assert time.perf_counter() - began < 10
    assert rates.sum() == pytest.approx(1e6, rel=1e-9)


@pytest.mark.parametrize(
    ("weight", "change", "total", "floor", "message"),
    [
        ([1.0, 1.0], [1.0, 1.0], 1.0, 0.6, "floors sum to 1.2, above the total of 1"),
        ([1.0, 1.0], [1.0, 1.0], 1.0, [0.2, 0.9], "floors sum to"),
        ([1.0, -1.0], [1.0, 1.0], 1.0, 0.0, "importance must be finite"),
        ([1.0, 1.0], [1.0, math.inf], 1.0, 0.0, "change rates must be finite"),
        ([1.0, 1.0], [1.0], 1.0, 0.0, "do not match"),
        ([1.0, 1.0], [1.0, 1.0], 1.0, [0.1, 0.1, 0.1], "do not match"),
        ([1.0, 1.0], [1.0, 1.0], math.nan, 0.0, "total rate"),
        ([1.0, 1.0], [1.0, 1.0], -1.0, 0.0, "total rate"),
    ],
)
def test_impossible_plans_are_refused(
    weight: list[float], change: list[float], total: float, floor: float | list[float], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        optimal_rates(weight, change, total, at_least=floor)


@given(PAGES, st.data())
def test_regular_visits_are_at_least_as_fresh(rows: list[tuple[float, float]], data: st.DataObject) -> None:
    weight, change = columns(rows)
    rates = np.array(data.draw(st.lists(POSITIVE | st.just(0.0), min_size=weight.size, max_size=weight.size)))
    random = freshness(weight, change, rates)
    regular = freshness(weight, change, rates, spacing="regular")
    assert 0 <= random <= regular * (1 + 1e-9)
    assert regular <= weight.sum() * (1 + 1e-9)


def test_freshness_of_pages_that_never_change_or_are_never_read() -> None:
    assert freshness([1.0, 2.0, 4.0], [0.0, 1.0, 3.0], [0.0, 0.0, 1.0]) == 1.0 + 0.0 + 1.0


def test_due_times() -> None:
    assert due_times([1.0, 2.0, 3.0], [2.0, 0.0, 0.5]).tolist() == [1.5, math.inf, 5.0]
    assert due_times(1.0, [0.5]).tolist() == [3.0]


@pytest.mark.parametrize("spacing", ["random", "regular"])
def test_the_simulation_agrees_with_the_formula(spacing: experiment.Spacing) -> None:
    weight, change = changing_pages(500, 5)
    change[7] = 0.0
    rates = optimal_rates(weight, change, 500.0, at_least=0.05)
    run = simulate(lambda _: rates, weight, change, horizon=100, rng=1, spacing=spacing)
    assert run.fresh == pytest.approx(freshness(weight, change, rates, spacing=spacing), rel=0.01)
    assert run.visits == pytest.approx(500, rel=0.02)


def test_learnt_rates_reach_95_percent_of_the_optimum_with_true_rates() -> None:
    weight, change = changing_pages(400, 5)
    optimum = freshness(weight, change, optimal_rates(weight, change, 400.0))
    known, learnt = (  # spaced at random: regular spacing would add what learning may lose
        [simulate_freshness(weight, change, 400.0, horizon=40, known_rates=known, rng=rng) for rng in range(3)]
        for known in (True, False)
    )
    uniform = [simulate(lambda _: np.ones(400), weight, change, horizon=40, rng=rng) for rng in range(3)]
    assert np.mean([run.fresh for run in known]) == pytest.approx(optimum, rel=0.02)
    assert np.mean([run.fresh for run in learnt]) >= 0.95 * optimum
    assert min(run.fresh for run in learnt) > max(run.fresh for run in uniform)
    assert max(run.visits for run in learnt) <= 1.05 * 400


def test_the_same_seed_gives_the_same_run() -> None:
    weight, change = changing_pages(50, 5)
    runs = [
        simulate_freshness(weight, change, 50.0, horizon=10, known_rates=False, rng=9, spacing="regular")
        for _ in range(2)
    ]
    assert runs[0] == runs[1]


def test_the_experiment_prints_a_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["freshness", "--pages", "50", "--visits", "1", "--horizon", "5", "--runs", "2"])
    experiment.main()
    printed = capsys.readouterr().out
    assert printed.count("±") == 5 * 4
    assert "| optimal, learnt rates | – |" in printed
