"""The NetworkX backend: `networkx.pagerank(G, backend="surveyor")`.

NetworkX finds it by the entry points `networkx.backends` and `networkx.backend_info`. Parameters and results are those
of NetworkX:

    pagerank             `tol` is the proven L1 error of the ranks, which is stricter than the change between two
                         iterations that NetworkX bounds; `max_iter` is the largest number of passes over the links
    harmonic_centrality  exact, by breadth-first search, or by Dijkstra's algorithm with `distance`

NetworkX keeps a converted graph for later calls, also of other functions and with other attributes or none, so that it
has every edge, and the values of attributes beside them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from surveyor.arrays import FloatArray, IntArray
from surveyor.errors import NotConverged, UsageError
from surveyor.graph.adapters import edge_values, networkx_edges
from surveyor.graph.csr import Graph
from surveyor.graph.labels import Labels
from surveyor.graph.links import Keep, Links
from surveyor.graph.weighted import sort_links
from surveyor.integrations.networkx_info import FUNCTIONS, NAME
from surveyor.rank.distances import harmonic_sums
from surveyor.rank.pagerank import SMALLEST, Ranking, SolverOptions
from surveyor.rank.pagerank import pagerank as ranked

WHOLE = Keep(None, self_links=True, multi_links=True)


class BackendGraph:
    """A converted graph: all edges in both directions if it is undirected, and attributes of edges."""

    __networkx_backend__ = NAME

    def __init__(
        self, links: Links, values: Mapping[Hashable, FloatArray | None], *, directed: bool, multigraph: bool
    ) -> None:
        self.links, self.values, self._directed, self._multigraph = links, values, directed, multigraph
        self._weighted: dict[Hashable, Graph] = {}

    @cached_property
    def graph(self) -> Graph:
        """All edges, without attributes."""
        return self.links.graph(WHOLE)

    @property
    def labels(self) -> Labels:
        """The nodes."""
        assert isinstance(self.graph.names, Labels)  # noqa: S101
        return self.graph.names

    def weighted(self, attribute: Hashable) -> Graph:
        """Return the edges with an attribute as weight; edges of weight 0 are none."""
        values = self.values.get(attribute)
        if values is None:
            return self.graph
        if attribute not in self._weighted:
            self._weighted[attribute] = replace(self.links, weights=values).graph(WHOLE)
        return self._weighted[attribute]

    def lengths(self, attribute: Hashable) -> FloatArray | None:
        """Return an attribute of each link of `graph`."""
        values = self.values.get(attribute)
        if values is None:
            return None
        if not (values >= 0).all():
            raise NotImplementedError(f"{attribute!r} must be at least 0 for every edge")
        sources, targets = (np.asarray(ids, np.int32) for ids in (self.links.sources, self.links.targets))
        return values[sort_links(sources, targets, self.links.nodes)]

    def is_directed(self) -> bool:
        """Return whether edges have a direction."""
        return self._directed

    def is_multigraph(self) -> bool:
        """Return whether edges can be parallel."""
        return self._multigraph

    def __len__(self) -> int:
        return self.links.nodes


def convert_from_nx(
    graph: Any, *, edge_attrs: Mapping[Any, Any] | None = None, preserve_edge_attrs: bool = False, **_: Any
) -> BackendGraph:
    """Convert a NetworkX graph with the edge attributes that an algorithm uses."""
    links, data = networkx_edges(graph)
    values: dict[Hashable, FloatArray | None] = {}
    for attribute, default in (edge_attrs or {}).items():
        values[attribute] = edge_values(data, attribute, 1.0 if default is None else default)
    for attribute in {key for edge in data for key in edge} if preserve_edge_attrs else ():
        try:
            values[attribute] = edge_values(data, attribute)
        except UsageError:  # not numbers
            continue
    return BackendGraph(links, values, directed=graph.is_directed(), multigraph=graph.is_multigraph())


def convert_to_nx(result: Any, **_: Any) -> Any:
    """Return results unchanged, and a converted graph as one of NetworkX."""
    if not isinstance(result, BackendGraph):
        return result
    import networkx

    kinds = {
        (False, False): networkx.Graph,
        (True, False): networkx.DiGraph,
        (False, True): networkx.MultiGraph,
        (True, True): networkx.MultiDiGraph,
    }
    graph = kinds[result.is_directed(), result.is_multigraph()]()
    nodes, links = list(result.labels), result.links
    graph.add_nodes_from(nodes)
    once = np.ones(links.sources.size, np.bool_) if result.is_directed() else links.sources <= links.targets
    names = [name for name, values in result.values.items() if values is not None]
    columns = [values[once].tolist() for values in result.values.values() if values is not None]
    rows = zip(*columns, strict=True) if columns else [()] * int(once.sum())
    pairs = zip(links.sources[once].tolist(), links.targets[once].tolist(), rows, strict=True)
    graph.add_edges_from((nodes[a], nodes[b], dict(zip(names, row, strict=True))) for a, b, row in pairs)
    return graph


def can_run(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool | str:
    """Return whether the backend has this function for these arguments, or the reason why not."""

    def argument(place: int, named: str, default: Any = None) -> Any:
        return kwargs.get(named, args[place] if len(args) > place else default)

    if name == "harmonic_centrality" and callable(argument(2, "distance")):
        return "distance must be the name of an attribute, not a function"
    if name == "pagerank" and not 0 <= argument(1, "alpha", 0.85) < 1:
        return "alpha must be in [0, 1)"
    if name == "pagerank" and callable(argument(6, "weight", "weight")):
        return "weight must be the name of an attribute, not a function"
    return name in FUNCTIONS


def pagerank(  # the parameters of NetworkX
    G: BackendGraph,  # noqa: N803
    alpha: float = 0.85,
    personalization: Mapping[Any, float] | None = None,
    max_iter: int = 100,
    tol: float = 1e-6,
    nstart: Mapping[Any, float] | None = None,
    weight: Hashable | None = "weight",
    dangling: Mapping[Any, float] | None = None,
) -> dict[Any, float]:
    """Return the PageRank of each node."""
    labels = G.labels
    if len(G) == 0:
        return {}
    try:
        teleport = _vector(labels, personalization)
        to, start = (_vector(labels, weights, max_iter) for weights in (dangling, nstart))
        best = _ranked(G.weighted(weight), alpha, teleport, to, start, max_iter, tol)
    except UsageError as error:  # negative or infinite weights
        raise NotImplementedError(error.problem) from error
    return dict(zip(labels, best.scores.tolist(), strict=True))


def harmonic_centrality(
    G: BackendGraph,  # noqa: N803
    nbunch: Any = None,
    distance: Hashable | None = None,
    sources: Any = None,
) -> dict[Any, float]:
    """Return the harmonic centrality of some nodes: the sum of 1 / distance over all sources that reach it."""
    nodes, origins = (_nodes(G.labels, bunch) for bunch in (nbunch, sources))
    lengths = None if distance is None else G.lengths(distance)
    sums = harmonic_sums(G.graph, nodes, origins, lengths=lengths)
    return {G.labels[node]: value for node, value in zip(nodes.tolist(), sums.tolist(), strict=True)}


def _ranked(
    graph: Graph,
    alpha: float,
    teleport: FloatArray | None,
    dangling: FloatArray | None,
    start: FloatArray | None,
    max_iter: int,
    tol: float,
) -> Ranking:
    """Rank until the error is at most `tol`, or what NetworkX accepts as converged: a change of `tol` per node."""
    from networkx import PowerIterationFailedConvergence

    if max_iter < 1:
        raise PowerIterationFailedConvergence(max_iter)
    try:
        return ranked(
            graph,
            alpha,
            max(tol, SMALLEST),
            teleport,
            dangling="teleport" if dangling is None else dangling,
            start=start,
            options=SolverOptions(max_sweeps=max_iter),
        )
    except NotConverged as failure:
        best: Ranking = failure.best
        if best.error < graph.pages * tol:
            return best
        raise PowerIterationFailedConvergence(max_iter) from failure


def _vector(labels: Labels, weights: Mapping[Any, float] | None, max_iter: int | None = None) -> FloatArray | None:
    """Return the weight of each node, 0 for nodes that are not named, as NetworkX reads it; with its errors."""
    if weights is None:
        return None
    values = np.zeros(len(labels))
    for node, weight in weights.items():
        page = labels.find(node)
        if page is not None:
            values[page] = weight
    if values.sum() == 0:
        from networkx import PowerIterationFailedConvergence

        raise ZeroDivisionError if max_iter is None else PowerIterationFailedConvergence(max_iter)
    return values


def _nodes(labels: Labels, bunch: Any) -> IntArray:
    """Return the ids of a bunch of nodes as NetworkX reads it: None for all, one node, or several."""
    if bunch is None:
        return np.arange(len(labels))
    one = labels.find(bunch)
    if one is not None:
        return np.array([one])
    from networkx import NetworkXError

    if not isinstance(bunch, Iterable):
        raise NetworkXError(f"{bunch!r} is not a node or a sequence of nodes.")
    found = {labels.find(node) for node in bunch}
    return np.array(sorted(page for page in found if page is not None), np.int64)
