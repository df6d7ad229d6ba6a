"""`surveyor explain`: where the score of a page comes from."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options
from surveyor.cli.suggested import RANKING, options_given

if TYPE_CHECKING:
    from collections.abc import Mapping

    from surveyor.cli.output import Output
    from surveyor.cli.ranked import Ranked
    from surveyor.survey.survey import Survey
    from surveyor.survey.url_status import UrlStatus


@options.command("explain", table=True)
@options.graph_argument
@click.argument("page", metavar="PAGE")
@options.top(10, "Links to name.")
@options.ranking
def command(output: Output, *, graph: str, page: str, top: int, **settings: Any) -> int:
    """Show which links gave PAGE of GRAPH its score, and how much each gave.

    PAGE is a name as `surveyor top` prints it, or '#3' (in quotes) for the page with id 3; in a graph without
    names 3 is enough. The graph is ranked first. Of a survey, every URL can be asked for, by its path alone if only
    one page has it: if it was not read, the answer says why.

    Pages of one site that link to PAGE by the same footer or navigation are counted together, and the graph is ranked
    again without those links, to say where PAGE would be then.
    """
    from surveyor.cli.ranked import is_survey
    from surveyor.survey.survey import Survey

    if not is_survey(graph):
        return tell(output, graph, page, top, None, settings)
    with Survey(graph) as survey:
        return tell(output, graph, page, top, survey, settings)


def tell(output: Output, path: str, page: str, number: int, survey: Survey | None, settings: dict[str, Any]) -> int:
    """Print the status of a page, if it belongs to a survey, and the links that its score comes from."""
    from surveyor.cli.pages import ID, find, page_of
    from surveyor.cli.ranked import rank_graph

    status = None if survey is None or ID.fullmatch(page) else status_of(output, survey, page)
    ranked = rank_graph(output, path, survey=survey, **settings)
    if status is not None and page_of(ranked.graph, status.url) is None:
        output.object("explain", {**ranked.fields(), "url_status": status.to_dict()})
        if status.target:
            output.next_steps(
                {"the page it redirects to": ["surveyor", "explain", path, status.target, *options_given(RANKING)]}
            )
        return 0
    if status is not None:
        output.line()
        page = status.url
    show(output, ranked, find(ranked.graph, page), number, {} if status is None else {"url_status": status.to_dict()})
    output.line()
    ranked.say(output)
    return ranked.exit_code


def status_of(output: Output, survey: Survey, text: str) -> UrlStatus:
    """Print the status of a page of a survey; raise UsageError for an unknown URL."""
    from surveyor.errors import UsageError
    from surveyor.report.survey_tables import url_status_lines

    status = survey.url_status(text)
    if status.kind == "unknown":
        outside = f", and it would be out of scope: {status.reason}" if status.reason else ""
        near = f"similar URLs: {', '.join(status.nearest)}" if status.nearest else "list pages with `surveyor top`"
        raise UsageError(f"{status.url} is unknown: no fetched page links to it{outside}", hint=near)
    if status.url != text:
        output.line(status.url)
    for line in url_status_lines(status):
        output.line(line)
    return status


def show(
    output: Output, ranked: Ranked, page: int, number: int, more: Mapping[str, Any] = MappingProxyType({})
) -> None:
    """Print where the score of a page comes from."""
    from surveyor.report.explained import fields, link_rows, origin_rows, path_line, rows_table, title, without_line

    told = ranked.explain(page, number, what_if=True)
    output.object("explain", {**ranked.fields(), **more, **fields(ranked.ranking, told)})
    output.line(title(ranked.ranking, told))
    if path := path_line(ranked.ranking, told):
        output.line(path)
    output.line()
    output.table(rows_table(link_rows(told), "came over a link from"))
    if output.mode == "text":
        output.line()
        if told.without is not None:
            output.line(without_line(told.without, len(told.templates)))
            output.line()
        output.table(rows_table(origin_rows(told), "began with a jump to"))
