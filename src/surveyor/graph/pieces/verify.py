"""Check the links of a graph in pieces: each id is in its range, and counts agree with the links.

All links are read once, in blocks, as a piece may be larger than memory. That each page has as many links as
`out_degrees` states is compared without counting the links of every page: each page gets a random 64-bit value, and the
sum of the values of the sources of all links must be that of all pages times their out-degrees, modulo 2⁶⁴. Random
values are drawn again each time, so a wrong folder passes by accident with a chance of at most 2⁻³².
"""

from __future__ import annotations

import secrets
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from surveyor.arrays import IdArray, IntArray, let_go
from surveyor.errors import GraphError
from surveyor.graph.folder_files import BLOCK, mapped
from surveyor.graph.pieces.folder import Piece, Pieces, global_ids, piece_folder

Hashes = npt.NDArray[np.uint64]
AGAIN = "it was not written by surveyor: split or build it again"


def check_links(pieces: Pieces) -> None:
    """Reject ids out of range, rows out of order, self-links, and counts that are not those of the links."""
    key, rest, degrees = np.uint64(secrets.randbits(64)), 0, 0
    for piece in pieces:
        _check_ids(pieces, piece)
        rest += _check_rows(pieces, piece, key)
        degrees += int(piece.out_degrees.sum(dtype=np.int64))
    if degrees != pieces.links:
        raise GraphError(
            f"{pieces.folder} has {pieces.links:,} links, but out-degrees of {degrees:,}",
            hint=AGAIN,
        )
    if rest % (1 << 64):
        raise GraphError(f"{pieces.folder} has out-degrees that are not those of its links", hint=AGAIN)


def _check_rows(pieces: Pieces, piece: Piece, key: np.uint64) -> int:
    """Check the rows of a piece whose ids are in range; return the values of its pages less those of its links."""
    place, degrees = piece_folder(pieces.folder, piece.number), piece.out_degrees
    if int((degrees == 0).sum()) != piece.counts.dangling:
        raise GraphError(f"{place} has another number of pages without links than stated", hint=AGAIN)
    own = _values(global_ids(piece.number, np.arange(piece.pages)), key)
    values = np.concatenate([own, _values(piece.ghost_ids, key)])
    total, before = 0, (-1, -1)  # the last target and source
    for sources, targets in piece.links():
        again = targets[1:] == targets[:-1]
        unordered = bool((sources[1:] <= sources[:-1])[again].any())
        if unordered or (targets[0] == before[0] and sources[0] <= before[1]) or (sources == targets).any():
            raise GraphError(f"{place} has a link twice, out of order, or from a page to itself", hint=AGAIN)
        before = int(targets[-1]), int(sources[-1])
        total += int(values[sources].sum())
    return int((own * degrees).sum()) - total


def _values(ids: IntArray, key: np.uint64) -> Hashes:
    """Return a random value of each global id under a key."""
    mixed = ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + key
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def _check_ids(pieces: Pieces, piece: Piece) -> None:
    """Reject rows outside the links, ids outside their pieces, and send lists that are not the ghosts of the others."""
    pages, ghosts = piece.pages, piece.counts.ghosts
    good = _covers(piece.indptr, piece.counts.links) and _covers(piece.ghost_starts, ghosts)
    good = good and _covers(piece.send_starts, piece.sends.size) and _within(piece.indices, pages + ghosts)
    for other, counts in enumerate(pieces.counts):
        some = piece.ghosts_of(other) if good else piece.ghosts[:0]
        good = good and _within(some, counts.pages) and bool((some[1:] > some[:-1]).all())
        good = good and (other != piece.number or not some.size)
    if good:
        for other in range(len(pieces)):
            folder = piece_folder(pieces.folder, other)
            starts, there = mapped(folder / "ghost_starts.npy"), mapped(folder / "ghosts.npy")
            wanted = there[starts[piece.number] : starts[piece.number + 1]]
            good = good and np.array_equal(wanted, piece.sends_to(other))
    if not good:
        raise GraphError(
            f"{piece_folder(pieces.folder, piece.number)} has links to pages that do not exist", hint=AGAIN
        )


def _covers(starts: IntArray, size: int) -> bool:
    """Return whether ascending starts divide a whole of this size."""
    if starts[0] != 0 or starts[-1] != size:
        return False
    marks = range(0, starts.size, BLOCK)
    return all((np.diff(starts[first : first + BLOCK + 1]) >= 0).all() for first in marks)


def _within(ids: IdArray, size: int) -> bool:
    """Return whether all ids are below a size; in blocks, as a piece may be larger than memory."""
    for first, last in pairwise([*range(0, ids.size, BLOCK), ids.size]):
        some = ids[first:last]
        if some.min() < 0 or some.max() >= size:
            return False
        let_go(ids, first, last)
    return True
