"""Hold back requests that the goal does not need.

Near the goal, the pages in progress may suffice to reach it, and while an important page waits for a retry, hundreds of
unimportant ones could be fetched just to keep busy. Fetching them proves nothing. So no page is requested while the
mass that is in progress, or will be retried, is `ENOUGH` times what is missing; and while walks are in progress, only
the pages that they need are requested.

What the crawl waits for may take long, or never come. It waits at most `PATIENCE` seconds in total without any request
in progress; then other pages are requested, too. With `--keep-busy` nothing is held back.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import numpy as np

from surveyor.arrays import IdArray
from surveyor.crawler.queues import Batch
from surveyor.outcome import NO_LINKS

if TYPE_CHECKING:
    from surveyor.crawler.frontier import Frontier
    from surveyor.crawler.ledger import Ledger
    from surveyor.crawler.sampling_plan import SamplingPlan
    from surveyor.crawler.scout_walks import ScoutPlan

ENOUGH = 2.0  # a page adds about half of its mass to the certified coverage
PATIENCE = 20.0  # seconds


class RequestGate:
    """Takes pages from the frontier, as far as the goal needs them."""

    def __init__(
        self,
        ledger: Ledger,
        frontier: Frontier,
        goal: float | None,
        plan: SamplingPlan | ScoutPlan | None,
        *,
        patience: float = PATIENCE,
    ) -> None:
        self._ledger, self._frontier, self._goal, self._plan = ledger, frontier, goal, plan
        self._patience, self._idle_since = patience, math.inf
        self.holds = False  # whether the last call held pages back

    def take(self, free: int, *, busy: bool) -> Batch:
        """Lease up to `free` pages; `busy`: requests are in progress."""
        walks = self._plan is not None and self._plan.walking
        exclusive = self._plan is not None and self._plan.exclusive
        if exclusive:
            self._patience = math.inf
        useful = free if walks else self.useful_pages(free, self._expected())
        self.holds = self._patience > 0 and (walks or useful < free)
        if not self.holds:
            return self._frontier.take(self.useful_pages(free, self._frontier.leased if busy else NO_LINKS))
        leased = self._frontier.take(useful, math.inf if walks else -math.inf)
        if leased or busy:
            self._idle_since = math.inf
            return leased
        now = time.monotonic()
        self._patience -= max(0.0, now - self._idle_since)
        self._idle_since = now
        if self._frontier.again_at < math.inf or exclusive:
            return leased
        self.holds = False  # what the crawl waits for will never be available
        return self._frontier.take(self.useful_pages(free, self._frontier.leased if busy else NO_LINKS))

    def _expected(self) -> IdArray:
        """Return the pages in progress or to be retried."""
        return np.union1d(self._frontier.leased, self._frontier.failing)

    def useful_pages(self, most: int, expected: IdArray) -> int:
        """Return how many pages to request now: none while the expected ones may reach the goal."""
        from surveyor.kernels.mass import top_waiting

        if self._goal is None or most <= 0:
            return most
        now = self._ledger.coverage()
        missing = ENOUGH * (self._goal - now.captured - now.moving)
        top = float(top_waiting(self._ledger.mass))
        if missing <= 0 or most * top <= missing:
            return most
        mass = float(np.maximum(self._ledger.residual[expected], 0.0).sum())
        return min(most, max(0, math.ceil((missing - mass) / top)))
