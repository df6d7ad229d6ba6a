"""Two figures as SVG text: how rank is shared out, and how the proven error fell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surveyor.report.numbers import tiny
from surveyor.report.svg import ONE, TWO, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from surveyor.arrays import FloatArray
    from surveyor.graph.csr import Graph
    from surveyor.rank.ranking import Ranking

POINTS = 400  # of a curve


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

    return figure(draw, "share of the rank of each page, by position, and share of all links", "share")


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

    return figure(draw, f"proven error after each of {bounds.size} sweeps", "error")


def _falling(values: FloatArray) -> FloatArray:
    return np.sort(values)[::-1]
