"""Matrix Market text, read line by line: rows link to columns.

    %%MatrixMarket matrix coordinate pattern general
    % comments
    3 3 2               rows, columns, entries
    1 2                 indices from 1, then a value unless it is a pattern
    3 1

Every line is checked, and the header must agree with the entries: nothing is allocated on the strength of the header
alone. (SciPy's reader is not used: a few bytes after the last entry make it read beyond its buffer.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.arrays import MAX_PAGES, ByteArray, IntArray
from surveyor.errors import InputError
from surveyor.graph.csr import Graph
from surveyor.graph.formats.intake import Intake
from surveyor.graph.formats.streams import atomic_write, compressed_writer, decompressed, library, line_blocks
from surveyor.kernels.thread_pool import ThreadPool

FIELDS = {"pattern": 0, "integer": 1, "unsigned-integer": 1, "real": 2, "double": 2, "complex": 3}
SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")
LONGEST = 1 << 20  # bytes of a line before the entries
HINT = "the header and every line must agree; see the Matrix Market format"


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
