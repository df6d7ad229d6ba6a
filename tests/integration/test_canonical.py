"""Canonical pages are seen to exist before they are believed: one that is gone removes no page from a survey."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from attack import attack

import surveyor as sv
from fake_web import Sites, Time, crawled, page
from surveyor.fetch.http import Fetched, FetchRequest

SITE = "http://a.org"
HOME, COPY, OTHER, MAIN, END = f"{SITE}/", f"{SITE}/copy", f"{SITE}/other", f"{SITE}/main", f"{SITE}/end"
NAMES_MAIN = '<link rel=canonical href="/main">'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.survey"


def lives(path: Path) -> dict[str, str]:
    """What each page is now, with the accounts of the ledger checked on the way."""
    with sv.open(path) as survey:
        now = survey.coverage
        assert now.captured + now.moving + now.waiting + now.blocked + now.lost == pytest.approx(1, abs=1e-9)
        return dict(survey.sql("SELECT url, kind FROM pages").rows)


def sites(**more: Fetched) -> Sites:
    """A home page that links to two copies first and to their canonical page last."""
    pages = {
        HOME: page(HOME, COPY, OTHER, MAIN),
        COPY: page(COPY, END, extra=NAMES_MAIN),
        OTHER: page(OTHER, END, extra=NAMES_MAIN),
        END: page(END),
    }
    return Sites(Time(), {**pages, **{answer.url: answer for answer in more.values()}})


@pytest.mark.parametrize(
    "answer", [Fetched(MAIN, 404), Fetched(MAIN, 403), Fetched(MAIN, error="tls", detail="no certificate")]
)
def test_a_page_stays_though_its_canonical_page_cannot_be_read(path: Path, answer: Fetched) -> None:
    crawled(path, [HOME], sites(main=answer))
    found = lives(path)
    assert [found[url] for url in (HOME, COPY, OTHER, END)] == ["fetched"] * 4
    assert found[MAIN] == ("gone" if answer.status == 404 else "blocked")


ELSEWHERE = "http://www.a.org"


def two_hosts(answer: Fetched, **robots: Fetched) -> Sites:
    """A page that names one of another host of its domain, which no page links to."""
    pages = {HOME: page(HOME, COPY), COPY: page(COPY, END, extra=f'<link rel=canonical href="{answer.url}">')}
    rules = {f"{ELSEWHERE}/robots.txt": one for one in robots.values()}
    return Sites(Time(), {**pages, END: page(END), answer.url: answer, **rules})


@pytest.mark.parametrize(
    ("status", "kinds"), [(404, ["fetched", None]), (403, ["fetched", None]), (503, ["fetched", None])]
)
def test_a_canonical_page_of_another_host_is_asked_for_too(path: Path, status: int, kinds: list[str | None]) -> None:
    client = two_hosts(Fetched(f"{ELSEWHERE}/main", status))
    crawled(path, [HOME], client, scope="domain")
    found = lives(path)
    assert found[END] == "fetched"
    assert [found[COPY], found.get(f"{ELSEWHERE}/main")] == kinds
    asked = [url for url, _ in client.log if url.startswith(ELSEWHERE)]
    assert asked[:2] == [f"{ELSEWHERE}/robots.txt", f"{ELSEWHERE}/main"]


def test_a_canonical_page_of_another_host_that_exists_is_fetched_once(path: Path) -> None:
    client = two_hosts(page(f"{ELSEWHERE}/main", END))
    crawled(path, [HOME], client, scope="domain")
    found = lives(path)
    assert [found[COPY], found[f"{ELSEWHERE}/main"], found[END]] == ["redirected", "fetched", "fetched"]
    assert [url for url, _ in client.log].count(f"{ELSEWHERE}/main") == 1


@pytest.mark.parametrize("answer", [Fetched("", 500), Fetched("", error="timeout-connect")])
def test_an_origin_that_gives_no_rules_does_not_hold_up_the_page(path: Path, answer: Fetched) -> None:
    client = two_hosts(page(f"{ELSEWHERE}/main", END), robots=answer)
    crawled(path, [HOME], client, scope="domain")
    found = lives(path)
    assert [found[HOME], found[COPY], found[END]] == ["fetched", "fetched", "fetched"]
    assert f"{ELSEWHERE}/main" not in [url for url, _ in client.log]


def test_a_disallowed_canonical_page_of_another_host_is_not_asked_for(path: Path) -> None:
    rules = Fetched(f"{ELSEWHERE}/robots.txt", 200, body=b"User-agent: *\nDisallow: /")
    client = two_hosts(page(f"{ELSEWHERE}/main", END), robots=rules)
    crawled(path, [HOME], client, scope="domain")
    assert [lives(path).get(url) for url in (COPY, END, f"{ELSEWHERE}/main")] == ["fetched", "fetched", None]
    assert f"{ELSEWHERE}/main" not in [url for url, _ in client.log]


def test_copies_stand_for_their_canonical_page_which_is_asked_for_once(path: Path) -> None:
    client = sites(main=page(MAIN, END))
    crawled(path, [HOME], client)
    found = lives(path)
    assert [found[url] for url in (COPY, OTHER, MAIN)] == ["redirected", "redirected", "fetched"]
    assert [url for url, _ in client.log].count(COPY) == [url for url, _ in client.log].count(MAIN) == 1
    with sv.open(path) as survey:
        assert survey.url_status(COPY).target == MAIN
        asked = [survey.url(one) for one in survey.journal.asked().tolist()]
        assert sorted(asked) == sorted(url for url, _ in client.log if url != f"{SITE}/robots.txt")


def test_the_order_of_fetching_does_not_change_the_ranking(path: Path) -> None:
    shares = []
    for name, links in (("first", (MAIN, COPY, OTHER)), ("last", (COPY, OTHER, MAIN))):
        client = sites(home=page(HOME, *links), main=page(MAIN, END))
        crawled(path.with_name(name), [HOME], client)
        with sv.open(path.with_name(name)) as survey:
            shares.append({row["url"]: pytest.approx(row["share"]) for row in survey.top(10)})
    assert shares[0] == shares[1]


def test_a_canonical_page_that_redirects_is_followed_to_its_end(path: Path) -> None:
    crawled(path, [HOME], sites(main=Fetched(MAIN, 301, target=END)))
    found = lives(path)
    assert [found[url] for url in (COPY, OTHER, MAIN, END)] == ["redirected", "redirected", "redirected", "fetched"]


def test_of_pages_that_name_each_other_one_is_read(path: Path) -> None:
    client = sites(main=page(MAIN, END, extra='<link rel=canonical href="/copy">'))
    crawled(path, [HOME], client)
    found = lives(path)
    assert sorted(found[url] for url in (COPY, OTHER, MAIN)) == ["fetched", "redirected", "redirected"]


def test_what_is_guaranteed_never_falls(path: Path) -> None:
    """Many copies name a page that a weak link leads to, and that leads away from them."""
    copies, away = [f"{SITE}/{number}" for number in range(40)], [f"{SITE}/x", f"{SITE}/y"]
    answers = {url: page(url, HOME, extra=NAMES_MAIN) for url in copies}
    more = {HOME: page(HOME, *copies), MAIN: page(MAIN, *away), away[0]: page(away[0], away[1])}
    client = Sites(Time(), {**answers, **more, away[1]: page(away[1], away[0])})
    lowest = 0.0
    for pages in (1, 2, 3, 4, 1_000):
        crawled(path, [HOME], client, until=f"pages={pages}")
        with sv.open(path) as survey:
            assert survey.coverage.at_least >= lowest
            lowest = survey.coverage.at_least
    assert lives(path)[MAIN] == "fetched"


def test_a_canonical_page_without_another_link_is_read(path: Path) -> None:
    crawled(path, [HOME], sites(home=page(HOME, COPY), main=page(MAIN, END)))
    found = lives(path)
    assert [found[url] for url in (COPY, MAIN, END)] == ["redirected", "fetched", "fetched"]


def many(crawl_delay: int = 0, **answer: Any) -> Sites:
    """A hundred pages that name canonical pages of another host."""
    names = [f"{SITE}/p{number}" for number in range(100)]
    pages = {HOME: page(HOME, *names)}
    for number, name in enumerate(names):
        goal = f"{ELSEWHERE}/c{number}"
        pages[name] = page(name, extra=f'<link rel=canonical href="{goal}">')
        pages[goal] = Fetched(goal, **answer) if answer else page(goal)
    rules = Fetched(f"{ELSEWHERE}/robots.txt", 200, body=f"User-agent: *\nCrawl-delay: {crawl_delay}".encode())
    return Sites(Time(), {**pages, rules.url: rules})


@pytest.mark.parametrize("delay", [0.0, 1.0])
@pytest.mark.parametrize("until", ["requests=10", "requests=30", "pages=5"])
@pytest.mark.parametrize("status", [200, 404])
def test_limits_hold_whatever_pages_name_as_canonical(path: Path, until: str, delay: float, status: int) -> None:
    client = many(**({} if status == 200 else {"status": status}))
    crawled(path, [HOME], client, until=until, delay=delay, scope="domain")
    name, _, limit = until.partition("=")
    with sv.open(path) as survey:
        counted = {"requests": len(client.log), "pages": survey.pages_fetched}
        assert counted[name] <= int(limit)
        assert survey.journal.cost()[2] == len(client.log)


@pytest.mark.parametrize("status", [403, 404, 429, 503])
@pytest.mark.slow
def test_a_host_of_canonical_pages_is_left_alone_as_it_asks(path: Path, status: int) -> None:
    client = many(status=status, retry_after=600.0)
    crawled(path, [HOME], client, scope="domain")
    times = [at for url, at in client.log if url.startswith(f"{ELSEWHERE}/c")]
    assert all(later - before >= 600 for before, later in pairwise(times))
    assert list(lives(path).values()).count("fetched") == 101


def test_a_slow_host_of_canonical_pages_holds_up_no_page_for_long(path: Path) -> None:
    client = many(crawl_delay=60)
    crawled(path, [HOME], client, scope="domain")
    assert client.time.now - 1e9 < 1_000
    assert set(lives(path).values()) == {"fetched", "redirected"}


@attack("canonical links in a circle", area="redirects", must_hold="one of the pages is read, the others are aliases")
def test_of_pages_in_a_circle_one_is_read(path: Path) -> None:
    names = [f"{SITE}/{letter}" for letter in "abcde"]
    pages = {
        name: page(name, extra=f'<link rel=canonical href="{names[(at + 1) % 5]}">') for at, name in enumerate(names)
    }
    crawled(path, [HOME], Sites(Time(), {HOME: page(HOME, *names), **pages}))
    found = lives(path)
    assert sorted(found[name] for name in names) == ["fetched"] + ["redirected"] * 4


@attack("canonical links and redirects in a circle, and a page beside it", area="redirects", must_hold="the crawl ends")
def test_a_circle_made_by_a_redirect_ends(path: Path) -> None:
    a, b, n, r, z = (f"{SITE}/{letter}" for letter in "abnrz")

    def naming(url: str, goal: str) -> Fetched:
        return page(url, extra=f'<link rel=canonical href="{goal}">')

    pages = {HOME: page(HOME, a, b, z), a: naming(a, r), b: naming(b, a), z: page(z, n), n: naming(n, a)}
    client = Sites(Time(), {**pages, r: Fetched(r, 301, target=b)})
    assert crawled(path, [HOME], client, delay=0.0) == "exhausted"
    found = lives(path)
    assert "fetched" in (found[a], found[b])
    assert "waiting" not in found.values()


class Busiest(Sites):
    """Counts how many requests are under way at once."""

    now = most = 0

    async def fetch(self, request: FetchRequest) -> Fetched:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            return await super().fetch(request)
        finally:
            self.now -= 1


@pytest.mark.parametrize("concurrency", [1, 2, 4])
def test_canonical_pages_count_for_the_concurrency(path: Path, concurrency: int) -> None:
    client = Busiest(Time(), many().answers)
    crawled(path, [HOME], client, scope="domain", delay=0.0, concurrency=concurrency)
    assert client.most == concurrency
    assert [url for url, _ in client.log].count(f"{ELSEWHERE}/c0") == 1


def test_a_limit_of_depth_holds(path: Path) -> None:
    pages = {HOME: page(HOME, f"{SITE}/x0")}
    for number in range(20):
        x, y = f"{SITE}/x{number}", f"{SITE}/y{number}"
        pages |= {x: page(x, extra=f'<link rel=canonical href="{y}">'), y: page(y, f"{SITE}/x{number + 1}")}
    client = Sites(Time(), pages)
    crawled(path, [HOME], client, depth=1)
    assert [url for url, _ in client.log] == [f"{SITE}/robots.txt", HOME, f"{SITE}/x0"]


@pytest.mark.parametrize("redirects", [False, True])
def test_a_budget_of_a_domain_holds(path: Path, redirects: bool) -> None:
    client = many()
    if redirects:  # of which the first is known, when the others name it
        goals = {f"{SITE}/p{number}": f"{ELSEWHERE}/c{number}" for number in range(100)}
        client.answers = {**client.answers, **{url: Fetched(url, 301, target=goal) for url, goal in goals.items()}}
        names = "".join(f'<a href="{url}">' for url in goals)
        copies = [f"{SITE}/q{number}" for number in range(100)]
        naming = {url: page(url, extra=f'<link rel=canonical href="{SITE}/p{at}">') for at, url in enumerate(copies)}
        client.answers = {**client.answers, **naming, HOME: page(HOME, *copies, extra=names)}
    crawled(path, [HOME], client, scope="domain", budget="10")
    assert len([url for url, _ in client.log if not url.endswith("/robots.txt")]) == 10


def test_a_page_at_the_end_of_redirects_is_fetched_once(path: Path) -> None:
    pages = {HOME: page(HOME, COPY), COPY: page(COPY, extra=NAMES_MAIN), MAIN: Fetched(MAIN, 301, target=END)}
    client = Sites(Time(), {**pages, END: page(END)})
    crawled(path, [HOME], client, delay=0.0)
    assert sorted(url for url, _ in client.log) == sorted([f"{SITE}/robots.txt", HOME, COPY, MAIN, END])
    assert [lives(path)[url] for url in (COPY, MAIN, END)] == ["redirected", "redirected", "fetched"]
