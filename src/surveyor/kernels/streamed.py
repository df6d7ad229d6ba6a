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
def places(nodes: Ids, bits: KeyArray, before: Ids, out: Ids) -> None:
    """Return the place of each marked domain among all that are."""
    for place in range(nodes.size):
        node = np.uint64(nodes[place])
        word = bits[node >> WORD]
        out[place] = before[node >> WORD] + ones(word & ((ONE << (node & REST)) - ONE))


@kernel
def count_rows(linked: Linked, start: int, rows: IntArray, links: Ids, seen: Ids, hits: Ids, counts: Ids) -> None:
    """Count the sampled supporters at level 2 of the domains from `start` on, whose in-links these are.

    A supporter at level 2 is neither the domain itself nor one that links to it, so those are marked first.
    """
    bits, before, first, own, sampled = linked
    base = rows[0]
    for row in range(counts.size):
        node = np.uint64(start + row)
        mark = np.uint32(node + ONE)
        found = 0
        for link in range(np.uint64(rows[row] - base), np.uint64(rows[row + 1] - base)):
            other = np.uint64(links[link])
            if (bits[other >> WORD] >> (other & REST)) & ONE:
                hits[found] = other
                found += 1
        count = np.uint32(0)
        if found:
            places(hits[:found], bits, before, hits)
            for hit in range(found):
                number = own[hits[hit]]
                if number >= 0:
                    seen[number] = mark
            if (bits[node >> WORD] >> (node & REST)) & ONE:
                here = before[node >> WORD] + ones(bits[node >> WORD] & ((ONE << (node & REST)) - ONE))
                number = own[here]
                if number >= 0:
                    seen[number] = mark
            for hit in range(found):
                place = np.uint64(hits[hit])
                for entry in range(np.uint64(first[place]), np.uint64(first[place + ONE])):
                    number = np.int32(sampled[entry])
                    if seen[number] != mark:
                        seen[number] = mark
                        count += np.uint32(1)
        counts[row] = count
