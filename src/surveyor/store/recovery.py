"""Integrity check of a survey (`surveyor doctor SURVEY`) and recovery of its journal (`--from-last-good`).

**Recovery** keeps the commits before the first bad one. The damaged files are kept as well: `journal.sqlite.damaged`,
with its log and head, and from each WARC file what followed the last page that is still known. The new journal is
completed in a folder `journal.rescued` before anything is replaced; any later run that finds this folder finishes the
replacement (`finish`), so it may be interrupted at any time. A survey may come from elsewhere: only new files are
written, under names that are unused, also by links.

Page checksums are not used here: a commit is good if the chain confirms all its rows (`commits.py`). A journal of
another version is rejected before any file is written.
"""
# ruff: noqa: S608  # statements are built from table and column names only; values are always bound

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from surveyor.errors import SurveyError, SurveyorError
from surveyor.store import checkpoint, commits, layout
from surveyor.store.cash import has_cash
from surveyor.store.commits import EMPTY, TABLES, BadCommit, Commit, head_path, read_heads
from surveyor.store.database import ask, connect, transaction
from surveyor.store.disk import disk_errors, sync_folder
from surveyor.store.journal import Journal
from surveyor.store.layout import check_survey, open_inside
from surveyor.store.manifest import Manifest
from surveyor.store.schema import OtherVersion, other_version
from surveyor.store.validation import whole_number
from surveyor.store.warc import Archive

AT_ONCE = 200  # commits copied per transaction
RECOVER = "repeat its `surveyor crawl` command with --from-last-good, or restore a copy"
SHOWN = 3  # damaged records listed by name


@dataclass(frozen=True, slots=True)
class Extent:
    """The good part of a journal."""

    last_good: Commit
    recorded: int  # number of the last commit according to the journal or its head
    problem: str = ""  # the error in the next commit
    readable: bool = True  # whether it is a journal at all

    @property
    def lost(self) -> int:
        """The number of commits that are lost."""
        return max(self.recorded - self.last_good.number, 0)


def extent(path: Path) -> Extent:
    """Verify every commit of a journal and find the last good one; never raise because of damage."""
    recorded = max((head.number for head in read_heads(head_path(path))), default=0)
    good, problem, readable = EMPTY, "", False
    try:
        with closing(connect(path, write=False, verify=False)) as connection, transaction(connection):
            ask(connection, "SELECT number FROM commits ORDER BY number LIMIT 1")
            readable = True
            while (
                commit := commits.get(connection, good.number + 1)
            ) is not None:  # one at a time: the next may be bad
                commits.verify(connection, good, commit)
                good = commit
            recorded = max(recorded, commits.last(connection).number)
    except (apsw.Error, BadCommit, TypeError, ValueError, OSError) as error:
        problem = str(error)
    if not problem and recorded > good.number:
        problem = f"commit {good.number + 1:,} is missing"
    return Extent(good, recorded, problem, readable)


def rescue(path: Path) -> Extent:
    """Replace a damaged journal by one with its good commits; the caller holds the lock of the survey."""
    finish(path)
    with disk_errors(path):
        found = extent(path)
        if not found.readable:
            raise SurveyError(
                f"no commit of {path} can be read ({found.problem})",
                hint="restore a copy, or start another survey with --fresh",
            )
        if (other := other_version(path, found.last_good)) is not None:
            raise other
        if _has_cash(path):
            raise SurveyError(
                f"{path} stores no link graph, so its cash cannot be computed again ({found.problem})",
                hint="restore a copy, or start another survey with --fresh",
            )
        damaged = _kept(path)
        draft = path.with_name(layout.RESCUED_DRAFT)
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        with closing(Journal.open(draft / path.name, create=True)) as made:
            _copy(damaged, made, found.last_good)
        archived = _archived(draft / path.name)
        _keep_tail(path.parent / layout.WARC, archived)
        draft.rename(path.with_name(layout.RESCUED))
        sync_folder(path.parent)
    finish(path)
    return found


def _has_cash(path: Path) -> bool:
    with suppress(apsw.Error), closing(connect(path, write=False, verify=False)) as connection:
        return has_cash(connection)
    return False


