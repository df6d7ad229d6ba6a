"""Detect that the local network is down, so that failures are not attributed to hosts.

A refused connection is a response: the machine is reachable. Evidence are only failed lookups and connections without
any response, and only of origins that have responded before; a closed port of a host proves nothing.

- The network is **down** if at least `NOBODY` registrable domains are unreachable and no request succeeded since, nor
  in the last `RECENT` seconds. Then all hosts pause. Hosts that the user allowed by name are not counted.
- If this machine itself reports that it is offline, all hosts pause at once, unless a request succeeded in the last
  `RECENT` seconds: a remote router may report the same for one address.
- If fewer domains are known and all of them are unreachable, each unreachable host is **held**: its pages wait without
  being counted as failed, and all other hosts continue.

Each pause is longer than the last. After `PAUSES` of them the hosts are considered unreachable, unless this machine
itself reports that it is offline. A domain that failed while others were reached, or that caused a pause which ended
when others were reached, is not evidence until it has responded.
"""

from __future__ import annotations

import math

NOBODY = 3  # unreachable domains from which on the network is considered down
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
        says_so = offline and not is_recent and domain not in self._unreliable
        evidence = self._silent - self._own - self._unreliable
        if says_so or (len(evidence) >= NOBODY and not is_recent):
            if now >= self.paused_until:
                if self._pauses >= PAUSES and not says_so:
                    return None
                self.paused_until = self._longer(now)
            self._suspects |= evidence | ({domain} if says_so else set())
            return self.paused_until
        if origin in self._known and len(self._domains) < NOBODY and self._silent >= self._domains:
            if now >= self.held_until:
                if self._pauses >= PAUSES:
                    return None
                self.held_until = self._longer(now)
            return self.held_until
        return None

    def _longer(self, now: float) -> float:
        self._pauses += 1
        return now + min(FIRST_PAUSE * 2.0 ** (self._pauses - 1), LONGEST_PAUSE)
