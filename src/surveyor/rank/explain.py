"""Explain the score of one page.

**Contributions.** One step back, a score is a plain sum (`pagerank.py`): what each linking page passed on, what came
from pages without links, and what came from jumps directly to the page. All the way back, every part of a score
started with a jump, or with leaving a page without links: `origins` lists where such surfers landed. They are found by
following in-links backwards as far as it matters (Andersen et al. 2007, local computation of PageRank contributions),
so each fraction is a lower bound; the rest is `other_origins`.

**Templates.** Many links come from the template of a site: its footer, its navigation, a box on many pages. They are
reported as one, and the rank of the page without them is computed by ranking again. A link graph does not record the
position of a link on a page, but template links occur together: a page that has one of them has the others. The rule,
for a page t and one host at a time:

1. A *companion* of t is a page that at least 10 pages of the host link to, at least 80 % of which link to t as well.
   Where t is linked to by the authors of some pages, the navigation of the site has no companions of t: most pages
   with that navigation do not link to t.
2. Take the companion that most pages linking to t have. Among the pages that have both, those companions that at least
   80 % have, and t itself, are the *core*: at least 3 links, or there is no template here.
3. The pages that link to t and have at least 80 % of the core belong to the template, if they are at least 10 and give
   at least 5 % of what the host gives. They are removed, and the rest is processed from step 2, at most 16 times.

A page counts as linking to itself. Hosts that give less than a thousandth of the score are skipped. The cost is
a few passes over the links of the other hosts.

Limits: the rule does not detect a template with a single link, or one whose other links are common without it as
well. It cannot distinguish a template from authors who always link to the same three pages together.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import AnyIntArray, FloatArray, IdArray, IntArray
from surveyor.errors import NotConverged, UsageError
from surveyor.frames import Tabular, draw_bars, html_table
from surveyor.graph.adapters import GraphLike, as_graph
from surveyor.graph.csr import Extra, Graph, Rows
from surveyor.graph.hosts_and_domains import URL, hosts_of
from surveyor.graph.names import labels
from surveyor.rank.pagerank import SMALLEST, Dangling, Ranking, pagerank

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Sites = tuple[IdArray, Sequence[str]]
BACKWARD_TOLERANCE = 1e-3  # origins are followed back until the remaining probability at a page is below this
TOGETHER = 0.8  # fraction of pages that have companions or core links in common
MIN_CORE = 3  # links of a core
MIN_PAGES = 10  # of a template
MIN_HOST = 1e-3  # of the score: hosts that give less are skipped
MIN_TEMPLATE = 0.05  # of what the host gives: a template that gives less is ignored
MAX_TEMPLATES = 16  # per host
NOT_LINKING = -1.0  # marks a page that does not link; one that does may give 0
SHARP = 1e-4  # of the page's share: the requested error without templates, unless the ranking is more precise


@dataclass(frozen=True, slots=True)
class Contribution:
    """A page and the fraction of the explained score that came from it."""

    page: int
    name: str
    fraction: float  # of the explained page's score
    out_links: int  # of the page; without weights it passes an equal share over each
    links: int = 1  # number of them that lead to the explained page


@dataclass(frozen=True, slots=True)
class TemplateContribution:
    """Pages of one host that link to the explained page by one template, and their fraction of its score."""

    host: str
    pages: int
    fraction: float  # of the explained page's score
    shared_links: tuple[str, ...]  # that they have in common


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """Pages of one host that link to the explained page together with the same other pages."""

    host: str
    pages: IdArray
    core: IdArray  # the links that they share, including the explained page
    fraction: float  # of the explained page's score


@dataclass(frozen=True, slots=True)
class RankWithoutLinks:
    """The rank of a page without some links to it."""

    links: int  # number of links removed
    share: float
    error: float  # proven, in total over all pages
    position: int
    best: int  # the position is proven to be from `best` to `worst`
    worst: int

    @property
    def certain(self) -> bool:
        """Whether the error leaves only one possible position."""
        return self.best == self.worst


@dataclass(frozen=True, slots=True)
class Explanation(Tabular):
    """The composition of the score of one page; all fractions are of that score."""

    page: int
    name: str
    share: float
    position: int
    in_links: int
    path: tuple[str, ...]  # a shortest path to it from a teleport page; empty if the teleport is uniform
    templates: tuple[TemplateContribution, ...]
    links: tuple[Contribution, ...]  # the other pages with the largest contributions by a link
    other_pages: int  # number of other pages that link to it
    other_links: float  # their contribution
    dangling: float  # contribution of pages without links
    teleport: float  # contribution of jumps directly to the page
    origins: tuple[Contribution, ...]  # where the surfers who reached it started
    other_origins: float  # started other pages, or not traced back that far
    without_templates: RankWithoutLinks | None = None  # its rank if no template linked to it, if requested

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self, dict_factory=_plain)

    def _columns(self) -> dict[str, Any]:
        rows: list[tuple[str, str | None, float]] = [("link", link.name, link.fraction) for link in self.links]
        rows += [("template", template.host, template.fraction) for template in self.templates]
        rows += [("other links", None, self.other_links), ("dangling", None, self.dangling)]
        rows += [("teleport", None, self.teleport)]
        kinds, names, fractions = zip(*rows, strict=True)
        return {"kind": list(kinds), "name": list(names), "fraction": list(fractions)}

    def _draw(self, axes: Axes) -> None:
        kinds, names, fractions = self._columns().values()
        named = [kind if name is None else name for kind, name in zip(kinds, names, strict=True)]
        draw_bars(axes, named, fractions, f"fraction of the score of {self.name!s:.40}")

    def _html(self) -> str:
        kinds, names, fractions = self._columns().values()
        shown = [f"{fraction:.1%}" for fraction in fractions]
        rows = list(zip(kinds, ["" if name is None else name for name in names], shown, strict=True))
        return f"<p>share {self.share:.3%}, position {self.position:,}</p>{html_table(('', 'page', 'fraction'), rows)}"


def _plain(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(fields)
    return {**labels(values.pop("page"), values.pop("name")), **values} if "page" in values else values


def explain(
    graph: GraphLike,
    ranking: Ranking,
    page: Hashable,
    *,
    top: int = 10,
    what_if: bool = False,
    sites: Sites | None = None,
) -> Explanation:
    """Explain the score of a page in a ranking of this graph, or of the object of another library that was ranked.

    Parameters
    ----------
    top : number of links and of origins to list.
    what_if : rank the graph again without the template links to the page, if there are any.
    sites : host of each page as a number, -1 if it has none, and the names of the hosts; computed from the names of
        the pages by default, which takes most of the time in a large graph.

    >>> graph = Graph.from_edges([("a", "b"), ("b", "c"), ("c", "a"), ("c", "b")])
    >>> explanation = explain(graph, pagerank(graph), "b")
    >>> [(link.name, round(link.fraction, 2)) for link in explanation.links], round(explanation.teleport, 2)
    ([('a', 0.46), ('c', 0.41)], 0.13)
    """
    graph = as_graph(graph)
    if ranking.scores.size != graph.pages:
        raise UsageError(
            f"ranking has {ranking.scores.size:,} pages, and graph has {graph.pages:,}",
            hint="pass the graph that was ranked",
        )
    target = graph.page(page)
    share, damping = float(ranking.scores[target]), ranking.damping
    total = share or 1.0
    degrees = graph.out_degrees
    sources, links, chances = _followed_to(graph, target)
    passed = damping * ranking.scores[sources] * chances / total
    templates = find_templates(graph, target, sources, passed, sites)
    in_template = np.zeros(sources.size, np.bool_)
    for template in templates:
        in_template[np.searchsorted(sources, template.pages)] = True
    single = np.flatnonzero(~in_template)
    best = single[np.lexsort((sources[single], -passed[single]))[:top]]
    uniform = np.broadcast_to(1.0 / graph.pages, graph.pages)
    teleport = uniform if ranking.teleport_weights is None else ranking.teleport_weights
    dangling = uniform if ranking.dangling_weights is None else ranking.dangling_weights
    leaving = damping * float(ranking.scores[degrees == 0].sum())  # mass that leaves pages without links
    starts = (1 - damping) * teleport + leaving * dangling
    started = starts * _probability_to_reach(graph, damping, target) / ((1 - damping) * total)
    origins = np.flatnonzero(started)
    origins = origins[np.lexsort((origins, -started[origins]))[:top]]
    path = () if ranking.teleport_weights is None else shortest_path(graph, np.flatnonzero(teleport), target)
    without = rank_without_links(graph, ranking, target, sources[in_template]) if what_if and templates else None
    return Explanation(
        page=target,
        name=graph.name(target),
        share=share,
        position=int(np.count_nonzero(ranking.scores > share)) + 1,
        in_links=int(links.sum()),
        path=tuple(graph.name(step) for step in path),
        templates=tuple(_template_contribution(graph, template) for template in templates),
        links=tuple(_contribution(graph, int(sources[at]), passed[at], int(links[at])) for at in best),
        other_pages=int(single.size - best.size),
        other_links=max(0.0, float(passed[single].sum() - passed[best].sum())),
        dangling=float(leaving * dangling[target] / total),
        teleport=float((1 - damping) * teleport[target] / total),
        origins=tuple(_contribution(graph, int(page), started[page]) for page in origins),
        other_origins=max(0.0, 1.0 - float(started[origins].sum())),
        without_templates=without,
    )


def _followed_to(graph: Graph, target: int) -> tuple[IdArray, IntArray, FloatArray]:
    """Return the pages that link to a target, the number of their links to it, and the probability to follow one."""
    sources, first, links = np.unique(graph.in_links_of(target), return_index=True, return_counts=True)
    if graph.chances is None:
        return sources, links, links / graph.out_degrees[sources]
    row = graph.chances[graph.in_links.indptr[target] : graph.in_links.indptr[target + 1]]
    return sources, links, row[first]  # the weights of several links were added


def _template_contribution(graph: Graph, template: Template) -> TemplateContribution:
    names = tuple(graph.name(page) for page in template.core.tolist())
    return TemplateContribution(template.host, int(template.pages.size), template.fraction, names)


def _contribution(graph: Graph, page: int, fraction: float, links: int = 1) -> Contribution:
    out_links = int(graph.indptr[page + 1] - graph.indptr[page])
    return Contribution(page, graph.name(page), float(fraction), out_links, links)


def _probability_to_reach(graph: Graph, damping: float, target: int) -> FloatArray:
    """Return each page's probability to stop on the target before the first jump; low by at most the tolerance."""
    from surveyor.kernels.pagerank_iterations import BackwardLinks, push_backward

    reached, residual = np.zeros(graph.pages), np.zeros(graph.pages)
    queue = np.full(graph.pages, -1, np.int32)
    residual[target], queue[0] = 1.0, target
    rows = graph.in_links
    chances = np.empty(0) if graph.chances is None else graph.chances
    links = BackwardLinks(rows.indptr, rows.indices, graph.share_per_link, chances)
    push_backward(links, reached, residual, damping, BACKWARD_TOLERANCE, queue)
    return reached


