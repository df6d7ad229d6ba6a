"""One step of the flow of trust over a domain graph, in which the largest contribution to each domain does not count.

Contributions of at least two pages of a domain that is vouched for always count. Links are grouped by their target:
each domain sums its own, so threads that process separate domains give the same result as one. The contribution of a
link is its votes times what its source gives per vote.
"""

from __future__ import annotations

from surveyor.arrays import BoolArray, FloatArray, IdArray, IntArray
from surveyor.kernels._jit import kernel


@kernel
def pass_trust(
    links: tuple[IntArray, IdArray, IntArray, IdArray, IdArray],
    vouched: BoolArray,
    per_vote: FloatArray,
    first: int,
    last: int,
    out: FloatArray,
) -> None:
    """Write what domains first to last receive, without the largest contribution that does not always count."""
    indptr, sources, votes, earliest, latest = links
    for node in range(first, last):
        total, largest = 0.0, 0.0
        for link in range(indptr[node], indptr[node + 1]):
            given = per_vote[sources[link]] * votes[link]
            total += given
            if given > largest and not (vouched[sources[link]] and earliest[link] < latest[link]):
                largest = given
        out[node] = max(total - largest, 0.0)


@kernel
def strongest_link(
    links: tuple[IntArray, IdArray, IntArray, IdArray, IdArray],
    usable: BoolArray,
    per_vote: FloatArray,
    first: int,
    last: int,
    out: IntArray,
) -> None:
    """Write the link by which a usable domain gives most to each of domains first to last (first of equals), or -1."""
    indptr, sources, votes, _, _ = links
    for node in range(first, last):
        best, found = -1.0, -1
        for link in range(indptr[node], indptr[node + 1]):
            if usable[sources[link]] and per_vote[sources[link]] * votes[link] > best:
                best, found = per_vote[sources[link]] * votes[link], link
        out[node] = found
