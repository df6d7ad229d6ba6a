"""Writes `pages.sqlite` and the arrays of a generation."""
# ruff: noqa: S608  # statements are built from names in `schema.py` only; values are always bound

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.arrays import IdArray, save
from surveyor.errors import SurveyError
from surveyor.graph.names import Names
from surveyor.serve.view.pages import Arrays, Facts, Interned, values_of
from surveyor.serve.view.schema import COMPUTED, KEPT, SORTS, STATUSES, TABLES, TEXTS, create
from surveyor.web.urls import domain

BLOCK = 1 << 15  # rows at a time
CACHE = 64_000  # kB
FIXED = ("id", "url", "host", "domain", "folder", "type")  # columns of pages that never change


@contextmanager
def database(path: Path, copy_of: Path | None = None) -> Iterator[sqlite3.Connection]:
    """Open a new database that no other process reads yet, as a compact copy of another one or empty."""
    try:
        if copy_of is not None:
            with closing(sqlite3.connect(f"{copy_of.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as old:
                old.execute("VACUUM INTO ?", (str(path),))
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            for setting in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE"):
                connection.execute(f"PRAGMA {setting}")
            connection.execute(f"PRAGMA cache_size = -{CACHE}")
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise SurveyError(f"{path} cannot be written: {error}", hint="check the disk and its free space") from error


def write_pages(
    connection: sqlite3.Connection, facts: Facts, columns: Arrays, urls: Sequence[str], changed: IdArray | None
) -> None:
    """Write the rows of new pages, and those of the `changed` ones; all are new if that is None."""
    names = tuple(TABLES["pages"])
    texts = _texts(facts)
    columns = {**columns, "domain": columns["host"]}  # each host has its domain
    first = 0 if changed is None else facts.first_new
    if changed is None:
        connection.execute(create("pages"))
    else:
        varying = [name for name in names if name not in (*FIXED, "title")]
        update = f"UPDATE pages SET {', '.join(f'{name} = ?' for name in varying)} WHERE id = ?"
        for at in range(0, changed.size, BLOCK):
            ids = changed[at : at + BLOCK]
            rows = zip(*(_cells(name, columns[name][ids], texts) for name in varying), ids.tolist(), strict=True)
            connection.executemany(update, rows)
        old = ((title or None, page) for page, title in facts.titles.items() if page < first)
        connection.executemany("UPDATE pages SET title = ? WHERE id = ?", old)
    insert = f"INSERT INTO pages VALUES ({', '.join('?' * len(names))})"
    for at in range(first, len(urls), BLOCK):
        end = min(at + BLOCK, len(urls))
        cells: dict[str, Iterable[Any]] = {
            "id": range(at, end),
            "url": urls[at:end],
            "title": [facts.titles.get(page) or None for page in range(at, end)],
        }
        rows = zip(
            *(cells[name] if name in cells else _cells(name, columns[name][at:end], texts) for name in names),
            strict=True,
        )
        connection.executemany(insert, rows)


def _texts(facts: Facts) -> dict[str, np.ndarray[Any, Any]]:
    """Return the texts of codes by column; no text is None."""
    lists: dict[str, Iterable[str]] = {"host": facts.hosts, "folder": facts.folders, "status": STATUSES, **facts.words}
    lists["domain"] = map(domain, facts.hosts)
    found = {}
    for name, texts in lists.items():
        array = np.empty(len(listed := list(texts)), object)
        array[:] = [text or None for text in listed]
        found[name] = array
    return found


def _cells(name: str, values: np.ndarray[Any, Any], texts: dict[str, np.ndarray[Any, Any]]) -> Iterable[Any]:
    if name in texts:
        made: list[Any] = texts[name][values].tolist()
        return made
    return values_of(values)


def changed_rows(old: Arrays, new: Arrays, count: int) -> IdArray:
    """Return which of the first `count` pages differ in any column."""
    differ = np.zeros(count, np.bool_)
    for name in (*KEPT, *COMPUTED):
        one, other = old[name][:count], new[name][:count]
        same = one == other
        if one.dtype.kind == "f":
            same |= np.isnan(one) & np.isnan(other)
        differ |= ~same
    return np.flatnonzero(differ).astype(np.int32)


def write_rows(connection: sqlite3.Connection, table: str, columns: Sequence[Iterable[Any]]) -> None:
    """Replace a table."""
    connection.execute(f"DROP TABLE IF EXISTS {table}")
    connection.execute(create(table))
    marks = ", ".join("?" * len(TABLES[table]))
    connection.executemany(f"INSERT INTO {table} VALUES ({marks})", zip(*columns, strict=True))


def by_site(codes: np.ndarray[Any, Any], columns: Arrays, sites: int) -> Arrays:
    """Return the counts and sums of pages by host or domain."""
    status = columns["status"].astype(np.int64)
    counts = np.bincount(codes * np.int64(len(STATUSES)) + status, minlength=sites * len(STATUSES))
    by_status = counts.reshape(sites, len(STATUSES))
    found: Arrays = {"pages": by_status.sum(1)}
    for code, name in enumerate(STATUSES):
        found[name.replace(" ", "_")] = by_status[:, code]
    for name, source in (("share", "share"), ("mass", "mass"), ("bytes", "transferred")):
        values = columns[source]
        known = values >= 0  # not of NaN
        sums = np.bincount(codes[known], values[known], sites)
        found[name] = sums if values.dtype.kind == "f" else sums.astype(np.int64)
    for name in ("share", "mass"):
        if not (columns[name] >= 0).any():
            found[name] = np.full(sites, np.nan)
    return found


def by_folder(folders: IdArray, parents: IdArray, columns: Arrays) -> Arrays:
    """Return pages and importance directly in each folder, and in it and all below."""
    share = np.nan_to_num(columns["share"])
    own = np.bincount(folders, minlength=parents.size), np.bincount(folders, share, parents.size)
    total = [own[0].astype(np.float64), own[1].copy()]
    depth = depths_of(parents)
    for level in range(int(depth.max(initial=0)), 0, -1):
        here = np.flatnonzero(depth == level)
        for values in total:
            values += np.bincount(parents[here], values[here], parents.size)
    return {
        "pages": total[0].astype(np.int64),
        "own_pages": own[0],
        "share": total[1],
        "own_share": own[1],
        "parent": parents,
        "depth": depth,
    }


def depths_of(parents: IdArray) -> IdArray:
    """Return the number of folders above each folder; parents come first."""
    depth = np.zeros(parents.size, np.int32)
    above = parents.copy()
    while (some := above >= 0).any():
        depth[some] += 1
        above[some] = parents[above[some]]
    return depth


def write_arrays(folder: Path, table: str, columns: Arrays, texts: dict[str, Sequence[str | None]]) -> dict[str, int]:
    """Write the columns of a table, the order by each sortable one, and its texts; return the numbers of values."""
    folder.mkdir()
    for name, values in columns.items():
        save(folder / f"{name}.npy", np.ascontiguousarray(values))
    lowered = {name: Names.of((text or "").lower() for text in values) for name, values in texts.items()}
    counts = {}
    for name, largest_first in SORTS[table].items():
        if name in lowered:
            order, missing = lowered[name].order(), np.diff(lowered[name].offsets) == 0
            order = np.concatenate([order[~missing[order]], order[missing[order]]])
            counts[name] = int(order.size - np.count_nonzero(missing))
        else:
            by_value, counts[name] = order_by(columns[name], largest_first=largest_first)
            order = by_value.astype(np.int64)
        save(folder / f"order_{name}.npy", order.astype(np.int32))
    searched = zip(*(texts[name] for name in TEXTS[table]), strict=True)
    both = Names.of("\n".join(text or "" for text in row).lower() for row in searched)
    save(folder / "text_offsets.npy", both.offsets)
    save(folder / "text.npy", both.blob)
    return counts


def order_by(values: np.ndarray[Any, Any], *, largest_first: bool) -> tuple[IdArray, int]:
    """Return the ids in the order of their values, ties and then missing values by id; and the number of values."""
    missing = np.isnan(values) if values.dtype.kind == "f" else values < 0
    known, rest = np.flatnonzero(~missing), np.flatnonzero(missing)
    keys = values[known]
    if keys.dtype.kind != "f":
        keys = keys.astype(np.int64)
    order = known[np.argsort(-keys if largest_first else keys, kind="stable")]
    return np.concatenate([order, rest]).astype(np.int32), int(known.size)


def words_of(words: dict[str, Interned]) -> list[list[Any]]:
    """Return the columns of the table `words`."""
    rows = [(kind, code, text) for kind, texts in words.items() for text, code in texts.items()]
    return [list(column) for column in zip(*rows, strict=True)]
