"""The beginning of a walk, which tells more of where it began than of the topic, and is left out.

Of each walk the smallest of a few shares is left out after which its beginning and its end agree (Geweke 1992: the
first tenth and the second half; over all walks together, since they may all begin at the same kind of page). After a
jump a segment begins anew with 50 steps. Never is more than half left out.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np

from surveyor.arrays import BoolArray, FloatArray, IntArray
from surveyor.errors import UsageError
from surveyor.sampling.laws import student
from surveyor.sampling.spread import Blocks, blocks, runs, spread, walk_order
from surveyor.sampling.trail import Trail

Burn: TypeAlias = float | Literal["auto"]  # the share of each walk, or found out

SHARES = (0.05, 0.1, 0.2, 0.3, 0.5)  # where a walk begins is never by the law
AFTER_JUMP = 50  # steps
EARLY, LATE = 0.1, 0.5  # shares of a walk that are compared
DIFFER = 0.95  # the level at which they do


def kept(trail: Trail, burn: Burn = "auto", values: FloatArray | None = None) -> IntArray:
    """Return the rows that are not left out, walk after walk, each in the order of time.

    Parameters
    ----------
    burn : the share of each walk to leave out, at most a half, or "auto".
    values : with "auto", what is to be estimated, by row; its beginning and end are compared besides those of degrees.
    """
    if burn != "auto" and not 0 <= burn <= SHARES[-1]:
        raise UsageError(f"a burn-in of {burn}", hint="give a share of each walk from 0 to 0.5, or auto")
    order = walk_order(trail.walk)
    _, rows = runs(trail.walk[order])
    if burn == "auto":
        burn = _found(trail, order, values) if order.size else 0.0
    stays = _from(rows, np.floor(burn * rows))
    if trail.segment.size and trail.segment.max() > 0:
        segments, lengths = trail.segment[order].astype(np.int64), _segments(trail, order)
        after = np.minimum(AFTER_JUMP, lengths // 2)
        begins = np.cumsum(lengths) - lengths
        stays &= _from(lengths, np.where(segments[begins] > 0, after, 0))
    left: IntArray = order[stays]
    return left


def _segments(trail: Trail, order: IntArray) -> IntArray:
    """Return the length of each segment of each walk."""
    walk, segment = trail.walk[order], trail.segment[order]
    changes = np.r_[True, (walk[1:] != walk[:-1]) | (segment[1:] != segment[:-1])]
    lengths: IntArray = np.diff(np.r_[np.flatnonzero(changes), order.size])
    return lengths


def geweke(found: Blocks, above: FloatArray, below: FloatArray, *, since: float = 0.0) -> tuple[float, float]:
    """Compare Σ above / Σ below of the beginnings of all walks with that of their ends: z, and its quantile at 95 %.

    z is 0 where there is nothing to compare.

    Parameters
    ----------
    above, below : sums of blocks.
    since : the share of each walk that is left out before.
    """
    share = (found.shares() - since) / (1 - since)
    used = share >= -1e-9
    share, above, below = share[used], above[used], below[used]
    influence, apart = np.zeros(share.size), 0.0
    for part, sign in ((share < EARLY, 1), (share >= LATE, -1)):
        total = below[part].sum()
        if not total > 0:
            return 0.0, math.inf
        middle = above[part].sum() / total
        influence[part] = sign * (above[part] - middle * below[part]) / total
        apart += sign * middle
    variance, freedom = spread(found.walk[used], influence).one()
    most, rounding = student(DIFFER, round(freedom, 1)), 1e-12 * float(abs(above).sum() / below.sum())
    if variance <= rounding**2:  # two constants
        return (0.0 if abs(apart) <= rounding else math.copysign(math.inf, apart)), most
    return float(apart) / math.sqrt(variance), most


def _found(trail: Trail, order: IntArray, values: FloatArray | None) -> float:
    """Return the smallest share after which beginnings and ends agree."""
    rows = order[(trail.on_topic & (trail.degree > 0))[order]]
    if not rows.size:
        return 0.0
    found, degree = blocks(trail.walk[rows]), trail.degree[rows]
    compared = [(found.sums(np.log(degree)), found.sums(np.ones(rows.size)))]
    if values is not None:
        of_rows = values[rows]
        known = ~np.isnan(of_rows)
        compared.append((found.sums(np.where(known, of_rows, 0.0) / degree), found.sums(known / degree)))
    for share in SHARES[:-1]:
        scores = [geweke(found, above, below, since=share) for above, below in compared]
        if all(abs(z) <= most for z, most in scores):
            return share
    return SHARES[-1]


def _from(lengths: IntArray, first: FloatArray | IntArray) -> BoolArray:
    """Mark the rows of consecutive runs from some place of each run on."""
    place = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    marked: BoolArray = place >= np.repeat(first, lengths)
    return marked
