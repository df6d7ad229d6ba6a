"""The files of a view: `SURVEY/view/`, which may be deleted at any time.

    view.json            the current generation, its position in the journal, the size of each file, and a signature
    tables-000000007/    a generation: `pages.sqlite`, arrays, `graph/`
    lock                 held by the process that builds

A generation never changes. A build writes a new one under a temporary name, renames it, and then replaces `view.json`:
a reader sees the old generation or the new one, complete, also if the build is killed at any moment.

**A view from elsewhere is never used.** `view.json` is signed with the key of this user (`store/signing.py`), for the
identity of the journal. The signature covers inode, size, and times of modification and status change of each file,
which an unpacked archive cannot imitate, so that a gigabyte need not be read to verify it. A copied survey has no
valid view for the same reason, and a new one is built.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surveyor.errors import SurveyError
from surveyor.serve.view.schema import VERSION
from surveyor.store import layout, signing
from surveyor.store.directory import locked
from surveyor.store.disk import disk_errors, sync_folder, write_atomically

ABOUT = "view.json"
PURPOSE = "view"
NAME = re.compile(r"tables-[0-9]{9}")
LONGEST = 10_000_000  # bytes of view.json


@dataclass(frozen=True, slots=True)
class Generation:
    """A complete set of tables."""

    folder: Path
    about: Mapping[str, Any]

    @property
    def number(self) -> int:
        """Number of the build."""
        return int(self.folder.name.rpartition("-")[2])

    @property
    def position(self) -> int:
        """Number of visits of the journal that it covers."""
        return int(self.about["position"])


def current(survey: Path, identity: str) -> Generation | None:
    """Return the tables of a survey whose journal has this identity; None without valid ones of this user."""
    place = survey / layout.VIEW
    try:
        if place.is_symlink():
            return None
        about = json.loads(layout.read_inside(place, ABOUT, LONGEST))
        signature = about.pop("signature")
        if not signing.is_signed(PURPOSE, _plain(about), signature):
            return None
        if (about["version"], about["identity"]) != (VERSION, identity) or not NAME.fullmatch(about["tables"]):
            return None
        folder = place / about["tables"]
        return Generation(folder, about) if _marks(folder) == about["files"] else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, SurveyError):
        return None


@contextmanager
def building(survey: Path) -> Iterator[Path]:
    """Hold the lock of the view of a survey, remove what builds that were killed left behind; yield its folder."""
    place = survey / layout.VIEW
    with disk_errors(place):
        if place.is_symlink():
            raise SurveyError(f"{place} is a symbolic link", hint="remove it: it is built again")
        place.mkdir(exist_ok=True)
        with locked(place):
            yield place


@contextmanager
def draft_of(place: Path) -> Iterator[Path]:
    """Yield a new folder for a generation, which is removed at the end unless it was published."""
    for old in place.glob("draft-*"):
        shutil.rmtree(old, ignore_errors=True)
    draft = place / f"draft-{os.getpid()}"
    draft.mkdir()
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def publish(place: Path, draft: Path, about: Mapping[str, Any]) -> Generation:
    """Make a draft the current generation, and remove all others; readers that have them open may keep them."""
    numbers = [int(path.name.rpartition("-")[2]) for path in place.iterdir() if NAME.fullmatch(path.name)]
    folder = place / f"tables-{max(numbers, default=0) + 1:09d}"
    for path in _files(draft):
        with path.open("rb+") as file:
            os.fsync(file.fileno())
    draft.rename(folder)
    fields = json.loads(json.dumps({"version": VERSION, **about, "tables": folder.name, "files": _marks(folder)}))
    signature = signing.sign(PURPOSE, _plain(fields))
    if not signature:
        shutil.rmtree(folder, ignore_errors=True)
        raise SurveyError(
            f"{place} cannot be signed: this account has no folder for its key",
            hint="set XDG_CONFIG_HOME to a folder that can be written",
        )
    write_atomically(place / ABOUT, json.dumps({**fields, "signature": signature}) + "\n")
    for path in place.iterdir():
        if NAME.fullmatch(path.name) and path.name != folder.name:
            shutil.rmtree(path, ignore_errors=True)
    sync_folder(place)
    return Generation(folder, fields)


def _files(folder: Path) -> list[Path]:
    """List the files of a generation; links are listed, and not followed."""
    found: list[Path] = []
    for path in sorted(folder.iterdir()):
        found += _files(path) if path.is_dir() and not path.is_symlink() else [path]
    return found


def _marks(folder: Path) -> dict[str, list[int]]:
    """Return what identifies each file of a generation as the one that was written."""
    marks = {}
    for path in _files(folder):
        about = path.lstat()
        if not path.is_file() or path.is_symlink():
            raise SurveyError(f"{path} is not a plain file", hint="remove it: it is built again")
        marks[path.relative_to(folder).as_posix()] = [
            about.st_ino,
            about.st_size,
            about.st_mtime_ns,
            about.st_ctime_ns,
        ]
    return marks


def _plain(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, sort_keys=True).encode()
