"""Figures of a community as SVG text: how its rank settled, and what the web around it changed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from surveyor.report.numbers import printable
from surveyor.report.race_plots import lines_plot
from surveyor.report.svg import INK, ONE, SIZE, TWO, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from surveyor.arrays import FloatArray, IntArray
    from surveyor.estimate.community.result import CommunityRank

POINTS = 3000  # of a cloud: more are not told apart, and make a file large
LABELS, LINE = 7, 0.055  # pages named in a figure; the height of a name in parts of the axis
MOST = 7  # ticks of an axis
NAME = 30  # characters of such a name
GAP = 12  # points between two figures


def convergence_plot(found: CommunityRank) -> str:
    """Draw how far each round moved the ranks, and, where the truth is known, how far from it they were."""
    rounds = found.rounds[1:]
    series = {"moved by a round": ([one.read for one in rounds], [one.moved for one in rounds])}
    if found.errors:
        series["distance from the truth"] = ([one.read for one in found.rounds], list(found.errors))
    return lines_plot(
        series,
        x_title="pages read outside",
        y_title="L1 distance",
        label="how far each round moved the ranks of the local pages",
        log_y=True,
    )


def changes_plot(found: CommunityRank) -> str:
    """Draw how many times its local share the estimated share of each page is; name those that moved most."""
    shown, times = _spaced(found), found.scores / found.local
    low, high = float(times.min()), float(times.max())
    ends = (min(low, 0.95) / 1.1, max(high, 1.05) * 1.1)
    across = (float(found.local.min()) / 1.3, float(found.local.max()) * 1.3)

    def draw(axes: Axes) -> None:
        axes.loglog(across, (1, 1), color=INK, linewidth=0.8)
        axes.plot(found.local[shown], times[shown], "o", color=ONE, markersize=3, alpha=0.55, markeredgewidth=0)
        for entry, left in _named(found, times, ends, across):
            at = float(found.local[entry]), float(times[entry])
            if found.spread is not None:
                off = float(found.spread[entry] / found.local[entry])
                axes.plot([at[0], at[0]], [max(at[1] - off, ends[0]), at[1] + off], color=TWO, linewidth=1.2)
            axes.plot(*at, "o", color=TWO, markersize=4.5)
            axes.annotate(
                _short(found, entry), at, xytext=(-7 if left else 7, 0), textcoords="offset points", fontsize=8,
                color=INK, ha="right" if left else "left", va="center", annotation_clip=True,
            )  # fmt: skip
        axes.set_xlim(across)
        axes.set_ylim(ends)
        axes.set_xlabel("share by local links alone")
        axes.set_ylabel("estimated share, times that")
        axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.12f}".rstrip("0").rstrip(".") + " %")
        axes.set_yticks(_ticks(*ends))
        axes.yaxis.set_major_formatter(lambda value, _: f"× {value:.3g}")

    label = "estimated global share of each local page, in times of its share by local links alone"
    return figure(draw, label, label, (SIZE[0], SIZE[1] * 1.15))


def _ticks(low: float, high: float) -> list[float]:
    """Choose round factors that tell a range, 1 among them: the finest that are not too many.

    >>> _ticks(0.45, 1.7), _ticks(0.9, 40.0)
    ([0.5, 0.7, 1.0, 1.4], [1.0, 2.0, 5.0, 10.0, 20.0])
    """
    powers = [10.0**power for power in range(-12, 13)]
    scales = (
        [0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4],
        [0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0],
        [number * power for power in powers for number in (1, 2, 5)],
        powers,
    )
    told = [[factor for factor in scale if low <= factor <= high] for scale in scales]
    fits = (factors for scale, factors in zip(scales, told, strict=True)
            if len(factors) <= MOST and scale[0] <= low * 1.3 and scale[-1] >= high / 1.3)  # fmt: skip
    return next(fits, told[-1])


def both_plots(found: CommunityRank) -> str:
    """Put both figures into one: what changed above, how it settled below."""
    parts = [changes_plot(found), *([convergence_plot(found)] if len(found.rounds) > 1 else [])]
    sizes = [[float(number) for number in re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', part)[0]] for part in parts]
    top, inner = 0.0, []
    for part, (width, height) in zip(parts, sizes, strict=True):
        placed = f'<svg y="{top:g}" width="{width:g}" height="{height:g}" viewBox='
        inner.append(part.replace("<svg viewBox=", placed, 1))
        top += height + GAP
    wide = max(width for width, _ in sizes)
    head = f'<svg viewBox="0 0 {wide:g} {top - GAP:g}" xmlns:xlink="http://www.w3.org/1999/xlink">'
    return "\n".join([head, *inner, "</svg>"])


def _spaced(found: CommunityRank) -> IntArray:
    """Choose points of a cloud: all of a small one; of a large one the best, and others evenly."""
    order = np.argsort(-np.maximum(found.local, found.scores), kind="stable")
    if order.size <= POINTS:
        return order
    best, rest = order[: POINTS // 2], order[POINTS // 2 :]
    step = -(-rest.size // (POINTS // 2))
    return np.concatenate([best, rest[::step]])


def _named(
    found: CommunityRank, times: FloatArray, ends: tuple[float, float], across: tuple[float, float]
) -> list[tuple[int, bool]]:
    """Choose pages that moved most and whose names do not cover each other; say which have it at their left."""
    by_move = np.argsort(-np.abs(found.scores - found.local), kind="stable")[: 10 * LABELS]
    chosen: list[tuple[int, bool]] = []
    taken: list[float] = []
    for entry in by_move.tolist():
        up = _part(float(times[entry]), ends)
        if times[entry] != 1 and all(abs(up - other) > LINE for other in taken):
            chosen.append((entry, _part(float(found.local[entry]), across) > 0.5))
            taken.append(up)
        if len(chosen) == LABELS:
            break
    return chosen


def _part(value: float, ends: tuple[float, float]) -> float:
    """Return where a value lies on a logarithmic axis, from 0 to 1."""
    return float(np.log(value / ends[0]) / np.log(ends[1] / ends[0]))


def _short(found: CommunityRank, entry: int) -> str:
    """Return the end of a name, which tells pages of one site apart."""
    name = found.name(int(found.pages[entry]))
    shown = printable(re.sub(r"^\w+://([^/]*(?=/.))?", "", name))
    return shown if len(shown) <= NAME else f"…{shown[-NAME:]}"
