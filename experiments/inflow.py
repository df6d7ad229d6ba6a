"""Share of the rank flowing into a local domain that comes from the fetched pages, and the remaining error.

    python -m experiments.inflow [--data DIR] [--pages 400000] [--seeds 3]

The impact of an outside page is the probability that a surfer is on it and follows a link into the domain
(`estimate/community/impact.py`); it needs the true ranks of the whole web. For each domain of `chosen_domains` whose
selectors differ: the share of the total impact in the extra pages, and the L1 error of the crawled estimate, for each
selector, at +2n (sites) or +n (topics), means over seeds. The output is Markdown.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from experiments.chosen_domains import Web, kind_of, real, synthetic
from experiments.local_domains import Domain
from surveyor.estimate.community.impact import impact
from surveyor.estimate.community.known_graph import ExpansionPlan, expand
from surveyor.rank.comparison import l1
from surveyor.rank.expansion import Select

CHOICES: tuple[Select, ...] = ("complement", "flow", "outlinks", "random")
ALIKE = 1.05  # domains whose errors are within this factor are omitted


def measure(web: Web, domain: Domain, seeds: int) -> list[tuple[float, float]]:
    """Return, for each selector, the share of the inflow from fetched pages and the remaining error."""
    inflow, truth = impact(web.graph, web.ranks, domain.pages), web.truth(domain)
    times = 2 if kind_of(domain) == "site" else 1
    found = []
    for choice in CHOICES:
        plans = [ExpansionPlan(times * domain.pages.size, choice, seed=seed) for seed in range(7, 7 + seeds)]
        done = [expand(web.graph, domain.pages, plan) for plan in plans]
        shares = [inflow[one.extra].sum() / max(inflow.sum(), 1e-300) for one in done]
        errors = [l1(one.expansion.local_ranks(), truth) for one in done]
        found.append((float(np.mean(shares)), float(np.mean(errors))))
    return found


def rows(webs: Iterator[Web], seeds: int) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"| domain | inflow fetched: {', '.join(CHOICES)} | L1 |"
    yield "|---|---|---|"
    for web in webs:
        for domain in web.domains:
            found = measure(web, domain, seeds)
            errors = [error for _, error in found]
            if max(errors) > ALIKE * min(errors):
                shares = " ".join(f"{share:.2f}" for share, _ in found)
                yield f"| {domain.name} | {shares} | {' '.join(f'{error:.4f}' for error in errors)} |"


def main() -> None:
    """Run the experiment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of real graphs")
    parser.add_argument("--pages", type=int, default=400_000, help="of the synthetic web")
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    webs = chain(real(given.data) if given.data else (), [synthetic(given.pages)])
    for line in rows(webs, given.seeds):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
