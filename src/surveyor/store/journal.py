"""The journal of a survey: every outcome of a crawl in one SQLite file, appended, never changed.

    urls      id, url                     page ids are given from 0 upwards, in the order of discovery
    visits    visit, page, kind, …        one row per outcome, in the order in which they counted
    robots    origin, …, body             the latest robots.txt of each origin
    events    event, visit, at, kind, …   what else happened (retry, wait, robots, requests, offline, closed, …)
    meta      key, value                  the version of this layout, and what names this journal
    history   (a view)                    the visits with URLs and dates, for people

**What lasts.** `commit` is one transaction: all of a batch is kept, or nothing. Once it returns, the batch survives
the death of the process at any moment. With `sync="normal"` a power cut may take the last batches, never anything
older, and never leaves half of one; with `sync="full"` (one wait for the disk per commit) it takes nothing.

**Links** are lists of page ids, in the order of the page, packed (`lists.py`). Empty values are NULL.

**Deletion.** A host whose data must go keeps its rows, so that a replay goes through: each visit turns into *blocked*,
reason *deleted*, and holds nothing else; pages never visited get such a row too, so that they are not asked again.
URLs stay, as others link to them. `identity` changes: no earlier checkpoint is used. Freed space is overwritten.

A journal of an earlier version is brought up to date when it is opened for writing (`MIGRATIONS`).
"""
# ruff: noqa: S608  # statements are put together from names of columns; values are always bound

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

import numpy as np

from surveyor.arrays import IdArray
from surveyor.errors import SurveyError, UsageError
from surveyor.outcome import NO_LINKS, Kind, Outcome
from surveyor.store.lists import pack, unpack
from surveyor.store.survey import damaged, explained
from surveyor.visit import Event, Place, RobotsFile, Visit

Sync = Literal["normal", "full"]
CHUNK = 1000  # rows read at a time
VERSION_1 = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE urls(id INTEGER PRIMARY KEY, url TEXT NOT NULL);
CREATE TABLE visits(visit INTEGER PRIMARY KEY, page INTEGER NOT NULL, kind TEXT NOT NULL, reason TEXT, target INTEGER,
  status INTEGER, fetched_at REAL, seconds REAL, hash BLOB, etag TEXT, last_modified TEXT,
  links BLOB, out_of_scope BLOB, nofollow BLOB, title TEXT, language TEXT,
  warc_file TEXT, warc_offset INTEGER, warc_length INTEGER);
CREATE INDEX visits_of_page ON visits(page);
CREATE TABLE robots(origin TEXT PRIMARY KEY, fetched_at REAL, expires_at REAL, status INTEGER, body BLOB);
CREATE TABLE events(event INTEGER PRIMARY KEY, visit INTEGER NOT NULL, at REAL, kind TEXT NOT NULL, detail TEXT);
INSERT INTO meta VALUES
  ('format', 'surveyor-journal'), ('schema', '1'), ('edition', '0'), ('journal', lower(hex(randomblob(16))))
"""
VERSION_2 = """
ALTER TABLE visits ADD COLUMN size INTEGER;
CREATE VIEW history AS SELECT visit, page, urls.url AS url, kind, reason, goal.url AS target, status,
  datetime(fetched_at, 'unixepoch') AS fetched_at, round(seconds, 3) AS seconds, size, title, language
  FROM visits LEFT JOIN urls ON urls.id = page LEFT JOIN urls AS goal ON goal.id = visits.target
