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
from surveyor.rank.domains.degree import in_degree, paths, weighted_in_degree
from surveyor.rank.domains.intervals import Counted, Relative, Within
from surveyor.rank.domains.reputation import Reputation
from surveyor.rank.domains.supporters import supporters, supporters_of
from surveyor.rank.domains.tse import Sample, outranks, sampled_supporters

SEEDS = 400


@given(graphs(), st.integers(1, 5))
def test_supporters_are_those_whose_shortest_path_is_as_long(graph: Graph, depth: int) -> None:
    truth = at_distance(graph, depth).sum(0)
    assert supporters(graph, depth).raw.tolist() == truth.tolist()
    some = np.arange(graph.pages)[::-2]
    assert supporters_of(graph, some, depth, threads=1).tolist() == truth[some].tolist()
    assert sampled_supporters(graph, 1.0, depth=depth).scores.tolist() == truth.tolist()


@given(graphs())
def test_scores_of_one_pass(graph: Graph) -> None:
    links = dense(graph)
    degree = links.sum(1)
    assert in_degree(graph).raw.tolist() == links.sum(0).tolist()
    assert paths(graph).raw.tolist() == (links.astype(np.float32) @ links.astype(np.float32)).sum(0).tolist()
    exact = (links / np.maximum(degree, 1)[:, None]).sum(0)
    win = weighted_in_degree(graph)
    low, high = win.intervals()
    assert np.all((low <= exact + 1e-15) & (exact <= high + 1e-15))


def test_mean_paths_is_mean_product_of_degrees() -> None:
    graph = rmat(10, 8)
    assert paths(graph).scores.sum() == (graph.in_links.degrees() * graph.out_degrees).sum()


@pytest.fixture(scope="module")
def web() -> Graph:
    return rmat(11, 10, rng=3)


@pytest.fixture(scope="module")
def truth(web: Graph) -> np.ndarray:
    return np.asarray(at_distance(web, 2).sum(0))


@pytest.fixture(scope="module", params=[0.02, 0.1, 0.5])
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


@pytest.mark.compiled
def test_the_variance_of_estimates_is_that_of_theory(draws: tuple[float, np.ndarray], truth: np.ndarray) -> None:
    p, counts = draws
    wide = truth > 50
    ratio = counts[:, wide].var(0, ddof=1) / (truth[wide] * p * (1 - p))
    assert 0.9 < ratio.mean() < 1.1


@pytest.mark.parametrize("p", [0.05, 0.5, 0.9, 0.99, 0.999])
def test_small_truths_are_covered_too(p: float) -> None:
    """Exact: over all counts that may come, weighted by their chances, and not a hair beside the truth."""
    for truth in (1, 2, 3, 10, 60):
        chances = [math.comb(truth, c) * p**c * (1 - p) ** (truth - c) for c in range(truth + 1)]
        low, high = Counted(p).intervals(np.arange(truth + 1) / p)
        assert sum(chance for c, chance in enumerate(chances) if low[c] <= truth <= high[c]) >= 0.95 - 1e-9


def test_large_truths_are_covered_where_nearly_all_are_sampled() -> None:
    rng = np.random.default_rng(5)
    for truth, p in ((1019, 0.999), (5_000, 0.995), (200_000, 0.9)):
        low, high = Counted(p).intervals(rng.binomial(truth, p, 4000) / p)
        assert np.mean((low <= truth) & (truth <= high)) > 0.94


@pytest.mark.compiled
def test_intervals_hold_the_truth(draws: tuple[float, np.ndarray], truth: np.ndarray) -> None:
    p, counts = draws
    low, high = Counted(p).intervals(counts.ravel() / p)
    held = ((low <= truth[None].repeat(SEEDS, 0).ravel()) & (truth[None].repeat(SEEDS, 0).ravel() <= high)).reshape(
        counts.shape
    )
    assert held.mean() > 0.95  # all domains
    wide = truth > 20 / p  # where a normal law would do, the interval is not wider than need be
    if wide.any():
        assert 0.93 < held[:, wide].mean() < 0.97
        width = (high - low).reshape(counts.shape)[:, wide].mean(0)
        normal = 2 * 1.96 * np.sqrt(truth[wide] * (1 - p) / p)
        assert (width / normal).max() < 1.25


