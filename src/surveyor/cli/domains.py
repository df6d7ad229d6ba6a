"""`surveyor domains`: score the domains of a graph, with confidence intervals, spam figures and page budgets."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from surveyor.cli import options
from surveyor.cli.options import current_command
from surveyor.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from surveyor.arrays import IntArray
    from surveyor.cli.output import Output
    from surveyor.crawler.budgets import Plan
    from surveyor.graph.condense import CondensedGraph
    from surveyor.graph.csr import Graph
    from surveyor.graph.names import Names
    from surveyor.rank.bad_domains import Labels
    from surveyor.rank.domains.scores import DomainTable
    from surveyor.report.domain_scores import DomainReport

SCORES = ("tse", "supp", "in", "win", "pagerank", "harmonic", "bv", "qvs")  # a test compares them with the library's
BUDGETS = ("star", "power:0.8", "flat:500")  # examples of --budget
WITH_DEPTH = ("tse", "supp", "bv")  # scores that count supporters of a level
CHECKED_NAMES = 100  # names that are checked for URLs


class Scores(click.ParamType[tuple[str, ...]]):
    """Names of scores separated by commas, or all."""

    name = "scores"
    values = (*SCORES, "all")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Parse names; a repeated name counts once."""
        if isinstance(value, tuple):
            return value
        names = [name.strip().lower() for name in str(value).split(",")]
        for name in names:
            if name not in self.values:
                self.fail(f"unknown score {name!r}; choose {', '.join(SCORES)} or all.", param, ctx)
        every = [name for name in SCORES if name != "supp"]  # which takes long
        return tuple(dict.fromkeys(one for name in names for one in (every if name == "all" else [name])))

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Return the names that complete the last one of the list."""
        before = incomplete[: incomplete.rfind(",") + 1]
        return options.matching([before + name for name in self.values], incomplete)


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `surveyor domains`."""

    score: tuple[str, ...]
    top: int
    error: float
    p: float | None
    depth: int
    trusted: str | None
    blacklist: tuple[str, ...]
    budget: str | None
    compare: tuple[str, str] | None
    condense: bool
    suffixes: str | None
    private_suffixes: bool
    memory: int | None
    out: str | None
    plot: str | None
    rng: int
    threads: int | None
    cluster: str | None

    def check(self) -> Plan | None:
        """Reject options that cannot work together, before any work is done; return the budget."""
        from surveyor.crawler import budgets
        from surveyor.rank.domains.tse import check_p, check_target
        from surveyor.report.column_files import check_file, check_place
        from surveyor.report.svg import check_plots

        if self.out:
            check_file(self.out)
        for path in filter(None, (self.out, self.plot)):
            check_place(path)
        if self.plot:
            if not self.blacklist:
                raise UsageError("--plot needs --blacklist, whose domains it draws", hint="add --blacklist FILE")
            check_plots()
        if self.compare and "tse" not in self.score:
            raise UsageError("--compare needs the sample of tse", hint="add tse to --score")
        if self.depth != 2 and (others := [name for name in self.score if name not in WITH_DEPTH]):
            raise UsageError(
                f"--supporter-depth must be 2 with --score {others[0]}, got {self.depth}",
                hint=f"with --supporter-depth, choose --score {', '.join(WITH_DEPTH)}",
            )
        if self.p is not None:
            check_p(self.p)
        check_target(self.top, self.error)
        plan = budgets.parse(self.budget) if self.budget else None
        if plan and plan.trusted and not self.trusted:
            raise UsageError(
                f"--budget {self.budget} gives pages to trusted domains, and --trusted is missing",
                hint="add --trusted FILE",
            )
        return plan

    def check_names(self, graph: Graph, path: str) -> None:
        """Reject options that need names if the graph has none, and domains to compare that it does not hold."""
        flags = {
            "--blacklist": self.blacklist,
            "--trusted": self.trusted,
            "--compare": self.compare,
            "--condense": self.condense,
        }
        used = [flag for flag, value in flags.items() if value]
        if graph.names is None and used:
            verb = "needs" if len(used) == 1 else "need"
            raise UsageError(
                f"{' and '.join(used)} {verb} names, and {path} has none", hint="build it from a file with names"
            )
        for name in self.compare or ():
            graph.page(name)


