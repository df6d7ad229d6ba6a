"""SQL queries over a survey: one SELECT over its tables, executed by DuckDB or SQLite.

The tables that a query names are copied in batches into a private database, so the survey cannot be changed. Then
access to files, networks, extensions and settings is disabled (`lock`). A query that takes too long is interrupted.

Both engines have the same tables and columns. Times are text, in UTC (`2026-01-31 23:59:59`); hashes are text in hex.
"""

from __future__ import annotations

import math
import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from difflib import get_close_matches
from html import escape
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol
from uuid import UUID

import numpy as np

from surveyor.errors import MissingExtra, UsageError
from surveyor.frames import Tabular, draw_bars
from surveyor.survey.tables import TABLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from surveyor.survey.tables import Tables

Engine = Literal["duckdb", "sqlite"]
CHUNK = 1000  # rows fetched at a time
TYPES = {"int32": "INTEGER", "int64": "BIGINT", "float64": "DOUBLE"}  # all else is text
LONGEST = (
    1_000_000  # bytes per value in SQLite: a step cannot be interrupted, and that of instr or replace is quadratic
)
CACHE = 256_000  # kB of pages that SQLite keeps in memory; the rest is in an unnamed temporary file
MEMORY = "4GB"  # memory limit of DuckDB
LIMITS = {sqlite3.SQLITE_LIMIT_LENGTH: LONGEST, sqlite3.SQLITE_LIMIT_ATTACHED: 0}
READS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
UNSAFE_FUNCTIONS = frozenset({"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"})
ENDLESS_FUNCTIONS = frozenset({"printf", "format"})  # one step of printf('%.*c', 1000000000, 'x') takes half a minute
SANDBOX = {  # set when connecting, before any statement
    "enable_external_access": False,
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
    "allow_community_extensions": False,
    "temp_directory": "",
}
SHOWN = 20  # rows in a notebook
UNKNOWN_TABLE = re.compile(r'no such table: (?:\w+\.)?(\S+)|Table with name "?([^"\s]+)|Referenced table "([^"]+)"')
UNKNOWN_COLUMN = re.compile(
    r'no such column: (?:\w+\.)?(\w+)|Referenced column "([^"]+)"|not have a column named "([^"]+)"|'
    r'join using column (\w+)|Column "([^"]+)" does not exist'
)
UNAVAILABLE = re.compile(rf"not authorized to use function: ({'|'.join(sorted(ENDLESS_FUNCTIONS))})\b", re.IGNORECASE)
OTHERS = re.compile(  # statements other than SELECT
    r"\W*(alter|attach|begin|call|checkpoint|commit|copy|create|delete|detach|drop|export|force|import|insert|install|"
    r"load|pragma|reindex|reset|rollback|savepoint|set|truncate|update|use|vacuum)\b",
    re.IGNORECASE,
)
FORBIDDEN = re.compile(r"not authorized|prohibited|disabled by config|one statement at a time", re.IGNORECASE)
HELP = "`surveyor sql SURVEY` lists tables and columns"


@dataclass(frozen=True, slots=True, repr=False)
class QueryResult(Tabular):
    """Result of a query: column names, and rows of plain values."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    engine: Engine
    seconds: float
    more: bool = False  # there were more rows than the limit

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the values of each column; of columns with the same name, the last."""
        return {name: [row[number] for row in self.rows] for number, name in enumerate(self.columns)}

    def _columns(self) -> dict[str, Any]:
        return self.to_dict()

    def _draw(self, axes: Axes) -> None:
        columns = self.to_dict()
        numbers = {name: values for name, values in columns.items() if _are_numbers(values)}
        others = [values for name, values in columns.items() if name not in numbers]
        if others and numbers:
            name, values = next(iter(numbers.items()))
            draw_bars(axes, others[0], [value or 0.0 for value in values], name)
            return
        for name, values in numbers.items():
            axes.plot([math.nan if value is None else value for value in values], label=name)
        axes.set_xlabel("row")
        if numbers:
            axes.legend()

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"QueryResult({len(self.rows):,}{'+' * self.more} rows: {', '.join(self.columns)})"

    def _repr_html_(self) -> str:
        return self._html()  # a table of any rows needs no picture

    def _html(self) -> str:
        def line(cells: Sequence[Any], tag: str) -> str:
            shown = "".join(f"<{tag}>{'' if cell is None else escape(str(cell))}</{tag}>" for cell in cells)
            return f"<tr>{shown}</tr>"

        rows = "".join(line(row, "td") for row in self.rows[:SHOWN])
        rest = f"<p>{len(self.rows):,} rows, the first {SHOWN} shown</p>" if len(self.rows) > SHOWN else ""
        return f"<table>{line(self.columns, 'th')}{rows}</table>{rest}"


