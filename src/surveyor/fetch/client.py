"""Fetch pages with aiohttp: persistent connections, checked addresses, limits on size and time.

There are three timeouts: for the connection (lookup, TCP and TLS), for the headers, and for the page as a whole. Time
spent waiting for a free connection counts towards none of them.

The addresses of a host are resolved and checked before aiohttp is called (`addresses.AddressBook`). aiohttp's resolver
returns only those addresses, and every new socket is checked against them again, so that neither a second lookup nor a
path around the resolver can connect to another address. With a proxy, the proxy connects: hosts are refused if they are
refused IP addresses, local names, or resolve locally to a refused address.

Bodies are decoded here, incrementally, because a few kilobytes can decode to gigabytes: the output of every decoder is
limited. A request is sent again only if a reused connection turns out to be closed.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import ipaddress
import os
import socket
import ssl
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import AddrInfoType, Connection
from yarl import URL

from surveyor.fetch.addresses import AddressBook, Found, Place, Resolver, SystemResolver, host_key, locate
from surveyor.fetch.encodings import TooLarge, Unreadable, decoder_of
from surveyor.fetch.http import (
    REDIRECTS,
    Fetched,
    FetchRequest,
    HttpSettings,
    Timings,
    Trouble,
    accepts,
    is_sendable,
    media_type,
    retry_after,
    sent_by,
)

RACES = 3  # attempts on reused connections that the server had closed
OFFLINE = {errno.ENETDOWN, errno.EMFILE, errno.ENFILE}
UNREACHABLE = {errno.ENETUNREACH, errno.EADDRNOTAVAIL}
RESET = {errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED}


class HttpClient:
    """Fetches pages over HTTP and HTTPS; use as `async with HttpClient(settings) as client`."""

    def __init__(
        self,
        settings: HttpSettings,
        *,
        resolver: Resolver | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Configure the client; dates in Retry-After are compared with `clock`."""
        self._settings, self._clock = settings, clock
        self._resolver = resolver or SystemResolver()
        self._book = AddressBook(
            self._resolver,
            allow=settings.allow,
            ttl=settings.dns_ttl,
            negative_ttl=settings.dns_negative_ttl,
        )
        self._auth = {host_key(host): _basic(*who) for host, who in settings.auth.items()}
        self._proxy = locate(settings.proxy) if settings.proxy else None
        self._places = asyncio.Semaphore(settings.connections)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> HttpClient:
        settings = self._settings
        context = ssl.create_default_context()
        if settings.ca_file is not None:
            context.load_verify_locations(settings.ca_file)
        connector = aiohttp.TCPConnector(
            limit=0,  # limited by `_places`
            use_dns_cache=False,
            resolver=_Pinned(),
            socket_factory=_checked_socket,
            keepalive_timeout=settings.keepalive,
            ssl=context,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers={**settings.headers, **sent_by(settings)},
            response_class=_Reply,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            auto_decompress=False,
            max_line_size=settings.max_header,
            max_field_size=settings.max_header,
        )
        self._session._retry_connection = False  # it would retry at once, even if the connection was new
        return self

    async def __aexit__(self, *_: object) -> None:
        self._book.close()
        if isinstance(self._resolver, SystemResolver):
            self._resolver.close()
        if self._session is not None:
            await self._session.close()

    async def address(self, host: str) -> str:
        """Return the first address of a host; empty if there is none, or if a proxy resolves it."""
        found = Found() if self._proxy else await self._book.find(host, 80)
        return found.addresses[0] if found.addresses else ""

    async def fetch(self, request: FetchRequest) -> Fetched:
        """Fetch one page; failures are returned, not raised."""
        place = locate(request.url)
        if place is None:
            return Fetched(request.url, error="protocol", detail=f"{request.url!r} is not a URL of http or https")
        async with self._places:
            for sent in range(1, RACES + 1):  # noqa: B007  # used below
                attempt = _Attempt(self._settings)
                token = ATTEMPT.set(attempt)
                try:
                    fetched = await self._try(place, request, attempt)
                finally:
                    ATTEMPT.reset(token)
                if fetched.error != "reset" or not attempt.is_reused:
                    break
        return fetched if sent == 1 else replace(fetched, requests=sent)

    async def _try(self, place: Place, request: FetchRequest, attempt: _Attempt) -> Fetched:
        error: Trouble = ""
        detail = ""
        try:
            async with asyncio.timeout(None) as timer:
                attempt.start(timer)
                found = await self._find(place)
                error, detail = found.error, found.detail
                if not error:
                    attempt.addresses = found.addresses
                    await self._ask(place, request, attempt)
        except TimeoutError:
            error, detail = attempt.lateness()
        except (aiohttp.ClientError, OSError, Unreadable) as problem:
            error, detail = _explain(problem, attempt)
        finally:
            attempt.stop()
        return self._answer(place, request, attempt, error, detail)

    async def _find(self, place: Place) -> Found:
        if self._proxy is None:
            return await self._book.find(place.host, place.port)
        judged = await self._book.judge_behind_proxy(place.host, place.port)
        return judged if judged.error else await self._book.find_any(self._proxy.host, self._proxy.port)

    async def _ask(self, place: Place, request: FetchRequest, attempt: _Attempt) -> None:
        if self._session is None:
            raise RuntimeError("a client is used inside `async with`")
        known = {"If-None-Match": request.etag, "If-Modified-Since": request.last_modified}
        headers = {**request.headers, **{name: value for name, value in known.items() if value and is_sendable(value)}}
        if auth := self._auth.get(f"{place.host}:{place.port}") or self._auth.get(place.host):
            headers.setdefault("Authorization", auth)
        try:
            url = URL(place.url, encoded=True)
        except ValueError as error:
            raise aiohttp.InvalidURL(place.url) from error
        proxy = self._settings.proxy or None
        method = request.method
        async with self._session.request(method, url, headers=headers, allow_redirects=False, proxy=proxy) as reply:
            attempt.answered(reply)
            kind = attempt.header(b"content-type")
            if method == "HEAD":
                return
            if reply.status == 304 or accepts(request.types or self._settings.types, kind):
                await self._read(reply, attempt)
            else:
                attempt.skipped = media_type(kind)  # an unread body closes the connection

    async def _read(self, reply: aiohttp.ClientResponse, attempt: _Attempt) -> None:
        """Read and decode a body; pieces received before an error are kept."""
        most = self._settings.max_bytes
        announced = attempt.header(b"content-length")
        if announced.isascii() and announced.isdigit() and int(announced[:18]) > most:
            raise TooLarge(f"the body has {announced} bytes, more than {most:,}")
        decoder = decoder_of(attempt.header(b"content-encoding"))
        attempt.is_encoded = decoder is not None
        room, decoded = most, self._settings.max_decoded
        async for chunk in reply.content.iter_any():
            attempt.raw.append(chunk[:room])
            if decoder is not None and room > 0:
                piece = decoder.feed(attempt.raw[-1], decoded)
                decoded -= len(piece)
                attempt.decoded.append(piece[: len(piece) + min(0, decoded)])
                if decoded < 0:
                    raise TooLarge(f"the body decodes to more than {self._settings.max_decoded:,} bytes")
            room -= len(chunk)
            if room < 0:
                raise TooLarge(f"the body has more than {most:,} bytes")
        if decoder is not None:
            decoder.finish()

    def _answer(self, place: Place, request: FetchRequest, attempt: _Attempt, error: Trouble, detail: str) -> Fetched:
        ip, raw, reply = "" if self._proxy else attempt.ip, b"".join(attempt.raw), attempt.reply
        if reply is None:
            return Fetched(place.url, ip=ip, timings=attempt.timings(), error=error, detail=detail)
        target = None
        if reply.status in REDIRECTS:
            location = attempt.header(b"location")
            there = locate(location, place.url) if location else None
            target = there.url if there else None
            if target is None and not error:
                error, detail = "protocol", f"{place.url} redirects to no URL of http or https: {location[:200]!r}"
        wait, etag, modified = (attempt.header(name) for name in (b"retry-after", b"etag", b"last-modified"))
        return Fetched(
            place.url,
            status=reply.status,
            reason=reply.reason or "",
            version=f"{reply.version.major}.{reply.version.minor}" if reply.version else "",
            headers=reply.raw_headers,
            body=b"".join(attempt.decoded) if attempt.is_encoded else raw,
            raw=raw,
            ip=ip,
            target=target,
            timings=attempt.timings(),
            error=error,
            detail=detail,
            skipped=attempt.skipped,
            retry_after=retry_after(wait, self._clock()) if wait else None,
            etag=etag if etag and is_sendable(etag) else None,
            last_modified=modified if modified and is_sendable(modified) else None,
            not_modified=reply.status == 304 and bool(request.etag or request.last_modified),
            certified_until=attempt.certified_until() if request.method == "HEAD" else None,
        )


