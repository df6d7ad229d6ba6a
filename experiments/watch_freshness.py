"""Watch changing webs with `surveyor watch` itself, under a fake clock, and judge how fresh the survey was.

    python -m experiments.watch_freshness [--seeds 5] [--pages 2000] [--days 30] [--web web|site]

`experiments.watching` measures the schedule alone. Here the whole command runs: crawl, journal, queues, delays of the
hosts, robots.txt files, conditional requests, parsing, main texts, sitemaps as signals, audits of validators. Only the
sockets are replaced (`experiments.watch_live` has them). The webs are those of `watched_webs.py`: pages of unknown
change rates, some periodic or bursty; a sitemap of each site lists half of its pages with dates, which announce a
share of the changes and are sometimes wrong. Importance is PageRank from the seeds. All requests count towards the
budget, 0.3 of all changes. The judge sees the requests only; freshness is measured after the learning horizon.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time as real_time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from experiments.fake_time import Time
from experiments.watched_webs import Recipe, Visits, WatchedWeb, fresh_importance, regular_visits, watched_web
from surveyor.config import Settings
from surveyor.crawler.revisits import optimal_intervals
from surveyor.crawler.schedule import DAY
from surveyor.crawler.session import create_hosts, run
from surveyor.crawler.sources.live import Connection
from surveyor.crawler.start import start
from surveyor.crawler.watching import Clocks, WatchOptions, watch
from surveyor.fetch.http import Fetched, FetchRequest
from surveyor.graph.csr import Graph
from surveyor.graph.synthetic.generate import PRESETS, synthetic_web
from surveyor.rank.pagerank import pagerank
from surveyor.stopping import parse_rule
from surveyor.web.urls import host, origin

BUDGET = 0.3  # of the sum of all change rates
LEARNING = 2 / 3  # of the time
SEEDS = 200  # random pages from which the crawl starts
BEGIN = 1.75e9
RESPONSE = 0.05  # seconds
DELAY = 0.1  # seconds between two requests to a host
SETTINGS: dict[str, Any] = {"contact": "me@example.org", "archive": False, "scope": "any", "delay": DELAY}


@dataclass
class ChangingSites:
    """The HTTP client: serves the pages of a graph in the version of the moment."""

    graph: Graph
    web: WatchedWeb
    time: Time
    begin: float = 0.0  # of the changes; before, nothing has changed
    log: list[tuple[int, float]] = field(default_factory=list)  # pages that were requested, and when
    requests: int = 0
    hosts: dict[str, int] = field(default_factory=dict)  # in order of their first request

    def __post_init__(self) -> None:
        self.number = {name: page for page, name in enumerate(self.graph.names or ())}
        first, changes = self.web.first, self.web.changes
        self.changes = [changes[first[page] : first[page + 1]].tolist() for page in range(self.web.pages)]
        self.signals: list[list[float]] = [[] for _ in range(self.web.pages)]
        for page, at in zip(self.web.signal_pages.tolist(), self.web.signal_times.tolist(), strict=True):
            self.signals[page].append(at)
        self.sites: dict[str, list[int]] = {}
        for name, page in self.number.items():
            if self.web.listed[page]:
                self.sites.setdefault(host(name), []).append(page)

    def elapsed(self) -> float:
        """Return the seconds since changes began; negative before."""
        return self.time.now - self.begin if self.begin else -1.0

    async def address(self, name: str) -> str:
        """Return an address of its own for each host."""
        number = self.hosts.setdefault(name, len(self.hosts))
        return f"10.{number // 250}.{number % 250}.1"

    async def fetch(self, request: FetchRequest) -> Fetched:
        """Respond as the server of a site."""
        await self.time.sleep(RESPONSE)
        self.requests += 1
        url = request.url
        if url == f"{origin(url)}/robots.txt":
            return Fetched(url, 200, body=b"User-agent: *\nDisallow:")
        if url == f"{origin(url)}/sitemap.xml":
            return self._sitemap(request)
        page = self.number.get(url)
        if page is None:
            return Fetched(url, 404)
        self.log.append((page, self.elapsed()))
        version = bisect_right(self.changes[page], self.elapsed())
        etag = f'"{version}"'
        if request.etag == etag:
            return Fetched(url, 304, etag=etag, not_modified=True)
        links = "".join(f'<a href="{self.graph.name(link)}">x</a>' for link in self.graph.links_of(page).tolist())
        body = f"<title>{page}</title><p>Version {version} of page {page}.</p>{links}".encode()
        return Fetched(url, 200, headers=((b"content-type", b"text/html"),), body=body, raw=body, etag=etag)

    def _sitemap(self, request: FetchRequest) -> Fetched:
        pages = self.sites.get(host(request.url), [])
        if not pages:
            return Fetched(request.url, 404)
        now, rows = self.elapsed(), []
        for page in pages:
            heard = bisect_right(self.signals[page], now)
            at = self.begin + self.signals[page][heard - 1] if heard else BEGIN - DAY
            date = datetime.fromtimestamp(at, UTC).isoformat()
            rows.append(f"<url><loc>{self.graph.name(page)}</loc><lastmod>{date}</lastmod></url>")
        body = f"<urlset>{''.join(rows)}</urlset>".encode()
        return Fetched(request.url, 200, headers=((b"content-type", b"text/xml"),), body=body, raw=body)


def reachable_web(recipe: Recipe, seed: int, preset: str = "web") -> tuple[Graph, WatchedWeb, list[int]]:
    """Return a web of many sites or of one, whose importance is PageRank from its seeds, with their pages."""
    graph = synthetic_web(replace(PRESETS[preset], pages=recipe.pages), rng=seed).graph
    web = watched_web(recipe, seed)
    seeds = np.random.default_rng(seed).permutation(graph.pages)[:SEEDS]
    teleport = np.zeros(graph.pages)
    teleport[seeds] = 1 / seeds.size
    return graph, replace(web, importance=pagerank(graph, teleport=teleport, tolerance=1e-9).scores), seeds.tolist()


def watched_sites(
    graph: Graph, web: WatchedWeb, seeds: Sequence[int], rate: int, *, lists: bool
) -> tuple[Visits, float]:
    """Crawl the web, then watch it until its end; return the requests for pages, and those sent per budget."""
    time = Time(BEGIN)
    sites = ChangingSites(graph, web, time)
    with tempfile.TemporaryDirectory() as name:
        path, given = Path(name, "s"), {**SETTINGS, "until": "pages=1000000"}
        folder, chosen = start(path, [graph.name(page) for page in seeds], Settings(**given), dict.fromkeys(given, "x"))
        with folder:
            connection = Connection(sites, None, create_hosts(folder, chosen, time), time.wait, 0.0)
            asyncio.run(run(folder, chosen, parse_rule(chosen.until), connection=connection))
        crawled = sorted({page for page, _ in sites.log})
        sites.begin, sites.requests = time.now, 0
        sites.log.clear()
        folder, chosen = start(path, [], Settings(**SETTINGS), dict.fromkeys(SETTINGS, "x"))
        with folder:
            asyncio.run(_watch(folder, chosen, sites, WatchOptions(rate, reads_lists=lists), sites.begin + web.end))
    pages, times = (np.array(column) for column in zip(*sites.log, strict=True))
    every = np.concatenate([crawled, pages]).astype(np.int64)
    return Visits(every, np.concatenate([np.zeros(len(crawled)), times])), sites.requests / (rate * web.end / DAY)


async def _watch(folder: Any, settings: Settings, sites: ChangingSites, options: WatchOptions, end: float) -> None:
    task = asyncio.current_task()
    time = sites.time

    async def wait(event: asyncio.Event, until: float) -> None:
        if time.now >= end and task is not None:
            task.cancel()
            await asyncio.sleep(0)
        await time.wait(event, min(until, max(end, time.now)))

    await watch(
        folder, settings, options, connection=Connection(sites, None, None, wait, 0.0), clocks=Clocks(time, time)
    )


def judge(recipe: Recipe, seed: int, preset: str) -> dict[str, tuple[float, float]]:
    """Return the freshness and the used part of the budget by policy, on one web."""
    graph, web, seeds = reachable_web(recipe, seed, preset)
    matters = web.importance > 0
    rates = np.where(matters, web.rates, 0.0)
    rate = int(BUDGET * float(rates.sum()) * DAY)
    edges = np.array([LEARNING * web.end, web.end])
    rng = np.random.default_rng(seed)
    found: dict[str, tuple[float, float]] = {}
    policies = {
        "known rates, regular": optimal_intervals(web.importance, np.maximum(rates, 1e-12), rate / DAY),
        "uniform": np.where(matters, matters.sum() / (rate / DAY), np.inf),
    }
    for name, intervals in policies.items():
        visits = regular_visits(web, intervals, rng)
        used = (visits.page.size - web.pages) / (rate * web.end / DAY)
        found[name] = float(fresh_importance(web, visits, edges)[0]), used
    for name, lists in (("watch", False), ("watch, with sitemaps", True)):
        visits, used = watched_sites(graph, web, seeds, rate, lists=lists)
        found[name] = float(fresh_importance(web, visits, edges)[0]), used
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Judge the freshness of watched surveys under a fake clock.")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--web", choices=["web", "site"], default="web", help="many sites, or a single one")
    parser.add_argument("--days", type=float, default=30.0)
    given = parser.parse_args(arguments)
    recipe = Recipe(pages=given.pages, days=given.days)
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in range(given.seeds):
        began = real_time.perf_counter()
        for name, one in judge(recipe, seed, given.web).items():
            found.setdefault(name, []).append(one)
        print(f"web {seed}: {real_time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    print(f"{given.pages:,} pages, {given.days:g} days, {given.seeds} webs;", end=" ")
    print(f"measured after {LEARNING * given.days:g} days\n")
    print("| policy | fresh importance | relative to known rates, regular | requests used |\n|---|--:|--:|--:|")
    base = np.array([fresh for fresh, _ in found["known rates, regular"]])
    for name, rows in found.items():
        fresh, used = np.array(rows).T
        ratio = fresh / base
        error = float(ratio.std(ddof=1)) / ratio.size**0.5 if ratio.size > 1 else float("nan")
        print(f"| {name} | {fresh.mean():.3f} | {ratio.mean():.3f} ± {error:.3f} | {used.mean():.3f} |")


if __name__ == "__main__":
    main()
