"""PageRank over pieces on the workers of a cluster.

One actor per machine holds some of the pieces and all its threads; shares of ghosts move between actors through the
object stores of their machines. Actors get paths, not arrays: the folders of pieces and of checkpoints must be
readable under the same path on all machines. An actor is never restarted by Ray, and no call is repeated by it: when
one is lost, all start again from the last checkpoint (`rank/pieces/sweeps.py`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import surveyor
from surveyor.cluster.session import Machines, Node, Session, load_ray
from surveyor.errors import SurveyorError, UsageError
from surveyor.graph.pieces.folder import Pieces
from surveyor.graph.pieces.tasks import TaskSetup, WorkersLost
from surveyor.graph.pieces.write import WriteSetup
from surveyor.rank.pieces.ranking import (
    DEFAULT_OPTIONS,
    Dangling,
    PieceOptions,
    PiecesRanking,
    Teleport,
    rank_with,
)
from surveyor.rank.pieces.worker import STATE_STEPS, Outbox, OutOfOrder, WorkerSetup

READY = 120.0  # seconds for an actor to start
CACHE = "NUMBA_CACHE_DIR"


def rank_pieces(
    pieces: Pieces | str | Path,
    damping: float = 0.85,
    tolerance: float = 1e-6,
    teleport: Teleport | None = None,
    *,
    dangling: Dangling = "teleport",
    cluster: str | Machines | None = None,
    options: PieceOptions = DEFAULT_OPTIONS,
) -> PiecesRanking:
    """Rank a graph in pieces so that the L1 distance to the exact PageRank is at most `tolerance`.

    Parameters
    ----------
    pieces : a folder of pieces (`surveyor.split_graph`).
    teleport : names of the trusted pages, or weights by global id; uniform by default.
    dangling : where a surfer goes from a page without links: "teleport" or "uniform".
    cluster : "local:N", "auto" or "HOST:PORT"; by default, this process reads piece after piece.
    options : solver, maximum number of sweeps, threads, progress, and the folder of checkpoints and scores, with
        which a run resumes.
    """
    opened = pieces if isinstance(pieces, Pieces) else Pieces.open(pieces)
    arguments: dict[str, Any] = {"dangling": dangling, "options": options}
    if cluster is None:
        return rank_with(opened, damping, tolerance, teleport, **arguments)
    if isinstance(cluster, str):
        with Session(cluster) as session:
            return rank_pieces(opened, damping, tolerance, teleport, cluster=session, **arguments)
    executor = partial(RayExecutor, cluster)
    return rank_with(opened, damping, tolerance, teleport, executor=executor, **arguments)


class PieceActor:
    """A worker in a process of the cluster."""

    def __init__(self, cache: str | None) -> None:
        if cache:
            os.environ.setdefault(CACHE, cache)

    def version(self) -> str:
        """Return the version of surveyor on this machine."""
        return surveyor.__version__

    def open(self, setup: WorkerSetup | TaskSetup | WriteSetup, place: int) -> None:
        """Open the pieces of this worker."""
        self._worker = setup.worker(place)

    def change(self, step: int, name: str, arguments: Any, *inbox: Outbox) -> tuple[Any, ...]:
        """Do a step that changes shares; return its results, and an array for each worker."""
        results, boxes = self._worker.run(step, name, arguments, inbox)
        return (results, *boxes)

    def answer(self, step: int, name: str, arguments: Any) -> list[Any]:
        """Do another step."""
        return self._worker.run(step, name, arguments, ())[0]


class RayExecutor:
    """Runs steps on one actor per machine."""

    def __init__(self, session: Machines, setup: WorkerSetup | TaskSetup | WriteSetup) -> None:
        self._session, self._setup, self._ray = session, setup, load_ray()
        self._loads = setup.loads()
        self._actors: list[Any] = []
        self._boxes: list[list[Any]] = []  # references: of each worker, for each worker

    def start(self) -> None:
        """Start actors on all machines that are alive, in place of any earlier ones."""
        self.close()
        self._lost(self._session.restore)
        nodes = self._session.nodes()
        if not nodes:
            raise UsageError("the cluster has no machine with a free core", hint="see `surveyor cluster doctor`")
        assigned = assign(self._loads, len(nodes))
        self._setup = self._setup._replace(assigned=assigned)
        nodes = nodes[: len(assigned)]
        self._actors = [self._actor(node) for node in nodes]
        self._boxes = []
        versions = self._lost(lambda: self._ray.get([actor.version.remote() for actor in self._actors], timeout=READY))
        for node, version in zip(nodes, versions, strict=True):
            if version != surveyor.__version__:
                raise UsageError(
                    f"{node.address} has surveyor {version}, and this machine {surveyor.__version__}",
                    hint="install the same version on all machines",
                )
        setups = [self._setup._replace(threads=self._setup.threads or node.cpus) for node in nodes]
        opening = [actor.open.remote(setups[place], place) for place, actor in enumerate(self._actors)]
        self._lost(lambda: self._ray.get(opening))

    def run(self, step: int, name: str, arguments: Any) -> list[Any]:
        """Do a step on all workers."""
        calls, boxes = [], []
        for place, actor in enumerate(self._actors):
            if name in STATE_STEPS:
                inbox = [box[place] for box in self._boxes]
                call = actor.change.options(num_returns=1 + len(self._actors))
                first, *rest = call.remote(step, name, arguments, *inbox)
                calls.append(first)
                boxes.append(rest)
            else:
                calls.append(actor.answer.remote(step, name, arguments))
        found: list[list[Any]] = self._lost(lambda: self._ray.get(calls))
        self._boxes = boxes or self._boxes
        results = {
            piece: result
            for mine, part in zip(self._setup.assigned, found, strict=True)
            for piece, result in zip(mine, part, strict=True)
        }
        return [results[piece] for piece in sorted(results)]

    def close(self) -> None:
        """End all actors."""
        for actor in self._actors:
            with suppress(Exception):
                self._ray.kill(actor)
        self._actors, self._boxes = [], []

    def _actor(self, node: Node) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        actor = self._ray.remote(PieceActor).options(
            num_cpus=1,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False),
        )
        return actor.remote(os.environ.get(CACHE))

    def _lost(self, task: Any) -> Any:
        """Do a task of Ray; report the loss of a process or of data as `WorkersLost`, an error of a step as itself."""
        errors = self._ray.exceptions
        try:
            return task()
        except errors.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, SurveyorError):
                raise cause from error
            if isinstance(cause, (errors.RayError, OutOfOrder)):
                raise WorkersLost(type(cause).__name__) from error
            raise
        except errors.RayError as error:
            raise WorkersLost(type(error).__name__) from error


def assign(work: Sequence[int], workers: int) -> tuple[tuple[int, ...], ...]:
    """Distribute pieces among at most so many workers: the largest first, each to the worker with least work.

    >>> assign([5, 3, 3, 1], 2)
    ((0, 3), (1, 2))
    """
    parts: list[list[int]] = [[] for _ in range(min(workers, len(work)))]
    loads = np.zeros(len(parts))
    for piece in sorted(range(len(work)), key=lambda piece: -work[piece]):
        place = int(np.argmin(loads))
        parts[place].append(piece)
        loads[place] += max(work[piece], 1)
    return tuple(tuple(sorted(part)) for part in parts)
