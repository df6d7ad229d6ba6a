"""The surveys that a server shows, and the names that its addresses give them."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from surveyor.errors import SurveyError
from surveyor.store import layout

if TYPE_CHECKING:
    from collections.abc import Sequence

FRESH = 1.0  # seconds for which a list of surveys is used again
MOST = 1000  # surveys of one folder


class Surveys:
    """The surveys that were named, or those of the working folder (unless `only_named`), by name.

    A name is only ever looked up here: no part of an address becomes part of a path.
    """

    def __init__(self, places: Sequence[Path | str] = (), home: Path | str = ".", *, only_named: bool = False) -> None:
        """Raise SurveyError for a place that is neither a survey nor a folder."""
        self.home = Path(home).absolute()
        self._default = [] if only_named else [self.home]
        self._places = [Path(place).absolute() for place in places]
        self._added: list[Path] = []
        self._found: dict[str, Path] = {}
        self._found_at = float("-inf")
        for place, path in zip(places, self._places, strict=True):
            if not path.is_dir():
                raise SurveyError(f"{place} does not exist", hint="name surveys, or folders of surveys")

    def all(self) -> dict[str, Path]:
        """Return the folders by name, the last changed first."""
        if time.monotonic() - self._found_at > FRESH:
            self._found = self._look()
            self._found_at = time.monotonic()
        return self._found

    def add(self, folder: Path) -> None:
        """Also show a survey that was started from the page."""
        if folder not in self._added:
            self._added.append(folder)
        self._found_at = float("-inf")

    def folder(self, name: str) -> Path | None:
        """Return the folder of a name, or None."""
        return self.all().get(name)

    def name_of(self, folder: Path) -> str:
        """Return the name of a folder; empty if it is not shown (yet)."""
        return next((name for name, path in self.all().items() if path == folder), "")

    def _look(self) -> dict[str, Path]:
        folders: list[Path] = []
        for place in [*(self._places or self._default), *self._added]:
            if layout.is_survey(place):
                folders.append(place)
            elif place.is_dir():
                folders += sorted(path for path in place.iterdir() if layout.is_survey(path))[:MOST]
        unique = dict.fromkeys(folders)
        named: dict[str, Path] = {}
        for folder in unique:  # in a stable order, so that a name stays that of its survey
            name = first = _name(folder)
            number = 1
            while name in named:
                number += 1
                name = f"{first}-{number}"
            named[name] = folder
        return dict(sorted(named.items(), key=lambda entry: -changed_at(entry[1])))


def _name(folder: Path) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.name.removesuffix(".survey")).strip(".-")
    return name[:100] or "survey"


def changed_at(folder: Path) -> float:
    """Return when the journal of a survey was last written."""
    at = 0.0
    for file in (layout.JOURNAL, f"{layout.JOURNAL}-wal"):
        try:
            at = max(at, (folder / file).stat().st_mtime)
        except OSError:
            continue
    return at
