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
from surveyor.rank.bad_domains import BadDomains, area_terms
from surveyor.report.numbers import printable
from surveyor.report.svg import INK, LINES, MARKS, SIZE, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DRAWS = 2_000
DRAWN_AT_ONCE = 1 << 22  # random numbers held in memory at a time
ROW_HEIGHT = 0.3  # inches, of a figure of positions
STROKES = 60  # per factor e of the position: more cannot be distinguished
NAME = 20  # characters of the name of a row
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
    def significant(self) -> bool:
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
        raise UsageError(
            f"first and draws must be at least 1, got {first} and {draws}", hint="the default is 2,000 draws"
        )
    left, right = (_contributions(np.asarray(positions, np.int64), first, measure) for _, positions in (one, other))
    if left.shape != right.shape:
        raise UsageError(
            f"one and other must have as many positions, got {left.size:,} and {right.size:,}",
            hint="pass the same bad domains in both",
        )
    gaps = left - right
    if groups is not None:
        number = np.unique(np.asarray(groups), return_inverse=True)[1]
        if number.shape != gaps.shape:
            raise UsageError(
                f"groups must have one number for each of {gaps.size:,} bad domains, got {number.size:,}",
                hint="domains with the same number are drawn together",
            )
        gaps = np.bincount(number, gaps).astype(np.float64)
    sums = _drawn_sums(gaps, draws, np.random.default_rng(rng))
    low, high = np.quantile(sums, [0.025, 0.975], method="inverted_cdf")
    return Difference(
        one=one[0],
        other=other[0],
        measure=measure,
        difference=float(gaps.sum()),
        low=float(low),
        high=float(high),
        better=float(np.mean(sums < 0)),
        worse=float(np.mean(sums > 0)),
    )


def _contributions(positions: IntArray, first: int, measure: Measure) -> FloatArray:
    """Return the contribution of each bad domain to the count or to the area."""
    return ((positions <= first) if measure == "count" else area_terms(positions, first)).astype(np.float64)


def _drawn_sums(gaps: FloatArray, draws: int, rng: np.random.Generator) -> FloatArray:
    """Resample the gaps with replacement `draws` times; return the sum of each sample."""
    nonzero: BoolArray = gaps != 0
    if not nonzero.any():
        return np.zeros(draws)
    size = float(np.abs(gaps[nonzero]).mean())
    values, counts = np.unique(np.concatenate([gaps, [size, -size]]), return_counts=True)
    total, probabilities = int(counts.sum()), counts / counts.sum()
    at_once = max(1, DRAWN_AT_ONCE // values.size)
    parts = [
        rng.multinomial(total, probabilities, min(at_once, draws - start)) @ values
        for start in range(0, draws, at_once)
    ]
    return np.concatenate(parts)


def positions_plot(rankings: Sequence[BadDomains], first: int | None = None) -> str:
    """Draw a row for each ranking with a stroke at each bad domain, the first one marked and numbered."""
    end = max((bad.ranked for bad in rankings), default=0) if first is None else first
    end = max(end, 1)

    def draw(axes: Axes) -> None:
        for row, bad in enumerate(rankings):
            color = LINES[row % len(LINES)]
            positions = bad.positions[bad.positions <= end]
            shown = positions[np.unique((STROKES * np.log(positions)).astype(np.int64), return_index=True)[1]]
            axes.plot(shown, np.full(shown.size, row), "|", color=color, markersize=9, markeredgewidth=0.8)
            if bad.first is not None and bad.first <= end:
                axes.plot([bad.first], [row], MARKS[row % len(MARKS)], color=color, markersize=5.5)
            axes.annotate(
                _first_label(bad.first, end),
                (1.01, row),
                xycoords=("axes fraction", "data"),
                va="center",
                color=INK,
                fontsize=10,
            )
        axes.set_xscale("log")
        axes.set_xlim(0.8, end * 1.3)
        axes.set_ylim(len(rankings) - 0.4, -0.6)
        axes.set_yticks(range(len(rankings)), [_short(bad.name) for bad in rankings])
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.set_xlabel("position of the bad domains; at the right that of the first")
        axes.grid(visible=False, axis="y")

    label = "positions of the bad domains in each ranking"
    return figure(draw, label, label, (SIZE[0], 0.8 + ROW_HEIGHT * max(len(rankings), 1)))


def _first_label(first: int | None, end: int) -> str:
    return "none" if first is None else f"{first:,}" if first <= end else f"after {end:,}"


def _short(name: str) -> str:
    shown = printable(name)
    return shown if len(shown) <= NAME + 1 else f"{shown[:NAME]}…"
