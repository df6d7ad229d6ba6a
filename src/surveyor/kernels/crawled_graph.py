"""The graph known after a partial crawl: links among fetched pages, and links into the frontier.

Fetched pages get *places* from 0, in the order of their ids, so that vectors over them are short; unfetched pages that
they link to are the frontier. Two passes over the links of the fetched pages; no work per id of the web.

**Stochastic complementation** scores each frontier page by how much it would change the ranks of local pages, exactly.
If page j, of which only the in-links are known, were fetched and had average links (`s`), one step from the ranks f
would change them by

    x + c·v + g·z      (docs/explanation/global-rank.md has the derivation)

x ≤ 0 is what pages lose that share a parent with j, c·v what all lose to one more page, g·z what flows back from j.
The sum of absolute changes over the local pages is known for c·v + g·z from a sorted table; only where x is not 0
it is corrected. Pages with the same parents have the same score, which is computed once.

**Frontier returns** estimate the rank that unfetched pages send back, assuming that they link like their parents. A
frontier page passes its rank to the targets of its parents (the fetched pages that link to it) on average, each class
of targets weighted by how much more, or less, frontier pages link to that class than their parents do. Of what
reaches local pages, a part is divided like the links of all pages fetched outside instead.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surveyor.arrays import BoolArray, FloatArray, IdArray, IntArray, KeyArray
from surveyor.kernels._jit import kernel
from surveyor.kernels.mass import Rows

MOST_PARENTS = 16  # of a page, compared with its links
NO_PLACE = np.int32(-1)  # of a page that has not been seen


class CrawledGraph(NamedTuple):
    """The fetched pages, by place, and the frontier."""

    pages: IdArray  # ids of the fetched pages, ascending; the index of a page is its place
    indptr: IntArray
    indices: IdArray  # places that each fetched page links to
    leaving: IntArray  # number of links of each fetched page into the frontier
    frontier: IdArray  # ids of the unfetched pages that fetched pages link to, in order of discovery
    parents_indptr: IntArray
    parents: IdArray  # places of the pages that link to each frontier page, ascending

    @property
    def degrees(self) -> IntArray:
        """The number of fetched pages that each fetched page links to."""
        return np.diff(self.indptr)


def build_crawled_graph(
    rows: Rows, pages: IdArray, redirects: IdArray | None = None, scratch: IdArray | None = None
) -> CrawledGraph:
    """Build the crawled graph of fetched pages (ascending ids); `redirects` maps each page to its final target.

    `scratch` has an entry per page of the web, all -1 before and after; repeated calls can reuse it.
    """
    final = np.empty(0, np.int32) if redirects is None else redirects
    if scratch is None:
        size = max(int(rows.targets.max(initial=-1)), int(pages.max(initial=-1)), int(final.max(initial=-1))) + 1
        scratch = np.full(size, NO_PLACE, np.int32)
    fetched = pages[: np.searchsorted(pages, rows.start.size)]
    most = int((rows.end[fetched] - rows.start[fetched]).sum())
    scratch[pages] = np.arange(pages.size, dtype=np.int32)
    indptr, leaving = np.zeros(pages.size + 1, np.int64), np.zeros(pages.size, np.int64)
    frontier, counts = np.empty(most, np.int32), np.zeros(most + 1, np.int64)
    size = _count(rows, fetched, scratch, final, LinkCounts(indptr, leaving, frontier, counts))
    np.cumsum(indptr, out=indptr)
    frontier, parents_indptr = frontier[:size].copy(), np.cumsum(counts[: size + 1])
    indices, parents = np.empty(indptr[-1], np.int32), np.empty(parents_indptr[-1], np.int32)
    _fill(rows, fetched, scratch, final, indices, parents_indptr[:-1].copy(), parents)
    scratch[pages] = scratch[frontier] = NO_PLACE
    return CrawledGraph(pages, indptr, indices, leaving, frontier, parents_indptr, parents)


class LinkCounts(NamedTuple):
    """The arrays that `_count` fills."""

    indptr: IntArray
    leaving: IntArray
    frontier: IdArray
    parents: IntArray


@kernel
def _count(rows: Rows, pages: IdArray, place: IdArray, final: IdArray, out: LinkCounts) -> int:
    """Count links among fetched pages, links into the frontier, and links into each frontier page, shifted by one.

    Frontier pages get the places -2, -3, … in the order of discovery; returns how many there are.
    """
    indptr, leaving, frontier, counts = out.indptr, out.leaving, out.frontier, out.parents
    met = 0
    for at in range(pages.shape[0]):
        page = pages[at]
        inner = 0
        for link in range(rows.start[page], rows.end[page]):
            target = rows.targets[link] if final.shape[0] == 0 else final[rows.targets[link]]
            if target == page:
                continue
            where = place[target]
            if where >= 0:
                inner += 1
                continue
            if where == NO_PLACE:
                where = np.int32(-2 - met)
                place[target] = where
                frontier[met] = target
                met += 1
            counts[-1 - where] += 1
            leaving[at] += 1
        indptr[at + 1] = inner
    return met


@kernel
def _fill(
    rows: Rows, pages: IdArray, place: IdArray, final: IdArray, indices: IdArray, free: IntArray, parents: IdArray
) -> None:
    """Write the links; `free` is the index of the next parent of each frontier page."""
    at_link = 0
    for at in range(pages.shape[0]):
        page = pages[at]
        for link in range(rows.start[page], rows.end[page]):
            target = rows.targets[link] if final.shape[0] == 0 else final[rows.targets[link]]
            where = place[target]
            if target == page:
                continue
            if where >= 0:
                indices[at_link] = where
                at_link += 1
            else:
                outer = -2 - where
                parents[free[outer]] = at
                free[outer] += 1


class ComplementTerms(NamedTuple):
    """The terms of the rank change, for each frontier page (c, g) and each local page (v, z)."""

    local: BoolArray  # which fetched pages are local
    leak: FloatArray  # what each fetched page would take from each of its targets if it had one more link
    twin: IdArray  # the first frontier page with the same parents
    base: FloatArray  # sum over local pages of |c·v + g·z|
    c: FloatArray
    g: FloatArray
    v: FloatArray  # by place
    z: FloatArray


@kernel
def frontier_inflows(known: CrawledGraph, ranks: FloatArray, plus: float, flow: FloatArray, stuck: FloatArray) -> None:
    """Sum up, for each frontier page, rank / (links + plus) of its parents, and the rank of parents without links.

    A parent that links to no fetched page gives all its rank (with plus 0 too).
    """
    for page in range(known.frontier.shape[0]):
        total, lost = 0.0, 0.0
        for entry in range(known.parents_indptr[page], known.parents_indptr[page + 1]):
            parent = known.parents[entry]
            links = known.indptr[parent + 1] - known.indptr[parent]
            total += ranks[parent] / max(links + plus, 1.0)
            lost += ranks[parent] if links == 0 else 0.0
        flow[page] = total
        stuck[page] = lost


@kernel
def find_same_parents(known: CrawledGraph, keys: KeyArray, table: IdArray, twin: IdArray) -> None:
    """Write, for each frontier page, the first one with the same parents.

    `keys` are random, one per place; `table` has a power of two of at least twice as many entries, all -1.
    """
    mask = np.uint64(table.shape[0] - 1)
    for page in range(known.frontier.shape[0]):
        first, last = known.parents_indptr[page], known.parents_indptr[page + 1]
        key = np.uint64(0)
        for entry in range(first, last):
            key += keys[known.parents[entry]]
        slot = (key ^ (key >> np.uint64(32))) & mask
        while table[slot] >= 0:
            other = table[slot]
            start = known.parents_indptr[other]
            same = known.parents_indptr[other + 1] - start == last - first
            for step in range(last - first):
                if not same:
                    break
                same = known.parents[start + step] == known.parents[first + step]
            if same:
                break
            slot = (slot + np.uint64(1)) & mask
        if table[slot] < 0:
            table[slot] = page
        twin[page] = table[slot]


@kernel
def complement_scores(
    known: CrawledGraph,
    terms: ComplementTerms,
    first: int,
    last: int,
    lost: FloatArray,
    met: IdArray,
    scores: FloatArray,
) -> None:
    """Score a range of frontier pages: the sum of the table, corrected where siblings lose rank.

    `lost` is all zeros before and after; `met` is scratch. Pages with an earlier twin are skipped: they have its score.
    """
    local, leak, twin = terms.local, terms.leak, terms.twin
    for page in range(first, last):
        if twin[page] != page:
            continue
        siblings = 0
        for entry in range(known.parents_indptr[page], known.parents_indptr[page + 1]):
            parent = known.parents[entry]
            amount = leak[parent]
            if amount == 0.0:
                continue
            for link in range(known.indptr[parent], known.indptr[parent + 1]):
                sibling = known.indices[link]
                if not local[sibling]:
                    continue
                if lost[sibling] == 0.0:
                    met[siblings] = sibling
                    siblings += 1
                lost[sibling] += amount
        total = 0.0
        for entry in range(siblings):
            sibling = met[entry]
            rest = terms.c[page] * terms.v[sibling] + terms.g[page] * terms.z[sibling]
            total += abs(rest - lost[sibling]) - abs(rest)
            lost[sibling] = 0.0
        scores[page] = terms.base[page] + total


ROUNDINGS = 16.0  # rounding operations of a rank besides those of its sum


class Batches(NamedTuple):
    """The pages fetched in batches."""

    batch_of: IntArray  # the batch of each page, by place; 0 for none
    is_local: BoolArray
    order: IntArray  # the places of all pages in batches, by batch


class FrontierLinks(NamedTuple):
    """The links into fetched pages and into the frontier, and the share that a fetched page passes over each link."""

    indptr: IntArray
    indices: IdArray  # places of the pages that link to each fetched page
    parents_indptr: IntArray
    parents: IdArray  # places of the pages that link to each frontier page
    inverse: FloatArray  # one over the out-degree of each fetched page, 0 if it has no links


class SweepChange(NamedTuple):
    """The effect of a sweep."""

    change: float  # L1 distance between the ranks before and after
    rounding: float  # bounds the rounding error of the new ranks, in units of the float spacing


class FrontierReturns(NamedTuple):
    """How frontier pages link, as multiples of what the parent does; none passes on more than its rank."""

    local: FloatArray  # to local pages
    extra: FloatArray  # to other fetched pages
    unread: FloatArray  # to the frontier
    children: FloatArray  # an upper bound of the frontier pages it links to
    jumps: float  # what every frontier page gets by jumps
    amount: FloatArray  # share of its rank sent to local pages, whichever way it is divided among them
    pooled: FloatArray  # part of this amount that each local page gets; the rest is divided like the parent's links


@kernel
def frontier_sweep(
    links: FrontierLinks,
    returns: FrontierReturns,
    is_local: BoolArray,
    damping: float,
    ranks: FloatArray,
    outer: FloatArray,
    back: FloatArray,
) -> SweepChange:
    """Update the ranks of the frontier, what it sends back, and the ranks of fetched pages, in place.

    `back` is, by parent, the frontier rank that is distributed like the links of this parent.
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
        rounding += (last - first + ROUNDINGS) * rank
        outer[page] = rank
    back[:] = 0.0
    for page in range(outer.shape[0]):
        first, last = links.parents_indptr[page], links.parents_indptr[page + 1]
        share = outer[page] / (last - first)
        for link in range(first, last):
            back[links.parents[link]] += share
    whole = (returns.amount * back).sum()
    to_local, to_extra = (ranks + returns.local * back) * links.inverse, (ranks + returns.extra * back) * links.inverse
    for page in range(ranks.shape[0]):
        shares = to_local if is_local[page] else to_extra
        rank = returns.pooled[page] * whole
        first, last = links.indptr[page], links.indptr[page + 1]
        for link in range(first, last):
            rank += shares[links.indices[link]]
        rank = 1.0 + damping * rank
        change += abs(rank - ranks[page])
        rounding += (last - first + ROUNDINGS) * rank + returns.children[page] * back[page]
        rounding += ranks.shape[0] * returns.pooled[page] * whole  # a sum over all pages
        ranks[page] = rank
        # From the sums: adding the change would accumulate rounding errors.
        to_local[page] = (rank + returns.local[page] * back[page]) * links.inverse[page]
        to_extra[page] = (rank + returns.extra[page] * back[page]) * links.inverse[page]
    return SweepChange(change, rounding)


