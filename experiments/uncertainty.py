"""Compare possible measures of uncertainty of an estimated global rank with its true error where the web is known.

    python -m experiments.uncertainty [--data DIR] [--seeds 13 17] [--most 5000]

For each local domain of `local_domains.py` that the estimator was not tuned on, of at most `--most` pages, n pages
are fetched around it. Then the true error of the estimate (L1) is compared with the sum of the jackknife standard
errors, with the distance between the crawled and the frontier estimate, and with the change in the last three rounds.
None of them is a bound; the table shows by how much they miss. `surveyor community` prints no standard error, because
it is not calibrated. The output is Markdown.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.local_domains import Web, real, synthetic
from surveyor.arrays import FloatArray, IdArray, IntArray
from surveyor.estimate.community.community import community
from surveyor.estimate.community.estimators import KnownLinks, estimate
from surveyor.estimate.community.known_graph import rows_of
from surveyor.graph.csr import Graph
from surveyor.kernels.crawled_graph import CrawledGraph, build_crawled_graph

GROUPS = 8  # of batches
ROUGH = 1e-6  # tolerance


class Uncertainty(NamedTuple):
    """The true error and the measures of uncertainty of one domain."""

    error: float
    standard_error: float
    disagreement: float
    change: float


def links_of(graph: Graph) -> KnownLinks:
    """Return a function that returns the links known from a set of fetched pages."""
    rows, scratch = rows_of(graph), np.full(graph.pages, -1, np.int32)
    return lambda pages: build_crawled_graph(rows, pages, None, scratch)


def jackknife(
    known: CrawledGraph, local: IdArray, batch_of: IntArray, links: KnownLinks, damping: float = 0.85
) -> FloatArray | None:
    """Return the jackknife standard error of each local score of `auto`; None with fewer than two batches.

    The batches are divided into a few groups, and each group is left out in turn.
    """
    batches = np.unique(batch_of[batch_of > 0])
    groups = min(GROUPS, batches.size)
    if groups < 2:
        return None
    scores = np.empty((groups, local.size))
    for group in range(groups):
        kept = (batch_of == 0) | (np.searchsorted(batches, batch_of) % groups != group)
        rest = links(known.pages[kept])
        places = np.searchsorted(rest.pages, local).astype(np.int32)
        scores[group] = estimate(rest, places, batch_of[kept], damping=damping, tolerance=ROUGH).scores
    return np.asarray(np.sqrt((groups - 1) * scores.var(axis=0)))


def measure(webs: Iterable[Web], most: int) -> dict[str, list[Uncertainty]]:
    """Measure all domains, by the kind of domain."""
    found: dict[str, list[Uncertainty]] = defaultdict(list)
    for name, graph, domains in webs:
        for domain in domains:
            if domain.part == "tuning" or domain.pages.size > most:
                continue
            done = community(graph, domain.pages, extra="n", truth=True)
            if not done.extra.size:
                continue  # no link leaves it
            last = sum(one.change for one in done.rounds[-3:])
            spread = jackknife(done.known, done.pages, done.batch_of, links_of(graph), done.damping)
            total = 0.0 if spread is None else float(spread.sum())
            seen = Uncertainty(done.compare().l1, total, done.disagreement, last)
            found[f"{name.split()[0]}, {domain.family}"].append(seen)
            sys.stderr.write(f"{domain.name}: {seen}\n")
    return found


def table(found: dict[str, list[Uncertainty]]) -> Iterable[str]:
    """Yield the lines of a table: the errors, and how often and by how much they exceed the printed uncertainty."""
    yield "| | domains | median error | within std. error | within distance | error / std. error | error / distance |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for kind, seen in {**found, "all": [one for some in found.values() for one in some]}.items():
        error, standard_error, distance, _ = np.array(seen).T
        within = [f"{np.mean(error <= shown):.0%}" for shown in (standard_error, distance)]
        ratios = [f"{np.median(error / np.maximum(shown, 1e-12)):.2g}" for shown in (standard_error, distance)]
        yield f"| {kind} | {len(seen)} | {np.median(error):.4f} | {' | '.join(within + ratios)} |"


def main() -> None:
    """Run the experiment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of real graphs")
    parser.add_argument("--seeds", type=int, nargs="*", default=[13, 17], help="of synthetic webs")
    parser.add_argument("--most", type=int, default=5000, help="pages of a domain, at most")
    given = parser.parse_args()
    webs = chain(synthetic(tuple(given.seeds)), real(given.data) if given.data else ())
    for line in table(measure(webs, given.most)):
        sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
