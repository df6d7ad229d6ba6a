from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from surveyor.arrays import BoolArray, FloatArray
from surveyor.crawler.change_learning import first_prior, learn
from surveyor.kernels.change_history import (
    FIRST,
    GRID,
    UNKNOWN,
    History,
    log_likelihood,
    log_likelihoods,
    new_history,
    record,
)
from surveyor.kernels.revisit_index import gain, threshold

DAY = 86400.0
FOREVER = 1e30


def population(
    pages: int, visits: int, seed: int, *, listed: bool = False, precision: float = 0.8, recall: float = 0.6
) -> tuple[History, FloatArray]:
    """Return histories of pages at irregular intervals, and the true change rates."""
    rng = np.random.default_rng(seed)
    rates = rng.lognormal(0, 1.2, pages) / DAY
    history = new_history(pages)
    if listed:
        history.source[:] = 0
        history.covered[:] = 0.0
    noise = recall * rates * (1 - precision) / precision
    for page in range(pages):
        at = 0.0
        record(history, page, at, UNKNOWN, 0.0, FOREVER)
        for _ in range(visits):
            elapsed = float(rng.lognormal(0, 0.7)) * DAY
            at += elapsed
            changes = rng.poisson(rates[page] * elapsed)
            if listed:
                signals = rng.binomial(changes, recall) + rng.poisson(noise[page] * elapsed)
                history.pending[page] += signals
                history.signals[page] += signals
            record(history, page, at, int(changes > 0), 0.0, FOREVER)
    return history, rates


def test_the_likelihood_is_that_of_all_visits() -> None:
    rng = np.random.default_rng(1)
    history, b, rate = new_history(1), 1.3, 1.7 / DAY
    intervals = rng.choice([0.5, 1.0, 2.0, 4.0, 8.0], 40) * DAY  # no more lengths than groups
    changed, signals, at, total = rng.random(40) < 0.5, rng.integers(0, 3, 40), 0.0, 0.0
    signals[changed] = 0  # groups are by the number of signals, too
    record(history, 0, 0.0, UNKNOWN, 0.0, FOREVER)
    for elapsed, mark, count in zip(intervals, changed, signals, strict=True):
        at += float(elapsed)
        history.pending[0] = count
        record(history, 0, at, int(mark), 0.0, FOREVER)
        x = rate * elapsed + b * count
        total += math.log(1 - math.exp(-x)) if mark else -x
    assert log_likelihood(history, 0, b, rate) == pytest.approx(total)


def test_grouped_intervals_are_close_to_all_visits() -> None:
    rng = np.random.default_rng(2)
    for spread in (0.3, 1.0):
        history, intervals = new_history(1), rng.lognormal(0, spread, 200) * DAY
        changed, at = rng.random(200) < 1 - np.exp(-intervals / DAY), 0.0
        record(history, 0, 0.0, UNKNOWN, 0.0, FOREVER)
        for elapsed, mark in zip(intervals, changed, strict=True):
            at += float(elapsed)
            record(history, 0, at, int(mark), 0.0, FOREVER)
        grid = np.linspace(0.5, 2, 301) / DAY
        exact = [np.log(-np.expm1(-r * intervals[changed])).sum() - r * intervals[~changed].sum() for r in grid]
        found = [log_likelihood(history, 0, 0.0, float(rate)) for rate in grid]
        assert grid[np.argmax(found)] == pytest.approx(grid[np.argmax(exact)], rel=0.03)


def test_old_visits_fade() -> None:
    history = new_history(1)
    for visit in range(400):
        record(history, 0, visit * DAY, int(visit >= 200 and visit % 2), 0.0, 20 * DAY)
    assert learn(history, 400 * DAY).rate[0] * DAY == pytest.approx(math.log(2), rel=0.35)
    assert history.visits[0] < 30