@kernel
def leaky_sweep(links: FrontierLinks, damping: float, ranks: FloatArray) -> SweepChange:
    """Update the ranks of fetched pages in place, assuming that the frontier sends nothing back."""
    change, rounding = 0.0, 0.0
    shares = ranks * links.inverse
    for page in range(ranks.shape[0]):
        rank = 0.0
        first, last = links.indptr[page], links.indptr[page + 1]
        for link in range(first, last):
            rank += shares[links.indices[link]]
        rank = 1.0 + damping * rank
        change += abs(rank - ranks[page])
        rounding += (last - first + ROUNDINGS) * rank
        ranks[page] = rank
        shares[page] = rank * links.inverse[page]
    return SweepChange(change, rounding)


@kernel
def count_links_to(links: FrontierLinks, chosen: BoolArray, counts: IntArray) -> None:
    """Count the links of each fetched page to the chosen fetched pages."""
    for page in range(chosen.shape[0]):
        if chosen[page]:
            for link in range(links.indptr[page], links.indptr[page + 1]):
                counts[links.indices[link]] += 1


@kernel
def compare_batches(
    links: FrontierLinks,
    batches: Batches,
    to_local: IntArray,
    to_extra: IntArray,
    found: FloatArray,
    expected: FloatArray,
) -> None:
    """Sum up, by parent, how pages fetched in batches link (found), and how that parent links (expected).

    Three sums each: the shares of links to local pages, to other pages fetched earlier, and to all the rest. A page
    counts for its parents of earlier batches, in equal parts. On entry `to_extra` counts links to pages that are
    neither local nor in a batch, on return those to all non-local pages.
    """
    batch_of, is_local, order = batches.batch_of, batches.is_local, batches.order
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
                    expected[0, parent] += to / parents
                    expected[1, parent] += further / parents
                    expected[2, parent] += (1.0 - to - further) / parents
        for at in range(first, last):  # only now: pages of one batch were fetched together
            page = order[at]
            if not is_local[page]:
                for link in range(links.indptr[page], links.indptr[page + 1]):
                    to_extra[links.indices[link]] += 1
        first = last


