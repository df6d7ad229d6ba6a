"""The state of a PageRank computation: ranks, their shares, and sweeps that improve them.

Ranks are stored up to a factor; `total` is their sum and `dangling_sum` the part on dangling pages. Each sweep ends
with a proven bound on the L1 error of `scores()`, appended to `history`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from surveyor.arrays import FloatArray, IntArray, let_go
from surveyor.graph.csr import Graph
from surveyor.kernels.thread_pool import ThreadPool

BLOCK = 1 << 19  # work of a block: links plus four per page
BLOCKS = 64  # at most: 32 in parallel
DEPTH = 5  # sweeps combined at a time
PUSHES = 3  # multiple of all links that a push may follow before sweeps take over
HISTORY = 1 << 30  # maximum bytes of the stored rank vectors; beyond it there is no extrapolation
FAR = 1 << 29  # number of links from which memory of read file pages is released immediately
PRECISE = 1e-7  # changes smaller than this require precise sums
ROUNDING = 1.2e-16  # float64 rounds to within 2**-53, with a margin for products of roundings
WEIGHTED = 16  # roundings of a link with a weight, beyond those of the sum
SUM_ROUNDING = 1e-14  # of a pairwise sum over any number of pages that fits in memory


class Sweeps:
    """Ranks that are improved by sweeps."""

    def __init__(
        self, graph: Graph, teleport: FloatArray, dangling: FloatArray | None, damping: float, pool: ThreadPool
    ) -> None:
        from surveyor.kernels import pagerank_iterations as kernels

        rows = graph.in_links
        self.kernels, self.graph, self.damping, self.pool = kernels, graph, damping, pool
        self.teleport, self.dangling = teleport, dangling
        self.one_teleport = dangling is None or np.array_equal(dangling, teleport)  # for jumps and dangling pages
        self.history: list[float] = []
        self.change = 1.0
        self.followed = 0  # links followed by pushes
        self.chances = graph.chances
        # With weights, a share is the rank itself, and each link passes its probability times that.
        self.inverse = graph.share_per_link if self.chances is None else (np.diff(graph.indptr) > 0).astype(np.float64)
        self.web = kernels.SweepGraph(
            rows.indptr.view(np.uint64), rows.indices.view(np.uint32), self.inverse, teleport, damping
        )
        self.blocks = blocks(rows.indptr)
        depth = DEPTH if (DEPTH + 1) * 8 * graph.pages <= HISTORY else 1
        self.ranks = np.empty((depth + 1, graph.pages))
        self.newest, self.fresh_rows = 0, 1
        self.shares, self.fresh = np.empty(graph.pages), np.empty(graph.pages)
        self.ranks[0].fill(1.0 / max(graph.pages, 1))
        np.divide(self.inverse, max(graph.pages, 1), out=self.shares)
        self.total = 1.0
        self.dangling_sum = float(np.count_nonzero(self.inverse == 0)) / max(graph.pages, 1)

    def start(self, ranks: FloatArray) -> None:
        """Start from these ranks."""
        self.ranks[self.newest] = ranks
        np.multiply(ranks, self.inverse, out=self.shares)
        self.fresh_rows = 1
        self._measure()

    @property
    def can_push(self) -> bool:
        """Whether residuals can be pushed: with one teleport distribution, and without weights."""
        return self.one_teleport and self.chances is None

    @property
    def error(self) -> float:
        """The proven bound of the current ranks."""
        return self.history[-1] if self.history else (0.0 if self.graph.pages == 0 else 2.0)

    @cached_property
    def widest(self) -> int:
        """The largest in-degree."""
        return int(np.diff(self.web.indptr).max(initial=0))

    @property
    def sweeps(self) -> int:
        """The number of passes over all links, pushes included."""
        return len(self.history) + -(-self.followed // max(self.graph.links, 1))

    def scores(self) -> FloatArray:
        """Return the current ranks, scaled to sum 1."""
        ranks: FloatArray = self.ranks[self.newest]
        return ranks / (float(ranks.sum()) or 1.0)

    def prove(self) -> float:
        """Run one power sweep, whose bound is as sharp as the residual; return the bound."""
        if self.change < PRECISE * self.total:
            self._measure()
            sum_rounding = SUM_ROUNDING
        else:
            sum_rounding = ROUNDING * self.graph.pages
        before, total = self.ranks[self.newest], self.total
        self._turn()
        sums = self._sweep("power", before, self.blocks)
        self.shares, self.fresh = self.fresh, self.shares
        self._add(sums)
        self.fresh_rows = 1
        rounding = ROUNDING * sum(part.rounding for part in sums) / total + sum_rounding
        residual = self.change / total + rounding
        # Twice the rounding in addition to the residual: of the new ranks, and of the sum that scales them to 1.
        return self._record(self.damping * residual / (1 - self.damping) + 2 * rounding)

    def seidel(self) -> float:
        """Run one Gauss–Seidel sweep, even blocks first; return its (looser) bound without rounding.

        Extrapolates when enough rank vectors are stored.
        """
        if self.fresh_rows == self.ranks.shape[0] and self.fresh_rows > 2:
            self._blend()
        elif self.fresh_rows == 1:
            self.fresh[:] = self.shares
        before = self.ranks[self.newest]
        self._turn()
        sums: list[Any] = []
        for wave in (self.blocks[::2], self.blocks[1::2]):
            sums += self._sweep("seidel", before, wave)
            for first, last in wave:
                self.shares[first:last] = self.fresh[first:last]
        self._add(sums)
        self.fresh_rows += 1
        # Where dangling pages do not lead to the teleport pages, the jumps of the next update differ as well.
        factor = 2 * self.damping if self.one_teleport else 1 + self.damping
        bound = factor * self.change / ((1 - self.damping) * self.total)
        terms = self.graph.pages + self.widest + (0 if self.chances is None else WEIGHTED)
        self._record(bound + 4 * ROUNDING * terms / (1 - self.damping))
        return bound

    def push(self, tolerance: float, max_sweeps: int) -> None:
        """Push residuals along links until the error is near the tolerance or the residuals are too spread out."""
        from surveyor.kernels.pagerank_iterations import PushLimits, push_residuals

        graph, damping = self.graph, self.damping
        leak = (1 - damping) / ((1 - damping) * self.total + damping * self.dangling_sum)
        ranks = self.ranks[self.newest] * leak
        np.multiply(ranks, self.inverse, out=self.shares)
        residual = self.ranks[(self.newest + 1) % self.ranks.shape[0]]
        vectors = self.kernels.SweepVectors(ranks, residual, self.shares, self.fresh)
        self._run(self.kernels.power_block, [(self.web, 1 - damping, vectors, a, b) for a, b in self.blocks])
        self.history.append(self.error)
        residual -= ranks
        queue = np.empty(graph.pages, np.int32)
        budget = min(PUSHES, max_sweeps) * graph.links
        while self.followed < budget:
            norm = np.abs(residual - residual.sum() * self.teleport).sum()
            if damping * norm <= 0.8 * tolerance * (1 - damping) * ranks.sum():
                break
            threshold = 0.3 * float(np.abs(residual).sum()) / max(int(np.count_nonzero(residual)), 1)
            limits = PushLimits(damping, threshold, budget - self.followed)
            self.followed += push_residuals(graph.indptr, graph.indices, ranks, residual, limits, queue) or 1
        self.start(np.maximum(ranks, 0.0))

    def _measure(self) -> None:
        """Sum the ranks accurately: the proof depends on it."""
        ranks = self.ranks[self.newest]
        self.total = float(ranks.sum())
        self.dangling_sum = float(np.multiply(ranks, self.inverse == 0, out=self.fresh).sum()) if ranks.size else 0.0

    def _turn(self) -> None:
        self.newest = (self.newest + 1) % self.ranks.shape[0]

    def _arguments(self, before: FloatArray, blocks: list[tuple[int, int]]) -> Iterable[tuple[Any, ...]]:
        web, weight = self.web, (1 - self.damping) * self.total + self.damping * self.dangling_sum
        if self.dangling is not None and not self.one_teleport:
            jump = (1 - self.damping) * self.total * self.teleport + self.damping * self.dangling_sum * self.dangling
            web, weight = web._replace(jump=np.broadcast_to(jump, self.graph.pages).copy()), 1.0
        vectors = self.kernels.SweepVectors(before, self.ranks[self.newest], self.shares, self.fresh)
        return [(web, weight, vectors, first, last) for first, last in blocks]

    def _sweep(self, method: str, before: FloatArray, blocks: list[tuple[int, int]]) -> list[Any]:
        """Update some blocks by power iteration or Gauss–Seidel; return their sums."""
        arguments = self._arguments(before, blocks)
        if self.chances is None:
            return self._run(getattr(self.kernels, f"{method}_block"), arguments)
        from surveyor.kernels import weighted_sweeps

        kernel = getattr(weighted_sweeps, f"weighted_{method}_block")
        return self._run(kernel, [(web, self.chances, *rest) for web, *rest in arguments])

    def _run(self, kernel: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
        results: list[Any] = []
        pieces = list(arguments)
        for piece, result in zip(pieces, self.pool.imap(kernel, pieces), strict=True):
            results.append(result)
            if self.graph.links > FAR:
                rows = self.graph.in_links
                let_go(rows.indices, *rows.indptr[list(piece[-2:])])
        return results

    def _add(self, sums: list[Any]) -> None:
        self.change = sum(part.change for part in sums)
        self.total = sum(part.total for part in sums)
        self.dangling_sum = sum(part.stuck for part in sums)

    def _record(self, bound: float) -> float:
        self.history.append(min(2.0, float(bound)))
        return self.history[-1]

    def _blend(self) -> None:
        """Replace the ranks by the combination of the last ones whose combined change is smallest."""
        rows = self.ranks.shape[0]
        order = (self.newest + 1 + np.arange(rows)) % rows
        lower = np.sum(
            self._run(self.kernels.gram_matrix_block, [(self.ranks, order, a, b) for a, b in self.blocks]), axis=0
        )
        self.fresh_rows = 1
        parts = extrapolation(lower)
        if parts is None:
            return
        arguments = [(self.ranks, order, parts, self.inverse, self.shares, a, b) for a, b in self.blocks]
        self._add(self._run(self.kernels.blend_block, arguments))
        self.fresh[:] = self.shares


def extrapolation(lower: FloatArray) -> FloatArray | None:
    """Return the weights of the last rank vectors whose combined change is smallest; None if there are none.

    `lower` is the lower triangle of the inner products of the changes, oldest first.
    """
    gram = lower + np.tril(lower, -1).T
    scale = gram[-1, -1]
    if not scale > 0:
        return None
    ridge = 1e-13 * np.trace(gram) * np.eye(gram.shape[0])
    parts = np.linalg.solve((gram + ridge) / scale, np.ones(gram.shape[0]))
    parts /= parts.sum()
    return parts if np.abs(parts).sum() < 1e3 else None


def blocks(indptr: IntArray) -> list[tuple[int, int]]:
    """Split the pages into blocks of similar work; their number depends on the graph only."""
    pages = indptr.size - 1
    work = int(indptr[-1]) + 4 * pages
    count = 1 if work < BLOCK // 2 else max(4, min(BLOCKS, work // BLOCK))  # four: two threads have work in each wave
    marks = [step * (work / count) for step in range(1, count)]
    cuts = [bisect_left(range(pages + 1), mark, key=lambda page: int(indptr[page]) + 4 * page) for mark in marks]
    edges = [0, *cuts, pages]
    return [(a, b) for a, b in pairwise(edges) if a < b]