@options.command(
    "domains",
    table=True,
    epilog="\b\ntse       supporters, estimated from a sample of the domains\n"
    "supp      supporters, counted exactly, which takes long\n"
    "in        in-links\n"
    "win       in-links, each weighted by 1 / out-links of its source\n"
    "pagerank  PageRank\n"
    "harmonic  harmonic centrality, estimated by HyperBall\n"
    "bv        supporters, estimated by bit vectors\n"
    "qvs       paths of two links that end at the domain",
)
@options.graph_argument
@click.option(
    "--score",
    type=Scores(),
    default="tse",
    metavar="NAME",
    help=f"Score, listed below: {', '.join(SCORES)}, several separated by commas, or all (without supp).",
)
@click.option("--top", "-n", type=options.Whole(1), default=20, metavar="N", help="Domains to list.")
@click.option(
    "--error",
    type=options.Share(),
    default=0.01,
    metavar="E",
    help="Relative standard error of tse for the domain at rank --top, in (0, 1); determines the sample size.",
)
@click.option(
    "--p", type=options.Share(), metavar="P", help="Sampling probability of tse, in (0, 1].  [chosen for --error]"
)
@click.option(
    "--supporter-depth",
    "depth",
    type=options.Whole(1),
    default=2,
    metavar="D",
    help="Level of the supporters that tse, supp and bv count.",
)
@options.path("--trusted", "FILE", "Trusted domains: adds trust and spam mass.")
@options.path(
    "--blacklist", "FILE", "Bad domains: counts those at the top of each score. May be repeated.", multiple=True
)
@click.option(
    "--budget",
    type=options.Suggested(*BUDGETS),
    metavar="SPEC",
    help=f"Page budget of a domain by its rank: {', '.join(BUDGETS)}.",
)
@click.option("--compare", nargs=2, metavar="A B", help="Confidence that A has more supporters than B (tse).")
@options.flag("--condense", "Condense a graph of hosts to domains first; a graph of URLs always is.")
@options.path("--suffixes", "FILE", "Public Suffix List to use instead of the bundled one.")
@options.flag(
    "--private-suffixes", "Also use the private section, so that names under github.io etc. are separate domains."
)
@click.option(
    "--memory",
    type=options.Amount(),
    metavar="SIZE",
    help="Memory limit; a larger graph folder is read as a stream.  [most of the free memory]",
)
@options.out("FILE", "Write all domains: .csv, .csv.gz, .parquet, .npy.")
@options.path("--plot", "FILE", "Plot the number of bad domains up to each rank (SVG).")
@options.whole("--rng", 0, "N", "Random seed.", default=7)
@options.threads
@options.cluster
def command(output: Output, *, graph: str, **values: Any) -> int:
    """List the most reputable domains: by default, those with the most level-2 supporters.

    A level-2 supporter reaches a domain in two links, but not in one. Spammers can register any number of domains that
    link to theirs, but level-2 supporters require links from domains that have many in-links themselves. A graph of
    pages is condensed to domains first. A graph in pieces has the scores of the graph in one part, except bv.
    """
    from surveyor.cli.graph_source import check_cluster
    from surveyor.graph.pieces.folder import is_pieces
    from surveyor.report.domain_scores import write_domains

    chosen = Options(**values)
    plan, in_pieces = chosen.check(), is_pieces(graph)
    if not in_pieces:
        check_cluster(graph, chosen.cluster)
    bad = _read_lists(output, chosen.blacklist, hosts=False)
    trusted = _read_lists(output, [chosen.trusted] if chosen.trusted else [], hosts=True)
    with ExitStack() as stack:
        if in_pieces:
            from surveyor.cli import domain_pieces

            report = domain_pieces.score(output, graph, stack, chosen, plan, bad)
        else:
            source = _open_domains(output, graph, stack, chosen)
            chosen.check_names(source.graph, graph)
            report = _score(output, source, chosen, plan, bad=bad, trusted=trusted)
        _print_domains(output, graph, report, chosen)
        if chosen.out:
            write_domains(report, chosen.out)
            output.info(f"domains written to {chosen.out}")
        if chosen.plot:
            _write_plot(output, report, chosen.plot)
    steps = {} if plan else {"page budgets": current_command("--budget", "star")}
    if not chosen.out:
        steps["save all domains"] = current_command("--out", "domains.csv")
    output.next_steps(steps)
    return 0


