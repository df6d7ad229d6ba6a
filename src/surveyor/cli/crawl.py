"""`surveyor crawl`, or just `surveyor URL`: fetch pages in order of importance until enough of it is certified."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import interrupts, options, settings
from surveyor.cli.options import current_command
from surveyor.cli.settings import report_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from surveyor.cli.output import Output
    from surveyor.config import Settings
    from surveyor.crawler.seed_pages import SeedPages
    from surveyor.crawler.session import Result, Run
    from surveyor.errors import NothingFetched
    from surveyor.outcome import Outcome
    from surveyor.stopping import Rule
    from surveyor.store.directory import SurveyFolder
    from surveyor.survey.survey import Survey

    Notice = Callable[[Run, Outcome], str]

NOT_REACHED = 3  # exit code
TOP = 10
CHECKED = "; Ctrl-C checks what is fetched so far"
FASTER = "; for a server of your own, --delay 0.1 is faster"


@dataclass(frozen=True, slots=True)
class CrawlOptions:
    """The options of `surveyor crawl` that are not settings."""

    urls: Sequence[str]
    lists: Sequence[str] = ()
    sitemap: bool = False
    out: str | None = None
    fresh: bool = False
    add_seeds: bool = False
    again: bool = False
    from_last_good: bool = False
    cluster: str | None = None
    shards: int | None = None
    metrics: str | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a crawl starts from: its folder, seeds, settings with their origins, and waits that hosts asked for."""

    path: Path
    seeds: SeedPages
    settings: Settings
    origins: Mapping[str, str]
    waits: Mapping[str, float]
    unread: Mapping[str, str] | None = None  # sitemaps that could not be read, and why; None if none were asked for


@dataclass(frozen=True, slots=True)
class Finished:
    """How a crawl ended."""

    rule: Rule
    ending: Result
    code: int  # exit code if a signal stopped it, else 0
    seconds: float
    last: Run | None  # as of the last progress report


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
    help="Add seeds from a file or URL: a sitemap, a feed, or text with one URL per line, and its weight in random "
    "jumps after it if that is not 1 (0: known in advance, but not trusted); - is stdin.",
)
@options.flag(
    "--sitemap",
    "Fetch the pages in the sitemaps of the hosts of URL..., too, after all others; they change neither ranks nor "
    "coverage.",
)
@options.out("DIR", "Folder of the survey.  [by host, port and path]")
@options.flag("--fresh", "Create a new survey; an existing one is kept.")
@options.flag("--add-seeds", "Add URL... to the seeds of an existing survey.")
@options.flag("--again", "Retry all blocked pages.")
@options.flag("--from-last-good", "Resume a damaged survey from its last good commit; the damaged files are kept.")
@options.cluster
@options.whole("--shards", 1, "K", "Number of shards of a new survey; fixed from then on.  [one per process]")
@click.option(
    "--metrics", metavar="PORT", help="With --cluster: serve Prometheus metrics at http://127.0.0.1:PORT/metrics."
)
@settings.all_options
def command(output: Output, **given: Any) -> int:
    """Crawl from URL... in order of importance until the goal, a certified coverage by default, is reached.

    Everything is stored in a folder, the survey. Stopping is safe at any time: the same command resumes, and so does
    `surveyor crawl SURVEY`. robots.txt is obeyed, and each host gets one request at a time. Settings and seeds can also
    be set in surveyor.toml or in SURVEYOR_… environment variables. The exit code is 0 if any rule of --until was met, 3
    if the crawl ended for another reason.
    """
    from surveyor.crawler.start import recover_journal
    from surveyor.errors import UsageError
    from surveyor.store.layout import is_survey
    from surveyor.survey.survey import Survey

    asked = CrawlOptions(**{name: given.pop(name) for name in CrawlOptions.__dataclass_fields__})
    prepared = prepare(output, asked, settings.given(given))
    path = prepared.path
    is_new = not is_survey(path)
    if asked.cluster is not None or asked.shards is not None:
        from surveyor.cli.sharded_crawl import crawl_in_shards

        return crawl_in_shards(output, asked, prepared, is_new=is_new)
    if asked.metrics is not None:
        raise UsageError("--metrics needs --cluster", hint="the progress of one process: surveyor status --json")
    if asked.from_last_good:
        recover_journal(path)
    finished, chosen = crawl_site(output, prepared, asked)
    if finished.code and output.mode != "json":  # at once: what follows ranks the pages
        return report_stop(output, str(path), finished)
    state = finished.last.state if finished.last is not None and chosen.graph else None  # else it is read again
    with Survey(path, state=state) as survey:
        if not survey.pages_fetched and not finished.code:
            raise remove_empty(survey, is_new=is_new)
        return report_end(output, survey, finished)


