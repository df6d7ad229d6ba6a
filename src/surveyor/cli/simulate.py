"""`surveyor simulate`: compare crawl strategies on a known graph, without a network."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, fields
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
    from surveyor.simulation.scenario import SimulationOptions

DEFAULT_STRATEGIES = "breadth,rankmass,windowed,opic"
NOT_REACHED = 3  # the exit code
SHARE = click.FloatRange(0, 1, max_open=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateOptions:
    """The options of the command, with the conditions of the simulated crawl."""

    strategies: str
    until: tuple[str, ...]
    seed: tuple[str, ...]
    seeds: str | None
    rng: int | None
    report: str | None
    out: str | None
    shards: int | None
    conditions: SimulationOptions

    @classmethod
    def of(cls, given: dict[str, Any]) -> SimulateOptions:
        """Group the parameters of the click command."""
        from surveyor.simulation.scenario import SimulationOptions

        shared = {field.name: given.pop(field.name) for field in fields(SimulationOptions) if field.name in given}
        compiled = False if given.pop("no_compile") else None
        return cls(**given, conditions=SimulationOptions(**shared, compiled=compiled))


crawl_options = options.stacked(
    click.option(
        "--strategies",
        default=DEFAULT_STRATEGIES,
        metavar="LIST",
        help=f"Strategies, separated by commas: {', '.join(options.STRATEGIES)}, or module:Class for your own.",
    ),
    click.option(
        "--until",
        type=options.Suggested("coverage=0.9", "coverage=0.9@95%", "pages=5000"),
        multiple=True,
        default=("coverage=0.9",),
        metavar="RULE",
        help="Stopping rule: coverage=0.9 (certified), coverage=0.9@95% (sampled at 95 % confidence), pages=5000. "
        "Repeat for more: the first one reached stops the crawl.",
    ),
    options.many(
        "--seed",
        "PAGE",
        "Page to start from, with its weight after it if that is not 1; repeat for more.  "
        "[the ten pages of highest PageRank]",
    ),
    options.path(
        "--seeds",
        "FILE",
        "Pages to start from: names, or ids as #3, one per line, with weights after them (0: known in advance).",
    ),
    click.option("--damping", type=float, default=0.85, metavar="D", help="Probability of following a link."),
    options.whole("--batch", 1, "N", "Pages requested at a time.", default=1),
    options.whole("--rng", 0, "N", "Random seed.  [drawn and printed]"),
)

web_options = options.stacked(
    click.option("--gone", type=SHARE, default=0.0, metavar="SHARE", help="Share of the pages that are gone."),
    click.option("--block", multiple=True, metavar="HOST-OR-PAGE", help="Host or page to block; repeat for more."),
    options.whole("--budget", 1, "N", "Maximum number of pages per host.  [no limit]"),
    click.option(
        "--change-rate",
        type=SHARE,
        default=0.0,
        metavar="SHARE",
        help="Share of the pages whose links change per epoch; an epoch is as many requests as there are pages.",
    ),
    click.option("--birth-rate", type=SHARE, default=0.0, metavar="SHARE", help="Share of pages added per epoch."),
    click.option("--death-rate", type=SHARE, default=0.0, metavar="SHARE", help="Share of pages removed per epoch."),
)


@options.command("simulate", table=True)
@options.graph_argument
@crawl_options
@web_options
@options.flag("--no-compile", "Use the Python loop of live crawls instead of the compiled loop.")
@options.whole("--shards", 1, "K", "Compare crawls in 1, 2, 4, … and K shards, instead of strategies.")
@options.path("--report", "FILE", "Write an HTML report with curves to FILE.")
@options.out("FILE", "Write the JSON result to FILE.")
def command(output: Output, *, graph: str, **given: Any) -> int:
    """Compare crawl strategies on a graph folder, any file of links or the graph of a survey.

    Each strategy crawls the graph from the same seeds, without knowledge of the rest. Since the whole graph is known,
    the guaranteed coverage is shown next to the true coverage and the best possible order. The exit code is 3 if a
    strategy did not reach the goal.
    """
    from surveyor.cli.graph_source import open_graph
    from surveyor.report.column_files import check_place
    from surveyor.simulation.simulate import simulate
    from surveyor.stopping import parse_rule

    asked = SimulateOptions.of(given)
    for path in filter(None, (asked.report, asked.out)):
        check_place(path)
    strategies, rule = chosen(asked.strategies), parse_rule(",".join(asked.until))
    opened = open_graph(output, graph)
    seeds = starts(output, opened, asked.seed, asked.seeds)
    if asked.shards is not None:
        from surveyor.cli.shard_costs import simulate_shards

        return simulate_shards(output, graph, opened, asked, rule, seeds)
    with output.progress() as progress:
        race = simulate(
            opened, strategies, rule, seeds=seeds, rng=asked.rng, options=asked.conditions, progress=progress
        )
    document = fields_of(graph, race)
    output.object("simulate", document)
    show(output, race)
    again = repeatable(click.get_current_context().obj or ("simulate", graph), race)
    if asked.out:
        write_json(document, asked.out)
        output.info(f"result written to {asked.out}")
    if asked.report:
        write_html(output, race, asked.report, title=graph, command=shlex.join(again))
    else:
        output.next_steps({"see the curves": [*again, "--report", "race.html"]})
    return 0 if race.reached else NOT_REACHED


def chosen(names: str) -> list[Strategy]:
    """Create the strategies of a list, without duplicates."""
    from surveyor.crawler.strategies import by_name, split_names
    from surveyor.errors import UsageError

    words = split_names(names)
    if not words:
        raise UsageError(
            f"--strategies must name a strategy, got {names!r}", hint=f"choose from {', '.join(options.STRATEGIES)}"
        )
    return [by_name(word) for word in words]


def starts(output: Output, graph: Graph, names: Sequence[str], path: str | None) -> dict[int, float] | None:
    """Return the pages to start from with their weights; None if none are named."""
    from surveyor.cli.graph_source import find, weighted_page, weighted_pages
    from surveyor.errors import UsageError

    pages = {} if path is None else weighted_pages(output, graph, path)
    for name in names:
        try:
            page, weight = weighted_page(graph, name)
        except ValueError as error:
            raise UsageError(f"--seed {name!r}: {error}", hint="for example --seed 'example.org/ 2.5'") from None
        pages[find(graph, name) if page is None else page] = weight
    return pages or None


def fields_of(path: str, race: Race) -> dict[str, Any]:
    """Return the JSON document of a race."""
    result = race.to_dict()
    return {"graph": {"path": path, "pages": result.pop("pages"), "links": result.pop("links")}, **result}


def show(output: Output, race: Race) -> None:
    """Print the tables, the comparison and the conditions; warn of goals not reached."""
    from surveyor.report import race as reports
    from surveyor.report.numbers import sampled_meaning
    from surveyor.report.race import comparison, facts, guaranteed_table, shortfalls, true_table

    output.line(f"fetches until this coverage was {reports.guarantee_word(race)}")
    output.table(guaranteed_table(race))
    if output.mode == "text":
        if race.confidence is not None:
            output.line()
            output.line(f"fetches until this coverage was {reports.sampled_word(race)}")
            output.table(reports.sampled_table(race))
        output.line()
        output.line("fetches until this true coverage was reached")
        output.table(true_table(race))
        if reports.repeats(race):
            output.line()
            output.line("L1 error of estimated importance (0 to 2)")
            output.table(reports.importance_table(race))
    output.line()
    output.line(comparison(race))
    output.line("Coverage is relative to the seeds, the damping and the links as fetched.")
    if race.confidence is not None:
        output.line(sampled_meaning(race.confidence).capitalize() + ".")
    output.line()
    output.facts(facts(race))
    output.warn(*shortfalls(race))
    if not race.reached:
        output.info("  hint: lower the goal with --until; the table shows what each strategy can guarantee")


def repeatable(words: Sequence[str], race: Race) -> list[str]:
    """Return the command that repeats the race, with its random seed."""
    given = any(word == "--rng" or word.startswith("--rng=") for word in words)
    return ["surveyor", *words, *([] if given else ["--rng", str(race.rng)])]


def write_json(fields: dict[str, Any], path: str) -> None:
    """Write the JSON document."""
    from surveyor.cli.output import SCHEMA

    document = {"schema": SCHEMA, "command": "simulate", **fields}
    Path(path).write_text(json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")


def write_html(output: Output, race: Race, path: str, *, title: str, command: str) -> None:
    """Write the HTML report; without matplotlib, it has no curves."""
    from surveyor.report.race import RaceReport, write_race_report
    from surveyor.report.svg import can_plot

    plots = can_plot()
    if not plots:
        output.warn("the report has no curves: pip install 'surveyor[report]' adds them")
    write_race_report(RaceReport(title, race, command, plots), path)
    output.info(f"report written to {path}")
