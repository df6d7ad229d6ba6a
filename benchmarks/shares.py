"""Where the time of a page goes in a live crawl of the site of `crawling`.

    python -m benchmarks.shares [PAGES]

Clocks of CPU time around the parts of a crawl, each without the parts inside it; the best of three crawls counts. What
no clock sees is aiohttp, asyncio and the client around them.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import handbook, server
from benchmarks.table import markdown

ROUNDS = 3


def main() -> None:
    pages = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    if server.nginx() is None:
        sys.exit("there is no nginx (Debian: apt install nginx-light)")
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[0]})
    spent = _watched()
    best: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="surveyor-bench-") as place:
        work = Path(place)
        (work / "site").mkdir()
        handbook.write(handbook.plan(pages), work / "site")
        with server.serving(work / "site", work, {cores[-1]}) as url:
            _crawl(url, work / "first", 40)
            for turn in range(ROUNDS):
                spent.clear()
                began = time.process_time()
                _crawl(url, work / str(turn), pages)
                spent["HTTP: client, aiohttp, asyncio"] = time.process_time() - began - sum(spent.values())
                best = {part: min(best.get(part, seconds), seconds) for part, seconds in spent.items()}
    total = sum(best.values())
    rows = sorted(best.items(), key=lambda row: -row[1])
    cells = [[part, f"{1e6 * seconds / pages:.0f}", f"{seconds / total:.0%}"] for part, seconds in rows]
    print(markdown(["part", "µs a page", "share"], [*cells, ["all", f"{1e6 * total / pages:.0f}", ""]]))


def _crawl(url: str, folder: Path, pages: int) -> None:
    import surveyor as sv

    sv.crawl(
        url,
        out=folder,
        until=f"pages={pages}",
        delay=0,
        concurrency=64,
        allow=["127.0.0.1"],
        scope="host",
        contact="bench@example.org",
        rng=7,
    )


def _watched() -> dict[str, float]:
    """Put clocks around the parts of a crawl; return what they will show, in seconds."""
    from surveyor.crawler import frontier, ledger, loop
    from surveyor.crawler import session as live
    from surveyor.fetch import responses as answers
    from surveyor.graph import growing
    from surveyor.store import journal, warc
    from surveyor.web import urls

    spent = dict[str, float]()
    inside: list[float] = []

    def watch(owner: Any, name: str, part: str) -> None:
        work: Callable[..., Any] = getattr(owner, name)

        def timed(*args: Any, **options: Any) -> Any:
            began = time.process_time()
            inside.append(0.0)
            try:
                return work(*args, **options)
            finally:
                took = time.process_time() - began
                spent[part] = spent.get(part, 0.0) + took - inside.pop()
                if inside:
                    inside[-1] += took

        setattr(owner, name, timed)

    watch(answers, "read_page", "HTML: decode, parse, find links, resolve them")
    watch(answers.Reader, "visits", "what an answer means, hash of the body")
    watch(urls.Urls, "ids", "URLs to numbers")
    watch(warc.Archive, "write", "WARC: records, digests, compression")
    watch(warc.Archive, "flush", "WARC: wait for the disk")
    watch(live.RunStore, "commit", "commit")
    watch(journal.Journal, "commit", "journal")
    watch(ledger.Ledger, "observe", "ledger, closure included")
    watch(growing.GrowingGraph, "put", "graph")
    watch(loop.Crawl, "apply", "strategy, and the steps between")
    watch(frontier.Frontier, "update", "queue: priorities")
    watch(frontier.Frontier, "take", "queue: the next pages")
    watch(loop.Crawl, "progress", "coverage")
    return spent


if __name__ == "__main__":
    main()
