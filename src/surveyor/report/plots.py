"""Two figures as SVG text: how rank is shared out, and how the proven error fell.

The SVG is made for a page that defines the colours --ink, --grid, --one and --two, so that it follows light
and dark. The same ranking gives the same bytes.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.errors import MissingExtra
from surveyor.report.numbers import tiny

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from surveyor.arrays import FloatArray
    from surveyor.graph.csr import Graph
    from surveyor.rank.ranking import Ranking

# Colours that nothing else has, replaced by the variables of the page.
INK, GRID, ONE, TWO = "#010203", "#040506", "#070809", "#0a0b0c"
VARIABLES = {INK: "var(--ink)", GRID: "var(--grid)", ONE: "var(--one)", TWO: "var(--two)"}
POINTS = 400  # of a curve
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 11,
    "text.color": INK,
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


def share_plot(graph: Graph, ranking: Ranking) -> str:
    """Draw the share of each page against its position, and beside it the share of the links it receives."""
    shares = _falling(ranking.scores)
    links = _falling(np.diff(graph.in_links.indptr) / max(graph.links, 1))
    places = np.unique(np.geomspace(1, max(shares.size, 1), POINTS).astype(np.int64))

    def draw(axes: Axes) -> None:
        axes.loglog(places, shares[places - 1], color=ONE, label="share of the rank")
        received = links[places - 1]
        axes.loglog(places[received > 0], received[received > 0], color=TWO, dashes=(4, 2), label="share of all links")
        axes.set_xlabel("position of the page")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.12f}".rstrip("0").rstrip(".") + " %")
        axes.legend(loc="lower left")

    return _svg(draw, "share of the rank of each page, by position, and share of all links", "share")


def error_plot(ranking: Ranking) -> str:
    """Draw the proven error bound after each sweep, down to the tolerance."""
    bounds = np.asarray(ranking.history, float)
    sweeps = np.arange(1, bounds.size + 1)

    def draw(axes: Axes) -> None:
        from matplotlib.ticker import MaxNLocator

        few = bounds.size <= 40
        axes.semilogy(sweeps, bounds, color=ONE, marker="o" if few else None, markersize=4, label="proven error")
        axes.axhline(ranking.tolerance, color=TWO, dashes=(4, 2), label=f"asked for: {tiny(ranking.tolerance)}")
        axes.set_xlabel("sweeps")
        axes.yaxis.set_major_formatter(lambda value, _: tiny(value))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(loc="upper right")

    return _svg(draw, f"proven error after each of {bounds.size} sweeps", "error")


def _falling(values: FloatArray) -> FloatArray:
    return np.sort(values)[::-1]


def _svg(draw: Any, label: str, salt: str) -> str:
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("a plot", "matplotlib", "report") from error
    with mpl.rc_context({**STYLE, "svg.hashsalt": salt}):
        figure = Figure(figsize=(5.4, 3.3), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.subplots()
        axes.tick_params(which="both", color=GRID)
        draw(axes)
        axes.minorticks_off()
        file = io.StringIO()
        figure.savefig(
            file,
            format="svg",
            transparent=True,
            metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")),
        )
    return _for_page(file.getvalue(), label)


def _for_page(svg: str, label: str) -> str:
    """Keep the drawing, drop what belongs to a file of its own, and let the page choose colours and fonts."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<g|<path) id="[A-Za-z]+_\d+"', r"\1", svg)
    svg = re.sub(
        r'<svg [^>]*?viewBox="([^"]*)"[^>]*>',
        rf'<svg viewBox="\1" role="img" aria-label="{label}" xmlns:xlink="http://www.w3.org/1999/xlink">',
        svg,
        count=1,
    )
    svg = re.sub(r"font: (?:normal )?([\d.]+px) [^;\"]*", r"font-size: \1", svg)
    for color, variable in VARIABLES.items():
        svg = svg.replace(color, variable)
    return svg.strip()
