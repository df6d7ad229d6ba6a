"""Politeness as a property of the request log of whole crawls, over random webs."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from protego import Protego

from fake_web import Answers, Sites, Time, begun, moved, page
from surveyor.crawler.session import create_hosts, run
from surveyor.crawler.sources.live import Connection
from surveyor.fetch.http import Fetched, FetchRequest
from surveyor.fetch.politeness.hosts import DAY
from surveyor.stopping import parse_rule
from surveyor.web.urls import domain, host, origin

SLACK = 1e-6  # of sums of seconds since 1970
DELAY, DOMAIN_DELAY = 1.0, 0.4
AVOIDED = "never.example"


@dataclass(slots=True)
class Request:
    """One line of the log."""

    url: str
    begin: float
    end: float = -1.0
    answer: Fetched | None = None  # None if the crawl was stopped before it came


class Log(Sites):
    """Sites that take note of all that is asked for."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.requests_made: list[Request] = []

    async def fetch(self, request: FetchRequest) -> Fetched:
        made = Request(request.url, self.time.now)
        self.requests_made.append(made)
        try:
            made.answer = await super().fetch(request)
            return made.answer
        finally:
            made.end = self.time.now


@dataclass
class World:
    """A web, and how a crawl of it is stopped and resumed."""

    answers: dict[str, Answers]
    addresses: dict[str, str]
    stops: list[int]  # pages after which the crawl is stopped


FAILURES = ["500", "503", "503 wait", "429", "429 wait", "reset", "302 wait", "404", "403"]


def failure(url: str, what: str, chance: random.Random) -> Fetched:
    if what == "reset":
        return Fetched(url, error="reset")
    wait = float(chance.choice([3, 45, 400, 9000])) if "wait" in what else None
    status = int(what[:3])
    target = f"{origin(url)}/p0" if status == 302 else None
    return Fetched(url, status, retry_after=wait, target=target)


def robots_of(name: str, kind: str, other: str) -> dict[str, Answers]:
    url = f"http://{name}/robots.txt"
    lines = {"rules": "Disallow: /p1", "delay": "Crawl-delay: 7\nDisallow: /p2", "endless": "Crawl-delay: 100"}
    good = Fetched(url, 200, body=f"User-agent: *\n{lines.get(kind, '')}\n".encode())
    if kind == "none":
        return {}
    if kind == "late":
        return {url: [Fetched(url, 503, retry_after=20.0), Fetched(url, error="reset"), good]}
    if kind == "down":
        return {url: Fetched(url, 503)}
    if kind == "moved":
        there = f"http://{other}/rules.txt"
        return {url: moved(url, there), there: Fetched(there, 200, body=b"User-agent: *\nDisallow: /p1")}
    return {url: good}


ROBOTS = ["none", "none", "rules", "delay", "late", "down", "moved", "endless"]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    chance = draw(st.randoms(use_true_random=True))
    names = [f"h{place}.site{chance.randrange(2)}.org" for place in range(draw(st.integers(1, 5)))]
    pages = [f"http://{name}/p{number}" for name in names for number in range(draw(st.integers(1, 4)))]
    answers: dict[str, Answers] = {}
    for url in pages:
        links = [*chance.sample(pages, min(len(pages), 4)), f"http://{AVOIDED}/"]
        fine, what = page(url, *links), chance.random()
        if what < 0.55:
            answers[url] = fine
        elif what < 0.7:
            answers[url] = moved(url, chance.choice(pages))
        else:
            times = chance.randrange(1, 6)
            answers[url] = [*(failure(url, chance.choice(FAILURES), chance) for _ in range(times)), fine]
    answers[pages[0]] = page(pages[0], *pages)
    for name in names:
        answers |= robots_of(name, draw(st.sampled_from(ROBOTS)), chance.choice(names))
    addresses = {name: f"10.0.0.{chance.randrange(2)}" for name in names}
    return World(answers, addresses, sorted(draw(st.lists(st.integers(1, 8), max_size=3))))


def logged(world: World, folder: Path) -> tuple[list[Request], list[float]]:
    """Crawl, stop, resume; return the requests, and when the crawl was resumed."""
    time, resumes = Time(), []
    client = Log(time, world.answers, seconds=0.3, addresses=world.addresses)
    seeds = [next(iter(world.answers))]
    given = {"scope": "any", "delay": DELAY, "domain_delay": DOMAIN_DELAY, "avoid": [AVOIDED], "max_wait": 1000.0}
    for goal in [*(f"pages={count}" for count in world.stops), "pages=1000"]:
        opened, chosen = begun(folder, seeds, until=goal, **given)
        with opened:
            hosts = create_hosts(opened, chosen, time)
            work = run(opened, chosen, parse_rule(goal), connection=Connection(client, None, hosts, time.wait, 0.0))
            resumes.append(time.now)
            asyncio.run(work)
        time.now += 0.1
    return client.requests_made, resumes


