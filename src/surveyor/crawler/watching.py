"""Watch a survey: re-visit its pages when they are due, within a budget of requests per day, until it is stopped.

A watch continues the log of a crawl. The survey's own state (strategy, queue, coverage) follows the visits as if a
crawl had made them, so that `crawl`, `status` and checkpoints work as before. What to request is decided by another
queue, which holds only the pages that are due (`revisit_plan.py`), and by the budget (`request_budget.py`).

**Clock.** Delays, due times and the budget follow a monotonic clock, which starts at the time of the wall clock. If the
wall clock differs from it by more than `JUMP` (it was set, or the machine slept), the run stops and resumes in place:
each host waits its full delay, and the schedule is rebuilt from the journal, in which times in the future count as now,
or as the start of the watch that followed them.
So a jump in either direction neither shortens a delay nor exceeds the budget.

**Lists** (`watched_lists.py`) are read between two visits, when no request is in progress.

While it runs, a watch publishes its state and can be paused and stopped, as a crawl (`publishing.py`, `steering.py`).

**Hosts** that do not respond are never given up: they are asked again after ever longer breaks (`policy.persistent`),
and their pages wait.
"""

from __future__ import annotations

import asyncio
import gc
import math
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from surveyor.crawler.budgets import limits_pages
from surveyor.crawler.frontier import Frontier
from surveyor.crawler.ledger import Ledger
from surveyor.crawler.loop import PAUSE_CHECK, record
from surveyor.crawler.measures import Measures, Upcoming
from surveyor.crawler.publishing import Live, Subject, share_in_words
from surveyor.crawler.queues import Batch, HostQueues
from surveyor.crawler.replay import Derived, derive
from surveyor.crawler.request_budget import RequestBudget, default_rate
from surveyor.crawler.revisit_plan import Finding, RevisitPlan, Seen
from surveyor.crawler.schedule import Schedule
from surveyor.crawler.session import (
    STOPPED,
    RunStore,
    create_hosts,
    finish_requests,
    is_readable,
    restore_waits,
    tick,
)
from surveyor.crawler.sources.live import REAL, Connection, FetchOptions, LiveSource, PageLookup
from surveyor.crawler.start import http_settings
from surveyor.crawler.steering import Controls, no_goal
from surveyor.crawler.strategies import by_name
from surveyor.crawler.strategies.opic import Opic
from surveyor.crawler.strategies.strategy import ReplayStrategy, name_of
from surveyor.crawler.validator_audits import REST, ValidatorAudits
from surveyor.crawler.watched_lists import KINDS, SHARE, Day, WatchedLists
from surveyor.errors import UsageError, check_range
from surveyor.fetch.http import sent_by
from surveyor.fetch.parser import Parser
from surveyor.fetch.politeness.hosts import Hosts
from surveyor.outcome import Event, FetchResults, Outcome, Visit, was_requested
from surveyor.store import layout
from surveyor.store.logs import log_errors_to
from surveyor.web.caching import usable_validators
from surveyor.web.urls import host as host_of

if TYPE_CHECKING:
    from surveyor.arrays import FloatArray
    from surveyor.config import Settings
    from surveyor.crawler.loop import Crawl
    from surveyor.fetch.http import Client
    from surveyor.store.directory import SurveyFolder
    from surveyor.store.journal import Journal
    from surveyor.web.urls import Urls

DAY = 86_400.0
JUMP = 300.0  # seconds between the clocks
SAVE_EVERY = 900.0  # seconds between checkpoints
LONGEST_WAIT = 60.0  # seconds that a single pass waits for a host
MESSAGES = 100  # about hosts that are kept
TICK = 0.5  # seconds
BURSTS = 144  # of the requests of a day: a watch sends at most those of ten minutes at once
OPIC = ("opic", "adaptive")
MODIFIED = ("changed", "perhaps changed", "back")  # findings that the server reported a modification
TRACKING = "tracking"  # importance by push tracking: the accounts of the ledger
Ending = Literal["done", "budget", "interrupted"]


