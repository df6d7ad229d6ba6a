"""One run of a live crawl: bring the state of a survey back, crawl, save.

Stopping is always safe. What was committed counts; what was under way is asked for again the next time. When a run
ends by its goal, fetches that are under way get a few seconds to end, so that servers were not asked for nothing; if
the user stops it, a third of one.

A run with budgets that go by rank has several legs: where a ranking gives domains room again, it stops and goes on by
itself, with the state that follows from the journal, as if the user had done so.
"""

from __future__ import annotations

import asyncio
import gc
import math
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from surveyor.crawler.domain_budgets import Budgeting, OrRank, Rank
from surveyor.crawler.forecast import Forecast, forecast
from surveyor.crawler.ledger import Ledger
from surveyor.crawler.loop import Ending, crawl, take_in
from surveyor.crawler.queues import HostQueues
from surveyor.crawler.replay import Derived, Make, derive, save, tried_again
from surveyor.crawler.reranking import BestDomains
from surveyor.crawler.sources.live import LiveSource, Wait
from surveyor.crawler.start import http_settings, manners_of
from surveyor.crawler.waiting import Waiting
from surveyor.errors import UsageError
from surveyor.fetch.http import sent_by
from surveyor.fetch.parser import Parser
from surveyor.fetch.politeness.hosts import Hosts
from surveyor.outcome import Event, News, Outcome, RobotsFile, Visit
from surveyor.stopping import ENDLESS
from surveyor.store.directory import damaged
from surveyor.web.boundary import log_to
from surveyor.web.robots import Robots
from surveyor.web.urls import host as host_of

if TYPE_CHECKING:
    from surveyor.config import Settings
    from surveyor.crawler.frontier import Frontier
    from surveyor.fetch.addresses import Resolver
    from surveyor.fetch.http import Client
    from surveyor.stopping import Rule
    from surveyor.store.directory import Folder
    from surveyor.store.journal import Journal
    from surveyor.web.urls import Urls

PATIENCE = 5.0  # seconds that fetches get to end when a run does
STOPPED = 0.3  # seconds if the user stops it
MANY = 100_000  # pages of which a checkpoint may take longer than the user waits
SAVE_EVERY, SAVE_SHARE = 60.0, 50.0  # seconds between checkpoints, and at least so many times what one takes
TICK = 0.5  # seconds between two looks of whoever watches
Result = Ending | Literal["interrupted"]


@dataclass(frozen=True, slots=True)
class Run:
    """A crawl under way, for those who watch."""

    folder: Folder
    state: Derived
    hosts: Hosts
    until: Rule
    before: int  # pages that were read in earlier runs
    queues: HostQueues
    waiting: Waiting | None = None  # what holds it up, once it has begun

    def forecast(self) -> Forecast:
        """Say how long it takes at least to read what is known to wait, or as many pages as the goal asks for."""
        share, pages = self.until.limits() or (0.0, ENDLESS)
        most = max(0, pages - self.before) if share == math.inf else math.inf
        return forecast(self.queues.waiting(), [self.hosts[host].delay for host in range(len(self.hosts))], most)


Watch = Callable[[Run, Outcome | None], None]


async def run(
    folder: Folder,
    settings: Settings,
    until: Rule,
    *,
    client: Client | None = None,
    resolver: Resolver | None = None,
    hosts: Hosts | None = None,
    wait: Wait | None = None,
    watch: Watch = lambda _run, _outcome: None,
    patience: float = PATIENCE,
    rank: Rank | None = None,
    make: Make | None = None,
) -> Result:
    """Crawl into a survey until the rule is met; cancel it to stop in good order.

    A strategy that is a class of the user's is imported: `start` has made sure that the user named it, not the survey.
    `watch` is told of each outcome, and now and then that time goes by (None). `rank` tells the best domains, if
    budgets go by rank; by default those with most supporters. `make` makes the strategy, if it is not the one that the
    survey names (see `derive`).
    """
    http = http_settings(settings)
    if hosts is None:  # one without hosts is empty, and would count as none
        hosts = hosts_of(folder, settings)
    budgeting = Budgeting(folder, settings, rank or BestDomains(), hosts.clock)
    if folder.journal.url_count:
        hosts.resumed()
    async with AsyncExitStack() as stack:
        stack.enter_context(log_to(folder.folder))
        now: Run | None = None
        while True:
            now = _begun(folder, settings, until, hosts, budgeting, now, make)
            if client is None:
                from surveyor.fetch.client import HttpClient

                client = await stack.enter_async_context(HttpClient(http, resolver=resolver, clock=hosts.clock))
            ending = await _leg(now, settings, client, budgeting, wait=wait, watch=watch, patience=patience)
            if ending is not None:
                return ending
            hosts = hosts_of(folder, settings, hosts.clock)  # as after a stop: each waits its full delay first
            hosts.resumed()


