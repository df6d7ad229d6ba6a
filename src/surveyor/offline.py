"""Whether the network here is down: then all pauses, and no host is blamed.

If hosts that have answered before cannot be reached, several in a row and none in between answers, it is the network
here that is down. Each pause is longer than the last; after `PAUSES` of them the hosts are taken to be gone after all,
unless this machine itself says that it is offline.
"""

from __future__ import annotations

NOBODY = 3  # hosts that cannot be reached, one after the other, before the network is taken to be down
FIRST_PAUSE, LONGEST_PAUSE, PAUSES = 5.0, 300.0, 8  # seconds, doubling


class Network:
    """The way from here to all hosts."""

    def __init__(self) -> None:
        self.paused_until = 0.0
        self._known: set[int] = set()  # hosts that have answered
        self._silent: set[int] = set()  # those of them that could not be reached since
        self._pauses = 0

    def reached(self, host: int) -> None:
        """Note that a host has answered: the network is there."""
        self._known.add(host)
        self._silent.clear()
        self._pauses = 0

    def unreached(self, host: int, now: float, *, offline: bool = False) -> bool:
        """Note that a host could not be reached; return whether the network is down, until `paused_until`."""
        if host in self._known:
            self._silent.add(host)
        if not (offline or 0 < min(NOBODY, len(self._known)) <= len(self._silent)):
            return False
        if now >= self.paused_until:
            if self._pauses >= PAUSES and not offline:
                return False
            self.paused_until = now + min(FIRST_PAUSE * 2**self._pauses, LONGEST_PAUSE)
            self._pauses += 1
        return True
