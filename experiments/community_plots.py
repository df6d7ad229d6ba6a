"""Plot the error of a local domain against the number of extra pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from experiments.community_errors import ESTIMATORS, SELECTORS
from experiments.community_tables import LABELS, DomainRuns
from surveyor.report.numbers import tiny
from surveyor.report.svg import DASHES, INK, LINES, MARKS, SIZE, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOOKS: dict[str, dict[str, Any]] = {
    "crawled": {"linestyle": "-"},
    "frontier": {"dashes": DASHES, "linewidth": 1.3},
    "auto": {"dashes": (1, 1.5), "linewidth": 1.6},
}
LEGEND = 0.7  # inches
FLOOR = 1e-6  # smaller errors are drawn here: they are errors of the solver


def plot(found: DomainRuns) -> str:
    """Plot L1 against extra pages for each selector, one line for each estimator; the first seed."""
    first = {run.select: run for run in reversed(found.runs) if run.curve}

    def draw(axes: Axes) -> None:
        from matplotlib.ticker import LogLocator

        lines, names = [], []
        for number, select in enumerate(SELECTORS):
            for estimator, points in first[select].curve.items():
                drawn = axes.plot(
                    [at for at, _ in points],
                    [max(error, FLOOR) for _, error in points],
                    color=LINES[number],
                    marker=MARKS[number] if estimator == "crawled" else None,
                    markersize=4,
                    **LOOKS[estimator],
                )
                if estimator == "crawled":
                    lines += drawn
                    names.append(LABELS[select])
        for estimator in ESTIMATORS:
            lines += axes.plot([], [], color=INK, **LOOKS[estimator])
            names.append(estimator)
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(lambda value, _: tiny(value))
        axes.set_xlabel(f"extra pages, as multiples of the local pages ({found.pages:,})")
        axes.set_ylabel("L1 error")
        axes.set_title(found.name, fontsize=11)
        axes.figure.legend(lines, names, loc="outside lower center", ncols=4, fontsize=10)

    label = f"L1 error of the ranks of {found.name} against extra pages, for each selector and estimator"
    return figure(draw, label, found.name, (SIZE[0], SIZE[1] + LEGEND))
