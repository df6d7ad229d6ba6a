"""Live parts of pages as server-sent events: one poller for each page that is watched, shared by all its streams.

A poller looks once a second whether the files behind a page have changed, renders its parts if so, and wakes the
streams. A stream sends the parts that have changed since those it sent last, so that a slow reader gets the latest
state and never a backlog; without readers there is no poller.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

LOG = logging.getLogger("surveyor.serve")
PERIOD = 1.0  # seconds
HEARTBEAT = 15.0  # seconds without an event after which a comment keeps the connection open
MOST_STREAMS = 1000

Stamp = Any  # changes when the files behind a page do
Parts = dict[str, str]  # HTML by the id of its element


@dataclass(slots=True)
class _Feed:
    """The parts of one page, and who waits for them."""

    stamp: Stamp = None
    version: int = 0
    parts: dict[str, tuple[int, str]] = field(default_factory=dict)  # with the version of their last change
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    readers: int = 0
    task: asyncio.Task[None] | None = None


class Hub:
    """All streams of a server."""

    def __init__(self, stamp: Callable[[str], Stamp], render: Callable[[str], Parts]) -> None:
        self._stamp, self._render = stamp, render
        self._feeds: dict[str, _Feed] = {}
        self._closing = asyncio.Event()

    @property
    def streams(self) -> int:
        """Number of open streams."""
        return sum(feed.readers for feed in self._feeds.values())

    def close(self) -> None:
        """End all streams."""
        self._closing.set()
        for feed in self._feeds.values():
            feed.changed.set()

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        """Yield the events of a page until the server ends."""
        feed = self._feeds.setdefault(key, _Feed())
        feed.readers += 1
        if feed.task is None:
            feed.task = asyncio.get_running_loop().create_task(self._poll(key, feed))
        seen = 0
        try:
            yield b"retry: 2000\n\n"
            while not self._closing.is_set():
                if feed.version > seen:
                    parts = {name: html for name, (version, html) in feed.parts.items() if version > seen}
                    seen = feed.version
                    yield f"event: parts\ndata: {json.dumps(parts, ensure_ascii=False)}\n\n".encode()
                    continue
                waiting = feed.changed
                try:
                    await asyncio.wait_for(waiting.wait(), HEARTBEAT)
                except TimeoutError:
                    yield b": \n\n"
        finally:
            feed.readers -= 1
            if not feed.readers:
                self._feeds.pop(key, None)
                if feed.task is not None:
                    feed.task.cancel()

    async def _poll(self, key: str, feed: _Feed) -> None:
        while not self._closing.is_set():
            try:
                await self._look(key, feed)
            except Exception:  # one look that fails must not end the events of a page
                LOG.exception("the live parts of %r failed", key)
            await asyncio.sleep(PERIOD)

    async def _look(self, key: str, feed: _Feed) -> None:
        """Wake the streams of a page if its parts have changed."""
        stamp = await asyncio.to_thread(self._stamp, key)
        if stamp != feed.stamp or not feed.version:
            feed.stamp = stamp
            parts = await asyncio.to_thread(self._render, key)
            changes = {name: html for name, html in parts.items() if feed.parts.get(name, (0, ""))[1] != html}
            if changes or not feed.version:
                feed.version += 1
                feed.parts |= {name: (feed.version, html) for name, html in changes.items()}
                waiting, feed.changed = feed.changed, asyncio.Event()
                waiting.set()
