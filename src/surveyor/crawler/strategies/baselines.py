"""Baseline orders: breadth first, most in-links, PageRank of the known graph, and random.

**Breadth first.** All pages within L − 1 links of the trusted seeds hold at least 1 − damping^L of all importance,
because a random surfer follows fewer than L links with that probability (Cho and Schonfeld, theorem 1). So
`levels_needed` returns the depth that guarantees a share before the crawl starts; limited to L levels, the order is
L-Neighbor. The bound is loose: the ledger proves the same or more, sooner.

**PageRank order** (Cho, Garcia-Molina and Page, WWW7 1998). The known graph is ranked again when it has grown by a
tenth; in between, a fetched page distributes its rank to the pages it links to, so that new pages have a rank. All
rankings together cost a constant number of passes over the final graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surveyor.crawler.strategies.strategy import NOTHING, Reorder
from surveyor.errors import UsageError
from surveyor.rank.pagerank import pagerank

if TYPE_CHECKING:
    from surveyor.arrays import FloatArray, IdArray
    from surveyor.crawler.ledger import Ledger
    from surveyor.graph.growing import GrowingGraph
    from surveyor.outcome import Outcome


def levels_needed(share: float, damping: float = 0.85) -> int:
    """Return the number of levels, the seeds being the first, that are guaranteed to hold this share.

    >>> levels_needed(0.9)
    15
    """
    levels = 0
    while damping**levels > 1 - share:
        levels += 1
    return levels


class Breadth:
    """Nearest to the seeds first, down to `levels` levels."""

    def __init__(self, levels: int | None = None) -> None:
        if levels is not None and (levels < 1 or int(levels) != levels):
            raise UsageError(f"levels must be an integer of at least 1, got {levels}", hint="level 1 are the seeds")
        self.levels = levels
        self.name = "breadth" if levels is None else f"breadth:{levels}"

    def begin(self, ledger: Ledger, graph: GrowingGraph, rng: np.random.Generator) -> Reorder:  # noqa: ARG002
        """Start with the seeds."""
        self._ledger = ledger
        self._depth = np.full(ledger.capacity, -1, np.int32)
        self._depth[ledger.seeds] = 0
        return Reorder(ledger.seeds, np.zeros(ledger.seeds.size))

    def observe(self, outcome: Outcome, old_links: IdArray) -> Reorder:  # noqa: ARG002
        """Put newly discovered pages one level below the page that links to them."""
        if self._depth.size < self._ledger.capacity:
            self._depth = np.append(self._depth, np.full(self._ledger.capacity - self._depth.size, -1, np.int32))
        links = (
            outcome.links if outcome.kind == "fetched" else np.array([outcome.target], np.int32)[: outcome.target + 1]
        )
        new = links[self._depth[links] < 0]
        depth = self._depth[outcome.page] + 1
        self._depth[new] = depth
        if self.levels is not None and depth >= self.levels:
            return NOTHING
        return Reorder(new, np.full(new.size, -float(depth)))


FIRST = 1 << 40  # initial count of seeds: they are fetched before all others


class Outlinks:
    """Most links from fetched pages first."""

    name = "outlinks"

    def begin(self, ledger: Ledger, graph: GrowingGraph, rng: np.random.Generator) -> Reorder:  # noqa: ARG002
        """Start with the seeds."""
        self._ledger = ledger
        self._links = np.zeros(ledger.capacity, np.int64)
        self._links[ledger.seeds] = FIRST
        return Reorder(ledger.seeds, self._links[ledger.seeds].astype(np.float64))

    def observe(self, outcome: Outcome, old_links: IdArray) -> Reorder:
        """Count the links of a page, replacing its old links."""
        if outcome.kind == "blocked":
            return Reorder()
        if self._links.size < self._ledger.capacity:
            self._links = np.append(self._links, np.zeros(self._ledger.capacity - self._links.size, np.int64))
        self._links[old_links] -= 1
        self._links[outcome.links] += 1
        pages = np.concatenate([old_links, outcome.links])
        if outcome.kind == "redirected":  # links to it count for its target
            pages = np.append(pages, np.int32(outcome.target))
            self._links[outcome.target] += self._links[outcome.page]
        return Reorder(pages, self._links[pages].astype(np.float64))


GROWTH = 1.1  # growth of the fetched pages between two rankings
TOLERANCE = 1e-3


class Cho:
    """Highest PageRank in the graph known so far first, with uniform teleport to the known pages."""

    name = "cho"

    def begin(self, ledger: Ledger, graph: GrowingGraph, rng: np.random.Generator) -> Reorder:  # noqa: ARG002
        """Start with the seeds."""
        self._ledger, self._graph, self._again = ledger, graph, 2.0
        self._rank: FloatArray = np.zeros(ledger.capacity)
        return Reorder(ledger.seeds, np.full(ledger.seeds.size, np.inf))

    def observe(self, outcome: Outcome, old_links: IdArray) -> Reorder:  # noqa: ARG002
        """Distribute the rank of the page; periodically rank all pages."""
        if self._graph.read >= self._again:
            return self._rank_all()
        if self._rank.size < self._ledger.capacity:
            self._rank = np.append(self._rank, np.zeros(self._ledger.capacity - self._rank.size))
        links = outcome.links[~np.isin(outcome.links, self._ledger.seeds)]  # seeds come first, whatever their rank
        self._rank[links] += self._ledger.damping * self._rank[outcome.page] / max(outcome.links.size, 1)
        return Reorder(links, self._rank[links])

    def _rank_all(self) -> Reorder:
        from surveyor.kernels.mass import STATUS

        known = (self._ledger.state & STATUS > 0).astype(np.float64)
        graph = self._graph.to_graph(self._ledger.capacity)
        self._rank = pagerank(graph, self._ledger.damping, TOLERANCE, known / known.sum()).scores.copy()
        self._again = GROWTH * self._graph.read
        waiting = self._ledger.waiting
        return Reorder(waiting, np.where(np.isin(waiting, self._ledger.seeds), np.inf, self._rank[waiting]))


class Random:
    """Waiting pages in uniformly random order."""

    name = "random"

    def begin(self, ledger: Ledger, graph: GrowingGraph, rng: np.random.Generator) -> Reorder:  # noqa: ARG002
        """Draw the random seed."""
        self._ledger = ledger
        self.seed = rng.integers(2**63, dtype=np.uint64)
        return self._rank(ledger.waiting)

    def observe(self, outcome: Outcome, old_links: IdArray) -> Reorder:  # noqa: ARG002
        """Draw priorities for newly discovered pages; those of known pages do not change."""
        return self._rank(self._ledger.touched)

    def _rank(self, pages: IdArray) -> Reorder:
        from surveyor.kernels.hash_random import random_units_of_pages

        priorities = np.empty(pages.size)
        random_units_of_pages(np.uint64(self.seed), pages, priorities)
        return Reorder(pages, priorities)
