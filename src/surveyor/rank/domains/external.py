"""Exact supporters and two-link paths of a graph larger than memory, in bounded memory.

The study loads a block of in-lists and scans the file again for each (F² / Ω reads of up to E[SUPP₂] / E[in] times F,
for a file of F bytes and Ω bytes of memory), or writes all pairs of a domain and a supporter to disk and merges them.
Here the *sources* are divided instead: supporters are counted over one block of consecutive domains at a time, with the
kernel that counts those of a sample (`streams.sample_counts`), and the counts of all blocks are added. So the links are
read once in total and the in-links once per block, about F / Ω times; nothing but the counts is written.

`streamed_paths` (QVS) needs the in-degree of every in-neighbour, in random order. Those of one block of domains are in
memory at a time, and the in-links are read once per block.

Both are equal to the results in memory, bit for bit: counts are integers, and sums of in-degrees are exact up to
2 ** 53.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surveyor.arrays import FloatArray, IntArray
from surveyor.errors import UsageError
from surveyor.graph.folder import describe, open_folder
from surveyor.graph.formats.streams import atomic_write
from surveyor.kernels.thread_pool import ThreadPool, cores
from surveyor.rank.domains.link_counts import Ids
from surveyor.rank.domains.reputation import DEFAULT_RESOURCES, Reputation, Resources
from surveyor.rank.domains.streams import (
    PIECE,
    ROWS,
    GraphStream,
    check_disk,
    check_ids,
    open_stream,
    pieces,
    sample_counts,
)

PER_LINK, PER_SOURCE = 32, 48  # bytes of a block of sources, while it is read
PER_DOMAIN = 0.6  # bytes in any case: which domains are relevant, and how many before them
PER_THREAD = 16 * PIECE + 8 * ROWS  # bytes of work buffers
SMALLEST_BLOCK = 1 << 20  # bytes
DEFAULT_MEMORY = 1 << 30


def streamed_exact_supporters(
    folder: str | Path, *, out: str | Path, resources: Resources = DEFAULT_RESOURCES
) -> Reputation:
    """Count the level-2 supporters of every domain of a graph folder; write the counts to `out`, a `.npy` file."""
    folder, out = Path(folder), Path(out)
    graph = open_folder(folder)  # verifies all files, in one additional pass
    room = _room(describe(folder)["pages"], resources)
    with open_stream(folder) as stream, _sums(out, stream.domains, np.dtype(np.int64)) as (add, passes):
        for sources in _blocks_of_sources(stream, room):
            add(sample_counts(stream, sources, resources), resources)
    return _result("supp", out, graph, {"depth": 2, "mode": "streamed", "passes": len(passes)})


def streamed_paths(folder: str | Path, *, out: str | Path, resources: Resources = DEFAULT_RESOURCES) -> Reputation:
    """Count the paths of two links that end at each domain of a graph folder; write them to `out`, a `.npy` file."""
    folder, out = Path(folder), Path(out)
    graph = open_folder(folder)
    room = _room(describe(folder)["pages"], resources)
    with open_stream(folder) as stream, _sums(out, stream.domains, np.dtype(np.float64)) as (add, passes):
        step = room // 16
        for start in range(0, stream.domains, step):
            ends = stream.in_rows[start : min(start + step, stream.domains) + 1]
            add(_weighted(stream, start, np.diff(ends).astype(np.float64), resources), resources)
    return _result("qvs", out, graph, {"mode": "streamed", "passes": len(passes)})


def _result(kind: str, out: Path, graph: Any, method: dict[str, Any]) -> Reputation:
    raw = np.load(out, mmap_mode="r") if graph.pages else np.load(out)
    return Reputation(kind, raw, in_indptr=graph.in_links.indptr, names=graph.names, method=method)


def least_memory(domains: int, threads: int | None) -> int:
    """Return the bytes that both need in any case."""
    return int(PER_DOMAIN * domains) + (2 + (threads or cores())) * PER_THREAD + SMALLEST_BLOCK


def _room(domains: int, resources: Resources) -> int:
    """Return the bytes for a block, within the memory limit."""
    memory, least = resources.memory or DEFAULT_MEMORY, least_memory(domains, resources.threads)
    if memory < least:
        raise UsageError(
            f"a stream over {domains:,} domains needs at least {least / 1e6:,.0f} MB, and memory is limited to "
            f"{memory / 1e6:,.0f} MB",
            hint="raise memory, or use fewer threads",
        )
    return memory - least + SMALLEST_BLOCK


def _blocks_of_sources(stream: GraphStream, room: int) -> Iterator[Ids]:
    """Yield the domains with links in consecutive blocks whose links fit in memory; one at least."""
    waiting, used = list[Ids](), 0
    for start in range(0, stream.domains, ROWS):
        degrees = np.diff(stream.rows[start : min(start + ROWS, stream.domains) + 1])
        sources = np.flatnonzero(degrees > 0)
        costs = np.cumsum(PER_SOURCE + PER_LINK * degrees[sources])
        ids, first = (sources + start).astype(np.uint32), 0
        while first < ids.size:
            before = int(costs[first - 1]) if first else 0
            last = int(np.searchsorted(costs, before + room - used, "right"))
            if last == first and not waiting:
                last += 1  # a domain with more links than fit
            if last > first:
                waiting.append(ids[first:last])
                used += int(costs[last - 1]) - before
                first = last
            if first < ids.size:
                yield np.concatenate(waiting)
                waiting, used = [], 0
    if waiting:
        yield np.concatenate(waiting)


def _weighted(stream: GraphStream, start: int, weights: FloatArray, resources: Resources) -> Iterator[FloatArray]:
    """Yield, in blocks, the sum of these weights over the in-links of every domain."""
    from surveyor.kernels.supporter_counts import add_weights

    def total(_first: int, ends: IntArray, piece: Ids) -> FloatArray:
        check_ids(piece.view(np.uint32), stream.domains)
        sums = np.empty(ends.size - 1)
        add_weights(ends, piece.view(np.uint32), start, weights, sums)
        return sums

    with ThreadPool(resources.threads) as pool:
        yield from pool.imap(total, pieces(stream.in_rows, stream.in_links))


@contextmanager
def _sums(out: Path, size: int, dtype: np.dtype[Any]) -> Iterator[tuple[Any, list[int]]]:
    """Yield a function that adds blocks of numbers to a new `.npy` file from start to end, and the passes made."""
    check_disk(out, dtype.itemsize * size)
    passes: list[int] = []
    with atomic_write(out) as draft, draft.open("w+b", buffering=0) as file:
        np.lib.format.write_array_header_1_0(file, {"descr": dtype.str, "fortran_order": False, "shape": (size,)})
        begin = file.tell()
        file.truncate(begin + dtype.itemsize * size)

        def add(blocks: Iterable[npt.NDArray[Any]], resources: Resources) -> None:
            file.seek(begin)
            done = 0
            for block in blocks:
                sums = block.astype(dtype)
                if passes:
                    before = np.empty(block.size, dtype)
                    _read_all(file, before.view(np.uint8).data)
                    sums += before
                    file.seek(-before.nbytes, 1)
                _write_all(file, sums.view(np.uint8).data)
                done += block.size
                resources.progress(f"pass {len(passes) + 1}", done, size, "domains")
            passes.append(done)

        yield add, passes


def _read_all(file: Any, room: memoryview) -> None:
    done = 0
    while done < room.nbytes and (read := file.readinto(room[done:])):
        done += read


def _write_all(file: Any, data: memoryview) -> None:
    done = 0
    while done < data.nbytes:
        done += file.write(data[done:])
