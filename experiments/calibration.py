"""How often intervals from samples of a topic hold the truth, beside how often they say they do.

    python -m experiments.calibration [--quick] [--data FOLDER] [--runs 400] [--json]

On webs of which all is known, each method samples a topic many times, as a user would: 8 walks from pages that are
often linked to, until samples call themselves done (an effective sample size of 400 of all that is asked, and walks
that agree), but for no more than 16,384 rounds. Samples that are not done by then are counted and not judged, nor cells
of which most are. Neighbours are known completely. The truth is that of the largest part of the topic that the method
can get around in, and walks begin there: no interval knows of pages that no walk can get to.

Each cell is how often the 95 % interval held the truth. It is judged by the band in which exact coverage of 95 %
would put *all* cells with a chance of 99.9 % (binomial, Bonferroni). What all pages of a part have is not asked. The
output is Markdown, written as it comes; with --json it is one object, and the tables go to stderr.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from itertools import chain
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from experiments.chosen_domains import say
from experiments.community_tables import table
from experiments.sampled_runs import OURS, WALKS
from experiments.topic_data import real
from experiments.topic_webs import QUICK, TopicWeb, made_up
from surveyor.arrays import BoolArray, FloatArray
from surveyor.estimate.sampling.compiled_walks import CompiledWalks
from surveyor.estimate.sampling.estimates import Estimate, mean, share
from surveyor.estimate.sampling.sample_goals import GoalCheck, SampleGoal, check_intervals
from surveyor.estimate.sampling.sizes import topic_size
from surveyor.estimate.sampling.walk_methods import WalkPlan
from surveyor.estimate.sampling.walk_trace import WalkTrace
from surveyor.kernels.binomial import regularized_beta
from surveyor.kernels.thread_pool import cores

LAST = 1 << 14  # rounds at most
LEVEL, FAMILY = 0.95, 0.999
PAGES = 60_000  # of the made-up web
LOTS = 16  # of samples, dealt to processes
WEBS = ("made up: sites", "made up: pages", "polblogs: all", "polblogs: camps", "wikispeedia: People",
        "wikispeedia: Science")  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """How often the interval of one statistic held the truth."""

    web: str
    method: str
    what: str
    truth: float
    samples: int
    runs: int  # samples that called themselves done
    held: int
    above: int  # intervals that lie above the truth
    margin: float  # median half length, as a part of the truth
    ess: float  # median
    steps: float  # median

    def verdict(self, cells: int) -> str:
        """Say whether the count lies in the band of so many cells, or on which side of it, if most samples are done."""
        if 2 * self.runs < self.samples:
            return "not done"
        low, high = band(self.runs, cells)
        return "too narrow" if self.held < low else "too wide" if self.held > high else "inside"


@lru_cache
def band(runs: int, cells: int) -> tuple[int, int]:
    """Return the least and the largest count that all cells keep to with the family's chance if coverage is exact.

    >>> band(400, 1)
    (364, 393)
    """
    tail = (1 - FAMILY) / cells / 2
    counts = range(1, runs + 1)
    at_least = {count: regularized_beta(float(count), runs - count + 1.0, LEVEL) for count in counts}
    low = max(count for count in counts if 1 - at_least[count] <= tail)
    high = next((count for count in counts if at_least[count] <= tail), runs + 1) - 1
    return low, high


def properties(web: TopicWeb, seed: int = 3) -> dict[str, FloatArray]:
    """Return what is asked: the shares of the web, a rare one that follows the degree, and the mean log out-degree."""
    rng, degrees = np.random.default_rng(seed), np.diff(web.neighbours.starts)
    rank = np.argsort(np.argsort(degrees)) / degrees.size
    rare = rng.random(degrees.size) < 0.06 * rank
    return {
        **{name: flags.astype(np.float64) for name, flags in web.shares.items()},
        "rare": rare.astype(np.float64),
        "log out-degree": web.numbers["log out-degree"],
    }


def begun(web: TopicWeb, method: str, seed: int, part: BoolArray) -> CompiledWalks:
    """Set walks on their first pages."""
    starts = web.starts(WALKS, np.random.default_rng(50_000 + seed), part)
    return CompiledWalks(web.neighbours, web.topic, starts, WalkPlan(method, rng=seed))


def sampled(walks: CompiledWalks, asked: dict[str, FloatArray], goal: SampleGoal) -> WalkTrace | None:
    """Walk until the goal is met; None if it is not in time."""
    looked, rounds = GoalCheck(goal), 0
    for more in check_intervals():
        walks.advance(more)
        rounds, trace = rounds + more, walks.trace()
        if looked(trace, {name: values[trace.page] for name, values in asked.items()}):
            return trace
        if rounds >= LAST:
            return None
    raise AssertionError  # pragma: no cover  # looks never end


def _told(trace: WalkTrace, name: str, values: FloatArray) -> Estimate:
    return (mean if name == "log out-degree" else share)(trace, values[trace.page], level=LEVEL)


Told = list[dict[str, Estimate]]  # by each sample that called itself done
Each = Callable[[Callable[[range], Told], Iterable[range]], Iterable[Told]]


def cells_of(web: TopicWeb, method: str, runs: int, goal: SampleGoal, each: Each = map) -> list[Cell]:
    """Sample many times and count; lots of samples are taken by `each`, such as a pool of processes."""
    part = web.part(method)
    asked = _asked(web, part)
    truth = {**{name: web.truth(values, part) for name, values in asked.items()}, "size": float(part.sum())}
    lots = (range(first, runs, LOTS) for first in range(LOTS))
    done = list(chain.from_iterable(each(partial(_told_by, web, method, goal, part), lots)))
    return [_cell(web.name, method, what, true, runs, [told[what] for told in done]) for what, true in truth.items()]


def _told_by(web: TopicWeb, method: str, goal: SampleGoal, part: BoolArray, seeds: range) -> Told:
    asked = _asked(web, part)
    traces = (sampled(begun(web, method, seed, part), asked, goal) for seed in seeds)
    return [
        {**{name: _told(trace, name, values) for name, values in asked.items()}, "size": topic_size(trace)}
        for trace in traces
        if trace is not None
    ]


def _asked(web: TopicWeb, part: BoolArray) -> dict[str, FloatArray]:
    return {name: values for name, values in properties(web).items() if np.ptp(values[part]) > 0}


def _cell(web: str, method: str, what: str, true: float, samples: int, told: Sequence[Estimate]) -> Cell:
    held, above = sum(one.low <= true <= one.high for one in told), sum(one.low > true for one in told)
    margin, ess, steps = (
        float(np.median(part)) if told else float("nan")
        for part in ([one.margin / abs(true) for one in told], [one.ess for one in told], [one.steps for one in told])
    )
    return Cell(web, method, what, true, samples, len(told), held, above, margin, ess, steps)


def coverage_table(found: Sequence[Cell], cells: int, *, head: bool = True) -> str:
    """Tell the coverage of each cell and the verdict; without a head it goes on with the table before."""
    rows = [
        [one.web, one.method, one.what, f"{one.truth:.4g}", f"{one.runs / one.samples:.0%}", _share(one.held, one.runs),
         _share(one.above, one.runs), _share(one.runs - one.held - one.above, one.runs), one.verdict(cells),
         *([f"{one.margin:.1%}", f"{one.ess:,.0f}", f"{one.steps:,.0f}"] if one.runs else "---")]
        for one in found
    ]  # fmt: skip
    header = ["topic", "method", "of", "truth", "done", "held", "too high", "too low", "verdict", "±", "ESS", "steps"]
    return table(header, rows, 3) if head else table(header, rows, 3).split("\n", 2)[2]


def _share(some: int, of: int) -> str:
    return f"{some / of:.1%}" if of else "-"


def summary(cells: Sequence[Cell]) -> str:
    """Sum up all cells in a sentence."""
    words = [one.verdict(len(cells)) for one in cells]
    judged = [one for one, word in zip(cells, words, strict=True) if word != "not done"]
    if not judged:
        return "No sample called itself done."
    most = max(one.runs for one in judged)
    low, high = band(most, len(cells))
    overall = sum(one.held for one in judged) / sum(one.runs for one in judged)
    return (
        f"{words.count('inside')} of {len(judged)} judged cells lie in the band (of {most} samples {low / most:.1%} to "
        f"{high / most:.1%}); {words.count('too narrow')} below, {words.count('too wide')} above; coverage over all of "
        f"them {overall:.1%}. {words.count('not done')} cells are of samples most of which were not done."
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
    # Processes, as most of the time goes into many small estimates; none of them a copy of this one.
    with ProcessPoolExecutor(cores(), mp_context=get_context("spawn")) as pool:
        for web in webs:
            for method in methods:
                began = time.monotonic()
                found = cells_of(web, method, runs, goal, pool.map)
                print(coverage_table(found, count, head=not cells), end="", file=out, flush=True)
                cells += found
                say(f"{web.name}, {method}: {runs} runs in {time.monotonic() - began:.1f} s")
    print(f"\n{summary(cells)}", file=out)
    if options.json:
        told = [{**asdict(one), "verdict": one.verdict(len(cells))} for one in cells]
        print(json.dumps({"schema": 1, "until": str(goal), "cells": told}, indent=1))


def _webs(options: argparse.Namespace) -> Iterator[TopicWeb]:
    yield from (web for web in made_up(QUICK // 3 if options.quick else PAGES) if web.name in WEBS)
    if options.data is None:
        say("no folder of real graphs was given (--data): only a made-up web is used")
    else:
        yield from (web for web in real(options.data, quick=True) if web.name in WEBS)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small web, two methods and 60 runs")
    parser.add_argument("--data", type=Path, help="folder of real graphs")
    parser.add_argument("--runs", type=int, help="samples of each topic by each method  [400]")
    parser.add_argument("--until", default="ess=400", help="when a sample is done  [ess=400]")
    parser.add_argument("--json", action="store_true", help="write one JSON object to stdout, tables to stderr")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
