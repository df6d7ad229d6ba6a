"""The cost of crawling in shards: pages fetched until a joint coverage is certified, for several numbers of shards.

Shards do not see the mass that is in flight, and fetch in parallel what one process would fetch in turn, so they need
more pages for the same coverage. The table shows how many, and how much they communicate.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from surveyor.crawler.shards.folder import check_count
from surveyor.errors import UsageError
from surveyor.graph.csr import Graph
from surveyor.simulation.scenario import Seeds, SimulationOptions, set_up
from surveyor.simulation.shards import ShardedSimulation, ShardOptions, split
from surveyor.stopping import ProgressCallback, Rule, coverage_goal, silent


@dataclass(frozen=True, slots=True)
class ShardCost:
    """What a crawl in some number of shards took."""

    shards: int
    reached: bool
    fetches: int
    more: float  # fetches, relative to the first number of shards
    rounds: int  # in each of which every shard fetches up to `batch` pages: a measure of time
    batches: int  # sent between shards, repeats included
    bytes: int  # of these
    known: int  # pages, over all shards
    proxies: int  # pages of other shards, over all shards
    at_least: float
    at_most: float
    seconds: float  # of this simulation


@dataclass(frozen=True, slots=True)
class ShardCosts:
    """The costs for several numbers of shards."""

    runs: tuple[ShardCost, ...]
    until: str
    pages: int
    links: int
    seeds: int
    rng: int
    notes: tuple[str, ...]

    @property
    def reached(self) -> bool:
        """Whether every crawl reached the goal."""
        return all(run.reached for run in self.runs)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "runs": [asdict(run) for run in self.runs], "notes": list(self.notes)}


def shard_costs(
    graph: Graph,
    shards: Sequence[int],
    until: Rule,
    *,
    seeds: Seeds | None = None,
    rng: int | None = None,
    options: SimulationOptions | None = None,
    progress: ProgressCallback = silent,
) -> ShardCosts:
    """Crawl a graph by RankMass in each of some numbers of shards until a certified coverage.

    Pages are divided by their registrable domains; without names, by blocks of 64 ids.
    """
    options = options or SimulationOptions()
    options.check()
    goal = coverage_goal(until)
    if goal is None:
        raise UsageError(f"until must be a certified coverage, got {until}", hint="for example --until coverage=0.9")
    if any(options.changes) or options.budget is not None:
        raise UsageError(
            "changes of the web and budgets are not possible with shards", hint="leave out these options, or --shards"
        )
    counts = [check_count(count) for count in shards]
    seed = int(np.random.SeedSequence().entropy) % 2**32 if rng is None else rng  # type: ignore[arg-type]
    scenario = set_up(graph, seeds, options, np.random.default_rng([seed, 0]))
    runs: list[ShardCost] = []
    for number, count in enumerate(counts):
        progress("crawling in shards", number, len(counts), "crawls")
        started = time.process_time()
        crawl = ShardedSimulation(
            graph,
            scenario.seeds,
            split(graph, count),
            outcomes=scenario.outcomes,
            options=ShardOptions(shards=count, batch=options.batch, damping=options.damping, weights=scenario.weights),
            rng=seed,
        )
        reached, now = crawl.run(goal), crawl.coverage()
        reports = [node.report() for node in crawl.nodes]
        first = runs[0].fetches if runs else crawl.fetched
        runs.append(
            ShardCost(
                shards=count,
                reached=reached,
                fetches=crawl.fetched,
                more=crawl.fetched / max(first, 1) - 1,
                rounds=crawl.round,
                batches=crawl.batches,
                bytes=crawl.bytes,
                known=sum(report.known for report in reports),
                proxies=sum(report.proxies for report in reports),
                at_least=now.at_least,
                at_most=now.at_most,
                seconds=time.process_time() - started,
            )
        )
    return ShardCosts(tuple(runs), str(until), graph.pages, graph.links, scenario.seeds.size, seed, scenario.notes)
