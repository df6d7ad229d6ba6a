"""Convergence diagnostics of a sample: effective sample size, R-hat and Geweke's z.

- *Effective sample size*: the number of independent uniform pages with the same variance, as `estimates` computes it.
- *R-hat* (Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021): rank-normalised and split, of the values f or of their
  influences w (f - R), whichever is larger. Near 1 if all walks explore the same pages.
- *Geweke's z*: the first tenth of all walks against their second half, after the burn-in.

Cost: a few passes over the rows and a sort for each property.
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
from surveyor.estimate.sampling.distributions import normal_scores, normal_two_sided, student_two_sided
from surveyor.estimate.sampling.estimates import estimate_rows, row_values, select_rows
from surveyor.estimate.sampling.standard_errors import (
    BURN_IN,
    Blocks,
    after_burn_in,
    runs,
    split_into_blocks,
    variance_of_sum,
    walk_order,
)
from surveyor.estimate.sampling.walk_trace import WalkTrace

LOG_DEGREE = "log degree"  # diagnosed in every sample

MIN_ESS = 400.0  # intervals of such samples have their nominal coverage in simulations
MAX_RHAT = 1.1
MAX_GEWEKE_Z = 3.0
EARLY, LATE = 0.1, 0.5  # Geweke compares rows before and after these shares of a walk
GEWEKE_LEVEL = 0.997  # the t quantile at this level maps to the normal one, so that z is normal
RHAT_ROWS = 2**17  # longer samples are thinned to at least this many rows
MAX_HOST_SHARE = 0.5  # of the steps
MIN_STEPS_PER_WALK = 50  # shorter walks still depend on where they started


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """Convergence diagnostics of a sample."""

    ess: Mapping[str, float]  # by property
    rhat: Mapping[str, float]  # NaN where the halves of walks are too short
    geweke: Mapping[str, float]  # z
    steps: int
    steps_on_topic: int
    burn_in_steps: int
    walks: int
    stuck: tuple[int, ...]  # walks that never moved
    jumps: int
    mean_degree_of_steps: float  # over steps on topic
    mean_degree_of_pages: float  # over pages of the topic, estimated
    max_host_share: float | None = None  # share of the steps on the most visited host
    walked: bool = True  # False for independent draws

    @property
    def warnings(self) -> tuple[str, ...]:
        """Problems with their cause and remedy."""
        return tuple(_warnings(self))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON; None replaces numbers that are not finite."""
        plain = asdict(self) | {"warnings": list(self.warnings), "stuck": list(self.stuck)}
        for name in ("ess", "rhat", "geweke"):
            plain[name] = {key: value if math.isfinite(value) else None for key, value in getattr(self, name).items()}
        return plain


def diagnose(
    trace: WalkTrace,
    properties: Mapping[str, npt.ArrayLike] | None = None,
    *,
    host: AnyIntArray | None = None,
    burn_in: float = BURN_IN,
) -> Diagnostics:
    """Compute the convergence diagnostics of a sample.

    Parameters
    ----------
    properties : row values by name, NaN where unknown; the logarithm of the degree is always included.
    host : host id of each row.
    """
    all_rows = select_rows(trace, np.ones(len(trace), np.bool_), burn_in)
    ess, rhat, geweke = dict[str, float](), dict[str, float](), dict[str, float]()
    by_name = {name: row_values(trace, values)[all_rows.trace_index] for name, values in (properties or {}).items()}
    for name, values in ({LOG_DEGREE: np.log(all_rows.degree)} | by_name).items():
        known = ~np.isnan(values)
        if not known.any():
            raise UsageError(
                f"the value of {name!r} is unknown in every step", hint="choose a property that pages have"
            )
        rows, numbers = all_rows.subset(known), values[known]
        blocks = split_into_blocks(rows.walk)
        estimate = estimate_rows(rows, numbers)
        influence = rows.weight * (numbers - estimate.value)
        ess[name] = estimate.ess
        rhat[name] = max(split_rhat(rows.walk, numbers), split_rhat(rows.walk, influence))
        geweke[name] = geweke_z(blocks, blocks.sums(rows.weight * numbers), blocks.sums(rows.weight))
    host_share = None
    if host is not None:
        host_share = float(
            np.unique(host[all_rows.trace_index], return_counts=True)[1].max() / all_rows.trace_index.size
        )
    return Diagnostics(
        ess,
        rhat,
        geweke,
        steps=len(trace),
        steps_on_topic=int(trace.on_topic.sum()),
        burn_in_steps=len(trace) - after_burn_in(trace, burn_in).size,
        walks=int(np.unique(trace.walk).size),
        stuck=stuck_walks(trace),
        jumps=count_jumps(trace),
        mean_degree_of_steps=float(all_rows.degree.mean()),
        mean_degree_of_pages=float(all_rows.degree.size / all_rows.weight.sum()),
        max_host_share=host_share,
        walked=trace.is_walked,
    )


