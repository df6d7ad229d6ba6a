"""Two versions of surveyor over one site, in turn: is this one slower than another checkout?

    python -m benchmarks.versions ../older [--rounds 5] [--pages 5000]

Each version runs its own `benchmarks.crawlers` from its own sources, with this interpreter, in processes that take
turns on the same core. The median of the ratios of all rounds counts: both crawls of a round see the same noise.
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
from pathlib import Path
from typing import Any

from benchmarks import handbook, server
from benchmarks.crawlers import CRAWLERS
from benchmarks.graphs import ROOT
from benchmarks.process import environment
from benchmarks.race import say
from benchmarks.table import markdown

TIMEOUT = 600.0
TOOLS = [name for name in CRAWLERS if name.startswith("surveyor, RankMass")]


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.versions", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("other", type=Path, help="another checkout of surveyor, the older one")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pages", type=int, default=handbook.PAGES)
    options = parser.parse_args()
    if server.nginx() is None:
        sys.exit("there is no nginx (Debian: apt install nginx-light)")
    print(compare(options.other.resolve(), options.pages, options.rounds))


def compare(other: Path, pages: int, rounds: int) -> str:
    """Crawl a site with both versions, in turn, and return a table of ratios."""
    cores = sorted(os.sched_getaffinity(0))
    found: dict[str, list[dict[str, float]]] = {name: [] for name in TOOLS}
    with tempfile.TemporaryDirectory(prefix="surveyor-bench-") as place:
        work = Path(place)
        site = work / "site"
        site.mkdir()
        handbook.write(handbook.plan(pages), site)
        with server.serving(site, work, {cores[-1]}) as url:
            for turn in range(rounds):
                for name in TOOLS:
                    order = (other, ROOT) if turn % 2 else (ROOT, other)
                    reports = {source: _crawl(source, name, url, work / "crawl", cores[0]) for source in order}
                    assert all(report["pages"] == pages for report in reports.values()), reports
                    ratio = {what: reports[ROOT][what] / reports[other][what] for what in ("seconds", "cpu", "peak")}
                    found[name].append(ratio | {"rate": pages / reports[ROOT]["seconds"]})
                    say(f"round {turn + 1}, {name}: this version takes {ratio['seconds']:.3f} of the other's time")
    rows = []
    for name, ratios in found.items():
        values = {what: sorted(one[what] for one in ratios) for what in ("seconds", "cpu", "peak", "rate")}
        cells = [f"{statistics.median(values[what]):.3f}" for what in ("seconds", "cpu", "peak")]
        spread = f"{values['seconds'][0]:.3f}–{values['seconds'][-1]:.3f}"
        rows.append([name, f"{statistics.median(values['rate']):,.0f}", cells[0], spread, *cells[1:]])
    return markdown(["crawler", "pages/s", "time / other's", "all rounds", "CPU / other's", "memory / other's"], rows)


def _crawl(source: Path, name: str, url: str, folder: Path, core: int) -> dict[str, Any]:
    """Crawl with the version of one checkout; its own sources come before the installed ones."""
    folder.mkdir()
    command = [sys.executable, "-m", "benchmarks.crawlers", name, url, str(folder), str(core)]
    there = environment(1) | {"PYTHONPATH": f"{source / 'src'}{os.pathsep}{source}"}
    try:
        done = subprocess.run(
            command,
            cwd=source,
            env=there,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    finally:
        shutil.rmtree(folder)
    if done.returncode:
        raise RuntimeError(f"{source}, {name}: {done.stderr.strip()[-500:]}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


if __name__ == "__main__":
    main()
