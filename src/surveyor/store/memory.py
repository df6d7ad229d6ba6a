"""A journal in memory, for simulations and tests."""

from __future__ import annotations

from surveyor.outcome import News, Outcome


class MemoryJournal:
    """Keeps outcomes in a list, in the order in which they were committed."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    def commit(self, news: News) -> None:
        """Keep outcomes."""
        self.outcomes.extend(news.outcomes)
