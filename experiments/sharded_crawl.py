"""Crawl embedded webs in shards over HTTP, and compare every joint report, of any ages, with the truth.

    python -m experiments.sharded_crawl --webs 24

Each web is another one, with pages that are gone, blocked, redirected across hosts or printed twice, and hosts that
fail. All shards run in one event loop, with a network between them that delays, repeats and loses messages; shards are
killed in the middle of a step and restored from their journals. After each round of reports, the last report of each
shard, and random earlier ones, are combined, and the interval must contain the true coverage of the pages that these
reports count as fetched.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.config import Settings
from surveyor.crawler.shards.bounds import Report, joint_coverage
from surveyor.crawler.shards.description import Shards
from surveyor.crawler.shards.director import Director
from surveyor.crawler.shards.prepare import driving, prepare
from surveyor.crawler.shards.worker import ShardWorker
from surveyor.crawler.sources.live import REAL, Connection
from surveyor.crawler.start import start
from surveyor.graph.synthetic.generate import WebShape
from surveyor.kernels import mass
from surveyor.stopping import parse_rule
from surveyor.store.directory import SurveyFolder
from surveyor.testing import EmbeddedWeb, WebSettings, running
from surveyor.testing.web_truth import Truth

EPSILON = 1e-9
MIXES = 4  # joint reports that are checked per round
SHARDS = (1, 2, 4, 8)


class Killed(Exception):
    """A shard was killed."""


def settings_for(web: EmbeddedWeb, until: str, **more: Any) -> Settings:
    """Return settings that crawl a web through its own port."""
    given = {"delay": 0, "backoff": 0.05, "scope": "any", "archive": False, "domain_delay": 0.0, **more}
    return Settings(contact="me@example.org", proxy=f"http://127.0.0.1:{web.port}", until=until, **given)


def create(folder: Path, web: EmbeddedWeb, settings: Settings, shards: int | None, **more: Any) -> Shards:
    """Create or resume a sharded survey of a web."""
    origins = dict.fromkeys(("contact", "delay", "backoff", "scope", "archive", "domain_delay", "until"), "argument")
    opened, chosen = start(folder, web.seeds, settings, origins, sharded=True, **more)
    with opened:
        return prepare(opened, chosen, shards)


@dataclass
class LocalShards:
    """The shards of a crawl in this event loop."""

    shards: Shards
    settings: Settings
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))
    delay: float = 0.0  # longest of a message, in seconds
    lost: float = 0.0
    repeated: float = 0.0
    kills: int = 0  # to come
    connect: Callable[[int], Connection] = lambda _: REAL
    truth: Truth | None = None
    checked: int = 0  # joint reports compared with the truth
    restarts: int = 0
    at_least: float = 0.0  # joint coverage at the end
    wrong: list[tuple[float, float, float, float]] = field(default_factory=list)
    workers: dict[int, ShardWorker] = field(default_factory=dict)
    _past: dict[int, list[tuple[Report, frozenset[str]]]] = field(default_factory=dict)

    async def run(self, seconds: float = 120.0) -> Director:
        """Crawl until the goal."""
        director = Director(self.shards.count, parse_rule(self.settings.until), self.settings.damping)
        with ExitStack() as stack:
            stack.enter_context(driving(self.shards.folder))
            folders = {shard: stack.enter_context(ExitStack()) for shard in range(self.shards.count)}
            tasks = {shard: self._start(shard, held) for shard, held in folders.items()}
            end = time.monotonic() + seconds
            while director.ending() is None:
                if time.monotonic() > end:
                    raise TimeoutError(str(director.to_dict()))
                await asyncio.sleep(0.02)
                self._kill_some(director)
                for shard, task in tasks.items():
                    if task.done():
                        if not isinstance(error := task.exception(), Killed):
                            raise RuntimeError("a shard ended by itself") from error
                        folders[shard].close()
                        tasks[shard] = self._start(shard, folders[shard])
                        self.restarts += 1
                orders = director.orders()
                for worker in self.workers.values():
                    director.update(worker.follow(orders))
                self._check()
            for worker in self.workers.values():
                worker.stopping.set()
            await asyncio.gather(*tasks.values(), return_exceptions=True)
            for worker in self.workers.values():
                director.update(worker.follow(director.orders()))
            self._check()
        now = director.coverage()
        self.at_least = 0.0 if now is None else now.at_least
        return director

    def _start(self, shard: int, held: ExitStack) -> asyncio.Task[None]:
        folder = held.enter_context(SurveyFolder.open(self.shards.paths[shard]))
        self.workers[shard] = ShardWorker(folder, self.settings, self._post, connection=self.connect(shard))
        return asyncio.create_task(self.workers[shard].run())

    def _kill_some(self, director: Director) -> None:
        """Kill a shard in the middle of its next step, with a chance of one half."""
        if self.kills and director.is_complete and self.rng.random() < 0.5:
            self.kills -= 1

            def die(*_: Any, **__: Any) -> Any:
                raise Killed

            worker = self.workers[int(self.rng.integers(self.shards.count))]
            target = ("exchange", "_carry", "commit")[int(self.rng.integers(3))]
            place = {"exchange": worker.node, "_carry": worker, "commit": worker._store}[target]
            setattr(place, target, die)

    def _post(self, shard: int, message: bytes) -> None:
        copies = 0 if self.rng.random() < self.lost else 1 + (self.rng.random() < self.repeated)
        for _ in range(copies):
            wait = float(self.rng.random()) * self.delay
            asyncio.get_running_loop().call_later(wait, self._deliver, shard, message)

    def _deliver(self, shard: int, message: bytes) -> None:
        self.workers[shard].receive(message)

    def _check(self) -> None:
        """Compare joint reports of mixed ages with the truth."""
        if self.truth is None:
            return
        for shard, worker in self.workers.items():
            status = worker.ledger.state & mass.STATUS
            pages = np.flatnonzero(status == mass.FETCHED).tolist()
            fetched = frozenset(worker.state.urls[page] for page in pages)
            self._past.setdefault(shard, []).append((worker.node.report(), fetched))
        if len(self._past) < self.shards.count:
            return
        for turn in range(MIXES):
            mixed = [past[-1 if turn == 0 else int(self.rng.integers(len(past)))] for past in self._past.values()]
            if any(report.corrected for report, _ in mixed):
                continue
            bounds = joint_coverage([report for report, _ in mixed], damping=self.settings.damping, aliases=True)
            low, high = self.truth.coverage(set().union(*(fetched for _, fetched in mixed)))
            self.checked += 1
            if not (bounds.at_least <= high + EPSILON and low - EPSILON <= bounds.at_most):
                self.wrong.append((bounds.at_least, low, high, bounds.at_most))


def hosts_by_address(hosts: Mapping[str, str] | list[str], addresses: int) -> dict[str, str]:
    """Return an address of the documentation network for each host; several hosts share one."""
    return {host: f"192.0.2.{number % addresses + 1}" for number, host in enumerate(sorted(hosts))}


@dataclass(frozen=True, slots=True)
class Crawled:
    """A crawl of one web."""

    web: int
    shards: int
    ending: str
    pages: int
    moments: int
    restarts: int
    at_least: float
    seconds: float
    wrong: int

    def __str__(self) -> str:
        return (
            f"web {self.web}, {self.shards} shards: {self.ending} at {self.at_least:.3f}, {self.pages} pages, "
            f"{self.restarts} kills, {self.moments} moments, {self.wrong} wrong, {self.seconds:.1f} s"
        )


def crawled(number: int, shards: int, kills: int) -> Crawled:
    """Crawl one web."""
    shape = WebShape(pages=400 + 37 * (number % 7), largest_site=40, topics=3)
    troubles = {"moved": 0.1, "loops": 0.05, "down": 0.05, "flaky": 0.05, "printed": 0.05, "robots_rules": 0.2}
    plan = WebSettings.plain(web=shape, rng=number, seeds=3, robots_moved=0.1, robots_error=0.03, **troubles)
    with tempfile.TemporaryDirectory() as place, running(plan) as web:
        settings = settings_for(web, "coverage=0.9")
        rng = np.random.default_rng([number, shards])
        made = create(Path(place) / "web.survey", web, settings, shards)
        faults: dict[str, Any] = {"delay": 0.05, "lost": 0.1, "repeated": 0.1, "kills": kills}
        crawl, began = LocalShards(made, settings, rng=rng, truth=web.truth(), **faults), time.monotonic()
        director = asyncio.run(crawl.run())
        seconds = time.monotonic() - began
    ending, pages = director.ending() or "", director.progress().pages
    moments, wrong = crawl.checked, len(crawl.wrong)
    return Crawled(number, shards, ending, pages, moments, crawl.restarts, crawl.at_least, seconds, wrong)


def main() -> int:
    """Crawl, print a line per crawl on stderr, then the table; fail if a report was wrong."""
    parser = argparse.ArgumentParser(description="Check joint coverage of sharded crawls over HTTP.")
    parser.add_argument("--webs", type=int, default=24)
    parser.add_argument("--kills", type=int, default=4, help="of each crawl")
    parser.add_argument("--rng", type=int, default=100, help="number of the first web")
    given = parser.parse_args()
    done: list[Crawled] = []
    for number in range(given.rng, given.rng + given.webs):
        done.append(crawled(number, SHARDS[number % len(SHARDS)], given.kills))
        print(done[-1], file=sys.stderr, flush=True)
    print(
        "| shards | webs | pages fetched | kills | joint reports | outside the interval |",
        "|--:|" + "--:|" * 5,
        sep="\n",
    )
    for shards in SHARDS:
        mine = [one for one in done if one.shards == shards]
        sums = [sum(getattr(one, name) for one in mine) for name in ("pages", "restarts", "moments", "wrong")]
        print("| " + " | ".join(f"{cell:,}" for cell in (shards, len(mine), *sums)) + " |")
    return int(any(one.wrong for one in done))


if __name__ == "__main__":
    sys.exit(main())
