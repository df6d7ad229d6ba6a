"""Cash and history of a survey without a link graph: two tables of its journal, written in the transaction of a visit.

    cash         page, status, state, place, cash, …     one row per known page in scope
    cash_state   name, value                             numbers of the whole crawl, as JSON

A visit changes the cash of the page and of the pages that it links to. These rows are written together with the visit,
so that after a crash both are there or neither: nothing is replayed, and no cash is lost or counted twice.

`status` is the status of a page (`kernels/mass.py`), `state` its flags in OPIC (`kernels/opic_cash.py`), `place` its
position in the order of discovery, `target` the page that it redirects to, `priority` its place in the queue if that
does not follow from its cash; the other columns are arrays of the same names there. `cash_state` has the number of the
last visit that the cash contains, so that a journal of which only one part was restored is detected.

A survey may come from elsewhere, and SQLite stores any value in any column. `read` therefore checks every value, and
that all cash is 1.
"""
# ruff: noqa: S608  # statements are built from column names only; values are always bound

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apsw
import numpy as np

from surveyor.arrays import IdArray
from surveyor.store.database import ask

CASH = """
CREATE TABLE cash(page INTEGER PRIMARY KEY, status INTEGER, state INTEGER, place INTEGER, target INTEGER,
  fetches INTEGER, link_set INTEGER, cash REAL, weight REAL, settled REAL, given REAL, history REAL, last REAL,
  discovered REAL, priority REAL);
CREATE TABLE cash_state(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID
"""
STATEMENTS = CASH.split(";")
COLUMNS: Mapping[str, type] = {
    "page": np.int32,
    "status": np.uint8,
    "state": np.uint8,
    "place": np.int32,
    "target": np.int32,
    "fetches": np.int32,
    "link_set": np.int64,
    **dict.fromkeys(("cash", "weight", "settled", "given", "history", "last", "discovered", "priority"), np.float64),
}
KEPT = frozenset({"place", "priority"})  # NULL leaves the stored value
SET = ", ".join(
    f"{name} = coalesce(excluded.{name}, {name})" if name in KEPT else f"{name} = excluded.{name}"
    for name in COLUMNS
    if name != "page"
)
MARKS = ", ".join("?" * len(COLUMNS))
WRITE = f"INSERT INTO cash({', '.join(COLUMNS)}) VALUES ({MARKS}) ON CONFLICT(page) DO UPDATE SET {SET}"
CHUNK = 1 << 14  # rows read at a time
ROUNDING = 1e-9  # of the sum of all cash
BLOCKED, STATUSES = 3, 5  # a status, and the highest, as in kernels/mass.py
LARGEST = 1e15  # larger amounts are not the cash of any crawl
LONGEST = 1 << 20  # characters of a value of `cash_state`
Values = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True, eq=False)
class CashChanges:
    """The rows that a commit changes, as columns, and the new numbers of the whole crawl."""

    columns: Mapping[str, Sequence[Any]]  # None leaves a place or a priority as it is
    state: Values


@dataclass(frozen=True, slots=True, eq=False)
class StoredCash:
    """All rows, as columns in the order of their pages; -1 and NaN are missing values."""

    columns: Mapping[str, np.ndarray[Any, Any]]
    state: Values

    @property
    def pages(self) -> IdArray:
        """The pages that have a row."""
        found: IdArray = self.columns["page"]
        return found


def has_cash(connection: apsw.Connection) -> bool:
    """Return whether a journal has the tables of a survey without a link graph."""
    return bool(ask(connection, "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'cash'"))


def write(connection: apsw.Connection, changes: CashChanges, visit: int) -> None:
    """Write rows inside the transaction of a commit whose last visit is `visit`."""
    rows = zip(*(changes.columns[name] for name in COLUMNS), strict=True)
    connection.executemany(WRITE, rows)
    state = {**changes.state, "visit": [visit]}
    values = [(name, json.dumps(list(numbers))) for name, numbers in state.items()]
    connection.executemany("INSERT OR REPLACE INTO cash_state VALUES (?, ?)", values)


def block(connection: apsw.Connection, pages: Sequence[int], visit: int) -> None:
    """Block pages whose data is deleted; they keep their cash. The last visit is then `visit`."""
    connection.executemany("UPDATE cash SET status = ? WHERE page = ?", [(BLOCKED, page) for page in pages])
    connection.execute("UPDATE cash_state SET value = ? WHERE name = 'visit'", (json.dumps([visit]),))


