"""Estimates of the global rank of local pages from what was read in and around them.

Let every page get 1 besides what links bring. The global ranks x of the pages read then satisfy

    x = 1 + d · Aᵀ (x / links) + what pages not read send,

where links that leave the pages read count among the links of a page. The last term is not known, and estimates differ
by what they put there:

- *frontier*: nothing. The same as ranking the pages not read as pages without links (ApproxRank is close to it).
- *crawled*: the paper's (Davis and Dhillon, KDD 2006). Links that leave are not counted at all, so that what would
  leave over them goes over the other links of the same page.
- *auto*: a page not read is taken to link as the pages that link to it, its parents, do on average. How far that is
  true was seen on the pages read in batches, each of which was such a page before. Over those pages, the shares of
  their own links (found) and of their parents' links (expected) are summed up, and where parents pass rank on to

      return = (found + PRIOR · before) / (expected + PRIOR)

  times as much comes from pages not read: one factor each for links to local pages, to other pages read, and to pages
  not read. Before any batch they are taken to be φ², 1 and 1, φ the part of the rank of local pages that leaves. Each
  parent then gets factors of its own in the same way, from its children that were read, with those of all as what was
  taken before. Each page not read gets UNSEEN instead of 1: it stands for pages besides that nobody has met yet. The
  answer of b batches is (1 − 1/b) of this and 1/b of *crawled*, which is the better guess while few batches tell how
  pages outside link.

PRIOR, UNSEEN and φ² were chosen on some domains and measured on others: `experiments/estimators.py`.

**Certificate.** Each system is x = M x + c with M ≥ 0, whose columns sum to d at most. After a Gauss–Seidel sweep that
changed x by D in all, the residual is at most d D, so x is off by at most d D / (1 − d), and local shares of a sum s
by twice that over s. Rounding is added. The bound is that of solving; nothing bounds what pages not read would say.

Cost: some dozen sweeps over the links of the pages read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from surveyor.arrays import BoolArray, FloatArray, IdArray, IntArray
from surveyor.errors import UsageError
from surveyor.graph.build import transpose
from surveyor.kernels.crawled_graph import CrawledGraph

if TYPE_CHECKING:
    from surveyor.kernels.crawled_graph import FrontierLinks, SweepChange

Method = Literal["auto", "crawled", "frontier"]

UNSEEN = 1.5  # jumps to a page of the frontier and to pages behind it that nobody has met
PRIOR = 1.0  # pages that what is assumed counts as much as
MOST = 1000  # sweeps
ROUGH = 1e-6  # the tolerance of ranks that only say how much leaves
SPACING = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """An estimate of the global rank of local pages."""

    scores: FloatArray  # by local page, summing to 1
    error: float  # proven, of the solving alone: how far the estimate is from the truth nobody can prove
    method: str
    weights: Mapping[str, float] = field(default_factory=dict)  # of what it was combined from
    why: str = ""
    returns: Mapping[str, float] = field(default_factory=dict)  # auto: factors for links to local, extra, unread pages


class _Solved(NamedTuple):
    ranks: FloatArray  # of the pages read, by place
    error: float  # L1, of all ranks together


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
    local : places of the local pages; scores come in this order.
    batch_of : the round in which each page read was read, by place; 0 for pages that were there from the start.
    tolerance : of the solving, as an L1 distance. Where rounding allows no such bound, `error` is larger.
    """
    if method not in ("auto", "crawled", "frontier"):
        raise UsageError(f"no estimator {method!r}", hint="auto, crawled or frontier")
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
    factors, of_parents = _returns(web, is_local, batch_of, leaves)
    copying = _shares(
        _copying(known, web, local, is_local, of_parents, leaking.ranks, damping, tolerance), local, "auto"
    )
    batches = np.unique(batch_of[batch_of > 0]).size
    share = 1 / batches if batches else 0.0
    scores, error = copying.scores, copying.error
    if batches:
        crawled = estimate(known, local, batch_of, "crawled", damping=damping, tolerance=tolerance)
        scores, error = (1 - share) * scores + share * crawled.scores, (1 - share) * error + share * crawled.error
    returns = dict(zip(("local", "extra", "unread"), map(float, factors), strict=True))
    why = _why(int((batch_of > 0).sum()), batches, leaves, returns)
    return Estimate(scores, error, "auto", {"copying": 1 - share, "crawled": share}, why, returns)


