"""Matplotlib figures as SVG text for the HTML reports.

The page defines the colours --ink, --grid and --one to --eight, so that a figure follows light and dark mode. The
same drawing gives the same bytes.
"""

from __future__ import annotations

import io
import re
import warnings
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from surveyor.errors import MissingExtra
from surveyor.report.html_page import text

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

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
            file,
            format="svg",
            transparent=True,
            metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")),
        )
    return _for_page(file.getvalue(), label)


def check_plots() -> None:
    """Raise MissingExtra if matplotlib is not installed, before any work is done."""
    if find_spec("matplotlib") is None:
        raise MissingExtra("a plot", "matplotlib", "report")


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
        r'<svg [^>]*?viewBox="([^"]*)"[^>]*>',
        lambda match: f'<svg viewBox="{match[1]}" {attributes}>',
        svg,
        count=1,
    )
    svg = re.sub(r"font: (?:normal )?([\d.]+px) [^;\"]*", r"font-size: \1", svg)
    for color, variable in VARIABLES.items():
        svg = svg.replace(color, variable)
    return svg.strip()
