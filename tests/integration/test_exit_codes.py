"""One rule for exit codes: 0 if any rule of the goal was met, 3 if the command ended for another reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import surveyor as sv
from console import LINKS, CommandResult
from loopback import QUICK, SMALL, linked, served
from surveyor.stopping import as_rule

pytestmark = pytest.mark.usefixtures("nowhere")
FORBIDDEN = "User-agent: *\nDisallow: /"
PYTHON: dict[str, Any] = {"contact": "me@example.org", "allow": ["127.0.0.1"], "delay": 0, "backoff": 0.02}


@pytest.mark.parametrize(
    ("until", "code", "ending"),
    [
        ("pages=2", 0, "reached"),
        ("coverage=0.5", 0, "reached"),
        ("coverage=0.999,pages=2", 0, "reached"),
        ("pages=2,coverage=0.999", 0, "reached"),
        ("coverage=0.1&pages=2", 0, "reached"),
        ("pages=100", 3, "exhausted"),
        ("coverage=0.5&pages=100", 3, "exhausted"),
        ("minutes=60", 3, "exhausted"),
        ("bytes=1GB", 3, "exhausted"),
    ],
)
@pytest.mark.slow
def test_crawls(capsys: pytest.CaptureFixture[str], until: str, code: int, ending: str) -> None:
    with served(SMALL) as url:
        done = CommandResult(capsys, "crawl", url, *QUICK, "--until", until, "--json", "--out", "a.survey")
        result = done.json()
        assert (done.code, result["ending"], result["reached"]) == (code, ending, code == 0)
        with sv.crawl(url, until=until, out="b.survey", **PYTHON) as survey:
            assert (survey.ending, survey.goal_reached) == (ending, code == 0)
    with sv.open("a.survey") as survey:
        assert survey.goal_reached == (code == 0)


def test_a_site_that_was_fetched_whole_but_cannot_be_certified_ends_with_3(capsys: pytest.CaptureFixture[str]) -> None:
    pages = {"/": linked("/a", "/private/1"), "/a": linked("/"), "/robots.txt": "User-agent: *\nDisallow: /private"}
    with served(pages) as url:
        done = CommandResult(capsys, "crawl", url, *QUICK, "--until", "coverage=0.99")
        assert done.code == 3
        assert "99 %" in done.out
        assert "2 pages" in done.out
        again = CommandResult(
            capsys, "crawl", url, *QUICK, "--until", "coverage=0.99"
        )  # nothing is left, and it says so again
        assert again.code == 3


def test_other_commands(capsys: pytest.CaptureFixture[str]) -> None:
    Path("links.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in LINKS))
    table = [
        (["rank", "links.tsv"], 0),
        (["rank", "links.tsv", "--max-sweeps", "1", "--tolerance", "1e-12"], 3),
        (["top", "links.tsv", "--max-sweeps", "1", "--tolerance", "1e-12"], 3),
        (["explain", "links.tsv", "home", "--max-sweeps", "1", "--tolerance", "1e-12"], 3),
        (["simulate", "links.tsv", "--seed", "home", "--until", "pages=2"], 0),
        (["simulate", "links.tsv", "--seed", "home", "--until", "coverage=0.999,pages=2"], 0),
        (["simulate", "links.tsv", "--seed", "home", "--until", "pages=100"], 3),
        (["sample", "links.tsv", "--topic", "everything", "--until", "steps=200"], 0),
        (["domains", "links.tsv"], 0),
        (["rank", "nothing.tsv"], 2),
        (["status", "nothing.survey"], 4),
    ]
    found = [(words, CommandResult(capsys, *words).code) for words, _ in table]
    assert found == table


@pytest.mark.parametrize(
    ("pages", "why"),
    [
        ({**SMALL, "/robots.txt": FORBIDDEN}, "robots"),
        ({"/": 500}, "500"),
        ({"/": 404}, "404"),
        ({**SMALL, "/robots.txt": 500}, "robots.txt could not be fetched"),
    ],
)
@pytest.mark.slow
def test_nothing_fetched(capsys: pytest.CaptureFixture[str], pages: Any, why: str) -> None:
    with served(pages) as url:
        with pytest.raises(sv.NothingFetched, match=why):
            sv.crawl(url, until="pages=2", out="a.survey", **PYTHON)
        with sv.open("a.survey") as survey:  # what was learnt is kept
            assert (survey.visits > 0, survey.pages_fetched) == (True, 0)
        with pytest.raises(sv.NothingFetched, match=why):
            sv.crawl(url, until="pages=2", out="a.survey", **PYTHON)
        resumed = CommandResult(capsys, "crawl", "a.survey", *QUICK)
        assert (resumed.code, why in resumed.err, Path("a.survey").is_dir()) == (5, True, True)
        assert ("--again" in resumed.err) == ("http 404" not in resumed.err)  # a page that is gone is not blocked
        assert CommandResult(capsys, "crawl", url, *QUICK, "--out", "b.survey").code == 5
        assert not Path("b.survey").exists()


@pytest.mark.parametrize(
    ("path", "until", "why"),
    [
        ("/to-gone", "pages=2", "/gone: http 404 .*/to-gone redirects there"),
        ("/to-private", "pages=2", "/private: robots.*/to-private redirects there"),
        ("/hop0", "pages=2", "redirects"),
        ("/out", "pages=2", "/out: redirects to https://elsewhere.example/, out of the scope"),
        ("/to-a", "requests=2", "/a: it was not fetched before the crawl ended .*/to-a redirects there"),
    ],
)
def test_nothing_fetched_names_the_page_at_the_end_of_redirects(path: str, until: str, why: str) -> None:
    moves = {"/to-gone": "/gone", "/to-private": "/private", "/to-a": "/a", "/out": "https://elsewhere.example/"}
    moves |= {f"/hop{number}": f"/hop{number + 1}" for number in range(40)}
    robots = {"/robots.txt": "User-agent: *\nDisallow: /private", "/a": linked("/"), "/private": linked("/")}
    with served({**robots, "/gone": 404}, moves=moves) as url:
        with pytest.raises(sv.NothingFetched, match=why) as caught:
            sv.crawl(url.rstrip("/") + path, until=until, out="a.survey", scope="host", **PYTHON)
        assert "ry again later" not in caught.value.hint or "404" in why


def test_a_name_that_does_not_exist() -> None:
    with pytest.raises(sv.NothingFetched, match="no such host"):
        sv.crawl("http://nowhere.invalid/", until="pages=2", out="a.survey", **PYTHON)


def test_a_survey_that_holds_pages_has_fetched_something() -> None:
    pages = dict(SMALL)
    with served(pages) as url:
        sv.crawl(url, until="pages=2", out="a.survey", **PYTHON).close()
        pages.update(dict.fromkeys(pages, 500))
        with sv.crawl(url, until="pages=4", out="a.survey", **PYTHON) as survey:
            assert (survey.pages_fetched, survey.goal_reached) == (2, False)


@pytest.mark.parametrize("wrong", [5, 0.9, 0, True, ["pages=5"], b"pages=5"])
def test_until_is_a_rule(wrong: Any) -> None:
    with pytest.raises(sv.UsageError, match=r"until must be a stopping rule or its text, got .*") as caught:
        sv.crawl("http://127.0.0.1:9/", until=wrong, **PYTHON)
    assert 'sv.Pages(5) or "pages=5"' in caught.value.hint
    assert not list(Path().iterdir())
    assert as_rule("pages=5") == sv.Pages(5)


@pytest.mark.parametrize("until", ["pages=1", "pages=3", "pages=100", "coverage=0.5", "coverage=0.9999"])
def test_the_curve_ends_at_the_headline(until: str) -> None:
    pages: dict[str, str | int] = {
        **SMALL,
        "/": linked("/a", "/gone", "/b", "/broken"),
        "/c": linked("/", "/gone", "/private/1", "/late"),
        "/broken": 500,
        "/robots.txt": "User-agent: *\nDisallow: /private",
    }
    with served(pages) as url, sv.crawl(url, until=until, out="a.survey", **PYTHON) as survey:
        history = survey.history()
        assert (history.at_least[-1], history.at_most[-1]) == (survey.coverage.at_least, survey.coverage.at_most)
        assert (history.at_least <= history.at_most).all()
        assert history.pages.size == survey.pages_fetched
