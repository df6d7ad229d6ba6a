"""Stationary distributions of the walk methods, exactly, from their transition matrices on small webs.

The transition matrix, built from the definition of a method, has the claimed stationary distribution (dense algebra,
no sampling). And the walks move with the transition probabilities of the matrix (counted over long walks, within 5
standard errors).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import surveyor as sv
from surveyor.estimate.sampling.compiled_walks import CompiledWalks, NeighbourLists
from surveyor.estimate.sampling.walk_methods import WalkPlan

Array = Any


def undirected(seed: int, pages: int = 14) -> tuple[NeighbourLists, Array, Array]:
    """Return a connected web, its adjacency matrix, and a topic."""
    rng = np.random.default_rng(seed)
    ring = np.arange(pages)
    sources = np.concatenate([ring, rng.integers(pages, size=2 * pages)])
    targets = np.concatenate([(ring + 1) % pages, rng.integers(pages, size=2 * pages)])
    neighbours = NeighbourLists.of(sv.Graph.from_arrays(sources, targets, nodes=pages))
    matrix = np.zeros((pages, pages))
    for page in range(pages):
        matrix[page, neighbours.pages[neighbours.starts[page] : neighbours.starts[page + 1]]] = 1
    topic = rng.random(pages) < 0.55
    topic[:2] = True
    return neighbours, matrix, topic


def one_hop(matrix: Array, topic: Array) -> Array:
    """Return the transition matrix of `hard`: draw a neighbour; stay if it is off topic."""
    step = matrix / matrix.sum(1, keepdims=True)
    moves = step[np.ix_(topic, topic)]
    return moves + np.diag(1 - moves.sum(1))


def two_hops(matrix: Array, topic: Array, tries: int) -> Array:
    """Return the transition matrix of two hops: any neighbour, then up to `tries` draws from its neighbours."""
    step = matrix / matrix.sum(1, keepdims=True)
    off = step @ ~topic
    drawn = step * sum(off**k for k in range(tries))[:, None]
    moves = (step @ drawn)[np.ix_(topic, topic)]
    return moves + np.diag(1 - moves.sum(1))


def excursions(matrix: Array, topic: Array, reach: int, *, counted: bool) -> Array:
    """Return the transition matrix of `trial`: up to `reach` steps off topic; a return counts as a step, or not."""
    step = matrix / matrix.sum(1, keepdims=True)
    out, inside, back = step[np.ix_(topic, ~topic)], step[np.ix_(~topic, ~topic)], step[np.ix_(~topic, topic)]
    moves, away = step[np.ix_(topic, topic)].copy(), out
    for _ in range(reach):
        moves += away @ back
        away = away @ inside
    returns = 1 - moves.sum(1)
    return moves + np.diag(returns) if counted else moves / moves.sum(1, keepdims=True)


def stationary_distribution(transition: Array) -> Array:
    """Return the stationary distribution from a linear system."""
    size = transition.shape[0]
    system = np.vstack([transition.T - np.eye(size), np.ones(size)])
    return np.linalg.lstsq(system, np.append(np.zeros(size), 1.0), rcond=None)[0]


def nonbacktracking(matrix: Array, topic: Array) -> tuple[Array, list[tuple[int, int]]]:
    """Return the transition matrix over (previous page, page); a rejected page becomes the previous page."""
    states = [(a, b) for a, b in np.argwhere(matrix > 0) if topic[b]]
    index = {state: row for row, state in enumerate(states)}
    walk = np.zeros((len(states), len(states)))
    for (previous, page), row in index.items():
        near = np.flatnonzero(matrix[page])
        choices = near[near != previous] if near.size > 1 else near
        for drawn in choices:
            walk[row, index[(page, drawn) if topic[drawn] else (drawn, page)]] += 1 / choices.size
    return walk, states


@pytest.mark.parametrize("seed", range(12))
def test_stationary_distributions_are_proportional_to_the_degree(seed: int) -> None:
    _, matrix, topic = undirected(seed)
    degree = matrix.sum(1)[topic]
    transitions = {
        "hard": one_hop(matrix, topic),
        **{f"two hops, {tries}": two_hops(matrix, topic, tries) for tries in (1, 3, 50)},
        "mixture": (one_hop(matrix, topic) + two_hops(matrix, topic, 4)) / 2,
        **{f"trial, {reach}": excursions(matrix, topic, reach, counted=True) for reach in (0, 1, 2, 3)},
        "webwalker": matrix / matrix.sum(1, keepdims=True),
    }
    for name, walk in transitions.items():
        mass = matrix.sum(1) if name == "webwalker" else degree
        flow = mass[:, None] * walk
        np.testing.assert_allclose(flow, flow.T, atol=1e-12, err_msg=name)  # detailed balance
        np.testing.assert_allclose(walk.sum(1), 1, atol=1e-12)
    walk, states = nonbacktracking(matrix, topic)
    np.testing.assert_allclose(walk.sum(0), 1, atol=1e-12)  # doubly stochastic, so uniform over states
    counts = np.bincount([page for _, page in states], minlength=topic.size)[topic]
    np.testing.assert_array_equal(counts, degree)


def test_uncounted_returns_change_the_stationary_distribution() -> None:
    """The published trial method does not count returns."""
    distances = []
    for seed in range(12):
        _, matrix, topic = undirected(seed)
        degree = matrix.sum(1)[topic]
        distribution = stationary_distribution(excursions(matrix, topic, 1, counted=False))
        distances.append(np.abs(distribution - degree / degree.sum()).sum() / 2)
    assert max(distances) > 0.02


WALKS: dict[str, Any] = {
    "hard": lambda matrix, topic: one_hop(matrix, topic),
    "mixture": lambda matrix, topic: (one_hop(matrix, topic) + two_hops(matrix, topic, 4)) / 2,
    "trial": lambda matrix, topic: excursions(matrix, topic, 2, counted=True),
    "trial-paper": lambda matrix, topic: excursions(matrix, topic, 2, counted=False),
}


@pytest.mark.parametrize("method", WALKS)
@pytest.mark.parametrize("seed", range(3))
def test_walks_follow_the_transition_matrix(method: str, seed: int) -> None:
    neighbours, matrix, topic = undirected(seed)
    walks = CompiledWalks(neighbours, topic, np.flatnonzero(topic)[:2], WalkPlan(method, rng=seed))
    walks.advance(150_000)
    trace = walks.trace()
    pages = np.flatnonzero(topic)
    row_of = np.full(topic.size, -1)
    row_of[pages] = np.arange(pages.size)
    counts = np.zeros((pages.size, pages.size))
    for walk in range(2):
        path = row_of[trace.page[trace.walk == walk]]
        np.add.at(counts, (path[:-1], path[1:]), 1)
    expected = WALKS[method](matrix, topic)
    visits = counts.sum(1, keepdims=True)
    band = 5 * np.sqrt(expected * (1 - expected) / np.maximum(visits, 1)) + 1e-9
    assert (np.abs(counts / np.maximum(visits, 1) - expected) <= band)[visits[:, 0] > 0].all()


@pytest.mark.parametrize(("method", "exact"), [("nonbacktracking", True), ("webwalker", True), ("hard-paper", False)])
def test_weighted_shares_of_reachable_pages_are_equal(method: str, exact: bool) -> None:
    """With a known stationary distribution, all reachable pages have the same weighted share."""
    errors = []
    for seed in range(4):
        neighbours, _, topic = undirected(seed)
        walks = CompiledWalks(neighbours, topic, np.flatnonzero(topic)[:1], WalkPlan(method, rng=seed))
        walks.advance(300_000)
        trace = walks.trace()
        share = np.bincount(trace.page, trace.weight, topic.size)
        reached = share[share > 0] / share.sum()
        errors.append(np.abs(reached * reached.size - 1).max())
    assert bool(max(errors) < 0.08) is exact
