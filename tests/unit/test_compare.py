from __future__ import annotations

import json
import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surveyor.errors import UsageError
from surveyor.rank.comparison import compare_ranks, kendall, kendall_a, l1, l2, l_inf, overlap, tie_share, weighted_tau
from surveyor.rank.pagerank import Ranking

PAIRS = st.integers(0, 40).flatmap(
    lambda size: st.tuples(*[st.lists(st.integers(0, 6).map(float), min_size=size, max_size=size)] * 2)
)
DISTINCT = st.integers(2, 40).flatmap(lambda size: st.tuples(*[st.permutations(range(size))] * 2))


def slow_kendall(one: list[float], other: list[float]) -> float:
    pairs = list(combinations(range(len(one)), 2))
    signs = [(np.sign(one[i] - one[j]), np.sign(other[i] - other[j])) for i, j in pairs]
    ordered, ordered_other = sum(a != 0 for a, _ in signs), sum(b != 0 for _, b in signs)
    if ordered == 0 or ordered_other == 0:
        return float(ordered == ordered_other)
    return float(sum(a * b for a, b in signs) / math.sqrt(ordered * ordered_other))


def ranking(scores: list[float]) -> Ranking:
    return Ranking(np.array(scores), 0.0, 1, 0.85, 1e-6, "power", "teleport")


@settings(deadline=None)  # the first call may compile
@given(PAIRS | DISTINCT)
def test_kendall_counts_pairs(vectors: tuple[list[float], list[float]]) -> None:
    one, other = vectors
    tau = kendall(one, other)
    assert tau == pytest.approx(slow_kendall(one, other), abs=1e-12)
    assert tau == kendall(other, one)
    assert -1 <= tau <= 1


@settings(deadline=None)
@given(st.lists(st.floats(-1e300, 1e300), max_size=50))
def test_the_same_order_is_1_and_the_opposite_is_minus_1(scores: list[float]) -> None:
    assert kendall(scores, scores) == 1.0
    if len(set(scores)) > 1:
        assert kendall(scores, [-score for score in scores]) == -1.0
        assert kendall(scores, np.zeros(len(scores))) == 0.0


def test_both_constant_agree() -> None:
    assert kendall([], []) == kendall([1], [2]) == kendall([1, 1], [2, 2]) == 1.0


@pytest.mark.compiled
@pytest.mark.parametrize("size", [1000, 1024, 100_003])
def test_kendall_on_many_pages(size: int) -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(size)
    one = rng.pareto(1.5, size).round(2)
    other = one + rng.normal(0, 0.5, size).round(1)
    before = one.copy(), other.copy()
    assert kendall(one, other) == pytest.approx(scipy_stats.kendalltau(one, other).statistic, abs=1e-12)
    assert np.array_equal(one, before[0])
    assert np.array_equal(other, before[1])


@given(PAIRS)
def test_distances(vectors: tuple[list[float], list[float]]) -> None:
    one, other = vectors
    gaps = [abs(a - b) for a, b in zip(one, other, strict=True)]
    assert l1(one, other) == sum(gaps)
    assert l2(one, other) == pytest.approx(math.sqrt(sum(gap * gap for gap in gaps)))
    assert l_inf(one, other) == max(gaps, default=0.0)


@given(PAIRS, st.integers(1, 50))
def test_overlap_is_that_of_the_top_of_two_rankings(vectors: tuple[list[float], list[float]], count: int) -> None:
    one, other = vectors
    common = set(ranking(one).top(count).tolist()) & set(ranking(other).top(count).tolist())
    assert overlap(one, other, count) == (len(common) / min(count, len(one)) if one else 1.0)


@pytest.mark.parametrize(
    ("one", "other"),
    [([1.0, 2.0], [1.0]), ([[1.0]], [[1.0]]), ([1.0, math.nan], [1.0, 2.0]), ([1.0, 2.0], [1.0, math.inf])],
)
def test_vectors_that_cannot_be_compared_are_rejected(one: list[float], other: list[float]) -> None:
    compared = (l1, l2, l_inf, kendall, kendall_a, weighted_tau, tie_share, compare_ranks)
    for compare in (*compared, lambda one, other: overlap(one, other, 1)):
        with pytest.raises(UsageError, match="hint: "):
            compare(one, other)


def test_overlap_of_no_pages_is_rejected() -> None:
    with pytest.raises(UsageError, match="count must be at least 1, got 0"):
        overlap([1.0], [1.0], 0)


@settings(deadline=None)
@given(PAIRS)
def test_compare_ranks_combines_all_measures(vectors: tuple[list[float], list[float]]) -> None:
    result = compare_ranks(*vectors, top=(1, 5))
    assert (result.l1, result.l2, result.l_inf) == (l1(*vectors), l2(*vectors), l_inf(*vectors))
    assert (result.kendall, result.weighted) == (kendall_a(*vectors), weighted_tau(*vectors))
    assert result.overlap == {count: overlap(*vectors, count) for count in (1, 5)}
    assert result.ties == tie_share(*vectors)
    assert result.kendall is None or result.kendall <= 1 - result.ties + 1e-12
    assert json.loads(json.dumps(result.to_dict())) == result.to_dict()
    assert list(result.to_dict()) == ["l1", "l2", "l_inf", "kendall", "weighted", "overlap", "ties"]
