"""A graph folder read as a stream: its files from start to end, in pieces, and never mapped.

What was read does not stay in the memory of the process. `sample_counts` counts the sampled supporters at level 2 of
every domain in two passes: one over the links, keeping those of the sample, one over the in-links.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from surveyor.arrays import IdArray, IntArray
from surveyor.errors import GraphError, UsageError
from surveyor.kernels.thread_pool import ThreadPool
from surveyor.rank.domains.link_counts import Ids
from surveyor.rank.domains.reputation import Resources

if TYPE_CHECKING:
    from surveyor.kernels.supporter_counts import SampledLinks

ROWS = 1 << 18  # domains whose row ends are read at a time
PIECE = 1 << 20  # links counted at a time, or one row if it is longer
SIEVE_BITS = 32  # for each relevant domain: one link in this many is checked twice
SPARSE = 1 << 17  # bytes between two lists from which seeking is faster than reading


class Column:
    """One array of a graph folder, read in pieces and never memory-mapped."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)
        version = np.lib.format.read_magic(self._file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        (self.size,), _, self.dtype = read(self._file)
        self._start = self._file.seek(0, os.SEEK_CUR)
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)

    def __enter__(self) -> Column:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def __getitem__(self, part: slice) -> npt.NDArray[Any]:
        """Read the entries from part.start up to part.stop."""
        out: npt.NDArray[Any] = np.empty(part.stop - part.start, self.dtype)
        self._file.seek(self._start + part.start * self.dtype.itemsize)
        done, room = 0, out.view(np.uint8).data
        while done < room.nbytes:
            read = self._file.readinto(room[done:])
            if not read:
                raise GraphError(
                    f"{self._file.name} ends before entry {part.stop:,}", hint="the graph is truncated: build it again"
                )
            done += read
        return out


class GraphStream(NamedTuple):
    """The four files of a graph folder: ends of rows and links, in both directions."""

    rows: Column
    links: Column
    in_rows: Column
    in_links: Column

    @property
    def domains(self) -> int:
        """The number of domains."""
        return self.rows.size - 1


@contextmanager
def open_stream(folder: Path) -> Iterator[GraphStream]:
    """Open the files of a graph folder."""
    names = ("indptr.npy", "indices.npy", "in_indptr.npy", "in_indices.npy")
    with ExitStack() as stack:
        yield GraphStream(*(stack.enter_context(Column(folder / name)) for name in names))


def sample_counts(stream: GraphStream, sample: Ids, resources: Resources) -> Iterator[Ids]:
    """Yield the number of sampled supporters at level 2 of every domain, in blocks of consecutive domains."""
    from surveyor.kernels.supporter_counts import count_level_two

    domains = stream.domains
    linked = _links_of_sample(sample, stream.rows, stream.links, resources)
    with ThreadPool(resources.threads) as pool:
        free: SimpleQueue[Ids] = SimpleQueue()
        for _ in range(pool.threads + 1):
            free.put(np.zeros(max(sample.size, 1), np.uint32))

        def count(start: int, ends: IntArray, piece: IdArray) -> Ids:
            check_ids(piece.view(np.uint32), domains)
            seen, counts = free.get(), np.empty(ends.size - 1, np.uint32)
            hits = np.empty(piece.size + 1, np.uint32)
            count_level_two(linked, start, ends, piece.view(np.uint32), seen, hits, counts)
            free.put(seen)
            return counts

        yield from pool.imap(count, pieces(stream.in_rows, stream.in_links))


