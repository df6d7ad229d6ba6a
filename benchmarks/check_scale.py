"""Measure `surveyor check` on a large survey: time, memory, size of the report.

    python -m benchmarks.check_scale [--pages 100000] [--survey DIR]

A generated handbook is written, served on loopback and crawled completely (about 2.5 GB of disk and five minutes for
100,000 pages), then checked. With `--survey`, an existing survey is checked.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks import handbook
from benchmarks.planted_server import Server, started
from benchmarks.table import markdown

POLITE = ["--contact", "me@example.org", "--allow", "127.0.0.1", "--delay", "0", "--quiet"]


class Measured(NamedTuple):
    """Time and memory of a command."""

    seconds: float
    cpu: float
    memory: int  # bytes, at most


def measured(*words: str) -> Measured:
    """Run a surveyor command."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "surveyor", *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 3):
        raise SystemExit(f"surveyor {words[0]} ended with exit code {process.returncode}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Measured(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit)


def crawled(pages: int, place: Path) -> tuple[Path, Measured]:
    """Crawl a handbook of so many pages."""
    site, survey = place / "site", place / "handbook.survey"
    site.mkdir()
    handbook.write(handbook.plan(pages), site)
    server = Server(site)
    started(server, {})
    url = f"http://127.0.0.1:{server.server_port}/"
    done = measured("crawl", url, "--out", str(survey), "--until", f"pages={2 * pages}", *POLITE)
    server.shutdown()
    return survey, done


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.check_scale", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--survey", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="surveyor-bench-") as folder:
        place, rows = Path(folder), []
        survey = options.survey
        if survey is None:
            survey, crawl = crawled(options.pages, place)
            rows.append(["crawl", f"{crawl.seconds:.0f}", f"{crawl.cpu:.0f}", f"{crawl.memory / 1e6:.0f}"])
        report = place / "check.html"
        check = measured("check", str(survey), "--html", str(report), "--quiet")
        rows.append(["check", f"{check.seconds:.0f}", f"{check.cpu:.0f}", f"{check.memory / 1e6:.0f}"])
        print(markdown(["", "s", "CPU s", "peak MB"], rows))
        print(f"\nreport: {report.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
