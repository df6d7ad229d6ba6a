"""A live crawl without sockets and without sleep: tries, pauses, silence, and whatever else sites do."""

from __future__ import annotations

import asyncio
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from attack import attack

from fake_web import Answers, Sites, Time, begun, crawled, moved, page, rules
from surveyor.crawler.queues import Batch
from surveyor.crawler.session import run
from surveyor.crawler.sources.live import LONGEST_WAIT, Connection, LiveSource, PageLookup
from surveyor.crawler.start import _names
from surveyor.fetch.http import Fetched
from surveyor.fetch.politeness.hosts import DAY, Hosts
from surveyor.fetch.politeness.policy import FIRST_PAUSE, LONGEST_PAUSE, PAUSES
from surveyor.fetch.responses import Reader
from surveyor.outcome import Event, Visit
from surveyor.stopping import Minutes, parse_rule
from surveyor.store.directory import SurveyFolder
from surveyor.store.layout import LOG
from surveyor.survey.survey import Survey
from surveyor.web.scope import Scope
from surveyor.web.urls import Urls

HOME = "http://a.example/"
SITE = "http://a.example"
X = f"{HOME}x"
BUSY = Fetched(X, 503)
MISSING = Fetched(X, 404)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.survey"


def sites(answers: dict[str, Answers], **options: Any) -> Sites:
    return Sites(Time(), {HOME: page(HOME, X), **answers}, **options)


def journal_of(path: Path) -> tuple[dict[str, Visit], list[Event]]:
    """Return the last visit to each page that has one, and all events."""
    with SurveyFolder.open(path, write=False) as folder:
        return {url: visit for _, url, visit in folder.pages() if visit}, list(folder.journal.events())


# --- pages ---


def test_tries_come_later_each_time_and_then_no_more(path: Path) -> None:
    client = sites({X: BUSY})
    assert crawled(path, [HOME], client) == "exhausted"
    gaps = [round(then - at, 1) for at, then in pairwise(client.times(X))]
    assert gaps == [10.1, 40.1, 160.1]
    visits, events = journal_of(path)
    assert (visits[X].kind, visits[X].reason, visits[HOME].kind) == ("blocked", "http 503", "fetched")
    assert [event.detail["tries"] for event in events if event.kind == "retry"] == [1, 2, 3]


@attack(
    "pages that fail for ever in different ways",
    area="traps and limits",
    must_hold="a bounded number of attempts, then an outcome",
)
@pytest.mark.parametrize(
    ("answers", "kind", "asked"),
    [
        ([MISSING, MISSING], "gone", 2),
        ([MISSING, page(X)], "fetched", 2),
        ([BUSY, MISSING, MISSING], "gone", 3),  # one answer that it is gone is not enough
        ([BUSY, MISSING, page(X)], "fetched", 3),
        ([MISSING, BUSY, MISSING], "gone", 3),
        ([BUSY, page(X)], "fetched", 2),
        ([Fetched(X, error="reset"), page(X)], "fetched", 2),
        ([Fetched(X, error="tls", detail="no")], "blocked", 1),
        ([Fetched(X, 403)], "blocked", 1),
        ([Fetched(X, 301)], "blocked", 1),
    ],
)
def test_what_becomes_of_a_page(path: Path, answers: list[Fetched], kind: str, asked: int) -> None:
    client = sites({X: answers})
    crawled(path, [HOME], client)
    assert journal_of(path)[0][X].kind == kind
    assert len(client.times(X)) == asked


def test_what_was_tried_before_a_restart_counts(path: Path) -> None:
    client = sites({X: [BUSY, MISSING, MISSING], f"{HOME}y": [page(f"{HOME}y")], HOME: page(HOME, X, "/y")})
    folder, settings = begun(path, [HOME])

    async def stopped(retries: int) -> None:
        time, hosts = client.time, Hosts(1.0, clock=client.time, stored=folder.journal.robots)
        work = run(
            folder, settings, parse_rule("pages=100"), connection=Connection(client, None, hosts, time.wait, 0.0)
        )
        task = asyncio.ensure_future(work)
        while [event.kind for event in folder.journal.events()].count("retry") < retries:
            await asyncio.sleep(0)
        task.cancel()
        assert await task == "interrupted"

    with folder:
        asyncio.run(stopped(retries=1))
        assert len(client.times(X)) == 1
        asyncio.run(stopped(retries=2))
        assert len(client.times(X)) == 2
    assert crawled(path, [HOME], client) == "exhausted"
    assert journal_of(path)[0][X].kind == "gone"
    assert len(client.times(X)) == 3  # the first answer that it is gone came before the last restart
    first, second, third = client.times(X)
    assert second - first >= 10
    assert third - second >= 10
    assert len(client.times(HOME)) == 1


