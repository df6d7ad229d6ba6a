"""Progress display of a crawl: bars that sum to all mass on a terminal, a log line every ten seconds elsewhere."""

from __future__ import annotations

import math
import sys
import time
from shutil import get_terminal_size
from typing import TYPE_CHECKING, TextIO

from surveyor.cli.progress import LiveLines
from surveyor.crawler.cost_forecast import CostForecast
from surveyor.crawler.strategies.strategy import name_of
from surveyor.report.numbers import (
    bar,
    by_kind,
    confidence_level,
    count,
    counted,
    duration,
    interval,
    known_bar,
    percent,
    printable,
    sampled_bound,
    sampled_line,
    size,
)
from surveyor.stopping import Coverage, coverage_goal, sampled_goal, scouting_rule

if TYPE_CHECKING:
    from surveyor.crawler.loop import Crawl
    from surveyor.crawler.pending import Forecast
    from surveyor.crawler.replay import Derived
    from surveyor.crawler.session import Run
    from surveyor.outcome import Outcome
    from surveyor.stopping import Rule
    from surveyor.store.directory import SurveyFolder

LINE_EVERY, DRAW_EVERY = 10.0, 0.2  # seconds
WIDEST, NARROWEST, TEXT = 28, 8, 64  # characters of a bar, at most and at least, and of the text next to it
REPLAYED = 20_000  # visits of a survey, at most, that are replayed for a forecast: about 2 s


class CrawlDisplay:
    """Progress display on stderr."""

    def __init__(self, stream: TextIO | None = None, *, silent: bool = False, color: bool = True) -> None:
        self._stream = stream or sys.stderr
        self._silent, self._drawing = silent, LiveLines(self._stream, color=color)
        self.clear = self._drawing.clear
        self._terminal = not silent and self._stream.isatty()
        self._drawn = self._started = time.monotonic()
        self._latest = ""
        self._warned = False
        self._messages_shown = 0  # messages about hosts

    def __call__(self, run: Run, outcome: Outcome | None) -> None:
        """Record an outcome, and draw if it is due."""
        if outcome is not None and outcome.kind == "fetched":
            self._latest = run.state.urls[outcome.page]
        self._report_hosts(run)
        now = time.monotonic()
        if self._silent or now - self._drawn < (DRAW_EVERY if self._terminal else LINE_EVERY):
            return
        self._drawn = now
        self._warn(run)
        if self._terminal:
            self._drawing.draw(self.lines(run, get_terminal_size().columns))
        else:
            self._stream.write(self.line(run) + "\n")
            self._stream.flush()

    def lines(self, run: Run, columns: int = 120) -> list[str]:
        """Return the lines on a terminal: captured mass and the other accounts, which sum to all mass."""
        if not run.folder.journal.keeps_graph:
            return [_counts(run), self._facts(run)]
        ledger = run.state.crawl.ledger
        now = ledger.coverage()
        seconds = run.measures.left(run.until)
        left, width = "" if seconds is None else duration(seconds), max(NARROWEST, min(WIDEST, columns - TEXT))
        scout = [f"walks     {bar(part, width)} {words}" for part, words in _scouted(run)]
        share = run.until.share if isinstance(run.until, Coverage) else None
        goal = f"goal {run.until}" if share is None else f"goal {100 * share:g} %"
        sampled = run.sampled()
        bounds = f"captured  {known_bar(now.at_least, now.at_most, width)} {_padded(interval(now))}"
        waiting = max(0.0, 1 - now.at_least - max(0.0, now.blocked) - max(0.0, now.lost))
        pages = counted(max(len(run.state.crawl.frontier), 1 if waiting else 0), "known page")
        drawn = [
            *scout,
            *(
                [bounds if scout else f"{bounds}   {goal}"]
                if sampled is None
                else [f"{bounds}   certified", f"{sampled_line(sampled, width)}   {goal}"]
            ),
            f"waiting   {bar(waiting, width)} {100 * waiting:5.1f} %  {pages}"
            + (f", about {left} left" if left else ""),
        ]
        if now.blocked > 0:
            kinds = by_kind(run.measures.blocked_mass())
            drawn.append(f"blocked   {bar(now.blocked, width)} {100 * now.blocked:5.1f} %  {kinds}".rstrip())
        if now.lost > 0:
            drawn.append(f"lost      {bar(now.lost, width)} {100 * now.lost:5.1f} %  pages that are gone")
        return [*drawn, self._facts(run)]

    def line(self, run: Run) -> str:
        """Return the line in a log."""
        if not run.folder.journal.keeps_graph:
            return f"{_counts(run)}   {self._facts(run)}"
        coverage = run.state.crawl.ledger.coverage()
        masses = (
            f"{interval(coverage)}   waiting {100 * coverage.waiting:.1f} %   blocked {100 * coverage.blocked:.1f} %"
        )
        for _, words in _scouted(run):
            masses = f"{words}   {masses}"
        if (sampled := run.sampled()) is not None:
            masses = f"{sampled_bound(sampled)}, {counted(sampled.walks, 'walk')}   certified {masses}"
        return f"{masses}   {self._facts(run)}"

    def _facts(self, run: Run) -> str:
        tally = run.state.tally
        rate = run.measures.rate()
        facts = [
            counted(tally.pages, "page"),
            f"{rate:.1f}/s" if rate < 100 else f"{count(rate)}/s",
            counted(len(run.hosts), "host"),
            size(tally.bytes),
        ]
        pause = run.hosts.paused_until - run.hosts.clock()
        if pause > 0:
            facts.append(f"the network is down, retry in {duration(pause)}")
        elif run.waiting is not None and (held := run.waiting.sentence()):
            facts.append(printable(held))
        elif following := self._following(run):
            facts.append(following)
        return "   ".join(facts)

    def _following(self, run: Run) -> str:
        """Return the queued page with most mass, which RankMass fetches next; else the last one fetched."""
        crawl = run.state.crawl
        if scouting_rule(run.until) is not None or not name_of(crawl.strategy).startswith("rankmass"):
            return printable(self._short(run, self._latest))
        if not (ahead := run.measures.next()):
            return ""
        return f"next ({percent(ahead[0].mass)})  {printable(self._short(run, run.state.urls[ahead[0].page]))}"

    def _short(self, run: Run, url: str) -> str:
        """Return a URL without its scheme, and without its host if there is only one."""
        short = url.partition("://")[2]
        return short[short.find("/") :] if len(run.hosts) == 1 else short

    def _warn(self, run: Run) -> None:
        """Warn early, and once, that a goal cannot be reached."""
        goal, coverage = coverage_goal(run.until), run.state.crawl.ledger.coverage()
        if goal is None or self._warned:
            return
        refused = run.measures.blocked_mass().get("budget", 0.0)  # its budget may grow
        best = 1 - (coverage.blocked - refused) - coverage.lost
        if best >= goal:
            return
        self._warned = True
        self.clear()
        for line in unreachable_lines(goal, best, str(run.folder.folder)):
            self._stream.write(line + "\n")

    def _report_hosts(self, run: Run) -> None:
        """Print new messages about hosts."""
        if self._silent or len(run.hosts.messages) == self._messages_shown:
            return
        self.clear()
        for remark in run.hosts.messages[self._messages_shown :]:
            self._stream.write(f"! {printable(remark)}\n")
        self._messages_shown = len(run.hosts.messages)
        self._stream.flush()


