"""How alike the order of two vectors is: against counting all pairs."""

from __future__ import annotations

import math
from decimal import Decimal
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from surveyor.errors import UsageError
from surveyor.rank.comparison import kendall, kendall_a, rounded, tie_share, weighted_tau

Vectors = tuple[list[float], list[float]]

ALMOST = st.builds(
    lambda base, nudge: base * (1 + nudge * 2**-52), st.sampled_from([0.1, 0.3, 1e-9, 7.0]), st.integers(0, 3)
)
SCORES = st.integers(0, 4).map(float) | ALMOST | st.integers(-3, 3).map(float)
PAIRS = st.integers(0, 24).flatmap(
    lambda size: (
        st.tuples(*[st.lists(SCORES, min_size=size, max_size=size)] * 2)
        | st.tuples(*[st.permutations([float(value) for value in range(size)])] * 2)
        | st.tuples(st.lists(SCORES, min_size=size, max_size=size), st.just([0.25] * size))
    )
)


def signs(scores: list[float], digits: int | None) -> list[int]:
    """Of all pairs, which of the two is ahead; rounded by writing the digits out."""
    if digits is not None:
        scores = [float(f"{score:.{digits - 1}e}") for score in scores]
    return [(a > b) - (a < b) for a, b in combinations(scores, 2)]


def slow_kendall_a(one: list[float], other: list[float], digits: int | None) -> float | None:
    left, right = signs(one, digits), signs(other, digits)
    if not any(left) or not any(right):
        return None
    return sum(a * b for a, b in zip(left, right, strict=True)) / len(left)


def slow_weighted(one: list[float], other: list[float], digits: int | None) -> float | None:
    """Vigna's definition: a product of vectors over pairs, divided by both norms."""
    left, right = signs(one, digits), signs(other, digits)
    if not any(left) or not any(right):
        return None
    if digits is not None:
        one, other = ([float(f"{score:.{digits - 1}e}") for score in scores] for scores in (one, other))

    def product(some: list[int], others: list[int], weights: list[float]) -> float:
        return math.fsum(a * b * weight for a, b, weight in zip(some, others, weights, strict=True))

    taus = []
    for keys in (list(zip(one, other, strict=True)), list(zip(other, one, strict=True))):
        best_first = sorted(range(len(keys)), key=lambda page: keys[page], reverse=True)
        position = {page: place for place, page in enumerate(best_first, 1)}
        weights = [1 / position[a] + 1 / position[b] for a, b in combinations(range(len(keys)), 2)]
        norms = product(left, left, weights) * product(right, right, weights)
        taus.append(product(left, right, weights) / math.sqrt(norms))
    return sum(taus) / 2


@settings(deadline=None, max_examples=300)
@given(PAIRS, st.sampled_from([12, None]))
@pytest.mark.slow
def test_tau_a_counts_pairs(vectors: Vectors, digits: int | None) -> None:
    one, other = vectors
    tau = kendall_a(one, other, digits=digits)
    assert tau == slow_kendall_a(one, other, digits)
    assert tau == kendall_a(other, one, digits=digits)


@settings(deadline=None, max_examples=300)
@given(PAIRS, st.sampled_from([12, None]))
@pytest.mark.slow
def test_weighted_tau_is_that_of_the_definition(vectors: Vectors, digits: int | None) -> None:
    one, other = vectors
    tau, slow = weighted_tau(one, other, digits=digits), slow_weighted(one, other, digits)
    assert (tau is None) == (slow is None)
    if tau is not None:
        assert tau == pytest.approx(slow, abs=1e-12)
        assert -1 <= tau <= 1
        assert tau == weighted_tau(other, one, digits=digits)


@given(PAIRS, st.sampled_from([12, None]))
def test_ties_are_pairs_that_either_leaves_open(vectors: Vectors, digits: int | None) -> None:
    left, right = (signs(scores, digits) for scores in vectors)
    pairs = max(1, len(left))
    assert tie_share(vectors[0], digits=digits) == left.count(0) / pairs
    either = sum(a == 0 or b == 0 for a, b in zip(left, right, strict=True)) / pairs
    assert tie_share(*vectors, digits=digits) == either


@settings(deadline=None)
@given(PAIRS)
def test_tau_a_and_tau_b_differ_in_what_they_divide_by(vectors: Vectors) -> None:
    one, other = vectors
    tau = kendall_a(one, other, digits=None)
    assume(tau is not None)
    ordered = math.sqrt((1 - tie_share(one, digits=None)) * (1 - tie_share(other, digits=None)))
    assert tau == pytest.approx(kendall(one, other) * ordered, abs=1e-12)