def test_a_host_that_asks_for_it_is_left_alone_also_after_a_restart(path: Path) -> None:
    y = f"{HOME}y"
    busy = Fetched(X, 429, retry_after=300.0)
    client = sites(
        {HOME: page(HOME, X, "/y", "/z"), X: [busy, page(X)], y: [busy, page(y)], f"{HOME}z": page(f"{HOME}z")}
    )
    crawled(path, [HOME], client, until="pages=1")
    crawled(path, [HOME], client, until="pages=2")
    times = [at for url, at in client.log if not url.endswith("robots.txt")]
    gaps = [round(then - at) for at, then in pairwise(times)]
    assert [gap >= 300 for gap in gaps].count(True) >= 1
    crawled(path, [HOME], client)
    waits = [event.detail for event in journal_of(path)[1] if event.kind == "backoff"]
    assert {wait["host"] for wait in waits} == {"a.example"}
    for wait in waits:
        assert not [at for _, at in client.log if wait["until"] - 300 < at < wait["until"]]
    assert {visit.kind for visit in journal_of(path)[0].values()} == {"fetched"}


def test_without_a_delay_a_host_is_left_alone_as_well(path: Path) -> None:
    names = [f"{HOME}{number}" for number in range(6)]
    client = sites({HOME: page(HOME, *names), **{name: page(name) for name in names}})
    client.answers = {**client.answers, names[0]: [Fetched(names[0], 429, retry_after=60.0), page(names[0])]}
    crawled(path, [HOME], client, delay=0, concurrency=1)
    (wait,) = (event.detail for event in journal_of(path)[1] if event.kind == "backoff")
    assert not [url for url, at in client.log if wait["until"] - 60 < at < wait["until"]]
    assert len(client.log) == 9


def test_a_crawl_ends_when_no_page_waits_though_a_host_would_have_to(path: Path) -> None:
    client = sites({X: Fetched(X, 429, retry_after=50_000.0)})
    crawled(path, [HOME], client)
    assert client.time.now - client.log[-1][1] < 1


# --- robots.txt ---


def test_robots_is_asked_for_first_again_after_failures_and_pages_after_the_delay(path: Path) -> None:
    down = Fetched(f"{SITE}/robots.txt", 503)
    good = Fetched(f"{SITE}/robots.txt", 200, body=b"User-agent: *\nDisallow: /x")
    client = sites({f"{SITE}/robots.txt": [down, down, good]})
    crawled(path, [HOME], client)
    assert client.times(f"{SITE}/robots.txt") == [0.0, 10.1, 50.2]
    assert client.times(HOME) == [51.3]
    visits, _ = journal_of(path)
    assert (visits[X].kind, visits[X].reason, visits[HOME].kind) == (
        "blocked",
        "robots.txt disallows it (Disallow: /x)",
        "fetched",
    )


@pytest.mark.parametrize(
    ("answer", "reason", "asked"),
    [
        (
            Fetched(f"{SITE}/robots.txt", 503),
            "robots.txt could not be fetched, so no page is allowed",
            4,
        ),
        (
            Fetched(f"{SITE}/robots.txt", 429),
            "robots.txt could not be fetched, so no page is allowed",
            4,
        ),
        (Fetched(f"{SITE}/robots.txt", error="dns", detail="no such host"), "no such host", 4),
        (Fetched(f"{SITE}/robots.txt", error="forbidden-address", detail="is private"), "is private", 1),
    ],
)
def test_a_robots_file_that_never_comes_forbids_all(path: Path, answer: Fetched, reason: str, asked: int) -> None:
    client = sites({f"{SITE}/robots.txt": answer})
    assert crawled(path, [HOME], client, until="coverage=0.5") == "unreachable"
    assert len(client.log) == asked
    assert journal_of(path)[0][HOME].reason == reason
    with Survey(path) as survey:
        assert survey.blocked() == [{"reason": reason, "pages": 1, "mass": 1.0}]


