"""The mass accounts: a conserved mass that is pushed along the links of fetched pages.

Each page has a residual (mass that has arrived and was not yet passed on) and settled mass. A push settles
1 - damping of the residual of a page and distributes the rest over its links in equal shares; a page without links
gives it to the pool, which goes to the seeds. At every moment, with PPR_i the importance when all jumps go to page i,

    PPR(seeds) = settled + Σ residual_i · PPR_i      (residuals may be negative after a page has changed)

Every unit is in one account, by the status of its page; `totals` are compensated sums, so that the accounts sum to 1
after any number of pushes.

*Closure*: mass on fetched pages is pushed on, first in first out, wherever it exceeds a threshold that follows the
largest waiting residual. Such pushes need no download. Each moves mass from *moving* to *captured* and to waiting
pages, so that the lower bound rises and the crawl order improves. Pages above the threshold are in a short ring buffer;
when the threshold falls, or the ring has overflowed, one scan of all pages (of the first fetched pages, while they are
few) finds the rest. Scans are spaced by other work, so that they stay cheap. 17 bytes per page, plus its links.
"""

from __future__ import annotations

from math import inf, ldexp
from typing import NamedTuple

import numpy as np

from surveyor.arrays import AnyInt, ByteArray, FloatArray, IdArray, IntArray, KeyArray
from surveyor.kernels._jit import kernel_without_refcounts

# Constants are np.int64: a kernel is compiled again for each plain int literal that it is called with.
# The status of a page, in the low bits of its state; two flags above.
UNKNOWN, WAITING, FETCHED, BLOCKED, GONE, REDIRECTED, PROXY = map(np.int64, range(7))
STATUS, RINGED, TOUCHED, FLAGS = map(np.int64, (7, 8, 16, 248))

# Totals: captured and lost are settled mass of fetched and gone pages; the others are residuals, by status; the pool
# goes to the seeds; negative is the total size of all residuals below zero; outbox is mass on proxies, which stand for
# the pages of other shards until it is sent there.
CAPTURED, MOVING, WAITS, BLOCKS, LOST, DYING, POOL, NEGATIVE, OUTBOX, TOTALS = map(np.int64, range(10))
DAMPING, CLOSURE, PRECISION, EFFORT, EAGER, THRESHOLD, ALLOWANCE, LARGEST, RECENT = map(np.int64, range(9))
# Counts: the ring, the scan of all pages, link updates since then and in total, known pages and one more than the
# largest id, fetched pages, changes of status to fetched or gone, touched pages, the top level.
HEAD, TAIL, CURSOR, MISSED, WORK, UPDATES, KNOWN, SIZE, FETCHES, SETTLED, COUNT, OVERFLOW, TOP, COUNTS = map(
    np.int64, range(14)
)

RING = 1 << 16
STEPS = 32  # levels per doubling: the precision of the largest waiting residual
DEEPEST = 160  # doublings below one that are covered by levels
LEVELS = STEPS * (DEEPEST + 4)
BELOW = np.int64((1023 - DEEPEST) * STEPS)
MANTISSA = np.uint64(47)
NOWHERE = np.int64(-1)  # the level of a page that has none
MAX_SAVED_FETCHES = 1000  # unused effort accumulates up to that of this many fetches


class Rows(NamedTuple):
    """The links of page p: targets[start[p]:end[p]]."""

    start: IntArray
    end: IntArray
    targets: IdArray


class Mass(NamedTuple):
    """The arrays of a ledger; `bits` is another view of `residual`."""

    residual: FloatArray
    bits: KeyArray
    settled: FloatArray  # of a redirected page: the id of its target
    state: ByteArray
    seeds: IdArray
    shares: FloatArray  # teleport probability of each seed; sum 1
    totals: FloatArray  # sums, then their rounding compensations
    rules: FloatArray
    counts: IntArray
    levels: IntArray  # waiting pages by the size of their residual
    ring: IdArray
    early: IdArray  # the first fetched or gone pages
    touched: IdArray  # waiting pages that are new or whose residual changed