def crawl_site(
    output: Output, prepared: Prepared, asked: CrawlOptions, notice: Notice | None = None
) -> tuple[Finished, Settings]:
    """Create or open the survey and crawl; return how the crawl ended, and the settings in effect.

    With `notice`, its lines are printed as pages arrive; the goal is then a limit, of which no time is forecast.
    """
    from surveyor.crawler.seeds import MOST_UNREAD, SITEMAPS, unread_sitemaps
    from surveyor.crawler.start import start
    from surveyor.store.layout import is_survey

    is_new = not is_survey(prepared.path)
    folder, chosen = start(
        prepared.path, prepared.seeds, prepared.settings, prepared.origins, again=asked.again, add_seeds=asked.add_seeds
    )
    output.warn(*folder.notices)
    with folder:
        if asked.from_last_good:
            _report_recovery(output, folder)
        for host, until in prepared.waits.items():
            folder.note("backoff", host=host, until=until, why="Retry-After")
        if prepared.unread is not None and prepared.unread != unread_sitemaps(folder.journal):
            folder.note(SITEMAPS, unread=dict([*prepared.unread.items()][:MOST_UNREAD]))
        return _crawl(output, folder, chosen, prepared.origins, notice, is_new=is_new), chosen


def prepare(output: Output, asked: CrawlOptions, flags: Mapping[str, Any]) -> Prepared:
    """Load the settings, collect the seeds and choose the folder."""
    from surveyor.config import load
    from surveyor.crawler.seed_pages import SeedPages
    from surveyor.crawler.seeds import gather_seeds
    from surveyor.crawler.start import allow_named_hosts, check_default, folder_for, survey_named
    from surveyor.fetch.event_loops import run_sync

    chosen, origins = load(flags)
    out, lists = asked.out, asked.lists
    if asked.urls or lists:
        chosen, origins = replace(chosen, seeds=()), {**origins, "seeds": "default"}
    existing = None if lists or asked.sitemap or asked.fresh or chosen.seeds else survey_named(asked.urls, out)
    if existing is not None:
        seeds, out = SeedPages(), str(existing)
    else:
        seeds = SeedPages.of(asked.urls) if asked.urls else SeedPages() if lists else _configured_seeds(chosen)
    chosen = settings.with_contact(output, chosen)
    chosen, origins = allow_named_hosts(chosen, origins, [*(seeds.urls if asked.urls else ()), *lists])
    waits: dict[str, float] = {}
    unread: dict[str, str] | None = None
    if lists or asked.sitemap:
        found = run_sync(gather_seeds(lists, chosen, sitemaps_of=seeds.urls if asked.sitemap else (), say=output.info))
        seeds, waits = seeds.with_more(found.urls), found.waits
        unread = found.failed if asked.sitemap else None
        if not chosen.scope and lists and found.kinds - {"text"}:  # pages in many folders, all of one site
            chosen, origins = replace(chosen, scope="host"), {**origins, "scope": "--seeds"}
    path = folder_for(seeds.urls, out, scope=chosen.scope, fresh=asked.fresh)
    if out is None and not (lists or asked.sitemap or asked.add_seeds):  # lists change with their sites
        check_default(path, seeds.urls, chosen, origins)
    return Prepared(path, seeds, chosen, origins, waits, unread)


