"""What hostile input costs, measured: `python tests/attacks/costs.py`.

- The longest time that one callback holds the event loop of a crawl, for each of the hostile pages, each served by a
  host on loopback and crawled; processor time of that thread, so that a busy machine does not count.
- The most expensive verdict of hostile robots.txt files, once they are compiled.
- The time to number 10,000 URLs that collide in a hash table without a key, over that for 10,000 random ones.

Exit code 1 if one is above its limit. Tests do not measure time; they count the work instead.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from asyncio import events
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median

sys.path[:0] = [str(Path(__file__).parent), *map(str, Path(__file__).parents[1:3])]

from experiments.colliding_urls import colliding_urls  # noqa: E402
from experiments.hostile_hosts import Fault, html  # noqa: E402
from experiments.hostile_server import HonestHost, HostileWeb, serving  # noqa: E402
from hostile_pages import hostile_pages  # noqa: E402  # beside this file
from test_robots_cost import FILES, URLS, file  # noqa: E402

from surveyor.errors import NothingFetched  # noqa: E402
from surveyor.stopping import Pages  # noqa: E402
from surveyor.survey.crawl import crawl  # noqa: E402
from surveyor.web.robots import Robots  # noqa: E402
from surveyor.web.urls import Urls  # noqa: E402

BLOCK, VERDICT, RATIO = 0.1, 0.002, 3.0  # seconds, seconds, times
COLLIDING = 10_000


@contextmanager
def longest_callback() -> Iterator[list[tuple[float, str]]]:
    """Record the processor time of each callback of the event loops of this thread."""
    found: list[tuple[float, str]] = []
    run = events.Handle._run

    def timed(self: asyncio.Handle) -> None:
        began = time.thread_time()
        run(self)
        took = time.thread_time() - began
        if took > 0.005:
            found.append((took, repr(self)[:200]))

    events.Handle._run = timed  # type: ignore[method-assign]
    try:
        yield found
    finally:
        events.Handle._run = run  # type: ignore[method-assign]


def blocks() -> list[tuple[float, str, str]]:
    """Return for each hostile page how long its crawl held the event loop at most, and by what."""
    pages = [("an honest page", b"<title>Hi</title><p>text", {}), *hostile_pages()]
    faults = [
        Fault(name, html(body, *(f"{key}: {value}" for key, value in headers.items()))) for name, body, headers in pages
    ]
    rows: list[tuple[float, str, str]] = []
    honest = HonestHost("x", None, {"/a": b"x"})
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(HostileWeb([honest], faults)) as web,
    ):
        for number in [0, *range(len(faults))]:  # the first one twice: it compiles kernels
            url = web.entry(number)
            with longest_callback() as found, suppress(NothingFetched):  # a page that could not be parsed is blocked
                survey = crawl(
                    url,
                    out=Path(folder, f"{len(rows)}"),
                    until=Pages(5),
                    contact="someone@example.org",
                    allow=[url.split("/")[2].partition(":")[0]],
                    delay=0,
                    backoff=0.01,
                    timeout=20,
                )
                survey.close()
            rows.append((*max(found, default=(0.0, "")), faults[number].name))
    return [(took, name, by) for took, by, name in rows[1:]]


def verdicts() -> list[tuple[float, float, str]]:
    """Return for each hostile robots.txt the slowest verdict, the time to compile it, and its name."""
    rows = []
    for name, line in FILES.items():
        began = time.process_time()
        robots = Robots.from_text(file(line))
        robots.why("http://a.example/")
        compiled = time.process_time() - began
        slowest = 0.0
        for url in URLS:
            times = []
            for _ in range(5):
                began = time.process_time()
                robots.why(f"http://a.example{url}")
                times.append(time.process_time() - began)
            slowest = max(slowest, min(times))
        rows.append((slowest, compiled, name))
    return rows


def flood() -> float:
    """Return how much longer colliding URLs take to number than random ones, by medians of several rounds."""
    rng, prefix = random.Random(7), "http://example.org/"  # noqa: S311
    crafted = colliding_urls(prefix, COLLIDING)
    usual = [prefix + "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(COLLIDING)]
    Urls().ids(usual)
    times: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(15):
        for is_crafted, urls in ((True, crafted), (False, usual)):
            table = Urls()
            began = time.process_time()
            table.ids(urls)
            times[is_crafted].append(time.process_time() - began)
    return median(times[True]) / median(times[False])


def main() -> int:
    ratio = flood()
    sys.stdout.write(f"hash flood: {COLLIDING:,} colliding URLs take {ratio:.1f} times as long (limit {RATIO:g})\n")
    judged = sorted(verdicts(), reverse=True)
    sys.stdout.write(f"\nrobots.txt, slowest verdict (limit {VERDICT * 1000:g} ms), time to compile:\n")
    for took, compiled, name in judged:
        sys.stdout.write(f"  {took * 1000:7.3f} ms  {compiled * 1000:7.0f} ms  {name}\n")
    held = sorted(blocks(), reverse=True)
    sys.stdout.write(f"\nevent loop held by one callback, {len(held) - 1} hostile pages (limit {BLOCK * 1000:g} ms):\n")
    for took, name, by in held[:12]:
        sys.stdout.write(f"  {took * 1000:7.1f} ms  {name:45} {by[:90] if took > BLOCK else ''}\n")
    honest = next(took for took, name, _ in held if name == "an honest page")
    sys.stdout.write(f"  {honest * 1000:7.1f} ms  an honest page, to compare\n")
    return int(ratio > RATIO or judged[0][0] > VERDICT or held[0][0] > BLOCK)


if __name__ == "__main__":
    sys.exit(main())
