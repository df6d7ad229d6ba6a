"""RankMass: fetch the page with the most waiting mass.

The mass waiting on a page, times 1 − damping, is a lower bound on its contribution to the coverage, so this is the
greedy order; Cho and Schonfeld, VLDB 2007. The guarantee comes from the ledger. With closure 1 the ledger pushes a page
already fetched only if it holds more mass than any waiting page, as in the paper; with the default of 0.1 it pushes ten
times deeper, which needs no download and saves a fifth of the fetches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from surveyor.crawler.strategies.strategy import Reorder

if TYPE_CHECKING:
    import numpy as np

    from surveyor.arrays import IdArray
    from surveyor.crawler.ledger import Ledger
    from surveyor.graph.growing import GrowingGraph
    from surveyor.outcome import Outcome


class RankMass:
    """Largest waiting mass first."""

    def __init__(self, closure: float = 0.1) -> None:
        self.closure = closure
        self.name = "rankmass" if closure == 0.1 else f"rankmass:{closure:g}"

    def begin(self, ledger: Ledger, graph: GrowingGraph, rng: np.random.Generator) -> Reorder:  # noqa: ARG002
        """Rank the waiting pages by mass."""
        self._ledger = ledger
        return Reorder(ledger.waiting, ledger.residual[ledger.waiting])

    def observe(self, outcome: Outcome, old_links: IdArray) -> Reorder:  # noqa: ARG002
        """Update the pages whose mass changed."""
        pages = self._ledger.touched
        return Reorder(pages, self._ledger.residual[pages])
