"""Figures of a race as SVG text: what was captured, how sure that was, how good the estimates were.

Each strategy has one colour and one mark in all figures, so that colour alone tells nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.report.numbers import printable, tiny
from surveyor.report.race import share
from surveyor.report.svg import INK, LINES, SIZE, figure
from surveyor.simulation.race import thinned

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from numpy.typing import ArrayLike

    from surveyor.arrays import FloatArray
    from surveyor.simulation.race import Race, Run

MARKS = "os^DvPX*"
POINTS = 300  # of a curve
DASHES = (3, 2)
COLUMNS, ROW = 3, 0.22  # of the legend; the height of a row in inches


def coverage_plot(race: Race) -> str:
    """Draw captured importance against pages read: true (solid) and guaranteed (dashed), and the best there is."""
    best = thinned(race.optimal.size, POINTS)

    def draw(axes: Axes) -> list[Line2D]:
        lines = []
        for place, run in enumerate(race.runs):
            reads = thinned(run.reads, POINTS)
            lines += axes.plot(reads, run.true[reads - 1], **_look(place, reads.size))
            axes.plot(reads, run.at_least[reads - 1], color=_color(place), dashes=DASHES, linewidth=1.5)
        lines += axes.plot(best, race.optimal[best - 1], color=INK, linewidth=1)
        axes.set_xlim(1, max(race.optimal.size, 2))
        axes.set_ylim(0, 1.02)
        axes.set_xlabel("pages read")
        _shares(axes)
        lines += axes.plot([], [], color=INK, dashes=DASHES, linewidth=1.5)
        if race.goal is not None:
            lines.append(axes.axhline(race.goal, color=INK, linewidth=1, linestyle=(0, (1, 2))))
        return lines

    names = [*_names(race), "best possible order", "guaranteed"]
    names += [] if race.goal is None else [f"goal: {share(race.goal)}"]
    return _drawn(draw, names, "importance captured against pages read, for each strategy", "coverage", log_x=True)


def gap_plot(race: Race) -> str:
    """Draw how far the two bounds lie apart, against pages read."""
    series = {}
    for name, run in zip(_names(race), race.runs, strict=True):
        reads = thinned(run.reads, POINTS)
        series[name] = (reads, run.at_most[reads - 1] - run.at_least[reads - 1])
    return lines_plot(
        series,
        x_title="pages read",
        y_title="at most − at least",
        log_x=True,
        shares=True,
        label="distance of the two bounds of coverage against pages read",
    )


def error_plot(race: Race) -> str:
    """Draw the L1 distance of estimated from true importance, against pages read; for runs with samples."""
    return _sampled(race, "l1", "L1 error", "L1 error of estimated importance against pages read", log_y=True)


def order_plot(race: Race) -> str:
    """Draw Kendall's correlation of the estimated with the true order, against pages read; for runs with samples."""
    return _sampled(race, "tau", "Kendall's tau", "rank correlation with the true order against pages read")


def lines_plot(
    series: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    x_title: str,
    y_title: str,
    label: str,
    log_x: bool = False,
    log_y: bool = False,
    shares: bool = False,
) -> str:
    """Draw up to eight named lines; values that are not finite, or not positive on a log axis, are left out.

    `label` says what is seen, for those who cannot see it; `shares` writes y as percentages. A line keeps its
    colour if others have no points.
    """
    points = {name: _visible(x, y, log_x=log_x, log_y=log_y) for name, (x, y) in series.items()}

    def draw(axes: Axes) -> list[Line2D]:
        lines = []
        for place, (x, y) in enumerate(points.values()):
            lines += axes.plot(x, y, **_look(place, x.size)) if x.size else []
        axes.set_xlabel(x_title)
        axes.set_ylabel(y_title)
        if shares:
            _shares(axes)
        return lines

    names = [name for name, (x, _) in points.items() if x.size]
    return _drawn(draw, names, label, label, log_x=log_x, log_y=log_y)


def thinned_lines(
    lines: Mapping[str, FloatArray], goal: tuple[str, float] | None = None, *, x_title: str, label: str
) -> str:
    """Draw shares against a count from 1 on, which may be long, and the share that was asked for."""

    def draw(axes: Axes) -> list[Line2D]:
        drawn: list[Line2D] = []
        for place, values in enumerate(lines.values()):
            at = thinned(values.size, POINTS)
            drawn += axes.plot(at, values[at - 1], **_look(place, at.size))
        axes.set_ylim(0, 1.02)
        axes.set_xlabel(x_title)
        _shares(axes)
        if goal is not None:
            drawn.append(axes.axhline(goal[1], color=INK, linewidth=1, linestyle=(0, (1, 2))))
        return drawn

    names = [*lines, *([] if goal is None else [goal[0]])]
    return _drawn(draw, names, label, label, log_x=True)


def _sampled(race: Race, field: str, title: str, label: str, *, log_y: bool = False) -> str:
    def values(run: Run) -> tuple[list[float], list[float]]:
        return [sample.reads for sample in run.samples], [getattr(sample, field) for sample in run.samples]

    series = {name: values(run) for name, run in zip(_names(race), race.runs, strict=True)}
    return lines_plot(series, x_title="pages read", y_title=title, label=label, log_x=True, log_y=log_y)


def _drawn(
    draw: Callable[[Axes], list[Line2D]],
    names: list[str],
    label: str,
    salt: str,
    *,
    log_x: bool = False,
    log_y: bool = False,
) -> str:
    """Make a figure with the names of its lines below it."""

    def whole(axes: Axes) -> None:
        lines = draw(axes)
        for axis, log, scale in ((axes.xaxis, log_x, axes.set_xscale), (axes.yaxis, log_y, axes.set_yscale)):
            if log:
                scale("log")
                axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else tiny(value))
        blank = ["…"] * len(lines)
        legend = axes.figure.legend(lines, blank, loc="outside lower center", ncols=COLUMNS, fontsize=10)
        for text, name in zip(legend.get_texts(), names, strict=True):
            text.set_text(printable(name))  # here, since a label that begins with _ is taken for a hidden one

    rows = -(-len(names) // COLUMNS)
    return figure(whole, label, salt, (SIZE[0], SIZE[1] + ROW * rows))


def _visible(x: ArrayLike, y: ArrayLike, *, log_x: bool, log_y: bool) -> tuple[FloatArray, FloatArray]:
    across, up = np.asarray(x, float), np.asarray(y, float)
    seen = np.isfinite(across) & np.isfinite(up)
    seen &= (across > 0) | (not log_x)
    seen &= (up > 0) | (not log_y)
    return across[seen], up[seen]


def _names(race: Race) -> list[str]:
    """Return the names of the strategies, numbered where two are the same."""
    names = [run.strategy for run in race.runs]
    return [
        name if names.count(name) == 1 else f"{name} {names[: place + 1].count(name)}"
        for place, name in enumerate(names)
    ]


def _look(place: int, points: int) -> dict[str, Any]:
    """Return colour and marks of a line; the marks of different lines stand at different places."""
    step = max(points // 5, 1)
    first = step * (place % len(MARKS)) // len(MARKS) if points > 2 * len(MARKS) else 0
    return {
        "color": _color(place), "marker": MARKS[place % len(MARKS)], "markersize": 4.5, "markevery": (first, step),
        "linewidth": 1.8,
    }  # fmt: skip


def _color(place: int) -> str:
    return LINES[place % len(LINES)]


def _shares(axes: Axes) -> None:
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")
