"""Stopping rules of a sample: effective sample size, width of an interval, fetches, steps or minutes.

    >>> SampleGoal.parse("ess=400")
    SampleGoal(ess=400.0, width=None, fetches=None, steps=None, minutes=None)
    >>> str(SampleGoal.parse("width=3%, fetches=2k"))
    'width 3 % or 2,000 fetches'

Goals are checked after fixed numbers of rounds, so that a resumed sample ends where an uninterrupted one would.
Stopping at the first check that passes would select favourable moments: intervals would be too narrow and rare pages
too rare. Therefore half of the goal must be met first, and all of it after twice as many steps. A narrow interval alone
does not end a sample: it may be narrow because few pages with the property were visited.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from surveyor.arrays import FloatArray
from surveyor.errors import UsageError
from surveyor.estimate.sampling.diagnostics import LOG_DEGREE, MIN_ESS, diagnose, moving_rows
from surveyor.estimate.sampling.estimates import Estimate, mean, mean_or_share
from surveyor.estimate.sampling.parts import groups_of_walks
from surveyor.estimate.sampling.properties import PageSource, Property, resolve_property
from surveyor.estimate.sampling.walk_methods import UNLIMITED
from surveyor.estimate.sampling.walk_trace import WalkTrace
from surveyor.stopping import SAMPLE, parse_limits

FIRST_CHECK, GROWTH = 32, 8  # rounds before the first check; each later interval is 1/GROWTH of the rounds so far
CONFIRMATION = 2.0  # the whole goal must be met this many times as many steps after a part of it was met
MAX_RHAT = 1.05  # walks that disagree more are not done
MAX_STEPS, STEPS_PER_PAGE = 400_000, 1_000  # of all walks, and per effective page, if the goal sets no limit of steps
PARTS_STEPS = 50_000  # of all walks; if some never met by then, they are in parts of the topic that do not connect
OnProgress = Callable[[WalkTrace, int, Mapping[str, Property]], None]  # steps so far, fetches, tracked properties
Done = Callable[[WalkTrace, PageSource], object]  # truthy ends the walks; a string is recorded as the ending


@dataclass(frozen=True, slots=True)
class SampleGoal:
    """When a sample ends: as soon as any of these is met."""

    ess: float | None = None  # effective sample size of each tracked property, and of the degree
    width: float | None = None  # half-width of the widest interval of the tracked properties
    fetches: int | None = None
    steps: int | None = None
    minutes: float | None = None

    @classmethod
    def parse(cls, text: str) -> SampleGoal:
        """Parse rules such as `ess=400, fetches=2k`."""
        limits = parse_limits(text, SAMPLE)
        counts = {name: int(limits.pop(name)) for name in ("fetches", "steps") if name in limits}
        return cls(**limits, **counts)  # type: ignore[arg-type]  # names are those of the fields

    def met(self, trace: WalkTrace, tracked: Mapping[str, FloatArray], part: float = 1.0) -> str:
        """Return which goal the steps meet, "ess" or "width", or which they meet in part; empty if none.

        A tracked property that no visited page has does not block the others.
        """
        if self.ess is None and self.width is None:
            return ""
        if not (some := moving_rows(trace)).all():
            trace, tracked = trace.rows(some), {name: values[some] for name, values in tracked.items()}
        try:
            estimates = {LOG_DEGREE: mean(trace, np.log(trace.degree))}
            if not self._met_by(estimates, part, widest=0.0):  # cheap check first
                return ""
            known = {name: values for name, values in tracked.items() if not np.isnan(values[trace.on_topic]).all()}
            estimates |= {name: mean_or_share(trace, values) for name, values in known.items()}
            widest = max((estimates[name].margin for name in known), default=math.inf)
            met = self._met_by(estimates, part, widest)
            diagnostics = diagnose(trace, known) if met else None
        except UsageError:  # too few steps on topic
            return ""
        if diagnostics is None or any(rhat > MAX_RHAT for rhat in diagnostics.rhat.values()):
            return ""
        if trace.is_walked and (diagnostics.stuck or groups_of_walks(trace).any()):
            return ""
        return met

    def _met_by(self, estimates: Mapping[str, Estimate], part: float, widest: float) -> str:
        ess = min(estimate.ess for estimate in estimates.values())
        if self.ess is not None and ess >= part * self.ess:
            return "ess"
        is_narrow = self.width is not None and widest * math.sqrt(part) <= self.width
        return "width" if is_narrow and ess >= part * MIN_ESS else ""

    @property
    def max_steps(self) -> float:
        """Steps after which a sample that has not reached its goal ends, with the reason."""
        return max(MAX_STEPS, STEPS_PER_PAGE * (self.ess or 0.0))

    def __str__(self) -> str:
        parts = (
            ("effective sample size {:,.0f}", self.ess),
            ("width {:g} %", None if self.width is None else 100 * self.width),
            ("{:,} fetches", self.fetches),
            ("{:,} steps", self.steps),
            ("{:g} minutes", self.minutes),
        )
        return " or ".join(text.format(value) for text, value in parts if value is not None)


@dataclass(slots=True)
class GoalCheck:
    """Checks a growing trace against a goal, and confirms a partly met goal later before it ends the sample."""

    goal: SampleGoal
    first: int = 0  # steps when a part of the goal was met

    def __call__(self, trace: WalkTrace, tracked: Mapping[str, FloatArray]) -> str:
        """Return which goal is met and confirmed; empty if none."""
        if not self.first and self.goal.met(trace, tracked, 1 / CONFIRMATION):
            self.first = len(trace)
        is_later = self.first and len(trace) >= CONFIRMATION * self.first
        return self.goal.met(trace, tracked) if is_later else ""


@dataclass(frozen=True, slots=True)
class WalkLimits:
    """When walks end: at a number of fetches or steps of all walks, or when `done` returns a true value.

    `done` is called after fixed numbers of rounds and must depend on its arguments only.
    """

    fetches: int = UNLIMITED
    steps: int = UNLIMITED
    done: Done = lambda _trace, _pages: False
    tracked: tuple[str, ...] = ()  # properties that the goal applies to
    expired: Callable[[], bool] = lambda: False  # whether the time is over

    @classmethod
    def of(cls, goal: SampleGoal, tracked: tuple[str, ...], progress: OnProgress) -> WalkLimits:
        """Return the limits for a goal on tracked properties; progress is reported at each check."""
        properties: dict[str, Property] = {}  # values by page are cached in them
        check = GoalCheck(goal)

        def done(trace: WalkTrace, pages: PageSource) -> str:
            properties.update({name: resolve_property(name, pages) for name in tracked if name not in properties})
            progress(trace, int(trace.fetches[-1]) if len(trace) else 0, properties)
            met = check(trace, {name: one.numbers(trace) for name, one in properties.items()})
            if met or goal.steps is not None:
                return met
            if len(trace) >= PARTS_STEPS and groups_of_walks(trace.rows(moving_rows(trace))).any():
                return "parts"
            return "longest" if len(trace) >= goal.max_steps else ""

        fetches, steps = min(goal.fetches or UNLIMITED, UNLIMITED), min(goal.steps or UNLIMITED, UNLIMITED)
        end = math.inf if goal.minutes is None else time.monotonic() + 60 * goal.minutes
        return cls(fetches, steps, done, tracked, lambda: time.monotonic() >= end)


def check_intervals() -> Iterator[int]:
    """Yield the number of rounds before each check."""
    done = 0
    while True:
        more = max(FIRST_CHECK, done // GROWTH)
        yield more
        done += more
