"""Queries of a journal: visits, URLs, events and what follows from them, each row checked before it is used.

A reader sees what was committed when it asks, which may be more than `position`: another process may be writing.
Values that cannot have been committed are reported as damage.
"""
# ruff: noqa: S608  # statements are built from column names only; values are always bound

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from surveyor.arrays import IdArray
from surveyor.outcome import NO_LINKS, STATE_EVENTS, Event, Kind, Outcome, RobotsFile, Visit
from surveyor.store import cash, commits
from surveyor.store.database import ask, unpack
from surveyor.store.disk import damaged, disk_errors
from surveyor.store.schema import KINDS
from surveyor.store.validation import (
    check_counts,
    check_event,
    check_robots,
    check_texts,
    check_visits,
    is_time,
)
from surveyor.store.visit_rows import visits_of

CHUNK = 1000  # rows read at a time
EVENTS_SEARCHED = 100_000
COLUMNS = commits.VISIT
NO_LISTS = re.sub(r"\b(links|out_of_scope|nofollow|contexts)\b", "NULL", COLUMNS)
IDENTITY = "SELECT value FROM meta WHERE key IN ('journal', 'edition') ORDER BY key DESC"
URLS = "SELECT coalesce(max(id) + 1, 0) FROM urls"


class JournalQueries:
    """A journal, open for reading."""

    def __init__(self, path: Path, connection: apsw.Connection) -> None:
        self.path, self._connection = path, connection
        self.position = self.url_count = 0  # number of the last visit; id of the next page

    def outcomes(self, since: int = 0) -> Iterator[Outcome]:
        """Yield the outcomes after a position in the order in which they counted: all that a replay needs."""
        columns = "visit, page, kind, reason, target, links, fetched_at"
        for rows in self._chunks(f"SELECT {columns} FROM visits", "visit", since):
            lists = self._links(rows, 5)
            self._check([row[1:5] for row in rows], lists)
            if not {type(row[6]) for row in rows} <= {float, type(None)}:
                raise damaged(self.path, "a visit whose time is no number")
            for (_, page, kind, reason, target, _, at), links in zip(rows, lists, strict=True):
                values = page, kind, links, reason or "", -1 if target is None else target
                yield (Visit(*values, fetched_at=at) if at and kind == "blocked" else Outcome(*values))

    def history(self) -> Iterator[tuple[int, str, str, int, float, bytes, float, bytes]]:
        """Yield what a schedule of re-visits needs of each visit.

        Page, kind, reason, status, time, a hash of the content, the time until which the page is declared fresh, and a
        hash of the main text.
        """
        columns = "visit, page, kind, reason, status, fetched_at, hash, expires, text_hash"
        for rows in self._chunks(f"SELECT {columns} FROM visits", "visit", 0):
            self._check([(*row[1:4], 0) for row in rows], [])
            for _, page, kind, reason, status, at, content, expires, text in rows:
                if type(status) not in (int, type(None)):
                    raise damaged(self.path, "a visit whose status is no number")
                if not all(time is None or is_time(time) for time in (at, expires)):
                    raise damaged(self.path, "a visit whose time is not one between 1970 and 9999")
                if not isinstance(content, bytes | None) or not isinstance(text, bytes | None):
                    raise damaged(self.path, "a visit whose hash is no bytes")
                yield page, kind, reason or "", status or 0, at or 0.0, content or b"", expires or 0.0, text or b""

    def visits(self, since: int = 0, *, links: bool = True) -> Iterator[Visit]:
        """Yield the visits after a position, in the order in which they counted; without `links`, none has links."""
        for rows in self._chunks(f"SELECT visit, {COLUMNS if links else NO_LISTS} FROM visits", "visit", since):
            yield from self._visits([row[1:] for row in rows])

    def last_visit(self, page: int, kind: Kind | None = None, *, before: int | None = None) -> Visit | None:
        """Return the latest visit to a page, or the latest of one kind, or the latest before a visit."""
        query = f"""SELECT {COLUMNS} FROM visits WHERE page = ?1 AND (kind = ?2 OR ?2 IS NULL)
            AND (visit < ?3 OR ?3 IS NULL) ORDER BY visit DESC LIMIT 1"""
        return next(self._visits(self._ask(query, page, kind, before)), None)

    def visits_of(self, page: int, count: int) -> list[Visit]:
        """Return the latest visits to a page, latest first."""
        return list(
            self._visits(
                self._ask(f"SELECT {COLUMNS} FROM visits WHERE page = ? ORDER BY visit DESC LIMIT ?", page, count)
            )
        )

    def last_result(self, page: int, *, before: int) -> Visit | None:
        """Return the latest visit to a page before a visit that was not blocked."""
        query = f"""SELECT {COLUMNS} FROM visits WHERE page = ?1 AND kind != 'blocked' AND visit < ?2
            ORDER BY visit DESC LIMIT 1"""
        return next(self._visits(self._ask(query, page, before)), None)

    def position_at(self, at: float) -> int:
        """Return the position before the first visit at or after a time; the end if there is none."""
        found = self._ask("SELECT min(visit) FROM visits WHERE fetched_at >= ?", at)[0][0]
        return self.position if found is None else int(found) - 1

    def urls(self, since: int = 0) -> Iterator[str]:
        """Yield the URLs of pages from this id on."""
        for rows in self._chunks("SELECT id, url FROM urls", "id", since - 1):
            urls = [url for _, url in rows]
            with self._sound():
                check_texts("a URL", urls)
            yield from urls

    def urls_between(self, first: int, end: int) -> list[str]:
        """Return the URLs of the pages from `first` up to, but without, `end`."""
        urls = [url for (url,) in self._ask("SELECT url FROM urls WHERE id >= ? AND id < ? ORDER BY id", first, end)]
        with self._sound():
            check_texts("a URL", urls)
        if len(urls) != end - first:
            raise damaged(self.path, f"rows with id from {first:,} to {end - 1:,} are missing")
        return urls

    @cached_property
    def keeps_graph(self) -> bool:
        """Whether it stores the links of pages; otherwise their cash."""
        with disk_errors(self.path):
            return not cash.has_cash(self._connection)

    def pages(self) -> Iterator[tuple[int, str, Visit | None]]:
        """Yield the id, URL and latest visit of each page."""
        query = f"""SELECT id, url, {COLUMNS} FROM urls LEFT JOIN visits
            ON visit = (SELECT max(visit) FROM visits WHERE page = id)"""
        for rows in self._chunks(query, "id", -1):
            visits = self._visits([row[2:] for row in rows if row[2] is not None])
            with self._sound():
                check_texts("a URL", [row[1] for row in rows])
            yield from ((row[0], row[1], None if row[2] is None else next(visits)) for row in rows)

    def kinds(self) -> dict[str, int]:
        """Count the visits of each kind; read all of them."""
        return dict(self._ask("SELECT kind, count(*) FROM visits GROUP BY kind ORDER BY kind"))

    def blocked(self) -> Iterator[Outcome]:
        """Yield the pages whose latest visit up to this position was blocked, with the reason."""
        query = """SELECT page, reason FROM visits WHERE kind = 'blocked' AND visit <= ?1 AND visit =
            (SELECT max(visit) FROM visits AS later WHERE later.page = visits.page AND later.visit <= ?1)"""
        rows = self._ask(query, self.position)
        self._check([(page, "blocked", reason, None) for page, reason in rows], [])
        return (Outcome(page, "blocked", reason=reason or "") for page, reason in rows)

    def read_for(self, reason: str) -> list[int]:
        """Return the pages whose latest visit up to this position fetched them and recorded this reason."""
        query = """SELECT page FROM visits WHERE kind = 'fetched' AND reason = ?2 AND visit <= ?1 AND visit =
            (SELECT max(visit) FROM visits AS later WHERE later.page = visits.page AND later.visit <= ?1)"""
        pages = [page for (page,) in self._ask(query, self.position, reason)]
        with self._sound():
            check_counts("a page", pages)
        return pages

    def cost(self) -> tuple[int, int, int]:
        """Count the page fetches, the bytes transferred and the requests; read all visits.

        Each visit that was requested counts as one request; the others (robots.txt, retries) are in events.
        """
        asked = "sum(kind != 'blocked' OR fetched_at IS NOT NULL)"
        pages, size, visits = self._ask(f"SELECT sum(kind = 'fetched'), sum(size), {asked} FROM visits")[0]
        others = sum(int(event.detail["count"]) for event in self.events("requests"))
        with self._sound():
            check_counts("a number of bytes", [size or 0])
        return pages or 0, size or 0, (visits or 0) + others

    def redirects(self) -> Iterator[tuple[int, int]]:
        """Yield the pages that were found to redirect, and their targets, in order; read all visits."""
        rows = self._ask("SELECT page, target FROM visits WHERE kind = 'redirected' ORDER BY visit")
        self._check([(page, "redirected", None, target) for page, target in rows], [])
        return iter(rows)

    def blocked_before(self, position: int) -> list[int]:
        """Return the pages that were blocked up to a position and not visited later, without deleted ones."""
        query = """SELECT page FROM visits WHERE kind = 'blocked' AND reason != 'deleted' AND visit <= ?1 AND visit =
            (SELECT max(visit) FROM visits AS later WHERE later.page = visits.page)"""
        pages = [page for (page,) in self._ask(query, position)] if position else []
        with self._sound():
            check_counts("a page", pages)
        return pages

    def robots(self, origin: str) -> RobotsFile | None:
        """Return the latest robots.txt of an origin."""
        found = self._ask("SELECT * FROM robots WHERE origin = ?", origin)
        with self._sound():
            for row in found:
                check_robots(row)
        return RobotsFile(*found[0]) if found else None

    def asked(self, since: int = 0) -> IdArray:
        """Return the pages requested after a position, once per request; pages that were only blocked are omitted."""
        query = "SELECT page FROM visits WHERE visit > ? AND (kind != 'blocked' OR fetched_at IS NOT NULL)"
        pages = [page for (page,) in self._ask(query, since)]
        with self._sound():
            check_counts("a page", pages)
            return np.array(pages, np.int32)

    def events(self, *kinds: str) -> Iterator[Event]:
        """Yield the events, or those of some kinds, in chronological order."""
        chosen = f"WHERE kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
        yield from self._events(f"SELECT visit, at, kind, detail FROM events {chosen} ORDER BY event", *kinds)

    def latest_events(self, count: int, *kinds: str) -> list[Event]:
        """Return the latest events of some kinds, latest first, among the last `EVENTS_SEARCHED` of all kinds."""
        chosen = f"kind IN ({', '.join('?' * len(kinds))})"
        recent = "event > (SELECT max(event) FROM events) - ?"
        query = f"SELECT visit, at, kind, detail FROM events WHERE {recent} AND {chosen} ORDER BY event DESC LIMIT ?"
        return list(self._events(query, EVENTS_SEARCHED, *kinds, count))

    def _events(self, query: str, *values: Any) -> Iterator[Event]:
        rows, known = self._ask(query, *values), self._ask(URLS)[0][0]  # in this order: another process may be writing
        for visit, at, which, detail in rows:
            with self._sound():
                check_texts("a kind of event", [which])
                check_counts("the visit of an event", [visit])
                event = Event(which, at, dict(json.loads(detail)), visit)
                check_event(which, at, event.detail, known)
            yield event

    def state_events(self) -> list[Event]:
        """Return the events that change the state of a crawl; see `outcome.STATE_EVENTS`."""
        return list(self.events(*STATE_EVENTS))

    def answered(self) -> Iterator[str]:
        """Yield the origins that answered a request for their robots.txt."""
        origins = [origin for (origin,) in self._ask("SELECT origin FROM robots WHERE status > 0")]
        with self._sound():
            check_texts("an origin", origins)
        return iter(origins)

    def visited_since(self, page: int, position: int) -> bool:
        """Return whether a page was visited after a position."""
        return bool(self._ask("SELECT 1 FROM visits WHERE page = ? AND visit > ? LIMIT 1", page, position))

    @property
    def identity(self) -> str:
        """The identity of this journal, which changes when its history is rewritten; checkpoints are bound to it."""
        marks = [mark for (mark,) in self._ask(IDENTITY)]
        with self._sound():
            check_texts("a name of the journal", marks)
        return ".".join(marks)

    @property
    def hash_key(self) -> bytes:
        """The secret key for hashes of texts of this survey; a random one if none is stored yet."""
        found = self._ask("SELECT value FROM meta WHERE key = 'hash_key'")
        if found and not re.fullmatch("[0-9a-f]{32}", str(found[0][0])):
            raise damaged(self.path, "its hash key is not one")
        return bytes.fromhex(found[0][0]) if found else os.urandom(16)

    @property
    def archived(self) -> tuple[str, int] | None:
        """The last WARC file that visits refer to, and the end of the last record in it."""
        found = self._ask("SELECT value FROM meta WHERE key = 'archived'")
        if not found:
            return None
        words = re.fullmatch(r"(\S{1,100}) ([0-9]{1,18})", str(found[0][0]))
        if words is None:
            raise damaged(self.path, "it does not say where its archive ends")
        return words[1], int(words[2])

    def _ask(self, query: str, *values: Any) -> list[Any]:
        with disk_errors(self.path):
            return ask(self._connection, query, *values)

    @contextmanager
    def _sound(self) -> Iterator[None]:
        """Report invalid values as damage."""
        try:
            yield
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise damaged(self.path, error) from error

    def _chunks(self, query: str, key: str, since: int) -> Iterator[list[Any]]:
        """Yield rows after a key in chunks, so that a slow reader does not block checkpoints of the log."""
        while rows := self._ask(f"{query} WHERE {key} > ? ORDER BY {key} LIMIT {CHUNK}", since):
            if rows[-1][0] - since != len(rows):
                raise damaged(self.path, f"rows with {key} after {since:,} are missing")
            yield rows
            since = rows[-1][0]

    def _visits(self, rows: Sequence[Any]) -> Iterator[Visit]:
        lists = [self._links(rows, column) for column in (4, 11, 12)]
        self._check([row[:4] for row in rows], [ids for column in lists for ids in column])
        with self._sound():
            check_visits(rows)
        yield from visits_of(rows, lists)

    def _check(self, rows: Sequence[Any], lists: Sequence[IdArray]) -> None:
        """Refuse visits (page, kind, reason, target) and links that cannot have been committed."""
        for page, kind, reason, target in rows:
            if type(page) is not int or kind not in KINDS or not isinstance(reason, str | None):
                raise damaged(self.path, "a visit of no kind")
            if not (target is None or type(target) is int) or (kind == "redirected" and target is None):
                raise damaged(self.path, "a visit that leads nowhere")
        named = [number for row in rows for number in (row[0], row[3] or 0)]
        highest = max(max(named, default=-1), int(np.concatenate([NO_LINKS, *lists]).max(initial=-1)))
        if min(named, default=0) < 0 or (highest >= self.url_count and highest >= self._ask(URLS)[0][0]):
            raise damaged(self.path, f"it speaks of page {highest}, which has no URL")

    def _links(self, rows: Sequence[Any], column: int) -> list[IdArray]:
        with self._sound():
            return unpack([row[column] for row in rows])
