"""Logging: levels, JSON lines, escaping of text from the web, and no output unless it is asked for."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attack import attack

import surveyor as sv
from console import CommandResult, process
from example_site import HOME, site, survey_of
from surveyor.crawler.session import log_results
from surveyor.fetch.http import Fetched
from surveyor.outcome import Event, FetchResults, Visit
from surveyor.store.logs import JsonFormatter, TextFormatter, handling

HOSTILE = "a\n2026-01-01 00:00:00 ERROR surveyor.fake: x\r\x1b[31m\u202e\u2028"


class Collected(logging.Handler):
    """Collects records."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def records_of(path: Path, answers: dict[str, Any], level: int = logging.DEBUG) -> list[logging.LogRecord]:
    """Crawl a site and return the log records."""
    collected = Collected()
    with handling(collected, level):
        survey_of(path, answers, until="pages=99")
    return collected.records


def test_fetch_results_and_commits_are_debug_records(tmp_path: Path) -> None:
    found = records_of(tmp_path / "a.survey", site())
    results = [record for record in found if "kind" in getattr(record, "fields", {})]
    fetched = {record.fields["url"]: record for record in results}  # type: ignore[attr-defined]
    assert {(record.name, record.levelno) for record in results} == {("surveyor.fetch", logging.DEBUG)}
    assert fetched[HOME].fields["status"] == 200  # type: ignore[attr-defined]
    assert fetched[HOME].getMessage() == f"fetched {HOME} (200)"
    assert fetched[f"{HOME}old"].fields["target"] == f"{HOME}library/"  # type: ignore[attr-defined]
    assert "blocked" in fetched[f"{HOME}private/x"].getMessage()
    messages = [record.getMessage() for record in found]
    assert any(message.startswith("commit 1: ") for message in messages)
    assert any(message.startswith("checkpoint saved") for message in messages)


def test_retries_are_info_and_unreachable_robots_are_warnings(tmp_path: Path) -> None:
    busy = {**site(), f"{HOME}news/": Fetched(f"{HOME}news/", 503)}
    found = records_of(tmp_path / "a.survey", busy, logging.INFO)
    retries = [record for record in found if "retry of" in record.getMessage()]
    assert {record.levelname for record in retries} == {"INFO"}
    assert {record.fields["url"] for record in retries} >= {f"{HOME}news/"}  # type: ignore[attr-defined]
    assert not [record for record in found if record.levelno < logging.INFO]
    closed = {**site(), f"{HOME}robots.txt": Fetched(f"{HOME}robots.txt", 503)}
    warnings = records_of(tmp_path / "b.survey", closed, logging.WARNING)
    assert any("robots.txt of https://a.example cannot be fetched" in record.getMessage() for record in warnings)
    assert {record.levelname for record in warnings} == {"WARNING"}


