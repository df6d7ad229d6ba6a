"""Fetch pages with aiohttp: connections kept open, every address judged, nothing larger or slower than asked for.

Three clocks run, one after the other: until a connection stands (look-up, TCP and TLS), until the headers are there,
and for the page as a whole. Waiting for a free connection counts for none of them.

The addresses of a host are found and judged before aiohttp is asked (`addresses.AddressBook`). aiohttp then gets just
those from its resolver, and every socket is checked against them once more when it is made, so neither a second
look-up nor a way around the resolver leads anywhere else. Behind a proxy it is the proxy that connects: refused here
are hosts that are addresses, local by name, or that resolve here to an address that is refused.

Bodies are decoded here, piece by piece, because a few kilobytes can decode to gigabytes: no decoder is let to produce
more than there is room for. A request goes out twice only where a connection from before turns out to be closed.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import ipaddress
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

RACES = 3  # tries with connections that the other side had closed by the time we used them
OFFLINE = {errno.ENETDOWN, errno.EMFILE, errno.ENFILE}
UNREACHABLE = {errno.ENETUNREACH, errno.EADDRNOTAVAIL}
RESET = {errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED}


class HttpClient:
    """Fetches pages over HTTP and HTTPS; used as `async with HttpClient(settings) as client`."""

    def __init__(
        self,
        settings: HttpSettings,
        *,
        resolver: Resolver | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Prepare to ask; `clock` is what dates in Retry-After are compared with."""
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
            limit=0,  # ours is in `_places`
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
        self._session._retry_connection = False  # it would ask again at once, even where nothing was reused
        return self

    async def __aexit__(self, *_: object) -> None:
        self._book.close()
        if isinstance(self._resolver, SystemResolver):
            self._resolver.close()
        if self._session is not None:
            await self._session.close()

    async def address(self, host: str) -> str:
        """Return the address of a host; empty if there is none, or if a proxy looks it up."""
        found = Found() if self._proxy else await self._book.find(host, 80)
        return found.addresses[0] if found.addresses else ""

    async def fetch(self, request: FetchRequest) -> Fetched:
        """Fetch one page; a failure is an answer."""
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
        async with self._session.get(url, headers=headers, allow_redirects=False, proxy=proxy) as reply:
            attempt.answered(reply)
            kind = attempt.header(b"content-type")
            if reply.status == 304 or accepts(request.types or self._settings.types, kind):
                await self._read(reply, attempt)
            else:
                attempt.skipped = media_type(kind)  # a body that is not read to its end closes the connection

    async def _read(self, reply: aiohttp.ClientResponse, attempt: _Attempt) -> None:
        """Read and decode a body, in pieces that are kept whatever happens."""
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
        )


class _Attempt:
    """One fetch under way: what is being waited for, and what has come."""

    def __init__(self, settings: HttpSettings) -> None:
        self._loop = asyncio.get_running_loop()
        self._settings, self._clock = settings, self._loop.time
        self._began = self._deadline = self._clock()
        self._connected: float | None = None
        self._answered: float | None = None
        self._timer: asyncio.Timeout | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self.addresses: tuple[str, ...] = ()  # those that were judged for this fetch
        self.is_opened = False  # a new connection was tried
        self.reply: aiohttp.ClientResponse | None = None
        self._headers: dict[bytes, bytes] = {}
        self.ip = self.skipped = ""
        self.raw: list[bytes] = []
        self.decoded: list[bytes] = []
        self.is_encoded = False

    @property
    def is_reused(self) -> bool:
        """Whether the request went out on a connection from before, and nothing came back."""
        return self._connected is not None and self.reply is None and not self.is_opened

    def start(self, timer: asyncio.Timeout) -> None:
        """Start the first clock; the timer interrupts the fetch when it is told to."""
        self._timer = timer
        self._wait(self._began + self._settings.connect)

    def stop(self) -> None:
        """Stop the clocks."""
        if self._alarm is not None:
            self._alarm.cancel()

    def _wait(self, deadline: float) -> None:
        """Move the deadline. A later one leaves the alarm as it is: most fetches are over before it rings at all."""
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
        """Note that a connection stands; from now on the headers are waited for."""
        self._connected = now = self._clock()
        peer = transport.get_extra_info("peername") if transport else None
        self.ip = str(peer[0]) if peer else ""
        self._wait(now + self._settings.first_byte)

    def answered(self, reply: aiohttp.ClientResponse) -> None:
        """Note that the headers are there."""
        self.reply, self._answered = reply, self._clock()
        self._headers = {name.lower(): text for name, text in reply.raw_headers}
        self._wait(self._began + self._settings.page)

    def header(self, name: bytes) -> str:
        """Return the value of a header, of a repeated one the last; empty if there is none."""
        value = self._headers.get(name, b"")
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.decode("latin-1")

    def lateness(self) -> tuple[Trouble, str]:
        """Say which of the clocks ran out."""
        limits = self._settings
        if self._answered is not None or self._deadline == self._began + limits.page:
            return "timeout-page", f"the page was not there after {limits.page:g} seconds"
        if self._connected is not None:
            return "timeout-first-byte", f"no answer within {limits.first_byte:g} seconds of the connection"
        if not self.addresses:
            return "dns", f"the host was not found within {limits.connect:g} seconds"
        return "timeout-connect", f"no connection within {limits.connect:g} seconds"

    def timings(self) -> Timings:
        """Return the times so far."""
        connect, first = ((at - self._began) if at is not None else None for at in (self._connected, self._answered))
        return Timings(connect, first, self._clock() - self._began)


ATTEMPT: ContextVar[_Attempt] = ContextVar("ATTEMPT")  # of the fetch that a connection is made for


class _Reply(aiohttp.ClientResponse):
    """A response that notes its connection: a small one has let go of it before it can be asked."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        if (attempt := ATTEMPT.get(None)) is not None:
            attempt.connected(connection.transport)
        return await super().start(connection)


class _Pinned(AbstractResolver):
    """Answers with the addresses that were judged for the fetch under way."""

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
    """Make a socket for an address that was judged for the fetch under way, and for no other."""
    family, kind, protocol, _, (address, *_) = info
    attempt = ATTEMPT.get(None)
    judged = map(ipaddress.ip_address, attempt.addresses) if attempt else ()
    if attempt is None or ipaddress.ip_address(address) not in judged:
        raise PermissionError(errno.EACCES, f"{address} was not judged for this fetch")
    attempt.is_opened = True
    return socket.socket(family, kind, protocol)


def _explain(problem: Exception, attempt: _Attempt) -> tuple[Trouble, str]:
    """Put an error of aiohttp, of the system or of a decoder in one of our words."""
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
            return _unconnected(problem.os_error.errno, attempt.addresses), detail
        case aiohttp.ClientPayloadError():
            is_cut = "Not enough data" in detail or "not completed" in detail
            return ("reset", f"the body was cut off: {detail}") if is_cut else ("protocol", detail)
        case aiohttp.ClientResponseError() | aiohttp.InvalidURL():
            return "protocol", detail
        case aiohttp.ServerDisconnectedError():
            return "reset", "the connection was closed without an answer"
        case _:
            return "reset", detail


def _unconnected(code: int | None, addresses: tuple[str, ...]) -> Trouble:
    """Say why no connection could be made. A host of IPv6 only may be out of reach without our being offline."""
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