@kernel
def predict_batches(
    known: CrawledGraph, links: FrontierLinks, batches: Batches, parts: FloatArray, spread: float, fits: FloatArray
) -> None:
    """Sum up how well the links of each batch into local pages follow from the pages fetched before it.

    For each of `parts`: the log-likelihood, each page with total weight 1 for all its links, of a distribution over
    local pages that is in this part the links of earlier batches, in `spread` uniform, and otherwise the links of the
    parents of the page (of at most `MOST_PARENTS` of them).
    """
    batch_of, is_local, order = batches.batch_of, batches.is_local, batches.order
    pool, copied = np.zeros(is_local.shape[0]), np.zeros(is_local.shape[0])
    inside, pooled, first = is_local.sum(), 0.0, 0
    while first < order.shape[0]:
        last = first
        while last < order.shape[0] and batch_of[order[last]] == batch_of[order[first]]:
            page = order[last]
            last += 1
            if pooled == 0.0:
                continue
            whole = _copy_parents(known, links, batches, page, 1.0, copied)
            for link in range(known.indptr[page], known.indptr[page + 1]):
                target = known.indices[link]
                if not is_local[target]:
                    continue
                by_parents = copied[target] / whole if whole > 0.0 else 1.0 / inside
                by_pool = pool[target] / pooled
                for part in range(parts.shape[0]):
                    share = parts[part] * by_pool + (1.0 - parts[part]) * by_parents
                    fits[part] += links.inverse[page] * np.log(spread / inside + (1.0 - spread) * share)
            _copy_parents(known, links, batches, page, 0.0, copied)
        for entry in range(first, last):
            page = order[entry]
            for link in range(known.indptr[page], known.indptr[page + 1]):
                target = known.indices[link]
                if is_local[target]:
                    pool[target] += links.inverse[page]
                    pooled += links.inverse[page]
        first = last


@kernel
def _copy_parents(
    known: CrawledGraph, links: FrontierLinks, batches: Batches, page: int, times: float, copied: FloatArray
) -> float:
    """Add the links of the parents of a page into local pages, or with `times` 0 remove them; return their sum."""
    total, parents = 0.0, 0
    for entry in range(links.indptr[page], links.indptr[page + 1]):
        parent = links.indices[entry]
        if batches.batch_of[parent] >= batches.batch_of[page]:
            continue
        parents += 1
        if parents > MOST_PARENTS:
            break
        for link in range(known.indptr[parent], known.indptr[parent + 1]):
            target = known.indices[link]
            if batches.is_local[target]:
                copied[target] = times * (copied[target] + links.inverse[parent])
                total += links.inverse[parent]
    return total
