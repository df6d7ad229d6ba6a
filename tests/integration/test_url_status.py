"""The status of every URL in a survey, with the reason and the robots.txt line that decides it."""

from __future__ import annotations

from pathlib import Path

import pytest

import surveyor as sv
from console import CommandResult
from example_site import HOME, site, survey_of
from fake_web import page
from surveyor.fetch.http import Fetched
from surveyor.report.survey_tables import url_status_lines


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return survey_of(tmp_path_factory.mktemp("status") / "a.survey")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("/news/", [f"{HOME}news/", "fetched, ", "HTTP 200, “News”", "from links on"]),
        (f"{HOME}news/", ["fetched, "]),
        ("a.example/news/", ["fetched, "]),
        ("/private/x", ["blocked: robots.txt disallows it", "robots.txt: line 6, Disallow: /private/"]),
        ("/gone", ["gone, http 404"]),
        ("/old", [f"redirected to {HOME}library/, HTTP redirect (301)"]),
        ("/paper.pdf", ["out of scope: file type pdf"]),
        ("/login", ["out of scope: only nofollow links lead here"]),
        ("https://b.example/", ["out of scope: other host"]),
    ],
)
def test_every_known_url_has_a_reason(
    survey: Path, text: str, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    done = CommandResult(capsys, "explain", str(survey), text)
    assert done.code == 0, done.err
    for line in lines:
        assert line in done.out
    result = CommandResult(capsys, "explain", str(survey), text, "--json").json()
    assert result["url_status"]["url"].startswith("https://")
    assert ("explanation" in result) == (result["url_status"]["kind"] not in ("redirected", "out of scope"))


def test_a_queued_page_has_a_queue_position(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = survey_of(tmp_path / "a.survey", until="pages=1", concurrency=1)
    with sv.open(path) as opened:
        unfetched = {row["url"]: opened.url_status(row["url"]) for row in opened.top(100) if not row["fetched"]}
        coverage = opened.coverage
    assert len(unfetched) >= 3
    assert {url.kind for url in unfetched.values()} <= {"queued", "blocked"}
    queued = [url for url in unfetched.values() if url.queue_position]
    assert sum(url.mass for url in unfetched.values()) == pytest.approx(coverage.waiting + coverage.blocked)
    assert {url.queue_length for url in queued} == {len([f for f in unfetched.values() if f.kind == "queued"])}
    assert min(url.queue_position for url in queued) == 1
    done = CommandResult(capsys, "explain", str(path), "/news/")
    assert "queued, " in done.out
    assert "in the queue" in done.out


def test_a_failed_page_reports_its_failures(tmp_path: Path) -> None:
    answers = {**site(), f"{HOME}news/": Fetched(f"{HOME}news/", 503)}
    path = survey_of(tmp_path / "a.survey", answers, until="pages=3", backoff=1000.0)
    with sv.open(path) as opened:
        url = opened.url_status("/news/")
    assert (url.kind, url.failures, url.last_error) == ("queued", 1, "http 503")
    assert url_status_lines(url)[1] == "1 failed request, last error: http 503"


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        (f"{HOME}new/", "is unknown: no fetched page links to it", f"similar URLs: {HOME}news/"),
        ("https://c.example/x", "it would be out of scope: other host", "similar URLs: https://"),
        ("/newz/", "no known page has the path /newz/", "similar paths: /news/"),
        ("http://", "PAGE must be a URL or a path, got 'http://'", "https://example.org/"),
    ],
)
def test_unknown_urls_are_rejected_with_similar_ones(
    survey: Path, text: str, problem: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = CommandResult(capsys, "explain", str(survey), text)
    assert (done.code, done.out) == (2, "")
    assert problem in done.err
    assert hint in done.err


def test_an_ambiguous_path_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = "https://b.example/"
    answers = {**site(), other: page(other, "news/"), f"{other}news/": page(f"{other}news/")}
    path = survey_of(tmp_path / "a.survey", answers, scope="any")
    done = CommandResult(capsys, "explain", str(path), "/news/")
    assert done.code == 2
    assert "2 known pages have the path /news/" in done.err
    assert f"{HOME}news/, {other}news/" in done.err
