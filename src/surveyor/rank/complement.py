"""Score the pages of the frontier by their influence on local ranks: SC-SELECT of Davis and Dhillon, and others.

Each score is one number per page of the frontier; pages with larger scores should be fetched first. All take time
linear in the links of the fetched pages:

- `complement`: how much fetching the page would change the ranks of the local pages if its links were like the average
  link (stochastic complementation). The paper's algorithm tests `x > 0` where x is never above 0, and leaves out
  dangling pages; both are fixed here, and the sum is exact where the paper uses the nearest entry of a table.
- `flow`: the rank that would flow to it, Σ f / (links + 1) over the pages that link to it (PF-SELECT).
- `cho`: the same without the additional link (Cho, Garcia-Molina and Page 1998).
- `outlinks`: the number of fetched pages that link to it.
"""

from __future__ import annotations

import numpy as np

from surveyor.arrays import BoolArray, FloatArray, IdArray
from surveyor.kernels.crawled_graph import CrawledGraph
from surveyor.kernels.thread_pool import ThreadPool

BLOCKS = 8  # of the frontier, scored in parallel; each takes memory for all fetched pages
KEYS = 20061  # arbitrary seed of the random keys that distinguish sets of parents


def complement(
    known: CrawledGraph,
    ranks: FloatArray,
    local: BoolArray,
    damping: float = 0.85,
    *,
    teleport: FloatArray | None = None,
    newcomer: float | None = None,
    threads: int | None = None,
) -> FloatArray:
    """Return the influence of each page of the frontier on the ranks of the local pages, ‖E(Sf − f)‖₁.

    Parameters
    ----------
    ranks : PageRank of the fetched pages, by index, summing to 1; `local` marks the local ones.
    teleport, newcomer : the teleport distribution over the fetched pages (uniform by default), and the teleport share
        of a newly fetched page (the uniform share by default).
    """
    from surveyor.kernels import crawled_graph as kernels

    pages, degrees = known.pages.size, known.degrees
    jumps = np.full(pages, 1.0 / max(pages, 1)) if teleport is None else teleport
    share = 1.0 / (pages + 1) if newcomer is None else newcomer
    flow, stuck = np.empty(known.frontier.size), np.empty(known.frontier.size)
    kernels.frontier_inflows(known, ranks, 1.0, flow, stuck)
    dangling = float(ranks[degrees == 0].sum())
    gain = damping * flow + share * ((1 - damping) + damping * (dangling - stuck))  # g: the rank of the new page
    dilution = -share * ((1 - damping) + damping * dangling) - damping * stuck * (1 - share)  # c
    typical = np.bincount(known.indices, minlength=pages).astype(np.float64)  # s: distribution of the average link
    typical = typical / typical.sum() if known.indices.size else np.full(pages, 1.0 / max(pages, 1))
    back = (damping * typical + (1 - damping) * (1 - share) * jumps) / (1 - (1 - damping) * share)  # z
    twin = _twins(known)
    own = twin == np.arange(twin.size)
    base = np.zeros(twin.size)
    base[own] = _sizes(back[local], jumps[local], gain[own], dilution[own])
    leak = damping * ranks / np.maximum(degrees * (degrees + 1.0), 1.0)
    leak[degrees == 0] = 0.0
    terms, scores = kernels.ComplementTerms(local, leak, twin, base, dilution, gain, jumps, back), np.zeros(twin.size)
    edges = _edges(known)
    with ThreadPool(threads) as pool:
        for _ in pool.imap(
            lambda first, last: kernels.complement_scores(
                known, terms, first, last, np.zeros(pages), np.empty(pages, np.int32), scores
            ),
            zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True),
        ):
            pass
    return scores[twin]


def flow(known: CrawledGraph, ranks: FloatArray, plus: float = 1.0) -> FloatArray:
    """Return the rank that each page of the frontier would get through links; with `plus` 0, as in Cho et al."""
    from surveyor.kernels import crawled_graph as kernels

    found, stuck = np.empty(known.frontier.size), np.empty(known.frontier.size)
    kernels.frontier_inflows(known, ranks, plus, found, stuck)
    return found


def outlinks(known: CrawledGraph) -> FloatArray:
    """Return the number of fetched pages that link to each page of the frontier."""
    return np.diff(known.parents_indptr).astype(np.float64)


def _twins(known: CrawledGraph) -> IdArray:
    """Return, for each page of the frontier, the first one with the same parents."""
    from surveyor.kernels import crawled_graph as kernels

    size = known.frontier.size
    keys = np.random.default_rng(KEYS).integers(0, 2**64, known.pages.size, np.uint64)
    table = np.full(1 << max(1, (2 * size).bit_length()), -1, np.int32)
    twin = np.empty(size, np.int32)
    kernels.find_same_parents(known, keys, table, twin)
    return twin


def _sizes(z: FloatArray, v: FloatArray, gain: FloatArray, dilution: FloatArray) -> FloatArray:
    """Return Σ |dilution·v + gain·z| for each pair, from prefix sums over the points where a term changes sign."""
    moves = v > 0
    edges = -z[moves] / v[moves]
    order = np.argsort(edges)
    edges, z_sums, v_sums = edges[order], _sums(z[moves][order]), _sums(v[moves][order])
    positive = gain > 0
    slope = np.where(positive, dilution / np.where(positive, gain, 1.0), 0.0)
    below = np.searchsorted(edges, slope, side="right")
    signed = 2 * (z_sums[below] + slope * v_sums[below]) - (z_sums[-1] + slope * v_sums[-1])
    sizes = gain * (float(z[~moves].sum()) + signed)
    result: FloatArray = np.where(positive, sizes, np.abs(dilution) * v.sum())
    return result


def _sums(values: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(values)])


def _edges(known: CrawledGraph) -> IdArray:
    """Split the frontier into blocks with about the same number of parents."""
    wanted = np.linspace(0, known.parents.size, BLOCKS + 1)
    return np.unique(np.searchsorted(known.parents_indptr, wanted))
