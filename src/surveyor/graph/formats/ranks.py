"""Common Crawl's ranks: a header, then one host or domain per line, best first.

    #harmonicc_pos  #harmonicc_val  #pr_pos  #pr_val  #host_rev  [#n_hosts]

Numbers are written as Java does (`2.9799486E7`), missing ones as `---`, names with their labels reversed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from surveyor.arrays import FloatArray, IntArray, read_only
from surveyor.errors import InputError, UsageError
from surveyor.graph.formats.streams import atomic_write, compressed_writer, decompressed
from surveyor.graph.names import Names

HEADER = ("#harmonicc_pos", "#harmonicc_val", "#pr_pos", "#pr_val", "#host_rev", "#n_hosts")
MISSING = "---"
MAX_EXACT = 1 << 53  # largest position or host count: exact as a float
LONGEST = 1 << 16  # bytes of a line


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """The rows of a ranks file, in its order; a missing position is 0, a missing value is nan."""

    names: Names
    harmonic_position: IntArray
    harmonic: FloatArray
    pagerank_position: IntArray
    pagerank: FloatArray
    hosts: IntArray | None

    def __repr__(self) -> str:
        return f"Ranks({len(self.names):,} names)"


def read_ranks(path: str | Path) -> Ranks:
    """Read a ranks file, compressed or not."""
    path = Path(path)
    names: list[str] = []
    columns: tuple[list[float], ...] = ([], [], [], [], [])
    with decompressed(path) as (file, _):
        for number, raw in enumerate(iter(lambda: file.readline(LONGEST), b""), 1):
            line = raw.decode("utf-8", "surrogateescape").rstrip("\r\n")
            if not line or line.startswith("#"):
                continue
            fields = line.split("\t")
            try:
                names.append(".".join(reversed(fields[4].split("."))))
                for column, field in zip(columns, fields[:4] + fields[5:6], strict=False):
                    column.append(float("nan") if field == MISSING else float(field))
            except (IndexError, ValueError) as error:
                raise InputError(
                    f"{path}:{number}: not a line of ranks: {line[:80]!r}",
                    hint="five or six columns with tabs: harmonic position and value, PageRank's, name, hosts",
                ) from error
    if not names:
        raise InputError(f"{path} contains no ranks", hint="pass a Common Crawl ranks file")
    if columns[4] and len(columns[4]) != len(names):
        raise InputError(f"{path} has host counts in some lines only", hint="download the file again")
    values = [read_only(np.array(column, np.float64)) for column in columns]
    if any((np.abs(np.nan_to_num(values[column], posinf=np.inf)) > MAX_EXACT).any() for column in (0, 2, 4)):
        raise InputError(f"{path} has a position or a count above {MAX_EXACT:,}", hint="download the file again")
    harmonic_position, pagerank_position, hosts = (
        read_only(np.nan_to_num(values[column]).astype(np.int64)) for column in (0, 2, 4)
    )
    return Ranks(
        Names.of(names),
        harmonic_position,
        values[1],
        pagerank_position,
        values[3],
        hosts if columns[4] else None,
    )


def write_ranks(
    path: str | Path,
    names: Sequence[str],
    *,
    pagerank: FloatArray,
    harmonic: FloatArray | None = None,
    hosts: IntArray | None = None,
) -> None:
    """Write a ranks file sorted by harmonic centrality, or by PageRank if there is none."""
    path = Path(path)
    for values in (pagerank, harmonic, hosts):
        if values is not None and len(values) != len(names):
            raise UsageError(f"got {len(values):,} values for {len(names):,} names", hint="pass one value per name")
    pagerank_position = _positions(pagerank)
    order = np.argsort(pagerank_position if harmonic is None else _positions(harmonic))
    with atomic_write(path) as draft, compressed_writer(draft) as write:
        write(("\t".join(HEADER[: 5 if hosts is None else 6]) + "\n").encode())
        for position, row in enumerate(order.tolist(), 1):
            first = (MISSING, MISSING) if harmonic is None else (str(position), java_float(float(harmonic[row])))
            last = () if hosts is None else (str(hosts[row]),)
            name = ".".join(reversed(names[row].split(".")))
            value = java_float(float(pagerank[row]))
            fields = (*first, str(pagerank_position[row]), value, name, *last)
            write(("\t".join(fields) + "\n").encode("utf-8", "surrogateescape"))


def _positions(values: FloatArray) -> IntArray:
    """Return the position of each value, 1 for the largest, ties in the order given."""
    positions = np.empty(len(values), np.int64)
    positions[np.argsort(-np.asarray(values), kind="stable")] = np.arange(1, len(values) + 1)
    return positions


def java_float(value: float) -> str:
    """Write a number as Java's Double.toString does: plain from 0.001 to 10,000,000, else as 1.2E-9."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return np.format_float_positional(value, trim="0")
    if not np.isfinite(value):
        return MISSING
    digits, _, exponent = np.format_float_scientific(value, trim="0").partition("e")
    return f"{digits}E{int(exponent)}"
