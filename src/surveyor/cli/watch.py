"""`surveyor watch`: keep a survey fresh by re-visiting its pages when they are due."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    from surveyor.survey.changes import Changes
    from surveyor.survey.watch import WatchResult

SETTINGS = ("contact", "delay", "domain_delay", "max_delay", "concurrency", "timeout", "allow", "avoid", "proxy")
SHOWN = 20  # rows of the table
FEED_EVERY = 600.0  # seconds between two versions of the feed
FEED_DAYS = 30.0  # age of the oldest change in it


class Feed:
    """The Atom feed of a watched survey, `changes.atom` in its folder."""

    def __init__(self, output: Output) -> None:
        self._output, self._written, self._failed = output, 0.0, False
        self.is_old = True

    def write(self, run: Watch, *, now: bool = False) -> None:
        """Write the changes of the last month, if some are new and the last version is old enough.

        Pages that were fetched before the first watch are not new in it.
        """
        from surveyor.errors import SurveyorError
        from surveyor.report.atom import atom_feed
        from surveyor.store import layout
        from surveyor.store.disk import write_atomically
        from surveyor.survey.watch import changes_found

        if not self.is_old or (not now and time.monotonic() - self._written < FEED_EVERY):
            return
        self.is_old, self._written = False, time.monotonic()
        began = next((event.at for event in run.folder.journal.events("watch")), run.now)
        found = changes_found(run, max(run.now - FEED_DAYS * 86_400, min(began, run.now)), each=True)
        text = atom_feed(found, run.folder.manifest.seeds)
        try:
            write_atomically(run.folder.folder / layout.FEED, text)
        except (OSError, SurveyorError) as error:
            if not self._failed:
                self._output.warn(f"{layout.FEED} cannot be written: {error}; the watch continues")
            self._failed = True


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
@click.option(
    "--importance",
    default="tracking",
    metavar="NAME",
    help="Weigh pages by this estimate: tracking (exact for the links as fetched), opic, adaptive:bao, …",
)
@options.many("--feed", "URL", "Read this feed for signals of change, besides the sitemaps; may be repeated.")
@options.flag("--no-lists", "Read no sitemaps and feeds.")
@settings.some_options(*SETTINGS)
def command(output: Output, *, survey: str, rate: str | None, **given: Any) -> int:
    """Re-visit the pages of SURVEY when they are due, so that it stays fresh, until it is stopped.

    The schedule learns how often each page changes, and maximises the share of importance that is fresh. Requests are
    conditional, so that unchanged pages are not downloaded. Stopping is safe at any time: the same command resumes.
    The sitemaps of the sites, and feeds, are read for signals of change; the schedule learns how often they are right.
    Each change is printed as it is found, with --json as one JSON object per line. The exit code is 0 if nothing more
    was due or the requests of the day were used up (--once), 4 if another process is writing to SURVEY, 130 or 143 if a
    signal stopped it.
    """
    from surveyor.config import load
    from surveyor.crawler.request_budget import parse_rate
    from surveyor.crawler.start import allow_named_hosts
    from surveyor.crawler.watching import WatchOptions
    from surveyor.survey.watch import feed_urls, open_to_watch

    asked = WatchOptions(
        None if rate is None else parse_rate(rate),
        given.pop("once"),
        given.pop("audit_days"),
        given.pop("importance"),
        feed_urls(given.pop("feed")),
        not given.pop("no_lists"),
    )
    chosen, origins = load(settings.given(given))
    chosen = settings.with_contact(output, replace(chosen, seeds=()))
    chosen, origins = allow_named_hosts(chosen, {**origins, "seeds": "default"}, asked.feeds)
    folder, chosen = open_to_watch(Path(survey), chosen, origins)
    output.warn(*folder.notices)
    with folder:
        return _watch(output, folder, chosen, asked, origins)


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
    from surveyor.survey.watch import Meter, changes_found

    settings.report_settings(output, chosen, origins)
    display, feed = WatchDisplay(silent=output.quiet, color=output.color), Feed(output)
    introduced = False

    def report(run: Watch, outcome: Outcome | None, finding: Finding) -> None:
        nonlocal introduced
        if not introduced:
            introduced = True
            pages = run.state.crawl.ledger.read
            output.info(f"{folder.folder}   {pages:,} pages   {run.budget.per_day:,} requests per day   Ctrl-C is safe")
        if outcome is not None and finding:
            feed.is_old = True
            display.clear()
            _announce(output, finding, outcome, run.state.urls[outcome.page])
        display(run)
        feed.write(run)

    meter, caught = Meter(report), list[int]()
    try:
        ending, code = interrupts.run(lambda: watch(folder, chosen, asked, report=meter), caught)
    finally:
        display.clear()
    result = meter.result(ending or "interrupted")
    if result is None or meter.last is None:
        output.info("Stopped before the watch started.")
        return code
    feed.write(meter.last, now=True)
    _report(output, result, changes_found(meter.last, result.started))
    return code


def _announce(output: Output, finding: Finding, outcome: Outcome, url: str) -> None:
    """Print a change as it is found."""
    at, title = getattr(outcome, "fetched_at", 0.0), getattr(outcome, "title", "")
    output.object("watch", {"event": finding, "at": at, "url": url, "title": title})
    if output.mode == "json":
        sys.stdout.flush()
    else:
        output.info(f"{finding:<10} {url}")


def _report(output: Output, result: WatchResult, found: Changes) -> None:
    """Print what changed, and what the watch cost."""
    from surveyor.cli.changes import change_table
    from surveyor.report.numbers import counted, size
    from surveyor.report.watching import ending_line

    output.object("watch", {"event": "end", **result.to_dict()})
    if output.mode == "csv":
        output.table(change_table(found, None))
    if output.mode != "text":
        return
    if found.pages:
        output.table(change_table(found, SHOWN))
        output.line()
    output.line(ending_line(result))
    output.line(f"{counted(result.requests, 'request')}, {size(result.bytes)}")
    for host, why in result.lying.items():
        output.warn(f"{host} answers that pages are unchanged when they are not ({why}): it is downloaded in full")
    for url, why in result.unread_feeds.items():
        output.warn(f"{url} could not be read: {why}")
    steps = {"all changes": ["surveyor", "diff", str(result.survey), "--since", "7d"]}
    output.next_steps({**steps, "its pages": ["surveyor", "top", str(result.survey)]})
