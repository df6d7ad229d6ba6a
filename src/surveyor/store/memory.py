"""A journal in memory, for simulations and tests."""

from __future__ import annotations

from surveyor.outcome import FetchResults, Outcome


class MemoryJournal:
    """A list of outcomes in commit order."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    def commit(self, results: FetchResults) -> None:
        """Append outcomes."""
        self.outcomes.extend(results.outcomes)
