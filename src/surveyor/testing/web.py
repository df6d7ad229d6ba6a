"""The embedded web: a real HTTP server on this machine that plays a web of many hosts, good and bad.

A crawler that finds all hosts at 127.0.0.1 (`web.resolver`) meets what it would meet outside: slow and broken hosts,
redirects, robots.txt files, traps, pages that change. But the truth is known (`web.truth()`), every request is in a log
that proves how polite the crawler was, and the same settings give the same web.

    async with EmbeddedWeb() as web:            # in the loop of the crawler
        ... await crawl(web.seeds, resolver=web.resolver) ...
    with running() as web:                      # in a thread with its own loop
        ...

Pages are written when first asked for and kept as bytes, up to `KEPT` of them. What passes with time depends on the
clock or on how often a URL was asked for; `reset` forgets both, and the log. URLs carry the port, so give one in the
settings to get the same bytes from another server.

    >>> from surveyor.testing.web_settings import WebSettings
    >>> with running(WebSettings.plain()) as web:
    ...     web.resolver["www.site0.example"], web.truth().exact, len(web.log)
    ('127.0.0.1', True, 0)
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import math
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from html import escape
from types import TracebackType
from typing import NamedTuple

from surveyor.testing.web_html import Sheet
from surveyor.testing.web_http import Asked, Connection, Reply, head_of
from surveyor.testing.web_pages import WebPages
from surveyor.testing.web_settings import WebSettings
from surveyor.testing.web_truth import PerfectCrawler, Truth, find_truth

LOOPBACK = "127.0.0.1"
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)  # when version 0 was written; each further one is a day younger
KEPT = 1 << 28  # bytes of answers
LOGGED = 1 << 20  # requests that the log holds
TYPES = {"html": "text/html; charset=utf-8", "pdf": "text/html", "png": "image/png"}


class Request(NamedTuple):
    """A request that was made; status 0 means that the connection was dropped."""

    time: float  # of the server's clock, in seconds
    host: str
    path: str  # with its query
    status: int
    agent: str  # the whole User-Agent


class LoopbackResolver(Mapping[str, str]):
    """Knows the hosts of one web, all at the same address."""

    def __init__(self, hosts: Sequence[str]) -> None:
        self._hosts = dict.fromkeys(hosts, LOOPBACK)

    def __getitem__(self, host: str) -> str:
        return self._hosts[host.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._hosts)

    def __len__(self) -> int:
        return len(self._hosts)

    async def resolve(self, host: str, port: int = 0) -> list[str]:  # noqa: ARG002  # what resolvers are asked
        """Return the addresses of a host; other names do not exist."""
        if host.lower() not in self._hosts:
            raise socket.gaierror(socket.EAI_NONAME, f"no host {host}")
        return [LOOPBACK]


class _Kept(NamedTuple):
    etag: str
    modified: datetime
    head: bytes
    body: bytes


class EmbeddedWeb:
    """A web that is served while the context lasts."""

    def __init__(self, settings: WebSettings | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings or WebSettings()
        self.clock = clock
        self.pages = WebPages(self.settings, self.settings.port or 80)
        self.plan = self.pages.plan
        self.hosts: tuple[str, ...] = self.plan.hosts
        self.resolver = LoopbackResolver(self.hosts)
        self.version = 0  # of the pages that change; `advance` makes the next one
        self.log: deque[Request] = deque(maxlen=LOGGED)
        self._visits: Counter[str] = Counter()
        self._failed: set[str] = set()  # on flaky hosts
        self._last: dict[str, float] = {}  # when a strict host last answered
        self._known = frozenset(self.hosts)
        self._kept: dict[tuple[str, int, bool], _Kept] = {}
        self._size = 0
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """Where the server listens, and what URLs carry."""
        return self.pages.port

    @property
    def seeds(self) -> list[str]:
        """URLs to start from."""
        return [self.pages.url(self.plan.places[page]) for page in self.plan.seeds]

    @property
    def urls(self) -> list[str]:
        """All URLs but those of the calendar and of sessions, which have no end or too many."""
        return [self.pages.url(place) for place in self.pages.places]

    def truth(
        self,
        seeds: Sequence[str] | None = None,
        crawler: PerfectCrawler | None = None,
        *,
        damping: float = 0.85,
        depth: int | None = None,
    ) -> Truth:
        """Return what a perfect crawler would see of this version of the web; see `web_truth`."""
        given = self.seeds if seeds is None else seeds
        return find_truth(self.pages, given, crawler, version=self.version, damping=damping, depth=depth)

    def advance(self) -> None:
        """Let the pages that change have other links from now on."""
        self.version += 1

    def reset(self) -> None:
        """Forget what was asked and when, and go back to the first version."""
        self.version = 0
        self.log.clear()
        self._visits.clear()
        self._failed.clear()
        self._last.clear()

    async def __aenter__(self) -> EmbeddedWeb:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self.answer, self._connections), LOOPBACK, self.settings.port, backlog=1024
        )
        self.pages.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
            for connection in list(self._connections):
                connection.drop()
            await self._server.wait_closed()
            await asyncio.sleep(0)  # lets the connections notice

    def answer(self, asked: Asked) -> Reply:
        """Answer a request and note it."""
        now = self.clock()
        reply = self._answer(asked, now)
        self.log.append(Request(now, asked.host, asked.target, reply.status, asked.headers.get("user-agent", "")))
        return reply

    def _answer(self, asked: Asked, now: float) -> Reply:
        host, target = asked.host, asked.target
        if host not in self._known:
            return self._stranger(host)
        role, place = self.plan.role(host), host + target
        if role == "reset":
            return Reply(0)
        if role == "down":
            return _short(503 if self.plan.luck("down", place) < 0.5 else 500)
        if role == "strict":
            wait = self.settings.pace - (now - self._last.get(host, -math.inf))
            if wait > 0:
                return _short(429, ("Retry-After", str(math.ceil(wait))))
            self._last[host] = now
        delay = self.settings.slow_seconds if role == "slow" else 0.0
        if target == "/robots.txt" or target.startswith("/rules/"):
            return self._robots(host, target)._replace(delay=delay)
        if role == "flaky" and place not in self._failed and (luck := self.plan.luck("flaky", place)) < 1 / 3:
            self._failed.add(place)
            return _short(503, ("Retry-After", "1")) if luck < 1 / 6 else _short(500)
        visit = self._visits[place]
        self._visits[place] += 1
        if (place in self.plan.dying and visit) or (place in self.plan.returning and not visit):
            return _short(404)
        return self._page(place, asked)._replace(delay=delay)

    def _robots(self, host: str, target: str) -> Reply:
        if target == "/robots.txt":
            file = self.plan.robots_of(host)
            if file.status == 302:
                return _short(302, ("Location", self.pages.url(file.place)))
        else:
            file = self.plan.robots_of(target.removeprefix("/rules/").removesuffix(".txt"))
            if file.place != host + target:
                return _short(404)
        if file.status in (404, 503):
            return _short(file.status)
        body = file.text().encode()
        return Reply(200, head_of(200, len(body), ("Content-Type", "text/plain; charset=utf-8")), body)

    def _page(self, place: str, asked: Asked) -> Reply:
        host = asked.host
        zipped = host in self.plan.zipped and "gzip" in asked.headers.get("accept-encoding", "")
        key = place, self.version if place.partition("?")[0] in self.plan.changing else 0, zipped
        kept = self._kept.get(key)
        if kept is None:
            sheet = self.pages.sheet(place, self.version)
            if sheet.moved_to:
                return _short(sheet.status, ("Location", self.pages.url(sheet.moved_to)))
            if sheet.status != 200:
                return _short(sheet.status)
            kept = self._write(sheet, zipped=zipped)
            self._size += len(kept.head) + len(kept.body)
            if self._size > KEPT:
                self._kept.clear()
                self._size = len(kept.head) + len(kept.body)
            self._kept[key] = kept
        if _unchanged(asked.headers, kept):
            return Reply(304, head_of(304, None, ("ETag", kept.etag), ("Last-Modified", _date(kept.modified))))
        return Reply(200, kept.head, kept.body)

    def _write(self, sheet: Sheet, *, zipped: bool) -> _Kept:
        body = self.pages.body(sheet)
        etag = f'W/"{hashlib.blake2b(body, digest_size=8).hexdigest()}"'
        modified = BEGINNING + timedelta(days=sheet.version)
        if zipped:
            body = gzip.compress(body, compresslevel=1, mtime=0)
        head = head_of(
            200,
            len(body),
            ("Content-Type", TYPES[sheet.media]),
            ("Content-Language", sheet.language if sheet.media == "html" else ""),
            ("Content-Encoding", "gzip" if zipped else ""),
            ("Vary", "Accept-Encoding" if sheet.place.partition("/")[0] in self.plan.zipped else ""),
            ("ETag", etag),
            ("Last-Modified", _date(modified)),
        )
        return _Kept(etag, modified, head, body)

    def _stranger(self, host: str) -> Reply:
        """Answer somebody who asks for this machine itself with the list of hosts."""
        if host not in (LOOPBACK, "localhost"):
            return _short(421)
        items = "".join(f"<li>{escape(self.pages.url(name + '/'))}</li>" for name in self.hosts)
        text = f"<p>An embedded web: use {LOOPBACK}:{self.port} as a proxy to see these hosts.</p><ul>{items}</ul>"
        body = f"<!DOCTYPE html><title>An embedded web</title>{text}".encode()
        return Reply(200, head_of(200, len(body), ("Content-Type", TYPES["html"])), body)


def _short(status: int, *headers: tuple[str, str]) -> Reply:
    body = f"<!DOCTYPE html><title>{status}</title><h1>{status}</h1>\n".encode()
    return Reply(status, head_of(status, len(body), ("Content-Type", TYPES["html"]), *headers), body)


def _date(moment: datetime) -> str:
    return format_datetime(moment, usegmt=True)


def _unchanged(headers: Mapping[str, str], kept: _Kept) -> bool:
    """Say whether the client has what it asks for (RFC 9110: the tag counts before the date)."""
    if tags := headers.get("if-none-match"):
        return kept.etag in [tag.strip() for tag in tags.split(",")] or tags == "*"
    if since := headers.get("if-modified-since"):
        with suppress(ValueError):
            return parsedate_to_datetime(since) >= kept.modified
    return False


@contextmanager
def running(
    settings: WebSettings | None = None, *, clock: Callable[[], float] = time.monotonic
) -> Iterator[EmbeddedWeb]:
    """Serve a web from a thread while the context lasts."""
    web = EmbeddedWeb(settings, clock=clock)
    loop, stop, ready = asyncio.new_event_loop(), asyncio.Event(), threading.Event()
    failures: list[BaseException] = []

    async def work() -> None:
        try:
            async with web:
                ready.set()
                await stop.wait()
        except OSError as error:
            failures.append(error)
        finally:
            ready.set()

    def live() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(work())

    thread = threading.Thread(target=live, name="embedded web", daemon=True)
    thread.start()
    ready.wait()
    try:
        if failures:
            raise failures[0]
        yield web
    finally:
        with suppress(RuntimeError):  # the loop ended by itself
            loop.call_soon_threadsafe(stop.set)
        thread.join()


def serve(
    settings: WebSettings | None = None,
    *,
    ready: Callable[[EmbeddedWeb], None] = lambda _web: None,
    seconds: float = math.inf,
) -> None:
    """Serve a web until interrupted, or so many seconds; `ready` is told when it listens."""

    async def work() -> None:
        async with EmbeddedWeb(settings) as web:
            ready(web)
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.Event().wait(), None if math.isinf(seconds) else seconds)

    with suppress(KeyboardInterrupt):
        asyncio.run(work())
