"""Sequential polite requests, and the preview of one page exactly as a crawl would see it.

`PoliteClient` keeps the politeness policy of a crawl: hosts are looked up, robots.txt is fetched (also through
redirects) and obeyed, and every delay is kept. Failures are not retried. `try` and lists of seed URLs use it.

The outcome in a preview is not guessed: the code of the crawl interprets the response. URLs that may not be requested
are not requested, redirects are followed one by one, and nothing is saved.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from surveyor.config import Settings, from_arguments
from surveyor.crawler.replay import scope_of
from surveyor.crawler.seed_pages import clean_seeds
from surveyor.crawler.sources.live import REAL, Connection, Wait
from surveyor.crawler.start import allow_named_hosts, http_settings, politeness_policy
from surveyor.fetch.event_loops import run_sync
from surveyor.fetch.http import MOST_REDIRECTS, REDIRECTS, Fetched, FetchRequest, Trouble
from surveyor.fetch.parser import Parser
from surveyor.fetch.politeness.hosts import DAY, Hosts
from surveyor.fetch.politeness.policy import RARELY
from surveyor.fetch.responses import PageResponse, Reader, interpreted, joined, judge, next_hop, rules_in
from surveyor.outcome import RobotsFile, Visit
from surveyor.store.manifest import Manifest
from surveyor.web.boundary import Failure, failed, guarded
from surveyor.web.html import Page, read_page
from surveyor.web.robots import Robots
from surveyor.web.scope import IN_SCOPE, Scope
from surveyor.web.sitemaps import Listing, read_listing
from surveyor.web.urls import Urls, domain, host, normalise_all, origin

if TYPE_CHECKING:
    from surveyor.fetch.addresses import Resolver
    from surveyor.fetch.http import Client

LONG = 2.0  # waits longer than this many seconds are reported
UNREADABLE = 3_600.0  # seconds before a robots.txt that cannot be fetched is requested again, by a persistent policy;
# doubled each time, up to RARELY


@dataclass(frozen=True, slots=True)
class RobotsPreview:
    """Verdict of the robots.txt of an origin on a page."""

    url: str
    status: int | None
    state: str  # rules, absent or unreachable
    permits: bool
    why: str  # why it may not be fetched
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
    return run_sync(fetch_preview(url, from_arguments(settings), connection=Connection(client, resolver), say=say))


async def fetch_preview(
    url: str,
    settings: Settings,
    *,
    connection: Connection = REAL,
    say: Callable[[str], None] = lambda _: None,
) -> Preview:
    """Fetch one page; long waits are reported to `say`."""
    seed = clean_seeds(url)[0]
    settings, _ = allow_named_hosts(settings, {}, [seed])
    async with polite_client(settings, connection, say) as fetcher:
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
            answer = PageResponse(page, 0, fetched, at, judge(fetched))
            if answer.is_page:
                answer.parsed = guarded(url, read_page, fetched.body, url, headers=joined(fetched.headers), text=False)
            visit: Any = self._reader.visits([answer])[0]
            trouble = answer.verdict.reason if fetched.error else ""
            self._hops.append(Hop(url, fetched.status, fetched.timings.total, trouble, fetched.target))
            if visit.kind != "redirected" or fetched.status not in REDIRECTS:
                return self._read(answer, visit)
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

    def _read(self, answer: PageResponse, visit: Visit) -> Preview:
        """Return the properties of a page and its outcome in a crawl."""
        url, fetched = answer.fetched.url, answer.fetched
        page = answer.parsed if isinstance(answer.parsed, Page) else Page()  # for a failure the visit gives the reason
        directives = [name for name in ("noindex", "nofollow", "noarchive") if getattr(page, name)]
        if page.unavailable_after is not None:
            directives.append(f"unavailable_after {page.unavailable_after:%Y-%m-%d}")
        reason = f"canonical page {self._urls[visit.target]}" if visit.kind == "redirected" else visit.reason
        return self._result(
            url,
            visit.kind,
            reason,
            again=answer.verdict.again,
            content_type=joined(fetched.headers).get("content-type", ""),
            size=len(fetched.raw),
            title=page.title,
            language=page.language,
            charset=page.charset if page.links or page.title else "",
            canonical=page.canonical or "",
            directives=tuple(directives),
            links=self._links(url, page),
        )

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
        scope = describe_scope(self._scope, self._seed)
        return Preview(
            self._seed, url, tuple(self._seen.values()), tuple(self._hops), kind, reason, again, scope, **facts
        )


def describe_scope(scope: Scope, seed: str) -> str:
    """Describe what a scope admits.

    >>> describe_scope(Scope.of_seeds(["https://example.org/docs/a"]), "https://example.org/docs/a")
    'prefix: example.org/docs/ and below'
    """
    rest = seed.partition("://")[2]
    places = {
        "host": f"host: {rest.partition('/')[0]}",
        "domain": f"domain: {domain(host(seed))} and all its hosts",
        "prefix": f"prefix: {rest.partition('?')[0].rpartition('/')[0]}/ and below",
        "any": "any: anywhere",
    }
    limits = [
        f"{name} {', '.join(map(str, value))}" for name in ("include", "exclude") if (value := getattr(scope, name))
    ]
    deep = [] if scope.depth is None else [f"at most {scope.depth} links deep"]
    return "; ".join([places[scope.kind], *limits, *deep])


SHORT = 50_000  # bytes up to which a list is parsed in this process
Say = Callable[[str], None]


class PoliteClient:
    """Client for sequential polite requests; keeps track of hosts and waits between requests."""

    def __init__(
        self,
        client: Client,
        hosts: Hosts,
        *,
        wait: Wait | None = None,
        say: Say = lambda _: None,
        parser: Parser | None = None,
        permit: Callable[[], None] = lambda: None,
    ) -> None:
        """Fetch with a client; `permit` is called before each request, and may raise an exception to prevent it."""
        self.hosts, self._permit = hosts, permit
        self.robots: dict[str, tuple[int | None, Robots]] = {}  # by origin: HTTP status and rules
        self.troubles: dict[str, Trouble] = {}  # by origin: the error, if its robots.txt could not be fetched
        self.files: list[RobotsFile] = []  # every robots.txt that was fetched
        self._unread: dict[str, int] = {}  # failures in a row to fetch robots.txt, by origin
        self._woken: set[int] = set()  # hosts that became ready while this client waited
        self.requests = 0  # sent, robots.txt included
        self._client, self._say, self._wait, self._parser = client, say, wait or self._sleep, parser

    async def ready(self, url: str) -> str:
        """Look up the host, fetch its robots.txt and wait for its delay; return why a page is refused, or ""."""
        hosts, number, there = self.hosts, self.hosts.number(host(url)), origin(url)
        while (step := hosts.step(number, there)) != "page":
            if step is None:
                await self._wait_for(number)
            elif step == "address":
                await self._find(number)
            else:
                await self._read_rules(number, there)
        return hosts.refusal(number, there, url)

    async def fetch(
        self,
        url: str,
        types: tuple[str, ...] | None = None,
        validators: tuple[str | None, str | None] = (None, None),
    ) -> Fetched:
        """Fetch a page, if it was modified since the response with these validators; call `ready` first."""
        return await self._ask(self.hosts.number(host(url)), FetchRequest(url, *validators, types=types))

    async def head(self, url: str) -> Fetched:
        """Request the head of a page; call `ready` first."""
        return await self._ask(self.hosts.number(host(url)), FetchRequest(url, method="HEAD"))

    async def listing(self, url: str, body: bytes) -> Listing | Failure | None:
        """Parse a list of pages; a long one in a separate process that can be stopped."""
        if self._parser is None or len(body) <= SHORT:
            return guarded(url, read_listing, body, url)
        return await self._parser.listing(url, body)

    async def wait_for_delays(self) -> None:
        """Wait until every host may be requested again: the crawl that follows does not know these requests."""
        now, every = self.hosts.clock(), [self.hosts[number] for number in range(len(self.hosts))]
        until = [min(one.ready_at, now + one.delay) if one.excluded else one.ready_at for one in every]
        await self._wait_until(max(until, default=0.0), "any host")

    def pending_waits(self) -> dict[str, float]:
        """Return the hosts with a wait that has not ended, and when it ends."""
        every = [self.hosts[number] for number in range(len(self.hosts))]
        return {one.name: one.ready_at for one in every if one.ready_at > self.hosts.clock()}

    def wake_again(self) -> None:
        """Wake the hosts again that became ready while this client waited, for another user of the same hosts."""
        for number in self._woken:
            self.hosts.wait(number, self.hosts.clock())
        self._woken.clear()

    async def _ask(self, number: int, request: FetchRequest) -> Fetched:
        self._permit()
        self.hosts.lease(number, "page")
        self.requests += 1
        try:
            try:
                fetched = await self._client.fetch(request)
            except Exception as error:
                fetched = Fetched(request.url, error="protocol", detail=failed(request.url, error).reason)
            if fetched.retry_after and (fetched.status or 0) >= 300:
                self.hosts.back_off(number, self.hosts.clock() + fetched.retry_after, "Retry-After")
            return fetched
        finally:
            self.hosts.end_request(number)

    async def _wait_for(self, number: int) -> None:
        hosts = self.hosts
        self._woken.update(hosts.wake())
        until = max(hosts[number].ready_at, min(hosts.next_wake, hosts.clock() + 1.0))
        await self._wait_until(until, hosts[number].name)

    async def _wait_until(self, until: float, who: str) -> None:
        if (seconds := until - self.hosts.clock()) > LONG:
            self._say(f"waiting {seconds:.0f} s before the next request to {who}")
        await self._wait(asyncio.Event(), until)

    async def _find(self, number: int) -> None:
        self.hosts.lease(number, "address")
        find, address = getattr(self._client, "address", None), ""
        try:
            if find is not None:
                address = await find(self.hosts[number].name)
        finally:
            self.hosts.set_address(number, address)
            self.hosts.end_request(number, asked=False)

    async def _read_rules(self, number: int, there: str) -> None:
        url, before, asked = f"{there}/robots.txt", [], number
        while True:
            answer = interpreted(await self._ask(asked, FetchRequest(url, types=("*/*",))))
            before.append(url)
            url, answer = next_hop(answer, before)
            if not url:
                break
            asked, place = self.hosts.number(host(url)), origin(url)
            while not (refused := self.hosts.exclusion(asked, place)):
                if (step := self.hosts.robots_step(asked, place)) == "robots":
                    break
                await (self._find(asked) if step == "address" else self._wait_for(asked))
            if refused:
                why = f"robots.txt of {there} is at {self.hosts[asked].name}: {refused}"
                answer = Fetched(url, error="forbidden-address", detail=why)
                break
        status, robots = rules_in(answer)
        if answer.error:
            self.troubles[there] = answer.error
        now, trouble = self.hosts.clock(), answer.detail if answer.error and robots.state == "unreachable" else ""
        if robots.state == "unreachable" and self.hosts.policy.persistent:
            failures = self._unread[there] = self._unread.get(there, 0) + 1
            until = now + min(UNREADABLE * 2.0 ** min(failures - 1, 20), RARELY)
            self.hosts.robots_failed(number, there, until, counts=False, error=trouble or f"http {status}")
            return
        self._unread.pop(there, None)
        self.robots[there] = status, robots
        self.files.append(RobotsFile(there, now, now + DAY, status or 0, answer.body))
        self.hosts.set_robots(number, there, robots, now + DAY, error=trouble)
        self.hosts.wait(number, now + self.hosts[number].delay)  # known from its robots.txt

    async def _sleep(self, _: asyncio.Event, until: float) -> None:
        await asyncio.sleep(max(0.0, until - self.hosts.clock()))


@asynccontextmanager
async def polite_client(
    settings: Settings, connection: Connection = REAL, say: Say = lambda _: None
) -> AsyncIterator[PoliteClient]:
    """Open a client with these settings; long waits are reported to `say`."""
    http = http_settings(settings)
    hosts, client, wait = connection.hosts, connection.client, connection.wait
    if hosts is None:  # an empty table is false
        hosts = Hosts(policy=politeness_policy(settings), resolves=not settings.proxy)
    async with AsyncExitStack() as stack:
        if client is None:
            from surveyor.fetch.client import HttpClient

            client = await stack.enter_async_context(HttpClient(http, resolver=connection.resolver, clock=hosts.clock))
        parser = Parser() if wait is None else None
        if parser is not None:
            stack.push_async_callback(parser.close)
        yield PoliteClient(client, hosts, wait=wait, say=say, parser=parser)
