"""Outcomes of page requests: the events that a crawl consists of.

Failures are data. Links are page ids: normalised, distinct, in scope, without the page itself.

Sources create outcomes and the store saves them. `Exchange` is the request and response as transferred; it is written
to the archive when the visit is committed, and `Place` is its position there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from surveyor.arrays import IdArray, read_only

Kind = Literal["fetched", "gone", "blocked", "redirected"]
NO_LINKS: IdArray = read_only(np.empty(0, np.int32))


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """One event: a page was fetched, is permanently gone, is blocked (not permitted, or failed), or redirects."""

    page: int
    kind: Kind
    links: IdArray = field(default_factory=lambda: NO_LINKS)  # if fetched
    reason: str = ""  # if blocked: "robots", "budget", "error", …; if fetched: "needs JavaScript"
    target: int = -1  # if redirected: the page that it is an alias of

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Outcome)
            and (self.page, self.kind, self.reason, self.target) == (other.page, other.kind, other.reason, other.target)
            and np.array_equal(self.links, other.links)
        )

    __hash__ = None  # type: ignore[assignment]  # contains an array


def was_requested(outcome: Outcome) -> bool:
    """Return whether a page was requested, rather than blocked without a request."""
    return outcome.kind != "blocked" or getattr(outcome, "fetched_at", 0.0) > 0


LISTS = ("out_of_scope", "nofollow")
VALUES = (
    *("status", "fetched_at", "seconds", "hash", "etag", "last_modified", "title", "language", "warc", "size"),
    *("text_hash", "expires", "contexts"),
)


TEXT_METHOD = 2  # bytes at the start of `text_hash` that identify the extraction method


class Place(NamedTuple):
    """The position of the WARC records of one fetch: the response, then the request."""

    file: str
    offset: int
    length: int  # of both


@dataclass(frozen=True, slots=True)
class Exchange:
    """One fetch as transferred; heads end with their empty line."""

    url: str
    request: bytes
    response: bytes  # the head
    body: bytes
    at: float  # time of the request, in seconds since 1970
    ip: str = ""
    truncated: str = ""  # "length", "time" or "disconnect", if the body is incomplete
    refers: Place | None = None  # records of the earlier fetch that had the same body
    not_modified: bool = False  # the server answered so (304) and sent no body


@dataclass(frozen=True, slots=True, eq=False)
class Visit(Outcome):
    """An outcome with the data of the response."""

    status: int = 0
    fetched_at: float = 0.0  # seconds since 1970
    seconds: float = 0.0  # response time
    hash: bytes = b""  # of the content
    etag: str = ""
    last_modified: str = ""
    out_of_scope: IdArray = field(default_factory=lambda: NO_LINKS)
    nofollow: IdArray = field(default_factory=lambda: NO_LINKS)
    title: str = ""
    language: str = ""
    warc: Place | None = None  # position in the archive
    size: int = 0  # bytes transferred
    text_hash: bytes = b""  # of the main text, which boilerplate does not change; empty if unknown
    expires: float = 0.0  # time until which the server declares the page fresh; 0 if it does not
    contexts: bytes = b""  # of the links, packed; see `web.link_context`
    exchange: Exchange | None = None  # until it is in the archive; not compared

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Visit):
            return NotImplemented  # compared as outcomes then
        return (
            Outcome.__eq__(self, other)
            and all(getattr(self, name) == getattr(other, name) for name in VALUES)
            and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in LISTS)
        )

    __hash__ = None  # contains arrays


def has_changed(before: Visit, after: Visit) -> bool | None:
    """Return whether the content of a page differs between two visits that fetched it; None if that is unknown.

    Equal bytes are equal content. If the bytes differ, the main texts decide. Without comparable hashes of the main
    text it is unknown: a timestamp in a footer also changes the bytes.
    """
    if before.hash and before.hash == after.hash:
        return False
    first, second = before.text_hash, after.text_hash
    if not first or not second or first[:TEXT_METHOD] != second[:TEXT_METHOD]:
        return None
    return first != second


class RobotsFile(NamedTuple):
    """The response of an origin (such as https://example.org) to the request for its robots.txt."""

    origin: str
    fetched_at: float
    expires_at: float
    status: int
    body: bytes = b""


def head(first_line: bytes, headers: Iterable[tuple[bytes, bytes]], length: int | None = None) -> bytes:
    """Return the head of a message; headers that contradict `length`, the stored body's, are prefixed X-Crawler-."""
    lines = [first_line]
    for name, value in headers:
        low = name.lower()
        contradicts = low == b"transfer-encoding" or (
            low == b"content-length" and value.strip() != b"%d" % (length or 0)
        )
        lines.append((b"X-Crawler-" if length is not None and contradicts else b"") + name + b": " + value)
    if length is not None and b"content-length" not in (line.split(b":")[0].lower() for line in lines):
        lines.append(b"Content-Length: %d" % length)
    return b"\r\n".join([*lines, b"", b""])


class Event(NamedTuple):
    """An event of the survey rather than of a page, after `visit` visits."""

    kind: str
    at: float
    detail: Mapping[str, Any] = {}
    visit: int = 0  # set on commit


# Events that change the state of a crawl, and are applied again by a replay: moving mass is pushed, because no page is
# left or because that may reach the goal; walks are frozen, started, or invalid since the scope changed or pages were
# deleted; a scout starts its walks or draws its sample; pages just fetched are on or off the topic of a focused crawl.
DISCARDING = ("scope_changed", "host_deleted")  # what walks found is no longer true
SHARD_EVENTS = ("shard_cut", "shard_got")  # mass is sent to another shard of a crawl, or received from it
STATE_EVENTS = (
    *("settled", "pushed", "epoch", "walks", "scout", "scout_sample", "topic"),
    *SHARD_EVENTS,
    *DISCARDING,
)


class Retry(NamedTuple):
    """A page whose fetch failed, and when to retry it; it stays queued until then."""

    page: int
    until: float


@dataclass(frozen=True, slots=True)
class FetchResults:
    """A batch of results from a source: outcomes in journal order, and other data to store."""

    outcomes: list[Outcome] = field(default_factory=list)
    retries: list[Retry] = field(default_factory=list)
    robots: list[RobotsFile] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    closes: bool = False  # no page is left to fetch: moving mass is pushed until it is settled
