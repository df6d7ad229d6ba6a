"""A survey: a folder with all data of one crawl, which can be closed, copied, interrupted and resumed.

    survey.toml       seeds, settings and their origins, versions, random seed: what a reviewer needs
    journal.sqlite    every outcome (`journal.py`); everything else in the folder is derived from it
    journal.head      the last commit of the journal, so that missing commits are detected (`head.py`)
    warc/             server responses, if they are kept (`warc.py`)
    checkpoint/       arrays that avoid a replay from the start (`checkpoint.py`); may be deleted at any time
    lock              the process that is writing to the survey

One process writes; others may read at the same time (`write=False`). The operating system holds the lock, so it is
released when the process ends for any reason. (Forked processes share it.) `commit` first flushes the server responses
to disk and then commits to the journal, so the journal never refers to a record that does not exist.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import shutil
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import apsw

import surveyor
from surveyor.config import Settings
from surveyor.errors import SurveyError, UsageError
from surveyor.graph.formats.streams import aside
from surveyor.outcome import Outcome
from surveyor.store import keys
from surveyor.store.files import check_survey, open_inside, read_inside

if TYPE_CHECKING:
    from surveyor.outcome import Event, RobotsFile, Visit
    from surveyor.store.checkpoint import Arrays, Checkpoint
    from surveyor.store.journal import Journal, Sync
    from surveyor.store.rescue import Extent
    from surveyor.store.warc import Archive

FORMAT, VERSION = "surveyor-survey", 1
ELSEWHERE, VOUCHED = "elsewhere", "trusted survey"  # origins of settings that came with a survey
FIRST_LINE = "# A survey made by surveyor. Run the same command again to go on with it.\n"
BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
ADVICE = {  # SQLite errors in terms of the user
    apsw.SQLITE_READONLY: "cannot be written",
    apsw.SQLITE_CANTOPEN: "cannot be opened",
    apsw.SQLITE_PERM: "cannot be opened",
    apsw.SQLITE_IOERR: "cannot be read or written",
    apsw.SQLITE_BUSY: "is in use by another program",
    apsw.SQLITE_LOCKED: "is in use by another program",
    apsw.SQLITE_CONSTRAINT: "was written to by another program meanwhile",
}
DAMAGE = {apsw.SQLITE_IOERR_DATA, apsw.SQLITE_IOERR_CORRUPTFS, apsw.SQLITE_IOERR_SHORT_READ}  # wrong or missing bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The contents of `survey.toml`."""

    seeds: tuple[str, ...]
    rng: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)  # setting -> "default", "flag", a file, …
    created: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    surveyor: str = surveyor.__version__  # version that created the survey
    replay: Mapping[str, Any] = field(default_factory=dict)  # replay data of a user-defined strategy
    signature: str = field(default="", compare=False)  # of the last writer, see `signed`
    authentic: bool = field(default=True, compare=False)  # whether this user signed it: false for one from elsewhere

    def signed(self, journal: str) -> Manifest:
        """Return a copy with this user's signature for the survey whose journal has this identity."""
        return replace(self, signature=keys.sign("survey", self._message(journal)), authentic=True)

    def verified(self, journal: str) -> Manifest:
        """Return a copy that is authentic only if this user signed exactly this content for this journal."""
        return replace(self, authentic=keys.is_signed("survey", self._message(journal), self.signature))

    @property
    def own_patterns(self) -> bool:
        """Whether this user wrote, or vouched for, all scope patterns."""
        return self.authentic and ELSEWHERE not in (self.origins.get("include"), self.origins.get("exclude"))

    def setting(self, name: str) -> Any:
        """Return a setting, or its default if the manifest, which may come from elsewhere, does not have it."""
        return self.settings.get(name, getattr(Settings(), name))

    def foreign_origins(self, names: Iterable[str]) -> dict[str, str]:
        """Return the origins of those settings that came from elsewhere, to be recorded in another manifest."""
        return {name: ELSEWHERE for name in names if not self.authentic or self.origins.get(name) == ELSEWHERE}

    def _message(self, journal: str) -> bytes:
        settings = {name: value for name, value in self.settings.items() if value is not None}  # TOML has no null
        parts = [
            journal.partition(".")[0], list(self.seeds), self.rng, settings, self.origins,
            self.created.isoformat(), self.surveyor, self.replay,
        ]  # fmt: skip
        return json.dumps(parts, sort_keys=True, default=list).encode()

    def to_toml(self) -> str:
        """Return the manifest as TOML."""
        about = {"format": FORMAT, "version": VERSION, "surveyor": self.surveyor, "created": self.created}
        signature = {"signature": self.signature} if self.signature else {}
        body = {"rng": self.rng, "seeds": list(self.seeds), "settings": self.settings, "origins": self.origins}
        replay = {"replay": self.replay} if self.replay else {}
        return FIRST_LINE + toml({**about, **signature, **body, **replay})

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Read a manifest and refuse one that is damaged or newer; it is not authentic until `verified`."""
        from surveyor.store.validation import check_manifest

        try:
            table = tomllib.loads(read_inside(path.parent, path.name).decode())
            if table["format"] == FORMAT and table["version"] > VERSION:
                raise SurveyError(
                    f"{path.parent} was made by a newer surveyor (version {table['version']}; "
                    f"this one reads up to {VERSION})",
                    hint="pip install --upgrade surveyor",
                )
            if table["format"] != FORMAT or not isinstance(table["created"], datetime):
                raise ValueError(f"it describes a {table['format']}")
            check_manifest(table)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            why = f"it has no {error}" if isinstance(error, KeyError) else error
            raise SurveyError(f"{path} is damaged ({why})", hint="fix it, or restore it from a copy") from error
        return cls(
            seeds=tuple(table["seeds"]), rng=table["rng"], settings=table["settings"], origins=table["origins"],
            created=table["created"], surveyor=str(table.get("surveyor", "")), replay=table.get("replay", {}),
            signature=str(table.get("signature", "")), authentic=False,
        )  # fmt: skip


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
        from surveyor.store.journal import Journal

        if folder.is_symlink() or (folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))):
            raise UsageError(f"{folder} exists already", hint="choose another name, or go on with it if it is a survey")
        draft = folder.with_name(f"{folder.name}.draft-{os.getpid()}")
        with explained(folder):
            try:
                draft.mkdir(parents=True)
                if keep:
                    (draft / "warc").mkdir()
                with closing(Journal.open(draft / "journal.sqlite", create=True)) as journal:
                    if fill is not None:
                        fill(journal)
                    signed = manifest.signed(journal.identity)
                (draft / "survey.toml").write_text(signed.to_toml(), "utf-8")
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

        With `from_last_good`, a damaged journal is first truncated to the commits before the damage (`rescue.py`).
        """
        from surveyor.store.journal import Journal

        if not (folder / "survey.toml").is_file():
            kind = "is not a survey (it has no survey.toml)" if folder.exists() else "does not exist"
            raise SurveyError(f"{folder} {kind}", hint="begin one with `surveyor crawl URL --out FOLDER`")
        with explained(folder), ExitStack() as held:
            check_survey(folder)
            if write:
                held.enter_context(locked(folder))
            manifest = Manifest.read(folder / "survey.toml")
            path = folder / "journal.sqlite"
            found = _rescued(path, from_last_good=from_last_good) if write else None
            journal = Journal.open(path, write=write, sync=sync)
            held.callback(journal.close)
            if found is not None:
                from surveyor.outcome import Event

                detail = {"lost_commits": found.lost, "last_good": found.last_good.number, "why": found.problem}
                journal.commit([], events=[Event("rescue", time.time(), detail)])
            manifest = manifest.verified(journal.identity)
            archive = None
            if (folder / "warc").is_dir():
                from surveyor.store.warc import Archive

                software = f"surveyor/{surveyor.__version__}"
                archive = Archive.open(folder / "warc", journal.archived, write=write, software=software)
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
            raise UsageError(f"{self.folder} does not keep what servers answered", hint="begin a survey that does")
        return self._archive

    def commit(
        self,
        outcomes: Sequence[Outcome],
        new_urls: Sequence[str] = (),
        *,
        robots: Iterable[RobotsFile] = (),
        events: Iterable[Event] = (),
    ) -> None:
        """Store outcomes durably: first the server responses, then the journal."""
        if self._archive is not None:
            outcomes = [_archived(self._archive, outcome) for outcome in outcomes]
            self._archive.flush()
        self.journal.commit(outcomes, new_urls, robots=robots, events=events)

    def note(self, kind: str, **detail: Any) -> None:
        """Record an event."""
        from surveyor.outcome import Event

        self.journal.commit([], events=[Event(kind, time.time(), detail)])

    def change(
        self,
        *,
        seeds: Sequence[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        origins: Mapping[str, str] | None = None,
        replay: Mapping[str, Any] | None = None,
    ) -> None:
        """Change seeds, settings, origins of settings or replay data; the change is recorded in the journal."""
        given = {"seeds": None if seeds is None else tuple(seeds), "settings": settings, "origins": origins}
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if not self.manifest.authentic:  # first: the signature does not cover what others wrote into the journal
            self.journal.expire_robots()
        self._sign(replace(self.manifest, **changes, replay=self.manifest.replay if replay is None else replay))
        self.note("change", **changes)

    def sign(self) -> None:
        """Sign the manifest as it is: this user vouches for all of its content."""
        vouched = {name: VOUCHED if origin == ELSEWHERE else origin for name, origin in self.manifest.origins.items()}
        self._sign(replace(self.manifest, origins=vouched))

    def _sign(self, manifest: Manifest) -> None:
        signed = manifest.signed(self.journal.identity)
        with explained(self.folder):
            write_whole(self.folder / "survey.toml", signed.to_toml())
        self.manifest = signed

    def pages(self) -> Iterator[tuple[int, str, Visit | None]]:
        """Yield the id, URL and latest visit of each known page."""
        return self.journal.pages()

    def save_checkpoint(self, arrays: Arrays, about: Mapping[str, Any] | None = None) -> bool:
        """Save the state at the current journal position; return False if the disk cannot take it."""
        from surveyor.store import checkpoint

        here = self.folder / "checkpoint"
        return checkpoint.save(here, arrays, position=self.journal.position, key=self.journal.identity, about=about)

    def load_checkpoint(self) -> Checkpoint | None:
        """Return the latest valid checkpoint, if any; a replay continues from its position."""
        from surveyor.store import checkpoint

        here = self.folder / "checkpoint"
        return checkpoint.load(here, position=self.journal.position, key=self.journal.identity)

    def delete_host(self, host: str) -> int:
        """Permanently delete the data of a host; return its number of pages. Repeat the call after a crash."""
        pages = [page for page, url in enumerate(self.journal.urls()) if urlsplit(url).hostname == host]
        wanted = set(pages)
        if self._archive is not None:
            self._archive.erase(
                visit.warc for visit in self.journal.visits() if visit.page in wanted and visit.warc is not None
            )
        shutil.rmtree(self.folder / "checkpoint", ignore_errors=True)
        self.journal.delete_host(host, pages)
        self.note("delete", host=host, pages=len(pages))
        return len(pages)

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
    from surveyor.store import rescue
    from surveyor.store.journal import Journal

    rescue.finish(path)
    if not from_last_good:
        return None
    try:
        with closing(Journal.open(path, write=False)) as journal:
            journal.check()
    except SurveyError as error:
        if not path.is_file() or "older surveyor" in error.problem or "newer surveyor" in error.problem:
            raise
        return rescue.rescue(path)
    return None


def _archived(archive: Archive, outcome: Outcome) -> Outcome:
    """Write the HTTP exchange of an outcome to the archive; return the outcome with its location."""
    exchange = getattr(outcome, "exchange", None)
    return outcome if exchange is None else replace(outcome, warc=archive.write(exchange), exchange=None)  # type: ignore[call-arg]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a survey; raise an error that names the holder if it is taken."""
    with open_inside(folder, "lock", "a+b") as file:
        if not _lock(file.fileno()):
            file.seek(0)
            words = re.fullmatch(rb"(\d{1,10}) (\d{1,11})\s*", file.read(100))
            holder = f" (pid {int(words[1])}, started {_clock(int(words[2]))})" if words else ""
            raise SurveyError(
                f"Another surveyor{holder} is writing to this survey.",
                hint=f"watch it with `surveyor {shlex.quote(str(folder))}`, or wait",
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


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn errors of the disk or SQLite into one-sentence errors."""
    try:
        yield
    except (apsw.Error, OSError, UnicodeDecodeError) as error:
        if isinstance(error, UnicodeDecodeError):  # not valid text
            raise damaged(path, error) from error
        if isinstance(error, apsw.Error) and not getattr(error, "result", 0):
            raise  # a bug in surveyor
        raise _sentence(path, error) from error


def _sentence(path: Path, error: Exception) -> SurveyError:
    code = getattr(error, "result", 0)
    if code == apsw.SQLITE_FULL or (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)):
        return SurveyError(
            f"the disk is full: {path} holds all that was saved before, and nothing of the last batch",
            hint="free some space and run the same command again",
        )
    if code and (code not in ADVICE or getattr(error, "extendedresult", 0) in DAMAGE):
        return damaged(path, _plain_words(error))
    why = error.strerror if isinstance(error, OSError) else error
    state = ADVICE.get(code, "cannot be read or written")
    return SurveyError(f"{path} {state}: {why}", hint="check the folder, its rights and the disk")


def _plain_words(error: Exception) -> object:
    checksum = getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_DATA
    return "the checksum of a page is wrong" if checksum else error


def damaged(path: Path, why: object) -> SurveyError:
    """Return the error for a damaged journal."""
    folder = shlex.quote(str(path.parent))
    return SurveyError(
        f"{path} is damaged, or not the journal of a survey ({why})",
        hint=f"`surveyor doctor {folder}` names the last good commit; repeat `surveyor crawl` with "
        "--from-last-good to resume from there, or restore a copy",
    )


def write_whole(path: Path, text: str) -> None:
    """Replace a file atomically."""
    with aside(path) as draft, open_inside(draft.parent, draft.name, "xb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Flush the directory entries of a folder to disk."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def toml(table: Mapping[str, Any], path: str = "") -> str:
    """Format values, lists of values and tables as TOML; settings that are None are omitted."""
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping) and value is not None}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    for key, value in table.items():
        if isinstance(value, Mapping):
            name = path + _key(key)
            lines += ["", f"[{name}]", toml(value, name + ".").rstrip("\n")]
    return "\n".join(lines) + "\n"


def _key(key: str) -> str:
    return key if key and BARE.issuperset(key) else _value(key)


def _value(value: object) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool | int | float):
        return repr(value).lower()
    raise UsageError(f"{value!r} cannot be kept in survey.toml", hint="give text, a number, yes or no, or a list")