def steady_clock() -> float:
    """Return seconds of a monotonic clock, which includes the time that the machine slept where that is known."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clocks of a watch."""

    steady: Callable[[], float] = steady_clock
    wall: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """How a survey is watched."""

    rate: int | None = None  # requests per day; None: `default_rate`
    once: bool = False  # end when no page is due
    audit_days: float = REST / DAY  # between two unneeded downloads of an unchanged page, at least
    importance: str = TRACKING  # or the name of an OPIC strategy, such as opic or adaptive:bao
    feeds: tuple[str, ...] = ()  # URLs of feeds whose dates are signals of change
    reads_lists: bool = True  # sitemaps and feeds

    def __post_init__(self) -> None:
        check_range("audit_days", self.audit_days, "[0, inf]", hint="the default is 7")


@dataclass(slots=True)
class Watched:
    """A survey that is watched: its own state, the plan, and the queue of pages that are due."""

    stored: Crawl
    plan: RevisitPlan
    audits: ValidatorAudits
    frontier: Frontier
    queues: HostQueues  # of the frontier
    lists: WatchedLists | None = None
    found: Counter[str] = field(default_factory=Counter)  # findings of this process, by kind
    latest: Finding = ""  # of the last outcome

    def apply(self, outcome: Outcome) -> None:
        """Update the states for an outcome."""
        self.stored.apply(outcome)
        self.frontier.settle(outcome)
        seen = _seen(outcome)
        known = self.stored.graph.has(outcome.page)
        self.latest = self.plan.observe(seen)
        if self.latest:
            self.found[self.latest] += 1
        if outcome.kind == "fetched":
            changed = None if self.latest == "new" or not known else self.latest in MODIFIED
            self.audits.count(outcome.page, seen.status, seen.at, changed=changed)
        self.plan.add_new(self.stored.ledger.touched)

    def apply_event(self, event: Event) -> None:
        """Update the state for an event that changes it."""
        if event.kind not in KINDS:
            self.stored.apply_event(event)
        elif self.lists is not None:
            self.lists.apply(event)

    def close(self) -> None:
        """Push the mass that is moving until it is settled."""
        self.stored.close()


def _seen(outcome: Outcome) -> Seen:
    if not isinstance(outcome, Visit):
        return Seen(outcome.page, outcome.kind, outcome.reason, 0, 0.0, b"")
    values = outcome.status, outcome.fetched_at, outcome.hash, outcome.expires, outcome.text_hash
    return Seen(outcome.page, outcome.kind, outcome.reason, *values)


@dataclass(frozen=True, slots=True)
class Watch:
    """A running watch, as passed to reports."""

    folder: SurveyFolder
    state: Derived
    watched: Watched
    hosts: Hosts
    budget: RequestBudget
    started: float  # time of the wall clock at the start of the process
    measures: Measures
    before: int  # pages fetched before this watch
    importance_name: str = TRACKING
    is_own: bool = True  # whether the state is that of the survey's own strategy

    @property
    def now(self) -> float:
        """Time of the run."""
        return self.hosts.clock()

    def importance(self) -> FloatArray:
        """Return the importance of each page, as the schedule uses it."""
        return self.watched.plan.importance()


Report = Callable[[Watch, Outcome | None, Finding], None]