def test_nothing_is_printed_or_formatted_by_default(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def url_of(_: int) -> str:
        raise AssertionError("no URL is looked up unless a handler wants it")

    log_results(FetchResults([Visit(0, "fetched", status=200)]), url_of, 0.0)
    survey_of(tmp_path / "a.survey", {**site(), f"{HOME}robots.txt": Fetched(f"{HOME}robots.txt", 503)})
    assert capsys.readouterr() == ("", "")


def record(message: str, *values: Any, **extra: Any) -> logging.LogRecord:
    made = logging.LogRecord("surveyor.fetch", logging.INFO, "x.py", 1, message, values, None)
    made.__dict__.update(extra)
    return made


@attack(
    "line ends, escapes and bidirectional marks in URLs, titles and reasons (log records)",
    area="output",
    must_hold="one line for each record, without control characters",
)
def test_hostile_text_cannot_forge_records() -> None:
    text = TextFormatter().format(record("fetched %s", HOSTILE))
    assert text.isprintable()
    assert text.count("surveyor.fetch: fetched a\\n2026") == 1
    line = JsonFormatter().format(record("fetched %s", HOSTILE, fields={"title": HOSTILE}))
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["fields"]["title"] == HOSTILE
    try:
        raise ValueError(HOSTILE)
    except ValueError as error:
        failed = record("x", exc_info=(type(error), error, error.__traceback__))
    first, *rest = TextFormatter().format(failed).split("\n")
    assert first.endswith("surveyor.fetch: x")
    assert all(line.startswith("    ") and line.isprintable() for line in rest)
    assert "ERROR surveyor.fake" in json.loads(JsonFormatter().format(failed))["traceback"]


def test_a_server_cannot_forge_records() -> None:
    collected = Collected()
    event = Event("backoff", 1e9, {"host": "a.example", "until": 1e9 + 60, "why": HOSTILE})
    with handling(collected, logging.DEBUG):
        log_results(FetchResults([Visit(0, "blocked", reason=HOSTILE)], events=[event]), lambda _: HOME, 1e9)
    assert len(collected.records) == 2
    for one in collected.records:
        assert TextFormatter().format(one).isprintable()
        assert JsonFormatter().format(one).isprintable()


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return survey_of(tmp_path_factory.mktemp("logs") / "a.survey")


def test_verbose_prints_to_stderr(survey: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain, info, debug = (CommandResult(capsys, "status", str(survey), *flags) for flags in ([], ["-v"], ["-vv"]))
    assert plain.out == info.out == debug.out
    assert "DEBUG surveyor.crawler: checkpoint of visit" in debug.err
    assert "DEBUG" not in info.err
    both = CommandResult(capsys, "status", str(survey), "-v", "--quiet")
    assert (both.code, "--quiet and --verbose exclude each other" in both.err) == (2, True)


def test_log_json_has_all_levels(survey: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "log.jsonl"
    for _ in range(2):
        assert CommandResult(capsys, "status", str(survey), "--log-json", str(file)).code == 0
    lines = [json.loads(line) for line in file.read_text("ascii").splitlines()]
    assert len(lines) >= 2
    assert {*lines[0]} == {"time", "level", "logger", "message", "fields"}
    assert (lines[0]["level"], lines[0]["logger"]) == ("DEBUG", "surveyor.crawler")
    assert lines[0]["time"].endswith("+00:00")
    assert logging.getLogger("surveyor").level == logging.NOTSET
    wrong = CommandResult(capsys, "status", str(survey), "--log-json", str(tmp_path / "nowhere" / "log.jsonl"))
    assert wrong.code == 2
    assert "--log-json" in wrong.err
    assert "cannot be written: No such file" in wrong.err


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda path: path.mkdir(), "it is not a regular file"),
        (lambda path: os.mkfifo(path), "it is not a regular file"),
        (lambda path: path.symlink_to(path.with_name("target")), "it is not a regular file"),
        (lambda path: path.symlink_to("/dev/null"), "it is not a regular file"),
        (lambda path: (path.touch(), path.with_name("second").hardlink_to(path)), "it has several hard links"),
        (lambda path: path.write_text("SQLite format 3"), "it exists and is not a log of surveyor"),
        (lambda path: path.write_text('{"schema": 1}\n'), "it exists and is not a log of surveyor"),
        (lambda path: path.write_text("[" * 100_000), "it exists and is not a log of surveyor"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="pipes and links")
def test_log_json_takes_only_new_files_and_logs(
    make: Callable[[Path], object], problem: str, survey: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(file := tmp_path / "log.jsonl")
    before = file.read_bytes() if file.is_file() and not file.is_symlink() else None
    wrong = CommandResult(capsys, "status", str(survey), "--log-json", str(file))
    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.err.startswith(f"--log-json {file} cannot be written: {problem}\n  hint: ")
    assert before is None or file.read_bytes() == before
    assert not (tmp_path / "target").exists()


def test_log_json_rejects_files_of_a_survey(survey: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in filter(Path.is_file, survey.iterdir()):
        before = file.read_bytes()
        if before:
            assert CommandResult(capsys, "status", str(survey), "--log-json", str(file)).code == 2
            assert file.read_bytes() == before


@pytest.mark.parametrize("name", ["", "-"])
def test_log_json_needs_a_file_name(name: str, survey: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = CommandResult(capsys, "status", str(survey), "--log-json", name)
    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.err == f"--log-json must name a file, got {name!r}\n  hint: use --verbose to print records to stderr\n"
    assert not Path("-").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_log_json_on_a_full_disk_warns_once(
    survey: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = CommandResult(capsys, "status", str(survey))
    monkeypatch.setattr("surveyor.store.logs._open_regular", lambda *_: os.open("/dev/full", os.O_RDWR))
    file = tmp_path / "log.jsonl"
    full = CommandResult(capsys, "status", str(survey), "--log-json", str(file))
    assert (full.code, full.out) == (plain.code, plain.out)
    warning = f"! --log-json {file} cannot be written: No space left on device; the log ends here\n"
    assert full.err.count("--log-json") == full.err.count(warning) == 1
    assert "Traceback" not in full.err


def test_the_library_is_silent() -> None:
    code = "import logging, surveyor.store.logs; logging.getLogger('surveyor.fetch').warning('x')"
    assert process("-c", code).stderr == ""
    assert sv.__version__
