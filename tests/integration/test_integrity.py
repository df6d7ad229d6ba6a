"""The integrity of a journal: the chain of commits, its head, what is reported of damage, and resuming before it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
from contextlib import closing, nullcontext
from pathlib import Path

import numpy as np
import pytest

from console import CommandResult
from surveyor.errors import SurveyError
from surveyor.graph.csr import Graph
from surveyor.outcome import Event, Exchange, Outcome, RobotsFile, Visit
from surveyor.store import commits, layout, recovery
from surveyor.store import commits as heads
from surveyor.store.commits import read_heads
from surveyor.store.database import connect
from surveyor.store.directory import SurveyFolder
from surveyor.store.journal import Journal
from surveyor.store.manifest import Manifest
from surveyor.store.recovery import examine

COMMITS = 40


def commit(folder: SurveyFolder, number: int) -> None:
    exchange = Exchange(f"https://a.example/{number}", b"GET", b"HTTP/1.1 200 OK\r\n\r\n", b"body" * number, 1.5, "")
    visit = Visit(
        number,
        "fetched",
        np.arange(number, dtype=np.int32),
        title=f"page {number} " * 20,
        fetched_at=1.5,
        seconds=1,
        exchange=exchange,
    )
    robots = [RobotsFile(f"https://{number % 3}.example", 1.0, 2.0, 200, b"Disallow: /x")]
    url = f"https://a.example/{number}"
    folder.commit([visit], [url], robots=robots, events=[Event("noted", 1, {"n": number})])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A survey of several commits."""
    path = tmp_path / "a.survey"
    with SurveyFolder.create(path, Manifest(seeds=("https://a.example/0",), rng=1)) as folder:
        for number in range(COMMITS):
            commit(folder, number)
    return path


def damage(path: Path, of: bytes) -> None:
    """Change a bit of some text in a file."""
    data = bytearray(path.read_bytes())
    at = data.index(of)
    data[at] ^= 1
    path.write_bytes(data)


def rows(path: Path) -> list[object]:
    with closing(Journal.open(path / "journal.sqlite", write=False)) as journal:
        return [list(journal.urls()), list(journal.visits()), list(journal.events("noted"))]


def test_digests_can_be_computed_by_anyone(path: Path) -> None:
    """As documented: the rows of each commit as JSON after the digest before, with nothing but SQLite."""
    with closing(sqlite3.connect(path / "journal.sqlite")) as raw:
        before, reached = bytes(16), (-1, 0, 0)
        for _, visit, url, event, digest in raw.execute("SELECT * FROM commits").fetchall():
            state, ends = hashlib.blake2b(before, digest_size=16), (url - 1, visit, event)
            tables = (("urls", "id", "*"), ("visits", "visit", f"visit, {commits.VISIT}"), ("events", "event", "*"))
            for (table, key, columns), first, last in zip(tables, reached, ends, strict=True):
                query = f"SELECT {columns} FROM {table} WHERE {key} > ? AND {key} <= ? ORDER BY {key}"  # noqa: S608
                for row in raw.execute(query, (first, last)):
                    line = json.dumps(row, default=bytes.hex, separators=(",", ":"))
                    state.update(line.encode() + b",")
            assert state.digest() == digest
            before, reached = digest, ends
    with closing(Journal.open(path / "journal.sqlite", write=False)) as journal:
        assert journal.last_commit == commits.Commit(COMMITS, COMMITS, COMMITS, COMMITS, before)
        journal.check()


def test_rows_that_change_under_right_checksums_are_found(path: Path) -> None:
    """An older version of a page of the same file has a valid checksum: the commit chain detects it."""
    for number, found_by_open in ((COMMITS, True), (1, False)):
        other = path.with_name(f"{number}.survey")
        shutil.copytree(path, other)
        with closing(connect(other / "journal.sqlite", write=True)) as connection:
            connection.execute("UPDATE visits SET title = 'x' WHERE visit = ?", (number,))
        chain_tail = commits.TAIL
        try:
            commits.TAIL = 50
            if found_by_open:
                with pytest.raises(SurveyError, match=f"commit {number} is damaged: its digest differs"):
                    SurveyFolder.open(other)
            with (
                pytest.raises(SurveyError, match=f"commit {number} is damaged: its digest differs"),
                closing(Journal.open(other / "journal.sqlite", write=False)) as journal,
            ):
                journal.check()
        finally:
            commits.TAIL = chain_tail
        assert recovery.extent(other / "journal.sqlite").last_good.number == number - 1


