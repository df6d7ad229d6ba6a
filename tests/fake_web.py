"""Fake clock and fake sites for crawls without sockets and without sleeping."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from experiments.fake_time import Time as Time  # used by most tests

from surveyor.config import Settings
from surveyor.crawler.budgets import Rank
from surveyor.crawler.session import Result, Watch, create_hosts, run
from surveyor.crawler.sources.live import Connection
from surveyor.crawler.start import start
from surveyor.fetch.http import Fetched, FetchRequest
from surveyor.outcome import FetchResults, Outcome
from surveyor.stopping import parse_rule
from surveyor.store.directory import SurveyFolder

CONTACT = "me@example.org"
Answer = Fetched | BaseException
Answers = Answer | Sequence[Answer]  # several: one per request; the last one repeats


class MemoryJournal:
    """A list of outcomes in commit order."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    def commit(self, results: FetchResults) -> None:
        """Append outcomes."""
        self.outcomes.extend(results.outcomes)


class Alone(Time):
    """Fake clock for a single task: sleeping advances the time at once."""

    async def sleep(self, seconds: float) -> None:
        self.now += seconds

    async def wait(self, _: asyncio.Event, until: float) -> None:
        assert until < math.inf, "deadlock: nothing can happen any more"
        self.now = max(self.now, until)


class Sites:
    """Fake HTTP client with fixed responses; other URLs respond 404."""

    def __init__(
        self,
        time: Time,
        answers: Mapping[str, Answers],
        *,
        seconds: float = 0.1,
        addresses: Mapping[str, str] | None = None,
    ) -> None:
        self.time, self.answers, self.seconds, self.addresses = time, answers, seconds, addresses or {}
        self.log: list[tuple[str, float]] = []  # URL and time of each request
        self.requests: list[FetchRequest] = []
        self._asked: dict[str, int] = {}

    async def fetch(self, request: FetchRequest) -> Fetched:
        self.log.append((request.url, self.time.now))
        self.requests.append(request)
        turn = self._asked[request.url] = self._asked.get(request.url, 0) + 1
        answers = self.answers.get(request.url, Fetched(request.url, 404))
        answer = answers if isinstance(answers, Fetched | BaseException) else answers[min(turn, len(answers)) - 1]
        await self.time.sleep(self.seconds)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def address(self, host: str) -> str:
        await self.time.sleep(0.01)
        return self.addresses.get(host, "")

    def times(self, url: str) -> list[float]:
        """Return the times of the requests for a URL, in seconds since the first request."""
        return [round(at - self.log[0][1], 3) for asked, at in self.log if asked == url]


def page(url: str, *links: str, extra: str = "", **fetched: Any) -> Fetched:
    """Return an HTML response."""
    body = (extra + "".join(f'<a href="{urljoin(url, link)}">x</a>' for link in links)).encode()
    given = {"status": 200, "headers": ((b"content-type", b"text/html"),), "body": body, "raw": body, **fetched}
    return Fetched(url, **given)


def moved(url: str, target: str) -> Fetched:
    return Fetched(url, 301, target=urljoin(url, target))


def rules(origin: str, text: str, status: int = 200, **fetched: Any) -> dict[str, Fetched]:
    return {f"{origin}/robots.txt": Fetched(f"{origin}/robots.txt", status, body=text.encode(), **fetched)}


def begun(path: Path, seeds: Sequence[str], **settings: Any) -> tuple[SurveyFolder, Settings]:
    """Create or resume a survey."""
    given = {"contact": CONTACT, "rng": 7, **settings}
    return start(path, seeds, Settings(**given), dict.fromkeys(given, "test"), add_seeds=True)


def crawled(
    path: Path,
    seeds: Sequence[str],
    client: Sites,
    watch: Watch = lambda _run, _outcome: None,
    *,
    rank: Rank | None = None,
    **settings: Any,
) -> Result:
    """Crawl into a survey until the rule `until` is met."""
    given = {"until": "pages=1000000", "patient": True, **settings}
    folder, chosen = begun(path, seeds, **given)
    with folder:
        hosts = create_hosts(folder, chosen, client.time)
        connection = Connection(client, None, hosts, client.time.wait, 0.0)
        return asyncio.run(run(folder, chosen, parse_rule(chosen.until), connection=connection, watch=watch, rank=rank))
