"""Walks as they go on: how much the sample is worth so far, on a terminal drawn anew, elsewhere a line now and then.

To look at all steps takes time, so that a look is taken the more rarely the longer it takes.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping
from shutil import get_terminal_size
from typing import TYPE_CHECKING, TextIO

from surveyor.cli.drawing import Drawing
from surveyor.errors import UsageError
from surveyor.report.accounts import bar
from surveyor.report.numbers import count, counted, percent

if TYPE_CHECKING:
    from surveyor.estimate.sampling.properties import Property
    from surveyor.estimate.sampling.walk_trace import WalkTrace

LINE_EVERY, DRAW_EVERY = 10.0, 0.5  # seconds
SPARE = 20  # times as long as a look takes, nothing is looked at
BARS, NARROWEST, BESIDE = 28, 8, 46  # characters of a bar at most and at least, and of what stands beside it


class WalkDisplay:
    """Draws on stderr while walks go on."""

    def __init__(
        self, goal: str, stream: TextIO | None = None, *, silent: bool = False, color: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._stream = stream or sys.stderr
        self._silent, self._clock, self._drawing = silent, clock, Drawing(self._stream, color=color)
        self.clear = self._drawing.clear
        self._terminal = not silent and self._stream.isatty()
        self._wanted = _wanted_size(goal)
        self._watched: Mapping[str, Property] = {}
        self._next = clock() + (DRAW_EVERY if self._terminal else LINE_EVERY)

    def watch(self, properties: Mapping[str, Property]) -> None:
        """Show the first of some properties of pages, too."""
        self._watched = properties

    def __call__(self, trace: Callable[[], WalkTrace], fetches: int, more: Callable[[], str] = str) -> None:
        """Look at the steps so far, if it is time."""
        began = self._clock()
        if self._silent or began < self._next:
            return
        steps = trace()
        if self._terminal:
            self._drawing.draw(self.lines(steps, fetches, more(), get_terminal_size().columns))
        else:
            self._stream.write(self.line(steps, fetches) + "\n")
            self._stream.flush()
        now = self._clock()
        self._next = now + max(DRAW_EVERY if self._terminal else LINE_EVERY, SPARE * (now - began))

    def lines(self, trace: WalkTrace, fetches: int, more: str = "", columns: int = 120) -> list[str]:
        """Return what a terminal shows."""
        ess, rhat = _worth(trace)
        width = max(NARROWEST, min(BARS, columns - BESIDE))
        done = bar(min(ess / self._wanted, 1.0), width) + " " if self._wanted else ""
        drawn = [f"effective  {done}{count(ess)}{_of(self._wanted)} pages{_rhat(rhat)}"]
        if told := self._estimate(trace):
            drawn.append(f"estimate   {told}")
        facts = [_steps(trace, fetches), more]
        return [*drawn, "   ".join(filter(None, facts))]

    def line(self, trace: WalkTrace, fetches: int) -> str:
        """Return what a log shows."""
        ess, rhat = _worth(trace)
        told = self._estimate(trace)
        worth = f"effective {count(ess)}{_of(self._wanted)} pages{_rhat(rhat)}"
        return "   ".join(filter(None, [worth, told, _steps(trace, fetches)]))

    def _estimate(self, trace: WalkTrace) -> str:
        """Say what is watched, and how sure it is."""
        if not self._watched:
            return ""
        from surveyor.estimate.sampling.estimates import mean_or_share
        from surveyor.report.samples import interval, value

        name, watched = next(iter(self._watched.items()))
        try:
            one = mean_or_share(trace, watched.numbers(trace))
        except UsageError:  # no step so far has it
            return ""
        return f"{name} {value(one)} ({interval(one)})"


def _wanted_size(goal: str) -> float:
    """Return the effective sample size that is asked for, or 0.

    >>> _wanted_size("ess=400,fetches=2k"), _wanted_size("width=3%")
    (400.0, 0.0)
    """
    from surveyor.estimate.sampling.sample_goals import SampleGoal

    return SampleGoal.parse(goal).ess or 0.0


def _worth(trace: WalkTrace) -> tuple[float, float]:
    """Return the effective sample size and R-hat so far."""
    from surveyor.estimate.sampling.diagnostics import diagnose

    try:
        told = diagnose(trace)
    except UsageError:  # no step so far is on topic
        return 0.0, math.nan
    return min(told.ess.values()), max(told.rhat.values())


def _of(wanted: float) -> str:
    return f" of {count(wanted)}" if wanted else ""


def _rhat(rhat: float) -> str:
    return "" if math.isnan(rhat) else f"   R-hat {rhat:.2f}"


def _steps(trace: WalkTrace, fetches: int) -> str:
    on = float(trace.on_topic.mean()) if len(trace) else 0.0
    return f"{counted(len(trace), 'step')}   {counted(fetches, 'page')} asked for   {percent(on)} of the steps on topic"
