"""Why random pages are often as good as the selected ones for the estimator of the paper.

    python -m experiments.random_selection --data DIR [--part test]

The domains are those of `small_domains`, with n pages fetched by stochastic complementation or at random. *Fetched* is
the share of the rank flowing into the domain (by true ranks) that comes from fetched pages, *felt* the flow from them
in the ranks of `crawled`, relative to the true flow from all outside pages. Medians over the domains on which one of
the two is better by more than 3 %. The output is Markdown.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from experiments.local_domains import Domain
from experiments.small_domains import Web, real
from surveyor.arrays import FloatArray
from surveyor.estimate.community.estimators import estimate
from surveyor.estimate.community.impact import impact
from surveyor.estimate.community.known_graph import ExpansionPlan, expand
from surveyor.graph.csr import Graph
from surveyor.rank.expansion import Select
from surveyor.rank.pagerank import pagerank

CHOICES: tuple[Select, ...] = ("complement", "random")
CLEAR = 1.03


def measure(graph: Graph, ranks: FloatArray, domain: Domain) -> list[tuple[float, float, float]]:
    """Return, for each choice, the L1 error, and the shares of the inflow that were fetched and felt."""
    local, found = domain.pages, []
    truth, inflow = ranks[local] / ranks[local].sum(), impact(graph, ranks, domain.pages)
    for choice in CHOICES:
        done = expand(graph, local, ExpansionPlan(local.size, choice))
        known, everything = done.known, np.arange(done.known.pages.size, dtype=np.int32)
        scores = estimate(known, everything, done.batch_of, "crawled").scores
        inside = np.isin(known.pages, local)
        into = np.bincount(
            np.repeat(everything, known.degrees), weights=inside[known.indices], minlength=everything.size
        )
        felt = float((scores * into / np.maximum(known.degrees, 1))[~inside].sum() / scores[inside].sum())
        error = float(np.abs(scores[inside] / scores[inside].sum() - truth).sum())
        whole = max(float(inflow.sum()), 1e-300)
        found.append((error, float(inflow[known.pages].sum()) / whole, felt * float(ranks[local].sum()) / whole))
    return found


def table(webs: Iterable[Web], part: str) -> Iterable[str]:
    """Yield the lines of the table."""
    found = []
    for _, graph, domains in webs:
        ranks = pagerank(graph, tolerance=1e-12).scores
        found += [measure(graph, ranks, domain) for domain in domains if domain.part == part]
    figures = np.array(found)  # domain, choice, figure
    yield "| | domains | L1: complement, random | fetched | felt |"
    yield "|---|--:|--:|--:|--:|"
    first, second = figures[:, 0, 0], figures[:, 1, 0]
    for name, chosen in (
        ("random is better", first > CLEAR * second),
        ("complement is better", second > CLEAR * first),
    ):
        pairs = [np.median(figures[chosen, :, at], axis=0) for at in range(3)]
        cells = [f"{one:.3f}, {other:.3f}" for one, other in pairs]
        yield f"| {name} | {chosen.sum()} | {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of real graphs")
    parser.add_argument("--part", choices=("tuning", "test"), default="test")
    given = parser.parse_args(arguments)
    for line in table(real(given.data), given.part):
        print(line)


if __name__ == "__main__":
    main()
