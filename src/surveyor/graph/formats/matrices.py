"""NumPy's npz as SciPy writes sparse matrices (or with only `indptr` and `indices`)."""

from __future__ import annotations

import zipfile
import zlib
from lzma import LZMAError
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.errors import InputError
from surveyor.graph.csr import Graph
from surveyor.graph.formats.intake import Intake
from surveyor.graph.formats.streams import atomic_write
from surveyor.graph.names import Names
from surveyor.graph.npy import read_npy

AT_ONCE = 1 << 22
RATIO, FREE = 100, 1 << 26  # limits of decompression: multiple of the file size, or bytes
NPZ_ERRORS = (
    ValueError,
    OSError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
    LZMAError,
    NotImplementedError,
    RuntimeError,
    SystemError,  # invalid characters
)
USED = {"format", "shape", "indptr", "indices", "row", "col", "data", "name_offsets", "name_bytes"}
NAMES = ("name_offsets", "name_bytes")  # additional arrays, which SciPy ignores


def _declare_square(path: Path, rows: int, columns: int, intake: Intake, names: Names | None = None) -> None:
    if rows != columns:
        raise InputError(f"{path} is a matrix of {rows:,} × {columns:,}", hint="a graph needs as many rows as columns")
    intake.declare(rows, names)


def read_npz(path: Path, intake: Intake) -> None:
    """Read CSR, CSC or COO arrays."""
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("it is not an archive of arrays")
        with zipfile.ZipFile(path) as archive:
            _read_npz(path, _Arrays(archive, path.stat().st_size), intake)
    except NPZ_ERRORS as error:
        raise InputError(
            f"{path} cannot be read as npz: {error or type(error).__name__}",
            hint="write it with write_graph, or scipy.sparse.save_npz(…, compressed=False)",
        ) from error


class _Arrays:
    """The arrays of an archive, read on demand and never beyond the size in the directory."""

    def __init__(self, archive: zipfile.ZipFile, size: int) -> None:
        self._archive = archive
        self._members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        used = [info for name, info in self._members.items() if name in USED]
        total, packed = sum(info.file_size for info in used), min(size, sum(info.compress_size for info in used))
        if total > max(FREE, RATIO * packed):
            raise ValueError(f"{packed:,} bytes expand to {total:,}, more than {RATIO} times as many")

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def __getitem__(self, name: str) -> Any:
        if name not in self._members:
            raise ValueError(f"it has no array {name}, only {', '.join(self.names) or 'none'}")
        info = self._members[name]
        with self._archive.open(info) as member:
            data = member.read(info.file_size + 1)
        if len(data) != info.file_size:
            raise ValueError(f"{name} does not have the size stated in the archive")
        return read_npy(data)

    @property
    def names(self) -> list[str]:
        """The names of all arrays, truncated."""
        return [name[:40] for name in list(self._members)[:20]]


def _read_npz(path: Path, file: _Arrays, intake: Intake) -> None:
    kind = file["format"].item() if "format" in file else b"csr"
    kind = kind.decode("latin-1") if isinstance(kind, bytes) else str(kind)
    if kind == "coo":
        ends = (_ids(file, "row"), _ids(file, "col"))
        shape = tuple(_ids(file, "shape").tolist())
        intake.check_filled(max(shape, default=0), ends[0].size)
    elif kind in ("csr", "csc") and "indptr" in file and "indices" in file:
        indptr, indices = _ids(file, "indptr"), _ids(file, "indices")
        if indptr.size == 0 or indptr[0] != 0 or indptr[-1] != indices.size or (indptr[1:] < indptr[:-1]).any():
            raise ValueError("indptr and indices are inconsistent")
        lines = np.repeat(np.arange(indptr.size - 1, dtype=np.int32), np.diff(indptr))
        shape = tuple(_ids(file, "shape").tolist()) if "shape" in file else 2 * (indptr.size - 1,)
        ends = (lines, indices) if kind == "csr" else (indices, lines)
        if len(shape) != 2 or shape[kind == "csc"] != indptr.size - 1:
            raise ValueError("shape and indptr are inconsistent")
    else:
        raise ValueError(f"it contains {', '.join(file.names) or 'nothing'} in the form {kind[:20]}")
    if len(shape) != 2 or ends[0].size != ends[1].size:
        raise ValueError("its arrays are inconsistent")
    if any(part.size and part.max() >= size for part, size in zip(ends, shape, strict=True)):
        raise ValueError(f"an index is beyond the shape {shape[0]} × {shape[1]}")
    names = Names.checked(file[NAMES[0]], file[NAMES[1]], path) if all(name in file for name in NAMES) else None
    if names is not None and len(names) != shape[0]:
        raise ValueError(f"it has {len(names):,} names for {shape[0]:,} pages")
    _declare_square(path, shape[0], shape[1], intake, names)
    if names is not None:
        intake.note_repeats(names)
    data = file["data"] if "data" in file else np.ones(0)
    if "data" in file and (data.shape != ends[0].shape or data.dtype.kind not in "biufc"):
        raise ValueError("data and indices are inconsistent")
    if "data" in file and not (present := data != 0).all():
        intake.note(f"{path.name}: {np.count_nonzero(~present):,} stored zeros are not links")
        ends = (ends[0][present], ends[1][present])
    for first in range(0, ends[0].size, AT_ONCE):
        intake.links(ends[0][first : first + AT_ONCE], ends[1][first : first + AT_ONCE])


def _ids(file: _Arrays, name: str) -> Any:
    """Return a one-dimensional array of an archive, after checking that its numbers are from 0 to 2**63 - 1."""
    array = file[name]
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array.size and (array.min() < 0 or array.max() >= 2**63)):
        raise ValueError(f"{name} is not a one-dimensional array of page ids")
    return array.astype(np.int64) if array.dtype.kind == "u" or name == "indptr" else array


def write_npz(graph: Graph, path: Path) -> None:
    """Write a file for scipy.sparse.load_npz, with the names in additional arrays."""
    names: dict[str, Any] = (
        {} if graph.names is None else dict(zip(NAMES, (graph.names.offsets, graph.names.blob), strict=True))
    )
    indptr: Any = graph.indptr.astype(np.int32) if graph.links < 2**31 else graph.indptr
    arrays: dict[str, Any] = {
        "indices": graph.indices,
        "indptr": indptr,
        "format": np.array(b"csr"),
        "shape": np.array([graph.pages, graph.pages]),
        "data": np.ones(graph.links, np.int8),
        **names,
    }
    with atomic_write(path) as draft:
        with draft.open("wb") as file:
            np.savez_compressed(file, **arrays)
        size = sum(array.nbytes for array in arrays.values())
        if size > RATIO * draft.stat().st_size:  # so repetitive that `read_npz` would reject it as a decompression bomb
            with draft.open("wb") as file:
                np.savez(file, **arrays)
