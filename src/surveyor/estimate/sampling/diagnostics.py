"""Can a sample be trusted? How many independent pages it is worth, and whether walks agree with each other.

- *Effective sample size*: as many independent uniform pages would vary as much; what `estimates` says of each property.
- *R-hat* (Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021): halves of walks against each other, by normal scores
  of ranks; of values f or of what rows add to their estimate, w (f - R), whichever is larger. Near 1 if all walks are
  about the same pages.
- *Geweke's z*: the first tenth of all walks against their second half, after the burn-in.

Cost: some passes over the rows and a sort for each property.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surveyor.arrays import AnyIntArray, BoolArray, FloatArray
from surveyor.errors import UsageError
from surveyor.estimate.sampling.burn_in import BURN, kept
from surveyor.estimate.sampling.estimates import chosen, estimate_of, values_of
from surveyor.estimate.sampling.laws import normal_scores, student, two_sided
from surveyor.estimate.sampling.spread import Blocks, blocks, runs, spread, walk_order
from surveyor.estimate.sampling.walk_trace import WalkTrace

LOG_DEGREE = "log degree"  # looked at in every sample

ENOUGH = 400.0  # effective pages: intervals of such samples were found to keep their promise
APART = 1.1  # R-hat
MOVING = 3.0  # Geweke's z
EARLY, LATE = 0.1, 0.5  # shares of a walk that it compares
SURE = 0.997  # the level at which it would be so large: z is as rare as under the normal law
THINNED = 2**17  # rows that R-hat looks at, at the least
ONE_HOST = 0.5  # of the steps
SHORT = 50  # steps of a walk, as after a jump: where it is depends on where it began


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """What a sample says of itself."""

    ess: Mapping[str, float]  # by property
    rhat: Mapping[str, float]  # NaN where halves of walks are too short
    geweke: Mapping[str, float]  # z
    steps: int
    on_topic: int  # steps
    left_out: int  # steps of the burn-in
    walks: int
    stuck: tuple[int, ...]  # walks that never moved
    jumps: int
    visited_degree: float  # mean over steps on topic
    topic_degree: float  # mean over pages of the topic, estimated
    host_share: float | None = None  # steps on the host with most of them

    @property
    def warnings(self) -> tuple[str, ...]:
        """Say what is wrong, why, and what to do."""
        return tuple(_warnings(self))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; what is not a finite number is None."""
        plain = asdict(self) | {"warnings": list(self.warnings), "stuck": list(self.stuck)}
        for name in ("ess", "rhat", "geweke"):
            plain[name] = {key: one if math.isfinite(one) else None for key, one in getattr(self, name).items()}
        return plain


def diagnose(
    trace: WalkTrace,
    properties: Mapping[str, npt.ArrayLike] | None = None,
    *,
    host: AnyIntArray | None = None,
    burn: float = BURN,
) -> Diagnostics:
    """Look at a sample.

    Parameters
    ----------
    properties : by name, values of each row, NaN where not known; the logarithm of the degree is always looked at.
    host : a number for the host of each row.
    """
    every = chosen(trace, np.ones(len(trace), np.bool_), burn)
    ess, rhat, moves = dict[str, float](), dict[str, float](), dict[str, float]()
    by_name = {name: values_of(trace, given)[every.place] for name, given in (properties or {}).items()}
    for name, values in ({LOG_DEGREE: np.log(every.degree)} | by_name).items():
        known = ~np.isnan(values)
        if not known.any():
            raise UsageError(f"no step of the sample knows {name!r}", hint="ask for a property that pages have")
        rows, of_rows = every.only(known), values[known]
        found = blocks(rows.walk)
        told = estimate_of(rows, of_rows)
        ess[name] = told.ess
        added = rows.weight * (of_rows - told.value)
        rhat[name] = max(split_rhat(rows.walk, of_rows), split_rhat(rows.walk, added))
        moves[name] = geweke(found, found.sums(rows.weight * of_rows), found.sums(rows.weight))
    top = None if host is None else float(np.unique(host[every.place], return_counts=True)[1].max() / every.place.size)
    left_out = len(trace) - kept(trace, burn).size
    degree = float(every.degree.mean()), float(every.degree.size / every.weight.sum())
    return Diagnostics(
        ess, rhat, moves, len(trace), int(trace.on_topic.sum()), left_out, int(np.unique(trace.walk).size),
        stuck(trace), jumps(trace), *degree, top,
    )  # fmt: skip


