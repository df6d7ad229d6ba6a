"""Estimate the number of domains at distance two from bit vectors (BV: Becchetti et al. 2008).

In a round of density p each domain sets each of its 64 bits with probability p, and balls are grown by OR along the
in-links. Of the bits that the ball of level 1 (the domain itself and its in-neighbours) leaves clear, one stays clear
at level 2 with probability (1 - p)^S, where S domains are at exactly level 2. The paper on domain reputation, which
keeps the vectors of level 1, counts this way too. Estimating the whole ball and subtracting the known in-degree is
never better at the same density: its variance is larger by (exp(p · in-degree) - 1) / (64 p²).

**Rounds.** Densities halve from 1/2 to about 1 / domains; exactly, p = 1 - 2^-(2^-k). A single round has the
relative variance (1 - q) / (64 q ln² q) where a bit stays clear with probability q: at best 1.544 / 64, a standard
deviation of 15.5 %. The paper uses for each domain the first round with fewer than 0.89 · 64 ones. As all rounds have
been computed anyway, all of them are used here, by maximum likelihood (`kernels/sketches.py`): the information of
halving densities sums to π² / (6 ln 2) = 2.37 per bit, a standard deviation of 8.1 %. It is larger where the in-degree
is not small relative to S, where S is below 4, or within a factor of 4 of all domains: there some rounds are missing.

**Top list.** Large counts are estimated from small densities. With `top` the rounds begin with the smallest, and end as
soon as the domain at that rank has had its best round (S · p = 1.59): 2 to 3 rounds in the paper, here the first eight.

Cost: `depth` passes over the in-links for eight rounds, one cache line per link; 128 bytes per domain for two levels of
vectors, and 2 for each density. The same seed gives the same bytes on any number of threads.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import KeyArray
from surveyor.errors import UsageError
from surveyor.graph.csr import Graph
from surveyor.kernels.thread_pool import ThreadPool
from surveyor.rank.domains.hyperball import counters
from surveyor.rank.domains.intervals import Grained
from surveyor.rank.domains.reputation import Reputation
from surveyor.rank.sweeps import blocks
from surveyor.stopping import ProgressCallback, silent

if TYPE_CHECKING:
    from surveyor.kernels.sketches import InLinks

BEST = 1.59  # expected ones per bit at which a round has most information


def bit_vectors(
    graph: Graph,
    depth: int = 2,
    *,
    rounds: int | None = None,
    top: int | None = None,
    words: int = 1,
    rng: int = 7,
    threads: int | None = None,
    progress: ProgressCallback = silent,
) -> Reputation:
    """Estimate the number of domains at exactly this distance from every domain, along in-links.

    Parameters
    ----------
    rounds : maximum number of densities, from the smallest; all by default. Small counts need the large ones.
    top : stop as soon as this many of the best domains are settled; the others are then less precise.
    words : number of 64-bit words in each round; four times as many halve the error.

    >>> graph = Graph.from_edges([("a", "b"), ("b", "c"), ("c", "d")])
    >>> round(bit_vectors(graph).score("c"))
    1
    """
    for name, value in (("depth", depth), ("rounds", rounds), ("top", top), ("words", words)):
        if value is not None and value < 1:
            raise UsageError(f"{name} {value} is below 1", hint=f"give {name} as a whole number from 1")
    densities = max(graph.pages - 1, 1).bit_length() + 1
    chosen = [level for level in range(densities - 1, -1, -1)[:rounds] for _ in range(words)]
    with ThreadPool(threads) as pool:
        vectors = _Vectors(graph, densities, rng, pool)
        done = 0
        while done < len(chosen):
            progress("bit vectors", done, len(chosen), "rounds")
            batch = chosen[done : done + vectors.lanes]
            vectors.run(batch, depth)
            done += len(batch)
            if top is not None and vectors.settled(min(top, graph.pages), batch[-1]):
                break
        vectors.solve()
    how = {"depth": depth, "rounds": -(-done // words), "words": words, "rng": rng} | ({"top": top} if top else {})
    law = Grained(vectors.grain, most=max(graph.pages - 1.0, 0.0), whole=True)
    return Reputation(
        "bv", vectors.estimate, certainty=law, in_indptr=graph.in_links.indptr, names=graph.names, method=how
    )


class _Vectors:
    """The bit vectors of all domains, and the counts of the rounds so far."""

    def __init__(self, graph: Graph, densities: int, rng: int, pool: ThreadPool) -> None:
        from surveyor.kernels import sketches as kernels
        from surveyor.kernels.sketches import InLinks

        rows, domains = graph.in_links, graph.pages
        self.kernels, self.pool, self.lanes = kernels, pool, kernels.LANES
        self.links: InLinks = InLinks(rows.indptr.view(np.uint64), rows.indices.view(np.uint32))
        self.seed, self.turn = np.uint64(rng % 2**64), 0
        self.blocks = blocks(rows.indptr)
        size = domains * self.lanes * 8
        self.inner, self.outer = (counters(size).view(np.uint64) for _ in range(2))
        self.counts, self.slope = np.zeros((domains, densities), np.uint16), np.zeros(domains)
        self.estimate, self.grain = np.zeros(domains, np.float32), np.zeros(domains, np.float32)

    def run(self, levels: list[int], depth: int) -> None:
        """Run a round in each lane; its level determines its density."""
        self._each(self.kernels.init_bit_vectors, self.seed, self._digits(levels), self.turn, self.outer)
        for _ in range(depth):
            self.inner, self.outer = self.outer, self.inner
            self._each(self.kernels.grow_bit_vectors, self.links, self.inner, self.outer)
        lanes = np.array(levels, np.int64)
        self._each(self.kernels.count_new_bits, self.inner, self.outer, lanes, self.counts, self.slope)
        self.turn += 1

    def solve(self) -> None:
        """Estimate from all rounds so far."""
        self._each(self.kernels.estimate_from_bits, self.counts, self.slope, self.estimate, self.grain)

    def settled(self, top: int, level: int) -> bool:
        """Return whether `top` domains have had their best round, `level` being the densest."""
        self.solve()
        least = np.partition(self.estimate, -top)[-top] if top else 0.0
        return bool(least * math.ldexp(self.kernels.UNIT, -level) >= BEST)

    def _digits(self, levels: list[int]) -> KeyArray:
        """Return the probability of a bit in each lane, in units of 2**-64; lanes without a level stay empty."""
        chances = [-math.expm1(-math.ldexp(self.kernels.UNIT, -level)) for level in levels]
        digits = [int(chance * 2**64) for chance in chances]
        return np.array(digits + [0] * (self.lanes - len(levels)), np.uint64)

    def _each(self, kernel: Any, *arguments: Any) -> None:
        for _ in self.pool.imap(kernel, [(*arguments, first, last) for first, last in self.blocks]):
            pass
