"""Rows of a journal that hold values of other types, under valid checksums and digests: they are damage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attack import attack
from foreign import ask

from console import CommandResult
from surveyor.errors import SurveyError
from surveyor.outcome import Event, Outcome, RobotsFile, Visit
from surveyor.store.directory import SurveyFolder
from surveyor.store.manifest import Manifest

ORIGIN = "https://a.example"
READS: dict[str, Callable[[SurveyFolder], Any]] = {
    "visits": lambda folder: list(folder.journal.visits()),
    "pages": lambda folder: list(folder.journal.pages()),
    "outcomes": lambda folder: list(folder.journal.outcomes()),
    "urls": lambda folder: list(folder.journal.urls()),
    "events": lambda folder: list(folder.journal.events()),
    "robots": lambda folder: folder.journal.robots(ORIGIN),
    "answered": lambda folder: list(folder.journal.answered()),
    "state_events": lambda folder: folder.journal.state_events(),
    "asked": lambda folder: folder.journal.asked(),
    "blocked": lambda folder: list(folder.journal.blocked()),
    "read_for": lambda folder: folder.journal.read_for("x"),
    "cost": lambda folder: folder.journal.cost(),
    "hash_key": lambda folder: folder.journal.hash_key,
}
WRONG = {
    "robots: status": "UPDATE robots SET status = 'abc'",
    "robots: body": "UPDATE robots SET body = 12",
    "robots: no body": "UPDATE robots SET body = NULL",
    "robots: expires_at": "UPDATE robots SET expires_at = 'x'",
    "robots: without end": "UPDATE robots SET expires_at = 9e999",
    "robots: fetched_at": "UPDATE robots SET fetched_at = NULL",
    "robots: origin": "UPDATE robots SET origin = x'00ff'",
    "urls: bytes": "UPDATE urls SET url = x'68747470' WHERE id = 1",
    "visits: page": "UPDATE visits SET page = 'x' WHERE visit = 2",
    "visits: reason": "UPDATE visits SET reason = x'00' WHERE visit = 2",
    "visits: status": "UPDATE visits SET status = 'x' WHERE visit = 1",
    "visits: status beyond 32 bits": "UPDATE visits SET status = 9223372036854775807 WHERE visit = 1",
    "visits: fetched_at": "UPDATE visits SET fetched_at = 'x' WHERE visit = 1",
    "visits: fetched_at without end": "UPDATE visits SET fetched_at = 9e999 WHERE visit = 1",
    "visits: seconds": "UPDATE visits SET seconds = x'00' WHERE visit = 1",
    "visits: hash": "UPDATE visits SET hash = 'text' WHERE visit = 1",
    "visits: title": "UPDATE visits SET title = x'00' WHERE visit = 1",
    "visits: size": "UPDATE visits SET size = 'much' WHERE visit = 1",
    "visits: size below 0": "UPDATE visits SET size = -1 WHERE visit = 1",
    "visits: warc_file": "UPDATE visits SET warc_file = x'00', warc_offset = 0, warc_length = 1 WHERE visit = 1",
    "visits: warc_offset": "UPDATE visits SET warc_file = '00000.warc.gz', warc_offset = 'x' WHERE visit = 1",
    "events: visit": "UPDATE events SET visit = 'x'",
    "events: at": "UPDATE events SET at = NULL",
    "events: at 1e300": "UPDATE events SET at = 1e300",
    "events: kind": "UPDATE events SET kind = x'00'",
    "events: detail": "UPDATE events SET detail = '[[]]'",
    "events: why": """UPDATE events SET kind = 'backoff', detail = '{"host": "a", "until": 1, "why": [1]}'""",
    "meta: hash key": "UPDATE meta SET value = x'00' WHERE key = 'hash_key'",
    "meta: name": "UPDATE meta SET value = x'00' WHERE key = 'journal'",
    "meta: version": "UPDATE meta SET value = printf('%.5000c', '9') WHERE key = 'schema'",
    "meta: edition": "UPDATE meta SET value = printf('%.5000c', '9') WHERE key = 'edition'",
    "meta: archive": "UPDATE meta SET value = x'00' WHERE key = 'archived'",
}


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    folder = tmp_path / "a.survey"
    robots = [RobotsFile(ORIGIN, 1.0, 2.0, 200, b"User-agent: *")]
    with SurveyFolder.create(folder, Manifest(seeds=(f"{ORIGIN}/",), rng=1)) as made:
        first = Visit(0, "fetched", status=200, fetched_at=1e9, seconds=0.5, hash=b"x", title="t", size=9)
        made.commit([first], [f"{ORIGIN}/"], robots=robots, events=[Event("settled", 1e9)])
        made.commit([Outcome(1, "blocked", reason="x")], [f"{ORIGIN}/b"])
        made.journal._connection.execute("INSERT INTO meta VALUES ('archived', '00000.warc.gz 0')")
    return folder


def read_all(survey: Path) -> list[SurveyError]:
    """Read all of a journal with each reader; return the errors."""
    errors = []
    try:
        with SurveyFolder.open(survey, write=False) as folder:
            for read in READS.values():
                try:
                    read(folder)
                except SurveyError as error:
                    errors.append(error)
    except SurveyError as error:
        errors.append(error)
    return errors


def test_an_honest_journal_is_read(survey: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert read_all(survey) == []
    for command in ("status", "report"):  # with the defaults of settings that its manifest leaves out
        assert CommandResult(capsys, command, str(survey)).code == 0


@attack(
    "values of another type or out of range in each table of a journal, with valid checksums and digests",
    area="surveys from elsewhere",
    must_hold="each reader of the journal reports damage in one sentence (exit code 4), or does not need the value",
)
@pytest.mark.parametrize("case", WRONG)
def test_values_of_another_type_are_damage(survey: Path, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    crafted(survey, WRONG[case])
    errors = read_all(survey)
    assert errors
    for error in errors:
        assert (error.exit_code, str(survey) in error.problem, "\n" in error.problem) == (4, True, False)
    for command in (["status"], ["report"], ["doctor"], ["sql", "SELECT count(*) FROM events, visits"]):
        result = CommandResult(capsys, command[0], str(survey), *command[1:])
        assert result.code in (0, 4), (command, result.err)


def crafted(survey: Path, statement: str) -> None:
    if "'edition'" in statement:  # no head can hold such an edition, so the journal keeps the one that it has
        with SurveyFolder.open(survey) as folder:
            folder.journal._connection.execute(statement)
    else:
        ask(survey, statement)


@attack(
    "a folder whose name is a shell command",
    area="output",
    must_hold="commands that messages suggest quote it",
)
def test_folders_in_suggested_commands_are_quoted(survey: Path) -> None:
    folder = survey.rename(survey.with_name("a; touch b"))
    with SurveyFolder.open(folder), pytest.raises(SurveyError) as caught:
        SurveyFolder.open(folder)
    assert f"`surveyor status '{folder}'`" in caught.value.hint
    ask(folder, WRONG["robots: body"])
    with SurveyFolder.open(folder, write=False) as opened, pytest.raises(SurveyError) as caught:
        opened.journal.robots(ORIGIN)
    assert f"`surveyor doctor '{folder}'`" in caught.value.hint
