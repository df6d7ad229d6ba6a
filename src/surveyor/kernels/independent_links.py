"""One step of the flow of trust over a domain graph, in which the largest contribution to each domain does not count.

Contributions of domains that are vouched for always count. Links are grouped by their target: each domain sums its own.
"""

from __future__ import annotations

from surveyor.arrays import BoolArray, FloatArray, IdArray, IntArray
from surveyor.kernels._jit import kernel


@kernel
def pass_trust(
    indptr: IntArray, sources: IdArray, shares: FloatArray, vouched: BoolArray, trust: FloatArray, out: FloatArray
) -> None:
    """Write what each domain receives, without the largest contribution of a domain that is not vouched for."""
    for node in range(out.size):
        total, largest = 0.0, 0.0
        for link in range(indptr[node], indptr[node + 1]):
            given = trust[sources[link]] * shares[link]
            total += given
            if not vouched[sources[link]] and given > largest:
                largest = given
        out[node] = max(total - largest, 0.0)


@kernel
def strongest_source(indptr: IntArray, sources: IdArray, strength: FloatArray, usable: BoolArray, out: IdArray) -> None:
    """Write the usable in-neighbour of each domain with the strongest link, the first of equals; -1 without one."""
    for node in range(out.size):
        best, found = 0.0, -1
        for link in range(indptr[node], indptr[node + 1]):
            if usable[sources[link]] and strength[link] > best:
                best, found = strength[link], sources[link]
        out[node] = found
