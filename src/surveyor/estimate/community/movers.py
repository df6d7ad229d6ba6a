"""Outside pages whose links affect the ranks within a local domain most.

A fetched page outside the domain sends rank · damping · (links to the target) / (links) directly to the target, which
is one local page or all of them. Rank also passes on from there and returns. So for each outside page the exact effect
of its links is computed: how would the ranks within the domain change if its links to local pages were removed and its
other links shared their part? With ranks x = t + d·Pᵀx, which leak at pages without links, only row j of P changes, by
δ; with y = (I − d·Pᵀ)⁻¹ δ the new ranks are (Sherman and Morrison 1950)

    x + d·xⱼ / (1 − d·yⱼ) · y.

One push per page solves for y over the existing links. A remaining residual ρ changes y by at most ‖ρ‖₁ / (1 − d),
which gives the stated error. It is the error of the solver: the given ranks are taken as exact, and pages that were not
fetched may affect the domain more than any that was.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from surveyor.arrays import AnyIntArray, BoolArray, FloatArray, IntArray, marked
from surveyor.crawler.ledger import check_damping
from surveyor.errors import UsageError, check_range
from surveyor.graph.csr import Rows
from surveyor.kernels.crawled_graph import CrawledGraph

PRECISION = 1e-6  # requested error, relative to the rank that a page sends to the target
FIRST, FINER = 0.1, 4.0  # the first push threshold, and the factor by which it falls
ROUNDING = 1e-13
NO_LIMIT = 2**62  # of links followed by a push


@dataclass(frozen=True, slots=True)
class Mover:
    """An outside page that sends rank into the local domain."""

    page: int  # id
    index: int  # among the fetched pages
    flow: float  # rank that its links send directly to the target, as a share of the rank of all fetched pages
    change: float  # of the target's share without its links; for all local pages, the share that would move
    error: float  # of `change`, for the given ranks

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values."""
        return asdict(self)


def movers(
    known: CrawledGraph,
    ranks: FloatArray,
    local: AnyIntArray | BoolArray,
    page: int | None = None,
    count: int = 10,
    *,
    damping: float = 0.85,
    method: Literal["crawled", "frontier"] = "crawled",
) -> list[Mover]:
    """Return the outside pages that send most rank to a local page, or to all of them, most first; ties by id.

    Parameters
    ----------
    ranks : of the fetched pages, by index, summing to 1: PageRank of the links among them (`crawled`), or also of links
        to pages that were not fetched, whose rank is lost (`frontier`).
    local, page : indices of the local pages, or one boolean per fetched page; the index of one of them.
    """
    inside = marked(local, known.pages.size)
    scores = _checked(known, ranks, inside, page)
    check_damping(damping)
    check_range("count", count, "[0, inf)", hint="the default is 10")
    if method not in ("crawled", "frontier"):
        raise UsageError(f"unknown method {method!r}", hint="choose crawled or frontier")
    from surveyor.kernels.edge_lists import count_links_into

    target = inside if page is None else np.arange(inside.size) == page
    links = count_links_into(known.indptr, known.indices, target)
    degrees = known.degrees + (known.leaving if method == "frontier" else 0)
    flow = damping * scores * links / np.maximum(degrees, 1)
    flow[inside] = 0.0
    found = np.flatnonzero(flow)
    chosen = found[np.lexsort((found, -flow[found]))[:count]]
    rows = _rows(known, degrees)
    # The dead end that absorbs leaving links, if any, is an additional outside page without rank.
    more = rows.indptr.size - 1 - inside.size
    scores, inside = np.append(scores, np.zeros(more)), np.append(inside, np.zeros(more, np.bool_))
    return [
        Mover(int(known.pages[index]), index, float(flow[index]), *_change(rows, scores, inside, page, index, damping))
        for index in chosen.tolist()
    ]


def _change(
    rows: Rows, ranks: FloatArray, inside: BoolArray, page: int | None, index: int, damping: float
) -> tuple[float, float]:
    """Return the change of the domain without the links of a page into it, and the error of that."""
    row = rows.indices[rows.indptr[index] : rows.indptr[index + 1]]
    kept = row[~inside[row]]
    delta = -np.bincount(row, minlength=inside.size) / row.size
    if kept.size:
        delta += np.bincount(kept, minlength=inside.size) / kept.size
    enough = PRECISION * (row.size - kept.size if page is None else np.count_nonzero(row == page)) / row.size
    after, error = _pushed(rows, delta, damping, enough)
    sent, lost = damping * ranks[index], 1 - damping * after[index]
    own, total = ranks[inside], ranks[inside].sum()
    whole = lost * total + sent * after[inside].sum()  # the rank of the domain, times `lost`
    moved = sent * (after[inside] - own / total * after[inside].sum()) / whole
    change = float(np.abs(moved).sum() / 2 if page is None else moved[np.count_nonzero(inside[:page])])
    slack = damping * error * (total + ranks[index])  # error of `whole`
    return change, float((sent * error + abs(change) * slack) / max(whole - slack, np.finfo(np.float64).tiny))


def _pushed(rows: Rows, change: FloatArray, damping: float, enough: float) -> tuple[FloatArray, float]:
    """Return (I − d·Pᵀ)⁻¹ δ for a change δ of one row, and its L1 error."""
    from surveyor.kernels.pagerank_iterations import PushLimits, push_residuals

    residual, after, queue = change.copy(), np.zeros(change.size), np.empty(change.size, np.int32)
    threshold = FIRST
    while (error := float(np.abs(residual).sum()) / (1 - damping)) > max(enough, ROUNDING):
        threshold /= FINER
        push_residuals(rows.indptr, rows.indices, after, residual, PushLimits(damping, threshold, NO_LIMIT), queue)
    return after, error + ROUNDING


def _rows(known: CrawledGraph, degrees: IntArray) -> Rows:
    """Return the links among fetched pages; leaving links, if `degrees` count them, lead to an additional dead end."""
    if np.array_equal(degrees, known.degrees):
        return Rows(known.indptr, known.indices)
    ends = np.cumsum(degrees)
    indices = np.full(ends[-1], known.pages.size, np.int32)
    before = np.cumsum(known.leaving) - known.leaving  # leaving links of earlier pages
    indices[np.arange(known.indices.size) + np.repeat(before, known.degrees)] = known.indices
    return Rows(np.concatenate([[0], ends, ends[-1:]]), indices)


def _checked(known: CrawledGraph, ranks: FloatArray, inside: BoolArray, page: int | None) -> FloatArray:
    scores = np.asarray(ranks, np.float64)
    if scores.shape != known.pages.shape:
        raise UsageError(
            f"ranks must have one entry per fetched page ({known.pages.size:,}), got shape {scores.shape}",
            hint="rank the fetched pages first",
        )
    if not (np.isfinite(scores).all() and (scores > 0).all()):
        raise UsageError("ranks must be finite and greater than 0", hint="rank the fetched pages first")
    if not inside.any():
        raise UsageError("local names no page", hint="give the indices of the local pages")
    if page is not None and not (0 <= page < inside.size and inside[page]):
        raise UsageError(f"page {page} is not the index of a local page", hint="give one of the local indices, or None")
    return scores
