"""`surveyor domains`: which domains deserve trust, how sure that is, and how many pages each may take."""

from __future__ import annotations

from contextlib import ExitStack
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options
from surveyor.cli.suggested import typed

if TYPE_CHECKING:
    from surveyor.cli.output import Output
    from surveyor.crawler.budgets import Plan
    from surveyor.report.reputations import Told

SCORES = ("tse", "supp", "in", "win", "pagerank", "harmonic", "bv", "qvs")  # a test compares them with the library's
SUPPORTERS = ("tse", "supp", "bv")  # that have a level


class Scores(click.ParamType[tuple[str, ...]]):
    """Names of scores with commas between them, or all."""

    name = "scores"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Read names; one that is named twice counts once."""
        if isinstance(value, tuple):
            return value
        asked = [name.strip().lower() for name in str(value).split(",")]
        for name in asked:
            if name not in (*SCORES, "all"):
                self.fail(f"there is no score {name!r}; choose {', '.join(SCORES)} or all.", param, ctx)
        usual = [name for name in SCORES if name != "supp"]  # which takes long
        return tuple(dict.fromkeys(one for name in asked for one in (usual if name == "all" else [name])))


@options.command("domains", table=True)
@options.graph_argument
@click.option(
    "--score",
    type=Scores(),
    default="tse",
    show_default=True,
    metavar="NAME",
    help=f"{', '.join(SCORES)}, several with commas, or all (without supp).",
)
@click.option("--top", type=options.Whole(1), default=20, show_default=True, metavar="R", help="Domains to list.")
@click.option(
    "--error",
    type=options.Share(),
    default=0.01,
    show_default=True,
    metavar="E",
    help="Relative error wanted at rank R; tse samples as many as it takes.",
)
@click.option("--p", type=options.Share(), metavar="P", help="Chance of a domain to be sampled by tse.  [by --error]")
@click.option(
    "--depth",
    type=options.Whole(1),
    default=2,
    show_default=True,
    metavar="D",
    help="Level of the supporters that tse, supp and bv count.",
)
@click.option("--trusted", type=click.Path(), metavar="FILE", help="Domains you trust: adds trust and spam mass.")
@click.option(
    "--blacklist",
    type=click.Path(),
    metavar="FILE",
    multiple=True,
    help="Bad domains; says how many each score lets in. May be repeated.",
)
@click.option("--budget", metavar="SPEC", help="Pages a domain may take by its rank: star, power:0.8, flat:500.")
@click.option("--compare", nargs=2, metavar="A B", help="How sure it is that A has more supporters than B (tse).")
@click.option("--condense", is_flag=True, help="Turn a graph of hosts into one of domains first, as is done for URLs.")
@click.option("--suffixes", type=click.Path(), metavar="FILE", help="A Public Suffix List of your own.")
@click.option("--private-suffixes", is_flag=True, help="Let blogs of one provider be domains of their own.")
@click.option(
    "--memory",
    type=options.Amount(),
    metavar="SIZE",
    help="Memory to use; a graph folder beyond it is read as a stream.  [most of what is free]",
)
@click.option(
    "--out", "--parquet", "out", type=click.Path(), metavar="FILE", help="Write all domains: .csv, .parquet, .npy."
)
@click.option("--plot", type=click.Path(), metavar="FILE", help="Draw how many bad domains each score lets in (SVG).")
@click.option("--rng", type=options.Whole(0), default=7, show_default=True, metavar="N", help="Seed of the sample.")
@options.threads
def command(output: Output, *, graph: str, top: int, out: str | None, plot: str | None, budget: str | None,
            blacklist: tuple[str, ...], trusted: str | None, compare: tuple[str, str] | None, condense: bool,
            suffixes: str | None, private_suffixes: bool, **settings: Any) -> int:  # fmt: skip
    """List the domains of GRAPH that deserve trust: those with many level-2 supporters.

    A supporter of level 2 reaches a domain in two links and not in one. Anyone can register domains that link to his
    own; to have many supporters he needs links from domains that many link to. Pages are put together by domain first.
    """
    from surveyor.cli import reputations
    from surveyor.report.reputation_files import write_domains
    from surveyor.web.suffixes import Suffixes

    plan = _check(out=out, plot=plot, budget=budget, blacklist=blacklist, trusted=trusted, compare=compare, top=top,
                  **settings)  # fmt: skip
    listed = reputations.read(output, blacklist, hosts=False)
    vouched = reputations.read(output, [trusted] if trusted else [], hosts=True)
    known = Suffixes(private=private_suffixes, file=suffixes)
    own = suffixes is not None or private_suffixes
    with ExitStack() as stack:
        source = reputations.opened(
            output, graph, stack, known, memory=settings["memory"], condense=condense, own_list=own
        )
        asked = [word for word, given in (("--blacklist", blacklist), ("--trusted", trusted), ("--compare", compare),
                                          ("--condense", condense)) if given]  # fmt: skip
        reputations.check_names(source, graph, asked, compare or ())
        told = reputations.scored(output, source.place, vouched, plan, listed, top=top, **settings)
        _show(output, graph, told, top, compare)
        if out:
            write_domains(told, out)
            output.say(f"domains written to {out}")
        if plot:
            reputations.draw(output, told, plot)
    steps = {} if plan else {"pages for each": typed("--budget", "star")}
    more = {} if out else {"keep all of them": typed("--out", "domains.csv")}
    output.next_steps({**steps, **more})
    return 0


def _check(*, out: str | None, plot: str | None, budget: str | None, blacklist: tuple[str, ...], trusted: str | None,
           compare: tuple[str, str] | None, score: tuple[str, ...], depth: int, top: int, error: float,
           p: float | None, **_: Any) -> Plan | None:  # fmt: skip
    """Refuse what cannot work, before any of it is done; return the budget."""
    from surveyor.crawler import budgets
    from surveyor.errors import UsageError
    from surveyor.rank.domains.tse import check_p, check_wanted
    from surveyor.report.column_files import check_file
    from surveyor.report.scores import check_place
    from surveyor.report.svg import check_plots

    if out:
        check_file(out)
    for path in filter(None, (out, plot)):
        check_place(path)
    if plot:
        if not blacklist:
            raise UsageError("--plot draws what a blacklist says", hint="add --blacklist FILE")
        check_plots()
    if compare and "tse" not in score:
        raise UsageError("--compare needs the sample of tse", hint="add tse to --score")
    if depth != 2 and (others := [name for name in score if name not in SUPPORTERS]):
        raise UsageError(f"{others[0]} has no level {depth}", hint="with --depth, choose --score tse, supp or bv")
    if p is not None:
        check_p(p)
    check_wanted(top, error)
    plan = budgets.parse(budget) if budget else None
    if plan and plan.trusted and not trusted:
        raise UsageError(
            f"the budget {budget} has pages for trusted domains, and none are named", hint="add --trusted FILE"
        )
    return plan


def _show(output: Output, graph: str, told: Told, top: int, compare: tuple[str, str] | None) -> None:
    """Print the list, how sure it is, and what else was asked for."""
    from surveyor.rank.domains.tse import outranks
    from surveyor.report.reputations import lines, side_by_side, spam_table

    rows = told.domains.top(top)
    sure = None if compare is None else outranks(told.domains.graph, told.domains.scores["tse"], *compare)
    if output.mode == "json":
        graph_told = {"path": graph, "domains": told.domains.graph.pages, "links": told.domains.graph.links}
        compared = {} if compare is None else {"compared": list(compare), "outranks": sure}
        output.object("domains", {"graph": graph_told, **told.to_dict(rows, top), **compared})
        return
    if len(told.domains.scores) == 1 or output.mode == "csv":
        output.table(told.table(rows))
    else:
        for place, table in enumerate(side_by_side(told, top, output.width)):
            if place:
                output.line()
            output.table(table)
    if output.mode == "text":
        output.line()
        if told.admitted:
            output.table(spam_table(told))
            output.line()
        ahead = [] if compare is None else [f"{compare[0]} has more supporters than {compare[1]}: {sure:.1%} sure"]
        for line in [*lines(told, rows), *ahead]:
            for part in wrap(line, output.width, subsequent_indent="  ") if output.width else [line]:
                output.line(part)
