"""A changing web under a fake clock, for watches without sockets and without sleeping."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from fake_web import CONTACT, Time
from surveyor.config import Settings
from surveyor.crawler.session import create_hosts, run
from surveyor.crawler.sources.live import Connection
from surveyor.crawler.start import start
from surveyor.crawler.watching import Clocks, Ending, Report, Watch, WatchOptions, watch
from surveyor.fetch.http import Fetched, FetchRequest
from surveyor.stopping import parse_rule
from surveyor.web.urls import host, origin

DAY = 86_400.0


class Sent(NamedTuple):
    """One request as the server saw it."""

    url: str
    begin: float
    end: float
    status: int  # 0: no response
    conditional: bool
    version: int  # of the page; -1 if there is none


class Killed(BaseException):
    """The process was killed."""


@dataclass
class ChangingWeb:
    """Hosts of pages that change at random times; also the HTTP client that a watch uses."""

    time: Time
    hosts: int = 2
    pages: int = 100  # per host
    mean_days: tuple[float, float] = (2.0, 60.0)  # between two changes of the fastest and of the slowest pages
    seed: int = 1
    seconds: float = 0.1  # response time
    down: Callable[[str, float], bool] = lambda _host, _now: False
    lying: frozenset[str] = frozenset()  # hosts whose ETags never change
    gone: frozenset[str] = frozenset()  # URLs that respond 404 from the second day on
    log: list[Sent] = field(default_factory=list)
    kill_at: int = -1  # request at which the process is killed
    sitemaps: frozenset[str] = frozenset()  # hosts that list their pages, with the date of the last change

    feeds: frozenset[str] = frozenset()  # URLs of feeds

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)  # noqa: S311
        self.begin = self.time.now
        self._changes: dict[str, list[float]] = {}
        self.interval: dict[str, float] = {}
        low, high = self.mean_days
        for name in self.names:
            for number in range(self.pages):
                share = number / max(self.pages - 1, 1)
                self.interval[f"http://{name}/p{number}"] = DAY * low * (high / low) ** share
        for url, interval in self.interval.items():
            at, times = self.begin, []
            while at < self.begin + 100 * DAY:
                at += self._rng.expovariate(1 / interval)
                times.append(at)
            self._changes[url] = times

    @property
    def names(self) -> list[str]:
        return [f"www.site{number}.example" for number in range(self.hosts)]

    @property
    def seeds(self) -> list[str]:
        return [f"http://{name}/p0" for name in self.names]

    def version(self, url: str, now: float) -> int:
        return sum(at <= now for at in self._changes[url]) if url in self._changes else -1

    def body(self, url: str, version: int) -> bytes:
        name, number = host(url), int(url.rpartition("/p")[2])
        rng = random.Random(f"{url} {version}")  # noqa: S311
        links = {(2 * number + 1) % self.pages, (2 * number + 2) % self.pages, rng.randrange(self.pages)} - {number}
        text = f"<title>page {number}</title><p>version {version} of {url}</p>"
        return (text + "".join(f'<a href="http://{name}/p{link}">x</a>' for link in sorted(links))).encode()

    async def address(self, name: str) -> str:
        return f"10.0.0.{self.names.index(name) if name in self.names else 99}"

    async def fetch(self, request: FetchRequest) -> Fetched:
        if len(self.log) == self.kill_at:
            self.kill_at = -1
            raise Killed
        begin, url = self.time.now, request.url
        await self.time.sleep(self.seconds)
        now = self.time.now
        found = self._answer(request, now)
        version = self.version(url, now) if found.status in (200, 304) else -1
        self.log.append(Sent(url, begin, now, found.status or 0, bool(request.etag), version))
        return found

    def _answer(self, request: FetchRequest, now: float) -> Fetched:
        url = request.url
        if self.down(host(url), now):
            return Fetched(url, error="refused", detail="connection refused")
        if url == f"{origin(url)}/robots.txt":
            return Fetched(url, 200, body=b"User-agent: *\nDisallow: /private")
        if url == f"{origin(url)}/sitemap.xml" and host(url) in self.sitemaps:
            return self._sitemap(request, now)
        if url in self.feeds:
            if request.etag == '"feed"':
                return Fetched(url, 304, etag='"feed"', not_modified=True)
            body = b'<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="http://www.site0.example/p1"/></entry></feed>'
            return Fetched(url, 200, body=body, raw=body, etag='"feed"')
        version = self.version(url, now)
        if version < 0 or (url in self.gone and now > self.begin + DAY):
            return Fetched(url, 404)
        etag = '"always"' if host(url) in self.lying else f'"{version}"'
        if request.etag == etag:
            return Fetched(url, 304, etag=etag, not_modified=True)
        body = self.body(url, version)
        return Fetched(url, 200, headers=((b"content-type", b"text/html"),), body=body, raw=body, etag=etag)

    def _sitemap(self, request: FetchRequest, now: float) -> Fetched:
        """Answer with the dates of the last changes of all pages of the host."""
        pages = [url for url in self._changes if host(url) == host(request.url)]
        dates = {url: max((at for at in self._changes[url] if at <= now), default=self.begin - DAY) for url in pages}
        etag = f'"{sum(dates.values())}"'
        if request.etag == etag:
            return Fetched(request.url, 304, etag=etag, not_modified=True)
        rows = (
            f"<url><loc>{url}</loc><lastmod>{datetime.fromtimestamp(at, UTC).isoformat()}</lastmod></url>"
            for url, at in dates.items()
        )
        body = f"<urlset>{''.join(rows)}</urlset>".encode()
        return Fetched(request.url, 200, body=body, raw=body, etag=etag)


SETTINGS: dict[str, Any] = {"contact": CONTACT, "rng": 7, "archive": False, "scope": "host", "delay": 1.0}


def crawl(path: Path, web: ChangingWeb, **settings: Any) -> None:
    """Crawl all pages."""
    given = {**SETTINGS, "until": "pages=100000", **settings}
    folder, chosen = start(path, web.seeds, Settings(**given), dict.fromkeys(given, "test"))
    with folder:
        connection = Connection(web, None, create_hosts(folder, chosen, web.time), web.time.wait, 0.0)
        asyncio.run(run(folder, chosen, parse_rule(chosen.until), connection=connection))


def watched(
    path: Path,
    web: ChangingWeb,
    *,
    until: float,
    rate: int | None = None,
    once: bool = False,
    jump: Callable[[float], float] = lambda _now: 0.0,
    report: Report = lambda _watch, _outcome, _finding: None,
    **options: Any,
) -> tuple[Ending, Watch | None]:
    """Watch a survey until a time of the fake clock; return how it ended, and its last state."""
    given = {**SETTINGS}
    folder, chosen = start(path, [], Settings(**given), dict.fromkeys(given, "test"))
    last: list[Watch] = []
    with folder:
        clocks = Clocks(web.time, lambda: web.time.now + jump(web.time.now))

        async def work() -> Ending:
            task = asyncio.current_task()

            def see(run: Watch, outcome: Any, finding: Any) -> None:
                last[:] = [run]
                report(run, outcome, finding)

            async def wait(event: asyncio.Event, end: float) -> None:
                if web.time.now >= until:
                    assert task is not None
                    task.cancel()
                    await asyncio.sleep(0)
                await web.time.wait(event, min(end, max(until, web.time.now)))

            connection = Connection(web, None, None, wait, 0.0)
            asked = WatchOptions(rate, once, **options)
            return await watch(folder, chosen, asked, connection=connection, clocks=clocks, report=see)

        ending = asyncio.run(work())
    return ending, last[0] if last else None
