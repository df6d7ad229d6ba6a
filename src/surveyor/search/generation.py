"""The files of an index: `SURVEY/search/`, which may be deleted at any time.

    index.json           the current state and its segments, the position in the journal, and a signature
    segment-000000003/   pages and their words (`segment.py`)
    state-000000007/     which page of which segment is current, and the links whose texts are indexed (`state.py`)
    lock                 held by the process that updates the index

Segments and states never change. An update writes new ones, and then replaces `index.json`: a reader sees the old index
or the new one, complete, also if the update is killed at any moment; what it had written is removed by the next one.

**An index from elsewhere is never used** (`store/signed_files.py`): it is built again.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import Any

from surveyor.errors import SurveyError
from surveyor.store import layout
from surveyor.store.directory import locked
from surveyor.store.disk import disk_errors, sync_file, sync_folder
from surveyor.store.signed_files import REMOVE, files_of, marks_of, read_signed, write_signed

ABOUT = "index.json"
PURPOSE = "search"
TRIES = 5  # of reading an index that other processes replace
MOST_BYTES = 1 << 20  # of its description that are compared
VERSION = 2  # of the files and of the words in them; increase it when either changes
NAME = re.compile(r"(segment|state)-[0-9]{9}")


@dataclass(frozen=True, slots=True)
class Generation:
    """A complete index."""

    place: Path
    about: Mapping[str, Any]

    @property
    def segments(self) -> list[Path]:
        """Folders of the segments, in the order of their numbers in the state."""
        return [self.place / name for name in self.about["segments"]]

    @property
    def state(self) -> Path:
        """Folder of the state."""
        return self.place / str(self.about["state"])

    @property
    def position(self) -> int:
        """Number of visits of the journal that it covers."""
        return int(self.about["position"])


def current(survey: Path, terms: Sequence[str]) -> Generation | None:
    """Return the index of a survey that was built for these terms; None without a valid one of this user."""
    found = None
    for _ in range(TRIES):
        about = _bytes(survey)
        found = _current(survey, terms)
        if found is not None or about == _bytes(survey):
            break  # otherwise another process has published an index meanwhile
    return found


def _bytes(survey: Path) -> bytes:
    try:
        with layout.open_inside(survey / layout.SEARCH, ABOUT) as file:
            return bytes(file.read(MOST_BYTES))
    except (OSError, SurveyError):
        return b""


def _current(survey: Path, terms: Sequence[str]) -> Generation | None:
    place = survey / layout.SEARCH
    try:
        about = read_signed(place, ABOUT, PURPOSE)
        if about is None or about["version"] != VERSION or about["terms"] != list(terms):
            return None
        names = [*about["segments"], about["state"]]
        if not all(NAME.fullmatch(name) for name in names):
            return None
        found = {name: marks_of(place / name) for name in names}
        return Generation(place, about) if found == about["files"] else None
    except (OSError, ValueError, KeyError, TypeError, SurveyError):
        return None


def exists(survey: Path) -> bool:
    """Return whether a survey has an index, valid or not."""
    return os.path.lexists(survey / layout.SEARCH / ABOUT)


@contextmanager
def updating(survey: Path, patience: float = 0.0) -> Iterator[Path]:
    """Hold the lock of the index of a survey, for which some seconds are waited; yield its folder."""
    place = survey / layout.SEARCH
    with disk_errors(place):
        if place.is_symlink():
            raise SurveyError(f"{place} is a symbolic link", hint=REMOVE)
        place.mkdir(exist_ok=True)
        with ExitStack() as stack:
            _wait_for(stack, place, patience)
            yield place


def _wait_for(stack: ExitStack, place: Path, patience: float) -> None:
    """Take the lock; raise SurveyError if another process still has it at the end."""
    step = 0.05
    for _ in range(int(patience / step)):
        try:
            stack.enter_context(locked(place))
        except SurveyError:
            sleep(step)
        else:
            return
    stack.enter_context(locked(place))


def new_folder(place: Path, kind: str) -> Path:
    """Return the path of a folder that does not exist yet."""
    numbers = [int(path.name.rpartition("-")[2]) for path in place.iterdir() if NAME.fullmatch(path.name)]
    return place / f"{kind}-{max(numbers, default=0) + 1:09d}"


def sync(folder: Path) -> None:
    """Flush the files of a folder to disk."""
    for file in files_of(folder):
        sync_file(file)
    sync_folder(folder)


def publish(place: Path, segments: Sequence[Path], state: Path, about: Mapping[str, Any]) -> Generation:
    """Make a state the current one, durably."""
    sync(state)
    names = [path.name for path in segments]
    files = {path.name: marks_of(path) for path in (*segments, state)}
    fields = {"version": VERSION, **about, "segments": names, "state": state.name, "files": files}
    return Generation(place, write_signed(place, ABOUT, PURPOSE, fields))


def clean(place: Path, kept: Generation | None) -> None:
    """Remove segments and states that no index refers to; readers that have them open may keep them."""
    names = set() if kept is None else {*kept.about["segments"], kept.about["state"]}
    for path in place.iterdir():
        if NAME.fullmatch(path.name) and path.name not in names:
            if path.is_symlink() or not path.is_dir():
                path.unlink()
            else:
                shutil.rmtree(path, ignore_errors=True)
    sync_folder(place)
