"""Interface between a strategy and the crawl.

A strategy is a state machine over page ids. After every outcome it returns the priorities that changed; it never
queues, waits or fetches. The frontier fetches the page of highest priority first (ties: the smaller id), among
the pages that may be requested now. Priorities of pages already fetched are ignored, except by a crawl that
fetches pages repeatedly.

Only `observe` is required. Optional members:

- `begin(ledger, graph, rng) -> Reorder`: called once, before the first page. The ledger has the mass waiting on
  each page, the graph the links of fetched pages, `rng` is the only source of randomness. The seeds are waiting
  already. Without `begin`, seeds are fetched first.
- `closure` and `eager`: how the ledger pushes mass that reaches pages already fetched (see `ledger.py`).
- `rereads`: whether fetched pages are fetched again: `True`, `False` or `"limited"`, which is true if the stopping rule
  limits requests or time and has no coverage goal.
- `lasting = False`: its state is not saved in checkpoints; resuming replays the journal.
- `importance() -> FloatArray`: the strategy's own estimate of the importance of each page, summing to 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from surveyor.arrays import FloatArray, IdArray, read_only
from surveyor.outcome import NO_LINKS, Outcome
from surveyor.stopping import Rule, as_rule, is_limit

if TYPE_CHECKING:
    from surveyor.crawler.ledger import Ledger
    from surveyor.graph.growing import GrowingGraph


@dataclass(frozen=True, slots=True, eq=False)
class Reorder:
    """Pages whose priority changed, and their new priorities."""

    pages: IdArray = field(default_factory=lambda: NO_LINKS)
    priorities: FloatArray = field(default_factory=lambda: NO_CHANGE)


NO_CHANGE: FloatArray = read_only(np.empty(0, np.float64))
NOTHING = Reorder()


class Strategy(Protocol):
    """The method that every strategy has."""

    def observe(self, outcome: Outcome, old_links: IdArray) -> Reorder:
        """Process the outcome of a page (and its previous links); return the priorities that changed."""


def begin(strategy: Strategy, ledger: Ledger, graph: GrowingGraph, rng: np.random.Generator) -> Reorder:
    """Start a strategy; one without `begin` fetches the seeds first."""
    if hasattr(strategy, "begin"):
        first: Reorder = strategy.begin(ledger, graph, rng)
        return first
    return Reorder(ledger.seeds, np.full(ledger.seeds.size, np.inf))


def rereads(strategy: Strategy, until: Rule | str) -> bool:
    """Return whether a strategy fetches pages repeatedly under a stopping rule."""
    repeats = getattr(strategy, "rereads", False)
    return is_limit(as_rule(until)) if repeats == "limited" else bool(repeats)


def name_of(strategy: Strategy) -> str:
    """Return the name of a strategy for tables."""
    return str(getattr(strategy, "name", type(strategy).__name__))


class ReplayStrategy:
    """Placeholder for the user-defined strategy of a stored survey: it sets no priorities.

    The fetched pages and their order are in the journal. Coverage only needs the parameters with which the ledger
    pushes mass, which are recorded in the manifest. So a survey can be read without running user code.
    """

    name = "replay"

    def __init__(self, *, closure: float = 0.1, eager: bool = True, rereads: bool = False) -> None:
        self.closure, self.eager, self.rereads = closure, eager, rereads

    def observe(self, outcome: Outcome, old_links: IdArray) -> Reorder:  # noqa: ARG002
        """Return no changes."""
        return NOTHING


def replay_parameters(strategy: object) -> dict[str, float | bool]:
    """Return the parameters of a strategy that a replay without its code needs."""
    return {
        "closure": float(getattr(strategy, "closure", 0.1)),
        "eager": bool(getattr(strategy, "eager", True)),
        "rereads": bool(getattr(strategy, "rereads", False)),
    }
