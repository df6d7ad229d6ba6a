"""Small graphs, and who reaches whom in them, the slow and obvious way."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from surveyor.graph.csr import Graph


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


def at_distance(graph: Graph, depth: int) -> np.ndarray:
    """Say for each pair whether the shortest path from the first to the second has so many links."""
    links, near = dense(graph).astype(np.float32), np.eye(graph.pages, dtype=bool)
    reached = near
    for _ in range(depth):
        near, reached = near | reached, (reached.astype(np.float32) @ links) > 0
    return reached & ~near
