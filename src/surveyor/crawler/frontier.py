"""Frontier: selects the page to fetch next, the one of highest priority among those that may be requested now.

Priorities come from a strategy and change all the time (`queues.py`). Politeness and budgets are separate from
priorities: a host that was just requested has to wait; a page of a domain over its budget is refused, and the refusal
is an outcome like any other. A page is leased while it is fetched, in memory only: a page not finished when a crawl
ends is still queued.

Every request for a page counts towards the budget of its domain, whatever its outcome; a refused page does not. The
budget spent follows from the outcomes alone, so a replay gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from surveyor.arrays import IdArray, IntArray
from surveyor.crawler.ledger import Ledger
from surveyor.crawler.queues import Batch, HostQueues, SingleQueue
from surveyor.crawler.strategies.strategy import Reorder
from surveyor.errors import StrategyError, UsageError
from surveyor.outcome import NO_LINKS, Outcome, was_requested

ANY = np.int64(-1)  # status
LOWEST = float(np.finfo(np.float64).min)  # the lowest finite priority


class DomainLimits(Protocol):
    """Domains of pages and their budgets."""

    def domain(self, page: int) -> int:
        """Return the id of the domain of a page; -1 if it has no budget."""

    def limit(self, domain: int) -> int:
        """Return the page budget of a domain."""


@dataclass(frozen=True, slots=True, eq=False)
class Budgets:
    """Page budgets for the domains of a known graph."""

    domain_of: IntArray  # by page
    limits: IntArray  # by domain

    def domain(self, page: int) -> int:
        """Return the domain of a page; -1 for pages added later."""
        return int(self.domain_of[page]) if page < self.domain_of.size else -1

    def limit(self, domain: int) -> int:
        """Return the page budget of a domain."""
        return int(self.limits[domain])

    def __post_init__(self) -> None:
        if self.domain_of.size and int(self.domain_of.max()) >= self.limits.size:
            raise UsageError(
                f"a page is of domain {self.domain_of.max()}, and there are {self.limits.size} budgets",
                hint="give one budget per domain",
            )


class Frontier:
    """Queued pages by priority; with `rereads`, also the pages already read; with `any_status`, all known pages."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        budgets: DomainLimits | None = None,
        rereads: bool = False,
        any_status: bool = False,
        queues: SingleQueue | HostQueues | None = None,
    ) -> None:
        self._any_status = any_status
        self._ledger, self._budgets, self._rereads = ledger, budgets, rereads
        self._queues = SingleQueue(ledger.capacity) if queues is None else queues
        self._spent: dict[int, int] = {}  # pages requested from each domain
        self._leased: dict[int, int] = {}  # leased pages and their domains: already counted in the budget
        self._preferred: IdArray = NO_LINKS
        self._taken: dict[int, None] = {}  # leased pages

    def limit(self, budgets: DomainLimits | None, spent: Mapping[int, int]) -> None:
        """Set budgets and the pages each domain has already spent, not counting leased pages."""
        self._budgets, self._spent, leased = budgets, dict(spent), list(self._leased)
        self._leased = {}
        for page in leased:
            self.reserve(page)

    def reserve(self, page: int) -> None:
        """Reserve budget for a page that was requested and will be retried."""
        domain = -1 if self._budgets is None or page in self._leased else self._budgets.domain(page)
        if domain >= 0:
            self._leased[page], self._spent[domain] = domain, self._spent.get(domain, 0) + 1

    @property
    def spent(self) -> dict[int, int]:
        """Number of pages of each domain that were requested or are leased."""
        return dict(self._spent)

    def update(self, change: Reorder) -> None:
        """Apply new priorities; those of pages that cannot be read (again) are ignored."""
        from surveyor.kernels import mass

        self._make_room()
        pages = np.asarray(change.pages)
        if pages.dtype != np.int32:
            pages = _as_ids(pages)
        priorities = np.asarray(change.priorities, np.float64)
        if self._preferred.size:
            priorities = np.where(np.isin(pages, self._preferred), np.inf, priorities)
        if priorities.shape != pages.shape or pages.ndim != 1:
            raise StrategyError(f"Reorder has {pages.size:,} pages and {priorities.size:,} priorities")
        also = ANY if self._any_status else mass.FETCHED if self._rereads else mass.WAITING
        wrong = self._queues.reorder(self._ledger.mass.state, pages, priorities, also)
        if wrong >= 0:
            page, priority = int(pages[wrong]), float(priorities[wrong])
            if np.isnan(priority):
                raise StrategyError(f"the priority of page {page} is NaN")
            raise StrategyError(f"Reorder has page {page}, which no fetched page links to")

    def prefer(self, pages: IdArray) -> None:
        """Fetch these waiting pages before all others, instead of those preferred before."""
        if pages.size or self._preferred.size:
            new = np.setdiff1d(pages, self._preferred)
            self._preferred = pages
            self.update(Reorder(new, np.full(new.size, np.inf)))

    def take(self, count: int = 1, least: float = -np.inf) -> Batch:
        """Lease up to `count` of the best pages that may be requested now, of priority `least` or more.

        Pages of priority minus infinity are leased only if no other page may be, and if none with mass is in progress,
        whose outcome may queue better ones.
        """
        batch = Batch()
        self._fill(batch, count, max(least, LOWEST))
        if least < LOWEST and not batch and not self._has_mass_in_progress():
            self._fill(batch, count, least)
        self._taken.update(dict.fromkeys(batch.pages))
        return batch

    def _fill(self, batch: Batch, count: int, least: float) -> None:
        """Lease pages; each reserves budget before the next is considered."""

        def refuse(page: int) -> str:
            if batch.pages:
                self.reserve(batch.pages[-1])
            return self._over_budget(page)

        self._queues.take(batch, count, refuse, least)
        if batch.pages:
            self.reserve(batch.pages[-1])

    def _has_mass_in_progress(self) -> bool:
        held = self._queues.held_pages if self._taken else set[int]()
        asked = [page for page in self._taken if page not in held]
        residual = self._ledger.residual
        return bool(asked) and bool(residual.size) and bool((residual[asked] > 0).any())

    @property
    def leased(self) -> IdArray:
        """Pages that are in progress or will be retried."""
        return np.fromiter(self._taken, np.int32, len(self._taken))

    def settle(self, outcome: Outcome) -> None:
        """Record the outcome of a page: remove it from the queue and count it towards its budget."""
        self.drop(outcome.page)
        if self._budgets is None:
            return
        domain = self._budgets.domain(outcome.page) if was_requested(outcome) else -1
        if domain >= 0:
            self._spent[domain] = self._spent.get(domain, 0) + 1

    def drop(self, page: int) -> None:
        """End the lease of a page, or remove it from the queue."""
        self._taken.pop(page, None)
        if page < self._queues.size:
            self._queues.drop(page)
        if (domain := self._leased.pop(page, -1)) >= 0:
            self._spent[domain] -= 1

    def queued(self) -> Reorder:
        """Return the queued and leased pages and their priorities."""
        return Reorder(*self._queues.queued())

    def by_host(self) -> IdArray:
        """Return one page of each host, in order of discovery; empty if there is a single queue."""
        return self._queues.by_host()

    def restore(self, queued: Reorder, by_host: IdArray) -> None:
        """Replace the queue with this saved one."""
        for page in self._queues.queued()[0].tolist():
            self._queues.drop(page)
        self._make_room()
        self._queues.settle(by_host)
        self.update(queued)

    def hold(self, page: int, until: float) -> None:
        """Hold a leased page back for a retry at that time."""
        self._queues.hold(page, until)

    @property
    def held(self) -> AbstractSet[int]:
        """Pages that wait for a retry."""
        return self._queues.held_pages

    @property
    def failing(self) -> IdArray:
        """Pages that wait for a retry, and queued pages of hosts in backoff."""
        return self._queues.failing_pages

    def failing_of(self, pages: IdArray) -> AbstractSet[int]:
        """Return those of some pages that are failing."""
        return self._queues.failing_of(pages)

    @property
    def best_available(self) -> float:
        """Priority of the best page that may be requested now; minus infinity if there is none."""
        return self._queues.best_available

    @property
    def again_at(self) -> float:
        """Earliest time at which a page may become available without new outcomes; inf if none will."""
        return self._queues.again_at

    @property
    def rereads(self) -> bool:
        """Whether fetched pages stay in the queue."""
        return self._rereads

    def __len__(self) -> int:
        return len(self._queues)

    def _make_room(self) -> None:
        if self._queues.size < self._ledger.capacity:
            self._queues.grow(self._ledger.capacity)

    def _over_budget(self, page: int) -> str:
        if self._budgets is None or page in self._leased:  # it was requested, and is a retry
            return ""
        domain = self._budgets.domain(page)
        return "budget" if domain >= 0 and self._spent.get(domain, 0) >= self._budgets.limit(domain) else ""


def _as_ids(pages: np.ndarray) -> np.ndarray:
    """Convert integers to page ids; anything else is an error of the strategy."""
    if pages.size and (pages.dtype.kind not in "iu" or pages.min() < 0 or pages.max() > np.iinfo(np.int32).max):
        raise StrategyError(f"Reorder.pages must be page ids (int32), got {pages.dtype}")
    return pages.astype(np.int32)
