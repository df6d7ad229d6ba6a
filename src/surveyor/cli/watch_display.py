"""Display of a watch: requests of the day, changes found, forecast freshness and the next due page."""

from __future__ import annotations

import math
import sys
import time
from typing import TYPE_CHECKING, TextIO

from surveyor.cli.progress import LiveLines
from surveyor.report.numbers import counted, duration, percent, printable

if TYPE_CHECKING:
    from surveyor.crawler.watching import Watch

LINE_EVERY, DRAW_EVERY = 3600.0, 0.5  # seconds, without and with a terminal
FORECAST_EVERY = 30.0  # seconds
FINDINGS = ("changed", "new", "gone", "redirected", "back")


class WatchDisplay:
    """Progress on stderr: two lines on a terminal, a line per hour elsewhere."""

    def __init__(self, stream: TextIO | None = None, *, silent: bool = False, color: bool = True) -> None:
        self._stream = stream or sys.stderr
        self._silent, self._drawing = silent, LiveLines(self._stream, color=color)
        self.clear = self._drawing.clear
        self._terminal = not silent and self._stream.isatty()
        self._drawn = time.monotonic()
        self._fresh, self._forecast_at = "", -math.inf

    def __call__(self, run: Watch) -> None:
        """Draw if it is due, and print new messages about hosts."""
        if run.hosts.messages:
            if not self._silent:
                self.clear()
                self._stream.writelines(f"! {printable(message)}\n" for message in run.hosts.messages)
                self._stream.flush()
            run.hosts.messages.clear()
        now = time.monotonic()
        if self._silent or now - self._drawn < (DRAW_EVERY if self._terminal else LINE_EVERY):
            return
        self._drawn = now
        if self._terminal:
            self._drawing.draw(self.lines(run))
        else:
            self._stream.write("   ".join(self.lines(run)) + "\n")
            self._stream.flush()

    def lines(self, run: Watch) -> list[str]:
        """Return the two lines."""
        found = ", ".join(f"{run.watched.found[kind]:,} {kind}" for kind in FINDINGS if run.watched.found[kind])
        budget = f"{run.budget.spent():,} of {run.budget.per_day:,} requests in 24 h"
        return ["   ".join([budget, found or "no change yet", self._freshness(run)]), self._next(run)]

    def _freshness(self, run: Watch) -> str:
        now = time.monotonic()
        if now - self._forecast_at >= FORECAST_EVERY:
            self._forecast_at = now
            forecast = run.watched.plan.schedule.forecast(run.now)
            self._fresh = f"{percent(forecast.fresh)} ± {percent(1.96 * forecast.error)} fresh (forecast)"
        return self._fresh

    def _next(self, run: Watch) -> str:
        plan, now = run.watched.plan, run.now
        pause = run.hosts.paused_until - now
        if pause > 0:
            return f"the network is down, retry in {duration(pause)}"
        if (left := run.budget.seconds_left()) > 0 and plan.schedule.next_due() <= now + left:
            return f"next request in {duration(left)}, by the budget"
        at = plan.schedule.next_due()
        if at == math.inf:
            return "no page is due"
        page = plan.schedule.due(at, 1)
        url = printable(run.state.urls[int(page[0])]) if page.size else ""
        if plan.waiting:
            return f"{counted(plan.waiting, 'page')} due"
        return f"next in {duration(max(at - now, 0.0))}: {url}"
