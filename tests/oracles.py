"""Slow and obvious answers that the fast code is compared with; never optimised."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from surveyor import Graph

Array = npt.NDArray[np.float64]


def adjacency(graph: Graph) -> Array:
    """A[i, j] = 1 where page i links to page j."""
    matrix = np.zeros((graph.pages, graph.pages))
    for page in range(graph.pages):
        for target in graph.links_of(page):
            matrix[page, target] = 1.0
    return matrix


def dense_pagerank(graph: Graph, damping: float, teleport: Array, stuck_to: Array) -> Array:
    """Solve r = d·Pᵀr + (1 − d)·v with dangling rows of P replaced by stuck_to."""
    matrix = adjacency(graph)
    for page in range(graph.pages):
        row = matrix[page].sum()
        matrix[page] = matrix[page] / row if row else stuck_to
    system = np.eye(graph.pages) - damping * matrix.T
    ranks = np.linalg.solve(system, (1 - damping) * teleport)
    return np.asarray(ranks / ranks.sum())


def chance_to_stop(graph: Graph, damping: float, target: int) -> Array:
    """The chance to stop on the target from each page, stopping with 1 − d at each step; leaving is the end."""
    matrix = adjacency(graph)
    rows = matrix.sum(axis=1)
    steps = np.divide(matrix, rows[:, None], out=np.zeros_like(matrix), where=rows[:, None] > 0)
    return (1 - damping) * np.linalg.inv(np.eye(graph.pages) - damping * steps)[:, target]
