"""Directs a sharded crawl: collects reports, certifies the joint coverage, and decides when to push and to stop.

It holds nothing that counts: reports may be lost or late, and a new director starts from the next ones.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace

from surveyor.crawler.ledger import CoverageInterval
from surveyor.crawler.loop import Ending
from surveyor.crawler.shards.bounds import Report, joint_coverage
from surveyor.stopping import Progress, Rule, coverage_goal

LEAST_MOVING = 1e-4  # of all mass: less is not pushed for a goal
MOST_MOVING, SHRINKS, PATIENCE = 0.02, 0.9, 3.0  # mass in motion before fetches begin; its decay, and in how long
EPOCH_EVERY = 1.0  # seconds between two consistent cuts, once links were corrected
STEADY = 3  # reports of every shard, at which nothing has changed, after which a crawl has ended


@dataclass(frozen=True, slots=True)
class Orders:
    """What all shards are to do."""

    best: float = 0.0  # mass of the best page of all shards, as far as it is known
    epoch: int = 0
    threshold: float = 0.0  # push moving mass down to this now; 0: do not
    holds: bool = False  # fetch nothing


@dataclass(slots=True)
class Director:
    """The view of all shards."""

    shards: int
    until: Rule
    damping: float
    max_fruitless: int = 0
    started: float = field(default_factory=time.monotonic)
    reports: dict[int, Report] = field(default_factory=dict)
    _entered: defaultdict[int, dict[int, Report]] = field(default_factory=lambda: defaultdict(dict))
    _certified: CoverageInterval | None = None  # by the last consistent cut
    _epoch: int = 0
    _epoch_at: float = 0.0
    _updates: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))  # reports of each shard
    _steady_from: dict[int, int] = field(default_factory=dict)  # of these, when something last changed
    _before: tuple[int, ...] = ()
    _pages: int = -1
    _requests: int = 0  # when the last page was fetched
    _caught_up: bool = False
    _moving: float = 2.0  # mass, when it last shrank
    _moved_at: float = 0.0

    def update(self, reports: list[Report]) -> None:
        """Take the reports of one shard: that of now, and that made on entering the current epoch, if it is ready."""
        now, *entered = reports
        self.reports[now.shard] = now
        self._updates[now.shard] += 1
        self._epoch = max(self._epoch, now.epoch)
        for report in entered:
            self._entered[report.epoch][report.shard] = report
            if len(self._entered[report.epoch]) == self.shards:
                cut = list(self._entered.pop(report.epoch).values())
                self._certified = joint_coverage(cut, damping=self.damping, aliases=True, consistent=True)
        for old in [epoch for epoch in self._entered if epoch < self._epoch - 2]:
            del self._entered[old]

    def ignore_best(self, shards: Iterable[int]) -> None:
        """Ignore the best pages of shards that do not run now, so that the others do not wait for them."""
        for shard in shards:
            if shard in self.reports:
                self.reports[shard] = replace(self.reports[shard], best=0.0)

    @property
    def is_complete(self) -> bool:
        """Whether every shard has reported."""
        return len(self.reports) == self.shards

    @property
    def corrected(self) -> bool:
        """Whether links were corrected, so that only consistent cuts certify a coverage."""
        return any(report.corrected for report in self.reports.values())

    def coverage(self) -> CoverageInterval | None:
        """Return the joint coverage; None while some shard has not reported."""
        if not self.is_complete:
            return None
        if self.corrected:
            return self._certified
        return joint_coverage(list(self.reports.values()), damping=self.damping, aliases=True)

    def progress(self) -> Progress:
        """Return the progress of the crawl."""
        now, reports = self.coverage(), self.reports.values()
        return Progress(
            pages=sum(report.fetched for report in reports),
            seconds=time.monotonic() - self.started,
            bytes=sum(report.bytes for report in reports),
            at_least=0.0 if now is None else now.at_least,
            best_possible=1.0 if now is None else 1 - now.blocked - now.lost,
            in_motion=1.0 if now is None else now.waiting + now.moving,
            requests=sum(report.requests for report in reports),
        )

    def orders(self) -> Orders:
        """Return what all shards are to do next."""
        now = time.monotonic()
        if self.corrected and now >= self._epoch_at:
            self._epoch, self._epoch_at = self._epoch + 1, now + EPOCH_EVERY
        best = max((report.best for report in self.reports.values()), default=0.0)
        threshold = self._push_depth()
        return Orders(best, self._epoch, threshold, holds=threshold > 0 or not self._is_caught_up(now))

    def _is_caught_up(self, now: float) -> bool:
        """Whether mass has reached the pages where it waits; after `reshard` it first passes through all fetched pages.

        Until then the best pages are unknown.
        """
        coverage = self.coverage()
        if self._caught_up or coverage is None:
            return self._caught_up
        if coverage.moving < SHRINKS * self._moving:
            self._moving, self._moved_at = coverage.moving, now
        self._caught_up = coverage.moving < MOST_MOVING or now > self._moved_at + PATIENCE
        return self._caught_up

    def _push_depth(self) -> float:
        """Return the threshold of a push that may reach the goal without a fetch, or that is the last; 0 if none."""
        now = self.coverage()
        if now is None or now.moving < LEAST_MOVING:
            return 0.0
        known = max(sum(report.known + report.proxies for report in self.reports.values()), 1)
        if all(report.idle for report in self.reports.values()):
            return LEAST_MOVING / 2 / known
        goal = coverage_goal(self.until)
        surplus = -math.inf if goal is None else now.captured + now.moving - goal
        if surplus < 0 or goal is None or now.at_least >= goal:
            return 0.0
        return max(surplus, LEAST_MOVING) / 2 / known

    def ending(self) -> Ending | None:
        """Return how the crawl has ended; None if it has not."""
        if not self.is_complete:
            return None
        progress = self.progress()
        if self.until.done(progress):
            return "reached"
        if self.until.unreachable(progress):
            return "unreachable"
        if progress.pages != self._pages:
            self._pages, self._requests = progress.pages, progress.requests
        fruitless = progress.requests - self._requests
        if 0 < self.max_fruitless <= fruitless and fruitless >= progress.pages:
            return "fruitless"
        return "exhausted" if self._is_still() else None

    def _is_still(self) -> bool:
        """Whether nothing is queued, in progress or in flight, and that has been so for some reports."""
        reports = self.reports.values()
        cuts, gots = sum(report.cuts for report in reports), sum(report.gots for report in reports)
        here = (cuts, gots, sum(report.fetched for report in reports), sum(report.requests for report in reports))
        if not all(report.idle for report in reports) or cuts != gots or here != self._before:
            self._before, self._steady_from = here, dict(self._updates)
            return False
        return all(self._updates[shard] >= self._steady_from[shard] + STEADY for shard in self.reports)

    def to_dict(self) -> dict[str, object]:
        """Return the progress as plain values."""
        now = self.coverage()
        progress = self.progress()
        return {
            "coverage": None if now is None else asdict(now),
            "pages_fetched": progress.pages,
            "pages_known": sum(report.known for report in self.reports.values()),
            "requests": progress.requests,
            "bytes": progress.bytes,
            "batches": sum(report.cuts for report in self.reports.values()),
        }