@pytest.mark.parametrize("visits", [3, 10, 40])
def test_intervals_of_rates_contain_95_percent_and_the_prior_helps(visits: int) -> None:
    history, rates = population(3000, visits, visits)
    found = learn(history, visits * DAY)
    inside: BoolArray = (found.low <= rates) & (rates <= found.high)
    assert 0.93 <= inside.mean() <= 0.97
    from surveyor.crawler.revisits import change_rate

    changes = history.finds.sum(axis=1)
    alone = change_rate(np.full(rates.size, visits), changes, np.exp(0.7**2 / 2) * DAY).rate

    def off(estimate: FloatArray) -> float:
        return float(np.abs(np.log(np.maximum(estimate, 1e-3 / DAY) / rates)).mean())

    assert off(found.rate) < (0.7 if visits < 5 else 1.0) * off(alone)


@pytest.mark.parametrize("visits", [5, 15])
def test_intervals_of_rates_of_pages_with_signals(visits: int) -> None:
    history, rates = population(1000, visits, 100 + visits, listed=True)
    found = learn(history, float(history.last.mean()))
    assert 0.93 <= ((found.low <= rates) & (rates <= found.high)).mean() <= 0.97
    alone, _ = population(1000, visits, 100 + visits, listed=True)
    alone.source[:] = -1
    alone.finds[:], alone.quiet[:] = history.finds, 0.0
    without = learn(alone, float(alone.last.mean()))
    assert np.abs(np.log(found.rate / rates)).mean() < 0.9 * np.abs(np.log(without.rate / rates)).mean()


def test_pages_without_visits_get_the_distribution_of_the_others() -> None:
    history, rates = population(1000, 10, 4)
    more = new_history(1001)
    for name in History._fields:
        getattr(more, name)[:1000] = getattr(history, name)
    found = learn(more, 30 * DAY)
    assert found.rate[1000] == pytest.approx(float(np.exp(np.log(rates).mean())), rel=0.2)
    assert found.low[1000] < np.quantile(rates, 0.05)
    assert found.high[1000] > np.quantile(rates, 0.95)


def test_precision_is_learned_with_an_interval() -> None:
    right = 0
    for seed in range(10):
        history, rates = population(300, 15, 100 + seed, listed=True)
        found = learn(history, float(history.last.mean()))
        precision = found.quality.precision
        right += precision.low <= 0.8 <= precision.high
        assert precision.value == pytest.approx(0.8, abs=0.06)
        assert np.abs(np.log(found.rate / rates)).mean() < 0.5
    assert right >= 8


def test_noise_is_recognised_and_does_not_spoil_rates() -> None:
    history, rates = population(600, 15, 7)
    rng = np.random.default_rng(8)
    listed = new_history(600)
    listed.source[:], listed.covered[:] = 0, 0.0
    clock = np.random.default_rng(7)
    clock.lognormal(0, 1.2, 600)
    for page in range(600):
        at = 0.0
        record(listed, page, at, UNKNOWN, 0.0, FOREVER)
        for _ in range(15):
            elapsed = float(clock.lognormal(0, 0.7)) * DAY
            at += elapsed
            changes = clock.poisson(rates[page] * elapsed)
            listed.pending[page] = rng.poisson(0.5 * elapsed / DAY)  # whatever the page does
            listed.signals[page] += listed.pending[page]
            record(listed, page, at, int(changes > 0), 0.0, FOREVER)
    found = learn(listed, float(listed.last.mean()))
    assert found.quality.precision.value < 0.05
    plain = learn(history, float(history.last.mean()))

    def off(estimate: FloatArray) -> float:
        return float(np.abs(np.log(estimate / rates)).mean())

    assert off(found.rate) < 1.15 * off(plain.rate)


