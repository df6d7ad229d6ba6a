r"""Journal contents as columns, and rows as Parquet and CSV files.

Rows are in journal order and produced in batches, so memory use does not depend on the size of the survey.
A Parquet file is renamed into place when it is complete.

**CSV** cells are escaped so that text from the web cannot run in a spreadsheet or control a terminal. A spreadsheet
treats a cell that starts with `=`, `+`, `-` or `@` (or their full-width forms) as a formula, also after a tab or a line
end. Such text is prefixed with an apostrophe. Control characters are written as escapes (`\x1b`), except tabs and line
ends within a cell; `unescape_cell` undoes both. Numbers and JSON are written unchanged.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from surveyor.graph.formats.streams import atomic_write, library
from surveyor.store.disk import damaged
from surveyor.web import link_context

if TYPE_CHECKING:
    from surveyor.outcome import Visit
    from surveyor.store.journal import Journal
    from surveyor.web.link_context import LinkContext

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
    "text_hash": "binary",
    "expires": "timestamp",
    "warc_file": "string",
    "warc_offset": "int64",
    "warc_length": "int64",
}
VISITS = {"visit": "int64", "id": "int32", **VISIT, **MORE}
LISTS = {"followed": "links", "nofollow": "nofollow", "out of scope": "out_of_scope"}
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
CONTROL = re.compile(  # control characters, overrides of the direction of text, or text that looks like an escape
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\\(?=x[0-9a-f]{2}|u20(?:2[a-e]|6[6-9]))"
)
ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u(20(?:2[a-e]|6[6-9])))")
Columns = dict[str, str]  # name -> kind: string, binary, timestamp (microseconds since 1970), int32, int64, float64
Batch = dict[str, Any]  # name -> values


def write_parquet(path: Path, columns: Columns, batches: Iterable[Batch]) -> None:
    """Write a Parquet file."""
    arrow: Any = library("pyarrow", "writing Parquet")
    parquet: Any = library("pyarrow.parquet", "writing Parquet")
    types = {"timestamp": arrow.timestamp("us", "UTC"), "string": arrow.string(), "binary": arrow.binary()}
    schema = arrow.schema([(name, types.get(kind) or getattr(arrow, kind)()) for name, kind in columns.items()])
    with atomic_write(path) as draft, parquet.ParquetWriter(draft, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_table(arrow.table(batch, schema))


def visit_rows(journal: Journal) -> Iterator[tuple[Any, ...]]:
    """Yield the columns of `VISITS` for each visit."""
    for number, visit in enumerate(islice(journal.visits(), journal.position), 1):
        place = visit.warc or (None, None, None)
        expires = None if not visit.expires else round(visit.expires * 1e6)
        marks = visit.etag or None, visit.last_modified or None, visit.text_hash or None, expires
        yield (number, visit.page, *visit_values(visit), *marks, *place)


def link_batches(journal: Journal, judged: Callable[[Visit], Visit] = lambda visit: visit) -> Iterator[Batch]:
    """Yield the links of each page as of its latest visit that was not blocked."""
    last = last_read(journal)
    while batch := list(map(judged, islice(last, ROWS))):
        rows = [(visit.page, kind, getattr(visit, name)) for visit in batch for kind, name in LISTS.items()]
        sizes = [ids.size for *_, ids in rows]
        yield {
            "source": np.repeat(np.array([page for page, *_ in rows], np.int32), sizes),
            "target": np.concatenate([ids for *_, ids in rows]),
            "kind": np.repeat(np.array([kind for _, kind, _ in rows], object), sizes),
        }


def last_read(journal: Journal) -> Iterator[Visit]:
    """Yield the latest visit of each page that was not blocked, in the order of the journal."""
    counts = np.zeros(journal.url_count, np.int64)
    for number, outcome in enumerate(islice(journal.outcomes(), journal.position), 1):
        if outcome.kind != "blocked":
            counts[outcome.page] = number
    every = enumerate(islice(journal.visits(), journal.position), 1)
    return (visit for number, visit in every if counts[visit.page] == number)


def contexts_of(journal: Journal, visit: Visit) -> dict[int, LinkContext]:
    """Return the contexts of the links of a visit, by page id."""
    ids = link_context.order(visit.page, [getattr(visit, name) for name in LISTS.values()])
    try:
        return dict(zip(ids.tolist(), link_context.unpack(visit.contexts, ids.size), strict=True))
    except ValueError as error:
        raise damaged(journal.path, error) from error


def anchor_rows(journal: Journal) -> Iterator[tuple[Any, ...]]:
    """Yield source, target, text, element, rel and position of each link that is stored with its context."""
    for visit in last_read(journal):
        for target, found in contexts_of(journal, visit).items() if visit.contexts else ():
            yield visit.page, target, found.text, found.element, found.rel, found.position


def visit_values(visit: Visit) -> tuple[Any, ...]:
    """Return the recorded values of a visit in column order, None where there is none."""
    at = None if not visit.fetched_at else round(visit.fetched_at * 1e6)
    target = None if visit.target < 0 else visit.target
    texts = [text or None for text in (visit.hash, visit.title, visit.language)]
    return visit.kind, visit.reason or None, target, visit.status or None, at, visit.seconds, visit.size, *texts


def batched(columns: Columns, rows: Iterator[tuple[Any, ...]]) -> Iterator[Batch]:
    """Turn rows into column batches."""
    while batch := list(islice(rows, ROWS)):
        yield dict(zip(columns, zip(*batch, strict=True), strict=True))


def escape_cell(cell: Any) -> Any:
    r"""Return a cell as written to CSV; values that are not text are unchanged.

    >>> escape_cell("=1+1"), escape_cell("a\x1b[31m"), escape_cell("a\u202eb"), escape_cell(-1), escape_cell("it's")
    ("'=1+1", 'a\\x1b[31m', 'a\\u202eb', -1, "it's")
    """
    if not isinstance(cell, str):
        return cell
    plain = cell.isprintable() and "\\" not in cell
    text = cell if plain else CONTROL.sub(_escape, cell)
    return f"'{text}" if cell.lstrip("'").startswith(FORMULA) else text


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def unescape_cell(cell: str) -> str:
    r"""Return the text of a cell that `escape_cell` wrote.

    >>> [unescape_cell(escape_cell(text)) == text for text in ("=1+1", "a\x1b[31m", r"\x1b", "\u202e", r"\u202e")]
    [True, True, True, True, True]
    """
    text = ESCAPE.sub(lambda found: chr(int(found[1] or found[2], 16)), cell)
    return text[1:] if text.startswith("'") and text.lstrip("'").startswith(FORMULA) else text


def write_csv_rows(file: TextIO, rows: Iterable[Iterable[Any]], *, raw: bool = False) -> None:
    """Write rows as CSV. All CSV output of surveyor uses this function, except links of a graph."""
    writer = csv.writer(file, lineterminator="\n")
    if raw:
        writer.writerows(rows)
    else:
        writer.writerows(map(escape_cell, row) for row in rows)