"""
COLUMNS = (
    "page, kind, reason, target, links, status, fetched_at, seconds, hash, etag, last_modified, out_of_scope, "
    "nofollow, title, language, warc_file, warc_offset, warc_length, size"
)
KINDS = frozenset(get_args(Kind))
URLS = "SELECT coalesce(max(id) + 1, 0) FROM urls"
BLANK = ", ".join(f"{name} = NULL" for name in COLUMNS.split(", ")[3:])


class Journal:
    """What remembers a crawl; one writer, any number of readers."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self._connection = path, connection
        self.position = self.url_count = 0  # the number of the last visit; the id of the next page
        self.refresh()

    @classmethod
    def open(cls, path: Path, *, create: bool = False, write: bool = True, sync: Sync = "normal") -> Journal:
        """Open a journal, or make one that must not exist yet; without `write`, beside another that writes."""
        if path.exists() == create:
            state, hint = ("exists already", "choose another name") if create else ("does not exist", "check its name")
            raise SurveyError(f"{path} {state}", hint=hint)
        with explained(path):
            connection = _connect(path, write=write or create)
            try:
                if write or create:
                    for setting in ("journal_mode = WAL", f"synchronous = {sync}", "secure_delete = ON"):
                        connection.execute(f"PRAGMA {setting}")
                with _transaction(connection):
                    if create:
                        _run(VERSION_1, connection)
                    _migrate(path, connection, write=write or create)
                return cls(path, connection)
            except BaseException:
                connection.close()
                raise

    def close(self) -> None:
        """Close the file; what was committed stays committed."""
        self._connection.close()

    def commit(
        self,
        outcomes: Sequence[Outcome],
        new_urls: Sequence[str] = (),
        *,
        robots: Iterable[RobotsFile] = (),
        events: Iterable[Event] = (),
    ) -> None:
        """Keep outcomes in this order, and the URLs of the pages that became known with them: all, or nothing."""
        visits, known = _told(outcomes), self.url_count + len(new_urls)
        lists = [ids for visit in visits for ids in (visit.links, visit.out_of_scope, visit.nofollow)]
        goals = [visit.target if visit.kind == "moved" else max(visit.page, visit.target) for visit in visits]
        named = np.concatenate([NO_LINKS, [visit.page for visit in visits], goals, *lists])
        if named.min(initial=0) < 0 or named.max(initial=-1) >= known:
            problem = f"outcomes name pages {named.min()} to {named.max()}, and {known} pages have URLs"
            raise UsageError(problem, hint="commit the URLs with them")
        places = sorted((visit.warc.file, visit.warc.offset + visit.warc.length) for visit in visits if visit.warc)
        position = self.position + len(visits)
        with explained(self.path), _transaction(self._connection):
            run = self._connection.executemany
            run("INSERT INTO urls VALUES (?, ?)", enumerate(map(_text, new_urls), self.url_count))
            rows = ((visit, *row) for visit, row in enumerate(_rows(visits), self.position + 1))
            run(f"INSERT INTO visits(visit, {COLUMNS}) VALUES (?{', ?' * 19})", rows)
            run("INSERT OR REPLACE INTO robots VALUES (?, ?, ?, ?, ?)", robots)
            notes = ((position, event.at, event.kind, json.dumps(dict(event.detail))) for event in events)
            run("INSERT INTO events(visit, at, kind, detail) VALUES (?, ?, ?, ?)", notes)
            run("INSERT OR REPLACE INTO meta VALUES ('archived', ? || ' ' || ?)", places[-1:])
        self.position, self.url_count = position, known

    def outcomes(self, since: int = 0) -> Iterator[Outcome]:
        """Yield the outcomes after a position, in the order in which they counted: all that a replay needs."""
        columns = "visit, page, kind, reason, target, links, fetched_at"
        for rows in self._chunks(f"SELECT {columns} FROM visits", "visit", since):
            lists = self._links(rows, 5)
            self._check([row[1:5] for row in rows], lists)
            for (_, page, kind, reason, target, _, at), links in zip(rows, lists, strict=True):
                told = page, kind, links, reason or "", -1 if target is None else target
                yield Visit(*told, fetched_at=at) if at and kind == "blocked" else Outcome(*told)  # see `was_asked`

    def visits(self, since: int = 0) -> Iterator[Visit]:
        """Yield the visits after a position, in the order in which they counted."""
        for rows in self._chunks(f"SELECT visit, {COLUMNS} FROM visits", "visit", since):
            yield from self._visits([row[1:] for row in rows])

    def last_visit(self, page: int, kind: Kind | None = None, *, before: int | None = None) -> Visit | None:
        """Return the latest visit to a page, or the latest of one kind, or the latest before a visit."""
        query = f"""SELECT {COLUMNS} FROM visits WHERE page = ?1 AND (kind = ?2 OR ?2 IS NULL)
            AND (visit < ?3 OR ?3 IS NULL) ORDER BY visit DESC LIMIT 1"""
        return next(self._visits(self._ask(query, page, kind, before)), None)

    def urls(self, since: int = 0) -> Iterator[str]:
        """Yield the URLs of the pages from this id on."""
        for rows in self._chunks("SELECT id, url FROM urls", "id", since - 1):
            yield from (url for _, url in rows)

    def pages(self) -> Iterator[tuple[int, str, Visit | None]]:
        """Yield each page: its id, its URL and the latest visit to it."""
        query = f"""SELECT id, url, {COLUMNS} FROM urls LEFT JOIN visits
            ON visit = (SELECT max(visit) FROM visits WHERE page = id)"""
        for rows in self._chunks(query, "id", -1):
            visits = self._visits([row[2:] for row in rows if row[2] is not None])
            yield from ((row[0], row[1], None if row[2] is None else next(visits)) for row in rows)

    def kinds(self) -> dict[str, int]:
        """Count the visits of each kind; reads them all."""
        return dict(self._ask("SELECT kind, count(*) FROM visits GROUP BY kind ORDER BY kind"))

    def blocked(self) -> Iterator[Outcome]:
        """Yield the pages whose latest visit, up to this position, was blocked, and why."""
        query = """SELECT page, reason FROM visits WHERE kind = 'blocked' AND visit <= ?1 AND visit =
            (SELECT max(visit) FROM visits AS later WHERE later.page = visits.page AND later.visit <= ?1)"""
        return (Outcome(page, "blocked", reason=reason or "") for page, reason in self._ask(query, self.position))

    def cost(self) -> tuple[int, int, int]:
        """Count how often a page was read, the bytes that came over the wire, and the requests; reads all visits.

        Each visit that was asked for stands for one request; the others (robots.txt, retries) are in events.
        """
        asked = "sum(kind != 'blocked' OR fetched_at IS NOT NULL)"
        pages, size, visits = self._ask(f"SELECT sum(kind = 'read'), sum(size), {asked} FROM visits")[0]
        try:
            others = sum(int(event.detail["count"]) for event in self.events("requests"))
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(self.path, f"an event that counts no requests: {error!r}") from error
        return pages or 0, size or 0, (visits or 0) + others

    def robots(self, origin: str) -> RobotsFile | None:
        """Return the latest robots.txt of an origin."""
        found = self._ask("SELECT * FROM robots WHERE origin = ?", origin)
        return RobotsFile(*found[0]) if found else None

    def asked(self, since: int = 0) -> IdArray:
        """Return the pages that were asked for after a position, each as often as it was; not those only refused."""
        query = "SELECT page FROM visits WHERE visit > ? AND (kind != 'blocked' OR fetched_at IS NOT NULL)"
        return np.array([page for (page,) in self._ask(query, since)], np.int32)

    def events(self, kind: str | None = None) -> Iterator[Event]:
        """Yield the events, or those of one kind, in the order in which they happened."""
        query = "SELECT visit, at, kind, detail FROM events WHERE kind = ?1 OR ?1 IS NULL ORDER BY event"
        for visit, at, which, detail in self._ask(query, kind):
            try:
                yield Event(which, at, dict(json.loads(detail)), visit)
            except (ValueError, TypeError) as error:
                raise damaged(self.path, error) from error

    def closings(self) -> list[int]:
        """Return after how many visits no page was left, each time; see `visit.News`."""
        return [visit for (visit,) in self._ask("SELECT visit FROM events WHERE kind = 'closed' ORDER BY event")]

    def answered(self) -> Iterator[str]:
        """Yield the origins that have answered when asked for their robots.txt."""
        return (origin for (origin,) in self._ask("SELECT origin FROM robots WHERE status > 0"))

    def visited_since(self, page: int, position: int) -> bool:
        """Say whether there was a visit to a page after a position."""
        return bool(self._ask("SELECT 1 FROM visits WHERE page = ? AND visit > ? LIMIT 1", page, position))

    @property
    def identity(self) -> str:
        """What names this journal and changes when its past does: a checkpoint of another one is worthless."""
        marks = self._ask("SELECT value FROM meta WHERE key IN ('journal', 'edition') ORDER BY key DESC")
        return ".".join(mark for (mark,) in marks)

    @property
    def hash_key(self) -> bytes:
        """The secret under which texts of this survey are hashed; a random one if none is stored yet."""
        found = self._ask("SELECT value FROM meta WHERE key = 'hash_key'")
        if found and not re.fullmatch("[0-9a-f]{32}", found[0][0]):
            raise damaged(self.path, "its hash key is not one")
        return bytes.fromhex(found[0][0]) if found else os.urandom(16)

    @property
    def archived(self) -> tuple[str, int] | None:
        """The last WARC file that visits refer to, and where in it the last record ends."""
        found = self._ask("SELECT value FROM meta WHERE key = 'archived'")
        return (found[0][0].split()[0], int(found[0][0].split()[1])) if found else None

    def delete_host(self, host: str, pages: Sequence[int]) -> None:
        """Forget what the pages of a host held, and its robots.txt; their bodies in WARC files are not in here."""
        origins = [row for row in self._ask("SELECT origin FROM robots") if urlsplit(row[0]).hostname == host]
        each = [(int(page),) for page in pages]
        with explained(self.path), _transaction(self._connection):
            run = self._connection.executemany
            run(f"UPDATE visits SET kind = 'blocked', reason = 'deleted', {BLANK} WHERE page = ?", each)
            run("INSERT INTO visits(page, kind, reason) SELECT ?1, 'blocked', 'deleted' WHERE NOT EXISTS "
                "(SELECT 1 FROM visits WHERE page = ?1)", each)  # fmt: skip
            run("DELETE FROM robots WHERE origin = ?", origins)
            run("UPDATE meta SET value = value + 1 WHERE key = 'edition'", [()])
        self.flush()
        self.refresh()

    def flush(self) -> None:
        """Move all from the write-ahead log into the file, and wait for the disk."""
        self._ask("PRAGMA wal_checkpoint(TRUNCATE)")

    def vacuum(self) -> None:
        """Give free space back to the disk; needs as much again while it works."""
        self._ask("VACUUM")

    def check(self) -> None:
        """Read the whole file and raise if it is damaged."""
        if (found := self._ask("PRAGMA integrity_check(1)")[0][0]) != "ok":
            raise damaged(self.path, found)

    def refresh(self) -> None:
        """Find where the journal ends: for a reader, where it ends by now."""
        self.position = self._ask("SELECT coalesce(max(visit), 0) FROM visits")[0][0]
        self.url_count = self._ask(URLS)[0][0]

    def _ask(self, query: str, *values: object) -> list[Any]:
        with explained(self.path):
            return self._connection.execute(query, values).fetchall()

    def _chunks(self, query: str, key: str, since: int) -> Iterator[list[Any]]:
        """Yield rows after a key, some at a time: a slow reader never keeps the log from being cleared."""
        while rows := self._ask(f"{query} WHERE {key} > ? ORDER BY {key} LIMIT {CHUNK}", since):
            yield rows
            since = rows[-1][0]

    def _visits(self, rows: Sequence[Any]) -> Iterator[Visit]:
        lists = [self._links(rows, column) for column in (4, 11, 12)]
        self._check([row[:4] for row in rows], [ids for column in lists for ids in column])
        for row, links, outside, nofollow in zip(rows, *lists, strict=True):
            page, kind, reason, target, _, status, at, seconds, digest, etag, changed = row[:11]
            title, language, file, offset, length, size = row[13:]
            yield Visit(
                page, kind, links, reason or "", -1 if target is None else target,
                status or 0, at or 0.0, seconds or 0.0, digest or b"", etag or "", changed or "", outside, nofollow,
                title or "", language or "", None if file is None else Place(file, offset, length), size or 0,
            )  # fmt: skip

    def _check(self, rows: Sequence[Any], lists: Sequence[IdArray]) -> None:
        """Refuse visits (page, kind, reason, target) and links that nobody can have committed."""
        for page, kind, reason, target in rows:
            if type(page) is not int or kind not in KINDS or not isinstance(reason, str | None):
                raise damaged(self.path, "a visit of no kind")
            if not (target is None or type(target) is int) or (kind == "moved" and target is None):
                raise damaged(self.path, "a visit that leads nowhere")
        named = [number for row in rows for number in (row[0], row[3] or 0)]
        highest = max(max(named, default=-1), int(np.concatenate([NO_LINKS, *lists]).max(initial=-1)))
        if min(named, default=0) < 0 or (highest >= self.url_count and highest >= self._ask(URLS)[0][0]):
            raise damaged(self.path, f"it speaks of page {highest}, which has no URL")

    def _links(self, rows: Sequence[Any], column: int) -> list[IdArray]:
        try:
            return unpack([row[column] for row in rows])
        except (ValueError, TypeError) as error:
            raise damaged(self.path, error) from error


