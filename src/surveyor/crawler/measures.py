"""Figures of a running crawl that its display and its published state share: rate, time left, what is blocked or next.

Some of them visit all known pages. Such a figure is computed again only when it has had at least `1 / SHARE` times the
duration of its last computation to be of use (`Paced`), so the figures cost at most that part of a crawl of any size.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np

from surveyor.stopping import NO_LIMIT, coverage_goal

if TYPE_CHECKING:
    from surveyor.arrays import FloatArray
    from surveyor.crawler.frontier import Frontier
    from surveyor.crawler.replay import Derived
    from surveyor.outcome import Outcome
    from surveyor.stopping import Rule

RECENT = 60.0  # seconds over which the rate is measured
STEP = 0.5  # seconds between two points of that time
ESTIMATE_AFTER = 60.0  # seconds before the remaining time is estimated
SHARE = 0.002  # of the time, for each paced figure
NEXT, LATEST = 10, 10  # pages listed
MOST_REASONS = 1 << 16
Value = TypeVar("Value")


class Paced(Generic[Value]):
    """A value that is computed again when that costs at most a small share of the time."""

    def __init__(self, compute: Callable[[], Value], share: float = SHARE) -> None:
        self._compute, self._share = compute, share
        self._due, self.spent = -math.inf, 0.0  # seconds of computing, in all
        self._value: Value | None = None

    def __call__(self, *, now: bool = False) -> Value:
        """Return the value, computed again if that is due, or asked for."""
        began = time.monotonic()
        if self._value is None or now or began >= self._due:
            used = time.thread_time()
            self._value = self._compute()
            cost = time.thread_time() - used
            self._due, self.spent = began + cost / self._share, self.spent + cost
        return self._value


class Upcoming(NamedTuple):
    """A queued page."""

    page: int
    mass: float
    priority: float


class Recent(NamedTuple):
    """An outcome."""

    page: int
    kind: str
    status: int
    seconds: float
    at: float


@dataclass(frozen=True, slots=True)
class Census:
    """The known pages by status, and the blocked ones by reason with their mass."""

    statuses: dict[str, int]
    blocked: dict[str, tuple[int, float]]


class Measures:
    """The figures of one run; `record` has to see each outcome."""

    def __init__(self, state: Derived) -> None:
        self.started, self._before = time.monotonic(), state.tally.pages
        self._past: deque[tuple[float, int, float]] = deque()  # time, pages, at least
        self._reasons: dict[str, int] = {"": 0}
        self.latest: deque[Recent] = deque(maxlen=LATEST)
        self.http: Counter[int] = Counter()  # responses of this run by HTTP status
        self.follow(state, state.crawl.frontier, lambda: state.crawl.ledger.residual)

    def follow(self, state: Derived, frontier: Frontier, masses: Callable[[], FloatArray]) -> None:
        """Measure this state from now on, with the queue of this frontier; `masses` returns the mass of each page."""
        self._state = state
        self._reason_of = np.zeros(0, np.uint16)  # of blocked pages
        self.census = Paced(self._count)
        self.next = Paced(lambda: best(frontier, masses()))

    def restore(self, blocked: Iterable[Outcome]) -> None:
        """Record the pages that were blocked before this run."""
        for outcome in blocked:
            self._block(outcome)

    def record(self, outcome: Outcome) -> None:
        """Record an outcome."""
        if outcome.kind == "blocked":
            self._block(outcome)
        status, at = getattr(outcome, "status", 0), getattr(outcome, "fetched_at", 0.0)
        if status:
            self.http[status] += 1
        if at:
            self.latest.append(Recent(outcome.page, outcome.kind, status, getattr(outcome, "seconds", 0.0), at))

    def _block(self, outcome: Outcome) -> None:
        if outcome.page >= self._reason_of.size:
            grown = np.zeros(max(outcome.page + 1, 2 * self._reason_of.size), np.uint16)
            grown[: self._reason_of.size] = self._reason_of
            self._reason_of = grown
        known = len(self._reasons)
        number = self._reasons.setdefault(outcome.reason, known) if known < MOST_REASONS else 0
        self._reason_of[outcome.page] = number

    def rate(self) -> float:
        """Return the pages per second of the last minute."""
        now, pages = time.monotonic(), self._state.tally.pages
        if not self._past or now - self._past[-1][0] >= STEP:
            self._past.append((now, pages, self._state.crawl.ledger.coverage().at_least))
        while now - self._past[0][0] > RECENT:
            self._past.popleft()
            if not self._past:
                return 0.0
        then, before, _ = self._past[0]
        if now - then < 1:
            then, before = self.started, self._before
        return (pages - before) / max(now - then, 1e-3)

    def left(self, until: Rule) -> float | None:
        """Estimate the seconds to the goal; None if there is no estimate.

        The missing mass of a coverage goal is assumed to decay exponentially, and pages to be fetched at the rate of
        the last minute.
        """
        goal, (_, pages) = coverage_goal(until), until.limits() or (math.inf, NO_LIMIT)
        now, found = time.monotonic(), list[float]()
        if now - self.started < ESTIMATE_AFTER or len(self._past) < 2:
            return None
        then, before, at_least = self._past[0]
        if pages < NO_LIMIT and self._state.tally.pages > before:
            found.append((pages - self._state.tally.pages) * (now - then) / (self._state.tally.pages - before))
        coverage = self._state.crawl.ledger.coverage()
        best_possible = 1 - coverage.blocked - coverage.lost
        missing, past = best_possible - coverage.at_least, best_possible - at_least
        if goal is not None and best_possible > goal and 0 < missing < past:
            pace = math.log(past / missing) / (now - then)
            found.append(math.log(missing / (best_possible - goal)) / pace)
        return max(1.0, min(found)) if found else None

    def blocked_mass(self) -> dict[str, float]:
        """Return the mass that is blocked now, by reason."""
        return {reason: mass for reason, (_, mass) in self.census().blocked.items()}

    def _count(self) -> Census:
        from surveyor.kernels import mass

        ledger = self._state.crawl.ledger
        status = ledger.state & mass.STATUS
        counts = np.bincount(status, minlength=8)
        kinds = {"fetched": mass.FETCHED, "redirected": mass.REDIRECTED, "gone": mass.GONE, "blocked": mass.BLOCKED}
        blocked = np.flatnonzero(status == mass.BLOCKED) if counts[mass.BLOCKED] else np.empty(0, np.int64)
        reason = np.zeros(blocked.size, np.uint16)
        known = blocked < self._reason_of.size
        reason[known] = self._reason_of[blocked[known]]
        amount = ledger.residual[blocked] if ledger.residual.size else np.zeros(blocked.size)
        pages, masses = np.bincount(reason), np.bincount(reason, amount)
        names = list(self._reasons)
        found = {names[at]: (int(pages[at]), float(masses[at])) for at in np.flatnonzero(pages).tolist()}
        return Census({name: int(counts[code]) for name, code in kinds.items()}, found)


def best(frontier: Frontier, masses: FloatArray, count: int = NEXT) -> list[Upcoming]:
    """Return the queued pages of highest priority, without those in progress; ties go to the smaller id."""
    queued = frontier.queued()
    busy = set(frontier.leased.tolist()) - frontier.held
    most = min(count + len(busy), queued.pages.size)
    if not most:
        return []
    least = np.partition(queued.priorities, -most)[-most]  # all of the same priority are candidates
    top = np.flatnonzero(queued.priorities >= least)
    order = top[np.lexsort((queued.pages[top], -queued.priorities[top]))][: count + len(busy)]
    found = []
    for page, priority in zip(queued.pages[order].tolist(), queued.priorities[order].tolist(), strict=True):
        if page not in busy:
            found.append(Upcoming(page, float(masses[page]) if page < masses.size else 0.0, priority))
    return found[:count]