class _Attempt:
    """The state of one fetch: its deadline, and the data received so far."""

    def __init__(self, settings: HttpSettings) -> None:
        self._loop = asyncio.get_running_loop()
        self._settings, self._clock = settings, self._loop.time
        self._began = self._deadline = self._clock()
        self._connected: float | None = None
        self._answered: float | None = None
        self._timer: asyncio.Timeout | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self.addresses: tuple[str, ...] = ()  # those checked for this fetch
        self.is_opened = False  # a new connection was attempted
        self.reply: aiohttp.ClientResponse | None = None
        self._headers: dict[bytes, bytes] = {}
        self.ip = self.skipped = ""
        self.tls: ssl.SSLObject | None = None
        self.raw: list[bytes] = []
        self.decoded: list[bytes] = []
        self.is_encoded = False

    @property
    def is_reused(self) -> bool:
        """Whether the request was sent on a reused connection and got no response."""
        return self._connected is not None and self.reply is None and not self.is_opened

    def start(self, timer: asyncio.Timeout) -> None:
        """Start the connection timeout; `timer` interrupts the fetch when it expires."""
        self._timer = timer
        self._wait(self._began + self._settings.connect)

    def stop(self) -> None:
        """Cancel the timeout."""
        if self._alarm is not None:
            self._alarm.cancel()

    def _wait(self, deadline: float) -> None:
        """Set the deadline. A later one keeps the current timer: most fetches end before it fires."""
        self._deadline = min(deadline, self._began + self._settings.page)
        if self._alarm is None or self._deadline < self._alarm.when():
            self.stop()
            self._alarm = self._loop.call_at(self._deadline, self._ring)

    def _ring(self) -> None:
        if self._clock() < self._deadline:
            self._alarm = self._loop.call_at(self._deadline, self._ring)
        elif self._timer is not None:
            self._timer.reschedule(self._deadline)

    def connected(self, transport: asyncio.Transport | None) -> None:
        """Record that the connection is ready, and start the timeout for the headers."""
        self._connected = now = self._clock()
        peer = transport.get_extra_info("peername") if transport else None
        self.ip = str(peer[0]) if peer else ""
        self.tls = transport.get_extra_info("ssl_object") if transport else None
        self._wait(now + self._settings.first_byte)

    def answered(self, reply: aiohttp.ClientResponse) -> None:
        """Record that the headers were received."""
        self.reply, self._answered = reply, self._clock()
        self._headers = {name.lower(): text for name, text in reply.raw_headers}
        self._wait(self._began + self._settings.page)

    def header(self, name: bytes) -> str:
        """Return the value of a header, the last one if it is repeated; empty if there is none."""
        value = self._headers.get(name, b"")
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.decode("latin-1")

    def lateness(self) -> tuple[Trouble, str]:
        """Return the timeout that expired, and its text."""
        limits = self._settings
        if self._answered is not None or self._deadline == self._began + limits.page:
            return "timeout-page", f"the page was not there after {limits.page:g} seconds"
        if self._connected is not None:
            return "timeout-first-byte", f"no answer within {limits.first_byte:g} seconds of the connection"
        if not self.addresses:
            return "dns", f"the host was not found within {limits.connect:g} seconds"
        return "timeout-connect", f"no connection within {limits.connect:g} seconds"

    def certified_until(self) -> float | None:
        """Return the end of the validity of the certificate of the host."""
        until = None if self.tls is None or self._settings.proxy else (self.tls.getpeercert() or {}).get("notAfter")
        return float(ssl.cert_time_to_seconds(until)) if isinstance(until, str) else None

    def timings(self) -> Timings:
        """Return the timings so far."""
        connect, first = ((at - self._began) if at is not None else None for at in (self._connected, self._answered))
        return Timings(connect, first, self._clock() - self._began)


