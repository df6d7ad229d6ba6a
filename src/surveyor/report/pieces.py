"""Present a graph in pieces and its ranking: facts, top list, and a file of all ranks, best first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.arrays import FloatArray, IntArray
from surveyor.errors import UsageError
from surveyor.graph.pieces.folder import Pieces, global_ids, split_ids
from surveyor.graph.pieces.shuffle import Buckets
from surveyor.rank.pieces.ranking import PiecesRanking
from surveyor.report import column_files
from surveyor.report.numbers import count, percent, size
from surveyor.report.ranking import Page

SUFFIXES = (".csv", ".csv.gz", ".parquet")
ROWS = 1 << 22  # pages sorted at a time
MEMORY = 1 << 28  # bytes of rows before they are stored on disk
ROW = [("share", "<f8"), ("page", "<i8"), ("id", "<i8")]
COARSE = 44  # bits of a share that do not decide its group: 256 groups per factor of two


def facts(pieces: Pieces) -> dict[str, Any]:
    """Return the counts of a graph in pieces as JSON fields."""
    parts = pieces.counts
    return {
        "pieces": len(pieces),
        "pages": pieces.pages,
        "links": pieces.links,
        "named": pieces.named,
        "pages_without_out_links": pieces.dangling,
        "ghosts": pieces.ghosts,
        "largest_piece": {"pages": max(part.pages for part in parts), "links": max(part.links for part in parts)},
        "bytes": sum(file.stat().st_size for file in pieces.folder.rglob("*") if file.is_file()),
        "provenance": dict(pieces.provenance),
    }


def described(found: dict[str, Any]) -> dict[str, str]:
    """Format the counts of a graph in pieces."""
    pages, largest = max(found["pages"], 1), found["largest_piece"]
    lines = {
        "pieces": count(found["pieces"]),
        "pages": f"{count(found['pages'])}{', named' if found['named'] else ', without names'}",
        "links": f"{count(found['links'])}, {found['links'] / pages:.1f} per page",
        "largest piece": f"{count(largest['pages'])} pages, {count(largest['links'])} links",
        "pages without out-links": f"{count(found['pages_without_out_links'])} "
        f"({percent(found['pages_without_out_links'] / pages)})",
        "exchanged per sweep": f"{count(found['ghosts'])} values, {found['ghosts'] / pages:.2f} per page",
        "size": size(found["bytes"]),
    }
    for name, value in found["provenance"].items():
        if isinstance(value, (int, str)):
            lines[name.replace("_", " ").replace("self links", "self-links")] = (
                count(value) if isinstance(value, int) and name not in {"rng", "version"} else str(value)
            )
    return lines


def top_pages(ranking: PiecesRanking, top: int) -> list[Page]:
    """Return the best pages, best first."""
    pages = ranking.top(top)
    shares = ranking.shares(pages)
    scores = ranking.log_scores(shares) if pages.size else shares
    rows = []
    opened = {int(owner): ranking.pieces[int(owner)] for owner in split_ids(pages)[0]}
    for position, page in enumerate(pages.tolist()):
        piece, local = opened[page >> 32], page & 0xFFFFFFFF
        rows.append(
            Page(
                position=position + 1,
                id=int(piece.page_numbers(np.array([local]))[0]),
                score=round(float(scores[position]), 1),
                share=float(shares[position]),
                in_links=int(piece.indptr[local + 1] - piece.indptr[local]),
                out_links=int(piece.out_degrees[local]),
                name=piece.name(local),
            )
        )
    return rows


def near_ties(ranking: PiecesRanking, top: int) -> int:
    """Count the neighbours in the list of the best pages, and at its end, whose order is not certain."""
    shares = ranking.shares(ranking.top(top + 1))
    return int(np.count_nonzero(shares[:-1] - shares[1:] <= ranking.error))


def check_suffix(path: str) -> None:
    """Reject a file of ranks in a format that needs all ranks in memory, before the work is done."""
    if not path.lower().endswith(SUFFIXES):
        raise UsageError(
            f"{path}: ranks of a graph in pieces are written as CSV or Parquet",
            hint=f"use one of {', '.join(SUFFIXES)}",
        )
    column_files.check_file(path)


def write_ranks(ranking: PiecesRanking, path: str | Path) -> Path:
    """Write page number, share and name of all pages, best first; rows are sorted in bounded memory."""
    columns = {"id": "int64", "share": "float64", **({"name": "string"} if ranking.pieces.named else {})}
    return column_files.write_columns(Path(path), columns, _rows(ranking, Path(path).absolute().parent))


def _rows(ranking: PiecesRanking, scratch: Path) -> Iterator[dict[str, Any]]:
    groups = _groups(ranking)
    with Buckets(groups.size + 1, ROW, memory=MEMORY, scratch=scratch) as buckets:
        for piece in ranking.pieces:
            for first in range(0, piece.pages, ROWS):
                some = np.arange(first, min(first + ROWS, piece.pages))
                rows = np.empty(some.size, ROW)
                rows["share"] = ranking.scores(piece.number)[some]
                rows["page"], rows["id"] = piece.page_numbers(some), global_ids(piece.number, some)
                buckets.add(np.searchsorted(groups, _coarse(rows["share"]), "right"), rows)
        for bucket in range(groups.size, -1, -1):
            rows = buckets.all(bucket)
            rows = rows[np.lexsort((rows["page"], -rows["share"]))]
            for first in range(0, rows.size, column_files.ROWS):
                part = rows[first : first + column_files.ROWS]
                batch: dict[str, Any] = {"id": part["page"].copy(), "share": part["share"].copy()}
                if ranking.pieces.named:
                    batch["name"] = _names(ranking.pieces, part["id"])
                yield batch


def _groups(ranking: PiecesRanking) -> IntArray:
    """Return coarse shares that divide the pages into groups of about ROWS pages, or fewer with equal shares."""
    values, counts = np.empty(0, np.int64), np.empty(0, np.int64)
    for piece in range(len(ranking.pieces)):
        found, number = np.unique(_coarse(ranking.scores(piece)), return_counts=True)
        values, where = np.unique(np.concatenate([values, found]), return_inverse=True)
        counts = np.bincount(where, weights=np.concatenate([counts, number]), minlength=values.size).astype(np.int64)
    groups = np.cumsum(counts) // ROWS
    return values[1:][groups[1:] > groups[:-1]]


def _coarse(shares: FloatArray) -> IntArray:
    """Return the leading bits of shares, which are in the order of the shares: none is negative."""
    return np.ascontiguousarray(shares).view(np.int64) >> COARSE


def _names(pieces: Pieces, pages: IntArray) -> list[str]:
    owners, local = split_ids(pages)
    found = [""] * pages.size
    for owner in np.unique(owners).tolist():
        names, here = pieces[owner].names, np.flatnonzero(owners == owner)
        if names is not None:
            for place, name in zip(here.tolist(), names.take(local[here].astype(np.int64)), strict=True):
                found[place] = name
    return column_files.readable(found)
