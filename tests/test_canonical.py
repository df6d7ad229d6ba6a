"""Canonical pages are believed once they were read: one that is gone or blocked removes no page from a survey."""

from __future__ import annotations

from pathlib import Path

import pytest

import surveyor as sv
from pretend import Sites, Time, crawled, page, rules
from surveyor.crawling.derived import derive
from surveyor.sources.http import Fetched
from surveyor.store.survey import Folder

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
    assert [found[url] for url in (HOME, COPY, OTHER, END)] == ["read"] * 4
    assert found[MAIN] == ("gone" if answer.status == 404 else "blocked")


def test_a_page_stays_though_its_canonical_page_is_disallowed(path: Path) -> None:
    client = sites(main=page(MAIN))
    client.answers = {**client.answers, **rules(SITE, "User-agent: *\nDisallow: /main")}
    crawled(path, [HOME], client)
    assert (lives(path)[COPY], lives(path)[MAIN]) == ("read", "blocked")


def test_copies_that_were_read_first_are_merged_when_their_canonical_page_is_read(path: Path) -> None:
    client = sites(main=page(MAIN, END))
    crawled(path, [HOME], client)
    found = lives(path)
    assert [found[url] for url in (COPY, OTHER, MAIN)] == ["moved", "moved", "read"]
    assert len([url for url, _ in client.log if url == COPY]) == 1
    with sv.open(path) as survey:
        assert survey.fate(COPY).target == MAIN
        kinds = [(visit.kind, visit.reason) for visit in survey.journal.visits() if survey.url(visit.page) == COPY]
        assert kinds[-1][0] == "moved"
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


def test_pages_that_await_their_canonical_page_survive_a_checkpoint(path: Path) -> None:
    client = sites(main=page(MAIN, END))
    crawled(path, [HOME], client, until="pages=3", concurrency=1)
    assert sorted(set(lives(path).values())) == ["read", "waiting"]
    with Folder.open(path, write=False) as folder:
        assert folder.load_checkpoint() is not None
        assert sum(len(pages) for pages in derive(folder).urls.awaited.values()) > 0
    crawled(path, [HOME], client)
    found = lives(path)
    assert [found[url] for url in (COPY, OTHER, MAIN)] == ["moved", "moved", "read"]


def test_a_canonical_page_that_redirects_is_followed_to_its_end(path: Path) -> None:
    crawled(path, [HOME], sites(main=Fetched(MAIN, 301, target=END)))
    found = lives(path)
    assert [found[url] for url in (COPY, OTHER, MAIN, END)] == ["moved", "moved", "moved", "read"]


def test_of_pages_that_name_each_other_one_is_read(path: Path) -> None:
    client = sites(main=page(MAIN, END, extra='<link rel=canonical href="/copy">'))
    crawled(path, [HOME], client)
    found = lives(path)
    assert sorted(found[url] for url in (COPY, OTHER, MAIN)) == ["moved", "moved", "read"]
