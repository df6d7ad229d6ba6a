"""Draw the figure of the README: `python -m experiments.readme_figure` writes docs/images/coverage.svg."""

from __future__ import annotations

import sys
from pathlib import Path

import surveyor as sv
from surveyor.report.race import coverage_plot
from surveyor.report.svg import alone

FILE = Path(__file__).parents[1] / "docs/images/coverage.svg"
STRATEGIES = ["random", "breadth", "rankmass"]


def main() -> None:
    """Compare three strategies on the small synthetic web and write their coverage curves."""
    race = sv.simulate(sv.synthetic_web("small").graph, STRATEGIES, sv.Coverage(0.9), rng=7)
    FILE.write_text(alone(coverage_plot(race)) + "\n", "utf-8")
    sys.stdout.write(f"wrote {FILE.name}\n")


if __name__ == "__main__":
    main()
