"""When a sample is done: as many effective pages, as narrow an interval, as many fetches or as many steps.

    >>> SampleGoal.parse("ess=400")
    SampleGoal(ess=400.0, width=None, fetches=None, steps=None)
    >>> str(SampleGoal.parse("width=3%, fetches=2k"))
    'width 3 % or 2,000 fetches'

Walks are looked at after certain rounds only, always the same ones, so that a sample that was stopped and went on ends
where it would have ended. To stop at the first moment that looks good would make a sample of such moments: intervals
would be too narrow, and rare pages too rare. So half of the goal must be met first, and all of it after twice as many
steps. An interval alone does not end a sample, however narrow: it may be so because what is asked for was hardly met.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from surveyor.arrays import FloatArray
from surveyor.errors import UsageError
from surveyor.estimate.sampling.diagnostics import LOG_DEGREE, MIN_ESS, diagnose, moving_rows
from surveyor.estimate.sampling.estimates import Estimate, mean, mean_or_share
from surveyor.estimate.sampling.properties import Pages, Property, property_of
from surveyor.estimate.sampling.walk_trace import WalkTrace
from surveyor.estimate.sampling.walking import UNLIMITED
from surveyor.stopping import SAMPLE, parse_limits

FIRST, MORE = 32, 8  # rounds before the first look, and what part of them is added each time
LATER = 2.0  # times as many steps, after such a part of the goal was met, all of it must be
AGREE = 1.05  # R-hat: walks that disagree more are not done, whatever they are worth
LONGEST = 2_000_000  # steps of all walks, if nothing else ends a sample
Say = Callable[[WalkTrace, int, Mapping[str, Property]], None]  # steps so far, pages fetched, and what is watched


@dataclass(frozen=True, slots=True)
class SampleGoal:
    """What ends a sample: whatever is met first."""

    ess: float | None = None  # of each property that is watched, and of the degree
    width: float | None = None  # half of the longest interval of the properties watched
    fetches: int | None = None
    steps: int | None = None

    @classmethod
    def parse(cls, text: str) -> SampleGoal:
        """Read a rule such as `ess=400, fetches=2k`."""
        limits = parse_limits(text, SAMPLE)
        counts = {name: int(limits.pop(name)) for name in ("fetches", "steps") if name in limits}
        return cls(**limits, **counts)  # type: ignore[arg-type]  # names are those of the fields

    @property
    def limits(self) -> dict[str, Any]:
        """How many pages may be asked for, and how many steps made."""
        return {"fetches": min(self.fetches or UNLIMITED, UNLIMITED), "steps": min(self.steps or UNLIMITED, UNLIMITED)}

    def met(self, trace: WalkTrace, watched: Mapping[str, FloatArray], part: float = 1.0) -> str:
        """Return which goal the steps so far meet, or which a part of all effective pages; empty if none.

        What is watched and no page has does not hold up the rest.
        """
        if self.ess is None and self.width is None:
            return ""
        if not (some := moving_rows(trace)).all():
            trace, watched = trace.rows(some), {name: values[some] for name, values in watched.items()}
        try:
            found = {LOG_DEGREE: mean(trace, np.log(trace.degree))}
            if not self._met_by(found, part, widest=0.0):  # far from it: what is watched takes more time
                return ""
            known = {name: one for name, one in watched.items() if not np.isnan(one[trace.on_topic]).all()}
            found |= {name: mean_or_share(trace, values) for name, values in known.items()}
            widest = max((found[name].margin for name in known), default=math.inf)
            met = self._met_by(found, part, widest)
            told = diagnose(trace, known) if met else None
        except UsageError:  # too few steps on topic to tell anything
            return ""
        return met if told and not told.stuck and not any(rhat > AGREE for rhat in told.rhat.values()) else ""

    def _met_by(self, found: Mapping[str, Estimate], part: float, widest: float) -> str:
        ess = min(one.ess for one in found.values())
        if self.ess is not None and ess >= part * self.ess:
            return "ess"
        is_narrow = self.width is not None and widest * math.sqrt(part) <= self.width
        return "width" if is_narrow and ess >= part * MIN_ESS else ""

    def __str__(self) -> str:
        told = (
            ("{:,.0f} effective pages", self.ess),
            ("width {:g} %", None if self.width is None else 100 * self.width),
            ("{:,} fetches", self.fetches),
            ("{:,} steps", self.steps),
        )
        return " or ".join(words.format(value) for words, value in told if value is not None)


@dataclass(slots=True)
class GoalCheck:
    """Looks at steps as they become more, and says when a goal is met: not at the first moment that looks good."""

    until: SampleGoal
    first: int = 0  # steps when a part of it was met

    def __call__(self, trace: WalkTrace, watched: Mapping[str, FloatArray]) -> str:
        """Return which goal is met; empty if none is so far."""
        if not self.first and self.until.met(trace, watched, 1 / LATER):
            self.first = len(trace)
        is_later = self.first and len(trace) >= LATER * self.first
        return self.until.met(trace, watched) if is_later else ""


def goal_check(until: SampleGoal, watched: tuple[str, ...], say: Say) -> Callable[[WalkTrace, Pages], str]:
    """Return what says of walks whether they are done, and by what; `say` is told how far they are."""
    known: dict[str, Property] = {}  # what was found out about pages
    looked = GoalCheck(until)

    def done(trace: WalkTrace, pages: Pages) -> str:
        known.update({name: property_of(name, pages) for name in watched if name not in known})
        say(trace, int(trace.fetches[-1]) if len(trace) else 0, known)
        met = looked(trace, {name: one.numbers(trace) for name, one in known.items()})
        return met or ("longest" if len(trace) >= LONGEST and until.steps is None else "")

    return done


def check_intervals() -> Iterator[int]:
    """Yield how many rounds go by before each look."""
    done = 0
    while True:
        more = max(FIRST, done // MORE)
        yield more
        done += more
