"""SQLite as the journal uses it: a checksum in every page, and a fixed schema.

Each page of the file ends in eight bytes that SQLite's checksum VFS (`cksumvfs`, part of apsw) computes when a page
is written and verifies whenever it is read. Any SQLite tool can read such a file; a tool that writes to it leaves
pages with wrong checksums, which are reported as damage.

A file from elsewhere is untrusted data: it is opened with an untrusted schema in defensive mode, and rejected before
anything is read from it if it has a table, view, index or trigger that this version did not create.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import apsw

from surveyor.errors import SurveyError
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
