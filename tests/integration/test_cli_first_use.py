"""First use of the command line: on a real terminal, with typing errors, unusual folders and interruptions."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from console import CommandResult, process
from surveyor.config import load
from surveyor.crawler.start import start
from surveyor.testing import EmbeddedWeb, WebSettings, running
from terminal import Terminal

pytestmark = pytest.mark.usefixtures("nowhere")

posix = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are of POSIX")


@pytest.fixture(scope="module")
def web() -> Iterator[EmbeddedWeb]:
    with running(WebSettings.plain(robots_rules=1.0)) as made:
        yield made


def crawl(web: EmbeddedWeb, *more: str) -> list[str]:
    return [web.seeds[0], "--proxy", f"http://127.0.0.1:{web.port}", "--backoff", "0.02", *more]


@pytest.fixture
def empty(tmp_path: Path) -> str:
    settings = load({"contact": "me@example.org"})[0]
    start(tmp_path / "empty.survey", ["http://www.example.org/"], settings, {})[0].close()
    return "empty.survey"


# On a terminal


@posix
@pytest.mark.slow
def test_a_first_run_asks_for_a_contact_until_it_is_one_and_shows_how_far_it_is(web: EmbeddedWeb) -> None:
    words = crawl(web, "--delay", "0.1", "--until", "coverage=0.6", "--out", "a.survey")
    with Terminal(*words) as first:
        first.wait_for("contact (e-mail or URL): ")
        first.type("someone\n")
        first.wait_for("contact (e-mail or URL): ", times=2)
        assert "contact must be an e-mail address or a URL, got 'someone'; for example me@example.org" in first.text
        first.type("ana@uni.example\n")
        first.wait_for("next (")
        assert first.finish() == 0
    host = web.seeds[0].removeprefix("http://").removesuffix("/")
    assert re.search(rf"{host}   rankmass, damping 0.85, rng \d+   robots.txt obeyed, delay 0.1 s\n", first.text)
    assert "\nsaving to a.survey     Ctrl-C is safe: run the same command to resume\n" in first.text
    bars = re.findall(
        r"^captured  ([█▉▊▋▌▍▎▏░ ]{16}) +([\d.]+) % at least, 100.0 % at most   goal 60 %$", first.text, re.M
    )
    assert bars, first.text
    assert all("░" in bar for bar, _ in bars)
    assert re.search(r"^waiting   .{16} [ \d.]{5} %  \d+ known pages?$", first.text, re.M)
    assert re.search(r"^\d+ pages?   [\d.]+/s   1 host   [\d.]+ k?B?(bytes)?   next \([\d.]+ %\)  /", first.text, re.M)
    table = first.text.index(f"page of {web.seeds[0].removesuffix('/')}")
    assert first.text.index("Goal reached (coverage 60 %): ") < table
    assert re.search(r"\n +100 +[\d.]+ % +\d+   / *\n", first.text[table:])
    with Terminal("config", "show") as kept:
        assert kept.finish() == 0
    assert "ana@uni.example" in kept.text


@posix
def test_leaving_the_question_ends_in_a_line_of_its_own(web: EmbeddedWeb, tmp_path: Path) -> None:
    with Terminal(*crawl(web)) as asked:
        asked.wait_for("contact (e-mail or URL): ")
        asked.type("\x04")  # Ctrl-D
        assert asked.finish() == 130
    assert asked.text.endswith("\nInterrupted.\n")
    assert not list(tmp_path.glob("*.survey"))


@posix
def test_interrupting_before_the_first_page_is_no_failure(web: EmbeddedWeb, tmp_path: Path) -> None:
    with Terminal(
        *crawl(web, "--contact", "me@example.org", "--out", "b.survey", "--max-delay", "9"), columns=120
    ) as early:
        early.wait_for("at most 1 page per second")
        early.interrupt()
        assert early.finish() == 130
    assert "Stopped. " in early.text
    assert "check the address" not in early.text
    assert "  resume " in early.text
    assert (tmp_path / "b.survey" / "survey.toml").is_file()


# Slips


def test_a_survey_that_is_not_there_is_not_taken_for_a_host(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for words in (["docs.survey"], ["docs.survey/"], ["top", "docs.survey"], ["explain", "docs.survey", "/"]):
        printed = CommandResult(capsys, *words)
        assert (printed.code, printed.out) == (4, "")
        assert f"{words[0 if len(words) == 1 else 1].rstrip('/')}" in printed.err
        assert "does not exist\n  hint: create one with `surveyor crawl URL --out FOLDER`" in printed.err
    assert not list(tmp_path.iterdir())


@posix
@pytest.mark.parametrize("stream", ["<&-", ">&-", "2>&-"])
def test_closed_streams_are_no_bug(stream: str) -> None:
    shell = f'"$0" -m surveyor crawl http://nowhere.invalid/ {stream}'
    done = process("-c", f"import os, sys; os.execvp('sh', ['sh', '-c', {shell!r}, sys.executable])")
    assert done.returncode == 2
    assert stream == "2>&-" or "contact is not set" in done.stderr


def test_what_is_not_utf8_gets_bars_of_ascii(empty: str) -> None:
    done = process("-m", "surveyor", empty, env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert done.returncode == 0
    assert f"waiting   {'#' * 28} 100.0 %" in done.stdout
    assert "\\u" not in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["status"], ["status", "--by-scope"], ["top"], ["top", "--blocked"], ["rank"], ["report"], ["sql"],
        ["config", "show"], ["top", "-n", str(10**30)],
    ],
)  # fmt: skip
def test_a_survey_without_pages_is_a_survey(words: list[str], empty: str, capsys: pytest.CaptureFixture[str]) -> None:
    verb, more = (words[:2], words[2:]) if words[0] == "config" else (words[:1], words[1:])
    printed = CommandResult(capsys, *verb, empty, *more)
    assert printed.code == 0
    assert printed.out
    result = CommandResult(capsys, *verb, empty, *more, "--json").json()
    assert result["command"] == " ".join(verb)
    slash = CommandResult(capsys, *verb, f"{empty}/", *more)
    assert slash.code == 0