def test_a_robots_file_may_be_html_move_and_ask_to_wait(path: Path) -> None:
    b, c = "http://b.example", "http://c.example"
    robots = f"{b}/robots.txt"
    answers: dict[str, Answers] = {
        HOME: page(HOME, f"{b}/x", f"{c}/"),
        **rules(SITE, "<html><p>User-agent: *<p>Disallow: /</html>"),
        robots: moved(robots, f"{SITE}/rules"),
        f"{SITE}/rules": Fetched(f"{SITE}/rules", 200, body=b"User-agent: *\nDisallow: /x"),
        f"{c}/robots.txt": [Fetched(f"{c}/robots.txt", 503, retry_after=500.0), Fetched(f"{c}/robots.txt", 404)],
        f"{c}/": page(f"{c}/"),
    }
    client = sites(answers)
    crawled(path, [HOME], client, scope="any")
    visits, events = journal_of(path)
    assert {url: visit.kind for url, visit in visits.items()} == {
        HOME: "fetched",
        f"{b}/x": "blocked",
        f"{c}/": "fetched",
    }
    first, second = client.times(f"{c}/robots.txt")
    assert second - first >= 500
    assert [event.detail["host"] for event in events if event.kind == "backoff"] == ["c.example"]


def test_robots_is_read_anew_on_the_next_day_and_not_before(path: Path) -> None:
    client = sites({X: [BUSY, page(X)]})
    crawled(path, [HOME], client, until="pages=1")
    client.time.now += DAY / 2
    crawled(path, [HOME], client, until="pages=1")
    assert len(client.times(f"{SITE}/robots.txt")) == 1
    client.time.now += DAY
    crawled(path, [HOME], client)
    assert len(client.times(f"{SITE}/robots.txt")) == 2


# --- the network, and ourselves ---


def test_being_offline_costs_no_try(path: Path) -> None:
    names = [f"{HOME}{number}" for number in range(5)]
    lost = Fetched(X, error="timeout-connect")
    answers: dict[str, Answers] = {name: [lost] * 6 + [page(name)] for name in names}
    client = sites({HOME: page(HOME, *names), **answers})
    crawled(path, [HOME], client)
    visits, events = journal_of(path)
    assert {visit.kind for visit in visits.values()} == {"fetched"}
    assert not [event for event in events if event.kind == "retry"]
    assert [event for event in events if event.kind == "offline"]
    quiet = max(then - at for (_, at), (_, then) in pairwise(client.log))
    assert FIRST_PAUSE <= quiet <= LONGEST_PAUSE + 1


def test_a_dead_site_is_abandoned_after_all_backoffs(path: Path) -> None:
    client = sites({X: Fetched(X, error="timeout-connect", detail="silence")})
    assert crawled(path, [HOME], client) == "exhausted"
    assert journal_of(path)[0][X].reason == "silence"
    assert len(client.times(X)) == PAUSES + 4


def test_an_error_of_the_client_is_an_outcome(path: Path) -> None:
    client = sites({X: ZeroDivisionError("a mistake")})
    assert crawled(path, [HOME], client) == "exhausted"
    assert journal_of(path)[0][X].reason == "could not be parsed: ZeroDivisionError('a mistake')"
    assert "ZeroDivisionError: a mistake" in (path / LOG).read_text("utf-8")


def test_an_error_of_the_client_at_robots_txt_is_the_reason(path: Path) -> None:
    client = sites({f"{SITE}/robots.txt": ZeroDivisionError("a mistake")})
    assert crawled(path, [HOME], client) == "exhausted"
    assert journal_of(path)[0][HOME].reason == "could not be parsed: ZeroDivisionError('a mistake')"


def test_a_look_up_that_fails_leaves_the_address_open(path: Path) -> None:
    class Broken(Sites):
        async def address(self, host: str) -> str:
            raise LookupError(host)

    assert crawled(path, [HOME], Broken(Time(), {HOME: page(HOME)})) == "exhausted"
    assert journal_of(path)[0][HOME].kind == "fetched"


