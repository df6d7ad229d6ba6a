"""Estimate of the duration of a crawl at the polite rate, from what is known before it starts.

Each host gets one request per crawl delay, so the host with the most pages takes longest, and the number of hosts
limits the pages per second. Response times can only increase the duration; hosts discovered later can reduce it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from surveyor.arrays import IntArray


@dataclass(frozen=True, slots=True)
class Forecast:
    """Estimated duration of a crawl."""

    pages: int  # queued
    hosts: int  # with queued pages
    rate: float  # pages per second that these hosts allow; inf without a delay
    seconds: float  # lower bound until all of them are read; or time for the pages of the goal at this rate
    is_goal: bool = False


def forecast(waiting: IntArray | Sequence[int], delays: Sequence[float], most: float = math.inf) -> Forecast:
    """Return how long it takes to read all queued pages (one count per host), or `most` pages at their rate.

    >>> forecast([100, 50], [1.0, 1.0])
    Forecast(pages=150, hosts=2, rate=2.0, seconds=100.0, is_goal=False)
    >>> forecast([100, 50], [1.0, 1.0], most=60).seconds, forecast([1], [2.0], most=500).seconds
    (30.0, 1000.0)
    """
    known = [(int(pages), delay) for pages, delay in zip(waiting, delays, strict=True) if pages > 0]
    total = sum(pages for pages, _ in known)
    rate = math.fsum(1 / delay if delay > 0 else math.inf for _, delay in known)
    longest = max((pages * delay for pages, delay in known), default=0.0)
    seconds = longest if most == math.inf else most / rate if rate else 0.0
    return Forecast(total, len(known), rate, seconds, most < math.inf)
