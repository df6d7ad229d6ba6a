"""PageRank ordering: fetch the page with the highest PageRank in the graph known so far.

Cho, Garcia-Molina and Page, WWW7 1998. The known graph is ranked again when it has grown by a tenth; in between, a
fetched page distributes its rank to the pages it links to, so that new pages have a rank. All rankings together cost a
constant number of passes over the final graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surveyor.crawler.strategies.strategy import Reorder
from surveyor.rank.pagerank import pagerank

if TYPE_CHECKING:
    from surveyor.arrays import FloatArray, IdArray
    from surveyor.crawler.ledger import Ledger
    from surveyor.graph.growing import GrowingGraph
    from surveyor.outcome import Outcome

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
