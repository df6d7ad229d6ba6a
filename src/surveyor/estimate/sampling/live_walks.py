"""Samples of the live web: the crawler fetches the pages that walks need, with its politeness policy.

A live sample is a crawl with robots.txt, crawl delays, retries, archive and resume. The frontier holds the pages needed
for the next round of all walks (`walk_scheduler.py`). Only the journal is persistent: a resume replays it through the
walks, whose random numbers depend on walk and round, and arrives at the same steps. All other inputs of the walks are
therefore recorded too: page content in the archive, and the answers of an in-link source in `in_links` events.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from surveyor.crawler import session
from surveyor.crawler.replay import scope_of
from surveyor.crawler.sources.live import REAL, Connection
from surveyor.crawler.strategies.strategy import NOTHING, Reorder
from surveyor.estimate.sampling.in_link_coverage import LinkObservations
from surveyor.estimate.sampling.in_link_sources import NoInLinks, query, source_name
from surveyor.estimate.sampling.sample_goals import WalkLimits
from surveyor.estimate.sampling.sample_pages import SurveyPages, archived_page, is_on_topic
from surveyor.estimate.sampling.sample_survey import SampleSurvey
from surveyor.estimate.sampling.walk_scheduler import (
    UNREADABLE,
    PageRecord,
    WalkResult,
    WalkScheduler,
    walk_graph_of,
    walk_result,
)
from surveyor.outcome import Event, Outcome, Visit
from surveyor.stopping import Pages
from surveyor.store.directory import SurveyFolder
from surveyor.store.disk import damaged

if TYPE_CHECKING:
    from surveyor.arrays import IdArray
    from surveyor.crawler.ledger import Ledger
    from surveyor.graph.growing import GrowingGraph
    from surveyor.web.urls import Urls

EVENT = "in_links"
ENDLESS = Pages(10**12)  # the walks end the crawl
Watch = Callable[[WalkScheduler, session.Run, Outcome | None], None]


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
        on_topic = isinstance(visit, Visit) and is_on_topic(
            topic, archived_page(folder, self._urls[outcome.page], visit)
        )
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
    trace, graph = result.trace, pages.graph
    truncated = sum(len(graph.in_links_of(page)) >= sample.record.limit for page in np.unique(trace.page).tolist())
    observations = partial(LinkObservations.from_walk_graph, graph, trace)
    return replace(result, observations=observations, truncated=truncated)
