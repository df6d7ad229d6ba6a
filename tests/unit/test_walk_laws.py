"""The law of each walk, exactly: the transition matrix on small webs, built from the definition of the method.

Two things are shown. The matrix that the definition makes has the law that is claimed (dense algebra, nothing is
drawn). And the walks move as the matrix says (counted over a long walk, against a band of 5 standard errors).
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
    """Return a connected web, its matrix of neighbours, and a topic with a page that can be reached at all."""
    rng = np.random.default_rng(seed)
    ring = np.arange(pages)
    sources = np.concatenate([ring, rng.integers(pages, size=2 * pages)])
    targets = np.concatenate([(ring + 1) % pages, rng.integers(pages, size=2 * pages)])
    found = NeighbourLists.of(sv.Graph.from_arrays(sources, targets, nodes=pages))
    matrix = np.zeros((pages, pages))
    for page in range(pages):
        matrix[page, found.pages[found.starts[page] : found.starts[page + 1]]] = 1
    topic = rng.random(pages) < 0.55
    topic[:2] = True
    return found, matrix, topic


def one_hop(matrix: Array, topic: Array) -> Array:
    """Propose a neighbour; off topic, stay."""
    step = matrix / matrix.sum(1, keepdims=True)
    moves = step[np.ix_(topic, topic)]
    return moves + np.diag(1 - moves.sum(1))


def two_hops(matrix: Array, topic: Array, tries: int) -> Array:
    """By any neighbour, then draw up to so many of its neighbours until one is on topic; else stay."""
    step = matrix / matrix.sum(1, keepdims=True)
    off = step @ ~topic
    drawn = step * sum(off**k for k in range(tries))[:, None]
    moves = (step @ drawn)[np.ix_(topic, topic)]
    return moves + np.diag(1 - moves.sum(1))


def wander(matrix: Array, topic: Array, reach: int, *, counted: bool) -> Array:
    """Wander up to so many pages off topic; then return, and count it, or begin again without."""
    step = matrix / matrix.sum(1, keepdims=True)
    out, inside, back = step[np.ix_(topic, ~topic)], step[np.ix_(~topic, ~topic)], step[np.ix_(~topic, topic)]
    moves, away = step[np.ix_(topic, topic)].copy(), out
    for _ in range(reach):
        moves += away @ back
        away = away @ inside
    returns = 1 - moves.sum(1)
    return moves + np.diag(returns) if counted else moves / moves.sum(1, keepdims=True)


def law_of(transition: Array) -> Array:
    """Return the stationary law, by a linear system."""
    size = transition.shape[0]
    system = np.vstack([transition.T - np.eye(size), np.ones(size)])
    return np.linalg.lstsq(system, np.append(np.zeros(size), 1.0), rcond=None)[0]


def nonbacktracking(matrix: Array, topic: Array) -> tuple[Array, list[tuple[int, int]]]:
    """Return the walk over (page before, page); a page refused becomes the page before."""
    states = [(a, b) for a, b in np.argwhere(matrix > 0) if topic[b]]
    number = {state: at for at, state in enumerate(states)}
    walk = np.zeros((len(states), len(states)))
    for (before, here), at in number.items():
        near = np.flatnonzero(matrix[here])
        choices = near[near != before] if near.size > 1 else near
        for there in choices:
            walk[at, number[(here, there) if topic[there] else (there, here)]] += 1 / choices.size
    return walk, states


@pytest.mark.parametrize("seed", range(12))
def test_the_law_is_in_proportion_to_degree(seed: int) -> None:
    _, matrix, topic = undirected(seed)
    degree = matrix.sum(1)[topic]
    balance = {
        "hard": one_hop(matrix, topic),
        **{f"two hops, {tries}": two_hops(matrix, topic, tries) for tries in (1, 3, 50)},
        "mixture": (one_hop(matrix, topic) + two_hops(matrix, topic, 4)) / 2,
        **{f"trial, {reach}": wander(matrix, topic, reach, counted=True) for reach in (0, 1, 2, 3)},
        "webwalker": matrix / matrix.sum(1, keepdims=True),
    }
    for name, walk in balance.items():
        mass = matrix.sum(1) if name == "webwalker" else degree
        flow = mass[:, None] * walk
        np.testing.assert_allclose(flow, flow.T, atol=1e-12, err_msg=name)  # reversible, so the law is that
        np.testing.assert_allclose(walk.sum(1), 1, atol=1e-12)
    walk, states = nonbacktracking(matrix, topic)
    np.testing.assert_allclose(walk.sum(0), 1, atol=1e-12)  # uniform over states, so pages go by degree
    counts = np.bincount([here for _, here in states], minlength=topic.size)[topic]
    np.testing.assert_array_equal(counts, degree)


def test_returns_that_do_not_count_spoil_the_law() -> None:
    """As published, trial and error has another law, and so has a degree that counts links both ways twice."""
    far = []
    for seed in range(12):
        _, matrix, topic = undirected(seed)
        degree = matrix.sum(1)[topic]
        law = law_of(wander(matrix, topic, 1, counted=False))
        far.append(np.abs(law - degree / degree.sum()).sum() / 2)
    assert max(far) > 0.02


WALKS: dict[str, Any] = {
    "hard": lambda matrix, topic: one_hop(matrix, topic),
    "mixture": lambda matrix, topic: (one_hop(matrix, topic) + two_hops(matrix, topic, 4)) / 2,
    "trial": lambda matrix, topic: wander(matrix, topic, 2, counted=True),
    "trial-paper": lambda matrix, topic: wander(matrix, topic, 2, counted=False),
}


@pytest.mark.parametrize("method", WALKS)
@pytest.mark.parametrize("seed", range(3))
def test_walks_move_as_the_matrix_says(method: str, seed: int) -> None:
    found, matrix, topic = undirected(seed)
    walks = CompiledWalks(found, topic, np.flatnonzero(topic)[:2], WalkPlan(method, rng=seed))
    walks.advance(150_000)
    trace = walks.trace()
    pages = np.flatnonzero(topic)
    place = np.full(topic.size, -1)
    place[pages] = np.arange(pages.size)
    counts = np.zeros((pages.size, pages.size))
    for walk in range(2):
        path = place[trace.page[trace.walk == walk]]
        np.add.at(counts, (path[:-1], path[1:]), 1)
    expected = WALKS[method](matrix, topic)
    seen = counts.sum(1, keepdims=True)
    band = 5 * np.sqrt(expected * (1 - expected) / np.maximum(seen, 1)) + 1e-9
    assert (np.abs(counts / np.maximum(seen, 1) - expected) <= band)[seen[:, 0] > 0].all()


@pytest.mark.parametrize(("method", "exact"), [("nonbacktracking", True), ("webwalker", True), ("hard-paper", False)])
def test_weights_make_every_page_count_alike(method: str, exact: bool) -> None:
    """Where the law holds, the weighted share of each page that can be reached is the same."""
    errors = []
    for seed in range(4):
        found, _, topic = undirected(seed)
        walks = CompiledWalks(found, topic, np.flatnonzero(topic)[:1], WalkPlan(method, rng=seed))
        walks.advance(300_000)
        trace = walks.trace()
        share = np.bincount(trace.page, trace.weight, topic.size)
        reached = share[share > 0] / share.sum()
        errors.append(np.abs(reached * reached.size - 1).max())
    assert bool(max(errors) < 0.08) is exact
