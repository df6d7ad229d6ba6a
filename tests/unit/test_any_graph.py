"""Graphs of other libraries: every form against NetworkX, in every verb."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import igraph
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import surveyor as sv
from slow_cases import pairs
from surveyor import Graph, UsageError, as_graph
from surveyor.graph.adapters import page_ids, simple_graph
from surveyor.graph.csr import Extra
from surveyor.graph.links import Keep
from surveyor.graph.links_of_tables import arrow_links, integer_links

TIGHT = 1e-11
NEAR = 1e-9

# Self-loops, parallel edges, a dangling node, and nodes that are no page ids.
EDGES = [(10, 20), (20, 30), (30, 10), (30, 20), (30, 30), (10, 20), (40, 10), (10, 50)]
TEXT = [(f"n{a}", f"n{b}") for a, b in EDGES]
SIMPLE = sorted({edge for edge in EDGES if edge[0] != edge[1]})


def frame(edges: list[tuple[Any, Any]]) -> pd.DataFrame:
    return pd.DataFrame(edges, columns=["source", "target"])


def of_duckdb(edges: list[tuple[Any, Any]]) -> Any:
    links = frame(edges)  # noqa: F841  # DuckDB finds it by its name
    return duckdb.sql("select * from links")


def file_of(edges: list[tuple[Any, Any]], folder: Path) -> Path:
    path = folder / "edges.csv"
    path.write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in edges))
    return path


# Tables, arrays, lists and files: simple graphs, as of an nx.DiGraph of the edges without self-loops.
TABLES: dict[str, Callable[[list[tuple[Any, Any]]], Any]] = {
    "list": list,
    "generator": iter,
    "dict": lambda edges: {a: [d for c, d in edges if c == a] for a, _ in edges},
    "pandas": frame,
    "polars": lambda edges: pl.DataFrame(frame(edges)),
    "arrow": lambda edges: pa.Table.from_pandas(frame(edges)),
    "arrow in chunks": lambda edges: pa.concat_tables([pa.Table.from_pandas(frame([edge])) for edge in edges]),
    "dictionary": lambda edges: pa.table(
        {name: pa.array([edge[place] for edge in edges]).dictionary_encode() for place, name in enumerate("ab")}
    ),
    "duckdb": of_duckdb,
    "numpy": np.array,
    "pair of arrays": lambda edges: (np.array([a for a, _ in edges]), np.array([b for _, b in edges])),
}


def numbered(edges: list[tuple[Any, Any]]) -> tuple[Any, list[Any]]:
    nodes = list(dict.fromkeys(node for edge in edges for node in edge))
    return [(nodes.index(a), nodes.index(b)) for a, b in edges], nodes


def of_igraph(edges: list[tuple[Any, Any]], kind: Any = nx.MultiDiGraph) -> igraph.Graph:
    pairs, nodes = numbered(edges)
    graph = igraph.Graph(len(nodes), pairs, directed=nx.is_directed(kind()))
    graph.vs["name"] = nodes
    return graph


def truth(graph: Any, **options: Any) -> dict[Any, float]:
    """The PageRank of NetworkX to rounding: a change of 1e-15 in total."""
    return dict(nx.pagerank(graph, tol=1e-15, max_iter=10_000, **options))


def assert_same(ranking: sv.Ranking, expected: dict[Any, float]) -> None:
    assert ranking.scores.size == len(expected)
    assert sum(abs(ranking.share(node) - share) for node, share in expected.items()) < NEAR + ranking.error


@pytest.mark.parametrize("edges", [EDGES, TEXT], ids=["integers", "text"])
@pytest.mark.parametrize("form", TABLES)
def test_tables_rank_as_the_simple_graph_of_networkx(form: str, edges: list[tuple[Any, Any]]) -> None:
    expected = nx.DiGraph((a, b) for a, b in edges if a != b)
    ranking = sv.pagerank(TABLES[form](edges), tolerance=TIGHT)
    assert_same(ranking, truth(expected))
    best = max(truth(expected), key=truth(expected).__getitem__)
    assert ranking.top(1).tolist() == [best]
    assert type(ranking.top(1).tolist()[0]) is type(best)


@pytest.mark.parametrize("form", ["list", "pandas", "polars", "arrow", "duckdb", "numpy", "pair of arrays"])
def test_self_links_and_duplicates_are_kept_when_asked(form: str) -> None:
    graph = as_graph(TABLES[form](EDGES), self_links=True, multi_links=True)
    assert_same(sv.pagerank(graph, tolerance=TIGHT), truth(nx.MultiDiGraph(EDGES)))
    assert graph.links == len(EDGES)
    assert graph.simple() == as_graph(TABLES[form](EDGES))


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_networkx_ranks_as_networkx(kind: Any) -> None:
    graph = kind([*EDGES, ("x", ("y", 1)), (("y", 1), 10)])
    graph.add_nodes_from(["alone", 3.5, frozenset([1])])
    assert_same(sv.pagerank(graph, tolerance=TIGHT), truth(graph))


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
@pytest.mark.parametrize("library", ["networkx", "igraph", "scipy"])
def test_weights_count_as_in_networkx(kind: Any, library: str) -> None:
    graph = kind()
    for number, (a, b) in enumerate(TEXT):
        graph.add_edge(a, b, weight=0.5 + number)
    source: Any = graph
    if library == "igraph":
        source = of_igraph(list(graph.edges()), kind)
        source.es["weight"] = [data["weight"] for *_, data in graph.edges(data=True)]
    elif library == "scipy":
        source = nx.to_scipy_sparse_array(graph)
    ranking = sv.pagerank(source, tolerance=TIGHT)
    expected = truth(graph)
    if library == "scipy":
        expected = {page: expected[node] for page, node in enumerate(graph)}
    assert_same(ranking, expected)
    unweighted = sv.pagerank(as_graph(source, weights=False), tolerance=TIGHT)
    if library != "scipy":  # which has added the weights of parallel edges
        assert_same(unweighted, truth(graph, weight=None))
    assert abs(unweighted.scores - ranking.scores).max() > 1e-3


@pytest.mark.parametrize(
    "make", [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix, sparse.lil_array]
)
def test_rows_of_a_sparse_matrix_are_sources(make: Any) -> None:
    dense = np.array([[0, 2.0, 1.0, 0], [0, 0, 3.0, 0], [1.0, 0, 0.5, 0], [0, 0, 0, 0]])
    expected = truth(nx.from_numpy_array(dense, create_using=nx.DiGraph))
    assert_same(sv.pagerank(make(dense), tolerance=TIGHT), expected)


def test_igraph_without_names_has_numbers() -> None:
    pairs, _ = numbered(EDGES)
    ranking = sv.pagerank(igraph.Graph(5, pairs, directed=True), tolerance=TIGHT)
    assert_same(ranking, truth(nx.MultiDiGraph(pairs)))


@pytest.mark.parametrize("form", TABLES)
def test_personalisation_by_node(form: str) -> None:
    expected = nx.DiGraph((a, b) for a, b in EDGES if a != b)
    wanted, to = {20: 3.0, 40: 1.0}, {10: 1.0, 50: 2.0}
    ranking = sv.pagerank(TABLES[form](EDGES), tolerance=TIGHT, teleport=wanted, dangling=to)
    assert_same(ranking, truth(expected, personalization=wanted, dangling=to))


EMPTY = {
    "list": [],
    "dict": {},
    "networkx": nx.DiGraph(),
    "igraph": igraph.Graph(0, directed=True),
    "scipy": sparse.csr_array((0, 0)),
    "numpy": np.empty((0, 2), np.int64),
    "pandas": frame([]).astype("int64"),
    "polars": pl.DataFrame({"source": [], "target": []}, schema={"source": pl.Int64, "target": pl.Int64}),
    "arrow of text": pa.table({"a": pa.array([], pa.string()), "b": pa.array([], pa.string())}),
}


@pytest.mark.parametrize("form", EMPTY)
def test_empty_graphs(form: str) -> None:
    ranking = sv.pagerank(EMPTY[form])
    assert (ranking.scores.size, ranking.error, ranking.top().tolist()) == (0, 0.0, [])
    assert len(ranking.to_pandas()) == 0


def test_columns_of_several_types() -> None:
    edges = [(1, "x"), ("x", 2.5), (2.5, True), ("1", 1), (1.0, "1")]
    expected = nx.DiGraph(edges)
    for source in (edges, frame(edges), np.array(edges, object)):
        ranking = sv.pagerank(source, tolerance=TIGHT)
        assert_same(ranking, truth(expected))  # 1, 1.0 and True are one node, "1" is another
        assert ranking.scores.size == 4


def test_times_are_nodes() -> None:
    days = np.array([["2020-01-01", "2020-01-02"], ["2020-01-02", "2020-01-01"]], "M8[ns]")
    assert sv.pagerank(days).share(datetime(2020, 1, 1)) == 0.5
    frame = pd.DataFrame(days, columns=["source", "target"])
    assert sv.pagerank(frame).share(datetime(2020, 1, 2)) == 0.5


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_integers_that_floats_confuse(kind: Any) -> None:
    first = 2**60
    ranking = sv.pagerank(np.array([[first, first + 1], [first + 1, first + 2]], kind))
    shares = [ranking.share(first + step) for step in range(3)]
    assert sorted(shares) == shares == ranking.scores.tolist()
    assert ranking.share(float(first)) == shares[0]
    for other in (first - 1, first + 3, -1, 2**64, float(first) + 2**9, 0.5, float("nan"), "1", None, [first]):
        with pytest.raises(UsageError, match="no node"):
            ranking.share(other)  # type: ignore[arg-type]


def test_integers_beyond_64_bits() -> None:
    ranking = sv.pagerank([(2**70, 1), (1, -(2**63) - 1)])
    assert ranking.share(2**70) > 0
    assert ranking.to_arrow()["node"].to_pylist() == [str(2**70), "1", str(-(2**63) - 1)]
    assert ranking.to_pandas()["node"].tolist() == ranking.to_polars()["node"].to_list() == [2**70, 1, -(2**63) - 1]


def test_teleport_to_nodes() -> None:
    edges = [("a", 8), (8, (1, 2)), ((1, 2), "a"), (9, "a")]
    trusted = sv.pagerank(edges, teleport={"a": 1.0, 8: 1.0})
    for teleport in (["a", 8], {"a", 8}, ("a", 8)):
        assert np.array_equal(sv.pagerank(edges, teleport=teleport).scores, trusted.scores)
    ids = sv.pagerank([(7, 8), (8, 9)], teleport={7})
    assert np.array_equal(ids.scores, sv.pagerank([(7, 8), (8, 9)], teleport={7: 2.0}).scores)
    wrong: list[tuple[Any, str]] = [
        ({"a": 10**400}, "must hold numbers"),
        ({"a": "x"}, "must hold numbers"),
        ({"a": -1.0}, "non-negative"),
        (["b"], "no node 'b'"),
        ([1.0], "one weight for each of 4 pages"),
    ]
    for teleport, message in wrong:
        with pytest.raises(UsageError, match=message):
            sv.pagerank(edges, teleport=teleport)


def test_igraph_names_that_are_not_distinct() -> None:
    for names in (["a", "a"], ["a", None], [["a"], ["b"]]):
        graph = igraph.Graph(2, [(0, 1)], directed=True)
        graph.vs["name"] = names
        assert sv.pagerank(graph).top().tolist() == [1, 0]


def test_isolated_nodes_are_pages() -> None:
    graph = nx.empty_graph(3, create_using=nx.DiGraph)
    assert_same(sv.pagerank(graph), {0: 1 / 3, 1: 1 / 3, 2: 1 / 3})
    assert_same(sv.pagerank({"a": [], "b": []}), {"a": 0.5, "b": 0.5})
    assert_same(sv.pagerank(sparse.csr_array((2, 2))), {0: 0.5, 1: 0.5})


# Every other verb: the same result as over the Graph of the same links, keyed by the nodes of the user.
FORMS = {**TABLES, "networkx": nx.MultiDiGraph, "igraph": of_igraph}
WEB = [
    (f"http://{a}.example/{b}", f"http://{c}.example/{d}")
    for a, b, c, d in np.random.default_rng(3).integers(0, 9, (600, 4))
]


def by_node(graph: Graph, scores: Any) -> dict[Any, float]:
    return {graph.name(page): float(scores[page]) for page in range(graph.pages)}


def of_table(result: Any, name: str) -> dict[Any, float]:
    table = result.to_pandas()
    return dict(zip(table["node"], table[name].astype(float), strict=True))


def condensed(source: Any) -> dict[Any, float]:
    graph = sv.condense(source).graph
    return by_node(graph, graph.in_links.degrees())


def explained(source: Any) -> dict[Any, float]:
    explanation = sv.explain(source, sv.pagerank(source, tolerance=TIGHT), WEB[0][1], top=1000)
    return {link.name: link.fraction for link in explanation.links}


def expanded(source: Any) -> dict[Any, float]:
    rows = sv.community(source, "prefix:http://1.example/", truth=True).top(1000)
    return {row["name"]: row["true_share"] for row in rows}


def sampled(source: Any) -> dict[Any, float]:
    return dict.fromkeys(sv.sample(source, "host:1.example", until="ess=10000").pages()["url"], 1.0)


def raced(source: Any) -> dict[Any, float]:
    race = sv.simulate(source, "breadth", sv.Pages(20), seeds=[WEB[0][0]], rng=1)
    return {"optimal": float(race.optimal[5]), "true": float(race.runs[0].true[0])}


def compared(source: Any) -> dict[Any, float]:
    ranking = sv.pagerank(
        as_graph(source, weights=False, self_links=False, multi_links=False).simple(), tolerance=TIGHT
    )
    return {"l1": sv.compare_ranks(ranking.scores, np.full(ranking.scores.size, 1 / ranking.scores.size)).l1}


VERBS: dict[str, Callable[[Any], dict[Any, float]]] = {
    "domains in": lambda source: {row.name: row.score for row in sv.domains(source, "in").top(10_000)},
    "domains tse": lambda source: {row.name: row.score for row in sv.domains(source).top(10_000)},
    "domains supp": lambda source: {row.name: row.score for row in sv.domains(source, "supp").top(10_000)},
    "supporters": lambda source: of_table(sv.supporters(source), "score"),
    "trust": lambda source: of_table(sv.trust(source, [WEB[0][0]]), "trust"),
    "explain": explained,
    "condense": condensed,
    "community": expanded,
    "sample": sampled,
    "simulate": raced,
    "compare": compared,
}


@pytest.mark.parametrize(("form", "verb"), pairs(FORMS, list(VERBS), of=3))
def test_every_verb_takes_every_form(verb: str, form: str) -> None:
    simple = list(dict.fromkeys(edge for edge in WEB if edge[0] != edge[1]))
    source = FORMS[form]
    expected = VERBS[verb](nx.DiGraph(simple))
    if form == "generator":  # it can be read once, and some verbs here use it twice
        source = list
    edges = simple if verb == "explain" else WEB  # which explains a ranking of the graph as it is
    result = VERBS[verb](source(edges))
    assert result.keys() == expected.keys()
    if verb != "domains tse":  # whose sample depends on the order of the nodes
        assert all(abs(result[key] - expected[key]) < NEAR for key in expected)


LABELS: dict[str, Callable[[int], Any]] = {
    "integers": lambda page: page + 10**12,
    "tuples": lambda page: ("n", page),
    "several types": lambda page: [page, f"s{page}", ("t", page), page + 0.5, b"%d" % page][page % 5],
}
WEB_OF_NUMBERS = [(a, b) for a, b in np.random.default_rng(1).integers(0, 40, (300, 2)).tolist() if a != b]


@pytest.mark.parametrize("kind", LABELS)
def test_verbs_whose_nodes_are_no_text(kind: str, tmp_path: Path) -> None:
    """The results are those of the same graph with text for nodes."""
    label = LABELS[kind]
    source = [(label(a), label(b)) for a, b in WEB_OF_NUMBERS]
    text = [(str(a), str(b)) for a, b in source]
    node = source[0][0]
    one, two = (
        sv.explain(edges, sv.pagerank(edges, teleport={start: 1.0}), start, what_if=True)
        for edges, start in ((source, node), (text, str(node)))
    )
    assert [(str(link.name), link.fraction) for link in one.links] == [(x.name, x.fraction) for x in two.links]
    sampled, again = (sv.sample(edges, until="steps=200", walks=4, rng=1) for edges in (source, text))
    assert [str(row) for row in sampled.pages()["url"]] == again.pages()["url"]
    assert of_table(sv.trust(source, [node]), "trust").keys() == {end for edge in source for end in edge}
    for name in ("links.csv", "links.tsv", "links.npz", "links.parquet", "links.graphml", "folder"):
        options: Any = {"format": "surveyor"} if name == "folder" else {}
        sv.write_graph(as_graph(source), tmp_path / name, **options)
        ranking = sv.pagerank(tmp_path / name, tolerance=TIGHT)
        expected = truth(nx.DiGraph(text))
        assert all(abs(ranking.share(node) - share) < NEAR for node, share in expected.items())


def test_nodes_with_one_text_are_not_merged_in_a_file(tmp_path: Path) -> None:
    graph = as_graph([(1, "1"), ("1", 2)])
    for write in (lambda: graph.save(tmp_path / "folder"), lambda: sv.write_graph(graph, tmp_path / "links.csv")):
        with pytest.raises(UsageError, match="1 nodes have the same text as another"):
            write()
    assert not list(tmp_path.iterdir())


def test_in_degrees_are_those_of_networkx() -> None:
    graph = nx.DiGraph(edge for edge in WEB if edge[0] != edge[1])
    assert VERBS["domains in"](nx.MultiDiGraph(WEB)) == {node: float(degree) for node, degree in graph.in_degree()}


WEIGHTS = [0.0, 1e-9, 0.3, 1.0, 7.0, 1e6]


@given(
    st.integers(1, 8).flatmap(
        lambda size: st.lists(
            st.tuples(
                st.integers(0, size - 1), st.integers(0, size - 1), st.sampled_from([0.0, 1e-9, 0.3, 1.0, 7.0, 1e6])
            ),
            max_size=25,
        )
    ),
    st.sampled_from(["power", "seidel", "auto"]),
    st.sampled_from([0.0, 0.5, 0.85, 0.99]),
)
@settings(max_examples=150, deadline=None)
def test_weighted_ranks_are_within_the_stated_error(edges: Any, solver: Any, damping: float) -> None:
    pages = 9
    ends = np.array([edge[:2] for edge in edges], np.int64).reshape(-1, 2)
    weights = np.array([edge[2] for edge in edges])
    graph = Graph.from_arrays(ends[:, 0], ends[:, 1], pages, weights=weights, self_links=True)
    dense = np.zeros((pages, pages))
    np.add.at(dense, (ends[:, 0], ends[:, 1]), weights)
    sums = dense.sum(axis=1, keepdims=True)
    moves = np.where(sums > 0, dense / np.where(sums > 0, sums, 1.0), 1 / pages)
    exact = np.linalg.solve(np.eye(pages) - damping * moves.T, np.full(pages, (1 - damping) / pages))
    tolerance = 1e-10 if damping > 0.9 else 1e-12
    ranking = sv.pagerank(graph, damping, tolerance, options=sv.SolverOptions(solver=solver, max_sweeps=20_000))
    assert ranking.error <= tolerance
    assert np.abs(ranking.scores - exact / exact.sum()).sum() <= ranking.error + 1e-14 / (1 - damping)


def large_weighted() -> Graph:
    rng = np.random.default_rng(5)
    ends = (rng.zipf(1.6, (2, 400_000)) % 30_000).astype(np.int64)
    return Graph.from_arrays(ends[0], ends[1], 30_000, weights=rng.exponential(size=400_000), self_links=True)


@pytest.mark.parametrize("solver", ["power", "seidel"])
def test_weighted_ranks_have_the_same_bytes_on_any_number_of_threads(solver: Any) -> None:
    graph = large_weighted()
    scores = [
        sv.pagerank(graph, tolerance=1e-9, options=sv.SolverOptions(solver=solver, threads=threads)).scores.tobytes()
        for threads in (1, 2, 5)
    ]
    assert scores[0] == scores[1] == scores[2]


def test_weighted_ranks_of_a_large_graph_agree_with_networkx() -> None:
    graph = large_weighted()
    expected = truth_of_matrix(graph.to_scipy())
    for solver in ("power", "seidel"):
        ranking = sv.pagerank(graph, tolerance=1e-10, options=sv.SolverOptions(solver=solver))
        assert np.abs(ranking.scores - expected).sum() <= ranking.error + 1e-12
    reverse = graph.reversed()
    assert np.abs(sv.pagerank(reverse).scores - truth_of_matrix(graph.to_scipy().T)).sum() < 1e-6 + 1e-12


def truth_of_matrix(matrix: Any) -> Any:
    """PageRank by SciPy alone: power iteration to rounding."""
    matrix = sparse.csr_array(matrix)
    sums = matrix.sum(axis=1)
    moves = sparse.diags_array(1 / np.where(sums > 0, sums, 1)) @ matrix
    ranks = np.full(matrix.shape[0], 1 / matrix.shape[0])
    for _ in range(250):
        ranks = 0.85 * (moves.T @ ranks + ranks[sums == 0].sum() / ranks.size) + 0.15 / ranks.size
    return ranks


def test_equal_weights_are_as_none() -> None:
    graph = nx.MultiDiGraph(EDGES)
    weighted = Graph.from_arrays(
        *np.array(numbered(EDGES)[0]).T,
        weights=np.full(len(EDGES), 1e-300),
        self_links=True,
    )
    by_page = dict(enumerate(truth(graph).values()))
    assert_same(sv.pagerank(weighted, tolerance=TIGHT), by_page)


def test_a_warm_start_of_a_weighted_graph_is_right() -> None:
    graph = large_weighted()
    start = sv.pagerank(graph, tolerance=1e-4)
    again = sv.pagerank(graph, tolerance=1e-10, start=start)
    assert np.abs(again.scores - truth_of_matrix(graph.to_scipy())).sum() <= again.error + 1e-12


def test_integer_columns_are_not_copied() -> None:
    sources, targets = np.array([0, 1, 2, 0]), np.array([1, 2, 0, 2])
    links = arrow_links(pa.table({"source": sources, "target": targets}), Keep())
    assert np.shares_memory(links.sources, sources)
    assert np.shares_memory(links.targets, targets)
    assert links.labels is None


def test_large_sparse_and_negative_ids_are_labels() -> None:
    edges = [(-5, 10**15), (10**15, 2**63 - 1), (2**63 - 1, -5), (2**63 - 1, 10**15)]
    for form in ("numpy", "pandas", "polars", "arrow"):
        ranking = sv.pagerank(TABLES[form](edges), tolerance=TIGHT)
        assert_same(ranking, truth(nx.DiGraph(edges)))
    with pytest.raises(UsageError, match="no node 7"):
        ranking.share(7)
    mixed = integer_links(np.array([2**64 - 1], np.uint64), np.array([-1]), None)
    assert list(mixed.labels) == [2**64 - 1, -1]


def test_labels_of_mixed_types_are_returned_as_they_are() -> None:
    edges = [("1", 1), (1, (2, "x")), ((2, "x"), "1"), (None.__class__, 1), (1.5, "1")]
    ranking = sv.pagerank(edges)
    assert set(ranking.top(10).tolist()) == {"1", 1, (2, "x"), type(None), 1.5}
    assert ranking.share("1") != ranking.share(1)
    assert ranking.share(True) == ranking.share(1)
    assert ranking.position(ranking.top(1).tolist()[0]) == 1
    assert set(ranking.to_pandas()["node"]) == set(ranking.top(10).tolist())
    assert set(ranking.to_polars()["node"].to_list()) == set(ranking.top(10).tolist())
    assert set(ranking.to_arrow()["node"].to_pylist()) == {str(node) for node in ranking.top(10).tolist()}


WRONG: dict[str, tuple[Any, str]] = {
    "number": (42, "an int is no graph"),
    "none": (None, "a NoneType is no graph"),
    "object": (object(), "an object is no graph"),
    "text in a list": (["ab"], r"edges\[0\] must be \(source, target\)"),
    "triples too long": ([(1, 2, 3, 4)], r"edges\[0\] must be"),
    "lists as nodes": ([([1], [2])], "not hashable"),
    "adjacency matrix": (np.eye(3), "3 × 3 is no list of links"),
    "rectangle": (sparse.csr_array((2, 3)), "2 × 3 is no graph"),
    "one column": (pd.DataFrame({"a": [1]}), "1 column has no links"),
    "nulls": (pa.table({"a": pa.array([1, None]), "b": [1, 2]}), "1 missing values"),
    "missing objects": (np.array([["a", None]], object), "some nodes are missing"),
    "links of a dict": ({"a": 3}, "the links of 'a'"),
}


class Capsule:
    """An object whose `__arrow_c_stream__` returns what it is given."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __arrow_c_stream__(self, requested_schema: Any = None, /) -> Any:
        return self.stream


