"""`surveyor rank` and `surveyor top`: rank the pages of a graph with a proven error, and list the best pages."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from surveyor.cli import options
from surveyor.cli.options import RANKING, current_command, given_options

if TYPE_CHECKING:
    from surveyor.arrays import FloatArray
    from surveyor.cli.output import Output
    from surveyor.crawler.ledger import CoverageInterval
    from surveyor.errors import NotConverged
    from surveyor.graph.csr import Graph
    from surveyor.rank.pagerank import Ranking
    from surveyor.report.tables import Table
    from surveyor.survey.importance import Importance
    from surveyor.survey.survey import Survey

DAMPING = 0.85
PARAMETERS = ("damping", "tolerance", "teleport", "dangling", "solver")
MIN_LINKS_FOR_RATE = 1_000_000  # links passed, from which a rate per second is printed


@dataclass(frozen=True, slots=True)
class RankingOptions:
    """The options of `options.ranking`, shared by `rank`, `top` and `explain`."""

    tolerance: float
    damping: float | None
    trusted: str | None
    teleport: str | None
    crawled_only: bool
    dangling: Literal["teleport", "uniform"]
    max_sweeps: int
    threads: int | None
    warm_start: str | None = None  # file of ranks to start from


@dataclass(frozen=True, slots=True)
class RankedGraph:
    """A graph and its ranking."""

    path: str
    graph: Graph
    ranking: Ranking
    seconds: float
    problem: NotConverged | None  # the tolerance was not reached
    coverage: CoverageInterval | None = None  # of a survey
    notes: tuple[str, ...] = ()  # about its pages

    @property
    def exit_code(self) -> int:
        """0, or the exit code of a guarantee that was not reached."""
        return self.problem.exit_code if self.problem else 0

    def to_dict(self) -> dict[str, Any]:
        """Return the graph and the parameters of the ranking as plain values."""
        ranking = self.ranking
        fields: dict[str, Any] = {
            "graph": {"path": self.path, "pages": self.graph.pages, "links": self.graph.links},
            "ranking": {
                **{name: getattr(ranking, name) for name in PARAMETERS},
                "error": ranking.error,
                "reached": self.problem is None,
                "sweeps": ranking.sweeps,
                "seconds": round(self.seconds, 4),
            },
        }
        return fields if self.coverage is None else {**fields, "coverage": self.coverage.to_dict()}

    def print_summary(self, output: Output, *lines: str) -> None:
        """Print size, proven error, other lines and time; warn if the tolerance was not reached."""
        from surveyor.report.numbers import MEANING, amount, at_most, counted, duration, interval, tiny

        ranking, graph = self.ranking, self.graph
        size = f"{counted(graph.pages, 'page')}, {counted(graph.links, 'link')}"
        output.line(f"{size}; proven error at most {at_most(ranking.error)} in total")
        output.lines(lines)
        if self.coverage is not None:
            output.line(f"captured {interval(self.coverage)}, {MEANING}")
        output.lines(self.notes)
        work = graph.links * ranking.sweeps
        rate = f", {amount(work / self.seconds)} links/s" if work >= MIN_LINKS_FOR_RATE else ""
        output.info(f"{counted(ranking.sweeps, 'sweep')}, {duration(self.seconds)}{rate}")
        if self.problem:
            output.warn(
                f"the proven error is {at_most(ranking.error)}, above the tolerance {tiny(ranking.tolerance)}, "
                f"after {counted(ranking.sweeps, 'sweep')}."
            )
            output.info("  hint: raise --max-sweeps or --tolerance; the list is correct within its proven error")


@options.command("rank", table=True)
@options.graph_argument
@options.ranking
@click.option("--top", "-n", type=options.Whole(0), default=10, metavar="N", help="Pages to print.")
@options.out("FILE", "Write all ranks: .csv, .csv.gz, .parquet, .npy, .txt, .txt.gz.")
@options.path("--report", "FILE", "Write a report, one HTML file.")
@options.path("--warm-start", "FILE", "Start from ranks written by --out.")
@options.cluster
@options.path("--checkpoints", "DIR", "Keep checkpoints of a graph in pieces there; the same command resumes.")
def command(
    output: Output,
    *,
    graph: str,
    top: int,
    out: str | None,
    report: str | None,
    cluster: str | None,
    checkpoints: str | None,
    **ranking_options: Any,
) -> int:
    """Rank the pages of a survey, a graph folder, a graph in pieces or any file of links.

    The error is proven: it bounds the sum, over all pages, of the differences between the printed and the exact scores.
    If the tolerance is not reached, the last ranking is printed with the error that it has, and the exit code is 3.
    """
    from surveyor.cli.graph_source import page_argument
    from surveyor.errors import UsageError
    from surveyor.graph.pieces.folder import is_pieces
    from surveyor.report.column_files import check_place
    from surveyor.report.ranking import check_suffix, write_ranks_file

    for path in filter(None, (out, report)):
        check_place(path)
    if is_pieces(graph):
        if report:
            raise UsageError("--report needs a graph in one part", hint="omit --report, or pass the graph itself")
        from surveyor.cli import pieces

        chosen = RankingOptions(**ranking_options)
        return pieces.rank(output, graph, chosen, cluster=cluster, checkpoints=checkpoints, top=top, out=out)
    if cluster or checkpoints:
        name = "--cluster" if cluster else "--checkpoints"
        raise UsageError(
            f"{name} needs a graph in pieces, and {graph} is not one",
            hint=f"surveyor graph split {shlex.quote(graph)} PIECES",
        )
    if out:
        check_suffix(out)
    ranked = rank_graph(output, graph, RankingOptions(**ranking_options), out=out)
    print_top(output, "rank", ranked, top)
    if out:
        write_ranks_file(ranked.graph, ranked.ranking, out)
        output.info(f"ranks written to {out}")
    if report:
        write_report(output, ranked, report)
    if top and ranked.graph.pages:
        first = page_argument(ranked.graph, int(ranked.ranking.top(1)[0]))
        steps = {"explain the first": ["surveyor", "explain", graph, first, *given_options(RANKING)]}
        if not out:
            steps["save all ranks"] = current_command("--out", "ranks.csv")
        output.next_steps(steps)
    return ranked.exit_code


def rank_graph(
    output: Output, path: str, ranking_options: RankingOptions, *, survey: Survey | None = None, out: str | None = None
) -> RankedGraph:
    """Open and rank a graph or a survey, which may be open; a ranking that did not converge carries its own bound."""
    from surveyor.cli.graph_source import is_survey, open_graph, open_survey, trusted_teleport
    from surveyor.errors import NotConverged, UsageError
    from surveyor.rank.pagerank import SolverOptions, pagerank
    from surveyor.report.ranking import check_names

    chosen = ranking_options
    teleport: FloatArray | None = None
    notes: tuple[str, ...] = ()
    coverage, damping = None, DAMPING
    if is_survey(path):
        source = open_survey(path, chosen.teleport, crawled_only=chosen.crawled_only, survey=survey)
        graph, teleport, damping, coverage, notes = source
    elif chosen.teleport == "seeds" or chosen.crawled_only:
        state = "is a graph" if Path(path).exists() else "does not exist"
        message = f"--teleport seeds and --crawled-only need a survey, but {str(path)!r} {state}"
        raise UsageError(message, hint="name a survey, or omit them")
    else:
        graph = open_graph(output, path, chosen.threads)
    if out:
        check_names(graph, out)
    if chosen.trusted is not None:
        teleport = trusted_teleport(output, graph, chosen.trusted)
    problem = None
    start = None if chosen.warm_start is None else _start_scores(output, graph, chosen.warm_start)
    with output.progress() as progress, output.timed() as seconds:
        solver = SolverOptions(max_sweeps=chosen.max_sweeps, threads=chosen.threads, progress=progress)
        try:
            ranking = pagerank(
                graph,
                damping if chosen.damping is None else chosen.damping,
                chosen.tolerance,
                teleport,
                dangling=chosen.dangling,
                start=start,
                options=solver,
            )
        except NotConverged as error:
            ranking, problem = error.best, error
    return RankedGraph(path, graph, ranking, seconds[0], problem, coverage, notes)


def _start_scores(output: Output, graph: Graph, path: str) -> FloatArray:
    """Read the ranks to start from; warn if some are for other pages."""
    from surveyor.report.numbers import count, counted
    from surveyor.report.ranking import read_start

    start = read_start(graph, path)
    if start.known < max(start.ranks, graph.pages):
        output.warn(
            f"{count(start.known)} of {counted(start.ranks, 'rank')} in {path} are for pages of this graph; "
            f"{count(graph.pages - start.known)} of its {counted(graph.pages, 'page')} start with an equal share"
        )
    return start.scores


def print_top(output: Output, command_name: str, ranked: RankedGraph, top: int) -> None:
    """Print the best pages, and how certain their order is."""
    from surveyor.report.ranking import near_ties, order_line, page_table, top_pages

    pages = top_pages(ranked.graph, ranked.ranking, top)
    ties = near_ties(ranked.ranking, top)
    rows = {"near_ties": ties, "pages": [page.to_dict() for page in pages]}
    output.object(command_name, {**ranked.to_dict(), **rows})
    if pages or output.mode == "csv":
        output.table(page_table(pages))
        output.line()
    ranked.print_summary(output, f"{order_line(ties)}; score: 0-100, log scale, this graph only")


def write_report(output: Output, ranked: RankedGraph, path: str) -> None:
    """Write the HTML report with the command that reproduces it; without matplotlib, one without plots."""
    from surveyor.errors import InputError
    from surveyor.rank.explain import explain
    from surveyor.report import html_page
    from surveyor.report.ranking import RankingReport, ranking_html
    from surveyor.report.svg import can_plot

    if not ranked.graph.pages:
        raise InputError(f"{ranked.path} has no pages to report", hint="check the source that the graph was built from")
    plots = can_plot()
    if not plots:
        output.warn("the report has no plots: pip install 'surveyor[report]' adds them")
    explanation = explain(ranked.graph, ranked.ranking, int(ranked.ranking.top(1)[0]))
    again = shlex.join(options.command_line())
    report = RankingReport(ranked.path, ranked.graph, ranked.ranking, explanation, again, plots)
    html_page.write(ranking_html(report), path)
    output.info(f"report written to {path}")


@options.command("top", table=True)
@options.graph_argument
@options.top(20, "Pages to list.")
@options.flag("--blocked", "List the blocked pages of a survey instead, with the reasons.")
@options.flag("--javascript", "List the pages of a survey that need JavaScript instead.")
@options.flag("--orphans", "List fetched pages of sitemaps that no links from a seed lead to instead.")
@click.option(
    "--importance",
    metavar="METHOD",
    help="List the pages of a survey by estimated importance instead: opic, or adaptive:fixed and so on.",
)
@options.ranking
def list_top(
    output: Output,
    *,
    graph: str,
    top: int,
    blocked: bool,
    javascript: bool,
    orphans: bool,
    importance: str | None,
    **ranking_options: Any,
) -> int:
    """List the best pages of a survey, a graph folder or any file of links.

    The graph is ranked each time (100 million links take some seconds), so the list is never older than the graph.
    `surveyor rank --out` saves all ranks in a file.
    """
    if blocked:
        return list_blocked(output, graph, top)
    if javascript:
        return list_javascript(output, graph, top)
    if orphans:
        return list_orphans(output, graph, top)
    if importance is not None:
        return list_estimates(output, graph, top, importance)
    ranked = rank_graph(output, graph, RankingOptions(**ranking_options))
    print_top(output, "top", ranked, top)
    return ranked.exit_code


def list_blocked(output: Output, path: str, top: int) -> int:
    """Print blocked pages with the reasons, most importance first."""
    from surveyor.report.survey_tables import blocked_pages_table
    from surveyor.survey.survey import Survey

    with Survey(path) as survey:
        rows = survey.blocked_pages(top)
        output.object("top", {"survey": path, "blocked": rows, "reasons": survey.blocked()})
        _print_table(output, blocked_pages_table(rows), "No page is blocked.")
    return 0


def list_javascript(output: Output, path: str, top: int) -> int:
    """Print pages that are empty until a script has run, most importance first."""
    from surveyor.report.survey_tables import javascript_table
    from surveyor.survey.survey import Survey

    with Survey(path) as survey:
        rows = survey.javascript(top)
        output.object("top", {"survey": path, "javascript": rows, "share": survey.javascript_share})
        _print_table(output, javascript_table(rows), "No page needs JavaScript.")
    return 0


def list_orphans(output: Output, path: str, top: int) -> int:
    """Print fetched pages that were known in advance and that no links from a seed lead to."""
    from surveyor.report.survey_tables import orphans_table
    from surveyor.survey.survey import Survey

    with Survey(path) as survey:
        rows = survey.orphans()
        output.object("top", {"survey": path, "orphans": rows[:top], "listed": survey.listed})
        _print_table(output, orphans_table(rows[:top]), "No fetched page is an orphan.")
    return 0


def list_estimates(output: Output, path: str, top: int, method: str) -> int:
    """Print the pages of highest estimated importance, and the bound on the error of the estimate."""
    from surveyor.survey.survey import Survey

    with Survey(path) as survey:
        found = survey.importance(method)
        output.object("top", {"survey": path, "importance": found.summary(), "pages": found.top(top)})
        print_estimates(output, found, top)
    return 0


def print_estimates(output: Output, found: Importance, top: int) -> None:
    """Print the pages of highest estimated importance of an open survey, and the bound on the error."""
    from surveyor.report.numbers import counted, estimate_bound
    from surveyor.report.survey_tables import importance_table

    _print_table(output, importance_table(found.top(top)), "No page is known.")
    output.line()
    reads = f"{counted(found.total_fetches, 'fetch', 'fetches')} of {counted(int(found.pages.size), 'known page')}"
    output.line(f"importance by {found.method}, from {reads}; {estimate_bound(found.error, found.reason)}")


def _print_table(output: Output, table: Table, if_empty: str) -> None:
    from surveyor.report.survey_tables import of_one_site

    if table.records or output.mode == "csv":
        output.table(of_one_site(table) if sys.stdout.isatty() else table)
    else:
        output.line(if_empty)
