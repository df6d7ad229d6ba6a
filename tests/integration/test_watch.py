"""Watches of a changing web under a fake clock: budget, politeness, audits, kills, clock jumps, vanished hosts."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fake_web import Time
from surveyor.config import Settings
from surveyor.crawler.session import create_hosts
from surveyor.crawler.start import start
from surveyor.crawler.watched_lists import WatchedLists
from surveyor.crawler.watching import Watch, WatchOptions, _begin, _request_ages, _restored
from surveyor.errors import UsageError
from surveyor.fetch.http import Fetched, FetchRequest
from surveyor.outcome import Event
from surveyor.store.directory import SurveyFolder
from surveyor.web.urls import host
from watch_web import DAY, SETTINGS, ChangingWeb, Killed, Sent, crawl, watched

BEGIN = 1_750_000_000.0
SLACK = 1e-3


def crawled(tmp_path: Path, **settings: Any) -> tuple[Path, ChangingWeb, int]:
    """Return a survey of a changing web, the web, and the number of requests of the crawl."""
    web = ChangingWeb(Time(BEGIN), **settings)
    crawl(tmp_path / "s", web)
    return tmp_path / "s", web, len(web.log)


def most_in_a_day(log: list[Sent]) -> int:
    times = np.array([sent.begin for sent in log])
    return int((np.searchsorted(times, times + DAY - SLACK) - np.arange(times.size)).max(initial=0))


def check_delays(log: list[Sent], delay: float = 1.0) -> None:
    for name in {host(sent.url) for sent in log}:
        mine = [sent for sent in log if host(sent.url) == name]
        for first, second in pairwise(mine):
            assert second.begin - first.end >= delay - SLACK, (first, second)


def unneeded(log: list[Sent]) -> Counter[str]:
    """Count the downloads of pages that had not changed since the last download, by host."""
    versions: dict[str, int] = {}
    found: Counter[str] = Counter()
    for sent in log:
        if sent.version >= 0:
            found[host(sent.url)] += sent.status == 200 and versions.get(sent.url) == sent.version
            if sent.status == 200:
                versions[sent.url] = sent.version
    return found


def audits(path: Path) -> int:
    with SurveyFolder.open(path, write=False) as folder:
        return sum(1 for _ in folder.journal.events("audit"))


@pytest.mark.slow
def test_a_month(tmp_path: Path) -> None:
    path, web, crawl_requests = crawled(tmp_path, pages=100)
    sizes: list[int] = []
    tracemalloc.start()

    def weigh(_run: Watch, _outcome: object, _finding: object) -> None:
        day = (web.time.now - BEGIN) / DAY
        if len(sizes) < 2 and day >= (10, 28)[len(sizes)]:
            sizes.append(tracemalloc.get_traced_memory()[0])

    ending, last = watched(path, web, until=BEGIN + 30 * DAY, rate=30, report=weigh)
    tracemalloc.stop()
    assert ending == "interrupted"
    assert last is not None
    log = web.log[crawl_requests:]
    assert len(log) >= 0.8 * 30 * 27
    assert most_in_a_day(log) <= 30
    check_delays(web.log)
    robots = [sent.begin for sent in log if sent.url.endswith("robots.txt")]
    assert len(robots) >= 20  # read again once it has expired
    assert sum(unneeded(web.log).values()) <= audits(path) <= 0.1 * len(log)
    assert not last.watched.audits.lying
    assert last.watched.found["changed"] > 100
    assert sizes[1] - sizes[0] < 300_000, sizes


@pytest.mark.parametrize("sitemaps", [frozenset(), frozenset({"www.site0.example"})], ids=["no lists", "lists"])
@pytest.mark.slow
def test_kills_and_resumes_give_the_same_schedule(tmp_path: Path, sitemaps: frozenset[str]) -> None:
    path, web, before = crawled(tmp_path, pages=40, sitemaps=sitemaps)
    for _ in range(5):
        web.kill_at = len(web.log) + 17
        with pytest.raises(Killed):
            watched(path, web, until=BEGIN + 40 * DAY, rate=40)
    _, last = watched(path, web, until=web.time.now + DAY, rate=40)
    assert last is not None
    assert most_in_a_day(web.log[before:]) <= 40
    check_delays(web.log)
    given = {**SETTINGS}
    folder, chosen = start(path, [], Settings(**given), dict.fromkeys(given, "test"))
    with folder:
        hosts = create_hosts(folder, chosen, web.time, persistent=True)
        state = _restored(folder, chosen, hosts)
        again = _begin(folder, chosen, state, hosts, last.budget, WatchOptions(), BEGIN)
    live, rebuilt = last.watched.plan, again.watched.plan
    live.schedule.plan(web.time.now, state.crawl.ledger.importance())
    rebuilt.schedule.plan(web.time.now, state.crawl.ledger.importance())
    every = 10**6
    later = web.time.now + 100 * DAY
    assert live.schedule.due(later, every).tolist() == rebuilt.schedule.due(later, every).tolist()
    assert live.schedule.next_due() == pytest.approx(rebuilt.schedule.next_due(), abs=1e-3)
    known = live._pages.known.size
    assert np.array_equal(live._pages.content, rebuilt._pages.content[:known])
    assert last.watched.audits.records == again.watched.audits.records
    assert isinstance(last.watched.lists, WatchedLists)
    assert isinstance(again.watched.lists, WatchedLists)
    for site, one in last.watched.lists.sites.items():
        assert {url: replace(state, due=0) for url, state in one.states.items()} == {
            url: replace(state, due=0) for url, state in again.watched.lists.sites[site].states.items()
        }
    for field in ("source", "signals", "pending"):
        of_live, of_rebuilt = getattr(live.schedule._history, field), getattr(rebuilt.schedule._history, field)
        assert np.array_equal(of_live, of_rebuilt[: of_live.size])
    assert (live.schedule._history.signals.sum() > 0) == bool(sitemaps)


@pytest.mark.parametrize("days", [1.0, -1.0])
def test_a_jump_of_the_clock(tmp_path: Path, days: float) -> None:
    path, web, before = crawled(tmp_path, pages=20)
    at = BEGIN + 3 * DAY
    ending, last = watched(path, web, until=BEGIN + 8 * DAY, rate=24, jump=lambda now: days * DAY if now >= at else 0.0)
    assert ending == "interrupted"
    assert last is not None
    log = web.log[before:]
    assert most_in_a_day(log) <= 24
    check_delays(web.log)
    after = [sent for sent in log if sent.begin > at + 2 * DAY]
    assert len(after) > 24  # it continues


def test_a_jump_between_two_runs(tmp_path: Path) -> None:
    path, web, before = crawled(tmp_path, pages=20)
    watched(path, web, until=BEGIN + 3 * DAY, rate=24)
    at = len(web.log)
    watched(path, web, until=BEGIN + 6 * DAY, rate=24, jump=lambda _: -DAY)
    assert most_in_a_day(web.log[before:]) <= 24
    assert len(web.log) > at + 24
    check_delays(web.log)


@pytest.mark.slow
def test_a_clock_that_was_ahead_does_not_end_the_watch(tmp_path: Path) -> None:
    path, web, _ = crawled(tmp_path, pages=20)
    watched(path, web, until=BEGIN + 2 * DAY, rate=24, jump=lambda _: 365 * DAY)
    for at in np.arange(2, 8, 0.25) * DAY:  # the clock is right again
        web.time.now = max(web.time.now, BEGIN + at)
        watched(path, web, until=BEGIN + 100 * DAY, rate=24, once=True)
    after = [sent for sent in web.log if sent.begin > BEGIN + 3.5 * DAY]
    assert len(after) >= 3 * 24
    assert most_in_a_day(after) <= 24


def test_a_stored_number_of_requests_does_not_use_up_the_memory(tmp_path: Path) -> None:
    path, web, _ = crawled(tmp_path, pages=5)
    with SurveyFolder.open(path) as folder:
        now, many = web.time.now, {"count": 10_000_000}
        for at in (now - 60, now + 60):
            folder.journal.commit([], events=[Event("watch", now - 120, {"rate": 24}), Event("requests", at, many)])
        assert _request_ages(folder.journal, 24, now) == [0.0] * 24


class EqualPages(ChangingWeb):
    """Pages of equal importance that change once a day."""

    def body(self, url: str, version: int) -> bytes:
        links = "".join(f'<a href="http://{host(url)}/p{link}">x</a>' for link in range(self.pages))
        return f"<p>version {version}</p>{links}".encode()


def equal_pages(tmp_path: Path, **settings: Any) -> tuple[Path, ChangingWeb, int]:
    web = EqualPages(Time(BEGIN), mean_days=(1.0, 1.0), **settings)
    crawl(tmp_path / "s", web)
    return tmp_path / "s", web, len(web.log)


def on_day(log: list[Sent], day: int) -> list[Sent]:
    return [sent for sent in log if BEGIN + day * DAY <= sent.begin < BEGIN + (day + 1) * DAY]


@pytest.mark.slow
@pytest.mark.parametrize("once", [False, True], ids=["running", "cron"])
def test_the_whole_rate_is_used_for_pages_that_are_due_at_the_same_time(tmp_path: Path, *, once: bool) -> None:
    path, web, before = equal_pages(tmp_path, pages=40)
    for hour in range(1, 5 * 24, 4) if once else (1,):
        web.time.now = max(web.time.now, BEGIN + hour * 3600) if once else web.time.now
        watched(path, web, until=BEGIN + 5 * DAY, rate=60, once=once)
    log = web.log[before:]
    assert most_in_a_day(log) <= 60
    assert [len(on_day(log, day)) for day in range(1, 5)] == pytest.approx([60] * 4, abs=25 if once else 9)
    last = {sent.url: sent.begin for sent in log}
    assert min(last.values()) > BEGIN + 2 * DAY


def test_no_page_is_overtaken_for_ever(tmp_path: Path) -> None:
    path, web, before = equal_pages(tmp_path, pages=4)
    watched(path, web, until=BEGIN + 6 * DAY, rate=60)
    late = Counter(sent.url for sent in web.log[before:] if sent.begin > BEGIN + 3 * DAY and sent.version >= 0)
    pages = [late[url] for url in web.interval if not url.endswith("/p0")]
    assert min(pages) > 0.7 * max(pages), late


def test_a_host_that_does_not_respond_leaves_its_requests_to_others(tmp_path: Path) -> None:
    down = lambda name, now: name == "www.site0.example" and BEGIN + DAY <= now < BEGIN + 4 * DAY  # noqa: E731
    path, web, before = equal_pages(tmp_path, pages=40, down=down)
    watched(path, web, until=BEGIN + 7 * DAY, rate=60)
    for day in (2, 3):
        assert sum(host(sent.url) == "www.site1.example" for sent in on_day(web.log[before:], day)) >= 35
    after = Counter(sent.url for sent in web.log if sent.begin > BEGIN + 4.5 * DAY)
    assert all(after[url] for url in web.interval)


class Maintained(ChangingWeb):
    """All pages redirect to another one for a day."""

    status = 302

    def _answer(self, request: FetchRequest, now: float) -> Fetched:
        if "/p" in request.url and BEGIN + DAY < now < BEGIN + 2 * DAY:
            return Fetched(request.url, self.status, target=f"http://{host(request.url)}/maintenance")
        return super()._answer(request, now)


def test_pages_that_redirect_temporarily_are_fetched_again(tmp_path: Path) -> None:
    web = Maintained(Time(BEGIN), hosts=1, pages=10)
    crawl(tmp_path / "s", web)
    _, last = watched(tmp_path / "s", web, until=BEGIN + 6 * DAY, rate=60)
    assert last is not None
    after = {sent.url for sent in web.log if sent.begin > BEGIN + 2 * DAY and sent.version >= 0}
    assert after == set(web.interval)
    assert not set(last.watched.found) & {"back", "redirected"}
    assert not last.watched.plan.failed()


def test_feeds_are_not_downloaded_again_by_the_next_run(tmp_path: Path) -> None:
    feeds = ("http://www.site0.example/feed.xml", "http://feeds.example/x.xml")
    path, web, before = crawled(tmp_path, hosts=1, pages=5)
    web.feeds = frozenset(feeds)
    for at in (0.1, 0.11, 0.2):  # days; a feed is read once per hour
        web.time.now = BEGIN + at * DAY
        watched(path, web, until=BEGIN + DAY, rate=1000, once=True, feeds=feeds)
    for url in feeds:
        asked = [(round((sent.begin - BEGIN) / DAY, 1), sent.status) for sent in web.log[before:] if sent.url == url]
        assert asked == [(0.1, 200), (0.2, 304)], url


def test_new_sitemaps_are_found_by_the_next_run(tmp_path: Path) -> None:
    path, web, _ = crawled(tmp_path, hosts=1, pages=5)
    feed = "http://www.site0.example/feed.xml"
    web.feeds = frozenset([feed])
    for day in (0.1, 0.2):
        web.time.now = BEGIN + day * DAY
        watched(path, web, until=BEGIN + DAY, rate=10, once=True, feeds=(feed,))  # one list per day
    web.time.now = BEGIN + 1.3 * DAY
    watched(path, web, until=BEGIN + 3 * DAY, rate=10, once=True, feeds=(feed,))
    web.time.now = BEGIN + 2.6 * DAY
    watched(path, web, until=BEGIN + 3 * DAY, rate=10, once=True, feeds=(feed,))
    assert any(sent.url.endswith("/sitemap.xml") for sent in web.log)


@pytest.mark.slow
def test_a_host_that_vanishes_for_days_and_comes_back(tmp_path: Path) -> None:
    gone, back = BEGIN + 3 * DAY, BEGIN + 8 * DAY
    down = lambda name, now: name == "www.site0.example" and gone <= now < back  # noqa: E731
    path, web, before = crawled(tmp_path, pages=30, down=down)
    ending, last = watched(path, web, until=BEGIN + 14 * DAY, rate=60)
    assert ending == "interrupted"
    assert last is not None
    log = web.log[before:]
    mine = [sent for sent in log if host(sent.url) == "www.site0.example"]
    failed = [sent for sent in mine if sent.status == 0]
    assert 5 < len(failed) < 40  # attempts in five days: every six hours in the end, by pages and lists together
    assert not any(host.excluded for host in map(last.hosts.__getitem__, range(len(last.hosts))))
    returned = [sent for sent in mine if sent.begin >= back and sent.version >= 0]
    assert returned
    assert returned[0].begin < back + 1.1 * DAY
    assert len({sent.url for sent in returned}) > 20
    other = [sent for sent in log if host(sent.url) == "www.site1.example" and gone <= sent.begin < back]
    assert len(other) > 60
    assert most_in_a_day(log) <= 60
    check_delays(web.log)


def test_lying_validators_are_found_and_then_ignored(tmp_path: Path) -> None:
    path, web, before = crawled(tmp_path, pages=40, mean_days=(1.0, 4.0), lying=frozenset({"www.site1.example"}))
    _, last = watched(path, web, until=BEGIN + 12 * DAY, rate=60, audit_days=2.0)
    assert last is not None
    assert set(last.watched.audits.lying) == {"www.site1.example"}
    with SurveyFolder.open(path, write=False) as folder:
        found = list(folder.journal.events("lying"))
    assert [event.detail["host"] for event in found] == ["www.site1.example"]
    later = [sent for sent in web.log if sent.begin > found[0].at + DAY and host(sent.url) == "www.site1.example"]
    assert later
    assert not any(sent.conditional for sent in later)
    honest = [sent for sent in web.log[before:] if host(sent.url) == "www.site0.example" and sent.version >= 0]
    assert any(sent.conditional for sent in honest)


def test_once_fetches_what_is_due_and_ends(tmp_path: Path) -> None:
    path, web, before = crawled(tmp_path, pages=30)
    ending, _ = watched(path, web, until=BEGIN + 100 * DAY, rate=500, once=True)
    first = len(web.log)
    assert ending == "done"
    assert first - before <= 10
    assert web.time.now < BEGIN + DAY
    web.time.now += 6 * DAY
    ending, _ = watched(path, web, until=BEGIN + 100 * DAY, rate=500, once=True)
    second = len(web.log)
    assert ending == "done"
    assert second > first + 20
    assert web.time.now < BEGIN + 7 * DAY
    web.time.now += 12 * DAY
    ending, _ = watched(path, web, until=BEGIN + 100 * DAY, rate=10, once=True)
    assert ending == "budget"
    assert len(web.log) == second + 10
    ending, _ = watched(path, web, until=BEGIN + 100 * DAY, rate=10, once=True)
    assert ending == "budget"
    assert len(web.log) == second + 10


@pytest.mark.slow
def test_gone_pages_are_confirmed_and_then_seldom_requested(tmp_path: Path) -> None:
    gone = frozenset(f"http://www.site0.example/p{number}" for number in (3, 4))
    path, web, before = crawled(tmp_path, hosts=1, pages=20, gone=gone)
    _, last = watched(path, web, until=BEGIN + 16 * DAY, rate=60)
    assert last is not None
    assert last.watched.found["gone"] == 2
    for url in gone:
        times = [sent.begin for sent in web.log[before:] if sent.url == url and sent.status == 404]
        assert 3 <= len(times) <= 6
        assert times[1] - times[0] < 7200  # confirmed
        gaps = np.diff(times[1:])
        assert (gaps >= DAY - SLACK).all()
        assert (np.diff(gaps) >= -DAY / 2).all()


def freshness(log: list[Sent], web: ChangingWeb, begin: float, end: float) -> float:
    """Return the mean share of pages whose last download is their version of the moment."""
    moments = np.linspace(begin, end, 60)
    fresh = 0
    for url in web.interval:
        seen = [(sent.begin, sent.version) for sent in log if sent.url == url and sent.version >= 0]
        for moment in moments.tolist():
            last = [version for at, version in seen if at <= moment]
            fresh += bool(last) and last[-1] == web.version(url, moment)
    return fresh / (moments.size * len(web.interval))


@pytest.mark.slow
def test_signals_of_sitemaps_keep_a_survey_fresher(tmp_path: Path) -> None:
    shares = []
    for lists in (True, False):
        path, web, before = crawled(
            tmp_path / str(lists), pages=200, sitemaps=frozenset({"www.site0.example"}), hosts=1
        )
        end = BEGIN + 30 * DAY
        _, last = watched(path, web, until=end, rate=20, reads_lists=lists)
        assert last is not None
        asked = [sent for sent in web.log if sent.url.endswith("sitemap.xml")]
        assert most_in_a_day(web.log[before:]) <= 20
        assert most_in_a_day(asked) <= 2  # a tenth of the requests
        assert (len(asked) > 20) == lists
        check_delays(web.log)
        if lists:
            found = last.watched.plan.schedule.signal_quality()
            assert found.precision.low <= 1.0 <= found.precision.high + 0.1  # every date is of a change
        shares.append(freshness(web.log, web, BEGIN + 10 * DAY, end))
    assert shares[0] > shares[1] + 0.05, shares


def test_lists_of_a_host_that_does_not_respond_hold_nothing_back(tmp_path: Path) -> None:
    path, web, before = crawled(
        tmp_path, pages=20, sitemaps=frozenset({"www.site0.example", "www.site1.example"}), hosts=2
    )
    web.down = lambda name, _now: name == "www.site0.example"
    watched(path, web, until=BEGIN + 6 * DAY, rate=40)
    others = [sent for sent in web.log[before:] if host(sent.url) == "www.site1.example" and sent.version >= 0]
    assert len(others) > 60
    assert most_in_a_day(web.log[before:]) <= 40
    assert [sent for sent in web.log[before:] if sent.url == "http://www.site1.example/sitemap.xml"]


@pytest.mark.parametrize("importance", ["opic", "adaptive:bao", "adaptive:fixed"])
def test_importance_is_estimated_by_opic(tmp_path: Path, importance: str) -> None:
    path, web, _ = crawled(tmp_path, pages=20)
    _, last = watched(path, web, until=BEGIN + 2 * DAY, rate=40, importance=importance)
    assert last is not None
    live = last.importance()
    _, again = watched(path, web, until=web.time.now + 1, rate=40, importance=importance)
    assert again is not None
    assert again.importance()[: live.size] == pytest.approx(live, abs=1e-12)
    assert np.abs(live[:40] - last.state.crawl.ledger.importance()[:40]).max() > 1e-4
    _, tracked = watched(path, web, until=web.time.now + 1, rate=40)  # the survey's own state has not changed
    assert tracked is not None
    assert tracked.is_own
    assert tracked.importance() is not None


def test_importance_must_be_an_estimate(tmp_path: Path) -> None:
    path, web, _ = crawled(tmp_path, pages=3)
    with pytest.raises(UsageError, match=r"importance must be tracking, opic or adaptive.*'breadth'"):
        watched(path, web, until=BEGIN + DAY, importance="breadth")


@pytest.mark.slow
def test_an_honest_host_is_trusted_when_main_texts_are_hashed_from_the_watch_on(tmp_path: Path) -> None:
    path, web, _ = crawled(tmp_path, pages=150, hosts=1, mean_days=(30.0, 60.0))
    start(path, [], Settings(**SETTINGS, main_text=True), {**dict.fromkeys(SETTINGS, "test"), "main_text": "test"})[
        0
    ].close()
    _, last = watched(path, web, until=BEGIN + 6 * DAY, rate=150, audit_days=0.2)
    assert last is not None
    assert last.watched.found["perhaps changed"] >= 5
    assert audits(path) >= 5
    assert not last.watched.audits.lying
