"""Terminal output of `surveyor sample`: progress while the walks run, and the result.

Computing diagnostics takes time, so the interval between updates grows with the duration of an update.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, TextIO

from surveyor.cli.progress import LiveLines
from surveyor.errors import UsageError
from surveyor.report.numbers import bar, count, counted, percent

if TYPE_CHECKING:
    from surveyor.cli.output import Output
    from surveyor.cli.sample import SampleRun
    from surveyor.crawler.session import Run
    from surveyor.estimate.sampling.properties import Property
    from surveyor.estimate.sampling.sample_survey import SampleSurvey
    from surveyor.estimate.sampling.walk_scheduler import WalkScheduler
    from surveyor.estimate.sampling.walk_trace import WalkTrace
    from surveyor.report.sample import SampleSummary

LINE_EVERY, DRAW_EVERY = 10.0, 0.5  # seconds between updates of a log and of a terminal
IDLE_FACTOR = 20  # an update is followed by a pause of this many times its duration
BAR, MIN_BAR, BESIDE_BAR = 28, 8, 46  # characters
LONG_WAIT = 5.0  # seconds of waiting for a host that are reported


class WalkDisplay:
    """Progress of walks on stderr: redrawn on a terminal, otherwise a line at intervals."""

    def __init__(
        self,
        goal: str,
        stream: TextIO | None = None,
        *,
        silent: bool = False,
        color: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream or sys.stderr
        self._silent, self._clock, self._drawing = silent, clock, LiveLines(self._stream, color=color)
        self.clear = self._drawing.clear
        self._is_terminal = not silent and self._stream.isatty()
        self._goal_ess = _goal_ess(goal)
        self._tracked: Mapping[str, Property] = {}
        self._next = clock() + (DRAW_EVERY if self._is_terminal else LINE_EVERY)

    def track(self, properties: Mapping[str, Property]) -> None:
        """Show the first of these properties."""
        self._tracked = properties

    def __call__(self, trace: Callable[[], WalkTrace], fetches: int, status: Callable[[], str] = str) -> None:
        """Update the display if it is due."""
        started = self._clock()
        if self._silent or started < self._next:
            return
        steps = trace()
        if self._is_terminal:
            self._drawing.draw(self.lines(steps, fetches, status(), get_terminal_size().columns))
        else:
            self._stream.write(self.line(steps, fetches) + "\n")
            self._stream.flush()
        now = self._clock()
        self._next = now + max(DRAW_EVERY if self._is_terminal else LINE_EVERY, IDLE_FACTOR * (now - started))

    def lines(self, trace: WalkTrace, fetches: int, status: str = "", columns: int = 120) -> list[str]:
        """Return the lines for a terminal."""
        ess, rhat = _diagnostics(trace)
        width = max(MIN_BAR, min(BAR, columns - BESIDE_BAR))
        progress = bar(min(ess / self._goal_ess, 1.0), width) + " " if self._goal_ess else ""
        lines = [f"ESS        {progress}{self._ess(ess)}{_rhat(rhat)}"]
        if estimate := self._estimate(trace):
            lines.append(f"estimate   {estimate}")
        return [*lines, "   ".join(filter(None, [_steps(trace, fetches), status]))]

    def line(self, trace: WalkTrace, fetches: int) -> str:
        """Return one line for a log."""
        ess, rhat = _diagnostics(trace)
        parts = [f"ESS {self._ess(ess)}{_rhat(rhat)}", self._estimate(trace), _steps(trace, fetches)]
        return "   ".join(filter(None, parts))

    def _ess(self, ess: float) -> str:
        return f"{count(ess)} of {count(self._goal_ess)}" if self._goal_ess else count(ess)

    def _estimate(self, trace: WalkTrace) -> str:
        """Return the estimate of the first tracked property with its interval."""
        if not self._tracked:
            return ""
        from surveyor.estimate.sampling.estimates import mean_or_share
        from surveyor.report.sample import format_interval, format_value

        name, tracked = next(iter(self._tracked.items()))
        try:
            estimate = mean_or_share(trace, tracked.numbers(trace))
        except UsageError:  # no visited page has it yet
            return ""
        return f"{name} {format_value(estimate)} ({format_interval(estimate)})"


def _goal_ess(goal: str) -> float:
    """Return the effective sample size of a goal, or 0.

    >>> _goal_ess("ess=400,fetches=2k"), _goal_ess("width=3%")
    (400.0, 0.0)
    """
    from surveyor.estimate.sampling.sample_goals import SampleGoal

    return SampleGoal.parse(goal).ess or 0.0


def _diagnostics(trace: WalkTrace) -> tuple[float, float]:
    """Return the smallest effective sample size and the largest R-hat."""
    from surveyor.estimate.sampling.diagnostics import diagnose

    try:
        diagnostics = diagnose(trace)
    except UsageError:  # no step is on topic yet
        return 0.0, math.nan
    return min(diagnostics.ess.values()), max(diagnostics.rhat.values())


def _rhat(rhat: float) -> str:
    return "" if math.isnan(rhat) else f"   R-hat {rhat:.2f}"


def _steps(trace: WalkTrace, fetches: int) -> str:
    on_topic = percent(float(trace.on_topic.mean()) if len(trace) else 0.0)
    return f"{counted(len(trace), 'step')}   {counted(fetches, 'page')} requested   {on_topic} of the steps on topic"


def waiting(scheduler: WalkScheduler, run: Run) -> str:
    """Return the host that all walks wait for, if the wait is long: a round needs all of its pages."""
    from surveyor.report.numbers import duration
    from surveyor.web.urls import host

    names = {host(run.state.urls[page]) for page in scheduler.pending}
    known = (run.hosts[number] for number in range(len(run.hosts)))
    latest = max((one for one in known if one.name in names), key=lambda one: one.ready_at, default=None)
    seconds = 0.0 if latest is None else latest.ready_at - run.hosts.clock()
    return f"waiting for {latest.name}, {duration(seconds)}" if latest is not None and seconds > LONG_WAIT else ""


def print_start(output: Output, survey: SampleSurvey, origins: Mapping[str, str]) -> None:
    """Print what is sampled, where it is saved, and settings that did not come from the command line."""
    from surveyor.cli.settings import report_settings

    folder, record = survey.folder, survey.record
    walks = f"{record.topic}   {counted(record.walks, 'walk')}, {record.method}, rng {folder.manifest.rng}"
    output.info(f"{walks}   robots.txt obeyed, delay {survey.settings.delay:g} s")
    if survey.is_new:
        output.info(f"saving to {folder.folder}     Ctrl-C is safe: the same command resumes it")
    else:
        output.info(f"resuming {folder.folder}")
    own = ("seeds", "strategy", "until", *(["scope"] if origins.get("scope") == "default" else []))
    report_settings(output, survey.settings, {**origins, **dict.fromkeys(own, "--")})


def print_result(output: Output, run: SampleRun, summary: SampleSummary) -> None:
    """Print the walks, the estimates and how to read them."""
    from surveyor.report import sample as report

    output.object("sample", {"source": run.source, **summary.to_dict(run.sample)})
    if output.mode == "csv":
        output.table(report.csv_table(summary) if summary.draws is None else report.draws_table(summary.draws))
        return
    _print_facts(output, report.facts(run.sample))
    if summary.statistics:
        output.line()
        output.table(report.statistics_table(summary.statistics))
    if summary.fits:
        output.line()
        output.table(report.fits_table(summary.fits))
    for breakdown in summary.breakdowns:
        output.line()
        output.table(report.categories_table(breakdown, report.SHOWN_CATEGORIES))
        if (more := len(breakdown.labels) - report.SHOWN_CATEGORIES) > 0:
            output.line(f"  and {more:,} more; --csv and --json list all of them")
    if summary.draws:
        output.line()
        output.table(report.draws_table(summary.draws))
    if not summary.statistics and not summary.breakdowns:
        return
    output.line()
    output.paragraphs(report.footnotes(run.sample))


def _print_facts(output: Output, facts: dict[str, str]) -> None:
    """Print names and values in two columns, values wrapped to the terminal."""
    indent = max(map(len, facts)) + 2
    width = None if output.width is None else max(output.width - indent, 20)
    for name, value in facts.items():
        first, *more = wrap(value, width) if width else [value]
        output.line(f"{name:<{indent}}{first}")
        for part in more:
            output.line(" " * indent + part)
