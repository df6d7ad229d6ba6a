"""`surveyor watch` and `sv.watch` over HTTP on loopback: changes, JSON lines, signals, the lock, wrong options."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import surveyor as sv
from console import CommandResult
from loopback import QUICK, SMALL, linked, served
from surveyor.config import Settings
from surveyor.store.directory import SurveyFolder
from surveyor.survey.watch import open_to_watch

pytestmark = pytest.mark.usefixtures("nowhere")
OFTEN = ("--rate", "1000000/day")
FEW = ("--contact", "me@example.org", "--allow", "127.0.0.1", "--delay", "0")


@pytest.fixture
def pages() -> dict[str, str | int]:
    return dict(SMALL)


@pytest.fixture
def survey(pages: dict[str, str | int], capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    """A survey of a site that is being served."""
    with served(pages) as site:
        assert CommandResult(capsys, "crawl", site, *QUICK, "--out", "s", "--until", "pages=100").code == 3
        yield "s"


def watched(capsys: pytest.CaptureFixture[str], survey: str, *words: str) -> CommandResult:
    time.sleep(0.3)
    return CommandResult(capsys, "watch", survey, "--once", *OFTEN, *FEW, *words)


@pytest.mark.slow
def test_changes_are_printed_and_listed(
    survey: str, pages: dict[str, str | int], capsys: pytest.CaptureFixture[str]
) -> None:
    pages["/a"] = linked("/", "/new", text="A different story about other things entirely. " * 8)
    pages["/new"] = linked("/")
    texts = ""
    for _ in range(20):
        done = watched(capsys, survey)
        assert done.code == 0, done.err
        texts += done.out
        if re.search(r"changed +http.*/a\n", texts) and re.search(r"new +http.*/new\n", texts):
            break
    assert re.search(r"(changed|links only) +http.*/a\n", texts), texts
    assert re.search(r"new +http.*/new\n", texts)
    assert "Nothing more is due" in texts
    feed = (Path(survey) / "changes.atom").read_text("utf-8")
    assert 2 <= feed.count("<entry>") <= 4
    assert "/new" in feed
    assert not re.search(r"<title>new: [^<]*</title>\s*<updated>[^<]*</updated>\s*<link href=\"[^\"]*/(a|b|c|)\"", feed)
    assert "fresh (forecast)" in texts


@pytest.mark.slow
def test_json_lines(survey: str, pages: dict[str, str | int], capsys: pytest.CaptureFixture[str]) -> None:
    pages["/b"] = linked("/", text="Nothing is as it was before in this text. " * 8)
    found = []
    for _ in range(20):
        done = watched(capsys, survey, "--json", "--quiet")
        assert done.code == 0
        found += [json.loads(line) for line in done.out.splitlines()]
        if any(line["event"] == "perhaps changed" for line in found):
            break
    assert {line["schema"] for line in found} == {3}
    changed = next(line for line in found if line["event"] == "perhaps changed")  # the crawl hashed no main text
    assert changed["url"].endswith("/b")
    assert found[-1]["event"] == "end"
    assert found[-1]["ending"] == "done"


@pytest.mark.slow
def test_a_signal_stops_it_and_the_same_command_resumes(survey: str) -> None:
    words = [sys.executable, "-m", "surveyor", "watch", survey, *OFTEN, *FEW]
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        process = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ)
        assert process.stderr is not None
        line = ""
        while "requests per day" not in line:
            line = process.stderr.readline()
            assert line, "it ended"
        time.sleep(0.5)
        process.send_signal(number)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == code
        assert "the same command resumes" in out


def test_a_survey_that_is_written_to(survey: str, capsys: pytest.CaptureFixture[str]) -> None:
    with SurveyFolder.open(Path(survey)):
        done = CommandResult(capsys, "watch", survey, "--once", *FEW)
    assert done.code == 4
    assert "another surveyor process" in done.err


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("nothing.survey",), 4, "nothing.survey does not exist"),
        (("s", "--rate", "often"), 2, "rate must be 1 to 10,000,000 requests per day, got 'often'"),
        (("s", "--rate", "0/day"), 2, "rate must be"),
        (("s", "--rate", "0.5/week"), 2, "got '0.5/week'"),
        (("s", "--audit-days", "-1"), 2, "audit-days"),
        (("s", "--audit-days", "nan"), 2, "audit_days must be at least 0, got nan"),
    ],
)
def test_wrong_arguments(words: tuple[str, ...], code: int, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = CommandResult(capsys, "watch", *words, *FEW)
    assert done.code == code
    assert text in done.err


@pytest.mark.slow
def test_from_python(survey: str, pages: dict[str, str | int]) -> None:
    pages["/c"] = 404
    found: list[str] = []
    result = sv.watch(survey, rate=1_000_000, once=True, backoff=0.02, delay=0.0, allow=["127.0.0.1"])
    for _ in range(20):
        time.sleep(0.3)
        result = sv.watch(
            survey, rate="1000000/day", once=True, report=lambda _watch, _outcome, finding: found.append(finding)
        )
        if "gone" in found:
            break
    assert "gone" in found
    assert result.ending == "done"
    assert result.unavailable == 1
    assert 0 < result.fresh <= 1
    assert "done" in repr(result)


def test_main_texts_are_hashed_unless_that_is_switched_off(survey: str) -> None:
    off = Settings(main_text=False), {"main_text": "option"}
    for (chosen, origins), expected in (((Settings(), {}), True), (off, False), ((Settings(), {}), False)):
        folder, settings = open_to_watch(Path(survey), chosen, origins)
        with folder:
            assert settings.main_text is expected
            assert folder.manifest.setting("main_text") is expected


def test_a_survey_without_pages(capsys: pytest.CaptureFixture[str]) -> None:
    with served({"/": 500, "/robots.txt": 404}) as site, pytest.raises(sv.NothingFetched):
        sv.crawl(site, out="empty", contact="me@example.org", backoff=0.01, delay=0.0)
    done = CommandResult(capsys, "watch", "empty", "--once", *FEW)
    assert done.code == 2
    assert "has no fetched page" in done.err
