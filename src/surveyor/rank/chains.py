"""Shortest paths of links between pages."""

from __future__ import annotations

import numpy as np

from surveyor.arrays import AnyIntArray
from surveyor.graph.csr import Graph


def shortest_chain(graph: Graph, starts: AnyIntArray, target: int) -> tuple[int, ...]:
    """Return the pages of a shortest path from one of `starts` to the target, both included; empty if there is none.

    Among equally short paths, choose the one whose pages have the lowest ids, from the target backwards.

    >>> graph = Graph.from_edges([("a", "b"), ("b", "c"), ("c", "d"), ("a", "c")])
    >>> shortest_chain(graph, np.array([0]), 3)
    (0, 2, 3)
    """
    back = graph.reversed()
    is_start = np.zeros(graph.pages, np.bool_)
    is_start[starts] = True
    onward = np.full(graph.pages, -1, np.int32)  # the next page of the path, for pages from which one is known
    onward[target] = target
    here = np.array([target])
    while here.size and not is_start[here].any():
        owners, pages = back.distinct_links_from(here)
        new = onward[pages] < 0
        pages, first = np.unique(pages[new], return_index=True)  # the first of `here` that it links to
        onward[pages] = here[owners[new][first]]
        here = pages
    if not here.size:
        return ()
    chain = [int(here[is_start[here]][0])]
    while chain[-1] != target:
        chain.append(int(onward[chain[-1]]))
    return tuple(chain)