def crawl_delays(log: list[Request]) -> dict[str, list[tuple[float, float]]]:
    """Return for each host since when which delay was known."""
    found: dict[str, list[tuple[float, float]]] = {}
    for request in log:
        if request.answer is not None and request.url.endswith("/robots.txt") and request.answer.status == 200:
            delay = Protego.parse(request.answer.body.decode()).crawl_delay("surveyor") or 0.0
            found.setdefault(host(request.url), []).append((request.end, delay))
    return found


def check_delays(log: list[Request], addresses: dict[str, str]) -> None:
    known = crawl_delays(log)
    by_begin = sorted(log, key=lambda one: one.begin)
    for name in {host(request.url) for request in log}:
        for first, then in pairwise([one for one in by_begin if host(one.url) == name]):
            asked = max((delay for since, delay in known.get(name, []) if since <= first.end), default=0.0)
            assert then.begin >= first.end + max(DELAY, asked) - SLACK, (first, then)
    for address in set(addresses.values()):
        for first, then in pairwise([one for one in by_begin if addresses.get(host(one.url)) == address]):
            assert then.begin >= first.end + DELAY - SLACK, (first, then)
    for name in {domain(host(request.url)) for request in log}:
        for first, then in pairwise([one for one in by_begin if domain(host(one.url)) == name]):
            assert then.begin >= first.begin + DOMAIN_DELAY - SLACK, (first, then)


def check_host_rules(log: list[Request]) -> None:
    """Retry-After is kept to, whatever the answer was; hosts that ask for too much are not asked at all."""
    for asked in log:
        wait = None if asked.answer is None else asked.answer.retry_after
        if wait:
            for other in log:
                same = host(other.url) == host(asked.url)
                assert not (same and asked.end <= other.begin < asked.end + wait - SLACK), (asked, other)
    for name, delays in crawl_delays(log).items():
        since = [end for end, delay in delays if delay > 60]
        assert not [one for one in log if host(one.url) == name and since and one.begin >= since[0]]
    assert not [one for one in log if host(one.url) == AVOIDED]


def check_robots(log: list[Request]) -> None:
    """No page is asked for before its robots.txt, longer than a day after it, or against it."""
    rules: dict[str, tuple[float, Protego | None]] = {}
    answers = {request.url: request.answer for request in log if request.answer is not None}
    for request in sorted(log, key=lambda one: one.end):
        name, answer = origin(request.url), request.answer
        if request.url.endswith("/robots.txt") and answer is not None:
            final = answers.get(answer.target, answer) if answer.target else answer
            if final.status == 200 or final.status == 404:
                rules[name] = request.end, Protego.parse(final.body.decode())
        elif not request.url.endswith(("/robots.txt", "/rules.txt")):
            since, verdict = rules[name]
            assert since <= request.begin <= since + DAY
            assert verdict is not None
            assert verdict.can_fetch(request.url, "surveyor"), request


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(world=worlds())
def test_every_request_keeps_delays_limits_and_robots_rules(
    world: World, tmp_path_factory: pytest.TempPathFactory
) -> None:
    log, resumes = logged(world, tmp_path_factory.mktemp("polite") / "a.survey")
    check_delays(log, world.addresses)
    check_host_rules(log)
    check_robots(log)
    for at in resumes[1:]:  # who asked last is not known exactly, so everybody waits
        assert not [one for one in log if at <= one.begin < at + DELAY - SLACK]


def test_the_checks_can_fail() -> None:
    """Each of them finds the one thing that is wrong."""
    home, robots = "http://a.org/", "http://a.org/robots.txt"
    free = Fetched(robots, 404)
    slow = Fetched(robots, 200, body=b"User-agent: *\nCrawl-delay: 5\nDisallow: /p")
    good = [Request(robots, 0.0, 1.0, free), Request(home, 2.0, 3.0, page(home))]
    check_delays(good, {})
    check_robots(good)
    with pytest.raises(AssertionError):
        check_delays([good[0], Request(home, 1.5, 3.0)], {})
    with pytest.raises(AssertionError):
        check_delays([Request(robots, 0.0, 1.0, slow), Request(home, 5.0, 6.0)], {})
    with pytest.raises(AssertionError):
        check_delays([*good, Request("http://b.org/", 3.5, 4.0)], {"a.org": "x", "b.org": "x"})
    with pytest.raises(AssertionError):
        check_delays([*good, Request("http://b.a.org/", 2.1, 4.0)], {})
    with pytest.raises(AssertionError):
        check_host_rules([Request(home, 0.0, 1.0, Fetched(home, 503, retry_after=9.0)), Request(home, 5.0, 6.0)])
    with pytest.raises(AssertionError):
        check_host_rules([Request(f"http://{AVOIDED}/", 0.0, 1.0)])
    with pytest.raises(AssertionError):
        check_robots([Request(robots, 0.0, 1.0, slow), Request("http://a.org/p", 7.0, 8.0)])
    with pytest.raises(AssertionError):
        check_robots([Request(robots, 0.0, 1.0, free), Request(home, DAY + 2, DAY + 3)])
    with pytest.raises(KeyError):
        check_robots([Request(home, 7.0, 8.0)])
