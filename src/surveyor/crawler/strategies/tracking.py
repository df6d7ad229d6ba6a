"""Push tracking: maintain importance estimates on a changing web by refetching important pages.

The ledger holds the links as last seen. When a page is fetched again and has changed, all mass that it ever pushed is
withdrawn and pushed over its new links; the difference is propagated, and the estimate is that of the web as last
seen, up to the ledger's precision. The remaining error is that of pages that changed since they were fetched. If all
pages change equally often, the error is smallest when a page of importance x is fetched in proportion to √x (the closed
form of `revisits.py` for small change rates), so each fetched page is due again after 1/√x fetches, scaled so that
one page is due per fetch. Pages not yet fetched come first, by their waiting mass.

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


LEAST = 1e-12  # importance below which pages are fetched equally often


def pace(ledger: Ledger) -> float:
    """Return the interval in fetches between visits to a page of importance 1, if one page is due per fetch."""
    return float(np.sqrt(ledger.importance()).sum())


class Tracking:
    """Waiting pages by mass, then revisits by due time."""

    name = "tracking"
    rereads = True

    def begin(self, ledger: Ledger, graph: GrowingGraph, rng: np.random.Generator) -> Reorder:  # noqa: ARG002
        """Rank the waiting pages by mass."""
        self._ledger, self._fetches, self._pace = ledger, 0, pace(ledger)
        self._every = max(100, ledger.known // 10)  # fetches between updates of the pace
        return Reorder(ledger.waiting, ledger.residual[ledger.waiting])

    def observe(self, outcome: Outcome, old_links: IdArray) -> Reorder:  # noqa: ARG002
        """Schedule the next visit to the page, and update pages whose mass changed."""
        self._fetches += 1
        pages = self._ledger.touched
        priorities = self._ledger.residual[pages]
        if outcome.kind == "fetched":
            due = self._fetches + self._pace / math.sqrt(max(self._ledger.importance_of(outcome.page), LEAST))
            pages, priorities = np.append(pages, np.int32(outcome.page)), np.append(priorities, -due)
        if self._fetches % self._every == 0:
            self._pace, self._every = pace(self._ledger), max(100, self._ledger.known // 10)
        return Reorder(pages, priorities)

    def importance(self) -> FloatArray:
        """Return the ledger's estimate."""
        return self._ledger.importance()
