"""SQL queries over a survey: one SELECT over its tables, executed by DuckDB or SQLite.

The tables that a query names are copied in batches into a private database, so the survey cannot be changed. Then
access to files, networks, extensions and settings is disabled (`sql_engines.py`). A query that takes too long is
interrupted.

Both engines have the same tables and columns. Times are text, in UTC (`2026-01-31 23:59:59`); hashes are text in hex.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from difflib import get_close_matches
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from uuid import UUID

from surveyor.errors import MissingExtra, UsageError
from surveyor.survey.sql_engines import Database, Engine, Failed, open_database
from surveyor.survey.tables import TABLES

if TYPE_CHECKING:
    import polars

    from surveyor.survey.tables import Tables

SHOWN = 20  # rows in a notebook
UNKNOWN_TABLE = re.compile(r'no such table: (?:\w+\.)?(\S+)|Table with name "?([^"\s]+)|Referenced table "([^"]+)"')
UNKNOWN_COLUMN = re.compile(
    r'no such column: (?:\w+\.)?(\w+)|Referenced column "([^"]+)"|not have a column named "([^"]+)"|'
    r'join using column (\w+)|Column "([^"]+)" does not exist'
)
OTHERS = re.compile(  # statements other than SELECT
    r"\W*(alter|attach|begin|call|checkpoint|commit|copy|create|delete|detach|drop|export|force|import|insert|install|"
    r"load|pragma|reindex|reset|rollback|savepoint|set|truncate|update|use|vacuum)\b",
    re.IGNORECASE,
)
FORBIDDEN = re.compile(r"not authorized|prohibited|disabled by config|one statement at a time", re.IGNORECASE)
HELP = "`surveyor sql SURVEY` lists tables and columns"


@dataclass(frozen=True, slots=True, repr=False)
class QueryResult:
    """Result of a query: column names, and rows of plain values."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    engine: Engine
    seconds: float
    more: bool = False  # there were more rows than the limit

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the values of each column; of columns with the same name, the last."""
        return {name: [row[number] for row in self.rows] for number, name in enumerate(self.columns)}

    def to_polars(self) -> polars.DataFrame:
        """Return a Polars data frame."""
        try:
            import polars
        except ImportError as error:
            raise MissingExtra("to_polars()", "polars", "frames") from error
        return polars.DataFrame(self.rows, schema=list(self.columns), orient="row", infer_schema_length=None)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"QueryResult({len(self.rows):,}{'+' * self.more} rows: {', '.join(self.columns)})"

    def _repr_html_(self) -> str:
        def line(cells: Sequence[Any], tag: str) -> str:
            shown = "".join(f"<{tag}>{'' if cell is None else escape(str(cell))}</{tag}>" for cell in cells)
            return f"<tr>{shown}</tr>"

        rows = "".join(line(row, "td") for row in self.rows[:SHOWN])
        rest = f"<p>{len(self.rows):,} rows, the first {SHOWN} shown</p>" if len(self.rows) > SHOWN else ""
        return f"<table>{line(self.columns, 'th')}{rows}</table>{rest}"


def ask(
    tables: Tables, query: str, *, seconds: float = 60.0, limit: int | None = None, engine: Engine | None = None
) -> QueryResult:
    """Run a query; return at most `limit` rows."""
    if not seconds > 0:
        raise UsageError(f"{seconds:g} seconds are no time", hint="give more than 0")
    chosen: Engine = engine or ("duckdb" if find_spec("duckdb") else "sqlite")
    text = query.strip().rstrip(";").strip()
    if not text:
        raise UsageError("there is no query", hint=HELP)
    named = _named(text)
    database = open_database(chosen)
    try:
        for name in named:
            database.load(name, TABLES[name], tables.batches(name))
        database.shut()
        began = time.monotonic()
        rows: list[tuple[Any, ...]] = []
        with _interrupted_after(database, seconds) as late:
            try:
                columns, found = database.run(text)
                for row in found:
                    rows.append(tuple(map(_plain, row)))
                    if limit is not None and len(rows) > limit:
                        break
            except Failed as error:
                raise _explained(str(error), text, named, seconds if late.is_set() else None) from error
        more = limit is not None and len(rows) > limit
        return QueryResult(tuple(columns), rows[:limit] if more else rows, chosen, time.monotonic() - began, more)
    finally:
        database.close()


def _named(query: str) -> list[str]:
    """Return the tables that a query may use: only these are loaded."""
    words = {word.lower() for word in re.findall(r"\w+", query)}
    return [name for name in TABLES if name in words]


@contextmanager
def _interrupted_after(database: Database, seconds: float) -> Iterator[threading.Event]:
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


def _plain(value: Any) -> Any:
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
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, UUID) or not hasattr(value, "isoformat") else value.isoformat()


def _explained(problem: str, query: str, named: Sequence[str], seconds: float | None) -> UsageError:
    """Return an error that explains what is wrong with a query."""
    first = re.sub(r"^\w+ Error:\s*", "", problem.strip().splitlines()[0]).rstrip(".!")
    if seconds is not None:
        return UsageError(
            f"the query was stopped after {seconds:g} s", hint="ask for less, or allow more time with --seconds"
        )
    if OTHERS.match(query) or FORBIDDEN.search(problem):
        return UsageError("a survey can only be read: ask one SELECT, which reads no files", hint=HELP)
    if match := UNKNOWN_TABLE.search(problem):
        name = next(filter(None, match.groups()))
        return UsageError(f"no table {name!r}", hint=_meant(name, list(TABLES)))
    if match := UNKNOWN_COLUMN.search(problem):
        name = next(filter(None, match.groups()))
        known = {column: None for table in named or TABLES for column in TABLES[table]}
        return UsageError(f"no column {name!r}", hint=_meant(name, list(known)))
    return UsageError(f"the query cannot be answered: {first}", hint=HELP)


def _meant(name: str, known: Sequence[str]) -> str:
    others = [table for table, columns in TABLES.items() if name in columns and name not in known]
    if others:
        return f"it is a column of {' and '.join(others)}; there are {', '.join(known)}"
    near = get_close_matches(name.lower(), [one for one in known if one != name], 1)
    return (f"did you mean {near[0]}? " if near else "") + f"there are {', '.join(known)}"