def new_mass(pages: int, seeds: IdArray, shares: FloatArray, rules: tuple[float, ...], touched: int) -> Mass:
    """Allocate the accounts of `pages` pages, with all mass on the waiting seeds."""
    residual = np.zeros(pages)
    mass = Mass(
        residual,
        residual.view(np.uint64),
        np.zeros(pages),
        np.zeros(pages, np.uint8),
        seeds,
        shares,
        np.zeros(2 * TOTALS),
        np.array([*rules, inf, 0.0, shares.max(), inf]),
        np.zeros(COUNTS, np.int64),
        np.zeros(LEVELS, np.int64),
        np.empty(RING, np.int32),
        np.empty(RING, np.int32),
        np.empty(touched, np.int32),
    )
    mass.totals[POOL] = 1.0
    discover(mass, seeds, 0, seeds.size)
    flush(mass)
    return mass


@kernel_without_refcounts
def add(totals: FloatArray, account: AnyInt, amount: float) -> None:
    """Add to an account with Neumaier's compensation."""
    before = totals[account]
    after = before + amount
    if abs(before) >= abs(amount):
        totals[TOTALS + account] += (before - after) + amount
    else:
        totals[TOTALS + account] += (amount - after) + before
    totals[account] = after


@kernel_without_refcounts
def total(mass: Mass, account: AnyInt) -> float:
    """Return the compensated sum of an account."""
    return float(mass.totals[account] + mass.totals[TOTALS + account])


@kernel_without_refcounts
def bounds(mass: Mass) -> tuple[float, float]:
    """Return lower and upper bounds of the coverage of fetched pages, for any links of unfetched pages.

    A page keeps at least 1 - damping of its own residual; a negative residual may be wrong entirely. Mass in the pool
    counts for neither bound.
    """
    keeps = 1.0 - mass.rules[DAMPING]
    doubt = total(mass, NEGATIVE) + max(-total(mass, POOL), 0.0)
    low = total(mass, CAPTURED) + keeps * total(mass, MOVING) - doubt
    outside = total(mass, WAITS) + total(mass, BLOCKS) + total(mass, DYING)
    high = 1.0 - total(mass, LOST) - keeps * outside + doubt
    low = min(max(low, 0.0), 1.0)
    return low, min(max(high, low), 1.0)


@kernel_without_refcounts
def summary(mass: Mass, out: FloatArray) -> None:
    """Write both bounds, then captured, moving, waiting, blocked and lost."""
    out[0], out[1] = bounds(mass)
    out[2] = total(mass, CAPTURED)
    out[3] = total(mass, MOVING) + total(mass, POOL)
    out[4] = total(mass, WAITS)
    out[5] = total(mass, BLOCKS)
    out[6] = total(mass, LOST) + total(mass, DYING)


@kernel_without_refcounts
def account_of(status: AnyInt) -> AnyInt:
    """Return the account of a residual by the status of its page."""
    if status == FETCHED:
        return MOVING
    if status == BLOCKED:
        return BLOCKS
    if status == PROXY:
        return OUTBOX
    return DYING if status == GONE else WAITS


@kernel_without_refcounts
def redirect_target(mass: Mass, page: AnyInt) -> AnyInt:
    """Follow redirects to the final page."""
    while mass.state[page] & STATUS == REDIRECTED:
        page = int(mass.settled[page])
    return page


@kernel_without_refcounts
def _level(mass: Mass, page: AnyInt) -> AnyInt:
    """Return the level of a residual, -1 if it is not positive."""
    if mass.residual[page] <= 0.0:
        return NOWHERE
    return _level_of(mass.bits[page] >> MANTISSA)


@kernel_without_refcounts
def _level_of(bits: np.uint64) -> AnyInt:
    return max(np.int64(0), min(np.int64(bits) - BELOW, np.int64(LEVELS - 1)))


@kernel_without_refcounts
def _touch(mass: Mass, page: AnyInt) -> None:
    """Record that the priority of a waiting page may have changed."""
    count = mass.counts[COUNT]
    if count < mass.touched.shape[0]:
        mass.touched[count] = page
        mass.counts[COUNT] = count + 1
        mass.state[page] |= np.uint8(TOUCHED)
    else:
        mass.counts[OVERFLOW] = 1


