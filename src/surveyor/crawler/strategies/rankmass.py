"""RankMass: fetch the page with the most waiting mass; also in rounds, and with revisits on a changing web.

The mass waiting on a page, times 1 − damping, is a lower bound on its contribution to the coverage, so this is the
greedy order; Cho and Schonfeld, VLDB 2007. The guarantee comes from the ledger. With closure 1 the ledger pushes a page
already fetched only if it holds more mass than any waiting page, as in the paper; with the default of 0.1 it pushes ten
times deeper, which needs no download and saves a fifth of the fetches.

**Windowed**: each round fetches the top part of the frontier, then updates all masses in one pass over the links, which
suits links on disk and fetching in batches; a smaller window is greedier. Cho and Schonfeld sweep once over all fetched
pages after each round; closure pushes until little mass is left on them, and needs far fewer fetches for the same
guarantee.

**Push tracking** maintains importance estimates by refetching important pages. The ledger holds the links as last seen.
When a page is fetched again and has changed, all mass that it ever pushed is withdrawn and pushed over its new links;
the difference is propagated, and the estimate is that of the web as last seen, up to the ledger's precision. The
remaining error is that of pages that changed since they were fetched. If all pages change equally often, the error is
smallest when a page of importance x is fetched in proportion to √x (the closed form of `revisits.py` for small change
rates), so each fetched page is due again after 1/√x fetches, scaled so that one page is due per fetch. Pages not yet
fetched come first, by their waiting mass. Ohsaka, Maehara and Kawarabayashi 2015; Zhang, Lofgren and Goel 2016.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from surveyor.crawler.strategies.strategy import NOTHING, Reorder
from surveyor.errors import UsageError

if TYPE_CHECKING:
    from surveyor.arrays import FloatArray, IdArray
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


class Windowed:
    """The best `window` share of the waiting pages per round."""

    eager = False

    def __init__(self, window: float = 0.1, *, sweeps: bool = False, closure: float = 0.1) -> None:
        """Fetch this share of the frontier per round; then sweep once, or push to closure."""
        if not 0 < window <= 1:
            raise UsageError(f"window must be above 0 and up to 1, got {window:g}", hint="give a share of the frontier")
        self.window, self.sweeps, self.closure = window, sweeps, closure
        self.name = f"windowed:{window:g}" + (":sweep" if sweeps else "")
        self.rounds = 0

    def begin(self, ledger: Ledger, graph: GrowingGraph, rng: np.random.Generator) -> Reorder:  # noqa: ARG002
        """Fetch the seeds in the first round."""
        self._ledger, self._left = ledger, 0
        return self._round()

    def observe(self, outcome: Outcome, old_links: IdArray) -> Reorder:  # noqa: ARG002
        """Start the next round at the end of this one."""
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
        return Reorder(pages, self._ledger.residual[pages])


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
