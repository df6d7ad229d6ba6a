"""Compare the draws of TSE with those that an error needs: `python -m experiments.tse_draws [--runs 20]`.

With p the probability of a draw, the relative error of a domain with S supporters is √((1 − p)/(p·S)). So an error at a
rank needs p = 1/(1 + error²·S), with the S of that rank, which TSE does not know. Printed are the p that it used,
relative to the p needed, and the root mean square of the true error at that rank.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from surveyor.graph.synthetic.generate import rmat, synthetic_web
from surveyor.rank.domains.link_counts import supporters
from surveyor.rank.domains.tse import sampled_supporters

CASES = ((100, 0.05), (100, 0.1), (1000, 0.1), (1000, 0.3))  # ranks and errors


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Compare the draws of TSE with those that an error needs.")
    parser.add_argument("--runs", type=int, default=20)
    given = parser.parse_args(arguments)
    graphs = {
        "R-MAT 2^14": rmat(14, 12, rng=4),
        "web of domains": synthetic_web("domains", links=2_000_000, names=False).graph,
        "R-MAT 2^17": rmat(17, 16, rng=2),
    }
    print("| graph | rank | error | p used / p needed: mean, most | true error (RMS) |\n|---|--:|--:|--:|--:|")
    for name, graph in graphs.items():
        counts = supporters(graph).raw
        order = np.argsort(-counts, kind="stable")
        for top, error in CASES:
            node, count = int(order[top - 1]), float(counts[order[top - 1]])
            runs = [sampled_supporters(graph, top=top, error=error, rng=seed) for seed in range(given.runs)]
            ratios = np.array([run.method["p"] for run in runs]) * (1 + error**2 * count)
            misses = np.array([run.score(node) for run in runs]) / count - 1
            true = float(np.sqrt(np.mean(misses**2)))
            row = f"{ratios.mean():.2f}, {ratios.max():.2f} | {true:.3f}"
            print(f"| {name} | {top:,} | {error:.0%} | {row} |", flush=True)


if __name__ == "__main__":
    main()
