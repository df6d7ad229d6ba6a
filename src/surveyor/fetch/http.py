"""Data types of an HTTP fetch: the request (`FetchRequest`), the settings (`HttpSettings`) and the result (`Fetched`).

A fetch never raises because of the network or a server. A failure is an error code (`Trouble`) and a sentence, and what
was received before it is kept: a status, headers, the first part of a body. Redirects are returned, not followed: a
crawl counts each hop.

`client.HttpClient` fetches; any object with `async fetch(request) -> Fetched` can replace it. Nothing here waits or
retries: `retry_delay` returns the backoff, and the caller decides.

    >>> retry_after("120", now=0), retry_after("Thu, 01 Jan 1970 00:01:00 GMT", now=45), retry_after("soon", now=0)
    (120.0, 15.0, None)
    >>> [retry_delay(tries, "reset") for tries in (1, 2, 3, 4)], retry_delay(1, "tls"), retry_delay(1, 503)
    ([10.0, 40.0, 160.0, None], None, 10.0)
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Literal, Protocol

from surveyor.errors import UsageError
from surveyor.fetch.addresses import host_key, locate
from surveyor.fetch.encodings import ENCODINGS

Trouble = Literal[
    "",
    "dns",  # the lookup of the host failed
    "no-host",  # there is no such host
    "refused",  # no connection could be made
    "timeout-connect",
    "timeout-first-byte",
    "timeout-page",
    "too-large",
    "tls",  # no secure connection: certificate, protocol version, or not TLS at all
    "reset",  # the connection ended before the response did
    "protocol",  # not HTTP, or not a URL that can be requested
    "forbidden-address",  # resolves to an address that is not public
    "decode",  # the body is not in the encoding that it claims
    "redirect-loop",
    "offline",  # this machine has no network; not an error of the host
]
TRANSIENT = frozenset({"dns", "refused", "timeout-connect", "timeout-first-byte", "timeout-page", "reset"})
PASSING_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
TEMPORARY = frozenset({302, 303, 307})  # of them: the URL stays that of the page
MOST_REDIRECTS = 20  # in a row; longer chains are traps
FIRST_BACKOFF, GROWTH, TRIES = 10.0, 4.0, 4  # seconds before the first retry; backoff factor; maximum attempts
LONGEST_BACKOFF = 300.0  # while offline
CONTACT = re.compile(r"[^\s@<>()]+@[^\s@<>()]+|https?://[^\s/]+")
OURS = frozenset(  # headers set by other settings, or reserved
    {"accept-encoding", "connection", "content-length", "from", "host", "te", "transfer-encoding", "user-agent"}
)
Headers = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """A request for a page; with an ETag or a date it is conditional."""

    url: str
    etag: str | None = None
    last_modified: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    types: tuple[str, ...] | None = None  # content types to read; None: those of the client
    method: Literal["GET", "HEAD"] = "GET"

    def __post_init__(self) -> None:
        check_headers(self.headers)


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds from the start of a fetch; None for stages that were not reached."""

    connect: float | None = None  # connection ready, new or reused
    first_byte: float | None = None  # headers received
    total: float = 0.0


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of a fetch."""

    url: str
    status: int | None = None
    reason: str = ""
    version: str = ""  # "1.1"
    headers: Headers = ()  # as received
    body: bytes = b""  # decoded
    raw: bytes = b""  # as transferred (chunks joined), for the archive
    ip: str = ""  # empty behind a proxy
    target: str | None = None  # redirect target, an absolute URL
    timings: Timings = Timings()
    error: Trouble = ""
    detail: str = ""
    skipped: str = ""  # the content type for which the body was not read
    retry_after: float | None = None  # seconds
    etag: str | None = None
    last_modified: str | None = None
    not_modified: bool = False  # 304: unchanged since the last fetch
    requests: int = 1  # sent; more than 1 if a reused connection was closed
    certified_until: float | None = None  # end of the host's certificate, of HEAD by TLS without a proxy

    @property
    def may_pass(self) -> bool:
        """Whether this is a failure that may be temporary."""
        return retry_delay(1, self.error or self.status or "") is not None

    def __repr__(self) -> str:
        what = self.error or f"{self.status}, {len(self.body):,} bytes"
        return f"Fetched({self.url!r}: {what})"


class Client(Protocol):
    """Fetches pages."""

    async def fetch(self, request: FetchRequest) -> Fetched:
        """Fetch one page; failures are returned, not raised."""


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Identification, limits, timeouts and network settings of a client."""

    user_agent: str  # names a contact: an e-mail address or a URL
    sender: str = ""  # an e-mail address for the From header
    connections: int = 64  # at once
    keepalive: float = 15.0  # seconds that an idle connection stays open
    connect: float = 10.0  # seconds until a connection is ready, including lookup and TLS
    first_byte: float = 20.0  # seconds from then until the headers are received
    page: float = 60.0  # seconds for the whole fetch
    max_bytes: int = 10_000_000  # transferred
    max_decoded: int = 20_000_000
    max_header: int = 32_768  # bytes of one header line
    types: tuple[str, ...] = ("text/html", "application/xhtml+xml")  # to read; "text/*" and "*/*" work too
    headers: Mapping[str, str] = field(default_factory=dict)
    auth: Mapping[str, tuple[str, str]] = field(
        default_factory=dict, repr=False
    )  # "host" or "host:port": name, password
    proxy: str = field(default="", repr=False)  # may hold a password
    ca_file: str | Path | None = None  # certificates to trust in addition to the system's
    allow: tuple[str, ...] = ()  # "host" or "host:port" that may be in a private network
    dns_ttl: float = 300.0  # seconds that addresses are cached
    dns_negative_ttl: float = 30.0

    def __post_init__(self) -> None:
        if not CONTACT.search(self.user_agent):
            problem = f"the user agent {self.user_agent!r} does not say who asks"
            raise UsageError(
                problem, hint="add an e-mail address or a URL, such as 'mybot/1.0 (+https://example.org/bot)'"
            )
        _check_text("user agent", self.user_agent)
        _check_text("sender", self.sender)
        check_headers(self.headers)
        for name in ("connections", "connect", "first_byte", "page", "max_bytes", "max_decoded", "max_header"):
            if not (math.isfinite(value := getattr(self, name)) and value > 0):
                raise UsageError(f"{name} must be a number above 0, not {value}", hint="for example 60")
        for entry in (*self.allow, *self.auth):
            host_key(entry)
        if self.proxy and locate(self.proxy) is None:
            raise UsageError(
                "the proxy is not a URL of http or https", hint="for example http://proxy.example.org:3128"
            )
        if self.ca_file is not None and not Path(self.ca_file).is_file():
            raise UsageError(f"there is no file {self.ca_file} of certificates", hint="give the path of a PEM file")


