"""Leases of IP addresses that hosts of several shards share, so that all shards together keep their delays.

The shard that hash(address) selects *owns* an address: it lends it to one shard at a time. A shard requests nothing
from an address without a lease. When another shard wants it, the owner recalls it; it comes back after the request in
progress, with the rest of the delay, and the next shard waits that long. A lease ends by itself `TERM` seconds after it
was *asked* for by the clock of the shard that has it, which is earlier than by the clock of the owner; so the owner may
lend it again after that, plus the longest time that a request and a delay take. An owner that was restarted waits as
long. All messages may be lost, repeated or late: grants are numbered, everything is asked for again, and a shard that
is asked to return a lease that it does not have says so, unless it was restarted since.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeGuard

from surveyor.crawler.shards.placement import shard_of

if TYPE_CHECKING:
    from surveyor.fetch.politeness.policy import Gate

TERM = 5.0  # seconds of a lease
ASK_EVERY = 0.25  # seconds between two requests for the same address
LEAST_HOLD = 0.5  # seconds for which a lease is kept if it was not used yet
MOST = 2**62  # of a time or number in a message
FIRST = 2  # incarnation of a shard that was never started before; 1 is its creation
Message = list[Any]  # kind, sender, incarnation, address, values


@dataclass(slots=True)
class _Held:
    """A lease that this shard has."""

    gate: Gate
    serial: int
    until: float
    since: float
    recalled: bool = False
    used: bool = False


@dataclass(slots=True)
class _Owned:
    """An address that this shard lends."""

    serial: int = 0
    holder: int = -1
    incarnation: int = 0  # of the holder
    until: float = 0.0
    free_at: float = 0.0
    queue: OrderedDict[int, tuple[int, float, float]] = field(default_factory=OrderedDict)
    # shard -> its incarnation, when it asked by its own clock, and when that arrived


VALUES = {"want": 1, "release": 2, "recall": 1, "grant": 3}  # values that each kind of message has


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and value >= 0


class AddressLeases:
    """The addresses that a shard uses, and those that it lends."""

    def __init__(self, index: int, shards: int, incarnation: int, longest: float) -> None:
        """`longest` is the longest time in seconds that a request and its delay take."""
        self._index, self._shards, self._incarnation, self._longest = index, shards, incarnation, longest
        self._wanted: dict[str, tuple[Gate, float]] = {}  # gate, and when it was last asked for
        self._held: dict[str, _Held] = {}
        self._last: dict[str, tuple[int, float]] = {}  # last lease of each address that ended, and when it is free
        self._owned: dict[str, _Owned] = {}
        self._outgoing: list[tuple[int, Message]] = []
        self._lends_from = -1.0  # until then leases of an earlier incarnation may be in use

    def may_use(self, address: str, gate: Gate, now: float) -> bool:
        """Return whether this shard has the address; otherwise it is asked for."""
        if self._shards == 1:
            return True
        held = self._held.get(address)
        if held is not None and now < held.until and not (held.recalled and held.used):
            held.used = True
            return True
        if held is None:
            self._wanted.setdefault(address, (gate, -ASK_EVERY))
        return False

    def messages(self, now: float) -> Iterator[tuple[int, Message]]:
        """Yield what is to be sent to which shard: requests, leases given back, and answers of an owner."""
        if self._shards == 1:
            return
        self._give_back(now)
        for address, (gate, asked) in list(self._wanted.items()):
            if now >= asked + ASK_EVERY:
                self._wanted[address] = gate, now
                yield self._owner(address), ["want", self._index, self._incarnation, address, now]
        for address, held in self._held.items():
            if held.used and not held.recalled and now >= held.until - TERM / 2:
                yield self._owner(address), ["want", self._index, self._incarnation, address, now]
        outgoing, self._outgoing = self._outgoing, []
        yield from outgoing

    def _give_back(self, now: float) -> None:
        for address, held in list(self._held.items()):
            idle = not held.gate.held
            done = held.recalled and (held.used or now >= held.since + LEAST_HOLD)
            if (idle and (done or now >= held.until)) or now >= held.until + self._longest:
                del self._held[address]
                self._last[address] = held.serial, held.gate.free_at
                self._release_to(self._owner(address), address, now)

    def _release_to(self, owner: int, address: str, now: float) -> None:
        serial, free_at = self._last[address]
        message = ["release", self._index, self._incarnation, address, serial, max(0.0, free_at - now)]
        self._outgoing.append((owner, message))

    def receive(self, message: Message, now: float) -> None:
        """Accept a message; raise ValueError if it is none."""
        kind, sender, incarnation, address, *values = message
        if not (_is_count(sender) and sender < self._shards and _is_count(incarnation) and type(address) is str):
            raise ValueError("its sender, incarnation or address is invalid")
        if len(values) != VALUES.get(kind) or not all(type(one) in (int, float) and abs(one) < MOST for one in values):
            raise ValueError("its values are invalid")
        if self._lends_from < 0:
            first = self._incarnation <= FIRST  # nothing was lent before
            self._lends_from = now if first else now + TERM + self._longest
        if kind == "want":
            self._want(sender, incarnation, address, float(values[0]), now)
        elif kind == "release":
            self._release(sender, address, int(values[0]), float(values[1]), now)
        elif kind == "recall" and incarnation == self._incarnation:
            self._recall(sender, address, int(values[0]), now)
        elif kind == "grant" and incarnation == self._incarnation:
            self._grant(address, int(values[0]), float(values[1]), float(values[2]), now)

    def _want(self, sender: int, incarnation: int, address: str, asked: float, now: float) -> None:
        owned = self._owned.setdefault(address, _Owned(self._incarnation << 32, free_at=self._lends_from))
        if owned.holder >= 0 and now >= owned.until:
            owned.holder = -1  # it did not come back, and any request has ended by now
        if owned.holder == sender:
            if not owned.queue:
                owned.serial += incarnation != owned.incarnation  # what an earlier incarnation gives back is not this
                self._lend(owned, sender, incarnation, address, asked, now)
            return
        owned.queue[sender] = incarnation, asked, now
        if owned.holder >= 0:
            self._outgoing.append((owned.holder, ["recall", self._index, owned.incarnation, address, owned.serial]))
        else:
            self._lend_next(owned, address, now)

    def _recall(self, sender: int, address: str, serial: int, now: float) -> None:
        held = self._held.get(address)
        if held is not None and held.serial == serial:
            held.recalled = True
            return
        last, free_at = self._last.get(address, (-1, 0.0))
        if serial > last:  # the grant was lost; it is not accepted if it arrives now
            self._last[address] = serial, free_at
        if serial >= last:
            self._release_to(sender, address, now)

    def _release(self, sender: int, address: str, serial: int, rest: float, now: float) -> None:
        owned = self._owned.get(address)
        if owned is not None and owned.holder == sender and owned.serial == serial:
            owned.holder, owned.free_at = -1, max(owned.free_at, now + rest)
            self._lend_next(owned, address, now)

    def _lend_next(self, owned: _Owned, address: str, now: float) -> None:
        while owned.queue and owned.free_at <= now + TERM / 2:
            shard, (incarnation, asked, arrived) = owned.queue.popitem(last=False)
            if arrived + TERM > now:
                owned.serial += 1
                self._lend(owned, shard, incarnation, address, asked, now)
                return

    def _lend(self, owned: _Owned, shard: int, incarnation: int, address: str, asked: float, now: float) -> None:
        owned.holder, owned.incarnation, owned.until = shard, incarnation, now + TERM + self._longest
        wait = max(0.0, owned.free_at - now)
        self._outgoing.append((shard, ["grant", self._index, incarnation, address, owned.serial, asked, wait]))

    def _grant(self, address: str, serial: int, asked: float, wait: float, now: float) -> None:
        held, wanted = self._held.get(address), self._wanted.pop(address, None)
        if held is not None:
            if held.serial == serial:
                held.until = max(held.until, asked + TERM)
            return
        if wanted is None:
            return
        last = self._last.get(address, (-1, 0.0))[0]
        if now >= asked + TERM or serial <= last:
            self._wanted[address] = wanted
            if serial == last:  # the owner does not know yet that it was given back
                self._release_to(self._owner(address), address, now)
            return
        gate = wanted[0]
        gate.free_at = max(gate.free_at, now + wait)
        self._held[address] = _Held(gate, serial, asked + TERM, now)

    def _owner(self, address: str) -> int:
        return shard_of(address, self._shards)
