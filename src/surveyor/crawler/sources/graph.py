"""A known graph plays the web: every page that is asked for answers at once with its links.

`GraphSource` never changes; `ChangingSource` lets a `ChangingWeb` go through a tenth of an epoch whenever a tenth
as many pages are read as there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

from surveyor.arrays import ByteArray
from surveyor.crawler.queues import Batch
from surveyor.crawler.sources.changing import ChangingWeb
from surveyor.graph.csr import Graph
from surveyor.outcome import FetchResults, Outcome

STEPS = 10  # in which the changes of an epoch come


class Instant(ABC):
    """A source whose answers are there as soon as they are asked for."""

    under_way = to_begin = held = 0

    def begin(self, batch: Batch) -> None:
        """Answer for each page in turn."""
        self._results = FetchResults(list(self.answers(batch.pages)))

    async def results(self, until: float) -> FetchResults:  # noqa: ARG002  # nothing is waited for
        """Return the answers."""
        return self._results

    @abstractmethod
    def answers(self, pages: list[int]) -> Iterator[Outcome]:
        """Answer for each page in turn."""


class GraphSource(Instant):
    """Serves the pages of a graph; `fates` says which are gone (1) or shut (2)."""

    def __init__(self, graph: Graph, fates: ByteArray | None = None) -> None:
        self._graph, self._fates = graph, fates

    def answers(self, pages: list[int]) -> Iterator[Outcome]:
        """Answer for each page in turn."""
        for page in pages:
            fate = 0 if self._fates is None else self._fates[page]
            if fate == 0:
                yield Outcome(page, "fetched", self._graph.links_of(page))
            elif fate == 1:
                yield Outcome(page, "gone")
            else:
                yield Outcome(page, "blocked", reason="robots")


class ChangingSource(Instant):
    """Serves the pages of a web as it is at the moment; `changed` is called after each of its steps."""

    def __init__(self, web: ChangingWeb, fates: ByteArray, changed: Callable[[], None]) -> None:
        self._web, self._fates, self._changed = web, fates, changed
        self._reads, self._every = 0, max(1, web.pages // STEPS)

    def answers(self, pages: list[int]) -> Iterator[Outcome]:
        """Answer for each page in turn."""
        for page in pages:
            fate = self._fates[page] if page < self._fates.size else 0
            if fate == 2:
                yield Outcome(page, "blocked", reason="robots")
            elif fate == 1 or self._web.dead[page]:
                yield Outcome(page, "gone")
            else:
                yield Outcome(page, "fetched", self._web.links_of(page).copy())
            self._reads += 1
            if self._reads % self._every == 0:
                self._web.step()
                self._changed()
