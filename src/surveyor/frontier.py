"""What to fetch now: the best page among those that may be asked.

Priorities come from a strategy and change all the time (`kernels/queue.py`). Gates stand behind them and are
never part of them: a domain that has used up its budget is refused, and the refusal is an outcome like any
other. A page is leased while it is fetched, in memory only: what is not done when a crawl ends is waiting.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surveyor.arrays import IntArray
from surveyor.errors import StrategyError, UsageError
from surveyor.ledger import Ledger
from surveyor.outcome import Outcome
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


@dataclass(frozen=True, slots=True)
class Batch:
    """Pages to fetch now, best first, and pages that a gate keeps from being fetched."""

    pages: list[int]
    refused: list[Outcome]


class Frontier:
    """The pages that wait, by priority; with `rereads`, also those that were read."""

    def __init__(self, ledger: Ledger, *, budgets: Budgets | None = None, rereads: bool = False) -> None:
        from surveyor.kernels.queue import new_queue

        self._ledger, self._budgets, self._rereads = ledger, budgets, rereads
        self._queue = new_queue(ledger.capacity)
        self._spent = np.zeros(0 if budgets is None else budgets.limits.size, np.int64)

    def update(self, change: Reorder) -> None:
        """Take new priorities; those of pages that cannot be read (again) are ignored."""
        from surveyor.kernels import crawl, mass

        if self._queue.priority.size < self._ledger.capacity:
            self._grow()
        pages = np.asarray(change.pages)
        if pages.dtype != np.int32:
            pages = _as_ids(pages)
        priorities = np.asarray(change.priorities, np.float64)
        if priorities.shape != pages.shape or pages.ndim != 1:
            raise StrategyError(f"it named {pages.size:,} pages and {priorities.size:,} priorities")
        also = mass.READ if self._rereads else mass.WAITING
        wrong = crawl.reorder(self._queue, self._ledger.mass.state, pages, priorities, also)
        if wrong >= 0:
            page, priority = int(pages[wrong]), float(priorities[wrong])
            if np.isnan(priority):
                raise StrategyError(f"it gave page {page} a priority that is not a number")
            raise StrategyError(f"it named page {page}, and no page read so far links to such a page")

    def take(self, count: int = 1) -> Batch:
        """Lease the best pages, up to so many."""
        from surveyor.kernels.queue import lease

        batch = Batch([], [])
        while len(batch.pages) < count and (page := lease(self._queue)) >= 0:
            if self._over_budget(page):
                batch.refused.append(Outcome(page, "blocked", reason="budget"))
            else:
                batch.pages.append(page)
        return batch

    def drop(self, page: int) -> None:
        """End the lease of a page, or take it off the list: something has happened to it."""
        from surveyor.kernels.queue import drop

        if page < self._queue.priority.size:
            drop(self._queue, page)

    @property
    def rereads(self) -> bool:
        """Whether pages that were read stay on the list."""
        return self._rereads

    def __len__(self) -> int:
        return int(self._queue.counts[2])

    def _over_budget(self, page: int) -> bool:
        if self._budgets is None:
            return False
        if page >= self._budgets.domain_of.size:
            return False  # found since the budgets were made
        domain = self._budgets.domain_of[page]
        self._spent[domain] += 1
        return bool(self._spent[domain] > self._budgets.limits[domain])

    def _grow(self) -> None:
        from surveyor.kernels.queue import new_queue

        old, new = self._queue, new_queue(self._ledger.capacity)
        for name in ("priority", "after", "before", "heap"):
            getattr(new, name)[: old.priority.size] = getattr(old, name)
        self._queue = new._replace(heads=old.heads, used=old.used, counts=old.counts)


def _as_ids(pages: np.ndarray) -> np.ndarray:
    """Turn other integers into page ids; anything else is a mistake of the strategy."""
    if pages.size and (pages.dtype.kind not in "iu" or pages.min() < 0 or pages.max() > np.iinfo(np.int32).max):
        raise StrategyError(f"it named pages that are no page ids ({pages.dtype})")
    return pages.astype(np.int32)
