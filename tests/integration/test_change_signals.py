"""Signals of change from sitemaps and feeds: what counts, how politely they are read, and over HTTP."""

from __future__ import annotations

import asyncio
import gzip
import math
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from attack import attack

from fake_web import CONTACT, Alone, Sites, moved
from surveyor.config import Settings
from surveyor.crawler.change_signals import FEW, LEAST_INTERVAL, RARELY, ChangeSignals, Signal, sites_of
from surveyor.crawler.preview import polite_client
from surveyor.crawler.sources.live import Connection
from surveyor.fetch.http import Fetched
from surveyor.fetch.politeness.hosts import Hosts

SITE = "https://a.org"
MAP = f"{SITE}/sitemap.xml"
DAY = 86_400.0


def entries(dates: Mapping[str, str], outer: str = "urlset", inner: str = "url") -> bytes:
    rows = (f"<{inner}><loc>{url}</loc><lastmod>{date}</lastmod></{inner}>" for url, date in dates.items())
    return f"<{outer}>{''.join(rows)}</{outer}>".encode()


def answer(url: str, body: bytes, **fields: Any) -> Fetched:
    return Fetched(url, 200, body=body, raw=body, **fields)


def day(number: float) -> str:
    return f"1970-01-{1 + int(number):02}"


class Reading:
    """A site that is read again and again under a simulated clock."""

    def __init__(self, answers: dict[str, Any], **options: Any) -> None:
        self.answers, self.time = answers, Alone()
        self.client = Sites(self.time, answers)
        self.signals = ChangeSignals(SITE, **{"few": 0, **options})
        self.visited: dict[str, float] = {}

    def read(self, at: float) -> list[Signal]:
        self.time.now = at
        connection = Connection(self.client, None, Hosts(clock=self.time), self.time.wait)

        async def ask() -> list[Signal]:
            async with polite_client(Settings(contact=CONTACT), connection) as fetcher:
                return await self.signals.read(fetcher, self.visited.get)

        return asyncio.run(ask())


def test_the_first_reading_reports_what_is_newer_than_the_last_visit() -> None:
    dates = {f"{SITE}/{name}": day(7) for name in ("new", "unknown", "waiting")}
    dates |= {f"{SITE}/old": day(3), f"{SITE}/none": "soon"}
    reading = Reading({MAP: answer(MAP, entries(dates))})
    reading.visited = dict.fromkeys(dates, 5 * DAY) | {f"{SITE}/old": 5 * DAY}
    reading.visited[f"{SITE}/none"] = reading.visited[f"{SITE}/waiting"] = -math.inf
    del reading.visited[f"{SITE}/unknown"]
    assert reading.read(10 * DAY) == [Signal(f"{SITE}/new", 7 * DAY, "sitemap")]
    assert set(reading.signals.covered) == {f"{SITE}/old", f"{SITE}/new", f"{SITE}/waiting"}


def test_later_readings_report_new_dates_once() -> None:
    page = f"{SITE}/x"
    reading = Reading({MAP: answer(MAP, entries({page: day(3)}))})
    reading.visited[page] = 5 * DAY
    assert reading.read(10 * DAY) == []
    reading.answers[MAP] = answer(MAP, entries({page: day(10)}))
    assert reading.read(10 * DAY + 4000) == [Signal(page, 10 * DAY, "sitemap")]
    assert reading.read(11 * DAY) == []  # reported
    reading.answers[MAP] = answer(MAP, entries({page: day(2)}))
    assert reading.read(12 * DAY) == []  # earlier than before


def test_a_page_visited_since_it_was_modified_is_not_reported() -> None:
    page, other = f"{SITE}/x", f"{SITE}/y"
    dates = {page: "1970-01-10T06:00:00Z", other: "1970-01-10"}
    reading = Reading({MAP: answer(MAP, entries({page: day(3), other: day(3)}))})
    reading.visited = {page: 5 * DAY, other: 5 * DAY}
    reading.read(8 * DAY)
    reading.visited = {page: 9.5 * DAY, other: 9.5 * DAY}  # the first has a time, the second any time of that day
    reading.answers[MAP] = answer(MAP, entries(dates))
    assert reading.read(10 * DAY) == [Signal(other, 9 * DAY, "sitemap")]


