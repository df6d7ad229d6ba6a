"""The experiment on sampled coverage: a small version of its checks, and its interval."""

from __future__ import annotations

import math

import pytest
from experiments.sampled_checks import binomial_interval
from experiments.sampled_coverage import adversarial, order, validity
from experiments.sampled_webs import FAMILIES

pytestmark = pytest.mark.compiled  # many crawls


@pytest.mark.parametrize(("found", "trials"), [(0, 20), (3, 60), (20, 20)])
@pytest.mark.slow
def test_the_interval_is_exact(found: int, trials: int) -> None:
    low, high = binomial_interval(found, trials)

    def tail(share: float, counts: range) -> float:
        return sum(math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in counts)

    assert low == 0 if found == 0 else tail(low, range(found, trials + 1)) == pytest.approx(0.025)
    assert high == 1 if found == trials else tail(high, range(found + 1)) == pytest.approx(0.025)


@pytest.mark.slow
def test_bounds_of_synthetic_webs_hold() -> None:
    watched = [one for some in validity((), 30, rng=3).values() for one in some]
    assert sum(one.walks > 0 for one in watched) >= 15
    assert sum(one.violates(0.95) for one in watched) <= 4  # more have a probability below 0.03, if each has 0.05
    assert all(one.certified <= 1e-6 for one in watched)


@pytest.mark.slow
def test_bounds_of_adversarial_webs_hold() -> None:
    results = adversarial(5 * len(FAMILIES), rng=3)
    watched = [one for some in results.values() for one in some]
    assert sum(one.violates(0.95) for one in watched) <= 5
    assert all(one.certified <= 1e-6 for one in watched)
    known = [one for one in watched if not math.isnan(one.bias)]
    assert len(known) == len(watched)
    assert abs(sum(one.bias for one in known)) < 4 * math.sqrt(sum(one.square for one in known))


@pytest.mark.slow
def test_a_web_that_answers_by_request_order_deceives_the_sampled_bound_only() -> None:
    results = list(order(3, rng=3))
    assert all(one.sampled > one.true + 0.1 for one in results)
    assert all(one.certified <= one.true for one in results)
