"""Supporters: domains at an exact distance, by breadth-first search of a few levels or from a stream of in-links.

`count_supporters` searches backwards from each domain and counts those exactly `depth` links away. `credit_supported`
searches forwards from each sampled domain and adds one to every domain exactly `depth` links away: summed over the
sample, an estimate of the same counts. Both mark visited domains with the number of the search, so that nothing has to
be cleared between searches. The last level is counted, never stored. Indices are unsigned, which avoids the check for
negative indices.

`count_level_two` counts sampled supporters from a stream of in-links. It keeps in memory: which domains are relevant (a
bit each: sampled, or linked to by a sampled domain), the number of bits before each word, so that a relevant domain is
found by its rank, and for each of those the sampled domains that link to it. All links are read once, in order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from surveyor.arrays import FloatArray, IdArray, IntArray, KeyArray
from surveyor.kernels._jit import kernel
from surveyor.kernels.hash_random import random_bits
from surveyor.kernels.sketches import Adjacency, count_ones

Ids = npt.NDArray[np.uint32]
ONE, WORD, REST = np.uint64(1), np.uint64(6), np.uint64(63)
SAMPLE_STREAM = 41  # the stream of random numbers of samples


@kernel
def sample_domains(first: int, last: int, seed: np.uint64, least: np.uint64, most: np.uint64, out: Ids) -> int:
    """Write the domains of range(first, last) whose hash is from `least` to `most`, ascending; return their number.

    A sample with a higher `most` contains that with a lower one; samples of disjoint ranges of hashes are disjoint.
    """
    found = 0
    for node in range(np.uint64(first), np.uint64(last)):
        value = random_bits(seed, node, SAMPLE_STREAM)
        if least <= value <= most:
            out[found] = node
            found += 1
    return found


@kernel
def sample_numbered(numbers: IntArray, seed: np.uint64, least: np.uint64, most: np.uint64, out: IdArray) -> int:
    """Write the places of the numbers whose hash is from `least` to `most`, ascending; return how many they are."""
    found = 0
    for place in range(numbers.size):
        if least <= random_bits(seed, numbers[place], SAMPLE_STREAM) <= most:
            out[found] = place
            found += 1
    return found


@kernel
def _within(
    links: Adjacency, start: np.uint64, levels: int, stamp: np.uint32, seen: Ids, queue: Ids
) -> tuple[int, int]:
    """Mark all domains within `levels` links of a domain; return the range of the outermost level in the queue."""
    indptr, indices = links.indptr, links.indices
    queue[0] = start
    seen[start] = stamp
    first, last = np.uint64(0), ONE
    for _ in range(levels):
        end = last
        for place in range(first, last):
            node = queue[place]
            for link in range(indptr[node], indptr[np.uint64(node) + ONE]):
                other = indices[link]
                if seen[other] != stamp:
                    seen[other] = stamp
                    queue[end] = other
                    end += ONE
        first, last = last, end
    return first, last  # type: ignore[return-value]  # uint64


@kernel
def count_supporters(
    links: Adjacency, nodes: Ids, depth: int, stamp: int, seen: Ids, queue: Ids, counts: IntArray
) -> None:
    """Count, for each domain, the domains exactly `depth` links away."""
    indptr, indices = links.indptr, links.indices
    for place in range(nodes.size):
        mark = np.uint32(stamp + place)
        first, last = _within(links, np.uint64(nodes[place]), depth - 1, mark, seen, queue)
        found = 0
        for step in range(first, last):
            node = np.uint64(queue[step])
            for link in range(indptr[node], indptr[node + ONE]):
                other = indices[link]
                if seen[other] != mark:
                    seen[other] = mark
                    found += 1
        counts[place] = found


@kernel
def credit_supported(links: Adjacency, nodes: Ids, depth: int, stamp: int, seen: Ids, queue: Ids, counts: Ids) -> int:
    """Add one to every domain exactly `depth` links from each of `nodes`; return the links followed."""
    indptr, indices = links.indptr, links.indices
    followed = 0
    for place in range(nodes.size):
        mark = np.uint32(stamp + place)
        first, last = _within(links, np.uint64(nodes[place]), depth - 1, mark, seen, queue)
        for step in range(first, last):
            node = np.uint64(queue[step])
            begin, end = indptr[node], indptr[node + ONE]
            followed += end - begin
            for link in range(begin, end):
                other = indices[link]
                if seen[other] != mark:
                    seen[other] = mark
                    counts[other] += np.uint32(1)
    return followed


@kernel
def count_paths(links: Adjacency, nodes: Ids, counts: IntArray) -> None:
    """Count the paths of two links that start at each of these domains."""
    indptr, indices = links.indptr, links.indices
    for place in range(nodes.size):
        node = np.uint64(nodes[place])
        total = np.uint64(0)
        for link in range(indptr[node], indptr[node + ONE]):
            other = np.uint64(indices[link])
            total += indptr[other + ONE] - indptr[other]
        counts[place] = total


@kernel
def domains_at_depth(links: Adjacency, node: int, depth: int, stamp: int, seen: Ids, queue: Ids) -> tuple[int, int]:
    """Find the domains exactly `depth` links from a domain; return their range in the queue."""
    return _within(links, np.uint64(node), depth, np.uint32(stamp), seen, queue)


@kernel
def sum_in_neighbours(links: Adjacency, weights: FloatArray, first: int, last: int, sums: FloatArray) -> None:
    """Sum a weight over the in-neighbours of each domain of a block, in a fixed order."""
    indptr, indices = links.indptr, links.indices
    for node in range(np.uint64(first), np.uint64(last)):
        total = 0.0
        for link in range(indptr[node], indptr[node + ONE]):
            total += weights[indices[link]]
        sums[node] = total


@kernel
def sum_in_order(links: Adjacency, ranks: IdArray, weights: FloatArray, sums: FloatArray) -> None:
    """Sum a weight over the in-neighbours of each domain, in the order of their ranks, by which weights are given."""
    indptr, indices = links.indptr, links.indices
    for node in range(np.uint64(sums.size)):
        first, last = indptr[node], indptr[node + ONE]
        row = np.empty(last - first, np.int32)
        for place in range(row.size):
            row[place] = ranks[indices[first + np.uint64(place)]]
        row.sort()
        total = 0.0
        for place in range(row.size):
            total += weights[row[place]]
        sums[node] = total


class SampledLinks(NamedTuple):
    """The transposed sample: from each relevant domain to the sampled domains that link to it."""

    bits: KeyArray  # which domains are relevant, 64 to a word
    before: Ids  # number of bits set before each word
    first: IntArray  # start of the list of each relevant domain, by rank
    own: IdArray  # the number in the sample of each relevant domain, or -1
    sampled: Ids  # the lists: numbers in the sample
    sieve: KeyArray  # a smaller bit set, at `id * factor >> shift`: all relevant domains and false positives
    factor: np.uint32
    shift: np.uint32


@kernel
def set_bits(nodes: Ids, bits: KeyArray) -> None:
    """Set the bits of domains."""
    for place in range(nodes.size):
        node = np.uint64(nodes[place])
        bits[node >> WORD] |= ONE << (node & REST)


@kernel
def count_bits(bits: KeyArray, before: Ids) -> int:
    """Count the set bits before each word; return their total."""
    total = np.uint64(0)
    for word in range(bits.size):
        before[word] = total
        total += count_ones(bits[word])
    return total  # type: ignore[return-value]  # uint64


@kernel
def bit_rank(node: np.uint64, bits: KeyArray, before: Ids) -> np.uint64:
    """Return the rank of a set bit: the number of set bits before it."""
    word = node >> WORD
    return before[word] + count_ones(bits[word] & ((ONE << (node & REST)) - ONE))  # type: ignore[no-any-return]


@kernel
def bit_ranks(nodes: Ids, bits: KeyArray, before: Ids, out: Ids) -> None:
    """Write the rank of the bit of each domain."""
    for place in range(nodes.size):
        out[place] = bit_rank(np.uint64(nodes[place]), bits, before)


@kernel
def counting_sort(places: Ids, owners: Ids, first: IntArray, out: Ids) -> None:
    """Sort owners by their places and write the start of each place (counting sort)."""
    for link in range(places.size):
        first[np.uint64(places[link]) + ONE] += 1
    for place in range(1, first.size):
        first[place] += first[place - 1]
    for link in range(places.size):  # first[p] advances to the end of p, and is restored below
        home = np.uint64(places[link])
        out[first[home]] = owners[link]
        first[home] += 1
    for place in range(first.size - 1, 0, -1):
        first[place] = first[place - 1]
    first[0] = 0


@kernel
def fill_sieve(nodes: Ids, sieve: KeyArray, factor: np.uint32, shift: np.uint32) -> None:
    """Set the bits of domains in a sieve that fits a near cache; other domains may share them."""
    for place in range(nodes.size):
        slot = np.uint32(nodes[place] * factor) >> shift
        sieve[slot >> np.uint32(6)] |= ONE << np.uint64(slot & np.uint32(63))


@kernel
def filter_links(links: Ids, sieve: KeyArray, factor: np.uint32, shift: np.uint32, hits: Ids) -> int:
    """Write which links may lead to a relevant domain; branch-free, since few do."""
    found = np.uint64(0)
    for link in range(np.uint64(links.size)):
        slot = np.uint32(links[link] * factor) >> shift
        hits[found] = link
        found += (sieve[slot >> np.uint32(6)] >> np.uint64(slot & np.uint32(63))) & ONE
    return found  # type: ignore[return-value]  # uint64


@kernel
def count_level_two(
    linked: SampledLinks, start: int, rows: IntArray, links: Ids, seen: Ids, hits: Ids, counts: Ids
) -> None:
    """Count the sampled supporters at level 2 of the domains from `start` on, given their in-links.

    A supporter at level 2 is neither the domain itself nor one that links to it, so those are marked first.
    """
    bits, before, first, own, sampled = linked.bits, linked.before, linked.first, linked.own, linked.sampled
    found = filter_links(links, linked.sieve, linked.factor, linked.shift, hits)
    counts[:] = np.uint32(0)
    base, row, place = rows[0], 0, 0
    while place < found:
        while rows[row + 1] - base <= hits[place]:
            row += 1
        node, end = np.uint64(start + row), rows[row + 1] - base
        mark = np.uint32(node + ONE)
        last, kept = place, place
        while last < found and hits[last] < end:
            other = links[hits[last]]
            if (bits[np.uint64(other) >> WORD] >> (np.uint64(other) & REST)) & ONE:
                hits[kept] = bit_rank(np.uint64(other), bits, before)
                kept += 1
            last += 1
        for hit in range(place, kept):
            number = own[hits[hit]]
            if number >= 0:
                seen[number] = mark
        if (bits[node >> WORD] >> (node & REST)) & ONE:
            number = own[bit_rank(node, bits, before)]
            if number >= 0:
                seen[number] = mark
        count = np.uint32(0)
        for hit in range(place, kept):
            here = np.uint64(hits[hit])
            for entry in range(np.uint64(first[here]), np.uint64(first[here + ONE])):
                number = np.int32(sampled[entry])
                if seen[number] != mark:
                    seen[number] = mark
                    count += np.uint32(1)
        counts[row] = count
        place = last


@kernel
def add_weights(rows: IntArray, links: Ids, start: int, weights: FloatArray, sums: FloatArray) -> None:
    """Write the sum of the weights over the in-links of each row; only domains from `start` on have weights here."""
    base, last = rows[0], start + weights.size
    for row in range(sums.size):
        total = 0.0
        for link in range(rows[row] - base, rows[row + 1] - base):
            other = np.int64(links[link])
            if start <= other < last:
                total += weights[other - start]
        sums[row] = total
