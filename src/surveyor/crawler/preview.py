"""Fetch one page exactly as a crawl would: robots.txt first, crawl delay kept, redirects one by one; nothing is saved.

The outcome is not guessed: the code of the crawl reads the response. URLs that may not be requested are not requested,
and failures are not retried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from surveyor.config import Settings
from surveyor.crawler.replay import scope_of
from surveyor.crawler.single_fetch import PoliteClient, visiting
from surveyor.crawler.start import clean_seeds, named
from surveyor.fetch.http import MOST_REDIRECTS, REDIRECTS, Fetched, run_sync
from surveyor.fetch.politeness.hosts import Hosts
from surveyor.fetch.responses import Answer, Reader, judge
from surveyor.outcome import Visit
from surveyor.store.manifest import Manifest
from surveyor.web.boundary import Failure, guarded
from surveyor.web.html import Page, read_page
from surveyor.web.scope import IN_SCOPE, Scope
from surveyor.web.urls import Urls, domain, host, normalise_all, origin

if TYPE_CHECKING:
    from surveyor.crawler.sources.live import Wait
    from surveyor.fetch.addresses import Resolver
    from surveyor.fetch.http import Client

ROBOTS_HOPS = 5  # redirects of robots.txt, as in a crawl
LONG = 2.0  # waits longer than this many seconds are reported


@dataclass(frozen=True, slots=True)
class RobotsPreview:
    """Verdict of the robots.txt of an origin on a page."""

    url: str
    status: int | None
    state: str  # rules, absent or unreachable
    permits: bool
    why: str  # why it may not be read
    rule: str  # the matching line
    crawl_delay: float | None
    delay: float  # seconds between two requests of a crawl to this host


@dataclass(frozen=True, slots=True)
class Hop:
    """One request for a page, and its result."""

    url: str
    status: int | None
    seconds: float
    trouble: str = ""
    target: str | None = None  # where it redirects to


@dataclass(frozen=True, slots=True)
class LinkPreview:
    """A link of the page: in scope, out of scope or nofollow, and why it is not followed."""

    url: str
    where: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Preview:
    """One page as a crawl would see it."""

    url: str  # as requested
    final: str  # after redirects
    robots: tuple[RobotsPreview, ...]  # one per origin requested
    hops: tuple[Hop, ...]  # requests for pages; none if the first was not allowed
    kind: str  # outcome in a crawl: fetched, gone, blocked or redirected
    reason: str
    again: bool  # whether a crawl would retry it
    scope: str  # scope of a crawl from here
    content_type: str = ""
    size: int = 0  # bytes transferred
    title: str = ""
    language: str = ""
    charset: str = ""
    canonical: str = ""
    directives: tuple[str, ...] = ()  # noindex, nofollow, noarchive, unavailable_after …
    links: tuple[LinkPreview, ...] = ()

    @property
    def fetched(self) -> bool:
        """Whether the page was received."""
        return bool(self.hops) and not self.hops[-1].trouble and 200 <= (self.hops[-1].status or 0) < 300

    def counts(self) -> dict[str, int]:
        """Count the links: in scope, nofollow, and out of scope by reason."""
        found: dict[str, int] = {}
        for link in self.links:
            name = f"{link.where}: {link.why}" if link.where == "out of scope" else link.where
            found[name] = found.get(name, 0) + 1
        return dict(sorted(found.items(), key=lambda entry: -entry[1]))

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as a dict."""
        return {**asdict(self), "fetched": self.fetched, "link_counts": self.counts()}


def preview(
    url: str,
    *,
    resolver: Resolver | None = None,
    client: Client | None = None,
    say: Callable[[str], None] = lambda _: None,
    **settings: Any,
) -> Preview:
    """Fetch one page without a crawl; settings are those of `crawl` (contact, scope, delay, allow, …)."""
    return run_sync(fetch_preview(url, Settings(**settings), client=client, resolver=resolver, say=say))


