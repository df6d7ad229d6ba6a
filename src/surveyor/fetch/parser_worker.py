"""The worker process that parses expensive pages; `parser.py` starts and stops it.

It reads requests from stdin and writes answers to stdout, as length-prefixed JSON, which cannot contain code. It exits
when stdin is closed, hence also when its parent process ends for any reason. While it parses, an uncaught alarm signal
limits the time, and a resource limit the memory. Ctrl-C is left to the parent process.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from surveyor.web.html import Page, read_page
from surveyor.web.main_text import text_hash
from surveyor.web.page_text import read_text
from surveyor.web.references import Addresses
from surveyor.web.sitemaps import read_listing
from surveyor.web.urls import normalise

LENGTH = 4  # bytes of the length prefix
MEMORY = 1 << 30  # bytes of address space for parsing


def main() -> None:
    """Answer requests until stdin ends."""
    seconds = float(sys.argv[1])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _limit_memory()
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    addresses = Addresses(normalise)
    _send(answers, {})  # ready
    while head := requests.read(LENGTH):
        request = json.loads(requests.read(int.from_bytes(head, "big")))
        body = requests.read(request["size"])
        _alarm(seconds)
        try:
            answer = {"answer": _answer(request, body, addresses)}
        except Exception as error:  # the boundary, as in `boundary.guarded`
            answer = {"failed": repr(error), "traceback": traceback.format_exc()[-10_000:]}
        _alarm(0.0)
        _send(answers, answer)


def _answer(request: dict[str, Any], body: bytes, addresses: Addresses) -> object:
    if request["task"] == "listing":
        listing = read_listing(body, request["url"])
        return None if listing is None else asdict(listing)
    if request["task"] == "text":
        return text_hash(body, request["url"], request["headers"]).hex()
    if request["task"] == "page text":
        options = {name: request[name] for name in ("declared", "demote", "is_markdown")}
        text = read_text(body, request["url"], request["headers"], **options)
        return None if text is None else asdict(text)
    if request["task"] == "content":
        page = read_page(body, request["url"], headers=request["headers"], addresses=addresses)
        return {"title": page.title, "language": page.language, "text": page.text}
    return packed(read_page(body, request["url"], headers=request["headers"], text=False, addresses=addresses))


def packed(page: Page) -> dict[str, Any]:
    """Convert a page to values that JSON can represent."""
    until = page.unavailable_after
    fields = {name: getattr(page, name) for name in Page.__slots__ if name not in ("links", "text")}
    links = {"urls": [link.url for link in page.links], "follow": [link.follow for link in page.links]}
    return {**fields, **links, "unavailable_after": None if until is None else until.isoformat()}


def _send(file: BinaryIO, value: object) -> None:
    data = json.dumps(value).encode()
    file.write(len(data).to_bytes(LENGTH, "big") + data)
    file.flush()


def _alarm(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _limit_memory() -> None:
    try:
        import resource

        taken = int(Path("/proc/self/statm").read_text("ascii").split()[0])  # by libraries, in memory pages
        most = taken * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):
        return  # not supported on this system


if __name__ == "__main__":
    main()