def read(connection: apsw.Connection, known: int, visit: int) -> StoredCash | None:
    """Read and check all rows, of a journal with `known` URLs and `visit` visits; None if nothing was written yet.

    Raises ValueError if they cannot be the cash of a crawl.
    """
    state = read_state(connection)
    if not state:
        return None
    if state.get("visit") != [visit]:
        raise ValueError(f"its cash is that of visit {state.get('visit')}, and the last visit is {visit}")
    count = int(ask(connection, "SELECT count(*) FROM cash")[0][0])
    if count > known:
        raise ValueError(f"{count:,} pages have cash, and {known:,} pages have URLs")
    columns: dict[str, np.ndarray[Any, Any]] = {name: np.empty(count, kind) for name, kind in COLUMNS.items()}
    done = 0
    for rows in _chunks(connection):
        for (name, kind), values in zip(COLUMNS.items(), zip(*rows, strict=True), strict=True):
            columns[name][done : done + len(rows)] = _checked(name, kind, values)
        done += len(rows)
    if done != count:
        raise ValueError("its rows of cash changed while they were read")
    stored = StoredCash(columns, state)
    _check(stored, known)
    return stored


def read_state(connection: apsw.Connection) -> dict[str, list[float]]:
    """Return the numbers of the whole crawl; raise ValueError if they are none."""
    state: dict[str, list[float]] = {}
    for name, text in ask(connection, "SELECT name, value FROM cash_state"):
        if type(name) is not str or type(text) is not str or len(text) > LONGEST:
            raise ValueError("a value of the crawl is no text")
        value = json.loads(text)
        if not isinstance(value, list) or not all(type(n) in (int, float) and math.isfinite(n) for n in value):
            raise ValueError(f"{name[:50]!r} of the crawl is no list of numbers")
        state[name] = value
    return state


def _chunks(connection: apsw.Connection) -> Iterator[list[Any]]:
    last = -1 << 62  # negative ids are found, and rejected
    query = f"SELECT {', '.join(COLUMNS)} FROM cash WHERE page > ? ORDER BY page LIMIT {CHUNK}"
    while rows := ask(connection, query, last):
        yield rows
        last = rows[-1][0]


def _checked(name: str, kind: type, values: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Return a column as numbers; raise ValueError for any other value."""
    types = set(map(type, values))
    if name in ("target", "priority"):
        missing = -1 if name == "target" else math.nan
        values = [missing if value is None else value for value in values] if type(None) in types else values
        types -= {type(None)}
    whole = kind is not np.float64
    if not types <= ({int} if whole else {int, float}):
        raise ValueError(f"a page has an invalid {name}")
    if whole:
        low, high = (-1 if name == "target" else 0), int(np.iinfo(kind).max)
        low = int(np.iinfo(kind).min) if name == "link_set" else low
        if min(values) < low or max(values) > high:
            raise ValueError(f"a page has a {name} of {min(values)} or {max(values)}")
        return np.array(values, kind)
    numbers = np.array(values, np.float64)
    if name != "priority" and not (np.abs(numbers) <= LARGEST).all():  # also rejects NaN
        raise ValueError(f"a page has a {name} that is not a finite amount")
    return numbers


def _check(stored: StoredCash, known: int) -> None:
    """Check values that depend on each other: ids in range, one place for each page, amounts that are possible."""
    columns, count = stored.columns, stored.pages.size
    if count == 0 or int(columns["page"][0]) < 0 or int(columns["page"][-1]) >= known:
        raise ValueError("a page with cash has no URL")
    if int(columns["status"].max()) > STATUSES or int(columns["status"].min()) < 1:
        raise ValueError("a page has no status")
    if not np.array_equal(np.bincount(columns["place"], minlength=count), np.ones(count, np.int64)):
        raise ValueError("pages were discovered in no order")
    targets = columns["target"][columns["target"] >= 0]
    if not np.isin(targets, columns["page"]).all():
        raise ValueError("a page redirects to a page without cash")
    for name in ("weight", "settled", "last", "discovered"):
        if columns[name].min() < -ROUNDING:
            raise ValueError(f"a page has a negative {name}")
    if columns["cash"].min() < -ROUNDING or columns["cash"].max() > 1 + ROUNDING:
        raise ValueError("a page has cash below 0 or above 1")
