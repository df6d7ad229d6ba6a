"""Embedded web: an HTTP server on loopback for many hosts, well-behaved and hostile, with known ground truth.

    async with EmbeddedWeb() as web:            # in the loop of the crawler
        ... await crawl(web.seeds, resolver=web.resolver) ...
    with running() as web:                      # in a thread with its own loop
        ...

Responses are generated on first request and cached up to `CACHE_BYTES`. State that depends on time or on earlier
requests is cleared by `reset`, together with the log. URLs contain the port, so fix `WebSettings.port` to get the same
bytes from two servers.

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
import struct
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from html import escape
from http import HTTPStatus
from types import TracebackType
from typing import NamedTuple

from surveyor.testing.web_content import Content, WebPages
from surveyor.testing.web_plan import WebSettings
from surveyor.testing.web_truth import PerfectCrawler, Truth, find_truth

LOOPBACK = "127.0.0.1"
FIRST_MODIFIED = datetime(2026, 1, 1, tzinfo=UTC)  # of version 0; each later version is a day younger
CACHE_BYTES = 1 << 28
LOG_SIZE = 1 << 20  # requests
TYPES = {"html": "text/html; charset=utf-8", "pdf": "text/html", "png": "image/png"}
MAX_REQUEST = 1 << 16  # bytes
PHRASES = {status.value: status.phrase for status in HTTPStatus}


class HttpRequest(NamedTuple):
    """Parsed HTTP request."""

    method: str
    host: str
    target: str  # path and query
    headers: dict[str, str]  # names in lower case


class HttpResponse(NamedTuple):
    """HTTP response as bytes; status 0 drops the connection."""

    status: int
    head: bytes = b""
    body: bytes = b""
    delay: float = 0.0  # seconds before it is sent


def head_of(status: int, length: int | None, *headers: tuple[str, str]) -> bytes:
    """Return the status line and headers of a response."""
    lines = [f"HTTP/1.1 {status} {PHRASES[status]}", *(f"{name}: {value}" for name, value in headers if value)]
    lines += [] if length is None else [f"Content-Length: {length}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class Connection(asyncio.Protocol):
    """Connection of one client; responses are sent in order.

    Minimal HTTP/1.1: GET and HEAD, keep-alive, pipelining, absolute URLs in the request line (so it can be used as a
    proxy). It can delay responses, drop connections and send unusual headers, and it is cheap, because it shares the
    process of the crawler under test. It is not a server for the internet.
    """

    def __init__(self, answer: Callable[[HttpRequest], HttpResponse], connections: set[Connection]) -> None:
        self._answer, self._connections = answer, connections
        self._buffer, self._closing = b"", False
        self._delayed: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  # what asyncio servers create
        self._transport = transport
        self._connections.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        """Cancel a delayed response."""
        self._connections.discard(self)
        if self._delayed:
            self._delayed.cancel()

    def drop(self) -> None:
        """Abort: the client sees a connection reset."""
        raw: socket.socket = self._transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Answer complete requests."""
        self._buffer += data
        self._process()
        if len(self._buffer) > MAX_REQUEST and self._delayed is None:
            self._transport.close()

    def _process(self) -> None:
        while self._delayed is None and not self._transport.is_closing():
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head, self._buffer = self._buffer[:end], self._buffer[end + 4 :]
            request = _parse(head)
            if request is None or request.method not in ("GET", "HEAD"):
                self._closing = True
                self._send(HttpResponse(405, head_of(405 if request else 400, 0, ("Connection", "close"))), body=False)
                return
            self._closing = request.headers.get("connection", "").lower() == "close"
            response, body = self._answer(request), request.method == "GET"
            if response.delay:
                loop = asyncio.get_running_loop()
                self._delayed = loop.call_later(response.delay, lambda: self._send_delayed(response, body=body))  # noqa: B023
            else:
                self._send(response, body=body)

    def _send_delayed(self, response: HttpResponse, *, body: bool) -> None:
        self._delayed = None
        self._send(response, body=body)
        self._process()

    def _send(self, response: HttpResponse, *, body: bool) -> None:
        if response.status == 0:
            self.drop()
            return
        self._transport.write(response.head + response.body if body else response.head)
        if self._closing:
            self._transport.close()


def _parse(head: bytes) -> HttpRequest | None:
    """Parse a request; None if it is malformed."""
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return None
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    if words[2] == "HTTP/1.0":
        headers.setdefault("connection", "close")
    host, target = headers.get("host", ""), words[1]
    if target.startswith("http://"):
        host, _, path = target[7:].partition("/")
        target = "/" + path
    return HttpRequest(words[0], host.partition(":")[0].lower(), target, headers)


class Request(NamedTuple):
    """Entry of the request log; status 0 means that the connection was dropped."""

    time: float  # seconds of the server's clock
    host: str
    path: str  # with query
    status: int
    agent: str  # User-Agent header


