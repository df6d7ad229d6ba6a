"""Matplotlib figures and line charts as SVG text for the HTML reports.

The page defines the colours --ink, --grid and --one to --eight, so that a figure follows light and dark mode. The
same drawing gives the same bytes. Each line of a chart has one colour and one marker, so that colour is never the only
distinction.
"""

from __future__ import annotations

import io
import re
import warnings
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.errors import MissingExtra
from surveyor.graph.formats.streams import atomic_write
from surveyor.report.html_page import text
from surveyor.report.numbers import printable, tiny
from surveyor.simulation.race import thinned

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from numpy.typing import ArrayLike

    from surveyor.arrays import FloatArray

# Placeholder colours, replaced by the variables of the page.
INK, GRID = "#010203", "#040506"
LINES = ("#070809", "#0a0b0c", "#0d0e0f", "#0d0f0e", "#0e0d0f", "#0e0f0d", "#0f0d0e", "#0f0e0d")
ONE, TWO = LINES[:2]
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight")
VARIABLES = {
    INK: "var(--ink)",
    GRID: "var(--grid)",
    **{color: f"var(--{word})" for color, word in zip(LINES, NUMBERS, strict=True)},
}
SIZE = (5.4, 3.3)  # inches
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 11,
    "text.color": INK,
    "text.parse_math": False,  # names may contain $
    "axes.edgecolor": GRID,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.which": "major",
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "lines.linewidth": 2.0,
    "legend.frameon": False,
}
NO_PLOTS = "Plots need matplotlib: pip install 'surveyor[report]', then write the report again."
MARKS = "os^DvPX*"
POINTS = 300  # per curve
DASHES, DOTTED = (3, 2), (6, 1.5, 1, 1.5)  # of a line: dashed, dash-dotted
COLUMNS, ROW = 3, 0.22  # of the legend; the height of a row in inches


def figure(draw: Callable[[Axes], None], label: str, salt: str, size: tuple[float, float] = SIZE) -> str:
    """Return the figure that `draw` draws; the label is its text alternative, the salt makes its ids unique."""
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("a plot", "matplotlib", "report") from error
    with mpl.rc_context({**STYLE, "svg.hashsalt": salt}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the reader's browser has other fonts
        canvas = Figure(figsize=size, layout="constrained")
        FigureCanvasSVG(canvas)
        axes = canvas.subplots()
        axes.tick_params(which="both", color=GRID)
        draw(axes)
        axes.minorticks_off()
        file = io.StringIO()
        canvas.savefig(
            file, format="svg", transparent=True, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))
        )
    return _for_page(file.getvalue(), label)


def can_plot() -> bool:
    """Return whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def check_plots() -> None:
    """Raise MissingExtra if matplotlib is not installed, before any work is done."""
    if not can_plot():
        raise MissingExtra("a plot", "matplotlib", "report")


def write_svg(svg: str, path: str | Path) -> None:
    """Write a figure as a standalone file, which appears when it is complete."""
    with atomic_write(Path(path)) as draft:
        draft.write_text(alone(svg), "utf-8")


def alone(svg: str) -> str:
    """Return a figure as a standalone file in the light colours of the reports."""
    css = files("surveyor.report").joinpath("page.css").read_text("utf-8")
    colours = "".join(re.findall(r"--[a-z]+: #\w+;", css[: css.index("}")]))
    style = f"svg {{ {colours} background: var(--paper); font-family: system-ui, sans-serif; }}"
    return re.sub(
        r'<svg viewBox="0 0 ([\d.]+) ([\d.]+)"([^>]*)>',
        lambda found: (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{found[1]}pt" height="{found[2]}pt" '
            f'viewBox="0 0 {found[1]} {found[2]}"{found[3]}><style>{style}</style>'
        ),
        svg,
        count=1,
    )


def _for_page(svg: str, label: str) -> str:
    """Remove the parts of a standalone file, and let the page choose colours and fonts."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<g|<path) id="[A-Za-z][\w.]*_\d+"', r"\1", svg)
    attributes = f'role="img" aria-label="{text(label)}" xmlns:xlink="http://www.w3.org/1999/xlink"'
    svg = re.sub(
        r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', lambda match: f'<svg viewBox="{match[1]}" {attributes}>', svg, count=1
    )
    svg = re.sub(r"font: (?:normal )?([\d.]+px) [^;\"]*", r"font-size: \1", svg)
    for color, variable in VARIABLES.items():
        svg = svg.replace(color, variable)
    return svg.strip()


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
        for label_text, name in zip(legend.get_texts(), names, strict=True):
            label_text.set_text(printable(name))  # set here, because matplotlib hides labels that start with _

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
