"""Webs whose pages change at times that only the judge knows, and the freshness of a copy by its visits.

Importance is PageRank of a synthetic web. Each page has a mean change rate, drawn from a log-normal distribution
(median one per day), and one of three kinds of change: at random (a Poisson process), *periodic* (always after the
same time, random phase) or *bursty* (five changes shortly after each other, at random moments). Some of the pages have
a source of signals, which announces a share `recall` of the changes at once and adds false signals, so that a share
`precision` of them is right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from surveyor.arrays import BoolArray, FloatArray, IntArray
from surveyor.crawler.schedule import DAY, Schedule
from surveyor.graph.synthetic.generate import PRESETS, synthetic_web
from surveyor.rank.pagerank import pagerank

POISSON, PERIODIC, BURSTY = range(3)
BURST = 5  # changes
WITHIN = 0.02  # mean time between the changes of a burst, as a part of the mean time between changes
STEP = 20  # requests that are made at one moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a web is like."""

    pages: int = 2000
    days: float = 30.0
    spread: float = 1.5  # standard deviation of the logarithm of change rates
    odd: float = 0.3  # share of pages that are periodic or bursty, half of them each
    listed: float = 0.5  # share of pages with a source of signals
    precision: float = 0.8
    recall: float = 0.6


@dataclass(frozen=True, slots=True, eq=False)
class WatchedWeb:
    """A web with all its changes; times in seconds."""

    importance: FloatArray
    rates: FloatArray  # changes per second
    kind: IntArray
    first: IntArray  # index of the first change of each page in `changes`
    changes: FloatArray
    listed: BoolArray
    signal_pages: IntArray
    signal_times: FloatArray
    end: float

    @property
    def pages(self) -> int:
        """Number of pages."""
        return int(self.rates.size)


def watched_web(recipe: Recipe, seed: int) -> WatchedWeb:
    """Generate a web and its changes."""
    rng = np.random.default_rng(seed)
    graph = synthetic_web(replace(PRESETS["web"], pages=recipe.pages), rng=seed, names=False).graph
    importance = pagerank(graph, 0.85, 1e-7).scores
    pages, end = graph.pages, recipe.days * DAY
    rates = rng.lognormal(0, recipe.spread, pages) / DAY
    kind = np.where(rng.random(pages) < recipe.odd, rng.integers(PERIODIC, BURSTY + 1, pages), POISSON)
    times = [_changes(int(kind[page]), float(rates[page]), end, rng) for page in range(pages)]
    first = np.concatenate([[0], np.cumsum([some.size for some in times])])
    changes, owner = np.concatenate(times), np.repeat(np.arange(pages), np.diff(first))
    listed = rng.random(pages) < recipe.listed
    announced = listed[owner] & (rng.random(owner.size) < recipe.recall)
    false_rates = np.where(listed, recipe.recall * rates * (1 - recipe.precision) / recipe.precision, 0.0)
    false = np.repeat(np.arange(pages), rng.poisson(false_rates * end))
    signal_pages = np.concatenate([owner[announced], false])
    signal_times = np.concatenate([changes[announced], rng.uniform(0, end, false.size)])
    order = np.argsort(signal_times, kind="stable")
    return WatchedWeb(importance, rates, kind, first, changes, listed, signal_pages[order], signal_times[order], end)


def _changes(kind: int, rate: float, end: float, rng: np.random.Generator) -> FloatArray:
    if kind == PERIODIC:
        return np.arange(rng.random() / rate, end, 1 / rate)
    if kind == POISSON:
        return np.sort(rng.uniform(0, end, rng.poisson(rate * end)))
    begin = rng.uniform(0, end, rng.poisson(rate * end / BURST))
    times = np.sort((begin[:, None] + rng.exponential(WITHIN / rate, (begin.size, BURST)).cumsum(axis=1)).ravel())
    return times[times < end]


@dataclass(frozen=True, slots=True, eq=False)
class Visits:
    """All visits of a run; every page is visited once at time 0."""

    page: IntArray
    time: FloatArray


Planned = Callable[[float, Schedule, FloatArray], None]  # after each plan: now, the schedule, last visits


def watch(
    web: WatchedWeb, schedule: Schedule, *, signals: bool, every: float = 0.3, planned: Planned | None = None
) -> Visits:
    """Visit the pages that a schedule wants, at most `schedule.rate` per second.

    A plan is made after `every` requests per page.
    """
    pages, budget = web.pages, 0.0
    for page in range(pages):
        schedule.observe(page, 0.0, changed=None)
    if signals:
        schedule.listed(np.flatnonzero(web.listed))
    visited, times = list(range(pages)), [0.0] * pages
    upcoming, ends, last = web.first[:-1].copy(), web.first[1:], np.zeros(pages)
    step, heard, since, now = STEP / schedule.rate, 0, np.inf, 0.0
    while now + step < web.end:
        now += step
        if signals:
            until = int(np.searchsorted(web.signal_times, now, "right"))
            for which in range(heard, until):
                schedule.signal(int(web.signal_pages[which]), float(web.signal_times[which]))
            heard = until
        if since >= every * pages:
            schedule.plan(now, web.importance)
            since = 0.0
            if planned is not None:
                planned(now, schedule, last)
        since += STEP
        budget = min(budget + STEP, 3 * STEP)
        for page in schedule.due(now, int(budget)).tolist():
            before = upcoming[page]
            while upcoming[page] < ends[page] and web.changes[upcoming[page]] <= now:
                upcoming[page] += 1
            schedule.observe(page, now, changed=bool(upcoming[page] > before))
            last[page] = now
            visited.append(page)
            times.append(now)
            budget -= 1
    return Visits(np.array(visited), np.array(times))


def regular_visits(web: WatchedWeb, intervals: FloatArray, rng: np.random.Generator) -> Visits:
    """Visit each page at a regular interval, with a random phase."""
    phase = rng.random(web.pages)
    read = np.flatnonzero(np.isfinite(intervals))
    found = [np.arange(phase[page] * intervals[page], web.end, intervals[page]) for page in read.tolist()]
    page = np.repeat(read, [some.size for some in found])
    return Visits(np.concatenate([np.arange(web.pages), page]), np.concatenate([np.zeros(web.pages), *found]))


def fresh_importance(web: WatchedWeb, visits: Visits, edges: FloatArray) -> FloatArray:
    """Return the share of importance that was fresh between each two edges of time, on average."""
    order = np.lexsort((visits.time, visits.page))
    page, time = visits.page[order], visits.time[order]
    owner, apart = np.repeat(np.arange(web.pages), np.diff(web.first)), 2 * web.end
    following = np.searchsorted(owner * apart + web.changes, page * apart + time, "right")
    known = following < web.first[page + 1]
    stale = np.where(known, web.changes[np.minimum(following, web.changes.size - 1)], np.inf)
    until = np.append(time[1:], web.end)
    until[np.append(page[1:] != page[:-1], True)] = web.end
    until = np.minimum(until, stale)
    spans = [
        web.importance[page] @ np.maximum(np.minimum(until, right) - np.maximum(time, left), 0) / (right - left)
        for left, right in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]
    return np.array(spans, np.float64) / float(web.importance.sum())


def is_fresh(web: WatchedWeb, last: FloatArray, now: float) -> BoolArray:
    """Return whether each page is unchanged since its last visit."""
    owner, apart = np.repeat(np.arange(web.pages), np.diff(web.first)), 2 * web.end
    where = owner * apart + web.changes
    pages = np.arange(web.pages) * apart
    before, after = np.searchsorted(where, pages + last, "right"), np.searchsorted(where, pages + now, "right")
    return np.asarray(before == after)
