"""Page statuses without accounts: all that a crawl without a link graph knows of its pages.

`PageStates` takes the place of a ledger. It has the seeds, their weights and the status of each page, one byte per
page, and follows the same outcomes. Without links no mass can be certified: `coverage` returns the trivial bounds, with
all mass waiting. `ForgottenLinks` takes the place of the graph: it keeps no link.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from surveyor.arrays import AnyInt, FloatArray, IdArray
from surveyor.crawler.ledger import CoverageInterval, Ledger, PushOptions
from surveyor.crawler.strategies.opic import LARGE
from surveyor.graph.growing import GrowingGraph
from surveyor.outcome import NO_LINKS, Outcome

UNCERTIFIED = CoverageInterval(0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
Resolve = Callable[[IdArray], IdArray]


class ForgottenLinks(GrowingGraph):
    """A graph that keeps no link."""

    def __init__(self) -> None:
        super().__init__(1, 1)

    def put(self, page: int, links: IdArray) -> IdArray:
        """Forget the links of a page; return no previous ones."""
        self.size = max(self.size, page + 1, int(links.max(initial=-1)) + 1)
        return NO_LINKS

    def has(self, page: int) -> bool:  # noqa: ARG002
        """Return False: no page can be compared with what it was."""
        return False

    def links_of(self, page: int) -> IdArray:  # noqa: ARG002
        """Return no links."""
        return NO_LINKS


class PageStates(Ledger):
    """The status of each page, and the seeds."""

    def __init__(
        self,
        seeds: Sequence[int] | IdArray,
        weights: Sequence[float] | None,
        resolve: Resolve,
        *,
        damping: float,
    ) -> None:
        """`resolve` returns the pages at the end of redirects."""
        super().__init__(
            ForgottenLinks(), seeds, weights, damping=damping, push=PushOptions(eager=False), pages=1, aliases=True
        )
        from surveyor.kernels.mass import STATUS

        self._resolve = resolve
        nothing = np.empty(0)
        self.mass.state[:] &= np.uint8(STATUS)  # without flags, which are of accounts
        self.mass = self.mass._replace(residual=nothing, bits=nothing.view(np.uint64), settled=nothing)

    def observe(self, outcome: Outcome, old_links: IdArray) -> bool:  # noqa: ARG002
        """Update the status of the page and of those that it links to; return False: nothing can be contradicted."""
        from surveyor.kernels import mass

        self._check_ids(outcome)
        page, target = outcome.page, outcome.target
        self._make_room(max(page, target, int(outcome.links.max(initial=-1))))
        life = int(self.mass.state[page])
        if life == mass.REDIRECTED:
            return False
        if outcome.kind == "blocked":
            if life in (mass.UNKNOWN, mass.WAITING):
                self._set(page, mass.BLOCKED)
        elif outcome.kind == "redirected":
            self.hear(np.array([page, target], np.int32))
            loops = int(self._resolve(np.array([target], np.int32))[0]) == page
            self._set(page, mass.BLOCKED if loops else mass.REDIRECTED)
        else:
            self._set(page, mass.FETCHED if outcome.kind == "fetched" else mass.GONE)
            self.hear(outcome.links)
        return False

    def hear(self, pages: IdArray) -> None:
        """Add unknown pages as waiting."""
        from surveyor.kernels.mass import UNKNOWN, WAITING

        for page in pages[self.mass.state[pages] == UNKNOWN].tolist():
            self._set(page, WAITING)

    def _set(self, page: int, status: AnyInt) -> None:
        from surveyor.kernels import mass

        old, counts = int(self.mass.state[page]), self.mass.counts
        counts[mass.KNOWN] += old == mass.UNKNOWN
        counts[mass.FETCHES] += int(status == mass.FETCHED) - int(old == mass.FETCHED)
        self.mass.state[page] = int(status)

    def restore(self, pages: IdArray, status: np.ndarray[tuple[int], np.dtype[np.uint8]], room: int) -> None:
        """Set the status of all known pages, with room for `room` pages."""
        from surveyor.kernels import mass

        self._make_room(max(room, 1) - 1)
        self.mass.state[:] = mass.UNKNOWN
        self.mass.state[pages] = status
        self.mass.counts[mass.KNOWN] = pages.size
        self.mass.counts[mass.FETCHES] = int(np.count_nonzero(status == mass.FETCHED))

    def coverage(self) -> CoverageInterval:
        """Return the trivial bounds: without links nothing is certified."""
        return UNCERTIFIED

    def close(self) -> None:
        """Do nothing: there is no mass to push."""

    def sweep(self) -> None:
        """Do nothing: there is no mass to push."""

    def deepen(self, threshold: float) -> None:
        """Do nothing: there is no mass to push."""

    @property
    def touched(self) -> IdArray:
        """No pages: there is no mass that could change."""
        return NO_LINKS

    def importance(self) -> FloatArray:
        """Return no estimate: that of the strategy is the only one."""
        return np.zeros(self.capacity)

    def importance_of(self, page: int) -> float:  # noqa: ARG002
        """Return 0: nothing is certified."""
        return 0.0

    def stands_for(self) -> IdArray:
        """Return, for each page, the page it is an alias of, or itself."""
        return self._resolve(np.arange(self.capacity, dtype=np.int32))

    def _make_room(self, largest: int) -> None:
        if largest >= self._pages:
            room = largest + 1 + max(largest // 4, min(largest, LARGE))
            state = np.zeros(room, np.uint8)
            state[: self._pages] = self.mass.state
            self.mass, self._pages = self.mass._replace(state=state), room
