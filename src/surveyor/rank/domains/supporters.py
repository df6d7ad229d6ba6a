"""Exact level-D supporters: the number of domains that reach a domain in exactly D links, and not in fewer.

At level 1 these are the in-links. Level 2 is the score that kept spam out best in the study that proposed it: a
spammer can register domains that link to his own, but hardly ones that many others link to. Level 3 reaches most of
the web from anywhere and has little information.

Cost: every path of D links is visited once, Σ over all paths for D = 2, whatever the number of supporters. Threads
walk back from separate domains, each with its own marks: 8 bytes per domain and thread. `tse.py` estimates
the same at a share p of the cost.

    >>> graph = Graph.from_edges([("a", "b"), ("b", "c"), ("d", "b"), ("a", "c"), ("c", "a")])
    >>> supporters(graph).score("c"), supporters(graph, depth=3).score("b")  # d; d -> b is shorter, c -> a -> b not
    (1.0, 0.0)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
import numpy.typing as npt

from surveyor.arrays import AnyIntArray, IntArray
from surveyor.errors import UsageError
from surveyor.graph.csr import Graph, Rows
from surveyor.kernels.thread_pool import ThreadPool
from surveyor.rank.domains.reputation import Reputation
from surveyor.stopping import ProgressCallback, silent

STEP = 1 << 16  # domains processed at a time
WORK = 1 << 24  # paths that a thread visits per call


def supporters(
    graph: Graph, depth: int = 2, *, threads: int | None = None, progress: ProgressCallback = silent
) -> Reputation:
    """Count the level-`depth` supporters of every domain."""
    check_depth(depth)
    counts = (
        graph.in_links.degrees()
        if depth == 1
        else supporters_of(graph, np.arange(graph.pages), depth, threads=threads, progress=progress)
    )
    rows = graph.in_links.indptr
    return Reputation("supp", counts, in_indptr=rows, names=graph.names, method={"depth": depth})


def supporters_of(
    graph: Graph,
    domains: AnyIntArray,
    depth: int = 2,
    *,
    threads: int | None = None,
    progress: ProgressCallback = silent,
) -> IntArray:
    """Count the level-`depth` supporters of some domains."""
    from surveyor.kernels.supporter_counts import count_supporters

    check_depth(depth)
    check_ids(domains, graph.pages)
    nodes = np.ascontiguousarray(domains, np.int32).view(np.uint32)
    counts = np.zeros(nodes.size, np.int64)
    walk = Walks(graph.in_links)
    work = np.cumsum(_paths(walk, nodes, threads) + 1)
    done = 0

    def count(first: int, last: int) -> int:
        with walk.marks() as (seen, queue):
            count_supporters(walk.links, nodes[first:last], depth, first + 1, seen, queue, counts[first:last])
        return last

    with ThreadPool(threads) as pool:
        for done in pool.imap(count, cuts(work)):
            progress("counting supporters", float(work[done - 1]), float(work[-1]), "paths")
    return counts


def _paths(walk: Walks, nodes: npt.NDArray[np.uint32], threads: int | None) -> IntArray:
    """Count the paths of two links that end at these domains: the cost of counting their supporters."""
    from surveyor.kernels.supporter_counts import count_paths

    counts = np.empty(nodes.size, np.int64)
    steps = [*range(0, nodes.size, STEP), nodes.size]
    with ThreadPool(threads) as pool:
        pieces = ((walk.links, nodes[a:b], counts[a:b]) for a, b in pairwise(steps))
        list(pool.imap(count_paths, pieces))
    return counts


class Walks:
    """One direction of a graph, and the visit marks of walks over it: each thread uses its own set."""

    def __init__(self, rows: Rows) -> None:
        from surveyor.kernels.supporter_counts import Adjacency

        self.links = Adjacency(rows.indptr.view(np.uint64), rows.indices.view(np.uint32))
        self._free: SimpleQueue[tuple[Any, Any]] = SimpleQueue()

    @contextmanager
    def marks(self) -> Iterator[tuple[Any, Any]]:
        """Lend visit marks and a queue; all walks over them must have distinct numbers."""
        size = self.links.indptr.size
        try:
            pair = self._free.get_nowait()
        except Empty:
            pair = np.zeros(size, np.uint32), np.empty(size, np.uint32)
        try:
            yield pair
        finally:
            self._free.put(pair)


def cuts(work: AnyIntArray | Any) -> list[tuple[int, int]]:
    """Split domains into ranges of similar work, given the cumulative work."""
    if not work.size:
        return []
    edges = np.searchsorted(work, np.arange(WORK, float(work[-1]), WORK))
    return list(pairwise(np.unique(np.concatenate([[0], edges, [work.size]])).tolist()))


def check_ids(domains: AnyIntArray, count: int) -> None:
    """Refuse invalid domain ids: kernels trust them."""
    if domains.size and not 0 <= int(domains.min()) <= int(domains.max()) < count:
        raise UsageError("ids that no domain has", hint=f"ids go from 0 to {count - 1}")


def check_depth(depth: int) -> None:
    """Refuse a depth below 1."""
    if depth < 1:
        raise UsageError(f"there are no level-{depth} supporters", hint="levels start at 1, the in-links; 2 is usual")
