"""How long it takes to go on with a large survey: from its checkpoint, and by a replay of its journal.

    python -m benchmarks.resume --pages 1000000

A made-up web is crawled into a survey by the loop of a live crawl, with a graph in place of the network. Then the
survey is opened as a crawl would open it, twice: with its checkpoint and without. Both states must be the same.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

import surveyor as sv
from surveyor.config import Settings
from surveyor.crawling.derived import Derived, derive, save
from surveyor.crawling.live import Keeper
from surveyor.crawling.start import start
from surveyor.hosts import Hosts
from surveyor.loop import crawl
from surveyor.queues import HostQueues
from surveyor.sources.graph import GraphSource
from surveyor.store.survey import Folder
from surveyor.urls import Urls

LINKS_PER_PAGE = 20  # asked for; about two thirds of the pages that come of it are crawled


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="where to make the survey; a temporary folder if not given")
    given = parser.parse_args()
    place = given.folder or Path(tempfile.mkdtemp())
    try:
        measure(place / "large.survey", given.pages)
    finally:
        if given.folder is None:
            shutil.rmtree(place)


def measure(path: Path, pages: int) -> None:
    """Make a survey, open it in both ways and print what that took."""
    began = time.perf_counter()
    web = sv.synthetic_web("web", links=LINKS_PER_PAGE * pages, rng=7, names=True).graph
    names = [f"{name}/" if name.count("/") < 3 else name for name in web.names or ()]
    say(f"a web of {web.pages:,} pages and {web.links:,} links", began)
    seeds = sorted(np.argsort(-np.diff(web.in_links.indptr))[:3].tolist())
    settings = Settings(contact="bench@example.org", until=f"pages={pages}", rng=7, archive=False, scope="any")
    folder, settings = start(path, [names[page] for page in seeds], settings, {})
    with folder:
        folder.commit([], names)  # so that the pages of the survey have the numbers of the graph
        began = time.perf_counter()
        state = derive(folder)
        keeper = Keeper(folder, state, time.time)
        work = crawl(state.crawl, GraphSource(web), keeper, sv.Pages(pages), batch=256, tally=state.tally)
        ending = asyncio.run(work)
        say(f"crawled {state.crawl.ledger.read:,} pages ({ending}): {state.crawl.ledger.coverage()}", began)
        began = time.perf_counter()
        save(folder, state)
        say("checkpoint saved", began)
    kept = sum(file.stat().st_size for file in (path / "checkpoint").rglob("*") if file.is_file())
    print(f"journal {(path / 'journal.sqlite').stat().st_size / 1e6:,.0f} MB, checkpoint {kept / 1e6:,.0f} MB")
    quick = opened(path, "opened from the checkpoint, hosts and queue included")
    shutil.rmtree(path / "checkpoint")
    slow = opened(path, "opened by a replay of the journal")
    for name in ("residual", "settled", "state", "totals"):
        one, other = (getattr(state.crawl.ledger.mass, name) for state in (quick, slow))
        size = min(one.size, other.size)
        assert np.array_equal(one[:size], other[:size]), name
    print("both states are the same")


def opened(path: Path, what: str) -> Derived:
    """Open a survey as a live crawl does."""
    began = time.perf_counter()
    hosts = Hosts(1.0)

    def by_host(pages: int, urls: Urls) -> HostQueues:
        return HostQueues(pages, hosts, urls.__getitem__, urls.host_ids)

    with Folder.open(path) as folder:
        state = derive(folder, by_host)
    say(f"{what}: {len(state.crawl.frontier):,} pages wait on {len(hosts):,} hosts", began)
    return state


def say(what: str, began: float) -> None:
    """Print what was done and how long it took."""
    print(f"{time.perf_counter() - began:8.2f} s  {what}", flush=True)


if __name__ == "__main__":
    main()
