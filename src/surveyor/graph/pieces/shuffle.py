"""Records distributed to buckets on disk, in bounded memory: the shuffle between pieces.

Records arrive in batches with the number of their bucket. They are grouped in memory and appended to one file per
bucket when the memory is used up. Within a bucket they keep their order.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surveyor.arrays import AnyIntArray

RECORDS = 1 << 20  # read at a time


class Buckets:
    """Buckets of records of one type; use it in a `with` statement."""

    def __init__(self, count: int, kind: Any, *, memory: int, scratch: Path | None = None) -> None:
        """Keep about `memory` bytes of records; append the rest to files in a folder inside `scratch`."""
        self.count, self.kind = count, np.dtype(kind)
        self.folder = Path(tempfile.mkdtemp(prefix="surveyor-", dir=scratch))
        self._waiting: list[list[npt.NDArray[Any]]] = [[] for _ in range(count)]
        self._bytes, self._memory = 0, memory
        self.spilled = 0  # bytes written to disk
        self.sizes = np.zeros(count, np.int64)

    def __enter__(self) -> Buckets:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def add(self, buckets: AnyIntArray, records: npt.NDArray[Any]) -> None:
        """Add records, each to the bucket of the same position."""
        counts = np.bincount(buckets, minlength=self.count)
        ends = np.cumsum(counts)
        if np.count_nonzero(counts) > 1:
            records = records[np.argsort(buckets.astype(np.uint16), kind="stable")]
        for bucket in np.flatnonzero(counts).tolist():
            part = records[ends[bucket] - counts[bucket] : ends[bucket]]
            self._waiting[bucket].append(part)
        self.sizes += counts
        self._bytes += records.nbytes
        if self._bytes > self._memory:
            self.flush()

    def append(self, bucket: int, records: npt.NDArray[Any]) -> None:
        """Add records to one bucket."""
        self._waiting[bucket].append(records)
        self.sizes[bucket] += records.size
        self._bytes += records.nbytes
        if self._bytes > self._memory:
            self.flush()

    def flush(self) -> None:
        """Write all records in memory to disk."""
        for bucket, parts in enumerate(self._waiting):
            if parts:
                with self._path(bucket).open("ab") as file:
                    for part in parts:
                        file.write(np.ascontiguousarray(part).data)
                        self.spilled += part.nbytes
                parts.clear()
        self._bytes = 0

    def read(self, bucket: int, at_once: int = RECORDS) -> Iterator[npt.NDArray[Any]]:
        """Yield the records of a bucket, some at a time."""
        yield from read_records(self._path(bucket), self.kind, at_once)
        yield from self._waiting[bucket]

    def all(self, bucket: int) -> npt.NDArray[Any]:
        """Return all records of a bucket."""
        return np.concatenate([np.empty(0, self.kind), *self.read(bucket)])

    def drop(self, bucket: int) -> None:
        """Remove the records of a bucket."""
        self._path(bucket).unlink(missing_ok=True)
        self._bytes -= sum(part.nbytes for part in self._waiting[bucket])
        self._waiting[bucket].clear()

    def _path(self, bucket: int) -> Path:
        return bucket_file(self.folder, bucket)


def bucket_file(folder: Path, bucket: int) -> Path:
    """Return the file of a bucket."""
    return folder / f"{bucket:05d}"


def read_records(path: Path, kind: npt.DTypeLike, at_once: int = RECORDS) -> Iterator[npt.NDArray[Any]]:
    """Yield the records of a file, some at a time; none if there is no file."""
    if path.is_file():
        with path.open("rb") as file:
            while (part := np.fromfile(file, kind, at_once)).size:
                yield part
