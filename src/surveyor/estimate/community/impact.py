"""Impact of outside pages on a community, from the ranks of all pages: which of them matter, fetched or not.

The impact of page j outside the local pages L is the probability that a surfer is on j and follows a link into L:
rank of j · links of j into L / links of j (Davis and Dhillon, KDD 2006). It needs the true rank of the whole web, so a
crawl cannot know it; with a graph it shows what the selection of pages missed. `movers.py` estimates the same from the
pages that were fetched.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from surveyor.arrays import AnyIntArray, BoolArray, FloatArray, IdArray, IntArray, marked
from surveyor.errors import UsageError
from surveyor.graph.csr import Graph


def impact(graph: Graph, ranks: npt.ArrayLike, local: AnyIntArray | BoolArray) -> FloatArray:
    """Return the impact of each page on the local pages (ids or a boolean mask); 0 for the local pages.

    >>> graph = Graph.from_edges([("home", "out"), ("out", "home"), ("out", "more"), ("more", "out")])
    >>> impact(graph, [0.25, 0.5, 0.25], np.array([0])).tolist()
    [0.0, 0.25, 0.0]
    """
    from surveyor.kernels.edge_lists import count_links_into

    scores = np.asarray(ranks, np.float64)
    if scores.shape != (graph.pages,):
        raise UsageError(
            f"ranks must have one value for each of {graph.pages:,} pages, got shape {scores.shape}",
            hint="rank the whole graph first",
        )
    if not np.isfinite(scores).all():
        raise UsageError("ranks must be finite", hint="rank the whole graph first")
    inside = marked(local, graph.pages)
    impacts: FloatArray = scores * graph.share_per_link * count_links_into(graph.indptr, graph.indices, inside)
    impacts[inside] = 0.0
    return impacts


class Impacts(NamedTuple):
    """The outside pages with the largest impact, and how much of it was fetched."""

    pages: IdArray  # largest impact first; ties by id
    impacts: FloatArray
    rounds: IntArray  # in which each was fetched; 0 if it was known at the start, -1 if it was not fetched
    total: float  # impact of all outside pages
    fetched: float  # share of it that comes from fetched pages


def largest_impacts(
    graph: Graph, ranks: FloatArray, local: IdArray, fetched: IdArray, batch_of: IntArray, count: int = 100
) -> Impacts:
    """Return the outside pages with the largest impact; `batch_of` is the round of each fetched page."""
    impacts = impact(graph, ranks, local)
    round_of = np.full(graph.pages, -1, np.int64)
    round_of[fetched] = batch_of
    total = float(impacts.sum())
    share = float(impacts[fetched].sum()) / total if total else 1.0
    linking = np.flatnonzero(impacts).astype(np.int32)
    pages = linking[np.lexsort((linking, -impacts[linking]))[:count]]
    return Impacts(pages, impacts[pages], round_of[pages], total, share)
