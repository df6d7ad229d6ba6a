"""The commit chain: each commit has a digest of its rows and of the previous digest.

    commits   number, visit, url, event, digest      last row of each table after the commit (0: none yet)

The digest of commit n is BLAKE2b-128 of the digest of commit n-1 and the rows that n added to `urls`, `visits` and
`events`, in this order, each row as JSON without spaces, followed by a comma, with bytes as hexadecimal text.
(`robots` and `meta` hold only the latest state; page checksums protect them.)
"""
# ruff: noqa: S608  # statements are built from table and column names only; values are always bound

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import apsw

from surveyor.store.database import ask

COMMITS = """CREATE TABLE commits(number INTEGER PRIMARY KEY, visit INTEGER NOT NULL, url INTEGER NOT NULL,
  event INTEGER NOT NULL, digest BLOB NOT NULL)"""
VISIT = (
    "page, kind, reason, target, links, status, fetched_at, seconds, hash, etag, last_modified, out_of_scope, "
    "nofollow, title, language, warc_file, warc_offset, warc_length, size"
)
TABLES = {  # table -> its key, all its columns
    "urls": ("id", "id, url"),
    "visits": ("visit", f"visit, {VISIT}"),
    "events": ("event", "event, visit, at, kind, detail"),
}
CHUNK = 1000  # rows read at a time
TAIL = 2000  # maximum number of rows verified when a journal is opened
START = bytes(16)
_encode = json.JSONEncoder(default=bytes.hex, separators=(",", ":")).encode
Rows = Iterable[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit, and the last row of each table after it."""

    number: int
    visit: int  # last visit number
    url: int  # last page id plus 1
    event: int  # last event number
    digest: bytes

    @property
    def ends(self) -> tuple[int, int, int]:
        """The last key of each table; rows of the next commit follow these."""
        return self.url - 1, self.visit, self.event


EMPTY = Commit(0, 0, 0, 0, START)


class BadCommit(ValueError):
    """Rows that differ from those that were committed."""

    def __init__(self, number: int, why: object) -> None:
        super().__init__(f"commit {number:,} is damaged: {why}")
        self.number = number


def digest(before: bytes, *tables: Rows) -> bytes:
    """Return the digest of a commit that has these rows."""
    state = hashlib.blake2b(before, digest_size=16)
    for rows in tables:
        rest = iter(rows)
        while some := list(islice(rest, CHUNK)):  # one call for many rows takes a fifth of the time
            state.update(_encode(some)[1:-1].encode() + b",")
    return state.digest()


def last(connection: apsw.Connection) -> Commit:
    """Return the last commit of a journal."""
    rows = ask(connection, "SELECT * FROM commits ORDER BY number DESC LIMIT 1")
    return _commit(rows[0]) if rows else EMPTY


def _commit(row: Sequence[Any]) -> Commit:
    if [type(value) for value in row] != [int, int, int, int, bytes]:
        raise BadCommit(row[0], "it is not recorded as numbers and a digest")
    return Commit(*row)


def get(connection: apsw.Connection, number: int) -> Commit | None:
    """Return a commit by its number."""
    rows = ask(connection, "SELECT * FROM commits WHERE number = ?", number)
    return EMPTY if number == 0 else _commit(rows[0]) if rows else None


def add(connection: apsw.Connection, commit: Commit) -> None:
    """Record a commit."""
    values = commit.number, commit.visit, commit.url, commit.event, commit.digest
    connection.execute("INSERT INTO commits VALUES (?, ?, ?, ?, ?)", values)


def commits(connection: apsw.Connection, after: int = 0) -> Iterator[Commit]:
    """Yield the commits after a number, in order."""
    while rows := ask(connection, f"SELECT * FROM commits WHERE number > ? ORDER BY number LIMIT {CHUNK}", after):
        yield from map(_commit, rows)
        after = rows[-1][0]


def rows_between(connection: apsw.Connection, table: str, after: int, end: int) -> Iterator[Sequence[Any]]:
    """Yield rows with keys in (after, end]; raise ValueError if one is missing."""
    key, columns = TABLES[table]
    while after < end:
        query = f"SELECT {columns} FROM {table} WHERE {key} > ? AND {key} <= ? ORDER BY {key} LIMIT {CHUNK}"
        rows = ask(connection, query, after, end)
        if not rows or rows[-1][0] - after != len(rows):
            raise ValueError(f"rows after {after:,} are missing from {table}")
        yield from rows
        after = rows[-1][0]


def rows_of(connection: apsw.Connection, before: Commit, commit: Commit) -> list[Rows]:
    """Return the rows of a commit, by table."""
    spans = zip(TABLES, before.ends, commit.ends, strict=True)
    return [rows_between(connection, table, after, end) for table, after, end in spans]


def verify(connection: apsw.Connection, before: Commit, commit: Commit) -> None:
    """Raise BadCommit unless a commit follows the previous one and its rows match its digest."""
    try:
        follows = commit.number == before.number + 1
        if not follows or any(end < start for start, end in zip(before.ends, commit.ends, strict=True)):
            raise ValueError("it does not follow the one before")
        if digest(before.digest, *rows_of(connection, before, commit)) != commit.digest:
            raise ValueError("its digest differs from that of its rows")
    except (ValueError, TypeError, OverflowError) as error:
        raise BadCommit(commit.number, error) from error


def verify_tail(connection: apsw.Connection) -> Commit:
    """Verify the last commits and that no rows follow them; return the last commit.

    Reads at most `TAIL` rows. Older rows are protected by page checksums and verified by `doctor`.
    """
    end = last(connection)
    found = [ask(connection, f"SELECT max({key}) FROM {table}")[0][0] for table, (key, _) in TABLES.items()]
    highest = tuple(empty if key is None else key for key, empty in zip(found, EMPTY.ends, strict=True))
    if highest != end.ends:
        raise BadCommit(end.number, f"rows end at {highest}, and the last commit at {end.ends}")
    commit, room = end, TAIL
    while commit.number > 0:
        before = get(connection, commit.number - 1)
        if before is None:
            raise BadCommit(commit.number - 1, "it is missing")
        room -= sum(last_key - first for first, last_key in zip(before.ends, commit.ends, strict=True)) + 1
        if room < 0:
            break
        verify(connection, before, commit)
        commit = before
    return end


def rechain(connection: apsw.Connection) -> Commit:
    """Recompute all digests after an intentional rewrite of history; return the last commit."""
    before = EMPTY
    for commit in commits(connection):
        sealed = digest(before.digest, *rows_of(connection, before, commit))
        ask(connection, "UPDATE commits SET digest = ? WHERE number = ?", sealed, commit.number)
        before = replace(commit, digest=sealed)
    return before
