"""Who stands at a distance: breadth-first search of a few levels, from many domains.

`supported` walks backwards from each domain and counts those exactly `depth` links away. `sponsor` walks forwards from
each sampled domain and adds one to every domain exactly `depth` links away: summed over the sample, an estimate of the
same counts. Both mark what they saw with the number of the walk, so that nothing has to be cleared between two walks.
The last level is counted, never kept. Indices are unsigned, which spares the check for Python's negative ones.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from surveyor.arrays import FloatArray, IntArray, KeyArray
from surveyor.kernels._jit import kernel
from surveyor.kernels.synthetic import draw

Ids = npt.NDArray[np.uint32]
ONE = np.uint64(1)
SAMPLED = 41  # the purpose of these draws: no other draw from the same seed is like them


@kernel
def sample(first: int, last: int, seed: np.uint64, least: np.uint64, most: np.uint64, out: Ids) -> int:
    """Write the domains from `first` on whose hash lies from `least` to `most`, rising; return how many there are.

    A sample with a higher `most` holds that with a lower one, and samples of separate ranges of hashes add up.
    """
    found = 0
    for node in range(np.uint64(first), np.uint64(last)):
        value = draw(seed, node, SAMPLED)
        if least <= value <= most:
            out[found] = node
            found += 1
    return found


@kernel
def _near(
    indptr: KeyArray, indices: Ids, start: np.uint64, levels: int, stamp: np.uint32, seen: Ids, queue: Ids
) -> tuple[int, int]:
    """Mark all within `levels` links of a domain; return where the outermost level lies in the queue."""
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
def supported(
    indptr: KeyArray, indices: Ids, nodes: Ids, depth: int, stamp: int, seen: Ids, queue: Ids, counts: IntArray
) -> None:
    """Count for each domain those exactly `depth` links away."""
    for place in range(nodes.size):
        mark = np.uint32(stamp + place)
        first, last = _near(indptr, indices, np.uint64(nodes[place]), depth - 1, mark, seen, queue)
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
def sponsor(
    indptr: KeyArray, indices: Ids, nodes: Ids, depth: int, stamp: int, seen: Ids, queue: Ids, counts: Ids
) -> int:
    """Add one to every domain exactly `depth` links from each of these; return the links that were followed."""
    followed = 0
    for place in range(nodes.size):
        mark = np.uint32(stamp + place)
        first, last = _near(indptr, indices, np.uint64(nodes[place]), depth - 1, mark, seen, queue)
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
def count_paths(indptr: KeyArray, indices: Ids, nodes: Ids, counts: IntArray) -> None:
    """Count the paths of two links that begin at each of these domains."""
    for place in range(nodes.size):
        node = np.uint64(nodes[place])
        total = np.uint64(0)
        for link in range(indptr[node], indptr[node + ONE]):
            other = np.uint64(indices[link])
            total += indptr[other + ONE] - indptr[other]
        counts[place] = total


@kernel
def level(indptr: KeyArray, indices: Ids, node: int, depth: int, stamp: int, seen: Ids, queue: Ids) -> tuple[int, int]:
    """Gather those exactly `depth` links from a domain; return where they lie in the queue."""
    return _near(indptr, indices, np.uint64(node), depth, np.uint32(stamp), seen, queue)


@kernel
def gather(indptr: KeyArray, indices: Ids, weights: FloatArray, first: int, last: int, sums: FloatArray) -> None:
    """Sum a weight over the in-neighbours of each domain of a block, in a fixed order."""
    for node in range(np.uint64(first), np.uint64(last)):
        total = 0.0
        for link in range(indptr[node], indptr[node + ONE]):
            total += weights[indices[link]]
        sums[node] = total
