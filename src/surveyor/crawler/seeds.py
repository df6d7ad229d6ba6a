"""Seed URLs from lists: files, stdin, and lists that sites publish (sitemaps, sitemap indexes, feeds).

Lists on the web are fetched as politely as pages: robots.txt first, one at a time, with the crawl delay of the host.
A list of a site may contribute only pages of its own registrable domain, as its user trusts that site alone. The pages
in the sitemaps of a site are known in advance, but get no weight: a site does not rank its own pages.

A text list may have the weight of a page in a second column, after white space or a comma (`seed_pages.py`).
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from surveyor.config import Settings, from_arguments
from surveyor.crawler.preview import PoliteClient, Say, polite_client
from surveyor.crawler.seed_pages import read_lines
from surveyor.crawler.sources.live import REAL, Connection
from surveyor.errors import InputError, NothingFetched
from surveyor.fetch.event_loops import run_sync
from surveyor.fetch.http import REDIRECTS
from surveyor.fetch.responses import judge
from surveyor.web.boundary import Failure, guarded
from surveyor.web.sitemaps import Kind, Listing, read_listing
from surveyor.web.urls import domain, host, normalise, origin

if TYPE_CHECKING:
    from surveyor.fetch.addresses import Resolver
    from surveyor.fetch.http import Client
    from surveyor.store.journal import Journal

MOST_LISTS = 1_000  # per site, or per index including nested ones
SITEMAP = "sitemap.xml"  # of a site whose robots.txt names none
MOST_HOPS = 5
SITEMAPS, MOST_UNREAD = "sitemaps", 100  # event that names sitemaps that could not be read, and how many at most
NO_LIST = "it is neither a sitemap nor a feed nor a list of URLs"
HTML, IS_HTML = f"{NO_LIST}: an HTML page", re.compile(rb"\s*<(!doctype\s+)?html\b", re.IGNORECASE)
NO_SITEMAP = ("http 404", "http 410", HTML, "robots")  # reasons why a sitemap that no robots.txt names is not there
ABOUT = "pass a file or URL of a sitemap, a feed, or text with one URL per line, and its weight; - is stdin"


class ListLimits(NamedTuple):
    """Limits of reading lists on the web; no list is requested beyond either of them."""

    requests: float = math.inf  # robots.txt included
    seconds: float = math.inf


NO_LIMITS = ListLimits()


@dataclass(slots=True)
class SeedLists:
    """URLs read from lists."""

    urls: dict[str, float | None] = field(default_factory=dict)  # with their weights; None if there is none
    kinds: set[Kind] = field(default_factory=set)
    foreign: int = 0  # pages of other domains in lists on the web
    requests: int = 0  # sent, robots.txt included
    unread: int = 0  # known lists that were not requested because of a limit
    failed: dict[str, str] = field(default_factory=dict)  # lists of sites that could not be read, and why
    waits: dict[str, float] = field(default_factory=dict)  # hosts that asked for a wait, and its end


def read_seeds(
    places: str | Sequence[str],
    *,
    sitemaps_of: Sequence[str] = (),
    resolver: Resolver | None = None,
    client: Client | None = None,
    say: Say = lambda _: None,
    **settings: Any,
) -> dict[str, float]:
    """Return the pages in lists (files or URLs) with their weights, as `crawl` takes them.

    The pages in the sitemaps of the hosts of `sitemaps_of` have weight 0: they are known in advance, and not trusted.
    Settings are those of `crawl`: contact, delay, allow, …
    """
    given = [places] if isinstance(places, str) else list(places)
    connection = Connection(client, resolver)
    work = gather_seeds(given, from_arguments(settings), sitemaps_of=sitemaps_of, connection=connection, say=say)
    return {url: 1.0 if weight is None else weight for url, weight in run_sync(work).urls.items()}


async def gather_seeds(
    places: Sequence[str],
    settings: Settings,
    *,
    sitemaps_of: Sequence[str] = (),
    connection: Connection = REAL,
    say: Say = lambda _: None,
    limits: ListLimits = NO_LIMITS,
) -> SeedLists:
    """Read lists; only lists on the web need a contact."""
    found, ahead = SeedLists(), [place for place in places if "://" in place]
    for place in (one for one in places if one not in ahead):
        listing = read_listing(_file(place))
        if listing is None:
            raise InputError(f"{place} names no pages", hint=ABOUT)
        _take(found, listing, "", place)
        ahead += listing.lists
    if ahead or sitemaps_of:
        async with polite_client(settings, connection, say) as fetcher:
            end = fetcher.hosts.clock() + limits.seconds

            def may_ask() -> bool:
                return fetcher.requests < limits.requests and fetcher.hosts.clock() < end

            for place in ahead:
                await _read(fetcher, found, [place], say, may_ask, must=place in places)
            for site in dict.fromkeys(map(origin, sitemaps_of)):
                named = await named_sitemaps(fetcher, site) if may_ask() else []
                lists = named or [f"{site}/{SITEMAP}"]
                await _read(fetcher, found, lists, say, may_ask, site=site, is_named=bool(named))
            await fetcher.wait_for_delays()
            found.waits, found.requests = fetcher.pending_waits(), fetcher.requests
    if found.foreign:
        say(f"{found.foreign:,} pages of other domains are named too; they are skipped")
    return found


def unread_sitemaps(journal: Journal) -> dict[str, str]:
    """Return the sitemaps of a survey that could not be read when they were last asked for, and why."""
    stored = [*journal.events(SITEMAPS)]
    unread: Mapping[str, str] = stored[-1].detail["unread"] if stored else {}
    return {url: why for url, why in unread.items() if normalise(url) == url}


def _file(place: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if place == "-" else Path(place).read_bytes()
    except OSError as error:
        raise InputError(f"{place}: {error.strerror}", hint=ABOUT) from error


def _take(found: SeedLists, listing: Listing, place: str, name: str = "", *, trusted: bool = True) -> None:
    """Add the pages of a list as written; of a list on the web, normalised and only of its own domain.

    Pages of lists that are not trusted have weight 0, unless they were in another list.
    """
    found.kinds.add(listing.kind)
    pages: Sequence[tuple[str, float | None]] = [(url, None) for url in listing.pages]
    if listing.kind == "text" and trusted:
        try:
            pages = read_lines(listing.pages)
        except ValueError as error:
            hint = "write one URL per line, with a weight after it if needed, and a space in a URL as %20"
            raise InputError(f"{name or place}, {error}", hint=hint) from None
    for url, weight in pages:
        clean = normalise(url) if place else url
        if clean is None:
            continue
        if place and domain(host(clean)) != domain(host(place)):
            found.foreign += 1
        else:
            found.urls[clean] = weight if trusted else found.urls.get(clean, 0.0)


async def sitemaps_of_site(fetcher: PoliteClient, site: str) -> list[str]:
    """Return the URLs of the sitemaps of a site: those in its robots.txt, or /sitemap.xml."""
    return await named_sitemaps(fetcher, site) or [f"{site}/{SITEMAP}"]


async def named_sitemaps(fetcher: PoliteClient, site: str) -> list[str]:
    """Return the URLs of the sitemaps that the robots.txt of a site names."""
    await fetcher.ready(f"{site}/")
    rules = fetcher.hosts[fetcher.hosts.number(host(f"{site}/"))].rules.get(site)
    robots = None if rules is None else rules.robots
    found = [] if robots is None else guarded(f"{site}/robots.txt", lambda: robots.sitemaps)
    named = [] if isinstance(found, Failure) else found
    clean = [normalise(place, f"{site}/") for place in named]
    return [place for place in clean if place is not None]


async def _read(
    fetcher: PoliteClient,
    found: SeedLists,
    places: list[str],
    say: Say,
    may_ask: Callable[[], bool],
    *,
    must: bool = False,
    site: str = "",
    is_named: bool = True,
) -> None:
    """Read lists on the web and those nested in them, while `may_ask` allows another request.

    With `must`, failing to read the first raises an error. A list that is not named, but guessed, may be missing. The
    lists of a site may contribute pages of its domain wherever they are hosted.
    """
    clean = {place: normalise(place) for place in places}
    for place, url in clean.items():
        if url is None:
            raise InputError(f"{place!r} is not a URL", hint=ABOUT)
    named = list(dict.fromkeys(filter(None, clean.values())))
    ahead = named[:MOST_LISTS]
    found.unread += len(named) - len(ahead)
    first, seen = ahead[:1], set(ahead)
    home = f"{site}/" if site else "".join(first)
    while ahead and may_ask():
        url = ahead.pop(0)
        listing, why = await _ask(fetcher, url)
        if listing is None and must and [url] == first:
            raise NothingFetched(f"{url}: {why}", hint=f"check it in a browser; {ABOUT}")
        if listing is None:
            is_missing = not is_named and why.startswith(NO_SITEMAP)
            say(f"{site} has no sitemap" if is_missing else f"! {url}: {why}; skipped")
            if site and not is_missing:
                found.failed[url] = why
            continue
        say(f"{url}: {len(listing.pages) or len(listing.lists):,} {'pages' if listing.pages else 'lists'}")
        _take(found, listing, home, url, trusted=not site)
        below = [new for one in listing.lists if (new := normalise(one, url)) and new not in seen]
        domains = {domain(host(url)), domain(host(home))}
        below = [one for one in dict.fromkeys(below) if domain(host(one)) in domains]
        left = max(0, MOST_LISTS - len(seen))
        found.unread += len(below[left:])
        seen |= set(below[:left])
        ahead[:0] = below[:left]
    found.unread += len(ahead)


async def _ask(fetcher: PoliteClient, url: str) -> tuple[Listing | None, str]:
    """Return the list at a URL, or the reason it could not be read."""
    for _ in range(MOST_HOPS + 1):
        if why := await fetcher.ready(url):
            return None, why
        fetched = await fetcher.fetch(url, ("*/*",))
        target = normalise(fetched.target) if fetched.target else None
        if fetched.status in REDIRECTS and target is not None:
            url = target
            continue
        verdict = judge(fetched)
        if verdict.kind != "fetched":
            return None, verdict.reason or verdict.kind
        listing = await fetcher.listing(url, fetched.body)
        if isinstance(listing, Failure):
            return None, f"it {listing.reason}"
        if listing is None:
            return None, HTML if IS_HTML.match(fetched.body[:1000]) else NO_LIST
        return listing, ""
    return None, f"it redirects more than {MOST_HOPS} times"
