"""Time, traffic, disk and cost of crawls in shards, measured and computed: `python -m experiments.crawl_scale`.

Measured: processor time and journal bytes per page of real crawls over HTTP in 1, 2, 4 and 8 shards, and the batches
that they exchange, beside simulated crawls of the same web with as many pages per round; the time of a batch with the
journal of its receiver; the time of the driver per look at all reports. Computed from them: the rate of large crawls by
the number of shards, and the cost of a million pages.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.sharded_crawl import served, settings_of, web_of
from benchmarks.table import markdown

from experiments.sharded_crawl import LocalShards
from surveyor import Graph, synthetic_web
from surveyor.crawler.shards.bounds import Report
from surveyor.crawler.shards.channels import MassBatch
from surveyor.crawler.shards.director import Director
from surveyor.crawler.shards.ledger import Accounts
from surveyor.crawler.shards.merge import refresh
from surveyor.crawler.shards.placement import shard_of
from surveyor.crawler.shards.prepare import prepare
from surveyor.crawler.shards.worker import CUT_EVERY, ShardWorker
from surveyor.crawler.start import start
from surveyor.outcome import FetchResults
from surveyor.simulation.shards import ShardedSimulation, ShardOptions, split
from surveyor.stopping import parse_rule
from surveyor.store.directory import SurveyFolder
from surveyor.testing.web_plan import Plan
from surveyor.web.urls import domain, host

REAL = (1, 2, 4, 8)
MODELLED = (32, 64, 128, 256, 512, 1024)
BUSY = 0.7  # of a core, which a shard may use
TICK = 0.05  # seconds between two looks of the driver


class Crawled(NamedTuple):
    """What a real crawl in some number of shards took."""

    shards: int
    pages: int
    cpu: float  # seconds
    seconds: float
    batches: int
    disk: int  # bytes of all journals
    merge: float  # seconds to copy all visits to the journal above the shards


class Constants(NamedTuple):
    """What the model is computed from."""

    page: float  # seconds of a core per page, without batches
    batch: float  # seconds of a core per batch: half of it sends, half of it receives
    entry: float  # of each page in it
    disk: float  # bytes per page
    traffic: float  # bytes between shards per page
    entries: float  # pages in batches, per page fetched
    reports: float  # seconds of the driver per shard and look


def crawl(site: dict[str, Any], pages: int, shards: int, folder: Path) -> Crawled:
    """Crawl the served web in shards in this process; the server is in another one."""
    settings = settings_of(site, pages)
    opened, chosen = start(folder, site["seeds"], settings, dict.fromkeys(("scope", "delay"), "argument"), sharded=True)
    with opened:
        made = prepare(opened, chosen, shards)
    run, before, began = LocalShards(made, chosen), time.process_time(), time.perf_counter()
    director = asyncio.run(run.run(600))
    spent, seconds = time.process_time() - before, time.perf_counter() - began
    disk = sum(path.stat().st_size for path in folder.glob("shards/*/journal.sqlite*"))
    batches = sum(report.cuts for report in director.reports.values())
    before = time.process_time()
    refresh(folder)
    merged = time.process_time() - before
    return Crawled(shards, director.progress().pages, spent, seconds, batches, disk, merged)


def real_crawls(pages: int) -> list[Crawled]:
    """Crawl in each number of shards, with a first crawl that only compiles."""
    with served(pages * 3 // 2) as site, tempfile.TemporaryDirectory(prefix="surveyor-scale-") as place:
        crawl(site, 200, 2, Path(place) / "first.survey")
        return [crawl(site, pages, shards, Path(place) / f"{shards}.survey") for shards in REAL]


def show_real(found: list[Crawled]) -> None:
    """Print processor time, batches and journal bytes of real crawls."""
    rows = [
        [
            str(one.shards),
            f"{one.pages:,}",
            f"{1e6 * one.cpu / one.pages:,.0f}",
            f"{one.batches / one.pages:.3f}",
            f"{one.disk / one.pages:,.0f}",
            f"{1e6 * one.merge / one.pages:,.0f}",
        ]
        for one in found
    ]
    print("Real crawls over HTTP, all shards in one process\n")
    print(
        markdown(["shards", "pages", "CPU µs/page", "batches/page", "journal bytes/page", "copying, µs/page"], rows),
        "\n",
    )


class Traffic(NamedTuple):
    """What a simulated crawl sent between shards."""

    fetched: int
    batches: int
    bytes: int
    seconds: float


def simulated(graph: Graph, seeds: Sequence[int], owner: Any, batch: int, pages: int) -> Traffic:
    """Crawl a graph in simulated shards, each of which fetches up to `batch` pages between two cuts."""
    before = time.process_time()
    run = ShardedSimulation(graph, seeds, owner, options=ShardOptions(shards=int(owner.max()) + 1, batch=batch), rng=7)
    run.run(1.0, pages)
    return Traffic(run.fetched, run.batches, run.bytes, time.process_time() - before)


def show_check(found: list[Crawled], pages: int) -> None:
    """Print the batches of real crawls beside those of simulated crawls of the same web."""
    plan, rows = Plan(web_of(pages * 3 // 2)), []
    for one in found[1:]:
        owner = np.array([shard_of(domain(host(f"http://{place}")), one.shards) for place in plan.places])
        batch = max(1, round(one.pages / one.seconds * CUT_EVERY / one.shards))
        mine = simulated(plan.base.graph, plan.seeds, owner, batch, one.pages)
        real, here = one.batches / one.pages, mine.batches / mine.fetched
        rows.append([str(one.shards), str(batch), f"{real:.3f}", f"{here:.3f}", f"{here / real:.2f}"])
    header = ["shards", "pages per cut and shard", "batches/page", "simulated", "ratio"]
    print("The same crawls in simulation\n")
    print(markdown(header, rows), "\n")


def traffic_per_page(graph: Graph, batch: int, pages: int) -> tuple[float, float]:
    """Print the traffic of large simulated crawls; return pages in batches, and bytes with URLs, per page fetched."""
    empty, number = wire_bytes([str(page) for page in range(100_000, 100_100)])  # pages without names, as simulated
    _, url = wire_bytes([f"http://www.site{page}.example/a-page-of-some-site/{page}" for page in range(1000, 1100)])
    seeds = np.argsort(-np.diff(graph.in_links.indptr), kind="stable")[:10].tolist()
    rows, entries = [], 0.0
    for shards in (8, 32, 128):
        one = simulated(graph, seeds, split(graph, shards), batch, pages)
        entries = (one.bytes - empty * one.batches) / number / one.fetched
        per_page = one.batches / one.fetched
        rows.append([str(shards), f"{one.fetched:,}", f"{per_page:.2f}", f"{entries:.1f}", f"{entries * url:,.0f}"])
    print(f"Simulated crawls, up to {batch} pages per shard between two cuts\n")
    print(markdown(["shards", "pages", "batches/page", "pages in batches/page", "bytes/page with URLs"], rows), "\n")
    return entries, entries * url


def receipt(sizes: Sequence[int]) -> tuple[float, float]:
    """Return the processor time per batch, and per page in it, of a receiver that stores batches in its journal."""
    times = []
    with tempfile.TemporaryDirectory(prefix="surveyor-scale-") as place:
        opened, chosen = start(
            Path(place) / "web.survey", ["http://a.example/"], settings_of({"port": 9}, 1), {}, sharded=True
        )
        with opened:
            made = prepare(opened, chosen, 2)
        with SurveyFolder.open(made.paths[0]) as held:
            worker = ShardWorker(held, chosen, lambda *_: None)
            urls = (f"http://www.site{page}.example/a-page-of-some-site/{page}" for page in range(4 * max(sizes)))
            names = [url for url in urls if shard_of(domain(host(url)), 2) == 0]
            worker._store.commit(FetchResults())
            worker.node.begin()
            numbers = count(1)
            for size in sizes:
                least = np.inf
                for _ in range(5):
                    before = time.process_time()
                    for number in islice(numbers, 50):  # one commit for all, as every tenth of a second
                        given = batch_of(size, number, names, worker.node.crawl)
                        worker.node.deliver(MassBatch.from_bytes(given.to_bytes()))
                    worker.node.step(FetchResults())
                    least = min(least, (time.process_time() - before) / 50)
                times.append(least)
    slope, base = np.polyfit(sizes, times, 1)
    return float(base), float(slope)


def batch_of(size: int, number: int, names: Sequence[str], crawl: str = "0" * 16) -> MassBatch:
    """Return a batch to shard 0."""
    return MassBatch(crawl, 1, 0, 1, 0, number, tuple(names[:size]), tuple(1e-9 / 3 for _ in range(size)))


def wire_bytes(names: Sequence[str]) -> tuple[float, float]:
    """Return the bytes of a batch without pages, and of each page in it."""
    base = len(batch_of(0, 1000, names).to_bytes())
    return base, (len(batch_of(len(names), 1000, names).to_bytes()) - base) / len(names)


def driver_time(shards: int) -> float:
    """Return the processor time of the driver for one look at the reports of all shards."""
    director = Director(shards, parse_rule("coverage=0.9"), 0.85)
    zero = dict.fromkeys(Accounts.__dataclass_fields__, 0.0)
    reports = [
        Report(
            shard=shard,
            incarnation=1,
            epoch=0,
            accounts=Accounts(**{**zero, "waiting": 0.9 / shards}),
            corrected=False,
            best=1e-6,
            fetched=1,
            known=2,
            proxies=1,
        ).to_dict()
        for shard in range(shards)
    ]
    least = np.inf
    for _ in range(3):
        before = time.process_time()
        for report in reports:
            director.update([Report.from_dict(report)])
        director.orders()
        director.ending()
        least = min(least, time.process_time() - before)
    return float(least)


def show_model(constants: Constants) -> None:
    """Print what crawls of many shards reach, one shard per core."""
    rows = []
    for shards in MODELLED:
        batches = (shards - 1) / CUT_EVERY  # per second, sent and received, if each cut has mass for every shard
        rest = BUSY - batches * constants.batch
        per_page = constants.page + constants.entries * constants.entry
        rate = max(rest, 0.0) / per_page
        rows.append(
            [
                f"{shards:,}",
                f"{batches * constants.batch / BUSY:.0%}" if rest > 0 else "all",
                f"{rate:,.0f}",
                f"{shards * rate:,.0f}",
                f"{8 * shards * rate * constants.traffic / 1e9:.2f}",
                f"{shards * rate * constants.disk / 1e6:,.0f}",
                f"{shards * constants.reports / TICK:.0%}",
            ]
        )
    header = [
        "shards",
        "batches, of the time",
        "pages/s each",
        "pages/s",
        "traffic, Gbit/s",
        "journals, MB/s",
        "driver",
    ]
    print(f"One shard per core, {BUSY:.0%} busy, at most {1 / CUT_EVERY:.0f} batches per second and channel\n")
    print(markdown(header, rows), "\n")


def show_costs(constants: Constants, prices: argparse.Namespace) -> None:
    """Print the resources for a million pages, and their cost at the given prices."""
    hours = 1e6 * (constants.page + constants.entries * constants.entry) / BUSY / 3600
    disk = 2 * 1e6 * constants.disk / 1e9  # the shards, and the survey above them
    sent, received = constants.traffic / 1e3, prices.page_bytes / 1e3  # GB
    amounts = [
        ("processors", hours, "core hours", prices.core_hour),
        ("journals, both copies", disk, "GB months", prices.gigabyte_month),
        ("between shards", sent, "GB", prices.gigabyte),
        ("from servers", received, "GB", prices.gigabyte_in),
    ]
    rows = [
        [name, f"{amount:.2f} {unit}", f"{price:g}", f"{amount * price:.3f}"] for name, amount, unit, price in amounts
    ]
    print("A million pages at these prices\n")
    print(markdown(["resource", "amount", "price of one", "cost"], rows))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Time, traffic, disk and cost of crawls in shards.")
    parser.add_argument("--pages", type=int, default=3000, help="of each real crawl")
    parser.add_argument("--links", type=float, default=4e6, help="of the simulated web")
    parser.add_argument("--simulated", type=int, default=30_000, help="pages of each simulated crawl")
    parser.add_argument("--batch", type=int, default=32, help="pages that a simulated shard fetches between two cuts")
    parser.add_argument("--core-hour", type=float, default=0.04)
    parser.add_argument("--gigabyte-month", type=float, default=0.08)
    parser.add_argument("--gigabyte", type=float, default=0.01, help="sent between machines")
    parser.add_argument("--gigabyte-in", type=float, default=0.0, help="received from servers")
    parser.add_argument("--page-bytes", type=float, default=30_000.0, help="received per page")
    given = parser.parse_args(arguments)
    found = real_crawls(given.pages)
    show_real(found)
    show_check(found, given.pages)
    web = synthetic_web("web", links=int(given.links), rng=7).graph
    entries, traffic = traffic_per_page(web, given.batch, given.simulated)
    base, slope = receipt((1, 10, 100))
    print(f"a batch, made and received: {1e6 * base:.0f} µs, and {1e6 * slope:.1f} µs for each page in it")
    looks = {shards: driver_time(shards) for shards in (8, 64, 512)}
    print("the driver, per look:", ", ".join(f"{1e3 * one:.2f} ms for {shards}" for shards, one in looks.items()), "\n")
    page, disk = found[0].cpu / found[0].pages, found[-1].disk / found[-1].pages
    constants = Constants(page, base, slope, disk, traffic, entries, looks[512] / 512)
    show_model(constants)
    show_costs(constants, given)


if __name__ == "__main__":
    main()
