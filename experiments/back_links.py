"""Bias of samples with missing in-links, with and without corrected weights.

    python -m experiments.back_links [--data DIR] [--runs 30] [--methods trial] [--quick] [--json]

Eight walks over a known web with an in-link source that reports each in-link with a probability of 0, 30 or 60 %, or
only the first hundred of each page. Walks are unfocused (`webwalker`) or focused on a topic (`hard`, `mixture`,
`trial`), with 1,000 and 5,000 steps. The estimated quantities are the share of the 2 % of pages with the most in-links,
the mean logarithms of degree and in-degree, the shares of pages with at most one in-link and without links, and the
shares of other topics.

*Bias* is the mean estimate minus that of equally long walks that know all in-links, in standard deviations of the
quantity over pages: the root mean square over quantities, after subtracting the Monte Carlo variance. *Spread* is the
standard deviation of estimates in the same units, *error* both together. `top` is the share of the 2 % relative to that
of walks that know all in-links. The form of the correction was selected on the tuning webs, and changed in one place
after the validation webs were evaluated; the test webs were evaluated once, at the end.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from experiments.local_domains import real
from experiments.topic_webs import reachable
from surveyor.arrays import BoolArray, FloatArray
from surveyor.estimate.sampling.compiled_walks import CompiledWalks, NeighbourLists
from surveyor.estimate.sampling.in_links import (
    LinkCoverage,
    LinkObservations,
    correct_weights,
    estimate_in_link_coverage,
    estimate_neighbour_coverage,
)
from surveyor.estimate.sampling.walk_methods import WalkPlan
from surveyor.estimate.sampling.walk_trace import WalkTrace
from surveyor.graph.csr import Graph
from surveyor.graph.synthetic.generate import PRESETS, synthetic_web

REPORTED = (0.0, 0.3, 0.6, -100.0)  # share of in-links; -n: the first n of each page
STEPS = (1_000, 5_000)
METHODS = ("webwalker", "hard", "mixture", "trial")
WALKS = 8
REDRAWN = 10  # runs with the same reported links: drawing new ones is slow on large webs
SYNTHETIC = ((20_000, 7), (100_000, 3), (20_000, 11), (20_000, 23), (300_000, 5))  # pages and seed
TUNING = ("synthetic 20000/7", "synthetic 100000/3", "polblogs", "cnr-2000")
VALIDATION = ("synthetic 20000/11", "wikispeedia", "hollins")
Web = tuple[str, Graph, list[BoolArray]]


@dataclass(frozen=True)
class Measured:
    """Results for one web, method, walk length and in-link source."""

    web: str
    part: str  # tuning, validation or test
    method: str
    steps: int
    reported: float
    top: tuple[float, float]  # this and the next four: uncorrected and corrected
    bias: tuple[float, float]
    spread: tuple[float, float]
    error: tuple[float, float]
    size: tuple[float, float]  # of the topic from collisions, relative to walks that know all in-links
    true_reported: float  # share of the in-links of visited pages, mean over runs
    reported_estimate: float
    reported_covered: float  # coverage of the intervals
    true_neighbours: float  # share of their neighbours in the frozen lists
    neighbours_estimate: float


def webs(data: Path | None, synthetic: tuple[tuple[int, int], ...]) -> Iterator[Web]:
    """Yield webs with topics; walks focus on the first topic."""
    for pages, seed in synthetic:
        web = synthetic_web(replace(PRESETS["web"], pages=pages), rng=seed, names=False)
        topics, counts = np.unique(web.topic, return_counts=True)
        fit = topics[(counts >= 0.02 * pages) & (counts <= 0.2 * pages)][:3]
        yield f"synthetic {pages}/{seed}", web.graph, [web.topic == topic for topic in fit]
    for name, graph, domains in real(data) if data else ():
        size = graph.pages
        fitting = [one for one in domains if 0.02 * size <= one.pages.size <= 0.6 * size]
        chosen = (fitting or sorted(domains, key=lambda one: -one.pages.size))[:3]
        yield name, graph, [np.isin(np.arange(size), one.pages) for one in chosen]


class Setup:
    """Walks over one web with one method."""

    def __init__(self, graph: Graph, neighbours: NeighbourLists, topics: list[BoolArray], method: str) -> None:
        self.neighbours, self.method = neighbours, method
        unfocused = method == "webwalker"
        self.topic = np.ones(graph.pages, np.bool_) if unfocused else topics[0]
        degree = np.diff(neighbours.starts)
        inside = self.topic & (degree > 0)
        in_degree = np.bincount(graph.indices, minlength=graph.pages)
        most = np.flatnonzero(inside)[np.argsort(-in_degree[inside], kind="stable")[: max(inside.sum() // 50, 1)]]
        columns = [
            np.isin(np.arange(graph.pages), most),
            np.log(np.maximum(degree, 1)),
            np.log1p(in_degree),
            in_degree <= 1,
            graph.out_degrees == 0,
            *topics[0 if unfocused else 1 :],
        ]
        values = np.array(columns, np.float64).T
        deviation = values[inside].std(0)
        self.deviation, self.values = deviation[deviation > 0], values[:, deviation > 0]
        central = int(np.argmax(np.where(self.topic, degree, -1)))
        self.starts = np.flatnonzero(
            reachable(neighbours, self.topic, central, max_off_topic=0) & (graph.out_degrees > 2)
        )
        self.in_degree = in_degree

    def source(self, reported: float, rng: np.random.Generator) -> NeighbourLists:
        """Return neighbour lists of which an in-link source reports some in-links."""
        links, starts = self.neighbours.links & np.uint8(3), self.neighbours.starts
        is_in_link = links & 2 != 0
        if reported >= 0:
            chosen = is_in_link & (rng.random(links.size) < reported)
        else:
            before = np.cumsum(is_in_link) - is_in_link
            chosen = is_in_link & (before - np.repeat(np.r_[before, 0][starts[:-1]], np.diff(starts)) < -reported)
        links[chosen] |= np.uint8(4)
        return NeighbourLists(starts, self.neighbours.pages, links, complete=reported >= 1)

    def walk(self, source: NeighbourLists, steps: int, rng: np.random.Generator) -> CompiledWalks:
        """Walk a total number of steps."""
        starts = rng.choice(self.starts, WALKS)
        walks = CompiledWalks(source, self.topic, starts, WalkPlan(self.method, rng=int(rng.integers(1 << 30))))
        while len(walks.trace()) < steps:
            walks.advance((steps - len(walks.trace())) // WALKS + 1)
        return walks

    def estimate(self, trace: WalkTrace) -> FloatArray:
        """Return weighted means, and the topic size from collisions of walks."""
        trace = trace.rows(slice(len(trace) // 10, None))
        weight = trace.weight
        means = weight @ self.values[trace.page] / weight.sum()
        on = trace.rows(trace.on_topic)
        visits, count = np.unique(on.page.astype(np.int64) * WALKS + on.walk, return_counts=True)
        page = np.searchsorted(np.unique(visits // WALKS), visits // WALKS)
        together = (np.bincount(page, count) ** 2 - np.bincount(page, count.astype(float) ** 2)).sum()
        lengths = np.bincount(on.walk, minlength=WALKS).astype(float)
        pairs = lengths.sum() ** 2 - (lengths**2).sum()
        size = pairs * on.degree.mean() * (1 / on.degree).mean() / together if together else np.nan
        return np.append(means, size)


def measure(setup: Setup, steps: int, sources: tuple[float, ...], runs: int) -> Iterator[dict[str, object]]:
    """Walk with each in-link source; yield the fields of Measured."""
    rng = np.random.default_rng(steps)
    reference = np.array([setup.estimate(setup.walk(setup.neighbours, steps, rng).trace()) for _ in range(runs)])
    for reported in sources:
        rng, found, plain, better = np.random.default_rng(steps + 1), [], [], []
        for run in range(runs):
            if run % REDRAWN == 0:
                source = setup.source(reported, rng)
            walks = setup.walk(source, steps, rng)
            observed, trace = LinkObservations.from_compiled(source, walks), walks.trace()
            plain.append(setup.estimate(trace))
            better.append(setup.estimate(correct_weights(trace, observed)))
            near = np.diff(source.starts)[observed.pages].sum()
            truth = (
                observed.reported.sum() / max(setup.in_degree[observed.pages].sum(), 1),
                observed.degree.sum() / near,
            )
            found.append((*truth, estimate_in_link_coverage(observed), estimate_neighbour_coverage(observed)))
        yield {"reported": reported, **_compared(setup, reference, np.array(plain), np.array(better)), **_judged(found)}


def _compared(setup: Setup, reference: FloatArray, *estimates: FloatArray) -> dict[str, tuple[float, ...]]:
    found = defaultdict(list)
    for values in estimates:
        deviations = (values[:, :-1] - reference[:, :-1].mean(0)) / setup.deviation
        noise = (values[:, :-1].var(0, ddof=1) + reference[:, :-1].var(0, ddof=1)) / len(values) / setup.deviation**2
        found["top"].append(float(values[:, 0].mean() / reference[:, 0].mean()))
        found["bias"].append(float(np.sqrt(max(0.0, (deviations.mean(0) ** 2 - noise).mean()))))
        found["spread"].append(float(np.sqrt(deviations.var(0, ddof=1).mean())))
        found["error"].append(float(np.sqrt((deviations**2).mean())))
        found["size"].append(float(np.nanmedian(values[:, -1]) / np.nanmedian(reference[:, -1])))
    return {name: tuple(values) for name, values in found.items()}


def _judged(found: list[tuple[float, float, LinkCoverage, LinkCoverage]]) -> dict[str, float]:
    reported, neighbours = np.array([one[0] for one in found]), np.array([one[1] for one in found])
    covered = [one[2].low <= truth <= one[2].high for one, truth in zip(found, reported, strict=True)]
    return {
        "true_reported": float(reported.mean()),
        "reported_estimate": float(np.mean([one[2].value for one in found])),
        "reported_covered": float(np.mean(covered)),
        "true_neighbours": float(neighbours.mean()),
        "neighbours_estimate": float(np.mean([one[3].value for one in found])),
    }


def table(found: list[Measured]) -> Iterator[str]:
    """Yield a table: the root mean square over lengths of walks, by web, method and source."""
    yield "| part | web | method | source | bias | corrected | error | corrected | top | corrected | size | corrected |"
    yield "|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    groups: dict[tuple[str, ...], list[Measured]] = defaultdict(list)
    for one in found:
        source = f"{one.reported:.0%}" if one.reported >= 0 else f"first {-one.reported:.0f}"
        for web, method in ((one.web, one.method), (one.web, "all"), ("all", "all")):
            groups[one.part, web, method, source].append(one)
    for names, some in sorted(groups.items(), key=lambda item: [name == "all" for name in item[0]]):
        columns = [np.sqrt(np.mean([np.square(getattr(one, name)) for one in some], 0)) for name in ("bias", "error")]
        columns += [np.exp(np.mean([np.log(getattr(one, name)) for one in some], 0)) for name in ("top", "size")]
        yield f"| {' | '.join(names)} | {' | '.join(f'{value:.3f}' for pair in columns for value in pair)} |"


def coverages(found: list[Measured]) -> Iterator[str]:
    """Yield a table of coverage estimates next to the true shares."""
    yield "| source | steps | true share | estimate | interval coverage | true share of neighbours | estimate |"
    yield "|--:|--:|--:|--:|--:|--:|--:|"
    for reported, steps in sorted({(one.reported, one.steps) for one in found}):
        some = [one for one in found if (one.reported, one.steps) == (reported, steps)]
        names = ("true_reported", "reported_estimate", "reported_covered", "true_neighbours", "neighbours_estimate")
        source = f"{reported:.0%}" if reported >= 0 else f"first {-reported:.0f}"
        yield (
            f"| {source} | {steps:,} | "
            + " | ".join(f"{np.mean([getattr(one, name) for one in some]):.3f}" for name in names)
            + " |"
        )


def main() -> None:
    """Run the experiment, and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of real graphs")
    parser.add_argument("--runs", type=int, default=30, help="runs per setup")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS, help="walk methods")
    parser.add_argument("--quick", action="store_true", help="one small web, few runs")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    synthetic: tuple[tuple[int, int], ...] = ((2_000, 7),) if options.quick else SYNTHETIC
    steps, runs = STEPS[: 1 if options.quick else None], 8 if options.quick else options.runs
    found = []
    for name, graph, topics in webs(options.data, synthetic):
        neighbours = NeighbourLists.of(graph)
        for method in options.methods:
            setup = Setup(graph, neighbours, topics, method)
            for count in steps:
                part = "tuning" if name in TUNING else "validation" if name in VALIDATION else "test"
                for columns in measure(setup, count, REPORTED, runs):
                    found.append(Measured(web=name, part=part, method=method, steps=count, **columns))  # type: ignore[arg-type]  # as named
                    sys.stderr.write(f"{found[-1]}\n")
    if options.json:
        print(json.dumps({"schema": "experiments.back_links/1", "measured": [asdict(one) for one in found]}))
    else:
        print("\n".join([*table(found), "", *coverages(found)]))


if __name__ == "__main__":
    main()