def _configured_seeds(chosen: Settings) -> SeedPages:
    from surveyor.crawler.seed_pages import SeedPages
    from surveyor.errors import UsageError

    if not chosen.seeds:
        hint = "pass at least one URL, or set seeds in surveyor.toml (`surveyor init` writes one)"
        raise UsageError("there are no seeds", hint=hint)
    return SeedPages.of(chosen.seeds)


def _report_recovery(output: Output, folder: SurveyFolder) -> None:
    from surveyor.report.numbers import counted

    recoveries = list(folder.journal.events("recovery"))
    if recoveries and recoveries[-1].visit == folder.journal.position:
        good, lost = int(recoveries[-1].detail["last_good"]), int(recoveries[-1].detail["lost_commits"])
        left = f"{counted(lost, 'commit')} lost" if lost else "no commit was lost"
        output.info(f"resumed from commit {good:,} ({left}); the damaged files are journal.sqlite.damaged*")
    else:
        output.info("the journal is not damaged: nothing was removed")


def _crawl(
    output: Output,
    folder: SurveyFolder,
    settings: Settings,
    origins: Mapping[str, str],
    notice: Notice | None,
    *,
    is_new: bool,
) -> Finished:
    """Run the crawl with its progress display; SIGINT and SIGTERM stop it cleanly."""
    from surveyor.cli.crawl_display import CostLine, CrawlDisplay, forecast_line
    from surveyor.crawler.session import run
    from surveyor.report.numbers import counted
    from surveyor.stopping import parse_rule

    rule = parse_rule(settings.until)
    introduce(output, folder, settings, origins, is_new=is_new)
    display = CrawlDisplay(silent=output.quiet, color=output.color)
    costs = CostLine(rule)
    if not is_new and not output.quiet:
        costs.resume(folder)
    started = time.monotonic()
    caught: list[int] = []
    last: Run | None = None

    def watch(now: Run, outcome: Outcome | None) -> None:
        nonlocal last
        is_first, last = last is None, now
        if is_first and not caught:
            if not is_new:
                output.info(f"Resuming from {counted(now.before, 'page')}{_captured(now)}.")
            if line := forecast_line(now.forecast()):
                limits = CHECKED + FASTER * (settings.delay >= 1)
                output.info(line if notice is None else line.partition(";")[0] + limits)
        if notice is not None and outcome is not None and (line := notice(now, outcome)):
            display.clear()
            output.info(line)
        if line := costs.line(now.state.crawl):
            display.clear()
            output.info(line)
        display(now, outcome)

    try:
        ending, code = interrupts.run(lambda: run(folder, settings, rule, watch=watch), caught)
    finally:
        display.clear()
    rule = rule if last is None else last.until  # a command may have replaced it
    return Finished(rule, ending or "interrupted", code, time.monotonic() - started, last)


def _captured(run: Run) -> str:
    """Return the coverage of a crawl that is resumed, in brackets; empty without a link graph."""
    from surveyor.report.numbers import sampled_bound, share_at_least

    if not run.folder.journal.keeps_graph:
        return ""
    captured = f"at least {share_at_least(run.state.crawl.ledger.coverage().at_least)} captured"
    if (sampled := run.sampled()) is not None:
        captured += f", certified; {sampled_bound(sampled)}"
    return f" ({captured})"


