"""`surveyor explain`: where the score of a page comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options

if TYPE_CHECKING:
    from surveyor.cli.output import Output
    from surveyor.cli.ranked import Ranked
    from surveyor.graph.csr import Graph


@options.command("explain", table=True)
@options.graph_argument
@click.argument("page", metavar="PAGE")
@click.option(
    "--count",
    "-n",
    type=options.Whole(1),
    default=10,
    show_default=True,
    metavar="N",
    help="Links to name.",
)
@options.ranking
def command(output: Output, *, graph: str, page: str, count: int, **settings: Any) -> int:
    """Show which links gave PAGE of GRAPH its score, and how much each gave.

    PAGE is a name as `surveyor top` prints it, or an id. The graph is ranked first.
    """
    from surveyor.cli.ranked import rank_graph

    ranked = rank_graph(output, graph, **settings)
    show(output, ranked, find(ranked.graph, page), count)
    output.line()
    ranked.say(output)
    return ranked.exit_code


def find(graph: Graph, text: str) -> int:
    """Find a page, or say which one may be meant."""
    from surveyor.cli.ranked import page_of
    from surveyor.errors import UsageError

    page = page_of(graph, text)
    if page is not None:
        return page
    bare = text.removeprefix("http://").removeprefix("https://").rstrip("/")
    guesses = [start + bare + end for start in ("https://", "http://", "") for end in ("/", "")]
    near = [guess for guess in guesses if page_of(graph, guess) is not None]
    if near:
        raise UsageError(f"no page {text}", hint=f"did you mean {near[0]}?")
    ids = "" if graph.names is not None else f" (an id from 0 to {graph.pages - 1:,})"
    raise UsageError(f"no page {text}", hint=f"give a page as `surveyor top` prints it{ids}")


def show(output: Output, ranked: Ranked, page: int, number: int) -> None:
    """Print where the score of a page comes from."""
    from surveyor.report.explained import fields, link_rows, origin_rows, rows_table, title

    told = ranked.explain(page, number)
    output.object("explain", {**ranked.fields(), **fields(ranked.ranking, told)})
    output.line(title(ranked.ranking, told))
    output.line()
    output.table(rows_table(link_rows(told), "came over a link from"))
    if output.mode == "text":
        output.line()
        output.table(rows_table(origin_rows(told), "began with a jump to"))
