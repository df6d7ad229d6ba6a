"""Time and memory of exports of texts from a large survey.

    python -m benchmarks.text_export [--pages 100000] [--keep FOLDER]

The survey is written to disk directly, as a crawl would leave it: a generated handbook (22 KB and 50 links a page, one
page in fifty a copy of another one), with the WARC files. Memory is that of the largest process; CPU time is that of
all processes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks import handbook
from benchmarks.table import markdown
from surveyor.outcome import Exchange, Visit
from surveyor.store.directory import SurveyFolder
from surveyor.store.manifest import Manifest

HOST = "https://handbook.example/"
COPIES = 50  # one page in so many has the text of an earlier one
BATCH = 2_000
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
RUNS = (
    ["--format", "sitemap"],
    ["--format", "markdown", "--until", "tokens=1m"],
    ["--table", "text", "--format", "jsonl"],
    ["--format", "llms.txt", "--top", "2000"],
    ["--format", "markdown"],
)


def build(folder: Path, pages: int) -> None:
    """Write a survey of a handbook."""
    site = handbook.plan(pages)
    urls = [HOST + path for path in site.paths]
    settings = {"damping": 0.85, "strategy": "rankmass", "until": "pages=1000000", "archive": True, "scope": "host"}
    manifest = Manifest(seeds=(urls[0],), rng=1, settings=settings)
    with SurveyFolder.create(folder, manifest) as survey:
        for start in range(0, pages, BATCH):
            visits = list(_visits(site, urls, range(start, min(start + BATCH, pages))))
            survey.commit(visits, urls if start == 0 else ())


def _visits(site: handbook.Site, urls: list[str], pages: range) -> Iterator[Visit]:
    for page in pages:
        body = handbook.render(site, page - page % COPIES if page % COPIES == 7 else page)
        exchange = Exchange(urls[page], b"GET / HTTP/1.1\r\n\r\n", HEAD, body, 1.7e9 + page)
        links = np.unique(np.array(site.links[page], np.int32))
        yield Visit(
            page,
            "fetched",
            links[links != page],
            status=200,
            fetched_at=1.7e9 + page,
            title=f"Page {page} of the handbook",
            language="en",
            size=len(body),
            hash=page.to_bytes(8, "big"),
            exchange=exchange,
        )


def run(survey: Path, out: Path, options: list[str]) -> list[str]:
    """Run one export; return a row of the table."""
    command = [sys.executable, "-m", "surveyor", "export", str(survey), "--out", str(out), "--quiet", *options]
    start = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    size = sum(file.stat().st_size for file in out.parent.iterdir())  # a sitemap may be several files
    cpu = used.ru_utime + used.ru_stime
    return [" ".join(options), f"{seconds:.0f}", f"{cpu:.0f}", f"{used.ru_maxrss / 1024:.0f}", f"{size / 1e6:.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.text_export", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--keep", type=Path, help="folder in which the survey is kept, or found")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="surveyor-bench-") as place:
        survey = (given.keep or Path(place)) / f"handbook-{given.pages}.survey"
        if not survey.exists():
            survey.parent.mkdir(parents=True, exist_ok=True)
            build(survey, given.pages)
        print(
            f"{given.pages:,} pages, {sum(f.stat().st_size for f in survey.rglob('*') if f.is_file()) / 1e9:.2f} GB\n"
        )
        rows = []
        for number, options in enumerate(RUNS):
            out = Path(place) / f"{number}" / "out"
            out.parent.mkdir()
            rows.append(run(survey, out, options))
            shutil.rmtree(out.parent)
            print("; ".join(rows[-1]), file=sys.stderr)
        print(markdown(["export", "seconds", "CPU seconds", "MB of memory", "MB written"], rows))


if __name__ == "__main__":
    main()
