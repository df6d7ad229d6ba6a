"""Samples of a graph, of the pages of a survey, and of the live web.

**Stored pages.** Walks over a graph are compiled. Walks over a survey see the pages as live walks would
(`walk_scheduler.py`); pages that the survey did not fetch cannot be fetched. All in-links from fetched pages are known,
so the sample is uniform over the fetched pages that the walks can reach. Pages are classified when a walk first reaches
them, or when start pages are chosen.

**The live web.** The crawler fetches the pages that walks need: a live sample is a crawl with robots.txt, crawl delays,
retries, archive and resume. The frontier holds the pages needed for the next round of all walks (`walk_scheduler.py`).
Only the journal is persistent: a resume replays it through the walks, whose random numbers depend on walk and round,
and arrives at the same steps. All other inputs of the walks are therefore recorded too: page content in the archive,
and the answers of an in-link source in `in_links` events.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from surveyor.arrays import AnyIntArray, BoolArray, ByteArray, IdArray, marked
from surveyor.crawler import session
from surveyor.crawler.replay import Derived, derive, scope_of
from surveyor.crawler.sources.live import REAL, Connection
from surveyor.crawler.strategies.strategy import NOTHING, Reorder
from surveyor.crawler.topics.page_content import SampledPage
from surveyor.crawler.topics.rules import Topic
from surveyor.errors import NothingFetched, UsageError
from surveyor.estimate.sampling.compiled_walks import CompiledWalks, NeighbourLists
from surveyor.estimate.sampling.diagnostics import drop_stuck_walks
from surveyor.estimate.sampling.in_links import LinkObservations, NoInLinks, query, source_name
from surveyor.estimate.sampling.independent_draws import CHECK_DRAWS, CHECK_READS, Draws, contradictions, counted
from surveyor.estimate.sampling.parts import Parts, pages_off_topic
from surveyor.estimate.sampling.properties import PageSource
from surveyor.estimate.sampling.reach import Reach
from surveyor.estimate.sampling.sample_goals import WalkLimits, check_intervals
from surveyor.estimate.sampling.sample_pages import GraphPages, SurveyPages, archived_page, is_on_topic
from surveyor.estimate.sampling.sample_survey import SampleSurvey
from surveyor.estimate.sampling.walk_methods import ON, UNIFORM, WalkPlan, method_named
from surveyor.estimate.sampling.walk_scheduler import (
    UNREADABLE,
    PageRecord,
    WalkResult,
    WalkScheduler,
    walk_graph_of,
    walk_result,
)
from surveyor.estimate.sampling.walk_trace import WalkTrace
from surveyor.graph.csr import Graph
from surveyor.kernels.mass import FETCHED, STATUS
from surveyor.outcome import Event, Outcome, Visit
from surveyor.stopping import Pages
from surveyor.store.directory import SurveyFolder
from surveyor.store.disk import damaged
from surveyor.web.urls import normalise

if TYPE_CHECKING:
    from surveyor.crawler.ledger import Ledger
    from surveyor.estimate.sampling.estimates import Estimate
    from surveyor.graph.growing import GrowingGraph
    from surveyor.web.urls import Urls

TRIES_PER_WALK = 100  # pages classified per walk, at most, to find a start page on topic
SURVEY_IN_LINKS = "the survey: all links of the fetched pages"
MIN_PART = 0.5  # share of the topic that the largest part must hold for walks
PROBES, PROBE_ROUNDS = 1_000, 2_048  # walks from uniform starts on a graph, and their length at most
MIN_CHECK = 30  # pages that walks over a survey are compared with
EVENT = "in_links"
ENDLESS = Pages(10**12)  # the walks end the crawl
Watch = Callable[[WalkScheduler, session.Run, Outcome | None], None]


def walk_graph(
    graph: Graph,
    topic: Topic | AnyIntArray | BoolArray,
    plan: WalkPlan,
    *,
    starts: Sequence[str | int] | None = None,
    in_links: float | Graph = 1.0,
    limits: WalkLimits | None = None,
) -> WalkResult:
    """Walk over a graph up to the limits.

    Parameters
    ----------
    starts : names or ids of start pages; by default pages on topic, drawn at random.
    in_links : in-links that walks know (see `NeighbourLists.of`).
    """
    kind = topic_kinds(graph, topic)
    text = topic.text if isinstance(topic, Topic) else f"{int(kind.sum()):,} pages"
    if not kind.any():
        raise UsageError(f"no page of the graph is on topic: {text}", hint="use a wider rule, or check the page names")
    limits = limits or WalkLimits()
    if plan.method == UNIFORM.name:
        return _draw_graph(graph, kind, plan, text, limits)
    neighbours = NeighbourLists.of(graph, in_links, rng=plan.rng)
    parts = Parts.of(neighbours, kind == ON, pages_off_topic(plan)) if neighbours.complete else None
    if parts is not None and starts is None:
        _check_parts(parts, plan, text)
    first = start_pages(graph, kind, plan, starts, parts)
    walks = CompiledWalks(
        neighbours,
        kind,
        first,
        plan,
        kind_from_url=isinstance(topic, Topic) and topic.url_only,
        hosts=_hosts(graph, plan.window) if plan.window else None,
    )
    pages = GraphPages(graph, kind)
    ending = _walk(walks, pages, limits)
    trace = walks.trace()
    reach, check = Reach.of_walks(trace, drawn=starts is None), None
    if parts is not None and (kind[first] == ON).all() and len(trace):
        used = drop_stuck_walks(trace.rows(slice(limits.steps)))
        reached = first[np.unique(used.walk)]
        among = np.flatnonzero(np.isin(parts.of_page, parts.of_page[reached])).astype(np.int32)
        draws = Draws.of(among, plan.rng)
        draws.extend(CHECK_DRAWS, CHECK_DRAWS)
        unmet = _unmet_probes(neighbours, kind, draws.drawn[:PROBES], plan, used)
        reach = reach.on_graph(parts, reached, len(draws.drawn[:PROBES]), unmet)
        if method_named(plan.method).exact:
            degrees = np.diff(neighbours.starts)
            check = draws.checks(lambda page: int(degrees[page]))
            reach = replace(reach, contradictions=tuple(contradictions(used, check, pages, limits.tracked)))
    return WalkResult(
        trace,
        ending,
        np.flatnonzero(walks.fetched).astype(np.int32),
        walks.lost,
        pages,
        plan,
        text,
        repr(graph),
        "the graph" if neighbours.complete else "a part of the graph",
        observations=None if neighbours.complete else lambda: LinkObservations.from_compiled(neighbours, walks),
        reach=reach,
        size=counted(int((kind == ON).sum())) if starts is None and neighbours.complete else None,
        check=check,
    )


def _check_parts(parts: Parts, plan: WalkPlan, text: str) -> None:
    """Reject a topic of which walks could explore less than half."""
    if parts.share(np.arange(1)) < MIN_PART:
        share = 100 * parts.share(np.arange(1))
        raise UsageError(
            f"walks of method {plan.method} cannot sample {text}: it has {parts.sizes.size:,} parts that they cannot"
            f" cross between, and the largest holds {share:.2g} % of its pages",
            hint="use method uniform, or trial with a larger reach",
        )


def _unmet_probes(
    neighbours: NeighbourLists, kind: ByteArray, starts: Sequence[int], plan: WalkPlan, used: WalkTrace
) -> int:
    """Return how many walks from uniform starts, as long as those of the sample, visit none of its pages."""
    probes = CompiledWalks(neighbours, kind, starts, replace(plan, rng=plan.rng + 1, window=0))
    probes.advance(min(-(-len(used) // np.unique(used.walk).size), PROBE_ROUNDS))
    visited, trace = np.zeros(kind.size, np.bool_), probes.trace()
    visited[used.page] = True
    met = np.unique(trace.walk[visited[trace.page]])
    return len(starts) - int(met.size)


def _draw_graph(graph: Graph, kind: ByteArray, plan: WalkPlan, text: str, limits: WalkLimits) -> WalkResult:
    """Draw pages on topic independently."""
    on_topic = np.flatnonzero(kind == ON).astype(np.int32)
    draws, pages = Draws.of(on_topic, plan.rng), GraphPages(graph, kind)
    ending = draws.run(limits, pages)

    def degree(page: int) -> int:
        back = graph.in_links
        near = np.union1d(graph.links_of(page), back.indices[back.indptr[page] : back.indptr[page + 1]])
        return int((near != page).sum())

    return _drawn(draws, ending, pages, plan, degree, (text, repr(graph), "the graph"), counted(on_topic.size))


def _drawn(
    draws: Draws,
    ending: str,
    pages: PageSource,
    plan: WalkPlan,
    degree: Callable[[int], int],
    names: tuple[str, str, str],
    size: Estimate,
) -> WalkResult:
    """Return the result of independent draws; the steps have the degrees of their pages, and equal weights."""
    weighted = draws.trace()
    degrees = np.array([max(degree(page), 1) for page in draws.drawn], np.float64)
    examined: IdArray = draws.candidates[: draws.examined]
    nothing, reach = np.empty(0, np.int64), Reach.uniform(len(draws.drawn), complete=draws.is_complete)
    trace, plan = replace(weighted, degree=degrees), replace(plan, walks=len(draws.drawn))
    return WalkResult(trace, ending, examined, nothing, pages, plan, *names, reach=reach, weighted=weighted, size=size)


def _walk(walks: CompiledWalks, pages: GraphPages, limits: WalkLimits) -> str:
    """Walk to the end, and return the ending."""
    for rounds in check_intervals():
        left = -(-(limits.steps - len(walks.trace())) // walks.count)
        full = walks.advance(min(rounds, left), limits.fetches)
        if met := limits.done(walks.trace(), pages):
            return str(met)
        if full:
            return "fetches"
        if limits.expired():
            return "minutes"
        if walks.lost.size == walks.count:
            return "lost"
        if len(walks.trace()) >= limits.steps:
            return "steps"
    raise AssertionError  # pragma: no cover  # the intervals never end


def topic_kinds(graph: Graph, topic: Topic | AnyIntArray | BoolArray) -> ByteArray:
    """Return the kind of each page of a graph: 1 on topic, 0 off topic."""
    if not isinstance(topic, Topic):
        return marked(topic, graph.pages).astype(np.uint8)
    if topic.text == "everything":
        return np.ones(graph.pages, np.uint8)
    if graph.names is None:
        raise UsageError(
            f"the topic {topic.text} needs page names, and this graph has none",
            hint="use a graph with names, or pass page ids or a boolean array from Python",
        )
    if topic.match_names is not None:
        return topic.matches(graph.names).astype(np.uint8)
    if topic.needs_content:
        topic.matches(graph.names)  # raises with the reason
    pages = GraphPages(graph, np.zeros(0, np.uint8))
    return np.array([is_on_topic(topic, pages.page(page)) for page in range(graph.pages)], np.uint8)


def start_pages(
    graph: Graph, kind: ByteArray, plan: WalkPlan, starts: Sequence[str | int] | None, parts: Parts | None = None
) -> IdArray:
    """Return the start page of each walk: the given pages in turn, or pages of the largest part drawn at random."""
    if starts is None and parts is not None:
        largest = np.flatnonzero(parts.of_page == 0)
        chosen = np.random.default_rng(plan.rng).choice(largest, plan.walks, replace=largest.size < plan.walks)
        return chosen.astype(np.int32)
    if starts is None:
        linked = np.zeros(graph.pages, np.bool_)
        linked[graph.indices] = True
        linked |= graph.out_degrees > 0
        on_topic = np.flatnonzero(kind == ON)
        on_topic = on_topic[linked[on_topic]] if linked[on_topic].any() else on_topic
        drawn = np.random.default_rng(plan.rng).choice(on_topic, plan.walks, replace=on_topic.size < plan.walks)
        return drawn.astype(np.int32)
    pages = [graph.page(page) if isinstance(page, str) else _page_id(page) for page in starts]
    if not pages:
        raise UsageError("start must name at least one page, got none", hint="leave start out to draw start pages")
    marked(np.array(pages, np.int64), graph.pages)
    return np.resize(np.array(pages, np.int32), plan.walks)


def _page_id(page: object) -> int:
    if isinstance(page, bool) or not isinstance(page, (int, np.integer)):
        raise UsageError(f"start must hold page names or integer ids, got {page!r}", hint='for example start=["a", 3]')
    return int(page)


def _hosts(graph: Graph, window: int) -> IdArray:
    """Number the host of each page."""
    names = graph.names
    if names is None:
        raise UsageError(f"window={window} needs hosts, and the graph has no page names", hint="leave --window out")
    hosts = [SampledPage(str(name)).host for name in names]
    return np.unique(hosts, return_inverse=True)[1].astype(np.int32)


class StoredPages:
    """The pages of a survey as seen by walks."""

    def __init__(self, folder: Path, topic: Topic) -> None:
        with SurveyFolder.open(folder, write=False) as survey:
            self.state: Derived = derive(survey)
            self.seeds = survey.manifest.seeds
            archived = bool(survey.manifest.settings.get("archive", True))
            redirects = {one.page: one.target for one in survey.journal.outcomes() if one.kind == "redirected"}
        status = self.state.crawl.ledger.state & STATUS
        self.fetched: IdArray = np.flatnonzero(status == FETCHED).astype(np.int32)
        self._is_fetched = status == FETCHED
        self._redirects = {page: target for page, target in redirects.items() if not self._is_fetched[page]}
        self._topic, self._graph = topic, self.state.crawl.graph
        self._transposed = self._links().in_links
        self._classified: dict[int, bool] = {}
        self.unreadable: list[int] = []  # pages without content that could be read
        self.walk_graph = walk_graph_of(self.state.urls, topic, self.in_links)
        self.pages = SurveyPages(
            folder, self.state.urls, self.walk_graph, has_content=archived, classify=self._classify_fetched
        )
        if not archived and topic.needs_content:
            raise UsageError(
                f"the topic {topic.text} depends on the text of pages, and {folder} has no archive",
                hint="choose a topic that depends on URLs only, or crawl with an archive",
            )

    def _links(self) -> Graph:
        """Return the links of all pages that walks can reach."""
        rows = [self._graph.links_of(page) for page in self.fetched.tolist()]
        sources = np.append(np.repeat(self.fetched, [row.size for row in rows]), [*self._redirects]).astype(np.int32)
        targets = np.concatenate([*rows, np.fromiter(self._redirects.values(), np.int32)])
        return Graph.from_arrays(sources, targets, nodes=len(self.state.urls))

    def in_links(self, page: int) -> list[int]:
        """Return the pages that link to a page."""
        transposed = self._transposed
        sources: list[int] = transposed.indices[transposed.indptr[page] : transposed.indptr[page + 1]].tolist()
        return sources

    def record(self, page: int) -> PageRecord:
        """Return a page as seen by a walk."""
        if page in self._redirects:
            return PageRecord.redirected(self._redirects[page])
        if page >= self._is_fetched.size or not self._is_fetched[page]:
            return UNREADABLE
        return PageRecord.fetched(self._graph.links_of(page).tolist(), on_topic=self._classify(page))

    def is_on_topic(self, page: int) -> bool:
        """Return whether a fetched page is on topic; its links become known."""
        if not self.walk_graph.has(page):
            record = self.record(page)
            self.walk_graph.learn(page, record.kind, record.links)
        return self._classify(page)

    def _classify_fetched(self, page: int) -> bool | None:
        return self._classify(page) if page < self._is_fetched.size and self._is_fetched[page] else None

    def degree(self, page: int) -> int:
        """Return the number of neighbours of a fetched page."""
        return len({*self._graph.links_of(page).tolist(), *self.in_links(page)} - {page})

    def _classify(self, page: int) -> bool:
        if page not in self._classified:
            sampled = self.pages.page(page)
            self._classified[page] = is_on_topic(self._topic, sampled)
            if not self._topic.url_only and not sampled.is_readable:
                self.unreadable.append(page)
        return self._classified[page]


def walk_survey(
    folder: Path | str,
    topic: Topic,
    plan: WalkPlan | None = None,
    *,
    starts: Sequence[str] | None = None,
    limits: WalkLimits | None = None,
) -> WalkResult:
    """Walk over the pages of a survey up to the limits, or until the walks are exhausted.

    Start pages are drawn at random from the pages on topic unless `starts` names them; if none is found, the seeds.
    """
    path, plan, limits = Path(folder), plan or WalkPlan(), limits or WalkLimits()
    stored = StoredPages(path, topic)
    if not stored.fetched.size:
        raise NothingFetched(f"{path} has no fetched page", hint=f"resume the crawl first: surveyor {path}")
    try:
        if plan.method == UNIFORM.name:
            return _draw_survey(stored, topic, plan, limits, f"survey {path.name}")
        drawn = _draw_starts(stored, plan) if starts is None else []
        first = drawn or [_find(stored, url) for url in starts or stored.seeds]
        scheduler = WalkScheduler(stored.walk_graph, first, plan, limits, stored.pages)
        needed = scheduler.start()
        while needed:
            needed = [more for page in needed for more in scheduler.learn(page, stored.record(page))]
        result = walk_result(scheduler, topic, f"survey {path.name}", SURVEY_IN_LINKS)
        return _checked(result, stored, limits, drawn=bool(drawn))
    finally:
        stored.pages.close()


def _draw_survey(stored: StoredPages, topic: Topic, plan: WalkPlan, limits: WalkLimits, name: str) -> WalkResult:
    """Draw fetched pages independently, and keep those on topic."""
    draws = Draws.of(stored.fetched, plan.rng, stored.is_on_topic)
    ending = draws.run(limits, stored.pages)
    names = topic.text, name, SURVEY_IN_LINKS
    result = _drawn(draws, ending, stored.pages, plan, stored.degree, names, draws.size())
    return replace(result, unreadable=len(stored.unreadable))


def _checked(result: WalkResult, stored: StoredPages, limits: WalkLimits, *, drawn: bool) -> WalkResult:
    """Compare walks with independent draws of the pages of the survey."""
    reach = Reach.of_walks(result.trace, drawn=drawn)
    if method_named(result.plan.method).exact and result.trace.on_topic.any():
        draws = Draws.of(stored.fetched, result.plan.rng, stored.is_on_topic)
        draws.extend(CHECK_DRAWS, min(CHECK_READS, result.requested.size))
        used = drop_stuck_walks(result.trace.rows(slice(limits.steps)))
        if drawn:
            result = replace(result, size=draws.size())
        if len(draws.drawn) >= MIN_CHECK:
            check = draws.checks(stored.degree)
            reach = replace(reach, contradictions=tuple(contradictions(used, check, stored.pages, limits.tracked)))
            result = replace(result, check=check)
    return replace(result, reach=reach, unreadable=len(stored.unreadable))


def _draw_starts(stored: StoredPages, plan: WalkPlan) -> list[int]:
    """Draw start pages on topic at random; the number of tries is limited, so some may be missing."""
    tries = np.random.default_rng(plan.rng).permutation(stored.fetched)[: TRIES_PER_WALK * plan.walks].tolist()
    return list(islice((page for page in tries if stored.record(page).kind == ON), plan.walks))


def _find(stored: StoredPages, url: str) -> int:
    page = stored.state.urls.find(normalise(url) or url)
    if page is None:
        raise UsageError(f"start page {url} is not in the survey", hint="use pages that the survey has fetched")
    return page


class WalkStrategy:
    """The crawl strategy of a sample: fetch the pages that walks need, and no others."""

    name = "sample"
    lasting = False

    def __init__(self, sample: SampleSurvey, urls: Urls, limits: WalkLimits, clock: Callable[[], float]) -> None:
        self._sample, self._urls = sample, urls
        graph = walk_graph_of(urls, sample.topic, RecordedInLinks(sample, urls, clock))
        seeds = urls.ids(sample.folder.manifest.seeds).tolist()
        self.pages = SurveyPages(sample.folder.folder, urls, graph, sample.folder, sample.settings.archive)
        self.scheduler = WalkScheduler(graph, seeds, sample.plan, limits, self.pages)
        self._unrequested: dict[int, Outcome] = {}  # pages fetched for another reason
        self.unreadable: set[int] = set()  # fetched pages without content that could be read

    def begin(self, ledger: Ledger, graph: GrowingGraph, rng: np.random.Generator) -> Reorder:  # noqa: ARG002
        """Request the start pages."""
        self._ledger = ledger
        return self._request(self.scheduler.start())

    def observe(self, outcome: Outcome, old_links: IdArray) -> Reorder:  # noqa: ARG002
        """Pass a requested page to the walks, and request the pages that they need next."""
        page = outcome.page
        if page not in self.scheduler.pending:
            if not self.scheduler.graph.has(page) and not (outcome.kind == "blocked" and page in self._unrequested):
                self._unrequested[page] = outcome
            return NOTHING
        return self._request(self.scheduler.learn(page, self._record(outcome)))

    def _request(self, pages: list[int]) -> Reorder:
        """Queue pages, except those that are already known."""
        missing: list[int] = []
        while pages:
            more: list[int] = []
            for page in pages:
                known = self._unrequested.pop(page, None)
                if known is None:
                    missing.append(page)
                else:
                    more += self.scheduler.learn(page, self._record(known))
            pages = more
        queued = np.array(missing, np.int32)
        self._ledger.hear(queued)  # some may be known from an in-link source only
        return Reorder(queued, -np.arange(queued.size, dtype=np.float64))

    def _record(self, outcome: Outcome) -> PageRecord:
        """Return an outcome as seen by a walk."""
        if outcome.kind == "redirected":
            return PageRecord.redirected(outcome.target)
        if outcome.kind != "fetched":
            return UNREADABLE
        folder, topic = self._sample.folder, self._sample.topic
        fetched_now = isinstance(outcome, Visit)  # otherwise it is replayed from the journal
        visit = outcome if fetched_now else folder.journal.last_visit(outcome.page, "fetched")
        on_topic = False
        if isinstance(visit, Visit):
            page = archived_page(folder, self._urls[outcome.page], visit)
            on_topic = is_on_topic(topic, page)
            if not topic.url_only and not page.is_readable:
                self.unreadable.add(outcome.page)
        return PageRecord.fetched(outcome.links.tolist(), on_topic=on_topic)


class RecordedInLinks:
    """In-links of pages from a source that is queried once per page; answers are recorded in the journal."""

    def __init__(self, sample: SampleSurvey, urls: Urls, clock: Callable[[], float]) -> None:
        self._folder, self._urls, self._clock = sample.folder, urls, clock
        self._source, self._limit = sample.in_links, sample.record.limit
        self._scope = scope_of(sample.folder.manifest)
        self._known = _recorded(sample.folder, len(urls))

    def __call__(self, page: int) -> Iterable[int]:
        """Return the pages in scope that link to a page."""
        if page in self._known or isinstance(self._source, NoInLinks):
            return self._known.get(page, ())
        sources = [url for url in query(self._source, self._urls[page], self._limit) if self._scope.admits(url)]
        pages: list[int] = self._urls.ids(sources).tolist()
        event = Event(EVENT, self._clock(), {"page": page, "sources": pages})
        self._folder.commit([], self._urls.added(self._folder.journal.url_count), events=[event])
        self._known[page] = pages
        return pages


def _recorded(folder: SurveyFolder, pages: int) -> dict[int, list[int]]:
    """Return the recorded answers of an in-link source, by page."""
    known: dict[int, list[int]] = {}
    try:
        for event in folder.journal.events(EVENT):
            known[int(event.detail["page"])] = sources = [int(page) for page in event.detail["sources"]]
            if not all(0 <= page < pages for page in sources):
                raise ValueError(f"no pages {sources}")
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(folder.journal.path, f"an {EVENT} event cannot be read: {error!r}") from error
    return known


async def walk_live(
    sample: SampleSurvey,
    limits: WalkLimits | None = None,
    *,
    watch: Watch = lambda _scheduler, _run, _outcome: None,
    connection: Connection = REAL,
) -> WalkResult:
    """Walk until the limits end it, or the walks are exhausted; cancel to stop with all pages saved.

    Parameters
    ----------
    watch : called for each outcome, and at intervals with None.
    connection : HTTP client, resolver, hosts and clock; by default those of a crawl.
    """
    latest: list[WalkStrategy] = []
    clock = time.time if connection.hosts is None else connection.hosts.clock

    def make(urls: Urls) -> WalkStrategy:
        latest[:] = [WalkStrategy(sample, urls, limits or WalkLimits(), clock)]
        return latest[0]

    def on_outcome(run: session.Run, outcome: Outcome | None) -> None:
        watch(latest[0].scheduler, run, outcome)

    await session.run(sample.folder, sample.settings, ENDLESS, watch=on_outcome, make=make, connection=connection)
    scheduler, pages = latest[0].scheduler, latest[0].pages
    pages.close()
    in_links = source_name(sample.in_links) or "the walks themselves"
    result = walk_result(scheduler, sample.topic, str(sample.folder.folder), in_links)
    result = replace(result, reach=Reach.of_walks(result.trace, drawn=False), unreadable=len(latest[0].unreadable))
    trace, graph = result.trace, pages.graph
    truncated = sum(len(graph.in_links_of(page)) >= sample.record.limit for page in np.unique(trace.page).tolist())
    observations = partial(LinkObservations.from_walk_graph, graph, trace)
    return replace(result, observations=observations, truncated=truncated)
