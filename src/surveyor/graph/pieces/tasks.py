"""Tasks over the pieces of a graph: in one process, or on the workers of a cluster.

A task is a function of one piece. It reads the piece and files of the work folder, writes files there and returns a
small result. Tasks never change a file that exists: a task that is repeated, because a worker was lost, writes the same
bytes again. So results do not depend on the number of workers, and what is lost is the work since the last task.

**Exchange.** A task that computes values for the pages of its piece writes those that other pieces need in the order of
the send lists (`Place.send`). Another task reads the part for its piece from each file (`Place.received`): each
value is written once and read once per piece that needs it. The work folder must be readable under the same path on all
machines, like the pieces.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from surveyor.arrays import IntArray, map_npy, save
from surveyor.errors import SurveyError, UsageError
from surveyor.graph.folder_files import mapped
from surveyor.graph.pieces.folder import Piece, Pieces, piece_folder
from surveyor.kernels.thread_pool import ThreadPool

ATTEMPTS = 20  # to finish a task; each one starts new workers
REPEAT = "check `surveyor cluster doctor`, then repeat the command"


class WorkersLost(Exception):
    """A worker does not answer any more (internal)."""


class Executor(Protocol):
    """Runs steps on all workers."""

    def start(self) -> None:
        """Start workers, in place of any earlier ones."""

    def run(self, step: int, name: str, arguments: Any) -> list[Any]:
        """Do a step; return one result per piece, in the order of the pieces, or raise `WorkersLost`."""

    def close(self) -> None:
        """Stop the workers."""


MakeExecutor: TypeAlias = Callable[[Any], Executor]  # from a setup


class TaskSetup(NamedTuple):
    """What all workers share; only paths and numbers, so that it is small."""

    pieces: str  # folder
    work: str  # folder of all files that tasks write
    assigned: tuple[tuple[int, ...], ...]  # pieces of each worker
    threads: int | None
    numbered: bool  # see `is_numbered`

    def worker(self, place: int) -> TaskWorker:
        """Return a worker with the pieces `assigned[place]`."""
        return TaskWorker(self, place)

    def loads(self) -> list[int]:
        """Return the work in each piece."""
        return loads_of(self.pieces)


class Place:
    """One piece, and the files of all tasks."""

    def __init__(self, pieces: Pieces, number: int, work: Path, *, numbered: bool = False) -> None:
        self.pieces, self.number, self._work, self._numbered = pieces, number, work, numbered
        self.piece: Piece = pieces[number]

    def path(self, name: str, piece: int | None = None) -> Path:
        """Return the path of an array of a piece, by default of this one."""
        return array_file(self._work, name, self.number if piece is None else piece)

    def write(self, name: str, array: npt.NDArray[Any]) -> None:
        """Write an array of this piece; the file is complete when it has its name."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{uuid4().hex}")  # processes of several machines may have the same id
        try:
            save(draft, array)
        except OSError as error:
            raise UsageError(
                f"{path.parent} cannot be written: {error.strerror or error}", hint="free some space on its disk"
            ) from error
        draft.rename(path)

    def read(self, name: str, piece: int | None = None) -> npt.NDArray[Any]:
        """Memory-map an array of a piece, by default of this one."""
        path = self.path(name, piece)
        try:
            return map_npy(path)
        except (OSError, ValueError) as error:
            raise SurveyError(
                f"{path}, written by another task, cannot be read ({error})",
                hint="all machines must see the folder of the pieces under the same path; repeat the command",
            ) from error

    def send(self, name: str, values: npt.NDArray[Any]) -> None:
        """Write the values of those pages that other pieces need."""
        self.write(f"{name}.sent", values[self.piece.sends])

    def received(self, name: str, kind: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return the values of the ghosts of this piece."""
        parts = [self.read(f"{name}.sent", other)[slice(*span)] for other, span in self.spans]
        return np.concatenate([np.empty(0, kind), *parts])

    @cached_property
    def spans(self) -> list[tuple[int, tuple[int, int]]]:
        """For each piece with ghosts here: its number, and the range of its sends that are these ghosts."""
        starts, found = self.piece.ghost_starts, []
        for other in np.flatnonzero(np.diff(starts)).tolist():
            sends: IntArray = mapped(piece_folder(self.pieces.folder, other) / "send_starts.npy")
            found.append((other, (int(sends[self.number]), int(sends[self.number + 1]))))
        return found

    @property
    def numbers(self) -> IntArray:
        """The number of each page in the graph in one part."""
        local = np.arange(self.piece.pages, dtype=np.int64)
        return self.piece.page_numbers(local) if self._numbered else self.piece.counts.first + local


Task: TypeAlias = Callable[[Place, Any], Any]


class TaskWorker:
    """The pieces of one worker."""

    def __init__(self, setup: TaskSetup, place: int) -> None:
        self._pieces = Pieces.open(setup.pieces, verify=False)
        self._mine, self._work, self._numbered = setup.assigned[place], Path(setup.work), setup.numbered
        self._places: dict[int, Place] = {}
        self._pool = ThreadPool(setup.threads)

    def run(self, _step: int, _name: str, arguments: Any, _inbox: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Do a task for all pieces, one per thread at a time; return their results."""
        task, given = arguments
        places = ((task, given, number) for number in self._mine)
        return list(self._pool.imap(self._do, places)), []

    def _do(self, task: Task, given: Any, number: int) -> Any:
        if number not in self._places:
            self._places[number] = Place(self._pieces, number, self._work, numbered=self._numbered)
        return task(self._places[number], given)

    def close(self) -> None:
        """Stop the threads."""
        self._pool.__exit__()


class LocalExecutor:
    """Runs all steps in this process."""

    def __init__(self, setup: Any) -> None:
        self._setup = setup._replace(assigned=(tuple(piece for part in setup.assigned for piece in part),))
        self._worker: Any = None

    def start(self) -> None:
        """Open all pieces."""
        self.close()
        self._worker = self._setup.worker(0)

    def run(self, step: int, name: str, arguments: Any) -> list[Any]:
        """Do a step."""
        assert self._worker is not None, "started"  # noqa: S101
        results: list[Any] = self._worker.run(step, name, arguments, [np.empty(0)])[0]
        return results

    def close(self) -> None:
        """Stop the threads."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None


def insist(attempt: Callable[[], list[Any]], lost: Callable[[], None], hint: str = REPEAT) -> list[Any]:
    """Repeat what workers do as often as some are lost; `lost` is called each time."""
    for number in range(ATTEMPTS):
        try:
            return attempt()
        except WorkersLost as error:
            lost()
            if number == ATTEMPTS - 1:
                raise SurveyError(f"workers were lost {ATTEMPTS} times in one step ({error})", hint=hint) from error
    raise AssertionError("the last attempt raises")


class Repeating:
    """Runs tasks for all pieces, one after another; starts new workers when some are lost."""

    def __init__(self, executor: Executor) -> None:
        self._executor, self._running = executor, False
        self.recoveries = 0

    def run(self, task: Callable[..., Any], arguments: Any = None) -> list[Any]:
        """Do a task for every piece; return the results in the order of the pieces."""

        def attempt() -> list[Any]:
            if not self._running:
                self._executor.start()
                self._running = True
            return self._executor.run(0, "task", (task, arguments))

        return insist(attempt, self._lost)

    def _lost(self) -> None:
        self._running = False
        self.recoveries += 1


class Tasks(Repeating):
    """Tasks over the pieces of a folder, and the files that they write."""

    def __init__(self, pieces: Pieces, work: Path, executor: Executor) -> None:
        super().__init__(executor)
        self.pieces, self.work = pieces, work

    def read(self, name: str) -> Iterator[npt.NDArray[Any]]:
        """Yield an array of each piece, by memory map."""
        for number in range(len(self.pieces)):
            yield map_npy(array_file(self.work, name, number))

    def drop(self, *names: str) -> None:
        """Remove arrays that no task will read again."""
        for name in names:
            for path in (self.work / name, *self.work.glob(f"{name}.*")):
                shutil.rmtree(path, ignore_errors=True)


@contextmanager
def tasks_over(
    pieces: Pieces, work: Path, threads: int | None = None, executor: MakeExecutor = LocalExecutor
) -> Iterator[Tasks]:
    """Yield tasks over pieces with a work folder, and stop the workers at the end."""
    every = tuple(range(len(pieces)))
    setup = TaskSetup(str(pieces.folder.resolve()), str(work.resolve()), (every,), threads, is_numbered(pieces))
    runner = executor(setup)
    try:
        yield Tasks(pieces, work, runner)
    finally:
        runner.close()


def work_folder(beside: Path) -> Path:
    """Create a folder for the files of tasks next to another folder."""
    place = beside.resolve()
    try:
        return Path(tempfile.mkdtemp(prefix=f"{place.name}.work-", dir=place.parent))
    except OSError as error:
        raise UsageError(
            f"nothing can be written next to {beside}: {error.strerror or error}",
            hint="copy the pieces to a folder that can be written",
        ) from error


def loads_of(folder: str) -> list[int]:
    """Return the work in each piece of a folder, by which pieces are distributed."""
    return [piece.links + piece.pages for piece in Pieces.open(folder, verify=False).counts]


def array_file(work: Path, name: str, piece: int) -> Path:
    """Return the path of an array of a piece."""
    return work / name / f"{piece:05d}.npy"


def is_numbered(pieces: Pieces) -> bool:
    """Return whether pages have the numbers that their pieces state; otherwise they are counted through the pieces.

    Numbers of a source with gaps are no ids of a graph in one part, where every id exists.
    """
    largest = -1
    for piece in pieces:
        if piece.numbers is None:
            return False
        largest = max(largest, int(piece.numbers.max(initial=-1)))
    return largest < pieces.pages
