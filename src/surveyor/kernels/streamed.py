"""Sampled supporters counted from a stream of in-links.

What is kept in memory: which domains matter (a bit each: they are sampled, or a sampled domain links to them), a count
of the bits before each word, so that a domain that matters is found by its place, and for each of those the sampled
domains that link to it. Everything else is read once, in order, and forgotten.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from surveyor.arrays import IdArray, IntArray, KeyArray
from surveyor.kernels._jit import kernel

Ids = npt.NDArray[np.uint32]
ONE, WORD, REST = np.uint64(1), np.uint64(6), np.uint64(63)
ODD, PAIRS, NIBBLES = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
BYTES, TOP = np.uint64(0x0101010101010101), np.uint64(56)


class Linked(NamedTuple):
    """The sample, turned round: from each domain that matters to the sampled domains that link to it."""

    bits: KeyArray  # which domains matter, 64 to a word
    before: Ids  # how many bits are set before each word
    first: IntArray  # of those that matter, in order: where its list begins
    own: IdArray  # its own number in the sample, or -1
    sampled: Ids  # the lists: numbers in the sample
    sieve: KeyArray  # a smaller set of bits, at `id * factor >> shift`, that holds all that matter, and some others
    factor: np.uint32
    shift: np.uint32


@kernel
def ones(word: np.uint64) -> np.uint64:
    """Count the bits that are set."""
    word -= (word >> ONE) & ODD
    word = (word & PAIRS) + ((word >> np.uint64(2)) & PAIRS)
    return (((word + (word >> np.uint64(4))) & NIBBLES) * BYTES) >> TOP


@kernel
def set_bits(nodes: Ids, bits: KeyArray) -> None:
    """Mark domains."""
    for place in range(nodes.size):
        node = np.uint64(nodes[place])
        bits[node >> WORD] |= ONE << (node & REST)


@kernel
def count_bits(bits: KeyArray, before: Ids) -> int:
    """Count the marks before each word; return how many there are."""
    total = np.uint64(0)
    for word in range(bits.size):
        before[word] = total
        total += ones(bits[word])
    return total  # type: ignore[return-value]  # uint64


@kernel
def place_of(node: np.uint64, bits: KeyArray, before: Ids) -> np.uint64:
    """Return the place of a marked domain among all that are."""
    word = node >> WORD
    return before[word] + ones(bits[word] & ((ONE << (node & REST)) - ONE))  # type: ignore[no-any-return]


@kernel
def places(nodes: Ids, bits: KeyArray, before: Ids, out: Ids) -> None:
    """Return the place of each marked domain among all that are."""
    for place in range(nodes.size):
        out[place] = place_of(np.uint64(nodes[place]), bits, before)


@kernel
def gathered(places: Ids, owners: Ids, first: IntArray, out: Ids) -> None:
    """Put owners in the order of their places, and set where those of each place begin: a counting sort."""
    for link in range(places.size):
        first[np.uint64(places[link]) + ONE] += 1
    for place in range(1, first.size):
        first[place] += first[place - 1]
    for link in range(places.size):  # first[p] runs ahead to where p ends, and is put back below
        home = np.uint64(places[link])
        out[first[home]] = owners[link]
        first[home] += 1
    for place in range(first.size - 1, 0, -1):
        first[place] = first[place - 1]
    first[0] = 0


@kernel
def sieve_of(nodes: Ids, sieve: KeyArray, factor: np.uint32, shift: np.uint32) -> None:
    """Mark the places of domains in a sieve that is small enough for a near cache; others may share them."""
    for place in range(nodes.size):
        slot = np.uint32(nodes[place] * factor) >> shift
        sieve[slot >> np.uint32(6)] |= ONE << np.uint64(slot & np.uint32(63))


@kernel
def sift(links: Ids, sieve: KeyArray, factor: np.uint32, shift: np.uint32, hits: Ids) -> int:
    """Write which links may lead to a domain that matters; without a branch, since hardly any does."""
    found = np.uint64(0)
    for link in range(np.uint64(links.size)):
        slot = np.uint32(links[link] * factor) >> shift
        hits[found] = link
        found += (sieve[slot >> np.uint32(6)] >> np.uint64(slot & np.uint32(63))) & ONE
    return found  # type: ignore[return-value]  # uint64


@kernel
def count_rows(linked: Linked, start: int, rows: IntArray, links: Ids, seen: Ids, hits: Ids, counts: Ids) -> None:
    """Count the sampled supporters at level 2 of the domains from `start` on, whose in-links these are.

    A supporter at level 2 is neither the domain itself nor one that links to it, so those are marked first.
    """
    bits, before, first, own, sampled = linked.bits, linked.before, linked.first, linked.own, linked.sampled
    found = sift(links, linked.sieve, linked.factor, linked.shift, hits)
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
                hits[kept] = place_of(np.uint64(other), bits, before)
                kept += 1
            last += 1
        for hit in range(place, kept):
            number = own[hits[hit]]
            if number >= 0:
                seen[number] = mark
        if (bits[node >> WORD] >> (node & REST)) & ONE:
            number = own[place_of(node, bits, before)]
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
