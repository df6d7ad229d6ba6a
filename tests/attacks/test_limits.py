"""Sites that would keep a crawl busy for ever: redirects without end, errors only, pages that always fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attack import attack

from fake_web import Sites, Time, crawled, moved, page, rules
from surveyor.crawler.replay import derive
from surveyor.fetch.http import MOST_REDIRECTS, Fetched, FetchRequest
from surveyor.store.directory import SurveyFolder

HOME = "http://a.example/"
LIMITS = [1, 2, 3, 7, 20, 50]


class Endless(Sites):
    """A site with an answer for every URL."""

    def __init__(self, answer: Any) -> None:
        super().__init__(Time(), {})
        self._answer = answer

    async def fetch(self, request: FetchRequest) -> Fetched:
        if not request.url.endswith("/robots.txt") and request.url not in self.answers:
            self.answers = {**self.answers, request.url: self._answer(request.url)}
        return await super().fetch(request)


def number(url: str) -> int:
    return int("0" + "".join(letter for letter in url.rpartition("/")[2] if letter.isdigit()))


def trap(url: str) -> Fetched:
    """Redirect to a page that is not known yet, again and again."""
    return page(url, "r1") if url == HOME else moved(url, f"{HOME}r{number(url) + 1}")


def canonical_trap(url: str) -> Fetched:
    return page(url, "c1") if url == HOME else page(url, extra=f'<link rel=canonical href="/c{number(url) + 1}">')


def mixed_trap(url: str) -> Fetched:
    """Redirects and canonical links in turn."""
    if url == HOME or number(url) % 2:
        return trap(url)
    return page(url, extra=f'<link rel=canonical href="/r{number(url) + 1}">')


def visits(path: Path) -> dict[str, Any]:
    with SurveyFolder.open(path, write=False) as folder:
        return {url: visit for _, url, visit in folder.pages() if visit is not None}


@attack(
    "redirects to ever new URLs", area="redirects", must_hold="20 are followed, the next is blocked; the crawl ends"
)
def test_a_redirect_trap_ends_after_twenty_hops(tmp_path: Path) -> None:
    client = Endless(trap)
    assert crawled(tmp_path / "s", [HOME], client) == "exhausted"
    found = visits(tmp_path / "s")
    kinds = [found[f"{HOME}r{hop}"].kind for hop in range(1, MOST_REDIRECTS + 2)]
    assert kinds == ["redirected"] * MOST_REDIRECTS + ["blocked"]
    assert found[f"{HOME}r{MOST_REDIRECTS + 1}"].reason == "more than 20 redirects"
    assert len(client.log) == 1 + 1 + MOST_REDIRECTS + 1  # robots.txt, home, and the chain


@attack("canonical links to ever new URLs", area="redirects", must_hold="the 21st page is read; the crawl ends")
def test_a_canonical_trap_ends_with_a_page_that_is_read(tmp_path: Path) -> None:
    client = Endless(canonical_trap)
    assert crawled(tmp_path / "s", [HOME], client) == "exhausted"
    assert visits(tmp_path / "s")[f"{HOME}c{MOST_REDIRECTS + 1}"].kind == "fetched"
    assert len(client.log) == 1 + 1 + MOST_REDIRECTS + 1


@attack("redirects and canonical links in turn", area="redirects", must_hold="the chain ends after 20")
def test_a_trap_of_both_kinds_ends(tmp_path: Path) -> None:
    client = Endless(mixed_trap)
    assert crawled(tmp_path / "s", [HOME], client) == "exhausted"
    assert len(client.log) <= 2 + MOST_REDIRECTS + 2


@pytest.mark.slow
@attack(
    "a redirect trap and restarts", area="redirects", must_hold="hops are counted over restarts", inputs=len(LIMITS)
)
def test_hops_are_counted_over_restarts(tmp_path: Path) -> None:
    for stop in LIMITS:
        path, client = tmp_path / f"s{stop}", Endless(trap)
        while crawled(path, [HOME], client, until=f"requests={len(client.log) + stop}") == "reached":
            assert len(client.log) < 100
        assert len([url for url, _ in client.log if "/r" in url and "robots" not in url]) == MOST_REDIRECTS + 1


@attack(
    "a site that answers with retries, redirected robots.txt files and errors, under --until requests=N",
    area="traps and limits",
    must_hold="exactly N requests are sent, also over restarts",
    inputs=len(LIMITS),
)
def test_requests_are_counted_exactly(tmp_path: Path) -> None:
    def answers() -> dict[str, Any]:
        hosts = [f"http://h{n}.example/" for n in range(20)]
        made: dict[str, Any] = {HOME: page(HOME, *hosts, "/boom", "/gone", "/moved"), f"{HOME}moved": moved(HOME, "/x")}
        made[f"{HOME}boom"] = Fetched(f"{HOME}boom", 500)
        for host in hosts:  # robots.txt lies elsewhere
            made[f"{host}robots.txt"] = moved(f"{host}robots.txt", "http://rules.example/robots.txt")
            made[host] = page(host, "/a", "/b")
        return made

    for limit in LIMITS:
        client = Sites(Time(), answers())
        path = tmp_path / f"s{limit}"
        for part in (max(1, limit // 2), limit):  # the second run resumes
            ending = crawled(path, [HOME], client, scope="any", until=f"requests={part}", backoff=0.1, delay=0.0)
            assert (ending, len(client.log)) == ("reached", part)
        with SurveyFolder.open(path, write=False) as folder:
            assert derive(folder).tally.requests == limit


@attack(
    "sites of nothing but redirects, errors, missing pages or pages of another site",
    area="traps and limits",
    must_hold="the crawl ends by itself after max_fruitless requests that fetched no page",
)
@pytest.mark.parametrize("kind", ["redirects", "errors", "missing"])
def test_a_crawl_that_fetches_no_page_ends(kind: str, tmp_path: Path) -> None:
    def answer(url: str) -> Fetched:
        if number(url) == 0:
            return page(url, *(f"/{kind}{n}" for n in range(1, 500)))
        if kind == "redirects":
            return moved(url, f"/{kind}{number(url) + 500}") if number(url) < 50_000 else Fetched(url, 403)
        return Fetched(url, 400 if kind == "errors" else 404)

    client = Endless(answer)
    assert crawled(tmp_path / "s", [HOME], client, max_fruitless=60, delay=0.0, backoff=0.0) == "fruitless"
    assert 60 <= len(client.log) <= 60 + 40
    more = crawled(tmp_path / "s", [HOME], client, max_fruitless=0, until="requests=300", delay=0.0, backoff=0.0)
    assert (more, len(client.log)) == ("reached", 300)  # no limit, and resumed


# Waiting


def failing(**others: Any) -> Sites:
    answers: dict[str, Any] = {HOME: page(HOME, *(f"/p{n}" for n in range(30)), "/boom")}
    answers |= {f"{HOME}p{n}": page(f"{HOME}p{n}", "/") for n in range(30)}
    return Sites(Time(), {**answers, f"{HOME}boom": Fetched(f"{HOME}boom", 500), **others})


@attack(
    "one page that always fails, when everything else is read",
    area="traps and limits",
    must_hold="it is not waited for; blocked with its last failure, and retried by --again or with --patient",
)
def test_one_failing_page_does_not_hold_up_a_crawl(tmp_path: Path) -> None:
    client = failing()
    assert crawled(tmp_path / "s", [HOME], client, patient=False) == "exhausted"
    times = client.times(f"{HOME}boom")
    assert len(times) in (1, 2)
    visit = visits(tmp_path / "s")[f"{HOME}boom"]
    assert (visit.kind, visit.reason) == ("blocked", f"http 500 (retry {len(times)} of 3 not awaited)")
    patient = failing()
    assert crawled(tmp_path / "t", [HOME], patient, patient=True) == "exhausted"
    assert len(patient.times(f"{HOME}boom")) == 4
    assert visits(tmp_path / "t")[f"{HOME}boom"].reason == "http 500"


@pytest.mark.parametrize("pages", [1, 3, 20])
def test_one_failing_page_does_not_hold_up_a_small_site_where_each_page_weighs_much(pages: int, tmp_path: Path) -> None:
    answers: dict[str, Any] = {HOME: page(HOME, *(f"/p{n}" for n in range(pages)), *["/boom"])}
    answers |= {f"{HOME}p{n}": page(f"{HOME}p{n}", "/boom") for n in range(pages)}
    client = Sites(Time(), {**answers, f"{HOME}boom": Fetched(f"{HOME}boom", 500)})
    assert crawled(tmp_path / "s", [HOME], client, patient=False) == "exhausted"
    assert len(client.times(f"{HOME}boom")) <= 2
    assert visits(tmp_path / "s")[f"{HOME}boom"].reason.endswith("not awaited)")


def test_a_seed_that_fails_is_waited_for(tmp_path: Path) -> None:
    other = "http://b.example/"
    client = failing(**{other: Fetched(other, 500), HOME: page(HOME)})
    assert crawled(tmp_path / "s", [HOME, other], client, patient=False) == "exhausted"
    assert len(client.times(other)) == 4


def test_what_holds_a_crawl_up_is_said(tmp_path: Path) -> None:
    result: set[str] = set()

    def watch(run: Any, _: Any) -> None:
        if run.waiting is not None and (sentence := run.waiting.sentence()):
            result.add(sentence)

    client = failing()
    time_wait = client.time.wait
    runs: list[Any] = []

    async def wait(something: Any, until: float) -> None:
        for run in runs:
            watch(run, None)
        await time_wait(something, until)

    client.time.wait = wait  # type: ignore[method-assign]
    crawled(tmp_path / "s", [HOME], client, lambda run, _: runs.append(run) if not runs else None)
    assert any(one.startswith("retry 3 of 3 for /boom in ") and one.endswith(" s: http 500") for one in result), result


def test_a_site_that_asks_to_wait_at_the_beginning_is_waited_for(tmp_path: Path) -> None:
    busy = Fetched(HOME, 503, retry_after=120.0)
    client = failing(**{HOME: [busy, page(HOME, *(f"/p{n}" for n in range(30)))]})
    assert crawled(tmp_path / "s", [HOME], client, patient=False) == "exhausted"
    assert sum(visit.kind == "fetched" for visit in visits(tmp_path / "s").values()) == 31


def test_a_long_crawl_delay_is_no_reason_to_give_up(tmp_path: Path) -> None:
    answers = {**failing().answers, **rules("http://a.example", "User-agent: *\nCrawl-delay: 30")}
    client = Sites(Time(), answers)
    assert crawled(tmp_path / "s", [HOME], client, patient=False) == "exhausted"
    assert sum(visit.kind == "fetched" for visit in visits(tmp_path / "s").values()) == 31


def test_a_host_in_backoff_that_matters_little_is_not_waited_for(tmp_path: Path) -> None:
    other = "http://b.example/"
    home = page(HOME, *(f"/p{n}" for n in range(30)), other)
    unread = {f"{other}robots.txt": Fetched(f"{other}robots.txt", 500)}
    client = failing(**{HOME: home, **unread})
    assert crawled(tmp_path / "s", [HOME], client, patient=False, scope="any") == "exhausted"
    visit = visits(tmp_path / "s")[other]
    assert visit.reason.startswith("robots.txt of http://b.example could not be fetched: http 500 (retry ")
