"""A survey: a folder with all data of one crawl, which can be closed, copied, interrupted and resumed.

`layout.py` lists its files. One process writes; others may read at the same time (`write=False`). The operating system
holds the lock, so it is released when the process ends for any reason. (Forked processes share it.) `commit` first
flushes the server responses to disk and then commits to the journal, so the journal never refers to a record that does
not exist.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import surveyor
from surveyor.errors import SurveyError, UsageError
from surveyor.outcome import Event, Outcome
from surveyor.store import checkpoint, layout, published
from surveyor.store.disk import damaged, disk_errors, sync_folder, write_atomically
from surveyor.store.journal import Journal, Sync
from surveyor.store.layout import check_survey, open_inside
from surveyor.store.manifest import ELSEWHERE, VOUCHED, Manifest
from surveyor.store.schema import OtherVersion

if TYPE_CHECKING:
    from surveyor.outcome import RobotsFile, Visit
    from surveyor.store.cash import CashChanges
    from surveyor.store.checkpoint import Arrays, Checkpoint
    from surveyor.store.recovery import Extent
    from surveyor.store.warc import Archive

LOG = logging.getLogger("surveyor.store")


class SurveyFolder:
    """An open survey folder."""

    def __init__(
        self, folder: Path, manifest: Manifest, journal: Journal, archive: Archive | None, held: ExitStack
    ) -> None:
        self.folder, self.manifest, self.journal, self._archive = folder, manifest, journal, archive
        self._held = held
        self.notices: list[str] = []  # for the user who opened it

    @classmethod
    def create(
        cls,
        folder: Path,
        manifest: Manifest,
        *,
        keep: bool = True,
        sync: Sync = "normal",
        fill: Callable[[Journal], None] | None = None,
    ) -> SurveyFolder:
        """Create a survey atomically, with what `fill` writes into it; `keep` stores server responses."""
        if folder.is_symlink() or (folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))):
            raise UsageError(f"{folder} already exists", hint="choose another folder, or resume it if it is a survey")
        draft = folder.with_name(f"{folder.name}.draft-{os.getpid()}")
        graph = bool(manifest.setting("graph"))
        with disk_errors(folder):
            try:
                draft.mkdir(parents=True)
                if keep:
                    (draft / layout.WARC).mkdir()
                with closing(Journal.open(draft / layout.JOURNAL, create=True, graph=graph)) as journal:
                    if fill is not None:
                        fill(journal)
                    signed = manifest.signed(journal.identity)
                (draft / layout.MANIFEST).write_text(signed.to_toml(), "utf-8")
                draft.rename(folder)
                sync_folder(folder.parent)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
        return cls.open(folder, sync=sync)

    @classmethod
    def open(
        cls, folder: Path, *, write: bool = True, sync: Sync = "normal", from_last_good: bool = False
    ) -> SurveyFolder:
        """Open a survey to resume it, or without `write` to read it while another process may be writing.

        With `from_last_good`, a damaged journal is first truncated to the commits before the damage (`recovery.py`).
        """
        if not layout.is_survey(folder):
            kind = f"is not a survey (it has no {layout.MANIFEST})" if folder.exists() else "does not exist"
            raise SurveyError(f"{folder} {kind}", hint="create one with `surveyor crawl URL --out FOLDER`")
        with disk_errors(folder), ExitStack() as held:
            check_survey(folder)
            if write:
                held.enter_context(locked(folder))
            manifest = Manifest.read(folder)
            path = folder / layout.JOURNAL
            found = _rescued(path, from_last_good=from_last_good) if write else None
            journal = Journal.open(path, write=write, sync=sync)
            held.callback(journal.close)
            if journal.keeps_graph != bool(manifest.setting("graph")):
                raise damaged(folder / layout.MANIFEST, "it and the journal differ in whether links are stored")
            if found is not None:
                detail = {"lost_commits": found.lost, "last_good": found.last_good.number, "why": found.problem}
                journal.commit([], events=[Event("recovery", time.time(), detail)])
                LOG.warning("journal recovered up to commit %d", found.last_good.number, extra={"fields": detail})
            manifest = manifest.verified(journal.identity)
            archive = None
            if (folder / layout.WARC).is_dir():
                from surveyor.store.warc import Archive

                software = f"surveyor/{surveyor.__version__}"
                archive = Archive.open(folder / layout.WARC, journal.archived, write=write, software=software)
                held.callback(archive.close)
            return cls(folder, manifest, journal, archive, held.pop_all())

    def close(self) -> None:
        """Close all files and release the lock."""
        self._held.close()

    def __enter__(self) -> SurveyFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def archive(self) -> Archive:
        """The WARC files with server responses."""
        if self._archive is None:
            raise UsageError(
                f"{self.folder} has no server responses", hint="create a survey with the setting archive on"
            )
        return self._archive

    def commit(
        self,
        outcomes: Sequence[Outcome],
        new_urls: Sequence[str] = (),
        *,
        robots: Iterable[RobotsFile] = (),
        events: Iterable[Event] = (),
        changes: CashChanges | None = None,
    ) -> None:
        """Store outcomes durably: first the server responses, then the journal."""
        if self._archive is not None:
            outcomes = [_archived(self._archive, outcome) for outcome in outcomes]
            self._archive.flush()
        self.journal.commit(outcomes, new_urls, robots=robots, events=events, changes=changes)
        if LOG.isEnabledFor(logging.DEBUG):
            commit = self.journal.last_commit.number
            fields = {"commit": commit, "outcomes": len(outcomes), "urls": len(new_urls)}
            text = "commit %d: %d outcomes, %d new URLs"
            LOG.debug(text, commit, len(outcomes), len(new_urls), extra={"fields": fields})

    def note(self, kind: str, **detail: Any) -> None:
        """Record an event."""
        self.journal.commit([], events=[Event(kind, time.time(), detail)])

    def change(
        self,
        *,
        seeds: Sequence[str] | None = None,
        weights: Mapping[str, float] | None = None,
        listed: Sequence[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        origins: Mapping[str, str] | None = None,
        replay: Mapping[str, Any] | None = None,
    ) -> None:
        """Change seeds, settings, origins or replay data; the change is recorded in the journal."""
        given: dict[str, Any] = {"seeds": None if seeds is None else tuple(seeds), "weights": weights}
        given |= {"listed": None if listed is None else tuple(listed), "settings": settings, "origins": origins}
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if not self.manifest.authentic:  # first: the signature does not cover what others wrote into the journal
            self.journal.expire_robots()
        self._sign(replace(self.manifest, **changes, replay=self.manifest.replay if replay is None else replay))
        if "listed" in changes:  # there may be a million
            changes["listed"] = len(changes["listed"])
        self.note("settings_changed", **changes)

    def sign(self) -> None:
        """Sign the manifest as it is: this user vouches for all of its content."""
        vouched = {name: VOUCHED if origin == ELSEWHERE else origin for name, origin in self.manifest.origins.items()}
        self._sign(replace(self.manifest, origins=vouched))

    def _sign(self, manifest: Manifest) -> None:
        signed = manifest.signed(self.journal.identity)
        with disk_errors(self.folder):
            write_atomically(self.folder / layout.MANIFEST, signed.to_toml())
        self.manifest = signed

    def pages(self) -> Iterator[tuple[int, str, Visit | None]]:
        """Yield the id, URL and latest visit of each known page."""
        return self.journal.pages()

    def save_checkpoint(self, arrays: Arrays, about: Mapping[str, Any] | None = None) -> bool:
        """Save the state at the current journal position; return False if the disk cannot take it."""
        here = self.folder / layout.CHECKPOINT
        return checkpoint.save(here, arrays, position=self.journal.position, key=self.journal.identity, about=about)

    def load_checkpoint(self) -> Checkpoint | None:
        """Return the latest valid checkpoint, if any; a replay continues from its position."""
        here = self.folder / layout.CHECKPOINT
        return checkpoint.load(here, position=self.journal.position, key=self.journal.identity)

    def delete_host(self, host: str) -> int:
        """Permanently delete the data of a host, in all shards too; return its number of pages.

        Repeat the call after a crash.
        """
        for path in layout.shard_surveys(self.folder):
            with SurveyFolder.open(path) as shard:
                shard.delete_host(host)
        pages = [page for page, url in enumerate(self.journal.urls()) if urlsplit(url).hostname == host]
        wanted = set(pages)
        if self._archive is not None:
            self._archive.erase(
                visit.warc for visit in self.journal.visits() if visit.page in wanted and visit.warc is not None
            )
        self._discard_derived()
        self.journal.delete_host(host, pages)
        self._discard_derived()  # another process may have built it again from what was left in the journal
        self.note("host_deleted", host=host, pages=len(pages))
        return len(pages)

    def _discard_derived(self) -> None:
        """Remove what is made of the journal and can be made again."""
        for derived in (layout.CHECKPOINT, layout.VIEW, layout.SEARCH):
            shutil.rmtree(self.folder / derived, ignore_errors=True)
        published.discard(self.folder)  # it names URLs

    def size(self) -> int:
        """Return the size of the folder on disk in bytes."""
        total = 0
        for path in self.folder.rglob("*"):
            with suppress(FileNotFoundError):  # another process may have removed it
                total += path.stat().st_size if path.is_file() else 0
        return total

    def __repr__(self) -> str:
        journal = self.journal
        return f"SurveyFolder({self.folder.name}, {journal.url_count:,} pages known, {journal.position:,} visits)"


def _rescued(path: Path, *, from_last_good: bool) -> Extent | None:
    """Finish an interrupted rescue; with `from_last_good`, start one if the journal is damaged."""
    from surveyor.store import recovery

    recovery.finish(path)
    if not from_last_good:
        return None
    try:
        with closing(Journal.open(path, write=False)) as journal:
            journal.check()
    except OtherVersion:
        raise
    except SurveyError:
        if not path.is_file():
            raise
        return recovery.rescue(path)
    return None


def _archived(archive: Archive, outcome: Outcome) -> Outcome:
    """Write the HTTP exchange of an outcome to the archive; return the outcome with its location."""
    exchange = getattr(outcome, "exchange", None)
    return outcome if exchange is None else replace(outcome, warc=archive.write(exchange), exchange=None)  # type: ignore[call-arg]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a survey; raise SurveyError with its holder if another process has it."""
    with open_inside(folder, layout.LOCK, "a+b") as file:
        if not _lock(file.fileno()):
            file.seek(0)
            words = re.fullmatch(rb"(\d{1,10}) (\d{1,11})\s*", file.read(100))
            holder = f" (pid {int(words[1])}, started {_clock(int(words[2]))})" if words else ""
            raise SurveyError(
                f"another surveyor process{holder} is writing to {folder}",
                hint=f"wait, or watch it with `surveyor status {shlex.quote(str(folder))}`",
            )
        file.truncate(0)
        file.write(f"{os.getpid()} {time.time():.0f}\n".encode())
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def _lock(file: int) -> bool:
    """Take the lock; the operating system releases it when this process ends."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(file, 1 << 20, os.SEEK_SET)  # beyond the text, which others read
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
            return False
        raise
    return True


def _clock(at: float) -> str:
    """Format a time, with the date unless it is today."""
    then, now = datetime.fromtimestamp(at), datetime.now()
    return f"{then:%H:%M}" if then.date() == now.date() else f"{then:%Y-%m-%d %H:%M}"
