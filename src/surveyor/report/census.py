"""What a survey says of each host, and how the crawl went: one pass over its visits.

All of it is as the journal was when the survey was opened: another process may be writing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.web.robots import Robots
from surveyor.web.urls import domain, host, origin

if TYPE_CHECKING:
    from surveyor.arrays import FloatArray
    from surveyor.outcome import RobotsFile, Visit
    from surveyor.rank.ranking import Ranking
    from surveyor.survey.survey import Survey

BREAK = 300.0  # seconds without any request: the crawl was not running


@dataclass(slots=True)
class Place:
    """A host, or a domain: what is known of it, and how it was treated."""

    name: str
    read: int = 0
    known: int = 0
    share: float = 0.0
    blocked: float = 0.0
    requests: int = 0
    errors: int = 0
    bytes: int = 0
    pause: float | None = None  # the shortest between an answer and the next request
    delay: float = 0.0  # that had to be kept
    origins: set[str] = field(default_factory=set)
    free_at: float = 0.0  # when the last answer ended

    def asked(self, visit: Visit) -> None:
        """Count a request that is in the journal as a visit."""
        self.requests += 1
        self.errors += visit.status >= 400 or not visit.status
        self.bytes += visit.size
        if self.free_at:
            gap = max(0.0, visit.fetched_at - self.free_at)
            self.pause = gap if self.pause is None else min(gap, self.pause)
        self.free_at = max(self.free_at, visit.fetched_at + visit.seconds)


@dataclass(frozen=True, slots=True)
class Census:
    """What one pass over the visits found."""

    hosts: list[Place]  # most important first
    statuses: dict[str, int]  # requests, by how they ended
    ended: dict[str, FloatArray]  # when, in seconds of crawling: pages read, moved, failed
    last: dict[int, Visit]  # the latest visit to each page that was asked about


def census(
    survey: Survey, ranking: Ranking, refused: Sequence[dict[str, Any]] = (), wanted: Collection[int] = ()
) -> Census:
    """Go over all visits once.

    `refused` are the pages that could not be read, as the survey tells; `wanted` are pages of the journal whose
    latest visit is kept.
    """
    found = survey.as_graph()
    places: dict[str, Place] = {}
    for name, share, read in zip(found.graph.names or (), ranking.scores.tolist(), found.read.tolist(), strict=True):
        place = _place(places, name)
        place.known += 1
        place.read += read
        place.share += share
    for row in refused:
        if row["mass"] > 0:  # else it no longer belongs to the scope
            _place(places, row["url"]).blocked += row["mass"]
    last: dict[int, Visit] = {}
    statuses = Counter[str]()
    ended: dict[str, list[float]] = {"fetched": [], "redirected": [], "failed": []}
    keep = frozenset(wanted)
    for visit in islice(survey.journal.visits(), survey.visits):
        if visit.page in keep:
            last[visit.page] = visit
        if visit.fetched_at:  # else nobody was asked
            _place(places, survey.url(visit.page)).asked(visit)
            statuses[str(visit.status or "no answer")] += 1
            kind = visit.kind if visit.kind in ended else "failed"
            ended[kind].append(visit.fetched_at + visit.seconds)
    for page, at in _retries(survey):
        place = _place(places, survey.url(page))
        place.requests += 1
        place.errors += 1
        statuses["tried again later"] += 1
        ended["failed"].append(at)
    hosts = sorted(places.values(), key=lambda place: (-place.share, place.name))
    return Census(hosts, dict(statuses.most_common()), _elapsed(ended), last)


def keep_delays(survey: Survey, hosts: Sequence[Place]) -> None:
    """Fill in the delay that had to be kept: that of the settings, or of robots.txt if it is longer."""
    least = float(survey.manifest.settings.get("delay", 0.0))
    for place in hosts:
        files = [kept for name in place.origins if (kept := survey.journal.robots(name)) is not None]
        place.delay = max([least, *(_robots(kept).crawl_delay or 0.0 for kept in files)])


def by_domain(hosts: Sequence[Place]) -> list[Place]:
    """Sum up hosts by registrable domain."""
    domains: dict[str, Place] = {}
    for one in hosts:
        name = domain(one.name)
        whole = domains.setdefault(name, Place(name))
        for count in ("read", "known", "share", "blocked", "requests", "errors", "bytes"):
            setattr(whole, count, getattr(whole, count) + getattr(one, count))
    return sorted(domains.values(), key=lambda place: (-place.share, place.name))


def by_reason(refused: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sum up what keeps pages from being read, most mass first: reason, hosts, pages, mass."""
    mass: defaultdict[str, float] = defaultdict(float)
    pages = Counter[str]()
    hosts: defaultdict[str, set[str]] = defaultdict(set)
    for row in refused:
        reason = row["reason"]
        mass[reason] += row["mass"]
        pages[reason] += 1
        hosts[reason].add(host(row["url"]))
    most = sorted(mass, key=lambda reason: (-mass[reason], reason))
    return [{"reason": why, "hosts": sorted(hosts[why]), "pages": pages[why], "mass": mass[why]} for why in most]


def _place(places: dict[str, Place], url: str) -> Place:
    name = host(url)
    if (place := places.get(name)) is None:
        place = places[name] = Place(name)
    place.origins.add(origin(url))
    return place


def _robots(kept: RobotsFile) -> Robots:
    return Robots.from_answer(kept.status or None, kept.body)


def _retries(survey: Survey) -> Iterator[tuple[int, float]]:
    """Yield requests that failed and were not the last word: page and time."""
    for event in survey.journal.events():
        page = event.detail.get("page")
        if event.kind == "retry" and event.visit <= survey.visits and isinstance(page, int):
            yield page, event.at


def _elapsed(ended: dict[str, list[float]]) -> dict[str, FloatArray]:
    """Turn times of day into seconds of crawling, without the breaks."""
    every = np.sort(np.array([at for times in ended.values() for at in times], np.float64))
    passed = np.concatenate([np.zeros(min(1, every.size)), np.cumsum(np.minimum(np.diff(every), BREAK))])
    return {kind: np.interp(times, every, passed) if times else np.zeros(0) for kind, times in ended.items()}
