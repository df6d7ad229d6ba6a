"""Journals from elsewhere: what is not exactly the schema of a journal is refused before it is read."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from attack import attack

from surveyor.errors import SurveyError
from surveyor.outcome import Outcome
from surveyor.store import commits as heads
from surveyor.store.commits import Head, HeadFile, head_path, read_heads
from surveyor.store.database import connect
from surveyor.store.journal import Journal

STRANGE = {
    "trigger": "CREATE TRIGGER t AFTER INSERT ON visits BEGIN DELETE FROM urls; END",
    "view in place of a table": "DROP TABLE events; CREATE VIEW events AS SELECT 1 AS event, 2 AS visit",
    "table in place of a view": "DROP VIEW history; CREATE TABLE history(visit)",
    "virtual table": "CREATE VIRTUAL TABLE words USING fts5(text)",
    "another table": "CREATE TABLE more(x)",
    "another index": "CREATE INDEX more ON visits(kind)",
    "expression index": "CREATE INDEX more ON urls(upper(url))",
    "generated column": "ALTER TABLE robots ADD COLUMN more AS (length(body))",
    "default that is evaluated": "ALTER TABLE robots ADD COLUMN more DEFAULT (randomblob(1000000))",
    "check that is evaluated": "DROP TABLE robots; CREATE TABLE robots(origin TEXT PRIMARY KEY CHECK (length(origin)))",
    "no table of commits": "DROP TABLE commits",
    "another column": "ALTER TABLE urls ADD COLUMN more TEXT",
}


def made(path: Path) -> Path:
    with closing(Journal.open(path, create=True)) as journal:
        journal.commit([Outcome(0, "gone")], ["https://a.example/", "https://b.example/"])
    return path


@attack(
    "a journal whose schema holds triggers, views, virtual tables or expressions of someone else",
    area="surveys from elsewhere",
    must_hold="it is refused in one sentence, for reading and for writing",
)
@pytest.mark.parametrize("what", [*STRANGE])
def test_a_schema_that_is_not_ours(tmp_path: Path, what: str) -> None:
    path = made(tmp_path / "journal.sqlite")
    with closing(connect(path, write=True)) as connection:
        connection.execute(STRANGE[what]).fetchall()
    for write in (True, False):
        with pytest.raises(SurveyError, match="is damaged, or not the journal of a survey") as caught:
            Journal.open(path, write=write)
        assert caught.value.exit_code == 4


def no_head(path: Path, _: bytes) -> None:
    path.unlink()


def empty_head(path: Path, _: bytes) -> None:
    path.write_bytes(b"")


def both_slots(path: Path, data: bytes) -> None:
    path.write_bytes(bytes(byte ^ 1 for byte in data))


def linked(path: Path, data: bytes) -> None:
    (path.parent / "elsewhere").write_bytes(data)
    path.unlink()
    path.symlink_to(path.parent / "elsewhere")


def folder(path: Path, _: bytes) -> None:
    path.unlink()
    path.mkdir()


def pipe(path: Path, _: bytes) -> None:
    path.unlink()
    os.mkfifo(path)


def future(path: Path, _: bytes) -> None:
    with closing(HeadFile(path)) as file:
        file.write(Head(0, 7, bytes(16)), both=True)


def other_digest(path: Path, _: bytes) -> None:
    with closing(HeadFile(path)) as file:
        file.write(Head(0, 1, bytes(16)), both=True)


HEADS = (no_head, empty_head, both_slots, linked, folder, pipe, future, other_digest)


@attack(
    "a head that is missing, damaged, a link, a pipe, a folder, or of another journal",
    area="journal and archives",
    must_hold="it is reported as damage; a link is not followed, a pipe does not block",
)
@pytest.mark.parametrize("change", HEADS)
def test_a_head_that_is_not_right(tmp_path: Path, change: Callable[[Path, bytes], None]) -> None:
    path = made(tmp_path / "journal.sqlite")
    head = head_path(path)
    change(head, head.read_bytes())
    for write in (True, False):
        with pytest.raises(SurveyError, match="is damaged"):
            Journal.open(path, write=write)
    if change is linked:
        assert len((tmp_path / "elsewhere").read_bytes()) == 2 * heads.SLOT


def test_one_slot_is_enough(tmp_path: Path) -> None:
    """Either slot may be damaged: the other one, or the one before, is in the chain."""
    path = made(tmp_path / "journal.sqlite")
    with closing(Journal.open(path)) as journal:
        journal.commit([Outcome(1, "gone")])
    whole = head_path(path).read_bytes()
    for start in (0, heads.SLOT):
        head_path(path).write_bytes(whole[:start] + b"\xff" + whole[start + 1 :])
        assert len(read_heads(head_path(path))) == 1
        with closing(Journal.open(path, write=False)) as journal:
            assert journal.position == 2
    with closing(Journal.open(path)):
        assert len(read_heads(head_path(path))) == 2  # and whoever writes writes both


@attack(
    "a journal that another SQLite tool has written to",
    area="journal and archives",
    must_hold="the pages that it wrote are reported as damaged",
)
def test_pages_written_without_checksums(tmp_path: Path) -> None:
    path = made(tmp_path / "journal.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT url FROM urls WHERE id = 1").fetchall() == [("https://b.example/",)]
        connection.execute("UPDATE urls SET url = 'https://evil.example/' WHERE id = 1")
        connection.commit()
    with pytest.raises(SurveyError, match="the checksum of a page is wrong"):
        Journal.open(path)


BITS = range(8 * 100)


@attack(
    "each bit of the header of a journal file",
    area="journal and archives",
    must_hold="the journal is refused; also where the bit would turn off checksums",
    inputs=len(BITS),
)
def test_every_bit_of_the_header(tmp_path: Path) -> None:
    path = made(tmp_path / "journal.sqlite")
    whole = path.read_bytes()
    for bit in BITS:
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        with pytest.raises(SurveyError, match="is damaged"):
            Journal.open(path, write=False)
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
