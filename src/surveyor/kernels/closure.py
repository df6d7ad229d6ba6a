"""Pushing on what has reached pages already read: until little is left there, or once over all of them.

Pushes need no download, only the links already known. Each moves mass from *moving* to *captured* and to
pages that wait, so that the guarantee rises and the order of reading improves. See `mass.py`.
"""

from __future__ import annotations

from math import ldexp

import numpy as np

from surveyor.arrays import AnyInt
from surveyor.kernels._jit import bare
from surveyor.kernels.mass import (
    ALLOWANCE,
    CLOSURE,
    CURSOR,
    DEAD,
    DEEPEST,
    EAGER,
    EFFORT,
    HEAD,
    KNOWN,
    LARGEST,
    LIFE,
    MISSED,
    POOL,
    PRECISION,
    READ,
    RING,
    RINGED,
    SAVED,
    SETTLED,
    SIZE,
    STEPS,
    TAIL,
    THRESHOLD,
    TOP,
    UPDATES,
    WORK,
    Mass,
    Rows,
    discover,
    flush,
    line_up,
    push,
    total,
    turn,
)

SCAN_EVERY = 4  # pages that passes look at per link update, at most
RISE, SLACK = 1.25, 0.98  # a threshold that would rise or fall by less stays: after a rise the next fall needs a pass


@bare
def step(mass: Mass, rows: Rows, page: AnyInt) -> None:
    """Account for a page just read, whose links are in its row: what every crawl does once per page."""
    discover(mass, rows.targets, rows.start[page], rows.end[page])
    turn(mass, page, READ)
    if mass.rules[EAGER]:
        push(mass, rows, page)
        close(mass, rows)


@bare
def close(mass: Mass, rows: Rows) -> None:
    """Push read and dead pages whose residual exceeds the threshold, as far as the allowance goes."""
    rules, counts = mass.rules, mass.counts
    rules[ALLOWANCE] = min(rules[ALLOWANCE] + rules[EFFORT], SAVED * rules[EFFORT])
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
        life = mass.state[page] & LIFE
        if life in (READ, DEAD) and abs(mass.residual[page]) > rules[THRESHOLD]:
            push(mass, rows, page)
    rules[ALLOWANCE] -= counts[UPDATES] - before


@bare
def top_waiting(mass: Mass) -> float:
    """Return the largest residual that waits, rounded down by 3 percent at most; 0 if none does."""
    level = mass.counts[TOP]
    while level > 0 and mass.levels[level] == 0:
        level -= 1
    mass.counts[TOP] = level
    if mass.levels[level] == 0:
        return 0.0
    return ldexp(1.0 + (level % STEPS) / STEPS, int(level // STEPS) - DEEPEST)


@bare
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


@bare
def _in_sight(mass: Mass) -> AnyInt:
    """Return how many pages a pass looks at: those read, while they are few, or all."""
    settled = np.int64(mass.counts[SETTLED])
    return settled if settled <= RING else np.int64(mass.counts[SIZE])


@bare
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
                life = state[page] & LIFE
                if life in (READ, DEAD):
                    line_up(mass, page)
            place += 1
        counts[CURSOR] = place
    return bool(counts[HEAD] < counts[TAIL])


@bare
def sweep(mass: Mass, rows: Rows) -> None:
    """Push every page read or dead once, in the order of ids, then the pool."""
    for page in range(mass.counts[SIZE]):
        life = mass.state[page] & LIFE
        if life in (READ, DEAD):
            push(mass, rows, page)
    flush(mass)


@bare
def settle(mass: Mass, rows: Rows) -> None:
    """Close without limit of effort, after a pass over all pages."""
    effort = mass.rules[EFFORT]
    mass.rules[EFFORT], mass.rules[THRESHOLD] = np.inf, np.inf
    mass.counts[WORK] = mass.counts[SIZE]
    close(mass, rows)
    mass.rules[EFFORT] = effort
    mass.rules[ALLOWANCE] = 0.0


@bare
def bury(mass: Mass, rows: Rows, page: AnyInt) -> None:
    """Account for a page that is gone for good: what would reach its readers goes on to the seeds."""
    turn(mass, page, DEAD)
    if mass.rules[EAGER]:
        push(mass, rows, page)
        close(mass, rows)
