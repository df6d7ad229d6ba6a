"""Undirected webs with communities, and plain random walks on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surveyor.arrays import BoolArray, FloatArray, IntArray
from surveyor.estimate.sampling.walk_trace import WalkTrace


@dataclass(frozen=True)
class Web:
    """Undirected connected graph in CSR form."""

    indptr: IntArray
    neighbours: IntArray
    community: IntArray

    @property
    def degree(self) -> FloatArray:
        return np.diff(self.indptr).astype(np.float64)

    @property
    def pages(self) -> int:
        return self.indptr.size - 1


def communities(rng: np.random.Generator, pages: int = 2000, parts: int = 4, inside: float = 0.85) -> Web:
    """Return a web with heavy-tailed degrees and mostly intra-community links."""
    part = np.arange(pages) % parts
    desired = np.minimum(4 * rng.pareto(2.2, pages) + 3, pages / 10)
    one = np.concatenate([np.arange(pages), rng.choice(pages, int(desired.sum() / 2), p=desired / desired.sum())])
    other = rng.choice(pages, one.size, p=desired / desired.sum())
    for number in range(parts):
        members = np.flatnonzero(part == number)
        stays = (rng.random(one.size) < inside) & (part[one] == number)
        other[stays] = rng.choice(members, int(stays.sum()), p=desired[members] / desired[members].sum())
    # A ring through all pages makes the web connected.
    one, other = np.concatenate([one, np.arange(pages)]), np.concatenate([other, (np.arange(pages) + parts) % pages])
    one, other = one[one != other], other[one != other]
    key = np.unique(np.concatenate([one * pages + other, other * pages + one]))
    return Web(np.searchsorted(key // pages, np.arange(pages + 1)), key % pages, part)


def walked(web: Web, starts: IntArray, steps: int, rng: np.random.Generator, stay: float = 0.3) -> IntArray:
    """Return the pages of lazy random walks: one row per walk, one column per step."""
    here = starts.copy()
    pages = np.empty((starts.size, steps), np.int64)
    degrees = np.diff(web.indptr)
    for step in range(steps):
        pages[:, step] = here
        drawn = web.neighbours[web.indptr[here] + (rng.random(here.size) * degrees[here]).astype(np.int64)]
        here = np.where(rng.random(here.size) < stay, here, drawn)
    return pages


def trail_of(pages: npt.NDArray[np.int64], degree: FloatArray, on_topic: BoolArray | None = None) -> WalkTrace:
    """Return the trace of walks that step in turn; degree and topic are indexed by page."""
    page = pages.T.ravel().astype(np.int32)
    walk = np.tile(np.arange(pages.shape[0], dtype=np.int32), pages.shape[1])
    topic = np.ones(page.size, np.bool_) if on_topic is None else on_topic[page]
    return WalkTrace(walk, np.zeros_like(walk), page, topic, degree[page], np.arange(page.size))


def many_trails(web: Web, runs: int, walks: int, steps: int, rng: np.random.Generator) -> list[WalkTrace]:
    """Return traces of independent samples that begin at pages drawn uniformly."""
    pages = walked(web, rng.integers(0, web.pages, runs * walks), steps, rng)
    return [trail_of(some, web.degree) for some in pages.reshape(runs, walks, steps)]
