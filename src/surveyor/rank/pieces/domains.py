"""Domain scores over a graph in pieces: the scores and intervals of the graph in one part.

    in, win, qvs, supp, tse, harmonic    the same bytes as those of the graph in one part, for the same random seed
    pagerank                             within both proven errors

A piece is read by one thread at a time, and exchanges what other pieces need through files (`graph/pieces/tasks.py`).
The scores of all pieces are then written to one file per column, ordered by domain id, which results read by memory
map: they may be larger than memory.
"""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surveyor.arrays import IntArray, let_go, map_npy
from surveyor.errors import UsageError
from surveyor.graph.names import Names
from surveyor.graph.pieces.folder import Pieces
from surveyor.graph.pieces.tasks import (
    LocalExecutor,
    MakeExecutor,
    Place,
    Tasks,
    is_numbered,
    tasks_over,
    work_folder,
)
from surveyor.kernels.thread_pool import cores
from surveyor.rank.domains.link_counts import ROUNDING
from surveyor.rank.domains.reputation import BinomialCount, BoundedError, ErrorModel, Exact, PoissonCount, Reputation
from surveyor.rank.domains.scores import DomainOptions, Domains, DomainTable, RowEnds, score_names
from surveyor.rank.domains.tse import ERROR, TOP, check_p, error_model_of, growth
from surveyor.rank.pieces.balls import grow_balls
from surveyor.rank.pieces.link_counts import in_degrees, sums_over_in_links, write_out_degrees
from surveyor.rank.pieces.ranking import PieceOptions, rank_with
from surveyor.rank.pieces.supporters import PieceSample
from surveyor.rank.pieces.worker import scores_file

OVER_PIECES = ("tse", "supp", "in", "win", "pagerank", "harmonic", "qvs")
REGISTERS = 64  # as in `rank/domains/reach_sketches.py`
MODE = "in pieces"
DEFAULT_OPTIONS = DomainOptions()
AT_ONCE = 1 << 16  # names copied at a time


def score_with(
    pieces: Pieces,
    score: str | Sequence[str] = "tse",
    *,
    top: int = TOP,
    error: float = ERROR,
    rng: int = 7,
    options: DomainOptions = DEFAULT_OPTIONS,
    executor: MakeExecutor = LocalExecutor,
) -> Domains:
    """Score the domains of a graph in pieces; see `surveyor.score_pieces`.

    Files are in a temporary folder next to the pieces, as long as the result is used.
    """
    names = check_scores(score, options.depth)
    work = work_folder(pieces.folder)
    try:
        scorer = _Scorer(pieces, work, top, error, rng, options, executor)
        with tasks_over(pieces, work, options.threads, executor) as tasks:
            in_degrees(tasks)
            tasks.run(write_out_degrees, "out")
            table = _table(tasks)
            scores = {name: scorer.score(name, tasks, table) for name in names}
        for place in work.iterdir():  # what only tasks read
            if place.is_dir():
                shutil.rmtree(place, ignore_errors=True)
        result = Domains(table, scores, mode=MODE)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    weakref.finalize(result, shutil.rmtree, work, ignore_errors=True)
    return result


def check_scores(score: str | Sequence[str], depth: int = 2) -> list[str]:
    """Return the requested scores, and reject those that cannot be computed over pieces; `all` means those that can."""
    parts = [part.strip() for part in score.split(",")] if isinstance(score, str) else list(score)
    names = [name for name in score_names(score) if "all" not in parts or name in OVER_PIECES or name in parts]
    if others := [name for name in names if name not in OVER_PIECES]:
        raise UsageError(
            f"{others[0]} cannot be computed over a graph in pieces", hint=f"choose {', '.join(OVER_PIECES)} or all"
        )
    if depth != 2:
        raise UsageError(
            f"depth must be 2 over a graph in pieces, got {depth}", hint="other levels need the graph in one part"
        )
    return names


@dataclass(frozen=True, slots=True)
class _Scorer:
    """Computes scores over pieces."""

    pieces: Pieces
    work: Path
    top: int
    error: float
    rng: int
    options: DomainOptions
    executor: MakeExecutor

    def score(self, name: str, tasks: Tasks, table: DomainTable) -> Reputation:
        """Compute one score."""
        method: dict[str, Any] = {}
        model: ErrorModel = Exact()
        if name == "in":
            column: npt.NDArray[Any] = self._column(tasks, "in")
        elif name == "pagerank":
            column, method = self._pagerank()
            model = BoundedError(method["error"])
        else:
            if name in ("win", "qvs"):
                sums_over_in_links(tasks, "win" if name == "win" else "qvs")
            elif name == "harmonic":
                model, method = self._harmonic(tasks)
            else:
                model, method = self._supporters(tasks, name)
            column = self._column(tasks, name)
            if name == "win":
                model = _rounding(table.in_links.indptr, column)
        scale = 1 / method["p"] if name == "tse" else 1.0
        return Reputation(name, column, scale, model, table.in_links.indptr, table.names, method)

    def _column(self, tasks: Tasks, name: str) -> npt.NDArray[Any]:
        column = write_column(self.pieces, self.work / f"{name}.npy", tasks.read(name))
        tasks.drop(name)
        return column

    def _supporters(self, tasks: Tasks, name: str) -> tuple[ErrorModel, dict[str, Any]]:
        options, pages = self.options, self.pieces.pages
        memory = None if options.memory is None else options.memory // (options.threads or cores())
        sample = PieceSample(tasks, name, self.rng, memory, options.progress)
        entries = sample.start()
        if name == "supp":
            sample.grow(1.0, entries)
            sample.finish(np.int64)
            return Exact(), {"depth": 2, "mode": MODE}
        if not pages:
            sample.p = 1.0
        elif options.p is not None:
            sample.grow(check_p(options.p), entries)
        else:
            for p in growth(sample.score_at, pages, self.top, self.error):
                sample.grow(p, entries)
        method = {"p": sample.p, "depth": 2, "rng": self.rng, "sampled": sample.sampled, "mode": MODE}
        if pages:
            reached = BinomialCount(sample.p).relative_error(sample.score_at(self.top)) if sample.p < 1 else 0.0
            method |= {"top": min(self.top, pages), "error": reached}
        sample.finish(np.uint32)
        return error_model_of(sample.p), method

    def _harmonic(self, tasks: Tasks) -> tuple[ErrorModel, dict[str, Any]]:
        grown = grow_balls(tasks, REGISTERS, self.rng, self.options.progress)
        dispersion = np.asarray(self._column(tasks, "harmonic-dispersion"))
        model = PoissonCount(dispersion, maximum=max(self.pieces.pages - 1.0, 0.0))
        return model, {"registers": REGISTERS, "rng": self.rng, "levels": grown.levels, "complete": grown.complete}

    def _pagerank(self) -> tuple[npt.NDArray[Any], dict[str, Any]]:
        solver = PieceOptions(
            threads=self.options.threads, progress=self.options.progress, checkpoints=self.work / "pagerank"
        )
        ranking = rank_with(self.pieces, options=solver, executor=self.executor)
        parts = (map_npy(scores_file(ranking.work, number)) for number in range(len(self.pieces)))
        column = write_column(self.pieces, self.work / "pagerank.npy", parts)
        return column, {"damping": ranking.damping, "error": ranking.error, "sweeps": ranking.sweeps}


