"""Export of a survey: tables as Parquet, CSV or JSON lines, a small graph for drawing, an index of the WARC archive.

A file is renamed into place when it is complete. Existing files are not overwritten unless requested.

**CSV and spreadsheets.** Titles come from the web, and a spreadsheet reads a cell that begins with `=`, `+`, `-` or `@`
as a formula. Such text is prefixed with an apostrophe, and control characters are escaped, unless `raw`
(`store/cells.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO, get_args

import numpy as np

from surveyor.errors import UsageError
from surveyor.graph.formats.streams import aside
from surveyor.store import tabular
from surveyor.store.tabular import Batch, Columns, write_csv_rows
from surveyor.survey.tables import RANKS, TABLES, Tables

if TYPE_CHECKING:
    from surveyor.survey.survey import Survey

Format = Literal["parquet", "csv", "jsonl", "gexf", "graphml", "warc"]
Level = Literal["pages", "hosts"]
ENDINGS = {".parquet": "parquet", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".gexf": "gexf",
           ".graphml": "graphml", ".cdxj": "warc"}  # fmt: skip
FOLDER = ("pages", "links", "ranks", "hosts", "visits")  # tables in a folder of Parquet files
DRAWN = 500  # default number of pages or hosts in a graph for drawing


def export(
    survey: Survey,
    to: Path | str,
    *,
    format: Format | None = None,  # noqa: A002  # as the option
    table: str = "pages",
    level: Level = "pages",
    top: int | None = None,
    replace: bool = False,
    raw: bool = False,
) -> list[Path]:
    """Write a survey to a file or, as Parquet, a folder; return the files. See `surveyor export --help`."""
    path = Path(to)
    kind = format or _by_name(path)
    if kind not in get_args(Format):
        raise UsageError(f"no format {kind!r}", hint=f"there are {', '.join(get_args(Format))}")
    if table not in TABLES:
        raise UsageError(f"no table {table!r}", hint=f"there are {', '.join(TABLES)}")
    if top is not None and (table != "pages" or kind == "warc"):
        raise UsageError("top is for pages and graphs", hint="leave it out, or query the table with `surveyor sql`")
    if kind == "parquet" and path.suffix != ".parquet":
        _check_free([path / f"{name}.parquet" for name in FOLDER], replace=replace)
        return parquet_files(survey.tables, path)
    _check_free([path], replace=replace)
    if kind in ("gexf", "graphml"):
        from surveyor.survey.drawing import reduced, write_gexf, write_graphml

        drawn = reduced(survey, level, DRAWN if top is None else top)
        _write(path, partial(write_gexf if kind == "gexf" else write_graphml, drawn))
    elif kind == "warc":
        _write(path, partial(_write_index, survey.tables))
    else:
        names, batches = _table(survey.tables, table, top)
        if kind == "parquet":
            tabular.write_parquet(path, names, batches)
        else:
            _write(path, partial(_write_csv if kind == "csv" else _write_jsonl, names, batches, raw))
    return [path]


def parquet_files(tables: Tables, folder: Path) -> list[Path]:
    """Write pages, links, ranks, hosts and visits as Parquet files; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.parquet" for name in FOLDER]
    for name, path in zip(FOLDER, paths, strict=True):
        tabular.write_parquet(path, TABLES[name], tables.batches(name))
    return paths


def _by_name(path: Path) -> str:
    kind = ENDINGS.get(path.suffix.lower())
    if kind is None and path.suffix and not path.is_dir():
        raise UsageError(
            f"{path} does not say its format", hint=f"name one with --format: {', '.join(get_args(Format))}"
        )
    return kind or "parquet"


def _check_free(paths: list[Path], *, replace: bool) -> None:
    for path in paths:
        if path.is_dir():
            raise UsageError(f"{path} is a folder", hint="name a file, or choose parquet")
        if path.exists() and not replace:
            raise UsageError(f"{path} exists already", hint="choose another name, or write over it with --replace")
        if path.parent.exists() and not path.parent.is_dir():
            raise UsageError(f"{path.parent} is no folder", hint="choose another name")


def _write(path: Path, write: Callable[[TextIO], None]) -> None:
    with aside(path) as draft, draft.open("w", encoding="utf-8", errors="replace", newline="") as file:
        write(file)


