"""Politeness policy: delays and backoff of a host, rate limits that hosts share, and detection of a network outage.

**Delay**: that of the settings, or of robots.txt if that is longer. It grows while a host is slow (twice its response
time) or fails (doubled by each failure), and shrinks again with each successful response. A host that fails `BURST`
times in a row gets no requests for a minute, then one; if that fails too, the next break is longer. After `BREAKS`
breaks it is excluded; with a *persistent* policy the breaks grow up to `RARELY` instead.

**Gates** are rate limits shared by the hosts at one address, or by the hosts of one domain. A gate is held while an
exclusive request is in progress, and stays closed for a delay after it. Hosts that reach a closed gate are queued. When
it opens, only the first `FEW` are woken and the best page among them is fetched; the others are queued again. The cost
of a request is therefore the same for ten and for ten thousand hosts at one address.

**Outages** of the local network are detected so that failures are not attributed to hosts. A refused connection is a
response: the machine is reachable. Only failed lookups and connections without any response are evidence, and only
for origins that have responded before; a closed port of a host proves nothing.

- The network is **down** if at least `MIN_EVIDENCE` registrable domains are unreachable and no request succeeded since,
  nor in the last `RECENT` seconds. Then all hosts pause. Hosts that the user allowed by name are not counted.
- If this machine itself reports that it is offline, all hosts pause at once, unless a request succeeded in the last
  `RECENT` seconds: a remote router may report the same for one address.
- If fewer domains are known and all of them are unreachable, each unreachable host is **held**: its pages wait without
  being counted as failed, and all other hosts continue.

Each pause is longer than the last. After `PAUSES` of them the hosts are considered unreachable, unless this machine
itself reports that it is offline. A domain that failed while others were reached, or that caused a pause which ended
when others were reached, is not evidence until it has responded.
"""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict
from dataclasses import dataclass, field

from surveyor.web.robots import Robots

REST, EASES, STRAINED = 2.0, 0.8, 32.0  # delay per second of response time; decay and maximum of the strain
RARELY = 6 * 3600.0  # seconds: the longest break of a persistent policy
BURST, FIRST_BREAK, LONGEST_BREAK, BREAKS = 10.0, 60.0, 900.0, 5  # failures in a row; seconds, doubling; maximum breaks


@dataclass(frozen=True, slots=True, kw_only=True)
class PolitenessPolicy:
    """The politeness policy of a crawl."""

    delay: float = 1.0  # seconds between two requests to a host
    domain_delay: float = 0.25  # seconds between two requests to a domain, unless `delay` is less
    max_delay: float = 60.0  # hosts with a longer crawl delay are excluded
    max_wait: float = 3600.0  # hosts with a longer Retry-After are excluded
    own: frozenset[str] = frozenset()  # hosts in the user's network, which share no gate
    permitted: frozenset[str] = frozenset()  # hosts owned by the user: their robots.txt is not applied
    avoid: frozenset[str] = frozenset()  # hosts and domains that are never requested
    persistent: bool = False  # a host that only fails is asked again after ever longer breaks, and never excluded

    def avoids(self, name: str) -> bool:
        """Return whether a host is in `avoid` or below an entry of it."""
        labels = name.split(".")
        return any(".".join(labels[start:]) in self.avoid for start in range(len(labels)))


@dataclass(slots=True)
class RobotsRules:
    """The robots.txt of an origin, its expiry, and how often it could not be read."""

    robots: Robots | None = None  # None before it is read, or until it is retried
    until: float = 0.0  # inf while a redirect is followed to another host
    tries: int = 0
    error: str = ""  # why it could not be read, if there was no HTTP error status
    unanswered: bool = False  # no HTTP response from this origin, so nothing is known of other ports


@dataclass(slots=True)
class Host:
    """One host, and when it may be requested next."""

    name: str
    ready_at: float
    min_delay: float  # minimum seconds between two requests, by the settings and robots.txt
    domain_gate: Gate | None = None
    address_gate: Gate | None = None  # gate of its address
    busy: int = 0  # requests in progress
    is_exclusive: bool = False  # the request in progress is exclusive
    holds_gate: bool = False  # it holds the gate of its address
    address: str | None = None  # None: not looked up; empty: unknown
    rules: dict[str, RobotsRules] = field(default_factory=dict)  # by origin
    seconds: float = 0.0  # average response time
    strain: float = 1.0
    failures: float = 0.0  # in a row
    breaks: int = 0  # in a row
    excluded: str = ""  # why the host is excluded
    backoff_until: float = 0.0  # by failures, 429 or Retry-After, not only its delay
    backoff_why: str = ""

    @property
    def delay(self) -> float:
        """Seconds between two requests."""
        if not self.min_delay:
            return 0.0
        slow = max(self.min_delay, REST * self.seconds)
        return max(self.min_delay, min(slow * self.strain, max(slow, STRAINED)))

    def record(self, seconds: float | None, failure: float) -> float:
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


