"""Change rates of pages and optimal re-visit rates; the result is due times, not priorities.

**Change rates.** A page that changes at random moments (a Poisson process of rate λ) is found changed after an
interval τ with probability 1 - e^(-λτ), however often it changed in between. From n visits at equal intervals
I, X of which found a change, λ ≈ -ln((n - X + ½) / (n + ½)) / I: the maximum-likelihood answer with half an
unchanged visit added, which removes most of its bias and keeps it finite (Cho and Garcia-Molina 2003). For
irregular intervals the likelihood is largest where

    Σ_changed τ / (e^(λτ) - 1) = Σ_unchanged τ

Every estimate carries a 95 % interval: the rates that a score test does not reject, |U(λ)| ≤ 1.96 √J(λ), with U
the difference of the two sides above and J(λ) = Σ_all τ² / (e^(λτ) - 1) the information. At equal intervals this
is Wilson's interval for the share of changed visits, converted to rates. Without any change its lower end is 0; if
every visit found a change it has no upper end.

**Re-visit rates.** If page i has importance μ, changes at rate λ and is read at random moments at rate ρ, it is fresh
a share ρ/(ρ + λ) of the time. Among all rates that sum to a total and are not below a floor,

    ρ = max(floor, w √(μλ) - λ),   w such that they sum to the total,

has the largest Σ μ ρ/(ρ + λ) (Azar et al., PNAS 2018), because each page above its floor then gains the same,
1/w², from one more visit. The sum is piecewise linear in w, so sorting the pages by the w at which they leave
their floor gives w exactly, in O(n log n). A page that changes faster than w² times its importance gets no visits
above its floor: without a floor it is never read again, and its change rate is never learnt.

**Spacing.** Reading a page at regular intervals 1/ρ instead keeps it fresh (ρ/λ)(1 - e^(-λ/ρ)) of the time, at
least as much as ρ/(ρ + λ): following due times is no worse than the formula. The rates are optimal for random
spacing, not for regular spacing. For that, the interval T of each page satisfies

    μ ((1 - e^(-λT)) / λ - T e^(-λT)) = price

with the price at which the rates 1/T sum to the total; pages with μ/λ at or below the price are not read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt

from surveyor.arrays import BoolArray, FloatArray, IntArray
from surveyor.errors import UsageError

Values = npt.NDArray[Any] | Sequence[float]
Number = TypeVar("Number", float, FloatArray)

WIDTH = 1.959964  # standard errors of a 95 % interval
CLOSE = 1e-10  # relative error of a root
LEAST = 1e-100  # importance and rates below this share of the largest count as 0


@dataclass(frozen=True, slots=True)
class ChangeRate(Generic[Number]):
    """Estimated changes per unit of time with a 95 % confidence interval; scalars or one entry per page."""

    rate: Number
    low: Number
    high: Number


@overload
def change_rate(visits: float, changes: float, interval: float) -> ChangeRate[float]: ...
@overload
def change_rate(visits: Values, changes: Values, interval: Values | float) -> ChangeRate[FloatArray]: ...
def change_rate(visits: Any, changes: Any, interval: Any) -> Any:
    """Estimate the change rate from visits at equal intervals, with Wilson's interval.

    >>> found = change_rate(20, 5, interval=1.0)
    >>> round(found.rate, 3), round(found.low, 3), round(found.high, 3)
    (0.28, 0.119, 0.632)
    """
    n, x, length = (np.asarray(values, np.float64) for values in (visits, changes, interval))
    if not ((x >= 0) & (x <= n) & np.isfinite(n)).all():
        raise UsageError("changes must lie between 0 and the visits", hint="count visits after the first")
    _positive(length, "intervals")
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = WIDTH * np.sqrt(np.where(n > 0, x * (n - x) / n, 0.0) + WIDTH**2 / 4)
        same_most = (n - x + WIDTH**2 / 2 + spread) / (n + WIDTH**2)  # Wilson's limits of P(no change)
        same_least = (n - x + WIDTH**2 / 2 - spread) / (n + WIDTH**2)
        rate = -np.log((n - x + 0.5) / (n + 0.5)) / length
        low = np.where(x > 0, -np.log(same_most), 0.0) / length
        high = np.where(x < n, -np.log(same_least), np.inf) / length
    found = (np.abs(rate), low, high)
    return ChangeRate(*(float(value) for value in found)) if np.ndim(rate) == 0 else ChangeRate(*found)


def change_rate_irregular(intervals: npt.ArrayLike, changed: npt.ArrayLike) -> ChangeRate[float]:
    """Estimate the change rate of one page from the intervals between visits and whether each found a change.

    The result is the maximum-likelihood estimate. Without any change it is 0. If every visit found a change it would
    be infinite; instead Σ 1/(e^(λτ) - 1) = ½ is solved, the sum of the odds that each visit had found no change,
    which at equal intervals is the ½ of `change_rate`.

    >>> found = change_rate_irregular([1.0, 2.0, 4.0, 1.0], [False, True, True, False])
    >>> round(found.rate, 3), round(found.low, 3), round(found.high, 3)
    (0.47, 0.09, 1.44)
    """
    lengths = np.atleast_1d(np.asarray(intervals, np.float64))
    found = change_rates(np.zeros(lengths.size, np.int64), lengths, changed, 1)
    return ChangeRate(float(found.rate[0]), float(found.low[0]), float(found.high[0]))


def change_rates(
    page: npt.ArrayLike,
    intervals: npt.ArrayLike,
    changed: npt.ArrayLike,
    pages: int,
    *,
    prior: tuple[float, float] | None = None,
) -> ChangeRate[FloatArray]:
    """Estimate the change rates of many pages, as `change_rate_irregular`; entry k is a visit to page[k].

    A prior (rate, visits) counts as that many additional visits to each page, half of which found a change, at the
    interval after which this rate gives a change with probability ½: estimates of pages with few visits are near it.
    """
    ids, lengths, found, weights = _visits(page, intervals, changed, pages, prior)

    def per_page(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(ids, weights * values, minlength=pages), np.float64)

    def odds(rates: FloatArray) -> FloatArray:
        return 1 / np.expm1(rates[ids] * lengths)  # that a visit finds no change

    def slope(rates: FloatArray) -> FloatArray:
        return per_page(found * lengths * odds(rates)) - same

    def score(rates: FloatArray) -> FloatArray:
        part = lengths * odds(rates)
        return (per_page(found * part) - same) / np.sqrt(per_page(lengths * part))

    changes, time, same = per_page(found), per_page(lengths), per_page(lengths * (1 - found))
    some, mixed = changes > 0, same > 0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # All brackets follow from 1/x - 1/2 <= 1/(e^x - 1) <= 1/x.
        rate = _fall_to_zero(slope, changes / (same + (time - same) / 2), changes / same, some & mixed)
        twice = 2 * per_page(1 / lengths)
        only = _fall_to_zero(lambda at: per_page(odds(at)) - 0.5, twice / (changes + 1), twice, some & ~mixed)
        rate = np.where(mixed, rate, only)
        spread = WIDTH * np.sqrt(time)
        least = (2 * changes / (spread + np.sqrt(spread**2 + 4 * changes * time))) ** 2
        low = _fall_to_zero(lambda at: score(at) - WIDTH, least, rate, some)
        most = ((spread + np.sqrt(spread**2 + 4 * changes * same)) / (2 * same)) ** 2
        least = np.where(some, rate, 1 / (time * (1 / WIDTH**2 + 1 / 2)))
        high = _fall_to_zero(lambda at: score(at) + WIDTH, least, most, mixed)
    return ChangeRate(rate, low, np.where(mixed, high, np.inf))


def optimal_rates(
    importance: npt.ArrayLike, change_rates: npt.ArrayLike, total: float, *, at_least: npt.ArrayLike = 0.0
) -> FloatArray:
    """Return the re-visit rates that maximise fresh importance; they sum to `total`, none below `at_least`.

    Pages that never change or have no importance get their floor. If this holds for all, the rest is not spent.

    >>> optimal_rates([4.0, 1.0, 1.0], [1.0, 1.0, 0.0], total=4.0)
    array([3., 1., 0.])
    """
    weight, change = _values(importance, "importance"), _values(change_rates, "change rates")
    floor = _values(at_least, "floors")
    floor = floor if floor.ndim else np.full(weight.shape, floor)
    _alike(weight, change, floor)
    if not (0 <= total < np.inf):
        raise UsageError(f"the total rate must be finite and not negative, not {total}", hint="visits per unit of time")
    if floor.sum() > total * (1 + 1e-9):
        raise UsageError(f"the floors sum to {floor.sum():g}, above the total of {total:g}", hint="lower at_least")
    root = np.sqrt(weight) * np.sqrt(change)
    gains = np.flatnonzero(root > 0)
    rates = floor.copy()
    if gains.size == 0 or total == 0:
        return rates
    root, change, floor = root[gains], change[gains], floor[gains]
    with np.errstate(over="ignore"):
        leaves = (floor + change) / root  # the w at which the rate of a page exceeds its floor
    order = np.argsort(leaves, kind="stable")
    spare = total - rates.sum()
    level = (spare + np.cumsum((floor + change)[order])) / np.cumsum(root[order])  # w if only the first k are above
    above = max(int(np.count_nonzero(level > leaves[order])), 1)
    rates[gains] = np.maximum(floor, level[above - 1] * root - change)
    return rates


def optimal_intervals(importance: npt.ArrayLike, change_rates: npt.ArrayLike, total: float) -> FloatArray:
    """Return the regular re-visit intervals that maximise fresh importance; their inverses sum to `total`.

    Infinity for pages that get no visits: those that never change, have no importance, or change too fast.

    >>> optimal_intervals([4.0, 1.0, 1.0], [1.0, 1.0, 0.0], total=4.0).round(3)
    array([0.358, 0.831,   inf])
    """
    from surveyor.kernels.revisit_index import thresholds

    weight, change = _values(importance, "importance"), _values(change_rates, "change rates")
    _alike(weight, change)
    if not (0 <= total < np.inf):
        raise UsageError(f"the total rate must be finite and not negative, not {total}", hint="visits per unit of time")
    intervals = np.full(weight.shape, np.inf)
    scale = float(change.max(initial=0.0))  # rates are in this unit, and importance as a share of the largest
    change, weight = change / max(scale, LEAST), weight / max(float(weight.max(initial=0.0)), LEAST)
    gains = np.flatnonzero((weight > LEAST) & (change > LEAST))
    total = total / max(scale, LEAST)
    if gains.size == 0 or total <= LEAST:
        return intervals
    weight, change = weight[gains], change[gains]
    ratio, none = weight / change, np.zeros(gains.size)

    def rates_at(price: float) -> FloatArray:
        level = np.empty(gains.size)
        thresholds(price, none, none, ratio, level)
        return np.asarray(change / level)

    # One page alone exceeds the total at the lower price, because 1 - e^(-x) (1 + x) <= x²/2.
    high = float(ratio.max())
    low = min(float((ratio * (change / total) ** 2).max()), high) * 1e-3
    while low < (price := math.sqrt(low) * math.sqrt(high)) < high and high > low * (1 + 1e-15):
        low, high = (price, high) if float(rates_at(price).sum()) > total else (low, price)
    above, below = rates_at(low), rates_at(high)  # they differ for a page whose largest value is the price
    apart = float(above.sum() - below.sum())
    rates = below + (above - below) * ((total - float(below.sum())) / apart if apart > 0 else 0.0)
    with np.errstate(divide="ignore"):
        intervals[gains] = 1 / (np.maximum(rates, 0.0) * scale)
    return intervals


def freshness(
    importance: npt.ArrayLike,
    change_rates: npt.ArrayLike,
    rates: npt.ArrayLike,
    *,
    spacing: Literal["random", "regular"] = "random",
) -> float:
    """Return the importance that is fresh on average; a page that never changes is always fresh.

    >>> freshness([0.5, 0.5], [1.0, 0.0], [1.0, 0.0])
    0.75
    """
    weight, change = _values(importance, "importance"), _values(change_rates, "change rates")
    visit = _values(rates, "rates")
    _alike(weight, change, visit)
    fresh = np.ones(weight.size)
    changing = change > 0
    visit, change = visit[changing], change[changing]
    if spacing == "random":
        fresh[changing] = visit / (visit + change)
    else:
        with np.errstate(divide="ignore", over="ignore"):
            fresh[changing] = visit / change * -np.expm1(-change / visit)
    return float(weight @ fresh)


def due_times(last_visit: npt.ArrayLike, rates: npt.ArrayLike) -> FloatArray:
    """Return when each page is due for a re-visit; infinity at a rate of 0.

    >>> due_times([10.0, 10.0], [0.5, 0.0])
    array([12., inf])
    """
    with np.errstate(divide="ignore"):
        due: FloatArray = np.asarray(last_visit, np.float64) + 1 / _values(rates, "rates")
    return due


def _visits(
    page: npt.ArrayLike, intervals: npt.ArrayLike, changed: npt.ArrayLike, pages: int, prior: tuple[float, float] | None
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Check visits and add those of the prior; return page, interval, 1 if changed, and weight."""
    ids, lengths = np.asarray(page, np.int64), np.asarray(intervals, np.float64)
    found, weights = np.asarray(changed, np.bool_).astype(np.float64), np.ones(lengths.shape)
    if lengths.ndim != 1 or not ids.shape == lengths.shape == found.shape:
        raise UsageError("visits need an interval and a mark each", hint="give arrays of one length")
    if ids.size and not 0 <= ids.min() <= ids.max() < pages:
        raise UsageError(f"a visit to a page outside 0 to {pages - 1}", hint="give the number of pages")
    if prior is not None:
        if not (0 < prior[0] < np.inf and 0 < prior[1] < np.inf):
            raise UsageError(f"a prior of {prior} is not a rate and a number of visits", hint="for example (1.0, 1.0)")
        every = np.arange(pages)
        ids = np.concatenate([ids, every, every])
        lengths = np.concatenate([lengths, np.full(2 * pages, np.log(2) / prior[0])])
        found = np.concatenate([found, np.ones(pages), np.zeros(pages)])
        weights = np.concatenate([weights, np.full(2 * pages, prior[1] / 2)])
    _positive(lengths, "intervals")
    return ids, lengths, found, weights


def _fall_to_zero(
    function: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray, where: BoolArray
) -> FloatArray:
    """Find the root of each entry of a decreasing function between low and high, by bisection on a log scale."""
    low, high = np.where(where, low, 1.0), np.where(where, high, 1.0)
    middle = low
    while (high > low * (1 + CLOSE)).any():
        middle = np.sqrt(low) * np.sqrt(high)
        falls = function(middle) <= 0
        low, high = np.where(falls, low, middle), np.where(falls, middle, high)
    return np.where(where, middle, 0.0)


def _values(given: npt.ArrayLike, what: str) -> FloatArray:
    values = np.asarray(given, np.float64)
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise UsageError(f"{what} must be finite, none negative", hint="leave out pages that are not known")
    return values


def _positive(lengths: FloatArray, what: str) -> None:
    if not ((lengths > 0) & np.isfinite(lengths)).all():
        raise UsageError(f"{what} must be finite and above 0", hint="leave out visits without an earlier one")


def _alike(*arrays: FloatArray) -> None:
    if arrays[0].ndim != 1 or any(array.shape != arrays[0].shape for array in arrays):
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise UsageError(f"arrays of shape {shapes} do not match", hint="give one value per page")
