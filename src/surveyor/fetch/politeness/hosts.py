"""Schedule requests to hosts: DNS lookup, robots.txt, then pages, one at a time with a delay after each response.

The states of a host are: unknown, looked up, robots.txt read, fetching pages. All times are seconds since 1970 by one
monotonic clock.

Two requests to a host, or to hosts at one address, are separated by its delay (`policy.py`), measured from the end of
the first. Requests to all hosts of a registrable domain start at least `domain_delay` apart. With a delay of 0, several
requests may be in progress at once. The gates of addresses and domains do not apply to hosts that the user allowed by
name, which are in the user's own network.

**Exclusion.** A host is excluded for the rest of a run if its crawl delay is longer than `max_delay`, if its
Retry-After is longer than `max_wait`, if it fails after every break, and from the start if it is in `avoid`. Its pages
are refused with the reason, and `messages` gets a sentence about it.

robots.txt is read once a day. While it cannot be read, nothing else is requested from the host; it is retried as often
as a page, and after that no page of the host may be read. If there is no HTTP response at all, such as from a closed
port, this applies only to the pages of that origin, provided that another origin of the host has known rules.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from typing import Literal, Protocol

from surveyor.fetch.politeness.policy import (
    BREAKS,
    LONGEST_BREAK,
    RARELY,
    Agenda,
    Gate,
    Host,
    Network,
    PolitenessPolicy,
    RobotsRules,
    format_seconds,
)
from surveyor.outcome import RobotsFile
from surveyor.web.boundary import Failure, guarded
from surveyor.web.robots import Robots
from surveyor.web.urls import domain

LOG = logging.getLogger("surveyor.fetch")
DAY = 86_400.0
SLOW = 2.0  # seconds of crawl delay above which a remark is made
ASK_AGAIN = 0.05  # seconds until an address is asked for again
Step = Literal["address", "robots", "page"]


class SharedAddresses(Protocol):
    """Addresses that several processes request from."""

    def may_use(self, address: str, gate: Gate, now: float) -> bool:
        """Return whether this process may request from an address now."""


def monotonic_clock() -> Callable[[], float]:
    """Return a monotonic clock of seconds since 1970."""
    offset = time.time() - time.monotonic()
    return lambda: time.monotonic() + offset


class Hosts:
    """All hosts of a crawl, by number."""

    def __init__(
        self,
        delay: float | None = None,
        *,
        policy: PolitenessPolicy | None = None,
        clock: Callable[[], float] | None = None,
        resolves: bool = True,
        stored: Callable[[str], RobotsFile | None] = lambda _: None,
    ) -> None:
        """Create an empty table. The default policy has the delay given; without `resolves` no host is looked up.

        `stored` returns the stored robots.txt of an origin, if there is one.
        """
        self.clock = clock or monotonic_clock()
        self.policy = policy or PolitenessPolicy(delay=1.0 if delay is None else delay)
        self.messages: list[str] = []  # sentences for the user
        self._resolves, self._stored = resolves, stored
        self._started, self._resumed = self.clock(), -math.inf
        self._all: list[Host] = []
        self._ids: dict[str, int] = {}
        self._agenda = Agenda()
        self._gates: dict[str, Gate] = {}  # by address and domain
        self._network = Network()
        self.shared: SharedAddresses | None = None  # addresses that other processes request, too
        self._errors: dict[str, str] = {}  # why robots.txt could not be fetched before a restart, by origin

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, host: int) -> Host:
        return self._all[host]

    def number(self, name: str) -> int:
        """Return the number of a host; a new host gets the next number."""
        if (number := self._ids.get(name)) is None:
            number = self._ids[name] = len(self._all)
            host = Host(name, self._started, self.policy.delay, address=None if self._resolves else "")
            host.domain_gate = self._gate(host, domain(name))
            if self.policy.avoids(name):
                host.excluded = "it is on your list of hosts to avoid"
            self._all.append(host)
            self._agenda.wake(number, self._started)
        return number

    def resumed(self) -> None:
        """Make every host wait its full delay: the time of its last request is not known exactly."""
        self._resumed = self.clock()
        self._started = self._resumed + self.policy.delay
        for number, host in enumerate(self._all):
            self.wait(number, self._resumed + host.delay)

    def wake(self) -> list[int]:
        """Return the hosts that are ready."""
        now = self.clock()
        return [number for number in self._agenda.due(now) if self._is_ready(self._all[number], now)]

    @property
    def next_wake(self) -> float:
        """Time when the next host wakes; inf if none is scheduled."""
        soonest = self._agenda.next
        return math.inf if soonest is None else soonest

    def step(self, number: int, origin: str) -> Step | None:
        """Return the next request needed for a page of this origin; None if the host has to wait, and it then wakes."""
        host, now = self._all[number], self.clock()
        rules = host.rules.get(origin) or self._stored_rules(number, origin)
        if host.excluded:
            return "page"  # it will be refused
        if (first := self._request_step(number, host, now)) != "robots":
            return first
        if rules.robots is not None and now < rules.until:
            return "page"
        if now < rules.until:
            if rules.until < math.inf:
                self.wait(number, rules.until)
            return None
        return None if host.busy else "robots"  # it wakes when the requests in progress end

    def origin_wait(self, number: int, origin: str) -> float | None:
        """Return until when the pages of this origin alone wait; None if they do not, or all pages of the host do.

        They wait while there is no HTTP response from this origin, such as from a closed port, and another origin of
        the host has known rules; with a persistent policy, also while its robots.txt cannot be read.
        """
        host = self._all[number]
        rules = host.rules.get(origin)
        if self.policy.persistent and not host.excluded:
            rules = rules or self._stored_rules(number, origin)
            if rules.robots is not None and rules.robots.state == "unreachable":
                return rules.until if self.clock() < rules.until < math.inf else None
        if rules is None or rules.robots is not None or not rules.unanswered or host.excluded:
            return None
        known = any(one.robots is not None and one.robots.state != "unreachable" for one in host.rules.values())
        return rules.until if known and self.clock() < rules.until < math.inf else None

    def exclusion(self, number: int, origin: str) -> str:
        """Return why a host is excluded, also by its stored robots.txt; empty if it is not."""
        if origin not in self._all[number].rules:
            self._stored_rules(number, origin)
        return self._all[number].excluded

    def robots_step(self, number: int, origin: str) -> Step | None:
        """Return the next step for a request that is not a page of the host: a robots.txt redirected to it.

        None if the host has to wait or is excluded.
        """
        return None if self.exclusion(number, origin) else self._request_step(number, self._all[number], self.clock())

    def _request_step(self, number: int, host: Host, now: float) -> Step | None:
        """Return "address" before the lookup, "robots" if a request may start now, else None; then the host wakes."""
        if not self._is_ready(host, now):  # it was awake when its wait was set, or fetches a file for another host
            return None
        if host.address is None:
            return "address"
        if (gate := _closed(host, now)) is not None:
            self._agenda.queue(number, gate)
            return None
        if self.shared is not None and host.address and host.address_gate is not None and host.delay > 0:
            if not self.shared.may_use(host.address, host.address_gate, now):
                self._agenda.wake(number, now + ASK_AGAIN)
                return None
            if (gate := _closed(host, now)) is not None:
                self._agenda.queue(number, gate)
                return None
        return "robots"

    def refusal(self, number: int, origin: str, url: str) -> str:
        """Return why a page may not be fetched; empty if it may."""
        host = self._all[number]
        if host.excluded:
            return host.excluded
        rules = host.rules[origin]
        if rules.robots is None or (host.name in self.policy.permitted and rules.robots.state == "rules"):
            return ""
        why = guarded(url, rules.robots.why, url)
        if isinstance(why, Failure):
            return f"robots.txt {why.reason}"
        return why and (rules.error or why)

    def lease(self, number: int, step: Step) -> bool:
        """Record the start of a request; return whether another to this host may start at once."""
        host = self._all[number]
        delay = host.delay
        host.busy += 1
        host.is_exclusive = step != "page" or delay > 0
        if step != "address" and delay > 0:
            if host.address_gate is not None:
                host.address_gate.held += 1
                host.holds_gate = True
            if host.domain_gate is not None:
                spacing = min(self.policy.domain_delay, delay)
                host.domain_gate.free_at = max(host.domain_gate.free_at, self.clock() + spacing)
        return not host.is_exclusive

    def end_request(self, number: int, *, asked: bool = True) -> None:
        """Record the end of a request; if the host was `asked` for something, its delay starts now."""
        host, now = self._all[number], self.clock()
        host.busy -= 1
        delay = host.delay * asked
        until = now + delay
        if host.address_gate is not None and delay > 0:
            host.address_gate.free_at = max(until, host.address_gate.free_at)
        if host.holds_gate and host.address_gate is not None:
            host.holds_gate = False
            self._agenda.release(host.address_gate, host.address_gate.free_at)
        self.wait(number, until)

    def wait(self, number: int, until: float) -> None:
        """Make no request to a host before `until`."""
        host = self._all[number]
        host.ready_at = max(host.ready_at, until)
        self._agenda.wake(number, host.ready_at)

    def back_off(self, number: int, until: float, why: str) -> None:
        """Back off from a host until a time (Retry-After, or 429 without one); exclude it beyond `max_wait`."""
        self.wait(number, until)
        self._set_backoff(number, until, why)
        if (seconds := until - self.clock()) > self.policy.max_wait and not self.policy.persistent:
            name, most = self._all[number].name, format_seconds(self.policy.max_wait)
            problem = f"{name} requests a pause of {format_seconds(seconds)}, longer than max_wait ({most})"
            self._exclude(number, f"{name} requests a pause beyond max_wait ({why})", f"{problem}: it is skipped")

    def backoff(self, number: int) -> tuple[float, int, str] | None:
        """Return the end of a host's backoff, the tries of robots.txt, and the reason; None if there is no backoff."""
        host, now = self._all[number], self.clock()
        found = [(host.backoff_until, 0, host.backoff_why)] if host.backoff_until > now else []
        for origin, rules in host.rules.items():
            if rules.robots is None and rules.tries and now < rules.until < math.inf:
                found.append((rules.until, rules.tries, f"robots.txt of {origin} could not be fetched: {rules.error}"))
        return min(found, default=None)

    def record_response(self, number: int, seconds: float | None, failure: float, why: str = "") -> float | None:
        """Update the delay of a host from a response time and a failure weight.

        Return the end of a break, None if there is none.
        """
        host, now = self._all[number], self.clock()
        before, rest = host.delay, host.record(seconds, failure)
        if failure or host.delay > before:
            self.wait(number, now + host.delay)
        if not rest or host.excluded:
            return None
        if rest == math.inf and self.policy.persistent:
            rest = min(LONGEST_BREAK * 2.0 ** min(host.breaks - BREAKS, 10), RARELY)
        if rest == math.inf:
            problem = f"{host.name} only fails (last: {why})"
            self._exclude(number, problem, f"{problem}, and breaks have not helped: it is left out")
            return None
        if not self.policy.persistent or host.breaks == 1:
            text = f"{host.name} fails again and again (last: {why}): it gets {format_seconds(rest)} of rest"
            self.messages.append(text)
        self.wait(number, now + rest)
        self._set_backoff(number, now + rest, f"it only fails (last: {why})")
        return now + rest

    def set_address(self, number: int, address: str) -> None:
        """Record the address of a host; empty if it is unknown."""
        host = self._all[number]
        host.address, host.address_gate = address, self._gate(host, address)

    def set_robots(self, number: int, origin: str, robots: Robots, until: float, *, error: str = "") -> None:
        """Record the rules of an origin and their expiry; `error` is why robots.txt could not be fetched."""
        host = self._all[number]
        host.rules[origin] = RobotsRules(robots, until, error=error)
        if robots.limit and host.name not in self.policy.permitted:
            self.messages.append(f"{origin}: {robots.limit}, so none of its pages is fetched")
        delays = [rules.robots.crawl_delay or 0.0 for rules in host.rules.values() if rules.robots is not None]
        before, host.min_delay = host.min_delay, max(self.policy.delay, *delays)
        if host.min_delay == before:
            return
        pages = f"{format_seconds(host.min_delay)} between two pages (Crawl-delay)"
        if max(delays) > self.policy.max_delay:
            most = f"more than max_delay ({format_seconds(self.policy.max_delay)})"
            self._exclude(
                number, f"robots.txt asks for {pages}, {most}", f"{host.name} asks for {pages}, {most}: it is left out"
            )
        elif max(delays) > max(SLOW, self.policy.delay):
            self.messages.append(f"{host.name} asks for {pages}: at most {3600 / host.min_delay:,.0f} pages an hour")

    def robots_redirected(self, number: int, origin: str) -> None:
        """Record that robots.txt redirects to another host, from which it will be fetched."""
        rules = self._all[number].rules[origin]
        rules.robots, rules.until = None, math.inf  # the previous rules have expired

    def robots_failed(
        self,
        number: int,
        origin: str,
        until: float,
        *,
        counts: bool = True,
        error: str = "",
        unanswered: bool = False,
    ) -> None:
        """Record that robots.txt could not be fetched, when to retry, and whether there was no HTTP response at all."""
        rules = self._all[number].rules.setdefault(origin, RobotsRules())
        rules.unanswered = unanswered
        rules.robots, rules.until, rules.tries, rules.error = None, until, rules.tries + counts, error

    def restore_robots_failure(
        self, number: int, origin: str, until: float | None, tries: int, error: str, status: int | None = None
    ) -> None:
        """Restore after a restart that robots.txt could not be fetched; `until` is None if it is not to be retried."""
        self._errors[origin] = error
        if until is not None:
            error, unanswered = error or f"http {status}", bool(error) and status is None
            self._all[number].rules[origin] = RobotsRules(None, until, tries, error, unanswered=unanswered)

    def tries(self, number: int, origin: str) -> int:
        """Return how often the robots.txt of an origin could not be fetched."""
        rules = self._all[number].rules.get(origin)
        return 0 if rules is None else rules.tries

    def reached(self, number: int, origin: str, *, earlier: bool = False) -> None:
        """Record that an origin of a host responded, now or, if `earlier`, before a restart."""
        shared = domain(self._all[number].name)
        if earlier:
            self._network.remember(origin, shared)
        else:
            self._network.reached(origin, shared, self.clock())

    def unreached(self, number: int, origin: str, *, offline: bool = False, why: str = "") -> float | None:
        """Record that an origin is unreachable; return until when to wait, None if the host has failed.

        Either all hosts wait until `paused_until`, because the local network is down, or only this host waits.
        """
        name, now = self._all[number].name, self.clock()
        until = self._network.unreached(origin, domain(name), now, offline=offline, is_own=name in self.policy.own)
        if until is not None and self.paused_until <= now:
            self.wait(number, until)
            self._set_backoff(number, until, why)
        return until

    @property
    def is_silent(self) -> bool:
        """Whether hosts that responded before are waited for without counting failures."""
        return max(self._network.paused_until, self._network.held_until) > self.clock()

    @property
    def paused_until(self) -> float:
        """Until when no host is asked, because the local network is down."""
        return self._network.paused_until

    def _set_backoff(self, number: int, until: float, why: str) -> None:
        host = self._all[number]
        if until > host.backoff_until:
            host.backoff_until, host.backoff_why = until, why

    def _is_ready(self, host: Host, now: float) -> bool:
        return bool(host.excluded) or (host.ready_at <= now and not (host.busy and host.is_exclusive))

    def _gate(self, host: Host, name: str) -> Gate | None:
        """Return the gate of an address or a domain, if it applies to a host."""
        if not name or host.name in self.policy.own:
            return None
        if (gate := self._gates.get(name)) is None:
            gate = self._gates[name] = self._agenda.gate()
        return gate

    def _exclude(self, number: int, reason: str, remark: str) -> None:
        """Exclude a host: refuse all its pages from now on."""
        host = self._all[number]
        if not host.excluded:
            host.excluded = reason
            self.messages.append(remark)
            fields = {"host": host.name, "reason": reason}
            LOG.warning("host %s is excluded: %s", host.name, reason, extra={"fields": fields})
        self._agenda.wake(number, self.clock())

    def _stored_rules(self, number: int, origin: str) -> RobotsRules:
        """Return the stored rules of an origin if they are still valid, and apply their delay."""
        rules = self._all[number].rules[origin] = RobotsRules()
        kept = self._stored(origin)
        until = 0.0 if kept is None else _expiry(kept, self.clock())
        if kept is not None and until > self.clock():
            status, error = (None if kept.status == 0 else kept.status), self._errors.get(origin, "")
            found = guarded(f"{origin}/robots.txt", _compiled, status, kept.body)
            robots = Robots("unreachable") if isinstance(found, Failure) else found  # another version could parse it
            error = f"robots.txt {found.reason}" if isinstance(found, Failure) else error
            self.set_robots(number, origin, robots, until, error=error)
            rules = self._all[number].rules[origin]
            self.wait(number, self._resumed + self._all[number].delay)
        return rules


def _expiry(kept: RobotsFile, now: float) -> float:
    """Return when a robots.txt expires: after a day at most, whatever the journal says; 0 if it is from the future."""
    is_possible = isinstance(kept.fetched_at, float) and isinstance(kept.expires_at, float) and kept.fetched_at <= now
    return min(kept.expires_at, kept.fetched_at + DAY) if is_possible else 0.0


def _compiled(status: int | None, body: bytes) -> Robots:
    """Return the rules of a response, parsed and indexed."""
    robots = Robots.from_answer(status, body)
    _ = robots.crawl_delay
    return robots


def _closed(host: Host, now: float) -> Gate | None:
    """Return a gate that is closed for a host, or None."""
    place, shared = host.address_gate, host.domain_gate
    if place is not None and (place.held or place.free_at > now):
        return place
    if shared is not None and (shared.held or shared.free_at > now):
        return shared
    return None
