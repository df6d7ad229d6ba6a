"""Level-2 supporters over pieces: counted, or estimated from a sample (TSE), bit-identical to those of one graph.

Whether a page is in the sample is decided by a hash of its number, so each piece decides for its own pages. A part of
the sample, all pages with a hash in some range, is counted in four tasks:

1. each piece finds its pages in the part and returns how many they are;
2. it numbers them after those of the pieces before it, and sends the numbers;
3. it lists for each of its pages the sampled pages that link to it, and sends the lists;
4. it counts for each of its pages the sampled pages that link to a page that links to it, but not to it, and are not
   it: the kernel of graphs that are read as a stream.

A list is sent to each piece where its page is a ghost. The parts are so small that the lists of a piece fit in memory,
and their counts are added. The exact count is that of a sample with p = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from surveyor.arrays import IdArray, IntArray
from surveyor.graph.pieces.tasks import Place, Tasks
from surveyor.rank.domains.link_counts import Ids
from surveyor.rank.domains.streams import PIECE, sieve_of
from surveyor.rank.domains.tse import hash_threshold, sample_seed
from surveyor.stopping import ProgressCallback, silent

BYTES_PER_ENTRY = 24  # of a list, while it is assembled
SAMPLE_MEMORY = 1 << 30  # bytes of the lists of a piece


class Part(NamedTuple):
    """A part of a sample: the pages whose hash is in a range."""

    seed: int
    first: int
    last: int  # exclusive
    number: int  # of the part, from 0


class Numbered(NamedTuple):
    """A part of a sample whose pages are numbered."""

    part: Part
    before: tuple[int, ...]  # pages of the part in earlier pieces; the last entry is the number of all


@dataclass(slots=True)
class PieceSample:
    """Counts over the pages whose hash is below p, in all pieces; the sample can grow."""

    tasks: Tasks
    name: str  # of the array of counts: "tse" or "supp"
    rng: int
    memory: int | None = None  # bytes of the lists of a piece
    progress: ProgressCallback = silent
    p: float = 0.0
    sampled: int = 0  # pages in the sample
    parts: int = 0

    def start(self) -> int:
        """Set all counts to 0; return the entries that the lists of all pages have, in the largest piece."""
        self.tasks.run(zero_counts, counts_name(0))
        return max(self.tasks.run(list_sizes), default=0)

    def grow(self, p: float, entries: int) -> None:
        """Count over the pages that a larger sample adds."""
        first, last = hash_threshold(self.p), hash_threshold(p)
        room = max(1, (self.memory or SAMPLE_MEMORY) // BYTES_PER_ENTRY)
        count = max(1, math.ceil((last - first) / 2**64 * entries / room))
        marks = [first + (last - first) * step // count for step in range(count + 1)]
        for step in range(count):
            self.progress("counting supporters", step, count, "parts of the sample")
            if marks[step] < marks[step + 1]:
                self._count(marks[step], marks[step + 1])
        self.p = p

    def _count(self, first: int, last: int) -> None:
        tasks, part = self.tasks, Part(int(sample_seed(self.rng)), first, last, self.parts)
        found = tasks.run(find_sample, part)
        before = (0, *np.cumsum(found, dtype=np.int64).tolist())
        numbered = Numbered(part, before)
        for task in (send_numbers, send_lists, add_counts):
            tasks.run(task, numbered)
        tasks.drop(counts_name(self.parts), "sample", "sample-number", *LISTS)
        self.sampled, self.parts = self.sampled + before[-1], self.parts + 1

    def score_at(self, rank: int) -> float:
        """Return the estimate of the page at this rank; 0 if there are fewer."""
        best = np.sort(np.concatenate(self.tasks.run(largest_counts, (counts_name(self.parts), rank))))
        return float(best[-rank]) / self.p if 0 < rank <= best.size else 0.0

    def finish(self, kind: npt.DTypeLike) -> None:
        """Write the counts under the name of the score."""
        self.tasks.run(convert_counts, (counts_name(self.parts), self.name, np.dtype(kind).str))
        self.tasks.drop(counts_name(self.parts))


LISTS = ("list-size", "list-own", "list-sent", "list-start")


def counts_name(parts: int) -> str:
    """Return the name of the counts after so many parts."""
    return f"counts-{parts}"


def zero_counts(place: Place, name: str) -> None:
    """Write counts of 0, and send the in-degrees."""
    place.write(name, np.zeros(place.piece.pages, np.int64))
    place.send("in-degree", np.diff(place.piece.indptr))


def list_sizes(place: Place, _: None) -> int:
    """Return the in-links of all pages and ghosts of a piece."""
    return place.piece.counts.links + int(place.received("in-degree", np.int64).sum())


def find_sample(place: Place, part: Part) -> int:
    """Write the pages of a piece that are in a part of the sample; return how many they are."""
    from surveyor.kernels.supporter_counts import sample_numbered

    found = np.empty(place.piece.pages, np.int32)
    with np.errstate(over="ignore"):  # hashes wrap on purpose; only uncompiled kernels would warn
        count = sample_numbered(
            place.numbers, np.uint64(part.seed), np.uint64(part.first), np.uint64(part.last - 1), found
        )
    place.write("sample", found[:count])
    return int(count)


def send_numbers(place: Place, numbered: Numbered) -> None:
    """Send the number in the sample of each page, -1 if it is not sampled."""
    place.send("sample-number", _own_numbers(place, numbered))


def _own_numbers(place: Place, numbered: Numbered) -> IdArray:
    own = np.full(place.piece.pages, -1, np.int32)
    sample = place.read("sample")
    own[sample] = numbered.before[place.number] + np.arange(sample.size)
    return own


def _all_numbers(place: Place, numbered: Numbered) -> IdArray:
    ghosts = place.received("sample-number", np.int32).astype(np.int32)
    return np.concatenate([_own_numbers(place, numbered), ghosts])


def send_lists(place: Place, numbered: Numbered) -> None:
    """Write, and send, for each page the sampled pages that link to it."""
    piece, numbers = place.piece, _all_numbers(place, numbered)
    sizes, entries = np.zeros(piece.pages, np.int64), [np.empty(0, np.uint32)]
    for sources, targets in piece.links():
        found = numbers[sources]
        hits = np.flatnonzero(found >= 0)
        entries.append(found[hits].astype(np.uint32))
        if hits.size:
            low, high = int(targets[hits[0]]), int(targets[hits[-1]]) + 1
            sizes[low:high] += np.bincount(targets[hits] - low, minlength=high - low)
    own = np.concatenate(entries)
    place.write("list-size", sizes)
    place.write("list-own", own)
    place.send("list-size", sizes)
    ends = np.cumsum(sizes)
    sent = sizes[piece.sends]
    place.write("list-sent", own[_ranges(ends[piece.sends] - sent, sent)])
    starts = np.concatenate([[0], np.cumsum(sent)])
    place.write("list-start", starts[piece.send_starts].astype(np.int64))


def _ranges(starts: IntArray, sizes: IntArray) -> IntArray:
    """Return the positions of ranges that start there and have these sizes, one after another."""
    before = np.cumsum(sizes) - sizes
    places: IntArray = np.arange(int(sizes.sum())) + np.repeat(starts - before, sizes)
    return places


def add_counts(place: Place, numbered: Numbered) -> None:
    """Add the sampled supporters of each page to its count."""
    from surveyor.kernels.supporter_counts import SampledLinks, count_bits, count_level_two, set_bits

    piece, numbers = place.piece, _all_numbers(place, numbered)
    sizes = np.concatenate([place.read("list-size"), place.received("list-size", np.int64)])
    relevant = np.flatnonzero((sizes > 0) | (numbers >= 0)).astype(np.uint32)
    bits = np.zeros(sizes.size // 64 + 1, np.uint64)
    before: Ids = np.empty(bits.size, np.uint32)
    set_bits(relevant, bits)
    count_bits(bits, before)
    first = np.concatenate([[0], np.cumsum(sizes[relevant])]).astype(np.int64)
    sieve = sieve_of(bits, relevant.size, (relevant,))
    linked = SampledLinks(bits, before, first, numbers[relevant], _received_lists(place), *sieve)
    counts = np.array(place.read(counts_name(numbered.part.number)))
    seen: Ids = np.zeros(max(numbered.before[-1], 1), np.uint32)
    for low, high in row_blocks(piece.indptr):
        ends: IntArray = np.array(piece.indptr[low : high + 1])
        links = np.array(piece.indices[ends[0] : ends[-1]]).view(np.uint32)
        found: Ids = np.empty(high - low, np.uint32)
        count_level_two(linked, low, ends, links, seen, np.empty(links.size + 1, np.uint32), found)
        counts[low:high] += found
    place.write(counts_name(numbered.part.number + 1), counts)


def _received_lists(place: Place) -> Ids:
    """Return the lists of all pages and ghosts, one after another."""
    parts = [np.asarray(place.read("list-own"))]
    for other, _ in place.spans:
        low, high = place.read("list-start", other)[place.number : place.number + 2].tolist()
        parts.append(np.asarray(place.read("list-sent", other)[low:high]))
    return np.concatenate(parts)


def row_blocks(indptr: IntArray) -> list[tuple[int, int]]:
    """Divide rows into blocks of about `PIECE` links, or one row if it is longer."""
    blocks, low = [], 0
    while low < indptr.size - 1:
        high = max(low + 1, int(np.searchsorted(indptr, indptr[low] + PIECE, "right")) - 1)
        blocks.append((low, high))
        low = high
    return blocks


def largest_counts(place: Place, name_and_rank: tuple[str, int]) -> IntArray:
    """Return the largest positive counts of a piece, at most so many."""
    name, rank = name_and_rank
    counts = place.read(name)
    counts = np.array(counts[counts > 0])
    best: IntArray = np.partition(counts, -rank)[-rank:] if 0 < rank < counts.size else counts
    return best


def convert_counts(place: Place, names_and_type: tuple[str, str, str]) -> None:
    """Write the counts under another name, as numbers of a type."""
    before, after, kind = names_and_type
    place.write(after, place.read(before).astype(kind))
