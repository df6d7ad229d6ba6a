"""Queries over the tables of a survey, for its pages: plain values, computed from small reads.

    with View.open("docs.example.org.survey") as view:
        view.pages(PageQuery(filters={"status": "fetched"}, sort="share"))

All results have `as_of`, the time at which the build of the tables began: later visits are not in them.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import BoolArray, map_npy
from surveyor.crawler.replay import require_graph
from surveyor.errors import SurveyError, UsageError
from surveyor.serve.view.generation import Generation, current
from surveyor.serve.view.links import Links, out_links, visit_rows
from surveyor.serve.view.paging import PageQuery, Rows, check_limit
from surveyor.serve.view.schema import CODED, DATABASE, FACETS, SORTS, STATUSES, TABLES
from surveyor.serve.view.sql import run_query
from surveyor.store import published
from surveyor.store.directory import SurveyFolder

if TYPE_CHECKING:
    from surveyor.outcome import Visit
    from surveyor.store.journal import Journal

Row = dict[str, Any]
Result = dict[str, Any]
TOP = 20  # values of a facet
CACHE = 16_000  # kB
NUMBERS = ("http_status", "depth", "position", "in_links", "out_links", "bytes", "visits")
RANGES = frozenset({*NUMBERS, "share", "seconds", "fetched_at", "mass"})
PAGING = ("rows", "next", "previous", "total", "first")
CURVE = published.Curve._fields


class View:
    """The tables of one survey, as of one build."""

    def __init__(self, survey: SurveyFolder, generation: Generation) -> None:
        self._survey, self._generation = survey, generation
        self._lock = threading.RLock()
        self._database = connect(generation.folder / DATABASE)
        sizes, values = generation.about["rows"], generation.about["values"]
        self._rows = {
            table: Rows(generation.folder / table, table, int(sizes[table]), values[table]) for table in SORTS
        }

    @classmethod
    def open(cls, folder: Path | str) -> View:
        """Open the view of a survey; SurveyError if there is none that this user has built."""
        survey = SurveyFolder.open(Path(folder), write=False)
        try:
            found = current(Path(folder), survey.journal.identity)
            if found is None:
                raise SurveyError(
                    f"{folder} has no tables for the page yet",
                    hint=f"build them with `python -m surveyor.serve.view.build {folder}`",
                )
            return cls(survey, found)
        except BaseException:
            survey.close()
            raise

    def close(self) -> None:
        """Close all files."""
        self._database.close()
        self._survey.close()

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def generation(self) -> Generation:
        """The files of this build."""
        return self._generation

    @property
    def journal(self) -> Journal:
        """The journal, which may have later visits."""
        return self._survey.journal

    @property
    def size(self) -> int:
        """Number of known URLs."""
        return self._rows["pages"].size

    @property
    def as_of(self) -> float:
        """Time at which the build began, in seconds since 1970."""
        return float(self._generation.about["as_of"])

    @property
    def number(self) -> int:
        """Number of the build: another one means that a newer view can be opened."""
        return self._generation.number

    def summary(self) -> Result:
        """Return counts, bounds and settings of the survey."""
        return self._result({**self._generation.about["summary"], "position": self._generation.position})

    def curve(self, *, points: int = 2_000) -> Result:
        """Return the bounds of coverage by the number of fetched pages; from the crawl, unless it was short."""
        live = published.curve(self._survey.folder)
        columns: list[list[Any]] = [
            [value if isfinite(value) else None for value in column.tolist()] for column in live
        ]
        if len(columns[0]) < published.ENOUGH:
            rows = self._ask(f"SELECT {', '.join(CURVE)} FROM curve ORDER BY rowid")  # noqa: S608
            columns = [list(column) for column in zip(*rows, strict=True)] or columns
        size = len(columns[0])
        kept = (
            sorted({round(at) for at in np.linspace(0, size - 1, max(2, min(points, size))).tolist()}) if size else []
        )
        return self._result({name: [column[at] for at in kept] for name, column in zip(CURVE, columns, strict=True)})

    def pages(self, query: PageQuery | None = None) -> Result:
        """Return a page of known URLs: rows, next, previous, total, first, facets."""
        query = query or PageQuery()
        if not query.sort:
            query = replace(query, sort="share" if self.summary()["importance"] else "url")
        rows = self._rows["pages"]
        masks = {name: self._mask(name, wanted) for name, wanted in query.filters.items()}
        for number, word in enumerate((query.text, *query.words)):
            if word:
                masks[f"word {number}"] = rows.matching(word)
        found = rows.page(query, _all(masks.values()), self._text_of("pages"))
        return self._result(
            {
                "rows": self.rows_of("pages", found.ids),
                "next": found.next,
                "previous": found.previous,
                "total": found.total,
                "first": found.first,
                "facets": self._facets(masks),
            }
        )

    def hosts(self, query: PageQuery | None = None) -> Result:
        """Return a page of hosts; the filter `domain` selects those of a registrable domain."""
        return self._sites("hosts", query or PageQuery())

    def domains(self, query: PageQuery | None = None) -> Result:
        """Return a page of registrable domains."""
        return self._sites("domains", query or PageQuery())

    def _sites(self, table: str, query: PageQuery) -> Result:
        if not query.sort:
            query = replace(query, sort="share" if self.summary()["importance"] else "pages")
        rows, masks = self._rows[table], []
        for name, wanted in query.filters.items():
            if (table, name) != ("hosts", "domain"):
                raise UsageError(f"{table} have no filter {str(name)[:50]!r}", hint="hosts can be filtered by domain")
            masks.append(rows["domain_code"] == self._code_of("domain", wanted))
        masks += [rows.matching(word) for word in (query.text, *query.words) if word]
        found = rows.page(query, _all(masks), self._text_of(table))
        listed = self.rows_of(table, found.ids)
        about = {"next": found.next, "previous": found.previous, "total": found.total, "first": found.first}
        return self._result({"rows": listed, **about})

    def page(self, page: int | str) -> Result:
        """Return one page, by id or URL; UsageError if it is not known."""
        found = self.id_of(page)
        return self._result({"page": self.rows_of("pages", [found])[0]})

    def id_of(self, page: int | str) -> int:
        """Return the id of a page that is given by id or URL."""
        if isinstance(page, str):
            rows = self._rows["pages"]
            order, text_of = rows["order_url"], self._text_of("pages")
            low, high, wanted = 0, rows.size, page.lower().encode("utf-8", "replace")
            while low < high:  # among URLs that differ only in case, the order is by id
                middle = (low + high) // 2
                if text_of("url", int(order[middle])).encode() < wanted:
                    low = middle + 1
                else:
                    high = middle
            while low < rows.size and text_of("url", int(order[low])).encode() == wanted:
                if self._ask("SELECT url FROM pages WHERE id = ?", int(order[low]))[0][0] == page:
                    return int(order[low])
                low += 1
            raise UsageError(f"{page[:200]} is not a known URL of this survey", hint="list them on the page Pages")
        if type(page) is not int or not 0 <= page < self._rows["pages"].size:
            last = self._rows["pages"].size - 1
            raise UsageError(f"there is no page {str(page)[:50]}", hint=f"ids run from 0 to {last:,}")
        return page

    def folders(self, prefix: str = "") -> Result:
        """Return a folder and those directly below it, most important first; without a prefix, the sites."""
        columns = ", ".join(TABLES["folders"])
        here, parent = None, -1
        if prefix:
            found = self._dicts("folders", f"SELECT {columns} FROM folders WHERE prefix = ?", prefix)  # noqa: S608
            if not found:
                raise UsageError(f"{prefix[:200]} is not a folder of this survey", hint="it ends with a slash")
            here, parent = found[0], found[0]["id"]
        where = "parent IS NULL" if parent < 0 else "parent = ?"
        query = f"SELECT {columns} FROM folders WHERE {where} ORDER BY share DESC, pages DESC, id LIMIT 500"  # noqa: S608
        rows = self._dicts("folders", query, *([parent] if parent >= 0 else []))
        return self._result({"folder": here, "rows": rows})

    def blocked(self, *, after: str = "", limit: int = 50, reason: str | None = None) -> Result:
        """Return the reasons of blocked pages with their number and importance, and pages, most important first."""
        filters: dict[str, Any] = {"status": "blocked"}
        if reason is not None:
            filters["reason"] = reason
        pages = self.pages(PageQuery(filters=filters, sort="mass", after=after, limit=limit))
        return self._result(
            {"reasons": self.reasons(), **{name: pages[name] for name in ("rows", "next", "previous", "total")}}
        )

    def reasons(self) -> list[Row]:
        """Return the reasons of blocked pages with their number and importance, most important first."""
        rows = self._ask("SELECT reason, pages, mass FROM blocked ORDER BY mass DESC, pages DESC, reason")
        return [dict(zip(("reason", "pages", "mass"), row, strict=True)) for row in rows]

    def frontier(self, *, after: str = "", limit: int = 50) -> Result:
        """Return the queued pages in the order of the queue, and the hosts with most queued pages."""
        pages = self.pages(PageQuery(filters={"status": "queued"}, sort="priority", after=after, limit=limit))
        hosts = self.hosts(PageQuery(sort="queued", limit=20))["rows"]
        waiting = [host for host in hosts if host["queued"]]
        return self._result({"hosts": waiting, **{name: pages[name] for name in PAGING}})

    def in_links(self, page: int | str, *, limit: int = 50, after: str = "") -> Result:
        """Return the links to a page, largest contribution first, with their anchor texts; needs a link graph."""
        node = self.id_of(page)
        return self._result(self.links.in_links(node, limit, after))

    def out_links(self, page: int | str, *, limit: int = 50, after: str = "") -> Result:
        """Return the links of a page as it was last fetched, in scope or not."""
        return self._result(out_links(self, self.id_of(page), limit, after))

    def explanation(self, page: int | str, *, top: int = 10) -> Result:
        """Return the links and jumps that the score of a page comes from, as `explain`; None if it is not ranked."""
        return self._result({"explanation": self.links.explanation(self.id_of(page), top)})

    def visits(self, page: int | str, *, limit: int = 50) -> Result:
        """Return the latest visits of a page, also those after the build."""
        number = self.id_of(page)
        with self._lock:
            found = self.journal.visits_of(number, check_limit(limit) + 1)
        return self._result({"rows": visit_rows(found, limit), "more": len(found) > limit})

    @cached_property
    def links(self) -> Links:
        """The graph and its ranks; UsageError in a survey without links."""
        require_graph(self._survey)
        return Links(self)

    @cached_property
    def host_names(self) -> list[str]:
        """The hosts, by code."""
        return [name for (name,) in self._ask("SELECT host FROM hosts ORDER BY id")]

    def column(self, name: str) -> np.ndarray[Any, Any]:
        """Return the array of a column of the table `pages`."""
        return self._rows["pages"][name]

    def last_fetch(self, page: int) -> Visit | None:
        """Return the latest visit that fetched a page."""
        with self._lock:
            return self.journal.last_visit(page, "fetched")

    def query(self, sql: str, *, seconds: float = 2.0, rows: int = 1_000) -> Result:
        """Run one SELECT over the tables (see `schema.py`), for a limited time, into a limited number of rows."""
        return self._result(run_query(self._generation.folder / DATABASE, sql, seconds=seconds, rows=rows))

    def rows_of(self, table: str, ids: Sequence[int]) -> list[Row]:
        """Return rows of a table by id, in this order."""
        columns, marks = ", ".join(TABLES[table]), ", ".join("?" * len(ids))
        rows = self._dicts(table, f"SELECT {columns} FROM {table} WHERE id IN ({marks})", *ids)  # noqa: S608
        by_id = {row["id"]: row for row in rows}
        return [by_id[one] for one in ids]

    def _mask(self, name: str, wanted: Any) -> BoolArray:
        """Return which pages a filter selects."""
        rows = self._rows["pages"]
        if isinstance(wanted, dict):
            return self._range(name, wanted)
        if name == "folder":
            return self._below(str(wanted))
        if name not in FACETS and name not in RANGES:
            known = ", ".join(sorted({*FACETS, *RANGES, "folder"}))
            raise UsageError(f"there is no filter {str(name)[:50]!r}", hint=f"known: {known}")
        masks = []
        for one in wanted if isinstance(wanted, list | tuple) else [wanted]:
            values = rows[name]
            code = self._code_of(name, one)
            masks.append(np.isnan(values) if code is None else values == code)
        return _any(masks, rows.size)

    def _code_of(self, name: str, value: Any) -> Any:
        """Return the code of a value of a column; -1 or, in a column of real numbers, None for a missing one."""
        if name == "status":
            return STATUSES.index(value) if value in STATUSES else 255
        if name in CODED:
            if value is None or value == "":
                return 0
            found = self._ask("SELECT id FROM words WHERE kind = ? AND value = ?", name, str(value))
        elif name in ("host", "domain"):
            found = self._ask(f"SELECT id FROM {name}s WHERE {name} = ?", str(value))  # noqa: S608
        else:
            if value is None or value == "":
                return None if self._rows["pages"][name].dtype.kind == "f" else -1
            return _number(name, value)
        return found[0][0] if found else -2

    def _range(self, name: str, wanted: dict[str, Any]) -> BoolArray:
        """Return which pages have a value within bounds."""
        if name not in RANGES or not wanted or wanted.keys() - {"at_least", "at_most"}:
            raise UsageError(
                f"{str(name)[:50]!r} has no range {str(wanted)[:50]}", hint=f"ranges: {', '.join(sorted(RANGES))}"
            )
        values = self._rows["pages"][name]
        mask: BoolArray = values >= 0
        if "at_least" in wanted:
            mask = mask & (values >= _number(name, wanted["at_least"]))
        if "at_most" in wanted:
            mask = mask & (values <= _number(name, wanted["at_most"]))
        return mask

    def _below(self, prefix: str) -> BoolArray:
        """Return which pages are in a folder or below it."""
        found = self._ask("SELECT id FROM folders WHERE prefix = ?", prefix)
        folder = self._rows["pages"]["folder"]
        if not found:
            return np.zeros(folder.size, np.bool_)
        parents, depth = self._folder_arrays
        inside = np.zeros(parents.size, np.bool_)
        inside[found[0][0]] = True
        for level in range(int(depth[found[0][0]]) + 1, int(depth.max()) + 1):
            here = np.flatnonzero(depth == level)
            inside[here] = inside[parents[here]]
        mask: BoolArray = inside[folder]
        return mask

    @cached_property
    def _folder_arrays(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        place = self._generation.folder / "folders"
        return map_npy(place / "parent.npy"), map_npy(place / "depth.npy")

    def _facets(self, masks: dict[str, BoolArray]) -> dict[str, list[Row]]:
        """Return the most frequent values of each facet among the pages that all filters but its own select."""
        found = {}
        whole = _all(masks.values())
        ids = None if whole is None else np.flatnonzero(whole)
        for kind in FACETS:
            chosen, others = ids, [mask for name, mask in masks.items() if name != kind]
            if kind in masks:
                mask = _all(others)
                chosen = None if mask is None else np.flatnonzero(mask)
            found[kind] = self._top(kind, chosen)
        return found

    def _top(self, kind: str, ids: np.ndarray[Any, Any] | None) -> list[Row]:
        """Return the most frequent values of a facet among some pages, or all."""
        if ids is None:
            query = "SELECT value, pages FROM facets WHERE kind = ? ORDER BY pages DESC, value LIMIT ?"
            return [{"value": value, "pages": count} for value, count in self._ask(query, kind, TOP)]
        codes = self._rows["pages"][kind][ids]
        counts = np.bincount(codes.astype(np.int64) + 1)
        best = np.lexsort((np.arange(counts.size), -counts))[:TOP]
        best = best[counts[best] > 0]
        rows = [{"value": self._value_of(kind, int(code) - 1), "pages": int(counts[code])} for code in best]
        return sorted(rows, key=lambda row: (-row["pages"], row["value"] is not None, row["value"] or 0))

    def _value_of(self, kind: str, code: int) -> Any:
        if kind == "status":
            return STATUSES[code]
        if kind in CODED:
            return self._ask("SELECT value FROM words WHERE kind = ? AND id = ?", kind, code)[0][0] or None
        if kind in ("host", "domain"):
            return self._ask(f"SELECT {kind} FROM {kind}s WHERE id = ?", code)[0][0]  # noqa: S608
        return None if code < 0 else code

    def _text_of(self, table: str) -> Any:
        def text_of(column: str, row: int) -> str:
            found = self._ask(f"SELECT {column} FROM {table} WHERE id = ?", row)  # noqa: S608
            return (found[0][0] or "").lower()

        return text_of

    def _ask(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._database.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise SurveyError(
                    f"{self._generation.folder} is damaged ({error})", hint="remove it: it is built again"
                ) from error

    def _dicts(self, table: str, query: str, *values: Any) -> list[Row]:
        return [dict(zip(TABLES[table], row, strict=True)) for row in self._ask(query, *values)]

    def _result(self, fields: Result) -> Result:
        return {"as_of": self.as_of, **fields}


def connect(path: Path) -> sqlite3.Connection:
    """Open a database that no process writes to."""
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    for setting in (f"cache_size = -{CACHE}", "query_only = ON", "trusted_schema = OFF"):
        connection.execute(f"PRAGMA {setting}")
    return connection


def _all(masks: Iterable[BoolArray]) -> BoolArray | None:
    whole: BoolArray | None = None
    for mask in masks:
        whole = mask if whole is None else whole & mask
    return whole


def _any(masks: Sequence[BoolArray], size: int) -> BoolArray:
    whole = np.zeros(size, np.bool_)
    for mask in masks:
        whole |= mask
    return whole


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name} must be a number, got {str(value)[:50]!r}", hint="for example 200") from error
    return number