def _told(outcomes: Sequence[Outcome]) -> list[Visit]:
    return [o if isinstance(o, Visit) else Visit(o.page, o.kind, o.links, o.reason, o.target) for o in outcomes]


def _rows(visits: Sequence[Visit]) -> list[tuple[object, ...]]:
    """Return the columns of each visit, empty values as None."""
    lists = (pack([getattr(visit, name) for visit in visits]) for name in ("links", "out_of_scope", "nofollow"))
    return [
        (
            int(visit.page), visit.kind, _text(visit.reason), None if visit.target < 0 else int(visit.target), links,
            visit.status or None, visit.fetched_at or None, visit.seconds or None, visit.hash or None,
            _text(visit.etag), _text(visit.last_modified), outside, nofollow, _text(visit.title),
            _text(visit.language), *(visit.warc or (None, None, None)), visit.size or None,
        )
        for visit, links, outside, nofollow in zip(visits, *lists, strict=True)
    ]  # fmt: skip


def _text(text: str) -> str | None:
    """Return text that UTF-8 can hold: pages hold anything, and one of them must not end a crawl."""
    return (text if text.isascii() else text.encode("utf-8", "replace").decode()) or None


def _connect(path: Path, *, write: bool) -> sqlite3.Connection:
    """Open the file. A read-only folder has no room for what readers share, but there nobody can be writing."""
    for mode in ["rwc"] if write else ["ro", "ro&immutable=1"]:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None)
        try:
            connection.execute("SELECT 1 FROM sqlite_schema")
        except sqlite3.Error:
            connection.close()
            if mode != "ro" or path.with_name(path.name + "-wal").exists():
                raise
        else:
            break
    return connection


