"""`surveyor top`: list the best pages, or pages that could not be fetched or need JavaScript."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options
from surveyor.cli.rank import RankingOptions, print_top, rank_graph

if TYPE_CHECKING:
    from surveyor.cli.output import Output
    from surveyor.report.tables import Table


@options.command("top", table=True)
@options.graph_argument
@options.top(20, "Pages to list.")
@click.option("--blocked", is_flag=True, help="List the blocked pages of a survey instead, with the reasons.")
@click.option("--javascript", is_flag=True, help="List the pages of a survey that need JavaScript instead.")
@options.ranking
def command(output: Output, *, graph: str, top: int, blocked: bool, javascript: bool, **ranking_options: Any) -> int:
    """List the best pages of a survey, a graph folder or any file of links.

    The graph is ranked each time (100 million links take some seconds), so the list is never older than the graph.
    `surveyor rank --out` saves all ranks in a file.
    """
    if blocked:
        return list_blocked(output, graph, top)
    if javascript:
        return list_javascript(output, graph, top)
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


def _print_table(output: Output, table: Table, if_empty: str) -> None:
    from surveyor.report.survey_tables import of_one_site

    if table.records or output.mode == "csv":
        output.table(of_one_site(table) if sys.stdout.isatty() else table)
    else:
        output.line(if_empty)
