"""A known graph in the place of the web: each requested page answers at once with its links.

`GraphSource` never changes. `ChangingSource` applies a step of a `ChangingWeb` (an *epoch*) each time a tenth as many
pages were fetched as it has.

In one epoch some pages die: their rows become empty, while links to them stay until the linking pages change. Some
pages get new links, as many as before. Some are new, with the links of some other page, and replace the target of two
links of others. Rows have no repeats and no self-links. New links are copies: a link to a near page (less than 1,000
ids away, in most webs on the same site) is replaced by a near link of a near page, any other link by a far link of any
page, and never by one to a dead page. So the web keeps its shape: in- and out-degrees, sites, and the convergence rate
of PageRank. (Copies of arbitrary links would make it an expander within a few epochs, which is easier for all methods.)

    >>> graph = Graph.from_edges([("a", "b"), ("b", "c"), ("c", "a"), ("c", "b")])
    >>> web = ChangingWeb(graph, np.random.default_rng(7), changed=0.5)
    >>> web.step()
    array([1, 2], dtype=int32)
    >>> web.graph().out_degrees
    array([1, 1, 2])

The changes depend only on the graph and the generator. An epoch takes time linear in the pages and the changed links.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from surveyor.arrays import BoolArray, ByteArray, IdArray, IntArray
from surveyor.crawler.queues import Batch
from surveyor.errors import UsageError
from surveyor.graph.csr import Graph
from surveyor.outcome import FetchResults, Outcome

if TYPE_CHECKING:
    from surveyor.kernels.mass import Rows

STEPS = 10  # in which the changes of an epoch come


class Instant(ABC):
    """A source that responds at once."""

    in_progress = pending = held = 0

    def start(self, batch: Batch) -> None:
        """Yield an outcome for each page."""
        self._results = FetchResults(list(self.answers(batch.pages)))

    async def results(self, until: float) -> FetchResults:  # noqa: ARG002  # nothing is waited for
        """Return the outcomes."""
        return self._results

    @abstractmethod
    def answers(self, pages: list[int]) -> Iterator[Outcome]:
        """Yield an outcome for each page."""


class GraphSource(Instant):
    """Serves the pages of a graph; `outcomes` marks pages that are gone (1) or blocked (2)."""

    def __init__(self, graph: Graph, outcomes: ByteArray | None = None) -> None:
        self._graph, self._outcomes = graph, outcomes

    def answers(self, pages: list[int]) -> Iterator[Outcome]:
        """Yield an outcome for each page."""
        for page in pages:
            kind = 0 if self._outcomes is None else self._outcomes[page]
            if kind == 0:
                yield Outcome(page, "fetched", self._graph.links_of(page))
            elif kind == 1:
                yield Outcome(page, "gone")
            else:
                yield Outcome(page, "blocked", reason="robots")


class ChangingSource(Instant):
    """Serves the current pages of a changing web; `changed` is called after each of its steps."""

    def __init__(self, web: ChangingWeb, outcomes: ByteArray, changed: Callable[[], None]) -> None:
        self._web, self._outcomes, self._changed = web, outcomes, changed
        self._reads, self._every = 0, max(1, web.pages // STEPS)

    def answers(self, pages: list[int]) -> Iterator[Outcome]:
        """Yield an outcome for each page."""
        for page in pages:
            kind = self._outcomes[page] if page < self._outcomes.size else 0
            if kind == 2:
                yield Outcome(page, "blocked", reason="robots")
            elif kind == 1 or self._web.dead[page]:
                yield Outcome(page, "gone")
            else:
                yield Outcome(page, "fetched", self._web.links_of(page).copy())
            self._reads += 1
            if self._reads % self._every == 0:
                self._web.step()
                self._changed()


LINKERS = 2  # pages that link to a page that is born
NEAR = 1000  # ids closer than this are near
REACH = 500  # links: how far from a page's own links its new near ones come from, at the first try
TRIES = 30  # to find links that a page does not have yet; then it gets fewer


class ChangingWeb:
    """The current pages and links; page ids never change, and new pages get the next ids."""

    def __init__(
        self,
        graph: Graph,
        rng: np.random.Generator,
        changed: float = 0.02,
        born: float = 0.0,
        died: float = 0.0,
    ) -> None:
        """Set the shares per epoch: changed, of pages with links; born, of all pages; died, of living pages."""
        if min(changed, born, died) < 0 or max(changed, died) > 1:
            raise UsageError(
                f"changed, born and died must be from 0 to 1, got {changed:g}, {born:g} and {died:g}",
                hint="for example changed=0.02",
            )
        self.rng, self.changed, self.born, self.died = rng, changed, born, died
        self._start: IntArray = graph.indptr[:-1].copy()
        self._end: IntArray = graph.indptr[1:].copy()
        self._targets: IdArray = graph.indices.copy()
        self.dead: BoolArray = np.zeros(graph.pages, np.bool_)

    @property
    def pages(self) -> int:
        """Number of pages, dead ones included."""
        return int(self.dead.size)

    @property
    def rows(self) -> Rows:
        """The links as arrays for kernels; valid until the next step."""
        from surveyor.kernels.mass import Rows

        return Rows(self._start, self._end, self._targets)

    def links_of(self, page: int) -> IdArray:
        """Return the current links of a page."""
        return self._targets[self._start[page] : self._end[page]]

    def step(self) -> IdArray:
        """Apply the changes of an epoch; return the pages whose links changed."""
        living = np.flatnonzero(~self.dead)
        dying = self.rng.choice(living, round(self.died * living.size), replace=False)
        emptied = dying[self._end[dying] > self._start[dying]]
        self.dead[dying] = True
        self._end[dying] = self._start[dying]
        linking = np.flatnonzero(self._end > self._start)
        chosen = np.sort(self.rng.choice(linking, round(self.changed * linking.size), replace=False))
        self._rewire(chosen)
        linkers = self._bear(round(self.born * self.pages))
        return np.unique(np.concatenate([emptied, chosen, linkers])).astype(np.int32)

    def graph(self) -> Graph:
        """Return the current graph."""
        sources, where = self._links(np.arange(self.pages))
        return Graph.from_arrays(sources, self._targets[where], self.pages)

    def _links(self, pages: IntArray) -> tuple[IntArray, IntArray]:
        """Return the source and the index of each link of these pages."""
        lengths = (self._end - self._start)[pages]
        first = np.repeat(self._start[pages] - np.cumsum(lengths) + lengths, lengths)
        return np.repeat(pages, lengths), first + np.arange(first.size)

    def _rewire(self, pages: IntArray) -> None:
        """Replace the links of pages, keeping their number."""
        sources, where = self._links(np.arange(self.pages))
        goals = self._targets[where]
        usable, near = ~self.dead[goals], np.abs(goals - sources) < NEAR
        near_by, far = ((sources[kind], goals[kind]) for kind in (usable & near, usable & ~near))
        owners, where = self._links(pages)
        close = np.abs(self._targets[where] - owners) < NEAR
        found = np.empty(0, np.int64)  # owner and target in one number
        for attempt in range(1, TRIES + 1):
            if owners.size == 0:
                break
            targets = np.where(close, self._copies(near_by, owners, attempt * REACH), self._copies(far, owners))
            links = owners * self.pages + targets
            new = np.zeros(links.size, np.bool_)
            new[np.unique(links, return_index=True)[1]] = True
            places = np.minimum(np.searchsorted(found, links), found.size - 1)
            new &= (targets != owners) & ((found[places] != links) if found.size else True)
            found = np.sort(np.concatenate([found, links[new]]), kind="stable")
            owners, close = owners[~new], close[~new]
        self._end[pages] = self._start[pages] + np.bincount(found // self.pages, minlength=self.pages)[pages]
        self._targets[self._links(pages)[1]] = found % self.pages

    def _copies(self, pool: tuple[IntArray, IdArray], owners: IntArray, reach: int | None = None) -> IntArray:
        """Draw a target for each owner from a pool of links, at most `reach` links away; itself if it is empty."""
        sources, goals = pool
        if goals.size == 0:
            return owners
        reach = goals.size if reach is None else min(reach, goals.size)
        places = np.searchsorted(sources, owners) + self.rng.integers(-reach, reach + 1, owners.size)
        return np.asarray(goals[places % goals.size], np.int64)

    def _bear(self, count: int) -> IntArray:
        """Add pages, each with the links of another one; return the pages that link to them."""
        sources, places = self._links(np.arange(self.pages))
        if count == 0 or places.size < LINKERS * count:
            return places[:0]
        models = self.rng.choice(np.flatnonzero(~self.dead), count)
        lengths = (self._end - self._start)[models]
        ends = self._targets.size + np.cumsum(lengths)
        grown = np.concatenate([self._targets, self._targets[self._links(models)[1]]])
        chosen = self.rng.choice(places.size, (LINKERS, count), replace=False)
        chosen[1:] = np.where(sources[chosen[1:]] == sources[chosen[0]], chosen[0], chosen[1:])  # link only once
        grown[places[chosen]] = np.arange(self.pages, self.pages + count)
        self._start, self._end = np.append(self._start, ends - lengths), np.append(self._end, ends)
        self._targets, self.dead = grown, np.append(self.dead, np.zeros(count, np.bool_))
        return sources[chosen].ravel()