def test_cancelled_in_the_middle_nothing_is_lost_and_all_is_asked_again(path: Path) -> None:
    client = sites({X: page(X)})
    folder, settings = begun(path, [HOME])

    async def interrupted() -> None:
        hosts = Hosts(1.0, clock=client.time)
        work = run(
            folder, settings, parse_rule("pages=9"), connection=Connection(client, None, hosts, client.time.wait, 0.0)
        )
        task = asyncio.ensure_future(work)
        while not client.times(X):
            await asyncio.sleep(0)
        task.cancel()
        assert await task == "interrupted"

    with folder:
        asyncio.run(interrupted())
    visits, _ = journal_of(path)
    assert list(visits) == [HOME]
    assert crawled(path, [HOME], client) == "exhausted"
    assert len(client.times(HOME)) == 1
    assert len(client.times(X)) == 2
    gap = client.log[-1][1] - client.log[-2][1]
    assert gap >= 1.0  # the full delay


def test_close_gives_up_what_is_under_way() -> None:
    async def work() -> None:
        time, urls = Time(), Urls()
        seeds = urls.ids([HOME, X]).tolist()
        hosts = Hosts(0.0, clock=time, resolves=False)
        client = sites({}, seconds=math.inf)
        reader = Reader(urls, Scope("any", ()), seeds)
        source = LiveSource(client, reader, hosts, PageLookup(lambda number: (urls[number], hosts.number("a.example"))))
        for _ in range(2):
            hosts.lease(hosts.number("a.example"), "page")
        source.start(Batch(pages=seeds))
        assert source.in_progress == 2
        assert not (await source.results_within(0.01)).outcomes
        await source.close()
        await asyncio.sleep(0)
        assert source.in_progress == 0
        assert hosts[0].busy == 0
        await source.close()

    asyncio.run(work())


def test_a_goal_in_minutes_is_kept_while_a_host_asks_for_hours(path: Path) -> None:
    """Real time, one second of it: who waits looks up now and then."""
    client = sites({X: Fetched(X, 503, retry_after=3_000.0)}, seconds=0.0)
    folder, settings = begun(path, [HOME], delay=0, patient=True)

    async def instant(_seconds: float) -> None:
        await asyncio.sleep(0)

    client.time.sleep = instant  # type: ignore[method-assign, assignment]
    with folder:
        work = run(folder, settings, Minutes(0.2 / 60), connection=Connection(client, patience=0.0))
        assert asyncio.run(asyncio.wait_for(work, 4 * LONGEST_WAIT + 5)) == "reached"


def test_a_strategy_that_reads_again_ends_when_nothing_can_be_gained(path: Path) -> None:
    client = sites({X: page(X, HOME)})
    assert crawled(path, [HOME], client, strategy="tracking", until="coverage=0.9999999") == "exhausted"
    assert {url: visit.kind for url, visit in journal_of(path)[0].items()} == {HOME: "fetched", X: "fetched"}


def test_twenty_redirects_and_hundreds_of_hosts(path: Path) -> None:
    chain = [f"{HOME}r{number}" for number in range(21)]
    others = [f"http://h{number}.example/" for number in range(300)]
    answers: dict[str, Answers] = {HOME: page(HOME, chain[0], *others), chain[-1]: page(chain[-1])}
    answers |= {here: moved(here, there) for here, there in pairwise(chain)}
    client = sites(answers, addresses={f"h{number}.example": f"10.0.0.{number % 50}" for number in range(300)})
    assert crawled(path, [HOME], client, scope="any", backoff=0.1) == "exhausted"
    kinds = [visit.kind for visit in journal_of(path)[0].values()]
    assert (kinds.count("fetched"), kinds.count("redirected"), kinds.count("gone")) == (2, 20, 300)


def test_hosts_that_the_user_named_are_spelt_as_in_urls() -> None:
    given = ["::1", "[::1]:8080", "localhost:8000", "Bücher.example", "127.1"]
    assert _names(given) == {"[::1]", "localhost", "xn--bcher-kva.example", "127.0.0.1"}
