"""Read the sitemaps and feeds of the sites of a watched survey, and enter their signals into its plan.

One list is read at a time, between two visits, by the rules for pages: robots.txt, delays, Retry-After. Lists take at
most `SHARE` of the requests of a day. A list whose host makes the watch wait longer than `LONGEST_WAIT` is read later.

Each reading is stored as events of the journal, so that a watch that resumes continues with the same signals and the
same validators: `list` is the state of one list, `signals` are the pages that it reports as modified (`found`, with
their dates) and those that it covers for the first time (`listed`).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from surveyor.crawler.change_signals import SIGNAL_SOURCES, ChangeSignals, ListState, Signal, sites_of
from surveyor.crawler.preview import PoliteClient
from surveyor.crawler.request_budget import DAY, RequestBudget
from surveyor.outcome import Event, FetchResults
from surveyor.store.validation import LAST_SECOND

if TYPE_CHECKING:
    from surveyor.crawler.revisit_plan import RevisitPlan
    from surveyor.crawler.sources.live import Wait
    from surveyor.fetch.http import Client
    from surveyor.fetch.parser import Parser
    from surveyor.fetch.politeness.hosts import Hosts
    from surveyor.web.urls import Urls

SHARE = 0.1  # of the requests of a day
LONGEST_WAIT = 60.0  # seconds
LISTED = 10_000  # pages in one event
KINDS = ("list", "signals")


class Postponed(Exception):  # no error: the list is read later
    """A host or the budget makes a reading wait too long."""

    def __init__(self, until: float) -> None:
        super().__init__(until)
        self.until = until


class Day(NamedTuple):
    """The budget of all requests of a day, and a way to record one before it is sent."""

    budget: RequestBudget
    record: Callable[[FetchResults], None]


@dataclass(slots=True)
class WatchedLists:
    """The lists of the sites of a survey."""

    sites: dict[str, ChangeSignals]
    urls: Urls
    plan: RevisitPlan
    budget: RequestBudget  # of lists alone
    found: int = 0  # signals in this process
    _fetcher: PoliteClient = field(init=False, repr=False)
    _listed: set[int] = field(default_factory=set)
    _covered: dict[str, int] = field(default_factory=dict)  # number of pages with dates at the last reading, by site
    _sources: dict[tuple[str, str], int] = field(default_factory=dict)  # number of each site and kind of list

    @classmethod
    def of(
        cls, urls: Urls, seeds: Iterable[str], feeds: Sequence[str], plan: RevisitPlan, budget: RequestBudget
    ) -> WatchedLists:
        """Return the lists of the sites of the seeds; each feed belongs to the first site."""
        sites = sites_of(list(seeds))
        made = {site: ChangeSignals(site, feeds if number == 0 else (), most=1) for number, site in enumerate(sites)}
        return cls(made, urls, plan, budget)

    def next_at(self) -> float:
        """Return when the next list is due."""
        return min((one.next_list()[1] for one in self.sites.values()), default=math.inf)

    def is_due(self, now: float) -> bool:
        """Return whether to read a list now."""
        return self.next_at() <= now and self.budget.available() > 0

    def open(self, client: Client, hosts: Hosts, wait: Wait | None, parser: Parser | None, day: Day) -> None:
        """Fetch with a client from now on, within the budget of all requests of a day."""

        def permit() -> None:
            if day.budget.available() < 1:
                raise Postponed(hosts.clock() + day.budget.seconds_left())
            day.record(FetchResults(events=[Event("requests", hosts.clock(), {"count": 1})]))

        self._fetcher = PoliteClient(client, hosts, wait=_bounded(wait, hosts), parser=parser, permit=permit)

    def unread_feeds(self) -> dict[str, str]:
        """Return the feeds named by the user that could not be read, and why."""
        return {url: why for site in self.sites.values() for url, why in site.problems.items() if url in site.feeds}

    async def read(self) -> FetchResults:
        """Read the list that is due, and return what to store."""
        fetcher = self._fetcher
        fetcher.files.clear()
        site = min(self.sites.values(), key=lambda one: one.next_list()[1])
        signals: list[Signal] = []
        before = {url: state.read_at for url, state in site.states.items()}
        try:
            signals = await site.read(fetcher, self._last_visit)
        except Postponed as postponed:
            site.postpone(postponed.until)
        finally:
            fetcher.wake_again()
        results = FetchResults(robots=list(fetcher.files))
        read = [url for url, state in site.states.items() if state.read_at > before.get(url, 0.0)]
        self.budget.spend(len(read))
        for url in read:
            state = site.states[url]
            results.events.append(Event("list", state.read_at, _stored(site.site, url, state)))
        results.events.extend(self._signals(site, signals, fetcher.hosts.clock()))
        return results

    def apply(self, event: Event) -> None:
        """Update the plan for an event of this or an earlier process; `list` has no effect on it."""
        detail, site = event.detail, self.sites.get(event.detail["site"])
        if event.kind == "list" or site is None or detail["source"] not in SIGNAL_SOURCES:
            return
        source = self._sources.setdefault((site.site, detail["source"]), len(self._sources))
        pages = [*detail["listed"], *detail["found"]]
        self._listed.update(pages)
        self.plan.schedule.listed(pages, source)
        for page, modified in zip(detail["found"], detail["modified"], strict=False):
            self.plan.schedule.signal(page, event.at)
            site.restore_date(self.urls[page], modified)

    def restore(self, events: Iterable[Event], now: float) -> None:
        """Enter the lists as they were last read; `signals` are applied in the order of the visits, not here."""
        latest = {(event.detail["site"], event.detail["url"]): event for event in events}
        for event in latest.values():
            detail, site = event.detail, self.sites.get(event.detail["site"])
            due = min(detail["due"], now + DAY)  # whatever a survey from elsewhere says
            validators = detail["etag"] or None, detail["last_modified"] or None
            if site is not None:
                state = ListState(min(event.at, now), due, detail["dated"], validators, detail["nested"])
                site.restore(detail["url"], state)

    def _signals(self, site: ChangeSignals, signals: Sequence[Signal], now: float) -> Iterable[Event]:
        """Return the events of a reading."""
        found: dict[str, list[tuple[int, float]]] = {}
        for signal in signals:
            page = self.urls.find(signal.url)
            if page is not None:
                found.setdefault(signal.source, []).append((page, signal.modified))
                self.found += 1
        listed = list[int]()
        if site.dates > self._covered.get(site.site, 0):
            self._covered[site.site] = site.dates
            reported = self._listed.union(page for some in found.values() for page, _ in some)
            known = map(self.urls.find, site.covered)
            listed = [page for page in known if page is not None and page not in reported]
        for source in found or ([SIGNAL_SOURCES[0]] if listed else []):
            pages = found.get(source, [])
            while pages or listed:
                some, modified = [page for page, _ in pages[:LISTED]], [at for _, at in pages[:LISTED]]
                detail = {"source": source, "found": some, "modified": modified, "listed": listed[:LISTED]}
                yield Event("signals", now, {"site": site.site, **detail})
                pages, listed = pages[LISTED:], listed[LISTED:]

    def _last_visit(self, url: str) -> float | None:
        page = self.urls.find(url)
        visited = None if page is None else self.plan.schedule.last_visit(page)
        return -math.inf if page is not None and visited is None else visited


def _bounded(wait: Wait | None, hosts: Hosts) -> Wait:
    """Return a way to wait that gives up when it would take too long."""

    async def bounded(event: asyncio.Event, until: float) -> None:
        if until > hosts.clock() + LONGEST_WAIT:
            raise Postponed(until)
        if wait is None:
            await asyncio.sleep(max(0.0, until - hosts.clock()))
        else:
            await wait(event, until)

    return bounded


def _stored(site: str, url: str, state: ListState) -> dict[str, Any]:
    """Return the detail of an event `list`."""
    etag, last_modified = state.validators
    texts = {"site": site, "url": url, "etag": etag or "", "last_modified": last_modified or ""}
    dated = min(max(state.dated, 0.0), float(LAST_SECOND))
    return {**texts, "due": state.due, "dated": dated, "nested": state.nested}
