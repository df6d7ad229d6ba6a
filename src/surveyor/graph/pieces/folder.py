"""A graph in pieces on disk: one folder per piece, and `pieces.json` that describes them.

    pieces.json              format, version, counts, size and CRC-32 of each file and of itself, provenance
    00000/ 00001/ …          one folder per piece:
        indptr.npy           int64, pages + 1: the in-links of page p are indices[indptr[p]:indptr[p + 1]]
        indices.npy          int32: the pages that link to it, ascending and distinct, as local ids
        out_degrees.npy      uint32: links of each page, to pages of all pieces
        ghosts.npy           int32: pages of other pieces that link to this one, as local ids of their pieces,
                             grouped by piece, ascending within each
        ghost_starts.npy     int64, P + 1: the ghosts of piece q are ghosts[ghost_starts[q]:ghost_starts[q + 1]]
        sends.npy            int32: pages of this piece that are ghosts of others, as local ids, grouped by piece,
                             ascending within each
        send_starts.npy      int64, P + 1: piece q needs sends[send_starts[q]:send_starts[q + 1]]
        numbers.npy          int64, only if some differ: page number of each page (see below)
        names.npy            int64 offsets into names.utf8 (only in named graphs)
        names.utf8

**Ids.** A page belongs to one piece, with a local id from 0 to pages - 1. Its global id is `piece << 32 | local`. In
the rows of a piece a local id of `pages` or more is a ghost: the page ghosts[id - pages] of the piece whose range
of ghosts includes it. A piece has fewer than 2³¹ pages and ghosts; the number of pages in total is not limited. The
*page number*, which people see, is the id of the page in the graph that was split; in a folder that was built
directly it is the number of the page in its source, or else that of a count through all pieces, in order.

**Links.** Each link is in exactly one piece, that of its target. There are no duplicates and no self-links. A pair of
pieces p and q exchanges the values of the pages `sends` of p for q; they are the ghosts of q from p, in this order.

**Cut.** All pages of a host are in one piece (`graph/pieces/cut.py`). The number of pieces P is a property of the
folder: results do not depend on the number of workers that compute them.

Opening a folder compares sizes; `verify` also compares checksums, and checks the links, on which kernels rely
(`verify.py`). The folder is written under a temporary name and renamed when it is complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surveyor.arrays import AnyIntArray, IdArray, IntArray, let_go, read_only
from surveyor.errors import GraphError, UsageError
from surveyor.graph.folder_files import FolderKind, check_files, mapped, read_description, seal
from surveyor.graph.names import Names

FORMAT = "surveyor-pieces"
VERSION = 1
DESCRIPTION = "pieces.json"
ARRAYS = {
    "indptr.npy": "int64",
    "indices.npy": "int32",
    "out_degrees.npy": "uint32",
    "ghosts.npy": "int32",
    "ghost_starts.npy": "int64",
    "sends.npy": "int32",
    "send_starts.npy": "int64",
}
NUMBERS = "numbers.npy"
NAME_FILES = ("names.npy", "names.utf8")
MAX_PIECES = 4096
KIND = FolderKind(
    file=DESCRIPTION,
    format=FORMAT,
    version=VERSION,
    longest=1 << 26,
    noun="folder of pieces",
    short="pieces",
    again="split or build the folder again",
    maker="surveyor graph split",
    source="GRAPH",
)
LINKS = 1 << 21  # links per batch
LOCAL_BITS = 32


@dataclass(frozen=True, slots=True)
class PieceCounts:
    """The counts of one piece, from `pieces.json`."""

    pages: int
    ghosts: int
    links: int
    dangling: int
    first: int  # pages in the pieces before this one


@dataclass(frozen=True, eq=False)
class Piece:
    """One piece of a graph, opened by memory map; see the module docstring for its arrays."""

    number: int
    counts: PieceCounts
    indptr: IntArray
    indices: IdArray
    out_degrees: npt.NDArray[np.uint32]
    ghosts: IdArray
    ghost_starts: IntArray
    sends: IdArray
    send_starts: IntArray
    numbers: IntArray | None  # page numbers; None: counts.first + local id
    names: Names | None

    @property
    def pages(self) -> int:
        """The number of pages."""
        return self.counts.pages

    def ghosts_of(self, other: int) -> IdArray:
        """Return the pages of another piece that link to this one, as local ids of that piece."""
        return self.ghosts[self.ghost_starts[other] : self.ghost_starts[other + 1]]

    def sends_to(self, other: int) -> IdArray:
        """Return the pages that another piece needs, as local ids."""
        return self.sends[self.send_starts[other] : self.send_starts[other + 1]]

    def page_numbers(self, pages: AnyIntArray) -> IntArray:
        """Return the page numbers of local ids."""
        return self.counts.first + np.asarray(pages, np.int64) if self.numbers is None else self.numbers[pages]

    @cached_property
    def ghost_ids(self) -> IntArray:
        """The global id of each ghost."""
        owners = np.repeat(np.arange(self.ghost_starts.size - 1), np.diff(self.ghost_starts))
        return global_ids(owners, self.ghosts)

    def global_ids(self, sources: AnyIntArray) -> IntArray:
        """Return the global ids of local ids, which may be ghosts."""
        ids = global_ids(self.number, sources)
        foreign = np.flatnonzero(np.asarray(sources) >= self.pages)
        ids[foreign] = self.ghost_ids[sources[foreign] - self.pages]
        return ids

    def links(self, at_once: int = LINKS) -> Iterator[tuple[IdArray, IdArray]]:
        """Yield (sources, targets) as local ids, about `at_once` links at a time; sources may be ghosts."""
        for first in range(0, self.counts.links, at_once):
            last = min(first + at_once, self.counts.links)
            low = int(np.searchsorted(self.indptr, first, "right")) - 1
            high = int(np.searchsorted(self.indptr, last, "left"))
            ends: IntArray = np.clip(self.indptr[low : high + 1], first, last)
            yield self.indices[first:last], np.repeat(np.arange(low, high, dtype=np.int32), np.diff(ends))
            let_go(self.indices, first, last)

    def name(self, page: int) -> str:
        """Return the name of a page, or its page number as text."""
        return str(int(self.page_numbers(np.array([page]))[0])) if self.names is None else self.names[page]


@dataclass(frozen=True, eq=False, repr=False)
class Pieces:
    """A folder of pieces."""

    folder: Path
    counts: tuple[PieceCounts, ...]
    named: bool
    provenance: Mapping[str, Any]
    checksum: str  # of the description, which contains those of all files

    @classmethod
    def open(cls, folder: str | Path, *, verify: bool = True) -> Pieces:
        """Open a folder of pieces; with `verify`, read it once to check its checksums and ids."""
        return open_pieces(folder, verify=verify)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def pages(self) -> int:
        """The number of pages."""
        return sum(piece.pages for piece in self.counts)

    @property
    def links(self) -> int:
        """The number of links."""
        return sum(piece.links for piece in self.counts)

    @property
    def ghosts(self) -> int:
        """The number of values that one exchange between all pieces moves."""
        return sum(piece.ghosts for piece in self.counts)

    @property
    def dangling(self) -> int:
        """The number of pages without links."""
        return sum(piece.dangling for piece in self.counts)

    def __getitem__(self, number: int) -> Piece:
        """Open a piece."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        return _open_piece(self.folder, number, self.counts[number], len(self))

    def __iter__(self) -> Iterator[Piece]:
        return (self[number] for number in range(len(self)))

    def find(self, name: str) -> int | None:
        """Return the global id of a page by name (in a graph without names, by page number), or None."""
        return self.find_all([name])[0]

    def find_all(self, names: Sequence[str]) -> list[int | None]:
        """Return the global ids of several pages by name; each piece is read once."""
        found: list[int | None] = [None] * len(names)
        for piece in self:
            for place in [place for place, page in enumerate(found) if page is None]:
                if (local := _find(piece, names[place])) is not None:
                    found[place] = piece.number << LOCAL_BITS | local
        return found

    def at_numbers(self, numbers: Sequence[int]) -> list[int | None]:
        """Return the global ids of pages by page number."""
        found: list[int | None] = [None] * len(numbers)
        for piece in self:
            for place in [place for place, page in enumerate(found) if page is None]:
                if (local := _numbered(piece, numbers[place])) is not None:
                    found[place] = piece.number << LOCAL_BITS | local
        return found

    def __repr__(self) -> str:
        named = ", named" if self.named else ""
        return f"Pieces({len(self)} pieces, {self.pages:,} pages, {self.links:,} links{named})"


