"""Compare two versions of surveyor: is this one slower than another checkout?

    python -m benchmarks.versions ../older [--part crawling|race|walks] [--rounds 5] [--pages 5000] [--data DIR]

Each version runs its own benchmark from its own sources with this interpreter, in processes that alternate. The median
of the ratios of all rounds is reported: both runs of a round see the same noise.

- `crawling`: a site on nginx, one core for the crawler.
- `race`: build and rank cnr-2000 from `--data`.
- `walks`: compiled walks on a synthetic web, CPU time per step.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import graphs, handbook, server, walks
from benchmarks.crawlers import CRAWLERS
from benchmarks.graphs import ROOT
from benchmarks.process import environment
from benchmarks.race import say
from benchmarks.table import markdown

TIMEOUT = 600.0
TOOLS = [name for name in CRAWLERS if name.startswith("surveyor, RankMass")]
GRAPH = "cnr-2000"
Times = dict[str, float]  # by task
Measure = Callable[[Path, Path], Times]  # of the version at a path, with a work folder


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.versions", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("other", type=Path, help="another checkout of surveyor, the older one")
    parser.add_argument("--part", choices=("all", "crawling", "race", "walks"), default="all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pages", type=int, default=handbook.PAGES, help="pages of the site")
    parser.add_argument("--data", help="folder of real graphs  [SURVEYOR_DATA, or data]")
    options = parser.parse_args()
    other, data = options.other.resolve(), graphs.data_folder(options.data).resolve()
    with tempfile.TemporaryDirectory(prefix="surveyor-bench-") as place:
        work = Path(place)
        if options.part in ("all", "crawling"):
            if server.nginx() is None:
                sys.exit("nginx is not installed (Debian: apt install nginx-light)")
            print(_crawling(other, options.pages, options.rounds, work), flush=True)
        if options.part in ("all", "race"):
            print(_compare(other, options.rounds, work, lambda source, to: _race(source, to, data)), flush=True)
        if options.part in ("all", "walks"):
            walks.prepare(walks.SIZES["full"], work / "web")
            print(_compare(other, options.rounds, work, _walks), flush=True)


def _compare(other: Path, rounds: int, work: Path, measure: Measure) -> str:
    """Run both versions alternately, and return the ratio of their times for each task."""
    ratios: dict[str, list[float]] = defaultdict(list)
    for turn in range(rounds):
        order = (other, ROOT) if turn % 2 else (ROOT, other)
        times = {source: measure(source, work) for source in order}
        for task, seconds in times[ROOT].items():
            ratios[task].append(seconds / times[other][task])
        say(f"round {turn + 1}: " + ", ".join(f"{task} {values[-1]:.3f}" for task, values in ratios.items()))
    return _table("task", ratios)


def _table(first: str, ratios: dict[str, list[float]]) -> str:
    rows = [
        [task, f"{statistics.median(values):.3f}", f"{min(values):.3f}–{max(values):.3f}"]
        for task, values in ratios.items()
    ]
    return markdown([first, "median ratio to the other version", "all rounds"], rows) + "\n"


def _crawling(other: Path, pages: int, rounds: int, work: Path) -> str:
    """Crawl a site with both versions."""
    cores = sorted(os.sched_getaffinity(0))
    site = work / "site"
    site.mkdir()
    handbook.write(handbook.plan(pages), site)

    def measure(source: Path, to: Path, url: str) -> Times:
        times: Times = {}
        for name in TOOLS:
            report = _crawl(source, name, url, to / "crawl", cores[0])
            assert report["pages"] == pages, report
            times |= {f"{name}, {what}": report[what] for what in ("seconds", "cpu", "peak")}
        return times

    with server.serving(site, work, {cores[-1]}) as url:
        return _compare(other, rounds, work, lambda source, to: measure(source, to, url))


def _crawl(source: Path, name: str, url: str, folder: Path, core: int) -> dict[str, Any]:
    folder.mkdir()
    try:
        report: dict[str, Any] = json.loads(_run(source, "benchmarks.crawlers", name, url, str(folder), str(core)))
    finally:
        shutil.rmtree(folder)
    return report


def _race(source: Path, work: Path, data: Path) -> Times:
    result = work / "race.json"
    options = ("--graphs", GRAPH, "--tools", "surveyor", "--rounds", "1", "--data", str(data), "--json", str(result))
    _run(source, "benchmarks", "race", *options, threads=2)
    (measured,) = json.loads(result.read_text("utf-8"))["race"][GRAPH]["results"]
    return {f"{GRAPH}, {task}": seconds for task, seconds in measured["seconds"].items()}


def _walks(source: Path, work: Path) -> Times:
    rows = json.loads(_run(source, "benchmarks.walks", walks.OURS, str(work / "web"), "3").splitlines()[-1])
    return {row["what"]: row["seconds"] / row["steps"] for row in rows}


def _run(source: Path, module: str, *arguments: str, threads: int = 1) -> str:
    """Run a module of one checkout, whose sources take precedence over the installed ones."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=source,
        env=environment(threads) | {"PYTHONPATH": f"{source / 'src'}{os.pathsep}{source}"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{source}, {module}: {done.stderr.strip()[-500:]}")
    return done.stdout


if __name__ == "__main__":
    main()
