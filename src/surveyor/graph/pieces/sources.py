"""What a folder of pieces is written from: links by the piece of their target, with names and numbers of pages.

Workers of a cluster get no arrays, but paths: `spool` writes a source to files that all machines can read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from surveyor.arrays import AnyIntArray, IntArray, map_npy, save
from surveyor.graph.names import Names
from surveyor.graph.pieces.shuffle import Buckets, bucket_file, read_records

LINK = [("source", "<i4"), ("target", "<i4"), ("from", "<u2")]


class PieceLinks(NamedTuple):
    """Links into one piece."""

    targets: AnyIntArray  # local ids
    pieces: AnyIntArray  # of the sources
    sources: AnyIntArray  # local ids in their pieces


class PieceSource(Protocol):
    """What `write_pieces` reads."""

    def links(self, piece: int) -> Iterator[PieceLinks]:
        """Yield the links into a piece; called twice."""

    def names(self, piece: int) -> Names | None:
        """Return the names of the pages of a piece."""

    def numbers(self, piece: int) -> IntArray | None:
        """Return the page numbers of a piece, None if they are a count through all pieces."""


class Feed:
    """Shuffled links with names and numbers."""

    def __init__(
        self, shuffled: Buckets, names: Callable[[int], Names | None], numbers: Callable[[int], IntArray | None]
    ) -> None:
        self.shuffled, self._names, self._numbers = shuffled, names, numbers

    def links(self, piece: int) -> Iterator[PieceLinks]:
        """Yield the links into a piece."""
        for part in self.shuffled.read(piece):
            yield _links(part)

    def names(self, piece: int) -> Names | None:
        """Return the names of the pages of a piece."""
        return self._names(piece)

    def numbers(self, piece: int) -> IntArray | None:
        """Return the numbers of the pages of a piece in the source."""
        return self._numbers(piece)


class Spooled(NamedTuple):
    """A source in files."""

    shuffled: str  # folder of a file of links for each piece
    labels: str  # folder of a folder of names and numbers for each piece
    loads: tuple[int, ...]  # links of each piece

    def links(self, piece: int) -> Iterator[PieceLinks]:
        """Yield the links into a piece."""
        for part in read_records(bucket_file(Path(self.shuffled), piece), LINK):
            yield _links(part)

    def names(self, piece: int) -> Names | None:
        """Return the names of the pages of a piece."""
        offsets, blob = self._array(piece, "offsets"), self._array(piece, "blob")
        return None if offsets is None or blob is None else Names(offsets, blob)

    def numbers(self, piece: int) -> IntArray | None:
        """Return the page numbers of a piece."""
        numbers: IntArray | None = self._array(piece, "numbers")
        return numbers

    def _array(self, piece: int, name: str) -> Any:
        path = Path(self.labels) / f"{piece:05d}" / f"{name}.npy"
        return map_npy(path) if path.is_file() else None


def spool(source: PieceSource, pieces: int, place: Path, memory: int) -> Spooled:
    """Write a source to files inside a folder; links that are on disk stay where they are."""
    labels = place / "labels"
    for piece in range(pieces):
        folder = labels / f"{piece:05d}"
        folder.mkdir(parents=True)
        if (numbers := source.numbers(piece)) is not None:
            save(folder / "numbers.npy", numbers)
        if (names := source.names(piece)) is not None:
            save(folder / "offsets.npy", names.offsets)
            save(folder / "blob.npy", np.asarray(names.blob))
    shuffled = source.shuffled if isinstance(source, Feed) else _shuffled(source, pieces, place, memory)
    shuffled.flush()
    return Spooled(str(shuffled.folder.resolve()), str(labels.resolve()), tuple(shuffled.sizes.tolist()))


def _shuffled(source: PieceSource, pieces: int, place: Path, memory: int) -> Buckets:
    """Write the links of a source; the files are removed with the folder."""
    buckets = Buckets(pieces, LINK, memory=memory, scratch=place)
    for piece in range(pieces):
        for part in source.links(piece):
            records = np.empty(len(part.targets), LINK)
            records["source"], records["target"], records["from"] = part.sources, part.targets, part.pieces
            buckets.append(piece, records)
    return buckets


def _links(part: Any) -> PieceLinks:
    return PieceLinks(part["target"], part["from"].astype(np.int64), part["source"])
