"""Draw the figure of the README: `python -m experiments.readme_figure` writes docs/images/coverage.svg.

The web and its single seed were chosen so that the bounds differ visibly. On smaller webs from ten seeds (the preset
`small`: 162 pages against 115 for 90 %) the sampled goal took more pages than the certified one.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import surveyor as sv
from surveyor.crawler.loop import Tally, crawl
from surveyor.crawler.strategies.rankmass import RankMass
from surveyor.graph.synthetic.generate import WebShape
from surveyor.report.svg import INK, alone, draw_lines, line_style, percent_axis
from surveyor.simulation.scenario import RaceSetup, SimulationOptions, optimal_coverage, set_up
from surveyor.simulation.simulate import NullJournal, RunRecorder, finish
from surveyor.stopping import silent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    from surveyor.arrays import FloatArray

FILE = Path(__file__).parents[1] / "docs/images/coverage.svg"
WEB = WebShape(pages=50_000, external=0.5, menu=3.0, dangling=0.1)  # a large web seen from one seed
GOALS = (0.9,)  # sampled one after the other, then the last one certified; each one makes the next harder
CONFIDENCE, RNG = 0.95, 7


def curves() -> dict[str, FloatArray]:
    """Crawl the web once in RankMass order; return its bounds and its true coverage after each page."""
    graph = sv.synthetic_web(WEB).graph
    options = SimulationOptions(samples=0)
    scenario = set_up(graph, sv.pagerank(graph).top(1).tolist(), options, np.random.default_rng([RNG, 0]))
    truth = scenario.truth().scores
    recorder = RunRecorder(
        RankMass(), RaceSetup(scenario, truth, sv.Coverage(GOALS[-1], CONFIDENCE), options, RNG, silent)
    )
    recorder.state.begin(recorder.setup.generator())
    source = recorder.source()
    tally = Tally(watch=recorder.record, clock=lambda: 0.0, secret=lambda: f"{RNG}:{len(recorder.order)}")
    for goal in (*(sv.Coverage(share, CONFIDENCE) for share in GOALS), sv.Coverage(GOALS[-1])):
        finish(crawl(recorder.state, source, NullJournal(), goal, tally=tally))
    recorder.at_least[-1] = recorder.state.ledger.coverage().at_least  # the last push follows the last page
    found = {
        "best possible order": optimal_coverage(truth, scenario.outcomes)[: len(recorder.order)],
        "true coverage": np.array(recorder.true),
        "sampled, 95 %": np.array(recorder.sampled),
        "certified": np.array(recorder.at_least),
    }
    for name, curve in found.items():
        sys.stdout.write(f"{name}: {GOALS[-1]:.0%} after {1 + int((curve >= GOALS[-1]).argmax()):,} pages\n")
    return found


def plot(curves: dict[str, FloatArray]) -> str:
    """Plot the curves on linear axes, where the pages saved are seen; the first half of the coverage is cut off."""

    def draw(axes: Axes) -> list[Line2D]:
        lines: list[Line2D] = []
        for place, curve in enumerate(curves.values()):
            lines += axes.plot(np.arange(1, curve.size + 1), curve, **line_style(place, curve.size))
        axes.set_ylim(0.5, 1.0)
        axes.set_xlim(0, None)
        axes.set_xlabel("pages fetched")
        percent_axis(axes)
        return [*lines, axes.axhline(GOALS[-1], color=INK, linewidth=1, linestyle=(0, (1, 2)))]

    label = "importance captured against pages fetched by one crawl: true, sampled and certified"
    return draw_lines(draw, [*curves, f"goal: {100 * GOALS[-1]:g} %"], label, label)


def main() -> None:
    """Write the figure."""
    FILE.write_text(alone(plot(curves())) + "\n", "utf-8")
    sys.stdout.write(f"wrote {FILE.name}\n")


if __name__ == "__main__":
    main()
