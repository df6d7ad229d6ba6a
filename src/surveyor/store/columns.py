"""Journal contents as columns, and columns as Parquet files for DuckDB, Polars, pandas and other tools.

Rows are in journal order and produced in batches, so memory use does not depend on the size of the survey.
A file is renamed into place when it is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.graph.formats.streams import aside, library
from surveyor.outcome import Visit
from surveyor.store.journal import Journal

ROWS = 1 << 15  # pages or visits per batch
VISIT = {
    "kind": "string",
    "reason": "string",
    "redirected_to": "int32",
    "status": "int32",
    "fetched_at": "timestamp",
    "seconds": "float64",
    "size": "int64",
    "hash": "binary",
    "title": "string",
    "language": "string",
}
MORE = {
    "etag": "string",
    "last_modified": "string",
    "warc_file": "string",
    "warc_offset": "int64",
    "warc_length": "int64",
}
VISITS = {"visit": "int64", "page": "int32", **VISIT, **MORE}
LISTS = {"followed": "links", "nofollow": "nofollow", "out of scope": "out_of_scope"}
Columns = dict[str, str]  # name -> kind: string, binary, timestamp (microseconds since 1970), int32, int64, float64
Batch = dict[str, Any]  # name -> values


def write(path: Path, columns: Columns, batches: Iterable[Batch]) -> None:
    """Write a Parquet file."""
    arrow: Any = library("pyarrow", "writing Parquet")
    parquet: Any = library("pyarrow.parquet", "writing Parquet")
    types = {"timestamp": arrow.timestamp("us", "UTC"), "string": arrow.string(), "binary": arrow.binary()}
    schema = arrow.schema([(name, types.get(kind) or getattr(arrow, kind)()) for name, kind in columns.items()])
    with aside(path) as draft, parquet.ParquetWriter(draft, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_table(arrow.table(batch, schema))


def visits(journal: Journal) -> Iterator[tuple[Any, ...]]:
    """Yield the columns of `VISITS` for each visit."""
    for number, visit in enumerate(islice(journal.visits(), journal.position), 1):
        place = visit.warc or (None, None, None)
        yield (number, visit.page, *told(visit), visit.etag or None, visit.last_modified or None, *place)


def links(journal: Journal, judged: Callable[[Visit], Visit] = lambda visit: visit) -> Iterator[Batch]:
    """Yield the links of each page as of its latest visit that was not blocked."""
    counts = np.zeros(journal.url_count, np.int64)
    for number, outcome in enumerate(islice(journal.outcomes(), journal.position), 1):
        if outcome.kind != "blocked":
            counts[outcome.page] = number
    every = enumerate(islice(journal.visits(), journal.position), 1)
    last = (visit for number, visit in every if counts[visit.page] == number)
    while batch := list(map(judged, islice(last, ROWS))):
        rows = [(visit.page, kind, getattr(visit, name)) for visit in batch for kind, name in LISTS.items()]
        sizes = [ids.size for *_, ids in rows]
        yield {
            "source": np.repeat(np.array([page for page, *_ in rows], np.int32), sizes),
            "target": np.concatenate([ids for *_, ids in rows]),
            "kind": np.repeat(np.array([kind for _, kind, _ in rows], object), sizes),
        }


def told(visit: Visit) -> tuple[Any, ...]:
    """Return the recorded values of a visit in column order, None where there is none."""
    at = None if not visit.fetched_at else round(visit.fetched_at * 1e6)
    target = None if visit.target < 0 else visit.target
    texts = [text or None for text in (visit.hash, visit.title, visit.language)]
    return visit.kind, visit.reason or None, target, visit.status or None, at, visit.seconds, visit.size, *texts


def batched(columns: Columns, rows: Iterator[tuple[Any, ...]]) -> Iterator[Batch]:
    """Turn rows into column batches."""
    while batch := list(islice(rows, ROWS)):
        yield dict(zip(columns, zip(*batch, strict=True), strict=True))