@kernel_without_refcounts
def enqueue_push(mass: Mass, page: AnyInt) -> None:
    """Append a page to the ring of pages to push."""
    if mass.counts[TAIL] - mass.counts[HEAD] >= RING:
        mass.counts[MISSED] = 1
        return
    mass.ring[mass.counts[TAIL] & (RING - 1)] = page
    mass.counts[TAIL] += 1
    mass.state[page] |= np.uint8(RINGED)


@kernel_without_refcounts
def receive(mass: Mass, page: AnyInt, amount: float) -> AnyInt:
    """Add to the residual of a page or of its redirect target; return the status of that page for accounting."""
    state = mass.state[page]
    if state & STATUS == REDIRECTED:
        page = redirect_target(mass, page)
        state = mass.state[page]
    status = np.int64(state & STATUS)
    before = mass.residual[page]
    if status == WAITING:
        old = _level(mass, page)
        mass.residual[page] = before + amount
        new = _level(mass, page)
        if old != new:
            _move_level(mass, old, new)
        if not state & TOUCHED:
            _touch(mass, page)
    else:
        mass.residual[page] = before + amount
        passes = status in (FETCHED, GONE)
        if abs(before + amount) > mass.rules[THRESHOLD] and passes and not state & RINGED:
            enqueue_push(mass, page)
    if before < 0.0 or before + amount < 0.0:
        add(mass.totals, NEGATIVE, max(-before - amount, 0.0) - max(-before, 0.0))
    return status


@kernel_without_refcounts
def _move_level(mass: Mass, old: AnyInt, new: AnyInt) -> None:
    if old >= 0:
        mass.levels[old] -= 1
    if new >= 0:
        mass.levels[new] += 1
        mass.counts[TOP] = max(mass.counts[TOP], new)


@kernel_without_refcounts
def set_status(mass: Mass, page: AnyInt, status: AnyInt) -> None:
    """Change the status of a page; its residual changes accounts."""
    old = np.int64(mass.state[page] & STATUS)
    if old == status:
        return
    amount = mass.residual[page]
    if old == UNKNOWN:
        mass.counts[KNOWN] += 1
        mass.counts[SIZE] = max(mass.counts[SIZE], page + 1)
    elif amount != 0.0:
        add(mass.totals, account_of(old), -amount)
    if amount != 0.0:
        add(mass.totals, account_of(status), amount)
    if old == WAITING:
        _move_level(mass, _level(mass, page), NOWHERE)
    mass.counts[FETCHES] += int(status == FETCHED) - int(old == FETCHED)
    mass.state[page] = np.uint8((mass.state[page] & FLAGS) | status)
    if status == WAITING:
        _move_level(mass, NOWHERE, _level(mass, page))
        if not mass.state[page] & TOUCHED:
            _touch(mass, page)
    elif status in (FETCHED, GONE):
        if mass.counts[SETTLED] < RING:
            mass.early[mass.counts[SETTLED]] = page
        elif mass.counts[SETTLED] == RING:
            mass.counts[MISSED] = 1  # from now on scans are in id order
        mass.counts[SETTLED] += 1


@kernel_without_refcounts
def discover(mass: Mass, links: IdArray, first: AnyInt, last: AnyInt) -> None:
    """Set newly discovered pages to waiting."""
    for link in range(first, last):
        page = np.int64(links[link])
        if mass.state[page] & STATUS == UNKNOWN:
            set_status(mass, page, WAITING)


