"""Rows of a journal that hold values of other types, under valid checksums and digests: they are damage."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attack import attack
from foreign import ask

from console import CommandResult
from surveyor.crawler.coverage_walks import CoverageWalks
from surveyor.crawler.replay import derive
from surveyor.crawler.sampled_bound import MOST_EPOCHS
from surveyor.crawler.scout_walks import ScoutWalks
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
    "history": lambda folder: list(folder.journal.history()),
    "read_for": lambda folder: folder.journal.read_for("x"),
    "cost": lambda folder: folder.journal.cost(),
    "hash_key": lambda folder: folder.journal.hash_key,
}
EPOCH = {"secret": "key", "damping": 0.85, "captured": 0.3, "unsettled": 0.6, "pages": 1, "starts": [0]}
SCOUT = {"secret": "key", "damping": 0.85, "walks": 10_000, "sample": 3, "requests": 0}
EVENT = "UPDATE events SET kind = 'KIND', detail = 'DETAIL'"
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
    "visits: fetched_at before all time": "UPDATE visits SET fetched_at = -9e999 WHERE visit = 1",
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
    **{
        f"events: {kind}: {name}": EVENT.replace("KIND", kind).replace("DETAIL", json.dumps(detail))
        for kind, name, detail in (
            ("epoch", "a key of 65 characters", {**EPOCH, "secret": "x" * 65}),
            ("epoch", "a key that is no UTF-8", {**EPOCH, "secret": "\ud800"}),
            ("epoch", "all mass is captured", {**EPOCH, "captured": 1}),
            ("epoch", "captured below any mass", {**EPOCH, "captured": -1e308}),
            ("epoch", "unsettled below 0", {**EPOCH, "unsettled": -0.1}),
            ("epoch", "unsettled beyond any mass", {**EPOCH, "unsettled": 1e300}),
            ("epoch", "a hundred thousand starts", {**EPOCH, "starts": [0] * 100_000}),
            ("walks", "a count below 0", {"count": -1, "bounds": []}),
            ("walks", "a bound above 1", {"count": 1, "bounds": [[0.95, 1.5]]}),
            ("scout", "a key of 65 characters", {**SCOUT, "secret": "x" * 65}),
            ("scout", "too many walks", {**SCOUT, "walks": 10_001}),
        )
    },
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


@pytest.mark.parametrize("change", ["fetched_at = -9e999", "fetched_at = 1e300", "expires = 9e999"])
def test_a_time_that_is_none_is_damage_to_a_watch_too(survey: Path, change: str) -> None:
    crafted(survey, f"UPDATE visits SET {change} WHERE visit = 1")  # noqa: S608
    with SurveyFolder.open(survey, write=False) as folder, pytest.raises(SurveyError, match="time is not one between"):
        list(folder.journal.history())


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


def note(survey: Path, *events: tuple[str, dict[str, Any]]) -> None:
    """Add events to a journal."""
    with SurveyFolder.open(survey) as folder:
        for kind, detail in events:
            folder.note(kind, **detail)


@attack(
    "a small journal with thousands of scouts and epochs of random walks",
    area="surveys from elsewhere",
    must_hold="only walks that still count are made: the last scout, and at most 40 epochs",
    inputs=2,
)
@pytest.mark.parametrize("late", [False, True])
def test_a_small_journal_cannot_ask_for_endless_walks(
    survey: Path, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = {"walks": 0, "scouts": 0}

    def counted(name: str, original: Callable[..., None]) -> Callable[..., None]:
        def call(self: Any, *args: Any) -> None:
            moved[name] += 1
            original(self, *args)

        return call

    monkeypatch.setattr(CoverageWalks, "_move", counted("walks", CoverageWalks._move))
    monkeypatch.setattr(ScoutWalks, "begin", counted("scouts", ScoutWalks.begin))
    epoch = {**EPOCH, "starts": [0] * 20}
    walks = {"count": 1 << 50, "bounds": [[0.95, 0.5]]}
    note(survey, *[("scout", {**SCOUT, "walks": 10})] * 50, *[("epoch", epoch), ("walks", walks)] * (MOST_EPOCHS + 20))
    if late:
        note(survey, ("scope_changed", {}))
    with SurveyFolder.open(survey, write=False) as folder:
        found = derive(folder).crawl.walks
    assert moved == {"walks": 0 if late else 20 * MOST_EPOCHS, "scouts": 1}
    assert (found.is_full, found.used, len(found.epochs)) == (True, MOST_EPOCHS * late, MOST_EPOCHS * (not late))
    assert (found.at_least(0.95) >= 0.5) is not late