def introduce(
    output: Output, folder: SurveyFolder, settings: Settings, origins: Mapping[str, str], *, is_new: bool
) -> None:
    """Print the seeds, the settings and the folder."""
    from surveyor.crawler.strategies import by_name
    from surveyor.crawler.strategies.breadth import plan

    manifest = folder.manifest
    places = [seed.partition("://")[2].removesuffix("/") for seed in manifest.seeds[:3]]
    hosts = ", ".join(places) + (", …" if len(manifest.seeds) > 3 else "")
    order = f"focused on {settings.topic}" if settings.topic else settings.strategy
    facts = f"{order}, damping {settings.damping:g}, rng {manifest.rng}"
    robots = "robots.txt obeyed, with the exceptions below" if settings.permission else "robots.txt obeyed"
    output.info(f"{hosts if is_new else folder.folder}   {facts}   {robots}, delay {settings.delay:g} s")
    if is_new:
        output.info(f"saving to {folder.folder}     Ctrl-C is safe: run the same command to resume")
    report_settings(output, settings, origins)
    if line := plan(by_name(settings.strategy), settings.damping):
        output.info(line)
    if manifest.listed:
        from surveyor.report.numbers import counted

        known = f"{counted(len(manifest.listed), 'page')} known in advance"
        output.info(f"{known}; after all others, they are fetched, too")


def remove_empty(survey: Survey, *, is_new: bool) -> NothingFetched:
    """Return the error of a crawl that fetched nothing; remove a survey that never had a page."""
    from surveyor.survey.crawl import nothing_fetched

    error = nothing_fetched(survey)
    if is_new:
        shutil.rmtree(survey.folder, ignore_errors=True)
    elif survey.blocked():
        error.hint += " What failed in an earlier run is requested again with --again only."
    return error


def report_stop(output: Output, survey: str, finished: Finished) -> int:
    """Report what is saved of a crawl that was stopped, as of its last progress report."""
    from surveyor.report.numbers import both_bounds, counted

    last = finished.last
    pages = 0 if last is None else last.state.tally.pages
    known = ""
    if last is not None and last.folder.journal.keeps_graph:
        known = f", {both_bounds(last.state.crawl.ledger.coverage(), last.sampled())}"
    output.info(f"Stopped. {counted(pages, 'page')} saved{known}." if last else "Stopped before the crawl started.")
    top = {"best pages": ["surveyor", "top", survey]} if pages else {}
    output.next_steps({"resume": resume_command(survey), **top})
    return finished.code


def report_end(output: Output, survey: Survey, finished: Finished) -> int:
    """Report how the crawl ended, with the best pages; return the exit code."""
    from surveyor.report.numbers import both_bounds, counted, duration
    from surveyor.report.survey_tables import budget_lines, javascript_lines, listed_lines, topic_lines

    rule, ending = finished.rule, finished.ending
    name = str(survey.folder)
    hollow = survey.needs_javascript
    reached = ending == "reached" and not hollow
    pages = counted(survey.pages_fetched, "page")
    output.object(
        "crawl",
        {**fields_of(survey, TOP), "goal": survey.manifest.setting("until"), "ending": ending, "reached": reached},
    )
    if finished.code:
        return finished.code
    if not survey.keeps_graph:
        return report_graphless(output, survey, finished, reached=reached)
    coverage, larger = survey.coverage, larger_budgets(survey, survey.blocked())
    within = "within the budgets " * bool(larger)
    endings = {
        "reached": f"Goal not reached ({rule})" if hollow else f"Goal reached ({rule})",
        "unreachable": f"The goal ({rule}) cannot be reached",
        "fruitless": f"{_fruitless_requests(survey)} requests in a row fetched no page (max_fruitless)",
        "exhausted": f"No page is left to fetch {within}before the goal ({rule})",
    }
    captured = both_bounds(coverage, survey.sampled)
    output.line(f"{endings.get(ending, 'Stopped')}: {captured}, {pages}, {duration(finished.seconds)}.")
    output.lines(javascript_lines(survey))
    output.lines(budget_lines(survey))
    output.lines(topic_lines(survey))
    output.lines(listed_lines(survey))
    output.line()
    _show_top(output, survey)
    failed = not reached
    steps = {"why is it first?": ["surveyor", "explain", name, survey.top(1)[0]["url"]]}
    if failed:
        steps["what is missing?"] = ["surveyor", "top", name, "--blocked"]
    if hollow:
        steps["which need JavaScript?"] = ["surveyor", "top", name, "--javascript"]
    if failed and larger:
        steps["larger budgets"] = [*resume_command(name), *larger[-2:]]
    if failed and coverage.blocked > 0:
        steps["retry blocked pages"] = [*resume_command(name), "--again"]
    if survey.orphans(1):
        steps["which are orphans?"] = ["surveyor", "top", name, "--orphans"]
    if survey.listed["queued"]:
        steps["fetch the listed pages"] = resume_command(name)
    steps["more pages"] = ["surveyor", "top", name, "-n", "50"]
    steps["HTML report"] = ["surveyor", "report", name]
    output.next_steps(steps)
    return NOT_REACHED if failed else 0


