"""`surveyor top`: only the list."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options

if TYPE_CHECKING:
    from surveyor.cli.output import Output


@options.command("top", table=True)
@options.graph_argument
@options.top(20, "Pages to list.")
@click.option("--blocked", is_flag=True, help="Of a survey, list instead what could not be read, and why.")
@click.option("--javascript", is_flag=True, help="Of a survey, list instead the pages that need JavaScript.")
@options.ranking
def command(output: Output, *, graph: str, top: int, blocked: bool, javascript: bool, **settings: Any) -> int:
    """List the best pages of a survey, a graph folder or any file of links.

    The graph is ranked afresh each time (100 million links take some seconds), so the list is never older
    than the graph. `surveyor rank --out` keeps all ranks in a file.
    """
    if blocked:
        return show_blocked(output, graph, top)
    if javascript:
        return show_javascript(output, graph, top)
    from surveyor.cli.rank import show
    from surveyor.cli.ranked import rank_graph

    ranked = rank_graph(output, graph, **settings)
    show(output, "top", ranked, top)
    return ranked.exit_code


def show_blocked(output: Output, path: str, top: int) -> int:
    """Print pages that could not be read, most importance first."""
    from surveyor.report.survey_tables import blocked_pages_table, of_one_site
    from surveyor.survey.survey import Survey

    with Survey(path) as survey:
        rows = survey.blocked_pages(top)
        output.object("top", {"survey": path, "blocked": rows, "reasons": survey.blocked()})
        if rows or output.mode == "csv":
            table = blocked_pages_table(rows)
            output.table(of_one_site(table) if sys.stdout.isatty() else table)
        else:
            output.line("Nothing is blocked.")
    return 0


def show_javascript(output: Output, path: str, top: int) -> int:
    """Print pages that are empty until a script has run, most importance first."""
    from surveyor.report.survey_tables import javascript_table, of_one_site
    from surveyor.survey.survey import Survey

    with Survey(path) as survey:
        rows = survey.javascript(top)
        output.object("top", {"survey": path, "javascript": rows, "share": survey.javascript_share})
        if rows or output.mode == "csv":
            table = javascript_table(rows)
            output.table(of_one_site(table) if sys.stdout.isatty() else table)
        else:
            output.line("No page needs JavaScript.")
    return 0