def failing_batches() -> Any:
    yield pa.record_batch({"a": [1], "b": [2]})
    raise RuntimeError("the source is gone")


def other_batches() -> Any:
    yield pa.record_batch({"a": [1.5], "b": ["x"]})


LINKS = pa.schema({"a": pa.int64(), "b": pa.int64()})
NOT_TEXT = pa.StringArray.from_buffers(1, pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"\xff\xfe"))
WRONG.update(
    {
        "no capsule": (Capsule(None), "the table cannot be read"),
        "a capsule of something else": (Capsule(LINKS.__arrow_c_schema__()), "the table cannot be read"),
        "a column": (pd.Series([1, 2]), "the table cannot be read"),
        "a stream that fails": (pa.RecordBatchReader.from_batches(LINKS, failing_batches()), "the source is gone"),
        "other columns than it says": (
            Capsule(pa.RecordBatchReader.from_batches(LINKS, other_batches()).__arrow_c_stream__()),
            "the table cannot be read",
        ),
        "not UTF-8": (pa.table({"a": NOT_TEXT, "b": NOT_TEXT}), "no valid text"),
        "a dictionary with nulls": (
            pa.table({"a": pa.DictionaryArray.from_arrays([0, 1], ["x", None]), "b": ["y", "z"]}),
            "some nodes are missing",
        ),
        "columns of one name": (pd.DataFrame([[1, 2]], columns=["source"] * 2), "columns have the same name"),
        "not computed yet": (pl.LazyFrame({"a": [1], "b": [2]}), "LazyFrame is no graph"),
        "NaN in a list": ([("a", float("nan"))], "some nodes are missing"),
        "None in a dict": ({"a": [None]}, "some nodes are missing"),
        "NaN in mixed columns": (frame([(1, "x"), ("x", float("nan"))]), "some nodes are missing"),
        "NaT": (np.array([["2020-01-01", "NaT"]], "M8[us]"), "some nodes are missing"),
        "fine times": (np.array([["2020-01-01T00:00:00.000000001", "2020-01-01"]], "M8[ns]"), "finer than micro"),
        "masked": (np.ma.masked_equal([[1, 2]], 2), "masked"),
        "a set for an edge": ([{1, 2}], r"edges\[0\] must be"),
        "a class": (nx.DiGraph, "a type is no graph"),
    }
)


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_gets_one_sentence(case: str) -> None:
    source, message = WRONG[case]
    with pytest.raises(UsageError, match=message):
        sv.pagerank(source)


