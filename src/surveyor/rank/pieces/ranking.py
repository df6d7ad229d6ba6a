"""Rank a graph in pieces with a proven error: in one process, or on the workers of a cluster.

    r = G r   as in `rank/pagerank.py`, with the same certificate

Each step is a Gauss–Seidel sweep inside each piece, where pages of other pieces have the values of the last exchange;
every few sweeps the last ranks are combined so that their combined change is smallest; a power sweep over all pieces
proves the error. The same code runs in one process, which reads piece after piece from disk, and on several machines.
The bytes of the scores are the same on any number of workers and threads. They depend on the number of pieces, as
sums are in their order.

Scores are on disk, one file per piece: they may be larger than memory.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from surveyor.arrays import FloatArray, IntArray, map_npy
from surveyor.errors import NotConverged, UsageError
from surveyor.graph.folder_files import checksum
from surveyor.graph.pieces.folder import LOCAL_BITS, Pieces, global_ids, split_ids
from surveyor.graph.pieces.tasks import LocalExecutor, MakeExecutor
from surveyor.rank.pagerank import SUMMARY, SolverOptions, check_arguments, log_scale, solve
from surveyor.rank.pieces.sweeps import Log, PieceSweeps, RunOptions, Steps, is_stored
from surveyor.rank.pieces.worker import WorkerSetup, scores_file, teleport_file, write_array
from surveyor.rank.sweeps import DEPTH

if TYPE_CHECKING:
    from collections.abc import Iterator

Dangling = Literal["teleport", "uniform"]
Teleport: TypeAlias = Sequence[str] | Mapping[int, float]


@dataclass(frozen=True, slots=True)
class PieceOptions(SolverOptions):
    """How `rank_pieces` computes, where it stores checkpoints and scores, and how often it writes checkpoints."""

    checkpoints: str | Path | None = None  # default: a temporary folder next to the pieces; then no run is resumed
    seconds: float = 60.0  # at least, between two checkpoints


DEFAULT_OPTIONS = PieceOptions()


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class PiecesRanking:
    """Scores over the pages of a graph in pieces, with a proven error and the method."""

    pieces: Pieces
    work: Path  # folder of the scores
    error: float  # the L1 distance to the exact answer is at most this
    sweeps: int  # passes over all links, including the last one, which proves the error
    damping: float
    tolerance: float
    solver: str  # "power" or "seidel": the one that did most of the work
    dangling: str  # rule for pages without links: "teleport" or "uniform"
    teleport: str  # "uniform" or "custom"
    history: tuple[float, ...]  # the proven bound after each sweep
    recoveries: int  # how often workers were lost, and steps repeated

    def scores(self, piece: int) -> FloatArray:
        """Return the scores of the pages of a piece, by memory map; over all pieces they sum to 1."""
        return np.asarray(map_npy(scores_file(self.work, piece)))

    def top(self, count: int = 10) -> IntArray:
        """Return the global ids of the best pages, best first; ties broken by page number."""
        best: list[Any] = [np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64)]
        for piece in self.pieces:
            scores = self.scores(piece.number)
            some = np.arange(scores.size)
            if 0 < count < scores.size:  # all pages not below the last of the best: ties are broken below
                some = np.flatnonzero(scores >= np.partition(scores, -count)[-count])
            columns = global_ids(piece.number, some), scores[some], piece.page_numbers(some)
            best = [np.concatenate(pair) for pair in zip(best, columns, strict=True)]
            order = np.lexsort((best[2], -best[1]))[: max(count, 0)]
            best = [column[order] for column in best]
        return np.asarray(best[0])

    def shares(self, pages: IntArray) -> FloatArray:
        """Return the scores of pages by global id."""
        owners, local = split_ids(pages)
        found = np.empty(pages.size)
        for piece in np.unique(owners).tolist():
            here = np.flatnonzero(owners == piece)
            found[here] = self.scores(piece)[local[here]]
        return found

    def share(self, page: int | str) -> float:
        """Return the score of a page, by global id or by name."""
        found = self.pieces.find(page) if isinstance(page, str) else page
        if found is None:
            raise UsageError(f"no page named {page!r} in this graph", hint="names are matched exactly, as printed")
        return float(self.shares(np.array([found]))[0])

    def name(self, page: int) -> str:
        """Return the name of a page by global id; its page number as text, where pages have no names."""
        return self.pieces[page >> LOCAL_BITS].name(page & 0xFFFFFFFF)

    def log_scores(self, shares: FloatArray) -> FloatArray:
        """Return shares as scores from 0 to 100 on the log scale of this ranking (`Ranking.log_scores`)."""
        smallest, best = np.inf, 0.0
        for piece in range(len(self.pieces)):
            scores = self.scores(piece)
            smallest = min(smallest, float(scores[scores > 0].min(initial=np.inf)))
            best = max(best, float(scores.max(initial=0.0)))
        return log_scale(shares, smallest, best)

    def to_dict(self, top: int = 10) -> dict[str, Any]:
        """Return the best pages and all parameters as plain values."""
        pages = self.top(top)
        shares = self.shares(pages)
        rows = zip(pages.tolist(), shares.tolist(), self.log_scores(shares).tolist(), strict=True)
        return {
            **{name: getattr(self, name) for name in SUMMARY},
            "pages": [
                {"id": page, "name": self.name(page), "share": share, "score": score} for page, share, score in rows
            ],
        }

    def __repr__(self) -> str:
        size = f"{self.pieces.pages:,} pages in {len(self.pieces)} pieces"
        return f"PiecesRanking({size}, error at most {self.error:.1e}, {self.sweeps} sweeps, {self.solver})"


def rank_with(
    pieces: Pieces,
    damping: float = 0.85,
    tolerance: float = 1e-6,
    teleport: Teleport | None = None,
    *,
    dangling: Dangling = "teleport",
    options: PieceOptions = DEFAULT_OPTIONS,
    executor: MakeExecutor = LocalExecutor,
) -> PiecesRanking:
    """Rank a graph in pieces so that the L1 distance to the exact PageRank is at most `tolerance`.

    `teleport` are names of trusted pages, or weights by global id; uniform by default. See `surveyor.rank_pieces`.
    """
    check_arguments(damping, tolerance, options.solver, None)
    if dangling not in get_args(Dangling):
        raise UsageError(f"unknown dangling rule {dangling!r}", hint=f"choose {' or '.join(get_args(Dangling))}")
    with _work_folder(pieces, options.checkpoints) as work:
        weights = _write_teleport(pieces, teleport, work)
        uniform_dangling = dangling == "uniform" and teleport is not None
        run = RunOptions(damping, weights, uniform_dangling, tolerance, options.max_sweeps)
        if pieces.pages == 0:
            for piece in range(len(pieces)):
                write_array(scores_file(work, piece), np.empty(0))
            error, history, solver, recoveries = 0.0, tuple[float, ...](), "power", 0
        else:
            error, history, solver, recoveries = _compute(pieces, run, work, options, executor)
    ranking = PiecesRanking(
        pieces=pieces,
        work=work,
        error=error,
        sweeps=len(history),
        damping=damping,
        tolerance=tolerance,
        solver=solver,
        dangling=dangling,
        teleport="uniform" if teleport is None else "custom",
        history=history,
        recoveries=recoveries,
    )
    if options.checkpoints is None:
        weakref.finalize(ranking, shutil.rmtree, work, ignore_errors=True)
    if ranking.error > tolerance:
        rounding = "rounding allows no smaller bound here; use a larger tolerance"
        hint = rounding if ranking.sweeps < options.max_sweeps else "raise max_sweeps"
        raise NotConverged(ranking, tolerance, f"{hint}, or use .best (it carries its own bound)")
    return ranking


def _compute(
    pieces: Pieces,
    run: RunOptions,
    work: Path,
    options: PieceOptions,
    executor: MakeExecutor,
) -> tuple[float, tuple[float, ...], str, int]:
    """Improve the ranks and write the scores; return the error, its history, the solver and the recoveries."""
    setup = WorkerSetup(
        pieces=str(pieces.folder.resolve()),
        work=str(work.resolve()),
        assigned=(tuple(range(len(pieces))),),
        damping=run.damping,
        depth=DEPTH,
        stored=is_stored(pieces),
        teleport=run.teleport != "uniform",
        uniform_dangling=run.uniform_dangling,
        threads=options.threads,
    )
    log = Log(work, {"pieces": pieces.checksum, **run._asdict(), "solver": options.solver})
    runner = executor(setup)
    try:
        steps = Steps(runner, log, work, options.seconds)
        sweeps = PieceSweeps(pieces, run, steps)
        solver = solve(sweeps, run.tolerance, options)
        steps.finish("scores", sweeps.accurate_total())
    finally:
        runner.close()
    return sweeps.error, tuple(sweeps.history), solver, steps.recoveries


@contextmanager
def _work_folder(pieces: Pieces, folder: str | Path | None) -> Iterator[Path]:
    """Yield the folder of checkpoints and scores; a temporary one is removed when the computation fails."""
    try:
        if folder is not None:
            work = Path(folder)
            work.mkdir(parents=True, exist_ok=True)
        else:
            place = pieces.folder.resolve()
            work = Path(tempfile.mkdtemp(prefix=f"{place.name}.ranks-", dir=place.parent))
    except OSError as error:
        raise UsageError(
            f"scores cannot be written next to {pieces.folder}: {error.strerror or error}",
            hint="set another folder for checkpoints and scores",
        ) from error
    try:
        yield work
    except BaseException:
        if folder is None:
            shutil.rmtree(work, ignore_errors=True)
        raise


def _write_teleport(pieces: Pieces, teleport: Teleport | None, work: Path) -> str:
    """Write the teleport distribution of each piece; return a checksum of all, or "uniform"."""
    if teleport is None:
        return "uniform"
    weights = _weights(pieces, teleport)
    pages = np.array(list(weights), np.int64)
    values = np.array(list(weights.values()), np.float64)
    owners, local = split_ids(pages)
    sizes = np.array([piece.pages for piece in pieces.counts])
    if pages.size and not ((owners >= 0) & (owners < len(pieces))).all():
        raise UsageError(f"no page {pages[owners >= len(pieces)][:1]}", hint="pass global ids as `Pieces.find` returns")
    if (local >= sizes[owners]).any():
        raise UsageError("teleport has a page that its piece does not have", hint="see `Pieces.find`")
    if not (np.isfinite(values).all() and (values >= 0).all() and values.any()):
        raise UsageError(
            "teleport weights must be finite and non-negative, and not all zero", hint="pass a weight per global id"
        )
    values /= values.max()
    values /= values.sum()
    sums = []
    for piece, size in enumerate(sizes.tolist()):
        share = np.zeros(size)
        share[local[owners == piece]] = values[owners == piece]
        write_array(teleport_file(work, piece), share)
        sums.append(checksum(teleport_file(work, piece)))
    return "-".join(sums)


def _weights(pieces: Pieces, teleport: Teleport) -> Mapping[int, float]:
    """Return weights by global id."""
    if isinstance(teleport, Mapping):
        return teleport
    names = [teleport] if isinstance(teleport, str) else list(teleport)
    found = pieces.find_all(names)
    unknown = next((name for name, page in zip(names, found, strict=True) if page is None), None)
    if unknown is not None or not names:
        raise UsageError(
            f"no page named {unknown!r} in this graph" if names else "teleport names no page",
            hint="names are matched exactly, as `top` prints them",
        )
    return dict.fromkeys([page for page in found if page is not None], 1.0)
