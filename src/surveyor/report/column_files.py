"""Write columns to a file in the format of its suffix: .csv, .csv.gz or .parquet; one array as .npy.

A file appears when it is complete.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from surveyor.arrays import save
from surveyor.errors import UsageError
from surveyor.graph.formats.streams import atomic_write, compressed_writer, library
from surveyor.store import tabular
from surveyor.store.tabular import write_csv_rows

if TYPE_CHECKING:
    from surveyor.arrays import FloatArray

ROWS = 1 << 16  # written at a time
SUFFIXES = (".csv", ".csv.gz", ".parquet", ".npy")


def check_file(path: str) -> None:
    """Reject a name without a known suffix, or one that needs a missing package, before the work is done."""
    if not path.lower().endswith(SUFFIXES):
        raise UsageError(f"{path} has no known suffix", hint=f"use one of {', '.join(SUFFIXES)}")
    if path.lower().endswith(".parquet"):
        library("pyarrow", "writing Parquet")


def write_scores(path: Path, scores: FloatArray) -> Path:
    """Write one array as .npy."""
    with atomic_write(path) as draft:
        save(draft, scores)
    return path


def write_columns(path: Path, names: tabular.Columns, batches: Iterable[tabular.Batch]) -> Path:
    """Write columns, some rows at a time, in the format of the suffix."""
    if path.name.lower().endswith(".parquet"):
        tabular.write_parquet(path, names, batches)
        return path
    with atomic_write(path) as draft, compressed_writer(draft) as write:
        write((",".join(names) + "\n").encode())
        for batch in batches:
            text = io.StringIO()
            values = [part.tolist() if isinstance(part, np.ndarray) else part for part in batch.values()]
            write_csv_rows(text, zip(*values, strict=True))
            write(text.getvalue().encode())
    return path


def batches(columns: tabular.Batch) -> Iterator[tabular.Batch]:
    """Yield columns some rows at a time."""
    for start in range(0, max(map(len, columns.values())), ROWS):
        yield {name: values[start : start + ROWS] for name, values in columns.items()}


def readable(names: Iterable[str]) -> list[str]:
    """Return names as valid UTF-8; a byte that is not valid is replaced."""
    return [name.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for name in names]


def check_distinct(files: Mapping[str, str | None]) -> None:
    """Reject two options that name the same file."""
    taken: dict[Path, str] = {}
    for name, path in files.items():
        if path and (other := taken.setdefault(Path(path).resolve(), name)) != name:
            raise UsageError(f"--{other} and --{name} name the same file, {path}", hint="choose different names")


def check_place(path: str | Path) -> None:
    """Reject a path that cannot be written, before the work is done."""
    path = Path(path)
    if path.is_dir():
        raise UsageError(f"{path} is a folder", hint="pass the name of a file")
    if not path.parent.is_dir():
        raise UsageError(
            f"{path} cannot be written: there is no folder {path.parent}", hint="create the folder first, with mkdir"
        )
    device = path.exists() and not path.is_file()
    if not device and not os.access(path.parent, os.W_OK | os.X_OK):
        raise UsageError(
            f"{path} cannot be written: no permission to create files in {path.parent}",
            hint="choose another folder, or change its permissions",
        )
