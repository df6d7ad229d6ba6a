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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.errors import InputError, UsageError
from surveyor.graph.formats.ranks import read_ranks, write_ranks
from surveyor.graph.formats.streams import aside, library, packing, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from surveyor.arrays import FloatArray
    from surveyor.graph.csr import Graph
    from surveyor.rank.ranking import Ranking

    Write = Callable[[Graph, Ranking, Path], None]

BATCH = 1 << 16  # rows turned into text at a time


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
            csv.writer(text, lineterminator="\n").writerows(zip(*columns, strict=True))
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
    np.save(path, ranking.scores)


def _write_ranks(graph: Graph, ranking: Ranking, path: Path) -> None:
    if graph.names is None:
        raise UsageError("a Common Crawl ranks file needs names", hint="write .csv or .npy, which hold ids")
    write_ranks(path, graph.names, pagerank=ranking.scores)


WRITERS: dict[tuple[str, ...], Write] = {
    (".csv", ".csv.gz"): _write_csv,
    (".parquet",): _write_parquet,
    (".npy",): _write_npy,
    (".txt", ".txt.gz"): _write_ranks,
}


def read_start(graph: Graph, path: str | Path) -> FloatArray:
    """Read earlier scores to start from: by id (.npy), or by name, where the graph may have changed since."""
    path = Path(path)
    try:
        if path.suffix == ".npy":
            start = np.asarray(np.load(path, allow_pickle=False), np.float64)
        else:
            start = _by_name(graph, path)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{path} cannot be read as ranks ({error})",
            hint="give a .npy, .csv or .txt file that `surveyor rank --out` wrote",
        ) from error
    if start.shape != (graph.pages,):
        raise InputError(
            f"{path} holds {start.size:,} scores, and the graph has {graph.pages:,} pages",
            hint="for a graph that has changed give a .csv or .txt file, which goes by name",
        )
    return start


def _by_name(graph: Graph, path: Path) -> FloatArray:
    """Give each known page its earlier share and each new page an even share."""
    start = np.full(graph.pages, 1 / max(graph.pages, 1))
    for name, share in _csv_rows(path) if ".csv" in path.suffixes else _rank_rows(path):
        page = int(name) if graph.names is None else graph.names.find(name)
        if page is not None and 0 <= page < graph.pages:
            start[page] = share
    return start


def _csv_rows(path: Path) -> Iterator[tuple[str, float]]:
    with unpacked(path) as (file, _):
        for row in csv.DictReader(line.decode("utf-8", "surrogateescape") for line in file):
            yield row.get("name") or row["page"], float(row["share"])


def _rank_rows(path: Path) -> Iterator[tuple[str, float]]:
    ranks = read_ranks(path)
    yield from zip(ranks.names, ranks.pagerank.tolist(), strict=True)
