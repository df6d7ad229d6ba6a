"""All scores of a ranking as a file, and back as the start of the next ranking.

    .csv, .csv.gz    page, share, name; best first
    .parquet         the same columns
    .npy             the array of shares, by page id
    .txt, .txt.gz    Common Crawl's ranks file (names are hosts or domains)

A file appears under its name only when it is complete.
"""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import save
from surveyor.errors import InputError, UsageError
from surveyor.graph.formats.ranks import read_ranks, write_ranks
from surveyor.graph.formats.streams import aside, library, packing, unpacked
from surveyor.store.tabular import unescape_cell, write_csv_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from surveyor.arrays import FloatArray
    from surveyor.graph.csr import Graph
    from surveyor.rank.ranking import Ranking

    Write = Callable[[Graph, Ranking, Path], None]

BATCH = 1 << 16  # rows turned into text at a time
BLOCK = 1 << 24  # bytes of names looked at at a time
NOT_IN_HOSTS = np.zeros(256, np.bool_)
NOT_IN_HOSTS[[*range(33), *b"/:?#@\\", 127]] = True


@dataclass(frozen=True, slots=True)
class Start:
    """Earlier scores to start from, fitted to a graph."""

    scores: FloatArray
    ranks: int  # in the file
    known: int  # of them of pages in the graph


def write_scores(graph: Graph, ranking: Ranking, path: str | Path) -> Path:
    """Write the share of every page in the format of the suffix."""
    path = Path(path)
    write = _writer(path)
    with aside(path) as draft:
        write(graph, ranking, draft)
    return path


def check_suffix(path: str | Path) -> None:
    """Refuse a name that tells no format, before the work is done."""
    _writer(Path(path))


def check_place(path: str | Path) -> None:
    """Refuse a file that cannot be written where it should be, before the work is done."""
    path = Path(path)
    if path.is_dir():
        raise UsageError(f"{path} is a folder", hint="give the name of a file")
    if not path.parent.is_dir():
        raise UsageError(
            f"{path} cannot be written: there is no folder {path.parent}", hint="make the folder first, with mkdir"
        )
    device = path.exists() and not path.is_file()
    if not device and not os.access(path.parent, os.W_OK | os.X_OK):
        raise UsageError(
            f"{path} cannot be written: the folder {path.parent} takes no files from you",
            hint="choose another folder, or change its permissions",
        )


def check_names(graph: Graph, path: str | Path) -> None:
    """Refuse Common Crawl's format, which reverses host names, where names are not hosts."""
    if _writer(Path(path)) is not _write_ranks:
        return
    if graph.names is None:
        raise UsageError("a Common Crawl ranks file needs names", hint="write .csv or .npy, which hold ids")
    blob = graph.names.blob
    for start in range(0, blob.size, BLOCK):
        if NOT_IN_HOSTS[blob[start : start + BLOCK]].any():
            raise UsageError(
                "a Common Crawl ranks file holds hosts or domains, and the names of this graph are others",
                hint="write .csv or .parquet, which hold any name",
            )


def _writer(path: Path) -> Write:
    for suffixes, write in WRITERS.items():
        if path.name.lower().endswith(suffixes):
            return write
    known = ", ".join(suffix for suffixes in WRITERS for suffix in suffixes)
    raise UsageError(f"the name {path.name} tells no format for ranks", hint=f"end it in one of {known}")


def _write_csv(graph: Graph, ranking: Ranking, path: Path) -> None:
    order = ranking.top(ranking.scores.size)
    with packing(path) as write:
        write(b"page,share,name\n" if graph.names is not None else b"page,share\n")
        for start in range(0, order.size, BATCH):
            pages = order[start : start + BATCH].tolist()
            columns: list[Any] = [pages, ranking.scores[pages].tolist()]
            if graph.names is not None:
                columns.append([graph.names[page] for page in pages])
            text = io.StringIO()
            write_csv_rows(text, zip(*columns, strict=True))
            write(text.getvalue().encode("utf-8", "surrogateescape"))


