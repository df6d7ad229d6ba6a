"""Random order: the line that every other strategy should be above."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surveyor.crawler.strategies.strategy import Reorder

if TYPE_CHECKING:
    from surveyor.arrays import IdArray
    from surveyor.crawler.ledger import Ledger
    from surveyor.graph.growing import GrowingGraph
    from surveyor.outcome import Outcome


class Random:
    """Any page that waits, with equal chance."""

    name = "random"

    def begin(self, ledger: Ledger, graph: GrowingGraph, rng: np.random.Generator) -> Reorder:  # noqa: ARG002
        """Draw the number that all chances follow from."""
        self._ledger = ledger
        self.seed = rng.integers(2**63, dtype=np.uint64)
        return self._rank(ledger.waiting)

    def observe(self, outcome: Outcome, old_links: IdArray) -> Reorder:  # noqa: ARG002
        """Draw a number for pages just heard of; known pages get the same again."""
        return self._rank(self._ledger.touched)

    def _rank(self, pages: IdArray) -> Reorder:
        from surveyor.kernels.crawl import chances

        priorities = np.empty(pages.size)
        chances(np.uint64(self.seed), pages, priorities)
        return Reorder(pages, priorities)
