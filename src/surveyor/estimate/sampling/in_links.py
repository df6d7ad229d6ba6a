"""In-links of the pages of a walk: their sources, their coverage, and weights that correct for missing ones.

**Sources.** A walk cannot observe the pages that link to a page itself. A source is any object with a method
`in_links(url, limit)` that returns the URLs of at most `limit` pages that link to a page, best first if it can rank
them: a table, a graph, another survey, or the client of a service. `query` validates the answers: entries that are not
URLs are dropped, and a source that raises is named in the error.

A walk follows links and, as far as they are known, in-links. If some in-links are unknown, a page is reached by its
in-links and by those of its out-links that the other end reports, but is left by all its out-links and by its reported
in-links. Its frozen degree is then not proportional to its visits: pages with many in-links are visited too often, and
pages without in-links rarely or never.

**Coverage.** Whether an in-link source reports a link does not depend on whether the linking page was fetched before
the source was queried. So the share reported of the links from pages fetched earlier estimates the share of all links.

**Weights.** With c the reported share, the expected visits of a page are proportional to

    degree^f * (in + c * out)^(1 - f) * reach

where in + c * out counts the links by which it can be reached (out: links that are not reciprocal), and f is the mean
share of frozen neighbours that walks have drawn from, of those that they visit at all. Pages without a known in-link
are found only if one of their out-links is reported: for them reach = 1 - (1 - c)^out, otherwise 1. In-links from pages
that were not fetched are estimated from the reported ones (Gamma-Poisson model, among pages with a similar number of
in-links from fetched pages). As walks discover all pages, f tends to 1 and the frozen degree is used; if all links are
reported, both are equal. The form is empirical: `experiments.back_links` measures its bias and error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from surveyor.arrays import BoolArray, FloatArray, IdArray, IntArray
from surveyor.crawler.topics.proportions import wilson
from surveyor.errors import SurveyorError, UsageError
from surveyor.estimate.sampling.walk_trace import WalkTrace
from surveyor.store.layout import is_survey
from surveyor.web.urls import host, normalise

if TYPE_CHECKING:
    from surveyor.estimate.sampling.compiled_walks import CompiledWalks, NeighbourLists
    from surveyor.estimate.sampling.walk_methods import WalkGraph
    from surveyor.graph.csr import Graph

DEFAULT_LIMIT = 100  # in-links requested per page, as in the paper
EXAMINED = 10  # answers examined per in-link requested, since some may not be URLs
SUFFICIENT = 0.3  # reported share from which the bias of corrected weights is below the noise of 400 pages on most webs
MIN_COVERAGE = 0.05  # below, too few links are reported to estimate from
FLOOR = 0.05  # of reach and of arriving links: limits weights to a factor of 20
PRIOR_LINKS = 20  # weight, in links, of the page-by-page estimate next to the pooled one
MAX_GROUP = 6  # pages are grouped by the base-2 logarithm of in-links from fetched pages


@runtime_checkable
class InLinkSource(Protocol):
    """Reports the pages that link to a page."""

    def in_links(self, url: str, limit: int) -> Iterable[str]:
        """Return URLs of at most `limit` pages that link to a page."""


class NoInLinks:
    """Reports nothing: walks know only the in-links from pages that they fetched."""

    def in_links(self, url: str, limit: int) -> Iterable[str]:  # noqa: ARG002
        """Return nothing."""
        return ()


class InLinkFile:
    """A table of links with source and target in each line, as exported by search consoles and back-link services."""

    def __init__(self, path: Path | str) -> None:
        from surveyor.graph.back_links import read_back_link_table

        self.name = f"file {Path(path).name}"
        self._sources: dict[str, dict[str, None]] = {}
        for source, linking in read_back_link_table(path).items():
            for target in linking.targets:
                self._sources.setdefault(normalise(target) or target, {})[source] = None
        if not self._sources:
            raise UsageError(f"{path} has no links", hint="the file needs a source and a target in each line")

    def in_links(self, url: str, limit: int) -> Iterable[str]:
        """Return the sources that the table lists for a page."""
        return list(islice(self._sources.get(url, ()), limit))


class InLinkGraph:
    """A graph whose page names are URLs."""

    def __init__(self, graph: Graph, name: str = "graph") -> None:
        if graph.names is None:
            raise UsageError("the graph of in-links has no page names", hint="use a graph whose page names are URLs")
        self._graph, self._names, self.name = graph, graph.names, name

    def in_links(self, url: str, limit: int) -> Iterable[str]:
        """Return the pages of the graph that link to a page."""
        page, transposed = self._names.find(url), self._graph.in_links
        if page is None:
            return ()
        row = transposed.indices[transposed.indptr[page] : transposed.indptr[page + 1]]
        return [self._names[other] for other in row[:limit].tolist()]


class InLinkSurvey(InLinkGraph):
    """The fetched pages of a survey."""

    def __init__(self, folder: Path | str) -> None:
        from surveyor.survey.survey import Survey

        with Survey(folder) as survey:
            super().__init__(survey.graph(), f"survey {Path(folder).name}")


@dataclass(frozen=True)
class CombinedInLinks:
    """Several sources, queried in order until the limit is reached."""

    sources: Sequence[InLinkSource]

    @property
    def name(self) -> str:
        """The names of all sources."""
        return ", ".join(source_name(source) for source in self.sources)

    def in_links(self, url: str, limit: int) -> Iterable[str]:
        """Return the answers of the first source, then of the next."""
        urls: dict[str, None] = {}
        for source in self.sources:
            if len(urls) >= limit:
                break
            urls.update(dict.fromkeys(query(source, url, limit - len(urls))))
        return list(urls)


def in_link_source(value: object) -> InLinkSource:
    """Return the source for a source, a graph, the path of a survey, graph or table, or a list of these."""
    from surveyor.graph.csr import Graph

    if value is None:
        return NoInLinks()
    if isinstance(value, Graph):
        return InLinkGraph(value)
    if isinstance(value, str | Path):
        path = Path(value)
        if is_survey(path):
            return InLinkSurvey(path)
        if (path / "graph.json").is_file():
            return InLinkGraph(Graph.open(path), f"graph {path.name}")
        return InLinkFile(path)
    if isinstance(value, list | tuple):
        return CombinedInLinks([in_link_source(one) for one in value])
    if isinstance(value, InLinkSource) and not isinstance(value, type):
        return value
    raise UsageError(
        f"in_links must be a source of in-links, got {type(value).__name__}",
        hint="pass a survey, a graph, a table of source and target, or an object with a method in_links(url, limit)",
    )


def source_name(source: InLinkSource) -> str:
    """Return the name of a source for messages; empty for `NoInLinks`."""
    return "" if isinstance(source, NoInLinks) else str(getattr(source, "name", "")) or type(source).__name__


def query(source: InLinkSource, url: str, limit: int = DEFAULT_LIMIT) -> list[str]:
    """Return the normalised, distinct URLs of pages that link to a page, without the page itself."""
    urls: dict[str, None] = {}
    try:
        for answer in islice(source.in_links(url, limit), EXAMINED * limit):
            normalised = normalise(answer) if isinstance(answer, str) else None
            if normalised is not None and normalised != url and host(normalised):
                urls[normalised] = None
            if len(urls) >= limit:
                break
    except SurveyorError:
        raise
    except Exception as error:  # whatever a user's source raises
        problem = f"the in-link source {source_name(source)} failed for {url}: {type(error).__name__}: {error}"
        raise UsageError(problem, hint="fix the source, or leave it out; run the same command to resume") from error
    return list(urls)


@dataclass(frozen=True, slots=True, eq=False)
class LinkObservations:
    """What walks observed of the pages they visited and of the links into these.

    A link is known if the in-link source reports it, or if the linking page was fetched, even if later.
    """

    pages: IdArray  # visited pages, ascending; entry i of the next four arrays belongs to pages[i]
    out_links: IntArray  # number of links to other pages
    degree: IntArray  # number of neighbours in the frozen list
    frozen_neighbours: IntArray  # neighbours whose own lists are frozen
    rejected_neighbours: IntArray  # neighbours that were fetched but never drawn from: walks do not visit them
    target: IntArray  # for each known link into these pages: index of its target in `pages`
    reported: BoolArray  # the in-link source reports it
    fetched: BoolArray  # the linking page was fetched
    fetched_before: BoolArray  # it was fetched before the source was queried about the target
    reciprocal: BoolArray  # the target links back

    @classmethod
    def from_compiled(cls, neighbours: NeighbourLists, walks: CompiledWalks) -> LinkObservations:
        """Collect the observations of compiled walks over a graph."""
        pages, first = np.unique(walks.trace().page, return_index=True)
        sizes = neighbours.starts[pages + 1] - neighbours.starts[pages]
        target = np.repeat(np.arange(pages.size), sizes)
        rows = np.arange(target.size) + np.repeat(neighbours.starts[pages] - (np.cumsum(sizes) - sizes), sizes)
        other, bits = neighbours.pages[rows], neighbours.links[rows]
        first_visit: IntArray = np.full(neighbours.starts.size - 1, np.iinfo(np.int64).max)
        first_visit[pages] = first
        reported, fetched, out = bits & 4 != 0, walks.fetched[other] & (bits & 2 != 0), bits & 1 != 0
        known = reported | fetched
        degree = np.maximum(walks.degrees[pages], 0).astype(np.int64)
        lists = np.concatenate([walks.list_of(page) for page in pages.tolist()])
        owner, frozen = np.repeat(np.arange(pages.size), degree), walks.degrees[lists] >= 0
        rejected = walks.fetched[lists] & ~frozen
        return cls(
            pages=pages,
            out_links=np.bincount(target[out], minlength=pages.size),
            degree=degree,
            frozen_neighbours=np.bincount(owner[frozen], minlength=pages.size),
            rejected_neighbours=np.bincount(owner[rejected], minlength=pages.size),
            target=target[known],
            reported=reported[known],
            fetched=fetched[known],
            fetched_before=(fetched & (first_visit[other] < first_visit[pages][target]))[known],
            reciprocal=out[known],
        )

    @classmethod
    def from_walk_graph(cls, graph: WalkGraph, trace: WalkTrace) -> LinkObservations:
        """Collect the observations of walks over a survey or the live web."""
        pages, first = np.unique(trace.page, return_index=True)
        first_visit = dict(zip(pages.tolist(), first.tolist(), strict=True))
        index = {page: number for number, page in enumerate(first_visit)}
        links = {(page, target) for page, targets in graph.links.items() for target in targets if target in index}
        links |= {(page, target) for target in index for page in graph.in_links_of(target)}
        rows = []
        for page, target in sorted(links):
            fetched = target in graph.links.get(page, ())
            fetched_before = fetched and first_visit.get(page, len(trace)) < first_visit[target]
            reciprocal = page in graph.links.get(target, ())
            rows.append((index[target], page in graph.in_links_of(target), fetched, fetched_before, reciprocal))
        target_column, *flags = np.array(rows, np.int64).reshape(-1, 5).T
        lists = [graph.lists.get(page, []) for page in first_visit]

        def counts(numbers: list[int]) -> IntArray:
            return np.array(numbers, np.int64)

        return cls(
            pages,
            counts([len(graph.links.get(page, ())) for page in first_visit]),
            counts([len(near) for near in lists]),
            counts([sum(other in graph.lists for other in near) for near in lists]),
            counts([sum(graph.has(other) and other not in graph.lists for other in near) for near in lists]),
            target_column,
            *(flag.astype(np.bool_) for flag in flags),
        )

    def count(self, links: BoolArray) -> FloatArray:
        """Count the selected links into each page."""
        return np.bincount(self.target[links], minlength=self.pages.size).astype(np.float64)


class LinkCoverage(NamedTuple):
    """A share of known links with its 95 % confidence interval, and the number of links it is estimated from."""

    value: float
    low: float
    high: float
    links: int


COMPLETE, UNKNOWN = LinkCoverage(1.0, 1.0, 1.0, 0), LinkCoverage(0.0, 0.0, 1.0, 0)


@dataclass(frozen=True, slots=True)
class InLinkCoverage:
    """Coverage of the links into the visited pages, their source, and whether weights correct for missing ones."""

    source: str
    reported: LinkCoverage = COMPLETE  # share of the in-links that the source reports
    neighbours: LinkCoverage = COMPLETE  # share of all neighbours in the lists that walks drew from
    truncated: int = 0  # pages for which the source returned as many in-links as requested: there may be more
    corrected: bool = False  # weights correct for a part of the missing in-links

    @classmethod
    def estimate(cls, observed: LinkObservations, source: str, truncated: int = 0) -> InLinkCoverage:
        """Estimate the coverage of a source from what walks observed; weights are taken to be corrected."""
        reported, neighbours = estimate_in_link_coverage(observed), estimate_neighbour_coverage(observed)
        return cls(source, reported, neighbours, truncated, corrected=True)

    @property
    def complete(self) -> bool:
        """Whether all in-links are known, not only estimated to be."""
        return self.reported == COMPLETE

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sources of bias from missing in-links."""
        warnings = []
        if self.reported.value < SUFFICIENT:
            share = f"{100 * self.reported.value:.0f} %" if self.reported.links else "none"
            correction = "; weights correct for a part of it" if self.corrected else ""
            warnings.append(
                f"{share} of the in-links were reported ({self.source}): pages with many in-links are over-represented,"
                f" and intervals do not show it{correction}; name a survey, graph or table of in-links (--in-links)"
            )
        if self.truncated:
            warnings.append(
                f"{self.source} returned the maximum number of in-links for {self.truncated:,} pages and may have more:"
                " pages with many in-links are over-represented"
            )
        return tuple(warnings)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return {
            "source": self.source,
            "reported": self.reported._asdict(),
            "neighbours": self.neighbours._asdict(),
            "corrected": self.corrected,
            "truncated": self.truncated,
            "complete": self.complete,
        }


