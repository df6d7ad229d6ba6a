"""Coverage of the 95 % confidence intervals of topic samples.

    python -m experiments.calibration [--quick] [--data FOLDER] [--runs 400] [--json]

On webs with known answers, each method samples a topic many times, as a user would: 8 walks from pages with many
in-links, until the sample reaches its goal (an effective sample size of 400 for all properties, and walks that agree),
for at most 16,384 rounds. Samples that do not reach the goal are counted and excluded, and so are cells in which most
samples do not. All in-links are known. The truth is that of the largest part of the topic that the method can explore,
and walks start there: intervals do not account for pages that no walk can reach.

Each cell is the coverage of one statistic. It is compared with the band that contains *all* cells with probability
99.9 % if the coverage is exactly 95 % (binomial, Bonferroni). Properties that all pages of a part have are skipped. The
output is Markdown, printed incrementally; with --json it is one object, and the tables go to stderr.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from itertools import chain
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from experiments.chosen_domains import say
from experiments.community_tables import table
from experiments.sampled_runs import OURS, WALKS
from experiments.topic_webs import QUICK, TopicWeb, real_topics, synthetic_topics
from surveyor.arrays import BoolArray, FloatArray
from surveyor.estimate.sampling.compiled_walks import CompiledWalks
from surveyor.estimate.sampling.estimates import Estimate, mean, share, topic_size
from surveyor.estimate.sampling.sample_goals import GoalCheck, SampleGoal, check_intervals
from surveyor.estimate.sampling.walk_methods import WalkPlan
from surveyor.estimate.sampling.walk_trace import WalkTrace
from surveyor.kernels.binomial import regularized_beta
from surveyor.kernels.thread_pool import cores

MAX_ROUNDS = 1 << 14
LEVEL, FAMILY_LEVEL = 0.95, 0.999
PAGES = 60_000  # of the synthetic web
BATCHES = 16  # of samples, distributed over processes
WEBS = (
    "synthetic: sites",
    "synthetic: pages",
    "polblogs: all",
    "polblogs: camps",
    "wikispeedia: People",
    "wikispeedia: Science",
)


@dataclass(frozen=True)
class Cell:
    """Interval coverage of one statistic."""

    web: str
    method: str
    statistic: str
    truth: float
    samples: int
    runs: int  # samples that reached their goal
    covered: int  # intervals that contain the truth
    above: int  # intervals above the truth
    margin: float  # median, relative to the truth
    ess: float  # median
    steps: float  # median

    def verdict(self, cells: int) -> str:
        """Return the position of the coverage relative to the band for so many cells, if most samples are done."""
        if 2 * self.runs < self.samples:
            return "not done"
        low, high = band(self.runs, cells)
        return "too narrow" if self.covered < low else "too wide" if self.covered > high else "inside"


@lru_cache
def band(runs: int, cells: int) -> tuple[int, int]:
    """Return the smallest and largest counts that contain all cells at the family level if the coverage is exact.

    >>> band(400, 1)
    (364, 393)
    """
    tail = (1 - FAMILY_LEVEL) / cells / 2
    counts = range(1, runs + 1)
    at_least = {count: regularized_beta(float(count), runs - count + 1.0, LEVEL) for count in counts}
    low = max(count for count in counts if 1 - at_least[count] <= tail)
    high = next((count for count in counts if at_least[count] <= tail), runs + 1) - 1
    return low, high


def properties(web: TopicWeb, seed: int = 3) -> dict[str, FloatArray]:
    """Return the shares of the web, a rare property that depends on the degree, and the log out-degree."""
    rng, degrees = np.random.default_rng(seed), np.diff(web.neighbours.starts)
    rank = np.argsort(np.argsort(degrees)) / degrees.size
    rare = rng.random(degrees.size) < 0.06 * rank
    return {
        **{name: flags.astype(np.float64) for name, flags in web.shares.items()},
        "rare": rare.astype(np.float64),
        "log out-degree": web.properties["log out-degree"],
    }


def start_walks(web: TopicWeb, method: str, seed: int, component: BoolArray) -> CompiledWalks:
    """Start walks in a component of the topic."""
    starts = web.starts(WALKS, np.random.default_rng(50_000 + seed), component)
    return CompiledWalks(web.neighbours, web.topic, starts, WalkPlan(method, rng=seed))


def run_to_goal(walks: CompiledWalks, watched: dict[str, FloatArray], goal: SampleGoal) -> WalkTrace | None:
    """Walk until the goal is reached; None if it is not within the maximum of rounds."""
    check, rounds = GoalCheck(goal), 0
    for more in check_intervals():
        walks.advance(more)
        rounds, trace = rounds + more, walks.trace()
        if check(trace, {name: values[trace.page] for name, values in watched.items()}):
            return trace
        if rounds >= MAX_ROUNDS:
            return None
    raise AssertionError  # pragma: no cover  # intervals never end


def _estimate(trace: WalkTrace, name: str, values: FloatArray) -> Estimate:
    return (mean if name == "log out-degree" else share)(trace, values[trace.page], level=LEVEL)


Estimates = list[dict[str, Estimate]]  # of each sample that reached its goal
Mapper = Callable[[Callable[[range], Estimates], Iterable[range]], Iterable[Estimates]]


def cells_of(web: TopicWeb, method: str, runs: int, goal: SampleGoal, mapper: Mapper = map) -> list[Cell]:
    """Take many samples and count; `mapper` runs batches of samples, such as a process pool."""
    component = web.component(method)
    watched = _watched(web, component)
    truth = {name: web.truth(values, component) for name, values in watched.items()}
    truth["size"] = float(component.sum())
    batches = (range(first, runs, BATCHES) for first in range(BATCHES))
    done = list(chain.from_iterable(mapper(partial(_estimate_batch, web, method, goal, component), batches)))
    return [
        _cell(Cell(web.name, method, name, value, runs, len(done), 0, 0, *[float("nan")] * 3), done)
        for name, value in truth.items()
    ]


def _estimate_batch(web: TopicWeb, method: str, goal: SampleGoal, component: BoolArray, seeds: range) -> Estimates:
    watched = _watched(web, component)
    traces = (run_to_goal(start_walks(web, method, seed, component), watched, goal) for seed in seeds)
    return [
        {**{name: _estimate(trace, name, values) for name, values in watched.items()}, "size": topic_size(trace)}
        for trace in traces
        if trace is not None
    ]


def _watched(web: TopicWeb, component: BoolArray) -> dict[str, FloatArray]:
    return {name: values for name, values in properties(web).items() if np.ptp(values[component]) > 0}


def _cell(empty: Cell, done: Estimates) -> Cell:
    """Fill in the counts and medians of a cell."""
    if not done:
        return empty
    truth, estimates = empty.truth, [by_name[empty.statistic] for by_name in done]
    return replace(
        empty,
        covered=sum(one.low <= truth <= one.high for one in estimates),
        above=sum(one.low > truth for one in estimates),
        margin=float(np.median([one.margin / abs(truth) for one in estimates])),
        ess=float(np.median([one.ess for one in estimates])),
        steps=float(np.median([one.steps for one in estimates])),
    )


def coverage_table(found: Sequence[Cell], cells: int, *, head: bool = True) -> str:
    """Return the coverage and verdict of each cell; without a head it continues the table before."""
    rows = [
        [
            cell.web,
            cell.method,
            cell.statistic,
            f"{cell.truth:.4g}",
            f"{cell.runs / cell.samples:.0%}",
            _share(cell.covered, cell.runs),
            _share(cell.above, cell.runs),
            _share(cell.runs - cell.covered - cell.above, cell.runs),
            cell.verdict(cells),
            *([f"{cell.margin:.1%}", f"{cell.ess:,.0f}", f"{cell.steps:,.0f}"] if cell.runs else "---"),
        ]
        for cell in found
    ]
    counts = ["done", "coverage", "too high", "too low", "verdict", "±", "ESS", "steps"]
    text = table(["topic", "method", "of", "truth", *counts], rows, 3)
    return text if head else text.split("\n", 2)[2]


def _share(count: int, total: int) -> str:
    return f"{count / total:.1%}" if total else "-"


def summary(cells: Sequence[Cell]) -> str:
    """Summarise all cells in a sentence."""
    verdicts = [cell.verdict(len(cells)) for cell in cells]
    judged = [cell for cell, word in zip(cells, verdicts, strict=True) if word != "not done"]
    if not judged:
        return "No sample reached its goal."
    most = max(cell.runs for cell in judged)
    low, high = band(most, len(cells))
    overall = sum(cell.covered for cell in judged) / sum(cell.runs for cell in judged)
    return (
        f"{verdicts.count('inside')} of {len(judged)} evaluated cells are in the band ({most} samples:"
        f" {low / most:.1%} to {high / most:.1%}); {verdicts.count('too narrow')} below,"
        f" {verdicts.count('too wide')} above; overall coverage {overall:.1%}."
        f" In {verdicts.count('not done')} cells most samples did not reach the goal."
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the coverage of all cells."""
    options = _options(arguments)
    out, runs = sys.stderr if options.json else sys.stdout, options.runs or (60 if options.quick else 400)
    methods = OURS[:2] if options.quick else OURS
    webs = list(_webs(options))
    count, goal = len(methods) * sum(len(properties(web)) + 1 for web in webs), SampleGoal.parse(options.until)
    print(f"# Coverage of 95 % intervals of {runs} samples, until {goal}\n", file=out)
    cells: list[Cell] = []
    # Processes, because many small estimates hold the GIL; spawned, because forks would copy threads.
    with ProcessPoolExecutor(cores(), mp_context=get_context("spawn")) as pool:
        for web in webs:
            for method in methods:
                started = time.monotonic()
                found = cells_of(web, method, runs, goal, pool.map)
                print(coverage_table(found, count, head=not cells), end="", file=out, flush=True)
                cells += found
                say(f"{web.name}, {method}: {runs} runs in {time.monotonic() - started:.1f} s")
    print(f"\n{summary(cells)}", file=out)
    if options.json:
        results = [{**asdict(cell), "verdict": cell.verdict(len(cells))} for cell in cells]
        print(json.dumps({"schema": 1, "until": str(goal), "cells": results}, indent=1))


def _webs(options: argparse.Namespace) -> Iterator[TopicWeb]:
    yield from (web for web in synthetic_topics(QUICK // 3 if options.quick else PAGES) if web.name in WEBS)
    if options.data is None:
        say("no --data folder of real graphs: only the synthetic web is used")
    else:
        yield from (web for web in real_topics(options.data, quick=True) if web.name in WEBS)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small web, two methods and 60 runs")
    parser.add_argument("--data", type=Path, help="folder of real graphs")
    parser.add_argument("--runs", type=int, help="samples per topic and method  [400]")
    parser.add_argument("--until", default="ess=400", help="goal of a sample  [ess=400]")
    parser.add_argument("--json", action="store_true", help="write one JSON object to stdout, tables to stderr")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