def shortest_path(graph: Graph, starts: AnyIntArray, target: int) -> tuple[int, ...]:
    """Return the pages of a shortest path from one of `starts` to the target, both included; empty if there is none.

    Among equally short paths, choose the one whose pages have the lowest ids, from the target backwards.

    >>> graph = Graph.from_edges([("a", "b"), ("b", "c"), ("c", "d"), ("a", "c")])
    >>> shortest_path(graph, np.array([0]), 3)
    (0, 2, 3)
    """
    back = graph.reversed()
    is_start = np.zeros(graph.pages, np.bool_)
    is_start[starts] = True
    successor = np.full(graph.pages, -1, np.int32)  # next page on the path, for pages from which one is known
    successor[target] = target
    here = np.array([target])
    while here.size and not is_start[here].any():
        owners, pages = back.distinct_links_from(here)
        new = successor[pages] < 0
        pages, first = np.unique(pages[new], return_index=True)  # the first of `here` that it links to
        successor[pages] = here[owners[new][first]]
        here = pages
    if not here.size:
        return ()
    path = [int(here[is_start[here]][0])]
    while path[-1] != target:
        path.append(int(successor[path[-1]]))
    return tuple(path)


def find_templates(
    graph: Graph, target: int, sources: IdArray, fractions: FloatArray, sites: Sites | None = None
) -> list[Template]:
    """Find the templates by which pages link to a target, most important first.

    Parameters
    ----------
    sources : the pages that link to it, each once.
    fractions : the fraction of the target's score that each gives.
    sites : as in `explain`.
    """
    if sites is None and (graph.names is None or not URL.match(str(graph.name(target)))):
        return []
    hosts, names = sites or hosts_of(graph.names)  # type: ignore[arg-type]  # there are names
    with_host = (hosts[sources] >= 0) & (sources != target)
    contribution = np.full(graph.pages, NOT_LINKING)
    contribution[sources[with_host]] = fractions[with_host]
    host_ids = hosts[sources[with_host]]
    sizes = np.bincount(host_ids, minlength=len(names))
    totals = np.bincount(host_ids, fractions[with_host], len(names))
    large = np.append((sizes >= MIN_PAGES) & (totals >= MIN_HOST), False)  # the last one: pages without a host
    order = np.flatnonzero(large[hosts])
    order = order[np.argsort(hosts[order], kind="stable")]
    starts = np.searchsorted(hosts[order], np.arange(len(names) + 1))
    templates = [
        Template(names[host], pages.astype(np.int32), core.astype(np.int32), float(contribution[pages].sum()))
        for host in np.flatnonzero(large).tolist()
        for pages, core in _templates_of_host(graph, target, order[starts[host] : starts[host + 1]], contribution)
    ]
    return sorted(templates, key=lambda template: -template.fraction)