def finish(path: Path) -> None:
    """Move a rescued journal into place, if there is one; each step may be repeated."""
    source = path.with_name(layout.RESCUED)
    if not source.is_dir() or source.is_symlink():
        return
    with disk_errors(path):
        if (source / path.name).is_file():
            for suffix in ("-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            head = head_path(path)
            if (source / head.name).is_file():
                (source / head.name).replace(head)
            (source / path.name).replace(path)
        shutil.rmtree(path.parent / layout.CHECKPOINT, ignore_errors=True)
        shutil.rmtree(source)
        sync_folder(path.parent)


def _kept(path: Path) -> Path:
    """Copy a journal with its log and head to unused names; return the path of the copied journal."""
    copy = _free(path, "damaged", ("", "-wal", "-shm", "-journal", "-head"))  # SQLite uses all but the last
    for source, suffix in ((path.name, ""), (f"{path.name}-wal", "-wal"), (head_path(path).name, "-head")):
        if os.path.lexists(path.with_name(source)):
            with (
                open_inside(path.parent, source) as file,
                open_inside(path.parent, copy.name + suffix, "xb") as target,
            ):
                shutil.copyfileobj(file, target)
    return copy


def _free(path: Path, ending: str, suffixes: Sequence[str] = ("",)) -> Path:
    """Return a path next to a file that is unused, also with each suffix and by links."""
    names = (path.with_name(f"{path.name}.{ending}{again or ''}") for again in range(1 << 20))
    return next(name for name in names if not any(os.path.lexists(f"{name}{suffix}") for suffix in suffixes))


def _copy(damaged: Path, made: Journal, last: Commit) -> None:
    """Copy the good commits, the identity of the journal and the known robots.txt files."""
    target = made._connection
    with closing(connect(damaged, write=False, verify=False)) as source:
        before, batch = EMPTY, list[Commit]()
        for number in range(1, last.number + 1):
            if (commit := commits.get(source, number)) is None:
                raise SurveyError(f"{damaged} changed while it was read", hint="try again")
            batch.append(commit)
            if len(batch) == AT_ONCE:
                before, batch = _copy_commits(source, target, before, batch), []
        _copy_commits(source, target, before, batch)
        with transaction(target):
            marks = dict(_readable(source, "SELECT key, value FROM meta WHERE key IN ('journal', 'edition')"))
            name, edition = str(marks.get("journal", "")), str(marks.get("edition", ""))
            if name:
                ask(target, "UPDATE meta SET value = ? WHERE key = 'journal'", name)
            ask(target, "UPDATE meta SET value = ? WHERE key = 'edition'", str((whole_number(edition) or 0) + 1))
            target.executemany("INSERT INTO robots VALUES (?, ?, ?, ?, ?)", _robots(damaged))
            archived = """INSERT INTO meta SELECT 'archived', warc_file || ' ' || (warc_offset + warc_length)
                FROM visits WHERE warc_file NOT GLOB ? ORDER BY warc_file DESC, warc_offset DESC LIMIT 1"""
            ask(target, archived, layout.SHARD_FILES)
    made.restart()


def _copy_commits(source: apsw.Connection, target: apsw.Connection, before: Commit, batch: list[Commit]) -> Commit:
    with transaction(target):
        for commit in batch:
            for (table, (_, columns)), rows in zip(
                TABLES.items(), commits.rows_of(source, before, commit), strict=True
            ):
                marks = ", ".join("?" * (columns.count(",") + 1))
                target.executemany(f"INSERT INTO {table}({columns}) VALUES ({marks})", rows)
            commits.add(target, commit)
            before = commit
    return before


def _robots(damaged: Path) -> Iterator[Any]:
    """Yield the robots.txt files in good pages; others will be fetched again."""
    with suppress(apsw.Error), closing(connect(damaged, write=False)) as source:
        yield from _readable(source, "SELECT * FROM robots")


def _readable(source: apsw.Connection, query: str) -> list[Any]:
    with suppress(apsw.Error, UnicodeDecodeError):
        return ask(source, query)
    return []


def _archived(path: Path) -> tuple[str, int] | None:
    with closing(Journal.open(path, write=False)) as journal:
        return journal.archived


def _keep_tail(folder: Path, archived: tuple[str, int] | None) -> None:
    """Copy what follows the last known page of a WARC file: resuming truncates the file there."""
    if archived is None or not os.path.lexists(path := folder / archived[0]):
        return
    with open_inside(folder, archived[0]) as file:  # rejects a name outside the folder
        file.seek(archived[1])
        if not file.read(1):
            return
        file.seek(archived[1])
        with open_inside(folder, _free(path, "after-last-good").name, "xb") as tail:
            shutil.copyfileobj(file, tail)


@dataclass(frozen=True, slots=True)
class Check:
    """The result for one part of a survey."""

    name: str
    value: str
    fine: bool | None = True  # None: damaged or missing, but not needed
    advice: str = ""


def examine(folder: Path) -> Iterator[Check]:
    """Read a whole survey and verify all checksums; damage is a finding, not an error.

    A survey with anything but plain files is not opened: SQLite would write to the targets of links.
    """
    try:
        check_survey(folder)
    except SurveyError as error:
        yield Check("files", error.problem, fine=False, advice=error.hint)
        return
    yield _manifest(folder)
    journal = folder / layout.JOURNAL
    sound = _journal(journal)
    yield sound
    yield _head(journal, can_recover=sound.advice == RECOVER)
    yield from _checkpoints(folder / layout.CHECKPOINT)
    if sound.fine and (folder / layout.WARC).is_dir():
        yield _archive(folder)


def _manifest(folder: Path) -> Check:
    try:
        manifest = Manifest.read(folder)
    except (SurveyorError, OSError) as error:
        return Check(layout.MANIFEST, str(error).partition("\n")[0], fine=False, advice="restore it from a copy")
    return Check(layout.MANIFEST, f"{len(manifest.seeds):,} seeds, {len(manifest.settings):,} settings")


def _journal(path: Path) -> Check:
    """Verify all pages and commits; report the last good commit."""
    problem = ""
    try:
        with closing(Journal.open(path, write=False)) as journal:
            journal.check()
            last = journal.last_commit
            return Check(path.name, f"{last.number:,} commits, {last.visit:,} visits and {last.url:,} URLs verified")
    except SurveyorError as error:
        problem = error.problem
        if isinstance(error, OtherVersion):
            return Check(path.name, problem, fine=False, advice=error.hint)
    found = extent(path)
    good = found.last_good
    if (other := other_version(path, good)) is not None:
        return Check(path.name, other.problem, fine=False, advice=other.hint)
    if not found.readable:
        return Check(path.name, problem, fine=False, advice="no commit is good: restore a copy or start again")
    lost = f"{found.lost:,} of {found.recorded:,} commits are lost" if found.lost else "no commit is lost"
    value = f"{problem}; last good commit {good.number:,} (visit {good.visit:,}); {lost}"
    return Check(path.name, value, fine=False, advice=RECOVER)


def _head(journal: Path, *, can_recover: bool) -> Check:
    path = head_path(journal)
    heads = read_heads(path)
    if not heads:
        advice = "--from-last-good writes it again" if can_recover else ""
        return Check(path.name, "missing or damaged", fine=False, advice=advice)
    if len(heads) == 1:
        return Check(path.name, "one of two slots is damaged", None, "the next commit writes it again")
    return Check(path.name, f"commit {max(head.number for head in heads):,}")


def _checkpoints(folder: Path) -> Iterator[Check]:
    for place, intact in checkpoint.verify(folder):
        name = f"{layout.CHECKPOINT}/{place.name}"
        if intact:
            yield Check(name, "verified")
        else:
            yield Check(name, "damaged, so it is not used", None, "the journal is replayed instead")


def _archive(folder: Path) -> Check:
    """Read every record that the journal refers to."""
    read, gone, bad = 0, 0, list[str]()
    with closing(Journal.open(folder / layout.JOURNAL, write=False)) as journal:
        archive = Archive.open(folder / layout.WARC, journal.archived, write=False)
        for visit in journal.visits():
            if visit.warc is None:
                continue
            try:
                if archive.has(visit.warc):
                    archive.read(visit.warc)
                    read += 1
                else:
                    gone += 1
            except SurveyorError:
                bad.append(f"{visit.warc.file} at {visit.warc.offset:,}")
    missing = f"; {gone:,} are in missing files" if gone else ""
    if bad:
        more = f" and {len(bad) - SHOWN:,} more" if len(bad) > SHOWN else ""
        value = f"{len(bad):,} damaged records: {', '.join(bad[:SHOWN])}{more}{missing}"
        return Check(
            layout.WARC, value, fine=False, advice="restore the files from a copy; a replay does not need them"
        )
    return Check(layout.WARC, f"{read:,} records verified{missing}", None if gone else True)