def global_ids(pieces: AnyIntArray | int, local_ids: AnyIntArray) -> IntArray:
    """Return global ids.

    >>> global_ids(1, np.array([0, 5])).tolist()
    [4294967296, 4294967301]
    """
    return np.asarray(pieces, np.int64) << LOCAL_BITS | np.asarray(local_ids, np.int64)


def split_ids(ids: IntArray) -> tuple[IntArray, IdArray]:
    """Return the pieces and the local ids of global ids."""
    return ids >> LOCAL_BITS, (ids & 0xFFFFFFFF).astype(np.int32)


def is_pieces(path: str | Path) -> bool:
    """Return whether a path is a folder of pieces."""
    return (Path(path) / DESCRIPTION).is_file()


def piece_folder(folder: Path, number: int) -> Path:
    """Return the folder of a piece."""
    return folder / f"{number:05d}"


def check_pieces(pieces: int) -> None:
    """Reject a number of pieces that is out of range."""
    if not 1 <= pieces <= MAX_PIECES:
        raise UsageError(
            f"pieces must be in [1, {MAX_PIECES}], got {pieces}", hint="some per core of all machines are enough"
        )


def open_pieces(folder: str | Path, *, verify: bool = True) -> Pieces:
    """Open a folder of pieces; reject one that is missing, incomplete, truncated, corrupt or newer."""
    folder = Path(folder)
    about = describe(folder)
    check_files(folder, about["files"], "split or build it again", verify=verify)
    for name in file_names(len(about["pieces"]), named=True, numbered=True):
        if name not in about["files"] and (folder / name).exists():  # it would be read without a checksum
            raise GraphError(f"{folder / name} is not part of the graph", hint="remove it, or build the folder again")
    pieces = Pieces(folder, about["pieces"], about["named"], about["provenance"], about["checksum"])
    if verify:
        from surveyor.graph.pieces.verify import check_links

        check_links(pieces)
    return pieces