@kernel_without_refcounts
def give(mass: Mass, links: IdArray, first: AnyInt, last: AnyInt, amount: float) -> None:
    """Distribute an amount over links in equal shares; without links, add it to the pool.

    The common cases of `receive` are inlined on local arrays: this loop takes nearly all of the time.
    """
    if first == last:
        add(mass.totals, POOL, amount)
        return
    share = amount / (last - first)
    residual, bits, state, levels = mass.residual, mass.bits, mass.state, mass.levels
    threshold = mass.rules[THRESHOLD]
    top = mass.counts[TOP]
    waiting, fetched, blocked, gone, proxies = 0, 0, 0, 0, 0
    for link in range(first, last):
        page = np.int64(links[link])
        flags = state[page]
        before = residual[page]
        after = before + share
        if flags & STATUS == FETCHED and before >= 0.0 and after >= 0.0 and (after <= threshold or flags & RINGED):
            residual[page] = after
            fetched += 1
        elif flags & STATUS == WAITING and flags & TOUCHED and before > 0.0 and after > 0.0:
            old = bits[page] >> MANTISSA
            residual[page] = after
            new = bits[page] >> MANTISSA
            if old != new:
                lower, upper = _level_of(old), _level_of(new)
                levels[lower] -= 1
                levels[upper] += 1
                top = max(top, upper)
            waiting += 1
        else:
            status = receive(mass, page, share)
            fetched += int(status == FETCHED)
            waiting += int(status == WAITING)
            blocked += int(status == BLOCKED)
            gone += int(status == GONE)
            proxies += int(status == PROXY)
    mass.counts[TOP] = max(mass.counts[TOP], top)
    add(mass.totals, MOVING, share * fetched)
    add(mass.totals, WAITS, share * waiting)
    if blocked:
        add(mass.totals, BLOCKS, share * blocked)
    if gone:
        add(mass.totals, DYING, share * gone)
    if proxies:
        add(mass.totals, OUTBOX, share * proxies)
    mass.counts[UPDATES] += last - first
    mass.counts[WORK] += last - first


@kernel_without_refcounts
def push(mass: Mass, rows: Rows, page: AnyInt) -> None:
    """Settle part of a residual and distribute the rest. The residual is zeroed first, for links back to the page."""
    amount = mass.residual[page]
    if amount == 0.0:
        return
    mass.residual[page] = 0.0
    if amount < 0.0:
        add(mass.totals, NEGATIVE, amount)
    damping = mass.rules[DAMPING]
    kept = (1.0 - damping) * amount
    mass.settled[page] += kept
    if mass.state[page] & STATUS == GONE:
        add(mass.totals, DYING, -amount)
        add(mass.totals, LOST, kept)
        add(mass.totals, POOL, amount - kept)
        return
    add(mass.totals, MOVING, -amount)
    add(mass.totals, CAPTURED, kept)
    give(mass, rows.targets, rows.start[page], rows.end[page], amount - kept)


@kernel_without_refcounts
def retract(mass: Mass, page: AnyInt, links: IdArray) -> None:
    """Withdraw all mass that a fetched or gone page settled and sent over these links; it becomes residual again."""
    kept = mass.settled[page]
    if kept == 0.0:
        return
    status = np.int64(mass.state[page] & STATUS)
    amount = kept / (1.0 - mass.rules[DAMPING])
    mass.settled[page] = 0.0
    add(mass.totals, CAPTURED if status == FETCHED else LOST, -kept)
    give(mass, links, np.int64(0), links.shape[0] if status == FETCHED else 0, kept - amount)
    receive(mass, page, amount)
    add(mass.totals, account_of(status), amount)


@kernel_without_refcounts
def flush(mass: Mass) -> None:
    """Distribute the pool over the seeds."""
    amount = total(mass, POOL)
    mass.totals[POOL] = mass.totals[TOTALS + POOL] = 0.0
    for seed in range(mass.seeds.shape[0]):
        share = amount * mass.shares[seed]
        add(mass.totals, account_of(receive(mass, np.int64(mass.seeds[seed]), share)), share)
    mass.counts[UPDATES] += mass.seeds.shape[0]
    mass.counts[WORK] += mass.seeds.shape[0]


@kernel_without_refcounts
def merge(mass: Mass, page: AnyInt, target: AnyInt) -> None:
    """Redirect a page to a target, which receives its residual; the page must have no settled mass."""
    amount = mass.residual[page]
    add(mass.totals, account_of(np.int64(mass.state[page] & STATUS)), -amount)
    if mass.state[page] & STATUS == WAITING:
        _move_level(mass, _level(mass, page), NOWHERE)
    mass.counts[FETCHES] -= int(mass.state[page] & STATUS == FETCHED)
    mass.residual[page] = 0.0
    if amount < 0.0:
        add(mass.totals, NEGATIVE, amount)
    mass.settled[page] = target
    mass.state[page] = np.uint8((mass.state[page] & FLAGS) | REDIRECTED)
    add(mass.totals, account_of(receive(mass, target, amount)), amount)