def _migrate(path: Path, connection: sqlite3.Connection, *, write: bool) -> None:
    """Bring an earlier version up to date; refuse a newer one."""
    marks = dict(connection.execute("SELECT key, value FROM meta"))
    version = marks.get("schema", "")
    if marks.get("format") != "surveyor-journal" or not version.isdigit():
        raise damaged(path, "it does not say its version")
    versions = f"(version {version}; this one has {VERSION})"
    if int(version) > VERSION:
        raise SurveyError(f"{path} is from a newer surveyor {versions}", hint="pip install --upgrade surveyor")
    if int(version) < VERSION and not write:
        raise SurveyError(f"{path} is from an older surveyor {versions}", hint="go on with the survey first")
    if write and "hash_key" not in marks:
        connection.execute("INSERT INTO meta VALUES ('hash_key', ?)", (os.urandom(16).hex(),))
    for migration in MIGRATIONS[int(version) - 1 :]:
        migration(connection)
    if int(version) < VERSION:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (str(VERSION),))


def _run(statements: str, connection: sqlite3.Connection) -> None:
    for statement in statements.split(";"):
        connection.execute(statement)


MIGRATIONS = (partial(_run, VERSION_2),)  # functions, from version n to n + 1; a new journal takes the same way
VERSION = 1 + len(MIGRATIONS)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
