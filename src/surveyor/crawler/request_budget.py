"""A budget of requests per day: at most N in any 24 hours, spread over the day.

Two limits apply. The *window*: the last N requests are remembered, and a request needs the oldest of them to be a day
old. The *pace*: a bucket is refilled at N tokens per day and holds `burst` of them, so that requests do not all come at
once. All requests count: pages, robots.txt files, retries, and those that failed.

Times are of a monotonic clock, so a change of the wall clock neither adds requests nor delays them. Requests of earlier
runs are entered by their age. An age cannot be negative: if the wall clock was set back in between, such a request
counts as made now, and the budget may be exhausted for up to a day, but it is never exceeded.

    >>> now = 0.0
    >>> budget = RequestBudget(2, clock=lambda: now)
    >>> budget.available(), budget.spend(2), budget.available(), budget.seconds_left()
    (2, None, 0, 86400.0)
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable

import numpy as np

from surveyor.errors import UsageError

DAY = 86_400.0
UNITS = {"minute": 1440.0, "hour": 24.0, "day": 1.0, "week": 1 / 7}  # per day
RATE = re.compile(r"([0-9][0-9_,]*(?:\.[0-9]+)?)\s*(?:/\s*(minute|hour|day|week))?")
MOST_PER_DAY = 10_000_000
PER_PAGE = 7.0  # days between two visits to a page, on average, at the default rate
LEAST, MOST = 10, 1000  # requests per day and host at the default rate


class RequestBudget:
    """The requests of the last day, and how many are permitted now."""

    def __init__(self, per_day: int, *, clock: Callable[[], float], burst: int | None = None) -> None:
        """Allow `per_day` requests in 24 hours and at most `burst` at once; by default those of a day."""
        if not 1 <= per_day <= MOST_PER_DAY:
            problem = f"rate must be 1 to {MOST_PER_DAY:,} requests per day, got {per_day:,}"
            raise UsageError(problem, hint="for example 500/day")
        self.per_day, self._clock = per_day, clock
        self._burst = float(per_day if burst is None else min(max(1, burst), per_day))
        self._sent = np.full(per_day, -math.inf)  # times of the last requests, a ring
        self._oldest = 0
        self._tokens, self._filled = self._burst, clock()

    def part(self, share: float) -> RequestBudget:
        """Return a budget of a share of the requests of a day, at least one; it is spent separately."""
        return RequestBudget(max(1, int(share * self.per_day)), clock=self._clock)

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.per_day / DAY

    def available(self) -> int:
        """Return how many requests are permitted now."""
        now = self._clock()
        self._refill(now)
        return max(0, min(int(np.count_nonzero(self._sent <= now - DAY)), math.floor(self._tokens + 1e-9)))

    def spend(self, requests: int = 1) -> None:
        """Record requests that were sent."""
        now = self._clock()
        self._refill(now)
        for _ in range(requests):
            self._sent[self._oldest] = now
            self._oldest = (self._oldest + 1) % self.per_day
        self._tokens -= requests

    def restore(self, ages: Iterable[float]) -> None:
        """Enter the requests of earlier runs by their age in seconds; call it first."""
        now = self._clock()
        past = np.sort(now - np.maximum(np.fromiter(ages, np.float64), 0.0))
        past = past[past > now - DAY]
        tokens, before = self._burst, now - DAY
        for at in past.tolist():
            tokens = min(self._burst, tokens + (at - before) * self.rate) - 1.0
            before = at
        self._tokens, self._filled = max(tokens, -1.0), before
        self._sent[:] = -math.inf
        last = past[-self.per_day :]
        self._sent[: last.size] = last
        self._oldest = int(last.size) % self.per_day

    def spent(self) -> int:
        """Return the number of requests in the last 24 hours."""
        return int(np.count_nonzero(self._sent > self._clock() - DAY))

    def seconds_left(self) -> float:
        """Return the seconds until a request is permitted; 0 if one is permitted now."""
        now = self._clock()
        self._refill(now)
        window = float(self._sent[self._oldest]) + DAY - now
        return max(0.0, window, (1.0 - self._tokens) / self.rate if self._tokens < 1.0 - 1e-9 else 0.0)

    def _refill(self, now: float) -> None:
        self._tokens = min(self._burst, self._tokens + max(0.0, now - self._filled) * self.rate)
        self._filled = now


def parse_rate(text: str | float) -> int:
    """Return the requests per day that a text such as `500/day`, `20/hour` or `500` states.

    >>> parse_rate("500/day"), parse_rate("0.5/hour"), parse_rate("1,000"), parse_rate("70/week")
    (500, 12, 1000, 10)
    """
    found = RATE.fullmatch(str(text).strip().lower())
    number = 0.0 if found is None else float(re.sub(r"[_,]", "", found[1])) * UNITS[found[2] or "day"]
    if not 1 <= number <= MOST_PER_DAY:
        problem = f"rate must be 1 to {MOST_PER_DAY:,} requests per day, got {text!r}"
        raise UsageError(problem, hint="for example --rate 500/day, 20/hour or 100/week")
    return int(number + 1e-9)


def default_rate(pages: int, hosts: int) -> int:
    """Return the default requests per day: one per page and week, at least 10 and at most 1,000 per host.

    >>> default_rate(20, 1), default_rate(700, 1), default_rate(1_000_000, 2)
    (10, 100, 2000)
    """
    return int(min(max(pages / PER_PAGE, LEAST), MOST * max(hosts, 1)))
