"""Figures of a sample as SVG: running estimates, shares of categories, and the effect of the weights."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.errors import UsageError
from surveyor.report.numbers import printable
from surveyor.report.sample import Breakdown, bin_edges, doubling_bins
from surveyor.report.svg import GRID, INK, ONE, SIZE, TWO, figure, write_svg

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes

    from surveyor.arrays import FloatArray, IntArray
    from surveyor.estimate.sampling.sample_result import Sample
    from surveyor.estimate.sampling.walk_trace import WalkTrace
    from surveyor.report.sample import SampleSummary

INTERVALS = 24  # intervals computed along a running estimate
POINTS = 200  # of the line of one walk
MAX_WALKS = 32  # drawn
MAX_BARS = 15  # categories
LABEL_LENGTH = 28  # characters
ROW_HEIGHT = 0.27  # inches


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with its title and caption."""

    svg: str
    title: str
    about: str


def all_figures(sample: Sample, summary: SampleSummary) -> dict[str, Figure]:
    """Return all figures of a sample by file name; none if no step is on topic, none of weights without walks."""
    trace, figures = sample.weighted, dict[str, Figure]()
    if not sample.has_estimates:
        return figures
    for number, one in enumerate([one for one in summary.statistics if one.kind in ("share", "mean")], 1):
        about = "The estimate with its 95 % interval against pages requested"
        about += "." if sample.independent else "; thin lines are single walks."
        svg = running_plot(trace, sample.values(one.of), one.label, share=one.kind == "share")
        figures[f"running-{number}"] = Figure(svg, f"Running estimate: {printable(one.label)}", about)
    for breakdown in _with_out_degrees(sample, summary.breakdowns):
        labels = breakdown.distribution.labels
        is_binned = bool(labels) and isinstance(labels[0], tuple)
        svg = bins_plot(breakdown) if is_binned else categories_plot(breakdown)
        about = "Shares of the pages on topic with 95 % intervals."
        figures[breakdown.of.replace("_", "-")] = Figure(svg, f"By {breakdown.of.replace('_', ' ')}", about)
    if sample.independent:
        return figures
    about = (
        "Walks visit pages with many neighbours more often than others. The weights correct for it: "
        "the plain bars estimate the distribution over the pages on topic."
    )
    figures["weights"] = Figure(weights_plot(sample), "Effect of the weights", about)
    return figures


def _with_out_degrees(sample: Sample, breakdowns: Sequence[Breakdown]) -> list[Breakdown]:
    """Add the distribution of out-degrees if it was not requested."""
    if any(one.of == "out_degree" for one in breakdowns):
        return list(breakdowns)
    return [*breakdowns, Breakdown("out_degree", sample.histogram("out_degree", bin_edges(sample, "out_degree")))]


def running_plot(trace: WalkTrace, numbers: FloatArray, title: str, *, share: bool) -> str:
    """Plot an estimate and its interval against pages requested, and the estimate of each walk.

    Parameters
    ----------
    numbers : value at each step; NaN where unknown.
    """
    ends = _interval_rows(trace)
    estimates = [_estimate(trace, numbers, end, share=share) for end in ends]
    known = [(int(trace.fetches[end - 1]), one) for end, one in zip(ends, estimates, strict=True) if one is not None]
    across = [fetches for fetches, _ in known]

    def draw(axes: Axes) -> None:
        for walk in np.unique(trace.walk)[:MAX_WALKS]:
            axes.plot(*_walk_estimate(trace, numbers, int(walk)), color=TWO, linewidth=0.7, alpha=0.45)
        if known:
            lows, highs = [one.low for _, one in known], [one.high for _, one in known]
            axes.fill_between(across, lows, highs, color=ONE, alpha=0.22, linewidth=0)
            axes.plot(across, [one.value for _, one in known], color=ONE, linewidth=2)
            _view(axes, lows, highs, share=share)
        axes.set_xlim(0, max(int(trace.fetches.max(initial=1)), 1))
        axes.set_xlabel("pages requested")
        axes.set_ylabel(_short(title))
        axes.xaxis.set_major_formatter(lambda number, _: f"{number:,.0f}")
        if share:
            axes.yaxis.set_major_formatter(_percent)

    label = f"{printable(title)}: the estimate with its interval against pages requested, and of each walk"
    return figure(draw, label, label)


