"""Lower bounds from bets: exact values, validity under every way of looking, and the cost of a proof."""

from __future__ import annotations

import math

import numpy as np
import pytest

from surveyor.crawler.sampled_bound import (
    BET_WEIGHTS,
    BETS,
    Epoch,
    is_proven,
    log_evidence,
    lower_bound,
    stake,
    walks_needed,
)


def obvious_evidence(coverage: float, epochs: list[Epoch], values: list[float], used: int = 0) -> float:
    """The sum over restarts of stake times the mean over bets of the product of all factors since."""
    total = 1.0 - sum(stake(number) for number in range(used + len(epochs)))
    for number, epoch in enumerate(epochs):
        for bet, weight in zip(BETS, BET_WEIGHTS, strict=True):
            product = 1.0
            for walk in range(epoch.first, len(values)):
                mine = [other for other in epochs if other.first <= walk][-1]
                product *= 1 - bet + bet * mine.unsettled * values[walk] / (coverage - mine.captured)
            total += stake(used + number) * weight * product
    return total


def test_the_evidence_is_the_sum_over_restarts() -> None:
    rng = np.random.default_rng(3)
    epochs = [Epoch(10, 0.3, 0.6, 0), Epoch(20, 0.45, 0.5, 4), Epoch(30, 0.5, 0.45, 4), Epoch(40, 0.55, 0.4, 9)]
    values = rng.random(15).tolist()
    for used in (0, 2):
        for coverage in (0.56, 0.7, 0.95):
            expected = obvious_evidence(coverage, epochs, values, used)
            assert math.exp(log_evidence(coverage, epochs, np.array(values), used)) == pytest.approx(expected)


def test_weights_and_stakes_are_at_most_one_in_total() -> None:
    assert BET_WEIGHTS.sum() == pytest.approx(1)
    assert ((BETS > 0) & (BETS < 1)).all()
    assert sum(stake(number) for number in range(1000)) <= 1 + 1e-12


def test_no_walks_prove_nothing() -> None:
    assert lower_bound(0.95, [], np.empty(0)) == 0
    assert lower_bound(0.95, [Epoch(1, 0.4, 0.6, 0)], np.empty(0)) == 0
    assert not is_proven(0.1, 0.95, [Epoch(1, 0.4, 0.6, 0)], np.empty(0))
    assert lower_bound(0.95, [Epoch(1, 0.4, 0.6, 0)], np.zeros(50)) == 0


def test_the_bound_and_the_proof_agree() -> None:
    rng = np.random.default_rng(5)
    epochs = [Epoch(5, 0.3, 0.7, 0), Epoch(9, 0.5, 0.5, 30)]
    values = rng.uniform(0.5, 1, 60)
    bound = lower_bound(0.95, epochs, values)
    assert 0.5 < bound < 0.5 + 0.5 * values[30:].mean()
    assert is_proven(bound, 0.95, epochs, values)
    assert not is_proven(bound + 1e-4, 0.95, epochs, values)
    assert lower_bound(0.99, epochs, values) < bound < lower_bound(0.8, epochs, values)


def test_more_certain_values_raise_the_bound() -> None:
    epochs, values = [Epoch(5, 0.3, 0.7, 0)], np.full(40, 0.8)
    unfinished = np.where(np.arange(40) < 5, 0.1, values)
    assert lower_bound(0.95, epochs, unfinished) < lower_bound(0.95, epochs, values)


@pytest.mark.parametrize(
    ("kind", "mean"),
    [
        ("coins", 0.5),
        ("uniform", 0.05),
        ("rare", 0.95),
        *(
            pytest.param(kind, mean, marks=pytest.mark.slow)
            for kind in ("coins", "uniform", "rare")
            for mean in (0.05, 0.5, 0.95)
        ),
    ],
)
@pytest.mark.slow
def test_the_true_coverage_is_below_the_bound_at_some_moment_in_at_most_one_of_twenty_runs(
    kind: str, mean: float
) -> None:
    runs, confidence, wrong = 400, 0.8, 0  # a lower confidence gives the test more power
    rng = np.random.default_rng([int(100 * mean), len(kind)])
    epoch = Epoch(10, 0.4, 0.5, 0)
    for _ in range(runs):
        if kind == "coins":
            values = (rng.random(80) < mean).astype(float)
        elif kind == "uniform":
            width = min(mean, 1 - mean)
            values = rng.uniform(mean - width, mean + width, 80)
        else:  # one walk in fifty is lost, or one in fifty returns
            values = np.where(rng.random(80) < 0.02, 1 - round(mean), mean - 0.02 * (1 - round(mean) - mean) / 0.98)
        true = epoch.captured + epoch.unsettled * mean
        wrong += any(is_proven(true + 1e-3, confidence, [epoch], values[:count]) for count in range(1, 81))
    assert wrong <= (1 - confidence) * runs


def test_epochs_that_start_when_the_walks_look_good_do_not_break_the_bound() -> None:
    runs, confidence, wrong = 300, 0.8, 0
    rng = np.random.default_rng(11)
    for _ in range(runs):
        captured, epochs, values, proven = 0.3, [Epoch(1, 0.3, 0.7, 0)], [], False
        true = 0.3 + 0.7 * 0.5
        for _ in range(60):
            values.append(float(rng.random() < 0.5))
            lately = values[epochs[-1].first :]
            if len(lately) >= 5 and np.mean(lately) > 0.7 and len(epochs) < 6:  # data decide when to start again
                epochs.append(Epoch(1, captured, 0.7, len(values)))
            proven |= is_proven(true + 1e-3, confidence, epochs, np.array(values))
        wrong += proven
    assert wrong <= (1 - confidence) * runs


def test_a_repeated_normal_approximation_would_fail_this_test() -> None:
    """The same looks with a normal 80 % bound are wrong far more often: the tests above can fail."""
    rng, wrong = np.random.default_rng(2), 0
    for _ in range(300):
        values = (rng.random(80) < 0.5).astype(float)
        means = np.cumsum(values) / np.arange(1, 81)
        errors = np.sqrt(np.maximum(means * (1 - means), 1e-9) / np.arange(1, 81))
        wrong += bool((means[4:] - 0.84 * errors[4:] > 0.5 + 1e-3).any())
    assert wrong > 0.4 * 300


def test_walks_needed() -> None:
    epochs = [Epoch(10, 0.5, 0.5, 0)]
    good = np.full(10, 0.9)
    few, many = (walks_needed(goal, 0.95, epochs, good) for goal in (0.8, 0.9))
    assert 0 <= few < many < math.inf
    assert walks_needed(0.97, 0.95, epochs, good) == math.inf
    assert walks_needed(0.8, 0.95, epochs, np.empty(0)) == math.inf
    # An estimate: it assumes that all evidence grows like that of the best bet.
    counts = [count for count in range(300) if is_proven(0.9, 0.95, epochs, np.full(10 + count, 0.9))]
    assert many <= counts[0] <= 3 * many


def test_extreme_accounts_and_many_discarded_epochs_give_a_bound_without_warnings() -> None:
    values = np.full(200, 0.9)
    with np.errstate(all="raise", under="ignore"):
        assert log_evidence(0.9, [Epoch(5, 0.3, 0.6, 0)], values, used=5_000) < 0
        assert 0 <= lower_bound(0.95, [Epoch(5, -1e6, 1e6, 0)], values) <= 1
        assert lower_bound(0.95, [Epoch(5, 1 - 1e-9, 0.5, 0)], values) <= 1
