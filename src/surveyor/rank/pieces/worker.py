"""The pieces that one worker holds, and the steps of a PageRank computation over them.

A worker is one process: the only one, or one on each machine. It holds the vectors of its pieces in memory and reads
their links by memory map, one piece per thread. In each step it first receives the shares of the ghosts of its pieces:
from its own pieces directly, from other workers as arrays (`Outbox`). Ghosts keep their values during a step, so
pieces are independent, and results do not depend on the number of workers or threads.

    start            equal ranks, or those of a checkpoint
    power            x ← G x, with the shares of the last step
    seidel           the same, but a page immediately uses the new shares of its own piece
    measure          accurate sums of the ranks
    gram, blend      reduced rank extrapolation (`rank/sweeps.py`)
    save             write the ranks as a checkpoint
    scores           write the ranks, scaled to sum 1

Steps are numbered. A step that was already done is answered again from memory, and a step out of order is rejected: a
call that is repeated or delayed on its way cannot change anything.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from surveyor.arrays import FloatArray, let_go, map_npy, save
from surveyor.errors import SurveyError
from surveyor.graph.pieces.folder import Piece, Pieces
from surveyor.graph.pieces.tasks import loads_of
from surveyor.kernels.thread_pool import ThreadPool

Outbox: TypeAlias = FloatArray  # shares that another worker needs, for each pair of pieces in order
FAR = 1 << 28  # links of a worker from which memory of read file pages is released immediately
NUMBERED = ("start", "power", "seidel", "measure", "gram", "blend")
STATE_STEPS = ("start", "power", "seidel", "blend")  # steps that change shares


class WorkerSetup(NamedTuple):
    """What all workers of a computation share; only paths and numbers, so that it is small."""

    pieces: str  # folder
    work: str  # folder of checkpoints, teleport distributions and scores
    assigned: tuple[tuple[int, ...], ...]  # pieces of each worker
    damping: float
    depth: int  # sweeps combined at a time
    stored: bool  # whether the ranks of these sweeps are on disk
    teleport: bool  # whether there are teleport distributions; otherwise it is uniform
    uniform_dangling: bool  # whether dangling pages lead to all pages, unlike jumps
    threads: int | None

    def worker(self, place: int) -> PieceWorker:
        """Return a worker with the pieces `assigned[place]`."""
        return PieceWorker(self, place)

    def loads(self) -> list[int]:
        """Return the work in each piece."""
        return loads_of(self.pieces)


class Weights(NamedTuple):
    """Weights of the jumps in a sweep."""

    teleport: float
    uniform: float  # of each page, in addition


class OutOfOrder(Exception):
    """A step was not the next one (internal)."""


class PieceVectors:
    """The vectors of one piece."""

    def __init__(self, piece: Piece, setup: WorkerSetup, total_pages: int, *, far: bool) -> None:
        self.piece, self.pages, self._far = piece, piece.pages, far
        shape = setup.depth + 1, self.pages
        self._stored = setup.stored and self.pages > 0
        self.ranks = _on_disk(Path(setup.work), shape) if self._stored else np.empty(shape)
        self.newest = 0
        self.shares = np.zeros(self.pages + piece.counts.ghosts)  # of a link of each page; ghosts last
        self.fresh = np.empty(self.pages)
        self.inverse = np.zeros(self.pages)
        np.divide(1.0, piece.out_degrees, out=self.inverse, where=piece.out_degrees > 0)
        self.teleport = np.full(1, 1.0 / max(total_pages, 1))
        if setup.teleport:
            self.teleport = np.array(map_npy(teleport_file(Path(setup.work), piece.number)))
        self._links = piece.indptr.view(np.uint64), piece.indices.view(np.uint32)
        self._damping = setup.damping

    def load(self, ranks: FloatArray | float) -> None:
        """Set the ranks."""
        self.newest = 0
        self.ranks[0] = ranks
        np.multiply(self.ranks[0], self.inverse, out=self.shares[: self.pages])

    def sums(self) -> tuple[float, float]:
        """Return the accurate sums of the ranks, and of those on dangling pages."""
        ranks = self.ranks[self.newest]
        np.multiply(ranks, self.inverse == 0, out=self.fresh)
        return float(ranks.sum()), float(self.fresh.sum())

    def sweep(self, weights: Weights, *, seidel: bool) -> tuple[float, float, float, float]:
        """Update all pages; return the sums of the sweep (`SweepSums`)."""
        from surveyor.kernels.pagerank_iterations import SweepGraph, SweepVectors, power_block

        weight, jump = weights.teleport, self.teleport
        if weights.uniform:
            weight, jump = 1.0, np.broadcast_to(weights.teleport * self.teleport + weights.uniform, self.pages).copy()
        before = self.ranks[self.newest]
        self.newest = (self.newest + 1) % self.ranks.shape[0]
        own = self.shares[: self.pages]
        # With one vector for old and new shares, the power sweep is a Gauss–Seidel sweep.
        vectors = SweepVectors(before, self.ranks[self.newest], self.shares, own if seidel else self.fresh)
        web = SweepGraph(*self._links, self.inverse, jump, self._damping)
        done = power_block(web, weight, vectors, 0, self.pages)
        if not seidel:
            own[:] = self.fresh
        if self._far:
            let_go(self.piece.indices, 0, self.piece.counts.links)
            let_go(self.piece.indptr, 0, self.pages)
        self._release()
        return tuple(map(float, done))  # type: ignore[return-value]  # four sums

    def gram(self) -> list[list[float]]:
        """Return the inner products of the differences between successive ranks."""
        from surveyor.kernels.pagerank_iterations import gram_matrix_block

        products: list[list[float]] = gram_matrix_block(self.ranks, self._order(), 0, self.pages).tolist()
        self._release()
        return products

    def blend(self, parts: Sequence[float]) -> tuple[float, float, float, float]:
        """Replace the ranks by a linear combination of the last ones."""
        from surveyor.kernels.pagerank_iterations import blend_block

        own = self.shares[: self.pages]
        done = blend_block(self.ranks, self._order(), np.array(parts), self.inverse, own, 0, self.pages)
        self._release()
        return tuple(map(float, done))  # type: ignore[return-value]  # four sums

    def _release(self) -> None:
        """Release the memory of ranks on disk; the system writes them when it needs to."""
        if self._stored:
            let_go(self.ranks.reshape(-1), 0, self.ranks.size)

    def _order(self) -> Any:
        rows = self.ranks.shape[0]
        return (self.newest + 1 + np.arange(rows)) % rows


class PieceWorker:
    """The pieces of one worker."""

    def __init__(self, setup: WorkerSetup, place: int) -> None:
        """Open the pieces `setup.assigned[place]`."""
        self._setup, self._place = setup, place
        self._work = Path(setup.work)
        pieces = Pieces.open(setup.pieces, verify=False)
        self._pages = pieces.pages
        self._pool = ThreadPool(setup.threads)
        mine = setup.assigned[place]
        far = sum(pieces.counts[number].links for number in mine) > FAR
        self._mine = {number: PieceVectors(pieces[number], setup, pieces.pages, far=far) for number in mine}
        self._step, self._answer = -1, (list[Any](), list[Outbox]())

    def close(self) -> None:
        """Stop the threads."""
        self._pool.__exit__()

    def run(self, step: int, name: str, arguments: Any, inbox: Sequence[Outbox]) -> tuple[list[Any], list[Outbox]]:
        """Do a step; return one result per piece, and the shares for each worker."""
        if step != self._step + (name in NUMBERED) and name != "start" and step != self._step:
            raise OutOfOrder(f"step {step} after {self._step}")
        if name not in NUMBERED:
            return self._do(name, arguments, inbox), []
        if step != self._step or name == "start":
            results = self._do(name, arguments, inbox)
            outboxes = self._outboxes() if name in STATE_STEPS else []
            self._step, self._answer = step, (results, outboxes)
        return self._answer

    def _do(self, name: str, arguments: Any, inbox: Sequence[Outbox]) -> list[Any]:
        vectors = list(self._mine.values())
        if name == "start":
            return self._each(lambda one: self._load(one, arguments))
        if name in ("power", "seidel"):
            self._receive(inbox)
            return self._each(lambda one: one.sweep(Weights(*arguments), seidel=name == "seidel"))
        if name == "measure":
            return self._each(PieceVectors.sums)
        if name == "gram":
            return self._each(PieceVectors.gram)
        if name == "blend":
            return self._each(lambda one: one.blend(arguments))
        if name == "save":
            return [self._save(one, arguments) for one in vectors]
        return [self._write_scores(one, arguments) for one in vectors]

    def _each(self, task: Any) -> list[Any]:
        return list(self._pool.imap(task, ((one,) for one in self._mine.values())))

    def _load(self, vectors: PieceVectors, checkpoint: int | None) -> tuple[float, float]:
        if checkpoint is None:
            vectors.load(1.0 / self._pages)
        else:
            path = checkpoint_file(self._work, checkpoint, vectors.piece.number)
            try:
                ranks = map_npy(path)
            except (OSError, ValueError) as error:
                raise SurveyError(
                    f"the checkpoint {path} cannot be read ({error})", hint="remove its folder and rank again"
                ) from error
            vectors.load(ranks)
        return vectors.sums()

    def _save(self, vectors: PieceVectors, checkpoint: int) -> int:
        path = checkpoint_file(self._work, checkpoint, vectors.piece.number)
        write_array(path, vectors.ranks[vectors.newest])
        return vectors.pages

    def _write_scores(self, vectors: PieceVectors, total: float) -> float:
        scores = vectors.ranks[vectors.newest] / total
        write_array(scores_file(self._work, vectors.piece.number), scores)
        return float(scores.sum())

    def _outboxes(self) -> list[Outbox]:
        """Return the shares that each worker needs; none for this one."""
        boxes = []
        for place, others in enumerate(self._setup.assigned):
            parts = [
                one.shares[one.piece.sends_to(other)]
                for one in self._mine.values()
                for other in others
                if place != self._place
            ]
            boxes.append(np.concatenate([np.empty(0), *parts]))
        return boxes

    def _receive(self, inbox: Sequence[Outbox]) -> None:
        """Write the shares of the ghosts of all pieces."""
        for place, others in enumerate(self._setup.assigned):
            at = 0
            for other, number in chain.from_iterable([(other, mine) for mine in self._mine] for other in others):
                mine = self._mine[number]
                first, last = mine.piece.ghost_starts[other : other + 2].tolist()
                if first == last:
                    continue
                target = mine.shares[mine.pages + first : mine.pages + last]
                if place == self._place:
                    target[:] = self._mine[other].shares[mine.piece.ghosts[first:last]]
                else:
                    target[:] = inbox[place][at : at + last - first]
                    at += last - first


def checkpoint_file(work: Path, checkpoint: int, piece: int) -> Path:
    """Return the file of the ranks of a piece in a checkpoint."""
    return work / f"checkpoint-{checkpoint:06d}" / f"{piece:05d}.npy"


def teleport_file(work: Path, piece: int) -> Path:
    """Return the file of the teleport distribution of a piece."""
    return work / "teleport" / f"{piece:05d}.npy"


def scores_file(work: Path, piece: int) -> Path:
    """Return the file of the scores of a piece."""
    return work / "scores" / f"{piece:05d}.npy"


def _on_disk(work: Path, shape: tuple[int, int]) -> FloatArray:
    """Return an array in a file without a name, which disappears with the process."""
    with tempfile.TemporaryFile(dir=work) as file:
        file.truncate(8 * shape[0] * shape[1])
        return np.asarray(np.memmap(file, np.float64, "r+", shape=shape))


def write_array(path: Path, array: FloatArray) -> None:
    """Write an array so that the file is complete when it has its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    save(draft, array)
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    draft.rename(path)
