"""Write a folder of pieces from links that are grouped by the piece of their target.

A piece is written in two readings of its links: the first one collects its ghosts, the second one sorts its rows
with the `Builder` of graphs, in bounded memory. Duplicates and self-links are dropped. When all pieces have their rows,
links are counted per source and the lists of ghosts become the send lists of their pieces. Each step is a task for
each piece, in this process or on the workers of a cluster (`graph/pieces/tasks.py`), with the same bytes.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from surveyor.arrays import IdArray, IntArray, save
from surveyor.errors import InputError, UsageError
from surveyor.graph.build import Builder
from surveyor.graph.folder_files import checksum, growing, mapped, new_folder, seal
from surveyor.graph.pieces.folder import (
    ARRAYS,
    DESCRIPTION,
    FORMAT,
    LOCAL_BITS,
    NAME_FILES,
    NUMBERS,
    VERSION,
    PieceCounts,
    Pieces,
    global_ids,
    open_pieces,
    piece_folder,
)
from surveyor.graph.pieces.sources import PieceLinks, PieceSource, Spooled, spool
from surveyor.graph.pieces.tasks import LocalExecutor, MakeExecutor, Repeating, work_folder
from surveyor.stopping import ProgressCallback, silent

COUNTS, GHOST_IDS = "counts.npy", "ghost_ids.npy"  # links of each local id, global ids; both removed at the end
KNOWN = {*ARRAYS, NUMBERS, *NAME_FILES}
MAX_LOCAL = 2**31 - 1
MAX_DEGREE = 2**32 - 1
AT_ONCE = 1 << 22


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a folder of pieces is written."""

    memory: int = 1 << 30  # bytes for links
    threads: int | None = None  # all cores by default
    replace: bool = False  # an existing folder of pieces
    progress: ProgressCallback = silent
    dropped: tuple[int, int] = (0, 0)  # self-links and duplicates that the source has dropped before


DEFAULT_OPTIONS = WriteOptions()


class WriteSetup(NamedTuple):
    """What all workers share that write pieces."""

    draft: str  # folder of the pieces
    pages: tuple[int, ...]  # of each piece
    source: PieceSource
    memory: int
    assigned: tuple[tuple[int, ...], ...]  # pieces of each worker
    threads: int | None
    progress: ProgressCallback = silent

    def worker(self, place: int) -> PieceWriter:
        """Return a worker with the pieces `assigned[place]`."""
        return PieceWriter(self, self.assigned[place])

    def loads(self) -> list[int]:
        """Return the work in each piece."""
        links = self.source.loads if isinstance(self.source, Spooled) else (0,) * len(self.pages)
        return [pages + some for pages, some in zip(self.pages, links, strict=True)]


class PieceWriter:
    """Writes some of the pieces, one after another, each with all threads."""

    def __init__(self, setup: WriteSetup, mine: tuple[int, ...]) -> None:
        self._setup, self._mine = setup, mine

    def run(self, _step: int, _name: str, arguments: Any, _inbox: Any) -> tuple[list[Any], list[Any]]:
        """Do a task for all pieces; return their results."""
        task, _ = arguments
        return [task(self._setup, number) for number in self._mine], []

    def close(self) -> None:
        """Nothing is left open."""


class Written(NamedTuple):
    """What was counted while a piece was written."""

    links: int
    self_links_dropped: int
    repeats_merged: int


def write_pieces(
    folder: Path,
    pages: list[int],
    source: PieceSource,
    provenance: Mapping[str, Any],
    options: WriteOptions = DEFAULT_OPTIONS,
    executor: MakeExecutor = LocalExecutor,
) -> Pieces:
    """Write pieces with these numbers of pages, and open the folder."""
    with ExitStack() as stack:
        draft = stack.enter_context(new_folder(folder, lambda: check_free(folder, replace=options.replace)))
        progress = options.progress
        if executor is not LocalExecutor:
            place = work_folder(folder)
            stack.callback(shutil.rmtree, place, ignore_errors=True)
            source, progress = spool(source, len(pages), place, options.memory), silent
            options.progress("writing pieces", 0, len(pages), "pieces")
        every = (tuple(range(len(pages))),)
        path, sizes = str(draft.resolve()), tuple(pages)
        runner = executor(WriteSetup(path, sizes, source, options.memory, every, options.threads, progress))
        stack.callback(runner.close)
        tasks = Repeating(runner)
        written = [Written(*one) for one in tasks.run(write_piece)]
        dangling = tasks.run(connect)
        counts, first = [], 0
        for number, size in enumerate(pages):
            place = piece_folder(draft, number)
            ghosts = int(mapped(place / "ghosts.npy").size)
            counts.append(PieceCounts(size, ghosts, written[number].links, dangling[number], first))
            first += size
        _remove_others(draft, len(pages))
        _complete([piece_folder(draft, number) for number in range(len(pages))], counts)
        about = dict(provenance)
        for at, name in enumerate(("self_links_dropped", "repeats_merged")):
            about[name] = about.get(name, 0) + options.dropped[at] + sum(one[1 + at] for one in written)
        files = {name: file for found in tasks.run(checksums) for name, file in found.items()}
        _describe(draft, counts, files, about)
    return open_pieces(folder, verify=False)


