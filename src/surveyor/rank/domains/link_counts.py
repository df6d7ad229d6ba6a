"""Exact domain scores from counting links: IN, WIN, QVS and level-D supporters.

    in      in-degree
    win     each domain splits one vote among the domains it links to: Σ 1 / (out-degree of the linking domain)
    qvs     paths of two links that end here: Σ (in-degree of the linking domain)
    supp    level-D supporters: domains that reach a domain in exactly D links, and not in fewer

QVS counts a domain once per path from it, and includes the domain itself and its direct supporters, so it overstates
level-2 supporters, often several times. It equals the cost of counting them, in which each path is visited once.

Level-1 supporters are the in-links. Level 2 kept spam out best in the study that proposed the score: a spammer can
register domains that link to a target, but hardly get links to them from many others. Level 3 reaches most of the web
from anywhere and has little information.

Cost of supporters: every path of D links is visited once, whatever the number of supporters. Each thread walks back
from separate domains with its own marks: 8 bytes per domain and thread. `tse.py` estimates the same at a fraction p of
the cost.

    >>> graph = Graph.from_edges([("a", "b"), ("c", "b"), ("c", "a"), ("b", "d")])
    >>> [scores(graph).score("b") for scores in (in_degree, weighted_in_degree, two_link_paths)]
    [2.0, 1.5, 1.0]
    >>> graph = Graph.from_edges([("a", "b"), ("b", "c"), ("d", "b"), ("a", "c"), ("c", "a")])
    >>> supporters(graph).score("c"), supporters(graph, depth=3).score("b")  # d; d -> b is shorter, c -> a -> b not
    (1.0, 0.0)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from queue import Empty, SimpleQueue

import numpy as np
import numpy.typing as npt

from surveyor.arrays import AnyIntArray, FloatArray, IntArray
from surveyor.errors import UsageError, check_range
from surveyor.graph.adapters import GraphLike, simple_graph
from surveyor.graph.csr import Graph, Rows
from surveyor.kernels.thread_pool import ThreadPool
from surveyor.rank.domains.reputation import DEFAULT_RESOURCES, BoundedError, Reputation, Resources
from surveyor.rank.sweeps import blocks

ROUNDING = 2.0**-52  # of one addition of numbers up to 1
STEP = 1 << 16  # domains processed at a time
WORK = 1 << 24  # paths that a thread visits per call
Ids = npt.NDArray[np.uint32]


def in_degree(graph: Graph) -> Reputation:
    """Count the domains that link to each domain."""
    return Reputation("in", graph.in_links.degrees(), in_indptr=graph.in_links.indptr, names=graph.names)


def weighted_in_degree(graph: Graph, *, threads: int | None = None) -> Reputation:
    """Sum the split votes of the domains that link to each; exact up to rounding, which is bounded."""
    degrees = graph.in_links.degrees()
    sums = _sum_over_in_links(graph, graph.share_per_link, threads)
    rounding = BoundedError(float(degrees.max(initial=0)) * ROUNDING * float(sums.max(initial=0.0)))
    return Reputation("win", sums, error_model=rounding, in_indptr=graph.in_links.indptr, names=graph.names)


def two_link_paths(graph: Graph, *, threads: int | None = None) -> Reputation:
    """Count the paths of two links that end at each domain; exact up to 2 ** 53."""
    sums = _sum_over_in_links(graph, graph.in_links.degrees().astype(np.float64), threads)
    return Reputation("qvs", sums, in_indptr=graph.in_links.indptr, names=graph.names)


def _sum_over_in_links(graph: Graph, weights: FloatArray, threads: int | None) -> FloatArray:
    """Sum a weight over the in-neighbours of each domain."""
    from surveyor.kernels.sketches import Adjacency
    from surveyor.kernels.supporter_counts import sum_in_neighbours

    rows = graph.in_links
    links, sums = Adjacency(rows.indptr.view(np.uint64), rows.indices.view(np.uint32)), np.empty(graph.pages)
    with ThreadPool(threads) as pool:
        pieces = [(links, weights, first, last, sums) for first, last in blocks(rows.indptr)]
        list(pool.imap(sum_in_neighbours, pieces))
    return sums


def supporters(graph: GraphLike, depth: int = 2, *, resources: Resources = DEFAULT_RESOURCES) -> Reputation:
    """Count the level-`depth` supporters of every domain; the graph may be any of `as_graph`."""
    graph = simple_graph(graph)
    check_depth(depth)
    if depth == 1:
        counts = graph.in_links.degrees()
    else:
        counts = supporters_of(graph, np.arange(graph.pages), depth, resources=resources)
    rows = graph.in_links.indptr
    return Reputation("supp", counts, in_indptr=rows, names=graph.names, method={"depth": depth})


def supporters_of(
    graph: Graph, domains: AnyIntArray, depth: int = 2, *, resources: Resources = DEFAULT_RESOURCES
) -> IntArray:
    """Count the level-`depth` supporters of some domains."""
    from surveyor.kernels.supporter_counts import count_supporters

    check_depth(depth)
    check_ids(domains, graph.pages)
    nodes = np.ascontiguousarray(domains, np.int32).view(np.uint32)
    counts = np.zeros(nodes.size, np.int64)
    search = LevelSearch(graph.in_links)
    work = np.cumsum(_count_paths(search, nodes, resources.threads) + 1)

    def count(first: int, last: int) -> int:
        with search.marks() as (seen, queue):
            count_supporters(search.links, nodes[first:last], depth, first + 1, seen, queue, counts[first:last])
        return last

    with ThreadPool(resources.threads) as pool:
        for done in pool.imap(count, _ranges_of_equal_work(work)):
            resources.progress("counting supporters", float(work[done - 1]), float(work[-1]), "paths")
    return counts


def _count_paths(search: LevelSearch, nodes: Ids, threads: int | None) -> IntArray:
    """Count the paths of two links that end at these domains: the cost of counting their supporters."""
    from surveyor.kernels.supporter_counts import count_paths

    counts = np.empty(nodes.size, np.int64)
    steps = [*range(0, nodes.size, STEP), nodes.size]
    with ThreadPool(threads) as pool:
        pieces = ((search.links, nodes[a:b], counts[a:b]) for a, b in pairwise(steps))
        list(pool.imap(count_paths, pieces))
    return counts


class LevelSearch:
    """One direction of a graph and the visit marks of breadth-first searches over it; each thread uses its own set."""

    def __init__(self, rows: Rows) -> None:
        from surveyor.kernels.sketches import Adjacency

        self.links = Adjacency(rows.indptr.view(np.uint64), rows.indices.view(np.uint32))
        self._free: SimpleQueue[tuple[Ids, Ids]] = SimpleQueue()

    @contextmanager
    def marks(self) -> Iterator[tuple[Ids, Ids]]:
        """Lend visit marks and a queue; all searches over them must have distinct numbers."""
        size = self.links.indptr.size
        try:
            pair = self._free.get_nowait()
        except Empty:
            pair = np.zeros(size, np.uint32), np.empty(size, np.uint32)
        try:
            yield pair
        finally:
            self._free.put(pair)


def _ranges_of_equal_work(work: IntArray) -> list[tuple[int, int]]:
    """Split domains into ranges of similar work, given the cumulative work."""
    if not work.size:
        return []
    edges = np.searchsorted(work, np.arange(WORK, float(work[-1]), WORK))
    return list(pairwise(np.unique(np.concatenate([[0], edges, [work.size]])).tolist()))


def check_ids(domains: AnyIntArray, count: int) -> None:
    """Reject invalid domain ids: kernels do not check them."""
    if domains.size and not 0 <= int(domains.min()) <= int(domains.max()) < count:
        wrong = next(int(node) for node in domains if not 0 <= node < count)
        raise UsageError(f"domain id must be in [0, {count - 1}], got {wrong}", hint="see Graph.names")


def check_depth(depth: int) -> None:
    """Reject a depth below 1."""
    check_range("depth", depth, "[1, inf)", hint="1 counts in-links; the default is 2")
