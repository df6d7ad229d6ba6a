"""A graph on disk: a folder of `.npy` arrays that open by memory map, and `graph.json` that describes it.

    graph.json         format, version, counts, size and CRC-32 of each file and of itself, provenance
    indptr.npy         int64, links of page p are indices[indptr[p]:indptr[p + 1]]
    indices.npy        int32
    in_indptr.npy      the same for in-links
    in_indices.npy
    names.npy          int64 offsets into names.utf8 (only in named graphs)
    names.utf8

Opening a folder reads it once to verify the checksums, so that a flipped bit cannot change a result.
The folder is written under a temporary name and renamed when complete, so a crash never leaves an incomplete
graph under the final name.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surveyor.arrays import IdArray, let_go, map_npy, save
from surveyor.errors import GraphError, UsageError
from surveyor.graph.build import Builder, transpose
from surveyor.graph.csr import Graph, Rows
from surveyor.graph.names import Names
from surveyor.stopping import ProgressCallback, silent

FORMAT = "surveyor-graph"
VERSION = 1
ARRAYS = {"indptr.npy": "int64", "indices.npy": "int32", "in_indptr.npy": "int64", "in_indices.npy": "int32"}
NAME_FILES = ("names.npy", "names.utf8")
BLOCK = 1 << 22
LONGEST = 1 << 24  # bytes of graph.json


def save_folder(graph: Graph, folder: Path, *, replace: bool = False) -> Path:
    """Write a graph in both directions."""
    with _new_folder(folder, replace=replace) as draft:
        save(draft / "indptr.npy", graph.indptr)
        save(draft / "indices.npy", graph.indices)
        save(draft / "in_indptr.npy", graph.in_links.indptr)
        save(draft / "in_indices.npy", graph.in_links.indices)
        _describe(draft, graph.names, graph.provenance)
    return folder


def build_folder(
    builder: Builder,
    folder: Path,
    *,
    nodes: int | None = None,
    names: Names | None = None,
    provenance: Mapping[str, Any] | None = None,
    replace: bool = False,
    progress: ProgressCallback = silent,
) -> Graph:
    """Write the graph of a builder directly to a folder, never holding all links in memory; open the result."""
    with _new_folder(folder, replace=replace) as draft:
        with _growing(draft / "indices.npy") as write:
            graph = builder.finish(nodes, names, write=write, progress=progress)
        save(draft / "indptr.npy", graph.indptr)
        indices = np.load(draft / "indices.npy", mmap_mode="r")
        progress("transposing", 0, graph.pages, "pages")
        with _growing(draft / "in_indices.npy") as write:
            rows = transpose(graph.indptr, indices, write=write, at_once=1 << 26)
        save(draft / "in_indptr.npy", rows.indptr)
        _describe(draft, names, {**graph.provenance, **(provenance or {})})
    return open_folder(folder, verify=False)


def open_folder(folder: Path, *, verify: bool = True) -> Graph:
    """Open a graph by memory map; reject one that is missing, incomplete, truncated, corrupt or newer."""
    about = describe(folder)
    for name, (expected, checksum) in about["files"].items():
        path = folder / name
        size = path.stat().st_size if path.is_file() else -1
        if size != expected:
            state = "is missing" if size < 0 else f"has {size:,} bytes instead of {expected:,}"
            raise GraphError(f"{path} {state}", hint="the graph is truncated: build it again")
        if verify and _checksum(path) != checksum:
            raise GraphError(
                f"{path} is corrupt (its checksum differs)", hint="build the graph again, or copy it again"
            )
    out, into = (_rows(folder, about, direction) for direction in ("", "in_"))
    if verify and not (_sound(out) and _sound(into)):
        raise GraphError(
            f"{folder} has links to pages that do not exist", hint="it was not written by surveyor: build it again"
        )
    names = None
    if NAME_FILES[0] in about["files"]:
        offsets, text = _mapped(folder / NAME_FILES[0]), folder / NAME_FILES[1]
        blob = np.memmap(text, np.uint8, "r") if text.stat().st_size else np.empty(0, np.uint8)
        names = Names.checked(np.asarray(offsets), np.asarray(blob), folder, GraphError)
    return Graph(out.indptr, out.indices, names=names, in_links=into, provenance=about["provenance"])


def describe(folder: Path) -> dict[str, Any]:
    """Return the contents of `graph.json`, after checking that this version can read it."""
    path = folder / "graph.json"
    if not path.is_file():
        kind = "is not a graph folder (it has no graph.json)" if folder.exists() else "does not exist"
        raise GraphError(f"{folder} {kind}", hint=f"make one with `surveyor graph build SOURCE {folder}`")
    try:
        if path.stat().st_size > LONGEST:
            raise ValueError(f"it has more than {LONGEST:,} bytes")
        about: dict[str, Any] = json.loads(path.read_text("utf-8"))
        version, kind = about["version"], about["format"]
        if kind == FORMAT and version <= VERSION:
            if about.pop("checksum", None) not in (None, _seal(about)):  # early versions wrote none
                raise ValueError("its checksum differs")
            files = about["files"].items()
            about["files"] = {str(name): (int(file["bytes"]), str(file["crc32"])) for name, file in files}
            about["pages"], about["links"] = int(about["pages"]), int(about["links"])
            about["provenance"] = dict(about["provenance"])
            _check_names(set(about["files"]))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise GraphError(f"{path} is damaged ({repr(error)[:200]})", hint="build the graph again") from error
    if kind != FORMAT:
        raise GraphError(
            f"{path} describes a {kind!r}, not a {FORMAT!r}",
            hint="pass a folder made by `surveyor graph build`",
        )
    if version > VERSION:
        raise GraphError(
            f"{folder} was written by a newer surveyor (graph version {version}; this one reads up to {VERSION})",
            hint="pip install --upgrade surveyor",
        )
    return about


def _check_names(names: set[str]) -> None:
    """Reject a list of files that omits one, or names one that is not part of a graph."""
    if names not in (set(ARRAYS), {*ARRAYS, *NAME_FILES}):
        raise ValueError("its files are not those of a graph")


def _rows(folder: Path, about: Mapping[str, Any], direction: str) -> Rows:
    arrays: list[npt.NDArray[Any]] = []
    for part, size in (("indptr.npy", about["pages"] + 1), ("indices.npy", about["links"])):
        path = folder / (direction + part)
        array = _mapped(path)
        if array.shape != (size,) or array.dtype != ARRAYS[direction + part]:
            raise GraphError(
                f"{path} does not contain {size:,} {ARRAYS[direction + part]} numbers",
                hint="build the graph again",
            )
        arrays.append(np.asarray(array))
    return Rows(*arrays)


def _mapped(path: Path) -> npt.NDArray[Any]:
    try:
        return map_npy(path)
    except (ValueError, OSError) as error:
        raise GraphError(f"{path} is corrupt ({error})", hint="build the graph again") from error


def _sound(rows: Rows) -> bool:
    """Return whether every row lies within the links and every link within the pages; kernels rely on it."""
    pages, links = rows.indptr.size - 1, rows.indices.size
    if rows.indptr[0] != 0 or rows.indptr[-1] != links:
        return False
    for start in range(0, pages, BLOCK):  # in blocks: a graph may be larger than memory
        if (np.diff(rows.indptr[start : start + BLOCK + 1]) < 0).any():
            return False
        let_go(rows.indptr, start, min(start + BLOCK, pages))
    for start in range(0, links, BLOCK):
        piece = rows.indices[start : start + BLOCK]
        if piece.min() < 0 or piece.max() >= pages:
            return False
        let_go(rows.indices, start, start + piece.size)
    return True


def check_free(folder: Path, *, replace: bool) -> None:
    """Reject an existing folder unless it contains only a graph and `replace` is set."""
    if not (folder.exists() or folder.is_symlink()):
        return
    if not (folder / "graph.json").is_file():
        raise UsageError(f"{folder} already exists and is not a graph", hint="choose another name")
    if not replace:
        raise UsageError(f"{folder} already exists", hint="choose another name, or replace it with --replace")
    others = sorted({path.name for path in folder.iterdir()} - {"graph.json", *ARRAYS, *NAME_FILES})
    if others or folder.is_symlink():
        why = f"contains {others[0]} in addition to the graph" if others else "is a symbolic link"
        raise UsageError(f"{folder} {why}, so it is not replaced", hint="choose another name, or remove it yourself")


@contextmanager
def _new_folder(folder: Path, *, replace: bool) -> Iterator[Path]:
    """Yield a draft folder that is renamed to `folder` on success and removed on failure."""
    check_free(folder, replace=replace)
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
def _growing(path: Path) -> Iterator[Any]:
    """Write an int32 `.npy` file of initially unknown length: a header with spare room, data, the final header."""
    count = 0

    def header() -> dict[str, Any]:
        return {"descr": "<i4", "fortran_order": False, "shape": (count,)}

    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header())
        start = file.tell()

        def write(values: IdArray) -> None:
            nonlocal count
            file.write(np.ascontiguousarray(values).data)
            count += values.size

        yield write
        file.seek(0)
        np.lib.format.write_array_header_1_0(file, header())
        assert file.tell() == start, "NumPy leaves room in the header for 21 digits"  # noqa: S101


def _describe(folder: Path, names: Names | None, provenance: Mapping[str, Any]) -> None:
    if names is not None:
        save(folder / NAME_FILES[0], names.offsets)
        (folder / NAME_FILES[1]).write_bytes(np.ascontiguousarray(names.blob).data)
    files = [*ARRAYS, *(NAME_FILES if names is not None else ())]
    about = {
        "format": FORMAT,
        "version": VERSION,
        "pages": int(np.load(folder / "indptr.npy", mmap_mode="r").size - 1),
        "links": int(np.load(folder / "indices.npy", mmap_mode="r").size),
        "files": {name: {"bytes": (folder / name).stat().st_size, "crc32": _checksum(folder / name)} for name in files},
        "provenance": dict(provenance),
    }
    about["checksum"] = _seal(json.loads(json.dumps(about)))
    (folder / "graph.json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")


def _seal(about: Mapping[str, Any]) -> str:
    """Return the checksum of the contents of `graph.json`, independent of white space."""
    from isal.isal_zlib import crc32

    return f"{crc32(json.dumps(about, sort_keys=True).encode()):08x}"


def _checksum(path: Path) -> str:
    from isal.isal_zlib import crc32

    value = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            value = crc32(block, value)
    return f"{value:08x}"