def estimate_in_link_coverage(observed: LinkObservations) -> LinkCoverage:
    """Estimate the share of the in-links of visited pages that the in-link source reports.

    If the source reports many links of some pages and few of others, such as one that returns the first hundred, the
    reported links are compared with the in-links estimated page by page. Links into the same page may be reported or
    missed together: Wilson's interval uses the number of independent links with the same variance.

    It holds for sources that report links of all pages with the same probability. For a source that returns the first
    hundred, the value is too high, because pages with many in-links are visited before much was fetched, and the
    interval does not show it.
    """
    pooled, prior, _ = _reported_shares(observed)
    total = observed.count(observed.fetched_before)
    reported = observed.count(observed.fetched_before & observed.reported)
    links = int(total.sum())
    if not links:
        return UNKNOWN
    value = pooled
    if MIN_COVERAGE <= pooled < 1:
        by_page = float(observed.reported.sum()) / max(float(_estimate_in_links(observed, pooled)[0].sum()), 1.0)
        value = (prior * pooled + PRIOR_LINKS * by_page) / (prior + PRIOR_LINKS)
    if 0 < value < 1:
        squares = max(float(((reported - pooled * total) ** 2).sum()), 1e-12)
        effective = min(float(links), pooled * (1 - pooled) * links**2 / squares)
    else:  # all or none reported: links of a page may depend on each other, so pages count
        effective = float((total > 0).sum())
    return LinkCoverage(value, *wilson(value, effective, 0.95), links)