async def watch(
    folder: SurveyFolder,
    settings: Settings,
    options: WatchOptions,
    *,
    connection: Connection = REAL,
    clocks: Clocks | None = None,
    report: Report = lambda _watch, _outcome, _finding: None,
) -> Ending:
    """Watch a survey until nothing is due (`once`) or the task is cancelled, which stops it cleanly.

    `report` is called with each outcome and what it found, and periodically with None.
    """
    clocks, client = clocks or Clocks(), connection.client
    started, budget = clocks.wall(), None
    cutoff = started if options.once else math.inf
    live, run = Live(folder, is_published=connection.wait is None), None
    async with AsyncExitStack() as stack:
        stack.enter_context(log_errors_to(folder.folder / layout.LOG))
        stack.enter_context(live)
        while True:
            offset = clocks.wall() - clocks.steady()
            hosts = create_hosts(folder, settings, lambda: clocks.steady() + offset, persistent=True)  # noqa: B023
            hosts.resumed()
            state, now = _restored(folder, settings, hosts, options.importance), hosts.clock()
            if budget is None:
                budget = _budget(folder, state, options, clocks, now)
            if client is None:
                from surveyor.fetch.client import HttpClient

                http = http_settings(settings)
                client = await stack.enter_async_context(HttpClient(http, resolver=connection.resolver))
            run = _begin(folder, settings, state, hosts, budget, options, started, run)
            if (ending := await _run_leg(run, settings, connection, clocks, client, report, cutoff, live)) is not None:
                live.ending = ending
                return ending
            cutoff = min(cutoff, clocks.wall()) if options.once else cutoff


def _is_stored(folder: SurveyFolder, importance: str) -> bool:
    """Return whether the survey's own state has this importance; raise UsageError if there is none of this name."""
    if importance == TRACKING:
        return True
    asked = by_name(importance) if importance.partition(":")[0] in OPIC else None
    own = str(folder.manifest.setting("strategy"))
    if not isinstance(asked, Opic):
        problem = f"importance must be {TRACKING}, opic or adaptive, with or without arguments, got {importance!r}"
        raise UsageError(problem, hint="for example adaptive:bao")
    return own.partition(":")[0] in OPIC and name_of(by_name(own)) == asked.name


def _restored(folder: SurveyFolder, settings: Settings, hosts: Hosts, importance: str = TRACKING) -> Derived:
    """Restore the survey's own state, with a queue that no request is taken from.

    If another strategy estimates the importance, the journal is replayed under it.
    """
    spare = Hosts(policy=hosts.policy, clock=hosts.clock, resolves=False)

    def queues(pages: int, urls: Urls) -> HostQueues:
        return HostQueues(pages, spare, urls.__getitem__, urls.host_ids)

    sent = sent_by(http_settings(settings)) if settings.archive else None
    make = None if _is_stored(folder, importance) else lambda _urls: by_name(importance)
    state = derive(folder, queues, sent=sent, make=make)
    if not state.tally.pages:
        problem = f"{folder.folder} has no fetched page, so there is nothing to watch"
        raise UsageError(problem, hint=f"fetch its pages first: surveyor crawl {folder.folder}")
    return state


