"""Rank a graph again without some links to a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from surveyor.arrays import FloatArray, IdArray
from surveyor.errors import NotConverged
from surveyor.graph.csr import Graph, Rows
from surveyor.rank.pagerank import SMALLEST, pagerank
from surveyor.rank.ranking import Ranking

SHARP = 1e-4  # of the page's share: the requested error, unless the ranking is more precise


@dataclass(frozen=True, slots=True)
class Without:
    """The rank of a page without some links to it."""

    links: int  # number of links removed
    share: float
    error: float  # proven, in total over all pages
    position: int
    best: int  # the position is proven to be from `best` to `worst`
    worst: int

    @property
    def decided(self) -> bool:
        """Whether the error leaves only one possible position."""
        return self.best == self.worst


def without_links(graph: Graph, ranking: Ranking, target: int, sources: IdArray) -> Without:
    """Rank a graph again without the links from some pages to a target, with the settings of the ranking."""
    smaller = remove_links(graph, target, sources)
    dangling: Literal["teleport", "uniform"] | FloatArray = "uniform"
    if ranking.dangling == "teleport":
        dangling = "teleport"
    elif ranking.stuck_to is not None:
        dangling = ranking.stuck_to
    result, again, tolerance = None, ranking, ranking.tolerance
    while result is None or not (result.decided or SHARP * result.share >= tolerance):
        tolerance = max(SMALLEST, min(tolerance, SHARP * again.share(target)))
        try:
            again = pagerank(smaller, ranking.damping, tolerance, ranking.jump, dangling=dangling, start=again)
        except NotConverged as error:
            return _result(error.best, target, graph.links - smaller.links)  # with its own bound
        result = _result(again, target, graph.links - smaller.links)
        if tolerance == SMALLEST:
            break
    return result


def _result(ranking: Ranking, target: int, links: int) -> Without:
    ahead = ranking.scores - ranking.scores[target]
    ahead[target] = -np.inf
    # The errors of two pages, and hence the error of their difference, sum to at most the proven error.
    best, worst = (1 + int(np.count_nonzero(ahead > edge)) for edge in (ranking.error, -ranking.error))
    return Without(links, ranking.share(target), ranking.error, ranking.position(target), best, worst)


def remove_links(graph: Graph, target: int, sources: IdArray) -> Graph:
    """Return the graph without the links from some pages to a target; in-links are updated, not recomputed."""
    leaving = np.zeros(graph.pages, np.bool_)
    leaving[sources] = True
    rows = graph.in_links
    first, last = rows.indptr[target : target + 2]
    gone = leaving[rows.indices[first:last]]
    into = np.ones(rows.indices.size, np.bool_)
    into[first:last] = ~gone
    into_ptr = rows.indptr.copy()
    into_ptr[target + 1 :] -= np.count_nonzero(gone)
    of = np.repeat(leaving, graph.out_degrees)  # the page of each link
    out = ~(of & (graph.indices == target))
    lost = np.bincount(rows.indices[first:last][gone], minlength=graph.pages)
    out_ptr = graph.indptr.copy()
    out_ptr[1:] -= np.cumsum(lost)
    return Graph(out_ptr, graph.indices[out], names=graph.names, in_links=Rows(into_ptr, rows.indices[into]))
