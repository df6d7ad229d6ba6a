"""`surveyor simulate --shards`: what a crawl in several shards costs more than one in a single process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surveyor.errors import UsageError

if TYPE_CHECKING:
    from surveyor.cli.output import Output
    from surveyor.cli.simulate import SimulateOptions
    from surveyor.graph.csr import Graph
    from surveyor.simulation.shard_costs import ShardCosts
    from surveyor.stopping import Rule

NOT_REACHED = 3  # exit code


def counts_up_to(most: int) -> list[int]:
    """Return 1, 2, 4, … and a number.

    >>> counts_up_to(12)
    [1, 2, 4, 8, 12]
    """
    return sorted({most, *(1 << power for power in range(most.bit_length()))})


def simulate_shards(
    output: Output, path: str, graph: Graph, asked: SimulateOptions, rule: Rule, seeds: dict[int, float] | None
) -> int:
    """Run and print the comparison; return the exit code."""
    from surveyor.cli.simulate import write_json
    from surveyor.simulation.shard_costs import shard_costs

    if asked.report:
        raise UsageError("--report is not possible with --shards", hint="use --json or --out")
    counts = counts_up_to(asked.shards or 1)
    with output.progress() as progress:
        costs = shard_costs(
            graph, counts, rule, seeds=seeds, rng=asked.rng, options=asked.conditions, progress=progress
        )
    document = {"graph": {"path": path, "pages": costs.pages, "links": costs.links}, **costs.to_dict()}
    output.object("simulate", document)
    _show(output, costs)
    if asked.out:
        write_json(document, asked.out)
        output.info(f"result written to {asked.out}")
    return 0 if costs.reached else NOT_REACHED


def _show(output: Output, costs: ShardCosts) -> None:
    from surveyor.report.tables import Formats, table_of

    rows = [
        {
            "shards": run.shards,
            "fetches": run.fetches,
            "more": run.more,
            "rounds": run.rounds,
            "batches": run.batches / max(run.fetches, 1),
            "bytes": run.bytes / max(run.fetches, 1),
            "proxies": run.proxies / max(run.known, 1),
            "goal": "reached" if run.reached else "not reached",
        }
        for run in costs.runs
    ]
    output.line(f"fetches until the joint certified coverage was reached ({costs.until})")
    formats: Formats = {
        "shards": str,
        "fetches": "{:,}".format,
        "more": "{:+.1%}".format,
        "rounds": "{:,}".format,
        "batches": "{:.2f}".format,
        "bytes": "{:,.0f}".format,
        "proxies": "{:.2f}".format,
        "goal": str,
    }
    output.table(table_of(rows, formats))
    output.line()
    output.line("more: relative to the first row; batches and bytes: sent between shards per fetched page;")
    output.line("proxies: pages of other shards per known page; in a round, each shard fetches up to --batch pages.")
    output.line(f"{costs.pages:,} pages, {costs.links:,} links, {costs.seeds} seeds, rng {costs.rng}")
    for note in costs.notes:
        output.line(note)
