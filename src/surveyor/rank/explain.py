"""Explain the score of one page.

One step back, a score is a plain sum (`pagerank.py`): what each linking page passed on, what came from
pages without links, and what came from jumps directly to the page. All the way back, every part of a score
began with a jump, or with leaving a page without links: `origins` lists where such surfers landed.
They are found by following in-links backwards as far as it matters (Andersen et al. 2007, local computation
of PageRank contributions), so each part is a lower bound; the rest is `other_origins`.

Links that many pages of one site have in common are one template (`templates.py`) and reported as one; the rank of
the page without them is computed by ranking again without them (`without.py`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from surveyor.arrays import FloatArray
from surveyor.errors import UsageError
from surveyor.graph.csr import Graph
from surveyor.rank.chains import shortest_chain
from surveyor.rank.ranking import Ranking
from surveyor.rank.templates import Template, find_templates
from surveyor.rank.without import Without, without_links

BACK = 1e-3  # origins are followed back until the remaining probability at a page is below this


@dataclass(frozen=True, slots=True)
class Part:
    """A page and the part of the explained score that came from it."""

    page: int
    name: str
    part: float  # of the explained page's score
    links: int  # links the page has; it passes an equal share over each
    times: int = 1  # number of them that lead to the explained page


@dataclass(frozen=True, slots=True)
class Group:
    """Pages of one host that link to the explained page by one template, and their part of its score."""

    host: str
    pages: int
    part: float  # of the explained page's score
    shared: tuple[str, ...]  # the links that they have in common


@dataclass(frozen=True, slots=True)
class Explanation:
    """The composition of the score of one page; all parts are fractions of that score."""

    page: int
    name: str
    share: float
    position: int
    in_links: int
    path: tuple[str, ...]  # a shortest path to it from a page that jumps go to, unless they are uniform
    templates: tuple[Group, ...]  # contributions of templates
    links: tuple[Part, ...]  # the other pages with the largest contributions by a link
    other_pages: int  # number of other pages that link to it
    other_links: float  # their contribution
    stuck: float  # contribution of pages without links
    teleport: float  # contribution of jumps directly to the page
    origins: tuple[Part, ...]  # where the surfers who reached it started
    other_origins: float  # started elsewhere, or too far back to follow
    without: Without | None = None  # its rank if no template linked to it, if requested

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def explain(graph: Graph, ranking: Ranking, page: int | str, *, count: int = 10, what_if: bool = False) -> Explanation:
    """Explain the score of a page in a ranking of this graph.

    With `what_if`, the graph is ranked again without the template links to the page, if there are any.

    >>> from surveyor.rank.pagerank import pagerank
    >>> graph = Graph.from_edges([("a", "b"), ("b", "c"), ("c", "a"), ("c", "b")])
    >>> why = explain(graph, pagerank(graph), "b")
    >>> [(part.name, round(part.part, 2)) for part in why.links], round(why.teleport, 2)
    ([('a', 0.46), ('c', 0.41)], 0.13)
    """
    if ranking.scores.size != graph.pages:
        raise UsageError(
            f"the ranking has {ranking.scores.size:,} pages and the graph {graph.pages:,}",
            hint="give the graph that was ranked",
        )
    target = graph.page(page) if isinstance(page, str) else int(page)
    score, damping = ranking.share(target), ranking.damping
    whole = score or 1.0
    sources, times = np.unique(graph.in_links_of(target), return_counts=True)
    degrees = graph.out_degrees
    given = damping * ranking.scores[sources] * times / degrees[sources] / whole
    templates = find_templates(graph, target, sources, given)
    alone = np.ones(sources.size, np.bool_)
    for template in templates:
        alone[np.searchsorted(sources, template.pages)] = False
    single = np.flatnonzero(alone)
    best = single[np.lexsort((sources[single], -given[single]))[:count]]
    alike = np.broadcast_to(1.0 / graph.pages, graph.pages)
    jump = alike if ranking.jump is None else ranking.jump
    stuck_to = alike if ranking.stuck_to is None else ranking.stuck_to
    stuck = damping * float(ranking.scores[degrees == 0].sum())
    starts = (1 - damping) * jump + stuck * stuck_to
    started = starts * _chance_to_reach(graph, damping, target) / ((1 - damping) * whole)
    origins = np.flatnonzero(started)
    origins = origins[np.lexsort((origins, -started[origins]))[:count]]
    path = () if ranking.jump is None else shortest_chain(graph, np.flatnonzero(jump), target)
    return Explanation(
        page=target,
        name=graph.name(target),
        share=score,
        position=ranking.position(target),
        in_links=int(times.sum()),
        path=tuple(graph.name(step) for step in path),
        templates=tuple(_group(graph, template) for template in templates),
        links=tuple(_part(graph, int(sources[at]), given[at], int(times[at])) for at in best),
        other_pages=int(single.size - best.size),
        other_links=max(0.0, float(given[single].sum() - given[best].sum())),
        stuck=float(stuck * stuck_to[target] / whole),
        teleport=float((1 - damping) * jump[target] / whole),
        origins=tuple(_part(graph, int(page), started[page]) for page in origins),
        other_origins=max(0.0, 1.0 - float(started[origins].sum())),
        without=without_links(graph, ranking, target, sources[~alone]) if what_if and templates else None,
    )


def _group(graph: Graph, template: Template) -> Group:
    names = tuple(graph.name(page) for page in template.core.tolist())
    return Group(template.host, int(template.pages.size), template.part, names)


def _part(graph: Graph, page: int, part: float, times: int = 1) -> Part:
    return Part(page, graph.name(page), float(part), int(graph.indptr[page + 1] - graph.indptr[page]), times)


def _chance_to_reach(graph: Graph, damping: float, target: int) -> FloatArray:
    """Return, for each page, the probability to stop on the target before the first jump; low by at most BACK."""
    from surveyor.kernels.pagerank_iterations import BackwardLinks, push_backward

    reached, residual = np.zeros(graph.pages), np.zeros(graph.pages)
    queue = np.full(graph.pages, -1, np.int32)
    residual[target], queue[0] = 1.0, target
    rows = graph.in_links
    links = BackwardLinks(rows.indptr, rows.indices, graph.share_per_link)
    push_backward(links, reached, residual, damping, BACK, queue)
    return reached