def _templates_of_host(
    graph: Graph, target: int, pages: IntArray, contribution: FloatArray
) -> list[tuple[IntArray, IntArray]]:
    """Return pages and core of each template of a host; `contribution` is that of each page, or NOT_LINKING."""
    templates: list[tuple[IntArray, IntArray]] = []
    pages = pages[pages != target]
    free = pages[contribution[pages] >= 0]
    counts = _count_in_links(graph, free)
    companions = (counts >= MIN_PAGES) & (counts >= TOGETHER * _count_in_links(graph, pages))
    companions[target] = True  # of itself
    minimum = MIN_TEMPLATE * contribution[free].sum()
    untried = companions.copy()
    untried[target] = False
    for _ in range(MAX_TEMPLATES):
        best = int(np.where(untried, counts, -1).argmax())
        if not untried[best] or counts[best] < MIN_PAGES or contribution[free].sum() < minimum:
            break
        untried[best] = False
        both = np.intersect1d(graph.in_links_of(best), free)
        core = np.flatnonzero(companions & (_count_in_links(graph, both) >= TOGETHER * both.size))
        untried[core] = False
        if core.size < MIN_CORE:
            continue
        members = _pages_with_core(graph, free, core)
        if members.size >= MIN_PAGES and contribution[members].sum() >= minimum:
            templates.append((members, core))
            counts = counts - _count_in_links(graph, members)
            free = np.setdiff1d(free, members, assume_unique=True)
    return templates