def format_seconds(seconds: float) -> str:
    """Format a duration for people.

    >>> format_seconds(90), format_seconds(7200), format_seconds(0.25)
    ('90 s', '2 h', '0.25 s')
    """
    for unit, size in (("days", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.3g} {unit}"
    return f"{seconds:,.3g} s"


FEW = 64  # hosts that are woken when a gate opens
RETRY_AFTER = 0.01  # seconds until the next ones are woken, if none of them proceeds


@dataclass(slots=True)
class Gate:
    """A rate limit that several hosts share."""

    number: int
    free_at: float = 0.0
    held: int = 0  # requests in progress that hold it
    is_planned: bool = False  # its opening is scheduled
    queue: OrderedDict[int, None] = field(default_factory=OrderedDict)

    def is_open(self, now: float) -> bool:
        """Return whether a request may start."""
        return not self.held and self.free_at <= now


class Agenda:
    """A schedule of when hosts wake and gates open."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int]] = []  # hosts by number, gates by the complement of theirs
        self._gates: list[Gate] = []

    @property
    def next(self) -> float | None:
        """Time of the next event; None if there is none."""
        return self._due[0][0] if self._due else None

    def gate(self) -> Gate:
        """Create a gate."""
        self._gates.append(Gate(len(self._gates)))
        return self._gates[-1]

    def wake(self, host: int, at: float) -> None:
        """Schedule a host to wake at a time."""
        heapq.heappush(self._due, (at, host))

    def queue(self, host: int, gate: Gate) -> None:
        """Queue a host until a gate opens."""
        gate.queue[host] = None
        self._plan(gate, gate.free_at)

    def release(self, gate: Gate, until: float) -> None:
        """Release a gate that a request held; no other request may start before `until`."""
        gate.held -= 1
        gate.free_at = max(gate.free_at, until)
        self._plan(gate, gate.free_at)

    def _plan(self, gate: Gate, at: float) -> None:
        if gate.queue and not gate.is_planned and not gate.held:
            gate.is_planned = True
            heapq.heappush(self._due, (at, ~gate.number))

    def due(self, now: float) -> list[int]:
        """Return the hosts that are due by now, once for each time they were scheduled."""
        woken: list[int] = []
        while self._due and self._due[0][0] <= now:
            number = heapq.heappop(self._due)[1]
            if number >= 0:
                woken.append(number)
                continue
            gate = self._gates[~number]
            gate.is_planned = False
            if gate.is_open(now):
                woken += [gate.queue.popitem(last=False)[0] for _ in range(min(FEW, len(gate.queue)))]
                self._plan(gate, now + RETRY_AFTER)
            else:
                self._plan(gate, gate.free_at)
        return woken


MIN_EVIDENCE = 3  # unreachable domains from which on the network is considered down
RECENT = 5.0  # seconds for which a success proves that the network is up
FIRST_PAUSE, LONGEST_PAUSE, PAUSES = 5.0, 300.0, 8  # seconds, doubling; maximum number


class Network:
    """The state of the local network, inferred from which origins respond."""

    def __init__(self) -> None:
        self.paused_until = 0.0  # for all hosts
        self.held_until = 0.0  # for unreachable hosts
        self._known: set[str] = set()  # origins that have responded
        self._domains: set[str] = set()  # domains of `_known`
        self._silent: set[str] = set()  # domains not reached since the last success
        self._own: set[str] = set()  # domains in the user's network
        self._suspects: set[str] = set()  # domains that caused a pause
        self._unreliable: set[str] = set()  # domains that failed while others were reached
        self._pauses = 0
        self._reached_at = -math.inf

    def remember(self, origin: str, domain: str) -> None:
        """Record that an origin responded before a restart."""
        self._known.add(origin)
        self._domains.add(domain)

    def reached(self, origin: str, domain: str, now: float) -> None:
        """Record that an origin responded: the network is up."""
        self.remember(origin, domain)
        self._unreliable |= self._suspects
        self._unreliable.discard(domain)
        self._suspects.clear()
        self._silent.clear()
        self._pauses, self._reached_at = 0, now

    def unreached(
        self, origin: str, domain: str, now: float, *, offline: bool = False, is_own: bool = False
    ) -> float | None:
        """Record that an origin is unreachable; return until when to wait, None if the host has failed."""
        if origin in self._known:
            self._silent.add(domain)
            if is_own:
                self._own.add(domain)
        is_recent = now < self._reached_at + RECENT
        if offline and is_recent and origin not in self._known:
            self._unreliable.add(domain)
        reports_offline = offline and not is_recent and domain not in self._unreliable
        evidence = self._silent - self._own - self._unreliable
        if reports_offline or (len(evidence) >= MIN_EVIDENCE and not is_recent):
            if now >= self.paused_until:
                if self._pauses >= PAUSES and not reports_offline:
                    return None
                self.paused_until = self._longer(now)
            self._suspects |= evidence | ({domain} if reports_offline else set())
            return self.paused_until
        if origin in self._known and len(self._domains) < MIN_EVIDENCE and self._silent >= self._domains:
            if now >= self.held_until:
                if self._pauses >= PAUSES:
                    return None
                self.held_until = self._longer(now)
            return self.held_until
        return None

    def _longer(self, now: float) -> float:
        self._pauses += 1
        return now + min(FIRST_PAUSE * 2.0 ** (self._pauses - 1), LONGEST_PAUSE)
