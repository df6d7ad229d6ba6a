"""`surveyor rank`: the pages of a graph in order of importance, with a proven error."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options
from surveyor.cli.suggested import RANKING, options_given, typed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from surveyor.cli.output import Output
    from surveyor.cli.ranked import Ranked


@options.command("rank", table=True)
@options.graph_argument
@options.ranking
@click.option("--top", type=options.Whole(0), default=10, show_default=True, metavar="N", help="Pages to print.")
@click.option("--out", type=click.Path(), metavar="FILE", help="Write all ranks: .csv, .parquet, .npy, .txt.gz.")
@click.option("--report", type=click.Path(), metavar="FILE", help="Write a report, one HTML file.")
@click.option("--warm-start", type=click.Path(), metavar="FILE", help="Start from ranks written by --out.")
def command(
    output: Output,
    *,
    graph: str,
    top: int,
    out: str | None,
    report: str | None,
    **settings: Any,
) -> int:
    """Rank the pages of GRAPH, a graph folder or any file of links.

    The error is proven: the printed scores differ from the exact ones by at most that much, summed over all
    pages. If it cannot be reached the best ranking is printed with its own error, and the exit code is 3.
    """
    from surveyor.cli.pages import word_for
    from surveyor.cli.ranked import rank_graph
    from surveyor.report.scores import check_place, check_suffix, write_scores

    if out:
        check_suffix(out)
    for path in filter(None, (out, report)):
        check_place(path)
    ranked = rank_graph(output, graph, out=out, **settings)
    show(output, "rank", ranked, top)
    if out:
        write_scores(ranked.graph, ranked.ranking, out)
        output.say(f"ranks written to {out}")
    if report:
        write_html(output, ranked, report, title=graph, again=click.get_current_context().obj or ())
    if top and ranked.graph.pages:
        first = word_for(ranked.graph, int(ranked.ranking.top(1)[0]))
        output.next_steps({
            "why is it first?": ["surveyor", "explain", graph, first, *options_given(RANKING)],
            **({} if out else {"keep all ranks": typed("--out", "ranks.csv")}),
        })  # fmt: skip
    return ranked.exit_code


def show(output: Output, name: str, ranked: Ranked, top: int) -> None:
    """Print the list and how sure it is."""
    from surveyor.report.pages import near_ties, order_in_words, page_table, top_pages

    pages = top_pages(ranked.graph, ranked.ranking, top)
    ties = near_ties(ranked.ranking, top)
    rows = {"near_ties": ties, "pages": [page.to_dict() for page in pages]}
    output.object(name, {**ranked.fields(), **rows})
    if pages or output.mode == "csv":
        output.table(page_table(pages))
        output.line()
    ranked.say(output, f"{order_in_words(ties)}; score: 0-100, log scale, this graph only")


def write_html(output: Output, ranked: Ranked, path: str, *, title: str, again: Sequence[str]) -> None:
    """Write the report, with the command that makes it again; without matplotlib, one without plots."""
    from importlib.util import find_spec

    from surveyor.errors import InputError
    from surveyor.report.html import Report, write_report

    if not ranked.graph.pages:
        raise InputError("a report needs pages, and the graph has none", hint="check what was built")
    plots = find_spec("matplotlib") is not None
    if not plots:
        output.warn("the report has no plots: pip install 'surveyor[report]' adds them")
    told = ranked.explain(int(ranked.ranking.top(1)[0]), 10)
    command = shlex.join(["surveyor", *again])
    write_report(Report(title, ranked.graph, ranked.ranking, told, command, plots), path)
    output.say(f"report written to {path}")