def _write_parquet(graph: Graph, ranking: Ranking, path: Path) -> None:
    arrow, parquet = (library(name, "writing Parquet") for name in ("pyarrow", "pyarrow.parquet"))
    order = ranking.top(ranking.scores.size)
    columns: dict[str, Any] = {"page": order, "share": ranking.scores[order]}
    if graph.names is not None:
        names = (graph.names[page].encode("utf-8", "surrogateescape") for page in order.tolist())
        columns["name"] = [name.decode("utf-8", "replace") for name in names]
    parquet.write_table(arrow.table(columns), path)


def _write_npy(_graph: Graph, ranking: Ranking, path: Path) -> None:
    save(path, ranking.scores)


def _write_ranks(graph: Graph, ranking: Ranking, path: Path) -> None:
    check_names(graph, path)
    assert graph.names is not None, "checked"  # noqa: S101
    write_ranks(path, graph.names, pagerank=ranking.scores)


WRITERS: dict[tuple[str, ...], Write] = {
    (".csv", ".csv.gz"): _write_csv,
    (".parquet",): _write_parquet,
    (".npy",): _write_npy,
    (".txt", ".txt.gz"): _write_ranks,
}


def read_start(graph: Graph, path: str | Path) -> Start:
    """Read earlier scores to start from: by id (.npy), or by name, where the graph may have changed since."""
    path = Path(path)
    try:
        start = _by_id(graph, path) if path.name.lower().endswith(".npy") else _by_name(graph, path)
    except (OSError, EOFError, ValueError, TypeError, KeyError, csv.Error) as error:
        raise InputError(
            f"{path} cannot be read as ranks ({error})",
            hint="give a .csv, .parquet, .npy or .txt file that `surveyor rank --out` wrote",
        ) from error
    if not start.ranks and graph.pages:
        raise InputError(f"{path} holds no ranks", hint="give a file that `surveyor rank --out` wrote")
    if not start.known and graph.pages:
        raise InputError(
            f"none of the {start.ranks:,} ranks in {path} is of a page in this graph",
            hint="give ranks of this graph or of an earlier one with the same names",
        )
    return start


def _by_id(graph: Graph, path: Path) -> Start:
    scores = np.asarray(np.load(path, allow_pickle=False), np.float64)
    if scores.shape != (graph.pages,):
        raise InputError(
            f"{path} holds {scores.size:,} scores, and the graph has {graph.pages:,} pages",
            hint="for a graph that has changed give a .csv or .parquet file, which goes by name",
        )
    return Start(scores, scores.size, scores.size)


def _by_name(graph: Graph, path: Path) -> Start:
    """Give each known page its earlier share and each new page an even share."""
    name = path.name.lower()
    rows = _parquet_rows if name.endswith(".parquet") else _csv_rows if ".csv" in name else _rank_rows
    scores = np.full(graph.pages, 1 / max(graph.pages, 1))
    seen = np.zeros(graph.pages, np.bool_)
    ranks = 0
    for word, share in rows(path):
        ranks += 1
        page = graph.names.find(word) if graph.names is not None else int(word) if word.isdecimal() else None
        if page is not None and page < graph.pages:
            scores[page], seen[page] = share, True
    return Start(scores, ranks, int(seen.sum()))


def _csv_rows(path: Path) -> Iterator[tuple[str, float]]:
    with unpacked(path) as (file, _):
        for row in csv.DictReader(line.decode("utf-8", "surrogateescape") for line in file):
            share = float(row["share"])
            yield unescape_cell(row["name"]) if "name" in row else row["page"], share


def _parquet_rows(path: Path) -> Iterator[tuple[str, float]]:
    with library("pyarrow.parquet", "reading Parquet").ParquetFile(path) as file:
        word = "name" if "name" in file.schema_arrow.names else "page"
        for batch in file.iter_batches(BATCH, columns=[word, "share"]):
            yield from zip(map(str, batch[word].to_pylist()), map(float, batch["share"].to_pylist()), strict=True)


def _rank_rows(path: Path) -> Iterator[tuple[str, float]]:
    ranks = read_ranks(path)
    yield from zip(ranks.names, ranks.pagerank.tolist(), strict=True)
