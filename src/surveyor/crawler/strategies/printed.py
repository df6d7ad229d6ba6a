"""RankMass as printed: strictly the page with the most mass next, without closure.

Cho and Schonfeld, VLDB 2007. One page is fetched at a time. A fetched page that has the most mass passes it on again;
no other mass moves. `captured` is the sum that the paper calls CRM. Two gaps of the printed algorithm are filled: mass
of pages without links returns to the seeds, and a page counts its links without itself. The coverage of the crawl is
that of its ledger, which pushes further and proves as much with the same pages, or more (up to its precision, 1e-4).

`rankmass` fetches nearly the same pages, several at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surveyor.crawler.strategies.strategy import NOTHING, Reorder

if TYPE_CHECKING:
    from surveyor.arrays import FloatArray, IdArray
    from surveyor.crawler.ledger import Ledger
    from surveyor.graph.growing import GrowingGraph
    from surveyor.kernels.priority_queues import Queue
    from surveyor.outcome import Outcome


class PrintedRankMass:
    """Largest mass of all pages first, as printed."""

    name = "printed"

    def begin(self, ledger: Ledger, graph: GrowingGraph, rng: np.random.Generator) -> Reorder:  # noqa: ARG002
        """Put all mass on the seeds."""
        from surveyor.kernels.printed_rankmass import receive
        from surveyor.kernels.priority_queues import new_queue

        self._ledger, self._graph = ledger, graph
        self._queue: Queue = new_queue(ledger.capacity)
        self._captured: FloatArray = np.zeros(1)
        for seed, share in zip(ledger.seeds.tolist(), ledger.teleport.tolist(), strict=True):
            receive(self._queue, ledger.mass, np.int64(seed), share)
        return self._next()

    def observe(self, outcome: Outcome, old_links: IdArray) -> Reorder:  # noqa: ARG002
        """Pass mass on, up to the next page to fetch."""
        from surveyor.crawler.queues import grown
        from surveyor.kernels.printed_rankmass import drop, receive

        if self._queue.priority.size < self._ledger.capacity:
            self._queue = grown(self._queue, self._ledger.capacity)
        if outcome.kind == "redirected":
            page = np.int64(outcome.page)
            receive(self._queue, self._ledger.mass, page, drop(self._queue, page))
        return self._next()

    @property
    def captured(self) -> float:
        """The mass settled on fetched pages: the lower bound of the coverage as printed."""
        return float(self._captured[0])

    def _next(self) -> Reorder:
        from surveyor.kernels.printed_rankmass import next_page

        ledger = self._ledger
        page = next_page(self._queue, ledger.mass, self._graph.rows, ledger.damping, self._captured)
        if page < 0:
            return NOTHING
        return Reorder(np.array([page], np.int32), np.array([self._queue.priority[page]]))