def _view(axes: Axes, lows: Sequence[float], highs: Sequence[float], *, share: bool) -> None:
    """Set the y range to where the estimate settles; its start may lie outside."""
    late = slice(len(lows) // 4, None)
    low, high = min(lows[late]), max(highs[late])
    if not (math.isfinite(low) and math.isfinite(high)):
        return
    room = max(high - low, 1e-9) * 0.35
    axes.set_ylim(max(low - room, 0) if share else low - room, min(high + room, 1) if share else high + room)


def _interval_rows(trace: WalkTrace) -> IntArray:
    """Return numbers of rows at about equal distances in pages requested."""
    if not len(trace):
        return np.empty(0, np.int64)
    goals = np.linspace(trace.fetches[0], trace.fetches[-1], INTERVALS + 1)[1:]
    found: IntArray = np.unique(np.searchsorted(trace.fetches, goals, side="right"))
    return found


def _estimate(trace: WalkTrace, numbers: FloatArray, end: int, *, share: bool) -> Any:
    from surveyor.estimate.sampling import estimates

    try:
        return (estimates.share if share else estimates.mean)(trace.rows(slice(0, end)), numbers[:end])
    except UsageError:  # no step on topic yet
        return None


def _walk_estimate(trace: WalkTrace, numbers: FloatArray, walk: int) -> tuple[FloatArray, FloatArray]:
    """Return pages requested and the running estimate of one walk, thinned."""
    rows = np.flatnonzero((trace.walk == walk) & trace.on_topic & ~np.isnan(numbers))
    weight = trace.weight[rows]
    means = np.cumsum(weight * numbers[rows]) / np.cumsum(weight)
    at = np.unique(np.linspace(0, max(rows.size - 1, 0), POINTS).astype(np.int64)) if rows.size else rows
    return trace.fetches[rows][at].astype(float), means[at]


def categories_plot(breakdown: Breakdown) -> str:
    """Plot the largest categories with their intervals, the largest at the top."""
    shares, labels = breakdown.distribution.shares[:MAX_BARS], [_short(label) for label in breakdown.labels[:MAX_BARS]]
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
    return figure(draw, label, label, (SIZE[0], max(1.6, 0.9 + ROW_HEIGHT * len(shares))))


def bins_plot(breakdown: Breakdown) -> str:
    """Plot the bins of a number from left to right, with their intervals."""
    shares = breakdown.distribution.shares
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
    """Plot the distribution of degrees over steps and, weighted, over pages on topic."""
    on = sample.trace.on_topic
    degree, weight = sample.trace.degree[on], sample.weighted.weight[on]
    edges = doubling_bins(float(degree.max(initial=1)))
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

    label = "distribution of degrees over steps of the walks, and over pages on topic (weighted)"
    return figure(draw, label, label)


def _pairs(edges: Sequence[float]) -> list[tuple[float, float]]:
    return list(pairwise(edges))


def _whiskers(lines: Callable[..., Any], at: IntArray, shares: Sequence[Any]) -> None:
    lines(at, [one.low for one in shares], [one.high for one in shares], color=INK, linewidth=1.3)


def _percent(number: float, _: float) -> str:
    return f"{100 * number:.3g} %"


def _short(name: str) -> str:
    shown = printable(name)
    return shown if len(shown) <= LABEL_LENGTH else f"{shown[: LABEL_LENGTH - 1]}…"


def check_folder(folder: Path) -> None:
    """Reject a folder for figures that cannot be created or written."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--plot: {folder} is not a folder", hint="give the name of a folder")
    parent = folder if folder.is_dir() else folder.parent
    if not parent.is_dir():
        raise UsageError(f"--plot: {folder} cannot be created: {parent} does not exist", hint="create it with mkdir")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise UsageError(f"--plot: {parent} is not writable", hint="choose another folder, or change its permissions")


def write_figures(figures: Mapping[str, Figure], folder: Path) -> list[str]:
    """Write each figure to a file; return the file names."""
    if figures:
        folder.mkdir(exist_ok=True)
    for name, one in figures.items():
        write_svg(one.svg, folder / f"{name}.svg")
    return [f"{name}.svg" for name in figures]