def test_the_sentence_lists_what_is_accepted() -> None:
    with pytest.raises(UsageError, match="NetworkX or igraph, a SciPy sparse matrix, a table of pandas"):
        as_graph(3.5)  # type: ignore[arg-type]


def test_wrong_weights(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"finite and at least 0, got -1\.0"):
        as_graph([("a", "b", -1.0)], weights=True)
    with pytest.raises(UsageError, match="must hold numbers"):
        as_graph([("a", "b", "much")], weights=True)
    with pytest.raises(UsageError, match="no column is named 'w'"):
        as_graph(frame(EDGES), weights="w")
    with pytest.raises(UsageError, match="no edge has the attribute 'w'"):
        as_graph(nx.DiGraph(EDGES), weights="w")
    with pytest.raises(UsageError, match="of a file are not read"):
        as_graph(file_of(EDGES, tmp_path), weights=True)
    with pytest.raises(UsageError, match="this graph has no weights"):
        as_graph(Graph.from_edges(TEXT), weights=True)
    with pytest.raises(UsageError, match="an array of pairs has no weights"):
        as_graph(np.array(EDGES), weights=True)
    with pytest.raises(UsageError, match="add up to infinity"):
        as_graph([("a", "b", 1e308), ("a", "b", 1e308)], weights=True)
    with pytest.raises(UsageError, match="3 weights for 1 links"):
        Graph.from_arrays(np.array([0]), np.array([1]), weights=np.ones(3))


