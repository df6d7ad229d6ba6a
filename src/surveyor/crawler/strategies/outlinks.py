"""Outlink count: fetch the page with most in-links from the pages fetched so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surveyor.crawler.strategies.strategy import Reorder

if TYPE_CHECKING:
    from surveyor.arrays import IdArray
    from surveyor.crawler.ledger import Ledger
    from surveyor.graph.growing import GrowingGraph
    from surveyor.outcome import Outcome


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
