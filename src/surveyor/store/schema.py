"""Schema and version of a journal: its tables, and the check that a file has them.

A journal of another version is rejected, also a damaged one: recovery with the wrong schema would make a file that no
version reads.
"""
# ruff: noqa: S608  # the schema is made of constants only

from __future__ import annotations

import re
from contextlib import closing, suppress
from pathlib import Path
from typing import get_args

import apsw

from surveyor.errors import SurveyError
from surveyor.outcome import Kind
from surveyor.stopping import NO_LIMIT
from surveyor.store import cash, commits
from surveyor.store.commits import COMMITS, Commit
from surveyor.store.database import ask, check_layout, connect, has_checksums
from surveyor.store.disk import damaged
from surveyor.store.validation import whole_number

VERSION = 6
SCHEMA = f"""
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE urls(id INTEGER PRIMARY KEY, url TEXT NOT NULL);
CREATE TABLE visits(visit INTEGER PRIMARY KEY, page INTEGER NOT NULL, kind TEXT NOT NULL, reason TEXT, target INTEGER,
  status INTEGER, fetched_at REAL, seconds REAL, hash BLOB, etag TEXT, last_modified TEXT,
  links BLOB, out_of_scope BLOB, nofollow BLOB, title TEXT, language TEXT,
  warc_file TEXT, warc_offset INTEGER, warc_length INTEGER, size INTEGER, text_hash BLOB, expires REAL,
  contexts BLOB);
CREATE INDEX visits_of_page ON visits(page);
CREATE TABLE robots(origin TEXT PRIMARY KEY, fetched_at REAL, expires_at REAL, status INTEGER, body BLOB);
CREATE TABLE events(event INTEGER PRIMARY KEY, visit INTEGER NOT NULL, at REAL, kind TEXT NOT NULL, detail TEXT);
CREATE VIEW history AS SELECT visit, page, urls.url AS url, kind, reason, goal.url AS target, status,
  datetime(fetched_at, 'unixepoch') AS fetched_at, round(seconds, 3) AS seconds, size, title, language
  FROM visits LEFT JOIN urls ON urls.id = page LEFT JOIN urls AS goal ON goal.id = visits.target;
{COMMITS};
INSERT INTO meta VALUES
  ('format', 'surveyor-journal'), ('schema', '{VERSION}'), ('edition', '0'), ('journal', lower(hex(randomblob(16))))
"""
STATEMENTS = SCHEMA.split(";")
KINDS = frozenset(get_args(Kind))
DERIVED = ("community", "sample")  # commands that derive a survey, and the events that record it
UNREADABLE = (apsw.Error, SurveyError, TypeError, ValueError, OSError)  # raised because of damage
FIRST_EVENTS = 1000  # among which the event of a derived survey is


class OtherVersion(SurveyError):
    """A journal of another version, which can be neither read nor recovered."""

    def __init__(self, path: Path, version: int | None, command: str = "") -> None:
        """`version` is None if it is unknown; `command` is the command that derived the survey, if any."""
        age = "a newer" if version is not None and version > VERSION else "an older"
        again = f"run `surveyor {command}` again, " if command else "crawl again with --fresh, or "
        super().__init__(
            f"{path} is from {age} surveyor (version {version or 'unknown'}; this one reads version {VERSION})",
            hint="pip install --upgrade surveyor" if age == "a newer" else f"{again}into another folder with --out",
        )


def check_version(path: Path, connection: apsw.Connection) -> None:
    """Check that a journal has the current version and the schema of that version."""
    _check_schema(path, connection)
    marks = dict(ask(connection, "SELECT key, value FROM meta"))
    version = whole_number(marks.get("schema", ""))
    if marks.get("format") != "surveyor-journal" or not version:
        raise damaged(path, "it does not say its version")
    if version != VERSION:
        raise OtherVersion(path, version, _derived_by(connection))
    if not has_checksums(connection):
        raise damaged(path, "its header says that pages have no checksums")
    check_layout(path, connection, [*STATEMENTS, *cash.STATEMENTS] if cash.has_cash(connection) else STATEMENTS)


def other_version(path: Path, good: Commit | None = None) -> OtherVersion | None:
    """Return the error for a journal of another version, as far as a damaged one can be read; None if there is none.

    A version that can be read decides. In any case the kinds of the visits up to the commit `good` (default: those
    of the first commits) must be known, or of all visits if neither version nor commits can be read.
    """
    with suppress(*UNREADABLE), closing(connect(path, write=False, verify=False)) as connection:
        _check_schema(path, connection)
        version: int | None = None
        with suppress(*UNREADABLE):
            found = ask(connection, "SELECT value FROM meta WHERE key = 'schema'")
            version = (whole_number(found[0][0]) if found else None) or None
        if version is not None and version != VERSION:
            return OtherVersion(path, version, _derived_by(connection))
        last = _first_good(connection) if good is None else good
        end = last.visit if version or last.visit else NO_LIMIT
        kinds = {kind for (kind,) in ask(connection, "SELECT DISTINCT kind FROM visits WHERE visit <= ?", end)}
        if not kinds <= KINDS:
            return OtherVersion(path, None, _derived_by(connection))
    return None


def _first_good(connection: apsw.Connection) -> Commit:
    """Return the last good commit among the first ones, of at most `commits.TAIL` visits."""
    good = commits.EMPTY
    with suppress(*UNREADABLE):
        while (commit := commits.get(connection, good.number + 1)) is not None and commit.visit <= commits.TAIL:
            commits.verify(connection, good, commit)
            good = commit
    return good


def _derived_by(connection: apsw.Connection) -> str:
    """Return the command that derived a survey from other data: community or sample; empty if it was crawled."""
    with suppress(*UNREADABLE):
        first = {kind for (kind,) in ask(connection, "SELECT kind FROM events ORDER BY event LIMIT ?", FIRST_EVENTS)}
        return next((command for command in DERIVED if command in first), "")
    return ""


def _check_schema(path: Path, connection: apsw.Connection) -> None:
    """Refuse anything executable in an untrusted journal: triggers, virtual tables, views in place of tables."""
    for kind, name, statement in ask(connection, "SELECT type, name, sql FROM sqlite_schema"):
        virtual = kind == "table" and re.match(r"\s*CREATE\s+VIRTUAL\b", str(statement), re.IGNORECASE)
        if kind == "trigger" or virtual or (kind == "view" and name != "history"):
            raise damaged(path, f"it has a {'virtual table' if virtual else kind} {str(name)[:50]!r}")
