"""Random order: the baseline for all other strategies."""

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