def describe(folder: Path) -> dict[str, Any]:
    """Return the contents of `pieces.json`, after checking that this version can read it."""
    return read_description(folder, KIND, _parse)


def _parse(about: dict[str, Any]) -> None:
    """Check the parts of a description and replace them by values of their types."""
    stated = about.pop("checksum")
    if stated != seal(about):
        raise ValueError("its checksum differs")
    about["checksum"] = str(stated)
    about["named"], about["provenance"] = bool(about["named"]), dict(about["provenance"])
    counts: list[PieceCounts] = []
    first = 0
    for piece in about["pieces"]:
        pages, ghosts, links, dangling = (int(piece[name]) for name in ("pages", "ghosts", "links", "dangling"))
        if min(pages, ghosts, links, dangling) < 0 or pages + ghosts >= 1 << 31 or dangling > pages:
            raise ValueError(f"piece {len(counts)} has impossible counts")
        counts.append(PieceCounts(pages, ghosts, links, dangling, first))
        first += pages
    if not 1 <= len(counts) <= MAX_PIECES:
        raise ValueError(f"{len(counts)} pieces")
    totals = first, sum(piece.links for piece in counts)
    if (about["pages"], about["links"]) != totals:
        raise ValueError("its totals are not those of its pieces")
    about["pieces"] = tuple(counts)
    files = {str(name): (int(file["bytes"]), str(file["crc32"])) for name, file in about["files"].items()}
    about["files"] = files
    numbered = any(name.endswith(NUMBERS) for name in files)
    if set(files) != set(file_names(len(counts), named=about["named"], numbered=numbered)):
        raise ValueError("its files are not those of a graph in pieces")


def file_names(pieces: int, *, named: bool, numbered: bool) -> list[str]:
    """Return the names of all files of a folder, except its description."""
    names = [*ARRAYS, *([NUMBERS] if numbered else []), *(NAME_FILES if named else [])]
    return [f"{piece_folder(Path(), number)}/{name}" for number in range(pieces) for name in names]


def _open_piece(folder: Path, number: int, counts: PieceCounts, pieces: int) -> Piece:
    place = piece_folder(folder, number)
    sizes = {
        "indptr.npy": counts.pages + 1,
        "indices.npy": counts.links,
        "out_degrees.npy": counts.pages,
        "ghosts.npy": counts.ghosts,
        "ghost_starts.npy": pieces + 1,
        "send_starts.npy": pieces + 1,
    }
    arrays = {name.removesuffix(".npy"): _array(place / name, kind, sizes.get(name)) for name, kind in ARRAYS.items()}
    numbered, named = (place / NUMBERS).is_file(), (place / NAME_FILES[0]).is_file()
    names = None
    if named:
        text = place / NAME_FILES[1]
        blob = np.memmap(text, np.uint8, "r") if text.stat().st_size else np.empty(0, np.uint8)
        offsets = _array(place / NAME_FILES[0], "int64", counts.pages + 1)
        names = Names.checked(offsets, np.asarray(blob), place, GraphError)
    numbers = _array(place / NUMBERS, "int64", counts.pages) if numbered else None
    return Piece(number=number, counts=counts, numbers=numbers, names=names, **arrays)


def _array(path: Path, kind: str, size: int | None) -> Any:
    array = mapped(path)
    if array.ndim != 1 or array.dtype != kind or size not in (None, array.size):
        expected = f"{'some' if size is None else f'{size:,}'} {kind} numbers"
        raise GraphError(f"{path} does not contain {expected}", hint="split or build the folder again")
    return read_only(np.asarray(array))


def _find(piece: Piece, name: str) -> int | None:
    if piece.names is not None:
        return piece.names.find(name)
    return _numbered(piece, int(name)) if name.isdecimal() and len(name) <= 18 else None


def _numbered(piece: Piece, number: int) -> int | None:
    """Return the local id of a page number, or None."""
    if piece.numbers is None:
        local = number - piece.counts.first
        return local if 0 <= local < piece.pages else None
    found = np.flatnonzero(piece.numbers == number)
    return int(found[0]) if found.size else None
