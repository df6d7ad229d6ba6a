"""Evaluate how well a ranking keeps bad domains out of its top, and compare two rankings.

A crawler gives large budgets to the first R domains of a ranking, so only these count, not the order of all. With
u(r) the number of bad domains among the first r, a ranking is described by the position of the first bad domain, by u
at a few r, and by the area under u. The area is a share of the worst case: 0 if no bad domain is among the first R, 1
if all are at the top.

`compare_by_bootstrap` tests whether a difference could be due to which bad domains happen to be listed: it resamples
the list. Domains that were created together (a farm) are not independent; with `groups` they are drawn together. A
difference that rests on few entries is judged with one more on each side, as four entries on one side, and none on the
other, occur at random one time in eight.

    >>> here = admitted("in", np.array([4, 2, 0, 3, 1]), np.array([0, 2]))
    >>> here.first, here.among(2), here.curve(np.arange(1, 6)).tolist()
    (2, 1, [0, 1, 2, 2, 2])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from surveyor.arrays import AnyIntArray, BoolArray, FloatArray, IntArray, read_only
from surveyor.errors import UsageError

AT = (10, 100, 1_000, 10_000, 100_000)
DRAWS = 2_000
DRAWN_AT_ONCE = 1 << 22  # random numbers held in memory at a time
BEYOND = np.iinfo(np.int64).max  # the position of a domain that a truncated ranking does not include

Measure = Literal["count", "area"]


@dataclass(frozen=True, slots=True, eq=False)
class Admitted:
    """The positions of the bad domains in one ranking."""

    name: str
    places: IntArray  # of the bad domains that were ranked, ascending; 1 is the best
    ranked: int  # number of domains in the ranking
    bad: int  # number of bad domains

    @property
    def first(self) -> int | None:
        """The position of the first bad domain."""
        return int(self.places[0]) if self.places.size else None

    def among(self, first: int) -> int:
        """Count the bad domains among the first `first`."""
        return int(np.searchsorted(self.places, first, "right"))

    def curve(self, at: AnyIntArray) -> IntArray:
        """Count the bad domains among the first r, for several r."""
        return np.searchsorted(self.places, at, "right")

    def area(self, first: int | None = None) -> float:
        """Return the area under the curve up to a position, as a share of the worst case."""
        end = self.ranked if first is None else min(first, self.ranked)
        worst = _depths(np.arange(1, min(self.bad, end) + 1), end).sum()
        return float(_depths(self.places, end).sum() / worst) if worst else 0.0

    def to_dict(self, at: Sequence[int] = AT) -> dict[str, Any]:
        """Return the figures as plain values; positions beyond the ranking are left out."""
        counts = {str(place): self.among(place) for place in at if place <= self.ranked}
        return {"score": self.name, "first_bad": self.first, "bad_among_first": counts, "area": self.area()}


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


@dataclass(frozen=True, slots=True)
class TopRow:
    """One position in several rankings."""

    position: int
    domains: tuple[int | None, ...]  # ids, one per ranking
    bad: tuple[bool, ...]


def admitted(name: str, order: AnyIntArray, bad: AnyIntArray) -> Admitted:
    """Return the positions of bad domains in a ranking, given as ids, best first; it may be truncated."""
    places = bad_places(order, bad)
    ranked = np.sort(places[places < BEYOND])
    return Admitted(name, read_only(ranked), int(np.asarray(order).size), int(places.size))


def bad_places(order: AnyIntArray, bad: AnyIntArray) -> IntArray:
    """Return the position of each bad domain, in the order of `bad`; `BEYOND` if the ranking does not include it."""
    ids, asked = np.asarray(order, np.int64), np.asarray(bad, np.int64)
    if np.unique(asked).size < asked.size:
        raise UsageError("a bad domain is listed twice", hint="give each id once")
    if ids.size == 0 or asked.size == 0:
        return np.full(asked.size, BEYOND)
    by_id = np.argsort(ids, kind="stable")
    rising = ids[by_id]
    if (rising[1:] == rising[:-1]).any():
        raise UsageError("a ranking names a domain twice", hint="give each id once, best first")
    at = np.minimum(np.searchsorted(rising, asked), ids.size - 1)
    return np.where(rising[at] == asked, by_id[at] + 1, BEYOND)


def top_lists(orders: Mapping[str, AnyIntArray], bad: AnyIntArray, count: int = 15) -> list[TopRow]:
    """Tabulate the tops of several rankings and flag the bad domains."""
    flagged = set(np.asarray(bad).tolist())
    columns = [np.asarray(order)[:count].tolist() for order in orders.values()]
    rows = []
    for place in range(min(count, max(map(len, columns), default=0))):
        ids = tuple(column[place] if place < len(column) else None for column in columns)
        rows.append(TopRow(place + 1, ids, tuple(node in flagged for node in ids)))
    return rows


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
    one, other : a name, and the position of each bad domain as `bad_places` returns them, the same domains in both;
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
    return ((places <= first) if measure == "count" else _depths(places, first)).astype(np.float64)


def _depths(places: IntArray, end: int) -> IntArray:
    """Return for how many r up to `end` each position is among the first r."""
    depths: IntArray = end + 1 - np.minimum(places, end + 1)
    return depths


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
