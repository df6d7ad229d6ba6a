"""Small webs, some with closed-form ranks, and random ones for Hypothesis."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from surveyor import Graph


def cycle(pages: int) -> Graph:
    """Each page links to the next: all ranks are equal."""
    ids = np.arange(pages)
    return Graph.from_arrays(ids, (ids + 1) % pages, pages)


def star(leaves: int) -> Graph:
    """Every leaf links to page 0 and page 0 to every leaf."""
    ids = np.arange(1, leaves + 1)
    centre = np.zeros(leaves, np.int64)
    return Graph.from_arrays(np.concatenate([ids, centre]), np.concatenate([centre, ids]), leaves + 1)


def chain(pages: int) -> Graph:
    """0 -> 1 -> … -> last, which is dangling."""
    ids = np.arange(pages - 1)
    return Graph.from_arrays(ids, ids + 1, pages)


def clique_and_cycle(clique: int, ring: int) -> Graph:
    """A clique (pages 0..clique-1) and a cycle; page 0 of the clique also links to the first of the cycle."""
    sources, targets = np.nonzero(~np.eye(clique, dtype=bool))
    ids = np.arange(ring)
    return Graph.from_arrays(
        np.concatenate([sources, ids + clique, [0]]),
        np.concatenate([targets, (ids + 1) % ring + clique, [clique]]),
        clique + ring,
    )


def stuck_and_pair() -> Graph:
    """One dangling page and two pages that link to each other: naive bounds fail here."""
    return Graph.from_arrays(np.array([1, 2]), np.array([2, 1]), 3)


@st.composite
def graphs(draw: st.DrawFn, max_pages: int = 24, max_links: int = 80) -> Graph:
    """Random small graphs: empty ones, isolated and dangling pages, repeats and self-links included."""
    pages = draw(st.integers(1, max_pages))
    page = st.integers(0, pages - 1)
    links = draw(st.lists(st.tuples(page, page), max_size=max_links))
    pairs = np.array(links, np.int64).reshape(-1, 2)
    return Graph.from_arrays(pairs[:, 0], pairs[:, 1], pages)


def random_web(pages: int, links: int, seed: int) -> Graph:
    """A larger random graph: half the links stay near their page, hubs exist, a fifth is dangling."""
    rng = np.random.default_rng(seed)
    sources = rng.integers(0, int(pages * 0.8), links)
    near = np.clip(sources + rng.integers(-20, 20, links), 0, pages - 1)
    far = (pages * rng.random(links) ** 3).astype(np.int64)
    return Graph.from_arrays(sources, np.where(rng.random(links) < 0.5, near, far), pages)
