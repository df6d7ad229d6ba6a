"""Impact of outside pages on a community, from the ranks of all pages: the best order in which to fetch them.

The impact of page j outside the local pages L is the probability that a surfer is on j and follows a link into L:
rank of j · links of j into L / links of j. Experiments use it to evaluate how pages were selected; a crawl cannot
know it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from surveyor.arrays import AnyIntArray, BoolArray, FloatArray, marked
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