async def fetch_preview(
    url: str,
    settings: Settings,
    *,
    client: Client | None = None,
    resolver: Resolver | None = None,
    hosts: Hosts | None = None,
    wait: Wait | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Preview:
    """Fetch one page; long waits are reported to `say`."""
    seed = clean_seeds(url)[0]
    settings, _ = named(settings, {}, [seed])
    async with visiting(settings, client=client, resolver=resolver, hosts=hosts, wait=wait, say=say) as fetcher:
        return await _PreviewFetch(fetcher, settings, seed).run()


class _PreviewFetch:
    """Fetches one page and its redirect targets."""

    def __init__(self, fetcher: PoliteClient, settings: Settings, seed: str) -> None:
        self._fetcher, self._settings, self._seed = fetcher, settings, seed
        options = {name: getattr(settings, name) for name in ("scope", "include", "exclude", "depth")}
        self._scope = scope_of(Manifest(seeds=(seed,), rng=0, settings=options))
        self._urls = Urls()
        seeds = self._urls.ids([seed]).tolist()
        self._reader = Reader(self._urls, self._scope, seeds, follow_nofollow=settings.follow_nofollow)
        self._seen: dict[str, RobotsPreview] = {}
        self._hops: list[Hop] = []

    async def run(self) -> Preview:
        url, clock = self._seed, self._fetcher.hosts.clock
        for _ in range(MOST_REDIRECTS + 1):
            why = await self._fetcher.ready(url)
            self._see(url, why)
            if why:
                return self._result(url, "blocked", why)
            at = clock()
            fetched = await self._fetcher.fetch(url)
            page = int(self._urls.ids([url])[0])
            visit: Any = self._reader.visits([Answer(page, 0, fetched, at, judge(fetched))])[0]
            trouble = judge(fetched).reason if fetched.error else ""
            self._hops.append(Hop(url, fetched.status, fetched.timings.total, trouble, fetched.target))
            if visit.kind != "redirected" or fetched.status not in REDIRECTS:
                return self._read(url, fetched, visit)
            url = self._urls[visit.target]
        return self._result(url, "blocked", f"more than {MOST_REDIRECTS} redirects")

    def _see(self, url: str, why: str) -> None:
        """Record the verdict of robots.txt on a page."""
        there, hosts = origin(url), self._fetcher.hosts
        if there not in self._fetcher.robots:  # a host that must not be requested
            return
        status, robots = self._fetcher.robots[there]
        rule, delay = robots.rule_for(url), hosts[hosts.number(host(url))].delay
        line = "" if rule is None else f"line {rule.line}, {rule}"
        self._seen[there] = RobotsPreview(
            f"{there}/robots.txt", status, robots.state, not why, why, line, robots.crawl_delay, delay
        )

    def _read(self, url: str, fetched: Fetched, visit: Visit) -> Preview:
        """Return the properties of a page and its outcome in a crawl."""
        headers = _joined(fetched)
        kind, page = headers.get("content-type", ""), Page()
        if 200 <= (fetched.status or 0) < 300 and not fetched.skipped:
            parsed = guarded(url, read_page, fetched.body, url, headers=headers, text=False)
            page = Page() if isinstance(parsed, Failure) else parsed  # the visit gives the reason
        directives = [name for name in ("noindex", "nofollow", "noarchive") if getattr(page, name)]
        if page.unavailable_after is not None:
            directives.append(f"unavailable_after {page.unavailable_after:%Y-%m-%d}")
        reason = f"stands for {self._urls[visit.target]}" if visit.kind == "redirected" else visit.reason
        return self._result(
            url, visit.kind, reason, again=judge(fetched).again, content_type=kind, size=len(fetched.raw),
            title=page.title, language=page.language, charset=page.charset if page.links or page.title else "",
            canonical=page.canonical or "", directives=tuple(directives), links=self._links(url, page),
        )  # fmt: skip

    def _links(self, url: str, page: Page) -> tuple[LinkPreview, ...]:
        found: dict[str, LinkPreview] = {}
        for spelt, link in zip(normalise_all([link.url for link in page.links]), page.links, strict=True):
            if spelt is None or spelt in found or spelt == url:
                continue
            why = self._scope.why_not(spelt, 1)
            if not link.follow and not self._settings.follow_nofollow:
                found[spelt] = LinkPreview(spelt, "nofollow", why or "")
            else:
                found[spelt] = LinkPreview(spelt, "out of scope" if why else IN_SCOPE, why or "")
        return tuple(found.values())

    def _result(self, url: str, kind: str, reason: str, *, again: bool = False, **facts: Any) -> Preview:
        scope = scope_in_words(self._scope, self._seed)
        return Preview(
            self._seed, url, tuple(self._seen.values()), tuple(self._hops), kind, reason, again, scope, **facts
        )


def scope_in_words(scope: Scope, seed: str) -> str:
    """Describe what a scope admits.

    >>> scope_in_words(Scope.of_seeds(["https://example.org/docs/a"]), "https://example.org/docs/a")
    'prefix: example.org/docs/ and what lies below'
    """
    rest = seed.partition("://")[2]
    places = {
        "host": f"host: {rest.partition('/')[0]}",
        "domain": f"domain: {domain(host(seed))} and all its hosts",
        "prefix": f"prefix: {rest.partition('?')[0].rpartition('/')[0]}/ and what lies below",
        "any": "any: anywhere",
    }
    limits = [
        f"{name} {', '.join(map(str, value))}" for name in ("include", "exclude") if (value := getattr(scope, name))
    ]
    deep = [] if scope.depth is None else [f"at most {scope.depth} links deep"]
    return "; ".join([places[scope.kind], *limits, *deep])


def _joined(fetched: Fetched) -> Mapping[str, str]:
    """Return headers by name; repeated headers are joined by newlines."""
    joined: dict[str, str] = {}
    for name, value in fetched.headers:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        joined[key] = f"{joined[key]}\n{text}" if key in joined else text
    return joined
