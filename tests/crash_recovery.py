"""Deterministic crawls without sockets, and snapshots of the disk at any moment, for crash tests.

`Setting` is an embedded web, a fake clock, and a client that calls the web directly and receives responses in a random
order with a fixed seed. `Image` is the state after a crash: files, time, and memory of the server.
"""

from __future__ import annotations

import asyncio
import copy
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from surveyor.config import Settings
from surveyor.crawler.replay import Derived
from surveyor.crawler.session import Run, run
from surveyor.crawler.sources.live import Connection
from surveyor.crawler.start import recover_journal, start
from surveyor.fetch.http import REDIRECTS, Fetched, FetchRequest, accepts, media_type, retry_after
from surveyor.fetch.politeness.hosts import Hosts
from surveyor.graph.synthetic.generate import WebShape
from surveyor.stopping import parse_rule
from surveyor.store.directory import SurveyFolder
from surveyor.store.journal import Journal
from surveyor.survey.survey import Survey
from surveyor.testing.web_plan import WebSettings
from surveyor.testing.web_server import EmbeddedWeb, HttpRequest

HTML = ("text/html", "application/xhtml+xml")
SHAPE = WebShape(
    pages=48, smallest_site=3, largest_site=8, topics=2, external=0.5, mutual=0.5, dangling=0.1, dead=0.2,
    farms=0.0, exchanges=0.0,
)  # fmt: skip
SOME = dict.fromkeys(("moved", "printed", "loops", "nowhere", "reset", "down", "documents"), 0.03)
RULES = dict.fromkeys(("robots_rules", "robots_agents", "robots_error", "robots_moved"), 0.06)
# finite, responses do not depend on time or earlier requests
STEADY = WebSettings.plain(rng=4, web=SHAPE, port=80, seeds=2, robots_missing=0.4, **SOME, **RULES)
# responses depend on earlier requests and their rate, and there is a trap
MOODY = WebSettings.plain(
    rng=9, web=SHAPE, port=80, seeds=2, robots_missing=0.4, **SOME, **RULES,
    flaky=0.2, strict=0.1, dying=0.05, returning=0.4, calendar=0.02, sessions=0.05, soft=0.05,
)  # fmt: skip
SETTINGS: dict[str, Any] = {
    "delay": 0.0, "backoff": 10.0, "archive": False, "contact": "me@example.org", "rng": 5, "scope": "any",
}  # fmt: skip


def calm(shape: WebShape) -> WebSettings:
    """Return settings of a web in which only some pages are gone."""
    return WebSettings.plain(rng=4, web=shape, port=80, seeds=3)


def rough(shape: WebShape) -> WebSettings:
    """Return settings of a web with all kinds of pages, whose responses do not depend on earlier requests."""
    return WebSettings.plain(
        rng=4, web=shape, port=80, seeds=3, robots_missing=0.4, moved=0.1, printed=0.05, loops=0.1, nowhere=0.05,
        reset=0.05, down=0.1, documents=0.05, robots_rules=0.3, robots_agents=0.05, robots_error=0.05,
    )  # fmt: skip


class Clock:
    """Clock that advances only when it is set."""

    def __init__(self) -> None:
        self.now = 1_750_000_000.0

    def __call__(self) -> float:
        return self.now


class DirectClient:
    """Client that calls an embedded web without a network; each fetch waits for `release`."""

    def __init__(self, web: EmbeddedWeb, clock: Clock, seed: int = 0) -> None:
        self.web, self.clock, self._rng = web, clock, random.Random(seed)  # noqa: S311
        self._waiting: list[asyncio.Future[None]] = []
        self.asked: list[str] = []  # URLs, in the order of the server
        self.down_until = 0.0  # name resolution fails before this time

    def release(self) -> bool:
        """Complete one pending fetch; return whether there was one."""
        self._waiting = [future for future in self._waiting if not future.done()]
        if not self._waiting:
            return False
        self._waiting.pop(self._rng.randrange(len(self._waiting))).set_result(None)
        return True

    async def wait(self, event: asyncio.Event, until: float) -> None:
        """Wait for a response, or advance the time if none is pending."""
        for _ in range(3):
            await asyncio.sleep(0)  # let all tasks reach their fetch
        if until <= self.clock():
            return
        while not event.is_set() and self.release():
            for _ in range(3):
                await asyncio.sleep(0)
        if not event.is_set():
            assert until < float("inf"), "deadlock: nothing can happen any more"
            self.clock.now = max(self.clock.now, until)

    async def fetch(self, request: FetchRequest) -> Fetched:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future
        parts = urlsplit(request.url)
        if parts.hostname not in self.web.hosts or self.clock() < self.down_until:
            return Fetched(request.url, error="dns", detail=f"{parts.hostname} does not resolve: no such host")
        known = {"if-none-match": request.etag, "if-modified-since": request.last_modified}
        headers = {name: value for name, value in known.items() if value}
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        self.asked.append(request.url)
        reply = self.web.answer(HttpRequest("GET", parts.hostname, target, headers))
        if reply.status == 0:
            return Fetched(request.url, error="reset", detail="the connection was closed without an answer")
        lines = [line.partition(b": ") for line in reply.head.split(b"\r\n")[1:] if line]
        response = {name.lower().decode(): value.decode() for name, _, value in lines}
        kind, wait = response.get("content-type", ""), response.get("retry-after")
        read = accepts(request.types or HTML, kind)
        return Fetched(
            request.url,
            status=reply.status,
            version="1.1",
            headers=tuple((name, value) for name, _, value in lines),
            body=reply.body if read else b"",
            raw=reply.body if read else b"",
            target=response["location"] if reply.status in REDIRECTS else None,
            skipped="" if read else media_type(kind),
            retry_after=retry_after(wait, self.clock()) if wait else None,
            etag=response.get("etag"),
            last_modified=response.get("last-modified"),
            not_modified=reply.status == 304,
        )


