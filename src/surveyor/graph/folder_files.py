"""Parts of folders of arrays: written as a draft and renamed, described by a sealed JSON file, opened by memory map."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surveyor.arrays import map_npy
from surveyor.errors import GraphError, UsageError

BLOCK = 1 << 22


def check_files(folder: Path, files: Mapping[str, tuple[int, str]], again: str, *, verify: bool) -> None:
    """Reject a folder in which a file is missing, truncated or, with `verify`, corrupt; `again` says how to repair it.

    `files` maps names to sizes and checksums.
    """
    for name, (expected, crc32) in files.items():
        path = folder / name
        size = path.stat().st_size if path.is_file() else -1
        if size != expected:
            state = "is missing" if size < 0 else f"has {size:,} bytes instead of {expected:,}"
            raise GraphError(f"{path} {state}", hint=f"the graph is truncated: {again}")
        if verify and checksum(path) != crc32:
            raise GraphError(f"{path} is corrupt (its checksum differs)", hint=f"copy the graph again, or {again}")


@dataclass(frozen=True, slots=True)
class FolderKind:
    """A kind of folder: the JSON file that describes it, and what messages call it."""

    file: str
    format: str
    version: int  # latest that can be read
    longest: int  # bytes of the file
    noun: str  # such as "graph folder"
    short: str  # such as "graph"
    again: str  # how to repair it
    maker: str  # command that makes one from `source`
    source: str


def read_description(folder: Path, kind: FolderKind, parse: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Return the description of a folder; reject one that is missing, damaged or newer.

    `parse` checks its parts and replaces them by values of their types; it may raise ValueError and the like.
    """
    path = folder / kind.file
    if not path.is_file():
        problem = f"is not a {kind.noun} (it has no {kind.file})" if folder.exists() else "does not exist"
        raise GraphError(f"{folder} {problem}", hint=f"make one with `{kind.maker} {kind.source} {folder}`")
    try:
        if path.stat().st_size > kind.longest:
            raise ValueError(f"it has more than {kind.longest:,} bytes")
        about: dict[str, Any] = json.loads(path.read_text("utf-8"))
        version, found = about["version"], about["format"]
        if type(version) is not int or version < 1:
            raise ValueError(f"its version is {version!r}")
        if found == kind.format and version <= kind.version:
            parse(about)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise GraphError(f"{path} is damaged ({repr(error)[:200]})", hint=kind.again) from error
    if found != kind.format:
        raise GraphError(
            f"{path} describes a {found!r}, not a {kind.format!r}", hint=f"pass a folder made by `{kind.maker}`"
        )
    if version > kind.version:
        raise GraphError(
            f"{folder} was written by a newer surveyor ({kind.short} version {version}; this one reads up to "
            f"{kind.version})",
            hint="pip install --upgrade surveyor",
        )
    return about


@contextmanager
def new_folder(folder: Path, check: Callable[[], None]) -> Iterator[Path]:
    """Yield a draft folder that becomes `folder` on success and is removed on failure; `check` rejects names in use."""
    check()
    draft, old = (folder.with_name(f"{folder.name}.{what}-{os.getpid()}") for what in ("draft", "old"))
    draft.mkdir(parents=True)
    try:
        yield draft
        if folder.exists():
            folder.rename(old)  # two renames, not a deletion: a crash between them loses nothing
        draft.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        why = error.strerror or error
        raise UsageError(f"{folder} cannot be written: {why}", hint="check the folder and its free space") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def growing(path: Path) -> Iterator[Callable[[npt.NDArray[np.int32]], None]]:
    """Write an int32 `.npy` file of initially unknown length: a header with spare room, data, the final header."""
    count = 0

    def header() -> dict[str, Any]:
        return {"descr": "<i4", "fortran_order": False, "shape": (count,)}

    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header())
        start = file.tell()

        def write(values: npt.NDArray[np.int32]) -> None:
            nonlocal count
            file.write(np.ascontiguousarray(values).data)
            count += values.size

        yield write
        file.seek(0)
        np.lib.format.write_array_header_1_0(file, header())
        assert file.tell() == start, "NumPy leaves room in the header for 21 digits"  # noqa: S101


def mapped(path: Path) -> npt.NDArray[Any]:
    """Memory-map an array of a folder."""
    try:
        return map_npy(path)
    except (ValueError, OSError) as error:
        raise GraphError(f"{path} is corrupt ({error})", hint="build the graph again") from error


def seal(about: Mapping[str, Any]) -> str:
    """Return the checksum of the contents of a description, independent of white space."""
    from isal.isal_zlib import crc32

    return f"{crc32(json.dumps(about, sort_keys=True).encode()):08x}"


def checksum(path: Path) -> str:
    """Return the CRC-32 of a file."""
    from isal.isal_zlib import crc32

    value = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            value = crc32(block, value)
    return f"{value:08x}"
