"""Whether the network here is down: then no host is blamed for it.

A refused connection is an answer: the machine is there. Evidence are only names that cannot be looked up and
connections that nobody answers, and only of origins that have answered before; a closed port of a host proves nothing.

- **Down** is the network if `NOBODY` registrable domains or more are silent and no request succeeded since, nor in the
  last `RECENT` seconds. All hosts pause then. Hosts that the user allowed by name do not count.
- If this machine itself says that it is offline, all hosts pause at once, unless a request succeeded in the last
  `RECENT` seconds: a distant router may say the same of one address.
- If fewer domains are known and all of them are silent, each silent host **holds** by itself: its pages wait without
  being counted as failed, all others go on.

Each pause is longer than the last; after `PAUSES` of them the hosts are taken to be gone after all, unless this machine
itself says that it is offline. A domain that failed while others were reached, or because of which all paused before
others were reached, is no evidence until it has answered.
"""

from __future__ import annotations

import math

NOBODY = 3  # domains that are silent before the network is taken to be down
RECENT = 5.0  # seconds for which a success proves that the network is there
FIRST_PAUSE, LONGEST_PAUSE, PAUSES = 5.0, 300.0, 8  # seconds, doubling


class Network:
    """The way from here to all hosts."""

    def __init__(self) -> None:
        self.paused_until = 0.0  # for all hosts
        self.held_until = 0.0  # for hosts that are silent
        self._known: set[str] = set()  # origins that have answered
        self._domains: set[str] = set()  # of those
        self._silent: set[str] = set()  # those that could not be reached since the last success
        self._own: set[str] = set()  # those of the user's network
        self._suspects: set[str] = set()  # those because of which all paused
        self._unreliable: set[str] = set()  # those that failed while others were reached
        self._pauses = 0
        self._reached_at = -math.inf

    def remember(self, origin: str, domain: str) -> None:
        """Take in that an origin has answered before a restart."""
        self._known.add(origin)
        self._domains.add(domain)

    def reached(self, origin: str, domain: str, now: float) -> None:
        """Take in that an origin has answered: the network is there."""
        self.remember(origin, domain)
        self._unreliable |= self._suspects
        self._unreliable.discard(domain)
        self._suspects.clear()
        self._silent.clear()
        self._pauses, self._reached_at = 0, now

    def unreached(
        self, origin: str, domain: str, now: float, *, offline: bool = False, is_own: bool = False
    ) -> float | None:
        """Take in that an origin is silent; return until when to wait without blaming it, None if it is to blame."""
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
