"""Matrices: Matrix Market text, and NumPy's npz as SciPy writes it (or with `indptr` and `indices` alone)."""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.arrays import MAX_PAGES
from surveyor.errors import InputError
from surveyor.graph.csr import Graph
from surveyor.graph.formats.intake import Intake
from surveyor.graph.formats.streams import aside, library, packing, unpacked
from surveyor.graph.names import Names

AT_ONCE = 1 << 22
NPZ_ERRORS = (
    ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error, struct.error, LookupError, TypeError,
    OverflowError, MemoryError, RuntimeError,
)  # fmt: skip
BANNER = re.compile(rb"(?is)%%MatrixMarket\s+matrix\s+(coordinate|array)\s+[\w-]+\s+[\w-]+\s*")
NAMES = ("name_offsets", "name_bytes")  # arrays that we add to an npz, and SciPy does not mind


def read_matrix_market(path: Path, intake: Intake) -> None:
    """Read a square matrix; each entry that is not zero is a link from its row to its column."""
    sparse, scipy_io = (library(f"scipy.{part}", "reading Matrix Market") for part in ("sparse", "io"))
    try:
        with unpacked(path) as (file, _):
            _check_size(file, 1100 * path.stat().st_size)  # no gzip unpacks to more
        with unpacked(path) as (file, _):
            matrix = scipy_io.mmread(_Source(file.read))
    except (ValueError, OverflowError, TypeError, RuntimeError, MemoryError) as error:
        raise InputError(
            f"{path} cannot be read as Matrix Market: {error or type(error).__name__}",
            hint="the header and every line must agree",
        ) from error
    _take(path, sparse.coo_matrix(matrix), intake)


def _check_size(file: Any, most: int) -> None:
    """Look at the first lines before SciPy does, which believes them; `most` is the largest possible text."""
    banner = file.readline(1000)
    if not BANNER.fullmatch(banner):
        raise ValueError("the first line must begin with %%MatrixMarket matrix coordinate or array")
    line = b"%"
    while line.lstrip().startswith(b"%") or (line and not line.strip()):
        line = file.readline(1 << 20)
    sizes = [int(field) for field in line.split() if field.isdigit() and len(field) < 20]
    dense = b"array" in banner.lower()
    if len(sizes) != len(line.split()) or len(sizes) != (2 if dense else 3):
        raise ValueError(f"the line of sizes is {line[:80].decode('utf-8', 'replace')!r}")
    entries = sizes[0] * sizes[1] // 2 if dense else sizes[2]
    if max(sizes[:2]) > MAX_PAGES or 2 * entries > most or entries > sizes[0] * sizes[1]:
        raise ValueError(f"{' × '.join(map(str, sizes[:2]))} with {entries:,} entries cannot be")


class _Source:
    """The little of a file that SciPy needs to read from; without `seek`, which it cannot do in an error."""

    def __init__(self, read: Any) -> None:
        self.read = read


def _take(path: Path, matrix: Any, intake: Intake) -> None:
    rows, columns = matrix.shape
    _declare_square(path, rows, columns, intake)
    sources, targets = np.asarray(matrix.row), np.asarray(matrix.col)
    present = np.asarray(matrix.data) != 0
    if not present.all():
        intake.note(f"{path.name}: {np.count_nonzero(~present):,} stored zeros are no links")
        sources, targets = sources[present], targets[present]
    intake.links(sources, targets)


def _declare_square(path: Path, rows: int, columns: int, intake: Intake, names: Names | None = None) -> None:
    if rows != columns:
        raise InputError(f"{path} is a matrix of {rows:,} × {columns:,}", hint="a graph has as many rows as columns")
    intake.declare(rows, names)


def write_matrix_market(graph: Graph, path: Path) -> None:
    """Write a pattern matrix, rows are sources; names are not kept."""
    sparse, scipy_io = (library(f"scipy.{part}", "writing Matrix Market") for part in ("sparse", "io"))
    ones = np.ones(graph.links, np.int8)
    matrix = sparse.csr_matrix((ones, graph.indices, graph.indptr), shape=(graph.pages, graph.pages))
    with aside(path) as draft, packing(draft) as write:
        scipy_io.mmwrite(_Sink(write), matrix, field="pattern", symmetry="general")


