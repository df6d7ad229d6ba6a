"""Hold back requests that the goal does not need.

Near the goal, the pages in progress may suffice to reach it, and while an important page waits for a retry, hundreds of
unimportant ones could be fetched just to keep busy. Fetching them proves nothing. So no page is requested while the
mass that is in progress, or will be retried, is `ENOUGH` times what is missing; and while walks are in progress, only
the pages that they need are requested.

What the crawl waits for may take long, or never come. It waits at most `PATIENCE` seconds in total without any request
in progress, or while the requests in progress get no response for more than `SLOW` seconds; then other pages are
requested, too, as many as the goal needs without those. So a server that delays its responses cannot stop the crawl of
others. With `--keep-busy` nothing is held back.
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
SLOW = 2.0  # seconds without an outcome of a request in progress


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
        self._ledger, self._frontier, self._plan = ledger, frontier, plan
        self._goal = goal if patience > 0 else None  # without patience nothing is held back
        self._patience, self._idle_since = patience, math.inf
        self._leased: list[int] = []  # pages in progress at the last call
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
            self._idle_since = math.inf
            return self._frontier.take(self.useful_pages(free, NO_LINKS))
        leased = self._frontier.take(useful, math.inf if walks else -math.inf)
        self._wait(changed=bool(leased), busy=busy or bool(leased))
        if leased or busy or self._frontier.again_at < math.inf or exclusive:
            return leased
        self.holds = False  # what the crawl waits for will never be available
        return self._frontier.take(self.useful_pages(free, NO_LINKS))

    def pause(self) -> None:
        """Restart the count of the time without progress: no request could start in between."""
        self._idle_since = math.inf

    def _wait(self, *, changed: bool, busy: bool) -> None:
        """Count the time since the last call, if nothing has changed since then."""
        now, pages = time.monotonic(), self._frontier.leased.tolist()
        if changed or pages != self._leased:
            self._idle_since = math.inf
        self._leased = pages
        if self._idle_since == math.inf:
            self._idle_since = now + SLOW * busy
        elif now > self._idle_since:
            self._patience -= now - self._idle_since
            self._idle_since = now

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
