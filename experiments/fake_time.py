"""A fake clock, for crawls and watches that take no real time."""

from __future__ import annotations

import asyncio
import heapq
import math
from itertools import count


class Time:
    """Fake clock that advances when all tasks are waiting."""

    def __init__(self, now: float = 1e9) -> None:
        self.now = now
        self._number = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._waiting = 0

    def __call__(self) -> float:
        """Return the time."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Wait for seconds of the fake time."""
        if not self._waiting and seconds < math.inf:  # one task alone
            self.now += seconds
            return
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.now + seconds, next(self._number), woken))
        await woken

    async def wait(self, something: asyncio.Event, until: float) -> None:
        """Advance the time until the event is set, or to `until`."""
        self._waiting += 1
        try:
            await self._advance(something, until)
        finally:
            self._waiting -= 1

    async def _advance(self, something: asyncio.Event, until: float) -> None:
        await _settle()
        while not something.is_set():
            first = self._sleepers[0][0] if self._sleepers else math.inf
            if min(first, until) == math.inf:
                raise AssertionError("deadlock: nothing can happen any more")
            self.now = max(self.now, min(first, until))
            if first > until:
                return
            while self._sleepers and self._sleepers[0][0] <= self.now:
                woken = heapq.heappop(self._sleepers)[2]
                if not woken.done():
                    woken.set_result(None)
            await _settle()


async def _settle() -> None:
    for _ in range(6):
        await asyncio.sleep(0)
