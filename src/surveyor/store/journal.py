"""The journal of a survey: every outcome of a crawl in one SQLite file, append-only.

    urls      id, url                     page ids are assigned from 0 upwards, in order of discovery
    visits    visit, page, kind, …        one row per outcome, in the order in which they counted
    robots    origin, …, body             the latest robots.txt of each origin
    events    event, visit, at, kind, …   other events (retry, wait, robots, requests, offline, closed, …)
    meta      key, value                  the schema version and the identity of this journal
    commits   number, visit, …, digest    the last rows of each commit, and a digest of all up to it (`commits.py`)
    history   (a view)                    the visits with URLs and dates, for people
    cash      page, cash, history, …      only in a survey without a link graph, with `cash_state` (`cash.py`)

**Durability.** `commit` is one transaction: all of a batch is stored, or nothing. Once it returns, the batch survives
the death of the process at any moment. With `sync="normal"` a power cut may lose the last batches, but nothing
older, and never part of one; with `sync="full"` (one disk sync per commit) it loses nothing. A commit of `SYNCED`
events is always synced, with everything before it.

**Damage** is always reported: every page of the file has a checksum that is verified when it is read
(`database.py`), and `open` verifies the last commits and compares them with the head (`commits.py`), which is stored in
a separate file. `check` verifies everything; `recovery.py` recovers the commits before the first bad one.

**Links** are lists of page ids, in page order, packed (`database.pack`). Empty values are NULL.

**Deletion.** A host whose data is deleted keeps its rows, so that a replay still works: each visit becomes *blocked*
with reason *deleted* and holds nothing else; pages never visited get such a row too, so that they are not requested
again. URLs are kept, as other pages link to them. `identity` changes, so no earlier checkpoint is used. Freed space is
overwritten, and the digests of all commits are recomputed.

A journal of another version is rejected (`OtherVersion`), damaged or not; version 4 is the first that was
released, version 5 added `text_hash` and `expires`, version 6 `contexts`: anchor text, element, rel and position of
each link (`web/link_context.py`).
"""
# ruff: noqa: S608  # statements are built from column names only; values are always bound

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import apsw
import numpy as np

from surveyor.arrays import IdArray
from surveyor.errors import SurveyError, UsageError
from surveyor.outcome import NO_LINKS, SHARD_EVENTS, STATE_EVENTS, Event, Kind, Outcome, RobotsFile, Visit
from surveyor.store import cash, commits
from surveyor.store.cash import CashChanges, StoredCash
from surveyor.store.commits import Commit, Head, HeadFile, head_path, read_heads
from surveyor.store.database import (
    accept,
    add_checksums,
    ask,
    check_size,
    connect,
    transaction,
    unpack,
)
from surveyor.store.disk import damaged, disk_errors, sync_file
from surveyor.store.schema import KINDS, STATEMENTS, OtherVersion, check_version, other_version
from surveyor.store.validation import (
    check_counts,
    check_event,
    check_robots,
    check_texts,
    check_visits,
    is_time,
    whole_number,
)
from surveyor.store.visit_rows import encodable, packed_rows, visits_of

Sync = Literal["normal", "full"]
CHUNK = 1000  # rows read at a time
COLUMNS = commits.VISIT
NO_LISTS = re.sub(r"\b(links|out_of_scope|nofollow|contexts)\b", "NULL", COLUMNS)
SYNCED = frozenset({"shard_start", *SHARD_EVENTS})  # events that other processes may rely on once they are committed
IDENTITY = "SELECT value FROM meta WHERE key IN ('journal', 'edition') ORDER BY key DESC"
URLS = "SELECT coalesce(max(id) + 1, 0) FROM urls"
BLANK = ", ".join(f"{name} = NULL" for name in COLUMNS.split(", ")[3:])


