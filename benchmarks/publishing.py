"""CPU time that a crawl spends on its published state and on looking for commands.

    python -m benchmarks.publishing [--pages 4000] [--rounds 5] [--known 1000000]

The crawl reads a generated handbook (22 KB and 50 links a page) from memory, with and without publishing in turn. Two
figures: the ratio of the CPU times, with that of the parser process, round by round, which noise moves; and the part of
the CPU time that was spent in the functions that publish. Then the costs of one state of a crawl with many known pages.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks import handbook
from benchmarks.table import markdown
from surveyor.config import Settings
from surveyor.crawler import session
from surveyor.crawler.frontier import Frontier
from surveyor.crawler.ledger import Ledger
from surveyor.crawler.measures import best
from surveyor.crawler.publishing import Live, Publisher
from surveyor.crawler.queues import HostQueues
from surveyor.crawler.sources.live import Connection
from surveyor.crawler.start import start
from surveyor.crawler.steering import Steering
from surveyor.crawler.strategies.strategy import Reorder
from surveyor.fetch.http import Fetched, FetchRequest
from surveyor.fetch.politeness.hosts import Hosts
from surveyor.graph.growing import GrowingGraph
from surveyor.stopping import Pages

HOST = "http://handbook.example/"
HTML = ((b"content-type", b"text/html; charset=utf-8"),)


class Memory:
    """A client that answers from memory."""

    def __init__(self, pages: int) -> None:
        self.site = handbook.plan(pages)
        self._numbers = {HOST + path: number for number, path in enumerate(self.site.paths)}

    async def fetch(self, request: FetchRequest) -> Fetched:
        """Return a page."""
        await asyncio.sleep(0)
        number = self._numbers.get(request.url)
        if number is None:
            return Fetched(request.url, 404)
        body = handbook.render(self.site, number)
        return Fetched(request.url, status=200, headers=HTML, body=body, raw=body)

    async def address(self, host: str) -> str:  # noqa: ARG002
        """Return no address."""
        return ""


def crawl(client: Memory, pages: int, *, publishes: bool) -> tuple[float, float, float]:
    """Crawl; return the CPU time with that of the parser, the part of it that publishing took, and the duration."""
    settings = Settings(contact="me@example.org", delay=0.0, archive=False, rng=1)
    spent = 0.0

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **options: Any) -> Any:
            nonlocal spent
            began = time.thread_time()
            try:
                return function(*given, **options)
            finally:
                spent += time.thread_time() - began

        return call

    def live(folder: Any, *, is_published: bool) -> Live:
        return Live(folder, is_published=is_published and publishes)

    with (
        tempfile.TemporaryDirectory() as place,
        patch.object(session, "Live", live),
        patch.object(Publisher, "_attempt", timed(Publisher._attempt)),
        patch.object(Steering, "poll", timed(Steering.poll)),
    ):
        folder, chosen = start(Path(place) / "s", [HOST + client.site.paths[0]], settings, {})
        with folder:
            began, cpu = time.monotonic(), _cpu()
            asyncio.run(session.run(folder, chosen, Pages(pages), connection=Connection(client=client)))
            return _cpu() - cpu, spent, time.monotonic() - began


def large(known: int) -> list[tuple[str, str]]:
    """Return the CPU time of the parts of one state that visit all of many queued pages."""
    hosts = Hosts(resolves=False)
    queues = HostQueues(known, hosts, lambda page: f"http://host{page % 1000}.example/{page}")
    ledger = Ledger(GrowingGraph(), [0], pages=known)
    frontier = Frontier(ledger, queues=queues)
    ledger.announce(np.arange(known, dtype=np.int32))
    frontier.update(Reorder(np.arange(known, dtype=np.int32), np.random.default_rng(1).random(known)))
    parts: dict[str, Callable[[], object]] = {
        "the ten best queued pages": lambda: best(frontier, ledger.residual),
        "hosts with queued pages": lambda: (queues.waiting(), queues.waiting_mass(ledger.residual)),
        "number of queued pages": lambda: len(frontier),
    }
    return [(name, f"{1000 * min(_cost(part) for _ in range(5)):.1f} ms") for name, part in parts.items()]


def _cost(part: Callable[[], object]) -> float:
    began = time.thread_time()
    part()
    return time.thread_time() - began


def _cpu() -> float:
    """Return the CPU time of this process and of its children that have ended, such as parsers."""
    now = os.times()
    return sum(now[:4])


def _range(values: list[float], digits: int) -> str:
    return f"{min(values):.{digits}f}–{max(values):.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.publishing", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pages", type=int, default=4_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--known", type=int, default=1_000_000)
    options = parser.parse_args()
    logging.disable()
    client = Memory(options.pages)
    crawl(client, min(200, options.pages), publishes=True)  # kernels
    ratios, shares, seconds, per_second = [], [], [], []
    for turn in range(options.rounds):
        order = (True, False) if turn % 2 else (False, True)
        found = {publishes: crawl(client, options.pages, publishes=publishes) for publishes in order}
        ratios.append(found[True][0] / found[False][0])
        shares.append(found[True][1] / found[True][0])
        seconds.append(found[True][2])
        per_second.append(found[True][1] / found[True][2])
    rows = [
        (
            "CPU time with publishing / without",
            f"{statistics.median(ratios):.3f} ({min(ratios):.3f}–{max(ratios):.3f})",
        ),
        ("part of the CPU time spent publishing", f"{100 * max(shares):.2f} % at most"),
        ("CPU time of publishing, per second", f"{1000 * max(per_second):.1f} ms at most"),
        ("duration of a crawl", f"{_range(seconds, 1)} s"),
        *((f"{options.known:,} known pages: {name}", cost) for name, cost in large(options.known)),
    ]
    print(markdown(("", f"{options.pages:,} pages, {options.rounds} rounds"), rows))


if __name__ == "__main__":
    main()
