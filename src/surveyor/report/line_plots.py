"""Line charts as SVG text.

Each line has one colour and one marker, so that colour is never the only distinction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.report.numbers import printable, tiny
from surveyor.report.svg import INK, LINES, SIZE, figure
from surveyor.simulation.race import thinned

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from numpy.typing import ArrayLike

    from surveyor.arrays import FloatArray

MARKS = "os^DvPX*"
POINTS = 300  # per curve
DASHES = (3, 2)
COLUMNS, ROW = 3, 0.22  # of the legend; the height of a row in inches


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
    """Draw up to eight named lines; values that are not finite, or not positive on a log axis, are omitted.

    `label` is the alternative text; `shares` formats y as percentages. A line keeps its colour if others have no
    points.
    """
    points = {name: _visible(x, y, log_x=log_x, log_y=log_y) for name, (x, y) in series.items()}

    def draw(axes: Axes) -> list[Line2D]:
        lines = []
        for place, (x, y) in enumerate(points.values()):
            lines += axes.plot(x, y, **line_style(place, x.size)) if x.size else []
        axes.set_xlabel(x_title)
        axes.set_ylabel(y_title)
        if shares:
            percent_axis(axes)
        return lines

    names = [name for name, (x, _) in points.items() if x.size]
    return draw_lines(draw, names, label, label, log_x=log_x, log_y=log_y)


def thinned_lines(
    lines: Mapping[str, FloatArray], goal: tuple[str, float] | None = None, *, x_title: str, label: str
) -> str:
    """Draw shares against a count from 1, thinned if long, and the goal."""

    def draw(axes: Axes) -> list[Line2D]:
        drawn: list[Line2D] = []
        for place, values in enumerate(lines.values()):
            at = thinned(values.size, POINTS)
            drawn += axes.plot(at, values[at - 1], **line_style(place, at.size))
        axes.set_ylim(0, 1.02)
        axes.set_xlabel(x_title)
        percent_axis(axes)
        if goal is not None:
            drawn.append(axes.axhline(goal[1], color=INK, linewidth=1, linestyle=(0, (1, 2))))
        return drawn

    names = [*lines, *([] if goal is None else [goal[0]])]
    return draw_lines(draw, names, label, label, log_x=True)


def draw_lines(
    draw: Callable[[Axes], list[Line2D]],
    names: list[str],
    label: str,
    salt: str,
    *,
    log_x: bool = False,
    log_y: bool = False,
) -> str:
    """Draw a figure with a legend below it."""

    def whole(axes: Axes) -> None:
        lines = draw(axes)
        for axis, log, scale in ((axes.xaxis, log_x, axes.set_xscale), (axes.yaxis, log_y, axes.set_yscale)):
            if log:
                scale("log")
                axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else tiny(value))
        blank = ["…"] * len(lines)
        legend = axes.figure.legend(lines, blank, loc="outside lower center", ncols=COLUMNS, fontsize=10)
        for text, name in zip(legend.get_texts(), names, strict=True):
            text.set_text(printable(name))  # set here, because matplotlib hides labels that start with _

    rows = -(-len(names) // COLUMNS)
    return figure(whole, label, salt, (SIZE[0], SIZE[1] + ROW * rows))


def _visible(x: ArrayLike, y: ArrayLike, *, log_x: bool, log_y: bool) -> tuple[FloatArray, FloatArray]:
    across, up = np.asarray(x, float), np.asarray(y, float)
    seen = np.isfinite(across) & np.isfinite(up)
    seen &= (across > 0) | (not log_x)
    seen &= (up > 0) | (not log_y)
    return across[seen], up[seen]


def line_style(place: int, points: int) -> dict[str, Any]:
    """Return colour and markers of a line; the markers of different lines are at different positions."""
    step = max(points // 5, 1)
    first = step * (place % len(MARKS)) // len(MARKS) if points > 2 * len(MARKS) else 0
    return {
        "color": line_color(place),
        "marker": MARKS[place % len(MARKS)],
        "markersize": 4.5,
        "markevery": (first, step),
        "linewidth": 1.8,
    }


def line_color(place: int) -> str:
    """Return the colour of a line."""
    return LINES[place % len(LINES)]


def percent_axis(axes: Axes) -> None:
    """Format the y axis as percentages."""
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")
