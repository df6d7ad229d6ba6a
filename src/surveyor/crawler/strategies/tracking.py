"""Push tracking: keep every page's importance right on a web that changes, by reading again what matters.

The ledger holds the links as last seen. When a page is read again and has changed, all that it ever handed on is
taken back and handed to its new links; the difference is pushed on, and the estimate is that of the web as last
seen, up to the ledger's precision. What remains is the error of pages that changed since they were read. A page
of importance x that changes as often as others do costs least when it is read in proportion to √x (the closed
form of `revisits.py` for small change rates), so each page read is due again after 1/√x reads, scaled so that
one page is due per read. Pages not yet read come first, by the mass that waits on them.

Ohsaka, Maehara and Kawarabayashi 2015; Zhang, Lofgren and Goel 2016.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from surveyor.crawler.strategies.strategy import Reorder

if TYPE_CHECKING:
    from surveyor.arrays import FloatArray, IdArray
    from surveyor.crawler.ledger import Ledger
    from surveyor.graph.growing import GrowingGraph
    from surveyor.outcome import Outcome


LEAST = 1e-12  # importance below which pages are read alike


def pace(ledger: Ledger) -> float:
    """Return the reads from one visit to the next of a page with all importance, if one page is due per read."""
    return float(np.sqrt(ledger.importance()).sum())


class Tracking:
    """Waiting pages by mass, then pages read when they are due."""

    name = "tracking"
    rereads = True

    def begin(self, ledger: Ledger, graph: GrowingGraph, rng: np.random.Generator) -> Reorder:  # noqa: ARG002
        """Rank what waits."""
        self._ledger, self._reads, self._pace = ledger, 0, pace(ledger)
        self._every = max(100, ledger.known // 10)  # reads after which the pace is set anew
        return Reorder(ledger.waiting, ledger.residual[ledger.waiting])

    def observe(self, outcome: Outcome, old_links: IdArray) -> Reorder:  # noqa: ARG002
        """Say when the page is due again, and rank pages whose mass changed."""
        self._reads += 1
        pages = self._ledger.touched
        priorities = self._ledger.residual[pages]
        if outcome.kind == "read":
            due = self._reads + self._pace / math.sqrt(max(self._ledger.importance_of(outcome.page), LEAST))
            pages, priorities = np.append(pages, np.int32(outcome.page)), np.append(priorities, -due)
        if self._reads % self._every == 0:
            self._pace, self._every = pace(self._ledger), max(100, self._ledger.known // 10)
        return Reorder(pages, priorities)

    def importance(self) -> FloatArray:
        """Return the ledger's estimate."""
        return self._ledger.importance()
