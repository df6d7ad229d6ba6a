"""Windowed RankMass: in each round fetch the top part of the frontier, then update all masses at once.

A round updates masses in one pass over the links, which suits links on disk and fetching in batches; a smaller window
is greedier. Cho and Schonfeld sweep once over all fetched pages after each round (`sweep`); closure pushes until little
mass is left on them (`windowed`), and needs far fewer fetches for the same guarantee.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surveyor.crawler.strategies.strategy import NOTHING, Reorder
from surveyor.errors import check_range

if TYPE_CHECKING:
    from surveyor.arrays import BoolArray, IdArray
    from surveyor.crawler.ledger import Ledger
    from surveyor.graph.growing import GrowingGraph
    from surveyor.outcome import Outcome


class Windowed:
    """The best `window` share of the waiting pages per round."""

    eager = False
    sweeps = False
    kind = "windowed"

    def __init__(self, window: float = 0.1, *, closure: float = 0.1) -> None:
        """Fetch this share of the frontier per round, then push to closure."""
        check_range("window", window, "(0, 1]", hint="give a share of the frontier")
        self.window, self.closure = window, closure
        self.name = f"{self.kind}:{window:g}"
        self.rounds = 0

    def begin(self, ledger: Ledger, graph: GrowingGraph, rng: np.random.Generator) -> Reorder:  # noqa: ARG002
        """Fetch the seeds in the first round."""
        self._ledger, self._left = ledger, 0
        self._in_round: BoolArray = np.zeros(ledger.capacity, np.bool_)
        return self._round()

    def observe(self, outcome: Outcome, old_links: IdArray) -> Reorder:  # noqa: ARG002
        """Start the next round at the end of this one."""
        if outcome.page >= self._in_round.size or not self._in_round[outcome.page]:
            return NOTHING  # fetched for another reason, such as a random walk
        self._in_round[outcome.page] = False
        self._left -= 1
        return NOTHING if self._left > 0 else self._next()

    def _next(self) -> Reorder:
        self.update(self._ledger)
        return self._round()

    def update(self, ledger: Ledger) -> None:
        """Push the mass of the fetched pages."""
        if self.sweeps:
            ledger.sweep()
        else:
            ledger.close()
        self.rounds += 1

    def choose(self, ledger: Ledger) -> IdArray:
        """Return the pages of the next round, best first."""
        waiting = ledger.waiting
        mass = ledger.residual[waiting]
        count = max(1, int(np.ceil(self.window * np.count_nonzero(mass > 0)))) if waiting.size else 0
        if count < waiting.size:
            edge = np.partition(mass, -count)[-count]
            waiting, mass = waiting[mass >= edge], mass[mass >= edge]
        return waiting[np.lexsort((waiting, -mass))[:count]]

    def _round(self) -> Reorder:
        pages = self.choose(self._ledger)
        self._left = pages.size
        if self._in_round.size < self._ledger.capacity:
            self._in_round = np.zeros(self._ledger.capacity, np.bool_)
        self._in_round[pages] = True
        return Reorder(pages, self._ledger.residual[pages])


class Sweep(Windowed):
    """Windowed RankMass as printed: after each round, one sweep over the fetched pages, in the order of their ids."""

    sweeps = True
    kind = "sweep"