def test_what_a_graph_has_can_be_dropped_but_not_added() -> None:
    graph = as_graph([(1, 2, 3.0), (1, 3, 1.0), (1, 1, 2.0)], weights=True, self_links=True)
    assert as_graph(graph) is graph
    plain = as_graph(graph, weights=False)
    assert plain.weights is None
    assert (plain.links, plain.multigraph, plain.names) == (3, True, graph.names)
    alone = as_graph(graph, self_links=False)
    assert alone.weights is not None
    assert (alone.weights.tolist(), alone.links, alone.multigraph) == ([3.0, 1.0], 2, False)
    double = as_graph([(1, 2), (1, 2), (2, 2)], self_links=True, multi_links=True)
    assert as_graph(double, multi_links=False).links == 2
    assert as_graph(double, self_links=False).links == 2
    assert as_graph(double, weights=False, self_links=False, multi_links=False) == double.simple()


@pytest.mark.parametrize("weight", [10**400, 1j, "2", None, [1.0], np.datetime64("2020-01-01"), float("inf"), -1e-300])
def test_what_is_no_weight(weight: Any) -> None:
    sources: list[Any] = [[("a", "b", weight)], {"a": {"b": weight}}, frame([("a", "b")]).assign(weight=[weight])]
    if weight is not None:  # an edge without weight
        sources.append(nx.DiGraph([("a", "b", {"weight": weight})]))
    for source in sources:
        with pytest.raises(UsageError, match="weight"):
            as_graph(source, weights=True)