def geweke_z(blocks: Blocks, numerator: FloatArray, denominator: FloatArray) -> float:
    """Return Geweke's z of the ratio Σ numerator / Σ denominator of block sums: early against late blocks of all walks.

    It is 0 where one of the two parts is empty.
    """
    position, influence, difference = blocks.walk_positions(), np.zeros(blocks.walk.size), 0.0
    for part, sign in ((position < EARLY, 1), (position >= LATE, -1)):
        total = denominator[part].sum()
        if not total > 0:
            return 0.0
        ratio = numerator[part].sum() / total
        influence[part] = sign * (numerator[part] - ratio * denominator[part]) / total
        difference += sign * ratio
    variance, df = variance_of_sum(blocks.walk, influence).scalar()
    rounding = 1e-12 * float(abs(numerator).sum() / denominator.sum())
    if variance <= rounding**2:  # both parts are constant
        return 0.0 if abs(difference) <= rounding else math.copysign(math.inf, difference)
    t = float(difference) / math.sqrt(variance)
    return t * normal_two_sided(GEWEKE_LEVEL) / student_two_sided(GEWEKE_LEVEL, round(df, 1))


def split_rhat(walk: AnyIntArray, values: FloatArray) -> float:
    """Return the rank-normalised split R-hat of rows ordered by walk.

    It is NaN if no walk has four steps, and 1 if all values are equal. Very long samples are thinned.
    """
    thinned = slice(None, None, max(1, walk.size // RHAT_ROWS))
    walk, scores = walk[thinned], normal_scores(values[thinned])
    starts, counts = runs(walk)
    starts, counts = starts[counts >= 4], counts[counts >= 4]
    if not counts.size:
        return math.nan
    lengths = np.repeat(counts // 2, 2)
    # The middle step of an odd walk belongs to neither half.
    halves = np.column_stack([starts, starts + counts - counts // 2]).ravel()
    sums, squares = (np.r_[0.0, np.cumsum(part)] for part in (scores, scores**2))
    means = (sums[halves + lengths] - sums[halves]) / lengths
    variances = (squares[halves + lengths] - squares[halves] - lengths * means**2) / (lengths - 1)
    within = float(np.average(variances, weights=lengths))
    grand_mean = np.average(means, weights=lengths)
    between = float(np.average((means - grand_mean) ** 2, weights=lengths)) * means.size / (means.size - 1)
    if within <= 1e-12:
        return 1.0 if between <= 1e-12 else math.inf
    length = float(lengths.mean())
    return math.sqrt((length - 1) / length + between / within)


def _warnings(diagnostics: Diagnostics) -> list[str]:
    warnings = []
    name, ess = min(diagnostics.ess.items(), key=lambda item: item[1])
    if ess < MIN_ESS:
        below = f"effective sample size {ess:.0f} ({name}) is below {MIN_ESS:.0f}"
        warnings.append(
            f"{below}: the coverage of intervals is below their level; walk longer"
            if diagnostics.walked
            else f"{below}: intervals are wide; draw more pages"
        )
    name, rhat = max(diagnostics.rhat.items(), key=lambda item: -math.inf if math.isnan(item[1]) else item[1])
    if rhat > MAX_RHAT:
        warnings.append(
            f"R-hat {rhat:.2f} ({name}) is above {MAX_RHAT}: the walks disagree, and the topic may have parts with"
            " few links between them; start walks in each part"
        )
    name, z = max(diagnostics.geweke.items(), key=lambda item: abs(item[1]))
    if abs(z) > MAX_GEWEKE_Z:
        warnings.append(
            f"Geweke's z {z:.1f} ({name}) exceeds {MAX_GEWEKE_Z:.0f}: the walks still drift away from their starts;"
            " walk longer"
        )
    if diagnostics.stuck:
        count = len(diagnostics.stuck)
        which = f"walk {diagnostics.stuck[0]}" if count == 1 else f"{count} walks"
        warnings.append(
            f"{which} of {diagnostics.walks} never moved: no neighbour of the first page is on topic; use other seeds"
        )
    if diagnostics.walked and diagnostics.steps < MIN_STEPS_PER_WALK * diagnostics.walks:
        warnings.append(
            f"walks of {diagnostics.steps / diagnostics.walks:.0f} steps still depend on where they started, which"
            " intervals do not show; walk longer, or use fewer walks"
        )
    if diagnostics.walked and diagnostics.walks == 1:
        warnings.append(
            "one walk cannot detect parts of the topic that it missed; use at least four, from different seeds"
        )
    if diagnostics.max_host_share is not None and diagnostics.max_host_share > MAX_HOST_SHARE:
        warnings.append(
            f"{100 * diagnostics.max_host_share:.0f} % of the steps are on one host: either most of the topic is there,"
            " or the walks are trapped"
        )
    return warnings


def drop_stuck_walks(trace: WalkTrace) -> WalkTrace:
    """Drop walks that never moved, unless none did: one page would count as much as a part of the topic."""
    mask = moving_rows(trace)
    return trace if mask.all() else trace.rows(mask)


def moving_rows(trace: WalkTrace) -> BoolArray:
    """Mark the rows of walks that moved; all rows if none did."""
    mask: BoolArray = ~np.isin(trace.walk, stuck_walks(trace))
    return mask if mask.any() else np.ones(len(trace), np.bool_)


def stuck_walks(trace: WalkTrace) -> tuple[int, ...]:
    """Return the walks of two or more steps that stayed on one page."""
    if not len(trace):
        return ()
    order = walk_order(trace.walk)
    walk, page = trace.walk[order], trace.page[order]
    starts, counts = runs(walk)
    constant = np.minimum.reduceat(page, starts) == np.maximum.reduceat(page, starts)
    return tuple(walk[starts[constant & (counts > 1)]].tolist())


def count_jumps(trace: WalkTrace) -> int:
    """Count the segments after the first of each walk."""
    order = walk_order(trace.walk)
    return int(np.maximum.reduceat(trace.segment[order], runs(trace.walk[order])[0]).sum())
