"""How often intervals from samples of a topic hold the truth, beside how often they say they do.

    python -m surveyor.experiments.calibration [--quick] [--data FOLDER] [--runs 400] [--json]

On webs of which all is known, each method samples a topic many times, as a user would: 8 walks from pages that are
often linked to, burn-in found automatically, as many steps as most of a few samples need until they call themselves
done (an effective sample size of 400, and walks that agree), but no more than 8,192 rounds: cells of samples that are
not done by then are shown and not judged. Neighbours are known completely. The truth is that of the largest part of the
topic that the method can get around in, and walks begin there: no interval knows of pages that no walk can get to.

Each cell is how often the 95 % interval held the truth. It is judged by the band in which exact coverage of 95 %
would put *all* cells with a chance of 99.9 % (binomial, Bonferroni). What all pages of a part have is not asked. The
output is Markdown, written as it comes; with --json it is one object, and the tables go to stderr.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from surveyor.arrays import BoolArray, FloatArray
from surveyor.errors import UsageError
from surveyor.experiments.chosen_domains import say
from surveyor.experiments.community_tables import table
from surveyor.experiments.topic_data import real
from surveyor.experiments.topic_webs import QUICK, TopicWeb, made_up
from surveyor.kernels.binomial import beta_share
from surveyor.kernels.crew import Crew
from surveyor.sampling.compiled import CompiledWalks
from surveyor.sampling.estimates import Estimate, mean, share
from surveyor.sampling.sizes import size
from surveyor.sampling.trail import Trail
from surveyor.sampling.until import Until

METHODS = ("trial", "mixture", "hard", "nonbacktracking", "webwalker")
WALKS, PILOTS, DONE = 8, 7, Until(ess=400)
FIRST, LAST = 1 << 9, 1 << 13  # rounds
LEVEL, FAMILY = 0.95, 0.999
PAGES = 60_000  # of the made-up web
WEBS = ("made up: sites", "made up: pages", "polblogs: all", "polblogs: camps", "wikispeedia: People",
        "wikispeedia: Science")  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """How often the interval of one statistic held the truth."""

    web: str
    method: str
    what: str
    truth: float
    runs: int
    held: int
    above: int  # intervals that lie above the truth
    margin: float  # median half length, as a part of the truth
    ess: float  # median
    rows: float  # median
    settled: bool  # samples so long call themselves done

    def verdict(self, band: tuple[int, int]) -> str:
        """Say whether the count lies in the band, or on which side of it; not of samples that say they are not done."""
        if not self.settled:
            return "not done"
        return "too narrow" if self.held < band[0] else "too wide" if self.held > band[1] else "inside"


def band(runs: int, cells: int) -> tuple[int, int]:
    """Return the least and the largest count that all cells keep to with the family's chance if coverage is exact.

    >>> band(400, 1)
    (364, 393)
    """
    tail = (1 - FAMILY) / cells / 2
    counts = range(1, runs + 1)
    at_least = {count: beta_share(float(count), runs - count + 1.0, LEVEL) for count in counts}
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


def rounds_needed(web: TopicWeb, method: str, asked: dict[str, FloatArray], part: BoolArray) -> tuple[int, bool]:
    """Return after how many rounds, a power of two, most of a few samples call themselves done, and whether they do."""
    pilots, rounds = [begun(web, method, 90_000 + seed, part) for seed in range(PILOTS)], FIRST
    for pilot in pilots:
        pilot.advance(rounds)
    while not (settled := 2 * sum(_is_done(pilot.trail(), asked) for pilot in pilots) > PILOTS) and rounds < LAST:
        for pilot in pilots:
            pilot.advance(rounds)
        rounds *= 2
    return rounds, settled


def begun(web: TopicWeb, method: str, seed: int, part: BoolArray) -> CompiledWalks:
    """Set walks on their first pages."""
    starts = web.starts(WALKS, np.random.default_rng(50_000 + seed), part)
    return CompiledWalks(web.neighbours, web.topic, starts, method=method, rng=seed)


def _is_done(trail: Trail, asked: dict[str, FloatArray]) -> bool:
    try:
        return bool(DONE.met(trail, {name: values[trail.page] for name, values in asked.items()}))
    except UsageError:  # not even a page on topic after the burn-in
        return False


def _told(trail: Trail, name: str, values: FloatArray) -> Estimate:
    return (mean if name == "log out-degree" else share)(trail, values[trail.page], level=LEVEL)


def cells_of(web: TopicWeb, method: str, runs: int, crew: Crew) -> list[Cell]:
    """Sample many times and count."""
    part = web.part(method)
    asked = {name: values for name, values in properties(web).items() if np.ptp(values[part]) > 0}
    truth = {**{name: web.truth(values, part) for name, values in asked.items()}, "size": float(part.sum())}

    rounds, settled = rounds_needed(web, method, asked, part)

    def one(seed: int) -> dict[str, Estimate]:
        walks = begun(web, method, seed, part)
        walks.advance(rounds)
        trail = walks.trail()
        try:
            return {**{name: _told(trail, name, values) for name, values in asked.items()}, "size": size(trail)}
        except UsageError:  # no page on topic after the burn-in
            return {}

    found = [told for told in crew.each(one, ((seed,) for seed in range(runs))) if told]
    runs = len(found)
    cells = []
    for what, true in truth.items():
        told = [each[what] for each in found]
        cells.append(
            Cell(
                web.name, method, what, true, runs, sum(each.low <= true <= each.high for each in told),
                sum(each.low > true for each in told), float(np.median([each.margin for each in told])) / abs(true),
                float(np.median([each.ess for each in told])), float(np.median([each.rows for each in told])), settled,
            )
        )  # fmt: skip
    return cells


def coverage_table(cells: Sequence[Cell], limits: tuple[int, int], *, head: bool = True) -> str:
    """Tell the coverage of each cell and the verdict; without a head it goes on with the table before."""
    rows = [
        [one.web, one.method, one.what, f"{one.truth:.4g}", f"{one.held / one.runs:.1%}", f"{one.above / one.runs:.1%}",
         f"{(one.runs - one.held - one.above) / one.runs:.1%}", one.verdict(limits), f"{one.margin:.1%}",
         f"{one.ess:,.0f}", f"{one.rows:,.0f}"]
        for one in cells
    ]  # fmt: skip
    header = ["topic", "method", "of", "truth", "held", "too high", "too low", "verdict", "±", "ESS", "steps"]
    return table(header, rows, 3) if head else table(header, rows, 3).split("\n", 2)[2]


def summary(cells: Sequence[Cell], limits: tuple[int, int]) -> str:
    """Sum up all cells in a sentence."""
    judged = [one for one in cells if one.settled]
    words = [one.verdict(limits) for one in judged]
    if not judged:
        return "No sample called itself done."
    runs, overall = judged[0].runs, sum(one.held for one in judged) / sum(one.runs for one in judged)
    return (
        f"{words.count('inside')} of {len(judged)} judged cells lie in the band from {limits[0] / runs:.1%} to "
        f"{limits[1] / runs:.1%} of {runs} runs; {words.count('too narrow')} below, {words.count('too wide')} above; "
        f"coverage over all of them {overall:.1%}. {len(cells) - len(judged)} cells are of samples that were not done."
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the coverage of all cells."""
    options = _options(arguments)
    out, runs = sys.stderr if options.json else sys.stdout, options.runs or (60 if options.quick else 400)
    methods = METHODS[:2] if options.quick else METHODS
    webs = list(_webs(options))
    limits = band(runs, len(methods) * sum(len(properties(web)) + 1 for web in webs))
    print(f"# Coverage of 95 % intervals, {runs} runs\n", file=out)
    cells: list[Cell] = []
    with Crew() as crew:
        for web in webs:
            for method in methods:
                began = time.monotonic()
                found = cells_of(web, method, runs, crew)
                print(coverage_table(found, limits, head=not cells), end="", file=out, flush=True)
                cells += found
                say(f"{web.name}, {method}: {runs} runs in {time.monotonic() - began:.1f} s")
    print(f"\n{summary(cells, limits)}", file=out)
    if options.json:
        told = [{**asdict(one), "verdict": one.verdict(limits)} for one in cells]
        print(json.dumps({"schema": 1, "band": limits, "cells": told}, indent=1))


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
    parser.add_argument("--json", action="store_true", help="write one JSON object to stdout, tables to stderr")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
