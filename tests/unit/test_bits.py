"""Bit vectors: errors as predicted, coverage of intervals, number of rounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import graph_distances
import webs
from surveyor import Graph, UsageError
from surveyor.rank.domains.reach_sketches import bit_vectors
from surveyor.rank.domains.reputation import Resources

ALL_ROUNDS = 1 / math.sqrt(64 * math.pi**2 / (6 * math.log(2)))  # relative sd: 8.1 %


def scores(graph: Graph, seeds: int, **options: Any) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    results = [bit_vectors(graph, rng=seed, resources=Resources(threads=1), **options) for seed in range(seeds)]
    return np.array([result.score(0) for result in results])


@pytest.mark.slow
@pytest.mark.parametrize("words", [1, 2])
def test_the_error_is_as_predicted(words: int) -> None:
    """400 seeds estimate a standard deviation to within 3.5 %; three times that is allowed."""
    found = scores(graph_distances.crowd(3, 300, 3000), 400, words=words)
    theory = ALL_ROUNDS / math.sqrt(words)
    assert 0.89 < np.sqrt(np.mean((found / 300 - 1) ** 2)) / theory < 1.11
    assert abs(found.mean() / 300 - 1) < 3 * theory / math.sqrt(400) + 0.01 / words


def test_the_error_of_one_round_is_that_of_the_paper() -> None:
    """With 2,047 pages the smallest density is 1 - 2^-(2^-11); a bit stays clear with probability q."""
    supporters = 2000
    found = scores(graph_distances.crowd(46, supporters), 400, rounds=1, words=8)
    q = math.exp(-supporters * math.log(2) / 2**11)
    theory = math.sqrt((1 - q) / (q * 64 * 8 * math.log(q) ** 2))
    assert 0.89 < np.std(found / supporters) / theory < 1.11
    assert math.isclose(min((1 - q) / (q * math.log(q) ** 2) for q in np.linspace(0.1, 0.9, 801)), 1.544, rel_tol=1e-3)


def test_known_in_neighbours_add_no_error_to_the_next_level() -> None:
    """Estimating the ball of 4,400 and subtracting 4,000 would have an error of 8 % of it, 355."""
    found = scores(graph_distances.crowd(4000, 400), 300)
    assert abs(found.mean() - 400) < 3 * found.std() / math.sqrt(300) + 8
    assert found.std() < 180


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_intervals_have_their_stated_coverage(depth: int) -> None:
    graph = graph_distances.skewed(600, 1200, 3)
    truth = graph_distances.supporters(graph, depth)
    held, errors = [], []
    for seed in range(40):
        result = bit_vectors(graph, depth, rng=seed, resources=Resources(threads=1))
        low, high = result.intervals()
        held.append(np.mean(((low <= truth) & (truth <= high))[truth > 0]))
        grain = result.error_model.dispersion  # type: ignore[attr-defined]
        errors.append(((result.scores - truth) ** 2 / (truth * grain).clip(1e-9))[truth > 20])
    assert np.mean(held) >= 0.93
    assert 0.85 < np.sqrt(np.mean(errors)) < 1.15


def test_the_top_needs_only_the_sparse_rounds() -> None:
    graph = graph_distances.skewed(1500, 6000, 1)
    few, every = bit_vectors(graph, top=10), bit_vectors(graph)
    assert few.method["rounds"] == 8 < every.method["rounds"] == 12
    truth = graph_distances.supporters(graph, 2)
    best = np.argsort(-truth)[:10]
    low, high = few.intervals(best)
    assert np.mean((low <= truth[best]) & (truth[best] <= high)) >= 0.8
    assert few.interval(int(np.flatnonzero(truth == 0)[0]))[0] == 0
    assert bit_vectors(graph, top=1500).method["rounds"] == 12  # the last has none


@given(graph=webs.graphs(max_pages=12, max_links=30))
def test_tiny_graphs(graph: Graph) -> None:
    truth, result = graph_distances.supporters(graph, 2), bit_vectors(graph, words=8)
    assert np.all(np.abs(result.scores - truth) <= 0.35 * truth + 1e-6)
    assert np.all(result.scores[truth == 0] == 0)


def test_threads_and_blocks_do_not_change_a_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = webs.random_web(3000, 20_000, 5)
    whole = bit_vectors(graph, resources=Resources(threads=2))
    monkeypatch.setattr("surveyor.rank.sweeps.BLOCK", 1 << 11)
    for threads in (1, 4):
        other = bit_vectors(graph, resources=Resources(threads=threads))
        assert other.raw.tobytes() == whole.raw.tobytes()
        assert np.array_equal(other.intervals(), whole.intervals())
    assert bit_vectors(graph, rng=8).raw.tobytes() != whole.raw.tobytes()


@pytest.mark.parametrize("pages", [0, 1, 5])
def test_graphs_without_links(pages: int) -> None:
    nothing = np.empty(0, np.int64)
    result = bit_vectors(Graph.from_arrays(nothing, nothing, pages), top=3)
    assert result.scores.tolist() == [0.0] * pages
    low, high = result.intervals()
    assert low.tolist() == [0.0] * pages
    assert high.max(initial=0) <= 1


def test_invalid_arguments() -> None:
    graph = webs.chain(4)
    zero: dict[str, Any]
    for name in ("depth", "rounds", "top", "words"):
        zero = {name: 0}
        with pytest.raises(UsageError, match=f"{name} must be at least 1, got 0"):
            bit_vectors(graph, **zero)


def test_the_result_is_a_reputation() -> None:
    graph = Graph.from_edges([("a", "b"), ("c", "b"), ("b", "d"), ("e", "d")])
    result = bit_vectors(graph)
    assert result.kind == "bv"
    assert result.name(int(result.top(1)[0])) == "d"
    assert repr(result) == "Reputation(bv, 5 domains, depth 2, rounds 4, words 1, rng 7)"
