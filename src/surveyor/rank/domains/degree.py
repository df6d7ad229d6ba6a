"""Scores from one pass over the links: IN, WIN and QVS.

    in    in-degree
    win   each domain has one vote and splits it among those it links to: Σ 1 / (links of the linking domain)
    qvs   paths of two links that end here: Σ (in-links of the linking domain)

QVS counts a domain once per path from it, and includes the domain itself and its direct supporters, so it overstates
level-2 supporters, often several times. It equals the cost of counting them, in which each path is visited once.

    >>> graph = Graph.from_edges([("a", "b"), ("c", "b"), ("c", "a"), ("b", "d")])
    >>> [scores(graph).score("b") for scores in (in_degree, weighted_in_degree, paths)]
    [2.0, 1.5, 1.0]
"""

from __future__ import annotations

import numpy as np

from surveyor.arrays import FloatArray
from surveyor.graph.csr import Graph
from surveyor.kernels.thread_pool import ThreadPool
from surveyor.rank.domains.intervals import Within
from surveyor.rank.domains.reputation import Reputation
from surveyor.rank.sweeps import blocks

ROUNDING = 2.0**-52  # of one addition of numbers up to 1


def in_degree(graph: Graph) -> Reputation:
    """Count the domains that link to each domain."""
    into = graph.in_links.degrees()
    return Reputation("in", into, in_indptr=graph.in_links.indptr, names=graph.names)


def weighted_in_degree(graph: Graph, *, threads: int | None = None) -> Reputation:
    """Sum the split votes of the domains that link to each; exact up to rounding, whose bound is given."""
    into = graph.in_links.degrees()
    sums = gathered(graph, graph.share_per_link, threads)
    error = float(into.max(initial=0)) * ROUNDING * float(sums.max(initial=0.0))
    return Reputation("win", sums, certainty=Within(error), in_indptr=graph.in_links.indptr, names=graph.names)


def paths(graph: Graph, *, threads: int | None = None) -> Reputation:
    """Count the paths of two links that end at each domain; exact up to 2 ** 53."""
    into = graph.in_links.degrees()
    sums = gathered(graph, into.astype(np.float64), threads)
    return Reputation("qvs", sums, in_indptr=graph.in_links.indptr, names=graph.names)


def gathered(graph: Graph, weights: FloatArray, threads: int | None = None) -> FloatArray:
    """Sum a weight over the in-neighbours of each domain."""
    from surveyor.kernels.supporter_counts import Adjacency, sum_in_neighbours

    rows = graph.in_links
    links, sums = Adjacency(rows.indptr.view(np.uint64), rows.indices.view(np.uint32)), np.empty(graph.pages)
    with ThreadPool(threads) as pool:
        pieces = [(links, weights, first, last, sums) for first, last in blocks(rows.indptr)]
        list(pool.imap(sum_in_neighbours, pieces))
    return sums