def _are_numbers(values: Sequence[Any]) -> bool:
    return any(value is not None for value in values) and all(
        value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values
    )


def run_query(
    tables: Tables, query: str, *, seconds: float = 60.0, limit: int | None = None, engine: Engine | None = None
) -> QueryResult:
    """Run a query; return at most `limit` rows."""
    if not seconds > 0:
        raise UsageError(f"seconds must be more than 0, got {seconds:g}", hint="the default is 60")
    chosen: Engine = engine or ("duckdb" if find_spec("duckdb") else "sqlite")
    text = query.strip().rstrip(";").strip()
    if not text:
        raise UsageError("the query is empty", hint=HELP)
    names = _tables_in(text)
    database = open_database(chosen)
    try:
        for name in names:
            database.load(name, TABLES[name], tables.batches(name))
        database.lock()
        start = time.monotonic()
        rows: list[tuple[Any, ...]] = []
        with interrupted_after(database, seconds) as late:
            try:
                columns, found = database.run(text)
                for row in found:
                    rows.append(tuple(map(plain, row)))
                    if limit is not None and len(rows) > limit:
                        break
            except QueryError as error:
                raise usage_error(str(error), text, TABLES, seconds if late.is_set() else None) from error
        more = limit is not None and len(rows) > limit
        return QueryResult(tuple(columns), rows[:limit] if more else rows, chosen, time.monotonic() - start, more)
    finally:
        database.close()


def _tables_in(query: str) -> list[str]:
    """Return the tables that a query may use: only these are loaded."""
    words = words_in(query)
    return [name for name in TABLES if name in words]


def words_in(query: str) -> set[str]:
    """Return the words of a query in lower case, among them the tables that it may use."""
    return {word.lower() for word in re.findall(r"\w+", query)}


@contextmanager
def interrupted_after(database: Database, seconds: float) -> Iterator[threading.Event]:
    """Interrupt a database after a time; the event is set when this has happened."""
    done, late = threading.Event(), threading.Event()

    def watch() -> None:
        left = seconds
        while not done.wait(left):  # repeatedly: an interrupt between two steps has no effect
            late.set()
            database.interrupt()
            left = 0.05

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield late
    finally:
        done.set()
        watcher.join()


