"""Random webs with communities, and lazy random walks over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surveyor.arrays import BoolArray, FloatArray, IntArray
from surveyor.estimate.sampling.walk_trace import WalkTrace


@dataclass(frozen=True)
class Web:
    """An undirected connected graph as neighbour lists."""

    indptr: IntArray
    neighbours: IntArray
    community: IntArray

    @property
    def degree(self) -> FloatArray:
        return np.diff(self.indptr).astype(np.float64)

    @property
    def pages(self) -> int:
        return self.indptr.size - 1


def communities(rng: np.random.Generator, pages: int = 2000, count: int = 4, inside: float = 0.85) -> Web:
    """Return a web with heavy-tailed degrees and mostly links within communities."""
    community = np.arange(pages) % count
    popularity = np.minimum(4 * rng.pareto(2.2, pages) + 3, pages / 10)
    source = np.concatenate(
        [np.arange(pages), rng.choice(pages, int(popularity.sum() / 2), p=popularity / popularity.sum())]
    )
    target = rng.choice(pages, source.size, p=popularity / popularity.sum())
    for number in range(count):
        members = np.flatnonzero(community == number)
        internal = (rng.random(source.size) < inside) & (community[source] == number)
        target[internal] = rng.choice(members, int(internal.sum()), p=popularity[members] / popularity[members].sum())
    # A ring through all pages connects the web.
    source, target = (
        np.concatenate([source, np.arange(pages)]),
        np.concatenate([target, (np.arange(pages) + count) % pages]),
    )
    source, target = source[source != target], target[source != target]
    key = np.unique(np.concatenate([source * pages + target, target * pages + source]))
    return Web(np.searchsorted(key // pages, np.arange(pages + 1)), key % pages, community)


def lazy_walks(web: Web, starts: IntArray, steps: int, rng: np.random.Generator, stay: float = 0.3) -> IntArray:
    """Return the pages of lazy random walks: one row per walk, one column per step."""
    current = starts.copy()
    pages = np.empty((starts.size, steps), np.int64)
    degrees = np.diff(web.indptr)
    for step in range(steps):
        pages[:, step] = current
        drawn = web.neighbours[web.indptr[current] + (rng.random(current.size) * degrees[current]).astype(np.int64)]
        current = np.where(rng.random(current.size) < stay, current, drawn)
    return pages


def trace_of(pages: npt.NDArray[np.int64], degree: FloatArray, on_topic: BoolArray | None = None) -> WalkTrace:
    """Return the trace of walks that take turns; degree and topic are by page."""
    page = pages.T.ravel().astype(np.int32)
    walk = np.tile(np.arange(pages.shape[0], dtype=np.int32), pages.shape[1])
    topic = np.ones(page.size, np.bool_) if on_topic is None else on_topic[page]
    return WalkTrace(walk, np.zeros_like(walk), page, topic, degree[page], np.arange(page.size))


def many_traces(web: Web, runs: int, walks: int, steps: int, rng: np.random.Generator) -> list[WalkTrace]:
    """Return traces of independent samples from uniformly drawn start pages."""
    pages = lazy_walks(web, rng.integers(0, web.pages, runs * walks), steps, rng)
    return [trace_of(sample, web.degree) for sample in pages.reshape(runs, walks, steps)]
