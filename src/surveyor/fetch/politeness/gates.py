"""Gates that hosts share: the hosts at one address go through one, and so do the hosts of one domain.

A gate is held while a request is under way that no other may join, and closed for a while after it. Hosts that come to
a closed gate queue up. When it opens only the first few are woken, and of those the best page is asked for; the others
queue up again. So a request costs the same whether ten hosts share an address or ten thousand.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from dataclasses import dataclass, field

FEW = 64  # hosts that are woken when a gate opens
LOOK_AGAIN = 0.01  # seconds, should none of them go through


@dataclass(slots=True)
class Gate:
    """One gate."""

    number: int
    free_at: float = 0.0
    held: int = 0  # requests under way that hold it
    is_planned: bool = False  # its opening is on the agenda
    queue: OrderedDict[int, None] = field(default_factory=OrderedDict)

    def is_open(self, now: float) -> bool:
        """Say whether a request may go through."""
        return not self.held and self.free_at <= now


class Agenda:
    """What happens when: hosts wake, gates open."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int]] = []  # hosts by number, gates by the complement of theirs
        self._gates: list[Gate] = []

    @property
    def next(self) -> float | None:
        """When something happens next."""
        return self._due[0][0] if self._due else None

    def gate(self) -> Gate:
        """Make a gate."""
        self._gates.append(Gate(len(self._gates)))
        return self._gates[-1]

    def wake(self, host: int, at: float) -> None:
        """Let a host wake then."""
        heapq.heappush(self._due, (at, host))

    def queue(self, host: int, gate: Gate) -> None:
        """Let a host wake when a gate opens."""
        gate.queue[host] = None
        self._plan(gate, gate.free_at)

    def release(self, gate: Gate, until: float) -> None:
        """Note that a request which held a gate has ended; nothing else goes through before `until`."""
        gate.held -= 1
        gate.free_at = max(gate.free_at, until)
        self._plan(gate, gate.free_at)

    def _plan(self, gate: Gate, at: float) -> None:
        if gate.queue and not gate.is_planned and not gate.held:
            gate.is_planned = True
            heapq.heappush(self._due, (at, ~gate.number))

    def happened(self, now: float) -> list[int]:
        """Return the hosts that have woken by now, each as often as it was to be woken."""
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
