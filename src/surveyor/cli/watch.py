"""`surveyor watch`: keep a survey fresh by re-visiting its pages when they are due."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from surveyor.cli import interrupts, options, settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from surveyor.cli.output import Output
    from surveyor.config import Settings
    from surveyor.crawler.revisit_plan import Finding
    from surveyor.crawler.watching import Watch, WatchOptions
    from surveyor.outcome import Outcome
    from surveyor.store.directory import SurveyFolder
    from surveyor.survey.watch import WatchResult

SETTINGS = ("contact", "delay", "domain_delay", "max_delay", "concurrency", "timeout", "allow", "avoid", "proxy")
LATEST = 1000  # findings that are kept for the table
SHOWN = 20  # rows of the table


class Found(NamedTuple):
    """One finding, for tables and JSON lines."""

    kind: str
    at: float
    url: str
    title: str


@options.command(
    "watch",
    table=True,
    epilog=options.examples(
        "surveyor watch docs.example.org.survey --rate 500/day",
        "surveyor watch docs.example.org.survey --once --json >> changes.jsonl",
    ),
)
@click.argument("survey", type=click.Path(), metavar="SURVEY")
@click.option(
    "--rate",
    metavar="N/day",
    help="Requests per day (or /hour, /week), robots.txt and retries included.  [one per page and week, "
    "at least 10 and at most 1,000 a day per host]",
)
@options.flag("--once", "Fetch what is due now, and end: for cron.")
@click.option(
    "--audit-days",
    type=click.FloatRange(0.0),
    default=7.0,
    metavar="X",
    help="Download an unchanged page again, to check its validator, at most once in X days.",
)
@settings.some_options(*SETTINGS)
def command(output: Output, *, survey: str, rate: str | None, once: bool, audit_days: float, **given: Any) -> int:
    """Re-visit the pages of SURVEY when they are due, so that it stays fresh, until it is stopped.

    The schedule learns how often each page changes, and maximises the share of importance that is fresh. Requests are
    conditional, so that unchanged pages are not downloaded. Stopping is safe at any time: the same command resumes.
    Each change is printed as it is found, with --json as one JSON object per line. The exit code is 0 if nothing more
    was due (--once), 130 or 143 if a signal stopped it.
    """
    from surveyor.config import load
    from surveyor.crawler.request_budget import parse_rate
    from surveyor.crawler.start import allow_named_hosts
    from surveyor.crawler.watching import WatchOptions
    from surveyor.survey.watch import open_to_watch

    per_day = None if rate is None else parse_rate(rate)
    chosen, origins = load(settings.given(given))
    chosen = settings.with_contact(output, replace(chosen, seeds=()))
    chosen, origins = allow_named_hosts(chosen, {**origins, "seeds": "default"}, [])
    folder, chosen = open_to_watch(Path(survey), chosen, origins)
    output.warn(*folder.notices)
    with folder:
        return _watch(output, folder, chosen, WatchOptions(per_day, once, audit_days), origins)


def _watch(
    output: Output,
    folder: SurveyFolder,
    chosen: Settings,
    asked: WatchOptions,
    origins: Mapping[str, str],
) -> int:
    """Run the watch with its display, and report what it found."""
    from surveyor.cli.watch_display import WatchDisplay
    from surveyor.crawler.watching import watch
    from surveyor.survey.watch import Meter

    settings.report_settings(output, chosen, origins)
    display = WatchDisplay(silent=output.quiet, color=output.color)
    latest: deque[Found] = deque(maxlen=LATEST)
    introduced = False

    def report(run: Watch, outcome: Outcome | None, finding: Finding) -> None:
        nonlocal introduced
        if not introduced:
            introduced = True
            pages = run.state.crawl.ledger.read
            output.info(f"{folder.folder}   {pages:,} pages   {run.budget.per_day:,} requests per day   Ctrl-C is safe")
        if outcome is not None and finding:
            found = Found(finding, getattr(outcome, "fetched_at", 0.0), run.state.urls[outcome.page], _title(outcome))
            latest.append(found)
            display.clear()
            _announce(output, found)
        display(run)

    meter, caught = Meter(report), list[int]()
    try:
        ending, code = interrupts.run(lambda: watch(folder, chosen, asked, report=meter), caught)
    finally:
        display.clear()
    result = meter.result(ending or "interrupted")
    if result is None:
        output.info("Stopped before the watch started.")
        return code
    _report(output, result, list(latest))
    return code


def _title(outcome: Outcome) -> str:
    return str(getattr(outcome, "title", ""))


def _announce(output: Output, found: Found) -> None:
    """Print a change as it is found."""
    output.object("watch", {"event": found.kind, "at": found.at, "url": found.url, "title": found.title})
    if output.mode == "json":
        import sys

        sys.stdout.flush()
    else:
        output.info(f"{found.kind:<8} {found.url}")


def _report(output: Output, result: WatchResult, latest: list[Found]) -> int:
    """Print what changed, and what the watch cost."""
    from surveyor.report.numbers import counted, size
    from surveyor.report.watching import changes_table, ending_line

    output.object("watch", {"event": "end", **result.to_dict()})
    if output.mode == "json":
        return 0
    if latest:
        output.table(changes_table([found._asdict() for found in latest[-SHOWN:]]))
    if output.mode == "csv":
        return 0
    if len(latest) > SHOWN:
        output.line(f"  the last {SHOWN} of {len(latest):,}")
    output.line()
    output.line(ending_line(result))
    output.line(f"{counted(result.requests, 'request')}, {size(result.bytes)}")
    for host, why in result.lying.items():
        output.warn(f"{host} answers that pages are unchanged when they are not ({why}): it is downloaded in full")
    output.next_steps({"its pages": ["surveyor", "top", str(result.survey)]})
    return 0
