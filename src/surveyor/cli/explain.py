"""`surveyor explain`: where the score of a page comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options

if TYPE_CHECKING:
    from surveyor.cli.output import Output
    from surveyor.cli.ranked import Ranked


@options.command("explain", table=True)
@options.graph_argument
@click.argument("page", metavar="PAGE")
@options.count(10, "Links to name.")
@options.ranking
def command(output: Output, *, graph: str, page: str, count: int, **settings: Any) -> int:
    """Show which links gave PAGE of GRAPH its score, and how much each gave.

    PAGE is a name as `surveyor top` prints it, or '#3' (in quotes) for the page with id 3; in a graph without
    names 3 is enough. The graph is ranked first.
    """
    from surveyor.cli.pages import find
    from surveyor.cli.ranked import rank_graph

    ranked = rank_graph(output, graph, **settings)
    show(output, ranked, find(ranked.graph, page), count)
    output.line()
    ranked.say(output)
    return ranked.exit_code


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