def test_the_interval_is_exact_for_small_counts() -> None:
    """Compared with sums of binomial chances, at the ends."""
    for p in (0.003, 0.2, 0.7):
        for count in (0, 1, 2, 7, 40):
            (low,), (high,) = Counted(p).intervals(np.array([count / p]))
            if count:
                trials = math.floor(low)  # at least as many as were counted
                assert low == pytest.approx(count) or _at_least(count, trials, p) <= 0.0251
            assert 1 - _at_least(count + 1, math.ceil(high), p) <= 0.0251
            assert low <= count / p <= high or count == 0


def _at_least(count: int, trials: int, p: float) -> float:
    return 1 - sum(math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(min(count, trials + 1)))


def test_the_two_ways_to_an_interval_meet() -> None:
    low, high = Counted(0.01).intervals(np.array([100_000.0, 100_100.0]))
    assert abs(np.diff(low)[0] - 100) < 100
    assert abs(np.diff(high)[0] - 100) < 150


def test_samples_nest_and_add_up(web: Graph) -> None:
    grown = Sample(web, rng=5)
    for p in (0.01, 0.1, 0.3):
        grown.grow(p)
        assert np.array_equal(grown.counts, sampled_supporters(web, p, rng=5).raw)
    assert grown.drawn == sampled_supporters(web, 0.3, rng=5).method["sampled"]


def test_threads_change_nothing(web: Graph) -> None:
    one, many = (sampled_supporters(web, 0.2, threads=threads) for threads in (1, 5))
    assert np.array_equal(one.raw, many.raw)
    assert np.array_equal(supporters(web, threads=1).raw, supporters(web, threads=5).raw)


@pytest.mark.compiled
def test_p_is_chosen_for_the_error_asked_for(web: Graph, truth: np.ndarray) -> None:
    at = np.sort(truth)[-100]
    errors = []
    for seed in range(100):
        estimate = sampled_supporters(web, top=100, error=0.05, rng=seed)
        p = estimate.method["p"]
        assert estimate.method["error"] <= 0.0525
        assert 0.5 < p * (1 + 0.05**2 * at) < 2
        node = int(np.argsort(truth)[-100])
        errors.append((estimate.score(node) - truth[node]) / truth[node])
    assert 0.8 < np.std(errors) / 0.05 < 1.2


def test_a_list_longer_than_the_graph_is_counted_exactly() -> None:
    graph = Graph.from_edges([("a", "b"), ("b", "c")])
    estimate = sampled_supporters(graph, top=1000, error=0.01)
    assert estimate.method["p"] == 1.0
    assert estimate.interval("c") == (1.0, 1.0)


@pytest.mark.compiled
def test_who_is_ahead_is_as_sure_as_said(web: Graph, truth: np.ndarray) -> None:
    """The wrong one is said to be ahead, with 95 % or more, in 5 % of the cases at most, however close they are."""
    order = np.argsort(-truth)[:60].tolist()
    close = list(zip(order[:-5], order[5:], strict=True))
    said = wrong = told = 0
    for seed in range(20):
        estimate = sampled_supporters(web, 0.1, rng=seed)
        for a, b in close:
            chance = outranks(web, estimate, a, b)
            assert outranks(web, estimate, b, a) == pytest.approx(1 - chance)
            said += 1
            wrong += chance <= 0.05
        told += outranks(web, estimate, order[0], int(np.argsort(-truth)[900])) > 0.99
    assert wrong / said < 0.06
    assert told == 20


@pytest.mark.slow
def test_the_variance_of_a_lead_is_that_of_what_is_not_shared(web: Graph, truth: np.ndarray) -> None:
    reach = at_distance(web, 2)
    a, b = np.argsort(-truth)[[0, 3]]
    apart = int((reach[:, a] ^ reach[:, b]).sum())
    p = 0.1
    leads = []
    for seed in range(SEEDS):
        counts = sampled_supporters(web, p, rng=seed).raw.astype(int)
        leads.append(counts[a] - counts[b])
    assert 0.8 < np.var(leads) / (apart * p * (1 - p)) < 1.2
    assert apart < 0.5 * (truth[a] + truth[b])  # so that it matters