class Journal:
    """The record of a crawl: one writer, any number of readers."""

    def __init__(
        self, path: Path, connection: apsw.Connection, last: Commit, head: HeadFile | None = None, sync: Sync = "normal"
    ) -> None:
        self.path, self._connection, self._head, self._sync = path, connection, head, sync
        self.syncs_later = False  # whether the caller calls `sync` after commits of `SYNCED` events
        self._last, self._edition = last, _edition(connection)
        self.position = self.url_count = 0  # number of the last visit; id of the next page
        self.refresh()
        self._archived = self.archived if head is not None else None  # only a writer needs it

    @classmethod
    def open(
        cls, path: Path, *, create: bool = False, write: bool = True, sync: Sync = "normal", graph: bool = True
    ) -> Journal:
        """Open a journal, or create one that must not exist yet; without `write`, another process may be writing.

        With `create`, `graph` is whether it stores the links of pages, or their cash instead.
        """
        if path.exists() == create:
            state, hint = ("already exists", "choose another name") if create else ("does not exist", "check its name")
            raise SurveyError(f"{path} {state}", hint=hint)
        try:
            return cls._open(path, create=create, write=write or create, sync=sync, graph=graph)
        except OtherVersion:
            raise
        except SurveyError as error:
            if (other := None if create else other_version(path)) is not None:
                raise other from error
            raise

    @classmethod
    def _open(cls, path: Path, *, create: bool, write: bool, sync: Sync, graph: bool) -> Journal:
        with disk_errors(path):
            heads = read_heads(head_path(path))  # first: a journal that is being written to is ahead of them
            connection = connect(path, write=write)
            head: HeadFile | None = None
            try:
                if create:
                    add_checksums(connection)
                if write:
                    for setting in ("journal_mode = WAL", f"synchronous = {sync}", "secure_delete = ON"):
                        ask(connection, f"PRAGMA {setting}")
                    if create:
                        heads = [_create(path, connection, graph=graph)]
                with transaction(connection):
                    last = _verified(path, connection, heads, write=write)
                if write:
                    accept(connection)
                    head = HeadFile(head_path(path), full_sync=sync == "full")
                    head.write(Head(_edition(connection), last.number, last.digest), both=True)
                return cls(path, connection, last, head, sync)
            except BaseException:
                connection.close()
                if head is not None:
                    head.close()
                raise

    def close(self) -> None:
        """Close the file; committed data stays committed."""
        self._connection.close()
        if self._head is not None:
            self._head.close()
            self._head = None

    def commit(
        self,
        outcomes: Sequence[Outcome],
        new_urls: Sequence[str] = (),
        *,
        robots: Iterable[RobotsFile] = (),
        events: Iterable[Event] = (),
        changes: CashChanges | None = None,
    ) -> None:
        """Commit outcomes in this order, the URLs of newly discovered pages and changed cash, in one transaction."""
        visits = [o if isinstance(o, Visit) else Visit(o.page, o.kind, o.links, o.reason, o.target) for o in outcomes]
        known = self.url_count + len(new_urls)
        lists = [ids for visit in visits for ids in (visit.links, visit.out_of_scope, visit.nofollow)]
        goals = [visit.target if visit.kind == "redirected" else max(visit.page, visit.target) for visit in visits]
        named = np.concatenate([NO_LINKS, [visit.page for visit in visits], goals, *lists])
        if named.min(initial=0) < 0 or named.max(initial=-1) >= known:
            problem = f"outcomes name pages {named.min()} to {named.max()}, and {known} pages have URLs"
            raise UsageError(problem, hint="commit the URLs with them")
        ends = [(visit.warc.file, visit.warc.offset + visit.warc.length) for visit in visits if visit.warc]
        before = [] if self._archived is None else [self._archived]
        ends = [max([*ends, *before])] if ends else []  # some visits refer to earlier records
        position = self.position + len(visits)
        rows = [(visit, *row) for visit, row in enumerate(packed_rows(visits), self.position + 1)]
        pages = list(enumerate(map(encodable, new_urls), self.url_count))
        notes = [
            (number, position, float(event.at), event.kind, json.dumps(dict(event.detail)))
            for number, event in enumerate(events, self._last.event + 1)
        ]
        digest = commits.digest(self._last.digest, pages, rows, notes)
        last = Commit(self._last.number + 1, position, known, self._last.event + len(notes), digest)
        synced = self._sync == "normal" and not self.syncs_later and any(kind in SYNCED for *_, kind, _ in notes)
        with disk_errors(self.path), transaction(self._connection):
            run = self._connection.executemany
            run("INSERT INTO urls VALUES (?, ?)", pages)
            run(f"INSERT INTO visits(visit, {COLUMNS}) VALUES (?{', ?' * 22})", rows)
            run("INSERT OR REPLACE INTO robots VALUES (?, ?, ?, ?, ?)", robots)
            run("INSERT INTO events(event, visit, at, kind, detail) VALUES (?, ?, ?, ?, ?)", notes)
            run("INSERT OR REPLACE INTO meta VALUES ('archived', ? || ' ' || ?)", ends)
            if changes is not None:
                cash.write(self._connection, changes, position)
            commits.add(self._connection, last)
        self._archived = ends[0] if ends else self._archived
        self.position, self.url_count = position, known
        self._reached(last)
        if synced:
            self.sync()

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

    def read_cash(self) -> StoredCash | None:
        """Read the cash of a survey without a link graph; None if nothing was written yet. A reader then ends there."""
        with disk_errors(self.path), transaction(self._connection), self._sound():
            last = commits.last(self._connection)
            stored = cash.read(self._connection, last.url, last.visit)
        if self._head is None:  # another process may be writing
            self._last, self.position, self.url_count = last, last.visit, last.url
        return stored

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

    def expire_robots(self) -> None:
        """Expire every robots.txt, so that it is fetched again before it is used."""
        with disk_errors(self.path), transaction(self._connection):
            self._connection.executemany("UPDATE robots SET expires_at = 0.0", [()])

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
        query = f"SELECT visit, at, kind, detail FROM events {chosen} ORDER BY event"
        rows, known = self._ask(query, *kinds), self._ask(URLS)[0][0]  # in this order: another process may be writing
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

    def delete_host(self, host: str, pages: Sequence[int]) -> None:
        """Delete the data of the pages of a host and its robots.txt; bodies in WARC files are not affected."""
        origins = [row for row in self._ask("SELECT origin FROM robots") if urlsplit(row[0]).hostname == host]
        each = [(int(page),) for page in pages]
        with disk_errors(self.path), transaction(self._connection):
            run = self._connection.executemany
            run(f"UPDATE visits SET kind = 'blocked', reason = 'deleted', {BLANK} WHERE page = ?", each)
            run(
                "INSERT INTO visits(page, kind, reason) SELECT ?1, 'blocked', 'deleted' WHERE NOT EXISTS "
                "(SELECT 1 FROM visits WHERE page = ?1)",
                each,
            )
            run("DELETE FROM robots WHERE origin = ?", origins)
            run("UPDATE meta SET value = value + 1 WHERE key = 'edition'", [()])
            visit = ask(self._connection, "SELECT coalesce(max(visit), 0) FROM visits")[0][0]
            if not self.keeps_graph:
                cash.block(self._connection, [page for (page,) in each], visit)
            if visit > self.position:
                commits.add(self._connection, replace(self._last, number=self._last.number + 1, visit=visit))
            last, edition = commits.rechain(self._connection), _edition(self._connection)
            if self._head is not None:  # before the commit: whichever of both is the last, one slot is right
                self._head.announce(Head(edition, last.number, last.digest), self._last.number)
        self._edition = edition
        self._reached(last, both=True)
        self.flush()
        self.refresh()

    def flush(self) -> None:
        """Move the write-ahead log into the file and sync it to disk."""
        self._ask("PRAGMA wal_checkpoint(TRUNCATE)")

    def sync(self) -> None:
        """Sync all commits to disk; other threads may do so while this one commits, or closes the journal.

        SQLite syncs what it moves from the write-ahead log into the file.
        """
        with disk_errors(self.path), suppress(FileNotFoundError):  # no log: everything is in the file
            sync_file(self.path.with_name(f"{self.path.name}-wal"))
        with suppress(OSError):  # a head that is behind is allowed
            sync_file(head_path(self.path))

    def vacuum(self) -> None:
        """Return free space to the disk; needs the same amount of space again while it runs."""
        self._ask("VACUUM")

    def check(self) -> None:
        """Read the whole file, verify every commit and raise if anything is damaged."""
        with disk_errors(self.path), transaction(self._connection):
            found = ask(self._connection, "PRAGMA integrity_check(1)")[0][0]
            if found != "ok":
                raise damaged(self.path, found)
            before = commits.EMPTY
            try:
                for commit in commits.commits(self._connection):
                    commits.verify(self._connection, before, commit)
                    before = commit
            except commits.BadCommit as error:
                raise damaged(self.path, error) from error

    def refresh(self) -> None:
        """Read the position of the end of the journal: for a reader, the current one."""
        with disk_errors(self.path), self._sound():
            self._last = commits.last(self._connection)
        self.position, self.url_count = self._last.visit, self._last.url

    @property
    def last_commit(self) -> Commit:
        """The last commit as of opening or refreshing, or made by this journal itself."""
        return self._last

    def restart(self) -> None:
        """Read the end of the journal after rows were written other than by `commit`, and write the head."""
        self.refresh()
        self._edition = _edition(self._connection)
        self._reached(self._last, both=True)

    def _reached(self, last: Commit, *, both: bool = False) -> None:
        """Record the last commit in the head; if the write fails, the head stays behind, which is allowed."""
        self._last = last
        if self._head is not None:
            with suppress(OSError):
                self._head.write(Head(self._edition, last.number, last.digest), both=both)

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


