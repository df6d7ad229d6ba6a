"""A checkpoint: arrays that save a replay of the journal from the start. Never needed, never trusted.

    checkpoint/000000012345/        made when the journal had 12,345 visits
      header.json                   version, key, position, CRC-32 of each array and of what else is told
      residual.npy …                the arrays

It is written under another name and renamed when complete; the two latest are kept. One that is missing, torn,
damaged, of another version, of another journal (the key) or of a journal that was longer (a power cut may shorten
it) is passed over: then the journal is replayed from further back.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from surveyor.errors import UsageError
from surveyor.npy import read_npy

Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]
VERSION = 1
KEPT = 2
NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A state, and the position in the journal that it stands for."""

    position: int
    arrays: Arrays
    about: Mapping[str, Any]  # small things that are no arrays


def save(folder: Path, arrays: Arrays, *, position: int, key: str, about: Mapping[str, Any] | None = None) -> bool:
    """Save a state; false if the disk does not take it, and the earlier ones stay."""
    for name, array in arrays.items():
        if not NAME.fullmatch(name) or array.dtype.hasobject:
            raise UsageError(
                f"no checkpoint of {name!r} ({array.dtype})", hint="give arrays of numbers, names like seen_at"
            )
    draft, place = folder / f"draft-{os.getpid()}", folder / f"{position:012d}"
    try:
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        sums = {}
        for name, array in arrays.items():
            np.save(draft / f"{name}.npy", array, allow_pickle=False)
            sums[name] = _checksum((draft / f"{name}.npy").read_bytes())
        told = {"version": VERSION, "key": key, "position": position, "arrays": sums, "about": dict(about or {})}
        header = {**told, "checksum": _checksum(_plain(told))}
        (draft / "header.json").write_text(json.dumps(header, indent=1) + "\n", "utf-8")
        shutil.rmtree(place, ignore_errors=True)
        draft.rename(place)
        for old in _all(folder)[KEPT:]:
            shutil.rmtree(old, ignore_errors=True)
    except OSError:
        return False
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return True


def load(folder: Path, *, position: int, key: str) -> Checkpoint | None:
    """Return the latest sound state of this journal at or before a position, or None: never an error."""
    found = (_load(place, key) for place in _all(folder) if int(place.name) <= position)
    return next((checkpoint for checkpoint in found if checkpoint is not None), None)


def verify(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Yield each state that is kept, and whether all its checksums are right."""
    for place in _all(folder):
        yield place, _load(place, None) is not None


def _all(folder: Path) -> list[Path]:
    """List the states of a folder, latest first."""
    try:
        places = [place for place in folder.iterdir() if place.name.isascii() and place.name.isdigit()]
    except OSError:
        return []
    return sorted(places, key=lambda place: int(place.name), reverse=True)


def _load(place: Path, key: str | None) -> Checkpoint | None:
    """Return a state, or None if it is damaged, of another version, or of another journal than that of the key."""
    try:
        told = json.loads((place / "header.json").read_text("utf-8"))
        checksum = told.pop("checksum")
        if checksum != _checksum(_plain(told)):
            return None
        if (told["version"], told["position"]) != (VERSION, int(place.name)) or key not in (None, told["key"]):
            return None
        arrays = {}
        for name, expected in told["arrays"].items():
            if not NAME.fullmatch(name):  # it would lead to another folder
                return None
            data = (place / f"{name}.npy").read_bytes()
            if _checksum(data) != expected:
                return None
            arrays[name] = read_npy(data)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return None
    return Checkpoint(told["position"], arrays, told["about"])


def _plain(told: Mapping[str, Any]) -> bytes:
    return json.dumps(told, sort_keys=True).encode()


def _checksum(data: bytes) -> str:
    from isal.isal_zlib import crc32

    return f"{crc32(data):08x}"
