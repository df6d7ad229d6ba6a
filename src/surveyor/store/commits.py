"""The commits of a journal: a chain of digests, and its head in a separate file.

Each commit has a digest of its rows and of the previous digest.

    commits   number, visit, url, event, digest      last row of each table after the commit (0: none yet)

The digest of commit n is BLAKE2b-128 of the digest of commit n-1 and the rows that n added to `urls`, `visits` and
`events`, in this order, each row as JSON without spaces, followed by a comma, with bytes as hexadecimal text.
(`robots` and `meta` hold only the latest state; page checksums protect them.)

**Head.** SQLite silently drops the frames of a write-ahead log from the first bad one on, so missing commits can only
be detected from data stored elsewhere. `journal.head` has two slots of 64 bytes that are written alternately, after
each commit: magic, edition, commit number, digest of the chain, CRC-32.

    journal behind its head     commits are missing: damage
    journal ahead of its head   the process was killed between commit and head, or one slot is damaged: no damage
                                if the chain of the journal contains the head

Each slot has the edition of the journal. An operation that rewrites history (deletion of a host) first writes the new
head into one slot and then commits, so that one of the slots is right whenever the process is killed.
"""
# ruff: noqa: S608  # statements are built from table and column names only; values are always bound

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import apsw

from surveyor.store import layout
from surveyor.store.database import ask

COMMITS = """CREATE TABLE commits(number INTEGER PRIMARY KEY, visit INTEGER NOT NULL, url INTEGER NOT NULL,
  event INTEGER NOT NULL, digest BLOB NOT NULL)"""
VISIT = (
    "page, kind, reason, target, links, status, fetched_at, seconds, hash, etag, last_modified, out_of_scope, "
    "nofollow, title, language, warc_file, warc_offset, warc_length, size, text_hash, expires, contexts"
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
MAGIC = b"SVYHEAD1"
LAYOUT = struct.Struct("<8sQQ16s20xI")
SLOT = LAYOUT.size
FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


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
        raise BadCommit(row[0], "its row is not four numbers and a digest")
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
            raise ValueError("it does not follow the previous one")
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


@dataclass(frozen=True, slots=True)
class Head:
    """The last commit of a journal."""

    edition: int
    number: int  # number of commits so far
    digest: bytes

    def to_bytes(self) -> bytes:
        """Return the bytes of a slot."""
        return _sealed(LAYOUT.pack(MAGIC, self.edition, self.number, self.digest, 0))


def _sealed(slot: bytes) -> bytes:
    return slot[:-4] + zlib.crc32(slot[:-4]).to_bytes(4, "little")


def head_path(journal: Path) -> Path:
    """Return the path of the head of a journal."""
    return journal.with_name(layout.HEAD)


def read_heads(path: Path) -> list[Head]:
    """Return the heads whose slots are intact; none if the file is missing or a symbolic link."""
    try:
        file = os.open(path, os.O_RDONLY | FLAGS | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return []
    try:
        data = os.read(file, 2 * SLOT) if stat.S_ISREG(os.fstat(file).st_mode) else b""
    finally:
        os.close(file)
    slots = [data[start : start + SLOT] for start in (0, SLOT)]
    whole = [slot for slot in slots if len(slot) == SLOT and slot == _sealed(slot) and slot.startswith(MAGIC)]
    return [Head(*LAYOUT.unpack(slot)[1:4]) for slot in whole]


class HeadFile:
    """The head file, open for writing."""

    def __init__(self, path: Path, *, full_sync: bool = False) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | FLAGS | getattr(os, "O_NONBLOCK", 0), 0o666)
        self._full_sync = full_sync
        about = os.fstat(self._file)
        if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:  # a hard link: another file would change too
            os.close(self._file)
            raise FileExistsError(errno.EEXIST, "not a regular file, or it has several hard links", str(path))

    def write(self, head: Head, *, both: bool = False) -> None:
        """Write the head into the next slot, or into both."""
        for slot in (0, 1) if both else (head.number % 2,):
            self._put(slot, head)

    def announce(self, head: Head, number: int) -> None:
        """Write a head that is valid after the next commit, and keep the one of commit `number`."""
        self._put((number + 1) % 2, head)
        os.fsync(self._file)

    def _put(self, slot: int, head: Head) -> None:
        os.lseek(self._file, slot * SLOT, os.SEEK_SET)
        os.write(self._file, head.to_bytes())
        if self._full_sync:
            os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
