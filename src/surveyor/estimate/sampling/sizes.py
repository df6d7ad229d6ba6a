"""How many pages a topic has, and how much of all pages it is.

**Collisions.** Two steps of different walks stand on the same page with chance Σ d² / (Σ d)². Under the law of the
walks the mean of d is Σ d² / Σ d and that of 1/d is N / Σ d, so that

    N = Σ (Σ d of one walk) (Σ 1/d of another) / collisions,

over ordered pairs of different walks, of any lengths (Katzir, Liberty and Somekh 2011). Steps of one walk meet for
another reason, and are not compared. How far log N may be off comes from pairs of stretches of walks: if a pair of
stretches contributes h to it, its variance is Σ (Σ h of the pairs of a stretch)² − Σ h², which counts whatever two
pairs with a stretch in common share (Aronow, Samii and Assenova 2015); neighbouring stretches are alike, so that the
first sum is that of `spread`. 1 / variance is as many collisions as would vary so much if each came alone; their number
has Garwood's interval. No collision gives a lower bound, and nothing else.

It is the size of the part that walks move in: walks in parts that do not link to each other never collide.
"""

from __future__ import annotations

import math

import numpy as np

from surveyor.arrays import FloatArray
from surveyor.errors import UsageError
from surveyor.estimate.sampling.burn_in import BURN
from surveyor.estimate.sampling.estimates import LEVEL, Estimate, Rows, chosen, share, valid
from surveyor.estimate.sampling.laws import poisson, student, two_sided
from surveyor.estimate.sampling.spread import Blocks, blocks, runs, spread
from surveyor.estimate.sampling.walk_trace import WalkTrace

STRETCHES = 64  # that are compared; of more walks some are taken as one, and not compared with each other
HELD = 4_000_000  # counts of pages by stretch held at once


def size(trace: WalkTrace, *, level: float = LEVEL, burn: float = BURN) -> Estimate:
    """Estimate how many pages the topic has, from pages that different walks have met."""
    rows, level = chosen(trace, np.ones(len(trace), np.bool_), burn), valid(level)
    if rows.walks < 2:
        raise UsageError("one walk does not tell the size of its topic", hint="use two walks or more, better eight")
    group = np.repeat(np.arange(rows.walks), runs(rows.walk)[1]) * min(rows.walks, STRETCHES) // rows.walks
    found = blocks(group, STRETCHES, 1)
    degrees, inverses = found.sums(rows.degree), found.sums(rows.weight)
    others = found.walk[:, None] != found.walk
    chances = np.where(others, np.outer(degrees, inverses), 0.0)
    chances += chances.T
    met = np.where(others, _met(found, rows), 0.0)
    both_ways, collisions = float(chances.sum()) / 2, float(met.sum()) / 2
    counted = int(rows.walk.size), rows.pages, rows.walks, f"{collisions:,.0f} collisions of {rows.walks} walks"
    if collisions == 0:
        low = max(rows.pages, both_ways / 2 / -math.log(1 - level))
        return Estimate(math.inf, low, math.inf, level, math.inf, 0.0, *counted)
    value = both_ways / 2 / collisions
    influence = chances / both_ways - met / collisions
    shared, freedom = spread(found.walk, influence.sum(axis=1)).one()
    variance = max(shared - float((influence**2).sum()) / 2, shared / 2, 1 / collisions)
    alone = (two_sided(level) / student(level, round(freedom, 1))) ** 2 / variance
    least, most = poisson(alone, level)
    low, high = max(rows.pages, value * alone / most), value * alone / least if least > 0 else math.inf
    se = value * math.sqrt(variance)
    return Estimate(max(value, rows.pages), low, max(high, low), level, se, 1 / variance, *counted)


def _met(found: Blocks, rows: Rows) -> FloatArray:
    """Count the pairs of rows of each two blocks that stand on the same page."""
    stretches = found.begins.size
    key = np.sort(rows.page.astype(np.int64) * stretches + found.of_rows(rows.page.size))
    first, counts = runs(key)
    page, block = key[first] // stretches, key[first] % stretches
    blocks_on = runs(page)[1]
    shared = np.repeat(blocks_on > 1, blocks_on)  # a page that one block alone stands on meets nobody
    page, block, counts = page[shared], block[shared], counts[shared]
    begins, lengths = runs(page)
    number = np.repeat(np.arange(begins.size), lengths)
    met, step = np.zeros((stretches, stretches)), max(1, HELD // stretches)
    for start in range(0, begins.size, step):
        begin, end = np.searchsorted(number, (start, start + step))
        held = np.zeros((min(step, begins.size - start), stretches))
        held[number[begin:end] - start, block[begin:end]] = counts[begin:end]
        met += held.T @ held
    return met


def relative_size(trace: WalkTrace, *, level: float = LEVEL, burn: float = BURN) -> Estimate:
    """Estimate the share of all pages that is on topic, from walks without a focus: pages off topic count, too."""
    everything = WalkTrace(
        trace.walk, trace.segment, trace.page, np.ones(len(trace), np.bool_), trace.degree, trace.fetches
    )
    return share(everything, trace.on_topic, level=level, burn=burn)