def report_graphless(output: Output, survey: Survey, finished: Finished, *, reached: bool) -> int:
    """Report how a crawl without a link graph ended, with the pages of highest estimated importance."""
    from surveyor.cli.rank import print_estimates
    from surveyor.report.numbers import counted, duration

    endings = {
        "reached": f"Goal reached ({finished.rule})",
        "fruitless": f"{_fruitless_requests(survey)} requests in a row fetched no page (max_fruitless)",
        "exhausted": f"No page is left to fetch before the goal ({finished.rule})",
    }
    pages = f"{counted(survey.pages_fetched, 'page')} fetched of {counted(survey.pages_known, 'known page')}"
    output.line(f"{endings.get(finished.ending, 'Stopped')}: {pages}, {duration(finished.seconds)}.")
    output.line()
    own, name = survey.own_importance, str(survey.folder)
    if own is not None:
        print_estimates(output, own, TOP)
        output.next_steps({"more pages": ["surveyor", "top", name, "--importance", own.method, "-n", "50"]})
    return 0 if reached else NOT_REACHED


def _fruitless_requests(survey: Survey) -> str:
    """Return the number of consecutive requests without a page that ended the crawl, at least."""
    return f"{max(int(survey.manifest.settings.get('max_fruitless', 0)), survey.pages_fetched):,}"


def larger_budgets(survey: Survey, blocked: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the command that resumes with larger budgets, if some mass is blocked by a budget."""
    from surveyor.crawler.budgets import REASON, doubled

    if not any(row["reason"] == REASON and row["mass"] > 0 for row in blocked):
        return []
    seed, settings = survey.manifest.seeds[0], survey.manifest.settings
    return ["surveyor", "crawl", seed, "--out", str(survey.folder), "--budget", doubled(settings)]


def resume_command(survey: str) -> list[str]:
    """Return the command that resumes; after --fresh it names the folder."""
    words = current_command(without=("--fresh", "--again"))
    return [*words, "--out", survey] if "--fresh" in current_command() else words


def _show_top(output: Output, survey: Survey) -> None:
    from surveyor.report.numbers import MEANING, at_most, sampled_meaning
    from surveyor.report.survey_tables import of_one_site, top_table

    output.table(of_one_site(top_table(survey.top(TOP))))
    output.line()
    output.line(f"ranks of the pages known, exact to {at_most(survey.ranking.error)} in total; score: 0-100, log scale")
    output.line(f"coverage is {MEANING}")
    if (sampled := survey.sampled) is not None:
        output.line(sampled_meaning(sampled.confidence))


def fields_of(survey: Survey, top: int) -> dict[str, Any]:
    """Return the JSON fields of a survey, with its best pages."""
    own = survey.own_importance if not survey.keeps_graph else None
    return {**headline(survey), "pages": survey.top(top) if own is None else own.top(top)}


def headline(survey: Survey) -> dict[str, Any]:
    """Return the main figures of a survey."""
    return {
        "survey": str(survey.folder),
        "coverage": survey.coverage_fields,
        "pages_fetched": survey.pages_fetched,
        "pages_known": survey.pages_known,
        "javascript": {"pages": len(survey.javascript()), "share": survey.javascript_share},
        "rng": survey.manifest.rng,
        "seeds": list(survey.manifest.seeds),
        "weights": survey.manifest.seed_weights,
        "listed": survey.listed,
        "topic": survey.topic,
        "unguarded": survey.unguarded,
    }