def plain(value: Any) -> Any:
    """Convert a value of an engine to one that JSON can represent."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, date):
        return value.isoformat(*([" "] if hasattr(value, "hour") else []))
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, UUID) or not hasattr(value, "isoformat") else value.isoformat()


def usage_error(
    problem: str, query: str, tables: Mapping[str, Mapping[str, str]], seconds: float | None, hint: str = HELP
) -> UsageError:
    """Return the error for a query over some tables that failed, after `seconds` if it was interrupted."""
    first = re.sub(r"^\w+ Error:\s*", "", problem.strip().splitlines()[0]).rstrip(".!")
    if seconds is not None:
        return UsageError(
            f"the query was stopped after {seconds:g} s", hint="reduce the query, or allow more time with --seconds"
        )
    if function := UNAVAILABLE.search(problem):
        return UsageError(
            f"the function {function[1]} is not available here", hint="|| joins texts, and round() rounds"
        )
    if OTHERS.match(query) or FORBIDDEN.search(problem):
        return UsageError("a survey is read-only: run one SELECT that reads no files", hint=hint)
    if match := UNKNOWN_TABLE.search(problem):
        name = next(filter(None, match.groups()))
        return UsageError(f"there is no table {name!r}", hint=_alternatives(name, list(tables), tables))
    if match := UNKNOWN_COLUMN.search(problem):
        name, named = next(filter(None, match.groups())), [one for one in tables if one in words_in(query)]
        known = {column: None for table in named or tables for column in tables[table]}
        return UsageError(f"there is no column {name!r}", hint=_alternatives(name, list(known), tables))
    return UsageError(f"the query failed: {first}", hint=hint)


def _alternatives(name: str, known: Sequence[str], tables: Mapping[str, Mapping[str, str]]) -> str:
    others = [table for table, columns in tables.items() if name in columns and name not in known]
    if others:
        return f"it is a column of {' and '.join(others)}; columns here: {', '.join(known)}"
    near = get_close_matches(name.lower(), [one for one in known if one != name], 1)
    return (f"did you mean {near[0]}? " if near else "") + f"known: {', '.join(known)}"


class QueryError(Exception):
    """Error message of an engine for a query that failed."""


class Database(Protocol):
    """An engine with the tables of one query."""

    def load(self, name: str, columns: dict[str, str], batches: Iterator[dict[str, Any]]) -> None:
        """Copy a table."""

    def lock(self) -> None:
        """Allow only reads of the tables from now on."""

    def run(self, query: str) -> tuple[list[str], Iterator[Sequence[Any]]]:
        """Execute a query; return column names and rows. Raises `QueryError`, also while rows are fetched."""

    def interrupt(self) -> None:
        """Interrupt the running query, from another thread."""

    def close(self) -> None:
        """Free all memory."""


def open_database(engine: Engine) -> Database:
    """Open an empty database."""
    if engine == "sqlite":
        return Sqlite()
    if engine != "duckdb":
        raise UsageError(f"engine must be duckdb or sqlite, got {engine!r}", hint="omit it to use DuckDB if installed")
    try:
        return _DuckDb(import_module("duckdb"))
    except ImportError as error:
        raise MissingExtra("the engine duckdb", "duckdb", "sql") from error


class Sqlite:
    """SQLite; an authorizer checks each statement when it is prepared."""

    def __init__(self, uri: str = "", cache: int = CACHE, at_once: int = CHUNK) -> None:
        """Open an empty database, or the one at a URI; `cache` is in kB, and `at_once` rows are fetched at a time."""
        self._at_once = at_once
        self._connection = sqlite3.connect(uri, isolation_level=None, check_same_thread=False, uri=bool(uri))
        settings = (f"cache_size = -{cache}", "journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE")
        for setting in settings[:1] if uri else settings:
            self._connection.execute(f"PRAGMA {setting}")

    def load(self, name: str, columns: dict[str, str], batches: Iterator[dict[str, Any]]) -> None:
        """Copy a table."""
        run = self._connection
        run.execute(f"CREATE TABLE {name} ({', '.join(f'{one} {_type(kind)}' for one, kind in columns.items())})")
        insert = f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})"  # noqa: S608  # names are ours
        run.execute("BEGIN")
        for batch in batches:
            run.executemany(insert, zip(*(_listed(batch[one], kind) for one, kind in columns.items()), strict=True))
        run.execute("COMMIT")

    def lock(self, limits: Mapping[int, int] = MappingProxyType({})) -> None:
        """Allow only reads, within limits of SQLite by number, and no functions that could not be interrupted."""
        for setting in ("query_only = ON", "trusted_schema = OFF"):
            self._connection.execute(f"PRAGMA {setting}")
        for number, most in {**LIMITS, **limits}.items():
            self._connection.setlimit(number, most)
        self._connection.set_authorizer(_authorize)

    def run(self, query: str) -> tuple[list[str], Iterator[Sequence[Any]]]:
        """Execute a query; return column names and rows."""
        with _wrapped(sqlite3.Error, sqlite3.Warning):
            cursor = self._connection.execute(query)
        if cursor.description is None:
            raise QueryError("not authorized")
        return [column[0] for column in cursor.description], _fetched(cursor, sqlite3.Error, at_once=self._at_once)

    def interrupt(self) -> None:
        """Interrupt the running query, from another thread."""
        self._connection.interrupt()

    def close(self) -> None:
        """Free all memory."""
        self._connection.close()


def _authorize(action: int, _first: str | None, second: str | None, *_: str | None) -> int:
    unsafe = UNSAFE_FUNCTIONS | ENDLESS_FUNCTIONS
    function = action == sqlite3.SQLITE_FUNCTION and (second or "").lower() not in unsafe
    return sqlite3.SQLITE_OK if action in READS or function else sqlite3.SQLITE_DENY


class _DuckDb:
    """DuckDB; `lock` locks its configuration."""

    def __init__(self, duckdb: Any) -> None:
        self._duckdb = duckdb
        self._connection = duckdb.connect(":memory:", config={**SANDBOX, "memory_limit": MEMORY})

    def load(self, name: str, columns: dict[str, str], batches: Iterator[dict[str, Any]]) -> None:
        run = self._connection
        run.execute(f"CREATE TABLE {name} ({', '.join(f'{one} {_type(kind)}' for one, kind in columns.items())})")
        for batch in batches:
            run.register("batch", {one: _array(batch[one], kind) for one, kind in columns.items()})
            run.execute(f"INSERT INTO {name} SELECT * FROM batch")  # noqa: S608  # names are ours
            run.unregister("batch")

    def lock(self) -> None:
        self._connection.execute("SET python_enable_replacements = false")  # Python variables are not tables
        self._connection.execute("SET lock_configuration = true")

    def run(self, query: str) -> tuple[list[str], Iterator[Sequence[Any]]]:
        with _wrapped(self._duckdb.Error):
            statements = self._connection.extract_statements(query)
            if [statement.type for statement in statements] != [self._duckdb.StatementType.SELECT]:
                raise QueryError("not authorized")
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
        raise QueryError(str(error)) from error


def _fetched(cursor: Any, *errors: type[Exception], at_once: int = CHUNK) -> Iterator[Sequence[Any]]:
    with _wrapped(*errors):
        while rows := cursor.fetchmany(at_once):
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