@kernel_without_refcounts
def clear_touched(mass: Mass) -> None:
    """Clear the list of touched pages."""
    for place in range(mass.counts[COUNT]):
        mass.state[mass.touched[place]] &= np.uint8(255 - TOUCHED)
    mass.counts[COUNT] = mass.counts[OVERFLOW] = 0


SCAN_EVERY = 4  # maximum number of pages scanned per link update
RISE, SLACK = 1.25, 0.98  # smaller changes of the threshold are ignored: each fall needs a scan
LEAST_MOVING = 1e-4  # of all mass: less is not pushed for a goal
FADE = 0.9  # per fetched page, of the largest mass on recently fetched pages


@kernel_without_refcounts
def step(mass: Mass, rows: Rows, page: AnyInt) -> None:
    """Account for a page just fetched, whose links are in its row; every crawl calls this once per page."""
    rules = mass.rules
    before = FADE * rules[RECENT] if rules[RECENT] < inf else 0.0
    rules[RECENT] = max(abs(mass.residual[page]), before)
    discover(mass, rows.targets, rows.start[page], rows.end[page])
    set_status(mass, page, FETCHED)
    if rules[EAGER]:
        push(mass, rows, page)
        close(mass, rows)


@kernel_without_refcounts
def close(mass: Mass, rows: Rows) -> None:
    """Push fetched and gone pages whose residual exceeds the threshold, within the allowance."""
    rules = mass.rules
    rules[ALLOWANCE] = min(rules[ALLOWANCE] + rules[EFFORT], MAX_SAVED_FETCHES * rules[EFFORT])
    _set_threshold(mass)
    _drain(mass, rows)


@kernel_without_refcounts
def _drain(mass: Mass, rows: Rows) -> None:
    """Push all residuals above the threshold, and the pool, until the allowance is spent."""
    rules, counts = mass.rules, mass.counts
    before = counts[UPDATES]
    while rules[ALLOWANCE] > counts[UPDATES] - before:
        if counts[HEAD] == counts[TAIL] and not _refill(mass):
            if abs(total(mass, POOL)) * rules[LARGEST] <= rules[THRESHOLD]:
                break
            flush(mass)
            continue
        page = np.int64(mass.ring[counts[HEAD] & (RING - 1)])
        counts[HEAD] += 1
        mass.state[page] &= np.uint8(255 - RINGED)
        status = mass.state[page] & STATUS
        if status in (FETCHED, GONE) and abs(mass.residual[page]) > rules[THRESHOLD]:
            push(mass, rows, page)
    rules[ALLOWANCE] -= counts[UPDATES] - before


