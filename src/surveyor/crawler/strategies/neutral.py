"""Placeholder strategy for reading a survey whose own strategy is user-defined code: it selects no pages.

The pages read and their order are in the journal. Coverage only needs the parameters with which the ledger pushes
mass, and they are recorded in the manifest. So a survey can be read without running its code.
"""

from __future__ import annotations

from surveyor.arrays import IdArray
from surveyor.crawler.strategies.strategy import NOTHING, Reorder
from surveyor.outcome import Outcome


class Neutral:
    """Strategy for replays that sets no priorities."""

    name = "neutral"

    def __init__(self, *, closure: float = 0.1, eager: bool = True, rereads: bool = False) -> None:
        self.closure, self.eager, self.rereads = closure, eager, rereads

    def observe(self, outcome: Outcome, old_links: IdArray) -> Reorder:  # noqa: ARG002
        """Return no changes."""
        return NOTHING


def needs_of(strategy: object) -> dict[str, float | bool]:
    """Return the parameters of a strategy that a replay without its code needs."""
    return {
        "closure": float(getattr(strategy, "closure", 0.1)),
        "eager": bool(getattr(strategy, "eager", True)),
        "rereads": bool(getattr(strategy, "rereads", False)),
    }