ATTEMPT: ContextVar[_Attempt] = ContextVar("ATTEMPT")  # the fetch that a connection is opened for


class _Reply(aiohttp.ClientResponse):
    """A response that records its connection: a short response releases it before it can be read."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        if (attempt := ATTEMPT.get(None)) is not None:
            attempt.connected(connection.transport)
        return await super().start(connection)


class _Pinned(AbstractResolver):
    """A resolver that returns the addresses checked for the current fetch."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST)
            for address in ATTEMPT.get().addresses
        ]

    async def close(self) -> None:
        pass


def _checked_socket(info: AddrInfoType) -> socket.socket:
    """Create a socket for an address that was checked for the current fetch; raise for any other."""
    family, kind, protocol, _, (address, *_) = info
    attempt = ATTEMPT.get(None)
    judged = map(ipaddress.ip_address, attempt.addresses) if attempt else ()
    if attempt is None or ipaddress.ip_address(address) not in judged:
        raise PermissionError(errno.EACCES, f"{address} was not judged for this fetch")
    attempt.is_opened = True
    return socket.socket(family, kind, protocol)


def _explain(problem: Exception, attempt: _Attempt) -> tuple[Trouble, str]:
    """Map an exception of aiohttp, the system or a decoder to a `Trouble` and its text."""
    detail = " ".join(str(problem).split())[:300] or type(problem).__name__
    match problem:
        case Unreadable():
            return problem.error, detail
        case aiohttp.ClientSSLError() | ssl.SSLError():
            return "tls", detail
        case aiohttp.ClientProxyConnectionError():
            return "offline", f"the proxy cannot be reached: {detail}"
        case aiohttp.ClientHttpProxyError():
            return "refused", f"the proxy answered {problem.status}: {detail}"
        case aiohttp.ClientConnectorError():
            why = f"cannot connect to {problem.host}:{problem.port}: {_system_text(problem.os_error, detail)}"
            return _unconnected(problem.os_error.errno, attempt.addresses), why
        case aiohttp.ClientPayloadError():
            is_cut = "Not enough data" in detail or "not completed" in detail
            return ("reset", f"the body was cut off: {detail}") if is_cut else ("protocol", detail)
        case aiohttp.ClientResponseError() | aiohttp.InvalidURL():
            return "protocol", detail
        case aiohttp.ServerDisconnectedError():
            return "reset", "the connection was closed without an answer"
        case OSError():
            return "reset", _system_text(problem, detail)
        case _:
            return "reset", detail


def _system_text(problem: OSError, detail: str) -> str:
    """Return the message of a system error without its number, such as `Connection refused`."""
    if problem.errno and str(problem.strerror).startswith("Connect call failed"):  # asyncio replaces the message
        return os.strerror(problem.errno)
    return problem.strerror or detail


def _unconnected(code: int | None, addresses: tuple[str, ...]) -> Trouble:
    """Return why no connection could be made. An IPv6-only host may be unreachable while we are online."""
    if code == errno.EACCES:
        return "forbidden-address"
    if code in RESET:
        return "reset"
    if code == errno.ETIMEDOUT:
        return "timeout-connect"
    if code in OFFLINE or (code in UNREACHABLE and any("." in address for address in addresses)):
        return "offline"
    return "refused"


def _basic(name: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"
