"""`surveyor crawl`, or just `surveyor URL`: fetch pages in order of importance until a share of it is certain."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import crawled, options, settings, stoppable
from surveyor.cli.settings import say_unusual

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from surveyor.cli.output import Output
    from surveyor.config import Settings
    from surveyor.crawler.session import Result, Run
    from surveyor.outcome import Outcome
    from surveyor.stopping import Rule
    from surveyor.store.directory import SurveyFolder


@options.command(
    "crawl",
    table=True,
    epilog="\b\nsurveyor crawl https://docs.example.org --until coverage=0.9 --contact me@example.org\n"
    "surveyor crawl --seeds seeds.txt --scope domain --until coverage=0.95 --until pages=10000",
)
@click.argument("urls", nargs=-1, metavar="URL...")
@click.option(
    "--seeds",
    "lists",
    multiple=True,
    metavar="PLACE",
    help="Start from a list too, a file or URL: a sitemap, a feed, or text with one URL a line; - is stdin.",
)
@click.option("--sitemap", is_flag=True, help="Start from all pages in the sitemaps of the hosts of URL... too.")
@click.option("--out", type=click.Path(), metavar="DIR", help="Folder of the survey.  [by host, port and path]")
@click.option("--fresh", is_flag=True, help="Begin a new survey beside the old one, which stays.")
@click.option("--add-seeds", is_flag=True, help="Let URL... be new seeds of a survey that exists.")
@click.option("--again", is_flag=True, help="Give another try to what could not be read so far.")
@click.option(
    "--from-last-good",
    is_flag=True,
    help="Resume a damaged survey from its last good commit; the damaged files stay beside it.",
)
@settings.all_options
def command(
    output: Output,
    *,
    urls: Sequence[str],
    lists: Sequence[str],
    sitemap: bool,
    out: str | None,
    fresh: bool,
    add_seeds: bool,
    again: bool,
    from_last_good: bool,
    **given: Any,
) -> int:
    """Crawl from URL... in order of importance until a share of it is certain to be captured.

    Everything is kept in a folder, the survey. Stopping is safe at any time: the same command resumes, and so does
    `surveyor crawl` with the folder in place of URL... . robots.txt is obeyed, and hosts are asked one page at a time.
    Settings, and seeds, may also stand in surveyor.toml or in SURVEYOR_… variables. The exit code is 0 if the goal
    was reached by any of its rules, 3 if the crawl ended for another reason.
    """
    from surveyor.config import load
    from surveyor.crawler.naming import folder_for
    from surveyor.crawler.seeds import gathered
    from surveyor.crawler.start import check_default, clean_seeds, cut_back, is_survey, named, start, survey_named
    from surveyor.fetch.http import run_sync

    chosen, origins = load(settings.given(given))
    if urls or lists:
        chosen, origins = replace(chosen, seeds=()), {**origins, "seeds": "default"}
    existing = None if lists or sitemap or fresh or chosen.seeds else survey_named(urls, out)
    if existing is not None:
        start_at, out = [], str(existing)
    else:
        start_at = clean_seeds(urls) if urls else [] if lists else _kept_seeds(chosen)
    chosen = settings.with_contact(output, chosen)
    chosen, origins = named(chosen, origins, [*(start_at if urls else ()), *lists])
    waits: dict[str, float] = {}
    if lists or sitemap:
        found = run_sync(gathered(lists, chosen, sitemaps_of=start_at if sitemap else (), say=output.say))
        start_at, waits = clean_seeds([*start_at, *found.urls]), found.waits
        if not chosen.scope and found.kinds - {"text"}:  # pages in many folders, all of one site
            chosen, origins = replace(chosen, scope="host"), {**origins, "scope": "--seeds"}
    path = folder_for(start_at, out, scope=chosen.scope, fresh=fresh)
    if out is None and not (lists or sitemap or add_seeds):  # lists change with their sites
        check_default(path, start_at, chosen, origins)
    is_new = not is_survey(path)
    if from_last_good:
        cut_back(path)
    folder, chosen = start(path, start_at, chosen, origins, again=again, add_seeds=add_seeds)
    for line in folder.notices:
        output.warn(line)
    with folder:
        if from_last_good:
            _say_rescued(output, folder)
        for host, until in waits.items():
            folder.note("wait", host=host, until=until, why="Retry-After")
        rule, ending, code, seconds, last = _crawl(output, folder, chosen, origins, is_new=is_new)
    if code and output.mode != "json":  # at once: what follows replays the journal
        return crawled.stopped(output, str(path), last, code)
    from surveyor.survey.survey import Survey

    with Survey(path) as survey:
        if not survey.pages_fetched and not code:
            raise crawled.nothing(survey, is_new=is_new)
        return crawled.tell(output, survey, rule, ending, code, seconds)


def _say_rescued(output: Output, folder: SurveyFolder) -> None:
    from surveyor.report.numbers import counted

    rescues = list(folder.journal.events("rescue"))
    if rescues and rescues[-1].visit == folder.journal.position:
        good, lost = int(rescues[-1].detail["last_good"]), int(rescues[-1].detail["lost_commits"])
        left = f"{counted(lost, 'commit')} lost" if lost else "no commit was lost"
        output.say(f"resumed from commit {good:,} ({left}); the damaged files are journal.sqlite.damaged*")
    else:
        output.say("the journal is not damaged: nothing was cut back")


def _kept_seeds(chosen: Settings) -> list[str]:
    from surveyor.crawler.start import clean_seeds
    from surveyor.errors import UsageError

    if not chosen.seeds:
        hint = "name at least one page to start from, or write seeds in surveyor.toml (`surveyor init` does)"
        raise UsageError("there are no seeds", hint=hint)
    return clean_seeds(chosen.seeds)


def _crawl(
    output: Output, folder: SurveyFolder, settings: Settings, origins: Mapping[str, str], *, is_new: bool
) -> tuple[Rule, Result, int, float, Run | None]:
    """Run the crawl, with its display and with signals that stop it in good order."""
    from surveyor.cli.display import Display, forecast_line
    from surveyor.crawler.session import run
    from surveyor.report.numbers import counted, share_at_least
    from surveyor.stopping import parse_rule

    rule = parse_rule(settings.until)
    _introduce(output, folder, settings, origins, is_new=is_new)
    display = Display(silent=output.quiet, color=output.color)
    began = time.monotonic()
    caught: list[int] = []

    greeted = False
    last: Run | None = None

    def watch(now: Run, outcome: Outcome | None) -> None:
        nonlocal greeted, last
        last = now
        if not greeted and not caught:
            greeted = True
            if not is_new:
                captured = share_at_least(now.state.crawl.ledger.coverage().at_least)
                output.say(f"Going on from {counted(now.before, 'page')} (at least {captured} captured).")
            if said := forecast_line(now.forecast()):
                output.say(said)
        display(now, outcome)

    try:
        ending, code = stoppable.run(lambda: run(folder, settings, rule, watch=watch), caught)
    finally:
        display.clear()
    return rule, ending or "interrupted", code, time.monotonic() - began, last


def _introduce(
    output: Output, folder: SurveyFolder, settings: Settings, origins: Mapping[str, str], *, is_new: bool
) -> None:
    manifest = folder.manifest
    places = [seed.partition("://")[2].removesuffix("/") for seed in manifest.seeds[:3]]
    hosts = ", ".join(places) + (", …" if len(manifest.seeds) > 3 else "")
    told = f"{settings.strategy}, damping {settings.damping:g}, rng {manifest.rng}"
    robots = "robots.txt obeyed, but for what follows" if settings.permission else "robots.txt obeyed"
    output.say(f"{hosts if is_new else folder.folder}   {told}   {robots}, delay {settings.delay:g} s")
    if is_new:
        output.say(f"saving to {folder.folder}     Ctrl-C is safe: run the same command to go on")
    say_unusual(output, settings, origins)