def _returns(
    web: FrontierLinks, is_local: BoolArray, batch_of: IntArray, leaves: float
) -> tuple[FloatArray, FloatArray]:
    """Return how much more than parents pages outside link to local, other read, and unread pages: all, by parent."""
    from surveyor.kernels.crawled_graph import Batches, compare_batches

    to_local, to_extra = _counted(web, is_local), _counted(web, ~is_local & (batch_of == 0))
    order = np.argsort(batch_of, kind="stable")
    found, expected = np.zeros((3, is_local.size)), np.zeros((3, is_local.size))
    compare_batches(web, Batches(batch_of, is_local, order[batch_of[order] > 0]), to_local, to_extra, found, expected)
    before = np.array([leaves**2, 1.0, 1.0])
    factors = (found.sum(axis=1) + PRIOR * before) / (expected.sum(axis=1) + PRIOR)
    return factors, (found + PRIOR * factors[:, None]) / (expected + PRIOR)


def _copying(
    known: CrawledGraph,
    web: FrontierLinks,
    local: IdArray,
    is_local: BoolArray,
    factors: FloatArray,
    start: FloatArray,
    damping: float,
    tolerance: float,
) -> _Solved:
    """Solve the system in which pages not read link as their parents do."""
    from surveyor.kernels.crawled_graph import FrontierReturns, frontier_sweep

    to_local = _counted(web, is_local)
    passed = (factors * np.stack([to_local, known.degrees - to_local, known.leaving])).sum(axis=0) * web.inverse
    local_part, extra_part, unread_part = factors / np.maximum(passed, 1.0)  # no page passes on more than it has
    returns = FrontierReturns(local_part, extra_part, unread_part, known.leaving.astype(np.float64), UNSEEN)
    ranks, outer, back = start.copy(), np.full(known.frontier.size, UNSEEN), np.zeros(is_local.size)
    return _solve(
        lambda: frontier_sweep(web, returns, is_local, damping, ranks, outer, back), ranks, local, damping, tolerance
    )


def _counted(web: FrontierLinks, chosen: BoolArray) -> IntArray:
    """Count the links of each page read to chosen ones."""
    from surveyor.kernels.crawled_graph import count_links_to

    counts = np.zeros(chosen.size, np.int64)
    count_links_to(web, chosen, counts)
    return counts


def _leaking(web: FrontierLinks, local: IdArray, damping: float, tolerance: float) -> _Solved:
    """Solve the system in which pages not read send nothing back."""
    from surveyor.kernels.crawled_graph import leaky_sweep

    ranks = np.ones(web.inverse.size)
    return _solve(lambda: leaky_sweep(web, damping, ranks), ranks, local, damping, tolerance)


def _solve(
    sweep: Callable[[], SweepChange], ranks: FloatArray, local: IdArray, damping: float, tolerance: float
) -> _Solved:
    """Sweep until the local shares are near enough, or until rounding is all that sweeps still change."""
    error = np.inf
    for _ in range(MOST):
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
    """Scale ranks of the local pages to sum 1."""
    ranks = solved.ranks[local]
    total = float(ranks.sum())
    error = min(2.0, 2 * solved.error / total + 8 * SPACING)  # no two distributions are further apart
    return Estimate(ranks / total, error, method)


def _why(extra: int, batches: int, leaves: float, returns: Mapping[str, float]) -> str:
    if not batches:
        return (
            f"no page was read in batches, and {leaves:.1%} of the rank of local pages leaves: pages not read are"
            f" taken to link back {returns['local']:.3f} times as much as the pages that link to them"
        )
    return (
        f"{extra:,} pages read in {batches:,} batches link to local pages {returns['local']:.2f} times as much as the"
        f" pages that linked to them, and to other pages read {returns['extra']:.2f} times; the rest is taken to go on"
        f" so, and the paper's estimate counts 1/{batches:,}"
    )