class LoopbackResolver(Mapping[str, str]):
    """Resolver of the hosts of one web, all at 127.0.0.1."""

    def __init__(self, hosts: Sequence[str]) -> None:
        self._hosts = dict.fromkeys(hosts, LOOPBACK)

    def __getitem__(self, host: str) -> str:
        return self._hosts[host.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._hosts)

    def __len__(self) -> int:
        return len(self._hosts)

    async def resolve(self, host: str, port: int = 0) -> list[str]:  # noqa: ARG002  # protocol of resolvers
        """Return the addresses of a host; raise gaierror for other names."""
        if host.lower() not in self._hosts:
            raise socket.gaierror(socket.EAI_NONAME, f"no host {host}")
        return [LOOPBACK]


class _Cached(NamedTuple):
    etag: str
    modified: datetime
    head: bytes
    body: bytes


class EmbeddedWeb:
    """HTTP server on loopback for a web of many hosts with known ground truth.

    Use it as an async context manager in the loop of the crawler, or `running` from another thread. A client that
    resolves all hosts to 127.0.0.1 (`resolver`) meets slow and broken hosts, redirects, robots.txt files, traps and
    changing pages. `truth()` is the ground truth, and `log` has every request, to check politeness. The same settings
    give the same web.
    """

    def __init__(self, settings: WebSettings | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings or WebSettings()
        self.clock = clock
        self.pages = WebPages(self.settings, self.settings.port or 80)
        self.plan = self.pages.plan
        self.hosts: tuple[str, ...] = self.plan.hosts
        self.resolver = LoopbackResolver(self.hosts)
        self.version = 0  # of changing pages; `advance` increments it
        self.log: deque[Request] = deque(maxlen=LOG_SIZE)
        self._visits: Counter[str] = Counter()
        self._failed: set[str] = set()  # pages of flaky hosts that failed once
        self._last: dict[str, float] = {}  # time of the last response of strict hosts
        self._known = frozenset(self.hosts)
        self._cache: dict[tuple[str, int, bool], _Cached] = {}
        self._cache_size = 0
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """Port of the server and of all URLs."""
        return self.pages.port

    @property
    def seeds(self) -> list[str]:
        """Seed URLs."""
        return [self.pages.url(self.plan.places[page]) for page in self.plan.seeds]

    @property
    def urls(self) -> list[str]:
        """All URLs except those of the calendar (endless) and of sessions (too many)."""
        return [self.pages.url(place) for place in self.pages.places]

    def truth(
        self,
        seeds: Sequence[str] | None = None,
        crawler: PerfectCrawler | None = None,
        *,
        damping: float = 0.85,
        depth: int | None = None,
    ) -> Truth:
        """Return the ground truth of this version of the web: what a perfect crawler would fetch (see `web_truth`)."""
        return find_truth(
            self.pages,
            self.seeds if seeds is None else seeds,
            crawler,
            version=self.version,
            damping=damping,
            depth=depth,
        )

    def advance(self) -> None:
        """Switch to the next version: changing pages get other links."""
        self.version += 1

    def reset(self) -> None:
        """Clear the log and all per-client state, and return to version 0."""
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
            await asyncio.sleep(0)  # lets connections close

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Respond to a request and log it."""
        now = self.clock()
        response = self._answer(request, now)
        self.log.append(
            Request(now, request.host, request.target, response.status, request.headers.get("user-agent", ""))
        )
        return response

    def _answer(self, request: HttpRequest, now: float) -> HttpResponse:
        host, target = request.host, request.target
        if host not in self._known:
            return self._host_list(host)
        role, place = self.plan.role(host), host + target
        if role == "reset":
            return HttpResponse(0)
        if role == "down":
            return _error_page(503 if self.plan.uniform("down", place) < 0.5 else 500)
        if role == "strict":
            wait = self.settings.pace - (now - self._last.get(host, -math.inf))
            if wait > 0:
                return _error_page(429, ("Retry-After", str(math.ceil(wait))))
            self._last[host] = now
        delay = self.settings.slow_seconds if role == "slow" else 0.0
        if target == "/robots.txt" or target.startswith("/rules/"):
            return self._robots(host, target)._replace(delay=delay)
        if role == "flaky" and place not in self._failed and (draw := self.plan.uniform("flaky", place)) < 1 / 3:
            self._failed.add(place)
            return _error_page(503, ("Retry-After", "1")) if draw < 1 / 6 else _error_page(500)
        visit = self._visits[place]
        self._visits[place] += 1
        if (place in self.plan.dying and visit) or (place in self.plan.returning and not visit):
            return _error_page(404)
        return self._page(place, request)._replace(delay=delay)

    def _robots(self, host: str, target: str) -> HttpResponse:
        if target == "/robots.txt":
            file = self.plan.robots_of(host)
            if file.status == 302:
                return _error_page(302, ("Location", self.pages.url(file.place)))
        else:
            file = self.plan.robots_of(target.removeprefix("/rules/").removesuffix(".txt"))
            if file.place != host + target:
                return _error_page(404)
        if file.status in (404, 503):
            return _error_page(file.status)
        body = file.text().encode()
        return HttpResponse(200, head_of(200, len(body), ("Content-Type", "text/plain; charset=utf-8")), body)

    def _page(self, place: str, request: HttpRequest) -> HttpResponse:
        host = request.host
        zipped = host in self.plan.zipped and "gzip" in request.headers.get("accept-encoding", "")
        key = place, self.version if place.partition("?")[0] in self.plan.changing else 0, zipped
        cached = self._cache.get(key)
        if cached is None:
            content = self.pages.content(place, self.version)
            if content.redirect:
                return _error_page(content.status, ("Location", self.pages.url(content.redirect)))
            if content.status != 200:
                return _error_page(content.status)
            cached = self._write(content, zipped=zipped)
            self._cache_size += len(cached.head) + len(cached.body)
            if self._cache_size > CACHE_BYTES:
                self._cache.clear()
                self._cache_size = len(cached.head) + len(cached.body)
            self._cache[key] = cached
        if _unchanged(request.headers, cached):
            return HttpResponse(
                304, head_of(304, None, ("ETag", cached.etag), ("Last-Modified", _date(cached.modified)))
            )
        return HttpResponse(200, cached.head, cached.body)

    def _write(self, content: Content, *, zipped: bool) -> _Cached:
        body = self.pages.body(content)
        etag = f'W/"{hashlib.blake2b(body, digest_size=8).hexdigest()}"'
        modified = FIRST_MODIFIED + timedelta(days=content.version)
        if zipped:
            body = gzip.compress(body, compresslevel=1, mtime=0)
        head = head_of(
            200,
            len(body),
            ("Content-Type", TYPES[content.media]),
            ("Content-Language", content.language if content.media == "html" else ""),
            ("Content-Encoding", "gzip" if zipped else ""),
            ("Vary", "Accept-Encoding" if content.place.partition("/")[0] in self.plan.zipped else ""),
            ("ETag", etag),
            ("Last-Modified", _date(modified)),
        )
        return _Cached(etag, modified, head, body)

    def _host_list(self, host: str) -> HttpResponse:
        """Respond to requests for the machine itself with the list of hosts."""
        if host not in (LOOPBACK, "localhost"):
            return _error_page(421)
        items = "".join(f"<li>{escape(self.pages.url(name + '/'))}</li>" for name in self.hosts)
        text = f"<p>An embedded web: use {LOOPBACK}:{self.port} as a proxy to see these hosts.</p><ul>{items}</ul>"
        body = f"<!DOCTYPE html><title>An embedded web</title>{text}".encode()
        return HttpResponse(200, head_of(200, len(body), ("Content-Type", TYPES["html"])), body)


def _error_page(status: int, *headers: tuple[str, str]) -> HttpResponse:
    body = f"<!DOCTYPE html><title>{status}</title><h1>{status}</h1>\n".encode()
    return HttpResponse(status, head_of(status, len(body), ("Content-Type", TYPES["html"]), *headers), body)


def _date(moment: datetime) -> str:
    return format_datetime(moment, usegmt=True)


def _unchanged(headers: Mapping[str, str], cached: _Cached) -> bool:
    """Return whether the client has the current version (RFC 9110: the entity tag takes precedence over the date)."""
    if tags := headers.get("if-none-match"):
        return cached.etag in [tag.strip() for tag in tags.split(",")] or tags == "*"
    if since := headers.get("if-modified-since"):
        with suppress(ValueError):
            return parsedate_to_datetime(since) >= cached.modified
    return False


@contextmanager
def running(
    settings: WebSettings | None = None, *, clock: Callable[[], float] = time.monotonic
) -> Iterator[EmbeddedWeb]:
    """Serve a web from a thread while the context is open."""
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

    def run_loop() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(work())

    thread = threading.Thread(target=run_loop, name="embedded web", daemon=True)
    thread.start()
    ready.wait()
    try:
        if failures:
            raise failures[0]
        yield web
    finally:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(stop.set)
        thread.join()


def serve(
    settings: WebSettings | None = None,
    *,
    ready: Callable[[EmbeddedWeb], None] = lambda _web: None,
    seconds: float = math.inf,
) -> None:
    """Serve a web until interrupted or for `seconds`; call `ready` when it listens."""

    async def work() -> None:
        async with EmbeddedWeb(settings) as web:
            ready(web)
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.Event().wait(), None if math.isinf(seconds) else seconds)

    with suppress(KeyboardInterrupt):
        asyncio.run(work())
