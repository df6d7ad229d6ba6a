"""A graph on disk: a folder of `.npy` arrays that open by memory map, and `graph.json` that describes it.

    graph.json         format, version, counts, size and CRC-32 of each file and of itself, provenance
    indptr.npy         int64, links of page p are indices[indptr[p]:indptr[p + 1]]
    indices.npy        int32
    in_indptr.npy      the same for in-links
    in_indices.npy
    names.npy          int64 offsets into names.utf8 (only in named graphs)
    names.utf8
    weights.npy        float64, of each link of indices.npy (only in weighted graphs)

Opening a folder reads it once to verify the checksums, so that a flipped bit cannot change a result.
The folder is written under a temporary name and renamed when complete, so a crash never leaves an incomplete
graph under the final name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surveyor.arrays import FloatArray, let_go, save
from surveyor.errors import GraphError, UsageError
from surveyor.graph.build import Builder, transpose
from surveyor.graph.csr import Extra, Graph, Rows
from surveyor.graph.folder_files import (
    FolderKind,
    check_files,
    checksum,
    growing,
    mapped,
    new_folder,
    read_description,
    seal,
)
from surveyor.graph.labels import Labels
from surveyor.graph.names import Names
from surveyor.stopping import ProgressCallback, silent

FORMAT = "surveyor-graph"
VERSION = 2  # 1 without weights and kept self-links, which older versions can read
ARRAYS = {"indptr.npy": "int64", "indices.npy": "int32", "in_indptr.npy": "int64", "in_indices.npy": "int32"}
NAME_FILES = ("names.npy", "names.utf8")
WEIGHTS = "weights.npy"
MULTIGRAPH = "multigraph"  # kind of a graph that keeps self-links or duplicates
BLOCK = 1 << 22
KIND = FolderKind(
    file="graph.json",
    format=FORMAT,
    version=VERSION,
    longest=1 << 24,
    noun="graph folder",
    short="graph",
    again="build the graph again",
    maker="surveyor graph build",
    source="SOURCE",
)


def save_folder(graph: Graph, folder: Path, *, replace: bool = False) -> Path:
    """Write a graph in both directions."""
    names = graph.names.distinct_text() if isinstance(graph.names, Labels) else graph.names
    with new_folder(folder, lambda: check_free(folder, replace=replace)) as draft:
        save(draft / "indptr.npy", graph.indptr)
        save(draft / "indices.npy", graph.indices)
        save(draft / "in_indptr.npy", graph.in_links.indptr)
        save(draft / "in_indices.npy", graph.in_links.indices)
        if graph.weights is not None:
            save(draft / WEIGHTS, graph.weights)
        _describe(draft, names, graph.provenance, MULTIGRAPH if graph.multigraph else "")
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
    with new_folder(folder, lambda: check_free(folder, replace=replace)) as draft:
        with growing(draft / "indices.npy") as write:
            graph = builder.finish(nodes, names, write=write, progress=progress)
        save(draft / "indptr.npy", graph.indptr)
        indices = np.load(draft / "indices.npy", mmap_mode="r")
        progress("transposing", 0, graph.pages, "pages")
        with growing(draft / "in_indices.npy") as write:
            rows = transpose(graph.indptr, indices, write=write, at_once=1 << 26)
        save(draft / "in_indptr.npy", rows.indptr)
        _describe(draft, names, {**graph.provenance, **(provenance or {})})
    return open_folder(folder, verify=False)


def open_folder(folder: Path, *, verify: bool = True) -> Graph:
    """Open a graph by memory map; reject one that is missing, incomplete, truncated, corrupt or newer."""
    about = describe(folder)
    check_files(folder, about["files"], "build it again", verify=verify)
    out, into = (_rows(folder, about, direction) for direction in ("", "in_"))
    if verify and not (_sound(out) and _sound(into)):
        raise GraphError(
            f"{folder} has links to pages that do not exist", hint="it was not written by surveyor: build it again"
        )
    names = None
    if NAME_FILES[0] in about["files"]:
        offsets, text = mapped(folder / NAME_FILES[0]), folder / NAME_FILES[1]
        blob = np.memmap(text, np.uint8, "r") if text.stat().st_size else np.empty(0, np.uint8)
        names = Names.checked(np.asarray(offsets), np.asarray(blob), folder, GraphError)
    weights = _weights(folder, about, verify=verify) if WEIGHTS in about["files"] else None
    extra = Extra(weights, about.get("kind") == MULTIGRAPH, folder.absolute())
    return Graph(out.indptr, out.indices, names=names, in_links=into, provenance=about["provenance"], extra=extra)


def describe(folder: Path) -> dict[str, Any]:
    """Return the contents of `graph.json`, after checking that this version can read it."""
    return read_description(folder, KIND, _parse)


def _parse(about: dict[str, Any]) -> None:
    """Check the parts of a description and replace them by values of their types."""
    if about.pop("checksum", None) not in (None, seal(about)):  # early versions wrote none
        raise ValueError("its checksum differs")
    files = about["files"].items()
    about["files"] = {str(name): (int(file["bytes"]), str(file["crc32"])) for name, file in files}
    about["pages"], about["links"] = int(about["pages"]), int(about["links"])
    about["provenance"] = dict(about["provenance"])
    _check_names(set(about["files"]))


def _check_names(names: set[str]) -> None:
    """Reject a list of files that omits one, or names one that is not part of a graph."""
    if names - {WEIGHTS} not in (set(ARRAYS), {*ARRAYS, *NAME_FILES}):
        raise ValueError("its files are not those of a graph")


def _rows(folder: Path, about: Mapping[str, Any], direction: str) -> Rows:
    arrays: list[npt.NDArray[Any]] = []
    for part, size in (("indptr.npy", about["pages"] + 1), ("indices.npy", about["links"])):
        path = folder / (direction + part)
        array = mapped(path)
        if array.shape != (size,) or array.dtype != ARRAYS[direction + part]:
            raise GraphError(
                f"{path} does not contain {size:,} {ARRAYS[direction + part]} numbers",
                hint="build the graph again",
            )
        arrays.append(np.asarray(array))
    return Rows(*arrays)


def _weights(folder: Path, about: Mapping[str, Any], *, verify: bool) -> FloatArray:
    """Return the weights of the links; raise if one is not a positive number."""
    path = folder / WEIGHTS
    weights = mapped(path)
    if weights.shape != (about["links"],) or weights.dtype != np.float64:
        raise GraphError(f"{path} does not contain {about['links']:,} float64 numbers", hint="build the graph again")
    if verify and not ((weights > 0) & np.isfinite(weights)).all():
        raise GraphError(f"{path} contains weights that are not positive", hint="build the graph again")
    return np.asarray(weights)


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
    others = sorted({path.name for path in folder.iterdir()} - {"graph.json", *ARRAYS, *NAME_FILES, WEIGHTS})
    if others or folder.is_symlink():
        why = f"contains {others[0]} in addition to the graph" if others else "is a symbolic link"
        raise UsageError(f"{folder} {why}, so it is not replaced", hint="choose another name, or remove it yourself")


def _describe(folder: Path, names: Names | None, provenance: Mapping[str, Any], kind: str = "") -> None:
    if names is not None:
        save(folder / NAME_FILES[0], names.offsets)
        (folder / NAME_FILES[1]).write_bytes(np.ascontiguousarray(names.blob).data)
    weighted = (folder / WEIGHTS).is_file()
    files = [*ARRAYS, *(NAME_FILES if names is not None else ()), *([WEIGHTS] if weighted else ())]
    about: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION if weighted or kind else 1,
        "pages": int(np.load(folder / "indptr.npy", mmap_mode="r").size - 1),
        "links": int(np.load(folder / "indices.npy", mmap_mode="r").size),
        "files": {name: {"bytes": (folder / name).stat().st_size, "crc32": checksum(folder / name)} for name in files},
        "provenance": dict(provenance),
    }
    if kind:
        about["kind"] = kind
    about["checksum"] = seal(json.loads(json.dumps(about)))
    (folder / "graph.json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")
