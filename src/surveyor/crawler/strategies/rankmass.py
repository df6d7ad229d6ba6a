"""RankMass: read the page on which most mass waits.

The mass that waits on a page is a lower bound of what it will add to the coverage, up to the factor 1 − damping,
so this is the greedy order; Cho and Schonfeld, VLDB 2007. The guarantee comes from the ledger. With closure 1
the ledger pushes a page already read only when it holds more than any page that waits, as in the paper; with
the default of 0.1 it pushes ten times deeper, which needs no download and saves a fifth of the reads.
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
        """Rank what waits."""
        self._ledger = ledger
        return Reorder(ledger.waiting, ledger.residual[ledger.waiting])

    def observe(self, outcome: Outcome, old_links: IdArray) -> Reorder:  # noqa: ARG002
        """Rank again the pages whose mass changed."""
        pages = self._ledger.touched
        return Reorder(pages, self._ledger.residual[pages])
