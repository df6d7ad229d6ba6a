"""SQL over the tables of a view: one SELECT, read-only, with limits on time, rows and memory.

SQLite checks each statement when it is prepared, as for `surveyor sql`: only reads and functions, no files, settings or
extensions. The file is opened as one that never changes. A query is interrupted after some seconds.

**Time.** The clock is checked between steps of the virtual machine, and one step over a large value can be long: printf
of a character a billion times takes half a minute. So printf and format are not available (`Sqlite`), and a value has
at most 20 kB: no function over such values takes more than some milliseconds.

**Memory.** The limit on the heap of SQLite is one for the whole process, so it is not used. Instead a result has at
most 100 columns, 1,000 rows and 4 MB, and a statement at most 10 kB. Rows that are sorted, grouped or kept by a
recursive query beyond the cache of 16 MB are in temporary files without a name, which grow for as long as the query may
run, and are gone after it.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

from surveyor.errors import UsageError, check_range
from surveyor.serve.view.schema import TABLES
from surveyor.survey.sql import QueryError, Sqlite, interrupted_after, plain, usage_error

LONGEST = 20_000  # bytes of a value, and of a row of the tables
LONGEST_RESULT = 4_000_000  # bytes of all values
LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: LONGEST,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 10_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 50_000,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 200,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
CACHE = 16_000  # kB
MOST_SECONDS, MOST_ROWS = 30.0, 10_000
HELP = f"tables: {', '.join(TABLES)}"


def run_query(path: Path, query: str, *, seconds: float, rows: int) -> dict[str, Any]:
    """Run a query; return its columns, rows, seconds, and whether rows are missing (`more`)."""
    check_range("seconds", seconds, f"(0, {MOST_SECONDS:g}]", hint="the default is 2")
    check_range("rows", rows, f"[1, {MOST_ROWS}]", hint="the default is 1,000")
    text = query.strip().rstrip(";").strip()
    if not text:
        raise UsageError("the query is empty", hint=HELP)
    if "\0" in text:
        raise UsageError("the query has a null character", hint=HELP)
    try:
        database = Sqlite(f"{path.absolute().as_uri()}?mode=ro&immutable=1", CACHE, at_once=1)
    except sqlite3.Error as error:
        raise UsageError(f"{path} cannot be opened: {error}", hint="remove it: it is built again") from error
    try:
        database.lock(LIMITS)
        began, found, size, more = time.monotonic(), list[list[Any]](), 0, False
        with interrupted_after(database, seconds) as late:
            try:
                columns, cursor = database.run(text)
                for row in cursor:
                    size += sum(len(cell) if isinstance(cell, str | bytes) else 8 for cell in row)
                    if len(found) >= rows or size > LONGEST_RESULT:
                        more = True
                        break
                    found.append([plain(cell) for cell in row])
            except QueryError as error:
                if late.is_set():
                    raise UsageError(f"the query was stopped after {seconds:g} s", hint="reduce the query") from error
                raise usage_error(str(error), text, TABLES, None, HELP) from error
        return {"columns": columns, "rows": found, "seconds": time.monotonic() - began, "more": more}
    finally:
        database.close()
