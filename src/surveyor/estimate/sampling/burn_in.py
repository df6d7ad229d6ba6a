"""The beginning of a walk, which tells more of where it began than of the topic, and is left out.

A tenth of each walk: a sample that is worth 400 pages has walks of some fifty times the length over which steps are
alike, so that a tenth is several of these. It is the same for all that a sample is asked, so that all of its numbers
are of the same steps. After a jump a segment begins anew with 50 steps.
"""

from __future__ import annotations

import numpy as np

from surveyor.arrays import BoolArray, FloatArray, IntArray
from surveyor.errors import UsageError
from surveyor.estimate.sampling.spread import runs, walk_order
from surveyor.estimate.sampling.walk_trace import WalkTrace

BURN, MOST = 0.1, 0.5  # of each walk
AFTER_JUMP = 50  # steps


def kept(trace: WalkTrace, burn: float = BURN) -> IntArray:
    """Return the rows that are not left out, walk after walk, each in the order of time."""
    if not 0 <= burn <= MOST:
        raise UsageError(f"a burn-in of {burn}", hint="give a share of each walk from 0 to 0.5")
    order = walk_order(trace.walk)
    _, rows = runs(trace.walk[order])
    stays = _from(rows, np.floor(burn * rows))
    if trace.segment.size and trace.segment.max() > 0:
        segments, lengths = trace.segment[order].astype(np.int64), _segments(trace, order)
        after = np.minimum(AFTER_JUMP, lengths // 2)
        begins = np.cumsum(lengths) - lengths
        stays &= _from(lengths, np.where(segments[begins] > 0, after, 0))
    left: IntArray = order[stays]
    return left


def _segments(trace: WalkTrace, order: IntArray) -> IntArray:
    """Return the length of each segment of each walk."""
    walk, segment = trace.walk[order], trace.segment[order]
    changes = np.r_[True, (walk[1:] != walk[:-1]) | (segment[1:] != segment[:-1])]
    lengths: IntArray = np.diff(np.r_[np.flatnonzero(changes), order.size])
    return lengths


def _from(lengths: IntArray, first: FloatArray | IntArray) -> BoolArray:
    """Mark the rows of consecutive runs from some place of each run on."""
    place = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    marked: BoolArray = place >= np.repeat(first, lengths)
    return marked