def estimate_neighbour_coverage(observed: LinkObservations) -> LinkCoverage:
    """Estimate the share of all neighbours of visited pages that are in their frozen lists.

    Without an in-link source, in-links from pages that were never fetched cannot be counted: the value is then an upper
    bound, and the interval extends down to 0.
    """
    reported = estimate_in_link_coverage(observed)
    frozen = float(observed.degree.sum())

    def share(coverage: float) -> float:
        in_links, reciprocal = _estimate_in_links(observed, coverage)
        return min(1.0, frozen / max(float((in_links + observed.out_links - reciprocal).sum()), frozen, 1.0))

    low = share(reported.low) if reported.low >= MIN_COVERAGE else 0.0
    return LinkCoverage(share(reported.value), low, share(reported.high), reported.links)


def expected_visits(observed: LinkObservations) -> FloatArray:
    """Return the expected visits of each page up to a factor, which replace its degree."""
    coverage = estimate_in_link_coverage(observed).value
    degree = np.maximum(observed.degree, 1).astype(np.float64)
    drawn, rejected = observed.frozen_neighbours, observed.rejected_neighbours
    # Neighbours not fetched yet are assumed to be drawn from as often as those that were fetched.
    accepted = float(drawn.sum()) / max(float((drawn + rejected).sum()), 1.0)
    visitable = np.maximum(drawn + accepted * (degree - drawn - rejected), 1)
    settled = float((drawn / visitable).mean()) if degree.size else 1.0
    in_links, reciprocal = _estimate_in_links(observed, coverage)
    arriving = np.maximum(in_links + coverage * (observed.out_links - reciprocal), FLOOR)
    isolated = np.bincount(observed.target, minlength=observed.pages.size) == 0
    found = 1 - (1 - coverage) ** np.maximum(observed.out_links, 1)
    reach = np.where(isolated & (coverage >= MIN_COVERAGE), found, 1.0)
    return degree**settled * arriving ** (1 - settled) * np.maximum(reach, FLOOR)


