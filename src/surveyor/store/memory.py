"""A journal in memory, for simulations and tests."""

from __future__ import annotations

from collections.abc import Sequence

from surveyor.outcome import Outcome


class MemoryJournal:
    """Keeps outcomes in a list, in the order in which they were committed."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    def commit(self, outcomes: Sequence[Outcome]) -> None:
        """Keep outcomes."""
        self.outcomes.extend(outcomes)