@dataclass(frozen=True, slots=True)
class DomainSource:
    """A graph of domains, and its folder if it has one, which can be read as a stream."""

    graph: Graph
    folder: str | None = None


def _open_domains(output: Output, path: str, stack: ExitStack, chosen: Options) -> DomainSource:
    """Open a graph as one of domains: URLs, and hosts with --condense, are condensed to domains.

    Temporary folders are removed when the stack is closed.
    """
    from surveyor.cli.graph_source import is_survey
    from surveyor.web.suffixes import Suffixes

    suffixes = Suffixes(private=chosen.private_suffixes, file=chosen.suffixes)
    if is_survey(path):
        from surveyor.survey.survey import Survey

        survey = stack.enter_context(Survey(path))
        condensed = survey.domain_graph(suffixes=suffixes)
        _print_condensed(output, condensed)
        return DomainSource(condensed.graph)
    source = _open_source(output, path, stack, chosen.memory)
    if source.graph.names is not None and (chosen.condense or _has_urls(source.graph.names)):
        from surveyor.graph.condense import condense
        from surveyor.graph.csr import Graph

        folder = None if chosen.memory is None else _temporary_folder(stack) / "domains"
        memory: dict[str, Any] = {} if chosen.memory is None else {"folder": folder, "memory": chosen.memory // 2}
        graph = source.graph if source.folder is None else Graph.open(source.folder)  # verified: all of it is read
        with output.progress() as progress:
            condensed = condense(graph, suffixes=suffixes, progress=progress, **memory)
        _print_condensed(output, condensed)
        return DomainSource(condensed.graph, None if folder is None else str(folder))
    if chosen.suffixes is not None or chosen.private_suffixes:
        output.warn("the suffix list was not used: names are taken as domains; --condense condenses hosts")
    return source


def _open_source(output: Output, path: str, stack: ExitStack, memory: int | None) -> DomainSource:
    """Open a graph folder, or read a file of links: into a folder if memory is limited."""
    from surveyor.cli.graph_source import open_graph

    if (Path(path) / "graph.json").is_file():
        from surveyor.graph.csr import Graph

        return DomainSource(Graph.open(path), path)
    if memory is None:
        return DomainSource(open_graph(output, path))
    from surveyor.graph.formats import build_graph

    folder = _temporary_folder(stack) / "graph"
    with output.progress() as progress, options.input_format_hint("`surveyor graph build --input-format`"):
        graph = build_graph(path, folder, memory=memory // 2, progress=progress)
    output.graph_notes(graph)
    return DomainSource(graph, str(folder))


def _temporary_folder(stack: ExitStack) -> Path:
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="surveyor-")))


