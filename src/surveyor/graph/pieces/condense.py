"""Condense pages in pieces to hosts or domains in pieces.

The result has the hosts or domains, links and ids of `graph.condense` over the graph in one part. Pieces of it are
ranges of ids, which follow the names in reversed labels, of similar work.

1. Each piece finds the hosts or domains of its pages. A domain may be in several pieces.
2. The names of all are merged in this process, which gives the ids: it takes memory for the names of hosts and domains.
3. Each piece maps its pages, and sends the ids of those that are ghosts elsewhere.
4. Each piece maps its links, and writes them in runs that are sorted by target and have no duplicates.
5. This process merges from all runs the ranges of each new piece, and writes it (`graph/pieces/write.py`).

Steps 1, 3 and 4, which read all pages and links, run on all workers.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surveyor.arrays import AnyIntArray, IdArray, IntArray, KeyArray, let_go, map_npy
from surveyor.errors import UsageError
from surveyor.graph.condense import blocks
from surveyor.graph.hosts_and_domains import Level, SiteIndex
from surveyor.graph.names import Interner, Names
from surveyor.graph.pieces.cut import PER_PAGE
from surveyor.graph.pieces.folder import Pieces, check_pieces
from surveyor.graph.pieces.sources import PieceLinks
from surveyor.graph.pieces.tasks import LocalExecutor, MakeExecutor, Place, Tasks, array_file, tasks_over, work_folder
from surveyor.graph.pieces.write import DEFAULT_OPTIONS, WriteOptions, check_free, write_pieces
from surveyor.web.suffixes import Suffixes

HALF = np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)
RUN = 1 << 24  # links sorted at a time: the runs, and so the bytes, do not depend on memory
READ = 1 << 22  # links of a run read at a time


@dataclass(frozen=True, slots=True, eq=False)
class CondensedPieces:
    """A graph of hosts or domains in pieces, and the counts of the pages that it was made from."""

    pieces: Pieces
    level: Level
    pages: int
    without_host: int  # pages whose names are neither URLs nor host names
    without_suffix: int  # hosts under no known suffix; each is its own domain

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain values."""
        return {
            self.level: self.pieces.pages,
            "links": self.pieces.links,
            "pages": self.pages,
            "pieces": len(self.pieces),
            "without_host": self.without_host,
            "without_suffix": self.without_suffix,
            "provenance": dict(self.pieces.provenance),
        }


class MappedLinks(NamedTuple):
    """What a piece found when it mapped its links."""

    runs: int
    within: int  # links inside a host or domain
    lost: int  # links from or to pages without a host
    merged: int  # duplicates


def condense_with(
    pieces: Pieces,
    folder: str | Path,
    count: int | None = None,
    *,
    level: Level = "domains",
    suffixes: Suffixes | None = None,
    options: WriteOptions = DEFAULT_OPTIONS,
    executor: MakeExecutor = LocalExecutor,
) -> CondensedPieces:
    """Write the graph of hosts or domains of pages in pieces to `count` pieces; see `surveyor.condense_pieces`."""
    folder, count = Path(folder), len(pieces) if count is None else count
    check_pieces(count)
    check_free(folder, replace=options.replace)
    if not pieces.named:
        raise UsageError(
            f"{pieces.folder} has no names, so the hosts of its pages are unknown",
            hint="build it from links between URLs or host names",
        )
    if level == "domains":
        suffixes = suffixes or Suffixes()
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = work_folder(folder)
    try:
        with tasks_over(pieces, work, options.threads, executor) as tasks:
            options.progress("finding hosts", 0, pieces.pages, "pages")
            without_host = sum(tasks.run(find_sites, (level, suffixes)))
            names, unlisted = _merge(tasks)
            tasks.run(map_pages)
            options.progress("reading links", 0, pieces.links, "links")
            found = [MappedLinks(*one) for one in tasks.run(map_links)]
        runs = [array_file(work, f"run-{run}", piece) for piece, one in enumerate(found) for run in range(one.runs)]
        bounds = _bounds(runs, len(names), count)
        source = _Runs(runs, bounds, names)
        about = _provenance(pieces, level, without_host) | ({} if suffixes is None else _suffixes(suffixes, unlisted))
        dropped = sum(one.within for one in found), sum(one.merged for one in found)
        sizes = np.diff(bounds).tolist()
        made = write_pieces(folder, sizes, source, about, replace(options, dropped=dropped))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return CondensedPieces(made, level, pieces.pages, without_host, unlisted)


def find_sites(place: Place, level_and_suffixes: tuple[Level, Suffixes | None]) -> int:
    """Write the hosts or domains of the pages of a piece; return the number of pages without one."""
    names = place.piece.names
    assert names is not None  # noqa: S101  # checked by `condense_with`
    sites = SiteIndex(*level_and_suffixes)
    site_of = np.empty(place.piece.pages, np.int32)
    for first, some in blocks(names):
        site_of[first : first + len(some)] = sites.sites_of(some)
    found = sites.names()
    place.write("site", site_of)
    place.write("site-ends", found.offsets)
    place.write("site-text", found.blob)
    place.write("site-unlisted", sites.without_suffix)
    return int(np.count_nonzero(site_of < 0))


