"""`surveyor sample`: options, walks and output."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from surveyor.cli import options, settings
from surveyor.config import FIELDS
from surveyor.errors import UsageError
from surveyor.store import layout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from surveyor.cli.output import Output
    from surveyor.config import Settings
    from surveyor.crawler.session import Run
    from surveyor.estimate.sampling.properties import Property
    from surveyor.estimate.sampling.sample_goals import SampleGoal
    from surveyor.estimate.sampling.sample_result import Sample
    from surveyor.estimate.sampling.sample_survey import SampleSurvey
    from surveyor.estimate.sampling.walk_scheduler import WalkResult, WalkScheduler
    from surveyor.estimate.sampling.walk_trace import WalkTrace
    from surveyor.outcome import Outcome
    from surveyor.report.sample import SampleSummary, StatisticsRequest

#: Accepted values, listed here so that --help needs no import; a test compares them with the library.
INDEPENDENT = "uniform"
EXACT_METHODS = ("trial", "mixture", "hard", "nonbacktracking", "webwalker")
PUBLISHED_METHODS = ("hard-paper", "neighbourhood-paper", "trial-paper")
CATEGORIES = ("domain", "host", "tld", "language", "out_degree", "topic_link_share")
NUMBERS = ("out_degree", "log_out_degree", "degree", "log_degree", "topic_link_share")
#: Settings of a crawl that live samples do not have as options, and those that they have.
EXCLUDED = {*settings.NO_OPTIONS, "until", "strategy", "topic", "depth", "damping", "patient", "max_fruitless", "rng"}
CRAWL_SETTINGS = tuple(name for name in FIELDS if name not in EXCLUDED)
GOAL, LIVE_GOAL = "ess=400", "ess=400,fetches=5000"  # a live sample never fetches without limit
LIMIT = re.compile(r"((?:fetches|steps|minutes)\s*=\s*)([\d.]+)", re.IGNORECASE)
RNG = 7  # default random seed of a new live sample, as for graphs
NOT_REACHED = 3  # exit code, also if a statistic could not be estimated


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleCommand:
    """The options of `surveyor sample`."""

    where: tuple[str, ...]
    topic: str
    statistics: StatisticsRequest
    method: str | None = None
    until: tuple[str, ...] = ()
    walks: int | None = None
    in_links: tuple[str, ...] = ()
    start: tuple[str, ...] = ()
    seed_lists: tuple[str, ...] = ()
    reach: int | None = None
    window: int | None = None
    radius: int | None = None
    rng: int | None = None
    out: str | None = None
    save: str | None = None
    plot: str | None = None
    report: str | None = None
    settings: Mapping[str, Any]  # of the crawler, as given on the command line

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> SampleCommand:
        """Group the parameters of the click command."""
        from surveyor.report.sample import StatisticsRequest

        wanted = {field.name for field in fields(StatisticsRequest)}
        own = {field.name for field in fields(cls)}
        return cls(
            statistics=StatisticsRequest(**{name: value for name, value in parameters.items() if name in wanted}),
            settings=settings.given({name: parameters[name] for name in CRAWL_SETTINGS}),
            **{name: value for name, value in parameters.items() if name in own},
        )

    @property
    def goal(self) -> str:
        """The stopping rules."""
        return ",".join(self.until) or (LIVE_GOAL if self.source == "web" else GOAL)

    @property
    def source(self) -> str:
        """The kind of source that is sampled: web, survey or graph."""
        from surveyor.cli.graph_source import is_survey
        from surveyor.cli.sample_checks import is_file

        if len(self.where) != 1 or self.seed_lists or "://" in self.where[0]:
            return "web"
        (name,) = self.where
        if is_survey(name):
            return "survey"
        return "graph" if is_file(name) or "." not in name else "web"


class SampleRun(NamedTuple):
    """A finished sample and a description of its source."""

    sample: Sample
    source: str
    folder: str = ""  # survey of the fetched pages


class Interrupted(NamedTuple):
    """A sample that was stopped and can be resumed."""

    exit_code: int
    message: str


@options.command(
    "sample",
    table=True,
    epilog=f"\b\nIndependent draws of stored pages, without walks:\n  {INDEPENDENT}\n\n"
    f"\b\nWalks with a known stationary distribution:\n  {', '.join(EXACT_METHODS)}\n"
    f"Biased walks, as published, for comparison:\n  {', '.join(PUBLISHED_METHODS)}\n\n"
    "\b\nsurveyor sample web.graph --topic tld:uk --share url:/blog/ --by domain\n"
    'surveyor sample https://solar.example/ --topic "solar power" --until ess=400,fetches=2000',
)
@click.argument("where", nargs=-1, metavar="URL...|SURVEY|GRAPH")
@click.option(
    "--topic",
    metavar="RULE",
    required=True,
    help='Pages to sample: "solar power", words:a,b, all:a,b, model:FILE, host:, domain:, tld:, prefix:, url:REGEX, '
    "not:RULE or everything.",
)
@options.choice(
    "--method",
    (INDEPENDENT, *EXACT_METHODS, *PUBLISHED_METHODS),
    "Method, listed below.  [uniform for a graph or survey, unless an option about walks is given; otherwise trial]",
    metavar="NAME",
)
@click.option(
    "--until",
    type=options.Suggested("ess=400", "width=3%", "fetches=2000", "steps=10000", "minutes=30"),
    multiple=True,
    metavar="RULE",
    help="Stop at ess=400, width=3%, fetches=2000, steps=10000 or minutes=30. Repeat: the first one met ends it.  "
    "[ess=400; live also fetches=5000]",
)
@options.whole("--walks", 1, "N", "Number of walks.  [8]")
@options.many("--share", "RULE", "Estimate the share of pages that match. Repeatable.")
@options.choice("--mean", NUMBERS, f"Estimate a mean: {', '.join(NUMBERS)}. Repeatable.", multiple=True, metavar="NAME")
@options.choice(
    "--by", CATEGORIES, f"Estimate shares by {', '.join(CATEGORIES)}. Repeatable.", multiple=True, metavar="NAME"
)
@click.option("--of", metavar="RULE", help="The --share or --mean that --until applies to.  [all of them]")
@options.flag(
    "--size", "Estimate the number of pages on topic: counted if all are known, else from collisions of walks."
)
@options.path(
    "--recall",
    "FILE|SURVEY",
    "Estimate the share of the topic that a list of URLs or a survey contains. Repeat to compare several.",
    multiple=True,
)
@options.many(
    "--fit",
    "NAME=FILE",
    "Test whether domain, host, tld or language is distributed as in a file: lines of a category, tab or comma, and "
    "its share or number of pages. Repeatable.",
)
@options.whole("--draws", 1, "K", "Draw K pages uniformly from the topic.")
@options.path(
    "--in-links",
    "FILE|GRAPH|SURVEY",
    "Source of in-links. Repeatable. For a graph also 30%: hide the others, to simulate unknown in-links.",
    multiple=True,
)
@options.many("--start", "PAGE", "Start page in a graph or survey. Repeatable.  [random pages on topic]")
@click.option(
    "--seeds",
    "seed_lists",
    multiple=True,
    metavar="PLACE",
    help="Also start at the URLs of a list: a file or URL with one URL per line. Weights do not matter, but pages of "
    "weight 0 are left out.",
)
@options.whole("--reach", 1, "N", "Maximum steps off topic, draws or probes per move.  [depends on the method]")
@options.whole(
    "--radius", 1, "K", "Links between the topic and pages that count as near it (neighbourhood-paper).  [1]"
)
@click.option(
    "--window",
    type=options.Whole(0),
    metavar="N",
    help="Jump to another host if more than half of the last N moves were on one host; 0: never.  [100 "
    "for live walks with webwalker or everything, otherwise 0]",
)
@options.whole("--rng", 0, "N", "Random seed.  [7]")
@options.out("DIR", "Survey folder for the fetched pages.  [named after the seed and the topic]")
@options.path("--save", "FILE", "Write the sampled pages with weights: .csv, .csv.gz, .parquet.")
@options.path("--plot", "DIR", "Write figures to a folder (SVG).")
@options.path("--report", "FILE", "Write a report as one HTML file.")
@settings.some_options(*CRAWL_SETTINGS)
def command(output: Output, **parameters: Any) -> int:
    """Sample the pages on a topic by random walks, and estimate shares and means over all of them.

    Walks follow links in both directions; weights make every page on topic count equally. With URLs, pages are fetched
    into a survey under the politeness policy, and the same command resumes it. With a survey or a graph, nothing is
    fetched. The exit code is 3 if the goal was not reached or a statistic could not be estimated.
    """
    from surveyor.cli.sample_checks import check_files, check_options, read_expected, recall_urls_of
    from surveyor.cli.sample_display import print_result
    from surveyor.cli.topic import resolve_model
    from surveyor.report.sample import ENDINGS, summarise

    chosen = SampleCommand.of(parameters)
    if chosen.source == "survey":
        chosen = replace(chosen, topic=resolve_model(chosen.where[0], chosen.topic))
    check_options(chosen)
    check_files(chosen)
    recall_urls = {place: recall_urls_of(place) for place in chosen.statistics.recall}
    expected = {fit: read_expected(fit) for fit in chosen.statistics.fit}
    run = _sample_live(output, chosen) if chosen.source == "web" else _sample_stored(output, chosen)
    if isinstance(run, Interrupted):
        output.info(f"Stopped. {run.message}.")
        output.next_steps({"resume": options.command_line()})
        return run.exit_code
    sample = run.sample
    summary = summarise(sample, chosen.statistics, recall_urls, expected)
    print_result(output, run, summary)
    output.warn(*sample.notes, *summary.failures)
    if not sample.reached:
        output.warn(f"the goal {chosen.goal} was not reached: {ENDINGS[sample.ending]}")
    _write_files(output, run, summary, chosen)
    is_complete = sample.reached and sample.trace.on_topic.any() and not summary.failures
    code = 0 if is_complete else NOT_REACHED
    output.next_steps(_next_steps(run, chosen, code))
    return code


# Walks


def _sample_stored(output: Output, chosen: SampleCommand) -> SampleRun:
    """Sample a graph or a survey."""
    from surveyor.cli.graph_source import find, open_graph
    from surveyor.cli.sample_display import WalkDisplay
    from surveyor.estimate.sampling.sample import sample
    from surveyor.report.numbers import counted
    from surveyor.survey.survey import Survey

    (path,) = chosen.where
    names = ("method", "walks", "reach", "window", "radius", "rng")
    arguments: dict[str, Any] = {name: getattr(chosen, name) for name in names if getattr(chosen, name) is not None}
    source: Any = path
    description = f"{path}, a survey; nothing was fetched"
    start: Sequence[Any] = chosen.start
    if chosen.source == "survey":
        Survey(path).close()  # raises if it is not one
    else:
        source = graph = open_graph(output, path)
        description = f"{path}, a graph: {counted(graph.pages, 'page')}, {counted(graph.links, 'link')}"
        arguments["in_links"], start = _graph_in_links(chosen.in_links), [find(graph, page) for page in start]
    display = WalkDisplay(chosen.goal, silent=output.quiet, color=output.color)

    def progress(trace: WalkTrace, fetches: int, tracked: Mapping[str, Property]) -> None:
        display.track(tracked)
        display(lambda: trace, fetches)

    try:
        result = sample(
            source,
            chosen.topic,
            until=chosen.goal,
            of=chosen.statistics.tracked,
            start=list(start) or None,
            progress=progress,
            **arguments,
        )
    finally:
        display.clear()
    return SampleRun(result, description)


def _graph_in_links(in_links: Sequence[str]) -> Any:
    """Return which in-links of a graph the walks know: a share, or those of another graph of the same pages."""
    from surveyor.graph.formats import read_graph

    if not in_links:
        return None
    if len(in_links) > 1:
        raise UsageError("--in-links may be repeated for live samples only", hint="give one for a graph")
    (value,) = in_links
    try:
        share = float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
    except ValueError:
        if not Path(value).exists():
            raise UsageError(
                f"--in-links of a graph must be a share or a graph, got {value}", hint="for example 30%"
            ) from None
        return read_graph(Path(value))
    if not 0 <= share <= 1:
        raise UsageError(f"--in-links must be a share from 0% to 100%, got {value}", hint="for example 30%")
    return share


def _sample_live(output: Output, chosen: SampleCommand) -> SampleRun | Interrupted:
    """Sample the live web; pages are fetched into a survey."""
    from surveyor.cli.sample_display import print_start
    from surveyor.cli.settings import with_contact
    from surveyor.config import load
    from surveyor.crawler.seed_pages import clean_seeds
    from surveyor.crawler.start import allow_named_hosts
    from surveyor.crawler.topics.rules import Topic
    from surveyor.estimate.sampling.sample import sample_of
    from surveyor.estimate.sampling.sample_goals import SampleGoal
    from surveyor.estimate.sampling.sample_survey import SampleOptions, open_sample_survey, sample_folder

    seed = {} if chosen.rng is None else {"rng": chosen.rng}
    loaded, origins = load({**chosen.settings, **seed})
    loaded = with_contact(output, loaded)
    loaded, origins = allow_named_hosts(loaded, origins, clean_seeds(chosen.where) if chosen.where else ())
    seeds, topic, goal = _seeds(output, chosen, loaded), Topic.parse(chosen.topic), SampleGoal.parse(chosen.goal)
    _check_fetches(seeds, chosen, goal)
    folder = Path(chosen.out) if chosen.out else sample_folder(seeds, topic.text)
    if loaded.rng is None and not layout.is_survey(folder):
        loaded = replace(loaded, rng=RNG)
    walk_options = SampleOptions(
        chosen.method,
        chosen.walks,
        chosen.reach,
        chosen.window,
        in_links=list(chosen.in_links) or None,
        until=str(goal),
        fetches=goal.fetches,
        radius=chosen.radius,
    )
    survey = open_sample_survey(seeds, topic, walk_options, out=folder, settings=loaded, origins=origins)
    output.warn(*survey.folder.notices)
    with survey:
        print_start(output, survey, origins)
        result, code = _walk_live(output, survey, chosen, goal)
        if result is None or result.ending == "interrupted":
            requested = 0 if result is None else result.requested.size
            return Interrupted(code, f"{requested:,} pages were requested; all of them are saved in {folder}")
    sample = sample_of(result, goal, chosen.statistics.tracked)
    return SampleRun(sample, f"the web, from {', '.join(seeds[:3])}; pages are saved in {folder}", str(folder))


def _seeds(output: Output, chosen: SampleCommand, loaded: Settings) -> list[str]:
    """Return the seed URLs, including those of lists; pages of weight 0 are not trusted, so no walk starts there."""
    from surveyor.crawler.seed_pages import SeedPages
    from surveyor.crawler.seeds import gather_seeds
    from surveyor.fetch.event_loops import run_sync

    pages = SeedPages.of(chosen.where)
    found = run_sync(gather_seeds(chosen.seed_lists, loaded, say=output.info)).urls if chosen.seed_lists else {}
    return pages.with_more(found).urls


def _check_fetches(seeds: Sequence[str], chosen: SampleCommand, goal: SampleGoal) -> None:
    """Reject a limit of fetches below the number of start pages."""
    from surveyor.estimate.sampling.walk_methods import DEFAULT_WALKS

    starts = min(len(seeds), chosen.walks or DEFAULT_WALKS)
    if goal.fetches is not None and goal.fetches < starts:
        raise UsageError(
            f"fetches must be at least {starts}, the number of start pages, got {goal.fetches}",
            hint="raise the limit of fetches, or give fewer seeds",
        )


def _walk_live(
    output: Output, survey: SampleSurvey, chosen: SampleCommand, goal: SampleGoal
) -> tuple[WalkResult | None, int]:
    """Walk with a progress display; signals stop it with all pages saved."""
    from surveyor.cli import interrupts
    from surveyor.cli.sample_display import WalkDisplay, waiting
    from surveyor.estimate.sampling.sample_goals import WalkLimits
    from surveyor.estimate.sampling.walks import walk_live

    display, reported = WalkDisplay(chosen.goal, silent=output.quiet, color=output.color), 0
    limits = WalkLimits.of(goal, chosen.statistics.tracked, lambda _trace, _fetches, tracked: display.track(tracked))

    def watch(scheduler: WalkScheduler, run: Run, _: Outcome | None) -> None:
        nonlocal reported
        if len(run.hosts.messages) > reported:
            display.clear()
            output.warn(*([] if output.quiet else run.hosts.messages[reported:]))
            reported = len(run.hosts.messages)
        display(
            scheduler.trace, len(scheduler.requested), lambda: waiting(scheduler, run) or f"{len(run.hosts):,} hosts"
        )

    try:
        return interrupts.run(partial(walk_live, survey, limits, watch=watch), [])
    finally:
        display.clear()


# Output


def _write_files(output: Output, run: SampleRun, summary: SampleSummary, chosen: SampleCommand) -> None:
    """Write the requested files; each appears when it is complete."""
    from surveyor.report.sample import SampleReport, write_pages, write_report
    from surveyor.report.svg import NO_PLOTS, can_plot

    if chosen.save:
        write_pages(run.sample, chosen.save)
        output.info(f"sampled pages written to {chosen.save}")
    if not chosen.plot and not chosen.report:
        return
    from surveyor.report.sample_plots import all_figures, write_figures

    figures = all_figures(run.sample, summary) if can_plot() else {}
    if chosen.plot:
        if files := write_figures(figures, Path(chosen.plot)):
            output.info(f"figures written to {chosen.plot}: {', '.join(files)}")
        else:
            output.warn(f"no figures were written to {chosen.plot}: no step is on topic")
    if chosen.report:
        again = shlex.join(options.command_line())
        write_report(SampleReport(run.sample, run.source, again, summary, figures), Path(chosen.report))
        output.info(f"report written to {chosen.report}")
        if not can_plot():
            output.info(NO_PLOTS)


def _next_steps(run: SampleRun, chosen: SampleCommand, code: int) -> dict[str, list[str]]:
    """Suggest further commands."""
    words = click.get_current_context().obj or ()
    steps: dict[str, list[str]] = {}
    if code and run.sample.ending in ("fetches", "steps", "minutes") and (longer := with_doubled_limits(words, chosen)):
        steps["draw more" if run.sample.independent else "walk longer"] = ["surveyor", *longer]
    if not chosen.statistics.share:
        steps["estimate a share"] = ["surveyor", *words, "--share", "url:/blog/"]
    if not chosen.save:
        steps["save the pages"] = ["surveyor", *words, "--save", "sample.csv"]
    if not chosen.report:
        steps["see the curves"] = ["surveyor", *words, "--report", "sample.html"]
    if run.folder:
        steps["see what was fetched"] = ["surveyor", run.folder]
    return steps


def with_doubled_limits(words: Sequence[str], chosen: SampleCommand) -> list[str]:
    """Return a command line with twice the limits of fetches and steps; empty if it has none."""
    rules = [rule for rule in (*chosen.until, chosen.goal) if LIMIT.search(rule)]
    if not rules:
        return []
    if not chosen.until:
        return [*words, "--until", _doubled(chosen.goal)]
    return [_doubled(word) if word.removeprefix("--until=") in rules else word for word in words]


def _doubled(rule: str) -> str:
    """Double the limits of a rule, without loss of digits.

    >>> _doubled("ess=400,fetches=2.50k"), _doubled("steps=1234567")
    ('ess=400,fetches=5k', 'steps=2469134')
    """
    return LIMIT.sub(lambda match: match[1] + _plain(2 * Decimal(match[2])), rule)


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
