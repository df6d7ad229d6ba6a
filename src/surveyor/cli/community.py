"""`surveyor community`: what the web around local pages makes of them, learnt from few pages."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options, settings
from surveyor.cli.suggestions import given_options
from surveyor.errors import UsageError

if TYPE_CHECKING:
    from surveyor.cli.communities import Wish
    from surveyor.cli.output import Output
    from surveyor.estimate.community.result import CommunityRank

#: Names of what there is to choose from, kept here so that help needs no import; a test compares them.
SELECTORS = ("complement", "flow", "cho", "outlinks", "random")
ESTIMATORS = ("auto", "crawled", "frontier")
MOVERS = 10  # pages outside that are listed
#: Settings of a crawl that hold where pages are fetched.
FETCHING = (
    "contact", "delay", "domain_delay", "max_delay", "max_wait", "avoid", "exclude", "backoff", "concurrency", "allow",
    "archive", "follow_nofollow", "timeout", "max_bytes", "budget", "budget_file", "proxy", "ca_file",
)  # fmt: skip


class Stable(click.ParamType[float]):
    """The stopping rule of a community estimate: stable=0.001."""

    name = "rule"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the L1 change of ranks below which three successive rounds end the estimate."""
        from surveyor.stopping import COMMUNITY, parse_limits

        if isinstance(value, float):
            return value
        try:
            return parse_limits(str(value), COMMUNITY)["stable"]
        except UsageError as error:
            self.fail(f"{error.problem}; {error.hint}", param, ctx)


@options.command(
    "community",
    table=True,
    epilog="\b\nsurveyor community web.graph --local host:www.example.org --truth\n"
    "surveyor community example.survey --local domain:example.org --extra 2n --contact me@example.org",
)
@options.graph_argument
@click.option(
    "--local",
    metavar="RULE",
    help="Local pages: host:HOST, domain:DOMAIN, prefix:URL, file:PATH, ids:0-1999, all.",
)
@click.option("--extra", metavar="N", help="Pages outside to ask for: 5000, or times the local ones: n, 0.5n.  [2n]")
@click.option("--select", type=click.Choice(SELECTORS), help="How to choose them.  [complement]")
@click.option("--rounds", type=options.Whole(1), metavar="N", help="In how many parts.  [of 4 % of the local pages]")
@click.option("--estimator", type=click.Choice(ESTIMATORS), default="auto", show_default=True,
              help="How to estimate from what was read.")  # fmt: skip
@click.option("--until", "still", type=Stable(), metavar="stable=X",
              help="End when three rounds in a row move ranks by less (L1).")  # fmt: skip
@click.option("--start", type=click.Choice(("all", "local")),
              help="Of a survey, begin with all pages read or with local ones.  [all; replayed, local]")  # fmt: skip
@click.option("--back-links", type=click.Path(), metavar="PLACE",
              help="Links into local pages known from elsewhere: a file of pairs, a graph or a survey.")  # fmt: skip
@click.option("--replay", is_flag=True, help="Of a survey, fetch nothing: read only what it holds.")
@click.option("--into", type=click.Path(), metavar="DIR", help="Folder for pages that are fetched.  [by the survey]")
@click.option("--truth", is_flag=True, help="Of a graph: rank all of it, too, and compare.")
@click.option("--top", type=options.Whole(1), default=20, show_default=True, metavar="N", help="Local pages to list.")
@click.option("--explain", metavar="PAGE", help="Show which pages outside move this local page.")
@click.option("--out", type=click.Path(), metavar="FILE", help="Write all local pages: .csv, .parquet, .npy.")
@click.option("--plot", type=click.Path(), metavar="FILE", help="Draw what changed, and how it settled (SVG).")
@click.option("--report", type=click.Path(), metavar="FILE", help="Write all of it as one HTML file.")
@click.option("--damping", type=float, metavar="D",
              help="Probability of following a link.  [0.85, or that of the survey]")  # fmt: skip