def _create(path: Path, connection: apsw.Connection, *, graph: bool) -> Head:
    """Create the tables of a journal; return its head, which is already on disk."""
    with transaction(connection):
        for statement in STATEMENTS if graph else [*STATEMENTS, *cash.STATEMENTS]:
            connection.execute(statement)
        head = Head(_edition(connection), commits.EMPTY.number, commits.EMPTY.digest)
        file = HeadFile(head_path(path))
        try:
            file.write(head, both=True)
        finally:
            file.close()
    return head


def _verified(path: Path, connection: apsw.Connection, heads: Sequence[Head], *, write: bool) -> Commit:
    """Verify the end of a journal and that it has reached its head; return its last commit."""
    check_version(path, connection)
    check_size(path, connection)
    try:
        last, edition = commits.verify_tail(connection), _edition(connection)
        mine = [head for head in heads if head.edition == edition]
        if not mine:
            raise damaged(path, f"{head_path(path).name}, which says where it ends, is missing or damaged")
        head = max(mine, key=lambda head: head.number)
        if head.number > last.number:
            raise missing(path, last, head.number)
        if (commit := commits.get(connection, head.number)) is None or commit.digest != head.digest:
            raise damaged(path, f"commit {head.number:,} is not the one that {head_path(path).name} knows")
    except commits.BadCommit as error:
        raise damaged(path, error) from error
    if write and not ask(connection, "SELECT 1 FROM meta WHERE key = 'hash_key'"):
        ask(connection, "INSERT INTO meta VALUES ('hash_key', ?)", os.urandom(16).hex())
    return last


def missing(path: Path, last: Commit, number: int) -> SurveyError:
    """Return the error for missing commits."""
    lost = f"commits {last.number + 1:,} to {number:,}" if number > last.number + 1 else f"commit {number:,}"
    return damaged(path, f"{lost} of {number:,} cannot be read; the last good one ends with visit {last.visit:,}")


def _edition(connection: apsw.Connection) -> int:
    found = ask(connection, "SELECT value FROM meta WHERE key = 'edition'")
    number = whole_number(found[0][0]) if found else None
    return -1 if number is None else number
