"""A sample of a live web: walks ask for pages, and the crawler fetches them, with all its manners.

It is a crawl like any other, with robots.txt, delays, tries, archive and resume. What is fetched is what walks need for
their next round (`course.py`), all of it side by side. Nothing is kept but the journal: whoever goes on replays it
through the walks, whose chance goes by walk and round, and comes to the same steps. So what else they depend on must be
in the journal, too: what a page says is in the archive, and what a source of back-links tells in an event `told`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from surveyor.crawler import session as live
from surveyor.crawler.replay import scope_of
from surveyor.crawler.strategies.strategy import NOTHING, Reorder
from surveyor.estimate.sampling.archived import page_of
from surveyor.estimate.sampling.course import UNREADABLE, PageRecord, WalkScheduler, check_begun
from surveyor.estimate.sampling.in_link_coverage import LinkObservations
from surveyor.estimate.sampling.in_link_sources import NoInLinks, asked, source_name
from surveyor.estimate.sampling.sample_survey import SampleSurvey
from surveyor.estimate.sampling.walked import Done, SurveyPages, WalkResult, ground_of, is_on, walked
from surveyor.estimate.sampling.walking import UNLIMITED
from surveyor.outcome import Event, Outcome, Visit
from surveyor.stopping import Pages
from surveyor.store.directory import SurveyFolder, damaged

if TYPE_CHECKING:
    from surveyor.arrays import IdArray
    from surveyor.crawler.ledger import Ledger
    from surveyor.crawler.sources.live import Wait
    from surveyor.fetch.addresses import Resolver
    from surveyor.fetch.http import Client
    from surveyor.fetch.politeness.hosts import Hosts
    from surveyor.graph.growing import GrowingGraph
    from surveyor.web.urls import Urls

TOLD = "told"
ENDLESS = Pages(10**12)  # the walks end it
Watch = Callable[[WalkScheduler, live.Run, Outcome | None], None]


class Asking:
    """The strategy of a sample: what walks need is fetched, and nothing else."""

    name = "sample"
    lasting = False

    def __init__(
        self, sample: SampleSurvey, urls: Urls, *, fetches: int, steps: int, done: Done, clock: Callable[[], float]
    ) -> None:
        self._sample, self._urls = sample, urls
        ground = ground_of(urls, sample.topic, _Told(sample, urls, clock))
        seeds = urls.ids(sample.folder.manifest.seeds).tolist()
        self.pages = SurveyPages(sample.folder.folder, urls, ground, sample.folder, sample.settings.archive)
        self.course = WalkScheduler(
            ground, seeds, sample.plan, fetches=fetches, steps=steps, done=lambda trace: done(trace, self.pages)
        )
        self._unasked: dict[int, Outcome] = {}  # what someone else has read

    def begin(self, ledger: Ledger, graph: GrowingGraph, rng: np.random.Generator) -> Reorder:  # noqa: ARG002
        """Ask for the pages where walks begin."""
        self._ledger = ledger
        return self._asked_for(self.course.begin())

    def observe(self, outcome: Outcome, old_links: IdArray) -> Reorder:  # noqa: ARG002
        """Tell the walks of a page that they asked for, and ask for those that they need then."""
        page = outcome.page
        if page not in self.course.waits:
            if not self.course.ground.has(page) and not (outcome.kind == "blocked" and page in self._unasked):
                self._unasked[page] = outcome
            return NOTHING
        return self._asked_for(self.course.learn(page, self._met(outcome)))

    def _asked_for(self, pages: list[int]) -> Reorder:
        """Have pages fetched, but for those that are known already."""
        missing: list[int] = []
        while pages:
            more: list[int] = []
            for page in pages:
                known = self._unasked.pop(page, None)
                if known is None:
                    missing.append(page)
                else:
                    more += self.course.learn(page, self._met(known))
            pages = more
        wanted = np.array(missing, np.int32)
        self._ledger.hear(wanted)  # some may be known from a source of back-links alone
        return Reorder(wanted, -np.arange(wanted.size, dtype=np.float64))

    def _met(self, outcome: Outcome) -> PageRecord:
        """Say what an outcome is to a walk."""
        if outcome.kind == "redirected":
            return PageRecord.elsewhere(outcome.target)
        if outcome.kind != "fetched":
            return UNREADABLE
        folder, topic = self._sample.folder, self._sample.topic
        fetched = isinstance(outcome, Visit)  # else it comes from the journal
        visit = outcome if fetched else folder.journal.last_visit(outcome.page, "fetched")
        on_topic = isinstance(visit, Visit) and is_on(topic, page_of(folder, self._urls[outcome.page], visit))
        return PageRecord.read(outcome.links.tolist(), on_topic=on_topic)


class _Told:
    """What a source of back-links tells; it is asked once about each page, whoever goes on."""

    def __init__(self, sample: SampleSurvey, urls: Urls, clock: Callable[[], float]) -> None:
        self._folder, self._urls, self._clock = sample.folder, urls, clock
        self._source, self._limit = sample.in_links, sample.record.limit
        self._scope = scope_of(sample.folder.manifest)
        self._known = _kept(sample.folder, len(urls))

    def __call__(self, page: int) -> Iterable[int]:
        if page in self._known or isinstance(self._source, NoInLinks):
            return self._known.get(page, ())
        told = [url for url in asked(self._source, self._urls[page], self._limit) if self._scope.admits(url)]
        pages: list[int] = self._urls.ids(told).tolist()
        event = Event(TOLD, self._clock(), {"page": page, "from": pages})
        self._folder.commit([], self._urls.added(self._folder.journal.url_count), events=[event])
        self._known[page] = pages
        return pages


def _kept(folder: SurveyFolder, pages: int) -> dict[int, list[int]]:
    """Return what a source told before."""
    known: dict[int, list[int]] = {}
    try:
        for event in folder.journal.events(TOLD):
            known[int(event.detail["page"])] = told = [int(page) for page in event.detail["from"]]
            if not all(0 <= page < pages for page in told):
                raise ValueError(f"no pages {told}")
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(folder.journal.path, f"an event that means nothing: {error!r}") from error
    return known


async def run(
    sample: SampleSurvey,
    *,
    fetches: int = UNLIMITED,
    steps: int = UNLIMITED,
    done: Done = lambda _trace, _pages: False,
    client: Client | None = None,
    resolver: Resolver | None = None,
    hosts: Hosts | None = None,
    wait: Wait | None = None,
    watch: Watch = lambda _course, _run, _outcome: None,
    patience: float = live.PATIENCE,
) -> WalkResult:
    """Walk until it is done, has asked for so many pages, or can go no further; cancel it to stop in good order.

    `done` is asked after certain rounds, and must depend on the trace and its pages alone. `watch` is told of each
    outcome, and now and then that time goes by.
    """
    latest: list[Asking] = []
    clock = time.time if hosts is None else hosts.clock
    made = partial(Asking, sample, fetches=fetches, steps=steps, done=done, clock=clock)

    def make(urls: Urls) -> Asking:
        latest[:] = [made(urls)]
        return latest[0]

    def seen(now: live.Run, outcome: Outcome | None) -> None:
        watch(latest[0].course, now, outcome)

    await live.run(
        sample.folder, sample.settings, ENDLESS, client=client, resolver=resolver, hosts=hosts, wait=wait, watch=seen,
        patience=patience, make=make,
    )  # fmt: skip
    course, pages = latest[0].course, latest[0].pages
    pages.close()
    check_begun(course, pages.url)
    how = source_name(sample.in_links) or "the walks themselves"
    done_so_far = walked(course, pages, sample.topic, str(sample.folder.folder), how)
    trace, ground = done_so_far.trace, pages.ground
    capped = sum(len(ground.told_of(page)) >= sample.record.limit for page in np.unique(trace.page).tolist())
    return replace(done_so_far, seen=partial(LinkObservations.from_walk_graph, ground, trace), capped=capped)
