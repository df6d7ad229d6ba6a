"""How long a crawl takes at the polite rate: said before it starts, from what is known by then.

Each host is asked once per delay, so the pages of the host that has the most take the longest, and so many hosts allow
so many pages a second. That answers take time can only make it longer; hosts that are not known yet can make it faster.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from surveyor.arrays import IntArray


@dataclass(frozen=True, slots=True)
class Forecast:
    """What can be said about the time that a crawl takes."""

    pages: int  # that wait
    hosts: int  # on which they wait
    rate: float  # pages a second that these hosts allow; inf without a delay
    seconds: float  # until all of them are read, at least; or as many as the goal asks for, at this rate
    is_goal: bool = False


def forecast(waiting: IntArray | Sequence[int], delays: Sequence[float], most: float = math.inf) -> Forecast:
    """Say how long it takes to read all that waits, so many pages on each host, or `most` pages at their rate.

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
