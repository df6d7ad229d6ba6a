"""A million URLs that wait: what it takes to choose the next page, and how much memory all of them take.

    python -m benchmarks.selection HOSTS [WAITING]

Pages are read, each with links to new pages, until so many wait, on one host or spread over many. Then the crawl goes
on, and two things are timed (medians): `take`, which chooses the pages to fetch, and what else the queue does for a
page that was read: it leaves, and the priorities of all pages that it changed are set. Memory is what the process has
grown by since the imports: URLs, graph, ledger, hosts and queue, all that a crawl holds but for pages under way.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from typing import Any

import numpy as np

from benchmarks import memory

LINKS, NEW = 50, 45  # of each page read, and how many of them are to new pages
WAITING, STEPS, BATCH = 1_000_000, 2_000, 64


def main() -> None:
    hosts, waiting = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else WAITING
    _grown(min(hosts, 10), 2_000, 200)  # imports, compiles
    gc.collect()
    memory.forget_peak()
    before = memory.status("VmRSS")
    print(json.dumps(_grown(hosts, waiting, STEPS, before)))


def _grown(count: int, waiting: int, steps: int, before: int = 0) -> dict[str, Any]:
    from surveyor.crawler.coverage_walks import CoverageWalks
    from surveyor.crawler.frontier import Frontier
    from surveyor.crawler.ledger import Ledger, PushOptions
    from surveyor.crawler.loop import Crawl
    from surveyor.crawler.queues import HostQueues
    from surveyor.crawler.strategies import by_name
    from surveyor.fetch.politeness.hosts import Hosts
    from surveyor.graph.growing import GrowingGraph
    from surveyor.outcome import Outcome
    from surveyor.web.robots import Robots
    from surveyor.web.urls import Urls

    rng = np.random.default_rng(7)
    urls, hosts, graph = Urls(), Hosts(0.0, resolves=False), GrowingGraph()
    seeds = urls.ids([_url(0, count)])
    ledger = Ledger(graph, seeds, push=PushOptions(effort=5_000.0), aliases=True)
    queues = HostQueues(ledger.capacity, hosts, urls.__getitem__, urls.host_ids)
    frontier = Frontier(ledger, queues=queues)
    state = Crawl(graph, ledger, by_name("rankmass"), frontier, CoverageWalks(ledger))
    state.begin(rng)
    for host in range(count):
        number = hosts.number(f"www{host}.example.org")
        hosts.set_robots(number, f"https://www{host}.example.org", Robots.from_answer(404, b""), 1e12)
    taken, put = list[float](), list[float]()
    read = done = touched = 0
    while done < steps:
        measured = ledger.known - ledger.read >= waiting
        began = time.perf_counter()
        pages = frontier.take(BATCH).pages
        taken += [(time.perf_counter() - began) / BATCH] * measured
        for page in pages:
            known = len(urls)
            new = [_url(number, count) for number in range(known, known + NEW)]
            old = rng.integers(known, size=LINKS - NEW)
            links = np.unique(np.append(urls.ids(new), old)).astype(np.int32)
            outcome = Outcome(page, "fetched", links[links != page])
            gone = graph.put(page, outcome.links)
            ledger.observe(outcome, gone)
            began = time.perf_counter()
            frontier.drop(page)
            frontier.update(state.strategy.observe(outcome, gone))
            put += [time.perf_counter() - began] * measured
            touched += ledger.touched.size * measured
            hosts.end_request(queues.host(page))
        read += len(pages)
        done += len(pages) * measured
    gc.collect()
    return {
        "hosts": count,
        "waiting": ledger.known - ledger.read,
        "read": read,
        "take": 1e6 * float(np.median(taken)),
        "put": 1e6 * float(np.median(put)),
        "touched": touched / done,
        "resident": memory.status("VmRSS") - before,
        "peak": memory.peak() - before,
        "text": sum(map(len, urls.added(0))),
    }


def _url(page: int, hosts: int) -> str:
    return f"https://www{page % hosts}.example.org/part{page % 97}/chapter{page % 1009}/page-{page}.html"


if __name__ == "__main__":
    main()
