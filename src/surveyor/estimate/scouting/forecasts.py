"""Forecasts of a crawl after a scout: pages and hours for a coverage, certified or sampled.

They are extrapolations, not estimates with a known error: what is missing to full coverage falls by a power of the
pages fetched (`Growth`). For the certified coverage, that power is measured along the pages of the scout itself. The
sampled coverage follows the true one, which is estimated from the walks (`walk_statistics.coverage_curve`).

The time is that of the crawl delays of the hosts with queued pages, or without delays that of the pages of the scout.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from surveyor.arrays import FloatArray
from surveyor.crawler.sampling_plan import Growth
from surveyor.estimate.scouting.walk_statistics import CoverageCurve

GOALS = (0.5, 0.8, 0.9, 0.95)
FEWEST = 20  # pages from which a forecast is made
FARTHEST = 50  # times the pages of the scout: no forecast beyond
PROOF = 0.25  # part of what the goal leaves that the true coverage must exceed it by, for a proof by few walks


@dataclass(frozen=True, slots=True)
class CrawlForecast:
    """Pages of a crawl, those of the scout included, and further hours until a coverage is reached."""

    coverage: float
    certified_pages: int | None  # None: no forecast
    certified_hours: float | None
    sampled_pages: int | None
    sampled_hours: float | None
    reason: str = ""  # why a forecast is missing

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict."""
        return asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class ScoutedSite:
    """What forecasts follow from."""

    fetched: int  # pages, those of the sample included
    certified: FloatArray  # coverage after each page before the sample, which has pages of no importance
    curve: CoverageCurve
    best_possible: float  # coverage, given what is blocked and gone
    rate: float | None  # pages per second
    is_complete: bool = False  # no known URL is left
    now: float = 0.0  # certified coverage of all fetched pages


def forecasts(site: ScoutedSite, goals: Sequence[float] = GOALS) -> list[CrawlForecast]:
    """Forecast the pages and hours for some goals.

    >>> certified = 1 - 10 / np.arange(20, 401)
    >>> curve = CoverageCurve(np.array([50.0, 100.0, 200.0]), np.array([0.8, 0.9, 0.95]))
    >>> one = forecasts(ScoutedSite(400, certified, curve, 1.0, 1.0), [0.99])[0]
    >>> round(one.certified_pages, -1), round(one.sampled_pages, -1), one.reason
    (1020, 1020, '')
    """
    certified, true = Growth(), Growth()
    for pages, coverage in enumerate(site.certified.tolist(), 1):
        certified.record(pages, coverage)
    for pages, coverage in zip(site.curve.pages.tolist(), site.curve.coverage.tolist(), strict=True):
        true.record(max(1, round(pages)), coverage)
    return [_forecast(goal, site, certified, true) for goal in goals]


def _forecast(goal: float, site: ScoutedSite, certified: Growth, true: Growth) -> CrawlForecast:
    proven = certified.pages(goal)
    if site.certified.size and site.certified[-1] >= goal:
        pages: float = int(np.argmax(site.certified >= goal)) + 1
        return CrawlForecast(goal, int(pages), 0.0, int(pages), 0.0)
    if site.now >= goal:
        return CrawlForecast(goal, site.fetched, 0.0, site.fetched, 0.0)
    if reason := _refusal(goal, site):
        return CrawlForecast(goal, None, None, None, None, reason)
    sampled = true.pages(goal + PROOF * (1 - goal))
    limit = FARTHEST * site.fetched
    first, second = _bounded(max(proven, site.fetched), limit), _bounded(max(min(sampled, proven), site.fetched), limit)
    reason = "" if first is not None else f"coverage grows too slowly, or beyond {limit:,} pages"
    return CrawlForecast(goal, first, _hours(first, site), second, _hours(second, site), reason)


def _refusal(goal: float, site: ScoutedSite) -> str:
    if site.best_possible < goal:
        return "too much importance is on blocked or broken pages"
    if site.is_complete:
        return "no known URL is left to fetch"
    return f"fewer than {FEWEST} pages were fetched" if site.fetched < FEWEST else ""


def _bounded(pages: float, limit: int) -> int | None:
    return None if not pages <= limit else math.ceil(pages)


def _hours(pages: int | None, site: ScoutedSite) -> float | None:
    if pages is None or not site.rate:
        return None
    return max(0, pages - site.fetched) / site.rate / 3600
