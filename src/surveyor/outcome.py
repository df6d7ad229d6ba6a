"""What happened to a page that was asked for: the one kind of event that a crawl is made of.

Failures are data. Links are page ids: cleaned, distinct, in scope, without the page itself.

Sources make these, the store keeps them. `Exchange` is what went over the wire; it goes to the archive when the visit
is committed, and `Place` says where it lies from then on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from surveyor.arrays import IdArray, read_only

Kind = Literal["read", "gone", "blocked", "moved"]
NO_LINKS: IdArray = read_only(np.empty(0, np.int32))


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """One event: a page was read, is gone for good, may not or cannot be read now, or moved elsewhere."""

    page: int
    kind: Kind
    links: IdArray = field(default_factory=lambda: NO_LINKS)  # of a page read
    reason: str = ""  # of a page blocked: "robots", "budget", "error", …; of one read: "needs JavaScript"
    target: int = -1  # of a page moved: the page that it stands for

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Outcome)
            and (self.page, self.kind, self.reason, self.target) == (other.page, other.kind, other.reason, other.target)
            and np.array_equal(self.links, other.links)
        )

    __hash__ = None  # type: ignore[assignment]  # holds an array


def was_asked(outcome: Outcome) -> bool:
    """Say whether a page was asked for, and not only refused."""
    return outcome.kind != "blocked" or getattr(outcome, "fetched_at", 0.0) > 0


LISTS = ("out_of_scope", "nofollow")
VALUES = ("status", "fetched_at", "seconds", "hash", "etag", "last_modified", "title", "language", "warc", "size")


class Place(NamedTuple):
    """Where the records of one fetch lie: the response, and after it the request."""

    file: str
    offset: int
    length: int  # of both


@dataclass(frozen=True, slots=True)
class Exchange:
    """One fetch as it went over the wire; heads end with their empty line."""

    url: str
    request: bytes
    response: bytes  # the head
    body: bytes
    at: float  # seconds since 1970, when it was asked for
    ip: str = ""
    truncated: str = ""  # "length", "time" or "disconnect", if the body is not all


@dataclass(frozen=True, slots=True, eq=False)
class Visit(Outcome):
    """An outcome, and what the server said."""

    status: int = 0
    fetched_at: float = 0.0  # seconds since 1970
    seconds: float = 0.0  # that the answer took
    hash: bytes = b""  # of the content
    etag: str = ""
    last_modified: str = ""
    out_of_scope: IdArray = field(default_factory=lambda: NO_LINKS)
    nofollow: IdArray = field(default_factory=lambda: NO_LINKS)
    title: str = ""
    language: str = ""
    warc: Place | None = None  # where the answer lies
    size: int = 0  # bytes transferred
    exchange: Exchange | None = None  # until it is in the archive; not part of what is compared

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Visit):
            return NotImplemented  # then as outcomes
        return (
            Outcome.__eq__(self, other)
            and all(getattr(self, name) == getattr(other, name) for name in VALUES)
            and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in LISTS)
        )

    __hash__ = None  # holds arrays


class RobotsFile(NamedTuple):
    """What an origin (such as https://example.org) answered when asked for its robots.txt."""

    origin: str
    fetched_at: float
    expires_at: float
    status: int
    body: bytes = b""


def head(first_line: bytes, headers: Iterable[tuple[bytes, bytes]], length: int | None = None) -> bytes:
    """Write the head of a message; given the length of a body as kept, headers that belie it get other names."""
    lines = [first_line]
    for name, value in headers:
        low = name.lower()
        belied = low == b"transfer-encoding" or (low == b"content-length" and value.strip() != b"%d" % (length or 0))
        lines.append((b"X-Crawler-" if length is not None and belied else b"") + name + b": " + value)
    if length is not None and b"content-length" not in (line.split(b":")[0].lower() for line in lines):
        lines.append(b"Content-Length: %d" % length)
    return b"\r\n".join([*lines, b"", b""])


class Event(NamedTuple):
    """Something that happened to the survey, not to a page, after so many visits."""

    kind: str
    at: float
    detail: Mapping[str, Any] = {}
    visit: int = 0  # filled in when it is committed


class Retry(NamedTuple):
    """A page whose fetch failed, and when to try it again; it goes on waiting meanwhile."""

    page: int
    until: float


@dataclass(frozen=True, slots=True)
class News:
    """What a source has to tell: outcomes in the order in which they count, and what else is to be remembered."""

    outcomes: list[Outcome] = field(default_factory=list)
    retries: list[Retry] = field(default_factory=list)
    robots: list[RobotsFile] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    closes: bool = False  # no page is left to be read: what moves is pushed on to its end
