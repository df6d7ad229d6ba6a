"""Which pages outside a local domain move its ranks: by links that lead in.

Of the pages read, those that are not local send rank · damping · (links into the target) / (links) straight to the
target, a local page or all of them. But rank also goes on from there, and comes back. So each is asked: were
its links to local pages not there, and its other links shared their part, how would the ranks within the domain
change? With ranks x = t + d·Pᵀx, which leak at pages without links, only row j of P changes, by δ; and with y = (I −
d·Pᵀ)⁻¹ δ the ranks become (Sherman and Morrison 1950)

    x + d·xⱼ / (1 − d·yⱼ) · y

exactly. So one push per page tells it, over the links as they are. What a push leaves, ρ, is at most ‖ρ‖₁ / (1 − d) of
y, which gives the error stated. It is of the solving: the ranks are taken as they are given, and pages that were
not read may move the domain more than any that was.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from surveyor.arrays import AnyIntArray, BoolArray, FloatArray, IntArray, marked
from surveyor.crawler.ledger import check_damping
from surveyor.errors import UsageError
from surveyor.graph.csr import Rows
from surveyor.kernels.crawled_graph import CrawledGraph

PRECISION = 1e-6  # of what a page sends to the target: the error asked for
FIRST, FINER = 0.1, 4.0  # the first threshold of a push, in parts of what is pushed, and by how much it falls
ROUNDING = 1e-13
MOST = 2**62  # links that a push may follow


@dataclass(frozen=True, slots=True)
class Mover:
    """A page outside that sends rank into the local domain."""

    page: int  # id
    place: int  # among the pages read
    flow: float  # the rank that its links bring straight to the target, of all rank of the pages read
    moves: float  # without its links: the change of the page's share within the domain; for all, the share that moves
    error: float  # of `moves`, for the ranks as given

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain values."""
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
    """Return the pages outside that send most rank to a local page, or to all, most first; ties by id.

    Parameters
    ----------
    ranks : of the pages read, by place, summing to 1: PageRank of the links among them (`crawled`), or of these and
        links to pages not read, which lose what they carry (`frontier`).
    local, page : places of the local pages, or one truth value per page read; the place of one of them.
    """
    inside = marked(local, known.pages.size)
    scores = _checked(known, ranks, inside, page)
    check_damping(damping)
    if count < 0:
        raise UsageError(f"{count} pages cannot be listed", hint="give 0 or more")
    if method not in ("crawled", "frontier"):
        raise UsageError(f"no method {method!r}", hint="choose crawled or frontier")
    from surveyor.kernels.edge_lists import count_links_into

    target = inside if page is None else np.arange(inside.size) == page
    links = count_links_into(known.indptr, known.indices, target)
    degrees = known.degrees + (known.leaving if method == "frontier" else 0)
    flow = damping * scores * links / np.maximum(degrees, 1)
    flow[inside] = 0.0
    found = np.flatnonzero(flow)
    chosen = found[np.lexsort((found, -flow[found]))[:count]]
    rows = _rows(known, degrees)
    # A dead end, if there is one, is a page like others, outside and without rank.
    more = rows.indptr.size - 1 - inside.size
    scores, inside = np.append(scores, np.zeros(more)), np.append(inside, np.zeros(more, np.bool_))
    return [
        Mover(int(known.pages[place]), place, float(flow[place]), *_moves(rows, scores, inside, page, place, damping))
        for place in chosen.tolist()
    ]


def _moves(
    rows: Rows, ranks: FloatArray, inside: BoolArray, page: int | None, place: int, damping: float
) -> tuple[float, float]:
    """Return how the domain would change without the links of a page into it, and the error of that."""
    row = rows.indices[rows.indptr[place] : rows.indptr[place + 1]]
    kept = row[~inside[row]]
    change = -np.bincount(row, minlength=inside.size) / row.size
    if kept.size:
        change += np.bincount(kept, minlength=inside.size) / kept.size
    enough = PRECISION * (row.size - kept.size if page is None else np.count_nonzero(row == page)) / row.size
    after, off = _pushed(rows, change, damping, enough)
    sent, lost = damping * ranks[place], 1 - damping * after[place]
    own, total = ranks[inside], ranks[inside].sum()
    whole = lost * total + sent * after[inside].sum()  # the rank of the domain, times `lost`
    moved = sent * (after[inside] - own / total * after[inside].sum()) / whole
    moves = float(np.abs(moved).sum() / 2 if page is None else moved[np.count_nonzero(inside[:page])])
    slack = damping * off * (total + ranks[place])  # what `whole` may be off
    return moves, float((sent * off + abs(moves) * slack) / max(whole - slack, np.finfo(np.float64).tiny))


def _pushed(rows: Rows, change: FloatArray, damping: float, enough: float) -> tuple[FloatArray, float]:
    """Return where a change of one row leads, (I − d·Pᵀ)⁻¹ δ, and how far that is off in all."""
    from surveyor.kernels.pagerank_iterations import PushLimits, push_residuals

    residual, after, queue = change.copy(), np.zeros(change.size), np.empty(change.size, np.int32)
    threshold = FIRST
    while (off := float(np.abs(residual).sum()) / (1 - damping)) > max(enough, ROUNDING):
        threshold /= FINER
        push_residuals(rows.indptr, rows.indices, after, residual, PushLimits(damping, threshold, MOST), queue)
    return after, off + ROUNDING


def _rows(known: CrawledGraph, degrees: IntArray) -> Rows:
    """Return links among pages read; those that leave, if `degrees` count them, lead to one more page, a dead end."""
    if np.array_equal(degrees, known.degrees):
        return Rows(known.indptr, known.indices)
    ends = np.cumsum(degrees)
    indices = np.full(ends[-1], known.pages.size, np.int32)
    before = np.cumsum(known.leaving) - known.leaving  # links that leave, of earlier pages
    indices[np.arange(known.indices.size) + np.repeat(before, known.degrees)] = known.indices
    return Rows(np.concatenate([[0], ends, ends[-1:]]), indices)


def _checked(known: CrawledGraph, ranks: FloatArray, inside: BoolArray, page: int | None) -> FloatArray:
    scores = np.asarray(ranks, np.float64)
    if scores.shape != known.pages.shape:
        raise UsageError(
            f"ranks of shape {scores.shape} for {known.pages.size:,} pages read", hint="give one rank per page read"
        )
    if not (np.isfinite(scores).all() and (scores > 0).all()):
        raise UsageError("ranks must be finite and above 0", hint="rank the pages read first")
    if not inside.any():
        raise UsageError("no page is local", hint="give the places of the local pages")
    if page is not None and not (0 <= page < inside.size and inside[page]):
        raise UsageError(f"place {page} is not that of a local page", hint="give one of the local places, or None")
    return scores