def correct_weights(trace: WalkTrace, observed: LinkObservations) -> WalkTrace:
    """Replace the degrees of a trace by expected visits, so that its weights correct for unknown links.

    Use it for means and shares only: topic sizes from collisions become up to 1.6 times too large on large webs.
    """
    return replace(trace, degree=expected_visits(observed)[np.searchsorted(observed.pages, trace.page)])


def _reported_shares(observed: LinkObservations) -> tuple[float, float, FloatArray]:
    """Estimate the reported share of in-links: pooled, its prior weight in links, and of each page.

    The shares of pages are Beta distributed, with the variance from the moments of the counts.
    """
    before = observed.fetched_before
    pooled = float(observed.reported[before].mean()) if before.any() else 0.0
    total, reported = observed.count(observed.fetched), observed.count(observed.fetched & observed.reported)
    mean = float(reported.sum() / max(total.sum(), 1))
    binomial = mean * (1 - mean)
    excess = float(((reported - mean * total) ** 2).sum()) - binomial * float(total.sum())
    correlation = excess / max(binomial * float((total * (total - 1)).sum()), 1e-9)  # of links into a page
    prior = 1 / min(max(correlation, 1e-6), 0.9) - 1
    return pooled, prior, (reported + prior * pooled) / (total + prior)


