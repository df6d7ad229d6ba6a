"""OPIC: cash that circulates over the links as pages are fetched; importance is the share of it that a page earned.

All cash is 1, on the known pages and on one *virtual page* that represents the jumps of the surfer. Fetching page i
moves its cash c: each of its o links gets d·c/o, the virtual page the rest (all of c if i has no links, is blocked
or gone). The page is emptied first, so that a link to itself keeps its share. `opic_visits.py` chooses the next page.
Cash that arrives on a blocked or gone page moves on at once, as if the page were fetched: no request is needed, and a
crawl that never requests it again does not lose cash there.

**Jumps.** The virtual page is emptied when it holds more than 0.02, by the teleport weights w. Instead of adding to
every page, a counter β of the cash ever given per unit of weight grows by cash / Σw: page i holds
cash[i] + w[i]·(β − settled[i]), where settled[i] is β when i was last settled. A jump therefore takes O(1) time, and a
page discovered without cash and with settled = β creates none, however fast the known web grows.

**Estimate.** With H the cash moved by each page, `given` what it received by jumps and t = w / Σw, its earnings over
links are H + cash − given, and V is the total that went to the virtual page. One step of the power method from H,

    G(H) = H + cash − given + t·V,        PageRank r = G(r),

is known without storing a link, and since G contracts vectors of equal sum by the factor d,

    ‖G(H)/ΣH − r‖ ≤ d / (1 − d) · ‖G(H) − H‖ / ΣH.

This holds for any fetch order as long as pages keep their links, and for pages not fetched yet; r has jumps by the
current weights, and blocked or gone pages have no links. If the weights never changed, the right side is at most
2d / ((1 − d)·ΣH). A hash of the links of each page shows whether they changed (`CHANGED`). An amount m that moved
otherwise than over the links, because the request failed for a page whose links were known, changes G(H) by at most
2m, and the bound by 2m / ((1 − d)·ΣH) (`MISPLACED`).

**Earnings over time** are kept in one of four ways. Time is all cash moved so far (G in the paper). A page is fetched
at time `now`; since the previous fetch it earned `moved`:

- PLAIN: history is all it ever moved.
- FIXED: pairs (now, moved) of its fetches, back to the last one older than now − size.
- VARIABLE: pairs of its last `size` fetches.
- BAO: history estimates what it earned in the last `size` units of time. With Δ the time since the last fetch, a fetch
  replaces the expired part: history·(size − Δ)/size + moved, or moved·size/Δ if Δ ≥ size. While a page has been known
  for less than `size`, nothing expires: history + moved.

The rate of a page is its earnings since the oldest pair that counts, divided by the time since then. The amount of the
oldest pair itself was earned before, and does not count. A discovery is a pair with amount 0. (BAO that treated a new
page as one without earnings would count only Δ/size of them at its first fetch.) The initial cash of the first pages
is not earned and recorded as a debt.

A span shorter than a quarter of the window is unreliable; the page is then blended with a quarter of the window of
average earnings. (Important pages fill a VARIABLE window very fast; there this holds only until the window is full.)

Pairs are linked lists in one pool, oldest first. Memory per page: 20 bytes, with BAO or pairs 28, and 20 a pair.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surveyor.arrays import ByteArray, FloatArray, IdArray, IntArray, KeyArray
from surveyor.kernels._jit import kernel_without_refcounts
from surveyor.kernels.hash_random import random_bits

# Constants are NumPy scalars: a kernel is compiled again for each plain int literal that it is called with.
KNOWN, GONE, REDIRECTED, BLOCKED = map(np.uint8, (1, 2, 4, 8))  # in `state`; 0: unknown
OUT = GONE | REDIRECTED | BLOCKED  # without weight and links
TIME, VIRTUAL, BETA, BASE, WEIGHTS, PASSED, MISPLACED, DAMPING, TOTALS = map(np.int64, range(9))
UNIFORM, PAGES, WEIGHTED, FETCHES, JUMPS, CHANGED, COUNTS = map(np.int64, range(7))
NO_LINK_SET = np.uint64(0)  # of pages that were never fetched

JUMP_THRESHOLD = 0.02  # the virtual page is emptied when it holds more
AUDIT = 1_000_000  # fetches between corrections of rounding errors
LEAST = 1e-12  # smaller sums of weights count as 0


class Cash(NamedTuple):
    """The cash of all pages and of the virtual page."""

    cash: FloatArray
    weight: FloatArray
    settled: FloatArray
    given: FloatArray  # total received by jumps
    state: ByteArray
    link_set: KeyArray  # hash of the links as last fetched
    order: IdArray  # the known pages in order of discovery; only the first WEIGHTED may have a weight
    totals: FloatArray
    counts: IntArray
    earnings: Earnings


def new_cash(pages: int, damping: float, earnings: Earnings, *, uniform: bool) -> Cash:
    """Allocate the state of `pages` pages, with all cash on the virtual page."""
    totals, counts = np.zeros(TOTALS), np.zeros(COUNTS, np.int64)
    totals[VIRTUAL], totals[DAMPING], counts[UNIFORM] = 1.0, damping, uniform
    cash, weight, settled, given = np.zeros((4, pages))
    state, link_set, order = np.zeros(pages, np.uint8), np.zeros(pages, np.uint64), np.zeros(pages, np.int32)
    return Cash(cash, weight, settled, given, state, link_set, order, totals, counts, earnings)


@kernel_without_refcounts
def link_set_of(targets: IdArray, first: int, last: int) -> np.uint64:
    """Return a hash of distinct links, in any order; never NO_LINK_SET."""
    found = random_bits(last - first, 0, 1)
    for link in range(first, last):
        found += random_bits(0, np.int64(targets[link]), 2)
    return max(found, np.uint64(1))


@kernel_without_refcounts
def cash_of(cash: Cash, page: int) -> float:
    """Return the cash of a page, including its share of the jumps."""
    if cash.state[page] & OUT:
        return float(cash.cash[page])
    return float(cash.cash[page] + cash.weight[page] * (cash.totals[BETA] - cash.settled[page]))


@kernel_without_refcounts
def settle(cash: Cash, page: int) -> None:
    """Add the share of the jumps of a page to its cash."""
    bonus = cash_of(cash, page) - cash.cash[page]
    cash.settled[page] = cash.totals[BETA]
    cash.cash[page] += bonus
    cash.given[page] += bonus


@kernel_without_refcounts
def discover(cash: Cash, page: int, weight: float) -> None:
    """Add an unknown page, without cash and with this weight."""
    cash.state[page] = KNOWN
    cash.settled[page] = cash.totals[BETA]
    cash.weight[page] = weight
    cash.totals[WEIGHTS] += weight
    cash.order[cash.counts[PAGES]] = page
    cash.counts[PAGES] += 1
    if weight > 0.0:
        cash.counts[WEIGHTED] = cash.counts[PAGES]
    start_earnings(cash.earnings, page, cash.totals[TIME])


@kernel_without_refcounts
def distribute(cash: Cash, page: int, targets: IdArray, first: int, last: int) -> float:
    """Move the cash of a known page to targets[first:last] and to the virtual page; return the amount."""
    held, state, totals, counts = cash.cash, cash.state, cash.totals, cash.counts
    settle(cash, page)
    moved = held[page]
    held[page] = 0.0
    record_earnings(cash.earnings, page, moved, totals[TIME] + moved)
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
    for link in range(first, last):
        if state[targets[link]] & OUT:
            pass_on(cash, targets[link])
    counts[FETCHES] += 1
    if counts[FETCHES] % AUDIT == 0:
        audit(cash)
    jump(cash)
    return float(moved)


@kernel_without_refcounts
def pass_on(cash: Cash, page: int) -> None:
    """Move the cash of a page without links and weight, which is not fetched, to the virtual page."""
    moved = cash.cash[page]
    cash.cash[page] = 0.0
    record_earnings(cash.earnings, page, moved, cash.totals[TIME] + moved)
    cash.totals[VIRTUAL] += moved
    cash.totals[PASSED] += moved
    cash.totals[TIME] += moved


@kernel_without_refcounts
def record_links(cash: Cash, page: int, links: np.uint64, moved: float) -> None:
    """Record the links of a page that was just fetched and moved an amount, and whether they changed."""
    if cash.link_set[page] == NO_LINK_SET:  # it may have been blocked before
        if cash.earnings.counts[KIND] == PLAIN and cash.state[page] == KNOWN:
            cash.totals[MISPLACED] += max(cash.earnings.history[page] - moved, 0.0)
    elif cash.link_set[page] != links:
        cash.counts[CHANGED] += 1
    cash.link_set[page] = links


@kernel_without_refcounts
def jump(cash: Cash) -> None:
    """Empty the virtual page if it holds enough and some page has a weight."""
    totals = cash.totals
    if totals[VIRTUAL] > JUMP_THRESHOLD and totals[WEIGHTS] > LEAST:
        before = totals[BETA]
        totals[BETA] += totals[VIRTUAL] / totals[WEIGHTS]
        totals[VIRTUAL] -= (totals[BETA] - before) * totals[WEIGHTS]  # except for rounding
        cash.counts[JUMPS] += 1


@kernel_without_refcounts
def audit(cash: Cash) -> None:
    """Correct rounding errors on the virtual page, so that all cash is 1 again."""
    total = cash.totals[VIRTUAL]
    for spot in range(cash.counts[PAGES]):
        total += cash_of(cash, cash.order[spot])
    cash.totals[VIRTUAL] += 1.0 - total


@kernel_without_refcounts
def retire(cash: Cash, page: int, status: np.uint8) -> None:
    """Remove the weight of a page that is GONE, REDIRECTED or BLOCKED."""
    settle(cash, page)
    if not cash.state[page] & OUT:
        cash.totals[WEIGHTS] -= cash.weight[page]
    cash.state[page] |= status


@kernel_without_refcounts
def forget_half(cash: Cash, page: int) -> None:
    """Discard half of the earnings of a page over links."""
    earned = cash.earnings.history[page] + cash.cash[page] - cash.given[page]
    if cash.earnings.counts[KIND] == PLAIN:
        cash.given[page] += 0.5 * earned
        cash.totals[MISPLACED] += 0.5 * earned
    else:
        halve_earnings(cash.earnings, page)


@kernel_without_refcounts
def merge(cash: Cash, page: int, target: int) -> None:
    """Transfer cash and earnings of a page to its redirect target; with trusted pages also the weight."""
    settle(cash, target)
    moved = cash.earnings.history[page] if cash.earnings.counts[KIND] == PLAIN else 0.0
    if cash.link_set[page] != NO_LINK_SET:
        cash.counts[CHANGED] += 1
    elif cash.link_set[target] != NO_LINK_SET:  # it was blocked before
        cash.totals[MISPLACED] += moved
    retire(cash, page, REDIRECTED)
    if not cash.counts[UNIFORM] and cash.weight[page] > 0.0:
        _swap_places(cash, page, target)
        cash.weight[target] += cash.weight[page]
        if not cash.state[target] & OUT:
            cash.totals[WEIGHTS] += cash.weight[page]
        cash.weight[page] = 0.0
    for column in (cash.cash, cash.given):
        column[target] += column[page]
        column[page] = 0.0
    transfer_earnings(cash.earnings, page, target)
    if cash.state[target] & OUT:
        pass_on(cash, target)


@kernel_without_refcounts
def _swap_places(cash: Cash, page: int, target: int) -> None:
    """Swap a page that gets a weight with the one that loses it in `order`."""
    mine, its = 0, 0
    for spot in range(cash.counts[PAGES]):
        if cash.order[spot] == page:
            mine = spot
        elif cash.order[spot] == target:
            its = spot
    if its >= cash.counts[WEIGHTED]:
        cash.order[mine], cash.order[its] = target, page


@kernel_without_refcounts
def estimate(cash: Cash, out: FloatArray) -> None:
    """Write the importance of each known page, up to a common factor."""
    totals, plain = cash.totals, cash.earnings.counts[KIND] == PLAIN
    for spot in range(cash.counts[PAGES]):
        page = cash.order[spot]
        held = cash_of(cash, page)
        if cash.state[page] & REDIRECTED:
            out[page] = 0.0
        elif plain:
            given = cash.given[page] + (held - cash.cash[page])
            out[page] = max(cash.earnings.history[page] + held - given, 0.0)
            if totals[WEIGHTS] > LEAST and not cash.state[page] & OUT:
                out[page] += cash.weight[page] / totals[WEIGHTS] * totals[PASSED]
        else:
            out[page] = max(earning_rate(cash.earnings, page, held, totals[TIME], 1.0 / cash.counts[PAGES]), 0.0)


PLAIN, FIXED, VARIABLE, BAO = map(np.int64, range(4))
KIND, FREE, SPARE = map(np.int64, range(3))  # in `counts`: the window, the first free pair, free pairs
YOUNG = 0.25  # of a window: shorter spans are blended with the average
NONE = -1


class Earnings(NamedTuple):
    """The earnings of each page."""

    history: FloatArray
    last: FloatArray  # time of the last fetch, or of the discovery
    fetches: IdArray  # number of fetches
    discovered: FloatArray  # BAO: time of the discovery
    oldest: IdArray  # its first pair
    youngest: IdArray
    after: IdArray  # the next pair of the page, or the next free pair
    when: FloatArray
    what: FloatArray
    size: FloatArray  # of the window, one number
    counts: IntArray


def new_earnings(pages: int, kind: np.int64 = PLAIN, size: float = 1.0) -> Earnings:
    """Allocate the earnings of `pages` pages."""
    listed = pages if kind in (FIXED, VARIABLE) else 0
    return Earnings(
        np.zeros(pages),
        np.zeros(pages),
        np.zeros(pages, np.int32),
        np.zeros(pages if kind == BAO else 0),
        np.empty(listed, np.int32),
        np.empty(listed, np.int32),
        np.arange(1, 2 * listed + 1, dtype=np.int32),
        np.empty(2 * listed),
        np.empty(2 * listed),
        np.array([size]),
        np.array([kind, 0, 2 * listed]),
    )


def with_pages(earnings: Earnings, room: int) -> Earnings:
    """Return a copy with room for this many more pages."""
    columns = {name: getattr(earnings, name) for name in earnings._fields[:6]}
    return earnings._replace(**{name: np.pad(old, (0, room)) for name, old in columns.items() if old.size})


def with_pairs(earnings: Earnings) -> Earnings:
    """Return a copy with room for twice as many pairs."""
    pool = earnings.when.size
    after = np.concatenate([earnings.after, np.arange(pool + 1, 2 * pool + 1, dtype=np.int32)])
    after[-1] = earnings.counts[FREE]
    earnings.counts[FREE] = pool
    earnings.counts[SPARE] += pool
    return earnings._replace(after=after, when=np.pad(earnings.when, (0, pool)), what=np.pad(earnings.what, (0, pool)))


@kernel_without_refcounts
def lacks_pairs(earnings: Earnings, needed: int) -> bool:
    """Return whether the pool has fewer than `needed` free pairs."""
    return bool(earnings.when.shape[0] > 0 and earnings.counts[SPARE] < needed)


@kernel_without_refcounts
def start_earnings(earnings: Earnings, page: int, now: float) -> None:
    """Start the record of a page that was just discovered."""
    earnings.last[page] = now
    if earnings.counts[KIND] == BAO:
        earnings.discovered[page] = now
    elif earnings.counts[KIND] != PLAIN:
        earnings.youngest[page] = NONE
        _append(earnings, page, now, 0.0)


@kernel_without_refcounts
def set_debt(earnings: Earnings, page: int, cash: float) -> None:
    """Record cash that a page received without earning it (not for PLAIN)."""
    if earnings.counts[KIND] != PLAIN:
        earnings.history[page] = -cash


@kernel_without_refcounts
def record_earnings(earnings: Earnings, page: int, moved: float, now: float) -> None:
    """Record the earnings of a page since its last fetch."""
    kind, history = earnings.counts[KIND], earnings.history
    earnings.fetches[page] += 1
    if kind == PLAIN:
        history[page] += moved
    elif kind == BAO:
        history[page] = _recent(earnings, page, moved, now)
    else:
        _append(earnings, page, now, moved + history[page])
        history[page] = 0.0
        if kind == FIXED:
            while earnings.when[earnings.after[earnings.oldest[page]]] <= now - earnings.size[0]:
                _drop_oldest(earnings, page)
        elif earnings.fetches[page] >= earnings.size[0]:
            _drop_oldest(earnings, page)
    earnings.last[page] = now


@kernel_without_refcounts
def earning_rate(earnings: Earnings, page: int, cash: float, now: float, average: float) -> float:
    """Return the earnings of a page per unit of time, as if it were fetched now with this cash (not for PLAIN)."""
    size = earnings.size[0]
    if earnings.counts[KIND] == BAO:
        span, earned, young = now - earnings.discovered[page], _recent(earnings, page, cash, now), True
    else:
        fixed, pair = earnings.counts[KIND] == FIXED, earnings.oldest[page]
        while fixed and earnings.after[pair] != NONE and earnings.when[earnings.after[pair]] <= now - size:
            pair = earnings.after[pair]
        span, earned = now - earnings.when[pair], earnings.history[page] + cash
        young = fixed or earnings.fetches[page] < size
        while earnings.after[pair] != NONE:
            pair = earnings.after[pair]
            earned += earnings.what[pair]
    if span <= 0.0 or (young and span < YOUNG * size):
        return float((earned + YOUNG * size * average) / (span + YOUNG * size))
    if earnings.counts[KIND] == BAO:
        span = min(span, size)
    return float(earned / span)


@kernel_without_refcounts
def _recent(earnings: Earnings, page: int, earned: float, now: float) -> float:
    """BAO: return the earnings of the last `size` units of time, or since the discovery if that is less."""
    size, last, history = earnings.size[0], earnings.last[page], earnings.history[page]
    discovered = earnings.discovered[page]
    if now - discovered <= size:
        return float(history + earned)
    if now - last < size:
        return float(history * (size - (now - last)) / min(size, last - discovered) + earned)
    return float((history + earned if last == discovered else earned) * size / (now - last))


@kernel_without_refcounts
def halve_earnings(earnings: Earnings, page: int) -> None:
    """Discard half of the earnings of a page (not for PLAIN)."""
    earnings.history[page] *= 0.5
    if earnings.when.shape[0] > 0:
        pair = earnings.oldest[page]
        while pair != NONE:
            earnings.what[pair] *= 0.5
            pair = earnings.after[pair]


@kernel_without_refcounts
def transfer_earnings(earnings: Earnings, page: int, target: int) -> None:
    """Add the history of a page to its redirect target, or the whole record if the target was never fetched."""
    earnings.history[target] += earnings.history[page]
    earnings.history[page] = 0.0
    if earnings.fetches[page] > 0 and earnings.fetches[target] == 0:
        earnings.last[target] = earnings.last[page]
        earnings.fetches[target] = earnings.fetches[page]
        earnings.fetches[page] = 0
        if earnings.counts[KIND] == BAO:
            earnings.discovered[target] = earnings.discovered[page]
        elif earnings.counts[KIND] != PLAIN:
            for spots in (earnings.oldest, earnings.youngest):
                spots[page], spots[target] = spots[target], spots[page]


@kernel_without_refcounts
def _append(earnings: Earnings, page: int, when: float, what: float) -> None:
    pair = earnings.counts[FREE]
    earnings.counts[FREE] = earnings.after[pair]
    earnings.counts[SPARE] -= 1
    earnings.when[pair] = when
    earnings.what[pair] = what
    earnings.after[pair] = NONE
    if earnings.youngest[page] == NONE:
        earnings.oldest[page] = pair
    else:
        earnings.after[earnings.youngest[page]] = pair
    earnings.youngest[page] = pair


@kernel_without_refcounts
def _drop_oldest(earnings: Earnings, page: int) -> None:
    pair = earnings.oldest[page]
    earnings.oldest[page] = earnings.after[pair]
    earnings.after[pair] = earnings.counts[FREE]
    earnings.counts[FREE] = pair
    earnings.counts[SPARE] += 1
