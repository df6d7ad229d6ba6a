"""Sequential requests with the politeness policy of a crawl: for `try`, and for lists of seed URLs.

Hosts are looked up, robots.txt is fetched (also through redirects) and obeyed, and every delay is kept. Failures are
not retried.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from surveyor.config import Settings
from surveyor.crawler.start import http_settings, manners_of
from surveyor.fetch.http import Fetched, FetchRequest
from surveyor.fetch.parser import Parser
from surveyor.fetch.politeness.hosts import DAY, Hosts
from surveyor.fetch.robots_responses import interpreted, next_hop, rules_in
from surveyor.web.boundary import Failure, failed, guarded
from surveyor.web.robots import Robots
from surveyor.web.sitemaps import Listing, read_listing
from surveyor.web.urls import host, origin

if TYPE_CHECKING:
    from surveyor.crawler.sources.live import Wait
    from surveyor.fetch.addresses import Resolver
    from surveyor.fetch.http import Client

SHORT = 50_000  # bytes up to which a list is parsed in this process
LONG = 2.0  # waits longer than this many seconds are reported
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
    ) -> None:
        self.hosts = hosts
        self.robots: dict[str, tuple[int | None, Robots]] = {}  # by origin: HTTP status and rules
        self._client, self._say, self._wait, self._parser = client, say, wait or self._sleep, parser

    async def ready(self, url: str) -> str:
        """Look up the host, read its robots.txt and wait for its delay; return why a page may not be read, or ""."""
        hosts, number, there = self.hosts, self.hosts.number(host(url)), origin(url)
        while (step := hosts.step(number, there)) != "page":
            if step is None:
                await self._wait_for(number)
            elif step == "address":
                await self._find(number)
            else:
                await self._read_rules(number, there)
        return hosts.why_not(number, there, url)

    async def fetch(self, url: str, types: tuple[str, ...] | None = None) -> Fetched:
        """Fetch a page; call `ready` first."""
        return await self._ask(self.hosts.number(host(url)), FetchRequest(url, types=types))

    async def listing(self, url: str, body: bytes) -> Listing | Failure | None:
        """Parse a list of pages; a long one in a separate process that can be stopped."""
        if self._parser is None or len(body) <= SHORT:
            return guarded(url, read_listing, body, url)
        return await self._parser.listing(url, body)

    async def rest(self) -> None:
        """Wait until every host may be requested again: the crawl that follows does not know these requests."""
        now, every = self.hosts.clock(), [self.hosts[number] for number in range(len(self.hosts))]
        until = [min(one.ready_at, now + one.delay) if one.refused else one.ready_at for one in every]
        await self._wait_until(max(until, default=0.0), "all")

    def wishes(self) -> dict[str, float]:
        """Return the hosts with a wait that has not ended, and when it ends."""
        every = [self.hosts[number] for number in range(len(self.hosts))]
        return {one.name: one.ready_at for one in every if one.ready_at > self.hosts.clock()}

    async def _ask(self, number: int, request: FetchRequest) -> Fetched:
        self.hosts.lease(number, "page")
        try:
            try:
                fetched = await self._client.fetch(request)
            except Exception as error:
                fetched = Fetched(request.url, error="protocol", detail=failed(request.url, error).reason)
            if fetched.retry_after and (fetched.status or 0) >= 300:
                self.hosts.leave_alone(number, self.hosts.clock() + fetched.retry_after, "Retry-After")
            return fetched
        finally:
            self.hosts.answered(number)

    async def _wait_for(self, number: int) -> None:
        hosts = self.hosts
        hosts.wake()
        until = max(hosts[number].ready_at, min(hosts.next_wake, hosts.clock() + 1.0))
        await self._wait_until(until, hosts[number].name)

    async def _wait_until(self, until: float, who: str) -> None:
        if (seconds := until - self.hosts.clock()) > LONG:
            self._say(f"waiting {seconds:.0f} s before {who} may be asked again")
        await self._wait(asyncio.Event(), until)

    async def _find(self, number: int) -> None:
        self.hosts.lease(number, "address")
        find, address = getattr(self._client, "address", None), ""
        try:
            if find is not None:
                address = await find(self.hosts[number].name)
        finally:
            self.hosts.found(number, address)
            self.hosts.answered(number, asked=False)

    async def _read_rules(self, number: int, there: str) -> None:
        url, before, asked = f"{there}/robots.txt", [], number
        while True:
            answer = interpreted(await self._ask(asked, FetchRequest(url, types=("*/*",))))
            before.append(url)
            url, answer = next_hop(answer, before)
            if not url:
                break
            asked, place = self.hosts.number(host(url)), origin(url)
            while not (refused := self.hosts.refused(asked, place)):
                if (step := self.hosts.turn(asked, place)) == "robots":
                    break
                await (self._find(asked) if step == "address" else self._wait_for(asked))
            if refused:
                why = f"robots.txt of {there} lies at {self.hosts[asked].name}: {refused}"
                answer = Fetched(url, error="forbidden-address", detail=why)
                break
        status, robots = rules_in(answer)
        trouble = answer.detail if answer.error and robots.state == "unreachable" else ""
        self.robots[there] = status, robots
        self.hosts.ruled(number, there, robots, self.hosts.clock() + DAY, trouble=trouble)
        self.hosts.wait(number, self.hosts.clock() + self.hosts[number].delay)  # known from its robots.txt

    async def _sleep(self, _: asyncio.Event, until: float) -> None:
        await asyncio.sleep(max(0.0, until - self.hosts.clock()))


@asynccontextmanager
async def visiting(
    settings: Settings,
    *,
    client: Client | None = None,
    resolver: Resolver | None = None,
    hosts: Hosts | None = None,
    wait: Wait | None = None,
    say: Say = lambda _: None,
) -> AsyncIterator[PoliteClient]:
    """Open a client with these settings; long waits are reported to `say`."""
    http = http_settings(settings)
    hosts = Hosts(manners=manners_of(settings), finds=not settings.proxy) if hosts is None else hosts
    async with AsyncExitStack() as stack:
        if client is None:
            from surveyor.fetch.client import HttpClient

            client = await stack.enter_async_context(HttpClient(http, resolver=resolver, clock=hosts.clock))
        parser = Parser() if wait is None else None
        if parser is not None:
            stack.push_async_callback(parser.close)
        yield PoliteClient(client, hosts, wait=wait, say=say, parser=parser)
