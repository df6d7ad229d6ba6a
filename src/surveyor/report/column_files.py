"""Columns as a file in the format of its name: .csv, .csv.gz or .parquet; scores alone as .npy.

A file appears when it is complete.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from surveyor.arrays import save
from surveyor.errors import UsageError
from surveyor.graph.formats.streams import aside, library, packing
from surveyor.store import tabular
from surveyor.store.tabular import write_csv_rows

if TYPE_CHECKING:
    from surveyor.arrays import FloatArray

ROWS = 1 << 16  # written at a time
SUFFIXES = (".csv", ".csv.gz", ".parquet", ".npy")


def check_file(path: str) -> None:
    """Refuse a name that tells no format, or one that needs a package, before the work is done."""
    if not path.lower().endswith(SUFFIXES):
        raise UsageError(f"the name {path} tells no format", hint=f"end it in one of {', '.join(SUFFIXES)}")
    if path.lower().endswith(".parquet"):
        library("pyarrow", "writing Parquet")


def write_scores(path: Path, scores: FloatArray) -> Path:
    """Write scores alone."""
    with aside(path) as draft:
        save(draft, scores)
    return path


def write_columns(path: Path, names: tabular.Columns, batches: Iterable[tabular.Batch]) -> Path:
    """Write columns, some rows at a time, in the format of the suffix."""
    if path.name.lower().endswith(".parquet"):
        tabular.write_parquet(path, names, batches)
        return path
    with aside(path) as draft, packing(draft) as write:
        write((",".join(names) + "\n").encode())
        for batch in batches:
            text = io.StringIO()
            values = [part.tolist() if isinstance(part, np.ndarray) else part for part in batch.values()]
            write_csv_rows(text, zip(*values, strict=True))
            write(text.getvalue().encode())
    return path


def readable(names: Iterable[str]) -> list[str]:
    """Return names as UTF-8 can say them; a byte that is none becomes a question mark."""
    return [name.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for name in names]
