"""`surveyor scout`: estimate shares, size and cost of a crawl from a few hundred fetches."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import interrupts, options, settings
from surveyor.cli.options import current_command
from surveyor.config import FIELDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from surveyor.cli.crawl import Finished
    from surveyor.cli.output import Output
    from surveyor.config import Settings
    from surveyor.estimate.scouting.scout import Scout, ScoutOptions
    from surveyor.store.directory import SurveyFolder

#: Settings that a scout has as options; `until` limits the scout instead, and is not stored.
SETTINGS = tuple(name for name in FIELDS if name not in settings.NO_OPTIONS | {"until"})
OWN = ("walks", "sample", "until", "no_sitemap")
UNTIL = "requests=1000,minutes=60"


@options.command(
    "scout",
    table=True,
    epilog=options.examples(
        "surveyor scout https://docs.example.org --contact me@example.org",
        "surveyor scout https://docs.example.org --walks 500 --until requests=3000",
    ),
)
@click.argument("urls", nargs=-1, metavar="URL...")
@options.whole("--walks", 2, "N", "Number of random walks, fixed in advance.", default=200)
@options.whole("--sample", 0, "N", "Number of known unfetched URLs to request, for the size.", default=30)
@click.option(
    "--until",
    multiple=True,
    default=[UNTIL],
    metavar="RULE",
    help="Stop at a number of requests or minutes.",
)
@options.flag("--no-sitemap", "Do not count the pages in sitemaps.")
@options.out("DIR", "Folder of the survey.  [by host, port and path]")
@options.flag("--fresh", "Create a new survey; an existing one is kept.")
@settings.some_options(*SETTINGS)
def command(output: Output, **given: Any) -> int:
    """Estimate, before a crawl from URL..., what it would find and cost: shares, size, pages and hours.

    Random walks from the seeds end on pages in proportion to their importance, so that the shares have exact 95 %
    intervals. The pages are saved in the survey that `surveyor crawl URL...` uses, which does not fetch them again.
    Repeating the command resumes, or only prints the result if the scout has ended; another number of walks or of
    sampled URLs starts another scout.
    """
    from surveyor.cli.crawl import CrawlOptions, prepare, remove_empty, report_stop
    from surveyor.crawler.start import start
    from surveyor.estimate.scouting.scout import ScoutOptions, check_links, summarise
    from surveyor.store.layout import is_survey
    from surveyor.survey.survey import Survey

    own = {name: given.pop(name) for name in OWN}
    chosen = ScoutOptions(own["walks"], own["sample"], ",".join(own["until"]), not own["no_sitemap"])
    asked = CrawlOptions(given.pop("urls"), out=given.pop("out"), fresh=given.pop("fresh"))
    prepared = prepare(output, asked, settings.given(given))
    is_new = not is_survey(prepared.path)
    if is_new:
        check_links(keeps=prepared.settings.graph)
    folder, effective = start(prepared.path, prepared.seeds, prepared.settings, prepared.origins)
    output.warn(*folder.notices)
    with folder:
        check_links(keeps=folder.journal.keeps_graph, place=folder.folder)
        finished = _walk(output, folder, effective, prepared.origins, chosen, is_new=is_new)
    if finished.code:
        return report_stop(output, str(prepared.path), finished)
    with Survey(prepared.path) as survey:
        if not survey.pages_fetched:
            raise remove_empty(survey, is_new=is_new)
        return _report(output, summarise(survey, finished.last, finished.ending))


def _walk(
    output: Output,
    folder: SurveyFolder,
    effective: Settings,
    origins: Mapping[str, str],
    chosen: ScoutOptions,
    *,
    is_new: bool,
) -> Finished:
    """Count the sitemaps and run the walks, with a progress display; SIGINT and SIGTERM stop it cleanly."""
    from surveyor.cli.crawl import Finished, introduce
    from surveyor.cli.crawl_display import CrawlDisplay
    from surveyor.crawler.session import Result, Run
    from surveyor.estimate.scouting.scout import count_sitemaps, walk

    introduce(output, folder, effective, origins, is_new=is_new)
    display = CrawlDisplay(silent=output.quiet, color=output.color)
    started, caught = time.monotonic(), list[int]()

    async def work() -> tuple[Result, Run | None]:
        await count_sitemaps(folder, effective, chosen, say=output.info)
        return await walk(folder, effective, chosen, watch=display)

    try:
        found, code = interrupts.run(work, caught)
    finally:
        display.clear()
    ending, last = found or ("interrupted", None)
    return Finished(chosen.rule, ending, code, time.monotonic() - started, last)


def _report(output: Output, scout: Scout) -> int:
    from surveyor.report import scouting

    output.object("scout", scout.to_dict())
    if output.mode == "csv":
        output.table(scouting.shares_table(scout.folders, "folder"))
        return 0
    output.lines((*scouting.walk_lines(scout), ""))
    for title, shares in (("host", scout.hosts), ("folder", scout.folders), ("", scouting.general_shares(scout))):
        output.table(scouting.shares_table(shares, title))
        output.line()
    output.line("shares of importance, with a 95 % confidence interval for each row by itself")
    output.line()
    output.facts({"unseen": scouting.unseen_line(scout)})
    for number, line in enumerate(scouting.size_lines(scout)):
        output.line(f"{'' if number else 'size':<6}  {line}")
    output.line()
    output.table(scouting.forecast_table(scout))
    output.line(scouting.forecast_note(scout))
    output.next_steps({"crawl, reusing these pages": _crawl_command(scout)})
    return 0


def _crawl_command(scout: Scout) -> list[str]:
    """Return the command that crawls into the same survey; its settings are stored there."""
    has_default_name = not {"--out", "--fresh"} & set(current_command())
    places = list(scout.seeds) if has_default_name and len(scout.seeds) == 1 else [str(scout.survey)]
    return ["surveyor", "crawl", *places, "--until", "coverage=0.9"]