def accepts(types: tuple[str, ...], content_type: str) -> bool:
    """Return whether a body of this content type is read; a body without a type is.

    >>> accepts(("text/*",), "Text/HTML; charset=utf-8"), accepts(("text/*",), "image/png"), accepts((), "")
    (True, False, True)
    """
    kind = media_type(content_type)
    return not kind or any(one in (kind, "*/*") or (one[-2:] == "/*" and kind.startswith(one[:-1])) for one in types)


def media_type(content_type: str) -> str:
    """Return a content type without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def retry_after(value: str, now: float) -> float | None:
    """Return the seconds to wait by a Retry-After header (RFC 9110, 10.2.3); None if it has neither form."""
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(min(int(text[:12]), 10**10))
    try:
        when = parsedate_to_datetime(text)
        return max(0.0, (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - now)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def retry_delay(tries: int, trouble: Trouble | int) -> float | None:
    """Return the backoff in seconds after so many attempts that ended in an error or a status; None to give up.

    While offline, a page is never given up.
    """
    backoff = FIRST_BACKOFF * GROWTH ** min(tries - 1, TRIES)
    if trouble == "offline":
        return min(backoff, LONGEST_BACKOFF)
    passes = trouble in PASSING_STATUS if isinstance(trouble, int) else trouble in TRANSIENT
    return backoff if passes and tries < TRIES else None


def check_headers(headers: Mapping[str, str]) -> None:
    """Raise for headers that cannot be sent or that the caller may not set."""
    for name, value in headers.items():
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
            raise UsageError(f"{name!r} is not the name of a header", hint="for example Accept-Language")
        if name.lower() in OURS:
            raise UsageError(
                f"the header {name} cannot be set", hint="user_agent and sender have settings of their own"
            )
        _check_text(f"header {name}", value)


def _check_text(what: str, value: str) -> None:
    if not is_sendable(value):
        raise UsageError(f"the {what} holds characters that cannot be sent: {value!r}", hint="use printable ASCII")


def is_sendable(value: str) -> bool:
    """Return whether a text is valid as a header value: printable ASCII."""
    return value.isascii() and value.isprintable()


def sent_by(settings: HttpSettings) -> dict[str, str]:
    """Return the headers of every request, without those that the user added."""
    kinds = ", ".join(settings.types)
    fields = {"Accept": kinds if "*/*" in kinds else f"{kinds}, */*;q=0.1", "User-Agent": settings.user_agent}
    return {**fields, "Accept-Encoding": ", ".join(ENCODINGS), **({"From": settings.sender} if settings.sender else {})}
