"""`surveyor community`: estimate the global rank of local pages from few pages around them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from surveyor.cli import options, settings
from surveyor.cli.options import given_options
from surveyor.errors import UsageError

if TYPE_CHECKING:
    from surveyor.arrays import IdArray
    from surveyor.cli.output import Output
    from surveyor.config import Settings
    from surveyor.crawler.session import Run
    from surveyor.estimate.community.community_options import CommunityOptions
    from surveyor.estimate.community.community_rank import CommunityRank
    from surveyor.estimate.community.community_survey import CommunitySurvey, CrawledCommunity
    from surveyor.graph.names import Names
    from surveyor.outcome import Outcome
    from surveyor.store.directory import SurveyFolder
    from surveyor.survey.survey import Survey

#: Copied from the library so that `--help` imports nothing; a test compares them.
SELECTORS = ("explore", "complement", "flow", "cho", "outlinks", "random")
ESTIMATORS = ("auto", "crawled", "frontier")
MOVERS = 10  # outside pages listed
NOTHING_FETCHED = 3  # exit code if no page outside was fetched and none was known before
#: Settings of a crawl that apply to fetched pages.
FETCHING = (
    "contact",
    "delay",
    "domain_delay",
    "max_delay",
    "max_wait",
    "avoid",
    "exclude",
    "backoff",
    "concurrency",
    "allow",
    "archive",
    "follow_nofollow",
    "timeout",
    "max_bytes",
    "budget",
    "budget_file",
    "proxy",
    "ca_file",
)
ORIGIN = re.compile(r"https?://[^/?#]+")


class StopRule(click.ParamType[float]):
    """The stopping rule of a community: stable=0.001."""

    name = "rule"
    values = ("stable=0.001",)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the L1 change of the ranks below which three consecutive rounds end the estimate."""
        from surveyor.stopping import COMMUNITY, parse_limits

        if isinstance(value, float):
            return value
        try:
            return parse_limits(str(value), COMMUNITY)["stable"]
        except UsageError as error:
            self.fail(f"{error.problem}; {error.hint}", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Return an example."""
        return options.matching(self.values, incomplete)


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of the command."""

    source: str
    local: str | None
    options: CommunityOptions
    settings: Mapping[str, Any]  # of the crawl, as given on the command line
    explain: str | None

    def words(self) -> list[str]:
        """Return the options that reproduce the same numbers."""
        chosen = self.options
        valued = {
            "--local": self.local,
            "--extra": chosen.extra,
            "--select": chosen.select,
            "--rounds": chosen.rounds,
            "--estimator": None if chosen.estimator == "auto" else chosen.estimator,
            "--until": f"stable={chosen.stable!r}" if chosen.stable else None,
            "--known": chosen.known,
            "--back-links": chosen.back_links,
            "--out": chosen.out,
            "--damping": chosen.damping,
            "--rng": chosen.rng,
        }
        words = [word for flag, value in valued.items() if value is not None for word in (flag, str(value))]
        return [*words, *["--replay"] * chosen.replay, *["--truth"] * chosen.truth]


@dataclass(frozen=True, slots=True)
class Estimated:
    """The result, or None if the command was interrupted."""

    result: CommunityRank | None
    rule: str
    source: str  # description
    code: int = 0
    survey: str = ""  # folder of the fetched pages
    remark: str = ""


@options.command(
    "community",
    table=True,
    epilog="\b\nsurveyor community web.graph --local host:www.example.org --truth\n"
    "surveyor community example.survey --local domain:example.org --extra 2n --contact me@example.org",
)
@options.graph_argument
@click.option(
    "--local",
    metavar="RULE",
    help="Local pages: host:HOST, domain:DOMAIN, prefix:URL, file:PATH, ids:0-1999 or all; or a topic: words:a,b, "
    "all:a,b, model:FILE (pages of a survey), url:REGEX, tld:SUFFIX, not:RULE.",
)
@click.option(
    "--extra", metavar="N", help="Pages to request outside: a number, or a multiple of the local pages (n, 0.5n).  [2n]"
)
@options.choice("--select", SELECTORS, "Score that selects these pages.  [explore]")
@options.whole("--rounds", 1, "N", "Number of rounds.  [so that each requests 4 % of the number of local pages]")
@options.choice("--estimator", ESTIMATORS, "Estimator of the ranks.", default="auto")
@click.option(
    "--until",
    "stable",
    type=StopRule(),
    metavar="stable=X",
    help="Stop when three consecutive rounds change the ranks by less than X (L1), such as stable=0.001.",
)
@click.option(
    "--known",
    type=click.Choice(("all", "local")),
    help="Pages of a survey used from the start: all fetched ones, or only the local ones.  [all; local with --replay]",
)
@options.path("--back-links", "PATH", "Known links to local pages: a table of links, a graph or a survey.")
@options.flag("--replay", "Fetch nothing: use only the pages that the survey has fetched.")
@options.out("DIR", "Survey folder for fetched pages.  [named after the survey]")
@options.flag("--truth", "Also rank the whole graph, compare, and list the outside pages with most impact.")
@options.top(20, "Number of local pages to list.")
@click.option("--explain", metavar="PAGE", help="Show the outside pages that affect this local page most.")
@options.path("--save", "FILE", "Write all local pages: .csv, .parquet or .npy.")
@options.path("--plot", "FILE", "Plot the changes and the convergence (SVG).")
@options.path("--report", "FILE", "Write a report as one HTML file.")
@click.option(
    "--damping", type=float, metavar="D", help="Probability of following a link.  [0.85, or that of the survey]"
)
@options.whole("--rng", 0, "N", "Random seed.  [7; if pages are fetched, that of the survey]")
@settings.some_options(*FETCHING)
def command(output: Output, *, graph: str, top: int, **given: Any) -> int:
    """Estimate how the whole web ranks the local pages of a graph or survey.

    Pages outside are selected in rounds by their influence on the ranks of the local pages. With a graph they are read
    from the graph. With a survey they are fetched politely into a new survey; repeating the command resumes it. There
    is no bound for the error of such an estimate.
    """
    from surveyor.cli.graph_source import is_survey
    from surveyor.estimate.community.community_options import CommunityOptions

    files = {name: path for name in ("save", "plot", "report") if (path := given.pop(name))}
    local, explain = given.pop("local"), given.pop("explain")
    if local is not None and local.startswith("model:") and is_survey(graph):
        from surveyor.cli.topic import resolve_model

        local = resolve_model(graph, local)
    chosen, rest = CommunityOptions.split({**given, "stable": given["stable"] or 0.0})
    request = Request(graph, local, chosen, settings.given(rest), explain)
    if explain is not None and output.mode == "csv":
        raise UsageError("--csv and --explain exclude each other", hint="use --json, or omit one of them")
    check(request, files)
    live = is_survey(graph) and not chosen.replay
    estimated = (_of_live_web if live else _of_replay if chosen.replay else _of_graph)(output, request)
    result = estimated.result
    if result is None:
        output.info(f"Stopped. {estimated.remark}.")
        output.next_steps({"resume": options.command_line()})
        return estimated.code
    entry = None if explain is None else local_entry(result.pages, result.name, result.names, explain)
    _show(output, request, estimated.rule, result, top, entry)
    _write(output, estimated, result, files)
    output.next_steps(_steps(request, result, estimated.survey, files))
    return estimated.code


def _show(output: Output, request: Request, rule: str, result: CommunityRank, top: int, entry: int | None) -> None:
    """Print the local pages, the outside pages that affect them most, and the uncertainty."""
    from surveyor.report import communities as report
    from surveyor.report.survey_tables import of_one_site

    rows, movers = result.top(top), result.movers(count=MOVERS)
    if output.mode == "json":
        fields = report.fields(result, top, movers)
        if entry is not None:
            fields["explained"] = report.explained(result, entry, result.movers(int(result.pages[entry]), MOVERS))
        output.object("community", {"source": request.source, "local": rule, **fields})
        return
    if entry is not None:
        movers = result.movers(int(result.pages[entry]), MOVERS)
    output.table(of_one_site(report.local_table(rows), "name"))
    if output.mode == "csv":
        return
    output.line()
    output.lines([] if entry is None else report.explained_lines(result, entry, movers))
    if movers:
        output.table(report.movers_table(result, movers, of_one=entry is not None))
    elif entry is None:
        output.line("no fetched page outside links to a local page")
    output.line()
    legends = [report.movers_line(of_one=entry is not None)] if movers else []
    if result.truth is not None:
        output.table(report.truth_table(result))
        output.line()
        if result.largest_impacts(1):
            output.table(report.impact_table(result, MOVERS))
            output.line()
            legends.append(report.impact_line(result))
    output.paragraphs([*report.lines(result, rule), *legends])
    for note in result.notes:
        output.line(f"note: {note}")


def _steps(request: Request, result: CommunityRank, survey: str, files: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the commands to suggest."""
    words = ["surveyor", "community", request.source, *request.words(), *given_options(FETCHING)]
    steps = {}
    most = result.largest_changes(1)[0]
    if request.explain is None and most["name"].isprintable() and most["share"] != most["local_share"]:
        steps["explain the largest change"] = [*words, "--explain", most["name"]]
    if "save" not in files:
        steps["save all local pages"] = [*words, "--save", "global.csv"]
    if "report" not in files:
        steps["write a report"] = [*words, "--report", "community.html"]
    if survey:
        steps["see the fetched pages"] = ["surveyor", survey]
    return steps


def check(request: Request, files: Mapping[str, str]) -> None:
    """Reject invalid arguments before any work is done."""
    from surveyor.cli.graph_source import is_survey
    from surveyor.report.column_files import check_distinct, check_file, check_place
    from surveyor.report.svg import check_plots

    chosen, survey = request.options, is_survey(request.source)
    live = survey and not chosen.replay
    chosen.check()
    if request.local is None and not live:
        raise UsageError("the local pages are not specified", hint="select them with --local, such as host:HOST")
    fetching = {**request.settings, **({"out": chosen.out} if chosen.out else {})}
    if fetching and not live:
        flag, what = next(iter(fetching)).replace("_", "-"), "a replay" if chosen.replay else "a graph"
        raise UsageError(
            f"--{flag} applies to fetched pages, and {what} fetches none",
            hint=f"omit --{flag}, or pass a survey without --replay",
        )
    if not survey and (chosen.replay or chosen.known):
        flag = "replay" if chosen.replay else "known"
        raise UsageError(f"{request.source} is not a survey", hint=f"--{flag} applies to surveys")
    if chosen.truth and survey:
        raise UsageError("--truth needs the whole graph, and a survey has only a part", hint="pass a graph")
    check_distinct({**files, **({"back-links": str(chosen.back_links)} if chosen.back_links else {})})
    if "save" in files:
        check_file(files["save"])
    for path in files.values():
        check_place(path)
    if "plot" in files:
        check_plots()


def _of_graph(output: Output, request: Request) -> Estimated:
    from surveyor.cli.graph_source import open_graph
    from surveyor.estimate.community.community_options import local_pages
    from surveyor.report.numbers import counted

    graph = open_graph(output, request.source)
    chosen = local_pages(request.local or "", graph.names, graph.pages, what=request.source)
    if chosen.missing:
        verb = "is" if chosen.missing == 1 else "are"
        output.warn(f"{counted(chosen.missing, 'page')} of {chosen.rule} {verb} not in {request.source}")
    if request.explain is not None:
        local_entry(chosen.indices, graph.name, graph.names, request.explain)
    result = _timed(output, graph, chosen.indices, request.options)
    size = f"{counted(graph.pages, 'page')}, {counted(graph.links, 'link')}"
    return _concluded(output, result, chosen.rule, f"{request.source}, a graph: {size}")


def _of_replay(output: Output, request: Request) -> Estimated:
    from surveyor.estimate.community.community_options import LocalRule
    from surveyor.survey.survey import Survey

    rule, chosen = str(LocalRule.parse(request.local or "")), request.options
    if chosen.known == "all":
        given = {"extra": chosen.extra, "select": chosen.select, "rounds": chosen.rounds, "until": chosen.stable}
        if unused := ", ".join(f"--{name}" for name, value in given.items() if value):
            output.warn(f"{unused} ignored: a replay with --known all requests no page")
    with Survey(request.source) as survey:
        if request.explain is not None:
            _check_replayed_page(survey, rule, request.explain)
        result = _timed(output, survey, rule, chosen)
    return _concluded(output, result, rule, f"{request.source}, a replayed survey; no page was fetched")


def _timed(output: Output, source: Any, local: Any, chosen: CommunityOptions) -> CommunityRank:
    from dataclasses import fields

    from surveyor.estimate.community.community import community
    from surveyor.report.numbers import counted, duration

    named = {field.name: getattr(chosen, field.name) for field in fields(chosen)}
    given = {name: value for name, value in named.items() if value is not None}
    with output.progress() as progress, output.timed() as seconds:
        result = community(source, local, progress=progress, **given)
    output.info(f"{counted(result.known.pages.size, 'page')} in total, {duration(seconds[0])}")
    return result


def _concluded(output: Output, result: CommunityRank, rule: str, source: str, survey: str = "") -> Estimated:
    """Warn if no page outside was fetched; the exit code is 3 if none was known before either."""
    from surveyor.report.numbers import counted

    none_requested = result.ending == "complete" and not result.extra.size
    before = _known_before(result)
    rest = f"the estimate uses {counted(before, 'page')} outside known before" if before else ""
    if none_requested:
        output.warn("no page was requested: the estimate may be worse than the local rank; request pages with --extra")
    elif result.ending == "no_frontier" and not survey:
        output.warn(f"no page of {rule} links to a page outside that can be fetched{'; ' * bool(rest)}{rest}")
    elif result.extra.size and not result.fetched:
        requested = int(result.extra.size)
        failed = (
            "the requested page outside" if requested == 1 else f"none of the {requested:,} requested pages outside"
        )
        output.warn(f"{failed} could {'not ' * (requested == 1)}be fetched{'; ' * bool(rest)}{rest}")
    code = 0 if none_requested or result.fetched or before else NOTHING_FETCHED
    return Estimated(result, rule, source, code, survey)


def _known_before(result: CommunityRank) -> int:
    """Count the outside pages with links that were fetched before or are known by back-links."""
    import numpy as np

    known = result.known
    linking = (result.batch_of == 0) & (known.degrees + known.leaving > 0)
    return int((linking & ~np.isin(known.pages, result.pages)).sum())


def _write(output: Output, estimated: Estimated, result: CommunityRank, files: Mapping[str, str]) -> None:
    """Write the files; each appears under its name when it is complete."""
    from surveyor.report.communities import write_community

    if "save" in files:
        write_community(result, files["save"])
        output.info(f"local pages written to {files['save']}")
    if "plot" in files:
        from surveyor.report.community_html import both_plots
        from surveyor.report.svg import write_svg

        write_svg(both_plots(result), files["plot"])
        output.info(f"plot written to {files['plot']}")
    if "report" in files:
        from surveyor.report.community_html import CommunityReport, write_report
        from surveyor.report.svg import NO_PLOTS, can_plot

        again = shlex.join(options.command_line())
        title = f"Global rank of {estimated.rule.partition(':')[2] or estimated.rule}"
        page = CommunityReport(title, result, estimated.rule, estimated.source, again, plots=can_plot())
        write_report(page, Path(files["report"]))
        output.info(f"report written to {files['report']}")
        if not can_plot():
            output.info(NO_PLOTS)


# Fetching pages around a survey


def _of_live_web(output: Output, request: Request) -> Estimated:
    """Fetch pages around those of a survey, into a new survey."""
    from dataclasses import replace

    from surveyor.estimate.community.community import rank_crawled, read_back_links
    from surveyor.estimate.community.community_survey import open_community_survey

    if request.explain is not None:
        _check_live_page(request, request.explain)
    chosen = replace(request.options, back_links=read_back_links(request.options.back_links))
    config, origins = _settings(output, request)
    with open_community_survey(request.source, request.local, chosen, settings=config, origins=origins) as survey:
        folder, rule = str(survey.folder.folder), survey.record.rule
        output.warn(*survey.warnings, *_ignored(survey, chosen))
        _introduce(output, survey, origins)
        crawled, code = _crawl(output, survey)
        if crawled is None or crawled.ending == "interrupted":
            remark = f"{survey.requested:,} of {survey.extra:,} pages outside were requested; all are saved in {folder}"
            return Estimated(None, rule, request.source, code, folder, remark)
        result = rank_crawled(crawled, chosen, survey.folder.manifest.rng, notes=survey.warnings)
    return _concluded(output, result, rule, f"{request.source}, and pages fetched into {folder}", folder)


def _ignored(survey: CommunitySurvey, chosen: CommunityOptions) -> list[str]:
    """Return warnings for options that have no effect on an existing community."""
    from surveyor.report.numbers import counted

    if survey.is_new:
        return []
    record, warnings = survey.record, []
    if chosen.extra is not None and chosen.extra_pages(record.local) < survey.extra:
        verb = "was" if survey.requested == 1 else "were"
        warnings.append(f"--extra {chosen.extra} ignored: {counted(survey.requested, 'page')} {verb} requested before")
    if chosen.known == "local" and record.fetched > record.local:
        warnings.append(
            f"--known local ignored: {survey.folder.folder} was created with --known all; choose another --out"
        )
    return warnings


def _settings(output: Output, request: Request) -> tuple[Settings, dict[str, str]]:
    """Return the settings of the crawl; ask for a contact if neither the user nor the base survey has one."""
    from surveyor.cli.settings import with_contact
    from surveyor.config import load
    from surveyor.crawler.start import honoured
    from surveyor.store.directory import SurveyFolder

    own = {name: value for name in ("damping", "rng") if (value := getattr(request.options, name)) is not None}
    chosen, origins = load({**request.settings, **own})
    with SurveyFolder.open(Path(request.source), write=False) as base:
        contact = chosen.contact or honoured(base.manifest)[0].get("contact")
    if not contact:
        chosen = with_contact(output, chosen)
        origins["contact"] = "--contact"
    return chosen, origins


def _introduce(output: Output, survey: CommunitySurvey, origins: Mapping[str, str]) -> None:
    from surveyor.cli.settings import report_settings
    from surveyor.estimate.community.community_survey import FIXED
    from surveyor.report.numbers import counted

    record, now = survey.record, survey.settings
    left = max(0, survey.extra - survey.requested)
    known = f"{counted(record.local, 'local page')} ({record.rule}), {counted(record.fetched, 'page')} fetched before"
    if not left:
        output.info(f"{known}; {counted(survey.requested, 'page')} outside requested before, none left to request")
        return
    output.info(f"{known}; up to {counted(left, 'page')} outside to fetch   robots.txt obeyed, delay {now.delay:g} s")
    output.info(f"saving to {survey.folder.folder}     Ctrl-C is safe: run the same command to resume")
    report_settings(output, now, {**origins, **dict.fromkeys(("seeds", *FIXED), "--local")})


def _crawl(output: Output, survey: CommunitySurvey) -> tuple[CrawledCommunity | None, int]:
    """Run the crawl with a progress meter, and stop cleanly on a signal."""
    from surveyor.cli import interrupts
    from surveyor.estimate.community.community_survey import crawl_community

    reported = 0
    with output.progress() as progress:

        def watch(now: Run, _: Outcome | None) -> None:
            nonlocal reported
            output.warn(*([] if output.quiet else now.hosts.messages[reported:]))
            reported = len(now.hosts.messages)
            requested = int(getattr(now.state.crawl.strategy, "asked", 0))
            progress("fetching around", requested, survey.extra, "pages")

        return interrupts.run(lambda: crawl_community(survey, watch=watch), [])


# The page of --explain


def local_entry(pages: IdArray, name: Callable[[int], str], names: Names | None, text: str) -> int:
    """Return the index of a local page given by its name, its path alone, or its id as #3."""
    from surveyor.cli.graph_source import ID

    found = _by_name(pages, names, text)
    if found is None and (ID.fullmatch(text) or (names is None and text.isdecimal())):
        found = _index(pages, int(text.removeprefix("#")))
    several = set() if found is None else {found}
    if found is None and text.startswith("/"):
        origins = {match[0] for page in pages.tolist() if (match := ORIGIN.match(name(page)))}
        several = {index for origin in origins if (index := _by_name(pages, names, origin + text)) is not None}
    if len(several) > 1:
        raise UsageError(f"{text} is the path of {len(several):,} local pages", hint="give the whole URL")
    if not several:
        raise UsageError(f"{text} is not a local page", hint="give a name as listed, or an id as #3")
    return several.pop()


def _by_name(pages: IdArray, names: Names | None, text: str) -> int | None:
    """Find a local page by name, as given or normalised, with or without a trailing slash."""
    from surveyor.web.urls import normalise

    for spelling in dict.fromkeys((text, normalise(text), f"{text}/", normalise(f"{text}/"))):
        page = None if names is None or spelling is None else names.find(spelling)
        if page is not None and (index := _index(pages, page)) is not None:
            return index
    return None


def _index(pages: IdArray, page: int) -> int | None:
    found = (pages == page).nonzero()[0]
    return int(found[0]) if found.size else None


def _check_replayed_page(survey: Survey, rule: str, text: str) -> None:
    """Reject a page that is not local in a replay, before the work."""
    from surveyor.estimate.community.community_options import local_pages
    from surveyor.estimate.community.known_graph import replay_survey
    from surveyor.store.directory import SurveyFolder

    web = replay_survey(survey)
    with SurveyFolder.open(survey.folder, write=False) as archive:
        local = local_pages(
            rule, web.graph.names, web.graph.pages, what="this survey", allow_all=True, archive=archive
        ).indices
    local_entry(local[web.fetched[local]], web.graph.name, web.graph.names, text)


def _check_live_page(request: Request, text: str) -> None:
    """Reject a page that is not local, before any page is fetched or copied."""
    import numpy as np

    from surveyor.estimate.community.community_survey import community_folder
    from surveyor.graph.names import Names
    from surveyor.store import layout
    from surveyor.store.directory import SurveyFolder

    base, local, out = Path(request.source), request.local, request.options.out
    folder = Path(out) if out else base if local is None else community_folder(base, local)
    exists = layout.is_survey(folder)
    with SurveyFolder.open(folder if exists else base, write=False) as opened:
        urls = _local_urls(opened) if exists else _selected_urls(opened, local)
    if urls:
        local_entry(np.arange(len(urls), dtype=np.int32), urls.__getitem__, Names.of(urls), text)


def _local_urls(folder: SurveyFolder) -> Sequence[str]:
    """Return the local pages of a community: those with the first ids."""
    from itertools import islice

    from surveyor.estimate.community.community_survey import community_record

    record = community_record(folder)
    return [] if record is None else list(islice(folder.journal.urls(), record.local))


def _selected_urls(base: SurveyFolder, rule: str | None) -> Sequence[str]:
    """Return the pages of a survey that will be local."""
    from surveyor.estimate.community.community_survey import select_pages

    return [] if rule is None else select_pages(base, rule, only_local=True).local_urls()
