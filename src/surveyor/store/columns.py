"""A survey as Parquet tables, for DuckDB, Polars, pandas and anything else that reads columns.

    pages.parquet     page, url, and the latest visit to it: kind ("waiting" if there was none), status, title, …
    links.parquet     source, target, kind ("followed", "nofollow", "out of scope"), as each page was read last
    visits.parquet    visit, and all that the journal keeps of it but its links

Rows are in the order of the journal and are written some at a time, so that a survey of any size fits in memory.
A table takes its place when it is complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.graph.formats.streams import aside, library
from surveyor.store.journal import Journal
from surveyor.visit import Visit

ROWS = 1 << 15  # pages or visits at a time
VISIT = {
    "kind": "string",
    "reason": "string",
    "target": "int32",
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
PAGES = {"page": "int32", "url": "string", **VISIT}
VISITS = {"visit": "int64", "page": "int32", **VISIT, **MORE}
LINKS = {"source": "int32", "target": "int32", "kind": "string"}
LISTS = {"followed": "links", "nofollow": "nofollow", "out of scope": "out_of_scope"}
TABLES = ("pages", "links", "visits")


def export(journal: Journal, folder: Path) -> list[Path]:
    """Write the three tables into a folder; return where they are."""
    tables = (
        (PAGES, _rows(PAGES, _pages(journal))),
        (LINKS, _links(journal)),
        (VISITS, _rows(VISITS, _visits(journal))),
    )
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.parquet" for name in TABLES]
    for path, (columns, batches) in zip(paths, tables, strict=True):
        _write(path, columns, batches)
    return paths


def _write(path: Path, columns: dict[str, str], batches: Iterable[dict[str, Any]]) -> None:
    arrow: Any = library("pyarrow", "writing Parquet")
    parquet: Any = library("pyarrow.parquet", "writing Parquet")
    types = {"timestamp": arrow.timestamp("us", "UTC"), "string": arrow.string(), "binary": arrow.binary()}
    schema = arrow.schema([(name, types.get(kind) or getattr(arrow, kind)()) for name, kind in columns.items()])
    with aside(path) as draft, parquet.ParquetWriter(draft, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_table(arrow.table(batch, schema))


def _pages(journal: Journal) -> Iterator[tuple[Any, ...]]:
    for page, url, visit in journal.pages():
        yield (page, url, *(_told(visit) if visit else ("waiting", *[None] * (len(VISIT) - 1))))


def _visits(journal: Journal) -> Iterator[tuple[Any, ...]]:
    for number, visit in enumerate(journal.visits(), 1):
        place = visit.warc or (None, None, None)
        yield (number, visit.page, *_told(visit), visit.etag or None, visit.last_modified or None, *place)


def _links(journal: Journal) -> Iterator[dict[str, Any]]:
    """Yield the links of the visit that counts of each page: the latest that told something about it."""
    counts = np.zeros(journal.url_count, np.int64)
    for number, outcome in enumerate(journal.outcomes(), 1):
        if outcome.kind != "blocked":
            counts[outcome.page] = number
    visits = (visit for number, visit in enumerate(journal.visits(), 1) if counts[visit.page] == number)
    while batch := list(islice(visits, ROWS)):
        rows = [(visit.page, kind, getattr(visit, name)) for visit in batch for kind, name in LISTS.items()]
        sizes = [ids.size for *_, ids in rows]
        yield {
            "source": np.repeat(np.array([page for page, *_ in rows], np.int32), sizes),
            "target": np.concatenate([ids for *_, ids in rows]),
            "kind": np.repeat([kind for _, kind, _ in rows], sizes),
        }


def _told(visit: Visit) -> tuple[Any, ...]:
    """Return what a visit told, in the order of the columns, None for what it did not."""
    at = None if not visit.fetched_at else round(visit.fetched_at * 1e6)
    target = None if visit.target < 0 else visit.target
    texts = [text or None for text in (visit.hash, visit.title, visit.language)]
    return visit.kind, visit.reason or None, target, visit.status or None, at, visit.seconds, visit.size, *texts


def _rows(columns: dict[str, str], rows: Iterator[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    while batch := list(islice(rows, ROWS)):
        yield dict(zip(columns, zip(*batch, strict=True), strict=True))
