"""`surveyor crawl --cluster`: crawl in shards, each in a process of a cluster."""

from __future__ import annotations

import sys
import time
from shutil import get_terminal_size
from typing import TYPE_CHECKING, TextIO

from surveyor.cli import interrupts
from surveyor.cli.progress import LiveLines

if TYPE_CHECKING:
    from surveyor.cli.crawl import CrawlOptions, Prepared
    from surveyor.cli.output import Output
    from surveyor.crawler.ledger import CoverageInterval
    from surveyor.crawler.session import Result
    from surveyor.crawler.shards.director import Director

LINE_EVERY, DRAW_EVERY = 10.0, 0.2  # seconds
WIDEST, NARROWEST, TEXT = 28, 8, 64  # characters of a bar, at most and at least, and of the text next to it


def crawl_in_shards(output: Output, asked: CrawlOptions, prepared: Prepared, *, is_new: bool) -> int:
    """Create or resume a sharded survey, crawl until the goal, and report like a crawl of one process."""
    from surveyor.cli.crawl import Finished, introduce, remove_empty, report_end
    from surveyor.cluster.crawl import ShardedRun
    from surveyor.cluster.metrics import address_of, served
    from surveyor.cluster.session import Session
    from surveyor.crawler.shards.merge import refresh
    from surveyor.crawler.shards.metrics import exposition
    from surveyor.crawler.shards.prepare import check_before, check_settings, prepare
    from surveyor.crawler.start import start
    from surveyor.errors import UsageError
    from surveyor.stopping import parse_rule
    from surveyor.survey.survey import Survey

    if asked.from_last_good:
        raise UsageError(
            "--from-last-good is not possible with --cluster",
            hint="`surveyor cluster reshard` builds the shards again from the visits that were copied from them",
        )
    if asked.cluster is None:
        raise UsageError("--shards needs a cluster", hint="for example --cluster local:2: two processes here")
    path, rule = prepared.path, parse_rule(prepared.settings.until)
    check_settings(prepared.settings, rule)
    check_before(path, asked.shards)
    if asked.metrics is not None:
        address_of(asked.metrics)
    with Session(asked.cluster) as session:
        workers = session.workers or sum(node.cpus for node in session.nodes())
        folder, chosen = start(
            path,
            prepared.seeds,
            prepared.settings,
            prepared.origins,
            again=asked.again,
            add_seeds=asked.add_seeds,
            sharded=True,
        )
        output.warn(*folder.notices)
        with folder:
            for host, until in prepared.waits.items():
                folder.note("backoff", host=host, until=until, why="Retry-After")
            introduce(output, folder, chosen, prepared.origins, is_new=is_new)
            shards = prepare(folder, chosen, asked.shards or (workers if is_new else None))
        rule = parse_rule(chosen.until)
        output.info(f"shards: {shards.count}, processes: {min(workers, shards.count)}")
        run, started = ShardedRun(shards, chosen, rule, workers, restore=session.restore), time.monotonic()
        caught: list[int] = []
        display = ShardedDisplay(silent=output.quiet, color=output.color)

        async def crawling() -> Result:
            async with served(asked.metrics, lambda: exposition(run.director, run.restarts)) as port:
                if port:
                    output.info(f"metrics: port {port}, /metrics")
                return await run.run(display)

        try:
            ending, code = interrupts.run(crawling, caught)
        finally:
            display.clear()
    output.warn(*filter(None, [refresh(path)]))
    finished = Finished(rule, ending or "interrupted", code, time.monotonic() - started, None)
    if code and output.mode != "json":
        return _report_stop(output, run.director, code)
    with Survey(path) as survey:
        if not survey.pages_fetched and not code:
            raise remove_empty(survey, is_new=is_new)
        return report_end(output, survey, finished)


def _report_stop(output: Output, director: Director, code: int) -> int:
    """Report what is saved of a crawl that was stopped."""
    from surveyor.cli.options import current_command
    from surveyor.report.numbers import both_bounds, counted

    now = director.coverage()
    known = "" if now is None else f", {both_bounds(now, None)}"
    output.info(f"Stopped. {counted(director.progress().pages, 'page')} saved{known}.")
    output.next_steps({"resume": current_command(without=("--fresh", "--again"))})
    return code


class ShardedDisplay:
    """Progress of a sharded crawl on stderr: bars on a terminal, a line every ten seconds elsewhere."""

    def __init__(self, stream: TextIO | None = None, *, silent: bool = False, color: bool = True) -> None:
        self._stream = stream or sys.stderr
        self._silent, self._drawing = silent, LiveLines(self._stream, color=color)
        self.clear = self._drawing.clear
        self._terminal = not silent and self._stream.isatty()
        self._drawn = self._started = time.monotonic()
        self._before = -1

    def __call__(self, director: Director) -> None:
        """Draw if it is due."""
        now, coverage = time.monotonic(), director.coverage()
        if self._before < 0 and director.is_complete:
            self._before, self._started = director.progress().pages, now
        if self._silent or coverage is None or now - self._drawn < (DRAW_EVERY if self._terminal else LINE_EVERY):
            return
        self._drawn = now
        if self._terminal:
            self._drawing.draw(self.lines(director, coverage, get_terminal_size().columns))
        else:
            self._stream.write(self.line(director, coverage) + "\n")
            self._stream.flush()

    def lines(self, director: Director, now: CoverageInterval, columns: int = 120) -> list[str]:
        """Return the lines on a terminal."""
        from surveyor.report.numbers import bar, interval, known_bar

        width = max(NARROWEST, min(WIDEST, columns - TEXT))
        drawn = [f"captured  {known_bar(now.at_least, now.at_most, width)} {interval(now)}   goal {director.until}"]
        for name, mass in (("waiting", now.waiting), ("blocked", now.blocked), ("lost", now.lost)):
            if mass > 0:
                drawn.append(f"{name:10}{bar(mass, width)} {100 * mass:5.1f} %")
        return [*drawn, self._facts(director)]

    def line(self, director: Director, now: CoverageInterval) -> str:
        """Return the line in a log."""
        from surveyor.report.numbers import interval

        return f"{interval(now)}   waiting {100 * now.waiting:.1f} %   {self._facts(director)}"

    def _facts(self, director: Director) -> str:
        from surveyor.report.numbers import counted, size

        progress = director.progress()
        rate = (progress.pages - self._before) / max(time.monotonic() - self._started, 1e-3)
        facts = [counted(progress.pages, "page"), f"{rate:.1f}/s", size(progress.bytes)]
        return "   ".join([*facts, counted(director.shards, "shard")])
