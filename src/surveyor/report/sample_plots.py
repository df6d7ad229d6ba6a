"""Figures of a sample as SVG text: how an estimate settled, what the topic consists of, and what the weights do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.report.numbers import printable
from surveyor.report.samples import Breakdown
from surveyor.report.svg import GRID, INK, ONE, SIZE, TWO, figure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from surveyor.arrays import FloatArray, IntArray
    from surveyor.estimate.sampling.sample_result import Sample
    from surveyor.estimate.sampling.walk_trace import WalkTrace
    from surveyor.report.samples import Statistic

MOMENTS = 24  # at which the interval of an estimate is worked out
POINTS = 200  # of the line of one walk
WALKS = 32  # that are drawn
BARS = 15  # categories at most
NAME = 28  # characters of one
ROW = 0.27  # inches


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure, and what there is to see in it."""

    svg: str
    title: str
    about: str


def all_figures(
    sample: Sample, statistics: Sequence[Statistic], breakdowns: Sequence[Breakdown]
) -> dict[str, Drawn]:  # fmt: skip
    """Draw all that a sample has to show, by the name of a file; nothing if no step is on topic."""
    trace, figures = sample.weighted, dict[str, Drawn]()
    if not sample.has_estimates:
        return figures
    for number, one in enumerate([one for one in statistics if one.kind in ("share", "mean")], 1):
        about = "The estimate of all walks with its 95 % interval against pages asked for; thin lines are single walks."
        svg = running_plot(trace, sample.values(one.of), one.words, share=one.kind == "share")
        figures[f"running-{number}"] = Drawn(svg, f"How it settled: {printable(one.words)}", about)
    for found in _with_degrees(sample, breakdowns):
        numbers = bool(found.found.labels) and isinstance(found.found.labels[0], tuple)
        svg = bins_plot(found) if numbers else categories_plot(found)
        about = "Shares of the pages on topic; a line is the 95 % interval."
        figures[found.of.replace("_", "-")] = Drawn(svg, f"By {found.of.replace('_', ' ')}", about)
    about = (
        "Walks stand on pages with many neighbours more often than on others. Weights take that back: "
        "the plain bars are what holds for the pages on topic."
    )
    figures["weights"] = Drawn(weights_plot(sample), "What the weights do", about)
    return figures


def _with_degrees(sample: Sample, breakdowns: Sequence[Breakdown]) -> list[Breakdown]:
    """Add out-degrees, which every sample knows."""
    if any(one.of == "out_degree" for one in breakdowns):
        return list(breakdowns)
    return [*breakdowns, Breakdown("out_degree", sample.histogram("out_degree", edges_of(sample, "out_degree")))]


def running_plot(trace: WalkTrace, numbers: FloatArray, title: str, *, share: bool) -> str:
    """Draw an estimate and its interval against pages asked for, and what each walk alone says.

    Parameters
    ----------
    numbers : of each row of the trace; NaN where not known.
    """
    ends = _moments(trace)
    told = [_estimate(trace, numbers, end, share=share) for end in ends]
    known = [(int(trace.fetches[end - 1]), one) for end, one in zip(ends, told, strict=True) if one is not None]
    across = [fetches for fetches, _ in known]

    def draw(axes: Axes) -> None:
        for walk in np.unique(trace.walk)[:WALKS]:
            axes.plot(*_of_walk(trace, numbers, int(walk)), color=TWO, linewidth=0.7, alpha=0.45)
        if known:
            lows, highs = [one.low for _, one in known], [one.high for _, one in known]
            axes.fill_between(across, lows, highs, color=ONE, alpha=0.22, linewidth=0)
            axes.plot(across, [one.value for _, one in known], color=ONE, linewidth=2)
            _view(axes, lows, highs, share=share)
        axes.set_xlim(0, max(int(trace.fetches.max(initial=1)), 1))
        axes.set_xlabel("pages asked for")
        axes.set_ylabel(_short(title))
        axes.xaxis.set_major_formatter(lambda number, _: f"{number:,.0f}")
        if share:
            axes.yaxis.set_major_formatter(_percent)

    label = f"{printable(title)}: the estimate with its interval against pages asked for, and each walk alone"
    return figure(draw, label, label)


