"""Signals that pages have changed, from lists that sites publish: `lastmod` of sitemaps, and dates of feed entries.

Lists are fetched as politely as pages: robots.txt first, one at a time, with the crawl delay of the host. Requests
are conditional, are not sent before a list expires, and number at most `most` per reading. A nested sitemap is
fetched again only if its index gives it a new date, or none. The least recently read lists come first, so that a large
site is read over several readings. A sitemap that dates few known pages is read once a week: read more often it would
take more requests than its signals save.

A signal is an entry whose date is later than the last visit of its page and, after the first reading of the list, than
the date before. Dates more than a day in the future are
ignored. Sites date entries for many reasons (a template, the time of the build), so a signal is evidence, not proof;
whoever uses it learns how often it is right.

The state of each list can be stored (`ListState`) and restored, so that lists are not downloaded again after a restart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from surveyor.crawler.preview import PoliteClient
from surveyor.crawler.seeds import sitemaps_of_site
from surveyor.fetch.http import REDIRECTS, Fetched
from surveyor.fetch.responses import joined, judge
from surveyor.web.boundary import Failure
from surveyor.web.caching import expiry, usable_validators
from surveyor.web.sitemaps import Listing
from surveyor.web.urls import domain, host, normalise, origin

SIGNAL_SOURCES = ("sitemap", "feed")
MOST_LISTS = 1_000  # known per site
MOST_DATES = 1_000_000  # remembered per site
MOST_HOPS = 5
DAY = 86_400.0
FUTURE = DAY  # seconds that a date may be ahead of this clock
LEAST_INTERVAL = 3_600.0  # seconds between two requests for a list that does not declare when it expires
LONGEST_INTERVAL = 8 * DAY  # seconds until a list is requested again that could not be read, doubled each time
FEW = 30  # known pages with dates; a sitemap with fewer costs more requests than its signals save
RARELY = 7 * DAY  # seconds between two requests for such a sitemap
FIND_AGAIN = DAY  # seconds after which the sitemaps of a site are looked up again


class Signal(NamedTuple):
    """A source states that a page was modified."""

    url: str
    modified: float  # seconds since 1970
    source: Literal["sitemap", "feed"]


@dataclass(slots=True)
class ListState:
    """A list, as last read."""

    read_at: float = 0.0
    due: float = 0.0  # not requested before
    dated: float = 0.0  # by its index
    validators: tuple[str | None, str | None] = (None, None)
    nested: bool = False


@dataclass(slots=True)
class ChangeSignals:
    """The lists of one site; call `read` from time to time."""

    site: str  # its origin, such as https://example.org
    feeds: Sequence[str] = ()
    most: int = 20  # requests per reading
    interval: float = LEAST_INTERVAL
    few: int = FEW  # a sitemap that dates fewer known pages is read once a week
    problems: dict[str, str] = field(default_factory=dict)  # why lists could not be read, by URL
    requests: int = 0  # so far, without robots.txt
    _lists: dict[str, ListState] = field(default_factory=dict)
    _dates: dict[str, float] = field(default_factory=dict)  # of pages
    _found: float = -math.inf  # time at which its sitemaps were looked up
    _not_before: float = 0.0  # time before which nothing is requested
    _dated: int = 0  # known pages with dates in the list that is being read
    _stored: dict[str, ListState] = field(default_factory=dict)  # of lists of other domains, until they are found

    def __post_init__(self) -> None:
        """Add the feeds."""
        self._lists.update((url, ListState()) for url in map(normalise, self.feeds) if url is not None)

    @property
    def _domain(self) -> str:
        return domain(host(f"{self.site}/"))

    @property
    def states(self) -> Mapping[str, ListState]:
        """The known lists by URL."""
        return self._lists

    def next_list(self) -> tuple[str, float]:
        """Return the list to be read next and when it is due; the site itself before its sitemaps are known."""
        if self._found == -math.inf:
            return f"{self.site}/", self._not_before
        least = min(self._lists.items(), key=lambda one: (one[1].due, one[1].read_at), default=("", None))
        return least[0], math.inf if least[1] is None else max(least[1].due, self._not_before)

    def postpone(self, until: float) -> None:
        """Request nothing before a time."""
        self._not_before = until

    def restore(self, url: str, state: ListState) -> None:
        """Enter a list as it was read by an earlier process; one of another domain counts once the site names it.

        The sitemaps of the site are looked up again by each process, so that new ones are found.
        """
        if normalise(url) != url:
            return
        if domain(host(url)) != self._domain and url not in self._lists:
            self._stored[url] = state
        else:
            self._lists[url] = state

    def restore_date(self, url: str, modified: float) -> None:
        """Enter the date of a signal, so that it is not reported again."""
        self._dates[url] = max(modified, self._dates.get(url, 0.0))

    @property
    def dates(self) -> int:
        """Number of pages whose dates are known."""
        return len(self._dates)

    @property
    def covered(self) -> Iterator[str]:
        """The pages whose dates are known, so that the absence of a signal is evidence too."""
        return iter(self._dates)

    async def read(self, fetcher: PoliteClient, last_visit: Callable[[str], float | None]) -> list[Signal]:
        """Read the lists that are due; `last_visit` returns the time of the last visit to a URL.

        It is -inf for a known page that was never visited, and None for an unknown one, whose date is not remembered.
        """
        now = fetcher.hosts.clock()
        if now - self._found >= FIND_AGAIN:
            for place in await sitemaps_of_site(fetcher, self.site):
                self._lists.setdefault(place, self._stored.pop(place, ListState()))
            self._found = now
        signals: dict[str, Signal] = {}
        for _ in range(self.most):
            due = [url for url, one in self._lists.items() if one.due <= now]
            if not due:
                break
            url = min(due, key=lambda one: self._lists[one].read_at)
            listing = await self._fetch(fetcher, url, self._lists[url])
            if listing is not None:
                self._dated = 0
                for signal in self._signals(listing, url, last_visit, now):
                    known = signals.get(signal.url, signal)
                    signals[signal.url] = max(known, signal, key=lambda one: one.modified)
                if listing.kind == "sitemap" and self._dated < self.few:
                    self._lists[url].due = self._lists[url].read_at + RARELY
        return list(signals.values())

    async def _fetch(self, fetcher: PoliteClient, url: str, known: ListState) -> Listing | None:
        """Fetch a list unless it is unchanged, and decide when it is due again."""
        now = fetcher.hosts.clock()
        before, known.read_at, known.due = known.due - known.read_at, now, now + self.interval
        fetched, why = await self._ask(fetcher, url, known)
        if fetched is None:
            self.problems[url], known.due = why, now + min(max(24 * self.interval, 2 * before), LONGEST_INTERVAL)
            return None
        known.due = max(known.due, min(expiry(joined(fetched.headers), now), now + 24 * self.interval))
        if fetched.not_modified:
            known.due = now + RARELY if before >= 0.99 * RARELY else known.due
            return None
        listing = await fetcher.listing(url, fetched.body)
        if listing is None or isinstance(listing, Failure):
            self.problems[url] = listing.reason if listing is not None else "it is neither a sitemap nor a feed"
            known.due = now + 24 * self.interval
            return None
        self.problems.pop(url, None)
        known.validators = usable_validators(fetched.etag or "", fetched.last_modified or "", now)
        return listing

    async def _ask(self, fetcher: PoliteClient, url: str, known: ListState) -> tuple[Fetched | None, str]:
        for _ in range(MOST_HOPS + 1):
            if why := await fetcher.ready(url):
                return None, why
            self.requests += 1
            fetched = await fetcher.fetch(url, ("*/*",), known.validators)
            target = normalise(fetched.target) if fetched.target else None
            if fetched.status not in REDIRECTS or target is None:
                verdict = judge(fetched)
                return (fetched, "") if verdict.kind == "fetched" else (None, verdict.reason or verdict.kind)
            url = target
        return None, f"it redirects more than {MOST_HOPS} times"

    def _signals(
        self, listing: Listing, place: str, last_visit: Callable[[str], float | None], now: float
    ) -> Iterator[Signal]:
        """Yield the signals in a list; an index makes lists due."""
        if listing.kind == "index":
            self._take_index(listing, place, now)
            return
        mine = self._domain
        source: Literal["sitemap", "feed"] = "feed" if listing.kind == "feed" else "sitemap"
        for written, modified in zip(listing.pages, listing.modified, strict=False):
            url = normalise(written)
            if url is None or not 0 < modified <= now + FUTURE or domain(host(url)) != mine:
                continue
            before = self._dates.get(url)
            if before is None and len(self._dates) >= MOST_DATES:
                continue
            visited = last_visit(url)
            if visited is None:
                continue
            self._dates[url] = max(modified, before or 0.0)
            self._dated += 1
            if visited == -math.inf or (before is not None and modified <= before):
                continue
            whole_day = before is not None and modified % DAY == 0  # a date without a time: any time of that day
            if modified + (DAY if whole_day else 0.0) > visited:
                yield Signal(url, modified, source)

    def _take_index(self, listing: Listing, place: str, now: float) -> None:
        dates = listing.modified or (0.0,) * len(listing.lists)
        for written, dated in zip(listing.lists, dates, strict=True):
            url = normalise(written, place)
            if url is None or domain(host(url)) not in (domain(host(place)), self._domain):
                continue
            known = self._lists.get(url)
            if known is None and len(self._lists) < MOST_LISTS:
                self._lists[url] = ListState(nested=True, dated=dated)
            elif known is not None and known.nested and dated > 0:
                known.due = now if dated != known.dated else now + 24 * self.interval
                known.dated = dated


def sites_of(urls: Sequence[str]) -> list[str]:
    """Return the origins of URLs, each once: the sites whose lists can be read."""
    return list(dict.fromkeys(map(origin, urls)))