def test_weights_in_a_dict() -> None:
    source: dict[str, dict[str, float]] = {"a": {"b": 2.0, "c": 1.0}, "b": {}, "c": {"a": 5}}
    graph = as_graph(source, weights=True)
    expected = nx.DiGraph()
    expected.add_weighted_edges_from([("a", "b", 2.0), ("a", "c", 1.0), ("c", "a", 5)])
    assert_same(sv.pagerank(graph, tolerance=TIGHT), truth(expected))
    with pytest.raises(UsageError, match="the links of 'a'"):
        as_graph({"a": ["b"]}, weights=True)


def test_a_column_of_weights() -> None:
    table = frame(EDGES).assign(weight=np.arange(len(EDGES)) + 0.5, cost=1.0)
    expected: Any = nx.MultiDiGraph()
    expected.add_weighted_edges_from((a, b, weight) for a, b, weight, _ in table.itertuples(index=False))
    for source in (table, pl.DataFrame(table), pa.Table.from_pandas(table)):
        graph = as_graph(source, weights="weight", self_links=True)
        assert_same(sv.pagerank(graph, tolerance=TIGHT), truth(expected))
    triples = list(expected.edges(data="weight"))
    assert_same(sv.pagerank(as_graph(triples, weights=True, self_links=True), tolerance=TIGHT), truth(expected))


