"""Gates: rate limits shared by the hosts at one address, or by the hosts of one domain.

A gate is held while an exclusive request is in progress, and stays closed for a delay after it. Hosts that reach a
closed gate are queued. When it opens, only the first `FEW` are woken and the best page among them is fetched; the
others are queued again. The cost of a request is therefore the same for ten and for ten thousand hosts at one address.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from dataclasses import dataclass, field

FEW = 64  # hosts that are woken when a gate opens
LOOK_AGAIN = 0.01  # seconds until the next ones are woken, if none of them proceeds


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

    def happened(self, now: float) -> list[int]:
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
                self._plan(gate, now + LOOK_AGAIN)
            else:
                self._plan(gate, gate.free_at)
        return woken
