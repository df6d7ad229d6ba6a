"""The NetworkX backend: NetworkX's own tests through it, and more cases than these."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

MODULES = ("link_analysis.tests.test_pagerank", "centrality.tests.test_harmonic_centrality")
OTHERS = "stochastic_graph|google_matrix|to_scipy_sparse_array"  # functions that these tests use beside the two


def own_tests(folder: Path, fallback: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of NetworkX through the backend; with `fallback` other functions are those of NetworkX."""
    environment = {**os.environ, "NETWORKX_TEST_BACKEND": "surveyor", "NETWORKX_FALLBACK_TO_NX": fallback}
    if not fallback:
        del environment["NETWORKX_FALLBACK_TO_NX"]
    modules = [f"networkx.algorithms.{module}" for module in MODULES]
    command = [sys.executable, "-m", "pytest", "-q", "-rxX", "-c", os.devnull, "--rootdir", str(folder)]
    return subprocess.run(
        [*command, "-p", "no:cacheprovider", "--pyargs", *modules],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=folder,
    )


@pytest.mark.slow
def test_networkx_passes_its_own_tests_through_the_backend(tmp_path: Path) -> None:
    """Without fallback, a function that the backend lacks is an expected failure; none of ours may be among them."""
    done = own_tests(tmp_path, "")
    assert done.returncode == 0, done.stdout[-3000:]
    expected = [line for line in done.stdout.splitlines() if line.startswith("XFAIL")]
    ours = [line for line in expected if not any(f"'{name}' not implemented" in line for name in OTHERS.split("|"))]
    assert not ours
    passed = int(done.stdout.splitlines()[-1].split()[0])
    assert passed >= 28


@pytest.mark.slow
def test_networkx_passes_them_with_the_other_functions_of_networkx(tmp_path: Path) -> None:
    done = own_tests(tmp_path, "1")
    last = done.stdout.splitlines()[-1]
    assert " passed" in last
    assert "failed" not in last
    assert "xfailed" not in last


def random_graph(kind: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    graph = kind()
    graph.add_nodes_from(["alone", ("a", 1), 7.5])
    ends = rng.integers(0, 12, (40, 2)).tolist()
    graph.add_weighted_edges_from((a, b, float(rng.integers(0, 4))) for a, b in ends)
    graph.add_edge(3, 3)
    graph.add_edge("x", 3, cost=2.5)
    return graph


KINDS = [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"alpha": 0.5},
    {"weight": None},
    {"weight": "cost"},
    {"personalization": {3: 1.0, "alone": 2.0}},
    {"personalization": {3: 1.0, "no such node": 5.0}},
    {"dangling": {3: 1.0, "x": 1.0}},
    {"personalization": {1: 1.0}, "dangling": {2: 1.0}},
    {"nstart": {3: 1.0}},
]


@pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs:UserWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_pagerank_is_that_of_networkx(kind: Any, options: dict[str, Any]) -> None:
    for seed in range(3):
        graph = random_graph(kind, seed)
        expected = nx.pagerank(graph, tol=1e-16, max_iter=5000, backend="networkx", **options)
        found = nx.pagerank(graph, tol=1e-11, max_iter=5000, backend="surveyor", **options)
        assert list(found) == list(expected)
        assert sum(abs(found[node] - expected[node]) for node in expected) < 1e-9


@pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs:UserWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bunch", [{}, {"nbunch": [3, "x"]}, {"nbunch": 3}, {"sources": [1, 2, "nowhere"]}], ids=str)
@pytest.mark.parametrize("distance", [None, "weight", "cost", "no such attribute"])
def test_harmonic_centrality_is_that_of_networkx(kind: Any, bunch: dict[str, Any], distance: str | None) -> None:
    for seed in range(3):
        graph = random_graph(kind, seed)  # with links of length 0
        expected = nx.harmonic_centrality(graph, distance=distance, backend="networkx", **bunch)
        found = nx.harmonic_centrality(graph, distance=distance, backend="surveyor", **bunch)
        assert found.keys() == expected.keys()
        assert all(abs(found[node] - expected[node]) < 1e-9 for node in expected)


@pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs:UserWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_that_networkx_keeps_converted_serves_other_functions_and_attributes(kind: Any) -> None:
    graph = random_graph(kind, 2)
    for attribute in ("weight", None, "cost", "weight", None):
        expected = nx.pagerank(graph, weight=attribute, tol=1e-16, max_iter=5000, backend="networkx")
        found = nx.pagerank(graph, weight=attribute, tol=1e-11, max_iter=5000, backend="surveyor")
        assert sum(abs(found[node] - expected[node]) for node in expected) < 1e-9
        centrality = nx.harmonic_centrality(graph, distance=attribute, backend="networkx")
        same = nx.harmonic_centrality(graph, distance=attribute, backend="surveyor")
        assert all(abs(same[node] - centrality[node]) < 1e-9 for node in centrality)


@pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs:UserWarning")
def test_what_the_backend_cannot_compute_is_left_to_networkx() -> None:
    negative = nx.DiGraph()
    negative.add_weighted_edges_from([(1, 2, 3.0), (1, 3, -1.0), (2, 1, 1.0), (3, 1, 1.0)])
    cases: list[tuple[Any, dict[str, Any]]] = [
        (nx.pagerank, {"alpha": 1.0}),
        (nx.pagerank, {"G": negative}),
        (nx.harmonic_centrality, {"distance": lambda *_: 2.0}),
    ]
    for function, options in cases:
        options = {"G": nx.complete_graph(4, nx.DiGraph), **options}
        with pytest.raises(NotImplementedError):
            function(**options, backend="surveyor")
        expected = function(**options)
        with nx.config(backend_priority=["surveyor"]):
            assert function(**options) == expected
    with pytest.raises(NotImplementedError) as raised:
        nx.harmonic_centrality(negative, distance="weight", backend="surveyor")
    assert "'weight' must be at least 0" in str(raised.value.__cause__)


@pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs:UserWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_a_converted_graph_of_any_kind_converts_back(kind: Any) -> None:
    from surveyor.integrations.networkx import convert_from_nx, convert_to_nx

    graph = kind()
    graph.add_node("alone")
    ends = [(3, 1), (1, 2), (2, 2), ("x", 1), (2, 3), (3, 1)]
    graph.add_weighted_edges_from((a, b, float(number)) for number, (a, b) in enumerate(ends))
    for options in ({"edge_attrs": {"weight": 1}}, {"preserve_edge_attrs": True}):
        again = convert_to_nx(convert_from_nx(graph, **options))
        assert type(again) is type(graph)
        assert nx.utils.graphs_equal(again, graph)


@pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs:UserWarning")
def test_errors_are_those_of_networkx() -> None:
    graph = nx.path_graph(5)
    with pytest.raises(nx.PowerIterationFailedConvergence):
        nx.pagerank(graph, max_iter=0, backend="surveyor")
    with pytest.raises(nx.PowerIterationFailedConvergence):
        nx.pagerank(
            nx.cycle_graph(500, nx.DiGraph), alpha=0.999, tol=1e-13, nstart={0: 1.0}, max_iter=2, backend="surveyor"
        )
    with pytest.raises(ZeroDivisionError):
        nx.pagerank(graph, personalization={0: 0.0}, backend="surveyor")
    for vector in ("nstart", "dangling"):
        with pytest.raises(nx.PowerIterationFailedConvergence):
            nx.pagerank(graph, **{vector: {0: 0.0}}, backend="surveyor")
    assert nx.pagerank(nx.Graph(), backend="surveyor") == {}


@pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs:UserWarning")
def test_a_converted_graph_can_be_kept_and_converted_back() -> None:
    from surveyor.integrations.networkx import convert_from_nx, convert_to_nx

    graph = nx.DiGraph([("a", "b"), ("b", "b")])
    converted = convert_from_nx(graph, name="pagerank")
    assert nx.utils.graphs_equal(convert_to_nx(converted), graph)
    assert (len(converted), converted.is_directed(), converted.is_multigraph()) == (2, True, False)
    assert nx.pagerank(converted) == nx.pagerank(graph, backend="surveyor")


def test_importing_networkx_does_not_import_the_backend() -> None:
    code = "import networkx, sys; print('surveyor.integrations.networkx' in sys.modules, 'numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == ["False", "False"]
