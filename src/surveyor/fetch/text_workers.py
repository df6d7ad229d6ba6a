"""Read the texts of many pages in several processes, in order.

Each process is a `Parser`: it is killed if a page takes longer than some seconds or too much memory, and replaced. The
event loop that talks to them runs in a thread of its own, so the caller is an ordinary function, also in a notebook.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from surveyor.fetch.parser import Parser
from surveyor.kernels.thread_pool import cores
from surveyor.web.boundary import Failure
from surveyor.web.page_text import PageText

MOST_WORKERS = 8
AHEAD = 4  # pages in progress per worker
Key = TypeVar("Key")


class Body(NamedTuple):
    """A response whose text is to be read."""

    url: str
    headers: dict[str, str]
    body: bytes
    declared: str = ""  # language


class TextWorkers:
    """Processes that read texts; a context manager."""

    def __init__(self, demote: int = 0, count: int | None = None, *, is_markdown: bool = True) -> None:
        """`demote` lowers the headings of Markdown; `count` is the number of processes (default: one per core)."""
        self._demote, self._is_markdown = demote, is_markdown
        self._parsers = [Parser() for _ in range(count or min(cores(), MOST_WORKERS))]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="surveyor-texts", daemon=True)

    def __enter__(self) -> TextWorkers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def map(self, bodies: Iterable[tuple[Key, Body | None]]) -> Iterator[tuple[Key, PageText | Failure | None]]:
        """Yield the key and the text of each response, in order; None for None and for what is not text."""
        waiting: deque[tuple[Key, Future[PageText | Failure | None] | None]] = deque()
        for number, (key, body) in enumerate(bodies):
            parser = self._parsers[number % len(self._parsers)]
            waiting.append((key, None if body is None else self._submit(parser, body)))
            if len(waiting) > AHEAD * len(self._parsers):
                yield _done(*waiting.popleft())
        while waiting:
            yield _done(*waiting.popleft())

    def _submit(self, parser: Parser, body: Body) -> Future[PageText | Failure | None]:
        work = parser.page_text(
            body.url, body.headers, body.body, body.declared, self._demote, is_markdown=self._is_markdown
        )
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _close(self) -> None:
        tasks = asyncio.all_tasks(self._loop) - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(parser.close() for parser in self._parsers))


def _done(key: Key, future: Future[Any] | None) -> tuple[Key, PageText | Failure | None]:
    return key, None if future is None else future.result()