def test_sources_are_judged_separately() -> None:
    good, _ = population(200, 20, 11, listed=True, precision=0.95)
    bad, _ = population(200, 20, 12, listed=True, precision=0.3)
    both = new_history(400)
    for name in History._fields:
        getattr(both, name)[:] = np.concatenate([getattr(good, name), getattr(bad, name)])
    both.source[200:] = 1
    found = learn(both, float(both.last.mean()))
    assert found.precision[0] == pytest.approx(0.95, abs=0.08)
    assert found.precision[399] == pytest.approx(0.3, abs=0.12)


def test_without_any_history_there_is_only_the_prior() -> None:
    found = learn(new_history(2), 0.0)
    weights = first_prior(1 / (14 * DAY))
    assert found.rate[0] == pytest.approx(1 / (14 * DAY), rel=0.05)
    assert weights.sum() == pytest.approx(1)
    assert 2.0**FIRST < found.low[0] < found.high[0] < 2.0 ** (FIRST + GRID)
    assert learn(new_history(0), 0.0).rate.size == 0


def integral(function: Callable[[float], float], end: float) -> float:
    x = np.linspace(0, end, 20001)
    return float(np.trapezoid([function(float(each)) for each in x], x))


@pytest.mark.parametrize("y", [1e-5, 0.01, 0.5, 3.0, 20.0])
def test_the_index_without_signals_is_an_integral(y: float) -> None:
    value, length = gain(y, 0.0, 0.0)
    assert length == y
    assert value == pytest.approx(integral(lambda x: x * math.exp(-x), y), rel=1e-5)


@pytest.mark.parametrize(("theta", "precision"), [(1.9, 0.8), (0.5, 0.3), (6.0, 0.9)])
@pytest.mark.parametrize("y", [0.3, 1.0, 2.5, 6.0])
def test_the_index_with_signals_agrees_with_a_simulation(theta: float, precision: float, y: float) -> None:
    rng, b = np.random.default_rng(9), -math.log(1 - precision)
    runs = 40_000
    fresh, lengths, level, active = np.zeros(runs), np.zeros(runs), np.zeros(runs), np.ones(runs, np.bool_)
    while active.any():
        wait = np.where(active, rng.exponential(1 / theta, runs), 0.0)
        stay = np.where(active, np.minimum(wait, np.maximum(y - level, 0)), 0.0)
        fresh += np.exp(-level) * -np.expm1(-stay) * active
        lengths += stay
        level += np.where(active, stay + b, 0.0)
        active &= level < y
    value, length = gain(y, theta, b)
    assert length == pytest.approx(lengths.mean(), rel=0.02)
    one = fresh - math.exp(-y) * lengths
    assert value == pytest.approx(one.mean(), abs=5 * float(one.std()) / math.sqrt(runs))


@pytest.mark.parametrize(("theta", "b"), [(0.0, 0.0), (1.9, 1.6), (0.2, 3.0), (6.0, 0.3)])
def test_thresholds_invert_the_index_and_end_at_its_limit(theta: float, b: float) -> None:
    most = 1 / (1 - math.expm1(-b) * theta)
    for share in (1e-12, 1e-6, 0.01, 0.3, 0.9, 0.999):
        y = threshold(share * most, theta, b)
        assert gain(y, theta, b)[0] == pytest.approx(share * most, rel=1e-4)
    assert threshold(most, theta, b) == math.inf
    assert gain(60.0, theta, b)[0] == pytest.approx(most, rel=1e-3)
    assert threshold(0.0, theta, b) == 0.0


def test_the_grid_has_the_likelihoods_of_its_rates() -> None:
    history, _ = population(20, 12, 5, listed=True)
    history.hint[::2] = 3 * DAY
    found, pages = np.empty((20, GRID)), np.arange(20)
    for b in (0.0, 1.6):
        log_likelihoods(history, pages, np.full(20, b), np.ones(20), found)
        each = [[log_likelihood(history, page, b, 2.0 ** (FIRST + k)) for k in range(GRID)] for page in range(20)]
        assert found == pytest.approx(np.array(each), rel=1e-9)