class _Sink:
    """The little of a file that SciPy needs to write to."""

    def __init__(self, write: Any) -> None:
        self.write = write

    def flush(self) -> None:
        """Do nothing: the file is closed soon."""


def read_npz(path: Path, intake: Intake) -> None:
    """Read CSR, CSC or COO arrays."""
    try:
        with path.open("rb") as opened:
            if not zipfile.is_zipfile(opened):
                raise ValueError("it is no archive of arrays")
            opened.seek(0)
            with np.load(opened, allow_pickle=False) as file:
                _read_npz(path, file, intake)
    except NPZ_ERRORS as error:
        raise InputError(
            f"{path} cannot be read as npz: {error or type(error).__name__}",
            hint="write it with scipy.sparse.save_npz or write_graph",
        ) from error


def _read_npz(path: Path, file: Any, intake: Intake) -> None:
    kind = file["format"].item() if "format" in file else b"csr"
    kind = kind.decode() if isinstance(kind, bytes) else str(kind)
    if kind == "coo":
        ends = (_ids(file, "row"), _ids(file, "col"))
        shape = tuple(_ids(file, "shape").tolist())
    elif kind in ("csr", "csc") and {"indptr", "indices"} <= set(file.files):
        indptr, indices = _ids(file, "indptr"), _ids(file, "indices")
        if indptr.size == 0 or indptr[0] != 0 or indptr[-1] != indices.size or (indptr[1:] < indptr[:-1]).any():
            raise ValueError("indptr and indices do not fit each other")
        lines = np.repeat(np.arange(indptr.size - 1, dtype=np.int32), np.diff(indptr))
        shape = tuple(_ids(file, "shape").tolist()) if "shape" in file else 2 * (indptr.size - 1,)
        ends = (lines, indices) if kind == "csr" else (indices, lines)
        if len(shape) != 2 or shape[kind == "csc"] != indptr.size - 1:
            raise ValueError("shape and indptr do not fit each other")
    else:
        raise ValueError(f"it holds {', '.join(file.files) or 'nothing'} in the form {kind}")
    if len(shape) != 2 or ends[0].size != ends[1].size:
        raise ValueError("its arrays do not fit each other")
    if any(part.size and part.max() >= size for part, size in zip(ends, shape, strict=True)):
        raise ValueError(f"an index is beyond the shape {shape[0]} × {shape[1]}")
    names = Names.checked(file[NAMES[0]], file[NAMES[1]], path) if set(NAMES) <= set(file.files) else None
    if names is not None and len(names) != shape[0]:
        raise ValueError(f"it has {len(names):,} names for {shape[0]:,} pages")
    _declare_square(path, shape[0], shape[1], intake, names)
    if names is not None:
        intake.note_repeats(names)
    if "data" in file and file["data"].shape != ends[0].shape:
        raise ValueError("data and indices do not fit each other")
    if "data" in file and not (present := file["data"] != 0).all():
        intake.note(f"{path.name}: {np.count_nonzero(~present):,} stored zeros are no links")
        ends = (ends[0][present], ends[1][present])
    for first in range(0, ends[0].size, AT_ONCE):
        intake.links(ends[0][first : first + AT_ONCE], ends[1][first : first + AT_ONCE])


def _ids(file: Any, name: str) -> Any:
    """Return an array of an archive, after checking that it holds numbers from 0 to 2**63 - 1 in one row."""
    array = file[name]
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array.size and (array.min() < 0 or array.max() >= 2**63)):
        raise ValueError(f"{name} is not a row of page ids")
    return array.astype(np.int64) if array.dtype.kind == "u" or name == "indptr" else array


def write_npz(graph: Graph, path: Path) -> None:
    """Write what scipy.sparse.load_npz reads, and the names beside it."""
    names: dict[str, Any] = (
        {} if graph.names is None else dict(zip(NAMES, (graph.names.offsets, graph.names.blob), strict=True))
    )
    indptr: Any = graph.indptr.astype(np.int32) if graph.links < 2**31 else graph.indptr
    with aside(path) as draft, draft.open("wb") as file:
        np.savez_compressed(
            file,
            indices=graph.indices,
            indptr=indptr,
            format=np.array(b"csr"),
            shape=np.array([graph.pages, graph.pages]),
            data=np.ones(graph.links, np.int8),
            **names,
        )
