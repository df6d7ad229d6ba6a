"""Sparse matrices, whose rows link to columns: SciPy's npz (or with only `indptr` and `indices`), and Matrix Market.

Matrix Market is text, read line by line:

    %%MatrixMarket matrix coordinate pattern general
    % comments
    3 3 2               rows, columns, entries
    1 2                 indices from 1, then a value unless it is a pattern
    3 1

Every line is checked, and the header must agree with the entries: no memory is allocated from the sizes in the header
alone. (SciPy's reader is not used: a few bytes after the last entry make it read beyond its buffer.)
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from lzma import LZMAError
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.arrays import MAX_PAGES, ByteArray, IntArray, read_npy
from surveyor.errors import InputError
from surveyor.graph.csr import Graph
from surveyor.graph.formats.intake import Intake
from surveyor.graph.formats.streams import atomic_write, compressed_writer, decompressed, library, line_blocks
from surveyor.graph.names import Names
from surveyor.kernels.thread_pool import ThreadPool

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
FIELDS = {"pattern": 0, "integer": 1, "unsigned-integer": 1, "real": 2, "double": 2, "complex": 3}
SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")
LONGEST = 1 << 20  # bytes of a line before the entries
HINT = "the header and every line must agree; see the Matrix Market format"


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


@dataclass(frozen=True, slots=True)
class Header:
    """The lines before the entries."""

    dense: bool
    field: str
    symmetry: str
    pages: int
    entries: int
    skip: int  # bytes before the entries
    lines: int


def read_matrix_market(path: Path, intake: Intake) -> None:
    """Read a square matrix; each entry that is not zero is a link from its row to its column."""
    header = read_header(path)
    intake.check_filled(header.pages, header.entries)
    intake.declare(header.pages)
    found = zeros = 0
    for rows, columns, present in _entries(path, header, intake):
        found += present.size
        missing = present.size - np.count_nonzero(present)
        if missing:
            zeros += 0 if header.dense else missing
            rows, columns = rows[present], columns[present]
        intake.links(rows, columns)
        if header.symmetry != "general":
            intake.links(columns, rows)  # the diagonal, added twice, is dropped as self-links
    if found != header.entries:
        raise _wrong(path, f"it has {found:,} entries, but its header states {header.entries:,}")
    if zeros:
        intake.note(f"{path.name}: {zeros:,} stored zeros are not links")


def read_header(path: Path) -> Header:
    """Read and check the lines up to the line of sizes."""
    with decompressed(path) as (file, _):
        banner = file.readline(1000)
        words = banner.decode("utf-8", "replace").lower().split()
        skip, lines, line = len(banner), 1, b"%"
        while line.lstrip().startswith(b"%") or (line and not line.strip()):
            line = file.readline(LONGEST)
            skip, lines = skip + len(line), lines + 1
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"] or words[2] not in ("coordinate", "array"):
        raise _wrong(path, "the first line must be %%MatrixMarket matrix coordinate or array, a field, a symmetry")
    dense, field, symmetry = words[2] == "array", words[3], words[4]
    if field not in FIELDS or symmetry not in SYMMETRIES or (dense and field == "pattern"):
        raise _wrong(path, f"a {symmetry!r} matrix of {field!r} in the form {words[2]!r} does not exist")
    sizes = [int(word) for word in line.split() if word.isdigit() and len(word) < 19]
    if len(sizes) != len(line.split()) or len(sizes) != (2 if dense else 3) or not line.endswith(b"\n"):
        raise _wrong(path, f"its line of sizes is invalid: {line[:80].decode('utf-8', 'replace').strip()!r}")
    rows, columns = sizes[:2]
    if rows != columns:
        raise InputError(f"{path} is a matrix of {rows:,} × {columns:,}", hint="a graph needs as many rows as columns")
    entries = sizes[2] if not dense else rows * rows if symmetry == "general" else rows * (rows + 1) // 2
    if dense and symmetry == "skew-symmetric":
        entries -= rows
    if rows > MAX_PAGES or entries > rows * rows:
        raise _wrong(path, f"{rows:,} × {columns:,} with {entries:,} entries is impossible")
    return Header(dense, field, symmetry, rows, entries, skip, lines)


def _entries(path: Path, header: Header, intake: Intake) -> Iterator[tuple[Any, Any, Any]]:
    """Yield (rows, columns, whether not zero) for each block of lines."""
    from surveyor.kernels.text_parsing import OUT_OF_RANGE, PARSED

    line, found = header.lines, 0
    with ThreadPool(intake.threads) as pool:
        blocks = line_blocks(path, skip=header.skip, progress=intake.progress)
        for text, arrays, lines, end in pool.imap(_parsed, ((header, block) for block in blocks)):
            if end != PARSED:
                shown = bytes(text).split(b"\n", lines)[lines - 1][:80].decode("utf-8", "replace").strip()
                outside = (
                    f"an index is not in 1..{header.pages:,}" if end == OUT_OF_RANGE else f"no {header.field} entry"
                )
                raise _wrong(path, f"line {line + lines:,} is {shown!r}, {outside}")
            line += lines
            present = arrays[-1]
            if found + present.size > header.entries:
                raise _wrong(path, f"it has more entries than its header states ({header.entries:,})")
            ends = _places(header, found, present.size) if header.dense else arrays[:2]
            found += present.size
            yield (*ends, present)


def _parsed(header: Header, text: ByteArray) -> tuple[ByteArray, tuple[Any, ...], int, int]:
    """Parse a block of lines; return it with its arrays, the number of lines and the end state."""
    from surveyor.kernels.text_parsing import parse_entries, parse_values

    most = np.count_nonzero(text == 10)
    present = np.empty(most, np.bool_)
    if header.dense:
        found, lines, end = parse_values(text, FIELDS[header.field], present)
        return text, (present[:found],), lines, end
    rows, columns = np.empty((2, most), np.int32)
    found, lines, end = parse_entries(text, header.pages, FIELDS[header.field], rows, columns, present)
    return text, (rows[:found], columns[:found], present[:found]), lines, end


def _places(header: Header, first: int, count: int) -> tuple[IntArray, IntArray]:
    """Return the rows and columns of the values of a dense matrix, stored column by column."""
    numbers = np.arange(first, first + count)
    if header.symmetry == "general":
        return numbers % max(header.pages, 1), numbers // max(header.pages, 1)
    above = 1 if header.symmetry == "skew-symmetric" else 0
    lengths = np.arange(header.pages - above, 0, -1)  # columns start at the diagonal, or below it
    starts = np.concatenate([[0], np.cumsum(lengths)])
    columns = np.searchsorted(starts, numbers, "right") - 1
    return numbers - starts[columns] + columns + above, columns


def _wrong(path: Path, problem: str) -> InputError:
    return InputError(f"{path} cannot be read as Matrix Market: {problem}", hint=HINT)


def write_matrix_market(graph: Graph, path: Path) -> None:
    """Write a pattern matrix, rows are sources; names are not stored."""
    sparse, scipy_io = (library(f"scipy.{part}", "writing Matrix Market") for part in ("sparse", "io"))
    ones = np.ones(graph.links, np.int8)
    matrix = sparse.csr_matrix((ones, graph.indices, graph.indptr), shape=(graph.pages, graph.pages))
    with atomic_write(path) as draft, compressed_writer(draft) as write:
        scipy_io.mmwrite(_Sink(write), matrix, field="pattern", symmetry="general")


class _Sink:
    """The minimal file interface that SciPy writes to."""

    def __init__(self, write: Any) -> None:
        self.write = write

    def flush(self) -> None:
        """Do nothing; the file is closed later."""
