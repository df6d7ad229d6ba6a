"""A strategy for looking at a survey whose own strategy is somebody's code: it chooses nothing.

What was read, and in which order, is in the journal. Coverage needs only how the ledger pushes mass on, and that is
kept in the manifest as numbers. So whoever looks at a survey need not run its code.
"""

from __future__ import annotations

from surveyor.arrays import IdArray
from surveyor.crawler.strategies.strategy import NOTHING, Reorder
from surveyor.outcome import Outcome


class Neutral:
    """Follow a journal; name no pages."""

    name = "neutral"

    def __init__(self, *, closure: float = 0.1, eager: bool = True, rereads: bool = False) -> None:
        self.closure, self.eager, self.rereads = closure, eager, rereads

    def observe(self, outcome: Outcome, old_links: IdArray) -> Reorder:  # noqa: ARG002
        """Choose nothing."""
        return NOTHING


def needs_of(strategy: object) -> dict[str, float | bool]:
    """Return what a replay without the code of a strategy needs to know of it."""
    return {
        "closure": float(getattr(strategy, "closure", 0.1)),
        "eager": bool(getattr(strategy, "eager", True)),
        "rereads": bool(getattr(strategy, "rereads", False)),
    }
