"""What pages not read send back, if they link as the pages that link to them do.

A page of the frontier passes its rank on to where its parents (the pages read that link to it) link on average, each
kind of target weighed by how much more, or less, pages outside link to that kind than their parents do.
"""

from __future__ import annotations

from typing import NamedTuple

from surveyor.arrays import BoolArray, FloatArray, IdArray, IntArray
from surveyor.kernels._jit import kernel

STEPS = 16.0  # roundings of a rank besides those of its sum


class Links(NamedTuple):
    """The links into the pages read and into the frontier, and what a page read passes on over each of its links."""

    indptr: IntArray
    indices: IdArray  # places of the pages that link to each page read
    parents_indptr: IntArray
    parents: IdArray  # places of the pages that link to each page of the frontier
    inverse: FloatArray  # one over the links of each page read, 0 where it has none


class Moved(NamedTuple):
    """What a sweep did."""

    change: float  # L1 distance between the ranks before and after
    rounding: float  # bounds the rounding error of the new ranks, in units of the float spacing


class Returns(NamedTuple):
    """How pages of the frontier link, in multiples of what the parent does; none passes on more than it has."""

    local: FloatArray  # to local pages
    extra: FloatArray  # to other pages read
    unread: FloatArray  # to the frontier
    children: FloatArray  # pages of the frontier that it links to, or more
    jumps: float  # what every page of the frontier gets besides what links bring


@kernel
def sweep(
    links: Links, returns: Returns, is_local: BoolArray, damping: float, ranks: FloatArray, outer: FloatArray,
    back: FloatArray,
) -> Moved:  # fmt: skip
    """Update the frontier, what it sends back, and the pages read, in place.

    `back` is, by parent, the rank of the frontier that is spread as this parent links.
    """
    change, rounding = 0.0, 0.0
    shares = (ranks + returns.unread * back) * links.inverse
    for page in range(outer.shape[0]):
        rank = 0.0
        first, last = links.parents_indptr[page], links.parents_indptr[page + 1]
        for link in range(first, last):
            rank += shares[links.parents[link]]
        rank = returns.jumps + damping * rank
        change += abs(rank - outer[page])
        rounding += (last - first + STEPS) * rank
        outer[page] = rank
    back[:] = 0.0
    for page in range(outer.shape[0]):
        first, last = links.parents_indptr[page], links.parents_indptr[page + 1]
        share = outer[page] / (last - first)
        for link in range(first, last):
            back[links.parents[link]] += share
    to_local, to_extra = (ranks + returns.local * back) * links.inverse, (ranks + returns.extra * back) * links.inverse
    for page in range(ranks.shape[0]):
        shares = to_local if is_local[page] else to_extra
        rank = 0.0
        first, last = links.indptr[page], links.indptr[page + 1]
        for link in range(first, last):
            rank += shares[links.indices[link]]
        rank = 1.0 + damping * rank
        change += abs(rank - ranks[page])
        rounding += (last - first + STEPS) * rank + returns.children[page] * back[page]
        ranks[page] = rank
        # From the sums again: adding the change would let roundings pile up.
        to_local[page] = (rank + returns.local[page] * back[page]) * links.inverse[page]
        to_extra[page] = (rank + returns.extra[page] * back[page]) * links.inverse[page]
    return Moved(change, rounding)


@kernel
def leaking_sweep(links: Links, damping: float, ranks: FloatArray) -> Moved:
    """Update the pages read, in place, where the frontier sends nothing back."""
    change, rounding = 0.0, 0.0
    shares = ranks * links.inverse
    for page in range(ranks.shape[0]):
        rank = 0.0
        first, last = links.indptr[page], links.indptr[page + 1]
        for link in range(first, last):
            rank += shares[links.indices[link]]
        rank = 1.0 + damping * rank
        change += abs(rank - ranks[page])
        rounding += (last - first + STEPS) * rank
        ranks[page] = rank
        shares[page] = rank * links.inverse[page]
    return Moved(change, rounding)


@kernel
def links_to(links: Links, chosen: BoolArray, counts: IntArray) -> None:
    """Count the links of each page read to chosen pages read."""
    for page in range(chosen.shape[0]):
        if chosen[page]:
            for link in range(links.indptr[page], links.indptr[page + 1]):
                counts[links.indices[link]] += 1


@kernel
def compare(
    links: Links, batch_of: IntArray, is_local: BoolArray, order: IntArray, to_local: IntArray, to_extra: IntArray,
    found: FloatArray, foretold: FloatArray,
) -> None:  # fmt: skip
    """Sum up, by parent, how pages read in batches link (found), and how that parent does (foretold).

    Three sums each: the shares of links to local pages, to other pages that had been read before, and to all the rest.
    A page counts for its parents of earlier batches, in equal parts. `order` has the pages of batches, by batch;
    `to_extra` counts links to pages that are neither local nor of a batch, afterwards those to all that are not local.
    """
    first = 0
    while first < order.shape[0]:
        last = first
        while last < order.shape[0] and batch_of[order[last]] == batch_of[order[first]]:
            page = order[last]
            last += 1
            parents = 0
            for link in range(links.indptr[page], links.indptr[page + 1]):
                parents += batch_of[links.indices[link]] < batch_of[page]
            inner, extra = to_local[page] * links.inverse[page], to_extra[page] * links.inverse[page]
            rest = 1.0 - inner - extra if links.inverse[page] > 0.0 else 0.0
            for link in range(links.indptr[page], links.indptr[page + 1]):
                parent = links.indices[link]
                if batch_of[parent] < batch_of[page]:
                    found[0, parent] += inner / parents
                    found[1, parent] += extra / parents
                    found[2, parent] += rest / parents
                    to, further = to_local[parent] * links.inverse[parent], to_extra[parent] * links.inverse[parent]
                    foretold[0, parent] += to / parents
                    foretold[1, parent] += further / parents
                    foretold[2, parent] += (1.0 - to - further) / parents
        for at in range(first, last):  # only now: pages of one batch were read at once
            page = order[at]
            if not is_local[page]:
                for link in range(links.indptr[page], links.indptr[page + 1]):
                    to_extra[links.indices[link]] += 1
        first = last