def _begun(
    folder: Folder,
    settings: Settings,
    until: Rule,
    hosts: Hosts,
    budgeting: Budgeting,
    before: Run | None,
    make: Make | None,
) -> Run:
    """Bring the state of a survey back; if budgets have changed, as they now say."""
    made: list[HostQueues] = []

    def by_host(pages: int, urls: Urls) -> HostQueues:
        made.append(HostQueues(pages, hosts, urls.__getitem__, urls.host_ids))
        return made[-1]

    sent = sent_by(http_settings(settings)) if settings.archive else None
    state = derive(folder, by_host, sent=sent, make=make, code=True)
    if budgeting.begin(state):
        state = derive(folder, by_host, sent=sent, make=make, code=True)
    budgeting.limit(state)
    if before is not None:
        state.tally.began = before.state.tally.began
    return Run(folder, state, hosts, until, state.tally.pages if before is None else before.before, made[-1])


async def _leg(
    now: Run,
    settings: Settings,
    client: Client,
    budgeting: Budgeting,
    *,
    wait: Wait | None,
    watch: Watch,
    patience: float,
) -> Result | None:
    """Crawl until the rule is met, or until domains have room again that had none: then go on from the journal."""
    folder, state, queues = now.folder, now.state, now.queues
    keeper = Keeper(folder, state, now.hosts.clock)
    keeper.commit(News())  # the seeds
    state.tally.between = keeper.between
    async with AsyncExitStack() as stack:
        gc.freeze()  # what was there before stays: to look through it again and again takes a twentieth of the time
        stack.callback(gc.unfreeze)

        def place_of(page: int) -> tuple[str, int]:
            return state.urls[page], queues.host(page)

        def last_visit(page: int) -> Visit | None:
            return folder.journal.last_visit(page, "read") if state.crawl.graph.has(page) else None

        parser = Parser() if wait is None else None  # with a time of its own there is none to wait for it
        if parser is not None:
            stack.push_async_callback(parser.close)
        source = LiveSource(
            client,
            state.reader,
            now.hosts,
            place_of,
            pause=settings.pause,
            last_visit=last_visit,
            is_readable=partial(_is_readable, state.crawl.ledger),
            fetches_canonicals=not settings.budget,  # which only the frontier spends
            wait=wait,
            parser=parser,
        )
        stack.push_async_callback(source.close)
        waiting = Waiting(state, now.hosts, queues, source, patient=settings.patient)
        now = replace(now, waiting=waiting)
        state.tally.give_up, state.tally.most_fruitless = waiting.give_up, settings.max_fruitless
        state.tally.watch = partial(watch, now)
        try:
            _recall(folder, queues, state.crawl.frontier, source)
        except (KeyError, TypeError, UsageError) as error:
            raise damaged(folder.journal.path, f"an event that means nothing: {error!r}") from error
        watch(now, None)
        stack.callback(asyncio.create_task(_tick(watch, now)).cancel)
        ending: Result | None = "interrupted"
        try:
            ending = await _crawl(now, source, keeper, budgeting, settings.concurrency)
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None:
                task.uncancel()
        stopped = ending == "interrupted"
        await _wind_up(state, source, keeper, min(patience, STOPPED) if stopped else patience)
        if ending is not None and not (stopped and keeper.is_slow):
            keeper.save()
    return ending


async def _crawl(now: Run, source: LiveSource, keeper: Keeper, budgeting: Budgeting, batch: int) -> Result | None:
    """Crawl; rank domains when it is time, and when all else is read. None if that gave some of them room again."""
    state = now.state
    while True:
        rule = OrRank(now.until, budgeting.again_at)
        ending = await crawl(state.crawl, source, keeper, rule, batch=batch, tally=state.tally)
        met = ending == "reached" and now.until.done(state.crawl.standing(state.tally))
        if met or not budgeting.ranks:
            return ending
        while source.under_way > source.to_begin:  # nobody is asked twice because of a ranking
            take_in(state.crawl, await source.news(math.inf), keeper, state.tally)
        if budgeting.renew(state):
            return None  # from here on the state is not the one that follows from the journal
        if ending != "reached":
            return ending
        budgeting.limit(state)


def _is_readable(ledger: Ledger, page: int) -> bool | None:
    """Return whether a page was read, None if it was not fetched yet."""
    from surveyor.kernels import mass

    life = int(ledger.state[page] & mass.LIFE) if page < ledger.state.size else mass.UNKNOWN
    return None if life in (mass.UNKNOWN, mass.WAITING) else life == mass.READ