def geweke(found: Blocks, above: FloatArray, below: FloatArray) -> float:
    """Compare Σ above / Σ below, sums of blocks, of the beginnings of all walks with that of their ends.

    It is 0 where there is nothing to compare.
    """
    share, influence, apart = found.shares(), np.zeros(found.walk.size), 0.0
    for part, sign in ((share < EARLY, 1), (share >= LATE, -1)):
        total = below[part].sum()
        if not total > 0:
            return 0.0
        middle = above[part].sum() / total
        influence[part] = sign * (above[part] - middle * below[part]) / total
        apart += sign * middle
    (variance, freedom), rounding = spread(found.walk, influence).one(), 1e-12 * float(abs(above).sum() / below.sum())
    if variance <= rounding**2:  # two constants
        return 0.0 if abs(apart) <= rounding else math.copysign(math.inf, apart)
    return float(apart) / math.sqrt(variance) * two_sided(SURE) / student(SURE, round(freedom, 1))


def split_rhat(walk: AnyIntArray, values: FloatArray) -> float:
    """Return rank-normalised split R-hat of rows that come walk after walk.

    It is NaN if no walk has four steps, and 1 if all values are the same. Of very many rows some are looked at.
    """
    few = slice(None, None, max(1, walk.size // THINNED))
    walk, scores = walk[few], normal_scores(values[few])
    begins, counts = runs(walk)
    begins, counts = begins[counts >= 4], counts[counts >= 4]
    if not counts.size:
        return math.nan
    lengths = np.repeat(counts // 2, 2)
    # An odd step in the middle belongs to no half.
    starts = np.column_stack([begins, begins + counts - counts // 2]).ravel()
    sums, squares = (np.r_[0.0, np.cumsum(part)] for part in (scores, scores**2))
    means = (sums[starts + lengths] - sums[starts]) / lengths
    within = (squares[starts + lengths] - squares[starts] - lengths * means**2) / (lengths - 1)
    inside = float(np.average(within, weights=lengths))
    middle = np.average(means, weights=lengths)
    between = float(np.average((means - middle) ** 2, weights=lengths)) * means.size / (means.size - 1)
    if inside <= 1e-12:
        return 1.0 if between <= 1e-12 else math.inf
    length = float(lengths.mean())
    return math.sqrt((length - 1) / length + between / inside)


def _warnings(told: Diagnostics) -> list[str]:
    name, ess = min(told.ess.items(), key=lambda item: item[1])
    said = []
    if ess < ENOUGH:
        said.append(
            f"effective sample size {ess:.0f} ({name}): below {ENOUGH:.0f} intervals hold the truth less often than"
            " they say; walk longer"
        )
    name, rhat = max(told.rhat.items(), key=lambda item: -math.inf if math.isnan(item[1]) else item[1])
    if rhat > APART:
        said.append(
            f"R-hat {rhat:.2f} ({name}): the walks disagree, the topic may consist of parts that hardly link to each"
            " other: begin at pages in each part"
        )
    name, z = max(told.geweke.items(), key=lambda item: abs(item[1]))
    if abs(z) > MOVING:
        said.append(f"Geweke's z {z:.1f} ({name}): the walks still move away from where they began; walk longer")
    if told.stuck:
        who = f"walk {told.stuck[0]}" if len(told.stuck) == 1 else f"{len(told.stuck)} walks"
        said.append(f"{who} of {told.walks} never moved: no neighbour of the first page is on topic; use other seeds")
    if told.steps < SHORT * told.walks:
        said.append(
            f"walks of {told.steps / told.walks:.0f} steps are still near where they began, which no interval knows;"
            " walk longer, or use fewer walks"
        )
    if told.walks == 1:
        said.append("one walk cannot show that it missed a part of the topic; use four or more from different seeds")
    if told.host_share is not None and told.host_share > ONE_HOST:
        said.append(
            f"{told.host_share:.0%} of the steps are on one host: either the topic is, or the walks are trapped there"
        )
    return said


def moving(trace: WalkTrace) -> WalkTrace:
    """Leave out walks that never moved, if others did: one page alone would count as much as a part of the topic."""
    some = moving_rows(trace)
    return trace if some.all() else trace.rows(some)


def moving_rows(trace: WalkTrace) -> BoolArray:
    """Mark the rows of walks that moved; all rows if none did."""
    moved: BoolArray = ~np.isin(trace.walk, stuck(trace))
    return moved if moved.any() else np.ones(len(trace), np.bool_)


def stuck(trace: WalkTrace) -> tuple[int, ...]:
    """Return the walks that stand on one page all the time, for two steps or more."""
    if not len(trace):
        return ()
    order = walk_order(trace.walk)
    walk, page = trace.walk[order], trace.page[order]
    begins, counts = runs(walk)
    same = np.minimum.reduceat(page, begins) == np.maximum.reduceat(page, begins)
    return tuple(walk[begins[same & (counts > 1)]].tolist())


def jumps(trace: WalkTrace) -> int:
    """Count the segments after the first of each walk."""
    order = walk_order(trace.walk)
    return int(np.maximum.reduceat(trace.segment[order], runs(trace.walk[order])[0]).sum())
