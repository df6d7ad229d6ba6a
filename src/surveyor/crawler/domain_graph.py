"""Domain graph of a survey, updated incrementally during the crawl, and the ranking of its domains by supporters.

Domain x links to domain y if some page of x, as last fetched, links to a page of y. Links out of scope count, as most
links between domains are; nofollow links are optional. Every known page, fetched or not, belongs to a domain. A
redirected page (redirect or canonical URL) belongs to the domain of its target, even out of scope, except in a loop; so
a domain whose pages all redirect elsewhere is not in the graph. It has *moved*. Moved domains have no trust, but they
are in groups as others: if they left their group, a farm of redirects could fill it again after each ranking.

**Cost.** A link is stored as one key, domain of the source << 32 | target page, with the votes of the pages that have
it (each page splits one vote among its links) and the first and last of these pages. So links follow a page that is
later found to redirect, and links that a page no longer has are removed when it is fetched again. Votes are integers,
so that removing is exact; the first and last page are of all that ever had the link. Keys are sorted in runs, and runs
of similar size are merged, so that a link is merged O(log links) times. Memory: 24 bytes per distinct key, with few
more keys than pages, and 9 bytes per page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from surveyor.arrays import BoolArray, FloatArray, IdArray, IntArray, KeyArray
from surveyor.crawler.replay import URL
from surveyor.errors import SurveyError, UsageError
from surveyor.fetch.responses import LEFT
from surveyor.graph.condense import NAMES, CondensedGraph, provenance, sizes_of
from surveyor.graph.csr import Graph
from surveyor.graph.hosts_and_domains import Level, SiteIndex
from surveyor.graph.names import Names
from surveyor.outcome import Visit
from surveyor.rank.domains.established import VotedLinks, establish
from surveyor.rank.domains.reputation import Reputation
from surveyor.rank.domains.tse import sampled_supporters
from surveyor.stopping import ProgressCallback, silent
from surveyor.store.journal import Journal
from surveyor.web.suffixes import Suffixes

if TYPE_CHECKING:
    from surveyor.crawler.budgets import Plan
    from surveyor.store.directory import SurveyFolder

RUN = 1 << 20  # links sorted at a time
OFTEN = 1000  # visits between progress reports
LOW = np.uint64(0xFFFFFFFF)
VOTE = 1 << 24  # of a page, split among its links
GROUPED = 100_000  # domains whose group is recorded, and moved domains; those with less mass share one budget
Score = Callable[[Graph, int], Reputation]  # of a domain graph, for the given number of best domains


class Run(NamedTuple):
    """Links in order of their keys, each with its votes and the first and last page that had it."""

    keys: KeyArray
    votes: IntArray
    first: IdArray
    last: IdArray


EMPTY = Run(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int32))


class VotedSnapshot(NamedTuple):
    """A domain graph and its moved domains, which are numbered after the others."""

    condensed: CondensedGraph
    moved: list[str]
    site_of: IdArray  # domain of each page itself, wherever it redirects to
    votes: VotedLinks  # of links and redirects; those to moved domains have none


class DomainGraph:
    """Host or domain graph, built incrementally from visits in order."""

    def __init__(self, level: Level = "domains", suffixes: Suffixes | None = None, *, nofollow: bool = False) -> None:
        self._level, self._suffixes, self._nofollow = level, suffixes, nofollow
        self._reset()

    def _reset(self) -> None:
        self._sites = SiteIndex(self._level, self._suffixes)
        self._suffixes = self._sites.suffixes
        self._site_of: IdArray = np.empty(0, np.int32)  # host or domain of each page
        self._targets: IdArray = np.empty(0, np.int32)  # target of each redirected page, or the page itself
        self._fetched: BoolArray = np.empty(0, np.bool_)  # for each page, whether its links are counted
        self._waiting: list[tuple[int, IdArray, int]] = []  # page, its links, and +1 to add or -1 to remove them
        self._links = self._size = 0
        self._runs: list[Run] = []
        self._journal, self.position = "", 0

    def add_urls(self, urls: Iterable[str]) -> None:
        """Add the URLs of the next pages."""
        rest = iter(urls)
        while some := list(islice(rest, NAMES)):
            if not all(isinstance(url, str) and URL.fullmatch(url) for url in some):
                raise SurveyError(
                    f"some pages after {self._site_of.size:,} have no URLs", hint="restore the survey from a copy"
                )
            first = self._site_of.size
            self._site_of = np.concatenate([self._site_of, self._sites.sites_of(Names.of(some))])
            self._targets = np.concatenate([self._targets, np.arange(first, self._site_of.size, dtype=np.int32)])
            self._fetched = np.concatenate([self._fetched, np.zeros(len(some), np.bool_)])

    def observe(self, visit: Visit, before: Visit | None = None) -> None:
        """Add a visit; `before` is the earlier visit that it replaces, required if the page was fetched before."""
        target = _redirect_target(visit)
        if visit.kind == "blocked" and target < 0:
            return
        if self._fetched[visit.page]:
            if before is None:
                raise UsageError(f"page {visit.page} was fetched before", hint="pass the visit that this one replaces")
            self._put(before, -1)
        self._targets[visit.page] = visit.page if target < 0 else target
        self._fetched[visit.page] = visit.kind == "fetched"
        if visit.kind == "fetched":
            self._put(visit, 1)

    def catch_up(self, journal: Journal, progress: ProgressCallback = silent) -> None:
        """Read the new visits of a journal; all visits if its past was changed or it is another journal."""
        if self._journal != journal.identity:
            self._reset()
            self._journal = journal.identity
        end = journal.position
        self.add_urls(journal.urls(self._site_of.size))
        for number, visit in enumerate(islice(journal.visits(self.position), end - self.position), self.position + 1):
            before = journal.last_visit(visit.page, "fetched", before=number) if self._fetched[visit.page] else None
            self.observe(visit, before)
            if number % OFTEN == 0:
                progress("reading visits", number, end, "visits")
        self.position = end

    def snapshot(self, source: str = "") -> CondensedGraph:
        """Return the current graph; `source` is recorded in its provenance."""
        return self._snapshot(source)[0]

    def voted_snapshot(self) -> VotedSnapshot:
        """Return the current graph, the moved domains, and the votes of links between all these."""
        condensed, run, new = self._snapshot()
        domains = condensed.graph.pages
        here = self._site_of[self._site_of >= 0]
        moved = np.unique(here[new[here] < 0]).astype(np.int64)
        new[moved] = domains + np.arange(moved.size)
        own: IdArray = new[self._site_of]
        targets = (run.keys & LOW).astype(np.int64)
        sources, into = new[(run.keys >> np.uint64(32)).astype(np.int64)], condensed.site_of[targets]
        across = np.flatnonzero((sources != into) & (into >= 0))
        gone = np.flatnonzero(own[targets] >= domains)  # links to pages of moved domains
        ends = own[self._targets]
        leads = np.flatnonzero((ends >= domains) & (ends != own) & (own >= 0)).astype(np.int32)  # redirects to them
        both = np.concatenate([across, gone])
        votes = VotedLinks.of(
            np.concatenate([sources[both], own[leads]]),
            np.concatenate([into[across], own[targets[gone]], ends[leads]]),
            np.concatenate([run.votes[across], np.zeros(gone.size + leads.size, np.int64)]),
            (np.concatenate([run.first[both], leads]), np.concatenate([run.last[both], leads])),
            domains + moved.size,
        )
        return VotedSnapshot(condensed, list(self._sites.names().take(moved)), own, votes)

    def _snapshot(self, source: str = "") -> tuple[CondensedGraph, Run, IdArray]:
        """Return the current graph, its links to pages, and the number of each site in the graph."""
        self._close_run()
        self._runs = [_merged(self._runs)] if self._runs else []
        run = self._runs[0] if self._runs else EMPTY
        present = run.votes > 0
        run = Run(run.keys[present], run.votes[present], run.first[present], run.last[present])
        at = self._site_of[_settled(self._targets)]
        kept = np.unique(at[at >= 0]).astype(np.int64)
        names, new = self._sites.in_order(kept)
        of: IdArray = new[at]
        sources, targets = new[(run.keys >> np.uint64(32)).astype(np.int64)], of[(run.keys & LOW).astype(np.int64)]
        across = (sources != targets) & (targets >= 0)
        made = Graph.from_arrays(sources[across], targets[across], len(names))
        origin = provenance(self._sites, of, {"source": source} if source else {})
        no_suffix = int(np.isin(kept, self._sites.without_suffix).sum())
        if self._level == "domains":
            origin["hosts_under_no_suffix"] = no_suffix
        origin |= {"links_read": self._links, "visits": self.position, "nofollow": self._nofollow}
        graph = Graph(made.indptr, made.indices, names=names, provenance=origin)
        return CondensedGraph(graph, of, sizes_of(of, len(names)), self._level, no_suffix), run, new

    def _put(self, visit: Visit, sign: int) -> None:
        lists = [visit.links, visit.out_of_scope, *([visit.nofollow] if self._nofollow else [])]
        links = np.concatenate(lists)
        self._waiting.append((visit.page, links, sign))
        self._links += sign * links.size
        self._size += links.size
        if self._size >= RUN:
            self._close_run()

    def _close_run(self) -> None:
        """Sort the pending links into a run; merge runs until each is more than twice as long as the next."""
        if self._waiting:
            pages, lists, signs = zip(*self._waiting, strict=True)
            sizes = [links.size for links in lists]
            sources = np.repeat(self._site_of[np.array(pages)], sizes)
            keys = sources.astype(np.uint64) << np.uint64(32) | np.concatenate(lists).astype(np.uint64)
            votes = [sign * max(VOTE // max(size, 1), 1) for sign, size in zip(signs, sizes, strict=True)]
            having = np.repeat(np.array(pages, np.int32), sizes)
            self._runs.append(_merged([Run(keys, np.repeat(np.array(votes, np.int64), sizes), having, having)]))
            self._waiting, self._size = [], 0
        while len(self._runs) > 1 and self._runs[-2].keys.size <= 2 * self._runs[-1].keys.size:
            self._runs[-2:] = [_merged(self._runs[-2:])]


def _redirect_target(visit: Visit) -> int:
    """Return the target of a redirected page, in or out of scope; -1 if there is none."""
    if visit.kind == "redirected":
        return visit.target
    left = visit.kind == "blocked" and visit.reason == LEFT and visit.out_of_scope.size
    return int(visit.out_of_scope[0]) if left else -1


def _merged(runs: list[Run]) -> Run:
    """Merge runs, adding up the votes of each key. Keys without votes stay: their first and last pages count again."""
    keys, votes, first, last = (np.concatenate(columns) for columns in zip(*runs, strict=True))
    if not keys.size:
        return EMPTY
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    sums = np.add.reduceat(votes[order], starts)
    return Run(keys[starts], sums, np.minimum.reduceat(first[order], starts), np.maximum.reduceat(last[order], starts))


def _settled(moves: IdArray) -> IdArray:
    """Return the final target of each redirected page; the page itself in a loop."""
    final = moves
    for _ in range(moves.size.bit_length()):
        further = final[final]
        if np.array_equal(further, final):
            break
        final = further
    return np.where(moves[final] == final, final, np.arange(moves.size, dtype=np.int32))


def score_of(plan: Plan) -> Score:
    """Return the score that a plan names: supporters at level 2, estimated or exact, or in-links."""
    if plan.score == "in":
        return in_degree
    if plan.score == "supp":
        return supporters
    return partial(_estimated, p=plan.p, error=plan.error)


def _estimated(graph: Graph, count: int, *, p: float | None, error: float) -> Reputation:
    """Estimate supporters, by default with this error at the last rank that matters."""
    return sampled_supporters(graph, p, top=max(count, 1), error=error)


def in_degree(graph: Graph, _count: int = 0) -> Reputation:
    """Count the domains that link to each."""
    from surveyor.rank.domains import link_counts

    return link_counts.in_degree(graph)


def supporters(graph: Graph, _count: int = 0) -> Reputation:
    """Count supporters at level 2; ties are broken by in-links."""
    from surveyor.rank.domains import link_counts

    return link_counts.supporters(graph, depth=2)


class Gateway(NamedTuple):
    """A page through which domains are known."""

    mass: float  # on the pages of these domains
    siblings: int  # such pages on the same domain, this one included
    site_mass: float  # on that domain, and on all that is known through it
    is_trusted: bool  # whether that domain is one of the seeds


@dataclass(frozen=True, slots=True)
class Established:
    """The domains that budgets depend on, best first, and the page through which each other domain is known."""

    best: Sequence[str]
    mass: Sequence[float]  # on the pages of each
    groups: Mapping[str, int]
    gateways: Mapping[int, Gateway]


class BestDomains:
    """Ranks the domains of a survey repeatedly; each call reads only the new visits."""

    def __init__(self, score: Score = supporters) -> None:
        self._domains, self._score = DomainGraph(), score

    def __call__(self, folder: SurveyFolder, count: int) -> list[str]:
        """Return at most `count` domains, best first."""
        self._domains.catch_up(folder.journal)
        graph = self._domains.snapshot().graph
        into = graph.in_links.degrees()
        return [graph.name(one) for one in self._score(graph, count).top(count).tolist() if into[one]]

    def established(
        self, folder: SurveyFolder, trusted: Iterable[str], count: int, masses: FloatArray, least: float
    ) -> Established:
        """Return at most `count` established domains, best first by their score among themselves, and all groups.

        `masses` is the mass of each page, `least` the mass on the pages of an established domain.
        """
        self._domains.catch_up(folder.journal)
        condensed, moved, own, votes = self._domains.voted_snapshot()
        graph, of = condensed.graph, condensed.site_of
        known = graph.names or Names.of([])
        seeds = np.array([one for name in dict.fromkeys(trusted) if (one := known.find(name)) is not None], np.int64)
        mass: FloatArray = np.bincount(of[of >= 0], masses[: of.size][of >= 0], votes.domains).astype(np.float64)
        found = establish(votes, seeds, count, mass, least)
        counted = np.zeros(graph.pages, np.bool_)
        counted[found.established] = True
        best = counted.copy()
        counted[seeds] = True
        targets = votes.targets
        inside = np.flatnonzero(targets < graph.pages)  # links to moved domains come last
        inside = inside[counted[votes.sources[inside]] & counted[targets[inside]]]
        among = Graph.from_arrays(votes.sources[inside], targets[inside], graph.pages)
        ranked = self._score(among, found.established.size).top(graph.pages)
        ranked = ranked[best[ranked]]
        others = np.flatnonzero(found.via >= 0)
        here, gone = others[others < graph.pages], others[others >= graph.pages]
        others = np.concatenate([here[np.argsort(-mass[here], kind="stable")[:GROUPED]], gone[:GROUPED]])
        pages, group = np.unique(found.via[others], return_inverse=True)
        shared, sites = np.bincount(group, mass[others], pages.size), own[pages]
        siblings = np.bincount(sites, minlength=graph.pages)[sites]
        site_mass = (mass + np.bincount(sites, shared, votes.domains))[sites]
        columns = shared, siblings, site_mass, np.isin(sites, seeds)

        def name_of(place: int) -> str:
            return known[place] if place < len(known) else moved[place - len(known)]

        return Established(
            best=[name_of(place) for place in ranked.tolist()],
            mass=mass[ranked].tolist(),
            groups={name_of(place): int(found.via[place]) for place in others.tolist()},
            gateways=dict(zip(pages.tolist(), map(Gateway, *(one.tolist() for one in columns)), strict=True)),
        )
