"""One run of a live crawl: restore the state of a survey, crawl, save.

Stopping is always safe. Committed outcomes count; requests in progress are repeated by the next run. When a run reaches
its goal, requests in progress get a few seconds to finish, so that they are not wasted; when the user stops it, a third
of a second.

A run with budgets by rank has several legs: when a ranking raises the budget of domains with refused pages, the run
stops and resumes by itself, with the state replayed from the journal, as if the user had resumed it.

While it runs, it publishes its state in the survey and takes commands (`publishing.py`, `steering.py`).

Fetch results are logged at DEBUG, retries and backoff at INFO, failures of hosts at WARNING. Everything logged is also
in the journal, which is the record that counts. Without a handler of that level a batch costs one check.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from surveyor.crawler.budgeting import Budgeting, OrRank, Rank
from surveyor.crawler.budgets import limits_pages
from surveyor.crawler.graphless import restore
from surveyor.crawler.ledger import Ledger
from surveyor.crawler.loop import Ending, Recorded, Tally, crawl, record
from surveyor.crawler.loop import Journal as Journaled
from surveyor.crawler.measures import Measures
from surveyor.crawler.pending import Forecast, Waiting, forecast
from surveyor.crawler.publishing import Live, Subject
from surveyor.crawler.queues import HostQueues
from surveyor.crawler.replay import Derived, Make, derive, save, tried_again
from surveyor.crawler.sources.live import REAL, Connection, FetchOptions, LiveSource, PageLookup
from surveyor.crawler.start import http_settings, politeness_policy
from surveyor.crawler.steering import Controls, OrNewGoal, Steering, change_goal
from surveyor.crawler.strategies.strategy import rereads
from surveyor.crawler.topics.focus import judge_of
from surveyor.errors import UsageError
from surveyor.fetch.http import sent_by
from surveyor.fetch.parser import Parser
from surveyor.fetch.politeness.hosts import Hosts
from surveyor.outcome import Event, FetchResults, Outcome, RobotsFile, Visit
from surveyor.stopping import NO_LIMIT, sampled_goal, scouting_rule
from surveyor.store import layout
from surveyor.store.disk import damaged
from surveyor.store.logs import log_errors_to
from surveyor.web.robots import Robots
from surveyor.web.urls import host as host_of

if TYPE_CHECKING:
    from surveyor.config import Settings
    from surveyor.crawler.coverage_walks import SampledCoverage
    from surveyor.crawler.frontier import Frontier
    from surveyor.fetch.http import Client
    from surveyor.stopping import Rule
    from surveyor.store.directory import SurveyFolder
    from surveyor.store.journal import Journal
    from surveyor.web.urls import Urls

STOPPED = 0.3  # seconds if the user stops it
MANY = 100_000  # URLs above which a checkpoint may take longer than a user waits
SAVE_EVERY, SAVE_SHARE = 60.0, 50.0  # seconds between checkpoints, at least this many times the duration of one
TICK = 0.5  # seconds between two calls of `watch` without an outcome
Result = Ending | Literal["interrupted"]
FETCH = logging.getLogger("surveyor.fetch")


@dataclass(slots=True)
class Run:
    """A running crawl, as passed to `watch`."""

    folder: SurveyFolder
    state: Derived
    hosts: Hosts
    until: Rule  # a command may replace it
    before: int  # pages fetched in earlier runs
    queues: HostQueues
    measures: Measures
    waiting: Waiting | None = None  # what it waits for, once it has started

    def sampled(self) -> SampledCoverage | None:
        """Return the sampled coverage, at the confidence of the goal; None if it has none, or no walks."""
        goal = sampled_goal(self.until)
        return None if goal is None else self.state.crawl.walks.summary(goal[1])

    def forecast(self) -> Forecast:
        """Return the minimum time to read all queued pages, or the pages of the goal."""
        share, pages = self.until.limits() or (0.0, NO_LIMIT)
        most = max(0, pages - self.before) if share == math.inf else math.inf
        return forecast(self.queues.waiting(), [self.hosts[host].delay for host in range(len(self.hosts))], most)


Watch = Callable[[Run, Outcome | None], None]


async def run(
    folder: SurveyFolder,
    settings: Settings,
    until: Rule,
    *,
    connection: Connection = REAL,
    watch: Watch = lambda _run, _outcome: None,
    rank: Rank | None = None,
    make: Make | None = None,
) -> Result:
    """Crawl into a survey until the rule is met; cancel the task to stop cleanly.

    A user-defined strategy class is imported: `start` has checked that the user named it, not only the survey. `watch`
    is called with each outcome, and periodically with None. `rank` returns the best domains for budgets by rank; by
    default those with most supporters. `make` replaces the strategy named in the survey (see `derive`).
    """
    http = http_settings(settings)
    hosts = create_hosts(folder, settings) if connection.hosts is None else connection.hosts
    client = connection.client
    budgeting = Budgeting(folder, settings, rank, hosts.clock)
    live = Live(folder, is_published=connection.wait is None)
    if folder.journal.url_count:
        hosts.resumed()
    async with AsyncExitStack() as stack:
        stack.enter_context(log_errors_to(folder.folder / layout.LOG))
        stack.enter_context(live)
        now: Run | None = None
        while True:
            now = _restore_run(folder, settings, until if now is None else now.until, hosts, budgeting, now, make)
            if client is None:
                from surveyor.fetch.client import HttpClient

                client = await stack.enter_async_context(
                    HttpClient(http, resolver=connection.resolver, clock=hosts.clock)
                )
            ending = await _run_leg(now, settings, budgeting, connection, client, watch, live)
            if ending is not None:
                live.ending = ending
                return ending
            hosts = create_hosts(folder, settings, hosts.clock)  # as after a stop: each host waits its full delay first
            hosts.resumed()


def _restore_run(
    folder: SurveyFolder,
    settings: Settings,
    until: Rule,
    hosts: Hosts,
    budgeting: Budgeting,
    before: Run | None,
    make: Make | None,
) -> Run:
    """Restore the state of a survey, again if its budgets have changed."""
    made: list[HostQueues] = []

    def by_host(pages: int, urls: Urls) -> HostQueues:
        made.append(HostQueues(pages, hosts, urls.__getitem__, urls.host_ids))
        return made[-1]

    sent = sent_by(http_settings(settings)) if settings.archive else None
    if not folder.journal.keeps_graph and make is None:
        state = restore(folder, by_host, sent=sent, until=until)
        return _run(folder, state, hosts, until, made[-1], before)
    state = derive(folder, by_host, sent=sent, make=make, until=until, code=True)
    if budgeting.begin(state):
        state = derive(folder, by_host, sent=sent, make=make, until=until, code=True)
    budgeting.limit(state)
    return _run(folder, state, hosts, until, made[-1], before)


def _run(
    folder: SurveyFolder, state: Derived, hosts: Hosts, until: Rule, queues: HostQueues, before: Run | None
) -> Run:
    """Return a run that starts from a state, or continues another run with it."""
    if before is None:
        run = Run(folder, state, hosts, until, state.tally.pages, queues, Measures(state))
    else:
        state.tally.started = before.state.tally.started
        run = replace(before, state=state, hosts=hosts, until=until, queues=queues, waiting=None)
        run.measures.follow(state, state.crawl.frontier, lambda: state.crawl.ledger.residual)
    if folder.journal.position:
        run.measures.restore(folder.journal.blocked())
    return run


async def _run_leg(
    now: Run,
    settings: Settings,
    budgeting: Budgeting,
    connection: Connection,
    client: Client,
    watch: Watch,
    live: Live,
) -> Result | None:
    """Crawl until the rule is met; return None if domains were opened, to resume from the journal."""
    folder, state, queues = now.folder, now.state, now.queues
    store = RunStore(folder, state, now.hosts.clock)
    store.commit(FetchResults())  # the seeds
    state.tally.checkpoint, state.tally.clock = store.checkpoint, now.hosts.clock
    async with AsyncExitStack() as stack:
        gc.freeze()  # existing objects stay: scanning them repeatedly takes a twentieth of the time
        stack.callback(gc.unfreeze)

        def place_of(page: int) -> tuple[str, int]:
            return state.urls[page], queues.host(page)

        def last_visit(page: int) -> Visit | None:
            return folder.journal.last_visit(page, "fetched") if state.crawl.graph.has(page) else None

        parser = Parser() if connection.wait is None else None  # a simulated clock cannot wait for a process
        if parser is not None:
            stack.push_async_callback(parser.close)
        source = LiveSource(
            client,
            state.reader,
            now.hosts,
            PageLookup(place_of, last_visit, partial(is_readable, state.crawl.ledger)),
            options=FetchOptions(
                settings.backoff,
                fetches_canonicals=not limits_pages(settings),  # only the frontier spends it
                judge=judge_of(settings.topic),
            ),
            wait=connection.wait,
            parser=parser,
        )
        stack.push_async_callback(source.close)
        now.waiting = waiting = Waiting(state, now.hosts, queues, source, patient=settings.patient)
        state.tally.abandon, state.tally.most_fruitless = waiting.abandon, settings.max_fruitless
        if settings.keep_busy:
            state.tally.patience = 0.0
        state.tally.watch = report = partial(_report, now, watch, live)
        state.tally.paused = lambda: live.steering.paused
        try:
            restore_waits(folder, queues, state.crawl.frontier, source)
        except (KeyError, TypeError, UsageError) as error:
            raise damaged(folder.journal.path, f"an event that means nothing: {error!r}") from error
        live.follow(_subject(now, source), _controls(now, source))
        report(None)
        stack.callback(asyncio.create_task(tick(report)).cancel)
        ending: Result | None = "interrupted"
        try:
            ending = await _crawl(now, source, store, budgeting, settings.concurrency, live.steering)
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None:
                task.uncancel()
        stopped = ending == "interrupted"
        if ending is not None:
            live.steering.close()
        patience = min(connection.patience, STOPPED) if stopped else connection.patience
        await finish_requests(state.crawl, source, store, state.tally, patience)
        if ending is not None and not (stopped and store.is_slow):
            store.save()
    return ending


def _report(now: Run, watch: Watch, live: Live, outcome: Outcome | None) -> None:
    """Report an outcome, or without one that time has passed."""
    if outcome is not None:
        now.measures.record(outcome)
    watch(now, outcome)
    live.update(is_tick=outcome is None)


def _subject(now: Run, source: LiveSource) -> Subject:
    """Return what is published of a run."""
    return Subject(
        command="crawl" if scouting_rule(now.until) is None else "scout",
        state=now.state,
        hosts=now.hosts,
        queues=now.queues,
        frontier=now.state.crawl.frontier,
        measures=now.measures,
        before=now.before,
        in_progress=lambda: source.in_progress - source.pending - source.held,
        goal=lambda: str(now.until),
        left=lambda: now.measures.left(now.until),
        sampled=now.sampled,
    )


def _controls(now: Run, source: LiveSource) -> Controls:
    """Return what commands do to a run; call it in the task of the run."""
    task = asyncio.current_task()

    def set_goal(text: str) -> None:
        now.until = change_goal(now.folder, now.until, text)

    return Controls(lambda: task is not None and task.cancel(), source.wake, set_goal)


async def _crawl(
    now: Run, source: LiveSource, store: RunStore, budgeting: Budgeting, batch: int, steering: Steering
) -> Result | None:
    """Crawl; rank domains when due and when the queue is empty.

    Return None to resume from the journal: if a ranking opened domains, or if another goal needs another queue.
    """
    state = now.state
    while True:
        rule = OrNewGoal((OrRank((now.until,), budgeting.again_at),), steering)
        ending = await crawl(state.crawl, source, store, rule, batch=batch, tally=state.tally)
        if steering.has_new_goal:
            steering.has_new_goal = False
            if rereads(state.crawl.strategy, now.until) != state.crawl.frontier.rereads:
                return None
            continue
        met = ending == "reached" and now.until.done(state.crawl.progress(state.tally))
        if met or not budgeting.ranks:
            return ending
        while source.in_progress > source.pending:  # no request is repeated because of a ranking
            record(state.crawl, await source.results(math.inf), store, state.tally)
        if budgeting.renew(state):
            return None  # the state no longer agrees with the journal
        if ending != "reached":
            return ending
        budgeting.limit(state)


def is_readable(ledger: Ledger, page: int) -> bool | None:
    """Return whether a page was fetched; None if it was not requested yet."""
    from surveyor.kernels import mass

    life = int(ledger.state[page] & mass.STATUS) if page < ledger.state.size else mass.UNKNOWN
    return None if life in (mass.UNKNOWN, mass.WAITING) else life == mass.FETCHED


class RunStore:
    """Persistence of a run: commits outcomes and newly discovered URLs, and saves checkpoints periodically."""

    def __init__(
        self, folder: SurveyFolder, state: Derived, clock: Callable[[], float], *, every: float | None = None
    ) -> None:
        self._folder, self._state, self._clock = folder, state, clock
        self._every = SAVE_EVERY if every is None else every  # seconds between checkpoints
        self._next = time.monotonic() + self._every
        self._saved = self._here

    @property
    def _here(self) -> tuple[int, int]:
        """Position of the journal, and its number of events that change the state."""
        return self._folder.journal.position, len(self._folder.journal.state_events())

    @property
    def _is_settled(self) -> bool:
        """Whether the last event is that no page was left here."""
        last = self._folder.journal.state_events()[-1:]
        return [(event.kind, event.visit) for event in last] == [("settled", self._folder.journal.position)]

    def commit(self, results: FetchResults) -> None:
        """Commit outcomes and events, with the URLs discovered."""
        new = self._state.urls.added(self._folder.journal.url_count)
        events = results.events
        if results.closes and not self._is_settled:
            events = [*events, Event("settled", self._clock())]
        outcomes, changes = self._state.crawl.to_commit(results.outcomes)
        if new or outcomes or results.robots or events:
            self._folder.commit(outcomes, new, robots=results.robots, events=events, changes=changes)
            log_results(results, self._state.urls.__getitem__, self._clock())

    @property
    def is_slow(self) -> bool:
        """Whether a checkpoint would take longer than a user who stops a crawl waits: the next run replays instead."""
        return len(self._state.urls) > MANY

    def checkpoint(self) -> None:
        """Save a checkpoint if one is due."""
        if time.monotonic() >= self._next:
            began = time.monotonic()
            self.save()
            self._next = time.monotonic() + max(self._every, SAVE_SHARE * (time.monotonic() - began))

    def save(self) -> None:
        """Save a checkpoint, unless nothing was committed since the last one."""
        if (here := self._here) > self._saved:
            save(self._folder, self._state)
            self._saved = here


def create_hosts(
    folder: SurveyFolder, settings: Settings, clock: Callable[[], float] | None = None, *, persistent: bool = False
) -> Hosts:
    """Return fresh host states for a survey; the robots.txt files of a survey from elsewhere are not used."""
    finds, policy = not settings.proxy, replace(politeness_policy(settings), persistent=persistent)
    if not folder.manifest.authentic:
        return Hosts(policy=policy, clock=clock, resolves=finds)
    stored = partial(_stored_robots, folder.journal, tried_again(folder)[1])
    return Hosts(policy=policy, clock=clock, resolves=finds, stored=stored)


def _stored_robots(journal: Journal, again: float, origin: str) -> RobotsFile | None:
    """Return the stored robots.txt of an origin, unless it was unreachable and is to be retried."""
    kept = journal.robots(origin)
    failed = kept is not None and Robots.from_answer(kept.status or None, b"").state == "unreachable"
    return None if kept is not None and failed and kept.fetched_at < again else kept


def restore_waits(folder: SurveyFolder, queues: HostQueues, frontier: Frontier, source: LiveSource) -> None:
    """Restore pending retries, and the waits that hosts asked for."""
    journal, hosts = folder.journal, queues.hosts
    for origin in journal.answered():
        hosts.reached(hosts.number(host_of(f"{origin}/")), origin, earlier=True)
    retries: dict[int, Event] = {}
    unruled: dict[str, Event] = {}
    again = tried_again(folder)[1]
    for event in journal.events():
        if event.kind == "retry":
            retries[event.detail["page"]] = event
        elif event.kind == "robots_retry" and event.at >= again:
            unruled[event.detail["origin"]] = event
        elif event.kind == "backoff" and event.detail["until"] > hosts.clock():
            number, until = hosts.number(event.detail["host"]), _end_of(event, hosts.clock())
            if event.detail.get("own", False):  # our own backoff, not requested by the host
                hosts.wait(number, until)
            else:
                hosts.back_off(number, until, event.detail.get("why", "Retry-After"))
    for page, event in retries.items():
        if not journal.visited_since(page, event.visit):
            if queues.keep(page, _end_of(event, hosts.clock())):
                frontier.reserve(page)
            missing, why = event.detail.get("missing", False), event.detail.get("why", "")
            source.restore_retry(page, event.detail["tries"], missing=missing, why=why)
    for origin, event in unruled.items():
        kept, detail = journal.robots(origin), event.detail
        if kept is None or kept.fetched_at <= event.at:
            number, until, status = hosts.number(host_of(f"{origin}/")), detail["until"], detail.get("status")
            hosts.restore_robots_failure(number, origin, until, detail["tries"], detail["why"], status)


def _end_of(event: Event, now: float) -> float:
    """Return when the wait of an event ends: not later than its length from now, if the clock was set back since."""
    until = float(event.detail["until"])
    return min(until, now + until - event.at) if now < event.at < until else until


async def finish_requests(state: Recorded, source: LiveSource, store: Journaled, tally: Tally, patience: float) -> None:
    """Wait up to `patience` seconds for requests in progress, and commit their outcomes."""
    with_end = time.monotonic() + patience
    try:
        while source.in_progress and (left := with_end - time.monotonic()) > 0:
            record(state, await source.results_within(left), store, tally)
    except asyncio.CancelledError:
        pass  # cancelled a second time: stop at once


async def tick(report: Callable[[None], None]) -> None:
    """Report periodically that time has passed."""
    while True:
        await asyncio.sleep(TICK)
        report(None)


def log_results(results: FetchResults, url_of: Callable[[int], str], now: float) -> None:
    """Log a batch of outcomes, robots.txt files and events at the time `now`."""
    if FETCH.isEnabledFor(logging.DEBUG):
        for outcome in results.outcomes:
            _log_outcome(outcome, url_of)
        for file in results.robots:
            fields = {"origin": file.origin, "status": file.status, "bytes": len(file.body)}
            FETCH.debug("robots.txt of %s: %s", file.origin, file.status or "no response", extra={"fields": fields})
    for event in results.events:
        _log_event(event, url_of, now)


def _log_outcome(outcome: Outcome, url_of: Callable[[int], str]) -> None:
    url = url_of(outcome.page)
    fields: dict[str, Any] = {"url": url, "kind": outcome.kind, "reason": outcome.reason}
    for name in ("status", "seconds", "size", "title"):
        if value := getattr(outcome, name, None):
            fields[name] = value
    details = [str(fields[name]) for name in ("status", "reason") if fields.get(name)]
    if outcome.kind == "fetched":
        fields["links"] = outcome.links.size
    elif outcome.kind == "redirected":
        fields["target"] = url_of(outcome.target)
        details.append(f"to {fields['target']}")
    suffix = f" ({', '.join(details)})" if details else ""
    FETCH.debug("%s %s%s", outcome.kind, url, suffix, extra={"fields": fields})


def _log_event(event: Event, url_of: Callable[[int], str], now: float) -> None:
    detail: Mapping[str, Any] = event.detail
    why, until = detail.get("why") or "no reason recorded", detail.get("until")
    wait = "not in this run" if until is None else f"in {max(0.0, until - now):.0f} s"
    if event.kind == "retry" and FETCH.isEnabledFor(logging.INFO):
        url = url_of(detail["page"])
        fields = {"url": url, "failures": detail["tries"], "until": until, "reason": why}
        FETCH.info("retry of %s %s, after failure %d: %s", url, wait, detail["tries"], why, extra={"fields": fields})
    elif event.kind == "backoff":
        fields = {"host": detail["host"], "until": until, "reason": why}
        FETCH.info("backoff of %s, next request %s: %s", detail["host"], wait, why, extra={"fields": fields})
    elif event.kind == "robots_retry":
        why = detail.get("why") or f"http {detail.get('status')}"
        fields = {"origin": detail["origin"], "failures": detail["tries"], "until": until, "reason": why}
        text = "robots.txt of %s cannot be fetched, next request %s: %s"
        FETCH.warning(text, detail["origin"], wait, why, extra={"fields": fields})
    elif event.kind == "offline":
        FETCH.warning("no network, next request %s: %s", wait, why, extra={"fields": {"until": until, "reason": why}})