def _links_of_sample(sample: Ids, rows: Column, links: Column, resources: Resources) -> SampledLinks:
    """Read the links of the sampled domains and transpose them."""
    from surveyor.kernels.supporter_counts import SampledLinks, bit_ranks, count_bits, counting_sort, set_bits

    domains = rows.size - 1
    numbers: list[Ids] = []
    targets: list[Ids] = []
    for start, ends, among in _sampled_rows(sample, rows, links.size):
        here = sample[among].astype(np.int64) - start
        ranges = [(int(ends[row]), int(ends[row + 1])) for row in here.tolist()]
        targets += _read_ranges(links, ranges)
        degrees = np.diff(ends)[here]
        numbers.append(np.repeat(np.arange(among.start, among.stop, dtype=np.uint32), degrees))
        resources.progress("reading the sample", start, domains, "domains")
    goals = np.concatenate([np.empty(0, np.uint32), *targets])
    owners = np.concatenate([np.empty(0, np.uint32), *numbers])
    del numbers, targets
    bits = np.zeros(domains // 64 + 1, np.uint64)
    before = np.empty(bits.size, np.uint32)
    check_ids(goals, domains)
    set_bits(goals, bits)
    set_bits(sample, bits)
    matter = count_bits(bits, before)
    sieve, factor, shift = sieve_of(bits, int(matter), (goals, sample))
    bit_ranks(goals, bits, before, goals)
    first, sampled = np.zeros(matter + 1, np.int64), np.empty_like(owners)
    counting_sort(goals, owners, first, sampled)
    own = np.full(matter, -1, np.int32)
    bit_ranks(sample, bits, before, home := np.empty_like(sample))
    own[home] = np.arange(sample.size, dtype=np.int32)
    return SampledLinks(bits, before, first, own, sampled, sieve, factor, shift)


def sieve_of(bits: Any, matter: int, nodes: tuple[Ids, ...]) -> tuple[Any, Any, Any]:
    """Return a bitmap with all relevant domains, smaller where they are few, and its hash: factor and shift."""
    from surveyor.kernels.supporter_counts import fill_sieve

    size = max((SIEVE_BITS * matter).bit_length(), 15)
    if size >= bits.size.bit_length() + 5:
        return bits, np.uint32(1), np.uint32(0)
    sieve, factor, shift = np.zeros(1 << (size - 6), np.uint64), np.uint32(0x9E3779B1), np.uint32(32 - size)
    for some in nodes:
        fill_sieve(some, sieve, factor, shift)
    return sieve, factor, shift


def _sampled_rows(sample: Ids, rows: Column, size: int) -> Iterator[tuple[int, IntArray, slice]]:
    """Yield the row ends of blocks of domains, and the part of the sample that is among them."""
    for start in range(0, rows.size - 1, ROWS):
        last = min(start + ROWS, rows.size - 1)
        first, end = np.searchsorted(sample, [start, last]).tolist()
        if first < end:
            ends = rows[start : last + 1]
            _check_ends(ends, size)
            yield start, ends, slice(first, end)


def _read_ranges(links: Column, ranges: list[tuple[int, int]]) -> Iterator[Ids]:
    """Yield the links in these ascending ranges; gaps are skipped, or read where that is faster."""
    run: list[tuple[int, int]] = []
    for first, last in ranges:
        if run and 4 * (first - run[-1][1]) > SPARSE:
            yield from _read_run(links, run)
            run = []
        run.append((first, last))
    yield from _read_run(links, run)


def _read_run(links: Column, run: list[tuple[int, int]]) -> Iterator[Ids]:
    if run:
        base = run[0][0]
        read = links[base : run[-1][1]].view(np.uint32)
        yield from (read[first - base : last - base].copy() for first, last in run)


def pieces(rows: Column, links: Column) -> Iterator[tuple[int, IntArray, IdArray]]:
    """Yield all rows in blocks: the first domain, the ends of its rows, and their links."""
    for start in range(0, rows.size - 1, ROWS):
        ends = rows[start : min(start + ROWS, rows.size - 1) + 1]
        _check_ends(ends, links.size)
        row = 0
        while row < ends.size - 1:
            last = max(row + 1, int(np.searchsorted(ends, ends[row] + PIECE, side="right")) - 1)
            yield start + row, ends[row : last + 1], links[int(ends[row]) : int(ends[last])]
            row = last


def check_ids(ids: Ids, domains: int) -> None:
    """Reject links with invalid ids: kernels do not check them, and the files were not read before."""
    if ids.size and int(ids.max()) >= domains:
        raise GraphError(
            f"the graph holds a link to id {int(ids.max()):,} of {domains:,} domains",
            hint="it is corrupt: build it again",
        )


def _check_ends(ends: IntArray, links: int) -> None:
    if int(ends[0]) < 0 or int(ends[-1]) > links or not bool((ends[1:] >= ends[:-1]).all()):
        raise GraphError("the rows of the graph are not ascending", hint="it is corrupt: build it again")


def check_disk(out: Path, size: int) -> None:
    """Reject a file of counts that does not fit on the disk."""
    free = shutil.disk_usage(out.parent if out.parent.is_dir() else Path.cwd()).free
    if size > free:
        raise UsageError(
            f"the counts need {size / 1e6:,.0f} MB, and the disk of {out.parent} has {free / 1e6:,.0f} MB free",
            hint="free some space, or choose another folder",
        )
