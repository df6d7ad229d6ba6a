"""The files of a view: `SURVEY/view/`, which may be deleted at any time.

    view.json            the current generation, its position in the journal, the size of each file, and a signature
    tables-000000007/    a generation: `pages.sqlite`, arrays, `graph/`
    lock                 held by the process that builds

A generation never changes. A build writes a new one under a temporary name, renames it, and then replaces `view.json`:
a reader sees the old generation or the new one, complete, also if the build is killed at any moment.

**A view from elsewhere is never used.** `view.json` is signed with the key of this user, for the
identity of the journal, and covers what identifies each file (`store/signed_files.py`). A copied survey has no valid
view, and a new one is built.
"""

from __future__ import annotations

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
from surveyor.store import layout
from surveyor.store.directory import locked
from surveyor.store.disk import disk_errors, sync_folder
from surveyor.store.signed_files import files_of, marks_of, read_signed, write_signed

ABOUT = "view.json"
PURPOSE = "view"
NAME = re.compile(r"tables-[0-9]{9}")


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
        about = read_signed(place, ABOUT, PURPOSE)
        if about is None or (about["version"], about["identity"]) != (VERSION, identity):
            return None
        if not NAME.fullmatch(about["tables"]):
            return None
        folder = place / about["tables"]
        return Generation(folder, about) if marks_of(folder) == about["files"] else None
    except (OSError, ValueError, KeyError, TypeError, SurveyError):
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
    for path in files_of(draft):
        with path.open("rb+") as file:
            os.fsync(file.fileno())
    draft.rename(folder)
    try:
        fields = write_signed(
            place, ABOUT, PURPOSE, {"version": VERSION, **about, "tables": folder.name, "files": marks_of(folder)}
        )
    except SurveyError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    for path in place.iterdir():
        if NAME.fullmatch(path.name) and path.name != folder.name:
            shutil.rmtree(path, ignore_errors=True)
    sync_folder(place)
    return Generation(folder, fields)
