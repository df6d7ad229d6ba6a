"""Build a folder of pieces directly from a file of links, in bounded memory, beyond the page ids of one graph.

The readers of all formats pass their links to a `PieceIntake`, which writes them to disk. What a page is depends on the
source:

    names        text and Parquet with names, WAT. The piece of a page is a hash of its host; inside a piece, pages are
                 in the order of their names. Only the names of one piece are in memory at a time.
    numbers      lists of ids, which may exceed 2³¹ and have gaps. Pieces are ranges of ids of similar work; with a
                 stated number of pages all ids exist, otherwise those that occur.
    known pages  formats that number their pages and may name them (Common Crawl, Matrix Market, GraphML, …):
                 the table of pages is in memory, and cut as in `split`.

Names and numbers have 64-bit keys: a hash, or the number itself. Links are shuffled to the pieces of their targets,
where the keys of targets become local ids, then to those of their sources, and back.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surveyor.arrays import MAX_PAGES, AnyIntArray, BoolArray, ByteArray, IdArray, IntArray, KeyArray, map_npy, save
from surveyor.errors import InputError, UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.formats import opened_source
from surveyor.graph.formats.intake import Intake, ReadOptions
from surveyor.graph.hosts_and_domains import authorities
from surveyor.graph.names import Names
from surveyor.graph.pieces.cut import Cut, cut_pages
from surveyor.graph.pieces.folder import Pieces, check_pieces
from surveyor.graph.pieces.shuffle import Buckets
from surveyor.graph.pieces.sources import LINK, Feed
from surveyor.graph.pieces.split import split_graph
from surveyor.graph.pieces.tasks import LocalExecutor, MakeExecutor
from surveyor.graph.pieces.write import DEFAULT_OPTIONS, WriteOptions, check_free, write_pieces
from surveyor.web.interning import KEY_SIZE, key_words

PAIR = [("source", "<i8"), ("target", "<i8")]
NAMED = [("source", "<i8"), ("target", "<i8"), ("from", "<u2")]  # keys, and the piece of the source
HALF = [("source", "<i8"), ("target", "<i4"), ("to", "<u2")]  # the key of the source; local id and piece of the target
NAME = [("key", "<i8"), ("check", "<i8"), ("size", "<u4")]
RECENT = 1 << 21  # keys remembered, so that a name is rarely written twice
BINS = 1 << 16  # of the histogram of ids
MOST_PAGES = 1 << 62


def build_with(
    source: str | Path,
    folder: str | Path,
    pieces: int,
    reading: ReadOptions | None = None,
    *,
    format: str | None = None,  # noqa: A002
    options: WriteOptions = DEFAULT_OPTIONS,
    executor: MakeExecutor = LocalExecutor,
) -> Pieces:
    """Convert a graph of any format to a folder of pieces, in bounded memory; see `surveyor.build_pieces`."""
    check_pieces(pieces)
    folder, reading = Path(folder), reading or ReadOptions()
    check_free(folder, replace=options.replace)
    if format == "surveyor" or (format is None and (Path(source) / "graph.json").is_file()):
        return split_graph(Graph.open(source), folder, pieces, options, executor=executor)
    with ExitStack() as stack:
        kind, path = stack.enter_context(opened_source(source, format))
        collector = stack.enter_context(Collector(pieces, options, folder.absolute().parent))
        intake = PieceIntake(Path(source), path, kind.name, reading, collector, options)
        kind.read(path, intake)
        intake.check_malformed()
        pages, feed = collector.settle(intake.nodes, intake.names, intake.stated)
        about = {**intake.provenance(), "links_read": collector.links_seen}
        return write_pieces(folder, pages, feed, about, options, executor)


class Collector:
    """Links on disk: what `Intake` needs of a `Builder`, and the shuffles that follow."""

    def __init__(self, pieces: int, options: WriteOptions, scratch: Path) -> None:
        if not scratch.is_dir():
            raise UsageError(f"there is no folder {scratch}", hint="create it first, with mkdir")
        self.pieces, self._options, self._scratch = pieces, options, scratch
        self._stack = ExitStack()
        self._pairs = self._buckets(PAIR, 1)
        self.links_seen, self.largest = 0, -1
        self._bins, self._shift = np.zeros(BINS, np.int64), 0
        self._named: Buckets | None = None
        self._names: Buckets | None = None
        self._text: Buckets | None = None
        self._recent: IntArray = np.empty((2, 0), np.int64)  # keys and checks

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _buckets(self, kind: Any, count: int | None = None) -> Buckets:
        memory = max(1 << 16, self._options.memory // 4)
        return self._stack.enter_context(Buckets(count or self.pieces, kind, memory=memory, scratch=self._scratch))

    def add(self, sources: AnyIntArray, targets: AnyIntArray) -> None:
        """Add links between page ids."""
        records = np.empty(len(sources), PAIR)
        records["source"], records["target"] = sources, targets
        if records.size:
            low = min(int(records["source"].min()), int(records["target"].min()))
            high = max(int(records["source"].max()), int(records["target"].max()))
            if low < 0 or high >= MOST_PAGES:
                raise InputError(f"a link has the page id {low if low < 0 else high}", hint="ids start at 0")
            self.largest = max(self.largest, high)
            self._count(records["source"], records["target"])
        self.links_seen += records.size
        self._pairs.append(0, records)

    def _count(self, *ids: IntArray) -> None:
        while self.largest >> self._shift >= BINS:
            self._bins[: BINS // 2] = self._bins.reshape(-1, 2).sum(axis=1)
            self._bins[BINS // 2 :] = 0
            self._shift += 1
        for some in ids:
            self._bins += np.bincount(some >> self._shift, minlength=BINS)

    def add_named(self, sources: NamedKeys, targets: NamedKeys) -> None:
        """Add links between names."""
        if self._named is None:
            self._named = self._buckets(NAMED)
        records = np.empty(sources.keys.size, NAMED)
        records["source"], records["target"], records["from"] = sources.keys, targets.keys, sources.pieces
        self.links_seen += records.size
        self._named.add(targets.pieces, records)

    def add_names(self, names: NamedKeys, checks: IntArray, text: ByteArray, spans: IntArray) -> None:
        """Record names that were not recorded recently."""
        from surveyor.kernels.text_parsing import copy_spans

        if self._names is None or self._text is None:
            self._names, self._text = self._buckets(NAME), self._buckets("u1")
            self._recent = np.zeros((2, RECENT), np.int64)
        keys, pieces = names
        slots = keys & (RECENT - 1)
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        _reject_collisions(checks != checks[first[which]])
        slots, now = slots[first], np.stack([keys[first], checks[first]])
        known = (self._recent[0, slots] == now[0]) & (self._recent[1, slots] != 0)
        _reject_collisions(known & (self._recent[1, slots] != now[1]))
        self._recent[:, slots] = now
        new = first[~known]
        order = new[np.argsort(pieces[new], kind="stable")]
        records = np.empty(order.size, NAME)
        records["key"], records["check"] = keys[order], checks[order]
        records["size"] = spans[order, 1] - spans[order, 0]
        blob = np.empty(int(records["size"].sum()), np.uint8)
        copy_spans(text, spans[order], blob)
        ends = np.concatenate([[0], np.cumsum(records["size"], dtype=np.int64)])
        borders = np.searchsorted(pieces[order], np.arange(self.pieces + 1))
        for piece in np.unique(pieces[order]).tolist():
            low, high = borders[piece], borders[piece + 1]
            self._names.append(piece, records[low:high])
            self._text.append(piece, blob[ends[low] : ends[high]])

    def settle(self, nodes: int | None, names: Names | None, stated: int) -> tuple[list[int], Feed]:
        """Decide the piece of each page, and shuffle the links; return the pages per piece, and what is written."""
        self._options.progress("shuffling", 0, self.links_seen, "links")
        if self._named is not None:
            return self._settle_keys(self._named, self._tables_of_names())
        if nodes is None and self.largest < stated:
            nodes = stated
        if nodes is not None and self.largest >= nodes:
            raise InputError(
                f"a link has page id {self.largest:,}, but the graph has {nodes:,} pages",
                hint="page ids start at 0; pass the right number of pages, or omit it",
            )
        if names is not None:
            return self._settle_cut(self._cut(names, len(names)), names)
        if nodes is not None:
            return self._settle_cut(Cut(self._ranges(nodes), None, None, None), None)
        return self._settle_numbers()

    def _cut(self, names: Names, pages: int) -> Cut:
        degrees = np.zeros(pages + 1, np.int64)
        for part in self._pairs.read(0):
            degrees[1:] += np.bincount(part["target"], minlength=pages)
        return cut_pages(names, np.cumsum(degrees), self.pieces)

    def _ranges(self, nodes: int) -> IntArray:
        """Return bounds of ranges of ids of similar work."""
        width = 1 << self._shift
        bins = min(BINS, -(-nodes // width))
        work = np.cumsum(self._bins[:bins] + 4.0 * width)
        if nodes > bins * width:  # ids above the largest that occurs
            work = np.append(work, (work[-1] if bins else 0) + 4.0 * (nodes - bins * width))
        marks = np.arange(1, self.pieces) * (float(work[-1]) / self.pieces) if work.size else np.zeros(self.pieces - 1)
        inner = np.minimum(np.searchsorted(work, marks) * width, nodes)
        return np.concatenate([[0], inner, [nodes]]).astype(np.int64)

    def _settle_cut(self, where: Cut, names: Names | None) -> tuple[list[int], Feed]:
        if max(where.sizes) > MAX_PAGES:
            raise InputError(f"a piece would have {max(where.sizes):,} pages", hint="use more pieces")
        links = self._buckets(LINK)
        for part in self._pairs.read(0):
            pieces, targets = where.locate(part["target"])
            owners, sources = where.locate(part["source"])
            links.add(np.asarray(pieces), _records(LINK, source=sources, target=targets, **{"from": owners}))
        self._pairs.drop(0)
        return where.sizes, Feed(
            links,
            lambda piece: None if names is None else names.take(where.pages_of(piece)),
            lambda piece: None if where.order is None else where.pages_of(piece),
        )

    def _settle_numbers(self) -> tuple[list[int], Feed]:
        """Divide the ids that occur."""
        bounds = self._ranges(self.largest + 1)
        named, seen = self._buckets(NAMED), self._buckets("<i8")
        for part in self._pairs.read(0):
            pieces, owners = (np.searchsorted(bounds, part[end], "right") - 1 for end in ("target", "source"))
            named.add(pieces, _records(NAMED, source=part["source"], target=part["target"], **{"from": owners}))
            ids = np.unique(np.concatenate([part["source"], part["target"]]))
            seen.add(np.searchsorted(bounds, ids, "right") - 1, ids)
        self._pairs.drop(0)
        tables = []
        for piece in range(self.pieces):
            ids = np.empty(0, np.int64)
            for part in seen.read(piece):
                ids = np.union1d(ids, part)
            seen.drop(piece)
            tables.append(Table(ids, np.arange(ids.size, dtype=np.int32), None))
        return self._settle_keys(named, iter(tables))

    def _tables_of_names(self) -> Iterator[Table]:
        """Yield the names of each piece, in order."""
        assert self._names is not None, "names were added"  # noqa: S101
        assert self._text is not None, "names were added"  # noqa: S101
        for piece in range(self.pieces):
            records, blob = self._names.all(piece), self._text.all(piece)
            self._names.drop(piece)
            self._text.drop(piece)
            offsets = np.concatenate([[0], np.cumsum(records["size"], dtype=np.int64)])
            yield _table(records, Names(offsets, blob))

    def _settle_keys(self, named: Buckets, tables: Iterator[Table]) -> tuple[list[int], Feed]:
        """Replace keys by local ids: first of the targets, then of the sources."""
        half, links = self._buckets(HALF), self._buckets(LINK)
        place = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="surveyor-", dir=self._scratch)))
        kept = []
        for piece, table in enumerate(tables):
            kept.append(table.stored(place / f"{piece:05d}"))
            for part in named.read(piece):
                targets = table.local_ids(part["target"])
                half.add(part["from"], _records(HALF, source=part["source"], target=targets, to=piece))
            named.drop(piece)
        for piece, table in enumerate(kept):
            for part in half.read(piece):
                sources = table.local_ids(part["source"])
                links.add(part["to"], _records(LINK, source=sources, target=part["target"], **{"from": piece}))
            half.drop(piece)
        return [table.keys.size for table in kept], Feed(
            links,
            lambda piece: kept[piece].names,
            lambda piece: kept[piece].keys if kept[piece].names is None else None,
        )


class NamedKeys(NamedTuple):
    """Names as keys, and their pieces."""

    keys: IntArray
    pieces: IntArray


class Table(NamedTuple):
    """The pages of a piece: their keys in ascending order, the local id of each, and the names by local id."""

    keys: IntArray
    local: IdArray
    names: Names | None

    def local_ids(self, keys: IntArray) -> IdArray:
        """Return the local ids of keys."""
        return self.local[np.searchsorted(self.keys, keys)]

    def stored(self, place: Path) -> Table:
        """Write the table to a folder; return it as memory maps."""
        place.mkdir()
        arrays: dict[str, Any] = {"keys": self.keys, "local": self.local}
        if self.names is not None:
            arrays |= {"offsets": self.names.offsets, "blob": self.names.blob}
        for name, array in arrays.items():
            save(place / f"{name}.npy", array)
            arrays[name] = map_npy(place / f"{name}.npy")
        names = None if self.names is None else Names(arrays["offsets"], arrays["blob"])
        return Table(arrays["keys"], arrays["local"], names)


class PieceIntake(Intake):
    """Passes the links of a reader to a `Collector`."""

    most_pages = MOST_PAGES

    def __init__(
        self,
        source: Path,
        copy: Path,
        format_name: str,
        reading: ReadOptions,
        collector: Collector,
        options: WriteOptions,
    ) -> None:
        self.stated = 0  # number of pages that a file claims
        self._collector = collector
        self._pending: list[NamedKeys] = []
        self._known = 0
        self._host_key, self._name_key = key_words(bytes(KEY_SIZE)), key_words()
        self._check_key = key_words(os.urandom(KEY_SIZE))
        super().__init__(source, format_name=format_name, copy=copy, options=reading, progress=options.progress)

    def _start(self) -> Any:
        super()._start().__exit__()  # sets the state of a pass
        return self._collector

    @property
    def id_type(self) -> type[np.signedinteger[Any]]:
        """The type for numbers from the file."""
        return np.int64

    def expect(self, nodes: int) -> None:
        """Set the number of pages that a file claims."""
        self.stated = nodes if nodes <= MOST_PAGES else 0

    def ids(self, sources: AnyIntArray, targets: AnyIntArray, largest: int) -> None:
        """Add links between numbers."""
        if self.nodes is not None and largest >= self.nodes:
            raise InputError(
                f"{self.source} has a link of page {largest:,}, outside 0..{self.nodes - 1:,}",
                hint=f"set --nodes to at least {largest + 1:,}, or omit it",
            )
        self._collector.add(sources, targets)

    def pairs(self, text: ByteArray, spans: IntArray) -> None:
        """Add links between names, given as spans of a text: source, target, source, target, ..."""
        places = self.intern(text, spans).reshape(-1, 2)
        self.links(places[:, 0], places[:, 1])

    def links(self, sources: AnyIntArray, targets: AnyIntArray) -> None:
        """Add links between page ids, or between names as `intern` returned them."""
        if not self._pending:
            self._collector.add(sources, targets)
            return
        keys = np.concatenate([part.keys for part in self._pending])
        pieces = np.concatenate([part.pieces for part in self._pending])
        self._pending, self._known = [], 0
        ends = [NamedKeys(keys[places], pieces[places]) for places in (sources, targets)]
        self._collector.add_named(*ends)

    def intern(self, text: ByteArray, spans: IntArray) -> IntArray:
        """Return the place of each name among those since the last links."""
        from surveyor.kernels.string_table import hash_spans

        if self.wanted is not None:
            raise UsageError(
                f"{self.source} contains names, not ids", hint="omit the number of pages: names are counted"
            )
        spans = np.ascontiguousarray(spans, np.int64)
        keys: KeyArray = np.empty(spans.shape[0], np.uint64)
        hash_spans(text, spans, self._name_key, keys)
        ids = keys.view(np.int64)
        pieces = (self._hosts(text, spans) % np.uint64(self._collector.pieces)).astype(np.int64)
        checks: KeyArray = np.empty_like(keys)  # a second hash: names with equal keys are the same if it is equal too
        hash_spans(text, spans, self._check_key, checks)
        names = NamedKeys(ids, pieces)
        self._collector.add_names(names, checks.view(np.int64) | 1, text, spans)
        self._pending.append(names)
        self._known += ids.size
        return np.arange(self._known - ids.size, self._known)

    def _hosts(self, text: ByteArray, spans: IntArray) -> KeyArray:
        """Return a hash of the host (and port) of each name; of the name itself, where it is not a URL."""
        from surveyor.kernels.string_table import hash_spans
        from surveyor.kernels.text_parsing import copy_spans

        offsets = np.concatenate([[0], np.cumsum(spans[:, 1] - spans[:, 0])])
        blob = np.empty(int(offsets[-1]), np.uint8)
        copy_spans(text, spans, blob)
        blob[(blob >= ord("A")) & (blob <= ord("Z"))] |= 0x20
        hosts = authorities(Names(offsets, blob))
        whole = np.column_stack([offsets[:-1], offsets[1:]])
        hashes: KeyArray = np.empty(spans.shape[0], np.uint64)
        hash_spans(blob, np.where(hosts[:, :1] > 0, hosts, whole), self._host_key, hashes)
        return hashes


def _table(records: Any, names: Names) -> Table:
    """Return the distinct names of a piece, in order."""
    distinct, first, which = np.unique(records["key"], return_index=True, return_inverse=True)
    _reject_collisions(records["check"] != records["check"][first[which]])
    table = names.take(first)
    order = table.order()
    local = np.empty(order.size, np.int32)
    local[order] = np.arange(order.size)
    return Table(distinct, local, table.take(order))


def _reject_collisions(differ: BoolArray) -> None:
    if differ.any():
        raise InputError("two names have the same hash, which is rare", hint="repeat the command, which draws another")


def _records(kind: Any, **columns: Any) -> Any:
    size = max(np.size(column) for column in columns.values() if np.ndim(column))
    records = np.empty(size, kind)
    for name, column in columns.items():
        records[name] = column
    return records
