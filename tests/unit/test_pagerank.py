from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import dense_pagerank
from surveyor import Graph, NotConverged, Ranking, UsageError, pagerank
from surveyor.arrays import FloatArray
from surveyor.rank import sweeps
from surveyor.rank.pagerank import Solver, SolverOptions
from webs import chain, clique_and_cycle, cycle, graphs, random_web, star, stuck_and_pair

SOLVERS: list[Solver] = ["auto", "power", "seidel"]
DAMPINGS = [0.0, 0.5, 0.85, 0.99]
ROUNDING = 1e-14  # of the dense oracle itself


def uniform(graph: Graph) -> FloatArray:
    return np.full(graph.pages, 1.0 / graph.pages)


def distance(ranking: Ranking, truth: FloatArray) -> float:
    return float(np.abs(ranking.scores - truth).sum())


@st.composite
def problems(draw: st.DrawFn) -> tuple[Graph, FloatArray | None, FloatArray, FloatArray, object]:
    """A graph, teleport argument and distribution, dangling distribution and argument."""
    graph = draw(graphs())
    weights = st.lists(st.sampled_from([0.0, 0.0, 1.0, 3.0]), min_size=graph.pages, max_size=graph.pages)
    given_teleport = draw(st.none() | weights.filter(any).map(lambda values: np.array(values)))
    teleport = uniform(graph) if given_teleport is None else given_teleport / given_teleport.sum()
    dangling = draw(st.sampled_from(["teleport", "uniform"]))
    return graph, given_teleport, teleport, teleport if dangling == "teleport" else uniform(graph), dangling


@given(problems(), st.sampled_from(SOLVERS), st.sampled_from([1e-2, 1e-6, 1e-11]), st.sampled_from(DAMPINGS))
@settings(max_examples=300, deadline=None)
def test_true_error_is_within_the_stated_bound(problem, solver, tolerance, damping):  # type: ignore[no-untyped-def]
    graph, weights, teleport, dangling_weights, dangling = problem
    if damping == 0.99 and tolerance < 1e-10:
        tolerance = 1e-10
    options = SolverOptions(solver=solver, max_sweeps=10_000)
    ranking = pagerank(graph, damping, tolerance, weights, dangling=dangling, options=options)
    truth = dense_pagerank(graph, damping, teleport, dangling_weights)
    assert distance(ranking, truth) <= ranking.error + ROUNDING / (1 - damping)
    assert ranking.error <= tolerance
    assert len(ranking.history) == ranking.sweeps


@given(graphs(), graphs(), st.sampled_from([1e-3, 1e-9]), st.sampled_from(["auto", "push"]))
@settings(max_examples=150, deadline=None)
@pytest.mark.slow
def test_warm_start_after_any_change_keeps_its_bound(old, new, tolerance, solver):  # type: ignore[no-untyped-def]
    start = pagerank(old, tolerance=1e-9).scores[: new.pages]
    ranking = pagerank(new, tolerance=tolerance, start=start, options=SolverOptions(solver=solver))
    assert distance(ranking, dense_pagerank(new, 0.85, uniform(new), uniform(new))) <= ranking.error + ROUNDING
    assert ranking.error <= tolerance


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("damping", DAMPINGS)
@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-10])
def test_the_dangling_page_beside_a_pair(solver: Solver, damping: float, tolerance: float) -> None:
    graph = stuck_and_pair()
    ranking = pagerank(graph, damping, tolerance, options=SolverOptions(solver=solver))
    assert distance(ranking, dense_pagerank(graph, damping, uniform(graph), uniform(graph))) <= ranking.error + 1e-13


def closed_forms() -> list[tuple[Graph, FloatArray]]:
    d = 0.85
    leaves, pages = 7, 9
    # star: r0 = (1-d)/n + d·(1 - r0), each leaf an equal part of the rest
    centre = ((1 - d) / (leaves + 1) + d) / (1 + d)
    star_ranks = np.array([centre] + [(1 - centre) / leaves] * leaves)
    # chain: x_k = (1-d)(1 + d + … + d^k)/n up to a factor
    climb = np.cumsum(d ** np.arange(pages))
    return [
        (cycle(5), np.full(5, 0.2)),
        (star(leaves), star_ranks),
        (chain(pages), climb / climb.sum()),
    ]


