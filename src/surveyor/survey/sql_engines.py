"""Sandboxed DuckDB and SQLite databases: a few tables, no access to files, network, extensions or settings."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Literal, Protocol

import numpy as np

from surveyor.errors import MissingExtra, UsageError

Engine = Literal["duckdb", "sqlite"]
CHUNK = 1000  # rows fetched at a time
TYPES = {"int32": "INTEGER", "int64": "BIGINT", "float64": "DOUBLE"}  # all else is text
LONGEST = 10_000_000  # bytes per value in SQLite: one step over a longer value could not be interrupted
CACHE = 256_000  # kB of pages that SQLite keeps in memory; the rest is in an unnamed temporary file
MEMORY = "4GB"  # memory limit of DuckDB
READS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
WAYS_OUT = frozenset({"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"})
CLOSED = {  # set when connecting, before any statement
    "enable_external_access": False,
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
    "allow_community_extensions": False,
    "temp_directory": "",
}


class Failed(Exception):
    """Error message of an engine for a query that failed."""


class Database(Protocol):
    """An engine with the tables of one query."""

    def load(self, name: str, columns: dict[str, str], batches: Iterator[dict[str, Any]]) -> None:
        """Copy a table."""

    def shut(self) -> None:
        """Allow only reads of the tables from now on."""

    def run(self, query: str) -> tuple[list[str], Iterator[Sequence[Any]]]:
        """Execute a query; return column names and rows. Raises `Failed`, also while rows are fetched."""

    def interrupt(self) -> None:
        """Interrupt the running query, from another thread."""

    def close(self) -> None:
        """Free all memory."""


def open_database(engine: Engine) -> Database:
    """Open an empty database."""
    if engine == "sqlite":
        return _Sqlite()
    if engine != "duckdb":
        raise UsageError(f"no engine {engine!r}", hint="there are duckdb and sqlite")
    try:
        return _DuckDb(import_module("duckdb"))
    except ImportError as error:
        raise MissingExtra("the engine duckdb", "duckdb", "sql") from error


class _Sqlite:
    """SQLite; an authorizer checks each statement when it is prepared."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        for setting in (
            f"cache_size = -{CACHE}",
            "journal_mode = OFF",
            "synchronous = OFF",
            "locking_mode = EXCLUSIVE",
        ):
            self._connection.execute(f"PRAGMA {setting}")

    def load(self, name: str, columns: dict[str, str], batches: Iterator[dict[str, Any]]) -> None:
        run = self._connection
        run.execute(f"CREATE TABLE {name} ({', '.join(f'{one} {_type(kind)}' for one, kind in columns.items())})")
        insert = f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})"  # noqa: S608  # names are ours
        run.execute("BEGIN")
        for batch in batches:
            run.executemany(insert, zip(*(_listed(batch[one], kind) for one, kind in columns.items()), strict=True))
        run.execute("COMMIT")

    def shut(self) -> None:
        self._connection.execute("PRAGMA query_only = ON")
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        self._connection.set_authorizer(_may)

    def run(self, query: str) -> tuple[list[str], Iterator[Sequence[Any]]]:
        with _wrapped(sqlite3.Error, sqlite3.Warning):
            cursor = self._connection.execute(query)
        if cursor.description is None:
            raise Failed("not authorized")
        return [column[0] for column in cursor.description], _fetched(cursor, sqlite3.Error)

    def interrupt(self) -> None:
        self._connection.interrupt()

    def close(self) -> None:
        self._connection.close()


def _may(action: int, _first: str | None, second: str | None, *_: str | None) -> int:
    function = action == sqlite3.SQLITE_FUNCTION and (second or "").lower() not in WAYS_OUT
    return sqlite3.SQLITE_OK if action in READS or function else sqlite3.SQLITE_DENY


class _DuckDb:
    """DuckDB; `shut` locks its configuration."""

    def __init__(self, duckdb: Any) -> None:
        self._duckdb = duckdb
        self._connection = duckdb.connect(":memory:", config={**CLOSED, "memory_limit": MEMORY})

    def load(self, name: str, columns: dict[str, str], batches: Iterator[dict[str, Any]]) -> None:
        run = self._connection
        run.execute(f"CREATE TABLE {name} ({', '.join(f'{one} {_type(kind)}' for one, kind in columns.items())})")
        for batch in batches:
            run.register("batch", {one: _array(batch[one], kind) for one, kind in columns.items()})
            run.execute(f"INSERT INTO {name} SELECT * FROM batch")  # noqa: S608  # names are ours
            run.unregister("batch")

    def shut(self) -> None:
        self._connection.execute("SET python_enable_replacements = false")  # Python variables are not tables
        self._connection.execute("SET lock_configuration = true")

    def run(self, query: str) -> tuple[list[str], Iterator[Sequence[Any]]]:
        with _wrapped(self._duckdb.Error):
            statements = self._connection.extract_statements(query)
            if [statement.type for statement in statements] != [self._duckdb.StatementType.SELECT]:
                raise Failed("not authorized")
            cursor = self._connection.execute(statements[0])
        return [column[0] for column in cursor.description], _fetched(cursor, self._duckdb.Error)

    def interrupt(self) -> None:
        self._connection.interrupt()

    def close(self) -> None:
        self._connection.close()


@contextmanager
def _wrapped(*errors: type[Exception]) -> Iterator[None]:
    try:
        yield
    except errors as error:
        raise Failed(str(error)) from error


def _fetched(cursor: Any, *errors: type[Exception]) -> Iterator[Sequence[Any]]:
    with _wrapped(*errors):
        while rows := cursor.fetchmany(CHUNK):
            yield from rows


def _type(kind: str) -> str:
    return TYPES.get(kind, "TEXT")


def _listed(values: Any, kind: str) -> list[Any]:
    """Convert values for SQLite, with None for missing ones."""
    plain = values.tolist() if isinstance(values, np.ndarray) else values
    if kind == "timestamp":
        return [None if at is None else f"{datetime.fromtimestamp(at / 1e6, UTC):%Y-%m-%d %H:%M:%S}" for at in plain]
    if kind == "binary":
        return [None if item is None else item.hex() for item in plain]
    return list(plain)


def _array(values: Any, kind: str) -> Any:
    """Convert values for DuckDB, masked where they are missing."""
    if kind not in TYPES:
        texts = np.empty(len(values), object)
        texts[:] = _listed(values, kind)
        return texts
    if isinstance(values, np.ndarray):
        return np.ascontiguousarray(values)
    missing = [value is None for value in values]
    return np.ma.array(np.array([value or 0 for value in values], kind), mask=missing)