@click.option(
    "--rng", type=options.Whole(0), metavar="N", help="Seed of chance and ties.  [7; live, that of the survey]"
)
@settings.some_options(*FETCHING)
def command(output: Output, *, graph: str, explain: str | None, top: int, out: str | None, plot: str | None,
            report: str | None, **asked: Any) -> int:  # fmt: skip
    """Estimate how the whole web ranks the local pages of GRAPH, and not only they themselves.

    Pages outside are read that matter most to the ranks of the local ones, some at a time. A graph plays the web. Of
    a survey they are fetched, politely, into a survey of their own, and the same command goes on with it. No
    bound can be given for such an estimate; its spread over what was read stands beside it.
    """
    from surveyor.cli import communities
    from surveyor.cli.community_page import local_entry

    if explain is not None and output.mode == "csv":
        raise UsageError("--csv has no room for --explain: its table is the list", hint="use --json, or leave one out")
    wish = communities.Wish(**{name: asked.pop(name) for name in communities.ASKED}, explain=explain)
    communities.check(graph, wish, settings.given(asked), out=out, plot=plot, report=report)
    told = communities.estimated(output, graph, wish, settings.given(asked))
    if told.found is None:
        output.info(f"Stopped. {told.remark}.")
        output.next_steps({"go on": ["surveyor", *(click.get_current_context().obj or ())]})
        return told.code
    found = told.found
    entry = None if explain is None else local_entry(found.pages, found.name, found.names, explain)
    _show(output, graph, found, told.rule, top, entry)
    communities.keep(output, told, out=out, plot=plot, report=report)
    output.next_steps(_steps(graph, found, wish, told.place, out=out, report=report))
    return told.code


def _show(output: Output, graph: str, found: CommunityRank, rule: str, top: int, entry: int | None) -> None:
    """Print the list, the pages outside that matter, and how far to trust it."""
    from surveyor.report import communities as words
    from surveyor.report.survey_tables import of_one_site

    rows, movers = found.top(top), found.movers(count=MOVERS)
    if output.mode == "json":
        told = words.fields(found, top, movers)
        if entry is not None:
            told["explained"] = words.explained(found, entry, found.movers(int(found.pages[entry]), MOVERS))
        output.object("community", {"source": graph, "local": rule, **told})
        return
    if entry is not None:
        movers = found.movers(int(found.pages[entry]), MOVERS)
    output.table(of_one_site(words.local_table(rows), "name"))
    if output.mode == "csv":
        return
    output.line()
    for line in [] if entry is None else words.explained_lines(found, entry, movers):
        output.line(line)
    if movers:
        output.table(words.movers_table(found, movers, of_one=entry is not None))
    elif entry is None:
        output.line("no page outside that was read links to a local page")
    output.line()
    if found.truth is not None:
        output.table(words.truth_table(found))
        output.line()
    for line in [*words.lines(found, rule), *([words.movers_line(of_one=entry is not None)] if movers else [])]:
        for part in wrap(line, output.width, subsequent_indent="  ") if output.width else [line]:
            output.line(part)
    for note in found.notes:
        output.line(f"note: {note}")


def _steps(
    graph: str, found: CommunityRank, wish: Wish, place: str, *, out: str | None, report: str | None
) -> dict[str, list[str]]:
    """Suggest what to ask next."""
    words = ["surveyor", "community", graph, *wish.words(), *given_options(FETCHING)]
    steps = {}
    most = found.moves(1)[0]
    if wish.explain is None and most["name"].isprintable() and most["share"] != most["local_share"]:
        steps["why did it change?"] = [*words, "--explain", most["name"]]
    if not out:
        steps["keep all of them"] = [*words, "--out", "global.csv"]
    if not report:
        steps["see the curves"] = [*words, "--report", "community.html"]
    if place:
        steps["what was fetched"] = ["surveyor", place]
    return steps
