"""Crawl from Python in one process, and the error of a crawl that fetched nothing."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surveyor.config import from_arguments
from surveyor.crawler.seed_pages import Given, SeedPages
from surveyor.crawler.session import Result, Run, Watch, run
from surveyor.crawler.sources.live import Connection
from surveyor.crawler.start import (
    allow_named_hosts,
    check_default,
    folder_for,
    recover_journal,
    start,
    survey_named,
)
from surveyor.errors import NothingFetched, UsageError
from surveyor.fetch.event_loops import run_sync
from surveyor.fetch.responses import LEFT
from surveyor.stopping import Rule, as_rule, parse_rule
from surveyor.survey.cell_display import CellDisplay
from surveyor.survey.survey import Survey
from surveyor.web.urls import host

if TYPE_CHECKING:
    from surveyor.config import Settings
    from surveyor.fetch.addresses import Resolver
    from surveyor.fetch.http import Client
    from surveyor.outcome import Outcome
    from surveyor.store.directory import SurveyFolder


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of `crawl` that are not settings of the survey."""

    fresh: bool = False  # create a new survey even if the folder exists
    add_seeds: bool = False  # allow new seeds in an existing survey
    again: bool = False  # retry blocked pages
    from_last_good: bool = False  # truncate a damaged journal to the commits before the damage; the files are kept
    quiet: bool = False  # no live progress in a notebook
    client: Client | None = None
    resolver: Resolver | None = None


def crawl(
    seeds: Given,
    *,
    until: Rule | str | None = None,
    out: Path | str | None = None,
    watch: Watch = lambda _run, _outcome: None,
    **options: Any,
) -> Survey:
    """Crawl in one process; see `surveyor.crawl`."""
    asked = None if until is None else as_rule(until)
    if isinstance(until, str):
        options["until"] = until
    folder, chosen, run_options = open_to_crawl(seeds, out, options)
    connection = Connection(run_options.client, run_options.resolver)
    display = CellDisplay(shown=not run_options.quiet)

    rules: list[Rule] = []  # the last one applies: a command may replace it

    def report(now: Run, outcome: Outcome | None) -> None:
        rules[:] = [now.until]
        display.crawl(now)
        watch(now, outcome)

    with folder:
        rules[:] = [parse_rule(chosen.until) if asked is None else asked]
        ending = run_sync(run(folder, chosen, rules[0], connection=connection, watch=report))
        display.end(ending)
    return opened_after(folder.folder, ending, rules[0])


def opened_after(folder: Path, ending: Result, rule: Rule) -> Survey:
    """Open the survey of a crawl that has ended; raise an error if nothing was fetched."""
    survey = Survey(folder)
    survey.ending, survey.goal = ending, rule
    if ending != "interrupted" and not survey.pages_fetched:
        with survey:
            raise nothing_fetched(survey)
    return survey


def open_to_crawl(
    seeds: Given, out: Path | str | None, options: Mapping[str, Any], *, sharded: bool = False
) -> tuple[SurveyFolder, Settings, RunOptions]:
    """Create a survey, or open it to resume; return it with the settings in effect and the other options.

    A survey that has shards is opened only with `sharded`.
    """
    names = [field.name for field in fields(RunOptions)]
    run_options = RunOptions(**{name: value for name, value in options.items() if name in names})
    settings = {name: value for name, value in options.items() if name not in names}
    chosen = from_arguments(settings, ("out", "watch", "cluster", "shards", *names))
    existing = None if run_options.fresh else survey_named(list(seeds) if isinstance(seeds, Mapping) else seeds, out)
    pages = SeedPages() if existing else SeedPages.of(seeds)
    if existing is None and not pages.weights:
        raise UsageError("there are no seeds", hint="pass at least one page to start from")
    chosen, origins = allow_named_hosts(chosen, dict.fromkeys(settings, "argument"), pages.urls)
    path = existing or folder_for(pages.urls, out, scope=chosen.scope, fresh=run_options.fresh)
    if existing is None and out is None and not run_options.add_seeds:
        check_default(path, pages.urls, chosen, origins)
    if run_options.from_last_good:
        recover_journal(path)
    again, add_seeds = run_options.again, run_options.add_seeds
    folder, chosen = start(path, pages, chosen, origins, again=again, add_seeds=add_seeds, sharded=sharded)
    for notice in folder.notices:
        warnings.warn(notice, stacklevel=3)
    return folder, chosen, run_options


NOT_TRIED = "it was not fetched before the crawl ended"


def nothing_fetched(survey: Survey) -> NothingFetched:
    """Return the error: why the first seed that was requested, or its redirect target, could not be fetched."""
    pages = {page: (url, visit) for page, url, visit in survey.pages()}
    tried = {url: page for page, (url, visit) in pages.items() if visit is not None}
    seeds = survey.manifest.seeds
    first = next((seed for seed in seeds if seed in tried), seeds[0])
    page = tried.get(first)
    url, visit = pages[page] if page is not None else (first, None)
    met = {page}
    while visit is not None and visit.kind == "redirected" and visit.target in pages and visit.target not in met:
        met.add(visit.target)
        url, visit = pages[visit.target]
    why = NOT_TRIED if visit is None else visit.reason or "it redirects in a circle"
    if visit is not None and why == LEFT and visit.out_of_scope.size and int(visit.out_of_scope[0]) in pages:
        why = f"redirects to {pages[int(visit.out_of_scope[0])][0]}, out of the scope"
    problem = why if why.startswith(host(url)) else f"{url}: {why}"
    by = f" ({first} redirects there)" if url != first else ""
    failed = f"All {len(seeds)} seeds failed, so nothing was fetched." if len(seeds) > 1 else "Nothing was fetched."
    return NothingFetched(f"{problem}{by}.", hint=f"{advice(why)} {failed}")


def advice(reason: str) -> str:
    """Return what to do about a page that could not be fetched."""
    if reason == NOT_TRIED:
        return "Allow more by --until."
    if reason.endswith("out of the scope"):
        return "Start from there, or choose another --scope."
    if "redirects" in reason:
        return "Check the address in a browser; start from the page it shows."
    if "no such host" in reason:
        return "Check the spelling."
    if reason.startswith("robots.txt could not be fetched"):
        return "Without a robots.txt response no page of the host may be fetched; try again later."
    if reason.startswith("robots"):
        return "The site does not want to be crawled there; start elsewhere, or ask its owner."
    if "ertificate" in reason or "SSL" in reason:
        return "Check the certificate; --ca-file trusts one of your own."
    if "address" in reason:
        return "--allow HOST permits a host in a private network."
    return "Try again later, or check the address in a browser."
