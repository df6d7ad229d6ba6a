"""Time to resume a large survey: from its checkpoint, and by a replay of its journal.

    python -m benchmarks.resume --pages 1000000
    python -m benchmarks.resume --pages 1000000 --against ../older --rounds 5

A synthetic web is crawled into a survey by the loop of a live crawl, with a graph in place of the network. Then the
survey is opened as a crawl would open it, twice: with its checkpoint and without. Both states must be the same.

With `--against`, this version and that of another checkout each make a survey of the same web, and then open their own
in turn, each time in a process of its own: the median of the ratios of all rounds counts, after one that does not.
Each version runs its own copy of this file.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import surveyor as sv
from surveyor.config import Settings
from surveyor.crawler.loop import Source, crawl
from surveyor.crawler.queues import HostQueues
from surveyor.crawler.replay import Derived, derive, save
from surveyor.crawler.session import RunStore
from surveyor.crawler.sources.graph import GraphSource
from surveyor.crawler.start import start
from surveyor.fetch.politeness.hosts import Hosts
from surveyor.graph.csr import Graph
from surveyor.store.directory import SurveyFolder
from surveyor.web.urls import Urls

ROOT = Path(__file__).resolve().parent.parent
WAYS = ("checkpoint", "replay")
LINKS_PER_PAGE = 20  # asked for; about two thirds of the pages that come of it are crawled


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="where to make the survey; a temporary folder if not given")
    parser.add_argument("--against", type=Path, help="another checkout of surveyor, the older one")
    parser.add_argument("--rounds", type=int, default=5, help="with --against")
    parser.add_argument("--step", choices=("make", *WAYS), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        print(json.dumps(step(given.step, given.folder, given.pages)))
        return
    place = given.folder or Path(tempfile.mkdtemp())
    try:
        if given.against:
            compare(place, given.pages, given.against.resolve(), given.rounds)
        else:
            measure(place / "large.survey", given.pages)
    finally:
        if given.folder is None:
            shutil.rmtree(place)


def compare(place: Path, pages: int, other: Path, rounds: int) -> None:
    """Let two versions open surveys of their own in turn, and print ratios."""
    surveys = {ROOT: place / "this.survey", other: place / "other.survey"}
    for source, survey in surveys.items():
        if not survey.exists():
            print(f"{source}: {_process(source, 'make', survey, pages)}", flush=True)
    ratios: dict[str, list[float]] = {f"{way}, {what}": [] for way in WAYS for what in ("seconds", "cpu")}
    for turn in range(rounds + 1):
        for way in WAYS:
            order = (other, ROOT) if turn % 2 else (ROOT, other)
            found = {source: _process(source, way, surveys[source], pages) for source in order}
            mine, its = found[ROOT], found[other]
            said = f"seconds {mine['seconds']:.2f} / {its['seconds']:.2f}, cpu {mine['cpu']:.2f} / {its['cpu']:.2f}"
            print(f"round {turn}, {way}: this / other {said}", flush=True)
            for what in ("seconds", "cpu"):
                if turn:  # the first one compiles
                    ratios[f"{way}, {what}"].append(found[ROOT][what] / found[other][what])
    for name, values in ratios.items():
        low, high = min(values), max(values)
        print(f"{name:<22} this / other: median {statistics.median(values):.3f} (all rounds {low:.3f} to {high:.3f})")


def _process(source: Path, what: str, survey: Path, pages: int) -> dict[str, Any]:
    """Run a step with the sources of one checkout, which come before the installed ones."""
    command = [
        sys.executable,
        str(source / "benchmarks" / "resume.py"),
        "--step",
        what,
        "--folder",
        str(survey),
        "--pages",
        str(pages),
    ]
    there = os.environ | {"PYTHONPATH": str(source / "src")}
    done = subprocess.run(command, env=there, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{source}, {what}: {done.stderr.strip()[-800:]}")
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


def step(what: str, survey: Path, pages: int) -> dict[str, Any]:
    """Make a survey, or open it in one of two ways and return what that took."""
    if what == "make":
        make(survey, pages)
        return {"sources": str(Path(sv.__file__).parent), "bytes": (survey / "journal.sqlite").stat().st_size}
    kept, aside = survey / "checkpoint", survey.with_name(f"{survey.name}.checkpoint")
    if what == "replay":
        kept.rename(aside)
    try:
        began, worked = time.perf_counter(), time.process_time()
        state = opened(survey, what)
        seconds, cpu = time.perf_counter() - began, time.process_time() - worked
    finally:
        if what == "replay":
            aside.rename(kept)
    return {"seconds": seconds, "cpu": cpu, "read": state.crawl.ledger.read}


def make(path: Path, pages: int, source: Callable[[Graph], Source] = GraphSource) -> None:
    """Make a survey with a checkpoint; `source` fetches the pages of a graph."""
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
        store = RunStore(folder, state, time.time)
        work = crawl(state.crawl, source(web), store, sv.Pages(pages), batch=256, tally=state.tally)
        ending = asyncio.run(work)
        say(f"crawled {state.crawl.ledger.read:,} pages ({ending}): {state.crawl.ledger.coverage()}", began)
        began = time.perf_counter()
        save(folder, state)
        say("checkpoint saved", began)


def measure(path: Path, pages: int) -> None:
    """Make a survey, open it in both ways and print what that took."""
    make(path, pages)
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

    with SurveyFolder.open(path) as folder:
        state = derive(folder, by_host)
    say(f"{what}: {len(state.crawl.frontier):,} pages wait on {len(hosts):,} hosts", began)
    return state


def say(what: str, began: float) -> None:
    """Print what was done and how long it took."""
    print(f"{time.perf_counter() - began:8.2f} s  {what}", flush=True)


if __name__ == "__main__":
    main()
