"""Size of a topic in pages, and its share of all pages.

**Collision estimator** (capture-recapture). Steps of two different walks are on the same page with probability
Σ d² / (Σ d)². Under the stationary distribution, the mean of d is Σ d² / Σ d and that of 1/d is N / Σ d, so

    N = Σ (Σ d of one walk) (Σ 1/d of another) / collisions,

over ordered pairs of different walks, of any lengths (Katzir, Liberty and Somekh 2011). Steps within one walk are
dependent and are not compared.

**Variance** of log N, from pairs of batches of walks: if a pair of batches contributes h, the variance is
Σ (Σ h of the pairs of a batch)² − Σ h², which includes the covariance of any two pairs with a batch in common (Aronow,
Samii and Assenova 2015). Neighbouring batches are correlated, so the first sum comes from `variance_of_sum`. The
inverse of the variance is an effective number of independent collisions, with Garwood's interval. Without a collision
there is only a lower bound.

The estimate is the size of the part of the topic that the walks explore: walks in disconnected parts never collide.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from surveyor.arrays import FloatArray
from surveyor.errors import UsageError
from surveyor.estimate.sampling.distributions import garwood, normal_two_sided, student_two_sided
from surveyor.estimate.sampling.estimates import (
    LEVEL,
    Estimate,
    Interval,
    WeightedRows,
    check_level,
    select_rows,
    share,
)
from surveyor.estimate.sampling.standard_errors import BURN_IN, Blocks, runs, split_into_blocks, variance_of_sum
from surveyor.estimate.sampling.walk_trace import WalkTrace

MAX_BATCHES = 64  # that are compared; more walks are grouped, and walks of one group are not compared
MAX_CELLS = 4_000_000  # page counts by batch in memory at once


def topic_size(trace: WalkTrace, *, level: float = LEVEL, burn_in: float = BURN_IN) -> Estimate:
    """Estimate the number of pages of the topic from collisions of different walks."""
    rows, level = select_rows(trace, np.ones(len(trace), np.bool_), burn_in), check_level(level)
    if rows.walks < 2:
        raise UsageError("the topic size needs at least 2 walks, got 1", hint="use two walks or more, better eight")
    group = np.repeat(np.arange(rows.walks), runs(rows.walk)[1]) * min(rows.walks, MAX_BATCHES) // rows.walks
    blocks = split_into_blocks(group, MAX_BATCHES, 1)
    degrees, inverses = blocks.sums(rows.degree), blocks.sums(rows.weight)
    different = blocks.walk[:, None] != blocks.walk
    products = np.where(different, np.outer(degrees, inverses), 0.0)
    products += products.T
    counts = np.where(different, _collision_counts(blocks, rows), 0.0)
    both_orders, collisions = float(products.sum()) / 2, float(counts.sum()) / 2
    method = f"{collisions:,.0f} collisions of {rows.walks} walks"
    if collisions == 0:
        low = max(rows.pages, both_orders / 2 / -math.log(1 - level))
        return rows.estimate(math.inf, Interval(low, math.inf, level), math.inf, 0.0, method)
    value = both_orders / 2 / collisions
    influence = products / both_orders - counts / collisions
    shared, df = variance_of_sum(blocks.walk, influence.sum(axis=1)).scalar()
    variance = max(shared - float((influence**2).sum()) / 2, shared / 2, 1 / collisions)
    effective = (normal_two_sided(level) / student_two_sided(level, round(df, 1))) ** 2 / variance
    fewest, most = garwood(effective, level)
    low = max(rows.pages, value * effective / most)
    high = value * effective / fewest if fewest > 0 else math.inf
    interval = Interval(low, max(high, low), level)
    return rows.estimate(max(value, rows.pages), interval, value * math.sqrt(variance), 1 / variance, method)


def _collision_counts(blocks: Blocks, rows: WeightedRows) -> FloatArray:
    """Count the pairs of rows on the same page, for each pair of blocks."""
    size = blocks.starts.size
    key = np.sort(rows.page.astype(np.int64) * size + blocks.block_of_rows(rows.page.size))
    first, counts = runs(key)
    page, block = key[first] // size, key[first] % size
    blocks_of_page = runs(page)[1]
    shared = np.repeat(blocks_of_page > 1, blocks_of_page)  # a page in one block collides with no other
    page, block, counts = page[shared], block[shared], counts[shared]
    starts, lengths = runs(page)
    number = np.repeat(np.arange(starts.size), lengths)
    pairs, step = np.zeros((size, size)), max(1, MAX_CELLS // size)
    for start in range(0, starts.size, step):
        begin, end = np.searchsorted(number, (start, start + step))
        cells = np.zeros((min(step, starts.size - start), size))
        cells[number[begin:end] - start, block[begin:end]] = counts[begin:end]
        pairs += cells.T @ cells
    return pairs


def relative_topic_size(trace: WalkTrace, *, level: float = LEVEL, burn_in: float = BURN_IN) -> Estimate:
    """Estimate the share of all pages that is on topic, from walks without a focus on the topic."""
    all_pages = replace(trace, on_topic=np.ones(len(trace), np.bool_))
    return share(all_pages, trace.on_topic, level=level, burn_in=burn_in)