def test_a_list_that_cannot_be_read_is_requested_less_and_less_often() -> None:
    reading = Reading({})
    for hour in range(24 * 40):
        reading.read(10 * DAY + 3600.0 * hour)
    times = reading.client.times(MAP)
    gaps = [(later - earlier) / DAY for earlier, later in pairwise(times)]
    assert gaps[0] == pytest.approx(1, abs=0.1)
    assert np.all(np.diff(gaps) > -1e-6)
    assert gaps[-1] == pytest.approx(8, abs=0.1)


def test_a_list_is_not_requested_before_it_is_due() -> None:
    reading = Reading(
        {MAP: answer(MAP, entries({f"{SITE}/x": day(3)}), headers=((b"Cache-Control", b"max-age=7200"),))}
    )
    reading.read(10 * DAY)
    reading.read(10 * DAY + 3700)
    assert reading.signals.requests == 1
    reading.read(10 * DAY + 7300)
    assert reading.signals.requests == 2


@pytest.mark.parametrize(("pages", "seconds"), [(29, RARELY), (30, LEAST_INTERVAL)])
def test_a_sitemap_of_few_pages_is_read_once_a_week(pages: int, seconds: float) -> None:
    urls = [f"{SITE}/{number}" for number in range(pages)]
    reading = Reading({MAP: answer(MAP, entries(dict.fromkeys(urls, day(3))), etag='"1"')}, few=FEW)
    reading.visited = dict.fromkeys(urls, 5 * DAY)
    reading.read(10 * DAY)
    state = reading.signals.states[MAP]
    assert state.due - state.read_at == pytest.approx(seconds)
    reading.answers[MAP] = Fetched(MAP, 304, etag='"1"', not_modified=True)
    reading.read(20 * DAY)
    state = reading.signals.states[MAP]
    assert state.due - state.read_at == pytest.approx(seconds)


def test_requests_are_conditional() -> None:
    given = {"etag": '"1"', "last_modified": formatdate(8 * DAY, usegmt=True)}
    reading = Reading(
        {MAP: [answer(MAP, entries({f"{SITE}/x": day(3)}), **given), Fetched(MAP, 304, not_modified=True)]}
    )
    reading.read(10 * DAY)
    reading.read(11 * DAY)
    sent = [(one.etag, one.last_modified) for one in reading.client.requests if one.url == MAP]
    assert sent == [(None, None), (given["etag"], given["last_modified"])]
    assert reading.signals.problems == {}


def test_an_index_says_which_sitemaps_to_read() -> None:
    one, two = f"{SITE}/1.xml.gz", f"{SITE}/2.xml"
    other = "https://b.org/3.xml"
    top = entries({one: day(3), two: day(3), other: day(3)}, "sitemapindex", "sitemap")
    reading = Reading(
        {
            MAP: answer(MAP, top),
            one: answer(one, gzip.compress(entries({f"{SITE}/x": day(3)}))),
            two: answer(two, entries({f"{SITE}/y": day(3), "https://b.org/z": day(3)})),
        }
    )
    reading.visited |= {f"{SITE}/y": 5 * DAY, f"{SITE}/x": -math.inf}
    reading.read(10 * DAY)
    assert {url for url, _ in reading.client.log} == {f"{SITE}/robots.txt", MAP, one, two}
    assert set(reading.signals.covered) == {f"{SITE}/x", f"{SITE}/y"}  # not of another domain
    reading.answers[MAP] = answer(MAP, entries({one: day(3), two: day(10)}, "sitemapindex", "sitemap"))
    reading.answers[two] = answer(two, entries({f"{SITE}/y": day(10)}))
    before = len(reading.client.times(one))
    reading.time.now = 10 * DAY + 4000
    assert reading.read(10 * DAY + 4000) == [Signal(f"{SITE}/y", 10 * DAY, "sitemap")]
    assert len(reading.client.times(one)) == before  # its date in the index is the same


def test_feeds_count_too() -> None:
    feed = f"{SITE}/feed"
    body = b"<rss><channel><item><link>/x</link><pubDate>Thu, 08 Jan 1970 00:00:00 GMT</pubDate></item></channel></rss>"
    reading = Reading({feed: answer(feed, body)}, feeds=[feed])
    reading.visited[f"{SITE}/x"] = 5 * DAY
    assert reading.read(10 * DAY) == [Signal(f"{SITE}/x", 7 * DAY, "feed")]
    assert reading.signals.problems == {MAP: "http 404"}


