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
    from surveyor.survey.url_status import Fate


@options.command("explain", table=True)
@options.graph_argument
@click.argument("page", metavar="PAGE")
@options.count(10, "Links to name.")
@options.ranking
def command(output: Output, *, graph: str, page: str, count: int, **settings: Any) -> int:
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
        return tell(output, graph, page, count, None, settings)
    with Survey(graph) as survey:
        return tell(output, graph, page, count, survey, settings)


def tell(output: Output, path: str, page: str, number: int, survey: Survey | None, settings: dict[str, Any]) -> int:
    """Say what became of a page, if it is one of a survey, and where its score comes from."""
    from surveyor.cli.pages import ID, find, page_of
    from surveyor.cli.ranked import rank_graph

    fate = None if survey is None or ID.fullmatch(page) else fate_of(output, survey, page)
    ranked = rank_graph(output, path, survey=survey, **settings)
    if fate is not None and page_of(ranked.graph, fate.url) is None:
        output.object("explain", {**ranked.fields(), "fate": fate.to_dict()})
        if fate.target:
            output.next_steps(
                {"the page it stands for": ["surveyor", "explain", path, fate.target, *options_given(RANKING)]}
            )
        return 0
    if fate is not None:
        output.line()
        page = fate.url
    show(output, ranked, find(ranked.graph, page), number, {} if fate is None else {"fate": fate.to_dict()})
    output.line()
    ranked.say(output)
    return ranked.exit_code


def fate_of(output: Output, survey: Survey, text: str) -> Fate:
    """Say what became of a page of a survey; refuse one that nobody has heard of."""
    from surveyor.errors import UsageError
    from surveyor.report.fates import fate_lines

    fate = survey.fate(text)
    if fate.kind == "unknown":
        outside = f", and it would be out of scope: {fate.reason}" if fate.reason else ""
        near = f"near: {', '.join(fate.nearest)}" if fate.nearest else "see `surveyor top`"
        raise UsageError(f"{fate.url} is not known: no page that was read links to it{outside}", hint=near)
    if fate.url != text:
        output.line(fate.url)
    for line in fate_lines(fate):
        output.line(line)
    return fate


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
