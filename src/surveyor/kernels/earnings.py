"""What pages earned over time, remembered in one of four ways; for OPIC (see `opic.py`).

Time is all cash moved so far (G in the paper). A page is read at time `now`; since the last read it earned `moved`:

- PLAIN: history is all it ever moved.
- FIXED: pairs (now, moved) of its reads, back to the last one older than now − size.
- VARIABLE: pairs of its last `size` reads.
- BAO: history is what it earned in the last `size` units of time, as far as one number can tell. With Δ the time
  since the last read, a read replaces the part that has grown old: history·(size − Δ)/size + moved, or
  moved·size/Δ if Δ ≥ size. Before a page has been known for `size`, nothing is old: history + moved.

The rate of a page is what it earned since the oldest pair that counts, by the time since then. What the oldest
pair itself moved was earned before, and does not count. A discovery is a pair that moved nothing. (BAO that took a
new page for one without earnings would find only Δ/size of them at its first read.) Cash that a page did not
earn, of the first pages at the beginning, is a debt.

A span shorter than a quarter of the window says little; the page then counts as if for a quarter of the window
before it had earned like an average page. (Important pages fill a VARIABLE window in no time; there this holds
only until the window is full.)

Pairs lie in one pool as linked lists, oldest first. Memory per page: 20 bytes, with BAO or pairs 28, and 20 a pair.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surveyor.arrays import FloatArray, IdArray, IntArray
from surveyor.kernels._jit import bare

PLAIN, FIXED, VARIABLE, BAO = map(np.int64, range(4))
KIND, FREE, SPARE = map(np.int64, range(3))  # in `counts`: how pages are remembered, the first free pair, free pairs
YOUNG = 0.25  # of a window: what is known for less time is blended with the average
NONE = -1


class Earnings(NamedTuple):
    """What each page earned."""

    history: FloatArray
    last: FloatArray  # when it was last read, or discovered
    reads: IdArray  # how often it was read
    born: FloatArray  # BAO: when it was discovered
    oldest: IdArray  # its first pair
    youngest: IdArray
    after: IdArray  # of each pair: the next of its page, or the next free one
    when: FloatArray
    what: FloatArray
    size: FloatArray  # of the window, one number
    counts: IntArray


def new_earnings(pages: int, kind: np.int64 = PLAIN, size: float = 1.0) -> Earnings:
    """Make room for so many pages."""
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
    """Return the same with room for so many more pages."""
    columns = {name: getattr(earnings, name) for name in earnings._fields[:6]}
    return earnings._replace(**{name: np.pad(old, (0, room)) for name, old in columns.items() if old.size})


def with_pairs(earnings: Earnings) -> Earnings:
    """Return the same with room for twice as many pairs."""
    pool = earnings.when.size
    after = np.concatenate([earnings.after, np.arange(pool + 1, 2 * pool + 1, dtype=np.int32)])
    after[-1] = earnings.counts[FREE]
    earnings.counts[FREE] = pool
    earnings.counts[SPARE] += pool
    return earnings._replace(after=after, when=np.pad(earnings.when, (0, pool)), what=np.pad(earnings.what, (0, pool)))


@bare
def lacks_pairs(earnings: Earnings, needed: int) -> bool:
    """Say whether the pool must grow before so many pairs can be added."""
    return bool(earnings.when.shape[0] > 0 and earnings.counts[SPARE] < needed)


@bare
def start(earnings: Earnings, page: int, now: float) -> None:
    """Begin to remember a page that was just discovered."""
    earnings.last[page] = now
    if earnings.counts[KIND] == BAO:
        earnings.born[page] = now
    elif earnings.counts[KIND] != PLAIN:
        earnings.youngest[page] = NONE
        _append(earnings, page, now, 0.0)


@bare
def owe(earnings: Earnings, page: int, cash: float) -> None:
    """Note that a page was given cash which it did not earn (not for PLAIN)."""
    if earnings.counts[KIND] != PLAIN:
        earnings.history[page] = -cash


@bare
def record(earnings: Earnings, page: int, moved: float, now: float) -> None:
    """Note what a page earned since it was last read."""
    kind, history = earnings.counts[KIND], earnings.history
    earnings.reads[page] += 1
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
        elif earnings.reads[page] >= earnings.size[0]:
            _drop_oldest(earnings, page)
    earnings.last[page] = now


@bare
def rate(earnings: Earnings, page: int, cash: float, now: float, average: float) -> float:
    """Return what a page earns per unit of time, as if it were read now with this cash (not for PLAIN)."""
    size = earnings.size[0]
    if earnings.counts[KIND] == BAO:
        span, earned, young = now - earnings.born[page], _recent(earnings, page, cash, now), True
    else:
        fixed, pair = earnings.counts[KIND] == FIXED, earnings.oldest[page]
        while fixed and earnings.after[pair] != NONE and earnings.when[earnings.after[pair]] <= now - size:
            pair = earnings.after[pair]
        span, earned = now - earnings.when[pair], earnings.history[page] + cash
        young = fixed or earnings.reads[page] < size
        while earnings.after[pair] != NONE:
            pair = earnings.after[pair]
            earned += earnings.what[pair]
    if span <= 0.0 or (young and span < YOUNG * size):
        return float((earned + YOUNG * size * average) / (span + YOUNG * size))
    if earnings.counts[KIND] == BAO:
        span = min(span, size)
    return float(earned / span)


@bare
def _recent(earnings: Earnings, page: int, earned: float, now: float) -> float:
    """BAO: what a page earned in the last `size` units of time, or since its discovery if that is less."""
    size, last, born, history = earnings.size[0], earnings.last[page], earnings.born[page], earnings.history[page]
    if now - born <= size:
        return float(history + earned)
    if now - last < size:
        return float(history * (size - (now - last)) / min(size, last - born) + earned)
    return float((history + earned if last == born else earned) * size / (now - last))


@bare
def halve(earnings: Earnings, page: int) -> None:
    """Forget half of what a page earned (not for PLAIN)."""
    earnings.history[page] *= 0.5
    if earnings.when.shape[0] > 0:
        pair = earnings.oldest[page]
        while pair != NONE:
            earnings.what[pair] *= 0.5
            pair = earnings.after[pair]


@bare
def hand_over(earnings: Earnings, page: int, target: int) -> None:
    """Let the page that another one stands for inherit its history, or if it was never read, all its past."""
    earnings.history[target] += earnings.history[page]
    earnings.history[page] = 0.0
    if earnings.reads[page] > 0 and earnings.reads[target] == 0:
        earnings.last[target] = earnings.last[page]
        earnings.reads[target] = earnings.reads[page]
        earnings.reads[page] = 0
        if earnings.counts[KIND] == BAO:
            earnings.born[target] = earnings.born[page]
        elif earnings.counts[KIND] != PLAIN:
            for spots in (earnings.oldest, earnings.youngest):
                spots[page], spots[target] = spots[target], spots[page]


@bare
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


@bare
def _drop_oldest(earnings: Earnings, page: int) -> None:
    pair = earnings.oldest[page]
    earnings.oldest[page] = earnings.after[pair]
    earnings.after[pair] = earnings.counts[FREE]
    earnings.counts[FREE] = pair
    earnings.counts[SPARE] += 1
