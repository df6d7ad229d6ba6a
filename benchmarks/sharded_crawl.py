"""A crawl in two shards on two cores, beside one process and Scrapy: time of the crawlers and of the server.

    python -m benchmarks.sharded_crawl [--pages 5000] [--rounds 3]

An embedded web of many domains is served by a process of its own, which has rendered every page before. All processes
share the cores of this machine. The server would be elsewhere in a real crawl, so the table also has the time that is
left without it: the wall time minus the CPU time of the server, divided by the number of cores if all of them were
busy. Scrapy runs if it is installed, in one process, with all that is not needed off, and without robots.txt.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.crawlers import scrapy_crawl
from benchmarks.graphs import ROOT
from benchmarks.race import say
from benchmarks.table import markdown
from surveyor.config import Settings
from surveyor.crawler.start import start
from surveyor.graph.synthetic.generate import WebShape
from surveyor.outcome import Outcome
from surveyor.stopping import parse_rule
from surveyor.testing.web_plan import WebSettings
from surveyor.testing.web_server import HttpRequest, running

TICKS = os.sysconf("SC_CLK_TCK")
TIMEOUT = 900.0


def cpu_of(process: int) -> float:
    """Return the CPU seconds of a process, on Linux."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def web_of(pages: int) -> WebSettings:
    """Return the web that is served."""
    return WebSettings.plain(web=WebShape(pages=pages, largest_site=pages // 20), rng=5, seeds=10)


def serve(pages: int) -> None:
    """Serve a web until stdin ends."""
    with running(web_of(pages)) as web:
        for place in web.pages.places:
            host, _, path = place.partition("/")
            web.answer(HttpRequest("GET", host, "/" + path, {}))
        print(json.dumps({"port": web.port, "seeds": web.seeds, "process": os.getpid()}), flush=True)
        sys.stdin.read()


def settings_of(site: dict[str, Any], pages: int) -> Settings:
    """Return the settings of a crawl of the served web."""
    proxy = f"http://127.0.0.1:{site['port']}"
    return Settings(
        contact="bench@example.org",
        proxy=proxy,
        scope="any",
        delay=0,
        domain_delay=0,
        archive=False,
        until=f"pages={pages}",
    )


def one(site: dict[str, Any], pages: int, folder: Path) -> dict[str, Any]:
    """Crawl in one process."""
    from surveyor.crawler.session import Run, run

    settings = settings_of(site, pages)
    opened, chosen = start(folder, site["seeds"], settings, dict.fromkeys(("scope", "delay"), "argument"))
    times: list[float] = []
    cpu: list[float] = []
    fetched = 0

    def watch(_: Run, outcome: Outcome | None) -> None:
        nonlocal fetched
        if not times:
            times.append(time.perf_counter())
            cpu.append(time.process_time())
        fetched += outcome is not None and outcome.kind == "fetched"

    with opened:
        asyncio.run(run(opened, chosen, parse_rule(chosen.until), watch=watch))
    return {"pages": fetched, "seconds": time.perf_counter() - times[0], "cpu": time.process_time() - cpu[0]}


def shards(site: dict[str, Any], pages: int, folder: Path) -> dict[str, Any]:
    """Crawl in two shards."""
    from surveyor.cluster.session import Session
    from surveyor.crawler.shards.director import Director
    from surveyor.crawler.shards.prepare import prepare

    settings = settings_of(site, pages)
    origins = dict.fromkeys(("scope", "delay"), "argument")
    opened, chosen = start(folder, site["seeds"], settings, origins, sharded=True)
    with opened:
        made = prepare(opened, chosen, 2)
    began: list[float] = []
    last: list[float] = []
    before: list[float] = []
    cpu: list[float] = []

    def watch(director: Director) -> None:
        if director.is_complete:
            cpu[:] = [cpu_of(process) for process in run.processes.values()]
            last[:] = [time.perf_counter(), time.process_time()]
            if not began:
                before[:] = cpu
                began[:] = last

    with Session("local:2"):
        from surveyor.cluster.crawl import ShardedRun

        run = ShardedRun(made, chosen, parse_rule(chosen.until), 2)
        asyncio.run(run.run(watch))
    spent = sum(cpu) - sum(before) + last[1] - began[1]
    driver = last[1] - began[1]
    return {"pages": run.director.progress().pages, "seconds": last[0] - began[0], "cpu": spent, "driver": driver}


def scrapy(site: dict[str, Any], pages: int, _: Path) -> dict[str, Any]:
    """Crawl with Scrapy."""
    return scrapy_crawl(site["seeds"], {}, proxy=f"http://127.0.0.1:{site['port']}", most=pages)


CRAWLS = {"one": one, "shards": shards, "scrapy": scrapy}
NAMES = {"one": "one process", "shards": "2 shards in 2 processes", "scrapy": "Scrapy, all extras off"}


@contextmanager
def served(pages: int) -> Iterator[dict[str, Any]]:
    """Start the server."""
    command = [sys.executable, "-m", "benchmarks.sharded_crawl", "--serve", "--pages", str(pages)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()


def measured(kind: str, site: dict[str, Any], pages: int) -> dict[str, Any]:
    """Crawl in a process of its own, and add the CPU time of the server."""
    with tempfile.TemporaryDirectory(prefix="surveyor-bench-") as place:
        folder = Path(place) / "web.survey"
        command = [sys.executable, "-m", "benchmarks.sharded_crawl", "--crawl", kind, "--pages", str(pages)]
        before = cpu_of(site["process"])
        done = subprocess.run(
            [*command, "--site", json.dumps(site), "--folder", str(folder)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-1000:])
        shutil.rmtree(folder, ignore_errors=True)
    report: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return {**report, "server": cpu_of(site["process"]) - before}


def table(found: dict[str, list[dict[str, Any]]], cores: int) -> str:
    """Return the best round of each crawl, and the ratios of their rates."""
    rows: list[list[str]] = []
    rates: dict[str, tuple[float, float]] = {}
    for name, reports in found.items():
        best = max(reports, key=lambda one: one["pages"] / one["seconds"])
        alone = best["seconds"] - (best["server"] / cores if name == "shards" else 0.0)
        rates[name] = best["pages"] / best["seconds"], best["pages"] / alone
        cost = 1e6 * best["cpu"] / best["pages"]
        every = [one["pages"] / one["seconds"] for one in reports]
        ratio = [rates[name][side] / rates["one"][side] for side in (0, 1)]
        rows.append(
            [
                NAMES[name],
                f"{rates[name][0]:,.0f}",
                f"{min(every):,.0f}–{max(every):,.0f}",
                f"{cost:,.0f}",
                f"{1e6 * best['server'] / best['pages']:,.0f}",
                f"{ratio[0]:.2f}",
                f"{ratio[1]:.2f}",
            ]
        )
    header = ["crawl", "pages/s", "all rounds", "CPU µs/page", "server µs/page", "× one process", "without the server"]
    return markdown(header, rows)


def main() -> int:
    """Run the benchmark, or one part of it."""
    parser = argparse.ArgumentParser(description="A crawl in two shards beside one process.")
    parser.add_argument("--pages", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--crawl", choices=CRAWLS)
    parser.add_argument("--site", type=json.loads)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    if given.serve:
        serve(given.pages)
        return 0
    if given.crawl:
        print(json.dumps(CRAWLS[given.crawl](given.site, given.pages, given.folder)))
        return 0
    kinds = [kind for kind in CRAWLS if kind != "scrapy" or find_spec("scrapy")]
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}
    with served(given.pages * 3 // 2) as site:
        for turn in range(given.rounds):
            for kind, reports in found.items():
                reports.append(measured(kind, site, given.pages))
                say(f"round {turn + 1}, {kind}: {reports[-1]}")
    print(table(found, len(os.sched_getaffinity(0))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
