"""Ranks of a local domain that is expanded page by page into the surrounding web, and the pages to fetch next.

FindGlobalPR (Davis and Dhillon, KDD 2006) alternates between ranking the fetched pages and fetching the frontier pages
that affect the local ranks most. Each time only changes are ranked again. The ranks solve a system that leaks at pages
without links and in which every page gets 1 in addition to its links; new pages leave this 1 unchanged, so old ranks
remain a good start. With ρ the residual, the change of one more update, and n pages,

    ‖ranks / Σ ranks − PageRank‖₁  ≤  Σ |ρ − Σρ/n| / ((1 − damping) · Σ ranks)

since ranks of sum 1 change by exactly these residuals in a step of the surfer, and a step contracts distances by the
damping. Residuals are pushed until this bound is small enough.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from surveyor.arrays import BoolArray, FloatArray, IdArray, IntArray
from surveyor.errors import UsageError
from surveyor.kernels.crawled_graph import CrawledGraph, build_crawled_graph
from surveyor.kernels.mass import Rows
from surveyor.rank import complement as scores

Select = Literal["complement", "flow", "cho", "outlinks", "random"]
SELECTORS: tuple[str, ...] = get_args(Select)
BITS = 36  # significant bits of a score: rounding errors below them must not decide
FIRST, FINER = 4.0, 2.0  # the first push threshold, as a multiple of the final one, and the factor by which it falls
SPREAD = 0x9E3779B97F4A7C15  # odd and large: makes the seeds of different rounds distinct
TOLERANCE = 1e-5  # of ranks that only select pages: twice what the paper's stopping rule proves
PASSES, PUSHES = 32, 64  # passes per push, and pushes in total: with a damping near 1 it would never end
ROUNDING = 1e-13  # of residuals that were pushed many times


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
            return scores.outlinks(found)
        ranks = self.ranks(found)
        if self.select == "complement":
            local = np.zeros(found.pages.size, np.bool_)
            local[np.searchsorted(found.pages, self.local)] = True
            return scores.complement(found, ranks, local, self.damping, threads=self._threads)
        return scores.flow(found, ranks, plus=1.0 if self.select == "flow" else 0.0)

    def best(self, found: CrawledGraph, count: int, waits: BoolArray | None = None) -> IdArray:
        """Return the ids of the best pages of the frontier, best first; only those that `waits` marks, if given."""
        from surveyor.kernels.hash_random import random_units_of_pages

        pages, values = found.frontier, _rounded(self.scores(found))
        if waits is not None:
            allowed = waits[pages]
            pages, values = pages[allowed], values[allowed]
        if count < pages.size:
            enough = values >= np.partition(values, -count)[-count] if count else np.zeros(pages.size, np.bool_)
            pages, values = pages[enough], values[enough]
        ties = np.empty(pages.size)
        random_units_of_pages(self._tie_seed(found), pages, ties)
        return pages[np.lexsort((ties, -values))[:count]]

    def _tie_seed(self, found: CrawledGraph) -> np.uint64:
        """Return the seed for ties; random selection draws again in each round, or skipped pages would stay skipped."""
        again = found.pages.size if self.select == "random" else 0
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
