"""Figures of a survey as SVG text: how coverage grew, and how fast pages came."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surveyor.report.race import share
from surveyor.report.race_plots import lines_plot, thinned_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from surveyor.arrays import FloatArray
    from surveyor.survey.survey import History

BINS = 60


def coverage_plot(history: History, goal: float | None, truth: FloatArray | None = None) -> str:
    """Draw both bounds of coverage against pages read, the goal, and the truth where it is known."""
    lines: dict[str, FloatArray] = {"at least": history.at_least, "at most": history.at_most}
    if truth is not None:
        lines["in truth"] = truth
    mark = None if goal is None else (f"goal: {share(goal)}", goal)
    return thinned_lines(lines, mark, x_title="pages read", label="bounds of coverage against pages read")


def rate_plot(ended: Mapping[str, FloatArray]) -> str:
    """Draw how many pages were read, moved or failed per second; empty if the crawl took no time."""
    last = max((float(times.max()) for times in ended.values() if times.size), default=0.0)
    if last <= 0:
        return ""
    edges = np.linspace(0, last, min(BINS, max(2, int(last))) + 1)
    unit, word = (3600.0, "hours") if last > 3 * 3600 else (60.0, "minutes") if last > 180 else (1.0, "seconds")
    middles = (edges[:-1] + edges[1:]) / 2 / unit
    width = edges[1] - edges[0]
    series = {kind: (middles, np.histogram(times, edges)[0] / width) for kind, times in ended.items() if times.size}
    return lines_plot(
        series,
        x_title=f"{word} of crawling",
        y_title="per second",
        label="pages read, moved and failed per second over time",
    )
