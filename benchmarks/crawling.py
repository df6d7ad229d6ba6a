"""Pages per second of live crawls: surveyor and Scrapy over one site that nginx serves on this machine.

    python -m benchmarks crawling [--quick]

Both follow links over the whole site. The client has one core to itself and nginx another. All crawlers take turns, in
processes of their own; the best round of each counts, and ratios are also given round by round, as noise moves them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import handbook, server
from benchmarks.crawlers import CRAWLERS
from benchmarks.graphs import ROOT
from benchmarks.process import environment
from benchmarks.race import say
from benchmarks.table import markdown
from benchmarks.targets import Verdict

TIMEOUT = 600.0
HOSTS = 10_000
RANKMASS, BREADTH, WARC, BREADTH_WARC, SCRAPY, SCRAPY_JOB = CRAWLERS
Rounds = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Ratio:
    """How many times one number another is: of the best rounds, and of each."""

    best: float
    rounds: list[float]

    def __str__(self) -> str:
        return f"{min(self.rounds):.2f}–{max(self.rounds):.2f}"


def crawling(pages: int, rounds: int) -> Rounds | None:
    """Crawl the site with every tool, in turn; None if there is no nginx."""
    if server.nginx() is None:
        return None
    cores = sorted(os.sched_getaffinity(0))
    found: Rounds = {name: [] for name in CRAWLERS}
    with tempfile.TemporaryDirectory(prefix="surveyor-bench-") as place:
        work = Path(place)
        files = work / "site"
        files.mkdir()
        say(f"writing a site of {pages:,} pages")
        handbook.write(handbook.plan(pages), files)
        with server.serving(files, work, {cores[-1]}) as url:
            for turn in range(rounds):
                for name in CRAWLERS:
                    report = _crawl(name, url, work / "crawl", cores[0])
                    assert report["pages"] == pages, f"{name} read {report['pages']} pages of {pages}"
                    found[name].append(report)
                    say(f"round {turn + 1}, {name}: {pages / report['seconds']:.0f} pages/s")
    return found


def _crawl(name: str, url: str, folder: Path, core: int) -> dict[str, Any]:
    folder.mkdir()
    command = [sys.executable, "-m", "benchmarks.crawlers", name, url, str(folder), str(core)]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment(1), capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    finally:
        shutil.rmtree(folder)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr.strip()[-500:]}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def crawling_table(found: Rounds) -> str:
    """Return what each crawler did."""
    rows = []
    for name, reports in found.items():
        rates = [report["pages"] / report["seconds"] for report in reports]
        cpu = min(report["cpu"] / report["pages"] for report in reports)
        peak = max(report["peak"] for report in reports) / 1e6
        times = [f"{_ratio(found, name, SCRAPY, what).best:.1f}" for what in ("seconds", "cpu")]
        spread = f"{min(rates):,.0f}–{max(rates):,.0f}"
        rows.append([name, f"{max(rates):,.0f}", spread, f"{1e6 * cpu:,.0f}", *times, f"{peak:,.0f}"])
    header = ["crawler", "pages/s", "all rounds", "CPU µs/page", "× Scrapy", "in CPU time", "peak MB"]
    return markdown(header, rows)


def crawling_verdicts(found: Rounds) -> list[Verdict]:
    """Compare with what was promised, in CPU time: what others do on the machine moves it less, and one core is all."""
    judged = []
    for name, times in ((RANKMASS, 8.0), (WARC, 5.0)):
        ratio = _ratio(found, name, SCRAPY, "cpu")
        words = f"{ratio.best:.1f} times the speed of Scrapy ({ratio} in the rounds)"
        judged.append(Verdict(f"{name}: {times:g} / times Scrapy", words, times / ratio.best, 1.0))
    for one, other in ((RANKMASS, BREADTH), (WARC, BREADTH_WARC)):
        cost = _ratio(found, other, one, "cpu")
        mine, its = (1e6 * min(report["cpu"] / report["pages"] for report in found[name]) for name in (one, other))
        words = f"{mine:,.0f} µs of CPU a page, breadth-first {its:,.0f} ({cost} in the rounds)"
        judged.append(Verdict(f"{one} / breadth-first", words, cost.best, 1.15))
    return judged


def _ratio(found: Rounds, one: str, other: str, what: str) -> Ratio:
    """Say how many times as long the other takes: in the best rounds of both, and in each round."""
    mine, theirs = ([report[what] for report in found[name]] for name in (one, other))
    return Ratio(min(theirs) / min(mine), [their / my for my, their in zip(mine, theirs, strict=True)])


def selection(waiting: int) -> list[dict[str, Any]]:
    """Measure queues in which so many URLs wait, each in a process of its own."""
    found = []
    for hosts in (1, HOSTS):
        command = [sys.executable, "-m", "benchmarks.selection", str(hosts), str(waiting)]
        done = subprocess.run(
            command, cwd=ROOT, env=environment(1), capture_output=True, text=True, timeout=TIMEOUT, check=True
        )
        found.append(json.loads(done.stdout))
        say(f"{waiting:,} URLs wait, hosts {hosts:,}: {found[-1]['take']:.1f} µs to choose one")
    return found


def selection_verdicts(found: list[dict[str, Any]]) -> list[Verdict]:
    """Compare with what was promised: 20 µs and 400 MB."""
    judged = []
    for one in found:
        where = f"{one['waiting']:,} URLs wait on {one['hosts']:,} host{'s' * (one['hosts'] > 1)}"
        words = f"{one['take']:.1f} µs (and {one['put']:.0f} µs to set {one['touched']:.0f} priorities after a page)"
        judged.append(Verdict(f"{where}: choose one / 20 µs", words, one["take"] / 20, 1.0))
        words = f"{one['resident'] / 1e6:.0f} MB, {one['peak'] / 1e6:.0f} at its peak; {one['text'] / 1e6:.0f} are text"
        judged.append(Verdict(f"{where}: memory / 400 MB", words, one["resident"] / 400e6, 1.0))
    return judged