def _rounding(rows: IntArray, sums: npt.NDArray[Any]) -> ErrorModel:
    """Return the error model of sums of votes, as in `weighted_in_degree`."""
    largest = max(int(np.diff(rows[low : low + AT_ONCE + 1]).max(initial=0)) for low in range(0, rows.size, AT_ONCE))
    return BoundedError(float(largest) * ROUNDING * float(sums.max(initial=0.0)))


def write_column(pieces: Pieces, path: Path, parts: Iterator[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Write the values of all pieces to one `.npy` file, by id, and memory-map it."""
    numbered, column = is_numbered(pieces), np.empty(0)
    for number, part in enumerate(parts):
        if not number:
            save_empty(path, part.dtype, pieces.pages)
            if pieces.pages:
                column = np.lib.format.open_memmap(path, "r+")
        if part.size:
            first = pieces.counts[number].first
            piece = pieces[number]
            where: Any = slice(first, first + part.size)
            if numbered and piece.numbers is not None:
                where = piece.numbers
            column[where] = part
            let_go(column, 0, column.size)
    if isinstance(column, np.memmap):
        column.flush()
    return map_npy(path)


def save_empty(path: Path, kind: np.dtype[Any], size: int) -> None:
    """Write a `.npy` file of zeros without allocating them."""
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": kind.str, "fortran_order": False, "shape": (size,)})
        file.truncate(file.tell() + kind.itemsize * size)


def _table(tasks: Tasks) -> DomainTable:
    """Return the names and degrees of all domains, by id."""
    ends = [_row_ends(tasks, name) for name in ("in", "out")]
    return DomainTable(tasks.pieces.links, write_names(tasks), ends[1], RowEnds(ends[0]))


def _row_ends(tasks: Tasks, name: str) -> IntArray:
    pieces, path = tasks.pieces, tasks.work / f"{name}-degrees.npy"
    degrees = write_column(pieces, path, tasks.read(name))
    out = tasks.work / f"{name}-ends.npy"
    save_empty(out, np.dtype(np.int64), pieces.pages + 1)
    ends = np.lib.format.open_memmap(out, "r+")
    before = 0
    for low in range(0, degrees.size, 1 << 20):
        some = before + np.cumsum(degrees[low : low + (1 << 20)])
        ends[low + 1 : low + 1 + some.size] = some
        before = int(some[-1])
    ends.flush()
    path.unlink()
    return np.asarray(map_npy(out))


def write_names(tasks: Tasks) -> Names | None:
    """Write the names of all pieces to one table, by id."""
    pieces, work = tasks.pieces, tasks.work
    if not pieces.named:
        return None
    lengths = write_column(
        pieces, work / "lengths.npy", (np.diff(piece.names.offsets) for piece in pieces if piece.names is not None)
    )
    save_empty(work / "names.npy", np.dtype(np.int64), pieces.pages + 1)
    offsets = np.lib.format.open_memmap(work / "names.npy", "r+")
    np.cumsum(lengths, out=offsets[1:])
    size = int(offsets[-1])
    save_empty(work / "text.npy", np.dtype(np.uint8), size)
    if size:
        text = np.lib.format.open_memmap(work / "text.npy", "r+")
        numbered = is_numbered(pieces)
        for piece in pieces:
            assert piece.names is not None  # noqa: S101  # `named` says so
            numbers = Place(pieces, piece.number, work, numbered=numbered).numbers
            for low in range(0, piece.pages, AT_ONCE):
                ends: IntArray = np.array(piece.names.offsets[low : low + AT_ONCE + 1])
                starts = offsets[numbers[low : low + AT_ONCE]]
                some = np.asarray(piece.names.blob[ends[0] : ends[-1]])
                text[np.arange(some.size) + np.repeat(starts - (ends[:-1] - ends[0]), np.diff(ends))] = some
        text.flush()
    offsets.flush()
    (work / "lengths.npy").unlink()
    return Names(np.asarray(map_npy(work / "names.npy")), np.asarray(map_npy(work / "text.npy")))
