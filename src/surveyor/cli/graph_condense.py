"""`surveyor graph condense`: pages become hosts or registrable domains."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from surveyor.cli import options

if TYPE_CHECKING:
    from surveyor.cli.output import Output
    from surveyor.graph.condense import Condensed
    from surveyor.graph.places import Level
    from surveyor.stopping import ProgressCallback
    from surveyor.web.suffixes import Suffixes


@options.command(
    "condense",
    epilog=options.examples(
        "surveyor graph condense pages.graph domains.graph",
        "surveyor graph condense docs.example.org.survey hosts.graph --to hosts",
    ),
)
@click.argument("source", type=click.Path(), metavar="GRAPH|SURVEY")
@click.argument("dest", type=click.Path(), metavar="DEST")
@click.option("--to", type=click.Choice(("domains", "hosts")), default="domains", show_default=True,
              help="What pages become.")  # fmt: skip
@click.option("--suffixes", type=click.Path(), metavar="FILE",
              help="Public Suffix List to use instead of the bundled one.")  # fmt: skip
@click.option("--private-suffixes", is_flag=True, help="Names below github.io and the like are domains too.")
@click.option("--nofollow", is_flag=True, help="Of a survey, count nofollow links too.")
@click.option("--memory", type=options.Amount(), default="1GB", show_default=True,
              help="Memory for links; the rest goes to disk.")  # fmt: skip
@click.option("--replace", is_flag=True, help="Replace DEST if it is a graph.")
def command(
    output: Output,
    *,
    source: str,
    dest: str,
    to: Level,
    suffixes: str | None,
    private_suffixes: bool,
    nofollow: bool,
    memory: int,
    replace: bool,
) -> None:
    """Write to the graph folder DEST which hosts or domains link to which.

    Pages need URLs or host names as names. x links to y if some page of x links to a page of y. Domains are registrable
    domains by the ICANN section of the Public Suffix List. Of a survey, links out of scope count, and a page that moved
    lies where its target lies.
    """
    from surveyor.cli.graph_build import clear_drafts
    from surveyor.cli.graph_source import is_survey
    from surveyor.errors import UsageError
    from surveyor.graph.folder import check_free
    from surveyor.web.suffixes import Suffixes

    survey = is_survey(source)
    if nofollow and not survey:
        raise UsageError(
            f"{source} is no survey, and a graph does not tell nofollow links", hint="leave --nofollow out"
        )
    if to == "hosts" and (suffixes or private_suffixes):
        raise UsageError(
            "hosts need no suffixes", hint="leave --suffixes and --private-suffixes out, or give --to domains"
        )
    check_free(Path(dest), replace=replace)
    clear_drafts(output, Path(dest))
    known = Suffixes(private=private_suffixes, file=suffixes) if to == "domains" else None
    with output.progress() as progress, output.timed() as seconds:
        if survey:
            made = _of_survey(source, dest, to, known, nofollow=nofollow, replace=replace, progress=progress)
        else:
            made = _of_graph(source, dest, to, known, memory=memory, replace=replace, progress=progress)
    _report(output, made, dest, seconds[0])


def _of_graph(
    source: str,
    dest: str,
    to: Level,
    suffixes: Suffixes | None,
    *,
    memory: int,
    replace: bool,
    progress: ProgressCallback,
) -> Condensed:
    from surveyor.cli.options import format_means
    from surveyor.errors import UsageError
    from surveyor.graph.condense import condense
    from surveyor.graph.formats import read_graph

    with format_means("`surveyor graph build --format`"):
        graph = read_graph(source, progress=progress)
    if graph.names is None:
        raise UsageError(
            f"{source} has no names, so the hosts of its pages are not known",
            hint="build it from links between URLs or host names",
        )
    return condense(graph, to, suffixes=suffixes, folder=dest, replace=replace, memory=memory, progress=progress)


def _of_survey(
    source: str,
    dest: str,
    to: Level,
    suffixes: Suffixes | None,
    *,
    nofollow: bool,
    replace: bool,
    progress: ProgressCallback,
) -> Condensed:
    from surveyor.survey.survey import Survey

    with Survey(source) as survey:
        made = survey.domain_graph(to, suffixes, nofollow=nofollow, progress=progress)
    made.graph.save(dest, replace=replace)
    return made


def _report(output: Output, made: Condensed, dest: str, seconds: float) -> None:
    from surveyor.report.graphs import condensed, condensed_with_care

    output.object("graph condense", {"graph": dest, "to": made.to, **made.to_dict(), "seconds": round(seconds, 3)})
    output.summary({"graph": dest, **condensed(made, seconds)})
    for line in condensed_with_care(made):
        output.warn(line)
    output.graph_notes(made.graph)
    output.next_steps({
        "reputation": ["surveyor", "domains", dest],
        "look at it": ["surveyor", "graph", "info", dest],
    })  # fmt: skip
