"""Numbered batches of mass between shards: each is applied once, in order, whatever the network does.

The sender numbers the batches to each receiver 1, 2, 3, … A batch is sent after the event `cut` that took its mass is
on disk, and sent again until the receiver has acknowledged it. The receiver applies batch n only if n − 1 was the last
one from this sender, and acknowledges n after the event `got` is on disk. So a batch that is lost, repeated, late or
overtaken changes nothing, and neither does the death of either process at any moment.

**Incarnations.** Each start of a shard has a number, which is on disk before its first batch. A receiver refuses
batches of a smaller incarnation than the largest it has seen, and batches of another crawl: what a process sends that
was replaced, but still runs, has no effect.

A batch on the wire is JSON; a float is written with as many digits as identify it, so masses arrive bit for bit.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from surveyor.errors import InputError
from surveyor.outcome import Event

MOST_ENTRIES = 20_000  # pages of a batch
WINDOW = 64  # batches to one receiver that may be unacknowledged
Verdict = Literal["apply", "known", "early", "refused"]


@dataclass(frozen=True, slots=True)
class MassBatch:
    """Mass that one shard sends to pages of another."""

    crawl: str  # identity of the crawl
    sender: int
    receiver: int
    incarnation: int  # of the sender
    epoch: int  # of the sender, when the mass was taken
    number: int  # from 1, of this channel
    names: tuple[str, ...]
    masses: tuple[float, ...]
    hops: tuple[int, ...] = ()  # how often the mass was forwarded by redirects; empty: never

    def to_bytes(self) -> bytes:
        """Return the batch as JSON."""
        return json.dumps([getattr(self, name) for name in self.__dataclass_fields__], separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> MassBatch:
        """Read a batch; raise InputError if it is not one."""
        try:
            crawl, sender, receiver, incarnation, epoch, number, names, masses, hops = json.loads(data)
            batch = cls(crawl, sender, receiver, incarnation, epoch, number, tuple(names), tuple(masses), tuple(hops))
            counts = (sender, receiver, incarnation, epoch, number, *hops)
            sound = all(type(count) is int and 0 <= count < 1 << 53 for count in counts) and type(crawl) is str
            sound = sound and all(type(name) is str for name in names)
            sound = sound and all(type(mass) is float and isfinite(mass) for mass in masses)
            sound = sound and len(names) == len(masses) and len(hops) in (0, len(names))
        except (ValueError, TypeError, RecursionError) as error:
            raise InputError(f"a batch of mass is damaged: {error}", hint="restart the crawl") from error
        if not sound:
            raise InputError("a batch of mass is damaged: it has invalid values", hint="restart the crawl")
        return batch


class Sender:
    """The batches that a shard has cut, until their receivers have acknowledged them."""

    def __init__(self) -> None:
        self._last: defaultdict[int, int] = defaultdict(int)  # number of the last batch to each shard
        self._unacknowledged: defaultdict[int, deque[MassBatch]] = defaultdict(deque)
        self._acknowledged: defaultdict[int, int] = defaultdict(int)
        self._recorded: defaultdict[int, int] = defaultdict(int)  # of these, the last in the journal

    def next_number(self, receiver: int) -> int:
        """Return the number of the next batch to a shard."""
        return self._last[receiver] + 1

    def has_room(self, receiver: int) -> bool:
        """Return whether another batch to a shard may be cut."""
        return len(self._unacknowledged[receiver]) < WINDOW

    def add(self, batch: MassBatch) -> None:
        """Add a batch whose cut is on disk."""
        self._last[batch.receiver] = batch.number
        if batch.number > self._acknowledged[batch.receiver]:
            self._unacknowledged[batch.receiver].append(batch)

    def restore(self, event: Event, batch_of: Callable[[Event], MassBatch]) -> None:
        """Restore the batch of a cut, unless it is known to have arrived."""
        to, number = int(event.detail["to"]), int(event.detail["number"])
        self._last[to] = number
        if number > self._acknowledged[to]:
            self._unacknowledged[to].append(batch_of(event))
        self._recorded[to] = self._acknowledged[to]

    def to_record(self, least: int) -> list[tuple[int, int]]:
        """Return shards and numbers up to which batches have arrived, if these are `least` more than recorded."""
        found = [(to, number) for to, number in self._acknowledged.items() if number >= self._recorded[to] + least]
        self._recorded.update(found)
        return found

    def acknowledge(self, receiver: int, number: int) -> None:
        """Forget the batches up to a number: they are on the receiver's disk."""
        self._acknowledged[receiver] = max(number, self._acknowledged[receiver])
        waiting = self._unacknowledged[receiver]
        while waiting and waiting[0].number <= number:
            waiting.popleft()

    def unacknowledged(self) -> list[MassBatch]:
        """Return the batches that are not acknowledged yet, in order."""
        return [batch for waiting in self._unacknowledged.values() for batch in waiting]

    @property
    def last(self) -> Mapping[int, int]:
        """Number of the last batch to each shard."""
        return dict(self._last)


class Receiver:
    """The last batch from each shard: the one staged for the next commit, and the one on disk."""

    def __init__(self, crawl: str, index: int, shards: int) -> None:
        self._crawl, self._index, self._shards = crawl, index, shards
        self._staged: defaultdict[int, int] = defaultdict(int)
        self._stored: defaultdict[int, int] = defaultdict(int)
        self._incarnations: defaultdict[int, int] = defaultdict(int)

    def judge(self, batch: MassBatch) -> Verdict:
        """Return what to do with a batch: apply it next, or ignore it because it is known, too early or refused."""
        if batch.crawl != self._crawl or batch.receiver != self._index:
            return "refused"
        if batch.sender == self._index or batch.sender >= self._shards:
            return "refused"
        last = self._staged[batch.sender]
        if batch.incarnation < self._incarnations[batch.sender] or batch.number > last + WINDOW:
            return "refused"  # no sender is further ahead, so what waits here is bounded
        self._incarnations[batch.sender] = batch.incarnation
        return "known" if batch.number <= last else "apply" if batch.number == last + 1 else "early"

    def stage(self, batch: MassBatch) -> None:
        """Record that a batch will be in the next commit."""
        self._staged[batch.sender] = batch.number

    def restore(self, sender: int, number: int, incarnation: int) -> None:
        """Restore a batch from the journal."""
        self._staged[sender] = number
        self._incarnations[sender] = max(incarnation, self._incarnations[sender])

    @property
    def staged(self) -> Mapping[int, int]:
        """Number of the last batch from each shard that is staged or on disk."""
        return dict(self._staged)

    def stored(self, staged: Mapping[int, int]) -> dict[int, int]:
        """Record that a commit of what was staged is on disk; return the numbers to acknowledge, by sender."""
        new = {sender: number for sender, number in staged.items() if number > self._stored[sender]}
        self._stored.update(new)
        return new

    @property
    def last(self) -> Mapping[int, int]:
        """Number of the last batch from each shard that is on disk."""
        return dict(self._stored)
