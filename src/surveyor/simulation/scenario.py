"""The web of a simulation: a known graph, the seeds, and the pages that are gone, blocked or limited by budgets.

Truth is defined as in `ledger.py`: pages gone have no links, blocked pages keep theirs. True importance is
PageRank of that graph with jumps to the seeds, with its own proven error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surveyor.arrays import BoolArray, ByteArray, FloatArray, IdArray, IntArray
from surveyor.crawler.frontier import Budgets
from surveyor.crawler.ledger import check_damping
from surveyor.errors import InputError, UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.names import Names
from surveyor.rank.pagerank import Ranking, SolverOptions, pagerank
from surveyor.stopping import ProgressCallback, silent

SEEDS = 10  # default number of seeds: pages of highest PageRank
TOLERANCE = 1e-7  # L1 error of true importance


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """The simulated web, hidden from strategies."""

    graph: Graph
    seeds: IdArray
    damping: float
    fates: ByteArray  # status per page: 0 readable, 1 gone, 2 blocked
    budgets: Budgets | None = None
    notes: tuple[str, ...] = ()

    def truth(self, graph: Graph | None = None, progress: ProgressCallback = silent) -> Ranking:
        """Return the true importance of each page, of this web or of a changed version of it."""
        graph = graph or self.graph
        gone = np.zeros(graph.pages, np.bool_)
        gone[: self.fates.size] = self.fates == 1  # pages added since are readable
        graph = _without_links(graph, gone)
        trusted = np.zeros(graph.pages)
        trusted[self.seeds] = 1 / self.seeds.size
        return pagerank(graph, self.damping, TOLERANCE, trusted, options=SolverOptions(progress=progress))


def set_up(
    graph: Graph,
    seeds: Sequence[int | str] | IdArray | BoolArray | None,
    *,
    damping: float,
    dead: float | BoolArray,
    blocked: str | Sequence[str | int] | BoolArray,
    budget: int | IntArray | None,
    domains: IntArray | None,
    rng: np.random.Generator,
) -> Scenario:
    """Check the options and draw the random parts of a scenario."""
    check_damping(damping)
    if graph.pages == 0:
        raise InputError("there is nothing to crawl: the graph has no pages", hint="check what was built")
    notes = []
    if seeds is None:
        trusted = pagerank(graph, tolerance=1e-4).top(SEEDS).astype(np.int32)
        notes.append(f"seeds: the {trusted.size} pages of highest PageRank")
    elif not len(seeds):
        raise UsageError("there are no seeds", hint="name at least one page to start from")
    else:
        if isinstance(seeds, np.ndarray) and seeds.dtype == np.bool_:
            seeds = np.flatnonzero(_mask(graph, np.asarray(seeds, np.bool_), "seeds")).astype(np.int32)
        trusted = np.unique([_page(graph, seed) for seed in seeds]).astype(np.int32)
    status = np.zeros(graph.pages, np.uint8)
    shut = _shut(graph, blocked)
    status[shut] = 2
    if shut.any():
        notes.append(f"blocked: {int(shut.sum()):,} pages")
    gone = _gone(graph, dead, rng, trusted) & ~shut
    status[gone] = 1
    if gone.any():
        notes.append(f"gone: {int(gone.sum()):,} pages, {int(gone[trusted].sum()) or 'no'} seeds among them")
    budgets = None
    if budget is not None:
        budgets = _budgets(graph, budget, domains)
        pages, site = budgets.limits, "host" if domains is None else "domain"
        limits = f"{pages.min():,}" if pages.min() == pages.max() else f"{pages.min():,} to {pages.max():,}"
        notes.append(f"budget: {limits} pages of each of {pages.size:,} {site}s")
    return Scenario(graph, trusted, damping, status, budgets, tuple(notes))


def hosts(names: Names) -> tuple[IntArray, list[str]]:
    """Return the host number of each page, and the names of the hosts."""
    numbers: dict[str, int] = {}
    of = np.array([numbers.setdefault(host_of(name), len(numbers)) for name in names], np.int64)
    return of, list(numbers)


def host_of(name: str) -> str:
    """Return the host of a URL with or without a scheme.

    >>> host_of("https://example.org/a/b"), host_of("example.org/a")
    ('example.org', 'example.org')
    """
    return name.split("://", 1)[-1].split("/", 1)[0]


def _page(graph: Graph, seed: Any) -> int:
    if isinstance(seed, str):
        return graph.page(seed)
    if not isinstance(seed, int | np.integer) or not 0 <= seed < graph.pages:
        raise UsageError(f"no page {seed}: ids go from 0 to {graph.pages - 1}", hint="name a page of the graph")
    return int(seed)


def _gone(graph: Graph, dead: float | BoolArray, rng: np.random.Generator, seeds: IdArray) -> BoolArray:
    if isinstance(dead, np.ndarray):
        return _mask(graph, dead, "dead")
    if not isinstance(dead, int | float) or not 0 <= dead < 1:
        raise UsageError(f"the share of dead pages is {dead}", hint="give a share from 0 up to, not including, 1")
    gone = rng.random(graph.pages) < dead
    gone[seeds] = False  # a crawl needs readable seeds
    return gone


def _shut(graph: Graph, blocked: str | Sequence[str | int] | BoolArray) -> BoolArray:
    if isinstance(blocked, np.ndarray):
        return _mask(graph, blocked, "blocked")
    shut = np.zeros(graph.pages, np.bool_)
    if not len(blocked):
        return shut
    words = [blocked] if isinstance(blocked, str) else list(blocked)
    of, found = (None, []) if graph.names is None else hosts(graph.names)
    for word in words:
        if of is not None and word in found:
            shut |= of == found.index(word)
        elif graph.names is not None and isinstance(word, str) and graph.names.find(word) is None:
            raise UsageError(f"no host and no page {word!r} to block", hint="hosts are as in the names of pages")
        else:
            shut[_page(graph, word)] = True
    return shut


def _mask(graph: Graph, given: BoolArray, what: str) -> BoolArray:
    if given.shape != (graph.pages,) or given.dtype != np.bool_:
        raise UsageError(f"`{what}` must be one truth value per page", hint="see the reference of simulate")
    return given


def _budgets(graph: Graph, budget: int | IntArray, domains: IntArray | None) -> Budgets:
    if domains is None:
        if graph.names is None:
            raise UsageError("budgets need domains, and the graph has no names", hint="give `domains`, one per page")
        domains = hosts(graph.names)[0]
    domains = np.asarray(domains, np.int64)
    if domains.shape != (graph.pages,):
        raise UsageError(f"{domains.size:,} domains for {graph.pages:,} pages", hint="give one domain per page")
    limits = np.asarray(budget, np.int64)
    if limits.ndim == 0:
        limits = np.full(int(domains.max(initial=-1)) + 1, int(limits))
    if (limits < 1).any():
        raise UsageError("a budget is below 1 page", hint="give each domain at least one page")
    return Budgets(domains, limits)


def _without_links(graph: Graph, gone: BoolArray) -> Graph:
    if not gone.any():
        return graph
    degrees = graph.out_degrees
    kept = np.repeat(~gone, degrees)
    indptr = np.concatenate([[0], np.cumsum(np.where(gone, 0, degrees))])
    return Graph(indptr, graph.indices[kept])


def best_order(truth: FloatArray, status: ByteArray) -> FloatArray:
    """Return the true coverage of the best k readable pages, for each k from 1."""
    best: FloatArray = np.cumsum(np.sort(truth[status == 0])[::-1])
    return best
