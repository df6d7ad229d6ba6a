"""`surveyor simulate`: crawling strategies race over a known graph, without a network."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from surveyor.cli.output import Output
    from surveyor.crawler.strategies.strategy import Strategy
    from surveyor.graph.csr import Graph
    from surveyor.simulation.race import Race

#: Names of the strategies, kept here so that help needs no import; a test compares them with the library.
NAMES = (
    "breadth", "rankmass", "windowed", "opic", "adaptive", "tracking", "cho", "outlinks", "random",
    "complement", "flow", "rounds",
)  # fmt: skip
STRATEGIES = "breadth,rankmass,windowed,opic"
NOT_REACHED = 3  # the exit code
SHARE = click.FloatRange(0, 1, max_open=True)

#: What to race and how; names from --damping on are those of `simulate`.
racing = options.stacked(
    click.option("--strategies", default=STRATEGIES, show_default=True, metavar="LIST",
                 help=f"Strategies to race, with commas between: {', '.join(NAMES)}, or module:Class for your own."),
    click.option("--until", multiple=True, default=("coverage=0.9",), show_default=True, metavar="RULE",
                 help="Stop then: coverage=0.9, pages=5000. Repeat: whichever comes first."),
    click.option("--seed", multiple=True, metavar="PAGE", help="Page to start from; repeat for more.  [the ten best]"),
    click.option("--seeds", type=click.Path(), metavar="FILE",
                 help="Pages to start from: names, or ids as #3, one a line."),
    click.option("--damping", type=float, default=0.85, show_default=True, metavar="D",
                 help="Probability of following a link."),
    click.option("--dead", type=SHARE, default=0.0, show_default=True, metavar="SHARE",
                 help="Share of the pages that are gone."),
    click.option("--blocked", multiple=True, metavar="HOST-OR-PAGE", help="What may not be read; repeat for more."),
    click.option("--budget", type=options.Whole(1), metavar="N", help="Pages that may be read of one host.  [all]"),
    click.option("--batch", type=options.Whole(1), default=1, show_default=True, metavar="N",
                 help="Pages fetched at a time."),
    click.option("--changes", type=SHARE, default=0.0, show_default=True, metavar="SHARE",
                 help="Share of the pages whose links change while as many are read."),
    click.option("--born", type=SHARE, default=0.0, show_default=True, metavar="SHARE",
                 help="Share of new pages in that time."),
    click.option("--died", type=SHARE, default=0.0, show_default=True, metavar="SHARE",
                 help="Share of the pages that go in that time."),
    click.option("--rng", type=options.Whole(0), metavar="N", help="Seed of all chance.  [drawn and printed]"),
)  # fmt: skip


@options.command("simulate", table=True)
@options.graph_argument
@racing
@click.option("--objects", is_flag=True, help="Run the loop of a real crawl instead of a compiled one.")
@click.option("--report", type=click.Path(), metavar="FILE", help="Write a report with curves, one HTML file.")
@click.option("--out", type=click.Path(), metavar="FILE", help="Write what --json prints to a file.")
def command(
    output: Output,
    *,
    graph: str,
    strategies: str,
    until: tuple[str, ...],
    seed: tuple[str, ...],
    seeds: str | None,
    objects: bool,
    report: str | None,
    out: str | None,
    changes: float,
    born: float,
    died: float,
    **settings: Any,
) -> int:
    """Race crawling strategies over GRAPH, a graph folder or any file of links.

    Each strategy crawls the graph from the same seeds as if it knew nothing of it. Since all of it is known, what
    a crawl could guarantee stands beside the truth, and beside the best order there is. The exit code is 3 if a
    strategy did not reach the goal.
    """
    from surveyor.cli.graph_source import open_graph
    from surveyor.report.column_files import check_place
    from surveyor.simulation.simulate import simulate
    from surveyor.stopping import parse_rule

    for path in filter(None, (report, out)):
        check_place(path)
    racers, rule = chosen(strategies), parse_rule(",".join(until))
    opened = open_graph(output, graph)
    start = starts(output, opened, seed, seeds)
    with output.progress() as progress:
        compiled = False if objects else None
        settings |= {"seeds": start, "compiled": compiled, "changes": (changes, born, died)}
        race = simulate(opened, racers, rule, progress=progress, **settings)
    fields = fields_of(graph, race)
    output.object("simulate", fields)
    show(output, race)
    again = repeatable(click.get_current_context().obj or ("simulate", graph), race)
    if out:
        write_json(fields, out)
        output.info(f"result written to {out}")
    if report:
        write_html(output, race, report, title=graph, command=shlex.join(again))
    else:
        output.next_steps({"see the curves": [*again, "--report", "race.html"]})
    return 0 if race.reached else NOT_REACHED


def chosen(names: str) -> list[Strategy]:
    """Make the strategies of a list, each once."""
    from surveyor.crawler.strategies import by_name
    from surveyor.errors import UsageError

    words = dict.fromkeys(word.strip() for word in names.split(",") if word.strip())
    if not words:
        raise UsageError("there is no strategy to race", hint=f"name some of {', '.join(NAMES)}")
    return [by_name(word) for word in words]


def starts(output: Output, graph: Graph, names: Sequence[str], path: str | None) -> list[int] | None:
    """Find the pages to start from; None if none were named."""
    from surveyor.cli.graph_source import find, trusted_teleport

    pages = [find(graph, name) for name in names]
    if path is not None:
        pages += trusted_teleport(output, graph, path).nonzero()[0].tolist()
    return sorted(set(pages)) or None


def fields_of(path: str, race: Race) -> dict[str, Any]:
    """Return what JSON says about a race."""
    told = race.to_dict()
    return {"graph": {"path": path, "pages": told.pop("pages"), "links": told.pop("links")}, **told}


def show(output: Output, race: Race) -> None:
    """Print the tables, how the strategies compare, and what was raced; warn of goals not reached."""
    from surveyor.report.race import comparison, facts, guaranteed_table, shortfalls, true_table

    output.line("reads until so much of all importance was guaranteed")
    output.table(guaranteed_table(race))
    if output.mode == "text":
        output.line()
        output.line("reads until so much was captured in truth")
        output.table(true_table(race))
    output.line()
    output.line(comparison(race))
    output.line("Shares are relative to the seeds, the damping and the links as fetched.")
    output.line()
    output.facts(facts(race))
    for line in shortfalls(race):
        output.warn(line)
    if not race.reached:
        output.info("  hint: ask for less with --until; the table states what each of them can guarantee")


def repeatable(words: Sequence[str], race: Race) -> list[str]:
    """Return the command that runs the same race again, whatever the seed it drew."""
    given = any(word == "--rng" or word.startswith("--rng=") for word in words)
    return ["surveyor", *words, *([] if given else ["--rng", str(race.rng)])]


def write_json(fields: dict[str, Any], path: str) -> None:
    """Write what --json prints."""
    from surveyor.cli.output import SCHEMA

    document = {"schema": SCHEMA, "command": "simulate", **fields}
    Path(path).write_text(json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")


def write_html(output: Output, race: Race, path: str, *, title: str, command: str) -> None:
    """Write the report; without matplotlib, one without curves."""
    from importlib.util import find_spec

    from surveyor.report.race_html import RaceReport, write_report

    plots = find_spec("matplotlib") is not None
    if not plots:
        output.warn("the report has no curves: pip install 'surveyor[report]' adds them")
    write_report(RaceReport(title, race, command, plots), path)
    output.info(f"report written to {path}")
