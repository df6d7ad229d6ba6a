"""What to fetch now: the best page among those that may be asked.

Priorities come from a strategy and change all the time (`queues.py`). Gates stand behind them and are never part
of them: a host that was just asked has to wait, a domain that has used up its budget is refused, and the refusal is
an outcome like any other. A page is leased while it is fetched, in memory only: what is not done when a crawl ends
is waiting.

A budget is spent by every page that was asked for, whatever came of it, each time; not by one that was refused. It
follows from the outcomes alone, so a replay comes to the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from surveyor.arrays import IdArray, IntArray
from surveyor.crawler.ledger import Ledger
from surveyor.crawler.queues import Batch, HostQueues, OneQueue
from surveyor.crawler.strategies.strategy import Reorder
from surveyor.errors import StrategyError, UsageError
from surveyor.outcome import Outcome, was_asked


class Limited(Protocol):
    """What knows domains and their budgets."""

    def domain(self, page: int) -> int:
        """Return the number of the domain of a page; -1 if nothing limits it."""

    def limit(self, domain: int) -> int:
        """Return how many pages a domain may take."""


@dataclass(frozen=True, slots=True, eq=False)
class Budgets:
    """How many pages each domain of a web that is known may take."""

    domain_of: IntArray  # by page
    limits: IntArray  # by domain

    def domain(self, page: int) -> int:
        """Return the domain of a page; one that was born since belongs to none."""
        return int(self.domain_of[page]) if page < self.domain_of.size else -1

    def limit(self, domain: int) -> int:
        """Return how many pages a domain may take."""
        return int(self.limits[domain])

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
        budgets: Limited | None = None,
        rereads: bool = False,
        queues: OneQueue | HostQueues | None = None,
    ) -> None:
        self._ledger, self._budgets, self._rereads = ledger, budgets, rereads
        self._queues = OneQueue(ledger.capacity) if queues is None else queues
        self._spent: dict[int, int] = {}  # pages of each domain that were asked for
        self._under_way: dict[int, int] = {}  # pages that are leased, and their domains: they have their place

    def limit(self, budgets: Limited | None, spent: Mapping[int, int]) -> None:
        """Set budgets, of which domains have spent so much already, besides the pages that are under way."""
        self._budgets, self._spent, leased = budgets, dict(spent), list(self._under_way)
        self._under_way = {}
        for page in leased:
            self.reserve(page)

    def reserve(self, page: int) -> None:
        """Keep a place in the budget of its domain for a page that was asked for, and is to be tried again."""
        domain = -1 if self._budgets is None or page in self._under_way else self._budgets.domain(page)
        if domain >= 0:
            self._under_way[page], self._spent[domain] = domain, self._spent.get(domain, 0) + 1

    @property
    def spent(self) -> dict[int, int]:
        """How many pages of each domain were asked for or are under way."""
        return dict(self._spent)

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

    def settle(self, outcome: Outcome) -> None:
        """Take note that something has happened to a page: it no longer waits, and may count."""
        self.drop(outcome.page)
        if self._budgets is None:
            return
        domain = self._budgets.domain(outcome.page) if was_asked(outcome) else -1
        if domain >= 0:
            self._spent[domain] = self._spent.get(domain, 0) + 1

    def drop(self, page: int) -> None:
        """End the lease of a page, or take it off the list."""
        if page < self._queues.size:
            self._queues.drop(page)
        if (domain := self._under_way.pop(page, -1)) >= 0:
            self._spent[domain] -= 1

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
        if self._budgets is None or page in self._under_way:  # it was asked for, and is tried again
            return ""
        domain = self._budgets.domain(page)
        if domain < 0:
            return ""
        if self._spent.get(domain, 0) >= self._budgets.limit(domain):
            return "budget"
        self.reserve(page)
        return ""


def _as_ids(pages: np.ndarray) -> np.ndarray:
    """Turn other integers into page ids; anything else is a mistake of the strategy."""
    if pages.size and (pages.dtype.kind not in "iu" or pages.min() < 0 or pages.max() > np.iinfo(np.int32).max):
        raise StrategyError(f"it named pages that are no page ids ({pages.dtype})")
    return pages.astype(np.int32)
