"""Build a graph from any stream of links, in bounded memory and on all cores.

Links arrive in batches and become 64-bit keys (`kernels/edge_lists.py`). Full runs of keys are sorted in the
background while the next batch is read. When the runs exceed the memory limit they are merged into one
file of sorted keys. At the end all runs are merged range by range, each range cut at a page boundary, so
that ranges are independent: gather, sort, drop duplicates, write. Input that is already sorted is not
sorted again. Cost: O(links · log(run)) time, O(memory) space, two sequential passes over the disk.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from surveyor.arrays import MAX_PAGES, AnyIntArray, IdArray, IntArray, KeyArray
from surveyor.errors import InputError, UsageError
from surveyor.graph.csr import Graph, Rows
from surveyor.graph.names import Names
from surveyor.kernels.thread_pool import ThreadPool
from surveyor.stopping import ProgressCallback, silent

RUN = 1 << 20  # keys sorted at a time: 8 MB, so that the runs of all cores fit their caches
Write = Callable[[IdArray], None]


class Builder:
    """Collects links and builds a graph of them; use it in a `with` statement."""

    def __init__(
        self,
        *,
        expected_links: int = 0,
        memory: int | None = 1 << 30,
        scratch: str | Path | None = None,
        threads: int | None = None,
    ) -> None:
        """Use about `memory` bytes for keys (None: no limit); spill the rest to the scratch folder."""
        self._pool = ThreadPool(threads)
        self._run = RUN if memory is None else max(1 << 10, min(RUN, memory // 64))
        if expected_links:
            self._run = max(
                1 << 10, expected_links // 64, min(self._run, expected_links // (2 * self._pool.threads) + 1)
            )
        self._memory = memory
        self._scratch = scratch
        self._spill_folder: tempfile.TemporaryDirectory[str] | None = None
        self._buffer: KeyArray = np.empty(self._run, np.uint64)
        self._used = 0
        self._sorting: list[Future[KeyArray]] = []
        self._spilled: list[KeyArray] = []
        self._new_ids: IdArray = np.empty(0, np.int32)
        self.links_seen = 0
        self.self_links = 0
        self.largest = -1

    def __enter__(self) -> Builder:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.__exit__()
        self._sorting, self._spilled = [], []
        if self._spill_folder:
            self._spill_folder.cleanup()

    def add(self, sources: AnyIntArray, targets: AnyIntArray) -> None:
        """Add links given as page ids."""
        from surveyor.kernels.edge_lists import pack

        if len(sources) != len(targets):
            raise UsageError(
                f"{len(sources):,} sources but {len(targets):,} targets", hint="pass one source and one target per link"
            )
        for array in (sources, targets):
            if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
                what = f"page ids must be a one-dimensional array of integers, got {array.dtype} of shape {array.shape}"
                raise UsageError(what, hint="for names use Graph.from_edges")
        sources, targets = (array.astype(array.dtype.newbyteorder("="), copy=False) for array in (sources, targets))
        done = 0
        while done < len(sources):
            room = min(len(sources) - done, self._buffer.size - self._used)
            part = sources[done : done + room], targets[done : done + room]
            selves, largest = pack(*part, self._buffer[self._used :])
            if largest >= MAX_PAGES:
                _reject(*part, self.links_seen + done)
            self.largest = max(self.largest, int(largest))
            self.self_links += int(selves)
            self._used += room
            done += room
            if self._used == self._buffer.size:
                self._close_run()
        self.links_seen += len(sources)

    def rename(self, new_ids: IdArray) -> None:
        """Give page p the id new_ids[p] in the graph; new ids must increase with the old. Call it last."""
        self._new_ids = new_ids
        self.largest = int(new_ids[self.largest]) if self.largest >= 0 else -1

    def finish(
        self,
        nodes: int | None = None,
        names: Names | None = None,
        *,
        write: Write | None = None,
        progress: ProgressCallback = silent,
    ) -> Graph:
        """Merge all runs into a graph; with `write`, targets are written there and the graph holds none."""
        pages = self.largest + 1 if nodes is None else nodes
        if self.largest >= pages:
            raise InputError(
                f"a link has page id {self.largest:,}, but the graph has {pages:,} pages",
                hint="page ids start at 0; pass the right number of pages, or omit it",
            )
        self._close_run()
        runs = self._spilled + [run.result() for run in self._sorting]
        self._sorting = []
        total = sum(run.size for run in runs)
        degrees = np.zeros(pages, np.int64)
        targets = np.empty(total if write is None else 0, np.int32)
        links = 0
        for chunk in self._merge(runs, degrees):
            if write is None:
                targets[links : links + chunk.size] = chunk
            else:
                write(chunk)
            links += chunk.size
            progress("merging", links, total, "links")
        indptr = np.zeros(pages + 1, np.int64)
        np.cumsum(degrees, out=indptr[1:])
        if links < 0.9 * targets.size:
            targets = targets[:links].copy()
        provenance = {
            "links_read": self.links_seen,
            "self_links_dropped": self.self_links,
            "repeats_merged": self.links_seen - self.self_links - links,
        }
        return Graph(indptr, targets[:links], names=names, provenance=provenance)

    def _close_run(self) -> None:
        if not self._used:
            return
        self._sorting.append(self._pool.submit(_sorted_run, self._buffer[: self._used]))
        self._buffer, self._used = np.empty(self._run, np.uint64), 0
        if self._memory is not None and len(self._sorting) * self._run * 8 > self._memory // 2:
            self._spill()

    def _spill(self) -> None:
        runs = [run.result() for run in self._sorting]
        self._sorting = []
        if self._spill_folder is None:
            self._spill_folder = tempfile.TemporaryDirectory(prefix="surveyor-", dir=self._scratch)
        path = Path(self._spill_folder.name) / f"run{len(self._spilled)}.keys"
        with path.open("wb") as file:
            for keys in self._merge(runs, None):
                file.write(keys.data)
        self._spilled.append(np.memmap(path, np.uint64, "r"))

    def _merge(self, runs: list[KeyArray], degrees: IntArray | None) -> Iterator[Any]:
        """Yield the sorted distinct keys of all runs, or their targets while counting degrees."""
        bounds = _cuts(runs, max(1 << 10, self._run // 4))
        found = [(run, np.searchsorted(run, bounds)) for run in runs]
        pieces = (
            ([run[at[step] : at[step + 1]] for run, at in found if at[step] < at[step + 1]], degrees, self._new_ids)
            for step in range(bounds.size - 1)
        )
        return self._pool.imap(_merged, pieces)


def sorted_rows(sources: AnyIntArray, targets: AnyIntArray, nodes: int | None) -> Rows | None:
    """Return links as rows without sorting if they are already sorted, distinct and valid; otherwise None."""
    from surveyor.kernels.edge_lists import is_clean, row_starts

    fit = sources.ndim == 1 and sources.shape == targets.shape and sources.size > 0
    if not (fit and sources.dtype == targets.dtype and sources.dtype in (np.int32, np.int64)):
        return None
    pages = MAX_PAGES if nodes is None else min(nodes, MAX_PAGES)
    if not is_clean(sources, targets, pages):
        return None
    indptr = np.empty((int(max(sources[-1], targets.max())) if nodes is None else nodes - 1) + 2, np.int64)
    row_starts(sources, indptr)
    return Rows(indptr, targets.astype(np.int32))


def transpose(
    indptr: IntArray,
    indices: IdArray,
    *,
    write: Write | None = None,
    at_once: int = 1 << 27,
    threads: int | None = None,
) -> Rows:
    """Transpose rows; with `write`, rows are written there, with `at_once` links in memory at a time."""
    from surveyor.kernels.edge_lists import count_range, transpose_range

    pages = indptr.size - 1
    into = np.zeros(pages + 1, np.int64)
    with ThreadPool(threads) as pool:
        even = [pages * step // pool.threads for step in range(pool.threads + 1)]
        ranges = list(pairwise(even))
        list(pool.imap(count_range, [(indices, a, b, into[1 + a : 1 + b]) for a, b in ranges]))
        np.cumsum(into, out=into)
        share = max(1, (at_once if write else indices.size) // pool.threads)
        cursor = into[:-1].astype(np.uint64)
        whole = np.empty(0 if write else indices.size, np.int32)

        def turn(first: int, last: int) -> IdArray:
            start = into[first]
            out = np.empty(into[last] - start, np.int32) if write else whole[start : into[last]]
            cursor[first:last] -= np.uint64(start)
            transpose_range(indptr, indices, first, last, cursor[first:last], out)
            return out

        for rows in pool.imap(turn, _row_ranges(into, share)):
            if write:
                write(rows)
    return Rows(into, whole)


def _row_ranges(indptr: IntArray, share: int) -> list[tuple[int, int]]:
    """Split the rows into ranges of about `share` links each."""
    pages = indptr.size - 1
    marks = np.arange(share, max(int(indptr[-1]), 1), share)
    cuts = np.unique(np.concatenate([[0], np.searchsorted(indptr, marks), [pages]]))
    return [(int(a), int(b)) for a, b in pairwise(cuts)]


def _reject(sources: AnyIntArray, targets: AnyIntArray, before: int) -> NoReturn:
    """Raise an error that names the link whose id is out of range."""
    bad = (sources < 0) | (targets < 0) | (sources >= MAX_PAGES) | (targets >= MAX_PAGES)
    at = int(np.argmax(bad))
    raise InputError(
        f"link {before + at:,} is {sources[at]} -> {targets[at]}, but page ids must be from 0 to {MAX_PAGES - 1:,}",
        hint="pass other ids as text, as names of pages",
    )


def _sorted_run(keys: KeyArray) -> KeyArray:
    from surveyor.kernels.edge_lists import is_sorted

    if not is_sorted(keys):
        keys.sort()
    return keys


def _merged(pieces: list[KeyArray], degrees: IntArray | None, new_ids: IdArray) -> KeyArray | IdArray:
    """Merge sorted pieces of the same key range; return distinct keys, or targets while counting degrees."""
    from surveyor.kernels.edge_lists import drop_duplicates, unpack

    keys = pieces[0] if len(pieces) == 1 else _sorted_run(np.concatenate([np.empty(0, np.uint64), *pieces]))
    if degrees is None:
        keys = np.array(keys)
        return keys[: drop_duplicates(keys)]
    targets = np.empty(keys.size, np.int32)
    return targets[: unpack(keys, new_ids, degrees, targets)]


def _cuts(runs: list[KeyArray], size: int) -> KeyArray:
    """Choose keys that split all runs into ranges of about `size` keys, each starting at the first key of a page."""
    total = sum(run.size for run in runs)
    step = max(1, size // 64)
    sample = np.sort(np.concatenate([run[::step] for run in runs])) if runs else np.empty(0, np.uint64)
    inner = sample[:: max(1, -(-sample.size * size // max(total, 1)))][1:]
    low = np.uint64(0xFFFFFFFF)
    return np.unique(np.concatenate([np.zeros(1, np.uint64), inner & ~low, np.full(1, ~np.uint64(0))]))
