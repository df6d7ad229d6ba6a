"""`surveyor explain`: the links that the score of a page comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options
from surveyor.cli.options import RANKING, given_options
from surveyor.cli.rank import RankedGraph, RankingOptions, rank_graph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from surveyor.cli.output import Output
    from surveyor.survey.survey import Survey
    from surveyor.survey.url_status import UrlStatus


@options.command("explain", table=True)
@options.graph_argument
@click.argument("page", metavar="PAGE")
@options.top(10, "Links to list.")
@options.ranking
def command(output: Output, *, graph: str, page: str, top: int, **ranking_options: Any) -> int:
    """Show which links contribute to the score of PAGE, and the fraction that each contributes.

    PAGE is a name as printed by `surveyor top`, or '#3' (in quotes) for the page with id 3; in a graph without names 3
    is enough. The graph is ranked first. In a survey, PAGE may be any known URL, or only its path if one page has it;
    for a URL that was not fetched, the output gives the reason.

    Pages of one site that link to PAGE by the same footer or navigation are grouped as a template, and the graph is
    ranked again without those links to compute the position of PAGE without them.
    """
    from surveyor.cli.graph_source import is_survey
    from surveyor.survey.survey import Survey

    chosen = RankingOptions(**ranking_options)
    if not is_survey(graph):
        return _explain(output, None, graph, page, top, chosen)
    with Survey(graph) as survey:
        return _explain(output, survey, graph, page, top, chosen)


def _explain(
    output: Output, survey: Survey | None, path: str, page: str, top: int, ranking_options: RankingOptions
) -> int:
    """Print the status of a URL, if it belongs to a survey, and the explanation of its score."""
    from surveyor.cli.graph_source import ID, find, page_of

    status = None if survey is None or ID.fullmatch(page) else _print_status(output, survey, page)
    ranked = rank_graph(output, path, ranking_options, survey=survey)
    if status is None:
        _print_explanation(output, ranked, find(ranked.graph, page), top, survey)
    elif page_of(ranked.graph, status.url) is None:
        output.object("explain", {**ranked.to_dict(), "url_status": status.to_dict()})
        if status.target:
            target = ["surveyor", "explain", path, status.target, *given_options(RANKING)]
            output.next_steps({"the page it redirects to": target})
        return 0
    else:
        output.line()
        found = find(ranked.graph, status.url)
        _print_explanation(output, ranked, found, top, survey, {"url_status": status.to_dict()})
    output.line()
    ranked.print_summary(output)
    return ranked.exit_code


def _print_status(output: Output, survey: Survey, text: str) -> UrlStatus:
    """Print the status of a URL of a survey; raise UsageError for an unknown URL."""
    from surveyor.errors import UsageError
    from surveyor.report.survey_tables import url_status_lines

    status = survey.url_status(text)
    if status.kind == "unknown":
        outside = f", and it would be out of scope: {status.reason}" if status.reason else ""
        near = f"similar URLs: {', '.join(status.nearest)}" if status.nearest else "list pages with `surveyor top`"
        raise UsageError(f"{status.url} is unknown: no fetched page links to it{outside}", hint=near)
    if status.url != text:
        output.line(status.url)
    output.lines(url_status_lines(status))
    return status


def _print_explanation(
    output: Output,
    ranked: RankedGraph,
    page: int,
    top: int,
    survey: Survey | None,
    fields: Mapping[str, Any] | None = None,
) -> None:
    """Print where the score of a page comes from; `fields` are added to the JSON object."""
    from surveyor.rank.explain import explain
    from surveyor.report import explanation as report

    explanation = explain(ranked.graph, ranked.ranking, page, top=top, what_if=True)
    sources = [link.name for link in explanation.links]
    contexts = {} if survey is None else survey.link_contexts(explanation.name, sources)
    values = {"explanation": report.to_dict(ranked.ranking, explanation, contexts)}
    output.object("explain", {**ranked.to_dict(), **(fields or {}), **values})
    output.line(report.title_line(ranked.ranking, explanation))
    if path := report.path_line(ranked.ranking, explanation):
        output.line(path)
    output.line()
    output.table(report.rows_table(report.link_rows(explanation, contexts), "from links on"))
    if output.mode == "text":
        output.line()
        if explanation.without_templates is not None:
            output.line(report.without_line(explanation.without_templates, len(explanation.templates)))
            output.line()
        output.table(report.rows_table(report.origin_rows(explanation), "started with a jump to"))
