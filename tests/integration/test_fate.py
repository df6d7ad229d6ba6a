"""What became of a URL, and which line of robots.txt decides: an answer for every URL there is."""

from __future__ import annotations

from pathlib import Path

import pytest

import surveyor as sv
from console import Said
from pretend import page
from small_sites import HOME, site, survey_of
from surveyor.fetch.http import Fetched
from surveyor.report.fates import fate_lines


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return survey_of(tmp_path_factory.mktemp("fate") / "a.survey")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("/news/", [f"{HOME}news/", "read, ", "status 200, “News”", "came over a link from"]),
        (f"{HOME}news/", ["read, "]),
        ("a.example/news/", ["read, "]),
        ("/private/x", ["not read: robots.txt disallows it", "robots.txt: line 6, Disallow: /private/"]),
        ("/gone", ["gone, http 404"]),
        ("/old", [f"stands for {HOME}library/, a redirect (301)"]),
        ("/paper.pdf", ["out of scope: file type pdf"]),
        ("/login", ["out of scope: only nofollow links lead here"]),
        ("https://b.example/", ["out of scope: other host"]),
    ],
)
def test_every_known_url_has_a_reason(
    survey: Path, text: str, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    said = Said(capsys, "explain", str(survey), text)
    assert said.code == 0, said.err
    for line in lines:
        assert line in said.out
    told = Said(capsys, "explain", str(survey), text, "--json").json()
    assert told["fate"]["url"].startswith("https://")
    assert ("explanation" in told) == (told["fate"]["kind"] not in ("moved", "out of scope"))


def test_a_page_that_waits_has_a_place_in_the_queue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = survey_of(tmp_path / "a.survey", until="pages=1", concurrency=1)
    with sv.open(path) as opened:
        waiting = {row["url"]: opened.fate(row["url"]) for row in opened.top(100) if not row["read"]}
        coverage = opened.coverage
    assert len(waiting) >= 3
    assert {fate.kind for fate in waiting.values()} <= {"waiting", "blocked"}
    queued = [fate for fate in waiting.values() if fate.queue]
    assert sum(fate.mass for fate in waiting.values()) == pytest.approx(coverage.waiting + coverage.blocked)
    assert {fate.queued for fate in queued} == {len([f for f in waiting.values() if f.kind == "waiting"])}
    assert min(fate.queue for fate in queued) == 1
    said = Said(capsys, "explain", str(path), "/news/")
    assert "not read yet, " in said.out
    assert "in the queue" in said.out


def test_a_page_that_failed_says_how_often(tmp_path: Path) -> None:
    answers = {**site(), f"{HOME}news/": Fetched(f"{HOME}news/", 503)}
    path = survey_of(tmp_path / "a.survey", answers, until="pages=3", pause=1000.0)
    with sv.open(path) as opened:
        fate = opened.fate("/news/")
    assert (fate.kind, fate.tries, fate.trouble) == ("waiting", 1, "http 503")
    assert fate_lines(fate)[1] == "tried 1 time, the last time: http 503"


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        (f"{HOME}new/", "is not known: no page that was read links to it", f"near: {HOME}news/"),
        ("https://c.example/x", "it would be out of scope: other host", "near: https://"),
        ("/newz/", "no page has the path /newz/", "near: /news/"),
        ("http://", "is not the URL of a page", "https://example.org/"),
    ],
)
def test_what_nobody_has_heard_of(
    survey: Path, text: str, problem: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = Said(capsys, "explain", str(survey), text)
    assert (said.code, said.out) == (2, "")
    assert problem in said.err
    assert f"hint: {hint}" in said.err or hint in said.err


def test_a_path_of_two_pages_is_asked_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = "https://b.example/"
    answers = {**site(), other: page(other, "news/"), f"{other}news/": page(f"{other}news/")}
    path = survey_of(tmp_path / "a.survey", answers, scope="any")
    said = Said(capsys, "explain", str(path), "/news/")
    assert said.code == 2
    assert "/news/ is the path of 2 pages" in said.err
    assert f"{HOME}news/, {other}news/" in said.err
