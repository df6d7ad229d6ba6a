"""Memory and disk per known URL of a crawl without a link graph: `python -m experiments.no_graph 100000 1000000`.

Synthetic visits go through the same code as those of a live crawl, but for fetching and parsing: URLs are numbered and
judged by the scope, cash moves, visit and changed rows are committed, and the queue of each host follows. Each page has
50 links to known pages and 50 (`--new`) to new URLs of about 65 bytes, and each host has 1,000 URLs. At each
of the sizes it prints, per known URL:

- the growth of the resident memory of the crawling process since its first visits, when all code was loaded, and the
  same for a process that resumes the crawl, at the end and at its highest, with the time that this takes;
- the size on disk of the URLs and of the cash; of all else, which is visits and commits, the size per visit.

`--kills N` instead kills a crawl of an embedded web over HTTP with SIGKILL at random moments, N times, resumes it each
time, and checks that no visit is lost, that all cash is 1, and that the cash is that of the visits in the journal.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.config import Settings
from surveyor.crawler.graphless import opic_of, restore, total_cash
from surveyor.crawler.queues import HostQueues
from surveyor.crawler.replay import Derived
from surveyor.crawler.session import RunStore
from surveyor.crawler.start import start
from surveyor.fetch.politeness.hosts import Hosts
from surveyor.graph.synthetic.generate import WebShape
from surveyor.outcome import FetchResults, Outcome, Visit
from surveyor.store.directory import SurveyFolder
from surveyor.survey.crawl import crawl
from surveyor.testing.web_plan import WebSettings
from surveyor.testing.web_server import running
from surveyor.web.urls import Urls

OLD, PER_HOST = 50, 1_000
SMALL = 20_000  # URLs of a survey that is resumed first, so that all code is loaded
AT_ONCE = 16  # visits in a commit
PAGE = resource.getpagesize()
WEB = WebSettings(
    web=WebShape(pages=400, smallest_site=3, largest_site=30, topics=4, external=0.4, mutual=0.4, dead=0.05),
    rng=3, calendar=0.0, sessions=0.0, dying=0.0, strict=0.0, robots_delay=0.0, slow_seconds=0.01,
)  # fmt: skip


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * PAGE


def url(number: int) -> str:
    """Return a synthetic URL."""
    return f"https://www.site{number // PER_HOST}.example/archive/{number % 97}/an-article-with-a-title-{number}.html"


def opened(path: Path, strategy: str) -> SurveyFolder:
    """Create or open a survey without a link graph."""
    settings = Settings(
        strategy=strategy, graph=False, until="requests=1g", contact="me@example.org", scope="any", rng=1, archive=False
    )
    return start(path, [url(0)], settings, dict.fromkeys(("strategy", "graph", "until"), "argument"))[0]


def loaded(folder: SurveyFolder) -> Derived:
    """Return the state of a survey, with a queue per host."""
    hosts = Hosts(0.0, clock=lambda: 1e9)

    def by_host(pages: int, urls: Urls) -> HostQueues:
        return HostQueues(pages, hosts, urls.__getitem__, urls.host_ids)

    return restore(folder, by_host)


def grow(path: Path, sizes: Sequence[int], strategy: str, new: int) -> Iterator[dict[str, Any]]:
    """Visit pages until so many URLs are known; yield what that took at each size."""
    rng = np.random.default_rng(2)
    with opened(path, strategy) as folder:
        state = loaded(folder)
        store, urls, crawl_state = RunStore(folder, state, lambda: 1e9), state.urls, state.crawl
        store.commit(FetchResults())
        made = visits = base = first = 0
        for size in sizes:
            began, visited = time.perf_counter(), visits
            while len(urls) < size:
                outcomes: list[Outcome] = []
                for _ in range(AT_ONCE):
                    numbers = [*range(made + 1, made + 1 + new), *rng.integers(0, made + 1, OLD).tolist()]
                    made += new
                    links = urls.ids([url(number) for number in dict.fromkeys(numbers)])
                    page = int(rng.integers(0, max(len(urls) - new, 1)))
                    visit = Visit(page, "fetched", links, fetched_at=1e9, status=200, size=9_999)
                    outcomes.append(state.reader.judged(visit))
                store.commit(FetchResults(outcomes=outcomes))
                for outcome in outcomes:
                    crawl_state.apply(outcome)
                visits += AT_ONCE
                if not base and len(urls) >= SMALL / 2:
                    base, first = resident(), len(urls)
            seconds = time.perf_counter() - began
            folder.journal.flush()
            tables = dict(folder.journal._ask("SELECT name, sum(pgsize) FROM dbstat GROUP BY name"))
            yield {
                "known": len(urls),
                "memory": (resident() - base) / max(len(urls) - first, 1),
                "urls": tables["urls"] / len(urls),
                "cash": tables["cash"] / len(urls),
                "visit": (sum(tables.values()) - tables["urls"] - tables["cash"]) / visits,
                "milliseconds": 1e3 * seconds / max(visits - visited, 1),
                "total": abs(total_cash(crawl_state.strategy) - 1),  # type: ignore[arg-type]
            }


def resume(small: Path, path: Path) -> dict[str, Any]:
    """Read a small survey, so that all code is loaded, and then another as a crawl does that resumes it."""
    with SurveyFolder.open(small, write=False) as folder:
        loaded(folder)
    base, began = resident(), time.perf_counter()
    with SurveyFolder.open(path, write=False) as folder:
        state = loaded(folder)
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - base
        return {
            "resumed": (resident() - base) / len(state.urls),
            "resumed_peak": most / len(state.urls),
            "seconds": time.perf_counter() - began,
        }


def measure(sizes: Sequence[int], strategy: str, new: int) -> None:
    """Print the figures of each size."""
    with (
        tempfile.TemporaryDirectory() as folder,
        multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool,
    ):
        small = Path(folder) / "small"
        list(grow(small, [SMALL], strategy, new))
        for figures in grow(Path(folder) / "large", sizes, strategy, new):
            figures |= pool.apply(resume, (small, Path(folder) / "large"))
            print(json.dumps({name: round(float(value), 2) for name, value in figures.items()}), flush=True)


def work(path: str, seeds: list[str], port: int, requests: int) -> None:
    """Crawl a survey of an embedded web until it has made so many requests."""
    crawl(
        seeds, out=path, until=f"requests={requests}", strategy="opic", graph=False, scope="any", delay=0.0, rng=1,
        contact="me@example.org", backoff=0.02, concurrency=8, proxy=f"http://127.0.0.1:{port}", archive=False,
    ).close()  # fmt: skip


def nurse() -> None:
    """Crawl once, so that all code is loaded; then fork a crawl for each line read, and kill it after some seconds.

    A line has the arguments of `work` and the seconds. Each crawl starts from loaded code, so that kills fall on it.
    """
    for number, line in enumerate(sys.stdin):
        *arguments, seconds = json.loads(line)
        if number == 0:
            work(*arguments)
        elif (child := os.fork()) == 0:
            try:
                work(*arguments)
            finally:
                os._exit(0)
        else:
            time.sleep(seconds)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        print(number, flush=True)


def kill_often(kills: int, folder: Path, *, seed: int = 1, web: WebSettings = WEB) -> dict[str, Any]:
    """Kill a crawl and resume it so many times; raise if anything is lost."""
    rng, path = random.Random(seed), folder / "a.survey"  # noqa: S311
    worst, useful, in_flight = 0.0, 0, 0
    before: list[tuple[int, str, float]] = []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", "from experiments.no_graph import nurse; nurse()"]
    pipe = subprocess.PIPE
    with (
        running(web) as embedded,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, bufsize=1, env=environment) as child,  # noqa: S603
    ):
        assert child.stdin is not None  # noqa: S101
        assert child.stdout is not None  # noqa: S101
        for number in range(-1, kills):
            place = folder / "first.survey" if number < 0 else path
            until = 100 if number < 0 else 1_000_000
            arguments = [str(place), list(embedded.seeds), embedded.port, until, rng.uniform(0.0, 8.0)]
            child.stdin.write(json.dumps(arguments) + "\n")
            child.stdout.readline()
            if number < 0 or not (path / "survey.toml").is_file():
                continue
            with SurveyFolder.open(path, write=False) as survey:
                visits = [(visit.page, str(visit.kind), visit.fetched_at) for visit in survey.journal.visits()]
                opic = opic_of(survey)
            if visits[: len(before)] != before:
                raise RuntimeError(f"a visit is lost after kill {number}")
            useful += len(visits) > len(before)
            before = visits
            if opic is None:
                continue
            worst = max(worst, abs(total_cash(opic) - 1))
            moved = sum(kind != "redirected" for _, kind, _ in visits)
            in_flight = max(in_flight, abs(opic.reads - moved))
        child.stdin.close()
    if in_flight or worst > 1e-9:
        raise RuntimeError(f"cash is {worst:.1e} from 1, and that of up to {in_flight:,} visits is missing")
    return {"kills": kills, "with new visits": useful, "visits": len(before), "largest |sum - 1|": worst}


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("known", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--strategy", default="opic")
    parser.add_argument("--new", type=int, default=50)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.kills:
        with tempfile.TemporaryDirectory() as folder:
            for name, value in kill_often(given.kills, Path(folder), seed=given.seed).items():
                print(f"{name:20} {value:>12,}" if isinstance(value, int) else f"{name:20} {value:>12.1e}")
        return
    measure(sorted(given.known), given.strategy, given.new)


if __name__ == "__main__":
    main()
