"""One small class per tool: build from arrays, build from text, rank.

All solve the same problem: damping 0.85, uniform teleport, dangling pages lead everywhere. `rank` gets an
accuracy, which each class turns into what its tool understands: a tolerance on the L1 change of a sweep
(per node for those that multiply it by the number of nodes), or a number of sweeps.
Tools without a fast reader of their own get text through pyarrow; `reader` names the one used.
"""

from __future__ import annotations

import math
import os
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

DAMPING = 0.85
MAX_SWEEPS = 1000
Ids = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
THREADS = int(os.environ.get("BENCH_THREADS", "2"))


class Tool:
    """A tool that holds one graph."""

    name: ClassVar[str]
    reader: ClassVar[str] = "pyarrow"
    library: ClassVar[bool] = True  # a graph library, as opposed to a matrix library
    turns_later: ClassVar[bool] = False  # every ranking starts with a transpose, so a build is not complete
    one_accuracy: ClassVar[bool] = False  # the tool has no accuracy parameter
    most_links: ClassVar[int] = 1 << 40

    def __init__(self) -> None:
        self.graph: Any = None

    def arrays(self, pages: int, sources: Ids, targets: Ids) -> None:
        """Build all that ranking needs."""
        raise NotImplementedError

    def text(self, pages: int, path: str) -> None:
        """Build from lines of two ids with a tab between them."""
        self.arrays(pages, *arrow_columns(path))

    def rank(self, accuracy: float) -> Any:
        raise NotImplementedError

    def scores(self, answer: Any) -> Floats:
        return np.asarray(answer, np.float64)

    def facts(self, answer: Any) -> dict[str, Any]:  # noqa: ARG002
        """Return what else the tool reports about its result."""
        return {}


class Surveyor(Tool):
    name = "surveyor"
    reader = "own"

    def arrays(self, pages: int, sources: Ids, targets: Ids) -> None:
        from surveyor import Graph

        self.graph = Graph.from_arrays(sources, targets, pages, threads=THREADS)
        self.graph.in_links  # noqa: B018  # ranking reads them

    def text(self, pages: int, path: str) -> None:
        from surveyor import read_graph

        self.graph = read_graph(path, format="tsv", nodes=pages, threads=THREADS)
        self.graph.in_links  # noqa: B018

    def rank(self, accuracy: float) -> Any:
        from surveyor import SolverOptions, pagerank

        return pagerank(self.graph, DAMPING, accuracy, options=SolverOptions(threads=THREADS))

    def scores(self, answer: Any) -> Floats:
        return np.asarray(answer.scores)

    def facts(self, answer: Any) -> dict[str, Any]:
        return {"bound": answer.error, "sweeps": answer.sweeps, "solver": answer.solver}


class SciPy(Tool):
    name = "SciPy"
    library = False

    def arrays(self, pages: int, sources: Ids, targets: Ids) -> None:
        from scipy import sparse

        degrees = np.bincount(sources, minlength=pages)
        weights = (1.0 / np.maximum(degrees, 1))[sources]
        follow = sparse.csr_matrix((weights, (targets, sources)), shape=(pages, pages))
        self.graph = follow, degrees == 0

    def rank(self, accuracy: float) -> Any:
        follow, dangling = self.graph
        return power_iteration(follow, dangling, accuracy)


def power_iteration(follow: Any, dangling: Any, accuracy: float) -> Floats:
    """Multiply until a sweep changes less than `accuracy` in L1: what people write by hand."""
    pages = dangling.size
    ranks = np.full(pages, 1.0 / pages)
    for _ in range(MAX_SWEEPS):
        before = ranks
        ranks = DAMPING * (follow @ before)
        ranks += (DAMPING * before[dangling].sum() + 1 - DAMPING) / pages
        if np.abs(ranks - before).sum() < accuracy:
            break
    return ranks


class GraphBLAS(Tool):
    name = "graphblas-algorithms"

    def arrays(self, pages: int, sources: Ids, targets: Ids) -> None:
        import graphblas
        import graphblas_algorithms

        graphblas.ss.config["nthreads"] = THREADS
        matrix = graphblas.Matrix.from_coo(sources, targets, 1.0, nrows=pages, ncols=pages)
        self.graph = graphblas_algorithms.DiGraph(matrix)
        self.graph.get_property("plus_rowwise+")
        self.graph.get_property("iso_value")

    def rank(self, accuracy: float) -> Any:
        from graphblas_algorithms.algorithms.link_analysis.pagerank_alg import pagerank

        return pagerank(self.graph, DAMPING, tol=accuracy / len(self.graph), max_iter=MAX_SWEEPS)

    def scores(self, answer: Any) -> Floats:
        return np.asarray(answer.to_dense(fill_value=0.0))


