r"""SQLite as the journal uses it: a checksum in every page, a fixed schema, and lists of page ids as bytes.

Each page of the file ends in eight bytes that SQLite's checksum VFS (`cksumvfs`, part of apsw) computes when a page is
written and verifies whenever it is read. Any SQLite tool can read such a file; a tool that writes to it leaves pages
with wrong checksums, which are reported as damage.

A file from elsewhere is untrusted data: it is opened with an untrusted schema in defensive mode, and rejected before
anything is read from it if it has a table, view, index or trigger that this version did not create.

Lists of page ids are packed as zigzag-encoded deltas, seven bits per byte; an empty list is None. It is the LEB128 of
Protocol Buffers and WebAssembly, so that any language can read a journal.

    >>> pack([np.array([300, 301], np.int32), NO_LINKS])
    [b'\xd8\x04\x02', None]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from surveyor.arrays import MAX_PAGES, IdArray, read_only
from surveyor.errors import SurveyError
from surveyor.outcome import NO_LINKS
from surveyor.store.disk import damaged

VFS = "cksmvfs"
RESERVED = 8  # bytes at the end of each page for its checksum
BUSY = 5000  # milliseconds to wait for another process
READ_ONLY = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
READ_WRITE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI


def connect(path: Path, *, write: bool, verify: bool = True) -> apsw.Connection:
    """Open a file; without `verify`, pages with wrong checksums are read as well.

    A read-only folder has no room for the shared-memory file of readers, but no process can be writing there.
    """
    _load()
    where = path.absolute().as_uri()
    if write:
        return _opened(f"{where}?mode=rwc", READ_WRITE, verify=verify)
    try:
        return _opened(f"{where}?mode=ro", READ_ONLY, verify=verify)
    except apsw.Error:
        if path.with_name(path.name + "-wal").exists():
            raise
    return _opened(f"{where}?mode=ro&immutable=1", READ_ONLY, verify=verify)


def _opened(uri: str, flags: int, *, verify: bool) -> apsw.Connection:
    connection = apsw.Connection(uri, flags=flags, vfs=VFS)
    try:
        _prepare(connection, verify=verify)
        connection.execute("SELECT 1 FROM sqlite_schema").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def ask(connection: apsw.Connection, query: str, *values: Any) -> list[Any]:
    """Return the rows of a query."""
    return connection.execute(query, values).fetchall()


def _prepare(connection: apsw.Connection, *, verify: bool) -> None:
    connection.set_busy_timeout(BUSY)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # `accept` ends this: a damaged log is left unchanged
    if verify:
        connection.execute("PRAGMA cell_size_check = ON").fetchall()
    else:
        connection.execute("SELECT 1").fetchall()
        connection.execute("PRAGMA checksum_verification = OFF").fetchall()


def accept(connection: apsw.Connection) -> None:
    """Let SQLite checkpoint the log when the last connection closes, as it does by default."""
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)


def has_checksums(connection: apsw.Connection) -> bool:
    """Return whether pages have checksums; a bit flip in the file header could turn them off."""
    return connection.reserve_bytes() == RESERVED


def check_size(path: Path, connection: apsw.Connection) -> None:
    """Reject a truncated file: SQLite would read zeros there, without a checksum.

    With a non-empty log a file may be shorter than its header states: the log has the rest.
    """
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        return
    (pages,), (size,) = ask(connection, "PRAGMA page_count") + ask(connection, "PRAGMA page_size")
    if path.stat().st_size < pages * size:
        raise damaged(path, f"it has {path.stat().st_size:,} bytes instead of {pages * size:,}")


def add_checksums(connection: apsw.Connection) -> None:
    """Reserve room for a checksum in every page of a file that has no pages yet."""
    connection.reserve_bytes("main", RESERVED)


def check_layout(path: Path, connection: apsw.Connection, statements: Sequence[str]) -> None:
    """Reject a file whose schema is not the one that these statements create."""
    found, expected = _layout(connection), expected_layout(tuple(statements))
    if strange := sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name)):
        raise damaged(path, f"{strange[0]!r} in its schema is not what a journal has")


@cache
def expected_layout(statements: tuple[str, ...]) -> dict[str, str]:
    """Return the type and definition of each object that statements create."""
    connection = apsw.Connection(":memory:")
    try:
        for statement in statements:
            connection.execute(statement)
        return _layout(connection)
    finally:
        connection.close()


def _layout(connection: apsw.Connection) -> dict[str, str]:
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema").fetchall()
    return {str(name): " ".join(f"{kind} {table} {sql}".split()) for kind, name, table, sql in rows}


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """Run a block as one transaction: all of it is committed, or nothing."""
    connection.execute("BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


@cache
def _load() -> None:
    """Register the checksum VFS once per process."""
    from apsw import sqlite_extra

    connection = apsw.Connection(":memory:")
    try:
        sqlite_extra.load(connection, "cksumvfs")
    except (apsw.Error, ValueError, KeyError, OSError) as error:
        hint = "pip install --force-reinstall --only-binary apsw apsw"
        raise SurveyError(f"the installed apsw has no checksum VFS ({error})", hint=hint) from error
    finally:
        connection.close()


def pack(lists: Sequence[IdArray]) -> list[bytes | None]:
    """Encode lists of ids as bytes, all at once."""
    ends = np.cumsum([ids.size for ids in lists])
    numbers = np.concatenate([*lists, NO_LINKS]).astype(np.int64)
    steps = np.diff(numbers, prepend=0)
    first = np.array([end - ids.size for end, ids in zip(ends, lists, strict=True) if ids.size], np.int64)
    steps[first] = numbers[first]
    zigzag = (steps << 1) ^ (steps >> 63)
    place = np.arange(5)
    width = 1 + (zigzag[:, None] >> 7 * place[1:] > 0).sum(1)
    septets = (zigzag[:, None] >> 7 * place) & 127 | np.where(place < width[:, None] - 1, 128, 0)
    packed = septets[place < width[:, None]].astype(np.uint8).tobytes()
    cuts = np.concatenate([[0], np.cumsum(width)])[np.concatenate([[0], ends]).astype(np.int64)].tolist()
    return [packed[start:end] or None for start, end in pairwise(cuts)]


def unpack(lists: Sequence[bytes | None]) -> list[IdArray]:
    """Decode bytes to lists of ids; raise ValueError if they are invalid."""
    raw = np.frombuffer(b"".join(item or b"" for item in lists), np.uint8)
    bytes_before = np.cumsum([0, *(len(item or b"") for item in lists)])
    last = np.flatnonzero(raw < 128)
    if raw.size and not (raw[bytes_before[bytes_before > 0] - 1] < 128).all():
        raise ValueError("links that end in the middle of a number")
    first = np.concatenate([[0], last + 1])[:-1]
    if (place := np.arange(raw.size) - np.repeat(first, last - first + 1)).max(initial=0) > 4:
        raise ValueError("a link of more than 5 bytes")
    zigzag = np.add.reduceat((raw & 127).astype(np.int64) << 7 * place, first) if raw.size else np.empty(0, np.int64)
    sums = np.concatenate([[0], np.cumsum((zigzag >> 1) ^ -(zigzag & 1))])
    bounds = np.searchsorted(last, bytes_before)
    ids = sums[1:] - np.repeat(sums[bounds[:-1]], np.diff(bounds))
    if ids.size and not (ids.min() >= 0 and ids.max() < MAX_PAGES):
        raise ValueError("a link to no page")
    whole: IdArray = read_only(ids.astype(np.int32))
    return [whole[start:end] for start, end in pairwise(bounds)]
