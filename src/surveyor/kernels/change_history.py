"""What visits and signals say about the change rate of each page, in bounded memory, and its posterior distribution.

A visit after a time τ with n signals since the one before finds no change with probability e^(-(ατ + bn)), where α is
the rate of changes without a signal and 1 - e^(-b) the precision of signals. The likelihood of all visits without a
change depends only on the sums of τ and n. Visits with a change are kept in SLOTS groups of similar τ per page, as
count, mean τ and n; while a page has at most SLOTS different intervals the likelihood is exact. Visits lose weight
with a half-life. A server's statement that a page stays fresh for a time h multiplies the likelihood by
(αh / (1 + αh)²)^HINT, which no more than halves it when α is four times as far from 1/h.

Rates are on a grid of doublings of the page's unit: from one change in 34 years to one in 8 seconds if the unit is one
per second. The prior is a density on it; the posterior is evaluated again on a finer grid where it is not negligible.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surveyor.arrays import AnyInt, FloatArray, IdArray, IntArray
from surveyor.kernels._jit import kernel, kernel_without_refcounts

SLOTS = 5
MOST = 30.0  # signals between two visits that are distinguished
FIRST, GRID = -30, 28  # the rates are 2^(FIRST + k) per second
FINE = 28  # points of the finer grid
NEGLIGIBLE = 14.0  # below the maximum of the log posterior
SIMILAR = math.log(1.25)  # of intervals in one group
HINT = 0.5
UNKNOWN = -1  # whether a page changed
QUANTILE = 0.025
LEAST = 1e-300


class History(NamedTuple):
    """The arrays of all pages."""

    last: FloatArray  # time of the last visit; -inf if none
    still: FloatArray  # seconds of intervals without a change
    quiet: FloatArray  # signals in intervals without a change
    visits: FloatArray  # comparable visits
    finds: FloatArray  # per page and slot: visits that found a change
    interval: FloatArray  # mean seconds
    announced: FloatArray  # number of signals with the mean e^(-n)
    hint: FloatArray  # seconds for which the server declares the page fresh; 0 if unknown
    pending: FloatArray  # signals since the last visit
    signals: FloatArray  # all signals since `covered`
    covered: FloatArray  # when the page was first listed by its source; inf if it is not
    source: IdArray  # -1 if none


def new_history(pages: int) -> History:
    """Allocate the histories of pages without visits."""
    return History(
        last=np.full(pages, -np.inf),
        still=np.zeros(pages),
        quiet=np.zeros(pages),
        visits=np.zeros(pages),
        finds=np.zeros((pages, SLOTS)),
        interval=np.zeros((pages, SLOTS)),
        announced=np.zeros((pages, SLOTS)),
        hint=np.zeros(pages),
        pending=np.zeros(pages),
        signals=np.zeros(pages),
        covered=np.full(pages, np.inf),
        source=np.full(pages, -1, np.int32),
    )


@kernel_without_refcounts
def record(history: History, page: AnyInt, at: float, changed: int, expires: float, half_life: float) -> None:
    """Record a visit; `changed` is 0, 1 or UNKNOWN."""
    elapsed = at - history.last[page]
    if changed != UNKNOWN and 0.0 < elapsed < math.inf:
        weight = 0.5 ** (elapsed / half_life)
        history.still[page] *= weight
        history.quiet[page] *= weight
        history.visits[page] = history.visits[page] * weight + 1.0
        for slot in range(SLOTS):
            history.finds[page, slot] *= weight
        if changed:
            _add_change(history, page, elapsed, history.pending[page])
        else:
            history.still[page] += elapsed
            history.quiet[page] += history.pending[page]
    history.last[page] = at
    history.pending[page] = 0.0
    history.hint[page] = max(expires - at, 0.0)


@kernel_without_refcounts
def _add_change(history: History, page: AnyInt, elapsed: float, signals: float) -> None:
    best, nearest = -1, math.inf
    for slot in range(SLOTS):
        if history.finds[page, slot] <= 0.0:
            if nearest > SIMILAR:
                best = slot
            break
        apart = abs(math.log(elapsed / history.interval[page, slot]))
        if (history.announced[page, slot] > 0.0) != (signals > 0.0):
            apart += 1e6  # merged only if there is no other
        apart += abs(math.exp(-signals) - math.exp(-history.announced[page, slot]))
        if apart < nearest:
            best, nearest = slot, apart
    count = history.finds[page, best] + 1.0
    history.finds[page, best] = count
    history.interval[page, best] += (elapsed - history.interval[page, best]) / count
    wrong = math.exp(-history.announced[page, best])  # the mean of n that matters is that of about e^(-n)
    history.announced[page, best] = -math.log(wrong + (math.exp(-min(signals, MOST)) - wrong) / count)


@kernel_without_refcounts
def record_all(
    history: History, pages: IntArray, at: FloatArray, changed: IntArray, expires: FloatArray, half_life: float
) -> None:
    """Record many visits, in order."""
    for visit in range(pages.shape[0]):
        record(history, pages[visit], at[visit], changed[visit], expires[visit], half_life)


@kernel
def log_likelihood(history: History, page: AnyInt, b: float, rate: float) -> float:
    """Return the logarithm of the likelihood of the history of a page."""
    total = -rate * history.still[page] - b * history.quiet[page]
    for slot in range(SLOTS):
        count = history.finds[page, slot]
        if count > 0.0:
            total += count * _log_changed(rate * history.interval[page, slot] + b * history.announced[page, slot])
    if history.hint[page] > 0.0:
        total += _log_hint(rate * history.hint[page])
    return float(total)


@kernel
def _log_changed(x: float) -> float:
    """Return the logarithm of 1 - e^(-x)."""
    return math.log(-math.expm1(-x)) if x < 36.0 else 0.0


@kernel
def _log_hint(x: float) -> float:
    return HINT * (math.log(x) - 2 * math.log1p(x))


@kernel
def log_likelihoods(history: History, pages: IntArray, b: FloatArray, unit: FloatArray, out: FloatArray) -> None:
    """Write the log-likelihood of each page at each rate of the grid."""
    for row in range(pages.shape[0]):
        _on_grid(history, pages[row], b[row], unit[row], out[row])


@kernel
def _on_grid(history: History, page: AnyInt, b: float, unit: float, out: FloatArray) -> None:
    """Write the log-likelihood at each rate of the grid; from one to the next 1 - e^(-x) = u becomes u (2 - u)."""
    rate = unit * 2.0**FIRST
    for k in range(GRID):
        out[k] = -b * history.quiet[page] - rate * 2.0**k * history.still[page]
        if history.hint[page] > 0.0:
            out[k] += _log_hint(rate * 2.0**k * history.hint[page])
    for slot in range(SLOTS):
        count = history.finds[page, slot]
        if count > 0.0:
            changed = -math.expm1(-rate * history.interval[page, slot])
            wrong = math.exp(-b * history.announced[page, slot])
            for k in range(GRID):
                either = 1.0 - wrong + wrong * changed
                if either < 1.0:
                    out[k] += count * math.log(max(either, LEAST))
                changed *= 2.0 - changed


@kernel
def posteriors(
    history: History, pages: IntArray, b: FloatArray, unit: FloatArray, prior: FloatArray, out: FloatArray
) -> None:
    """Write mean, standard deviation and the 95 % limits of the logarithm of each page's rate.

    `prior` has a row of log densities per page of two kinds: pages without and with a source of signals.
    """
    coarse, fine = np.empty(GRID), np.empty(FINE)
    for row in range(pages.shape[0]):
        page = pages[row]
        kind = 1 if history.source[page] >= 0 else 0
        most = -math.inf
        _on_grid(history, page, b[row], unit[row], coarse)
        for k in range(GRID):
            coarse[k] += prior[kind, k]
            most = max(most, coarse[k])
        first, last = GRID - 1, 0
        for k in range(GRID):
            if coarse[k] > most - NEGLIGIBLE:
                first, last = min(first, k), max(last, k)
        left, right = float(max(first - 1, 0)), float(min(last + 1, GRID - 1))
        step = (right - left) / (FINE - 1)
        for attempt in range(2):  # the second time around the part that is not negligible
            step = (right - left) / (FINE - 1)
            most = -math.inf
            for k in range(FINE):
                spot = left + k * step
                below = min(int(spot), GRID - 2)
                density = prior[kind, below] + (spot - below) * (prior[kind, below + 1] - prior[kind, below])
                rate = unit[row] * 2.0 ** (FIRST + spot)
                fine[k] = log_likelihood(history, page, b[row], rate) + density
                most = max(most, fine[k])
            first, last = FINE - 1, 0
            for k in range(FINE):
                if fine[k] > most - NEGLIGIBLE:
                    first, last = min(first, k), max(last, k)
            if attempt or last - first > FINE // 3:
                break
            left, right = left + max(first - 1, 0) * step, left + min(last + 1, FINE - 1) * step
        _summarise(fine, most, left, step, out[row])
        for column in (0, 2, 3):
            out[row, column] = FIRST * math.log(2.0) + math.log(unit[row]) + out[row, column]


@kernel
def _summarise(density: FloatArray, most: float, left: float, step: float, out: FloatArray) -> None:
    """Write mean, standard deviation and 95 % limits; each point stands for a cell around it."""
    total, mean, square = 0.0, 0.0, 0.0
    for k in range(FINE):
        density[k] = math.exp(density[k] - most)
        total += density[k]
        mean += density[k] * k
    mean /= total
    for k in range(FINE):
        square += density[k] * (k - mean) ** 2
    base = math.log(2.0)
    out[0] = (left + mean * step) * base
    out[1] = math.sqrt(square / total + 1 / 12) * step * base
    out[2] = (left + _quantile(density, total, QUANTILE) * step) * base
    out[3] = (left + _quantile(density, total, 1 - QUANTILE) * step) * base


@kernel
def _quantile(density: FloatArray, total: float, share: float) -> float:
    """Return the position at which this share of the density is reached."""
    below = 0.0
    for k in range(density.shape[0]):
        if below + density[k] >= share * total:
            return float(k - 0.5 + (share * total - below) / density[k])
        below += density[k]
    return float(density.shape[0] - 1)


@kernel
def signal_evidence(
    history: History,
    pages: IntArray,
    unit: FloatArray,
    prior: FloatArray,
    precisions: FloatArray,
    out: FloatArray,
) -> None:
    """Write the marginal log-likelihood of each page at each precision; `prior` has log weights of the grid."""
    base, terms, same = np.empty(GRID), np.empty(GRID), np.empty((GRID, SLOTS))
    for row in range(pages.shape[0]):
        page = pages[row]
        for k in range(GRID):
            rate = unit[row] * 2.0 ** (FIRST + k)
            base[k] = prior[k] - rate * history.still[page]
            if history.hint[page] > 0.0:
                base[k] += _log_hint(rate * history.hint[page])
            for slot in range(SLOTS):
                same[k, slot] = math.exp(-rate * history.interval[page, slot])
                if history.finds[page, slot] > 0.0 and history.announced[page, slot] == 0.0:
                    base[k] += history.finds[page, slot] * _log_changed(rate * history.interval[page, slot])
        for which in range(precisions.shape[0]):
            b, most = -math.log1p(-precisions[which]), -math.inf
            terms[:] = base
            for slot in range(SLOTS):
                if history.finds[page, slot] > 0.0 and history.announced[page, slot] > 0.0:
                    wrong = math.exp(-b * history.announced[page, slot])
                    for k in range(GRID):
                        terms[k] += history.finds[page, slot] * math.log(max(1.0 - wrong * same[k, slot], LEAST))
            for k in range(GRID):
                most = max(most, terms[k])
            total = 0.0
            for k in range(GRID):
                total += math.exp(terms[k] - most)
            out[row, which] = most + math.log(total) - b * history.quiet[page]