@kernel_without_refcounts
def top_waiting(mass: Mass) -> float:
    """Return the largest waiting residual, rounded down by at most 3 %; 0 if there is none."""
    level = mass.counts[TOP]
    while level > 0 and mass.levels[level] == 0:
        level -= 1
    mass.counts[TOP] = level
    if mass.levels[level] == 0:
        return 0.0
    return ldexp(1.0 + (level % STEPS) / STEPS, int(level // STEPS) - DEEPEST)


@kernel_without_refcounts
def _set_threshold(mass: Mass) -> None:
    """Follow the largest residual that can be fetched now; a scan that is not due is postponed while pages wait.

    That is the largest waiting residual, or that of recently fetched pages if it is smaller: then the pages with more
    mass cannot be fetched now, because they wait for a retry or their host is in backoff.
    """
    rules, counts = mass.rules, mass.counts
    top = top_waiting(mass)
    wanted = max(rules[CLOSURE] * min(top, rules[RECENT]), rules[PRECISION] / max(counts[KNOWN], 1))
    if wanted > RISE * rules[THRESHOLD]:
        rules[THRESHOLD] = wanted
    elif top == 0.0 or (wanted < SLACK * rules[THRESHOLD] and SCAN_EVERY * counts[WORK] >= _scan_size(mass)):
        rules[THRESHOLD] = wanted
        counts[WORK] = counts[CURSOR] = 0


@kernel_without_refcounts
def _scan_size(mass: Mass) -> AnyInt:
    """Return the number of pages to scan: the fetched pages, while they are few, or all."""
    settled = np.int64(mass.counts[SETTLED])
    return settled if settled <= RING else np.int64(mass.counts[SIZE])


@kernel_without_refcounts
def _refill(mass: Mass) -> bool:
    """Scan for more pages above the threshold; return whether the ring is non-empty."""
    counts, few = mass.counts, mass.counts[SETTLED] <= RING
    residual, state, threshold = mass.residual, mass.state, mass.rules[THRESHOLD]
    last = _scan_size(mass)
    while counts[HEAD] == counts[TAIL] and (counts[CURSOR] < last or counts[MISSED]):
        if counts[CURSOR] >= last:
            counts[CURSOR] = counts[MISSED] = 0
        place = counts[CURSOR]
        while place < last and counts[TAIL] - counts[HEAD] < RING:
            page = np.int64(mass.early[place]) if few else place
            if abs(residual[page]) > threshold and not state[page] & RINGED:
                status = state[page] & STATUS
                if status in (FETCHED, GONE):
                    enqueue_push(mass, page)
            place += 1
        counts[CURSOR] = place
    return bool(counts[HEAD] < counts[TAIL])


@kernel_without_refcounts
def sweep(mass: Mass, rows: Rows) -> None:
    """Push every fetched or gone page once, in id order, then the pool."""
    for page in range(mass.counts[SIZE]):
        status = mass.state[page] & STATUS
        if status in (FETCHED, GONE):
            push(mass, rows, page)
    flush(mass)


@kernel_without_refcounts
def settle(mass: Mass, rows: Rows) -> None:
    """Push to closure with unlimited effort, after a scan of all pages."""
    effort = mass.rules[EFFORT]
    mass.rules[EFFORT], mass.rules[THRESHOLD] = np.inf, np.inf
    mass.counts[WORK] = mass.counts[SIZE]
    close(mass, rows)
    mass.rules[EFFORT] = effort
    mass.rules[ALLOWANCE] = 0.0


@kernel_without_refcounts
def deepen(mass: Mass, rows: Rows, threshold: float) -> None:
    """Push all residuals of fetched and gone pages above a threshold, with unlimited effort."""
    rules, saved = mass.rules, mass.rules[ALLOWANCE]
    rules[ALLOWANCE], rules[THRESHOLD] = np.inf, threshold
    mass.counts[WORK] = mass.counts[CURSOR] = 0
    _drain(mass, rows)
    rules[ALLOWANCE] = saved


@kernel_without_refcounts
def goal_threshold(mass: Mass, goal: float) -> float:
    """Return the threshold of a push that may reach a coverage goal without a fetch; 0 if there is none.

    If all moving mass were captured, the goal would be reached. Pushed to this threshold, at most half of the surplus
    is still moving; the rest is captured, or waits on pages that have to be fetched.
    """
    moving = total(mass, MOVING) + total(mass, POOL)
    surplus = total(mass, CAPTURED) + moving - goal
    if surplus < 0.0 or moving < LEAST_MOVING or bounds(mass)[0] >= goal:
        return 0.0
    return float(max(surplus, LEAST_MOVING) / 2.0 / max(mass.counts[KNOWN], 1))


@kernel_without_refcounts
def record_gone(mass: Mass, rows: Rows, page: AnyInt) -> None:
    """Account for a page that is permanently gone: what surfers would carry on from it goes to the seeds."""
    set_status(mass, page, GONE)
    if mass.rules[EAGER]:
        push(mass, rows, page)
        close(mass, rows)


@kernel_without_refcounts
def make_proxies(mass: Mass, pages: IdArray) -> None:
    """Make unknown pages proxies of pages of other shards; seeds that have mass lose it."""
    for entry in range(pages.shape[0]):
        page = np.int64(pages[entry])
        status = np.int64(mass.state[page] & STATUS)
        if status == WAITING:
            add(mass.totals, WAITS, -mass.residual[page])
            _move_level(mass, _level(mass, page), NOWHERE)
            mass.residual[page] = 0.0
            mass.state[page] = np.uint8((mass.state[page] & FLAGS) | PROXY)
        elif status == UNKNOWN:
            set_status(mass, page, PROXY)
