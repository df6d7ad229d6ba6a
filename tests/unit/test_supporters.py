"""Supporters against brute force, and estimates of them against the theory of their error."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_distances import at_distance, dense, graphs
from surveyor.arrays import let_go
from surveyor.errors import UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.synthetic.generate import rmat
from surveyor.rank.domains.link_counts import in_degree, supporters, supporters_of, two_link_paths, weighted_in_degree
from surveyor.rank.domains.reputation import BinomialCount, BoundedError, Reputation, Resources
from surveyor.rank.domains.tse import SupporterSample, order_confidence, sampled_supporters

SEEDS = 400


@given(graphs(), st.integers(1, 5))
def test_supporters_are_those_whose_shortest_path_is_as_long(graph: Graph, depth: int) -> None:
    truth = at_distance(graph, depth).sum(0)
    assert supporters(graph, depth).raw.tolist() == truth.tolist()
    some = np.arange(graph.pages)[::-2]
    assert supporters_of(graph, some, depth, resources=Resources(threads=1)).tolist() == truth[some].tolist()
    assert sampled_supporters(graph, 1.0, depth=depth).scores.tolist() == truth.tolist()


@given(graphs())
def test_scores_of_one_pass(graph: Graph) -> None:
    links = dense(graph)
    degree = links.sum(1)
    assert in_degree(graph).raw.tolist() == links.sum(0).tolist()
    assert two_link_paths(graph).raw.tolist() == (links.astype(np.float32) @ links.astype(np.float32)).sum(0).tolist()
    exact = (links / np.maximum(degree, 1)[:, None]).sum(0)
    win = weighted_in_degree(graph)
    low, high = win.intervals()
    assert np.all((low <= exact + 1e-15) & (exact <= high + 1e-15))


def test_mean_paths_is_mean_product_of_degrees() -> None:
    graph = rmat(10, 8)
    assert two_link_paths(graph).scores.sum() == (graph.in_links.degrees() * graph.out_degrees).sum()


@pytest.fixture(scope="module")
def web() -> Graph:
    return rmat(11, 10, rng=3)


@pytest.fixture(scope="module")
def truth(web: Graph) -> np.ndarray:
    return np.asarray(at_distance(web, 2).sum(0))


@pytest.fixture(scope="module", params=[0.02, *(pytest.param(p, marks=pytest.mark.slow) for p in (0.1, 0.5))])
def draws(request: pytest.FixtureRequest, web: Graph) -> tuple[float, np.ndarray]:
    p: float = request.param
    return p, np.array([sampled_supporters(web, p, rng=seed).raw for seed in range(SEEDS)])


@pytest.mark.compiled
@pytest.mark.slow
def test_the_mean_of_estimates_is_the_truth(draws: tuple[float, np.ndarray], truth: np.ndarray) -> None:
    p, counts = draws
    wide = truth > 50
    # Standard errors of the means: 4.5 of them bound the largest of a thousand; the sum over all domains is sharper.
    error = np.sqrt(truth[wide] * (1 - p) / p / SEEDS)
    assert np.abs(counts[:, wide].mean(0) / p - truth[wide]).max() < 4.5 * error.max()
    assert np.all(np.abs(counts[:, wide].mean(0) / p - truth[wide]) < 5 * error)


@pytest.mark.slow
@pytest.mark.compiled
def test_the_variance_of_estimates_is_that_of_theory(draws: tuple[float, np.ndarray], truth: np.ndarray) -> None:
    p, counts = draws
    wide = truth > 50
    ratio = counts[:, wide].var(0, ddof=1) / (truth[wide] * p * (1 - p))
    assert 0.9 < ratio.mean() < 1.1


@pytest.mark.parametrize("p", [0.05, 0.5, 0.9, 0.99, 0.999])
def test_small_truths_are_covered_too(p: float) -> None:
    """Exact coverage: a sum over all counts, weighted by their probabilities."""
    for truth in (1, 2, 3, 10, 60):
        probabilities = [math.comb(truth, c) * p**c * (1 - p) ** (truth - c) for c in range(truth + 1)]
        low, high = BinomialCount(p).intervals(np.arange(truth + 1) / p)
        assert (
            sum(probability for c, probability in enumerate(probabilities) if low[c] <= truth <= high[c]) >= 0.95 - 1e-9
        )


def test_large_truths_are_covered_where_nearly_all_are_sampled() -> None:
    rng = np.random.default_rng(5)
    for truth, p in ((1019, 0.999), (5_000, 0.995), (200_000, 0.9)):
        low, high = BinomialCount(p).intervals(rng.binomial(truth, p, 4000) / p)
        assert np.mean((low <= truth) & (truth <= high)) > 0.94


@pytest.mark.compiled
@pytest.mark.slow
def test_intervals_have_their_stated_coverage(draws: tuple[float, np.ndarray], truth: np.ndarray) -> None:
    p, counts = draws
    low, high = BinomialCount(p).intervals(counts.ravel() / p)
    covered = ((low <= truth[None].repeat(SEEDS, 0).ravel()) & (truth[None].repeat(SEEDS, 0).ravel() <= high)).reshape(
        counts.shape
    )
    assert covered.mean() > 0.95  # all domains
    wide = truth > 20 / p  # where a normal approximation is good, the interval is not wider than necessary
    if wide.any():
        assert 0.93 < covered[:, wide].mean() < 0.97
        width = (high - low).reshape(counts.shape)[:, wide].mean(0)
        normal = 2 * 1.96 * np.sqrt(truth[wide] * (1 - p) / p)
        assert (width / normal).max() < 1.25


def test_the_interval_is_exact_for_small_counts() -> None:
    """Compared with sums of binomial probabilities, at the ends."""
    for p in (0.003, 0.2, 0.7):
        for count in (0, 1, 2, 7, 40):
            (low,), (high,) = BinomialCount(p).intervals(np.array([count / p]))
            if count:
                trials = math.floor(low)  # at least as many as were counted
                assert low == pytest.approx(count) or _at_least(count, trials, p) <= 0.0251
            assert 1 - _at_least(count + 1, math.ceil(high), p) <= 0.0251
            assert low <= count / p <= high or count == 0


def _at_least(count: int, trials: int, p: float) -> float:
    return 1 - sum(math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(min(count, trials + 1)))


def test_exact_and_score_intervals_agree_where_they_meet() -> None:
    low, high = BinomialCount(0.01).intervals(np.array([100_000.0, 100_100.0]))
    assert abs(np.diff(low)[0] - 100) < 100
    assert abs(np.diff(high)[0] - 100) < 150


def test_samples_nest_and_add_up(web: Graph) -> None:
    grown = SupporterSample(web, rng=5)
    for p in (0.01, 0.1, 0.3):
        grown.grow(p)
        assert np.array_equal(grown.counts, sampled_supporters(web, p, rng=5).raw)
    assert grown.sampled == sampled_supporters(web, 0.3, rng=5).method["sampled"]


def test_threads_change_nothing(web: Graph) -> None:
    one, many = (sampled_supporters(web, 0.2, resources=Resources(threads=threads)) for threads in (1, 5))
    assert np.array_equal(one.raw, many.raw)
    one, many = (supporters(web, resources=Resources(threads=threads)) for threads in (1, 5))
    assert np.array_equal(one.raw, many.raw)


@pytest.mark.compiled
def test_p_is_chosen_for_the_requested_error(web: Graph, truth: np.ndarray) -> None:
    at = np.sort(truth)[-100]
    errors, ratios = [], []
    for seed in range(100):
        estimate = sampled_supporters(web, top=100, error=0.05, rng=seed)
        p = estimate.method["p"]
        assert estimate.method["error"] <= 0.05
        ratios.append(p * (1 + 0.05**2 * at))
        node = int(np.argsort(truth)[-100])
        errors.append((estimate.score(node) - truth[node]) / truth[node])
    assert 0.8 < np.std(errors) / 0.05 < 1.2
    assert 1 <= np.mean(ratios) < 1.2  # as many are drawn as are needed
    assert max(ratios) < 1.5


@pytest.mark.compiled
@pytest.mark.parametrize(("scale", "top", "error"), [(11, 100, 0.1), (11, 20, 0.3), (13, 300, 0.2), (13, 1000, 0.1)])
@pytest.mark.slow
def test_no_more_is_drawn_than_an_error_needs(scale: int, top: int, error: float) -> None:
    """Graphs where a pilot of a fixed size would draw up to 20 times as many domains."""
    graph = rmat(scale, 10, rng=scale)
    counts = supporters(graph).raw
    node = int(np.argsort(-counts, kind="stable")[top - 1])
    estimates = [sampled_supporters(graph, top=top, error=error, rng=seed) for seed in range(60)]
    needed = 1 / (1 + error**2 * float(counts[node]))
    ratios = np.array([estimate.method["p"] for estimate in estimates]) / needed
    assert 1 <= ratios.mean() < 1.15 * (1 + error)
    assert all(estimate.method["error"] <= error for estimate in estimates)
    misses = np.array([estimate.score(node) for estimate in estimates]) / counts[node] - 1
    assert 0.7 * error < np.sqrt(np.mean(misses**2)) < 1.25 * error  # 60 draws


def test_a_list_longer_than_the_graph_is_counted_exactly() -> None:
    graph = Graph.from_edges([("a", "b"), ("b", "c")])
    estimate = sampled_supporters(graph, top=1000, error=0.01)
    assert estimate.method["p"] == 1.0
    assert estimate.interval("c") == (1.0, 1.0)


@pytest.mark.compiled
def test_order_confidence_has_its_stated_error_rate(web: Graph, truth: np.ndarray) -> None:
    """The wrong order has a confidence of 95 % or more in at most 5 % of the cases, however close the domains are."""
    order = np.argsort(-truth)[:60].tolist()
    close = list(zip(order[:-5], order[5:], strict=True))
    pairs = wrong = clear = 0
    for seed in range(20):
        estimate = sampled_supporters(web, 0.1, rng=seed)
        for a, b in close:
            confidence = order_confidence(web, estimate, a, b)
            assert order_confidence(web, estimate, b, a) == pytest.approx(1 - confidence)
            pairs += 1
            wrong += confidence <= 0.05
        clear += order_confidence(web, estimate, order[0], int(np.argsort(-truth)[900])) > 0.99
    assert wrong / pairs < 0.06
    assert clear == 20


@pytest.mark.slow
def test_the_variance_of_a_lead_depends_on_distinct_supporters_only(web: Graph, truth: np.ndarray) -> None:
    reach = at_distance(web, 2)
    a, b = np.argsort(-truth)[[0, 3]]
    distinct = int((reach[:, a] ^ reach[:, b]).sum())
    p = 0.1
    leads = []
    for seed in range(SEEDS):
        counts = sampled_supporters(web, p, rng=seed).raw.astype(int)
        leads.append(counts[a] - counts[b])
    assert 0.8 < np.var(leads) / (distinct * p * (1 - p)) < 1.2
    assert distinct < 0.5 * (truth[a] + truth[b])  # so that it matters


def test_ties_go_by_in_links_then_by_id() -> None:
    raw, rows = np.array([5, 7, 5, 5, 0]), np.array([0, 1, 1, 4, 5, 5])
    result = Reputation("supp", raw, in_indptr=rows)
    assert result.top(5).tolist() == [1, 2, 0, 3, 4]
    assert result.positions().tolist() == [3, 1, 2, 4, 5]
    assert [result.position(node) for node in range(5)] == [2, 1, 2, 2, 5]


@given(st.lists(st.integers(0, 4), max_size=40), st.integers(0, 45))
def test_the_best_are_the_first_of_all(values: list[int], count: int) -> None:
    result = Reputation("in", np.array(values, np.uint32))
    order = sorted(range(len(values)), key=lambda node: (-values[node], node))
    assert result.top(count).tolist() == order[:count]


def test_bounded_error_is_never_negative() -> None:
    low, high = BoundedError(0.1).intervals(np.array([0.05, 1.0]))
    assert (low.tolist(), high.tolist()) == ([0.0, 0.9], pytest.approx([0.15, 1.1]))


@pytest.mark.parametrize("p", [0.0, -0.1, 1.5, 1e-30, math.nan])
def test_p_out_of_range(p: float) -> None:
    with pytest.raises(UsageError, match=r"p must be in \(0, 1\], got"):
        sampled_supporters(rmat(3, 2), p)


def test_invalid_arguments() -> None:
    graph = rmat(3, 2)
    with pytest.raises(UsageError, match="depth must be at least 1, got 0"):
        supporters(graph, 0)
    with pytest.raises(UsageError, match="top must be at least 1, got 0"):
        sampled_supporters(graph, top=0)
    with pytest.raises(UsageError, match=r"error must be in \(0, 1\), got 2"):
        sampled_supporters(graph, error=2.0)
    with pytest.raises(UsageError, match="must be a tse score, got in"):
        order_confidence(graph, in_degree(graph), 0, 1)


def test_ids_and_seeds_of_all_kinds(web: Graph) -> None:
    estimate = sampled_supporters(web, 0.5, rng=-1)
    assert np.array_equal(estimate.raw, sampled_supporters(web, 0.5, rng=2**64 - 1).raw)
    best = estimate.top(2)
    assert 0 <= order_confidence(web, estimate, best[0], best[1]) <= 1
    with pytest.raises(UsageError, match=r"id must be in \[0, 2047\], got -1"):
        order_confidence(web, estimate, -1, 3)
    with pytest.raises(UsageError, match=r"id must be in \[0, 2047\], got -1"):
        supporters_of(web, np.array([-1]))
    assert "error" not in sampled_supporters(web, 2.0**-32).to_dict()


def test_empty_graphs() -> None:
    empty = Graph.from_arrays(np.empty(0, np.int64), np.empty(0, np.int64), 0)
    for result in (supporters(empty), sampled_supporters(empty), in_degree(empty), two_link_paths(empty)):
        assert result.domains == 0
        assert result.top(5).size == 0
    lonely = Graph.from_arrays(np.empty(0, np.int64), np.empty(0, np.int64), 3)
    assert sampled_supporters(lonely).scores.tolist() == [0, 0, 0]


def test_results_print_themselves() -> None:
    graph = Graph.from_edges([("a.example", "b.example"), ("b.example", "<c>.example")])
    result = sampled_supporters(graph, 0.5)
    assert "tse, 3 domains, p 0.5" in repr(result)
    assert "&lt;c&gt;" in result._repr_html_()
    row = result.to_dict(1)["domains"][0]
    assert set(row) == {"position", "domain", "id", "score", "low", "high"}
    assert result.to_polars().columns == ["id", "score", "low", "high", "domain"]
    with pytest.raises(UsageError, match=r"id must be in \[0, 2\], got 9"):
        result.score(9)


def test_released_memory_of_a_mapped_file_can_still_be_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(1 << 16))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    for array in (mapped, np.asarray(mapped).view(np.uint64)):
        before = array.sum()
        let_go(array, 100, 1 << 16)
        assert array.sum() == before
    let_go(np.arange(5), 0, 5)  # no mapped memory: no effect
