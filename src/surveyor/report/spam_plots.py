"""Figures and a table of bad domains in rankings: how many are let in, where they stand, and the tops side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surveyor.report.numbers import printable
from surveyor.report.race_plots import MARKS, lines_plot
from surveyor.report.svg import INK, LINES, SIZE, figure
from surveyor.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from surveyor.rank.compare.spam import Admitted, TopRow

POINTS = 300  # of a curve
STEP = 0.3  # inches between the rows of a figure of places
FINE = 60  # strokes in a stretch of a factor e: more are not told apart
NAME = 20  # characters of the name of a row
FLAG = "!"


def admitted_plot(found: Sequence[Admitted], first: int | None = None) -> str:
    """Draw how many bad domains are among the first r of each ranking; a line begins at its first bad domain."""
    end = max((here.ranked for here in found), default=0) if first is None else first
    series = {}
    for here in found:
        last = max(min(end, here.ranked), 1)
        at = np.unique(np.geomspace(min(here.first or last, last), last, POINTS).astype(np.int64))
        series[here.name] = (at, here.curve(at))
    return lines_plot(
        series,
        x_title="first so many domains",
        y_title="bad ones among them",
        label="bad domains among the first so many, for each score",
        log_x=True,
        log_y=True,
    )


def places_plot(found: Sequence[Admitted], first: int | None = None) -> str:
    """Draw a row for each ranking with a stroke at each bad domain, the first one marked and numbered."""
    end = max((here.ranked for here in found), default=0) if first is None else first
    end = max(end, 1)

    def draw(axes: Axes) -> None:
        for row, here in enumerate(found):
            color = LINES[row % len(LINES)]
            places = here.places[here.places <= end]
            shown = places[np.unique((FINE * np.log(places)).astype(np.int64), return_index=True)[1]]
            axes.plot(shown, np.full(shown.size, row), "|", color=color, markersize=9, markeredgewidth=0.8)
            if here.first is not None and here.first <= end:
                axes.plot([here.first], [row], MARKS[row % len(MARKS)], color=color, markersize=5.5)
            axes.annotate(
                _told(here.first, end),
                (1.01, row),
                xycoords=("axes fraction", "data"),
                va="center",
                color=INK,
                fontsize=10,
            )
        axes.set_xscale("log")
        axes.set_xlim(0.8, end * 1.3)
        axes.set_ylim(len(found) - 0.4, -0.6)
        axes.set_yticks(range(len(found)), [_short(here.name) for here in found])
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.set_xlabel("position of the bad domains; at the right that of the first")
        axes.grid(visible=False, axis="y")

    label = "positions of the bad domains in each ranking"
    return figure(draw, label, label, (SIZE[0], 0.8 + STEP * max(len(found), 1)))


def top_table(scores: Sequence[str], rows: Sequence[TopRow], name: Callable[[int], str]) -> Table:
    """Put the tops of rankings side by side; a bad domain is marked."""
    cells = [
        [str(row.position), *("" if node is None else f"{FLAG} {name(node)}" if bad else name(node)
                              for node, bad in zip(row.domains, row.bad, strict=True))]
        for row in rows
    ]  # fmt: skip
    records = [
        [row.position, *(value for node, bad in zip(row.domains, row.bad, strict=True)
                         for value in (("", "") if node is None else (name(node), int(bad))))]
        for row in rows
    ]  # fmt: skip
    keys = ["position", *(key for score in scores for key in (score, f"{score}_bad"))]
    return Table(["", *scores], cells, keys, records, left=len(scores))


def _told(first: int | None, end: int) -> str:
    return "none" if first is None else f"{first:,}" if first <= end else f"after {end:,}"


def _short(name: str) -> str:
    shown = printable(name)
    return shown if len(shown) <= NAME + 1 else f"{shown[:NAME]}…"