def _table(tables: Tables, name: str, top: int | None) -> tuple[Columns, Iterator[Batch]]:
    """Return the columns of a table and its rows; pages include their ranks."""
    if name != "pages":
        return TABLES[name], tables.batches(name)
    more = {column: kind for column, kind in RANKS.items() if column != "page"}
    every = _ranked(tables)
    return {**TABLES["pages"], **more}, every if top is None else iter([_best(every, top)])


def _ranked(tables: Tables) -> Iterator[Batch]:
    """Yield pages with their ranks, None for pages without."""
    ranks = next(tables.batches("ranks"))
    row = np.full(tables.size, -1, np.int64)
    row[ranks["page"]] = np.arange(len(ranks["page"]))
    for batch in tables.batches("pages"):
        rows = row[list(batch["page"])].tolist()
        more = {name: ranks[name] for name in RANKS if name != "page"}
        yield batch | {name: [None if at < 0 else values[at].item() for at in rows] for name, values in more.items()}


def _best(batches: Iterator[Batch], top: int) -> Batch:
    """Return the best pages, best first."""
    found: list[tuple[Any, ...]] = []
    names: list[str] = []
    for batch in batches:
        names = list(batch)
        place = names.index("position")
        found += [row for row in zip(*batch.values(), strict=True) if row[place] is not None and row[place] <= top]
    best = sorted(found, key=lambda row: (row[place], row[0]))[:top]
    return dict(zip(names, zip(*best, strict=True), strict=True)) if best else {name: [] for name in names}


def _rows(names: Columns, batches: Iterator[Batch]) -> Iterator[list[Any]]:
    """Yield rows for text formats: times as ISO 8601, hashes as hex."""
    for batch in batches:
        plain = [_plain(batch[name], kind) for name, kind in names.items()]
        yield from map(list, zip(*plain, strict=True))


def _plain(values: Any, kind: str) -> list[Any]:
    given = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if kind == "timestamp":
        return [None if at is None else f"{datetime.fromtimestamp(at / 1e6, UTC):%Y-%m-%dT%H:%M:%SZ}" for at in given]
    return [None if item is None else item.hex() for item in given] if kind == "binary" else given


def _write_csv(names: Columns, batches: Iterator[Batch], raw: bool, file: TextIO) -> None:  # noqa: FBT001
    write_csv_rows(file, chain([list(names)], _rows(names, batches)), raw=raw)


def _write_jsonl(names: Columns, batches: Iterator[Batch], _: bool, file: TextIO) -> None:  # noqa: FBT001
    for row in _rows(names, batches):
        file.write(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, allow_nan=False) + "\n")


def _write_index(tables: Tables, file: TextIO) -> None:
    """Write a CDXJ index of the visits in the WARC files, sorted by URL and time."""
    urls = tables.urls
    lines = []
    for batch in tables.batches("visits"):
        for row in zip(*batch.values(), strict=True):
            visit: Mapping[str, Any] = dict(zip(batch, row, strict=True))
            if visit["warc_file"] is not None:
                lines.append(_index_line(urls[visit["page"]], visit))
    file.writelines(sorted(lines))


def _index_line(url: str, visit: Mapping[str, Any]) -> str:
    at = datetime.fromtimestamp((visit["fetched_at"] or 0) / 1e6, UTC)
    fields = {
        "url": url, "status": str(visit["status"] or "-"), "length": str(visit["warc_length"]),
        "offset": str(visit["warc_offset"]), "filename": visit["warc_file"],
    }  # fmt: skip
    return f"{sort_key(url)} {at:%Y%m%d%H%M%S} {json.dumps(fields)}\n"


def sort_key(url: str) -> str:
    """Return the SURT-like sort key of a URL for CDXJ: the host reversed, so that a domain is contiguous.

    >>> sort_key("https://docs.example.org:8080/A?b")
    'org,example,docs:8080)/a?b'
    """
    authority, _, rest = url.partition("://")[2].partition("/")
    name, colon, port = (authority, "", "") if authority.endswith("]") else authority.partition(":")
    turned = name if name.replace(".", "").isdigit() or "[" in name else ",".join(reversed(name.split(".")))
    return f"{turned}{colon}{port})/{rest}".lower()