def _view(axes: Axes, lows: Sequence[float], highs: Sequence[float], *, share: bool) -> None:
    """Look at where the estimate ends up; what it was at the very beginning may lie outside."""
    late = slice(len(lows) // 4, None)
    low, high = min(lows[late]), max(highs[late])
    if not (math.isfinite(low) and math.isfinite(high)):
        return
    room = max(high - low, 1e-9) * 0.35
    axes.set_ylim(max(low - room, 0) if share else low - room, min(high + room, 1) if share else high + room)


def _moments(trace: WalkTrace) -> IntArray:
    """Return numbers of rows at which pages fetched are about equally far apart."""
    if not len(trace):
        return np.empty(0, np.int64)
    goals = np.linspace(trace.fetches[0], trace.fetches[-1], MOMENTS + 1)[1:]
    found: IntArray = np.unique(np.searchsorted(trace.fetches, goals, side="right"))
    return found


def _estimate(trace: WalkTrace, numbers: FloatArray, end: int, *, share: bool) -> Any:
    from surveyor.errors import UsageError
    from surveyor.estimate.sampling import estimates

    try:
        return (estimates.share if share else estimates.mean)(trace.rows(slice(0, end)), numbers[:end])
    except UsageError:  # nothing on topic so far
        return None


def _of_walk(trace: WalkTrace, numbers: FloatArray, walk: int) -> tuple[FloatArray, FloatArray]:
    """Return pages fetched and the estimate of one walk alone, thinned."""
    rows = np.flatnonzero((trace.walk == walk) & trace.on_topic & ~np.isnan(numbers))
    weight = trace.weight[rows]
    means = np.cumsum(weight * numbers[rows]) / np.cumsum(weight)
    at = np.unique(np.linspace(0, max(rows.size - 1, 0), POINTS).astype(np.int64)) if rows.size else rows
    return trace.fetches[rows][at].astype(float), means[at]


def categories_plot(breakdown: Breakdown) -> str:
    """Draw the largest categories with their intervals, the largest at the top."""
    shares, labels = breakdown.found.shares[:BARS], [_short(label) for label in breakdown.labels[:BARS]]
    up = np.arange(len(shares))[::-1]

    def draw(axes: Axes) -> None:
        axes.barh(up, [one.value for one in shares], color=ONE, height=0.62, alpha=0.85)
        _whiskers(axes.hlines, up, shares)
        axes.set_yticks(up, labels)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        axes.set_xlim(0, min(1.0, 1.08 * max((one.high for one in shares), default=1.0)))
        axes.set_xlabel("share of the pages on topic")
        axes.xaxis.set_major_formatter(_percent)

    label = f"share of the pages on topic by {breakdown.of}, with intervals"
    return figure(draw, label, label, (SIZE[0], max(1.6, 0.9 + ROW * len(shares))))


def bins_plot(breakdown: Breakdown) -> str:
    """Draw the bins of a number from left to right, with their intervals."""
    shares = breakdown.found.shares
    across = np.arange(len(shares))

    def draw(axes: Axes) -> None:
        axes.bar(across, [one.value for one in shares], color=ONE, width=0.8, alpha=0.85)
        _whiskers(axes.vlines, across, shares)
        axes.set_xticks(across, breakdown.labels, rotation=35, ha="right", fontsize=9)
        axes.grid(visible=False, axis="x")
        axes.set_xlabel(breakdown.of)
        axes.set_ylabel("share of the pages on topic")
        axes.yaxis.set_major_formatter(_percent)

    label = f"share of the pages on topic by {breakdown.of}, with intervals"
    return figure(draw, label, label)


def weights_plot(sample: Sample) -> str:
    """Draw how many neighbours pages have: of those that the walks stood on, and, weighted, of those on topic."""
    on = sample.trace.on_topic
    degree, weight = sample.trace.degree[on], sample.weighted.weight[on]
    edges = bins_of(float(degree.max(initial=1)))
    plain = np.histogram(degree, edges)[0] / max(degree.size, 1)
    counted = np.histogram(degree, edges, weights=weight)[0] / max(float(weight.sum()), 1e-300)
    across = np.arange(plain.size)

    def draw(axes: Axes) -> None:
        axes.bar(across - 0.2, plain, 0.38, color=TWO, label="steps of the walks", hatch="//", edgecolor=GRID)
        axes.bar(across + 0.2, counted, 0.38, color=ONE, label="pages on topic (weighted)")
        names = [f"{low:g}" if high - low == 1 else f"{low:g}-{high - 1:g}" for low, high in _pairs(edges)]
        axes.set_xticks(across, names, rotation=35, ha="right", fontsize=9)
        axes.grid(visible=False, axis="x")
        axes.set_xlabel("neighbours of a page (degree)")
        axes.yaxis.set_major_formatter(_percent)
        axes.legend(fontsize=9)

    label = "degrees of the pages that walks stood on, and of the pages on topic by weight"
    return figure(draw, label, label)


def bins_of(most: float) -> list[float]:
    """Return edges of bins of whole numbers that double.

    >>> bins_of(9.0)
    [0.0, 1.0, 2.0, 4.0, 8.0, 16.0]
    """
    return [0.0, *(2.0**power for power in range(math.floor(math.log2(max(most, 1.0))) + 2))]


def edges_of(sample: Sample, name: str) -> list[float]:
    """Return edges of bins for a number that pages have."""
    return bins_of(float(np.nanmax(sample.values(name), initial=1)))


def _pairs(edges: Sequence[float]) -> list[tuple[float, float]]:
    return list(pairwise(edges))


def _whiskers(lines: Callable[..., Any], at: IntArray, shares: Sequence[Any]) -> None:
    lines(at, [one.low for one in shares], [one.high for one in shares], color=INK, linewidth=1.3)


def _percent(number: float, _: float) -> str:
    return f"{100 * number:.3g} %"


def _short(name: str) -> str:
    shown = printable(name)
    return shown if len(shown) <= NAME else f"{shown[: NAME - 1]}…"
