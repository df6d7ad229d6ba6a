"""Durable writes, and errors of the disk and of SQLite as one-sentence errors."""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from surveyor.errors import SurveyError
from surveyor.graph.formats.streams import atomic_write
from surveyor.store.layout import open_inside

PROBLEMS = {  # SQLite error code -> what happened to the file
    apsw.SQLITE_READONLY: "cannot be written",
    apsw.SQLITE_CANTOPEN: "cannot be opened",
    apsw.SQLITE_PERM: "cannot be opened",
    apsw.SQLITE_IOERR: "cannot be read or written",
    apsw.SQLITE_BUSY: "is in use by another program",
    apsw.SQLITE_LOCKED: "is in use by another program",
    apsw.SQLITE_CONSTRAINT: "was changed by another program at the same time",
}
DAMAGE = {apsw.SQLITE_IOERR_DATA, apsw.SQLITE_IOERR_CORRUPTFS, apsw.SQLITE_IOERR_SHORT_READ}  # wrong or missing bytes


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Raise errors of the disk or SQLite as SurveyError."""
    try:
        yield
    except (apsw.Error, OSError, UnicodeDecodeError) as error:
        if isinstance(error, UnicodeDecodeError):  # not valid text
            raise damaged(path, error) from error
        if isinstance(error, apsw.Error) and not getattr(error, "result", 0):
            raise  # a bug in surveyor
        raise _as_survey_error(path, error) from error


def _as_survey_error(path: Path, error: Exception) -> SurveyError:
    code = getattr(error, "result", 0)
    if code == apsw.SQLITE_FULL or (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)):
        return SurveyError(
            f"the disk is full: {path} has all earlier batches, and nothing of the last one",
            hint="free some space and run the same command again",
        )
    if code and (code not in PROBLEMS or getattr(error, "extendedresult", 0) in DAMAGE):
        return damaged(path, _described(error))
    why = error.strerror if isinstance(error, OSError) else error
    state = PROBLEMS.get(code, "cannot be read or written")
    return SurveyError(f"{path} {state}: {why}", hint="check the folder, its permissions and the disk")


def _described(error: Exception) -> object:
    checksum = getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_DATA
    return "the checksum of a page is wrong" if checksum else error


def damaged(path: Path, why: object) -> SurveyError:
    """Return the error for a damaged journal."""
    folder = shlex.quote(str(path.parent))
    return SurveyError(
        f"{path} is damaged, or not the journal of a survey ({why})",
        hint=f"`surveyor doctor {folder}` reports the last good commit; repeat `surveyor crawl` with "
        "--from-last-good to resume from it, or restore a copy",
    )


def write_atomically(path: Path, text: str) -> None:
    """Replace a file atomically."""
    with atomic_write(path) as draft, open_inside(draft.parent, draft.name, "xb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Flush the directory entries of a folder to disk."""
    if os.name == "posix":
        _sync(folder, os.O_RDONLY)


def sync_file(path: Path) -> None:
    """Flush a file to disk, whoever has written to it."""
    _sync(path, os.O_RDWR)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
