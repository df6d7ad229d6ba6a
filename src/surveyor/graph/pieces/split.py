"""Split a graph into pieces, and join pieces to a graph.

    >>> import tempfile
    >>> graph = Graph.from_edges([("http://a.example/", "http://b.example/"), ("http://b.example/", "http://a.example/")])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pieces = split_graph(graph, Path(folder) / "pieces", 2)
    ...     [piece.pages for piece in pieces], [piece.name(0) for piece in pieces], join(pieces) == graph
    ([1, 1], ['http://a.example/', 'http://b.example/'], True)

The in-links of a graph are grouped by target, so no links have to be shuffled: each piece reads its rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from surveyor.arrays import MAX_PAGES, IntArray, let_go
from surveyor.errors import UsageError
from surveyor.graph.build import Builder
from surveyor.graph.csr import Graph
from surveyor.graph.names import Names
from surveyor.graph.pieces.cut import Cut, cut
from surveyor.graph.pieces.folder import LINKS, Pieces, check_pieces
from surveyor.graph.pieces.sources import PieceLinks
from surveyor.graph.pieces.tasks import LocalExecutor, MakeExecutor
from surveyor.graph.pieces.write import DEFAULT_OPTIONS, WriteOptions, check_free, write_pieces


def split_graph(
    graph: Graph,
    folder: str | Path,
    pieces: int,
    options: WriteOptions = DEFAULT_OPTIONS,
    *,
    executor: MakeExecutor = LocalExecutor,
) -> Pieces:
    """Write a graph as a folder of pieces, cut at the borders of hosts, in bounded memory; open the result."""
    check_pieces(pieces)
    folder = Path(folder)
    check_free(folder, replace=options.replace)
    options.progress("cutting", 0, graph.pages, "pages")
    where = cut(graph, pieces)
    return write_pieces(folder, where.sizes, _GraphSource(graph, where), dict(graph.provenance), options, executor)


class _GraphSource:
    """A graph and its cut, as `write_pieces` reads them."""

    def __init__(self, graph: Graph, where: Cut) -> None:
        self._graph, self._cut = graph, where

    def links(self, piece: int) -> Iterator[PieceLinks]:
        """Yield the in-links of the pages of a piece."""
        rows, pages = self._graph.in_links, self._cut.pages_of(piece)
        first, degrees = rows.indptr[pages], rows.indptr[pages + 1] - rows.indptr[pages]
        ends = np.cumsum(degrees)
        for low, high in _ranges(ends):
            counts = degrees[low:high]
            before = int(ends[low] - degrees[low])
            starts = first[low:high] - (ends[low:high] - counts - before)
            places = np.arange(int(ends[high - 1]) - before) + np.repeat(starts, counts)
            targets = np.repeat(np.arange(low, high, dtype=np.int32), counts)
            yield PieceLinks(targets, *self._cut.locate(rows.indices[places]))
            let_go(rows.indices, int(first[low]), int(first[high - 1]) + int(degrees[high - 1]))

    def names(self, piece: int) -> Names | None:
        """Return the names of the pages of a piece."""
        return None if self._graph.names is None else self._graph.names.take(self._cut.pages_of(piece))

    def numbers(self, piece: int) -> IntArray | None:
        """Return the ids of the pages of a piece where they differ from a count."""
        return None if self._cut.order is None else self._cut.pages_of(piece)


def _ranges(ends: IntArray) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows with about LINKS links each, given the ends of the rows."""
    low = 0
    while low < ends.size:
        before = 0 if low == 0 else int(ends[low - 1])
        high = max(low + 1, int(np.searchsorted(ends, before + LINKS, "right")))
        yield low, high
        low = high


def join(pieces: Pieces) -> Graph:
    """Return the graph whose pieces these are, in memory."""
    if pieces.pages > MAX_PAGES:
        raise UsageError(
            f"{pieces.folder} has {pieces.pages:,} pages, and a graph in one part at most {MAX_PAGES:,}",
            hint="use the commands that accept pieces",
        )
    opened = list(pieces)
    numbers = [piece.page_numbers(np.arange(piece.pages)) for piece in opened]
    whole = np.concatenate(numbers)
    if whole.size and int(whole.max()) >= whole.size:  # numbers of the source with gaps: count instead
        numbers = [piece.counts.first + np.arange(piece.pages) for piece in opened]
        whole = np.concatenate(numbers)
    with Builder(expected_links=pieces.links, memory=None) as builder:
        for piece in opened:
            ids = np.empty(piece.pages + piece.counts.ghosts, np.int64)
            ids[: piece.pages] = numbers[piece.number]
            for other in range(len(opened)):
                part = slice(*(piece.pages + piece.ghost_starts[other : other + 2]).tolist())
                ids[part] = numbers[other][piece.ghosts_of(other)]
            for sources, targets in piece.links():
                builder.add(ids[sources], ids[targets])
        names = None
        if pieces.named:
            texts = [piece.names for piece in opened if piece.names is not None]
            offsets = np.cumsum(np.concatenate([[0], *(np.diff(table.offsets) for table in texts)]))
            blob = np.concatenate([np.empty(0, np.uint8), *(table.blob for table in texts)])
            names = Names(offsets.astype(np.int64), blob).take(np.argsort(whole, kind="stable"))
        graph = builder.finish(pieces.pages, names)
    return Graph(graph.indptr, graph.indices, names=graph.names, provenance=dict(pieces.provenance))