def check_free(folder: Path, *, replace: bool) -> None:
    """Reject an existing folder unless it contains only a graph in pieces and `replace` is set."""
    if not (folder.exists() or folder.is_symlink()):
        return
    if not (folder / DESCRIPTION).is_file():
        raise UsageError(f"{folder} already exists and is not a graph in pieces", hint="choose another name")
    if not replace:
        raise UsageError(f"{folder} already exists", hint="choose another name, or replace it with --replace")
    others = [path for path in folder.iterdir() if path.name != DESCRIPTION and not _is_piece(path, KNOWN)]
    if others or folder.is_symlink():
        why = f"contains {others[0].name} in addition to the pieces" if others else "is a symbolic link"
        raise UsageError(f"{folder} {why}, so it is not replaced", hint="choose another name, or remove it yourself")


def _is_piece(path: Path, known: set[str]) -> bool:
    piece = path.is_dir() and not path.is_symlink() and path.name.isdecimal() and len(path.name) == 5
    return piece and {file.name for file in path.iterdir()} <= known


def write_piece(setup: WriteSetup, number: int) -> Written:
    """Write the ghosts, the rows and the labels of a piece, in a folder that has its name when it is complete."""
    setup.progress("writing pieces", number, len(setup.pages), "pieces")
    place = piece_folder(Path(setup.draft), number)
    draft = place.with_name(f"{place.name}.{uuid4().hex}")  # a lost worker may still write to another one
    draft.mkdir()
    try:
        written = _write_rows(draft, setup, number)
        _write_labels(draft, setup.source, number)
        if place.is_dir():  # from an attempt whose result was lost
            shutil.rmtree(place)
        draft.rename(place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return written


def _write_rows(place: Path, setup: WriteSetup, number: int) -> Written:
    """Write the ghosts and the rows of a piece."""
    source, pages = setup.source, setup.pages[number]
    ghosts = _ghosts(number, source, setup.memory)
    if pages + ghosts.size > MAX_LOCAL:
        raise InputError(
            f"piece {number} would have {pages:,} pages and {ghosts.size:,} pages of other pieces linking to it, "
            f"more than {MAX_LOCAL:,}",
            hint="use more pieces",
        )
    save(place / "ghosts.npy", (ghosts & MAX_DEGREE).astype(np.int32))
    save(place / GHOST_IDS, ghosts)
    borders = np.arange(len(setup.pages) + 1, dtype=np.int64) << LOCAL_BITS
    save(place / "ghost_starts.npy", np.searchsorted(ghosts, borders).astype(np.int64))
    with Builder(memory=setup.memory, scratch=place, threads=setup.threads) as builder:
        for part in source.links(number):
            builder.add(part.targets.astype(np.int32), _local(part, number, pages, ghosts))
        with growing(place / "indices.npy") as write:
            graph = builder.finish(pages + ghosts.size, write=write)
        indptr = graph.indptr[: pages + 1]
        save(place / "indptr.npy", indptr)
        self_links = builder.self_links
        merged = builder.links_seen - self_links - int(indptr[-1])
    counts = np.zeros(pages + ghosts.size, np.int64)
    indices = mapped(place / "indices.npy")
    for first in range(0, indices.size, AT_ONCE):
        counts += np.bincount(indices[first : first + AT_ONCE], minlength=counts.size)
    save(place / COUNTS, counts)
    return Written(int(indptr[-1]), self_links, merged)


def _ghosts(number: int, source: PieceSource, memory: int) -> IntArray:
    """Return the global ids of the pages of other pieces that link to a piece, ascending."""
    found, waiting = [np.empty(0, np.int64)], 0
    for part in source.links(number):
        foreign = np.flatnonzero(np.asarray(part.pieces) != number)
        found.append(np.unique(global_ids(part.pieces[foreign], part.sources[foreign])))
        waiting += found[-1].nbytes
        if waiting > max(memory // 4, 2 * found[0].nbytes):
            found, waiting = [np.unique(np.concatenate(found))], 0
    return np.unique(np.concatenate(found))


def _local(part: PieceLinks, number: int, pages: int, ghosts: IntArray) -> IdArray:
    """Return the sources of links as local ids of their target's piece."""
    local = np.array(part.sources, np.int32)
    foreign = np.flatnonzero(np.asarray(part.pieces) != number)
    local[foreign] = pages + np.searchsorted(ghosts, global_ids(part.pieces[foreign], part.sources[foreign]))
    return local


def _write_labels(place: Path, source: PieceSource, number: int) -> None:
    """Write the names and the page numbers of a piece."""
    if (numbers := source.numbers(number)) is not None:
        save(place / NUMBERS, numbers)
    if (names := source.names(number)) is not None:
        save(place / NAME_FILES[0], names.offsets)
        (place / NAME_FILES[1]).write_bytes(np.ascontiguousarray(names.blob).data)


def connect(setup: WriteSetup, number: int) -> int:
    """Write the out-degrees and send lists of a piece, which need all pieces; return the number of dangling pages."""
    folder = Path(setup.draft)
    place, pages = piece_folder(folder, number), setup.pages[number]
    degrees = np.array(mapped(place / COUNTS)[:pages], np.int64)
    sends, starts = [np.empty(0, np.int32)], np.zeros(len(setup.pages) + 1, np.int64)
    for other, others in enumerate(setup.pages):
        there = piece_folder(folder, other)
        first, last = mapped(there / "ghost_starts.npy")[number : number + 2].tolist()
        some = mapped(there / "ghosts.npy")[first:last]
        degrees[some] += mapped(there / COUNTS)[others + first : others + last]
        sends.append(np.asarray(some))
        starts[other + 1] = starts[other] + some.size
    if degrees.size and degrees.max() > MAX_DEGREE:
        raise InputError(f"a page has {degrees.max():,} links", hint=f"at most {MAX_DEGREE:,} are possible")
    found: dict[str, Any] = {
        "out_degrees": degrees.astype(np.uint32),
        "sends": np.concatenate(sends),
        "send_starts": starts,
    }
    for name, array in found.items():
        part = place / f"{name}.{uuid4().hex}"
        save(part, array)
        part.rename(place / f"{name}.npy")
    return int(np.count_nonzero(degrees == 0))


def checksums(setup: WriteSetup, number: int) -> dict[str, dict[str, Any]]:
    """Return the sizes and checksums of the files of a piece."""
    folder = Path(setup.draft)
    paths = piece_folder(folder, number).iterdir()
    return {
        path.relative_to(folder).as_posix(): {"bytes": path.stat().st_size, "crc32": checksum(path)} for path in paths
    }


def _remove_others(folder: Path, pieces: int) -> None:
    """Remove what only the writing needed, and what lost workers have left."""
    places = [piece_folder(folder, number) for number in range(pieces)]
    for path in set(folder.iterdir()).difference(places):
        shutil.rmtree(path)
    for path in (path for place in places for path in place.iterdir() if path.name not in KNOWN):
        path.unlink()


def _describe(folder: Path, counts: list[PieceCounts], files: Mapping[str, Any], provenance: Mapping[str, Any]) -> None:
    about: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "pages": sum(piece.pages for piece in counts),
        "links": sum(piece.links for piece in counts),
        "named": f"00000/{NAME_FILES[0]}" in files,
        "pieces": [{name: value for name, value in asdict(piece).items() if name != "first"} for piece in counts],
        "files": {name: files[name] for name in sorted(files)},
        "provenance": dict(provenance),
    }
    about["checksum"] = seal(json.loads(json.dumps(about)))
    (folder / DESCRIPTION).write_text(json.dumps(about, indent=1) + "\n", "utf-8")


def _complete(places: list[Path], counts: list[PieceCounts]) -> None:
    """Give every piece page numbers if one has them, and none where they are a plain count."""
    numbered = [place for place in places if (place / NUMBERS).is_file()]
    plain = all(
        np.array_equal(mapped(place / NUMBERS), piece.first + np.arange(piece.pages))
        for place, piece in zip(places, counts, strict=True)
        if place in numbered
    )
    for place, piece in zip(places, counts, strict=True):
        if plain:
            (place / NUMBERS).unlink(missing_ok=True)
        elif place not in numbered:
            save(place / NUMBERS, piece.first + np.arange(piece.pages))
