"""Lower bound of coverage from random walks, valid at every moment with a stated confidence.

Let C be the coverage of a frozen set R of fetched pages. The ledger gives C = s + W·E[Y], where s is the captured mass,
W the mass that is not settled yet, and Y in [0, 1] the part of a random walk, started in proportion to that mass, that
is spent in R (`coverage_walks.py`). For a bet γ, walk k multiplies the *evidence* against "coverage is at most c" by

    f_k(c, γ) = 1 − γ + γ·W·Y_k / (c − s)

whose mean is at most 1 if the true coverage is at most c. So is the mean of their product, however many walks there
are and whenever the crawl looks at them: the product is a non-negative supermartingale, and by Ville's inequality it
ever exceeds 1/α with probability at most α (Waudby-Smith and Ramdas 2024). Averages over several bets keep this
property. The lower bound is the largest c whose evidence is at least 1/α.

**Restarts.** Each *epoch* freezes a larger R. Evidence is the sum over epochs j of `stake(j)` times the evidence of all
walks since the start of epoch j, plus the stakes that are not used yet; the stakes sum to 1. A walk of an earlier epoch
remains valid, because coverage does not fall as pages are fetched.

**Unfinished walks** count with the part of Y that is certain already. Since f rises with Y, this only lowers the
evidence. The bets are fixed in advance: bets that depend on results would be wrong while walks are unfinished.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from surveyor.arrays import FloatArray

BETS: FloatArray = np.array([0.15, 0.4, 0.7, 0.95])
BET_WEIGHTS: FloatArray = np.array([0.1, 0.2, 0.3, 0.4])
FIRST_STAKE, NEXT_STAKE = 0.5, 0.5  # stakes are 0.5 · 0.5^j
MOST_EPOCHS = 40  # the stake of a later one would be worthless: it takes 28 nats of evidence to make up for it
PRECISION = 1e-5  # of the bound, which is rounded down


class Epoch(NamedTuple):
    """A frozen read set: its number of pages, the captured and the unsettled mass, and its first walk."""

    pages: int
    captured: float
    unsettled: float
    first: int
    secret: str = ""  # key of its random numbers


def stake(epoch: int) -> float:
    """Return the share of the evidence that is placed on the walks from an epoch on.

    >>> round(sum(stake(epoch) for epoch in range(100)), 6)
    1.0
    """
    return FIRST_STAKE * NEXT_STAKE**epoch


def log_evidence(coverage: float, epochs: Sequence[Epoch], values: FloatArray, used: int = 0) -> float:
    """Return the logarithm of the evidence that the true coverage is above `coverage`.

    `values` are the walks in order of their start, `used` the number of epochs that were discarded earlier. The
    coverage must exceed the captured mass of every epoch.
    """
    if not epochs:
        return 0.0
    firsts = np.array([epoch.first for epoch in epochs])
    numbers = np.searchsorted(firsts, np.arange(values.size), "right") - 1
    factors: FloatArray = np.array([epoch.unsettled / (coverage - epoch.captured) for epoch in epochs])
    gains = np.log1p(BETS[:, None] * (factors[numbers] * values - 1.0))
    padded = np.concatenate([gains, np.zeros((BETS.size, 1))], axis=1)
    since = np.cumsum(padded[:, ::-1], axis=1)[:, ::-1][:, np.minimum(firsts, values.size)]
    means = np.logaddexp.reduce(since + np.log(BET_WEIGHTS)[:, None], axis=0)
    stakes = math.log(FIRST_STAKE) + math.log(NEXT_STAKE) * np.arange(used, used + len(epochs), dtype=np.float64)
    unused = 1.0 - sum(stake(number) for number in range(used + len(epochs)))
    terms = np.append(means + stakes, math.log(max(unused, 1e-300)))
    return float(np.logaddexp.reduce(terms))


def lower_bound(confidence: float, epochs: Sequence[Epoch], values: FloatArray, used: int = 0) -> float:
    """Return the lower bound of coverage at a confidence; 0 if the walks prove nothing.

    >>> lower_bound(0.95, [Epoch(100, 0.5, 0.5, 0)], np.full(40, 0.9)) > 0.85
    True
    """
    if not epochs or not values.size:
        return 0.0
    enough = -math.log1p(-confidence)
    low, high = max(0.0, *(epoch.captured for epoch in epochs)), 1.0
    if log_evidence(high, epochs, values, used) >= enough:
        return high
    found = 0.0
    while high - low > PRECISION:
        middle = (low + high) / 2
        if log_evidence(middle, epochs, values, used) >= enough:
            low = found = middle
        else:
            high = middle
    return found


def is_proven(coverage: float, confidence: float, epochs: Sequence[Epoch], values: FloatArray, used: int = 0) -> bool:
    """Return whether the lower bound is at least `coverage`; cheaper than the bound."""
    if not epochs or not values.size:
        return False
    if coverage <= max(epoch.captured for epoch in epochs):
        return True
    return log_evidence(coverage, epochs, values, used) >= -math.log1p(-confidence)


def walks_needed(goal: float, confidence: float, epochs: Sequence[Epoch], values: FloatArray, used: int = 0) -> float:
    """Estimate the further walks until a goal is proven, from those of the last epoch; inf if they speak against it."""
    last = epochs[-1]
    mine = values[last.first :]
    if not mine.size or goal <= last.captured:
        return math.inf
    factor = last.unsettled / (goal - last.captured)
    gain = float(np.log1p(BETS[:, None] * (factor * mine - 1.0)).mean(axis=1).max())
    missing = -math.log1p(-confidence) - log_evidence(goal, epochs, values, used)
    return math.inf if gain <= 0 else max(0.0, missing) / gain