def test_a_file_and_a_folder_are_graphs(tmp_path: Path) -> None:
    path = file_of(TEXT, tmp_path)
    folder = as_graph(TEXT).save(tmp_path / "graph")
    assert sv.pagerank(path).share("n10") == sv.pagerank(str(folder)).share("n10")


@pytest.mark.parametrize("names", ["none", "text", "labels"])
def test_round_trips(names: str, tmp_path: Path) -> None:
    graph = Graph.from_arrays(
        *np.array(numbered(EDGES)[0]).T,
        weights=np.arange(1.0, 9.0),
        self_links=True,
    )
    if names != "none":
        graph = graph.with_names(sv.Names.of("abcde") if names == "text" else sv.Labels(["a", 1, (2,), 2.5, "b"]))
    ranks = sv.pagerank(graph, tolerance=TIGHT).scores
    for other in (graph.to_networkx(), graph.to_scipy()):
        assert np.abs(sv.pagerank(other, tolerance=TIGHT).scores - ranks).sum() < NEAR
    table = as_graph(graph.to_arrow(), weights=True, self_links=True)
    by_text = {str(graph.name(page)): ranks[page] for page in range(graph.pages)}
    got = sv.pagerank(table, tolerance=TIGHT)
    assert all(
        abs(by_text[str(node)] - share) < NEAR
        for node, share in zip(*got.to_pandas().to_dict("list").values(), strict=True)
    )
    opened = Graph.open(graph.save(tmp_path / "weighted"))
    assert np.array_equal(opened.weights, graph.weights)  # type: ignore[arg-type]
    assert opened.multigraph
    assert np.array_equal(sv.pagerank(opened, tolerance=TIGHT).scores, ranks)
    again = pickle.loads(pickle.dumps(opened))  # noqa: S301  # our own
    assert again == opened
    assert len(pickle.dumps(opened)) < 1000  # by path
    assert pickle.loads(pickle.dumps(graph)) == graph  # noqa: S301


