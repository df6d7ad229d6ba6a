"""OPIC: cash that circulates over the links as pages are read; importance is the share of it that a page earned.

All cash is 1, on the known pages and on one *virtual page* that stands for the jumps of the surfer. Reading page i
moves its cash c: each of its o links gets d·c/o, the virtual page the rest (all of c if i has no links, is blocked
or gone). The page is emptied first, so that a link to itself keeps its share. What a page earned over time is
remembered in `earnings.py`; which page comes next is told in `visits.py`.

**Jumps.** The virtual page is read when it holds more than 0.02, by the teleport weights w. Instead of adding to
every page, a counter β of what one unit of weight was ever given grows by cash / Σw: page i holds in truth
cash[i] + w[i]·(β − settled[i]), where settled[i] is β when i was last settled. So a jump takes O(1) time, and a
page discovered without cash and with settled = β creates none, however fast the known web grows.

**Estimate.** With H the cash moved by each page, `given` what came to it by jumps and t = w / Σw, what it earned
over links is H + cash − given, and V is all that went to the virtual page. So one step of the power method from H,

    G(H) = H + cash − given + t·V,        PageRank r = G(r),

is known without storing a link, and since G brings vectors of equal sum closer by the factor d,

    ‖G(H)/ΣH − r‖ ≤ d / (1 − d) · ‖G(H) − H‖ / ΣH.

This holds for any order of reads as long as pages keep their links, and for pages not read yet; r has jumps by the
weights as they are now, and pages blocked or gone without links. If the weights never changed, the right side is at
most 2d / ((1 − d)·ΣH).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surveyor.arrays import ByteArray, FloatArray, IdArray, IntArray
from surveyor.kernels._jit import bare
from surveyor.kernels.earnings import KIND, PLAIN, Earnings, halve, hand_over, rate, record, start

# Names of small numbers are NumPy scalars: a kernel would be compiled anew for each plain int it is given.
KNOWN, GONE, MOVED = map(np.uint8, (1, 2, 4))  # in `state`; 0: never heard of
OUT = GONE | MOVED  # without weight
TIME, VIRTUAL, BETA, BASE, WEIGHTS, PASSED, FORGOTTEN, DAMPING, TOTALS = map(np.int64, range(9))
UNIFORM, PAGES, WEIGHTED, READS, JUMPS, COUNTS = map(np.int64, range(6))

PATIENCE = 0.02  # the virtual page is read when it holds more
AUDIT = 1_000_000  # reads after which rounding is put right
LEAST = 1e-12  # weights that sum to less are none


class Cash(NamedTuple):
    """Where the cash is."""

    cash: FloatArray
    weight: FloatArray
    settled: FloatArray
    given: FloatArray  # by jumps, in all
    state: ByteArray
    order: IdArray  # the known pages as they were found; the first WEIGHTED ones may have a weight
    totals: FloatArray
    counts: IntArray
    earnings: Earnings


def new_cash(pages: int, damping: float, earnings: Earnings, *, uniform: bool) -> Cash:
    """Make room for so many pages; all cash is on the virtual page."""
    totals, counts = np.zeros(TOTALS), np.zeros(COUNTS, np.int64)
    totals[VIRTUAL], totals[DAMPING], counts[UNIFORM] = 1.0, damping, uniform
    cash, weight, settled, given = np.zeros((4, pages))
    state, order = np.zeros(pages, np.uint8), np.zeros(pages, np.int32)
    return Cash(cash, weight, settled, given, state, order, totals, counts, earnings)


@bare
def cash_of(cash: Cash, page: int) -> float:
    """Return the cash of a page, its part of the jumps included."""
    if cash.state[page] & OUT:
        return float(cash.cash[page])
    return float(cash.cash[page] + cash.weight[page] * (cash.totals[BETA] - cash.settled[page]))


@bare
def settle(cash: Cash, page: int) -> None:
    """Turn what jumps gave a page into cash."""
    bonus = cash_of(cash, page) - cash.cash[page]
    cash.settled[page] = cash.totals[BETA]
    cash.cash[page] += bonus
    cash.given[page] += bonus


@bare
def discover(cash: Cash, page: int, weight: float) -> None:
    """Add a page that is not known yet: without cash, and from now on with its weight."""
    cash.state[page] = KNOWN
    cash.settled[page] = cash.totals[BETA]
    cash.weight[page] = weight
    cash.totals[WEIGHTS] += weight
    cash.order[cash.counts[PAGES]] = page
    cash.counts[PAGES] += 1
    if weight > 0.0:
        cash.counts[WEIGHTED] = cash.counts[PAGES]
    start(cash.earnings, page, cash.totals[TIME])


@bare
def read(cash: Cash, page: int, targets: IdArray, first: int, last: int) -> None:
    """Move the cash of a known page to targets[first:last] and to the virtual page."""
    held, state, totals, counts = cash.cash, cash.state, cash.totals, cash.counts
    settle(cash, page)
    moved = held[page]
    held[page] = 0.0
    record(cash.earnings, page, moved, totals[TIME] + moved)
    rest = moved
    if last > first:
        share = totals[DAMPING] * moved / (last - first)
        rest -= share * (last - first)
        weight = 1.0 if counts[UNIFORM] else 0.0
        for link in range(first, last):
            if state[targets[link]] == 0:
                discover(cash, targets[link], weight)
            held[targets[link]] += share
    totals[VIRTUAL] += rest
    totals[PASSED] += rest
    totals[TIME] += moved
    counts[READS] += 1
    if counts[READS] % AUDIT == 0:
        audit(cash)
    jump(cash)


@bare
def jump(cash: Cash) -> None:
    """Read the virtual page, if it holds enough and there is a page to give to."""
    totals = cash.totals
    if totals[VIRTUAL] > PATIENCE and totals[WEIGHTS] > LEAST:
        before = totals[BETA]
        totals[BETA] += totals[VIRTUAL] / totals[WEIGHTS]
        totals[VIRTUAL] -= (totals[BETA] - before) * totals[WEIGHTS]  # rounding leaves a trace
        cash.counts[JUMPS] += 1


@bare
def audit(cash: Cash) -> None:
    """Take what rounding has added or lost from the virtual page, so that all cash is 1 again."""
    total = cash.totals[VIRTUAL]
    for spot in range(cash.counts[PAGES]):
        total += cash_of(cash, cash.order[spot])
    cash.totals[VIRTUAL] += 1.0 - total


@bare
def retire(cash: Cash, page: int, fate: np.uint8) -> None:
    """Take away the weight of a page that is GONE or has MOVED."""
    settle(cash, page)
    if not cash.state[page] & OUT:
        cash.totals[WEIGHTS] -= cash.weight[page]
    cash.state[page] |= fate


@bare
def forget(cash: Cash, page: int) -> None:
    """Let half of what a page earned over links no longer count."""
    earned = cash.earnings.history[page] + cash.cash[page] - cash.given[page]
    if cash.earnings.counts[KIND] == PLAIN:
        cash.given[page] += 0.5 * earned
        cash.totals[FORGOTTEN] += 0.5 * earned
    else:
        halve(cash.earnings, page)


@bare
def merge(cash: Cash, page: int, target: int) -> None:
    """Hand what a page has and had to the known page that it stands for; from trusted pages also the weight."""
    settle(cash, target)
    retire(cash, page, MOVED)
    if not cash.counts[UNIFORM] and cash.weight[page] > 0.0:
        _swap_places(cash, page, target)
        cash.weight[target] += cash.weight[page]
        if not cash.state[target] & OUT:
            cash.totals[WEIGHTS] += cash.weight[page]
        cash.weight[page] = 0.0
    for column in (cash.cash, cash.given):
        column[target] += column[page]
        column[page] = 0.0
    hand_over(cash.earnings, page, target)


@bare
def _swap_places(cash: Cash, page: int, target: int) -> None:
    """Bring a page that gets a weight among the first in `order`, in place of the one that loses it."""
    mine, its = 0, 0
    for spot in range(cash.counts[PAGES]):
        if cash.order[spot] == page:
            mine = spot
        elif cash.order[spot] == target:
            its = spot
    if its >= cash.counts[WEIGHTED]:
        cash.order[mine], cash.order[its] = target, page


@bare
def estimate(cash: Cash, out: FloatArray) -> None:
    """Write the importance of each known page, up to a common factor."""
    totals, plain = cash.totals, cash.earnings.counts[KIND] == PLAIN
    for spot in range(cash.counts[PAGES]):
        page = cash.order[spot]
        held = cash_of(cash, page)
        if cash.state[page] & MOVED:
            out[page] = 0.0
        elif plain:
            given = cash.given[page] + (held - cash.cash[page])
            out[page] = max(cash.earnings.history[page] + held - given, 0.0)
            if totals[WEIGHTS] > LEAST and not cash.state[page] & OUT:
                out[page] += cash.weight[page] / totals[WEIGHTS] * totals[PASSED]
        else:
            out[page] = max(rate(cash.earnings, page, held, totals[TIME], 1.0 / cash.counts[PAGES]), 0.0)