def test_rows_that_are_missing_are_found(path: Path) -> None:
    with closing(connect(path / "journal.sqlite", write=True)) as connection:
        connection.execute("DELETE FROM visits WHERE visit = 5")
        connection.execute("DELETE FROM visits WHERE visit = 6")
    chain_tail = commits.TAIL
    try:
        commits.TAIL = 50
        with closing(Journal.open(path / "journal.sqlite", write=False)) as journal:
            with pytest.raises(SurveyError, match="rows with visit after 0 are missing"):
                list(journal.outcomes())
            with pytest.raises(SurveyError, match="rows after 4 are missing from visits"):
                journal.check()
    finally:
        commits.TAIL = chain_tail


def test_killed_between_commit_and_head(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal that is ahead of its head is whole."""
    with SurveyFolder.open(path) as folder, monkeypatch.context() as patch:
        patch.setattr(heads.HeadFile, "write", lambda *_, **__: None)
        commit(folder, COMMITS)
    assert max(head.number for head in read_heads(path / "journal.head")) == COMMITS
    with closing(Journal.open(path / "journal.sqlite", write=False)) as journal:
        assert journal.position == COMMITS + 1
    with SurveyFolder.open(path) as folder:
        commit(folder, COMMITS + 1)
        folder.journal.check()


def test_a_head_that_the_disk_does_not_take_is_left_behind(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SurveyFolder.open(path) as folder:
        with monkeypatch.context() as patch:

            def full(*_: object) -> int:
                raise OSError(28, "No space left on device")

            patch.setattr("surveyor.store.commits.os.write", full)
            folder.journal.commit([Outcome(0, "gone")])
        folder.journal.commit([Outcome(0, "gone")])
        assert folder.journal.position == COMMITS + 2
    assert max(head.number for head in read_heads(path / "journal.head")) == COMMITS + 2


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_deletion_that_is_killed(path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """Whether the process dies just before or after the transaction is committed, one slot of the head is right."""

    class Killed(Exception):
        pass

    def kill(*_: object, **__: object) -> None:
        raise Killed

    with SurveyFolder.open(path) as folder, monkeypatch.context() as patch:
        announce = heads.HeadFile.announce
        if moment == "before":

            def announced(self: heads.HeadFile, *args: object) -> None:
                announce(self, *args)  # type: ignore[arg-type]
                raise Killed

            patch.setattr(heads.HeadFile, "announce", announced)
        else:
            patch.setattr(Journal, "_reached", kill)
        with pytest.raises(Killed):
            folder.journal.delete_host("a.example", [1, 2])
    with SurveyFolder.open(path) as folder:
        folder.journal.check()
        assert folder.journal.identity.endswith(".0" if moment == "before" else ".1")
        assert [visit.reason for visit in folder.journal.visits()][1] == ("" if moment == "before" else "deleted")
        folder.journal.delete_host("a.example", [1, 2])
        folder.journal.check()
        commit(folder, COMMITS)
    with SurveyFolder.open(path) as folder:
        folder.journal.check()


def test_a_log_from_before_a_deletion_is_noticed(path: Path) -> None:
    """An older copy of the journal, under the new head: what was deleted does not come back unnoticed."""
    old = (path / "journal.sqlite").read_bytes()
    with SurveyFolder.open(path) as folder:
        folder.delete_host("a.example")
    (path / "journal.sqlite").write_bytes(old)
    with pytest.raises(SurveyError, match=r"journal\.head, which says where it ends, is missing or damaged"):
        SurveyFolder.open(path)


def test_resuming_from_the_last_good_commit(path: Path) -> None:
    before = rows(path)
    damage(path / "journal.sqlite", b"page 30 page 30")
    found = {check.name: check for check in examine(path)}
    assert found["journal.sqlite"].fine is False
    assert "last good commit 30 (visit 30); 10 of 40 commits are lost" in found["journal.sqlite"].value
    damaged_bytes = (path / "journal.sqlite").read_bytes()
    archive = (path / "warc" / "00000.warc.gz").read_bytes()
    with pytest.raises(SurveyError, match="the checksum of a page is wrong") as caught:
        rows(path)
    assert "--from-last-good" in caught.value.hint
    (path / "checkpoint").mkdir()
    with SurveyFolder.open(path, from_last_good=True) as folder:
        assert (folder.journal.position, folder.journal.url_count) == (30, 30)
        assert [event.detail["last_good"] for event in folder.journal.events("recovery")] == [30]
        assert folder.journal.robots("https://0.example") is not None
        assert folder.journal.identity.endswith(".1")
        assert not (path / "checkpoint").exists()
        for visit in folder.journal.visits():
            assert visit.warc is not None
            assert folder.archive.read(visit.warc).body == b"body" * visit.page
        for number in range(30, COMMITS):
            commit(folder, number)
    assert rows(path)[0] == before[0]
    assert (path / "journal.sqlite.damaged").read_bytes() == damaged_bytes
    tail = (path / "warc" / "00000.warc.gz.after-last-good").read_bytes()
    assert archive.endswith(tail)
    assert all(check.fine for check in examine(path))


def test_from_last_good_leaves_a_sound_journal_alone(path: Path) -> None:
    before = rows(path)
    with SurveyFolder.open(path, from_last_good=True) as folder:
        assert list(folder.journal.events("recovery")) == []
    assert rows(path) == before
    assert not list(path.glob("*.damaged*"))


def test_damage_outside_the_commits_loses_none(path: Path) -> None:
    """Pages of robots.txt files, or of the index: the rows are in the chain."""
    before = rows(path)
    damage(path / "journal.sqlite", b"Disallow: /x")
    assert "no commit is lost" in next(check.value for check in examine(path) if check.name == "journal.sqlite")
    with SurveyFolder.open(path, from_last_good=True) as folder:
        assert list(folder.journal.answered()) == []  # they are asked for again
    assert rows(path) == before


@pytest.mark.parametrize("steps", range(5))
def test_a_rescue_that_is_interrupted_is_finished(path: Path, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """After each step on the disk: the next one who opens the survey for writing finishes it."""
    damage(path / "journal.sqlite", b"page 30 page 30")
    left = steps

    class Killed(Exception):
        pass

    def counted(real: object) -> object:
        def step(*args: object, **kwargs: object) -> object:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return real(*args, **kwargs)  # type: ignore[operator]

        return step

    with monkeypatch.context() as patch:
        finish = recovery.finish
        calls = iter([lambda _path: None, finish, finish])

        def begin(journal: Path) -> None:
            next(calls)(journal)

        patch.setattr(recovery, "finish", begin)
        with patch.context() as inner:
            inner.setattr(Path, "unlink", counted(Path.unlink))
            inner.setattr(Path, "replace", counted(Path.replace))
            with pytest.raises(Killed) if steps < 4 else nullcontext():
                found = recovery.rescue(path / "journal.sqlite")
                assert found.last_good.number == 30
    with SurveyFolder.open(path) as folder:
        assert folder.journal.position == 30
        folder.journal.check()
    assert not (path / layout.RESCUED).exists()


def test_a_file_that_is_no_journal_is_not_rescued(path: Path) -> None:
    (path / "journal.sqlite").write_bytes(b"x" * 9000)
    with pytest.raises(SurveyError, match=r"no commit of .* can be read"):
        SurveyFolder.open(path, from_last_good=True)
    assert (path / "journal.sqlite").read_bytes() == b"x" * 9000


def make_other(path: Path, version: str, kind: str = "read", derived: str = "") -> None:
    """Turn a survey into one of another journal version, without damage."""
    with closing(connect(path / "journal.sqlite", write=True)) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (version,))
        connection.execute("UPDATE visits SET kind = ?", (kind,))
        if derived:
            connection.execute("UPDATE events SET kind = ? WHERE event = 1", (derived,))
        last = commits.rechain(connection)
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    file = commits.HeadFile(path / "journal.head")
    file.write(commits.Head(0, last.number, last.digest), both=True)
    file.close()


def contents(path: Path) -> dict[str, bytes]:
    """Return all files of a survey but those that readers use too."""
    files = (file for file in path.rglob("*") if file.is_file() and file.name not in ("lock", "journal.sqlite-shm"))
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


CRAWL_AGAIN = "crawl again with --fresh, or into another folder with --out"


@pytest.mark.parametrize(
    ("version", "kind", "problem", "hint"),
    [
        ("3", "read", "is from an older surveyor (version 3; this one reads version 6)", CRAWL_AGAIN),
        ("3", "gone", "is from an older surveyor (version 3; this one reads version 6)", CRAWL_AGAIN),
        ("9", "fetched", "is from a newer surveyor (version 9; this one reads version 6)", "pip install --upgrade"),
        ("?", "moved", "is from an older surveyor (version unknown; this one reads version 6)", CRAWL_AGAIN),
        ("6", "read", "is from an older surveyor (version unknown; this one reads version 6)", CRAWL_AGAIN),
    ],
)
@pytest.mark.parametrize("place", [b"page 30 page 30", b"surveyor-journal", b"SVYHEAD1"])
def test_a_damaged_journal_of_another_version_is_not_recovered(
    path: Path, version: str, kind: str, problem: str, hint: str, place: bytes
) -> None:
    make_other(path, version, kind)
    if place == b"SVYHEAD1":
        (path / "journal.head").unlink()
    else:
        damage(path / "journal.sqlite", place)
    before = contents(path)
    for from_last_good in (True, False):
        with pytest.raises(SurveyError) as caught:
            SurveyFolder.open(path, from_last_good=from_last_good)
        assert caught.value.problem == f"{path / 'journal.sqlite'} {problem}"
        assert caught.value.hint.startswith(hint)
        assert caught.value.exit_code == 4
    with pytest.raises(SurveyError) as caught:
        recovery.rescue(path / "journal.sqlite")
    assert caught.value.problem.endswith(problem)
    checks = {check.name: check for check in examine(path)}
    assert checks["journal.sqlite"].value.endswith(problem)
    assert not any("--from-last-good" in check.advice for check in checks.values())
    assert contents(path) == before


def test_unknown_kinds_after_the_first_commits_are_found_before_a_file_is_replaced(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(connect(path / "journal.sqlite", write=True)) as connection:
        connection.execute("UPDATE visits SET kind = 'moved' WHERE visit = 20")
        commits.rechain(connection)
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    damage(path / "journal.sqlite", b"page 30 page 30")
    monkeypatch.setattr(commits, "TAIL", 10)
    before = contents(path)
    with pytest.raises(SurveyError, match="is from an older surveyor"):
        SurveyFolder.open(path, from_last_good=True)
    assert "is from an older surveyor" in next(c.value for c in examine(path) if c.name == "journal.sqlite")
    assert contents(path) == before


def test_a_damaged_journal_of_this_version_is_recovered_without_its_version(path: Path) -> None:
    make_other(path, "?", "fetched")
    damage(path / "journal.sqlite", b"page 30 page 30")
    with SurveyFolder.open(path, from_last_good=True) as folder:
        assert folder.journal.position == 30


@pytest.mark.parametrize("command", ["sample", "community"])
def test_the_hint_for_an_older_derived_survey_names_its_command(path: Path, command: str) -> None:
    make_other(path, "3", derived=command)
    with pytest.raises(SurveyError, match="is from an older surveyor") as caught:
        SurveyFolder.open(path, write=False)
    assert caught.value.hint == f"run `surveyor {command}` again, into another folder with --out"


@pytest.fixture
def where(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(path.parent)
    return path


def test_doctor_of_a_survey(where: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = CommandResult(capsys, "doctor", "a.survey")
    assert done.code == 0
    assert "40 commits, 40 visits and 40 URLs verified" in done.out
    assert "40 records verified" in done.out
    damage(where / "warc" / "00000.warc.gz", (where / "warc" / "00000.warc.gz").read_bytes()[2000:2020])
    done = CommandResult(capsys, "doctor", "a.survey")
    assert done.code == 4
    assert "1 damaged records: 00000.warc.gz at" in done.out
    damage(where / "journal.sqlite", b"page 30 page 30")
    result = CommandResult(capsys, "doctor", "a.survey", "--json")
    assert result.code == 4
    found = {one["name"]: one for one in result.json()["checks"]}
    assert "last good commit 30" in found["journal.sqlite"]["value"]
    assert found["survey.toml"]["fine"] is True
    done = CommandResult(capsys, "top", "a.survey")
    assert done.code == 4
    assert "surveyor doctor a.survey" in done.err
    head = where / "journal.head"
    head.write_bytes(b"\xff" + head.read_bytes()[1:])
    assert "one of two slots is damaged" in CommandResult(capsys, "doctor", "a.survey").out


def test_doctor_of_a_graph_and_of_nothing(where: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Graph.from_edges([("a", "b"), ("b", "c")]).save(where.parent / "g")
    assert "3 pages and 2 links verified" in CommandResult(capsys, "doctor", "g").out
    damage(where.parent / "g" / "graph.json", b'"provenance": {')
    done = CommandResult(capsys, "doctor", "g")
    assert done.code == 4
    assert "graph.json is damaged" in done.out
    os.mkdir("empty")  # noqa: PTH102
    assert CommandResult(capsys, "doctor", "empty").code == 2
    assert "neither a survey nor a graph" in CommandResult(capsys, "doctor", "empty").err


def test_a_graph_without_a_checksum_of_its_description_is_read(where: Path) -> None:
    """As earlier versions wrote it."""
    folder = where.parent / "g"
    Graph.from_edges([("a", "b")]).save(folder)
    about = json.loads((folder / "graph.json").read_text())
    del about["checksum"]
    (folder / "graph.json").write_text(json.dumps(about))
    assert Graph.open(folder).links == 1
    about["checksum"] = "00000000"
    (folder / "graph.json").write_text(json.dumps(about))
    with pytest.raises(Exception, match="its checksum differs"):
        Graph.open(folder)