def _budget(folder: SurveyFolder, state: Derived, options: WatchOptions, clocks: Clocks, now: float) -> RequestBudget:
    """Return the budget, with the requests of earlier watches in the last day; record the start of a watch."""
    hosts = {host_of(seed) for seed in folder.manifest.seeds}
    rate = options.rate or default_rate(state.crawl.ledger.read, len(hosts))
    budget = RequestBudget(rate, clock=clocks.steady, burst=rate if options.once else max(1, rate // BURSTS))
    budget.restore(_request_ages(folder.journal, rate, now))
    folder.journal.commit([], events=[Event("watch", now, {"rate": rate})])
    return budget


def _request_ages(journal: Journal, most: int, now: float) -> list[float]:
    """Return the ages of the requests of earlier watches in the last day, at most those of the last `most`."""
    when, first, ahead = _past_times(journal, now), -1, 0
    ages: list[tuple[float, int]] = []  # with the number of requests
    for event in journal.events("watch", "requests"):
        if event.kind == "watch":
            first = event.visit if first < 0 else first
            if event.at <= now:  # those dated in the future were sent before this start
                ages.append((now - event.at, ahead))
                ahead = 0
        elif first >= 0 and event.at > now:
            ahead += int(event.detail["count"])
        elif first >= 0:
            ages.append((now - event.at, int(event.detail["count"])))
    ages.append((0.0, ahead))
    for number, seen in enumerate(journal.history(), 1):
        if 0 <= first < number and seen[4] > 0:
            ages.append((now - when(number, seen[4]), 1))
    found: list[float] = []
    for age, count in sorted(one for one in ages if one[0] < DAY):
        found += [age] * min(count, most - len(found))
    return found


def _past_times(journal: Journal, now: float) -> Callable[[int, float], float]:
    """Return the time of a visit from its number and its stored time, never later than now.

    If the clock was ahead, visits are dated in the future. Such a visit was made before the next start of a watch:
    if it counted as made now at every start, no page would be due until that date.
    """
    starts = [(event.visit, event.at) for event in journal.events("watch") if event.at <= now]

    def when(visit: int, at: float) -> float:
        if at <= now:
            return at
        place = bisect_left(starts, (visit, 0.0))
        return starts[place][1] if place < len(starts) else now

    return when


def _begin(
    folder: SurveyFolder,
    settings: Settings,
    state: Derived,
    hosts: Hosts,
    budget: RequestBudget,
    options: WatchOptions,
    started: float,
    before: Watch | None = None,
) -> Watch:
    """Build the schedule, the lists, the audits and the queue of due pages from the journal."""
    crawl, urls, now = state.crawl, state.urls, hosts.clock()
    queues = HostQueues(crawl.ledger.capacity, hosts, urls.__getitem__, urls.host_ids)
    frontier = Frontier(crawl.ledger, any_status=True, queues=queues)
    estimate = crawl.ledger if options.importance == TRACKING else crawl.strategy
    assert isinstance(estimate, Ledger | Opic)  # noqa: S101
    schedule, fetches_new = Schedule(budget.rate, start=now), not limits_pages(settings)
    plan = RevisitPlan(schedule, crawl.ledger, estimate.importance, fetches_new=fetches_new)
    audits = ValidatorAudits(lambda page: host_of(state.urls[page]), rest=options.audit_days * DAY)
    audits.restore(folder.journal.events("audit", "lying"))
    lists = _lists(folder, urls, plan, budget, options, now) if options.reads_lists else None
    watched = Watched(crawl, plan, audits, frontier, queues, lists)
    _restore_visits(folder.journal, watched, now)
    plan.add_new(crawl.ledger.waiting)
    plan.replan(now)
    is_own = _is_stored(folder, options.importance)
    if before is None:
        measures, pages = Measures(state), state.tally.pages
    else:  # resumed in place
        measures, pages = before.measures, before.before
    measures.follow(state, frontier, plan.importance)
    measures.restore(folder.journal.blocked())
    return Watch(folder, state, watched, hosts, budget, started, measures, pages, options.importance, is_own)


def _lists(
    folder: SurveyFolder, urls: Urls, plan: RevisitPlan, budget: RequestBudget, options: WatchOptions, now: float
) -> WatchedLists:
    """Return the lists of the sites of a survey, as they were last read."""
    lists = WatchedLists.of(urls, folder.manifest.seeds, options.feeds, plan, budget.part(SHARE))
    events = list(folder.journal.events("list"))
    lists.budget.restore(now - event.at for event in events if now - event.at < DAY)
    lists.restore(events, now)
    return lists


def _restore_visits(journal: Journal, watched: Watched, now: float) -> None:
    """Enter the visits of the journal into the schedule and into the audits, and the signals between them."""
    when, last, plan, audits, lists = _past_times(journal, now), 0.0, watched.plan, watched.audits, watched.lists
    signals = deque(journal.events("signals") if lists is not None else ())

    def apply_signals(visits: float) -> None:
        while lists is not None and signals and signals[0].visit <= visits:
            event = signals.popleft()
            lists.apply(event._replace(at=when(event.visit, event.at)))

    for number, row in enumerate(journal.history(), 1):
        apply_signals(number - 1)
        seen = Seen(*row)
        is_audit = audits.was_audit(seen.page, seen.at)
        last = when(number, seen.at) if seen.at else last
        finding = plan.observe(seen._replace(at=last))
        if seen.kind == "fetched":
            changed = None if finding == "new" or is_audit else finding in MODIFIED
            audits.count(seen.page, seen.status, last, changed=changed)
    audits.restored()
    apply_signals(math.inf)


async def _run_leg(
    run: Watch,
    settings: Settings,
    connection: Connection,
    clocks: Clocks,
    client: Client,
    report: Report,
    cutoff: float,
    live: Live,
) -> Ending | None:
    """Watch until stopped; return None if the wall clock jumped, to resume from the journal."""
    folder, state, watched, hosts = run.folder, run.state, run.watched, run.hosts
    store = RunStore(folder, state, hosts.clock, every=SAVE_EVERY)
    state.tally.clock = hosts.clock
    keeps = run.is_own and not isinstance(state.crawl.strategy, ReplayStrategy)  # else it would be in the checkpoint
    state.tally.checkpoint = store.checkpoint if keeps else lambda: None
    offset = hosts.clock() - clocks.steady()
    async with AsyncExitStack() as stack:
        gc.freeze()
        stack.callback(gc.unfreeze)
        parser = Parser() if connection.wait is None else None
        if parser is not None:
            stack.push_async_callback(parser.close)
        given = connection.wait
        wait = None if given is None else lambda event, until: given(event, until - offset)
        fetching = FetchOptions(settings.backoff, fetches_canonicals=False, keeps_pages=True)
        source = LiveSource(client, state.reader, hosts, _lookup(run), options=fetching, wait=wait, parser=parser)
        stack.push_async_callback(source.close)
        if watched.lists is not None:
            day = Day(run.budget, lambda results: record(watched, results, _Audited(run, store), state.tally))
            watched.lists.open(client, hosts, wait, parser, day)
        watched.plan.release(watched.frontier, _retries(folder))
        restore_waits(folder, watched.queues, watched.frontier, source)
        state.tally.watch = watch = partial(_report, run, report, live)
        state.tally.paused = lambda: live.steering.paused
        task = asyncio.current_task()
        live.follow(
            _subject(run, source), Controls(lambda: task is not None and task.cancel(), source.wake, set_goal=no_goal)
        )
        watch(None)
        stack.callback(asyncio.create_task(tick(watch)).cancel)
        ending: Ending | None = "interrupted"
        try:
            ending = await _loop(run, source, store, clocks, settings.concurrency, cutoff)
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None:
                task.uncancel()
        stopped = ending == "interrupted"
        if ending is not None:
            live.steering.close()
        patience = min(connection.patience, STOPPED) if stopped else connection.patience
        await finish_requests(watched, source, _Audited(run, store), state.tally, patience)
        if keeps and not (stopped and store.is_slow):
            store.save()
    return ending


async def _loop(
    run: Watch, source: LiveSource, store: RunStore, clocks: Clocks, batch: int, cutoff: float
) -> Ending | None:
    """Request pages as they become due and the budget allows."""
    state, watched, budget, plan = run.state, run.watched, run.budget, run.watched.plan
    audited, tally = _Audited(run, store), state.tally
    while True:
        now = run.now
        if abs(clocks.wall() - now) > JUMP:
            return None
        tally.checkpoint()
        plan.replan(now)
        _limit_messages(run.hosts)
        if tally.paused():
            record(watched, await source.results(now + PAUSE_CHECK), audited, tally)
            continue
        room = budget.available() - (source.in_progress - source.pending)
        busy = source.in_progress - source.pending
        if source.pending:
            source.start(Batch(room=max(0, min(room, batch - busy))))
            busy = source.in_progress - source.pending
            room = budget.available() - busy
        free = min(room, batch - busy) - source.pending
        if watched.lists is not None and room > 0 and watched.lists.is_due(now):
            if not busy:
                record(watched, await watched.lists.read(), audited, tally)
                continue
            free = 0  # it is read as soon as no request is in progress
        leased = replace(plan.take(watched.frontier, free, min(now, cutoff)), room=None)
        if not (leased or source.in_progress) and plan.hasten():
            continue
        if not (leased or source.in_progress) and cutoff < math.inf:
            if budget.seconds_left() > 0:
                return "budget"
            if not plan.waiting or watched.frontier.again_at > now + LONGEST_WAIT:
                return "done"
        source.start(leased)
        until = _next(run, plan, now, exhausted=room <= 0)
        results = await source.results(0.0 if leased.refused else until)
        results.outcomes[:0] = leased.refused
        record(watched, results, audited, tally)


def _next(run: Watch, plan: RevisitPlan, now: float, *, exhausted: bool) -> float:
    """Return until when to wait for results, if there are none before."""
    if exhausted and (left := run.budget.seconds_left()) > 0:
        return now + left
    if plan.has_more(now):
        return now + TICK  # the pages that were released wait for their hosts; others may not
    lists = run.watched.lists
    ahead = [plan.next_at(now), run.watched.frontier.again_at, math.inf if lists is None else lists.next_at()]
    return min(at for at in ahead if at > now)


class _Audited:
    """Adds the events of audits to what is committed, and counts the requests."""

    def __init__(self, run: Watch, store: RunStore) -> None:
        self._run, self._store = run, store

    def commit(self, results: FetchResults) -> None:
        """Commit results with the audits that they end."""
        run, journal = self._run, self._run.folder.journal
        for outcome in results.outcomes:
            if outcome.page in run.watched.audits.running:
                before = journal.last_visit(outcome.page, "fetched")
                results.events.extend(run.watched.audits.settle(outcome, before))
        self._store.commit(results)
        requests = sum(map(was_requested, results.outcomes))
        requests += sum(int(event.detail["count"]) for event in results.events if event.kind == "requests")
        run.budget.spend(requests)


def _lookup(run: Watch) -> PageLookup:
    """Return what a source needs to know of pages."""
    state, watched, journal = run.state, run.watched, run.folder.journal

    def last_visit(page: int) -> Visit | None:
        before = journal.last_visit(page, "fetched") if state.crawl.graph.has(page) else None
        has_validator = before is not None and any(
            usable_validators(before.etag, before.last_modified, before.fetched_at)
        )
        return None if watched.audits.is_full(page, run.now, has_validator=has_validator) else before

    def place_of(page: int) -> tuple[str, int]:
        return state.urls[page], watched.queues.host(page)

    return PageLookup(place_of, last_visit, partial(is_readable, state.crawl.ledger))


def _retries(folder: SurveyFolder) -> list[int]:
    """Return the pages that wait for a retry."""
    latest = {event.detail["page"]: event.visit for event in folder.journal.events("retry")}
    return [page for page, visit in latest.items() if not folder.journal.visited_since(page, visit)]


def _limit_messages(hosts: Hosts) -> None:
    """Forget old messages about hosts."""
    if len(hosts.messages) > 2 * MESSAGES:
        del hosts.messages[:-MESSAGES]


def _report(run: Watch, report: Report, live: Live, outcome: Outcome | None) -> None:
    """Report an outcome and what it found, or without one that time has passed."""
    if outcome is not None:
        run.measures.record(outcome)
    report(run, outcome, "" if outcome is None else run.watched.latest)
    live.update(is_tick=outcome is None)


def _subject(run: Watch, source: LiveSource) -> Subject:
    """Return what is published of a watch."""
    watched = run.watched
    return Subject(
        command="watch",
        state=run.state,
        hosts=run.hosts,
        queues=watched.queues,
        frontier=watched.frontier,
        measures=run.measures,
        before=run.before,
        in_progress=lambda: source.in_progress - source.pending - source.held,
        goal=lambda: f"{run.budget.per_day:,} requests a day",
        left=lambda: None,
        explain=_due,
    )


def _due(one: Upcoming) -> str:
    """Explain why a page is requested next."""
    return f"due; {share_in_words(one.mass)} of the importance" if one.mass > 0 else "due"
