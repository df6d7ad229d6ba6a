"""Rounds: fetch a batch of the pages that affect local ranks most, then score the frontier again (FindGlobalPR).

In each round `batch` pages are fetched. They are selected when it starts, so that they do not depend on response times.
(Ties are broken by a hash of ids, and with concurrent requests ids depend on the order of responses.) A page that
cannot be fetched counts as requested and is replaced by the next of the same ranking; a redirected page is replaced by
its target. Pages that are gone count as pages without links, as in the paper.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from surveyor.crawler.strategies.strategy import NOTHING, Reorder
from surveyor.errors import UsageError
from surveyor.outcome import NO_LINKS, was_requested
from surveyor.rank.expansion import Expansion, Select

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from surveyor.arrays import FloatArray, IdArray
    from surveyor.crawler.ledger import Ledger
    from surveyor.graph.growing import GrowingGraph
    from surveyor.outcome import Outcome

PART = 0.04  # default batch, as a share of the pages fetched so far (50 rounds for twice the local pages)
SPARE = 4  # pages ranked per page of a round, to replace those that cannot be fetched
STABLE_ROUNDS = 3  # stop after this many consecutive rounds that change the ranks by less than `stable`


class Rounds:
    """The pages that affect local ranks most first, one batch at a time."""

    parameters: ClassVar[dict[str, Callable[[str], object]]] = {
        "select": str,
        "local": int,
        "start": int,
        "batch": int,
        "extra": int,
        "stable": float,
    }

    def __init__(
        self,
        select: Select = "complement",
        *,
        local: int = 0,
        start: int = 0,
        batch: int = 0,
        extra: int = 0,
        stable: float = 0.0,
    ) -> None:
        """Select pages by `select`; by default the seeds are local and a round is 4 % of the pages fetched.

        Parameters
        ----------
        local : pages with smaller ids are local; 0 for the seeds.
        start : outcomes to wait for before the first round; 0 for those of the seeds.
        batch, extra : pages per round (0 for 4 %), and pages to request in all rounds (0 for no limit).
        stable : stop when three consecutive rounds change the ranks of the local pages by less.
        """
        if min(local, start, batch, extra) < 0 or not 0 <= stable < math.inf or start < local:
            raise UsageError(
                "local, start, batch, extra and stable must be at least 0, and start at least local, "
                f"got {local}, {start}, {batch}, {extra} and {stable:g}",
                hint="for example complement:batch=50,extra=2000",
            )
        self.select, self.local, self.start = select, local, start
        self.batch, self.extra, self.stable = batch, extra, stable
        self.name = select
        Expansion(np.empty(0, np.int32), select)  # raises if `select` is unknown

    def begin(self, ledger: Ledger, graph: GrowingGraph, rng: np.random.Generator) -> Reorder:
        """Start with the seeds, unless the first outcomes come from elsewhere."""
        self._ledger, self._graph = ledger, graph
        first = np.arange(self.local, dtype=np.int32) if self.local else ledger.seeds
        seed = int(rng.integers(2**62))
        self._expansion = Expansion(first, self.select, damping=ledger.damping, seed=seed)
        self._wait = self.start or int(ledger.seeds.size)
        self._pending: dict[int, None] = {}  # released, without an outcome yet
        self._ranking: IdArray = NO_LINKS
        self._next = 0
        self.requested = self.fetched = 0  # since the first round
        self.rounds: list[tuple[int, int, float, float]] = []  # pages fetched, requested, rank change, rank error
        return NOTHING if self.start else Reorder(ledger.seeds, np.full(ledger.seeds.size, np.inf))

    def observe(self, outcome: Outcome, old_links: IdArray) -> Reorder:  # noqa: ARG002
        """Start the next round at the end of this one; until then, replace pages that cannot be fetched."""
        if outcome.page not in self._pending and np.isin(outcome.page, self._ledger.listed):
            return NOTHING if self._wait or self._pending else self._round()  # a listed page, of no round
        if self._wait > 0:
            if not self.start and (there := self._redirect(outcome)).size:
                return Reorder(there, np.full(1, np.inf))  # target of a redirected seed: fetched in its place
            self._wait -= 1
            return self._round() if self._wait == 0 else NOTHING
        self.requested += was_requested(outcome)
        self.fetched += outcome.kind == "fetched"
        self._pending.pop(outcome.page, None)
        if outcome.kind != "fetched" and (instead := self._release(*self._replacement(outcome))).pages.size:
            return instead
        return NOTHING if self._pending else self._round()

    def importance(self) -> FloatArray:
        """Return the ranks of the fetched pages, 0 for all others."""
        from surveyor.kernels.mass import FETCHED, STATUS

        ranks = np.zeros(self._ledger.capacity)
        read = np.flatnonzero(self._ledger.state & STATUS == FETCHED)
        ranks[read] = self._expansion.ranks_by_id(read)
        return ranks

    def _replacement(self, outcome: Outcome) -> tuple[IdArray, int]:
        """Return the replacement of a page that could not be fetched, and its position in the ranking.

        It is the target of a redirected page, ahead of all others, or the next best page.
        """
        there, place = self._redirect(outcome), -1
        while not there.size and self._next < self._ranking.size:
            there, place = self._if_waits(int(self._ranking[self._next])), self._next
            self._next += 1
        return there, place

    def _redirect(self, outcome: Outcome) -> IdArray:
        """Return the target of a redirected page, if it is waiting."""
        return self._if_waits(outcome.target) if outcome.kind == "redirected" else NO_LINKS

    def _if_waits(self, page: int) -> IdArray:
        from surveyor.kernels.mass import STATUS, WAITING

        waits = self._ledger.state[page] & STATUS == WAITING and page not in self._pending
        return np.array([page], np.int32) if waits else NO_LINKS

    def _release(self, pages: IdArray, place: int) -> Reorder:
        """Queue pages from `place` of the ranking on, up to the number that may still be requested."""
        if self.extra:
            pages = pages[: max(0, self.extra - self.requested - len(self._pending))]
        self._pending.update(dict.fromkeys(pages.tolist()))
        return Reorder(pages, -np.arange(place, place + pages.size, dtype=np.float64))

    def _round(self) -> Reorder:
        """Rank the fetched pages, score the frontier, and release the best."""
        from surveyor.kernels.mass import FETCHED, GONE, STATUS, WAITING

        status = self._ledger.state & STATUS
        read = (status == FETCHED) | (status == GONE)
        final = self._ledger.stands_for()
        if not self.rounds:
            local = np.unique(final[self._expansion.local])
            self._expansion.local = local[read[local]]
        if not self._expansion.local.size:
            return NOTHING  # there are no local pages to rank
        pages = np.flatnonzero(read).astype(np.int32)
        found = self._expansion.update(self._graph.rows, pages, read.size, final)
        self.rounds.append((self.fetched, self.requested, self._expansion.change, self._expansion.error))
        if (self.extra and self.requested >= self.extra) or is_stable([one[2] for one in self.rounds], self.stable):
            return NOTHING
        count = self.batch or max(1, math.ceil(PART * self._graph.read))
        self._ranking = self._expansion.best(found, SPARE * count, status == WAITING)
        self._next = min(count, self._ranking.size)
        return self._release(self._ranking[: self._next], 0)


def is_stable(changes: Sequence[float], stable: float) -> bool:
    """Return whether the last rounds changed the ranks by less than `stable`; `changes` starts with an extra entry."""
    return len(changes) > STABLE_ROUNDS and max(changes[-STABLE_ROUNDS:]) < stable


class Complement(Rounds):
    """Stochastic complement: the largest change of the ranks of local pages first.

    SC-SELECT of Davis and Dhillon, KDD 2006, evaluated exactly (`rank/expansion.py`).
    """

    def __init__(self, **numbers: Any) -> None:
        """Accept the parameters of `Rounds` except `select`."""
        super().__init__("complement", **numbers)


class Flow(Rounds):
    """PageRank flow: the page to which most rank would flow from the fetched pages first.

    PF-SELECT of Davis and Dhillon, KDD 2006: Σ rank / (links + 1) over the pages that link to it.
    """

    def __init__(self, **numbers: Any) -> None:
        """Accept the parameters of `Rounds` except `select`."""
        super().__init__("flow", **numbers)
