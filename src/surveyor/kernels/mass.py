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

# Names of small numbers are np.int64: a kernel would be compiled anew for each plain int it is called with.
# The life of a page, in the low bits of its state; two flags above.
UNKNOWN, WAITING, FETCHED, BLOCKED, GONE, REDIRECTED = map(np.int64, range(6))
STATUS, RINGED, TOUCHED, FLAGS = map(np.int64, (7, 8, 16, 248))

# Totals: captured and lost are settled on pages read and dead; the others are residuals, by life; the pool is on
# its way to the seeds; negative is the size of all residuals below zero.
CAPTURED, MOVING, WAITS, BLOCKS, LOST, DYING, POOL, NEGATIVE, TOTALS = map(np.int64, range(9))
DAMPING, CLOSURE, PRECISION, EFFORT, EAGER, THRESHOLD, ALLOWANCE, LARGEST = map(np.int64, range(8))
# Counts: the ring, the pass over all pages, work since then and ever, pages known and one more than the largest id,
# pages read, turns to read or dead, pages touched, the top level.
HEAD, TAIL, CURSOR, MISSED, WORK, UPDATES, KNOWN, SIZE, FETCHES, SETTLED, COUNT, OVERFLOW, TOP, COUNTS = map(
    np.int64, range(14)
)

RING = 1 << 16
STEPS = 32  # levels per doubling: how exactly the largest waiting residual is known
DEEPEST = 160  # doublings below one that have levels
LEVELS = STEPS * (DEEPEST + 4)
BELOW = np.int64((1023 - DEEPEST) * STEPS)
MANTISSA = np.uint64(47)
NOWHERE = np.int64(-1)  # the level of a page that has none
MAX_SAVED_READS = 1000  # an allowance of so many reads' effort can be saved up


class Rows(NamedTuple):
    """The links of page p: targets[start[p]:end[p]]."""

    start: IntArray
    end: IntArray
    targets: IdArray


class Mass(NamedTuple):
    """The arrays of a ledger; `bits` is another view of `residual`."""

    residual: FloatArray
    bits: KeyArray
    settled: FloatArray  # of an alias: the page it stands for
    state: ByteArray
    seeds: IdArray
    shares: FloatArray  # of the seeds in what jumps; sum 1
    totals: FloatArray  # sums, then what rounding has cut off each
    rules: FloatArray
    counts: IntArray
    levels: IntArray  # waiting pages by the size of their residual
    ring: IdArray
    early: IdArray  # the first pages read or dead
    touched: IdArray  # waiting pages that are new or whose residual changed