class Keeper:
    """What a run remembers with: the survey, the URLs that became known since, and a checkpoint now and then."""

    def __init__(self, folder: Folder, state: Derived, clock: Callable[[], float]) -> None:
        self._folder, self._state, self._clock = folder, state, clock
        self._next = time.monotonic() + SAVE_EVERY
        self._saved = self._here

    @property
    def _here(self) -> tuple[int, bool]:
        """Where the journal ends, and whether no page was left there."""
        journal = self._folder.journal
        return journal.position, journal.closings()[-1:] == [journal.position]

    def commit(self, news: News) -> None:
        """Keep what happened, with the URLs that became known."""
        new = self._state.urls.added(self._folder.journal.url_count)
        events = news.events
        if news.closes and not self._here[1]:
            events = [*events, Event("closed", self._clock())]
        if new or news.outcomes or news.robots or events:
            self._folder.commit(news.outcomes, new, robots=news.robots, events=events)

    @property
    def is_slow(self) -> bool:
        """Whether a checkpoint would take longer than whoever stops a crawl waits: a replay is made instead."""
        return len(self._state.urls) > MANY

    def between(self) -> None:
        """Save a checkpoint if it is time."""
        if time.monotonic() >= self._next:
            began = time.monotonic()
            self.save()
            self._next = time.monotonic() + max(SAVE_EVERY, SAVE_SHARE * (time.monotonic() - began))

    def save(self) -> None:
        """Save a checkpoint, unless nothing has happened since the last one."""
        if (here := self._here) > self._saved:
            save(self._folder, self._state)
            self._saved = here


def hosts_of(folder: Folder, settings: Settings, clock: Callable[[], float] | None = None) -> Hosts:
    """Return the hosts of a survey, none of which was asked yet; rules in a survey from elsewhere do not count."""
    finds = not settings.proxy
    if not folder.manifest.authentic:
        return Hosts(manners=manners_of(settings), clock=clock, finds=finds)
    stored = partial(_stored, folder.journal, tried_again(folder)[1])
    return Hosts(manners=manners_of(settings), clock=clock, finds=finds, stored=stored)


def _stored(journal: Journal, again: float, origin: str) -> RobotsFile | None:
    """Return what is known of a robots.txt, unless it could not be read and is to be asked for again."""
    kept = journal.robots(origin)
    failed = kept is not None and Robots.from_answer(kept.status or None, b"").standing == "unreachable"
    return None if kept is not None and failed and kept.fetched_at < again else kept


def _recall(folder: Folder, queues: HostQueues, frontier: Frontier, source: LiveSource) -> None:
    """Bring back what waits for another try, and hosts that asked to be left alone."""
    journal, hosts = folder.journal, queues.hosts
    for origin in journal.answered():
        hosts.reached(hosts.number(host_of(f"{origin}/")), origin, earlier=True)
    retries: dict[int, Event] = {}
    unruled: dict[str, Event] = {}
    again = tried_again(folder)[1]
    for event in journal.events():
        if event.kind == "retry":
            retries[event.detail["page"]] = event
        elif event.kind == "robots" and event.at >= again:
            unruled[event.detail["origin"]] = event
        elif event.kind == "wait" and event.detail["until"] > hosts.clock():
            number, until = hosts.number(event.detail["host"]), event.detail["until"]
            if event.detail.get("rest", False):  # a break was our own idea
                hosts.wait(number, until)
            else:
                hosts.leave_alone(number, until, event.detail.get("why", "Retry-After"))
    for page, event in retries.items():
        if not journal.visited_since(page, event.visit):
            if queues.keep(page, event.detail["until"]):
                frontier.reserve(page)
            missing, why = event.detail.get("missing", False), event.detail.get("why", "")
            source.recall(page, event.detail["tries"], missing=missing, why=why)
    for origin, event in unruled.items():
        kept, told = journal.robots(origin), event.detail
        if kept is None or kept.fetched_at <= event.at:
            number, until, status = hosts.number(host_of(f"{origin}/")), told["until"], told.get("status")
            hosts.recall(number, origin, until, told["tries"], told["why"], status)


async def _wind_up(state: Derived, source: LiveSource, keeper: Keeper, patience: float) -> None:
    """Let fetches that are under way end, for a while, and keep what comes of them."""
    with_end = time.monotonic() + patience
    try:
        while source.under_way and (left := with_end - time.monotonic()) > 0:
            take_in(state.crawl, await source.news_within(left), keeper, state.tally)
    except asyncio.CancelledError:
        pass  # asked a second time: at once, then


async def _tick(watch: Watch, run: Run) -> None:
    while True:
        await asyncio.sleep(TICK)
        watch(run, None)