def _scouted(run: Run) -> list[tuple[float, str]]:
    """Return the part of the walks of a scout that ended, and words for it; nothing if the run is not a scout."""
    walks = run.state.crawl.scout
    if scouting_rule(run.until) is None or walks is None or not walks.count:
        return []
    ended = walks.count - walks.unfinished
    return [(ended / walks.count, f"{ended:,} of {counted(walks.count, 'random walk')} ended")]


def _counts(run: Run) -> str:
    """Return the counts of pages of a crawl without a link graph, and its goal."""
    ledger, queue = run.state.crawl.ledger, run.state.crawl.frontier
    return f"{count(ledger.read)} read   {count(ledger.known)} known   {count(len(queue))} queued   goal {run.until}"


def _padded(bounds: str) -> str:
    """Pad the bounds, so that the text after them does not move."""
    return bounds.rjust(len("  0.0 % at least, 100.0 % at most"))


def forecast_line(ahead: Forecast) -> str:
    """Return the largest possible rate and the minimum duration; empty if no delay limits the rate."""
    if not ahead.hosts or ahead.rate == math.inf:
        return ""
    amount = f"{ahead.rate:,.0f}" if ahead.rate >= 10 else f"{ahead.rate:.2g}"
    many = f"{amount} page{'s' * (ahead.rate != 1)} per second"
    rate = many if ahead.rate >= 1 else f"a page every {1 / ahead.rate:.2g} s"
    line = f"at most {rate} from {counted(ahead.hosts, 'host')} known so far"
    if ahead.seconds < 60:
        return line
    time = duration(ahead.seconds)
    if ahead.is_goal:
        return f"{line}; at that rate the goal takes {time}"
    return f"{line}; the {counted(ahead.pages, 'queued page')} take at least {time}"


class CostLine:
    """Forecasts once, as soon as enough is known, how many pages each goal is expected to take."""

    def __init__(self, until: Rule) -> None:
        self._until, self._costs = until, CostForecast(until)
        self._printed = coverage_goal(until) is None

    def resume(self, folder: SurveyFolder) -> None:
        """Record the earlier growth of coverage, unless the replay would take long."""
        from surveyor.crawler.replay import derive

        if self._printed or not folder.journal.position <= REPLAYED:
            return

        def add(state: Derived, outcome: Outcome) -> None:
            if outcome.kind == "fetched":
                self._costs.record(state.crawl)

        derive(folder, watch=add)
        self._costs.renew()

    def line(self, crawl: Crawl) -> str:
        """Return the forecast, once; "" before and after."""
        if self._printed or not self._costs.record(crawl):
            return ""
        certified, sampled = self._costs.pages(crawl)
        self._printed = certified is not None or sampled is not None
        return cost_line(self._until, certified, sampled)


def cost_line(until: Rule, certified: int | None, sampled: int | None) -> str:
    """Return the pages that each goal is expected to take; "" if nothing is known."""
    goals = []
    if (share := coverage_goal(until)) is not None and certified is not None:
        goals.append(f"{100 * share:.10g} % certified after about {_rounded(certified)} pages")
    if (goal := sampled_goal(until)) is not None and sampled is not None:
        level = confidence_level(goal[1])
        goals.append(f"{100 * goal[0]:.10g} % sampled at {level} after about {_rounded(sampled)}")
    return f"forecast, not a bound: {', '.join(goals)}" if goals else ""


def _rounded(number: int) -> str:
    """Format a number with two significant digits, since a forecast is not more exact."""
    return count(float(f"{number:.2g}"))


def unreachable_lines(goal: float, best: float, survey: str) -> list[str]:
    """Return the warning that a goal cannot be reached, and the command that lists the blocked pages."""
    behind, possible = math.ceil(1000 * (1 - best)) / 10, math.floor(1000 * best) / 10
    return [
        f"! The goal of {100 * goal:g} % cannot be reached: {behind:.1f} % of the mass is on blocked or lost pages.",
        f"  The best possible coverage is {possible:.1f} %; the crawl continues towards it.",
        f"  list them   surveyor top {survey} --blocked",
    ]
