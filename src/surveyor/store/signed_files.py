"""Derived files that only the user who wrote them uses: a signed list of what they are.

A JSON file lists for each file inode, size, and times of modification and status change, which an unpacked archive
cannot imitate, so that a gigabyte need not be read to verify it. The list is signed with the key of this user
(`signing.py`). A copied survey has no valid list for the same reason.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surveyor.errors import SurveyError
from surveyor.store import layout, signing
from surveyor.store.disk import write_atomically

LONGEST = 10_000_000  # bytes of a list
REMOVE = "remove it: it is built again"


def read_signed(place: Path, name: str, purpose: str) -> dict[str, Any] | None:
    """Return the fields of a list that this user signed for a purpose; None if there is no such list."""
    try:
        if place.is_symlink():
            return None
        fields = json.loads(layout.read_inside(place, name, LONGEST))
        signature = fields.pop("signature")
        return fields if signing.is_signed(purpose, _plain(fields), signature) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, SurveyError):
        return None


def write_signed(place: Path, name: str, purpose: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Sign fields and replace the list by them, durably; return them as JSON has them."""
    plain: dict[str, Any] = json.loads(json.dumps(fields))
    signature = signing.sign(purpose, _plain(plain))
    if not signature:
        raise SurveyError(
            f"{place} cannot be signed: this account has no folder for its key",
            hint="set XDG_CONFIG_HOME to a folder that can be written",
        )
    write_atomically(place / name, json.dumps({**plain, "signature": signature}) + "\n")
    return plain


def files_of(folder: Path) -> list[Path]:
    """List the files in a folder and below; links are listed, and not followed."""
    found: list[Path] = []
    for path in sorted(folder.iterdir()):
        found += files_of(path) if path.is_dir() and not path.is_symlink() else [path]
    return found


def marks_of(folder: Path) -> dict[str, list[int]]:
    """Return what identifies each file of a folder as the one that was written."""
    marks = {}
    for path in files_of(folder):
        about = path.lstat()
        if not path.is_file() or path.is_symlink():
            raise SurveyError(f"{path} is not a plain file", hint=REMOVE)
        name = path.relative_to(folder).as_posix()
        marks[name] = [about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns]
    return marks


def _plain(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, sort_keys=True).encode()
