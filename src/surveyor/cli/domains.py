"""`surveyor domains`: which domains deserve trust, how sure that is, and how many pages each may take."""

from __future__ import annotations

import re
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options

if TYPE_CHECKING:
    from surveyor.arrays import IntArray
    from surveyor.cli.output import Output
    from surveyor.graph.csr import Graph
    from surveyor.rank.domains import Domains

SCORES = ("tse", "supp", "in", "win", "pagerank", "harmonic", "bv", "qvs")  # a test compares them with the library's
SURE = 0.95  # of an order that is called certain
PAIRS = 50  # neighbours in a list whose order is looked into


class Share(click.ParamType[float]):
    """A share such as 0.01 or 1%."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read a share."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"\s*([\d.]+(?:e-?\d+)?)\s*(%?)\s*", str(value).lower())
        try:
            assert match  # noqa: S101  # told below
            return float(match[1]) / (100 if match[2] else 1)
        except (AssertionError, ValueError):
            self.fail(f"{value!r} is not a share; write 0.01 or 1%.", param, ctx)


@options.command("domains", table=True)
@options.graph_argument
@click.option(
    "--score",
    default="tse",
    show_default=True,
    metavar="NAME",
    help=f"{', '.join(SCORES)}, several with commas, or all (without supp).",
)
@click.option("--top", type=options.Whole(1), default=20, show_default=True, metavar="R", help="Domains to list.")
@click.option(
    "--error",
    type=Share(),
    default=0.01,
    show_default=True,
    metavar="E",
    help="Relative error wanted at rank R; tse samples as many as it takes.",
)
@click.option("--p", type=Share(), metavar="P", help="Chance of a domain to be sampled by tse.  [by --error]")
@click.option(
    "--depth",
    type=options.Whole(1),
    default=2,
    show_default=True,
    metavar="D",
    help="Level of the supporters that tse, supp and bv count.",
)
@click.option("--trusted", type=click.Path(), metavar="FILE", help="Domains you trust: adds trust and spam mass.")
@click.option(
    "--blacklist",
    type=click.Path(),
    metavar="FILE",
    multiple=True,
    help="Bad domains; says how many each score lets in. May be repeated.",
)
@click.option("--budget", metavar="SPEC", help="Pages a domain may take by its rank: star, power:0.8, flat:500.")
@click.option("--compare", nargs=2, metavar="A B", help="How sure it is that A has more supporters than B (tse).")
@click.option("--condense", is_flag=True, help="Turn a graph of hosts into one of domains first, as is done for URLs.")
@click.option("--suffixes", type=click.Path(), metavar="FILE", help="A Public Suffix List of your own.")
@click.option("--private-suffixes", is_flag=True, help="Let blogs of one provider be domains of their own.")
@click.option(
    "--memory",
    type=options.Amount(),
    metavar="SIZE",
    help="Memory to use; a graph folder beyond it is read as a stream.  [most of what is free]",
)
@click.option(
    "--out", "--parquet", "out", type=click.Path(), metavar="FILE", help="Write all domains: .csv, .parquet, .npy."
)
@click.option("--plot", type=click.Path(), metavar="FILE", help="Draw how many bad domains each score lets in (SVG).")
@click.option("--rng", type=int, default=7, show_default=True, metavar="N", help="Seed of the sample.")
@options.threads
def command(output: Output, *, graph: str, top: int, out: str | None, plot: str | None, budget: str | None,
            blacklist: tuple[str, ...], compare: tuple[str, str] | None, **settings: Any) -> int:  # fmt: skip
    """List the domains of GRAPH that deserve trust: those with many level-2 supporters.

    A supporter of level 2 reaches a domain in two links and not in one. Anyone can register domains that link to his
    own; to have many supporters he needs links from domains that many link to. Pages are put together by domain first.
    """
    from surveyor import budgets
    from surveyor.report.reputations import Told, check_file, how, write_domains
    from surveyor.report.scores import check_place

    if out:
        check_file(out)
    for path in filter(None, (out, plot)):
        check_place(path)
    if plot and not blacklist:
        raise click.UsageError("--plot draws what a --blacklist says.", click.get_current_context())
    plan = budgets.parse(budget) if budget else None
    listed = _read_lists(blacklist)
    with ExitStack() as stack:
        source = _source(
            output, graph, stack, **{key: settings.pop(key) for key in CONDENSING}, memory=settings["memory"]
        )
        told = _scored(output, source, top=top, **settings)
        bad = _found(output, told, listed)
        rows = told.top(top)
        shown = Told(told, plan, bad)
        certain = _certain(told, rows)
        spam = _spam(told, bad)
        output.object("domains", {
            "graph": {"path": graph, "domains": told.graph.pages, "links": told.graph.links},
            "scores": {name: _method(score) for name, score in told.scores.items()}, "mode": told.mode,
            **({"budget": str(plan)} if plan else {}), **({"spam": spam} if spam else {}),
            **({"certain_neighbours": certain} if certain is not None else {}),
            **(_compared(told, compare) if compare else {}),
            "domains": shown.records(rows),
        })  # fmt: skip
        if len(told.scores) == 1 or output.mode == "csv":
            output.table(shown.table(rows))
        else:
            output.table(_side_by_side(told, bad, top))
        output.line()
        for score in told.scores.values():
            output.line(f"{score.kind}: {how(score, told.graph.pages)}")
        if certain is not None and rows[1:]:
            output.line(
                f"order: {certain} of {len(rows) - 1} neighbours in the list are in order with {SURE:.0%} or more"
            )
        if compare:
            chance = _compared(told, compare)["outranks"]
            output.line(f"{compare[0]} has more supporters than {compare[1]}: {chance:.1%} sure")
        _say_spam(output, spam)
        if plan:
            total = plan.total(told.graph.pages)
            output.line(f"budget {plan}: at most {total:,} pages in all {told.graph.pages:,} domains")
        if out:
            write_domains(shown, out)
            output.say(f"domains written to {out}")
        if plot and bad is not None:
            _draw(told, bad, plot)
            output.say(f"plot written to {plot}")
    output.next_steps(_next(graph, out, plan is not None))
    return 0


CONDENSING = ("condense", "suffixes", "private_suffixes")


def _source(
    output: Output, path: str, stack: ExitStack, *, condense: bool, suffixes: str | None, private_suffixes: bool,
    memory: int | None,
) -> Any:  # fmt: skip
    """Open what was named; pages, and hosts if told so, become domains."""
    from surveyor.cli.ranked import is_survey
    from surveyor.errors import UsageError
    from surveyor.suffixes import Suffixes

    known = Suffixes(private=private_suffixes, file=suffixes)
    if is_survey(path):
        from surveyor.crawling.survey import Survey

        survey = stack.enter_context(Survey(path))
        made = survey.domain_graph(suffixes=known)
        _say_condensed(output, made)
        return made.graph
    folder = (Path(path) / "graph.json").is_file()
    if folder or memory is not None:
        from surveyor.graph.formats import build_graph

        if folder:
            from surveyor.graph.csr import Graph

            graph = Graph.open(path, verify=False)
        else:
            import tempfile

            place = stack.enter_context(tempfile.TemporaryDirectory(prefix="surveyor-"))
            with output.progress() as progress, options.format_means("`surveyor graph build --format`"):
                graph = build_graph(path, Path(place) / "graph", memory=(memory or 0) // 2, progress=progress)
            path = str(Path(place) / "graph")
    else:
        from surveyor.cli.ranked import open_graph

        graph = open_graph(output, path)
    if graph.names is None:
        if condense:
            raise UsageError(f"{path} has no names to tell domains by", hint="build it from a file with names")
        return path if folder or memory is not None else graph
    if condense or _has_urls(graph):
        from surveyor.graph.condense import condense as condensed

        with output.progress() as progress:
            made = condensed(graph, suffixes=known, progress=progress)
        _say_condensed(output, made)
        return made.graph
    if suffixes or private_suffixes:
        output.warn("the suffixes were not needed: names are taken as domains; --condense puts hosts together")
    return path if folder or memory is not None else graph


def _has_urls(graph: Graph) -> bool:
    """Say whether the names are those of pages."""
    names = graph.names
    return names is not None and any("://" in names[node] for node in range(min(graph.pages, 100)))


def _say_condensed(output: Output, made: Any) -> None:
    from surveyor.report.numbers import counted

    output.say(f"{counted(made.of.size, 'page')} are on {counted(made.graph.pages, 'domain')}")
    if made.without_suffix:
        output.warn(
            f"{counted(made.without_suffix, 'host')} are under no known suffix, each taken as a domain of its own; "
            "--suffixes FILE brings a list of your own"
        )
    if made.without_host:
        output.warn(f"{counted(made.without_host, 'name')} are no URLs or hosts, and were left out")


def _scored(output: Output, source: Any, *, trusted: str | None, **settings: Any) -> Domains:
    """Work out the scores; say what was chosen and what it cost."""
    from surveyor.compare.labels import read_labels
    from surveyor.rank.domains import domains, free_memory, needed, size_in_words
    from surveyor.report.numbers import counted, duration

    vouched = None if trusted is None else list(read_labels(trusted).domains)
    with output.progress() as progress, output.timed() as seconds:
        told = domains(source, trusted=vouched, progress=progress, **settings)
    if told.trust and vouched and told.trust.known < len(vouched):
        output.warn(f"{len(vouched) - told.trust.known:,} of {len(vouched):,} trusted domains are not in the graph")
    need = max(needed(name, told.graph.pages, told.graph.links, settings["threads"] or 2) for name in told.scores)
    limit = settings["memory"] or free_memory()
    why = f"{size_in_words(need)} needed, {size_in_words(limit)} allowed"
    size = f"{counted(told.graph.pages, 'domain')}, {counted(told.graph.links, 'link')}"
    output.say(f"{size}; {told.mode} ({why}), {duration(seconds[0])}")
    return told


def _read_lists(paths: tuple[str, ...]) -> list[Any]:
    from surveyor.compare.labels import read_labels

    return [read_labels(path) for path in paths]


def _found(output: Output, told: Domains, listed: list[Any]) -> IntArray | None:
    """Return which domains are on a list of bad ones; warn of a list that names none of them."""
    import numpy as np

    from surveyor.errors import UsageError

    if not listed:
        return None
    if told.graph.names is None:
        raise UsageError("a blacklist goes by name, and this graph has none", hint="build the graph with names")
    parts = []
    for labels in listed:
        found = labels.among(told.graph.names)
        if found.warning:
            output.warn(f"{found.warning}.")
        parts.append(found.ids)
    return np.unique(np.concatenate(parts))


def _spam(told: Domains, bad: IntArray | None) -> dict[str, Any]:
    """Return where the bad domains stand in each score."""
    if bad is None or not bad.size:
        return {}
    return {found.name: found.to_dict() for found in _admitted(told, bad)}


def _admitted(told: Domains, bad: IntArray) -> list[Any]:
    from surveyor.compare.spam import admitted

    return [admitted(name, score.top(told.graph.pages), bad) for name, score in told.scores.items()]


def _say_spam(output: Output, spam: dict[str, Any]) -> None:
    from surveyor.report.numbers import count

    for name, found in spam.items():
        among = ", ".join(f"{count(bad)} in the first {count(int(at))}" for at, bad in found["among"].items())
        output.line(f"bad domains by {name}: first at {count(found['first'])}; {among}")


def _side_by_side(told: Domains, bad: IntArray | None, top: int) -> Any:
    import numpy as np

    from surveyor.compare.spam import top_lists
    from surveyor.report.spam_plots import top_table

    orders = {name: score.top(top) for name, score in told.scores.items()}
    rows = top_lists(orders, np.empty(0, np.int64) if bad is None else bad, top)
    return top_table(list(orders), rows, told.graph.name)


def _certain(told: Domains, rows: list[Any]) -> int | None:
    """Count the neighbours in a list whose order is as good as certain; None if there is no sample to tell by."""
    from surveyor.rank.sampled import outranks

    if told.main.kind != "tse" or told.mode == "streamed" or not 2 <= len(rows) <= PAIRS:
        return None
    return sum(outranks(told.graph, told.main, above.id, below.id) >= SURE for above, below in pairwise(rows))


def _compared(told: Domains, names: tuple[str, str]) -> dict[str, Any]:
    from surveyor.errors import UsageError
    from surveyor.rank.sampled import outranks

    if "tse" not in told.scores:
        raise UsageError("--compare needs the sample of tse", hint="add --score tse")
    return {"compared": list(names), "outranks": outranks(told.graph, told.scores["tse"], *names)}


def _method(score: Any) -> dict[str, Any]:
    """Return how a score came about, as JSON can say it."""
    plain = {key: value for key, value in score.method.items() if value != float("inf")}
    return {**plain, "confidence": score.certainty.confidence}


def _draw(told: Domains, bad: IntArray, path: str) -> None:
    from surveyor.graph.formats.streams import aside
    from surveyor.report.spam_plots import admitted_plot

    with aside(Path(path)) as draft:
        draft.write_text(admitted_plot(_admitted(told, bad)), "utf-8")


def _next(graph: str, out: str | None, budgeted: bool) -> dict[str, list[str]]:  # noqa: FBT001
    steps = {} if budgeted else {"pages for each": ["surveyor", "domains", graph, "--budget", "star"]}
    return steps if out else {**steps, "keep all of them": ["surveyor", "domains", graph, "--out", "domains.csv"]}