def test_ties_go_by_in_links_then_by_id() -> None:
    raw, rows = np.array([5, 7, 5, 5, 0]), np.array([0, 1, 1, 4, 5, 5])
    told = Reputation("supp", raw, in_indptr=rows)
    assert told.top(5).tolist() == [1, 2, 0, 3, 4]
    assert told.positions().tolist() == [3, 1, 2, 4, 5]
    assert [told.position(node) for node in range(5)] == [2, 1, 2, 2, 5]


@given(st.lists(st.integers(0, 4), max_size=40), st.integers(0, 45))
def test_the_best_are_the_first_of_all(values: list[int], count: int) -> None:
    told = Reputation("in", np.array(values, np.uint32))
    order = sorted(range(len(values)), key=lambda node: (-values[node], node))
    assert told.top(count).tolist() == order[:count]


def test_other_certainties() -> None:
    low, high = Within(0.1).intervals(np.array([0.05, 1.0]))
    assert (low.tolist(), high.tolist()) == ([0.0, 0.9], pytest.approx([0.15, 1.1]))
    low, high = Relative(0.1).intervals(np.array([100.0]))
    assert low[0] == pytest.approx(100 / 1.196, rel=1e-3)
    assert high[0] == pytest.approx(100 / 0.804, rel=1e-3)
    assert Relative(0.6).intervals(np.array([5.0, 0.0]))[1].tolist() == [math.inf, 0.0]


@pytest.mark.parametrize("p", [0.0, -0.1, 1.5, 1e-30, math.nan])
def test_p_out_of_range(p: float) -> None:
    with pytest.raises(UsageError, match="no chance to be sampled"):
        sampled_supporters(rmat(3, 2), p)


def test_wrong_wishes() -> None:
    graph = rmat(3, 2)
    with pytest.raises(UsageError, match="level-0"):
        supporters(graph, 0)
    with pytest.raises(UsageError, match="best 0 domains"):
        sampled_supporters(graph, top=0)
    with pytest.raises(UsageError, match="error of 2"):
        sampled_supporters(graph, error=2.0)
    with pytest.raises(UsageError, match="no sample"):
        outranks(graph, in_degree(graph), 0, 1)


def test_ids_and_seeds_of_all_kinds(web: Graph) -> None:
    estimate = sampled_supporters(web, 0.5, rng=-1)
    assert np.array_equal(estimate.raw, sampled_supporters(web, 0.5, rng=2**64 - 1).raw)
    best = estimate.top(2)
    assert 0 <= outranks(web, estimate, best[0], best[1]) <= 1
    with pytest.raises(UsageError, match="no domain -1"):
        outranks(web, estimate, -1, 3)
    with pytest.raises(UsageError, match="ids that no domain has"):
        supporters_of(web, np.array([-1]))
    assert "error" not in sampled_supporters(web, 2.0**-32).to_dict()


def test_empty_graphs() -> None:
    empty = Graph.from_arrays(np.empty(0, np.int64), np.empty(0, np.int64), 0)
    for told in (supporters(empty), sampled_supporters(empty), in_degree(empty), paths(empty)):
        assert told.domains == 0
        assert told.top(5).size == 0
    lonely = Graph.from_arrays(np.empty(0, np.int64), np.empty(0, np.int64), 3)
    assert sampled_supporters(lonely).scores.tolist() == [0, 0, 0]


def test_results_print_themselves() -> None:
    graph = Graph.from_edges([("a.example", "b.example"), ("b.example", "<c>.example")])
    told = sampled_supporters(graph, 0.5)
    assert "tse, 3 domains, p 0.5" in repr(told)
    assert "&lt;c&gt;" in told._repr_html_()
    row = told.to_dict(1)["domains"][0]
    assert set(row) == {"position", "domain", "id", "score", "low", "high"}
    assert told.to_polars().columns == ["id", "score", "low", "high", "domain"]
    with pytest.raises(UsageError, match="no domain 9"):
        told.score(9)


def test_entries_of_a_file_are_given_back_and_still_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(1 << 16))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    for array in (mapped, np.asarray(mapped).view(np.uint64)):
        before = array.sum()
        let_go(array, 100, 1 << 16)
        assert array.sum() == before
    let_go(np.arange(5), 0, 5)  # nothing to give back