def new_mass(pages: int, seeds: IdArray, shares: FloatArray, rules: tuple[float, ...], touched: int) -> Mass:
    """Make room for so many pages and put all mass on the seeds, which wait."""
    residual = np.zeros(pages)
    mass = Mass(
        residual,
        residual.view(np.uint64),
        np.zeros(pages),
        np.zeros(pages, np.uint8),
        seeds,
        shares,
        np.zeros(2 * TOTALS),
        np.array([*rules, inf, 0.0, shares.max()]),
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
    """Add to an account and keep what rounding cuts off."""
    before = totals[account]
    after = before + amount
    if abs(before) >= abs(amount):
        totals[TOTALS + account] += (before - after) + amount
    else:
        totals[TOTALS + account] += (amount - after) + before
    totals[account] = after


@kernel_without_refcounts
def total(mass: Mass, account: AnyInt) -> float:
    """Return the exact sum of an account, rounded once."""
    return float(mass.totals[account] + mass.totals[TOTALS + account])


@kernel_without_refcounts
def bounds(mass: Mass) -> tuple[float, float]:
    """Return what the pages read hold at least and at most, wherever unread pages may lead.

    A page keeps at least 1 - damping of its own residual; of a negative one nothing better is known than that
    all of it may be wrong. Mass in the pool counts for neither side.
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
def account_of(life: AnyInt) -> AnyInt:
    """Return the account of a residual by the life of its page."""
    if life == FETCHED:
        return MOVING
    if life == BLOCKED:
        return BLOCKS
    return DYING if life == GONE else WAITS


@kernel_without_refcounts
def redirect_target(mass: Mass, page: AnyInt) -> AnyInt:
    """Follow aliases to the page that counts."""
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
    """Note that the priority of a waiting page may have changed."""
    count = mass.counts[COUNT]
    if count < mass.touched.shape[0]:
        mass.touched[count] = page
        mass.counts[COUNT] = count + 1
        mass.state[page] |= np.uint8(TOUCHED)
    else:
        mass.counts[OVERFLOW] = 1


@kernel_without_refcounts
def enqueue_push(mass: Mass, page: AnyInt) -> None:
    """Put a page in line for a push."""
    if mass.counts[TAIL] - mass.counts[HEAD] >= RING:
        mass.counts[MISSED] = 1
        return
    mass.ring[mass.counts[TAIL] & (RING - 1)] = page
    mass.counts[TAIL] += 1
    mass.state[page] |= np.uint8(RINGED)


@kernel_without_refcounts
def receive(mass: Mass, page: AnyInt, amount: float) -> AnyInt:
    """Add to the residual of a page (or of the page it stands for); return that page's life, not yet accounted."""
    state = mass.state[page]
    if state & STATUS == REDIRECTED:
        page = redirect_target(mass, page)
        state = mass.state[page]
    life = np.int64(state & STATUS)
    before = mass.residual[page]
    if life == WAITING:
        old = _level(mass, page)
        mass.residual[page] = before + amount
        new = _level(mass, page)
        if old != new:
            _move_level(mass, old, new)
        if not state & TOUCHED:
            _touch(mass, page)
    else:
        mass.residual[page] = before + amount
        if abs(before + amount) > mass.rules[THRESHOLD] and life != BLOCKED and not state & RINGED:
            enqueue_push(mass, page)
    if before < 0.0 or before + amount < 0.0:
        add(mass.totals, NEGATIVE, max(-before - amount, 0.0) - max(-before, 0.0))
    return life


@kernel_without_refcounts
def _move_level(mass: Mass, old: AnyInt, new: AnyInt) -> None:
    if old >= 0:
        mass.levels[old] -= 1
    if new >= 0:
        mass.levels[new] += 1
        mass.counts[TOP] = max(mass.counts[TOP], new)


@kernel_without_refcounts
def set_status(mass: Mass, page: AnyInt, life: AnyInt) -> None:
    """Give a page another life; its residual changes accounts."""
    old = np.int64(mass.state[page] & STATUS)
    if old == life:
        return
    amount = mass.residual[page]
    if old == UNKNOWN:
        mass.counts[KNOWN] += 1
        mass.counts[SIZE] = max(mass.counts[SIZE], page + 1)
    elif amount != 0.0:
        add(mass.totals, account_of(old), -amount)
    if amount != 0.0:
        add(mass.totals, account_of(life), amount)
    if old == WAITING:
        _move_level(mass, _level(mass, page), NOWHERE)
    mass.counts[FETCHES] += int(life == FETCHED) - int(old == FETCHED)
    mass.state[page] = np.uint8((mass.state[page] & FLAGS) | life)
    if life == WAITING:
        _move_level(mass, NOWHERE, _level(mass, page))
        if not mass.state[page] & TOUCHED:
            _touch(mass, page)
    elif life in (FETCHED, GONE):
        if mass.counts[SETTLED] < RING:
            mass.early[mass.counts[SETTLED]] = page
        elif mass.counts[SETTLED] == RING:
            mass.counts[MISSED] = 1  # from now on passes go by id
        mass.counts[SETTLED] += 1


@kernel_without_refcounts
def discover(mass: Mass, links: IdArray, first: AnyInt, last: AnyInt) -> None:
    """Let pages that were never heard of wait."""
    for link in range(first, last):
        page = np.int64(links[link])
        if mass.state[page] & STATUS == UNKNOWN:
            set_status(mass, page, WAITING)


@kernel_without_refcounts
def give(mass: Mass, links: IdArray, first: AnyInt, last: AnyInt, amount: float) -> None:
    """Hand an amount to some links in equal shares; without links, to the pool.

    The common cases of `receive` are written out on local arrays: this is where all time goes.
    """
    if first == last:
        add(mass.totals, POOL, amount)
        return
    share = amount / (last - first)
    residual, bits, state, levels = mass.residual, mass.bits, mass.state, mass.levels
    threshold = mass.rules[THRESHOLD]
    top = mass.counts[TOP]
    waiting, read, blocked, dying = 0, 0, 0, 0
    for link in range(first, last):
        page = np.int64(links[link])
        flags = state[page]
        before = residual[page]
        after = before + share
        if flags & STATUS == FETCHED and before >= 0.0 and after >= 0.0 and (after <= threshold or flags & RINGED):
            residual[page] = after
            read += 1
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
            life = receive(mass, page, share)
            read += int(life == FETCHED)
            waiting += int(life == WAITING)
            blocked += int(life == BLOCKED)
            dying += int(life == GONE)
    mass.counts[TOP] = max(mass.counts[TOP], top)
    add(mass.totals, MOVING, share * read)
    add(mass.totals, WAITS, share * waiting)
    if blocked:
        add(mass.totals, BLOCKS, share * blocked)
    if dying:
        add(mass.totals, DYING, share * dying)
    mass.counts[UPDATES] += last - first
    mass.counts[WORK] += last - first


@kernel_without_refcounts
def push(mass: Mass, rows: Rows, page: AnyInt) -> None:
    """Settle part of a residual and hand the rest on. Zero first: what comes back at once must not be lost."""
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
    """Take back all that a page, read or dead, has settled and handed to these links; it is on the page again."""
    kept = mass.settled[page]
    if kept == 0.0:
        return
    life = np.int64(mass.state[page] & STATUS)
    amount = kept / (1.0 - mass.rules[DAMPING])
    mass.settled[page] = 0.0
    add(mass.totals, CAPTURED if life == FETCHED else LOST, -kept)
    give(mass, links, np.int64(0), links.shape[0] if life == FETCHED else 0, kept - amount)
    receive(mass, page, amount)
    add(mass.totals, account_of(life), amount)


@kernel_without_refcounts
def flush(mass: Mass) -> None:
    """Hand the pool to the seeds."""
    amount = total(mass, POOL)
    mass.totals[POOL] = mass.totals[TOTALS + POOL] = 0.0
    for seed in range(mass.seeds.shape[0]):
        share = amount * mass.shares[seed]
        add(mass.totals, account_of(receive(mass, np.int64(mass.seeds[seed]), share)), share)
    mass.counts[UPDATES] += mass.seeds.shape[0]
    mass.counts[WORK] += mass.seeds.shape[0]


@kernel_without_refcounts
def merge(mass: Mass, page: AnyInt, target: AnyInt) -> None:
    """Let a page stand for another from now on, with all its mass; nothing of it may be settled."""
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
    """Start a new list of touched pages."""
    for place in range(mass.counts[COUNT]):
        mass.state[mass.touched[place]] &= np.uint8(255 - TOUCHED)
    mass.counts[COUNT] = mass.counts[OVERFLOW] = 0


SCAN_EVERY = 4  # pages that passes look at per link update, at most
RISE, SLACK = 1.25, 0.98  # a threshold that would rise or fall by less stays: after a rise the next fall needs a pass


@kernel_without_refcounts
def step(mass: Mass, rows: Rows, page: AnyInt) -> None:
    """Account for a page just read, whose links are in its row: what every crawl does once per page."""
    discover(mass, rows.targets, rows.start[page], rows.end[page])
    set_status(mass, page, FETCHED)
    if mass.rules[EAGER]:
        push(mass, rows, page)
        close(mass, rows)


@kernel_without_refcounts
def close(mass: Mass, rows: Rows) -> None:
    """Push read and dead pages whose residual exceeds the threshold, as far as the allowance goes."""
    rules, counts = mass.rules, mass.counts
    rules[ALLOWANCE] = min(rules[ALLOWANCE] + rules[EFFORT], MAX_SAVED_READS * rules[EFFORT])
    _set_threshold(mass)
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
        life = mass.state[page] & STATUS
        if life in (FETCHED, GONE) and abs(mass.residual[page]) > rules[THRESHOLD]:
            push(mass, rows, page)
    rules[ALLOWANCE] -= counts[UPDATES] - before


@kernel_without_refcounts
def top_waiting(mass: Mass) -> float:
    """Return the largest residual that waits, rounded down by 3 percent at most; 0 if none does."""
    level = mass.counts[TOP]
    while level > 0 and mass.levels[level] == 0:
        level -= 1
    mass.counts[TOP] = level
    if mass.levels[level] == 0:
        return 0.0
    return ldexp(1.0 + (level % STEPS) / STEPS, int(level // STEPS) - DEEPEST)


@kernel_without_refcounts
def _set_threshold(mass: Mass) -> None:
    """Follow the largest waiting residual; a pass that would come too soon is put off, unless nothing waits."""
    rules, counts = mass.rules, mass.counts
    top = top_waiting(mass)
    wanted = max(rules[CLOSURE] * top, rules[PRECISION] / max(counts[KNOWN], 1))
    if wanted > RISE * rules[THRESHOLD]:
        rules[THRESHOLD] = wanted
    elif top == 0.0 or (wanted < SLACK * rules[THRESHOLD] and SCAN_EVERY * counts[WORK] >= _in_sight(mass)):
        rules[THRESHOLD] = wanted
        counts[WORK] = counts[CURSOR] = 0


@kernel_without_refcounts
def _in_sight(mass: Mass) -> AnyInt:
    """Return how many pages a pass looks at: those read, while they are few, or all."""
    settled = np.int64(mass.counts[SETTLED])
    return settled if settled <= RING else np.int64(mass.counts[SIZE])


@kernel_without_refcounts
def _refill(mass: Mass) -> bool:
    """Look for more pages above the threshold; say whether there are any in the ring now."""
    counts, few = mass.counts, mass.counts[SETTLED] <= RING
    residual, state, threshold = mass.residual, mass.state, mass.rules[THRESHOLD]
    last = _in_sight(mass)
    while counts[HEAD] == counts[TAIL] and (counts[CURSOR] < last or counts[MISSED]):
        if counts[CURSOR] >= last:
            counts[CURSOR] = counts[MISSED] = 0
        place = counts[CURSOR]
        while place < last and counts[TAIL] - counts[HEAD] < RING:
            page = np.int64(mass.early[place]) if few else place
            if abs(residual[page]) > threshold and not state[page] & RINGED:
                life = state[page] & STATUS
                if life in (FETCHED, GONE):
                    enqueue_push(mass, page)
            place += 1
        counts[CURSOR] = place
    return bool(counts[HEAD] < counts[TAIL])


@kernel_without_refcounts
def sweep(mass: Mass, rows: Rows) -> None:
    """Push every page read or dead once, in the order of ids, then the pool."""
    for page in range(mass.counts[SIZE]):
        life = mass.state[page] & STATUS
        if life in (FETCHED, GONE):
            push(mass, rows, page)
    flush(mass)


@kernel_without_refcounts
def settle(mass: Mass, rows: Rows) -> None:
    """Close without limit of effort, after a pass over all pages."""
    effort = mass.rules[EFFORT]
    mass.rules[EFFORT], mass.rules[THRESHOLD] = np.inf, np.inf
    mass.counts[WORK] = mass.counts[SIZE]
    close(mass, rows)
    mass.rules[EFFORT] = effort
    mass.rules[ALLOWANCE] = 0.0


@kernel_without_refcounts
def record_gone(mass: Mass, rows: Rows, page: AnyInt) -> None:
    """Account for a page that is gone for good: what would reach its readers goes on to the seeds."""
    set_status(mass, page, GONE)
    if mass.rules[EAGER]:
        push(mass, rows, page)
        close(mass, rows)
