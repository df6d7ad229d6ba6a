"""A crawl as it goes on: bars of the five accounts on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any, TextIO

from surveyor.report.accounts import account_lines, by_kind, interval
from surveyor.report.numbers import count, counted, duration, printable, size
from surveyor.stopping import goal_of

if TYPE_CHECKING:
    from surveyor.crawling.forecast import Forecast
    from surveyor.crawling.live import Run
    from surveyor.outcome import Outcome

LINE_EVERY, DRAW_EVERY = 10.0, 0.2  # seconds
SURE_AFTER = 60.0  # seconds before the time left is guessed at
RECENT = 60.0  # seconds over which the rate is measured


class Display:
    """Draws on stderr while a crawl runs."""

    def __init__(self, stream: TextIO | None = None, *, silent: bool = False, color: bool = True) -> None:
        self._stream = stream or sys.stderr
        self._silent, self._color = silent, color
        self._live: Any = None
        self._terminal = not silent and self._stream.isatty()
        self._drawn = self._began = time.monotonic()
        self._blocked: dict[str, list[int]] = {}
        self._latest = ""
        self._past: deque[tuple[float, int, float]] = deque()  # time, pages, at least
        self._warned = False
        self._said = 0  # remarks about hosts

    def __call__(self, run: Run, outcome: Outcome | None) -> None:
        """Take note of an outcome, and draw if it is time."""
        if outcome is not None:
            if outcome.kind == "blocked":
                self._blocked.setdefault(outcome.reason, []).append(outcome.page)
            elif outcome.kind == "read":
                self._latest = run.state.urls[outcome.page]
        self._remark(run)
        now = time.monotonic()
        if self._silent or now - self._drawn < (DRAW_EVERY if self._terminal else LINE_EVERY):
            return
        self._drawn = now
        self._warn(run)
        if self._terminal:
            self._draw("\n".join(self.lines(run)))
        else:
            self._stream.write(self.line(run) + "\n")
            self._stream.flush()

    def clear(self) -> None:
        """Take the bars off the screen."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def lines(self, run: Run) -> list[str]:
        """Return what a terminal shows."""
        ledger = run.state.crawl.ledger
        coverage = ledger.coverage()
        masses = {reason: float(ledger.residual[pages].sum()) for reason, pages in self._blocked.items()}
        left = self._left(run)
        notes = {
            "captured": f"{interval(coverage)}   goal: {run.until}" + (f"   about {left} left" if left else ""),
            "waiting": f"on {counted(len(run.state.crawl.frontier), 'known page')}",
            "blocked": by_kind(masses),
        }
        return [*account_lines(coverage, notes), self._facts(run)]

    def line(self, run: Run) -> str:
        """Return what a log shows."""
        coverage = run.state.crawl.ledger.coverage()
        told = f"{interval(coverage)}   waiting {100 * coverage.waiting:.1f} %   blocked {100 * coverage.blocked:.1f} %"
        return f"{told}   {self._facts(run)}"

    def _facts(self, run: Run) -> str:
        tally = run.state.tally
        rate = self._rate(run)
        facts = [
            counted(tally.pages, "page"),
            f"{rate:.1f}/s" if rate < 100 else f"{count(rate)}/s",
            counted(len(run.hosts), "host"),
            size(tally.bytes),
        ]
        pause = run.hosts.paused_until - run.hosts.clock()
        if pause > 0:
            facts.append(f"the network is down, trying again in {duration(pause)}")
        elif self._latest:
            facts.append(printable(self._latest)[:80])
        return "   ".join(facts)

    def _rate(self, run: Run) -> float:
        """Return pages per second of the last minute."""
        now, tally = time.monotonic(), run.state.tally
        self._past.append((now, tally.pages, run.state.crawl.ledger.coverage().at_least))
        while now - self._past[0][0] > RECENT:
            self._past.popleft()
        then, pages, _ = self._past[0]
        if now - then < 1:
            then, pages = self._began, run.before
        return (tally.pages - pages) / max(now - then, 1e-3)

    def _left(self, run: Run) -> str:
        """Guess the time to the goal of coverage: what is missing shrinks by the same part in the same time."""
        goal = goal_of(run.until)
        if goal is None or time.monotonic() - self._began < SURE_AFTER or len(self._past) < 2:
            return ""
        coverage = run.state.crawl.ledger.coverage()
        best = 1 - coverage.blocked - coverage.lost
        (then, _, before), now = self._past[0], time.monotonic()
        missing, past = best - coverage.at_least, best - before
        if best <= goal or missing <= 0 or past <= missing:
            return ""
        pace = math.log(past / missing) / (now - then)
        return duration(max(1.0, math.log(missing / (best - goal)) / pace))

    def _warn(self, run: Run) -> None:
        """Say early, and once, that a goal cannot be reached."""
        goal, coverage = goal_of(run.until), run.state.crawl.ledger.coverage()
        best = 1 - coverage.blocked - coverage.lost
        if goal is None or self._warned or best >= goal:
            return
        self._warned = True
        self.clear()
        for line in hopeless_lines(goal, best, str(run.folder.folder)):
            self._stream.write(line + "\n")

    def _remark(self, run: Run) -> None:
        """Say what became of hosts."""
        if self._silent or len(run.hosts.remarks) == self._said:
            return
        self.clear()
        for remark in run.hosts.remarks[self._said :]:
            self._stream.write(f"! {printable(remark)}\n")
        self._said = len(run.hosts.remarks)
        self._stream.flush()

    def _draw(self, text: str) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        if self._live is None:
            console = Console(file=self._stream, no_color=not self._color or None, highlight=False)
            self._live = Live(console=console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)


def forecast_line(ahead: Forecast) -> str:
    """Say how fast a crawl can be, and how long it takes at least; empty if nothing holds it up."""
    if not ahead.hosts or ahead.rate == math.inf:
        return ""
    many = f"{ahead.rate:.2g} page{'s' * (ahead.rate != 1)} a second"
    rate = many if ahead.rate >= 1 else f"a page every {1 / ahead.rate:.2g} s"
    line = f"at most {rate} from {counted(ahead.hosts, 'host')} known so far"
    if ahead.seconds < 60:
        return line
    time = duration(ahead.seconds)
    if ahead.is_goal:
        return f"{line}; at that rate the goal takes {time}"
    return f"{line}; the {counted(ahead.pages, 'page')} that wait take at least {time}"


def hopeless_lines(goal: float, best: float, survey: str) -> list[str]:
    """Say that a goal cannot be reached, and what to do."""
    behind, possible = math.ceil(1000 * (1 - best)) / 10, math.floor(1000 * best) / 10
    return [
        f"! The goal of {100 * goal:g} % cannot be reached: {behind:.1f} % of the mass lies behind pages that may not "
        "or cannot be read.",
        f"  The best possible guarantee is {possible:.1f} %. Going on towards that.",
        f"  see them   surveyor top {survey} --blocked",
    ]
