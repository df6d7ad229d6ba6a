"""How one host is treated: how long it is left alone after each answer, and what it takes to be left out.

**Delay**: that of the settings, or what robots.txt asks for if that is longer. It grows while a host is slow (twice the
time that its answers take) or fails (doubled by each failure), and shrinks again with each answer.

**Breaks**: a host that fails `BURST` times in a row is left alone for a minute, then asked for one page; if that fails
too, for longer. After `BREAKS` of them it is to be left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from surveyor.fetch.politeness.gates import Gate
from surveyor.web.robots import Robots

REST, EASES, STRAINED = 2.0, 0.8, 32.0  # delay for each second of an answer; how strain shrinks; the most of it
BURST, FIRST_BREAK, LONGEST_BREAK, BREAKS = 10.0, 60.0, 900.0, 5  # failures in a row; seconds, doubling


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """How hosts are treated."""

    delay: float = 1.0  # seconds between two requests to a host
    domain_delay: float = 0.25  # seconds between two requests to a domain, if that is less
    max_delay: float = 60.0  # hosts that ask for more are left out
    max_wait: float = 3600.0  # so are hosts that ask to be left alone for longer
    own: frozenset[str] = frozenset()  # hosts of the user's network, which share no gate
    permitted: frozenset[str] = frozenset()  # hosts whose owner is the user: their rules do not bind
    avoid: frozenset[str] = frozenset()  # hosts and domains that are never asked

    def avoids(self, name: str) -> bool:
        """Say whether a host is, or lies below, one that is never asked."""
        labels = name.split(".")
        return any(".".join(labels[start:]) in self.avoid for start in range(len(labels)))


@dataclass(slots=True)
class Rules:
    """What robots.txt of an origin says, until when, and how often it could not be read."""

    robots: Robots | None = None  # None while it was not read, or is to be tried again
    until: float = 0.0  # inf while it is being asked for elsewhere
    tries: int = 0
    trouble: str = ""  # why it could not be read, if no server said so
    unanswered: bool = False  # no HTTP response came from there, so nothing is known of other ports


@dataclass(slots=True)
class Host:
    """One host, and when it may be asked next."""

    name: str
    ready_at: float
    least: float  # seconds between two requests, by the settings and robots.txt
    domain: Gate | None = None
    place: Gate | None = None  # of its address
    busy: int = 0  # requests under way
    alone: bool = False  # the one under way allows no other beside it
    holds: bool = False  # the gate of its address
    address: str | None = None  # None: not looked up; empty: not known
    rules: dict[str, Rules] = field(default_factory=dict)  # by origin
    seconds: float = 0.0  # that its answers take
    strain: float = 1.0
    failures: float = 0.0  # in a row
    breaks: int = 0  # in a row
    refused: str = ""  # why none of its pages is read
    backoff_until: float = 0.0  # it fails, or asks to be left alone; not just its delay
    backoff_why: str = ""

    @property
    def delay(self) -> float:
        """Seconds between two requests."""
        if not self.least:
            return 0.0
        slow = max(self.least, REST * self.seconds)
        return max(self.least, min(slow * self.strain, max(slow, STRAINED)))

    def bears(self, seconds: float | None, failure: float) -> float:
        """Take in how long an answer took, and how much of a failure it was; return seconds for a break, if any.

        Inf if breaks have not helped.
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
        self.failures = BURST - 1  # one page is asked for after the break
        self.breaks += 1
        return min(FIRST_BREAK * 2 ** (self.breaks - 1), LONGEST_BREAK) if self.breaks <= BREAKS else float("inf")


def spelt(seconds: float) -> str:
    """Spell a time as people do.

    >>> spelt(90), spelt(7200), spelt(0.25)
    ('90 s', '2 h', '0.25 s')
    """
    for unit, size in (("days", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.3g} {unit}"
    return f"{seconds:,.3g} s"