@dataclass(frozen=True)
class Image:
    """State after a crash."""

    folder: Path
    now: float
    memory: Any  # of the server
    asked: int  # requests received by the server
    position: int  # committed visits


Hook = Callable[[SurveyFolder], None]


@dataclass
class Setting:
    """Everything outside the process: web, clock, client."""

    web_settings: WebSettings
    concurrency: int = 1
    seed: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    seeds: int | None = None  # of the web, if not all

    def __post_init__(self) -> None:
        self.clock = Clock()
        self.web = EmbeddedWeb(self.web_settings, clock=self.clock)
        self.client = DirectClient(self.web, self.clock, self.seed)

    def crawl(
        self,
        path: Path,
        until: str,
        *,
        before: Hook | None = None,
        after: Hook | None = None,
        from_last_good: bool = False,
    ) -> str:
        """Create or resume a survey; the hooks are called around each commit."""
        chosen = {**SETTINGS, "concurrency": self.concurrency, **self.options}
        seeds = self.web.seeds[: self.seeds]
        origins = dict.fromkeys(chosen, "argument")
        if from_last_good:
            recover_journal(path)
        folder, settings = start(path, seeds, Settings(**chosen), origins)
        with folder:
            hook(folder, before, after)
            self.hosts = Hosts(settings.delay, clock=self.clock, stored=folder.journal.robots)
            connection = Connection(self.client, None, self.hosts, self.client.wait, 0.0)
            return asyncio.run(run(folder, settings, parse_rule(until), connection=connection, watch=self._see))

    def _see(self, now: Run, _outcome: object) -> None:
        self.state = now.state

    @property
    def host_names(self) -> list[str]:
        """Host names of the last run, by number."""
        return [self.hosts[number].name for number in range(len(self.hosts))]

    def image(self, folder: SurveyFolder, to: Path) -> Image:
        """Return a snapshot of the current state."""
        shutil.copytree(folder.folder, to)
        web = self.web
        memory = copy.deepcopy((web._visits, web._failed, web._last))
        return Image(to, self.clock.now, memory, len(self.client.asked), folder.journal.position)

    def go_back(self, image: Image, *, seed: int | None = None) -> None:
        """Restore a snapshot, with a new client."""
        web = self.web
        web._visits, web._failed, web._last = copy.deepcopy(image.memory)
        self.clock.now = image.now
        self.client = DirectClient(web, self.clock, self.seed if seed is None else seed)


def hook(folder: SurveyFolder, before: Hook | None, after: Hook | None) -> None:
    """Call hooks around each commit."""
    commit = folder.commit

    def hooked(*args: Any, **kwargs: Any) -> None:
        if before is not None:
            before(folder)
        commit(*args, **kwargs)
        if after is not None:
            after(folder)

    folder.commit = hooked  # type: ignore[method-assign]


def rows(path: Path) -> dict[str, list[Any]]:
    """Return the rows of a journal, without its metadata."""
    journal = Journal.open(path / "journal.sqlite", write=False)
    try:
        tables = {
            table: journal._ask(f"SELECT * FROM {table} ORDER BY 1")  # noqa: S608
            for table in ("urls", "visits", "robots", "events")
        }
    finally:
        journal.close()
    return tables


def accounts(path: Path) -> dict[str, Any]:
    """Return the state derived from a journal as bytes: coverage, residuals, ranks."""
    with Survey(path) as survey:
        return {**sums(survey._derived), "ranks": survey.rank().scores.tobytes()}


def sums(state: Derived) -> dict[str, Any]:
    """Return the accounts of a state, as bytes."""
    ledger, known = state.crawl.ledger, len(state.urls)
    waiting = state.crawl.frontier.queued()
    return {
        "coverage": ledger.coverage().to_dict(),
        "residual": ledger.residual[:known].tobytes(),
        "settled": ledger.mass.settled[:known].tobytes(),
        "state": ledger.state[:known].tobytes(),
        "waiting": waiting.pages.tobytes(),
        "priorities": waiting.priorities.tobytes(),
        "tally": (state.tally.pages, state.tally.bytes),
    }


def read_urls(path: Path) -> set[str]:
    """Return the URLs of the pages that were read."""
    with SurveyFolder.open(path, write=False) as folder:
        return {url for _, url, visit in folder.pages() if visit is not None and visit.kind == "fetched"}


def is_prefix(short: Sequence[Any], long: Sequence[Any]) -> bool:
    """Return whether `short` is a prefix of `long`."""
    return list(long[: len(short)]) == list(short)


def difference(one: dict[str, list[Any]], other: dict[str, list[Any]]) -> str:
    """Describe the first difference between two journals."""
    for table, expected in one.items():
        for number, (mine, its) in enumerate(zip(expected, other[table], strict=False)):
            if mine != its:
                return f"{table} {number}: {mine} != {its}"
        if len(expected) != len(other[table]):
            return f"{table}: {len(expected)} != {len(other[table])} rows; {(expected + other[table])[-1]}"
    return ""


def ranks_of(path: Path) -> tuple[dict[str, float], float]:
    """Return the rank of each URL, and the error that is stated for all of them together."""
    with Survey(path) as survey:
        ranking = survey.rank()
        names = [ranking.name(page) for page in range(ranking.scores.size)]
    return dict(zip(names, np.asarray(ranking.scores).tolist(), strict=True)), ranking.error
