"""Slow, obvious reference implementations; never optimised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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


def first_bad_row(indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32]) -> int:
    """Return the first page whose row is not strictly ascending, in range and without the page itself, or -1."""
    pages = indptr.size - 1
    for page in range(pages):
        row = indices[indptr[page] : indptr[page + 1]]
        ascending = indptr[page] <= indptr[page + 1] and bool((np.diff(row) > 0).all())
        if not ascending or (row.size and (row[0] < 0 or row[-1] >= pages)) or page in row:
            return page
    return -1


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
    """Probability to stop on the target from each page, stopping with 1 − d at each step or at dangling pages."""
    matrix = adjacency(graph)
    rows = matrix.sum(axis=1)
    steps = np.divide(matrix, rows[:, None], out=np.zeros_like(matrix), where=rows[:, None] > 0)
    return (1 - damping) * np.linalg.inv(np.eye(graph.pages) - damping * steps)[:, target]


def merged_links(links: Mapping[int, Sequence[int]], stands_for: Sequence[int]) -> Array:
    """Count the links between pages with redirects merged; duplicates and self-links stay."""
    counts = np.zeros((len(stands_for), len(stands_for)))
    for page, targets in links.items():
        for target in targets:
            counts[page, stands_for[target]] += 1.0
    return counts


def importance_from_each(counts: Array, damping: float, teleport: Array) -> Array:
    """Row i is the importance with all jumps to page i, where dangling pages link to the teleport pages."""
    rows = counts.sum(axis=1)
    steps = np.array([counts[page] / rows[page] if rows[page] else teleport for page in range(rows.size)])
    return np.asarray((1 - damping) * np.linalg.inv(np.eye(rows.size) - damping * steps))


def paper_rankmass(graph: Graph, seeds: list[int], damping: float, goal: float) -> int:
    """Fetches that RankMass as published needs to settle the goal; dangling mass returns to the seeds."""
    waiting = np.zeros(graph.pages)
    waiting[seeds] = 1 / len(seeds)
    read: set[int] = set()
    captured = 0.0
    while captured < goal:
        page = int(waiting.argmax())
        read.add(page)
        mass = waiting[page]
        waiting[page] = 0.0
        captured += (1 - damping) * mass
        links = graph.links_of(page) if graph.links_of(page).size else np.array(seeds)
        waiting[links] += damping * mass / links.size
    return len(read)