@pytest.mark.parametrize(("graph", "truth"), closed_forms())
@pytest.mark.parametrize("solver", SOLVERS)
def test_closed_forms(graph: Graph, truth: FloatArray, solver: Solver) -> None:
    ranking = pagerank(graph, tolerance=1e-12, options=SolverOptions(solver=solver))
    assert distance(ranking, truth) <= ranking.error


@pytest.mark.parametrize(("clique", "ring"), [(2, 3), (5, 8), (10, 2)])
@pytest.mark.parametrize("damping", [0.3, 0.85, 0.95])
def test_clique_joined_to_a_cycle(clique: int, ring: int, damping: float) -> None:
    graph = clique_and_cycle(clique, ring)
    n, d = clique + ring, damping
    # By symmetry the clique has two kinds of pages: page 0 (k links out) and the others (k-1 each).
    k = clique
    a, b = np.linalg.solve(
        [[1.0, -d], [-d / k, 1 - d * (k - 2) / (k - 1)]],
        [(1 - d) / n, (1 - d) / n],
    )
    # a: rank of page 0 = (1-d)/n + d·(k-1)·b/(k-1); b: an ordinary clique page.
    ring_ranks = np.linalg.solve(
        np.eye(ring) - d * np.roll(np.eye(ring), 1, axis=0),
        np.full(ring, (1 - d) / n) + np.eye(ring)[0] * d * a / k,
    )
    truth = np.concatenate([[a], np.full(k - 1, b), ring_ranks])
    assert abs(truth.sum() - 1) < 1e-12
    assert distance(pagerank(graph, damping, 1e-11), truth) <= 1e-11


@pytest.mark.parametrize("solver", SOLVERS)
def test_same_bytes_on_any_number_of_threads(solver: Solver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "BLOCK", 1 << 12)
    graph = random_web(20_000, 120_000, seed=3)
    alone = pagerank(graph, tolerance=1e-10, options=SolverOptions(solver=solver, threads=1))
    for threads in (2, 3, 8):
        ranking = pagerank(graph, tolerance=1e-10, options=SolverOptions(solver=solver, threads=threads))
        assert ranking.scores.tobytes() == alone.scores.tobytes()
        assert ranking.history == alone.history


@pytest.mark.parametrize("block", [1 << 8, 1 << 12, 1 << 19])
def test_blocks_do_not_change_the_answer(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "BLOCK", block)
    graph = random_web(600, 4_000, seed=5)
    ranking = pagerank(graph, tolerance=1e-11, options=SolverOptions(solver="seidel"))
    assert distance(ranking, dense_pagerank(graph, 0.85, uniform(graph), uniform(graph))) <= ranking.error + ROUNDING


def test_without_room_for_history_ranks_are_not_blended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "HISTORY", 0)
    graph = random_web(600, 4_000, seed=5)
    ranking = pagerank(graph, tolerance=1e-11, options=SolverOptions(solver="seidel"))
    assert distance(ranking, dense_pagerank(graph, 0.85, uniform(graph), uniform(graph))) <= ranking.error + ROUNDING


def test_a_small_change_is_pushed_not_swept() -> None:
    graph = cycle(20_000)
    old = pagerank(graph, tolerance=1e-12)
    ids = np.arange(graph.pages)
    changed = Graph.from_arrays(np.append(ids, 5), np.append((ids + 1) % graph.pages, 900), graph.pages)
    warm = pagerank(changed, tolerance=1e-9, start=old)
    cold = pagerank(changed, tolerance=1e-9)
    assert warm.solver == "push"
    assert warm.sweeps <= 3 < cold.sweeps
    assert float(np.abs(warm.scores - cold.scores).sum()) <= warm.error + cold.error


@pytest.mark.parametrize("damping", [0.99, 1 - 1e-9])
def test_pushes_count_as_sweeps_and_end(damping: float) -> None:
    with pytest.raises(NotConverged) as caught:
        pagerank(star(47), damping, 1e-2, start=np.eye(48)[0], options=SolverOptions(solver="push", max_sweeps=2))
    assert caught.value.best.sweeps <= 5