def test_files_do_not_lose_weights_silently(tmp_path: Path) -> None:
    graph = as_graph([("a", "b", 2.0), ("b", "a", 1.0)], weights=True)
    with pytest.raises(UsageError, match="format csv cannot hold the weights"):
        sv.write_graph(graph, tmp_path / "links.csv")
    sv.write_graph(graph.simple(), tmp_path / "links.csv")
    sv.write_graph(graph, tmp_path / "folder", format="surveyor", names=False)
    assert np.array_equal(Graph.open(tmp_path / "folder").weights, [2.0, 1.0])  # type: ignore[arg-type]


def test_a_folder_with_wrong_weights_is_rejected(tmp_path: Path) -> None:
    graph = as_graph([("a", "b", 2.0), ("b", "a", 1.0)], weights=True)
    for number, wrong in enumerate((np.array([1.0, -1.0]), np.array([1.0]), np.array([1, 2]))):
        bad = Graph(graph.indptr, graph.indices, names=graph.names, extra=Extra(wrong.astype(wrong.dtype)))
        folder = bad.save(tmp_path / str(number))
        with pytest.raises(sv.GraphError, match="weights"):
            Graph.open(folder)


def test_multigraphs_become_multigraphs() -> None:
    graph = nx.MultiDiGraph(EDGES)
    assert nx.utils.graphs_equal(nx.DiGraph(as_graph(graph).to_networkx()), nx.DiGraph(graph))
    assert as_graph(graph).to_networkx().number_of_edges() == len(EDGES)


