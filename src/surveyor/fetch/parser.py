"""Parse expensive pages in a separate process, which can be stopped; a thread cannot, and holds the GIL.

A crawl itself parses the pages that are cheap by a proven bound (`html.read_cheap_page`). All others, texts whose
charset must be guessed, and long lists are sent to one worker (`parser_worker.py`), which is started on first use. If a
page takes longer than some seconds, or too much memory, the worker is killed and the page is *blocked* ("could not be
parsed: took longer than 5 s"). The next page gets a new worker.

While a page is parsed its host is not asked for another, so one host has at most one page waiting here. Each timeout
shortens the limit for the next page of the host, down to half a second, until one is parsed in time: a host that sends
only such pages delays those of others only a little.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import surveyor
from surveyor.fetch.parser_worker import LENGTH
from surveyor.web.boundary import Failure, failure
from surveyor.web.html import Link, Page
from surveyor.web.page_text import PageText
from surveyor.web.sitemaps import Listing
from surveyor.web.urls import host

SECONDS = 5.0  # timeout of one page or list
LEAST = 0.5  # minimum timeout, for a host with repeated timeouts
STARTING = 60.0  # timeout in seconds for the start of a worker, on a busy machine
_LOG = logging.getLogger("surveyor.parsing")


class Parser:
    """Parses in a worker process; call `close` at the end."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds, self._lock = seconds, asyncio.Lock()
        self._timeouts: dict[str, int] = {}  # in a row, by host
        self._process: Process | None = None
        self._stopped: list[Process] = []  # killed, not yet waited for

    async def page(self, url: str, headers: Mapping[str, str], body: bytes) -> Page | Failure:
        """Parse a page without its text, like `html.read_page` with normalised URLs."""
        answer = await self._ask({"task": "page", "url": url, "headers": dict(headers)}, body)
        return answer if isinstance(answer, Failure) else _unpacked(answer)

    async def text_hash(self, url: str, headers: Mapping[str, str], body: bytes) -> bytes | Failure:
        """Hash the main text of a page, like `main_text.text_hash`."""
        answer = await self._ask({"task": "text", "url": url, "headers": dict(headers)}, body)
        return answer if isinstance(answer, Failure) else bytes.fromhex(answer)

    async def page_text(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        declared: str = "",
        demote: int = 0,
        *,
        is_markdown: bool = True,
    ) -> PageText | Failure | None:
        """Read the main text of a page, like `page_text.read_text`."""
        options = {"declared": declared, "demote": demote, "is_markdown": is_markdown}
        answer = await self._ask({"task": "page text", "url": url, "headers": dict(headers), **options}, body)
        return answer if answer is None or isinstance(answer, Failure) else PageText(**answer)

    async def content(self, url: str, headers: Mapping[str, str], body: bytes) -> Page | None:
        """Return a page with its title, language and visible text only; None if that fails."""
        answer = await self._ask({"task": "content", "url": url, "headers": dict(headers)}, body)
        return None if isinstance(answer, Failure) else Page(**answer)

    async def listing(self, url: str, body: bytes) -> Listing | Failure | None:
        """Parse a list of pages, like `sitemaps.read_listing`."""
        answer = await self._ask({"task": "listing", "url": url}, body)
        if answer is None or isinstance(answer, Failure):
            return answer
        return Listing(answer["kind"], *(tuple(answer[name]) for name in ("pages", "lists", "modified")))

    async def close(self) -> None:
        """Stop the worker."""
        self._stop()
        for process in self._stopped:
            await process.wait()
        self._stopped.clear()

    async def _ask(self, request: dict[str, Any], body: bytes) -> Any:
        owner = host(request["url"])
        async with self._lock:
            seconds = max(self._seconds / (1 + self._timeouts.get(owner, 0)), LEAST)
            try:
                process = self._process or await self._started()
                answer = await self._exchange(process, request, body, seconds)
            except TimeoutError:
                self._stop()
                self._timeouts[owner] = self._timeouts.get(owner, 0) + 1
                return self._lost(request, f"took longer than {seconds:.2g} s")
            except (OSError, EOFError, ValueError) as error:  # a broken pipe, or an invalid answer
                self._stop()
                return self._lost(request, f"the parser ended ({type(error).__name__})")
            except BaseException:  # cancelled while waiting for an answer
                self._stop()
                raise
        self._timeouts.pop(owner, None)
        if "failed" in answer:
            _LOG.error("%s could not be parsed\n%s", request["url"], answer["traceback"])
            return failure(answer["failed"])
        return answer["answer"]

    async def _exchange(self, process: Process, request: dict[str, Any], body: bytes, seconds: float) -> Any:
        if process.stdin is None:
            raise EOFError
        head = json.dumps({**request, "size": len(body)}).encode()
        async with asyncio.timeout(seconds):
            process.stdin.writelines([len(head).to_bytes(LENGTH, "big"), head, body])
            await process.stdin.drain()
            return await _received(process)

    async def _started(self) -> Process:
        """Start a worker that imports this package, and never modules of the working directory."""
        path = os.pathsep.join(filter(None, [str(Path(surveyor.__file__).parents[1]), os.environ.get("PYTHONPATH")]))
        worker = [sys.executable, "-P", "-m", "surveyor.fetch.parser_worker", str(2 * self._seconds)]
        self._process = process = await asyncio.create_subprocess_exec(
            *worker,
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            start_new_session=True,  # Ctrl-C in a terminal is handled by this process
            env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
        )
        async with asyncio.timeout(STARTING):
            await _received(process)
        return process

    def _stop(self) -> None:
        if self._process is not None:
            if self._process.returncode is None:
                self._process.kill()
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._stopped.append(self._process)
            self._process = None

    def _lost(self, request: Mapping[str, Any], why: str) -> Failure:
        _LOG.error("%s could not be parsed: %s", request["url"], why)
        return failure(why)


async def _received(process: Process) -> Any:
    if process.stdout is None:
        raise EOFError
    length = int.from_bytes(await process.stdout.readexactly(LENGTH), "big")
    return json.loads(await process.stdout.readexactly(length))


def _unpacked(answer: dict[str, Any]) -> Page:
    until, urls, follow = answer.pop("unavailable_after"), answer.pop("urls"), answer.pop("follow")
    links = tuple(map(Link, urls, follow))
    answer |= {name: tuple(answer[name]) for name in ("anchors", "marks")}
    return Page(links=links, unavailable_after=None if until is None else datetime.fromisoformat(until), **answer)
