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
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import apsw
import numpy as np

from surveyor.errors import SurveyError, UsageError
from surveyor.outcome import NO_LINKS, SHARD_EVENTS, Event, Outcome, RobotsFile, Visit
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
)
from surveyor.store.disk import damaged, disk_errors, sync_file
from surveyor.store.journal_queries import COLUMNS, JournalQueries
from surveyor.store.layout import SHARD_FILE
from surveyor.store.schema import STATEMENTS, OtherVersion, check_version, other_version
from surveyor.store.validation import (
    whole_number,
)
from surveyor.store.visit_rows import encodable, packed_rows

Sync = Literal["normal", "full"]
SYNCED = frozenset({"shard_start", *SHARD_EVENTS})  # events that other processes may rely on once they are committed
BLANK = ", ".join(f"{name} = NULL" for name in COLUMNS.split(", ")[3:])


class Journal(JournalQueries):
    """The record of a crawl: one writer, any number of readers (their queries: `journal_queries.py`)."""

    def __init__(
        self, path: Path, connection: apsw.Connection, last: Commit, head: HeadFile | None = None, sync: Sync = "normal"
    ) -> None:
        super().__init__(path, connection)
        self._head, self._sync = head, sync
        self.syncs_later = False  # whether the caller calls `sync` after commits of `SYNCED` events
        self._last, self._edition = last, _edition(connection)
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
        places = [visit.warc for visit in visits if visit.warc and not SHARD_FILE.fullmatch(visit.warc.file)]
        ends = [(place.file, place.offset + place.length) for place in places]
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

    def read_cash(self) -> StoredCash | None:
        """Read the cash of a survey without a link graph; None if nothing was written yet. A reader then ends there."""
        with disk_errors(self.path), transaction(self._connection), self._sound():
            last = commits.last(self._connection)
            stored = cash.read(self._connection, last.url, last.visit)
        if self._head is None:  # another process may be writing
            self._last, self.position, self.url_count = last, last.visit, last.url
        return stored

    def expire_robots(self) -> None:
        """Expire every robots.txt, so that it is fetched again before it is used."""
        with disk_errors(self.path), transaction(self._connection):
            self._connection.executemany("UPDATE robots SET expires_at = 0.0", [()])

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
