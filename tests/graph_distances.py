"""Brute-force distances along in-links, and random graphs for tests of estimates."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from surveyor import Graph

Whole = npt.NDArray[np.int64]


def distances(graph: Graph) -> Whole:
    """D[x, z] = length of a shortest path from z to x; 0 on the diagonal, -1 if there is none."""
    pages = graph.pages
    leads = np.zeros((pages, pages), np.float32)
    for source in range(pages):
        leads[graph.links_of(source), source] = 1.0
    found = np.full((pages, pages), -1, np.int64)
    ball = np.eye(pages, dtype=bool)
    level = 0
    new = ball
    while new.any():
        found[new] = level
        ball |= new
        level += 1
        new = (leads @ ball.astype(np.float32) > 0) & ~ball
    return found


def supporters(graph: Graph, depth: int) -> Whole:
    return np.asarray((distances(graph) == depth).sum(axis=1), np.int64)


def harmonic(graph: Graph) -> npt.NDArray[np.float64]:
    ways = distances(graph)
    return np.asarray(np.where(ways > 0, 1.0 / np.maximum(ways, 1), 0.0).sum(axis=1))


def skewed(pages: int, links: int, seed: int) -> Graph:
    """Random graph with a heavy-tailed in-degree distribution."""
    rng = np.random.default_rng(seed)
    pull = (np.arange(pages) + 1.0) ** -0.8
    return Graph.from_arrays(rng.integers(0, pages, links), rng.choice(pages, links, p=pull / pull.sum()), pages)


def crowd(inner: int, outer: int, others: int = 0) -> Graph:
    """Page 0 has `inner` in-neighbours; `outer` pages are at level 2, and others are linked to nothing."""
    middle, far = 1 + np.arange(inner), 1 + inner + np.arange(outer)
    sources = np.concatenate([middle, far])
    targets = np.concatenate([np.zeros(inner, np.int64), 1 + np.arange(outer) % inner])
    return Graph.from_arrays(sources, targets, 1 + inner + outer + others)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    size = draw(st.integers(1, 14))
    links = draw(st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), max_size=60))
    sources, targets = np.array(links, np.int64).reshape(-1, 2).T
    return Graph.from_arrays(sources, targets, size)


def dense(graph: Graph) -> np.ndarray:
    matrix = np.zeros((graph.pages, graph.pages), bool)
    matrix[np.repeat(np.arange(graph.pages), graph.out_degrees), graph.indices] = True
    return matrix


def at_distance(graph: Graph, depth: int) -> npt.NDArray[np.bool_]:
    """Return for each pair whether the shortest path from the first to the second has length `depth`."""
    return np.asarray(depth == distances(graph).T)