class NetworKit(Tool):
    name = "NetworKit"

    def arrays(self, pages: int, sources: Ids, targets: Ids) -> None:
        import networkit

        networkit.setNumberOfThreads(THREADS)
        pairs = sources.astype(np.int64), targets.astype(np.int64)
        self.graph = networkit.GraphFromCoo(pairs, n=pages, weighted=False, directed=True)

    def rank(self, accuracy: float) -> Any:
        from networkit.centrality import Norm, PageRank, SinkHandling

        solver = PageRank(self.graph, DAMPING, accuracy, distributeSinks=SinkHandling.DistributeSinks)
        solver.norm, solver.maxIterations = Norm.L1_NORM, MAX_SWEEPS
        return solver.run()

    def scores(self, answer: Any) -> Floats:
        return np.asarray(answer.scores())

    def facts(self, answer: Any) -> dict[str, Any]:
        return {"sweeps": answer.numberOfIterations()}


class IGraph(Tool):
    name = "igraph"
    turns_later = True
    one_accuracy = True  # prpack, its default, has no tolerance

    def arrays(self, pages: int, sources: Ids, targets: Ids) -> None:
        import igraph

        self.graph = igraph.Graph(pages, np.column_stack([sources, targets]).astype(np.int64), directed=True)

    def rank(self, accuracy: float) -> Any:  # noqa: ARG002
        return self.graph.pagerank(damping=DAMPING, implementation="prpack")


class ScikitNetwork(Tool):
    name = "scikit-network"
    turns_later = True

    def arrays(self, pages: int, sources: Ids, targets: Ids) -> None:
        from scipy import sparse

        ones = np.ones(sources.size, np.bool_)
        self.graph = sparse.csr_matrix((ones, (sources, targets)), shape=(pages, pages))

    def rank(self, accuracy: float) -> Any:
        from sknetwork.ranking import PageRank

        # Its other solvers send the surfer of a dangling page elsewhere, and answer another question.
        sweeps = math.ceil(math.log(accuracy) / math.log(DAMPING))
        return PageRank(DAMPING, solver="RH", n_iter=sweeps).fit_predict(self.graph)


class RustworkX(Tool):
    name = "rustworkx"
    reader = "own for text, pyarrow for gz"
    most_links = 10_000_000

    def arrays(self, pages: int, sources: Ids, targets: Ids) -> None:
        import rustworkx

        self.graph = rustworkx.PyDiGraph()
        self.graph.add_nodes_from(range(pages))
        self.graph.extend_from_edge_list(list(zip(sources.tolist(), targets.tolist(), strict=True)))

    def text(self, pages: int, path: str) -> None:
        import rustworkx

        if path.endswith(".gz"):
            super().text(pages, path)
            return
        self.graph = rustworkx.PyDiGraph.read_edge_list(path, deliminator="\t")
        self.graph.add_nodes_from(range(self.graph.num_nodes(), pages))

    def rank(self, accuracy: float) -> Any:
        import rustworkx

        return rustworkx.pagerank(self.graph, alpha=DAMPING, tol=accuracy / self.graph.num_nodes(), max_iter=MAX_SWEEPS)

    def scores(self, answer: Any) -> Floats:
        return np.array([answer[page] for page in range(self.graph.num_nodes())])


class NetworkX(Tool):
    name = "NetworkX"
    turns_later = True
    most_links = 4_000_000

    def arrays(self, pages: int, sources: Ids, targets: Ids) -> None:
        import networkx

        self.graph = networkx.DiGraph()
        self.graph.add_nodes_from(range(pages))
        self.graph.add_edges_from(zip(sources.tolist(), targets.tolist(), strict=True))

    def rank(self, accuracy: float) -> Any:
        import networkx

        return networkx.pagerank(self.graph, DAMPING, tol=accuracy / len(self.graph), max_iter=MAX_SWEEPS)

    def scores(self, answer: Any) -> Floats:
        return np.array([answer[page] for page in range(len(self.graph))])


TOOLS: dict[str, type[Tool]] = {
    tool.name: tool for tool in (Surveyor, SciPy, GraphBLAS, NetworKit, IGraph, ScikitNetwork, RustworkX, NetworkX)
}


def arrow_columns(path: str) -> tuple[Ids, Ids]:
    """Read two columns of ids with pyarrow, which unpacks gzip by the suffix."""
    import pyarrow
    from pyarrow import csv

    pyarrow.set_cpu_count(THREADS)
    table = csv.read_csv(
        path,
        csv.ReadOptions(column_names=["source", "target"]),
        csv.ParseOptions(delimiter="\t"),
        csv.ConvertOptions(column_types={"source": pyarrow.int32(), "target": pyarrow.int32()}),
    )
    return table["source"].to_numpy(), table["target"].to_numpy()