def _merge(tasks: Tasks) -> tuple[Names, int]:
    """Number the hosts or domains of all pieces; write the ids of those of each piece; return names and unlisted."""
    interner, ids, unlisted = Interner(), list[IdArray](), [np.empty(0, np.int64)]
    tables = zip(*(tasks.read(f"site-{name}") for name in ("ends", "text", "unlisted")), strict=True)
    for ends, text, alone in tables:
        spans = np.column_stack([ends[:-1], ends[1:]])
        ids.append(interner.intern(np.array(text), np.ascontiguousarray(spans)))
        unlisted.append(ids[-1][alone].astype(np.int64))
    names = interner.names()
    order = names.reversed_labels().order()
    new = np.empty(order.size, np.int32)
    new[order] = np.arange(order.size)
    for number, some in enumerate(ids):
        place = Place(tasks.pieces, number, tasks.work)
        place.write("site-id", new[some])
    return names.take(order), int(np.unique(np.concatenate(unlisted)).size)


def map_pages(place: Place, _: None) -> None:
    """Write, and send, the id of the host or domain of each page; -1 if it has none."""
    ids = np.append(place.read("site-id"), -1).astype(np.int32)
    site = ids[place.read("site")]
    place.write("page-site", site)
    place.send("page-site", site)


def map_links(place: Place, _: None) -> MappedLinks:
    """Write the links between hosts or domains in sorted runs."""
    site = np.concatenate([place.read("page-site"), place.received("page-site", np.int32)])
    waiting, size = list[KeyArray](), 0
    runs, within, lost, merged = 0, 0, 0, 0
    for sources, targets in place.piece.links():
        origin, goal = site[sources], site[targets]
        known = (origin >= 0) & (goal >= 0)
        across = np.flatnonzero(known & (origin != goal))
        lost += int(known.size - np.count_nonzero(known))
        within += int(np.count_nonzero(known)) - across.size
        waiting.append(goal[across].astype(np.uint64) << HALF | origin[across].astype(np.uint64))
        size += across.size
        if size >= RUN:
            merged += size - _write_run(place, runs, waiting)
            waiting, size, runs = [], 0, runs + 1
    if size:
        merged += size - _write_run(place, runs, waiting)
        runs += 1
    return MappedLinks(runs, within, lost, merged)


def _write_run(place: Place, run: int, keys: list[KeyArray]) -> int:
    """Sort links by target, without duplicates, and write them; return how many remain."""
    links = np.unique(np.concatenate(keys))
    place.write(f"run-{run}", links)
    return int(links.size)


def _bounds(runs: list[Path], sites: int, count: int) -> IntArray:
    """Return the ids at which new pieces begin, so that their work is similar."""
    work = np.zeros(sites, np.int64)
    for path in runs:
        keys: Any = map_npy(path)
        for start in range(0, keys.size, READ):
            targets = (keys[start : start + READ] >> HALF).astype(np.int64)
            low, high = int(targets[0]), int(targets[-1]) + 1
            work[low:high] += np.bincount(targets - low, minlength=high - low)
        let_go(keys, 0, keys.size)
    ends = np.cumsum(np.minimum(work, sites) + PER_PAGE)  # no host has more than one link from each
    marks = np.arange(1, count) * (float(ends[-1]) / count) if sites else np.zeros(count - 1)
    return np.concatenate([[0], np.searchsorted(ends, marks), [sites]]).astype(np.int64)


@dataclass(frozen=True, slots=True)
class _Runs:
    """Sorted runs of links, as `write_pieces` reads them."""

    runs: list[Path]
    bounds: IntArray
    table: Names

    def links(self, piece: int) -> Iterator[PieceLinks]:
        """Yield the links into a new piece."""
        first, last = self.bounds[piece : piece + 2].tolist()
        edges = np.array([first, last], np.uint64) << HALF
        for path in self.runs:
            keys: Any = map_npy(path)
            low, high = np.searchsorted(keys, edges).tolist()
            for start in range(low, high, READ):
                some = np.array(keys[start : min(start + READ, high)])
                sources: AnyIntArray = (some & LOW).astype(np.int64)
                owners = np.searchsorted(self.bounds, sources, "right") - 1
                yield PieceLinks((some >> HALF).astype(np.int64) - first, owners, sources - self.bounds[owners])
            let_go(keys, low, high)

    def names(self, piece: int) -> Names:
        """Return the names of the hosts or domains of a new piece."""
        return self.table.take(np.arange(*self.bounds[piece : piece + 2]))

    def numbers(self, _: int) -> None:
        """Ids are a count through all pieces."""
        return


def _provenance(pieces: Pieces, level: Level, without_host: int) -> dict[str, Any]:
    before = pieces.provenance
    about: dict[str, Any] = {name: before[name] for name in ("source", "synthetic", "rng", "notes") if name in before}
    about |= {"condensed_to": level, "names_without_host": without_host}
    return about | {"pages_read": pieces.pages, "links_read": pieces.links}


def _suffixes(suffixes: Suffixes, unlisted: int) -> dict[str, Any]:
    return {"suffixes": suffixes.about, "hosts_under_no_suffix": unlisted}
