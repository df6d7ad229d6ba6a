"""What to fetch now: the best page among those that may be asked.

Priorities come from a strategy and change all the time (`queues.py`). Gates stand behind them and are never part
of them: a host that was just asked has to wait, a domain that has used up its budget is refused, and the refusal is
an outcome like any other. A page is leased while it is fetched, in memory only: what is not done when a crawl ends
is waiting.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surveyor.arrays import IdArray, IntArray
from surveyor.errors import StrategyError, UsageError
from surveyor.ledger import Ledger
from surveyor.queues import Batch, HostQueues, OneQueue
from surveyor.strategies.strategy import Reorder


@dataclass(frozen=True, slots=True, eq=False)
class Budgets:
    """How many pages each domain may take."""

    domain_of: IntArray  # by page
    limits: IntArray  # by domain

    def __post_init__(self) -> None:
        if self.domain_of.size and int(self.domain_of.max()) >= self.limits.size:
            raise UsageError(
                f"a page is of domain {self.domain_of.max()}, and there are {self.limits.size} budgets",
                hint="give one budget per domain",
            )


class Frontier:
    """The pages that wait, by priority; with `rereads`, also those that were read."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        budgets: Budgets | None = None,
        rereads: bool = False,
        queues: OneQueue | HostQueues | None = None,
    ) -> None:
        self._ledger, self._budgets, self._rereads = ledger, budgets, rereads
        self._queues = OneQueue(ledger.capacity) if queues is None else queues
        self._spent = np.zeros(0 if budgets is None else budgets.limits.size, np.int64)

    def update(self, change: Reorder) -> None:
        """Take new priorities; those of pages that cannot be read (again) are ignored."""
        from surveyor.kernels import mass

        self._make_room()
        pages = np.asarray(change.pages)
        if pages.dtype != np.int32:
            pages = _as_ids(pages)
        priorities = np.asarray(change.priorities, np.float64)
        if priorities.shape != pages.shape or pages.ndim != 1:
            raise StrategyError(f"it named {pages.size:,} pages and {priorities.size:,} priorities")
        also = mass.READ if self._rereads else mass.WAITING
        wrong = self._queues.reorder(self._ledger.mass.state, pages, priorities, also)
        if wrong >= 0:
            page, priority = int(pages[wrong]), float(priorities[wrong])
            if np.isnan(priority):
                raise StrategyError(f"it gave page {page} a priority that is not a number")
            raise StrategyError(f"it named page {page}, and no page read so far links to such a page")

    def take(self, count: int = 1) -> Batch:
        """Lease the best pages that may be asked now, up to so many."""
        batch = Batch()
        self._queues.take(batch, count, self._over_budget)
        return batch

    def drop(self, page: int) -> None:
        """End the lease of a page, or take it off the list: something has happened to it."""
        if page < self._queues.size:
            self._queues.drop(page)

    def standing(self) -> Reorder:
        """Return the pages that wait or are leased, and their priorities."""
        return Reorder(*self._queues.standing())

    def by_host(self) -> IdArray:
        """Return a page of each host, in the order in which hosts became known; none if they are not told apart."""
        return self._queues.by_host()

    def restore(self, standing: Reorder, by_host: IdArray) -> None:
        """Become the frontier of which these were told; whatever was on the list is not."""
        for page in self._queues.standing()[0].tolist():
            self._queues.drop(page)
        self._make_room()
        self._queues.settle(by_host)
        self.update(standing)

    def hold(self, page: int, until: float) -> None:
        """Keep a leased page for another try at that time."""
        self._queues.hold(page, until)

    @property
    def again_at(self) -> float:
        """When there may be something to take though there is not now; inf if nothing happens by itself."""
        return self._queues.again_at

    @property
    def rereads(self) -> bool:
        """Whether pages that were read stay on the list."""
        return self._rereads

    def __len__(self) -> int:
        return len(self._queues)

    def _make_room(self) -> None:
        if self._queues.size < self._ledger.capacity:
            self._queues.grow(self._ledger.capacity)

    def _over_budget(self, page: int) -> str:
        if self._budgets is None or page >= self._budgets.domain_of.size:
            return ""  # or found since the budgets were made
        domain = self._budgets.domain_of[page]
        self._spent[domain] += 1
        return "budget" if self._spent[domain] > self._budgets.limits[domain] else ""


def _as_ids(pages: np.ndarray) -> np.ndarray:
    """Turn other integers into page ids; anything else is a mistake of the strategy."""
    if pages.size and (pages.dtype.kind not in "iu" or pages.min() < 0 or pages.max() > np.iinfo(np.int32).max):
        raise StrategyError(f"it named pages that are no page ids ({pages.dtype})")
    return pages.astype(np.int32)