@attack("dates of a list in the future", area="sitemaps and lists", must_hold="ignored, they would never grow old")
def test_dates_in_the_future_are_ignored() -> None:
    reading = Reading({MAP: answer(MAP, entries({f"{SITE}/x": "2999-01-01", f"{SITE}/y": "9999-12-31T23:59:59Z"}))})
    reading.visited = {f"{SITE}/x": 1.0, f"{SITE}/y": 1.0}
    assert reading.read(10 * DAY) == []
    assert list(reading.signals.covered) == []


@attack("an index that names sitemaps without end", area="sitemaps and lists", must_hold="a bounded number of requests")
def test_a_reading_is_bounded_and_polite() -> None:
    def nested(number: int) -> str:
        return f"{SITE}/{number}.xml"

    every = {nested(number): answer(nested(number), entries({f"{SITE}/p{number}": day(3)})) for number in range(60)}
    top = entries(dict.fromkeys(every, day(3)), "sitemapindex", "sitemap")
    reading = Reading({MAP: answer(MAP, top), **every}, most=20)
    reading.visited = {f"{SITE}/p{number}": -math.inf for number in range(60)}
    reading.read(10 * DAY)
    assert reading.signals.requests == 20
    for later in (1, 2, 3):  # the rest, at later readings
        reading.read((10 + later) * DAY)
    assert len(set(reading.signals.covered)) == 60
    times = [at for _, at in reading.client.log]
    assert all(then - at >= 1.0 for at, then in pairwise(times))


def test_robots_txt_holds_for_lists() -> None:
    rules = answer(f"{SITE}/robots.txt", f"Sitemap: {MAP}\nUser-agent: *\nDisallow: /sitemap".encode())
    reading = Reading({f"{SITE}/robots.txt": rules, MAP: answer(MAP, entries({f"{SITE}/x": day(3)}))})
    assert reading.read(10 * DAY) == []
    assert MAP not in [url for url, _ in reading.client.log]
    assert "robots.txt" in reading.signals.problems[MAP]


@pytest.mark.parametrize("body", [b"<html>", b"", b"{", b"\x1f\x8b garbage"])
def test_what_is_no_list_is_a_problem_and_not_asked_for_again_soon(body: bytes) -> None:
    reading = Reading({MAP: [moved(MAP, "/other.xml")], f"{SITE}/other.xml": answer(f"{SITE}/other.xml", body)})
    assert reading.read(10 * DAY) == []
    if MAP in reading.signals.problems:
        requests = reading.signals.requests
        reading.read(10 * DAY + 7200)
        assert reading.signals.requests == requests


def test_sites() -> None:
    assert sites_of(["https://a.org/x", "https://a.org/y", "http://b.org:8080/"]) == [
        "https://a.org",
        "http://b.org:8080",
    ]


@dataclass
class Live:
    """A site on loopback with a sitemap that has a validator."""

    lastmod: str = "2001-01-01"
    codes: list[int] = field(default_factory=list)
    url: str = ""


@contextmanager
def live_site() -> Iterator[Live]:
    state = Live()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body, tag = entries({f"{state.url}/x": state.lastmod}), f'"{state.lastmod}"'
            code = 404 if self.path != "/sitemap.xml" else 304 if self.headers["If-None-Match"] == tag else 200
            if self.path == "/sitemap.xml":
                state.codes.append(code)
            self.send_response(code)
            self.send_header("ETag", tag)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(body) if code == 200 else 0))
            self.end_headers()
            self.wfile.write(body if code == 200 else b"")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        state.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()


def test_over_http_an_unchanged_sitemap_is_not_sent_again() -> None:
    with live_site() as site:
        settings = Settings(contact=CONTACT, allow=("127.0.0.1",), delay=0.0)
        signals = ChangeSignals(site.url, interval=0.0, few=0)
        signals.most = 1

        async def ask() -> list[list[Signal]]:
            found = []
            async with polite_client(settings) as fetcher:
                for lastmod in ("2001-01-01", "2001-01-01", "2001-02-01"):
                    site.lastmod = lastmod
                    found.append(await signals.read(fetcher, lambda _: 979e6))
            return found

        found = asyncio.run(ask())
        assert site.codes == [200, 304, 200]
        assert found == [[], [], [Signal(f"{site.url}/x", 980_985_600.0, "sitemap")]]