def _estimate_in_links(observed: LinkObservations, coverage: float) -> tuple[FloatArray, FloatArray]:
    """Estimate the number of in-links of each page, and of reciprocal links among them."""
    fetched, known = observed.count(observed.fetched), observed.count(observed.reported | observed.fetched)
    in_links, reciprocal = fetched.copy(), observed.count(observed.reciprocal)
    out_links = observed.out_links.astype(np.float64)
    if coverage >= MIN_COVERAGE:
        unfetched = observed.count(observed.reported & ~observed.fetched)
        pooled, _, shares = _reported_shares(observed)
        shares = np.clip(shares * coverage / max(pooled, FLOOR), FLOOR**2, 1.0)
        group = np.minimum(np.log2(fetched + 1).astype(np.int64), MAX_GROUP)
        for number in np.unique(group):
            own = group == number
            in_links[own] += _estimate_totals(unfetched[own], shares[own])
    known_share = min(1.0, float(known.sum()) / max(float(in_links.sum()), 1.0))
    reciprocal = np.minimum(np.minimum(reciprocal / max(known_share, FLOOR), out_links), in_links)
    return np.maximum(in_links, 1.0) if coverage < MIN_COVERAGE else in_links, reciprocal


def _estimate_totals(counts: FloatArray, shares: FloatArray) -> FloatArray:
    """Estimate totals of which a share was counted.

    The totals are Poisson with Gamma distributed means, fitted to the moments of the counts.
    """
    mean = float(counts.mean())
    if not mean:
        return counts
    shape = min(max(mean**2 / max(float(counts.var()) - mean, 1e-9), FLOOR), 1e6)
    return counts + (1 - shares) * (shape + counts) / (shape * float(shares.mean()) / mean + shares)
