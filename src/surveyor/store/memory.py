"""A journal in memory, for simulations and tests."""

from __future__ import annotations

from surveyor.outcome import News, Outcome


class MemoryJournal:
    """A list of outcomes in commit order."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    def commit(self, news: News) -> None:
        """Append outcomes."""
        self.outcomes.extend(news.outcomes)
