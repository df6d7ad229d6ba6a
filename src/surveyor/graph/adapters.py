"""Any graph as a `Graph`: one small adapter for each kind of object, recognised by what it can do, not by an import.

    Graph, SyntheticWeb, CondensedGraph     itself, or its graph
    str, Path                               `read_graph`
    NetworkX                                nodes and edges; an undirected edge is a link in both directions
    igraph                                  the same; nodes are the vertex names, or numbers
    SciPy sparse matrix or array            the link i → j for each value at row i, column j
    `__arrow_c_stream__`                    pandas, polars, PyArrow, DuckDB: two columns, source and target
    NumPy                                   an array of shape (links, 2), or a pair of arrays
    dict                                    node → its links
    other iterables                         edges (source, target) or (source, target, weight)

Nodes may be any hashable values; results are keyed by them. Tables and lists hold edges: their nodes are those that
occur. The nodes of a matrix are its rows.

    >>> graph = as_graph([("a", 1), (1, "a"), (1, "c")])
    >>> graph, list(graph.names)
    (Graph(3 pages, 3 links, named), ['a', 1, 'c'])
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from surveyor.arrays import FloatArray, real_numbers
from surveyor.errors import UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.links import Keep, Links
from surveyor.graph.links_of_tables import (
    array_links,
    arrow_links,
    frame_links,
    has_numpy_integers,
    reject_missing,
    table_columns,
)


@runtime_checkable
class ArrowStream(Protocol):
    """A table with the Arrow PyCapsule interface, as in pandas, polars, PyArrow and DuckDB."""

    def __arrow_c_stream__(self, requested_schema: Any = None, /) -> Any:
        """Return a capsule with a stream of record batches."""


@runtime_checkable
class NetworkXGraph(Protocol):
    """A graph of NetworkX."""

    @property
    def nodes(self) -> Any:
        """The nodes."""

    @property
    def adj(self) -> Any:
        """The neighbours of each node."""

    def is_directed(self) -> bool:
        """Return whether edges have a direction."""

    def is_multigraph(self) -> bool:
        """Return whether edges can be parallel."""


@runtime_checkable
class IGraph(Protocol):
    """A graph of igraph."""

    @property
    def vs(self) -> Any:
        """The vertices."""

    @property
    def es(self) -> Any:
        """The edges."""

    def get_edgelist(self) -> list[tuple[int, int]]:
        """Return the edges as pairs of vertex numbers."""

    def is_directed(self) -> bool:
        """Return whether edges have a direction."""


@runtime_checkable
class SparseMatrix(Protocol):
    """A sparse matrix or array of SciPy."""

    @property
    def shape(self) -> Any:
        """The numbers of rows and columns."""

    def tocoo(self) -> Any:
        """Return it in coordinate form."""


@runtime_checkable
class HasGraph(Protocol):
    """A result with a graph, such as SyntheticWeb or CondensedGraph."""

    @property
    def graph(self) -> Graph:
        """The graph."""


GraphLike: TypeAlias = (
    Graph
    | HasGraph
    | str
    | Path
    | NetworkXGraph
    | IGraph
    | SparseMatrix
    | ArrowStream
    | npt.NDArray[Any]
    | Mapping[Any, Iterable[Hashable]]
    | Iterable[tuple[Any, ...]]
)
ACCEPTED = (
    "a Graph, a path, a graph of NetworkX or igraph, a SciPy sparse matrix, a table of pandas, polars, PyArrow or "
    "DuckDB, a NumPy array of pairs, or a list of edges"
)


WITHOUT = "pass weights=False to ignore it"


def as_graph(
    source: GraphLike,
    *,
    weights: str | bool | None = None,
    self_links: bool | None = None,
    multi_links: bool | None = None,
) -> Graph:
    """Return any graph as a `Graph`; results over it are keyed by the nodes of the source.

    By default, graphs of NetworkX and igraph and sparse matrices keep weights (the attribute `weight`, or the values of
    the matrix), self-links and parallel edges, as `networkx.pagerank` counts them. Tables, arrays, lists of edges and
    files become simple graphs: no weights, duplicates merged, self-links dropped.

    Parameters
    ----------
    weights : name of an edge attribute or a column, True for "weight" (the third entry of an edge in a list), or False.
    self_links, multi_links : whether links of a page to itself, and several between the same pages, are kept.

    >>> import numpy as np
    >>> as_graph(np.array([[7, 8], [8, 9], [9, 9]])).names[0]
    7
    >>> as_graph([("a", "b", 3.0), ("a", "c", 1.0)], weights=True).weights.tolist()
    [3.0, 1.0]
    """
    keep = Keep(weights, self_links, multi_links)
    if isinstance(source, Graph):
        return _kept(source, keep)
    if isinstance(source, str | Path):
        if weights or self_links or multi_links:
            raise UsageError(
                "weights, self-links and duplicates of a file are not read",
                hint="read it as a table, and pass that: as_graph(table, weights=True, self_links=True)",
            )
        from surveyor.graph.formats import read_graph

        return read_graph(source)
    if isinstance(inner := getattr(source, "graph", None), Graph):
        return _kept(inner, keep)
    for matches, links in ADAPTERS if not isinstance(source, type) else ():  # a class has the methods of its objects
        if matches(source):
            return links(source, keep).graph(keep)
    raise UsageError(f"{_described(source)} is no graph", hint=f"pass {ACCEPTED}")


def simple_graph(source: GraphLike) -> Graph:
    """Return any graph without weights, self-links and duplicate links, for results that ignore them."""
    if isinstance(source, Graph):
        return source.simple()
    return as_graph(source, weights=False, self_links=False, multi_links=False).simple()


def is_graph(source: object) -> bool:
    """Return whether an object is of a kind that `as_graph` accepts; its contents are not checked."""
    if isinstance(source, type):
        return False
    return isinstance(source, Graph | HasGraph | str | Path) or any(matches(source) for matches, _ in ADAPTERS)


def page_ids(graph: Graph, pages: Any) -> Any:
    """Return nodes of the user's object as page ids; what is not a list of nodes is returned unchanged.

    >>> page_ids(as_graph([("a", 7), (7, "b")]), [7, "b"])
    [1, 2]
    """
    if not graph.labelled or not isinstance(pages, list | tuple | set | frozenset | np.ndarray):
        return pages
    if isinstance(pages, np.ndarray) and pages.dtype == np.bool_:
        return pages
    return [graph.page(page) for page in (pages.tolist() if isinstance(pages, np.ndarray) else pages)]


def _kept(graph: Graph, keep: Keep) -> Graph:
    """Return a graph of ours; weights and kept links can be dropped, but not added."""
    if keep.weights and graph.weights is None:
        raise UsageError("this graph has no weights", hint="pass weights= to Graph.from_arrays or as_graph")
    without_weights = keep.weights is False and graph.weights is not None
    fewer = graph.multigraph and (keep.self_links is False or keep.multi_links is False)
    if not (without_weights or fewer):
        return graph
    sources = np.repeat(np.arange(graph.pages, dtype=np.int32), graph.out_degrees)
    rebuilt = Graph.from_arrays(
        sources,
        np.asarray(graph.indices),
        graph.pages,
        weights=None if without_weights else graph.weights,
        self_links=keep.self_links is not False,
        multi_links=keep.multi_links is not False,
    )
    return rebuilt.with_names(graph.names)


def networkx_links(source: Any, keep: Keep) -> Links:
    """Return the edges of a NetworkX graph, which counts weights, self-loops and parallel edges."""
    links, data = networkx_edges(source)
    attribute = keep.attribute("weight", default=True)
    if attribute is None:
        return links
    values = edge_values(data, attribute)
    if values is None and keep.weights and data:
        raise UsageError(f"no edge has the attribute {attribute!r}", hint="leave weights out to ignore weights")
    return replace(links, weights=values)


def networkx_edges(source: Any) -> tuple[Links, list[Any]]:
    """Return the edges of a NetworkX graph without weights, and the attributes of each.

    The adjacency of an undirected graph has both directions.
    """
    labels = list(source.nodes)
    ids = {label: page for page, label in enumerate(labels)}
    rows = [neighbours for _, neighbours in source.adjacency()]
    if source.is_multigraph():
        pairs: Any = [[(target, data) for target, keys in row.items() for data in keys.values()] for row in rows]
        names = chain.from_iterable([target for target, _ in row] for row in pairs)
        data = chain.from_iterable([found for _, found in row] for row in pairs)
    else:
        pairs, names, data = rows, chain.from_iterable(rows), chain.from_iterable(row.values() for row in rows)
    degrees = np.fromiter(map(len, pairs), np.int64, len(rows))
    targets = np.fromiter(map(ids.__getitem__, names), np.int64, int(degrees.sum()))
    sources = np.repeat(np.arange(len(rows)), degrees)
    return Links(sources, targets, len(labels), labels, ids=ids, faithful=True), list(data)


def edge_values(data: Iterable[Mapping[Any, Any]], attribute: Hashable, default: float = 1.0) -> FloatArray | None:
    """Return an attribute of edges, `default` for those without it; None if no edge has it."""
    given = [edge.get(attribute) for edge in data]
    if all(value is None for value in given):
        return None
    return real_numbers([default if value is None else value for value in given], str(attribute), hint=WITHOUT)


def igraph_links(source: Any, keep: Keep) -> Links:
    """Return the edges of an igraph graph; vertices with a `name` are labelled by it."""
    ends = np.array(source.get_edgelist(), np.int64).reshape(-1, 2)
    attributes = source.es.attributes()
    attribute = keep.attribute("weight", default=True)
    if keep.weights and attribute not in attributes:
        raise UsageError(f"no edge has the attribute {attribute!r}", hint="leave weights out to ignore weights")
    values = real_numbers(source.es[attribute], str(attribute), hint=WITHOUT) if attribute in attributes else None
    count = len(source.vs)
    labels = list(source.vs["name"]) if "name" in source.vs.attributes() else None
    if labels is not None and not _distinct(labels):
        labels = None
    links = Links(ends[:, 0], ends[:, 1], count, labels, values, faithful=True)
    return links if source.is_directed() else links.both_ways()


def _distinct(labels: list[Any]) -> bool:
    """Return whether labels are distinct."""
    try:
        return None not in labels and len(set(labels)) == len(labels)
    except TypeError:  # not hashable
        return False


def matrix_links(source: Any, keep: Keep) -> Links:
    """Return the values of a sparse matrix as links: the row is the source, the value its weight."""
    if len(source.shape) != 2 or source.shape[0] != source.shape[1]:
        shape = " × ".join(f"{size:,}" for size in source.shape)
        raise UsageError(f"a matrix of {shape} is no graph", hint="a graph needs as many rows as columns")
    entries = source.tocoo()
    values = None
    if entries.data.dtype.kind not in "biuf":
        raise UsageError(f"{entries.data.dtype} is no type of weights", hint="pass a matrix of real numbers")
    stored = entries.data != 0
    if keep.attribute("data", default=True) is not None:
        values = np.asarray(entries.data, np.float64)[stored]
    return Links(entries.row[stored], entries.col[stored], source.shape[0], None, values, faithful=True)


def mapping_links(source: Mapping[Any, Any], keep: Keep) -> Links:
    """Return the links of a dict from each node to its links; nodes without links may have an empty list.

    With weights, it is a dict from each node to a dict from its links to their weights.
    """
    edges: list[tuple[Any, ...]] = []
    weighted = keep.attribute("weight", default=False)
    for node, links in source.items():
        if isinstance(links, str | bytes) or not isinstance(links, Mapping if weighted else Iterable):
            example = '{"a": {"b": 2.0, "c": 1.0}, "b": {}}' if weighted else '{"a": ["b", "c"], "b": []}'
            raise UsageError(f"the links of {node!r:.80} are {links!r:.80}", hint=f"for example {example}")
        if isinstance(links, Mapping) and weighted:
            edges += [(node, link, weight) for link, weight in links.items()]
        else:
            edges += [(node, link) for link in links]
    return _edge_links(edges, keep, source)


def edge_links(source: Iterable[Any], keep: Keep) -> Links:
    """Return edges given one by one."""
    return _edge_links(source, keep, {})


def _edge_links(source: Iterable[Any], keep: Keep, nodes: Iterable[Any]) -> Links:
    ids: dict[Any, int] = {node: page for page, node in enumerate(nodes)}
    ends: list[int] = []
    values: list[Any] = []
    attribute = keep.attribute("weight", default=False)
    for number, edge in enumerate(source):
        pair = () if isinstance(edge, str | bytes | Set | Mapping) or not isinstance(edge, Iterable) else tuple(edge)
        if len(pair) not in (2, 3) or (attribute and len(pair) == 2):
            wanted = "(source, target, weight)" if attribute else "(source, target)"
            example = '[("a", "b", 2.0), (1, 2, 0.5)]' if attribute else '[("a", "b"), (1, 2)]'
            raise UsageError(f"edges[{number}] must be {wanted}, got {edge!r:.200}", hint=f"for example {example}")
        try:
            ends += (ids.setdefault(pair[0], len(ids)), ids.setdefault(pair[1], len(ids)))
        except TypeError as error:
            raise UsageError(
                f"edges[{number}] is {edge!r:.200}, and its nodes are not hashable", hint="pass tuples instead of lists"
            ) from error
        if attribute:
            values.append(_weight_of(pair[2], attribute))
    reject_missing(ids)
    pairs = np.array(ends, np.int64).reshape(-1, 2)
    weights = real_numbers(values, "weight", hint=WITHOUT) if attribute else None
    return Links(pairs[:, 0], pairs[:, 1], len(ids), list(ids), weights, ids=ids)


def _weight_of(value: Any, attribute: str) -> Any:
    return value.get(attribute, 1.0) if isinstance(value, Mapping) else value


def _described(source: object) -> str:
    kind = type(source)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    return f"{'an' if name[0] in 'aeio' else 'a'} {name}"


def _is_pair(source: object) -> bool:
    """Return whether this is a tuple of two arrays: sources and targets."""
    return isinstance(source, tuple) and len(source) == 2 and all(isinstance(part, np.ndarray) for part in source)


ADAPTERS: tuple[tuple[Callable[[Any], bool], Callable[[Any, Keep], Links]], ...] = (
    (lambda source: isinstance(source, NetworkXGraph), networkx_links),
    (lambda source: isinstance(source, IGraph), igraph_links),
    (lambda source: isinstance(source, SparseMatrix), matrix_links),
    (lambda source: isinstance(source, np.ndarray) or _is_pair(source), array_links),
    (has_numpy_integers, frame_links),
    (lambda source: isinstance(source, ArrowStream), arrow_links),
    (lambda source: table_columns(source) is not None, frame_links),
    (lambda source: isinstance(source, Mapping), mapping_links),
    (lambda source: isinstance(source, Iterable) and not isinstance(source, str | bytes), edge_links),
)