@pytest.mark.parametrize("scores", [[], [1.0], [1.0, 1.0], [2.0] * 9, [0.1 + 0.2, 0.3]])
def test_what_orders_nothing_has_no_tau(scores: list[float]) -> None:
    rising = [float(place) for place in range(len(scores))]
    assert kendall_a(scores, rising) is kendall_a(rising, scores) is None
    assert weighted_tau(scores, rising) is weighted_tau(rising, scores) is None
    assert tie_share(scores) == (1.0 if len(scores) > 1 else 0.0)


def test_two_pages() -> None:
    assert kendall_a([1, 2], [3, 4]) == weighted_tau([1, 2], [3, 4]) == 1.0
    assert kendall_a([1, 2], [4, 3]) == weighted_tau([1, 2], [4, 3]) == -1.0


def test_the_top_weighs_most() -> None:
    truth = np.arange(100.0)
    top, bottom = truth.copy(), truth.copy()
    top[[98, 99]], bottom[[0, 1]] = top[[99, 98]], bottom[[1, 0]]
    assert kendall_a(truth, top) == kendall_a(truth, bottom)
    of_top, of_bottom = weighted_tau(truth, top), weighted_tau(truth, bottom)
    assert of_top is not None
    assert of_bottom is not None
    assert of_top < of_bottom < 1


@pytest.mark.compiled
def test_many_pages_in_the_same_and_in_the_opposite_order() -> None:
    scores = np.random.default_rng(5).permutation(100_000) + 1.0
    for tau in (kendall_a, weighted_tau):
        assert tau(scores, np.log(scores)) == 1.0
        assert tau(scores, -(scores**3)) == pytest.approx(-1.0, abs=1e-9)
        assert tau(scores, scores) == 1.0
    assert tie_share(scores) == 0.0
    assert tie_share(np.floor(scores / 2)) == pytest.approx(49_999 / (100_000 * 99_999 / 2), rel=0.01)


@pytest.mark.compiled
@pytest.mark.parametrize("size", [2, 1000, 20_011])
def test_weighted_tau_is_that_of_scipy(size: int) -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(size)
    one = rng.pareto(1.5, size).round(2)
    other = one + rng.normal(0, 0.5, size).round(1)
    before = one.copy(), other.copy()
    for digits in (None, 12):
        truth = scipy_stats.weightedtau(rounded(one, digits), rounded(other, digits)).statistic
        assert weighted_tau(one, other, digits=digits) == pytest.approx(truth, abs=1e-10)
    assert np.array_equal(one, before[0])
    assert np.array_equal(other, before[1])


@given(st.lists(st.floats(-1e300, 1e300, allow_subnormal=True), max_size=30), st.integers(1, 15))
def test_rounding_keeps_the_order_and_stays_close(scores: list[float], digits: int) -> None:
    exact = np.sort(np.array(scores, np.float64))
    result = rounded(exact, digits)
    assert np.all(np.diff(result) >= 0)
    assert np.array_equal(rounded(result, digits), result)
    for score, near in zip(exact.tolist(), result.tolist(), strict=True):
        if abs(score) > 1e-290:
            half = Decimal(10) ** (Decimal(abs(score)).adjusted() + 1 - digits) / 2
            slack = Decimal(math.ulp(score))  # a rounded number is itself the nearest that there is
            assert abs(Decimal(score) - Decimal(near)) <= half * Decimal("1.1") + slack
    assert rounded(exact, None) is exact


@given(st.integers(10**11 + 1, 10**12 - 1), st.integers(-280, 280), st.booleans())
def test_twelve_digits_are_kept_and_more_are_not(digits: int, power: int, below: bool) -> None:
    score = float(f"{digits}e{power}")
    tail = float(f"{digits}.3e{power}") if below else float(f"{digits - 1}.7e{power}")
    assert np.unique(rounded(np.array([score, tail]))).size == 1
    assert rounded(np.array([score]))[0] == pytest.approx(score, rel=1e-15)


def test_powers_of_ten_meet() -> None:
    """What is rounded up to a power of ten is equal to it, also where powers are not exact."""
    tens = np.array([float(f"1e{power}") for power in range(-285, 300)])
    assert np.array_equal(rounded(np.nextafter(tens, 0)), rounded(tens))
    assert np.array_equal(rounded(tens * (1 - 3e-13)), rounded(tens))


@pytest.mark.parametrize("wrong", [0, -1, 16])
def test_invalid_digits_are_rejected(wrong: int) -> None:
    with pytest.raises(UsageError, match=f"digits must be in .* got {wrong}"):
        kendall_a([1.0, 2.0], [1.0, 2.0], digits=wrong)
