"""When a crawl with a sampled goal walks, and when it fetches pages in its usual order.

Walks cost fetches, too. Too early, the pages fetched hold less than the goal and no number of walks can prove it;
later, fewer walks suffice. The first guess is free: of the mass that settled since 60 % of the pages were fetched, the
part that returned to those pages predicts the mean of Y. Once it puts the coverage, captured + unsettled · mean(Y),
near the goal, a pilot of `PILOT` walks estimates the mean, the walks for a proof and the fetches per walk. The cost of
a proof after more pages is estimated in the same way, with the accounts that `Growth` predicts. As long as that is not
cheaper, groups of walks are started until the goal is proven. Otherwise the crawl continues, and another epoch starts
later. Where the certified goal is close, no walk is started at all.

Only the choice of the moment depends on these estimates. The bound is valid for any choice (`sampled_bound.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from surveyor.crawler.sampled_bound import Epoch, walks_needed
from surveyor.outcome import Event

if TYPE_CHECKING:
    from surveyor.crawler.coverage_walks import CoverageWalks
    from surveyor.crawler.ledger import Ledger
    from surveyor.crawler.loop import Crawl

PILOT = 20  # walks
GROUP = 5  # walks at a time: unfinished walks are evidence against the goal
STARTS = 400  # walks per epoch, at most
FIRST = 30  # pages before the first pilot
PER_WALK = 7.0  # fetches of a walk that never returns, about
FAR = 2.5  # pilots that the certified goal must be away, in fetches
EARLIER = 0.6  # part of the pages fetched, whose share of the mass settled since then predicts the mean of Y
RETURN = 0.85  # exponent: fewer walks returned to the pages of that time than return to those of now
MARGINS = (-0.08, 0.1)  # of the expected coverage over the goal before a pilot, in parts of the unsettled mass:
MARGIN = 0.05  # the same after a pilot that failed
PRIOR = 10  # weight of the estimate before a pilot, in walks
SMALL = 20  # for a pilot that costs much less than this part of the pages fetched, and for one that costs more
DELAYS = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0, 2.0)  # parts of the pages fetched after which a proof may be cheaper


class Growth:
    """The growth of certified coverage, extrapolated: what is missing falls by a power of the pages fetched.

    >>> growth = Growth()
    >>> for pages in (100, 200, 400):
    ...     growth.record(pages, 1 - 10 / pages)
    >>> round(growth.coverage(1000), 4), round(growth.pages(0.99))
    (0.99, 1000)
    """

    def __init__(self) -> None:
        self._marks: list[tuple[int, float]] = []  # pages and what is missing, at growing distances

    def record(self, pages: int, coverage: float) -> None:
        """Record the coverage after some pages."""
        if pages and (not self._marks or pages >= 1.1 * self._marks[-1][0]):
            self._marks.append((pages, max(1.0 - coverage, 1e-9)))

    def _fit(self) -> tuple[int, float, float]:
        """Return the last mark and the exponent since `EARLIER` of its pages."""
        pages, missing = self._marks[-1]
        before = next((mark for mark in reversed(self._marks) if mark[0] <= EARLIER * pages), self._marks[0])
        if before[0] >= pages or before[1] <= missing:
            return pages, missing, 0.0
        return pages, missing, math.log(before[1] / missing) / math.log(pages / before[0])

    def earlier(self) -> tuple[int, float] | None:
        """Return the pages and the coverage at the last mark with at most `EARLIER` of the pages."""
        if not self._marks:
            return None
        found = next((mark for mark in reversed(self._marks) if mark[0] <= EARLIER * self._marks[-1][0]), None)
        return None if found is None else (found[0], 1.0 - found[1])

    def coverage(self, pages: float) -> float:
        """Return the expected coverage after some pages."""
        if not self._marks:
            return 0.0
        last, missing, exponent = self._fit()
        return 1.0 - missing * math.pow(last / max(pages, last), exponent)

    def pages(self, coverage: float) -> float:
        """Return the expected number of pages for a coverage; inf if there is no estimate."""
        if not self._marks:
            return math.inf
        last, missing, exponent = self._fit()
        if missing <= 1.0 - coverage:
            return float(next(pages for pages, rest in self._marks if rest <= 1.0 - coverage))
        return last * math.pow(missing / (1.0 - coverage), 1 / exponent) if exponent > 0.05 else math.inf


def expected_mean(captured: Growth, ledger: Ledger, walks: CoverageWalks) -> float | None:
    """Estimate the mean of Y before any walk, from the growth of captured mass; None if it is too early.

    Of the mass settled recently, it is about the part that settled on pages fetched long before.
    """
    if (before := captured.earlier()) is None:
        return None
    gained = ledger.coverage().captured - before[1]
    part = (walks.settled_on_first(before[0]) - before[1]) / gained if gained > 0 else 0.0
    return math.pow(min(max(part, 0.01), 0.99), RETURN)


class SamplingPlan:
    """The state of the decision; it is not stored, as all its effects are events.

    The growth of coverage is that of the whole survey: a resumed crawl does not have to observe it again.
    """

    exclusive = False  # other pages are fetched if those that walks wait for are not available for long

    def __init__(self, goal: float, confidence: float, crawl: Crawl, secret: Callable[[], str]) -> None:
        self._goal, self._confidence, self._secret = goal, confidence, secret
        self._ledger, self._walks, self._frontier = crawl.ledger, crawl.walks, crawl.frontier
        self._due: float = FIRST
        self._growth = Growth()
        self._captured = Growth()
        for pages, captured, moving in crawl.walks.growth:
            self._growth.record(pages, captured + moving / 2)
            self._captured.record(pages, captured)
        self._factor = 1.0  # mean of Y in the last epoch, relative to its estimate before
        self._expected = 0.0
        self.walking = bool(crawl.walks.active_without(()))

    def next_events(self, now: float) -> list[Event]:
        """Return the events that start an epoch or walks; none while walks are in progress, or pages are fetched.

        Walks that wait for the retry of a page, or for a host in backoff, do not hold back others.
        """
        pages, walks = self._ledger.read, self._walks
        if walks.proves(self._goal, self._confidence):  # another condition of the rule is not met yet
            self.walking = False
            return []
        if not self.walking:
            coverage = self._ledger.coverage()
            self._growth.record(pages, coverage.captured + coverage.moving / 2)
            self._captured.record(pages, coverage.captured)
            return self._pilot(now) if pages >= self._due and not walks.is_full and self._is_promising() else []
        if walks.active_without(self._frontier.failing_of(walks.wanted)):
            return []
        if not walks.epochs:  # they were discarded
            self.walking = False
            return []
        decides = walks.count - walks.epochs[-1].first >= PILOT or self._is_hopeless()
        if decides and not self._is_cheapest_now():
            self.walking, self._due = False, math.ceil(1.1 * pages)
            return []
        if not walks.left and walks.is_full:
            self.walking, self._due = False, math.inf
            return []
        if not walks.left:
            return self._pilot(now)
        return [self._launch(now, GROUP)]

    def _is_hopeless(self) -> bool:
        """Return whether the first walks of a pilot speak clearly against the goal."""
        last = self._walks.epochs[-1]
        mine = self._walks.values[last.first :]
        mean, error = float(mine.mean()), float(mine.std()) / math.sqrt(mine.size)
        return mine.size >= PILOT / 2 and last.captured + (mean + error) * last.unsettled < self._goal

    def _is_promising(self) -> bool:
        """Return whether a pilot may pay: the goal seems near, and the certified goal is far."""
        pages, coverage = self._ledger.read, self._ledger.coverage()
        cost = PILOT * self._per_walk()
        unsettled = coverage.waiting + coverage.moving
        likely = coverage.captured + self._mean() * unsettled
        margin = (MARGINS[0] + (MARGINS[1] - MARGINS[0]) * min(1.0, SMALL * cost / pages)) * unsettled
        if self._walks.epochs:
            margin = MARGIN * unsettled
        if likely >= self._goal + margin and self._growth.pages(self._goal) - pages > FAR * cost:
            return True
        self._due = max(self._due + 1, math.ceil(1.05 * pages))
        return False

    def _mean(self) -> float:
        """Estimate the mean of Y, if an epoch started now."""
        returned = expected_mean(self._captured, self._ledger, self._walks)
        if returned is None:
            return 0.5
        return min(0.99, self._factor * returned)

    def _pilot(self, now: float) -> list[Event]:
        self.walking, self._expected = True, expected_mean(self._captured, self._ledger, self._walks) or 0.0
        detail = self._walks.draw(self._secret(), STARTS, self._frontier.failing)
        return [Event("epoch", now, detail), self._launch(now, GROUP)]

    def _launch(self, now: float, count: int) -> Event:
        bounds = [[self._confidence, self._walks.at_least(self._confidence)]]
        return Event("walks", now, {"count": count, "bounds": bounds})

    def _per_walk(self) -> float:
        """Return the fetches per walk of the last epoch, or an estimate before the first one."""
        if not self._walks.epochs:
            return PER_WALK * (1 - self._mean())
        return max(0.1, self._walks.fetches_per_walk)

    def _is_cheapest_now(self) -> bool:
        """Return whether a proof is likely to cost fewer fetches now than after more pages."""
        walks, pages = self._walks, self._ledger.read
        values, last = walks.values, walks.epochs[-1]
        mine = values[last.first :]
        per_walk = self._per_walk()
        mean = float(mine.mean())
        if self._expected:
            self._factor = (mine.size * mean / self._expected + PRIOR) / (mine.size + PRIOR)
        needed = walks_needed(self._goal, self._confidence, walks.epochs, values, walks.used)
        cost = needed * per_walk
        cautious = mine * max(0.0, 1 - float(mine.std()) / math.sqrt(mine.size) / max(mean, 1e-9))
        certified = self._growth.pages(self._goal) - pages
        for delay in (math.ceil(part * pages) for part in DELAYS):
            gain = max(0.0, min(self._growth.coverage(pages + delay) - last.captured, 0.95 * last.unsettled))
            later = Epoch(0, last.captured + gain, last.unsettled - gain, 0)
            further = 0.0
            if later.captured < self._goal:
                used = walks.used + len(walks.epochs)
                further = mine.size + walks_needed(self._goal, self._confidence, [later], cautious, used)
            total = min(delay + per_walk * max(PILOT, further), max(certified, delay))
            if total < cost:
                return False
        return cost < math.inf
