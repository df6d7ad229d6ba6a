"""Signals that pages have changed, from lists that sites publish: `lastmod` of sitemaps, and dates of feed entries.

Lists are fetched as politely as pages: robots.txt first, one at a time, with the crawl delay of the host. Requests
are conditional, are not sent before a list expires, and number at most `most` per reading. A nested sitemap is
fetched again only if its index gives it a new date, or none. The least recently read lists come first, so that a large
site is read over several readings.

A signal is an entry whose date is new: on the first reading of a list, later than the last visit of its page;
afterwards, later than the date before. Dates more than a day in the future are
ignored. Sites date entries for many reasons (a template, the time of the build), so a signal is evidence, not proof;
whoever uses it learns how often it is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
FUTURE = 86_400.0  # seconds that a date may be ahead of this clock
LEAST_INTERVAL = 3_600.0  # seconds between two requests for a list that does not declare when it expires


class Signal(NamedTuple):
    """A source states that a page was modified."""

    url: str
    modified: float  # seconds since 1970
    source: Literal["sitemap", "feed"]


@dataclass(slots=True)
class _List:
    """A list, as last read."""

    read_at: float = 0.0
    due: float = 0.0  # not requested before
    dated: float = 0.0  # by its index
    validators: tuple[str | None, str | None] = (None, None)
    nested: bool = False
    kind: str = ""


@dataclass(slots=True)
class ChangeSignals:
    """The lists of one site; call `read` from time to time."""

    site: str  # its origin, such as https://example.org
    feeds: Sequence[str] = ()
    most: int = 20  # requests per reading
    interval: float = LEAST_INTERVAL
    problems: dict[str, str] = field(default_factory=dict)  # why lists could not be read, by URL
    requests: int = 0  # so far, without robots.txt
    _lists: dict[str, _List] = field(default_factory=dict)
    _dates: dict[str, float] = field(default_factory=dict)  # of pages
    _found: bool = False

    @property
    def _domain(self) -> str:
        return domain(host(f"{self.site}/"))

    @property
    def covered(self) -> Iterator[str]:
        """The pages whose dates are known, so that the absence of a signal is evidence too."""
        return iter(self._dates)

    async def read(self, fetcher: PoliteClient, last_visit: Callable[[str], float | None]) -> list[Signal]:
        """Read the lists that are due; `last_visit` returns the time of the last visit to a URL, None if unknown."""
        now = fetcher.hosts.clock()
        if not self._found:
            self._found = True
            for place in [*await sitemaps_of_site(fetcher, self.site), *map(normalise, self.feeds)]:
                if place is not None:
                    self._lists.setdefault(place, _List())
        signals: dict[str, Signal] = {}
        for _ in range(self.most):
            due = [url for url, one in self._lists.items() if one.due <= now]
            if not due:
                break
            url = min(due, key=lambda one: self._lists[one].read_at)
            listing = await self._fetch(fetcher, url, self._lists[url])
            if listing is not None:
                for signal in self._signals(listing, url, last_visit, now):
                    known = signals.get(signal.url, signal)
                    signals[signal.url] = max(known, signal, key=lambda one: one.modified)
        return list(signals.values())

    async def _fetch(self, fetcher: PoliteClient, url: str, known: _List) -> Listing | None:
        """Fetch a list unless it is unchanged, and decide when it is due again."""
        now = fetcher.hosts.clock()
        known.read_at, known.due = now, now + self.interval
        fetched, why = await self._ask(fetcher, url, known)
        if fetched is None:
            self.problems[url] = why
            return None
        known.due = max(known.due, min(expiry(joined(fetched.headers), now), now + 24 * self.interval))
        if fetched.not_modified:
            return None
        listing = await fetcher.listing(url, fetched.body)
        if listing is None or isinstance(listing, Failure):
            self.problems[url] = listing.reason if listing is not None else "it is neither a sitemap nor a feed"
            known.due = now + 24 * self.interval
            return None
        self.problems.pop(url, None)
        known.validators = usable_validators(fetched.etag or "", fetched.last_modified or "", now)
        known.kind = listing.kind
        return listing

    async def _ask(self, fetcher: PoliteClient, url: str, known: _List) -> tuple[Fetched | None, str]:
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
            self._dates[url] = max(modified, before or 0.0)
            visited = last_visit(url)
            if modified > before if before is not None else visited is not None and modified > visited:
                yield Signal(url, modified, source)

    def _take_index(self, listing: Listing, place: str, now: float) -> None:
        dates = listing.modified or (0.0,) * len(listing.lists)
        for written, dated in zip(listing.lists, dates, strict=True):
            url = normalise(written, place)
            if url is None or domain(host(url)) not in (domain(host(place)), self._domain):
                continue
            known = self._lists.get(url)
            if known is None and len(self._lists) < MOST_LISTS:
                self._lists[url] = _List(nested=True, dated=dated)
            elif known is not None and known.nested and dated > 0:
                known.due = now if dated != known.dated else now + 24 * self.interval
                known.dated = dated


def sites_of(urls: Sequence[str]) -> list[str]:
    """Return the origins of URLs, each once: the sites whose lists can be read."""
    return list(dict.fromkeys(map(origin, urls)))
