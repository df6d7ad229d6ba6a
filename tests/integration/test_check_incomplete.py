"""`surveyor check` and exports of texts where pages are incomplete, and when Ctrl-C ends them."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from console import CommandResult
from fake_web import Sites, Time, crawled, page
from loopback import QUICK, linked, served
from planted_site import HOME, good, words
from surveyor.check.audit import audit
from surveyor.check.rules import selected
from surveyor.crawler.seed_pages import SeedPages
from surveyor.errors import SurveyorError
from surveyor.fetch.bodies import decoded
from surveyor.outcome import Exchange
from surveyor.report.charts import treemap
from surveyor.report.check_text import importance
from surveyor.survey.overview import Folder
from surveyor.survey.survey import Survey

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n"
PACKED = HEAD + b"content-encoding: gzip\r\n\r\n"


def part(path: str, html: str, **fetched: Any) -> Any:
    """Return a response whose end did not arrive."""
    return page(HOME + path, extra=html, error="too-large", **fetched)


def partial_survey(path: Path) -> Path:
    """Crawl a site one of whose pages is received in part: without its heading, its text and the places in it."""
    whole = good("part", '<h2 id="far">x</h2>', text=words("part", 80))
    start = whole[: whole.index("<body")]
    menu = '<a href="/part#far">far</a> <a href="/part#nowhere">nowhere</a> <a href="/other#nowhere">other</a>'
    answers = {HOME: page(HOME, extra=good("", menu)), f"{HOME}part": part("part", f"{start}<body>few words")}
    answers |= {HOME + name: page(HOME + name, extra=good(name)) for name in ("other", "orphan")}
    seeds: Any = SeedPages.of({HOME: 1.0, f"{HOME}orphan": 0.0})
    crawled(path, seeds, Sites(Time(), answers), scope="host")
    return path


def test_what_the_missing_part_of_a_page_may_hold_is_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = partial_survey(tmp_path / "a.survey")
    with Survey(folder) as survey:
        found = audit(survey)
        (alone,) = [audit(survey, selected(["orphan"])).skipped]
    assert found.in_part == (f"{HOME}part",)
    faults = {(one.rule, one.url) for one in found.findings}
    assert ("missing-fragment", f"{HOME}other#nowhere") in faults
    assert not [one for one in found.findings if one.url.startswith(f"{HOME}part")]
    assert alone == {"orphan": "pages received in part: 1, which may hold links"}
    done = CommandResult(capsys, "check", str(folder), "--html", str(tmp_path / "a.html"))
    line = f"received in part: {HOME}part; what the missing part may hold is not judged"
    assert line in done.out.splitlines()
    assert "received in part" in (tmp_path / "a.html").read_text("utf-8")
    document = json.loads(CommandResult(capsys, "check", str(folder), "--json").out)
    assert (document["pages_archived_in_part"], document["archived_in_part"]) == (1, [f"{HOME}part"])
    assert document["interrupted"] is False


def test_texts_name_the_pages_that_were_received_in_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("resiliparse")
    folder = partial_survey(tmp_path / "a.survey")
    with Survey(folder) as survey:
        texts = survey.texts()
        cut = {one.url: one.cut for one in texts}
        assert survey.text("/part").cut
        assert not survey.text("/other").cut
    assert cut == {HOME: "", f"{HOME}part": "archived in part", f"{HOME}other": "", f"{HOME}orphan": ""}
    assert (texts.counts.cut, texts.counts.incomplete) == (1, 1)
    done = CommandResult(capsys, "export", str(folder), "--out", str(tmp_path / "a.md"))
    assert "1 archived in part" in done.out + done.err


@pytest.mark.parametrize(
    ("exchange", "cut"),
    [
        (Exchange(HOME, b"", HEAD + b"\r\n", b"<p>x", 0.0), ""),
        (Exchange(HOME, b"", HEAD + b"\r\n", b"<p>x", 0.0, truncated="time"), "time"),
        (Exchange(HOME, b"", PACKED, gzip.compress(b"<p>x"), 0.0), ""),
        (Exchange(HOME, b"", PACKED, gzip.compress(b"<p>x" * 99)[:-12], 0.0), "coding"),
        (Exchange(HOME, b"", PACKED, gzip.compress(b"<p>x")[:5] + b"\xff" * 30, 0.0), "coding"),
        (Exchange(HOME, b"", PACKED, gzip.compress(bytes(20_000_001)), 0.0), "length"),
    ],
)
def test_why_the_end_of_a_body_is_missing(exchange: Exchange, cut: str) -> None:
    assert decoded(exchange).cut == cut


def started(*words: str, folder: Path) -> subprocess.Popen[str]:
    """Start a command, and wait until its survey has pages."""
    done = subprocess.Popen(
        [sys.executable, "-m", "surveyor", *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    until = time.monotonic() + 60
    while time.monotonic() < until and done.poll() is None:
        with suppress(SurveyorError), Survey(folder) as survey:  # it may not be created yet
            if survey.pages_fetched >= 3:
                break
        time.sleep(0.05)
    return done


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_check_saves_and_resumes(
    number: int, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"/p{page}" for page in range(40)]
    pages = {"/": linked(*names, "/none", title="Home")} | {name: linked("/", title=name) for name in names}
    folder = tmp_path / "a.survey"
    with served(pages) as url:
        words = ["check", url, *QUICK, "--rule", "broken-link", "--external", "--out", str(folder)]
        slow = [*words, "--delay", "0.2"]
        check = started(*slow, folder=folder)
        check.send_signal(number)
        out, err = check.communicate(timeout=60)
        assert check.returncode == code, err
        assert "resume" in err
        assert "surveyor check" in err
        is_checked = number == signal.SIGINT  # what was fetched so far, without further requests
        assert ("The crawl was interrupted" in out) == is_checked
        with Survey(folder) as survey:
            saved = survey.pages_fetched
        assert 3 <= saved < 41
        done = CommandResult(capsys, *words)
        again = CommandResult(capsys, *words)
    assert done.code == 3, done.err
    assert f"{url}none\n" in done.out
    assert "on 41 pages" in done.out
    assert "No page was fetched now" not in done.err
    assert (again.code, again.out) == (done.code, done.out)
    assert "No page was fetched now" in again.err
    assert f"{url} {' '.join(words[2:])} --fresh" in again.err


def test_the_first_broken_links_are_printed_while_the_site_is_crawled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"/none-{page}" for page in range(12)]
    pages = {"/": linked("/a", "/moved", title="Home"), "/a": linked(*names, title="A")}
    with served(pages, moves={"/moved": "/gone"}) as url:
        done = CommandResult(capsys, "check", url, *QUICK, "--out", str(tmp_path / "a.survey"))
    lines = done.err.splitlines()
    assert f"{url.rstrip('/')} has no sitemap" in lines
    assert not [line for line in lines if line.startswith("!")]
    broken = [line for line in lines if line.startswith("broken: ")]
    assert len(broken) == 10
    assert f"broken: {url}gone (http 404), linked from {url}" in broken
    assert sum(f"(http 404), linked from {url}a" in line for line in broken) == 9
    assert "more broken links are listed at the end" in lines


def test_tiny_importances_are_below_a_limit() -> None:
    assert [importance(weight) for weight in (0.0, 1e-22, 2e-5, 0.0202)] == ["0 %", "< 0.001 %", "0.00200 %", "2.02 %"]


def test_a_site_of_only_javascript_is_not_free_of_faults(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app = "<!doctype html><title>App</title><body><div id=root></div><script src=app.js></script></body>"
    with served({"/": app}) as url:
        words = ["check", url, *QUICK, "--out", str(tmp_path / "a.survey")]
        done = CommandResult(capsys, *words)
        never = CommandResult(capsys, *words, "--fail-on", "never")
    assert (done.code, never.code) == (3, 0)
    assert "! Important pages are empty without JavaScript" in done.err


def test_small_boxes_of_a_treemap_have_no_clipped_label() -> None:
    folders = [Folder("/library/", 9, 0.9), Folder("/a-folder-with-a-long-name/", 2, 0.099), Folder("/x/", 1, 0.001)]
    html = treemap("Folders.", "Area.", folders)
    assert html.count("title=") == 3
    assert "<b>/library/</b>" in html
    assert "<b>/a-folder" not in html
    assert "<b>/x/" not in html
