"""A graph as an object of another library: NetworkX, SciPy, PyArrow. `adapters` is the opposite direction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import optional

if TYPE_CHECKING:
    from surveyor.graph.csr import Graph


def to_networkx(graph: Graph) -> Any:
    """Return a DiGraph, or a MultiDiGraph of a graph with several links between the same pages."""
    networkx = optional("networkx", "to_networkx()", "formats")
    nodes = list(range(graph.pages)) if graph.names is None else list(graph.names)
    sources = np.repeat(np.arange(graph.pages), graph.out_degrees)
    repeated = (np.diff(graph.indices) == 0) & (np.diff(sources) == 0)
    result = networkx.MultiDiGraph() if repeated.any() else networkx.DiGraph()
    result.add_nodes_from(nodes)
    ends = ([nodes[page] for page in pages.tolist()] for pages in (sources, graph.indices))
    if graph.weights is None:
        result.add_edges_from(zip(*ends, strict=True))
    else:
        result.add_weighted_edges_from(zip(*ends, graph.weights.tolist(), strict=True))
    return result


def to_scipy(graph: Graph) -> Any:
    """Return a csr_array of float64: row i, column j is the weight of the link i → j, 1 without weights."""
    sparse = optional("scipy.sparse", "to_scipy()", "formats")
    values = np.ones(graph.links) if graph.weights is None else graph.weights
    arrays = (np.array(values), np.array(graph.indices), np.array(graph.indptr))  # SciPy may write to its arrays
    return sparse.csr_array(arrays, shape=(graph.pages, graph.pages))


def to_arrow(graph: Graph) -> Any:
    """Return a PyArrow table with one row per link: source, target, and weight if there are weights."""
    pa = optional("pyarrow", "to_arrow()", "formats")
    ids = (np.repeat(np.arange(graph.pages, dtype=np.int32), graph.out_degrees), np.asarray(graph.indices))
    if graph.names is None:
        ends = [pa.array(pages) for pages in ids]
    else:
        from surveyor.frames import arrow_column

        labels = arrow_column(pa, list(graph.names))
        ends = [pa.DictionaryArray.from_arrays(pa.array(pages), labels).dictionary_decode() for pages in ids]
    columns = dict(zip(("source", "target"), ends, strict=True))
    if graph.weights is not None:
        columns["weight"] = pa.array(graph.weights)
    return pa.table(columns)
