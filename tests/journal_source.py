"""A survey plays the web: every page answers as it did when it was last asked.

So another strategy can be tried on a crawl that was made, or a crawl be followed again, without asking anybody.
Pages that were never asked for may not be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from surveyor.crawler.sources.graph import Instant
from surveyor.outcome import Outcome


class JournalSource(Instant):
    """Answers with the outcomes of a journal; `last_visit` returns the latest one of a page."""

    def __init__(self, last_visit: Callable[[int], Outcome | None]) -> None:
        self._last_visit = last_visit

    def answers(self, pages: list[int]) -> Iterator[Outcome]:
        """Answer for each page in turn."""
        for page in pages:
            yield self._last_visit(page) or Outcome(page, "blocked", reason="not in the survey")
