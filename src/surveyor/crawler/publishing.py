"""Publish the state of a running crawl or watch in its survey (`store/published.py`), about once a second.

A run publishes while it waits and after outcomes, and once more when it has ended. The time between two states is at
least `1 / SHARE` times the CPU time that one takes, so publishing costs at most that part of the time in a run of any
size; the figures that visit all pages have a limit of their own (`measures.py`). If the disk is full or read-only, that
is logged once and the run continues; publishing is tried again with the next state.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.crawler.measures import Measures, Paced, Upcoming
from surveyor.crawler.steering import Controls, Steering
from surveyor.crawler.strategies.strategy import name_of
from surveyor.errors import SurveyorError
from surveyor.store import published

if TYPE_CHECKING:
    from surveyor.crawler.coverage_walks import SampledCoverage
    from surveyor.crawler.frontier import Frontier
    from surveyor.crawler.queues import HostQueues
    from surveyor.crawler.replay import Derived
    from surveyor.fetch.politeness.hosts import Hosts
    from surveyor.store.directory import SurveyFolder

LOG = logging.getLogger("surveyor.crawler")
EVERY = 1.0  # seconds
SHARE = 0.004  # of the time may be CPU time of publishing
WAIT_SHARE = 0.02  # of the time may be spent waiting for the disk
LONGEST = 10.0  # seconds between two states, whatever they take: readers must see that the run is alive
MESSAGES, HOSTS, REASONS = 20, 20, 50  # listed
LONGEST_TEXT = 1_000  # characters of a message
OTHERS = "other reasons"


@dataclass(frozen=True, slots=True)
class Subject:
    """What is published: the parts of a run."""

    command: str  # crawl, watch or scout
    state: Derived
    hosts: Hosts
    queues: HostQueues
    frontier: Frontier
    measures: Measures
    before: int  # pages fetched in earlier runs
    in_progress: Callable[[], int]
    goal: Callable[[], str]
    left: Callable[[], float | None]
    sampled: Callable[[], SampledCoverage | None] = lambda: None
    explain: Callable[[Upcoming], str] | None = None  # why a page is next; None: by its waiting mass


class Publisher:
    """Publishes the states of a run, and the growth of its coverage."""

    def __init__(self, folder: SurveyFolder, steering: Steering) -> None:
        self._folder, self._steering = folder, steering
        self._subject: Subject | None = None
        self._started_at, self._due, self._is_ready, self._has_failed = time.time(), -math.inf, False, False
        self._curve = GrowthCurve(folder)
        self._waiting: Paced[list[dict[str, Any]]] | None = None
        self._queued: Paced[int] | None = None

    def follow(self, subject: Subject) -> None:
        """Publish this from now on, at once."""
        self._subject, self._due = subject, -math.inf
        self._waiting = Paced(lambda: hosts_waiting(subject))
        self._queued = Paced(lambda: len(subject.frontier))
        self.publish()

    def publish(self, *, now: bool = False) -> None:
        """Publish the state if it is due, or `now`."""
        began = time.monotonic()
        if self._subject is not None and (now or began >= self._due):
            self._attempt("stopping" if self._steering.stopping else "paused" if self._steering.paused else "running")

    def end(self, ending: str) -> None:
        """Publish the last state."""
        self._steering.close()
        if self._subject is not None:
            self._attempt("ended", ending)

    def _attempt(self, status: str, ending: str | None = None) -> None:
        began, used, apart = time.monotonic(), time.thread_time(), self._paced()
        try:
            if not self._is_ready:
                published.prepare(self._folder.folder)
                self._curve.restore(0 if self._subject is None else self._subject.before)
                self._is_ready = True
            state = self._state(status, ending)
            self._curve.record(state, last=ending is not None)
            published.write_state(self._folder.folder, state)
            self._has_failed = False
        except (OSError, SurveyorError) as error:  # a full or read-only disk, a folder that is a link
            self._is_ready = False
            if not self._has_failed:
                self._has_failed = True
                LOG.warning("the state of the crawl cannot be published: %s", str(error).partition("\n")[0])
        cost = time.thread_time() - used - (self._paced() - apart)
        waited = (time.monotonic() - began) / WAIT_SHARE
        self._due = began + min(max(EVERY, cost / SHARE, waited), LONGEST)

    def _paced(self) -> float:
        """Return the seconds spent on figures that have a limit of their own."""
        measures = None if self._subject is None else self._subject.measures
        paced = [self._waiting, self._queued, *(() if measures is None else (measures.census, measures.next))]
        return math.fsum(one.spent for one in paced if one is not None)

    def _state(self, status: str, ending: str | None) -> dict[str, Any]:
        subject, steering, is_last = self._subject, self._steering, ending is not None
        assert subject is not None  # noqa: S101
        assert self._waiting is not None  # noqa: S101
        assert self._queued is not None  # noqa: S101
        tally, crawl, measures, url = subject.state.tally, subject.state.crawl, subject.measures, subject.state.urls
        census = measures.census(now=is_last)
        coverage = crawl.ledger.coverage() if self._folder.journal.keeps_graph else None
        best_possible = None if coverage is None else 1 - coverage.blocked - coverage.lost
        explain = subject.explain or _explained(subject)
        return {
            "version": published.VERSION,
            "pid": os.getpid(),
            "machine": published.machine(),
            "command": subject.command,
            "started_at": self._started_at,
            "written_at": time.time(),
            "status": status,
            "ending": ending,
            "goal": subject.goal(),
            "strategy": name_of(crawl.strategy),
            "pages": tally.pages,
            "before": subject.before,
            "known": crawl.ledger.known,
            "queued": self._queued(now=is_last),
            "requests": tally.requests,
            "bytes": tally.bytes,
            "hosts": len(subject.hosts),
            "in_progress": subject.in_progress(),
            "coverage": None if coverage is None else {**coverage.to_dict(), "sampled": _sampled(subject.sampled())},
            "blocked": _blocked(census.blocked),
            "statuses": census.statuses,
            "http": {str(code): number for code, number in sorted(measures.http.items())},
            "rate": measures.rate(),
            "left": None if is_last else subject.left(),
            "best_possible": best_possible,
            "next": [
                {"url": url[one.page], "mass": one.mass, "why": explain(one)} for one in measures.next(now=is_last)
            ],
            "recent": [{**one._asdict(), "url": url[one.page]} for one in reversed(measures.latest)],
            "hosts_waiting": self._waiting(now=is_last),
            "messages": [text[:LONGEST_TEXT] for text in [*subject.hosts.messages[-MESSAGES:], *steering.messages]],
            "taken": list(steering.taken),
            "listening": steering.listening,
        }


class Live:
    """The published state of a run, and its commands; a run with a simulated clock has neither."""

    def __init__(self, folder: SurveyFolder, *, is_published: bool) -> None:
        self.steering, self.ending = Steering(folder), ""
        self.publisher = Publisher(folder, self.steering) if is_published else None

    def follow(self, subject: Subject, controls: Controls) -> None:
        """Publish this from now on, and pass commands on to these controls."""
        if self.publisher is not None:
            self.steering.control(controls)
            self.publisher.follow(subject)

    def update(self, *, is_tick: bool) -> None:
        """Take commands at a tick, and publish the state if it is due."""
        if self.publisher is not None:
            self.publisher.publish(now=is_tick and self.steering.poll())

    def __enter__(self) -> Live:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if self.publisher is not None:
            stopped = isinstance(error, KeyboardInterrupt | asyncio.CancelledError)
            self.publisher.end("interrupted" if stopped else "failed" if error is not None else self.ending)


class GrowthCurve:
    """The growth of the coverage over all runs of a survey."""

    def __init__(self, folder: SurveyFolder) -> None:
        self._folder, self._rows = folder.folder, list[tuple[float, ...]]()
        self._spacing, self._elapsed, self._started = EVERY, 0.0, time.monotonic()

    def restore(self, pages: int) -> None:
        """Continue the curve of the earlier runs, which fetched so many pages."""
        self._rows = [row for row in published.read_points(self._folder) if row[0] <= pages][-published.MOST_POINTS :]
        self._elapsed = self._rows[-1][1] if self._rows else 0.0
        self._spacing = max(EVERY, 2 * self._elapsed / published.MOST_POINTS)
        self._started = time.monotonic()
        published.write_points(self._folder, self._rows)

    def record(self, state: Mapping[str, Any], *, last: bool) -> None:
        """Add a point if the last one is far enough, and something was fetched since."""
        seconds, before = self._elapsed + time.monotonic() - self._started, self._rows[-1] if self._rows else None
        if before is not None and (state["pages"] == before[0] or (seconds - before[1] < self._spacing and not last)):
            return
        bounds = state["coverage"] or {"at_least": math.nan, "at_most": math.nan, "sampled": None}
        sampled = math.nan if bounds["sampled"] is None else bounds["sampled"]["at_least"]
        row = float(state["pages"]), seconds, bounds["at_least"], bounds["at_most"], sampled
        self._rows.append(row)
        if len(self._rows) <= published.MOST_POINTS:
            published.append_point(self._folder, row)
        else:
            self._rows[:] = [*self._rows[:-1:2], row]
            self._spacing *= 2
            published.write_points(self._folder, self._rows)


def hosts_waiting(subject: Subject) -> list[dict[str, Any]]:
    """Return the hosts with queued pages, those of most mass first, and when and why they are asked again."""
    queued, masses = subject.queues.waiting(), subject.state.crawl.ledger.residual
    mass = subject.queues.waiting_mass(masses)
    order = np.lexsort((-queued, -mass))
    now, found = subject.hosts.clock(), []
    for number in order[queued[order] > 0][:HOSTS].tolist():
        host, backoff = subject.hosts[number], subject.hosts.backoff(number)
        again_at = host.ready_at if backoff is None else max(host.ready_at, backoff[0])
        again_in = min(max(0.0, again_at - now), 1e9)
        paced = "request in progress" if host.busy else "crawl delay" if again_in > 0 else "ready"
        found.append(
            {
                "host": host.name,
                "queued": int(queued[number]),
                "mass": float(mass[number]),
                "again_in": again_in,
                "delay": min(host.delay, 1e9),
                "why": (host.excluded or (backoff[2] if backoff is not None else paced))[:LONGEST_TEXT],
            }
        )
    return found


def share_in_words(share: float) -> str:
    """Return a share, rounded down.

    >>> share_in_words(0.0318), share_in_words(0.0004)
    ('3.1 %', 'less than 0.1 %')
    """
    return "less than 0.1 %" if share < 0.001 else f"{math.floor(1000 * share + 1e-9) / 10:.1f} %"


def _explained(subject: Subject) -> Callable[[Upcoming], str]:
    """Return a function that explains why a page is fetched next."""
    crawl, held = subject.state.crawl, subject.frontier.held
    by_mass = name_of(crawl.strategy).startswith("rankmass")
    listed, wanted = crawl.ledger.listed, set(crawl.walks.wanted.tolist())

    def explain(one: Upcoming) -> str:
        if one.page in held:
            return "waits for a retry"
        if one.page in wanted:
            return "a random walk needs it"
        at = int(np.searchsorted(listed, one.page))  # there may be a million
        if not one.mass and at < listed.size and listed[at] == one.page:
            return "listed: known in advance"
        waits = (
            f"{share_in_words(one.mass)} of the importance waits here" if one.mass > 0 else "no importance waits here"
        )
        return waits if by_mass else f"next in the order of {name_of(crawl.strategy)}; {waits}"

    return explain


def _sampled(found: SampledCoverage | None) -> dict[str, float] | None:
    return None if found is None else found.to_dict()


def _blocked(found: Mapping[str, tuple[int, float]]) -> list[dict[str, Any]]:
    """Return the blocked pages and their mass by reason; all but the first reasons are one."""
    rows = sorted(found.items(), key=lambda row: (-row[1][1], -row[1][0], row[0]))
    rest = rows[REASONS:]
    if rest:
        rows = [*rows[:REASONS], (OTHERS, (sum(row[1][0] for row in rest), sum(row[1][1] for row in rest)))]
    return [{"reason": reason[:LONGEST_TEXT], "pages": pages, "mass": mass} for reason, (pages, mass) in rows]
