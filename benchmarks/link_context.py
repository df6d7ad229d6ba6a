"""Measure what the contexts of links cost: bytes per link in the journal, and the time to parse a page.

    python -m benchmarks.link_context [--pages 1000] [FOLDER]

Without a folder of HTML files, the pages are those of a generated handbook.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import handbook
from benchmarks.table import markdown
from surveyor.store.database import pack
from surveyor.web.html import read_page
from surveyor.web.link_context import by_page
from surveyor.web.references import Addresses
from surveyor.web.urls import Urls, normalise


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.link_context", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--pages", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="surveyor-bench-") as place:
        folder = options.folder or Path(place)
        if options.folder is None:
            handbook.write(handbook.plan(options.pages), folder)
        print(measure(sorted(folder.rglob("*.html"))[: options.pages], folder))


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
