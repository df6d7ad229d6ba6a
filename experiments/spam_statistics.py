"""Bootstrap comparison of two rankings by their bad domains, and a figure of the positions of bad domains.

`compare_by_bootstrap` tests whether a difference could be due to which bad domains happen to be listed: it resamples
the list. Domains that were created together (a farm) are not independent; with `groups` they are drawn together. A
difference that rests on few entries is judged with one more on each side: four entries on one side, and none on the
other, occur at random one time in eight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from surveyor.arrays import AnyIntArray, BoolArray, FloatArray, IntArray
from surveyor.errors import UsageError
from surveyor.rank.spam import BadDomains, area_terms
from surveyor.report.line_plots import MARKS
from surveyor.report.numbers import printable
from surveyor.report.svg import INK, LINES, SIZE, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DRAWS = 2_000


DRAWN_AT_ONCE = 1 << 22  # random numbers held in memory at a time


Measure = Literal["count", "area"]


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference in admitted bad domains between two rankings, with a bootstrap interval."""

    one: str
    other: str
    measure: Measure
    difference: float  # negative: the first ranking admits fewer
    low: float  # lower end of the 95 % interval
    high: float  # upper end
    better: float  # share of draws in which the first ranking admits fewer
    worse: float  # share of draws in which it admits more

    @property
    def sure(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain values."""
        return asdict(self)


def compare_by_bootstrap(
    one: tuple[str, AnyIntArray],
    other: tuple[str, AnyIntArray],
    first: int,
    *,
    measure: Measure = "count",
    groups: AnyIntArray | None = None,
    draws: int = DRAWS,
    rng: int | np.random.Generator = 7,
) -> Difference:
    """Compare two rankings by the bad domains among their first `first` domains.

    Parameters
    ----------
    one, other : a name, and the position of each bad domain as `positions_in` returns them, the same domains in both;
        those of several graphs may be concatenated.
    measure : "count" of bad domains among the first, or "area" under u(r), here the sum of u(r) for r up to `first`.
    groups : a number per bad domain; those with the same number are drawn together.
    """
    if first < 1 or draws < 1:
        raise UsageError(f"{draws} draws of the first {first} domains", hint="give 1 or more of both")
    worth = [_worth(np.asarray(places, np.int64), first, measure) for _, places in (one, other)]
    if worth[0].shape != worth[1].shape:
        raise UsageError(
            f"places of {worth[0].size:,} and {worth[1].size:,} bad domains", hint="give the same domains in both"
        )
    gaps = worth[0] - worth[1]
    if groups is not None:
        number = np.unique(np.asarray(groups), return_inverse=True)[1]
        if number.shape != gaps.shape:
            raise UsageError(f"{number.size:,} groups for {gaps.size:,} bad domains", hint="give one group per domain")
        gaps = np.bincount(number, gaps).astype(np.float64)
    sums = _drawn_sums(gaps, draws, np.random.default_rng(rng))
    low, high = np.quantile(sums, [0.025, 0.975], method="inverted_cdf")
    return Difference(
        one[0], other[0], measure, float(gaps.sum()), float(low), float(high),
        float(np.mean(sums < 0)), float(np.mean(sums > 0)),
    )  # fmt: skip


def _worth(places: IntArray, first: int, measure: Measure) -> FloatArray:
    """Return the contribution of each bad domain to the count or to the area."""
    return ((places <= first) if measure == "count" else area_terms(places, first)).astype(np.float64)


def _drawn_sums(gaps: FloatArray, draws: int, rng: np.random.Generator) -> FloatArray:
    """Draw as many gaps as there are, with replacement, `draws` times; return the sum of each draw."""
    nonzero: BoolArray = gaps != 0
    if not nonzero.any():
        return np.zeros(draws)
    size = float(np.abs(gaps[nonzero]).mean())
    values, counts = np.unique(np.concatenate([gaps, [size, -size]]), return_counts=True)
    total, chances = int(counts.sum()), counts / counts.sum()
    at_once = max(1, DRAWN_AT_ONCE // values.size)
    parts = [
        rng.multinomial(total, chances, min(at_once, draws - start)) @ values for start in range(0, draws, at_once)
    ]
    return np.concatenate(parts)


STEP = 0.3  # inches between the rows of a figure of places


FINE = 60  # strokes in a stretch of a factor e: more are not told apart


NAME = 20  # characters of the name of a row


def places_plot(found: Sequence[BadDomains], first: int | None = None) -> str:
    """Draw a row for each ranking with a stroke at each bad domain, the first one marked and numbered."""
    end = max((here.ranked for here in found), default=0) if first is None else first
    end = max(end, 1)

    def draw(axes: Axes) -> None:
        for row, here in enumerate(found):
            color = LINES[row % len(LINES)]
            places = here.positions[here.positions <= end]
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


def _told(first: int | None, end: int) -> str:
    return "none" if first is None else f"{first:,}" if first <= end else f"after {end:,}"


def _short(name: str) -> str:
    shown = printable(name)
    return shown if len(shown) <= NAME + 1 else f"{shown[:NAME]}…"
