"""What the uncertainty shown beside a global rank is worth, where the whole web is known.

    python -m experiments.uncertainty [--data DIR] [--seeds 13 17] [--most 5000]

For each local domain of `local_domains.py` that the estimator was not tuned on, of at most so many pages, n pages
are read around it by SC-SELECT. Then the true error of the estimate (L1) stands beside what a user sees: the spread
over batches, the distance between the two plain estimates, and how far the last three rounds moved the ranks. None of
them is a bound, and the table says how far from one. The output is Markdown.
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

from experiments.local_domains import Web, made_up, real
from surveyor.estimate.community.community import community


class Seen(NamedTuple):
    """One domain: the true error, and what is shown."""

    error: float
    spread: float
    apart: float
    moved: float


def measure(webs: Iterable[Web], most: int) -> dict[str, list[Seen]]:
    """Measure all domains, by the kind of domain."""
    found: dict[str, list[Seen]] = defaultdict(list)
    for name, graph, domains in webs:
        for domain in domains:
            if domain.part == "tuning" or domain.pages.size > most:
                continue
            done = community(graph, domain.pages, extra="n", truth=True)
            if not done.extra.size:
                continue  # no link leaves it
            last = sum(one.change for one in done.rounds[-3:])
            seen = Seen(done.compare().l1, done.total_standard_error or 0.0, done.disagreement, last)
            found[f"{name.split()[0]}, {domain.family}"].append(seen)
            sys.stderr.write(f"{domain.name}: {seen}\n")
    return found


def table(found: dict[str, list[Seen]]) -> Iterable[str]:
    """Yield the lines of a table: how large errors are, and how often and by how much they exceed what is shown."""
    yield "| | domains | median error | error within spread | within distance | error / spread | error / distance |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for kind, seen in {**found, "all": [one for some in found.values() for one in some]}.items():
        error, spread, apart, _ = np.array(seen).T
        within = [f"{np.mean(error <= shown):.0%}" for shown in (spread, apart)]
        ratios = [f"{np.median(error / np.maximum(shown, 1e-12)):.2g}" for shown in (spread, apart)]
        yield f"| {kind} | {len(seen)} | {np.median(error):.4f} | {' | '.join(within + ratios)} |"


def main() -> None:
    """Run the experiment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of real graphs")
    parser.add_argument("--seeds", type=int, nargs="*", default=[13, 17], help="of made-up webs")
    parser.add_argument("--most", type=int, default=5000, help="pages of a domain, at most")
    given = parser.parse_args()
    webs = chain(made_up(tuple(given.seeds)), real(given.data) if given.data else ())
    for line in table(measure(webs, given.most)):
        sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
