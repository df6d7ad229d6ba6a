"""Distance and order of the estimated global rank on small local domains that nothing was tuned on.

    python -m experiments.small_communities --data DIR [--part test] [--seeds 3] [--pages] [--json]

The domains are those of `small_domains`. Each is expanded by 2n pages with every selector; after n/4, n and 2n pages
the L1 distance and Kendall's tau-a from the true ranks are measured for each estimator, and for the local ranking. All
figures are means over the random seeds, then over the domains. `worse` counts domains on which tau is lower, by more
than .01, than that of both the local ranking and the paper's (stochastic complementation, crawled). `inflow` is the
share of the rank flowing into the domain at +n that comes from fetched pages. Ratios of means have bootstrap 95 %
intervals over domains. A domain whose true ranks are all equal has no order and counts for L1 only.

The last table compares the jackknife standard error, summed over the pages, with the true L1 error, for the default
selector and estimator at +n: if it were calibrated, the ratio would be near 1 on all domains.

The output is Markdown; `--pages` adds a line per domain, and `--json` prints one object instead.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import get_args

import numpy as np

from experiments.community_errors import ratio
from experiments.local_domains import Domain
from experiments.small_domains import Web, real
from experiments.uncertainty import jackknife, links_of
from surveyor.arrays import FloatArray, IdArray, IntArray
from surveyor.estimate.community.estimators import KnownLinks, Method, estimate, local_rank
from surveyor.estimate.community.impact import impact
from surveyor.estimate.community.known_graph import Expanded, ExpansionPlan, expand
from surveyor.graph.csr import Graph
from surveyor.kernels.crawled_graph import CrawledGraph
from surveyor.rank.comparison import kendall_a
from surveyor.rank.expansion import Select
from surveyor.rank.pagerank import pagerank

STEPS = (0.25, 1.0, 2.0)  # extra pages, as multiples of the local ones
SELECTORS: tuple[Select, ...] = ("explore", "complement", "flow", "outlinks", "random")
PAPER, CHOSEN = ("complement", "crawled"), ("explore", "auto")
SEED, EXACT, WORSE = 7, 1e-10, 0.01

Pair = tuple[float, float | None]  # L1, Kendall's tau-a


@dataclass(frozen=True, slots=True)
class Figures:
    """The errors on one domain, by selector and estimator; a value per step."""

    name: str
    pages: int
    local: Pair
    at: dict[str, list[Pair]] = field(default_factory=dict)  # "selector estimator"
    inflow: dict[str, list[float]] = field(default_factory=dict)  # by selector
    spread: float = 0.0  # sum of the standard errors of the chosen estimate at +n
    error: float = 0.0  # its L1 error with the same seed


def measure(graph: Graph, ranks: FloatArray, domain: Domain, seeds: int) -> Figures:
    """Measure one domain with all selectors and estimators."""
    local, links, inflow = domain.pages, links_of(graph), impact(graph, ranks, domain.pages)
    truth = ranks[local] / ranks[local].sum()
    found = Figures(domain.name, local.size, _errors(local_rank(local, links, 0.85, EXACT), truth))
    spread, error = 0.0, 0.0
    for select in SELECTORS:
        cells: dict[str, list[list[Pair]]] = defaultdict(list)
        shares = []
        for seed in range(SEED, SEED + seeds):
            done = expand(graph, local, ExpansionPlan(round(max(STEPS) * local.size), select, seed=seed))
            by_step = [_known_after(done, links, local, step) for step in STEPS]
            for method in get_args(Method):
                scores = [_estimate(known, local, batches, method) for known, batches in by_step]
                cells[f"{select} {method}"].append([_errors(one, truth) for one in scores])
            whole = max(float(inflow.sum()), 1e-300)
            shares.append([float(inflow[known.pages].sum()) / whole for known, _ in by_step])
            if (select, seed) == (CHOSEN[0], SEED):
                known, batches = by_step[STEPS.index(1.0)]
                errors = jackknife(known, local, batches, links)
                spread = 0.0 if errors is None else float(errors.sum())
                error = cells["explore auto"][0][STEPS.index(1.0)][0]
        found.at.update({name: [_mean(pairs) for pairs in zip(*runs, strict=True)] for name, runs in cells.items()})
        found.inflow[select] = np.mean(shares, axis=0).tolist()
    return Figures(found.name, found.pages, found.local, found.at, found.inflow, spread, error)


def _known_after(done: Expanded, links: KnownLinks, local: IdArray, step: float) -> tuple[CrawledGraph, IntArray]:
    """Return what was known at the end of the round after `step` times the local pages."""
    batch_of = done.batch_of[np.searchsorted(done.known.pages, done.extra)]
    last = round(step * local.size / ExpansionPlan(0).batch_size(local.size))
    extra = done.extra[: np.searchsorted(batch_of, last, side="right")]
    pages = np.sort(np.concatenate([local, extra])).astype(np.int32)
    return links(pages), done.batch_of[np.searchsorted(done.known.pages, pages)]


def _estimate(known: CrawledGraph, local: IdArray, batches: IntArray, method: Method) -> FloatArray:
    places = np.searchsorted(known.pages, local).astype(np.int32)
    return estimate(known, places, batches, method, tolerance=EXACT).scores


def _errors(scores: FloatArray, truth: FloatArray) -> Pair:
    return float(np.abs(scores - truth).sum()), kendall_a(scores, truth)


def _mean(pairs: Iterable[Pair]) -> Pair:
    distances, orders = zip(*pairs, strict=True)
    known = [tau for tau in orders if tau is not None]
    return float(np.mean(distances)), float(np.mean(known)) if known else None


def run(webs: Iterable[Web], part: str, seeds: int) -> list[Figures]:
    """Measure the domains of one part."""
    found = []
    for name, graph, domains in webs:
        ranks = pagerank(graph, tolerance=1e-12).scores
        for domain in domains:
            if domain.part == part:
                found.append(measure(graph, ranks, domain, seeds))
                sys.stderr.write(f"{name}: {domain.name}, {domain.pages.size} pages\n")
    return found


def summary(found: Sequence[Figures]) -> Iterable[str]:
    """Yield the table of means, the comparison with the paper, and the calibration of the spread."""
    ordered = [one for one in found if one.local[1] is not None and all(p[1] is not None for p in _all(one))]
    yield f"{len(found)} domains, {len(ordered)} with an order; local ranking: L1 " + (
        f"{np.mean([one.local[0] for one in found]):.4f}, tau {np.mean([_tau(one.local) for one in ordered]):.4f}\n"
    )
    yield _row(["selector", "estimator", *(f"L1 +{s:g}n" for s in STEPS), *(f"tau +{s:g}n" for s in STEPS), "inflow"])
    yield _row(["---", "---"] + ["--:"] * (2 * len(STEPS) + 1))
    for name in found[0].at:
        select, method = name.split()
        distances = [np.mean([one.at[name][step][0] for one in found]) for step in range(len(STEPS))]
        orders = [np.mean([_tau(one.at[name][step]) for one in ordered]) for step in range(len(STEPS))]
        share = np.mean([one.inflow[select][1] for one in found])
        yield _row([select, method, *(f"{value:.4f}" for value in [*distances, *orders]), f"{share:.3f}"])
    yield ""
    yield from _versus(found, ordered)
    yield from _calibration(found)


def _versus(found: Sequence[Figures], ordered: Sequence[Figures]) -> Iterable[str]:
    chosen, paper = " ".join(CHOSEN), " ".join(PAPER)
    for at, step in enumerate(STEPS):
        value, low, high = ratio([(one.at[chosen][at][0], one.at[paper][at][0]) for one in found])
        nearer = sum(one.at[chosen][at][0] <= one.at[paper][at][0] for one in found)
        best = [max(_tau(one.at[paper][at]), _tau(one.local)) for one in ordered]
        gains = np.array([_tau(one.at[chosen][at]) for one in ordered]) - best
        draws = np.random.default_rng(SEED).choice(gains, (10_000, gains.size)).mean(axis=1)
        below, above = np.quantile(draws, [0.025, 0.975])
        worse, better = (gains < -WORSE).sum(), (gains > WORSE).sum()
        yield (
            f"+{step:g}n: L1 of {chosen} / {paper}: {value:.2f} ({low:.2f} to {high:.2f}), at most equal on {nearer} "
            f"of {len(found)}; tau minus the better of {paper} and local: {gains.mean():+.4f} ({below:+.4f} to "
            f"{above:+.4f}), worse on {worse}, better on {better} of {len(ordered)}"
        )
    for at, step in enumerate(STEPS):
        rivals = [(one.at["random crawled"][at][0], one.at[paper][at][0]) for one in found]
        wins = sum(random < other for random, other in rivals)
        yield f"+{step:g}n: random crawled / {paper}: {ratio(rivals)[0]:.2f}, better on {wins} of {len(found)}"
    yield ""


def _calibration(found: Sequence[Figures]) -> Iterable[str]:
    pairs = np.array([(one.error, one.spread) for one in found if one.spread > 0])
    if not pairs.size:
        return
    times = pairs[:, 0] / pairs[:, 1]
    quantiles = ", ".join(f"{value:.2f}" for value in np.quantile(times, [0.05, 0.25, 0.5, 0.75, 0.95]))
    yield (
        f"true error / summed standard error on {times.size} domains: quantiles 5, 25, 50, 75, 95 %: {quantiles}; "
        f"from {times.min():.2f} to {times.max():.2f}; covered by once, twice: "
        f"{np.mean(times <= 1):.0%}, {np.mean(times <= 2):.0%}"
    )


def _all(one: Figures) -> Iterable[Pair]:
    return (pair for pairs in one.at.values() for pair in pairs)


def _tau(pair: Pair) -> float:
    return float("nan") if pair[1] is None else pair[1]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def lines(found: Sequence[Figures]) -> Iterable[str]:
    """Yield a line per domain: L1 and tau at +n of the local ranking, the paper's and the chosen estimate."""
    yield _row(["domain", "pages", "local", " ".join(PAPER), " ".join(CHOSEN)])
    yield _row(["---", "--:", "--:", "--:", "--:"])
    for one in found:
        pairs = [one.local, *(one.at[" ".join(name)][1] for name in (PAPER, CHOSEN))]
        yield _row([one.name, str(one.pages), *(f"{pair[0]:.4f}, {_tau(pair):.3f}" for pair in pairs)])
    yield ""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of real graphs")
    parser.add_argument("--part", choices=("tuning", "test"), default="test")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each selector")
    parser.add_argument("--pages", action="store_true", help="print every domain")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)
    found = run(real(given.data), given.part, given.seeds)
    if not found:
        raise SystemExit(f"no real graph in {given.data}")
    if given.json:
        print(json.dumps({"schema": 1, "part": given.part, "domains": [asdict(one) for one in found]}, indent=1))
        return
    for line in [*(lines(found) if given.pages else []), *summary(found)]:
        print(line)


if __name__ == "__main__":
    main()