def test_weights_of_any_size_are_scaled() -> None:
    graph = cycle(4)
    assert pagerank(graph, teleport=np.full(4, 1e308)).share(0) == pytest.approx(0.25)
    assert pagerank(graph, start=np.full(4, 1e308)).share(0) == pytest.approx(0.25)


def test_a_large_change_ends_in_sweeps() -> None:
    old = pagerank(random_web(20_000, 120_000, seed=3))
    warm = pagerank(random_web(20_000, 120_000, seed=4), tolerance=1e-9, start=old)
    assert warm.solver in ("seidel", "power")
    assert warm.error <= 1e-9


@pytest.mark.parametrize(
    ("graph", "scores"),
    [
        (Graph.from_arrays(np.empty(0, int), np.empty(0, int), 0), []),
        (Graph.from_arrays(np.empty(0, int), np.empty(0, int), 1), [1.0]),
        (Graph.from_arrays(np.empty(0, int), np.empty(0, int), 4), [0.25] * 4),
        (Graph.from_arrays(np.array([0]), np.array([0]), 1), [1.0]),
    ],
)
@pytest.mark.parametrize("solver", SOLVERS)
def test_empty_single_and_linkless_graphs(graph: Graph, scores: list[float], solver: Solver) -> None:
    ranking = pagerank(graph, options=SolverOptions(solver=solver))
    assert np.allclose(ranking.scores, scores, atol=1e-12)


def test_trusted_pages_by_name() -> None:
    graph = Graph.from_edges([("a", "b"), ("b", "c"), ("x", "y")])
    ranking = pagerank(graph, teleport=["a"], tolerance=1e-10)
    assert ranking.share("x") == ranking.share("y") == 0
    assert ranking.teleport == "custom"
    assert ranking.share("a") > ranking.share("b") > ranking.share("c") > 0


def test_too_few_sweeps_raise_with_the_best_so_far() -> None:
    graph = random_web(500, 3_000, seed=1)
    with pytest.raises(NotConverged) as caught:
        pagerank(graph, tolerance=1e-9, options=SolverOptions(max_sweeps=4))
    best = caught.value.best
    assert best.error > 1e-9
    assert distance(best, dense_pagerank(graph, 0.85, uniform(graph), uniform(graph))) <= best.error


def test_tolerance_below_rounding_is_rejected_or_not_reached() -> None:
    graph = random_web(3_000, 60_000, seed=1)
    with pytest.raises(UsageError, match="float64"):
        pagerank(graph, tolerance=1e-15)
    with pytest.raises(NotConverged, match="rounding"):
        pagerank(graph, damping=0.999, tolerance=1e-13, options=SolverOptions(max_sweeps=100_000))


@pytest.mark.parametrize(
    "arguments",
    [
        {"damping": 1.0},
        {"damping": -0.1},
        {"damping": float("nan")},
        {"tolerance": 0.0},
        {"tolerance": float("nan")},
        {"options": SolverOptions(solver="magic")},  # type: ignore[arg-type]
        {"options": SolverOptions(solver="push")},
        {"dangling": "nowhere"},
        {"teleport": [1.0]},
        {"teleport": [0.0] * 5},
        {"teleport": [-1.0, 1, 1, 1, 1]},
        {"teleport": [float("nan")] * 5},
        {"teleport": ["unknown"]},
        {"start": np.ones(6)},
        {"start": -np.ones(5)},
    ],
)
def test_invalid_arguments_raise_an_error_with_a_hint(arguments: dict[str, object]) -> None:
    with pytest.raises(UsageError) as caught:
        pagerank(cycle(5), **arguments)  # type: ignore[arg-type]
    assert caught.value.hint


def test_messages_name_argument_value_and_range() -> None:
    with pytest.raises(UsageError, match=r"damping must be in \[0, 1\), got 1.5"):
        pagerank(cycle(5), damping=1.5)
    with pytest.raises(UsageError, match="tolerance must be at least 1e-13, got 0"):
        pagerank(cycle(5), tolerance=0)


def test_streaming_from_disk_gives_the_same_bytes(tmp_path) -> None:  # type: ignore[no-untyped-def]
    graph = random_web(5_000, 30_000, seed=2)
    graph.save(tmp_path / "web")
    streamed = pagerank(Graph.open(tmp_path / "web"))
    assert streamed.scores.tobytes() == pagerank(graph).scores.tobytes()