def _count_in_links(graph: Graph, pages: IntArray) -> IntArray:
    """Return how many of `pages` link to each page."""
    return np.bincount(graph.distinct_links_from(pages)[1], minlength=graph.pages)


def _pages_with_core(graph: Graph, pages: IntArray, core: IntArray) -> IntArray:
    """Return the pages that have most of the core."""
    in_core = np.zeros(graph.pages, np.bool_)
    in_core[core] = True
    owners, targets = graph.distinct_links_from(pages)
    others = in_core[targets] & (targets != pages[owners])
    counts = np.bincount(owners[others], minlength=pages.size) + in_core[pages]  # a page counts as linking to itself
    return pages[counts >= TOGETHER * core.size]


def rank_without_links(graph: Graph, ranking: Ranking, target: int, sources: IdArray) -> RankWithoutLinks:
    """Rank a graph again without the links from some pages to a target, with the settings of the ranking."""
    smaller = remove_links(graph, target, sources)
    removed = graph.links - smaller.links
    dangling: Dangling = "uniform"
    if ranking.dangling == "teleport":
        dangling = "teleport"
    elif ranking.dangling_weights is not None:
        dangling = ranking.dangling_weights
    result, again, tolerance = None, ranking, ranking.tolerance
    while result is None or not (result.certain or SHARP * result.share >= tolerance):
        tolerance = max(SMALLEST, min(tolerance, SHARP * again.share(target)))
        try:
            again = pagerank(
                smaller, ranking.damping, tolerance, ranking.teleport_weights, dangling=dangling, start=again
            )
        except NotConverged as error:
            return _position_bounds(error.best, target, removed)  # with its own bound
        result = _position_bounds(again, target, removed)
        if tolerance == SMALLEST:
            break
    return result


def _position_bounds(ranking: Ranking, target: int, links: int) -> RankWithoutLinks:
    ahead = ranking.scores - ranking.scores[target]
    ahead[target] = -np.inf
    # The errors of two pages, and hence the error of their difference, sum to at most the proven error.
    best, worst = (1 + int(np.count_nonzero(ahead > edge)) for edge in (ranking.error, -ranking.error))
    return RankWithoutLinks(links, ranking.share(target), ranking.error, ranking.position(target), best, worst)


def remove_links(graph: Graph, target: int, sources: IdArray) -> Graph:
    """Return the graph without the links from some pages to a target; in-links are updated, not recomputed."""
    is_source = np.zeros(graph.pages, np.bool_)
    is_source[sources] = True
    rows = graph.in_links
    first, last = rows.indptr[target : target + 2]
    removed = is_source[rows.indices[first:last]]
    kept_in = np.ones(rows.indices.size, np.bool_)
    kept_in[first:last] = ~removed
    in_indptr = rows.indptr.copy()
    in_indptr[target + 1 :] -= np.count_nonzero(removed)
    from_source = np.repeat(is_source, graph.out_degrees)  # for each link
    kept_out = ~(from_source & (graph.indices == target))
    removed_of_page = np.bincount(rows.indices[first:last][removed], minlength=graph.pages)
    out_indptr = graph.indptr.copy()
    out_indptr[1:] -= np.cumsum(removed_of_page)
    in_links = Rows(in_indptr, rows.indices[kept_in])
    extra = Extra(None if graph.weights is None else graph.weights[kept_out], multigraph=graph.multigraph)
    return Graph(out_indptr, graph.indices[kept_out], names=graph.names, in_links=in_links, extra=extra)
