"""Access to files inside a survey, which may come from elsewhere: plain files and folders, never link targets.

An archive from elsewhere may contain symbolic links, pipes and devices under the file names of a survey. Opening one
could truncate a file outside the folder, read a private file, or block forever. Therefore all entries of a survey are
checked before it is opened (`check_survey`), and files that surveyor writes in place are opened without following
links, and only if they have a single name (a hard link would share its content). SQLite opens its files itself and
maps the index of its log into memory even for reading: a survey in which one of these has another name is refused for
reading as well.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from surveyor.arrays import ByteArray
from surveyor.errors import SurveyError

JOURNAL = "journal.sqlite"
FILES = frozenset({"survey.toml", JOURNAL, f"{JOURNAL}-wal", f"{JOURNAL}-shm", "journal.head", "lock", "report.html"})
FOLDERS = {
    "warc": 1,
    "topics": 1,
    "checkpoint": 2,
    "journal.rescued": 1,
    "journal.rescued-draft": 1,
}  # folder -> levels of files in it
WRITTEN = ("journal.", "crawl.log", "lock", "report.html")  # name prefixes of files that are written in place
NOT_FOLLOWED = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # opening a pipe must not block
BINARY = getattr(os, "O_BINARY", 0)
LONGEST = 100_000_000  # bytes of a text file that is read whole
SHARED = "has another name (a hard link), and what is written here would change there too"


def check_survey(folder: Path) -> None:
    """Refuse a survey with anything but plain files and folders, or with hard links among the files to write."""
    for path, kind in _used(folder):
        try:
            about = path.lstat()
        except FileNotFoundError:  # another process has just removed it
            continue
        mode = about.st_mode
        if stat.S_ISLNK(mode):
            raise _refused(path, "is a symbolic link")
        fits = {"folder": stat.S_ISDIR(mode), "file": stat.S_ISREG(mode)}
        if not fits.get(kind, any(fits.values())):
            raise _refused(path, f"is not a plain {kind}")
        written = path.relative_to(folder).parts[0].startswith(WRITTEN)
        if written and stat.S_ISREG(mode) and about.st_nlink > 1:
            raise _refused(path, SHARED)
    rest = folder / f"{JOURNAL}-journal"
    if os.path.lexists(rest):  # SQLite would obey it, and may remove a file that it names, anywhere
        raise _refused(rest, "is a rollback journal, which surveyor never writes")


def open_inside(folder: Path, name: str, mode: str = "rb") -> IO[Any]:
    """Open a plain file of a folder, never a link target.

    Modes: `rb`, `xb` (must be new), `r+b` (must exist) and `a+b`; modes that write refuse a file with hard links.
    """
    flags = {
        "rb": os.O_RDONLY, "xb": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
        "r+b": os.O_RDWR, "a+b": os.O_RDWR | os.O_CREAT | os.O_APPEND,
    }[mode]  # fmt: skip
    path = folder / name
    if not name or name in (".", "..") or os.path.basename(name) != name or "\0" in name:  # noqa: PTH119
        raise _refused(path, "is no name of a file in a survey")
    if not NOT_FOLLOWED and path.is_symlink():
        raise _refused(path, "is a symbolic link")
    try:
        handle = os.open(path, flags | NOT_FOLLOWED | BINARY, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise _refused(path, "is a symbolic link or a pipe") from error
        raise
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise _refused(path, "is not a plain file")
        if mode != "rb" and about.st_nlink > 1:
            raise _refused(path, SHARED)
        return os.fdopen(handle, mode.replace("x", "w"))
    except BaseException:
        os.close(handle)
        raise


def read_inside(folder: Path, name: str, longest: int = LONGEST) -> bytes:
    """Return the contents of a plain file of a folder."""
    return load_inside(folder, name, longest).tobytes()


def load_inside(folder: Path, name: str, longest: int) -> ByteArray:
    """Return the contents of a plain file of a folder in writable memory."""
    with open_inside(folder, name) as file:
        size = os.fstat(file.fileno()).st_size
        if size > longest:
            raise _refused(folder / name, f"is larger than {longest:,} bytes")
        return np.fromfile(file, np.uint8, size)


def _used(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield each entry of a survey and of its own folders, with the type it must have."""
    for path in _entries(folder):
        if path.name in FOLDERS:
            yield path, "folder"
            yield from _below(path, FOLDERS[path.name])
        else:
            yield path, "file" if path.name in FILES else "file or folder"


def _below(folder: Path, levels: int) -> Iterator[tuple[Path, str]]:
    if folder.is_symlink() or not folder.is_dir():
        return  # the caller refuses it
    for path in _entries(folder):
        inner = levels > 1 and path.is_dir()  # links are not followed: the link itself is refused
        yield path, "folder" if inner else "file"
        if inner:
            yield from _below(path, levels - 1)


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:  # another process has just removed it
        return []


def _refused(path: Path, why: str) -> SurveyError:
    return SurveyError(
        f"{path} {why}; a survey is made of plain files and folders",
        hint="if the survey is yours, put the file itself there; if it is from elsewhere, do not use it",
    )
