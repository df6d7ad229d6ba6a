"""Measure what the contexts of links cost: bytes per link in the journal, and the time to parse a page.

    python -m benchmarks.link_context [--pages 1000] [--rounds 5] [FOLDER]

Without a folder of HTML files, the pages are those of a generated handbook. With `--rounds`, the pages are also crawled
from loopback, with an archive: in each round once with contexts and once without, that is, no text is read and nothing
is packed. Each crawl is a process of its own that has crawled a few pages before; its CPU time is compared.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import surveyor
from benchmarks import handbook
from benchmarks.planted_server import Server, started
from benchmarks.table import markdown
from surveyor.fetch import responses
from surveyor.store.database import pack
from surveyor.web import html
from surveyor.web.html import read_page
from surveyor.web.link_context import by_page
from surveyor.web.references import Addresses
from surveyor.web.urls import Urls, normalise


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.link_context", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=0, help="crawls with and without contexts")
    parser.add_argument("--crawl", metavar="URL", help=argparse.SUPPRESS)  # as a process of its own
    parser.add_argument("--without", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.crawl:
        print(crawl(options.crawl, options.pages, without=options.without))
        return
    with tempfile.TemporaryDirectory(prefix="surveyor-bench-") as place:
        folder = options.folder or Path(place)
        if options.folder is None:
            handbook.write(handbook.plan(options.pages), folder)
        print(measure(sorted(folder.rglob("*.html"))[: options.pages], folder))
        if options.rounds:
            print(compare(folder, options.pages, options.rounds))


def crawl(url: str, pages: int, *, without: bool) -> float:
    """Return the CPU time of a crawl of so many pages."""
    if without:
        vars(responses)["by_page"] = lambda *_: b""
        vars(html)["_ANCHOR_ROOM"] = 0
    with tempfile.TemporaryDirectory(prefix="surveyor-bench-") as place:
        for name, count in (("warm", min(pages, 20)), ("crawl", pages)):
            start = time.process_time()
            surveyor.crawl(
                url,
                until=f"pages={count}",
                out=Path(place) / name,
                delay=0,
                allow=["127.0.0.1"],
                contact="me@example.org",
            )
    return time.process_time() - start


def compare(folder: Path, pages: int, rounds: int) -> str:
    """Crawl a folder in turn with and without contexts; return the ratio of the CPU times."""
    server, ratios = Server(folder), []
    started(server, {})
    words = [sys.executable, "-m", "benchmarks.link_context", "--pages", str(pages), "--crawl"]
    words.append(f"http://127.0.0.1:{server.server_port}/")
    for turn in range(rounds):
        seconds = dict[bool, float]()
        for without in (True, False) if turn % 2 else (False, True):
            done = subprocess.run([*words, *["--without"] * without], capture_output=True, text=True, check=True)
            seconds[without] = float(done.stdout)
        ratios.append(seconds[False] / seconds[True])
        print(f"round {turn + 1}: {seconds[False]:.2f} s, without {seconds[True]:.2f} s", file=sys.stderr, flush=True)
    server.shutdown()
    spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
    return f"\nCPU time of a crawl, with contexts to without: {statistics.median(ratios):.3f} ({spread})"


def measure(files: list[Path], folder: Path) -> str:
    urls, addresses = Urls(), Addresses(normalise)
    links = contexts = ids_size = 0
    seconds = 0.0
    for path in files:
        body, url = path.read_bytes(), f"https://docs.example.org/{path.relative_to(folder).as_posix()}"
        start = time.process_time()
        page = read_page(body, url, content_type="text/html", text=False, addresses=addresses)
        ids = urls.ids([link.url for link in page.links])
        packed = by_page(int(urls.ids([url])[0]), ids, page.anchors, page.marks)
        seconds += time.process_time() - start
        links, contexts = links + np.unique(ids).size, contexts + len(packed)
        ids_size += len(pack([ids])[0] or b"")
    rows = [
        ["pages", f"{len(files):,}"],
        ["links per page", f"{links / len(files):.1f}"],
        ["bytes per link, context", f"{contexts / links:.2f}"],
        ["bytes per link, page id", f"{ids_size / links:.2f}"],
        ["CPU per page, parsing and packing", f"{1e6 * seconds / len(files):.0f} µs"],
    ]
    return markdown(["", "measured"], rows)


if __name__ == "__main__":
    main()
