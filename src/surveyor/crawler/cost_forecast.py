"""Forecast of the pages that a coverage goal takes: an extrapolation, not a bound.

What is missing of the certified coverage falls about by a power of the pages fetched (`Growth`). The sampled goal is
met earlier: once captured + unsettled · mean(Y) exceeds it, where the mean is estimated as before a pilot
(`SamplingPlan`), and then costs about a pilot.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from surveyor.crawler.sampling_plan import PER_WALK, PILOT, Growth, expected_mean
from surveyor.stopping import coverage_goal, sampled_goal

if TYPE_CHECKING:
    from surveyor.crawler.loop import Crawl
    from surveyor.stopping import Rule

ENOUGH = 100  # pages before the first forecast
FARTHEST = 30.0  # times the pages fetched: beyond that, the extrapolation means nothing


class CostForecast:
    """The growth of coverage in a crawl, and the pages expected for its goal."""

    def __init__(self, until: Rule) -> None:
        self._goal, self._sampled = coverage_goal(until), sampled_goal(until)
        self._growth = Growth()
        self._due = 0.0

    def record(self, crawl: Crawl) -> bool:
        """Record the coverage if the pages have grown enough; return whether a forecast is possible."""
        pages = crawl.ledger.read
        if self._goal is None or pages < self._due:
            return False
        self.add(pages, crawl.ledger.coverage().captured)
        return pages >= ENOUGH and self._growth.earlier() is not None

    def renew(self) -> None:
        """Allow a forecast at the next call of `record`, also without new pages."""
        self._due = 0.0

    def add(self, pages: int, coverage: float) -> None:
        """Record the coverage after some pages."""
        if pages >= self._due:
            self._growth.record(pages, coverage)
            self._due = 1.1 * pages

    def pages(self, crawl: Crawl) -> tuple[int | None, int | None]:
        """Return the pages expected for the certified and for the sampled goal; None if unknown, or one is reached."""
        now, most = crawl.ledger.coverage(), FARTHEST * crawl.ledger.read
        goal = self._goal
        if goal is None or not now.at_least < goal < 1 - now.blocked - now.lost:
            return None, None
        if self._sampled is not None and crawl.walks.proves(*self._sampled):
            return None, None
        certified, sampled = self._growth.pages(goal), math.inf
        if self._sampled is not None and (mean := expected_mean(self._growth, crawl.ledger, crawl.walks)) is not None:
            captured = (self._sampled[0] - mean) / (1 - mean)
            first = self._growth.pages(captured) if captured > now.captured else float(crawl.ledger.read)
            sampled = min(certified, first + PILOT * PER_WALK * (1 - mean))
        return tuple(math.ceil(pages) if pages <= most else None for pages in (certified, sampled))  # type: ignore[return-value]  # two
