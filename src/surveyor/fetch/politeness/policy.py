"""Politeness policy of one host: its crawl delay, its backoff, and when it is excluded.

**Delay**: that of the settings, or of robots.txt if that is longer. It grows while a host is slow (twice its response
time) or fails (doubled by each failure), and shrinks again with each successful response.

**Breaks**: a host that fails `BURST` times in a row gets no requests for a minute, then one; if that fails too, the
next break is longer. After `BREAKS` breaks it is excluded.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from surveyor.fetch.politeness.gates import Gate
from surveyor.web.robots import Robots

REST, EASES, STRAINED = 2.0, 0.8, 32.0  # delay per second of response time; decay and maximum of the strain
BURST, FIRST_BREAK, LONGEST_BREAK, BREAKS = 10.0, 60.0, 900.0, 5  # failures in a row; seconds, doubling; maximum breaks


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """The politeness policy of a crawl."""

    delay: float = 1.0  # seconds between two requests to a host
    domain_delay: float = 0.25  # seconds between two requests to a domain, unless `delay` is less
    max_delay: float = 60.0  # hosts with a longer crawl delay are excluded
    max_wait: float = 3600.0  # hosts with a longer Retry-After are excluded
    own: frozenset[str] = frozenset()  # hosts in the user's network, which share no gate
    permitted: frozenset[str] = frozenset()  # hosts owned by the user: their robots.txt is not applied
    avoid: frozenset[str] = frozenset()  # hosts and domains that are never requested

    def avoids(self, name: str) -> bool:
        """Return whether a host is in `avoid` or below an entry of it."""
        labels = name.split(".")
        return any(".".join(labels[start:]) in self.avoid for start in range(len(labels)))


@dataclass(slots=True)
class Rules:
    """The robots.txt of an origin, its expiry, and how often it could not be read."""

    robots: Robots | None = None  # None before it is read, or until it is retried
    until: float = 0.0  # inf while a redirect is followed to another host
    tries: int = 0
    trouble: str = ""  # why it could not be read, if there was no HTTP error status
    unanswered: bool = False  # no HTTP response from this origin, so nothing is known of other ports


@dataclass(slots=True)
class Host:
    """One host, and when it may be requested next."""

    name: str
    ready_at: float
    least: float  # minimum seconds between two requests, by the settings and robots.txt
    domain: Gate | None = None
    place: Gate | None = None  # gate of its address
    busy: int = 0  # requests in progress
    alone: bool = False  # the request in progress is exclusive
    holds: bool = False  # it holds the gate of its address
    address: str | None = None  # None: not looked up; empty: unknown
    rules: dict[str, Rules] = field(default_factory=dict)  # by origin
    seconds: float = 0.0  # average response time
    strain: float = 1.0
    failures: float = 0.0  # in a row
    breaks: int = 0  # in a row
    refused: str = ""  # why the host is excluded
    backoff_until: float = 0.0  # by failures, 429 or Retry-After, not only its delay
    backoff_why: str = ""

    @property
    def delay(self) -> float:
        """Seconds between two requests."""
        if not self.least:
            return 0.0
        slow = max(self.least, REST * self.seconds)
        return max(self.least, min(slow * self.strain, max(slow, STRAINED)))

    def bears(self, seconds: float | None, failure: float) -> float:
        """Update the state from a response time and a failure weight; return the seconds of a break, 0 if none is due.

        Return inf after the last break.
        """
        if seconds is not None:
            self.seconds += (seconds - self.seconds) / (4 if self.seconds else 1)
        if not failure:
            self.strain = max(1.0, self.strain * EASES)
            self.failures = self.breaks = 0
            return 0.0
        if failure >= 1:
            self.strain = min(STRAINED, 2 * self.strain)
        self.failures += failure
        if self.failures < BURST:
            return 0.0
        self.failures = BURST - 1  # one page is requested after the break
        self.breaks += 1
        return min(FIRST_BREAK * 2 ** (self.breaks - 1), LONGEST_BREAK) if self.breaks <= BREAKS else float("inf")


def spelt(seconds: float) -> str:
    """Format a duration for people.

    >>> spelt(90), spelt(7200), spelt(0.25)
    ('90 s', '2 h', '0.25 s')
    """
    for unit, size in (("days", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.3g} {unit}"
    return f"{seconds:,.3g} s"
