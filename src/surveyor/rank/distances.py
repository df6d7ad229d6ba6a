"""Exact sums over distances, by a search from each page: for graphs of up to some hundred thousand pages.

For larger graphs `harmonic` estimates the same sums from sketches.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from surveyor.arrays import AnyIntArray, FloatArray
from surveyor.graph.csr import Graph
from surveyor.graph.weighted import transposed
from surveyor.kernels.thread_pool import ThreadPool

PIECES = 64  # of the pages, searched in parallel


def harmonic_sums(
    graph: Graph,
    pages: AnyIntArray,
    sources: AnyIntArray,
    *,
    lengths: FloatArray | None = None,
    threads: int | None = None,
) -> FloatArray:
    """Return, for each of some pages, the sum of 1 / distance over the sources that reach it; O(pages · links).

    `lengths`, one per link and not negative, are added along a path; without them every link has the length 1. Sources
    at distance 0 are left out.

    >>> graph = Graph.from_edges([("a", "b"), ("b", "c")])
    >>> harmonic_sums(graph, np.arange(3), np.arange(3)).tolist()
    [0.0, 1.0, 1.5]
    >>> harmonic_sums(graph, np.arange(3), np.arange(3), lengths=np.array([4.0, 0.5])).round(3).tolist()
    [0.0, 0.25, 2.222]
    """
    from surveyor.kernels.distances import harmonic_of_pages, harmonic_of_pages_by_length
    from surveyor.kernels.priority_queues import new_queue

    rows, is_source = graph.in_links, np.zeros(graph.pages, np.bool_)
    is_source[sources] = True
    sums = np.zeros(len(pages))
    cuts = np.unique(np.linspace(0, len(pages), PIECES + 1).astype(np.int64)).tolist()
    chosen = np.asarray(pages, np.int64)
    pieces = [(is_source, chosen[a:b], sums[a:b]) for a, b in pairwise(cuts)]
    with ThreadPool(threads) as pool:
        if lengths is None:
            list(pool.imap(harmonic_of_pages, [(rows.indptr, rows.indices, *piece) for piece in pieces]))
        else:
            links = (rows.indptr, rows.indices, transposed(graph, lengths))
            list(pool.imap(harmonic_of_pages_by_length, ((links, new_queue(graph.pages), *piece) for piece in pieces)))
    return sums
