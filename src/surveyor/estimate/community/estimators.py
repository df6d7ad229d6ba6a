"""Estimates of the global rank of local pages from the links of the pages fetched in and around them.

In the unnormalised system every page gets 1 from teleportation. The global ranks x of the fetched pages satisfy

    x = 1 + d · Aᵀ (x / links) + (rank sent by pages that were not fetched),

where links to pages that were not fetched count among the links of a page. The last term is unknown; the estimators
differ in what they assume for it:

- *frontier*: nothing. This equals ranking the pages that were not fetched as dangling pages (close to ApproxRank).
- *crawled*: the estimate of Davis and Dhillon (KDD 2006). Links to pages that were not fetched are ignored, so their
  share goes to the other links of the same page.
- *auto*: a page that was not fetched is assumed to link like the average of the pages that link to it, its parents. The
  accuracy of this assumption is measured on the pages fetched in batches, each of which was such a page before. Over
  those pages, the shares of their own links (observed) and of the links of their parents (predicted) are summed, and
  the rank that parents pass on is scaled by

      return factor = (observed + PRIOR · assumed) / (predicted + PRIOR)

  with one factor each for links to local pages, to other fetched pages, and to pages that were not fetched. Before any
  batch the factors are φ², 1 and 1, with φ the share of the rank of local pages that leaves them. Each parent gets its
  own factors in the same way, from its fetched children, with the factors of all pages as the prior. *How much* rank
  returns to the local pages follows from these factors. *Which* local pages get it: a part like the links of the
  parents, the other part like the links of all pages fetched in batches, each with total weight 1. Of PARTS, the part
  is chosen that predicts the links of each batch best (likelihood) from the batches before it. Each page that was not
  fetched gets UNSEEN instead of 1, because it also represents pages that no link has revealed yet. With b batches the
  estimate is (1 − 1/b) of this and
  1/b of *crawled*, which is more accurate while few batches show how outside pages link.

PARTS, SPREAD, PRIOR, UNSEEN and φ² were chosen on some domains and tested on others: `experiments/estimators.py`.

**Proven error.** Each system is x = M x + c with M ≥ 0 and column sums of at most d. After a Gauss–Seidel sweep that
changed x by D (L1), the residual is at most d D, so the error of x is at most d D / (1 − d), and the error of local
shares with sum s is at most twice that over s. Rounding is added. This bounds the error of the solver only: no bound
exists for the rank sent by pages that were not fetched.

Cost: some dozen sweeps over the links of the fetched pages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from surveyor.arrays import BoolArray, FloatArray, IdArray, IntArray
from surveyor.errors import UsageError
from surveyor.graph.build import transpose
from surveyor.kernels.crawled_graph import CrawledGraph

if TYPE_CHECKING:
    from surveyor.kernels.crawled_graph import FrontierLinks, FrontierReturns, SweepChange

Method = Literal["auto", "crawled", "frontier"]

PARTS = np.array([0.0, 0.5, 1.0])  # of the returning rank, divided like the links of all pages fetched in batches
SPREAD = 0.1  # part of a predicted distribution that is uniform: no link is impossible
UNSEEN = 1.5  # teleportation to a frontier page and to the unknown pages behind it
PRIOR = 1.0  # weight of the assumed factors, in pages
MAX_SWEEPS = 1000
ROUGH = 1e-6  # tolerance of intermediate ranks
SPACING = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """An estimate of the global rank of local pages."""

    scores: FloatArray  # by local page, summing to 1
    error: float  # proven error of the solver; no bound is known for the error of the estimate
    method: str
    weights: Mapping[str, float] = field(default_factory=dict)  # of the combined estimates
    explanation: str = ""
    return_factors: Mapping[str, float] = field(default_factory=dict)  # auto: to local, other fetched, unfetched pages


class _Solved(NamedTuple):
    ranks: FloatArray  # of the fetched pages, by index
    error: float  # L1, of all ranks


def estimate(
    known: CrawledGraph,
    local: IdArray,
    batch_of: IntArray,
    method: Method = "auto",
    *,
    damping: float = 0.85,
    tolerance: float = 1e-9,
) -> Estimate:
    """Estimate the global rank of local pages.

    Parameters
    ----------
    local : indices of the local pages among the fetched ones; scores are in this order.
    batch_of : the round in which each page was fetched, by index; 0 for the pages known at the start.
    tolerance : proven L1 error of the solver. If rounding does not permit it, `error` is larger.
    """
    if method not in get_args(Method):
        raise UsageError(f"unknown estimator {method!r}", hint="choose auto, crawled or frontier")
    if local.size == 0:
        return Estimate(np.empty(0), 0.0, method)
    web = _links(known, known.degrees if method == "crawled" else known.degrees + known.leaving)
    rough = tolerance if method != "auto" else max(tolerance, ROUGH)
    leaking = _leaking(web, local, damping, rough)
    if method != "auto":
        return _shares(leaking, local, method)
    is_local = np.zeros(known.pages.size, np.bool_)
    is_local[local] = True
    away = leaking.ranks * known.leaving * web.inverse
    leaves = float(away[local].sum() / leaking.ranks[local].sum())
    factors, by_parent = _return_factors(web, is_local, batch_of, leaves)
    passed_on, part = _passed_on(known, web, is_local, by_parent, batch_of)
    copying = _shares(_copying(web, passed_on, is_local, leaking.ranks, local, damping, tolerance), local, "auto")
    batches = np.unique(batch_of[batch_of > 0]).size
    share = 1 / batches if batches else 0.0
    scores, error = copying.scores, copying.error
    if batches:
        crawled = estimate(known, local, batch_of, "crawled", damping=damping, tolerance=tolerance)
        scores, error = (1 - share) * scores + share * crawled.scores, (1 - share) * error + share * crawled.error
    returns = dict(zip(("local", "extra", "unfetched"), map(float, factors), strict=True))
    explanation = _explanation(int((batch_of > 0).sum()), batches, leaves, returns, part)
    return Estimate(scores, error, "auto", {"copying": 1 - share, "crawled": share}, explanation, returns)


def _return_factors(
    web: FrontierLinks, is_local: BoolArray, batch_of: IntArray, leaves: float
) -> tuple[FloatArray, FloatArray]:
    """Return the return factors for local, other fetched and unfetched pages: over all pages, and by parent."""
    from surveyor.kernels.crawled_graph import Batches, compare_batches

    to_local, to_extra = _counted(web, is_local), _counted(web, ~is_local & (batch_of == 0))
    order = np.argsort(batch_of, kind="stable")
    observed, predicted = np.zeros((3, is_local.size)), np.zeros((3, is_local.size))
    batches = Batches(batch_of, is_local, order[batch_of[order] > 0])
    compare_batches(web, batches, to_local, to_extra, observed, predicted)
    assumed = np.array([leaves**2, 1.0, 1.0])
    factors = (observed.sum(axis=1) + PRIOR * assumed) / (predicted.sum(axis=1) + PRIOR)
    return factors, (observed + PRIOR * factors[:, None]) / (predicted + PRIOR)


def _pooled_part(known: CrawledGraph, web: FrontierLinks, is_local: BoolArray, batch_of: IntArray) -> float:
    """Return the part that predicts the links of each batch best from the batches before it."""
    from surveyor.kernels.crawled_graph import Batches, predict_batches

    order = np.argsort(batch_of, kind="stable")
    fits = np.zeros(PARTS.size)
    predict_batches(known, web, Batches(batch_of, is_local, order[batch_of[order] > 0]), PARTS, SPREAD, fits)
    return float(PARTS[PARTS.size - 1 - int(np.argmax(fits[::-1]))])  # without evidence the last: it preserves ties


def _pool(known: CrawledGraph, web: FrontierLinks, is_local: BoolArray, batch_of: IntArray) -> FloatArray | None:
    """Return how the links of pages fetched in batches divide among the local pages; None if none leads there."""
    weights = np.where(np.repeat(batch_of > 0, known.degrees), np.repeat(web.inverse, known.degrees), 0.0)
    into = np.bincount(known.indices, weights=weights, minlength=is_local.size) * is_local
    total = float(into.sum())
    return into / total if total > 0 else None


def _passed_on(
    known: CrawledGraph, web: FrontierLinks, is_local: BoolArray, factors: FloatArray, batch_of: IntArray
) -> tuple[FrontierReturns, float]:
    """Return how frontier pages link, in multiples of each parent, and the pooled part.

    No page passes on more rank than it has.
    """
    from surveyor.kernels.crawled_graph import FrontierReturns

    to_local = _counted(web, is_local)
    passed = (factors * np.stack([to_local, known.degrees - to_local, known.leaving])).sum(axis=0) * web.inverse
    to_local_part, to_extra, to_unfetched = factors / np.maximum(passed, 1.0)
    pool = _pool(known, web, is_local, batch_of)
    part = 0.0 if pool is None else _pooled_part(known, web, is_local, batch_of)
    pooled = np.zeros(is_local.size) if pool is None else part * pool
    amount, children = to_local_part * to_local * web.inverse, known.leaving.astype(np.float64)
    copied = (1 - part) * to_local_part
    return FrontierReturns(copied, to_extra, to_unfetched, children, UNSEEN, amount, pooled), part


def _copying(
    web: FrontierLinks,
    returns: FrontierReturns,
    is_local: BoolArray,
    start: FloatArray,
    local: IdArray,
    damping: float,
    tolerance: float,
) -> _Solved:
    """Solve the system in which frontier pages link like their parents."""
    from surveyor.kernels.crawled_graph import frontier_sweep

    ranks, back = start.copy(), np.zeros(is_local.size)
    outer = np.full(web.parents_indptr.size - 1, UNSEEN)
    return _solve(
        lambda: frontier_sweep(web, returns, is_local, damping, ranks, outer, back), ranks, local, damping, tolerance
    )


def _counted(web: FrontierLinks, chosen: BoolArray) -> IntArray:
    """Count the links of each fetched page to chosen ones."""
    from surveyor.kernels.crawled_graph import count_links_to

    counts = np.zeros(chosen.size, np.int64)
    count_links_to(web, chosen, counts)
    return counts


def _leaking(web: FrontierLinks, local: IdArray, damping: float, tolerance: float) -> _Solved:
    """Solve the system in which frontier pages send nothing back."""
    from surveyor.kernels.crawled_graph import leaky_sweep

    ranks = np.ones(web.inverse.size)
    return _solve(lambda: leaky_sweep(web, damping, ranks), ranks, local, damping, tolerance)


def _solve(
    sweep: Callable[[], SweepChange], ranks: FloatArray, local: IdArray, damping: float, tolerance: float
) -> _Solved:
    """Sweep until the proven error of the local shares is at most `tolerance`, or rounding dominates the change."""
    error = np.inf
    for _ in range(MAX_SWEEPS):
        change, rounding = sweep()
        residual, rounding = damping * change, SPACING * rounding
        error = (residual + rounding) / (1 - damping)
        if 2 * error <= tolerance * ranks[local].sum() or residual < rounding:
            break
    return _Solved(ranks, error)


def _links(known: CrawledGraph, links: IntArray) -> FrontierLinks:
    from surveyor.kernels.crawled_graph import FrontierLinks

    into = transpose(known.indptr, known.indices)
    inverse = np.divide(1.0, links, out=np.zeros(links.size), where=links > 0)
    return FrontierLinks(into.indptr, into.indices, known.parents_indptr, known.parents, inverse)


def _shares(solved: _Solved, local: IdArray, method: str) -> Estimate:
    """Scale the ranks of the local pages to sum 1."""
    ranks = solved.ranks[local]
    total = float(ranks.sum())
    error = min(2.0, 2 * solved.error / total + 8 * SPACING)  # the largest distance of two distributions
    return Estimate(ranks / total, error, method)


def _explanation(extra: int, batches: int, leaves: float, returns: Mapping[str, float], part: float) -> str:
    if not batches:
        return (
            "copying assumes that pages not fetched link like the pages that link to them, with a factor of"
            f" {returns['local']:.3f} for links to local pages: no page was fetched in batches to measure it, and"
            f" {100 * leaves:.1f} % of the rank of local pages leaves them"
        )
    return (
        "copying assumes that pages not fetched link like the pages that link to them, with factors measured on the"
        f" {extra:,} pages fetched in {batches:,} batches: {returns['local']:.2f} for links to local pages,"
        f" {returns['extra']:.2f} for links to other fetched pages; {100 * part:.0f} % of the rank that returns is"
        f" divided like the links of these pages; weight of crawled 1/{batches:,}"
    )


KnownLinks = Callable[[IdArray], CrawledGraph]  # the links known from a subset of the fetched pages, by id


def all_estimates(
    known: CrawledGraph, local: IdArray, batch_of: IntArray, damping: float, tolerance: float
) -> dict[str, Estimate]:
    """Return the estimates of all methods for local pages, by id."""
    indices = _indices(known, local)
    return {
        method: estimate(known, indices, batch_of, method, damping=damping, tolerance=tolerance)
        for method in get_args(Method)
    }


def local_rank(local: IdArray, links: KnownLinks, damping: float, tolerance: float) -> FloatArray:
    """Return the PageRank of local pages by the links among them alone."""
    alone = links(np.sort(local))
    start = np.zeros(local.size, np.int64)
    return estimate(alone, _indices(alone, local), start, "crawled", damping=damping, tolerance=tolerance).scores


def _indices(known: CrawledGraph, pages: IdArray) -> IdArray:
    indices = np.searchsorted(known.pages, pages)
    if not np.array_equal(known.pages[np.minimum(indices, known.pages.size - 1)], pages):
        raise UsageError("some local pages are not among the fetched pages", hint="create the community again")
    return indices.astype(np.int32)