def _has_urls(names: Names) -> bool:
    """Return whether the names are URLs, by a sample of them."""
    return any("://" in names[node] for node in range(0, len(names), max(1, len(names) // CHECKED_NAMES)))


def _print_condensed(output: Output, condensed: CondensedGraph) -> None:
    from surveyor.report.graphs import condensed_warnings
    from surveyor.report.numbers import counted

    number = int(condensed.site_of.size)
    verb = "is" if number == 1 else "are"
    output.info(f"{counted(number, 'name')} {verb} on {counted(condensed.graph.pages, 'domain')}")
    output.warn(*condensed_warnings(condensed))


def _read_lists(output: Output, paths: Iterable[str], *, hosts: bool) -> list[Labels]:
    """Read lists of domains; warn about skipped entries. Unless `hosts`, hosts below a domain are skipped."""
    from surveyor.rank.bad_domains import read_labels
    from surveyor.report.numbers import counted

    lists = [read_labels(path, hosts=hosts) for path in paths]
    for labels in lists:
        if labels.subdomains:
            skipped = f"{counted(labels.subdomains, 'host')} below a domain in {labels.source} skipped"
            output.warn(f"{skipped}: an entry for a host does not describe its domain")
        if labels.invalid:
            output.warn(f"{counted(labels.invalid, 'name')} in {labels.source} skipped: not a domain")
    return lists


def _score(
    output: Output,
    source: DomainSource,
    chosen: Options,
    plan: Plan | None,
    *,
    bad: list[Labels],
    trusted: list[Labels],
) -> DomainReport:
    """Compute the scores and look up the lists; report mode, memory and time."""
    from surveyor.kernels.thread_pool import cores
    from surveyor.rank.domains.scores import DomainOptions, domains, format_bytes, free_memory, needed_memory
    from surveyor.report.domain_scores import DomainReport
    from surveyor.report.numbers import counted, duration

    names = [domain for labels in trusted for domain in labels.domains] if trusted else None
    limit = chosen.memory or free_memory()
    with output.progress() as progress, output.timed() as seconds:
        result = domains(
            source.folder or source.graph,
            chosen.score,
            top=chosen.top,
            error=chosen.error,
            trusted=names,
            rng=chosen.rng,
            options=DomainOptions(chosen.threads, chosen.memory, progress, p=chosen.p, depth=chosen.depth),
        )
    graph, threads = result.graph, chosen.threads or cores()
    if names and result.trust and (missing := len(names) - result.trust.trusted):
        verb = "is" if missing == 1 else "are"
        output.warn(f"{missing:,} of {counted(len(names), 'trusted domain')} {verb} not in the graph")
    needed = max(needed_memory(name, graph.pages, graph.links, threads) for name in result.scores)
    size = f"{counted(graph.pages, 'domain')}, {counted(graph.links, 'link')}"
    memory = f"{format_bytes(needed)} needed, {format_bytes(limit)} allowed"
    output.info(f"{size}; {result.mode} ({memory}), {duration(seconds[0])}")
    plan = plan and plan.for_graph(graph.pages)
    return DomainReport(result, plan, listed_ids(output, graph, bad), listed_ids(output, graph, trusted))


def listed_ids(output: Output, graph: Graph | DomainTable, lists: list[Labels]) -> IntArray | None:
    """Return the domains that are on one of the lists; warn of a list without any."""
    import numpy as np

    if not lists or graph.names is None:
        return None
    parts = []
    for labels in lists:
        listed = labels.in_graph(graph.names)
        if listed.warning:
            output.warn(f"{listed.warning}.")
        parts.append(listed.ids)
    return np.unique(np.concatenate(parts))


def _print_domains(output: Output, path: str, report: DomainReport, chosen: Options) -> None:
    """Print the list, its confidence, and the requested comparisons."""
    from surveyor.graph.csr import Graph
    from surveyor.rank.domains.tse import order_confidence
    from surveyor.report.domain_scores import side_by_side, spam_table, summary_lines

    scores, graph, compare = report.domains.scores, report.domains.graph, chosen.compare
    rows = report.domains.top(chosen.top)
    confidence = None
    if compare is not None and isinstance(graph, Graph):  # not of a graph in pieces
        confidence = order_confidence(graph, scores["tse"], *compare)
    if output.mode == "json":
        size = {"path": path, "domains": graph.pages, "links": graph.links}
        compared = {} if compare is None else {"compared": list(compare), "order_confidence": confidence}
        output.object("domains", {"graph": size, **report.to_dict(rows, chosen.top), **compared})
        return
    if len(scores) == 1 or output.mode == "csv":
        output.table(report.table(rows))
    else:
        for index, table in enumerate(side_by_side(report, chosen.top, output.width)):
            if index:
                output.line()
            output.table(table)
    if output.mode == "text":
        output.line()
        if report.spam:
            output.table(spam_table(report))
            output.line()
        lines = summary_lines(report, rows)
        if compare is not None and confidence is not None:
            lines.append(f"{compare[0]} has more supporters than {compare[1]}: confidence {100 * confidence:.1f} %")
        output.paragraphs(lines)


def _write_plot(output: Output, report: DomainReport, path: str) -> None:
    """Draw the bad domains up to each rank; warn if there are none."""
    from surveyor.report.domain_scores import spam_plot
    from surveyor.report.svg import write_svg

    rankings = [bad for bad in report.spam if bad.positions.size]
    if not rankings:
        output.warn(f"{path} was not written: no bad domain is ranked, so there is nothing to draw")
        return
    write_svg(spam_plot(rankings), path)
    output.info(f"plot written to {path}")
