"""When a host may be asked: a look-up, its robots.txt, then one page at a time with a pause after each answer.

A host lives through: unknown, looked up, robots.txt read, asked now and then. All times are seconds since 1970 by one
clock that never jumps. Two requests to a host, or to hosts at one address, are apart by the delay, counted from the
end of the first: the delay of the settings, or the Crawl-delay of robots.txt if that is longer. With a delay of 0
several requests may be under way at once. Retry-After and failures keep a host waiting for longer. The gate of an
address does not hold for hosts that the user allowed by name: that network is the user's own.

robots.txt is read once a day. While it cannot be read, the host is asked for nothing else; it is tried again as often
as a page would be, and after that no page of the host may be read.

**Offline.** If hosts that have answered before cannot be reached, several in a row and none in between answers, it is
the network here that is down: all pauses, each time for longer, and nobody is blamed. After `PAUSES` of them the
hosts are taken to be gone after all.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from surveyor.robots import Robots
from surveyor.visit import RobotsFile

DAY = 86_400.0
NOBODY = 3  # hosts that cannot be reached, one after the other, before the network is taken to be down
FIRST_PAUSE, LONGEST_PAUSE, PAUSES = 5.0, 300.0, 8  # seconds while the network is down, doubling
Step = Literal["address", "robots", "page"]


def steady() -> Callable[[], float]:
    """Return a clock that tells seconds since 1970 and never jumps."""
    offset = time.time() - time.monotonic()
    return lambda: time.monotonic() + offset


@dataclass(slots=True)
class Rules:
    """What robots.txt of an origin says, until when, and how often it could not be read."""

    robots: Robots | None = None  # None while it was not read, or is to be tried again
    until: float = 0.0
    tries: int = 0
    trouble: str = ""  # why it could not be read, if no server said so


@dataclass(slots=True)
class Host:
    """One host, and when it may be asked next."""

    name: str
    ready_at: float
    delay: float
    busy: int = 0  # requests under way
    alone: bool = False  # the one under way allows no other beside it
    holds: bool = False  # the gate of its address
    reached: bool = False  # it has answered
    address: str | None = None  # None: not looked up; empty: not known
    rules: dict[str, Rules] = field(default_factory=dict)  # by origin


class Hosts:
    """All hosts of a crawl, by number."""

    def __init__(
        self,
        delay: float = 1.0,
        *,
        clock: Callable[[], float] | None = None,
        own: Iterable[str] = (),
        permitted: Iterable[str] = (),
        finds: bool = True,
        stored: Callable[[str], RobotsFile | None] = lambda _: None,
    ) -> None:
        """Be polite to all; `own` hosts share no gate by address, without `finds` nothing is looked up.

        All pages of `permitted` hosts may be read: their owner is the user. `stored` returns what is known of the
        robots.txt of an origin from before.
        """
        self.clock = clock or steady()
        self.delay, self._own, self._finds, self._stored = delay, frozenset(own), finds, stored
        self._permitted = frozenset(permitted)
        self._began, self._resumed = self.clock(), -math.inf
        self._all: list[Host] = []
        self._ids: dict[str, int] = {}
        self._free_at: dict[str, float] = {}  # by address
        self._held: set[str] = set()  # addresses at which a request is under way that no other may follow yet
        self._queues: dict[str, list[int]] = {}  # hosts that wait for an address
        self._due: list[tuple[float, int]] = []  # when hosts wake
        self._unreached: set[int] = set()
        self._troubles: dict[str, str] = {}  # from before a restart: why robots.txt files could not be read
        self._reached = self._pauses = 0
        self.paused_until = 0.0

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, host: int) -> Host:
        return self._all[host]

    def number(self, name: str) -> int:
        """Return the number of a host."""
        if (host := self._ids.get(name)) is None:
            host = self._ids[name] = len(self._all)
            self._all.append(Host(name, self._began, self.delay, address=None if self._finds else ""))
            heapq.heappush(self._due, (self._began, host))
        return host

    def resumed(self) -> None:
        """Let every host wait its full delay first: when it was last asked is not known exactly."""
        self._resumed = self.clock()
        self._began = self._resumed + self.delay
        for number, host in enumerate(self._all):
            self.wait(number, self._resumed + host.delay)

    def wake(self) -> list[int]:
        """Return the hosts whose time has come."""
        woken, now = [], self.clock()
        while self._due and self._due[0][0] <= now:
            host = heapq.heappop(self._due)[1]
            if self._all[host].ready_at <= now and self._has_room(host):
                woken.append(host)
        return woken

    @property
    def next_wake(self) -> float:
        """When the next host wakes; inf if none does by itself."""
        return self._due[0][0] if self._due else math.inf

    def step(self, number: int, origin: str) -> Step | None:
        """Say what to ask a host for before, or for, a page of this origin; None if it has to wait, and then wakes."""
        host, now = self._all[number], self.clock()
        rules = host.rules.get(origin) or self._from_before(number, origin)
        if host.ready_at > now:  # it was awake when it was told to wait
            return None
        if host.address is None:
            return "address"
        gate = self._gate(host)
        if gate in self._held:
            self._queues.setdefault(gate, []).append(number)
            return None
        if (free_at := self._free_at.get(gate, 0.0)) > now:
            heapq.heappush(self._due, (free_at, number))
            return None
        if rules.robots is not None and now < rules.until:
            return "page"
        if now < rules.until:
            self.wait(number, rules.until)
            return None
        return None if host.busy else "robots"  # when those under way have ended, it wakes

    def why_not(self, number: int, origin: str, url: str) -> str:
        """Say why robots.txt forbids a page; empty if it does not."""
        host = self._all[number]
        rules = host.rules[origin]
        if rules.robots is None or rules.robots.permits(url):
            return ""
        if host.name in self._permitted and rules.robots.standing == "rules":
            return ""
        return rules.trouble or rules.robots.why(url)

    def lease(self, number: int, step: Step) -> bool:
        """Note that a request begins; return whether another to this host may begin at once."""
        host = self._all[number]
        host.busy += 1
        host.alone = step != "page" or host.delay > 0
        if step != "address" and host.delay > 0 and (gate := self._gate(host)):
            self._held.add(gate)
            host.holds = True
        return not host.alone

    def answered(self, number: int, *, asked: bool = True) -> None:
        """Note that a request has ended; if the host was asked for something, its delay runs from now on."""
        host, now = self._all[number], self.clock()
        host.busy -= 1
        until, gate = now + host.delay * asked, self._gate(host)
        if asked and gate and host.delay > 0:
            self._free_at[gate] = max(until, self._free_at.get(gate, 0.0))
        if host.holds:
            host.holds = False
            self._held.discard(gate)
            for other in self._queues.pop(gate, []):
                heapq.heappush(self._due, (max(self._free_at.get(gate, 0.0), self._all[other].ready_at), other))
        self.wait(number, until)

    def wait(self, number: int, until: float) -> None:
        """Ask a host no earlier than that."""
        host = self._all[number]
        host.ready_at = max(host.ready_at, until)
        heapq.heappush(self._due, (host.ready_at, number))

    def found(self, number: int, address: str) -> None:
        """Note where a host is; empty if that is not known."""
        self._all[number].address = address

    def ruled(self, number: int, origin: str, robots: Robots, until: float, *, trouble: str = "") -> None:
        """Take in what robots.txt says, until it is to be read again; `trouble` is why it could not be read."""
        host = self._all[number]
        host.rules[origin] = Rules(robots, until, trouble=trouble)
        delays = [rules.robots.crawl_delay or 0.0 for rules in host.rules.values() if rules.robots is not None]
        host.delay = max(self.delay, *delays)

    def unruled(self, number: int, origin: str, until: float, *, counts: bool = True) -> None:
        """Note that robots.txt could not be read, and when to try again."""
        rules = self._all[number].rules.setdefault(origin, Rules())
        rules.robots, rules.until, rules.tries = None, until, rules.tries + counts

    def recall(self, number: int, origin: str, until: float | None, tries: int, trouble: str) -> None:
        """Remember from before a restart that robots.txt could not be read; None if it is not to be tried again."""
        self._troubles[origin] = trouble
        if until is not None:
            self._all[number].rules[origin] = Rules(None, until, tries)

    def tries(self, number: int, origin: str) -> int:
        """Return how often robots.txt could not be read."""
        rules = self._all[number].rules.get(origin)
        return 0 if rules is None else rules.tries

    def reached(self, number: int) -> None:
        """Note that a host has answered: the network is there."""
        host = self._all[number]
        self._reached += not host.reached
        host.reached = True
        self._unreached.clear()
        self._pauses = 0

    def unreached(self, number: int, *, offline: bool = False) -> bool:
        """Note that a host could not be reached; return whether the network here is down, until `paused_until`."""
        if self._all[number].reached:
            self._unreached.add(number)
        if not (offline or 0 < min(NOBODY, self._reached) <= len(self._unreached)):
            return False
        if self.clock() >= self.paused_until:
            if self._pauses >= PAUSES:
                return False
            self.paused_until = self.clock() + min(FIRST_PAUSE * 2**self._pauses, LONGEST_PAUSE)
            self._pauses += 1
        return True

    def _has_room(self, number: int) -> bool:
        host = self._all[number]
        return not (host.busy and host.alone)

    def _gate(self, host: Host) -> str:
        """Return the address whose gate holds for a host, or nothing."""
        return "" if host.name in self._own else host.address or ""

    def _from_before(self, number: int, origin: str) -> Rules:
        """Return the rules that are known from before a restart, if they still hold; their delay does as well."""
        rules = self._all[number].rules[origin] = Rules()
        kept = self._stored(origin)
        if kept is not None and kept.expires_at > self.clock():
            status, trouble = (None if kept.status == 0 else kept.status), self._troubles.get(origin, "")
            self.ruled(number, origin, Robots.from_answer(status, kept.body), kept.expires_at, trouble=trouble)
            rules = self._all[number].rules[origin]
            self.wait(number, self._resumed + self._all[number].delay)
        return rules
