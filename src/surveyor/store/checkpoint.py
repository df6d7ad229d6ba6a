"""Checkpoints: arrays that avoid a replay of the journal from the start. Optional, and never trusted.

    checkpoint/000000012345/        saved when the journal had 12,345 visits
      header.json                   version, key, position, SHA-256 of each array, and this user's signature of these
      residual.npy …                the arrays

A checkpoint is written under a temporary name and renamed when complete; the two latest are kept. It is skipped if it
is missing, incomplete, damaged, of another version, of another journal (the key) or of a longer journal (a power cut
may shorten one); the journal is then replayed from an earlier position. A checkpoint that this user did not sign is
skipped as well: kernels rely on the contents of the arrays, and a foreign one may contain anything (`signing`).
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from surveyor.arrays import read_npy
from surveyor.errors import SurveyError, UsageError
from surveyor.store import signing
from surveyor.store.layout import load_inside, read_inside

LOG = logging.getLogger("surveyor.crawler")
Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]
VERSION = 2
KEPT = 2
PURPOSE = "checkpoint"  # purpose of the signature
THREADS = 4
LARGEST = 1 << 40  # bytes of an array
NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A saved state and its position in the journal."""

    position: int
    arrays: Arrays
    about: Mapping[str, Any]  # small values that are not arrays


def save(folder: Path, arrays: Arrays, *, position: int, key: str, about: Mapping[str, Any] | None = None) -> bool:
    """Save a state; return False, and keep the earlier ones, if the disk cannot take it."""
    for name, array in arrays.items():
        if not NAME.fullmatch(name) or array.dtype.hasobject:
            raise UsageError(
                f"{name!r} ({array.dtype}) cannot be saved in a checkpoint",
                hint="use numeric arrays and names like seen_at",
            )
    draft, place = folder / f"draft-{os.getpid()}", folder / f"{position:012d}"
    try:
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        for name, array in arrays.items():
            np.save(draft / f"{name}.npy", array, allow_pickle=False)
        sums = dict(_with_sums(draft, arrays))
        fields = {"version": VERSION, "key": key, "position": position, "arrays": sums, "about": dict(about or {})}
        header = {**fields, "signature": signing.sign(PURPOSE, _plain(fields))}
        if not header["signature"]:
            return False  # without a signature it could not be verified
        (draft / "header.json").write_text(json.dumps(header, indent=1) + "\n", "utf-8")
        shutil.rmtree(place, ignore_errors=True)
        draft.rename(place)
        for old in _all(folder)[KEPT:]:
            shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        LOG.warning("checkpoint not saved: %s", error.strerror, extra={"fields": {"visit": position}})
        return False
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    LOG.debug("checkpoint saved at visit %d", position, extra={"fields": {"visit": position}})
    return True


def load(folder: Path, *, position: int, key: str) -> Checkpoint | None:
    """Return the latest valid checkpoint of this journal at or before a position, or None; never raise."""
    found = (_load(place, key) for place in _all(folder) if int(place.name) <= position)
    checkpoint = next((checkpoint for checkpoint in found if checkpoint is not None), None)
    if checkpoint is not None:
        LOG.debug("checkpoint of visit %d used", checkpoint.position, extra={"fields": {"visit": checkpoint.position}})
    return checkpoint


def verify(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Yield each checkpoint and whether all its checksums match."""
    for place in _all(folder):
        yield place, _load(place, None) is not None


def _all(folder: Path) -> list[Path]:
    """List the checkpoints of a folder, latest first."""
    try:
        places = [place for place in folder.iterdir() if place.name.isascii() and place.name.isdigit()]
    except OSError:
        return []
    return sorted(places, key=lambda place: int(place.name), reverse=True)


def _load(place: Path, key: str | None) -> Checkpoint | None:
    """Return a checkpoint, or None if it is damaged, of another version or of a journal with another key."""
    try:
        header = json.loads(read_inside(place, "header.json"))
        signature = header.pop("signature")
        if not signing.is_signed(PURPOSE, _plain(header), signature):
            return None
        if (header["version"], header["position"]) != (VERSION, int(place.name)) or key not in (None, header["key"]):
            return None
        with ThreadPoolExecutor(THREADS) as pool:
            read = pool.map(lambda name: _read(place, name, header["arrays"][name]), header["arrays"])
            arrays = dict(zip(header["arrays"], read, strict=True))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError, SurveyError):
        return None
    return Checkpoint(header["position"], arrays, header["about"])


def _plain(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, sort_keys=True).encode()


def _with_sums(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each array name with its checksum; hashing releases the GIL, so it runs in threads."""
    listed = list(names)
    with ThreadPoolExecutor(THREADS) as pool:
        yield from zip(listed, pool.map(lambda name: _sum((folder / f"{name}.npy").read_bytes()), listed), strict=True)


def _read(place: Path, name: str, expected: str) -> npt.NDArray[Any]:
    """Read an array; raise ValueError if its checksum differs."""
    data = load_inside(place, f"{name}.npy", LARGEST)
    if not NAME.fullmatch(name) or _sum(data.data) != expected:
        raise ValueError(f"the checksum of {name} is wrong")
    return read_npy(data)


def _sum(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()