def test_a_graph_of_ours_with_its_own_graph() -> None:
    web = sv.synthetic_web("small")
    assert sv.pagerank(web).scores.size == web.graph.pages
    assert simple_graph(web.graph) is web.graph


def test_nodes_as_page_ids() -> None:
    graph = as_graph([(5, 6), (6, 7)])
    assert page_ids(graph, [7, 5]) == [2, 0]
    assert page_ids(graph, np.array([7])) == [2]
    assert page_ids(graph, "host:x") == "host:x"
    ids = sv.synthetic_web("small").graph
    assert page_ids(ids, [7]) == [7]


def test_frames_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    expected = truth(nx.DiGraph(SIMPLE))
    for form in ("pandas", "polars"):
        assert_same(sv.pagerank(TABLES[form](EDGES), tolerance=TIGHT), expected)

    class Relation:
        def __arrow_c_stream__(self, requested_schema: Any = None, /) -> Any:
            raise AssertionError

    with pytest.raises(
        sv.MissingExtra, match=r"reading a Relation needs pyarrow\n  hint: pip install 'surveyor\[formats\]'"
    ):
        sv.pagerank(Relation())


def test_no_library_is_imported_for_a_list() -> None:
    others = ("networkx", "igraph", "pandas", "polars", "pyarrow", "matplotlib")  # Numba imports SciPy
    code = (
        "import sys, surveyor as sv; sv.pagerank([('a', 'b')]).top(1);"
        f"print([name for name in {others!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"


def test_io_is_no_graph() -> None:
    with pytest.raises(UsageError):
        sv.pagerank(io.StringIO("a b"))  # type: ignore[arg-type]
