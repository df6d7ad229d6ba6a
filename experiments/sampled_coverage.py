"""Check that sampled coverage is what it says, and count the fetches that it saves.

    python -m experiments.sampled_coverage --part validity --data DIR --crawls 400
    python -m experiments.sampled_coverage --part adversarial --crawls 1000
    python -m experiments.sampled_coverage --part order
    python -m experiments.sampled_coverage --part http --crawls 100
    python -m experiments.sampled_coverage --part tables --data DIR --root FOLDER [--before SRC]

- *validity*: simulated crawls of synthetic and real webs with gone and blocked pages, half of them with a goal as
  users give it, half with walks at every tenth more pages; how many ever show a bound above the true coverage;
- *adversarial*: the same on webs made up against the bound (`sampled_webs.py`);
- *order*: a web that answers by request order, which breaks the assumption of the bound;
- *http*: embedded webs over HTTP with all that can go wrong (`guarantee.py`), watched at every moment;
- *tables*: fetches for certified and sampled goals beside the best order (`sampled_tables.py`).

The output is Markdown.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments import sampled_http, sampled_tables
from experiments.sampled_checks import (
    CONFIDENCES,
    ROUNDING,
    Forced,
    Until,
    Watched,
    binomial_interval,
    forced_walks,
    table,
    watch,
)
from experiments.sampled_webs import FAMILIES, SHAPES, ByOrder, Web, dense_truth, one_way, part, real, spoilt, synthetic
from experiments.sampled_webs import scenario as scenario_of
from surveyor.arrays import FloatArray
from surveyor.crawler.coverage_walks import CoverageWalks
from surveyor.graph.csr import Graph
from surveyor.stopping import Coverage

GOALS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.97)
SETS = 3  # of seeds, for each graph
DAMPINGS = (0.5, 0.85, 0.85, 0.85, 0.95)
STRATEGIES = ("rankmass", "rankmass", "rankmass", "breadth", "opic")


def drawn_plan(pages: int, draw: np.random.Generator) -> Forced:
    """Draw how often walks are made in a web of so many pages."""
    return Forced(
        first=int(np.exp(draw.uniform(np.log(5), np.log(max(6, 0.6 * pages))))),
        growth=float(draw.choice([1.02, 1.1, 1.5])),
        walks=int(draw.choice([10, 40, 150, 400])),
        group=int(draw.choice([1, 5, 5, 50, 400])),
    )


def forced(web: Web, truth: FloatArray, rng: int, damping: float) -> Watched:
    """Watch a crawl with many walks."""
    draw = np.random.default_rng([rng, 3])
    reachable = int(((truth > 0) & (web.outcomes == 0)).sum())
    until = Until(max(1, int(draw.uniform(0.3, 0.95) * reachable)) / 1e6, confidence=CONFIDENCES[0])
    with forced_walks(drawn_plan(reachable, draw)):
        return watch(web, truth, until, rng=rng, damping=damping, strategy=str(draw.choice(STRATEGIES)))


def validity(graphs: Iterable[tuple[str, Graph]], crawls: int, rng: int) -> dict[str, list[Watched]]:
    """Watch so many crawls of synthetic webs, and as many of real ones; of each web half with many walks."""
    results: dict[str, list[Watched]] = {}
    kinds = [*((f"synthetic: {name}", None, name) for name in SHAPES), *((name, graph, "") for name, graph in graphs)]
    real_ones = max(1, len(kinds) - len(SHAPES))
    for name, graph, shape in kinds:
        count = -(-crawls // (len(SHAPES) if graph is None else real_ones))
        for number in range(count):
            seed = 10_000 * rng + number
            draw = np.random.default_rng([seed, 2])
            if graph is None:
                web = synthetic(shape, seed)
            else:
                gone, blocked = draw.choice([0, 0.03], 2).tolist()
                web = spoilt(part(graph, draw), draw, gone=gone, blocked=blocked)
            damping = float(draw.choice(DAMPINGS))
            truth = scenario_of(web, damping).truth().scores
            if number % 2:
                one = forced(web, truth, seed, damping)
            else:
                goal = Coverage(float(draw.choice(GOALS)), confidence=CONFIDENCES[0])
                one = watch(web, truth, goal, rng=seed, damping=damping, strategy=str(draw.choice(STRATEGIES)))
            results.setdefault(f"{name}, {'many walks' if number % 2 else 'goals'}", []).append(one)
        say(f"{name}: done")
    return results


def adversarial(crawls: int, rng: int) -> dict[str, list[Watched]]:
    """Watch crawls of adversarial webs, the same number of each family: ten webs with as many secrets each."""
    each = -(-crawls // len(FAMILIES))
    results: dict[str, list[Watched]] = {}
    for name, family in FAMILIES.items():
        webs = [family(np.random.default_rng([rng, number])) for number in range(10)]
        dampings = [DAMPINGS[number % len(DAMPINGS)] for number in range(10)]
        truths = [dense_truth(web, damping) for web, damping in zip(webs, dampings, strict=True)]
        results[name] = [
            forced(webs[number % 10], truths[number % 10], 1000 * rng + number, dampings[number % 10])
            for number in range(each)
        ]
        say(f"{name}: done")
    return results


class Deceived(NamedTuple):
    """The bounds and the true coverage at the end of a crawl."""

    certified: float
    sampled: float
    true: float  # of the web as fetched
    own: float  # of the web without deceit


def order(crawls: int, rng: int) -> Iterator[Deceived]:
    """Crawl webs of which pages requested for walks link back, and no others."""
    for number in range(crawls):
        web = one_way(np.random.default_rng([rng, number]))
        truth, made = scenario_of(web).truth().scores, list[ByOrder]()

        def deceive(web: Web, walks: CoverageWalks, made: list[ByOrder] = made) -> ByOrder:
            made.append(ByOrder(web, walks))
            return made[0]

        with forced_walks(Forced(first=30, walks=40)):
            one = watch(web, truth, Until(200 / 1e6, confidence=CONFIDENCES[0]), rng=number, source=deceive)
        true = float(scenario_of(made[0].as_fetched()).truth().scores[list(one.order)].sum())
        yield Deceived(*one.at_least, true, one.true)


def order_table(results: Sequence[Deceived]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    yield "| crawls | certified | sampled | true, as fetched | true, own links | sampled wrong | certified wrong |"
    yield "|--:|--:|--:|--:|--:|--:|--:|"
    means = [f"{mean:.3f}" for mean in np.mean(results, axis=0)]
    wrong = [sum(bound > one.true + ROUNDING for one in results for bound in [one[side]]) for side in (1, 0)]
    yield f"| {len(results)} | {' | '.join(means)} | {wrong[0]} | {wrong[1]} |"


def http(crawls: int, rng: int) -> int:
    """Print the table of crawls over HTTP; return 1 if a certified bound was wrong."""
    done = []
    for one in sampled_http.crawls(crawls, rng):
        done.append(one)
        say(f"{len(done)}: {one.kind}, {one.walks} walks, {one.excess} {one.violations[:3]}")
    print(*sampled_http.table(done), sep="\n")
    return int(any(one.violations for one in done))


def say(text: str) -> None:
    """Print beside the tables."""
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """Print the tables of a part; fail if a bound is violated more often than it may be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("validity", "adversarial", "order", "http", "tables"), required=True)
    parser.add_argument("--data", type=Path, help="folder of real graphs")
    parser.add_argument("--root", type=Path, help="folder with a folder for each site")
    parser.add_argument("--before", type=Path, help="source folder of an earlier version, for comparison")
    parser.add_argument("--crawls", type=int, default=400)
    parser.add_argument("--rng", type=int, default=7)
    given = parser.parse_args()
    if given.part in ("validity", "adversarial"):
        graphs = real(given.data) if given.data else ()
        if given.part == "validity":
            results = validity(graphs, given.crawls, given.rng)
        else:
            results = adversarial(given.crawls, given.rng)
        print(*table(results), sep="\n")
        everything = [one for some in results.values() for one in some]
        found = sum(one.violates(CONFIDENCES[0]) for one in everything)
        return int(binomial_interval(found, len(everything))[0] > 1 - CONFIDENCES[0])
    if given.part == "order":
        print(*order_table(list(order(given.crawls, given.rng))), sep="\n")
    if given.part == "http":
        return http(given.crawls, given.rng)
    if given.part == "tables":
        graphs = real(given.data) if given.data else ()
        rows = sampled_tables.graph_rows(graphs, given.before, sets=min(given.crawls, SETS), rng=given.rng)
        for line in sampled_tables.table(rows) if given.data else ():
            print(line, flush=True)
        print()
        for line in sampled_tables.table(sampled_tables.site_rows(given.root, given.before)) if given.root else ():
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
