"""Ranks of a local domain that is expanded page by page into the surrounding web, and the pages to fetch next.

FindGlobalPR (Davis and Dhillon, KDD 2006) alternates between ranking the fetched pages and fetching the frontier pages
that affect the local ranks most. Each time only changes are ranked again. The ranks solve a system that leaks at pages
without links and in which every page gets 1 in addition to its links; new pages leave this 1 unchanged, so old ranks
remain a good start. With ρ the residual, the change of one more update, and n pages,

    ‖ranks / Σ ranks − PageRank‖₁  ≤  Σ |ρ − Σρ/n| / ((1 − damping) · Σ ranks)

since ranks of sum 1 change by exactly these residuals in a step of the surfer, and a step contracts distances by the
damping. Residuals are pushed until this bound is small enough.

**Scores** of the frontier: pages with larger scores should be fetched first. All take time linear in the links of the
fetched pages:

- `complement`: how much fetching the page would change the ranks of the local pages if its links were like the average
  link (stochastic complementation). The paper's algorithm tests `x > 0` where x is never above 0, and leaves out
  dangling pages; both are fixed here, and the sum is exact where the paper uses the nearest entry of a table.
- `explore`: drawn at random, with a probability proportional to the third power of the score of `complement`.
- `flow`: the rank that would flow to it, Σ f / (links + 1) over the pages that link to it (PF-SELECT).
- `cho`: the same without the additional link (Cho, Garcia-Molina and Page 1998).
- `outlinks`: the number of fetched pages that link to it.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from surveyor.arrays import BoolArray, FloatArray, IdArray, IntArray
from surveyor.errors import UsageError
from surveyor.kernels.crawled_graph import CrawledGraph, build_crawled_graph
from surveyor.kernels.mass import Rows
from surveyor.kernels.thread_pool import ThreadPool

Select = Literal["explore", "complement", "flow", "cho", "outlinks", "random"]
SELECTORS: tuple[str, ...] = get_args(Select)
POWER = 3  # of the score of `complement`, in the probability that `explore` draws a page
BITS = 36  # significant bits of a score: rounding errors below them must not decide
FIRST, FINER = 4.0, 2.0  # the first push threshold, as a multiple of the final one, and the factor by which it falls
SPREAD = 0x9E3779B97F4A7C15  # odd and large: makes the seeds of different rounds distinct
TOLERANCE = 1e-5  # of ranks that only select pages: twice what the paper's stopping rule proves
PASSES, PUSHES = 32, 64  # passes per push, and pushes in total: with a damping near 1 it would never end
ROUNDING = 1e-13  # of residuals that were pushed many times
BLOCKS = 8  # of the frontier, scored in parallel; each takes memory for all fetched pages
KEYS = 20061  # arbitrary seed of the random keys that distinguish sets of parents


class Expansion:
    """The ranks of the pages fetched so far, and the scores of the frontier."""

    def __init__(
        self,
        local: IdArray,
        select: Select = "complement",
        *,
        damping: float = 0.85,
        tolerance: float = TOLERANCE,
        seed: int = 7,
        threads: int | None = None,
    ) -> None:
        """Start with local pages, by id; ties between scores are broken at random, determined by the seed."""
        if select not in SELECTORS:
            raise UsageError(f"unknown select {select!r}", hint=f"choose {', '.join(SELECTORS)}")
        self.local, self.select, self.damping, self.tolerance = local, select, damping, tolerance
        self._seed, self._threads = np.uint64(seed), threads
        self._ranks: FloatArray = np.ones(0)  # by id, of the leaky system
        self._scratch: IdArray = np.empty(0, np.int32)
        self._before: FloatArray = np.zeros(0)
        self.error = 0.0  # proven, of the ranks of the fetched pages
        self.change = 0.0  # L1 distance between the last two rank vectors of the local pages
        self.followed = 0  # total number of links followed by pushes

    def update(self, rows: Rows, pages: IdArray, ids: int, redirects: IdArray | None = None) -> CrawledGraph:
        """Rank the pages fetched so far (ascending, of `ids` page ids); return the graph of known links."""
        if self._ranks.size < ids:
            self._ranks = np.append(self._ranks, np.ones(ids - self._ranks.size))
            self._scratch = np.full(ids, -1, np.int32)
        found = build_crawled_graph(rows, pages, redirects, self._scratch)
        ranks = self._ranks[found.pages]
        self.error = self._push(found, ranks)
        self._ranks[found.pages] = ranks
        now = self.local_ranks()
        self.change = float(np.abs(now - self._before).sum()) if self._before.size else 0.0
        self._before = now
        return found

    def local_ranks(self) -> FloatArray:
        """Return the current ranks of the local pages, summing to 1: the estimate of the paper."""
        ranks = self._ranks[self.local]
        return np.asarray(ranks / ranks.sum())

    def ranks(self, found: CrawledGraph) -> FloatArray:
        """Return the PageRank of the fetched pages, by index, summing to 1."""
        ranks = self._ranks[found.pages]
        return np.asarray(ranks / ranks.sum())

    def ranks_by_id(self, pages: IntArray) -> FloatArray:
        """Return the ranks of some pages by id, summing to 1; unranked pages count like one without in-links."""
        ranks = np.append(self._ranks, np.ones(max(0, int(pages.max(initial=-1)) + 1 - self._ranks.size)))[pages]
        return np.asarray(ranks / ranks.sum()) if pages.size else ranks

    def scores(self, found: CrawledGraph) -> FloatArray:
        """Score the frontier."""
        if self.select == "random":
            return np.zeros(found.frontier.size)
        if self.select == "outlinks":
            return outlinks(found)
        ranks = self.ranks(found)
        if self.select in ("complement", "explore"):
            local = np.zeros(found.pages.size, np.bool_)
            local[np.searchsorted(found.pages, self.local)] = True
            return complement(found, ranks, local, self.damping, threads=self._threads)
        return flow(found, ranks, plus=1.0 if self.select == "flow" else 0.0)

    def best(self, found: CrawledGraph, count: int, waits: BoolArray | None = None) -> IdArray:
        """Return the ids of the best pages of the frontier, best first; only those that `waits` marks, if given."""
        from surveyor.kernels.hash_random import random_units_of_pages

        pages, values = found.frontier, _rounded(self.scores(found))
        if waits is not None:
            allowed = waits[pages]
            pages, values = pages[allowed], values[allowed]
        if self.select == "explore":
            return self._drawn(found, pages, values, count)
        if count < pages.size:
            enough = values >= np.partition(values, -count)[-count] if count else np.zeros(pages.size, np.bool_)
            pages, values = pages[enough], values[enough]
        ties = np.empty(pages.size)
        random_units_of_pages(self._tie_seed(found), pages, ties)
        return pages[np.lexsort((ties, -values))[:count]]

    def _drawn(self, found: CrawledGraph, pages: IdArray, values: FloatArray, count: int) -> IdArray:
        """Draw pages without replacement, with probabilities proportional to a power of their scores.

        The largest keys `log weight + Gumbel noise` are such a sample (Yellott 1977).
        """
        from surveyor.kernels.hash_random import random_units_of_pages

        units = np.empty(pages.size)
        random_units_of_pages(self._tie_seed(found), pages, units)
        noise = -np.log(-np.log(np.minimum(units, 1 - 2.0**-53)))
        keys = POWER * np.log(np.maximum(values, np.finfo(np.float64).tiny)) + noise
        return pages[np.lexsort((pages, -keys))[:count]]

    def _tie_seed(self, found: CrawledGraph) -> np.uint64:
        """Return the seed for ties; random selection draws again in each round, or skipped pages would stay skipped."""
        again = found.pages.size if self.select in ("random", "explore") else 0
        return np.uint64((int(self._seed) + SPREAD * again) % 2**64)

    def _push(self, found: CrawledGraph, ranks: FloatArray) -> float:
        """Push residuals until the error is small enough or the work limit is reached; return the proven error."""
        from surveyor.kernels.pagerank_iterations import compute_residual, push_residuals_in_order

        residual = np.empty(ranks.size)
        compute_residual(found.indptr, found.indices, ranks, self.damping, residual)
        threshold = FIRST * self.tolerance * (1 - self.damping) * float(ranks.sum()) / max(ranks.size, 1)
        for _ in range(PUSHES):
            error = self._bound(ranks, residual)
            if error <= self.tolerance:
                return error
            if np.abs(residual).max() <= threshold:
                threshold /= FINER
            self.followed += push_residuals_in_order(
                found.indptr, found.indices, ranks, residual, self.damping, threshold, PASSES
            )
        return self._bound(ranks, residual)

    def _bound(self, ranks: FloatArray, residual: FloatArray) -> float:
        total = (1 - self.damping) * max(float(ranks.sum()), 1.0)
        return float(np.abs(residual - residual.sum() / max(ranks.size, 1)).sum()) / total + ROUNDING


def _rounded(values: FloatArray) -> FloatArray:
    """Round so that the order of summation does not affect the result."""
    fraction, exponent = np.frexp(values)
    return np.asarray(np.ldexp(np.round(np.ldexp(fraction, BITS)), exponent - BITS))


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
