"""Matrices: Matrix Market text, and NumPy's npz as SciPy writes it (or with `indptr` and `indices` alone)."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.errors import InputError
from surveyor.graph.csr import Graph
from surveyor.graph.formats.intake import Intake
from surveyor.graph.formats.streams import aside, library, packing, unpacked
from surveyor.graph.names import Names

AT_ONCE = 1 << 22
NAMES = ("name_offsets", "name_bytes")  # arrays that we add to an npz, and SciPy does not mind


def read_matrix_market(path: Path, intake: Intake) -> None:
    """Read a square matrix; each entry that is not zero is a link from its row to its column."""
    sparse, scipy_io = (library(f"scipy.{part}", "reading Matrix Market") for part in ("sparse", "io"))
    with unpacked(path) as (file, _):
        try:
            matrix = scipy_io.mmread(file)
        except (ValueError, OverflowError, TypeError) as error:
            raise InputError(
                f"{path} cannot be read as Matrix Market: {error}",
                hint="the header and every line must agree",
            ) from error
    _take(path, sparse.coo_matrix(matrix), intake)


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
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            _read_npz(path, file, intake)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, KeyError, IndexError) as error:
        raise InputError(
            f"{path} cannot be read as npz: {error}",
            hint="write it with scipy.sparse.save_npz or write_graph",
        ) from error


def _read_npz(path: Path, file: Any, intake: Intake) -> None:
    kind = file["format"].item() if "format" in file else b"csr"
    kind = kind.decode() if isinstance(kind, bytes) else str(kind)
    if kind == "coo":
        ends = (file["row"], file["col"])
        shape = tuple(int(size) for size in file["shape"])
    elif kind in ("csr", "csc") and {"indptr", "indices"} <= set(file.files):
        indptr, indices = file["indptr"].astype(np.int64), file["indices"]
        if indptr.ndim != 1 or indptr.size == 0 or indptr[0] != 0 or indptr[-1] != indices.size:
            raise ValueError("indptr and indices do not fit each other")
        if (np.diff(indptr) < 0).any():
            raise ValueError("indptr falls")
        shape = tuple(int(size) for size in file["shape"]) if "shape" in file else 2 * (indptr.size - 1,)
        lines = np.repeat(np.arange(indptr.size - 1, dtype=np.int32), np.diff(indptr))
        ends = (lines, indices) if kind == "csr" else (indices, lines)
    else:
        raise ValueError(f"it holds {', '.join(file.files) or 'nothing'} in the form {kind}")
    names = Names(file[NAMES[0]], file[NAMES[1]]) if set(NAMES) <= set(file.files) else None
    _declare_square(path, shape[0], shape[1], intake, names)
    if "data" in file and not (present := file["data"] != 0).all():
        intake.note(f"{path.name}: {np.count_nonzero(~present):,} stored zeros are no links")
        ends = (ends[0][present], ends[1][present])
    for first in range(0, ends[0].size, AT_ONCE):
        intake.links(ends[0][first : first + AT_ONCE], ends[1][first : first + AT_ONCE])


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
