"""Estimate domain scores with sketches that grow along in-links: HyperBall and bit vectors.

**HyperBall** (Boldi and Vigna 2013). The ball of level t holds the domains from which a domain can be reached in t
links or fewer. Each domain keeps a HyperLogLog counter of m one-byte registers; the counter of its next ball is the
maximum over those of its in-neighbours, and domains whose in-neighbours did not change are skipped. The harmonic
centrality, the sum of 1 / distance over all domains that reach it, is the sum of S_t / t where S_t domains are at
exactly level t.

S_1 is the in-degree: exact. HyperBall takes each further S_t as the difference of two estimated balls, each with a
standard error of 1.04 / √m of the whole ball. Here S_t is estimated from the registers that changed, given the
previous ones (`kernels/sketches.py`), so the known part of the ball adds no noise. The errors of different levels
are then uncorrelated, and their variances add up; the standard deviation of S_t is about √(1.39 S_t · B_t / m) while
S_t is a small part of the ball B_t, and 1.04 / √m of S_t where it is nearly all of it.

Cost: a level reads the in-links once, sequentially, and a counter for each link from a domain that changed; memory is
2 m + 27 bytes per domain. Levels are grown until no counter changes: as many as the longest shortest path.

**Bit vectors** (BV: Becchetti et al. 2008) estimate the number of domains at distance two. In a round of density p
each domain sets each of its 64 bits with probability p, and balls are grown by OR along the in-links. Of the bits that
the ball of level 1 (the domain itself and its in-neighbours) leaves clear, one stays clear at level 2 with probability
(1 - p)^S, where S domains are at exactly level 2. The paper on domain reputation, which keeps the vectors of level 1,
counts this way too. Estimating the whole ball and subtracting the known in-degree is never better at the same density:
its variance is larger by (exp(p · in-degree) - 1) / (64 p²).

Densities halve from 1/2 to about 1 / domains; exactly, p = 1 - 2^-(2^-k). A single round has the relative variance
(1 - q) / (64 q ln² q) where a bit stays clear with probability q: at best 1.544 / 64, a standard deviation of 15.5 %.
The paper uses for each domain the first round with fewer than 0.89 · 64 ones. All rounds have been computed, so all of
them are used here, by maximum likelihood (`kernels/sketches.py`): the information of halving densities sums to
π² / (6 ln 2) = 2.37 per bit, a standard deviation of 8.1 %. It is larger where the in-degree is not small relative to
S, where S is below 4, or within a factor of 4 of all domains: there some rounds are missing.

Large counts are estimated from small densities. With `top` the rounds start with the smallest, and end as soon as the
domain at that rank has had its best round (S · p = 1.59): 2 to 3 rounds in the paper, here the first eight.

Cost: `depth` passes over the in-links for eight rounds, one cache line per link; 128 bytes per domain for two levels of
vectors, and 2 for each density.

The same random seed gives the same bytes on any number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from surveyor.arrays import ByteArray, FloatArray, KeyArray, read_only
from surveyor.errors import UsageError, check_range
from surveyor.graph.adapters import GraphLike, simple_graph
from surveyor.graph.csr import Graph
from surveyor.kernels.thread_pool import ThreadPool
from surveyor.rank.domains.reputation import DEFAULT_RESOURCES, ErrorModel, Exact, PoissonCount, Reputation, Resources
from surveyor.rank.sweeps import blocks

if TYPE_CHECKING:
    from surveyor.kernels.sketches import Adjacency, LevelEstimates

Estimates = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]  # and their dispersions
MIN_REGISTERS, MAX_REGISTERS = 16, 1024
CACHE_LINE = 64  # bytes; counters are aligned to it
MOST_INFORMATIVE = 1.59  # expected ones per bit at which a round of bit vectors has most information


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Balls:
    """The number of domains that reach each domain, at the requested levels and as harmonic centrality."""

    graph: Graph
    levels: int  # number of levels grown
    complete: bool  # no counter would change at a further level
    reach: tuple[float, ...]  # pairs of domains at a distance of 0, 1, 2, … up to the last level
    totals: FloatArray  # harmonic centrality of each domain
    dispersion: npt.NDArray[np.float32]
    kept: dict[int, Estimates] = field(default_factory=dict)
    method: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "totals", read_only(self.totals))

    def harmonic(self) -> Reputation:
        """Return the sum of 1 / distance over the domains that reach each domain, up to the last level grown."""
        model = PoissonCount(self.dispersion, maximum=max(self.graph.pages - 1.0, 0.0))
        method = {**self.method, "levels": self.levels, "complete": self.complete}
        return self._reputation("harmonic", self.totals, model, method)

    def supporters(self, depth: int) -> Reputation:
        """Return the number of domains at exactly this distance; the level must have been kept."""
        method = {**self.method, "depth": depth}
        if depth == 1:
            return self._reputation("hyperball", self.graph.in_links.degrees(), Exact(), method)
        if depth not in self.kept:
            raise UsageError(f"depth {depth} is not among the kept levels", hint=f"hyperball(graph, keep=[{depth}])")
        scores, dispersion = self.kept[depth]
        model = PoissonCount(dispersion, maximum=max(self.graph.pages - 1.0, 0.0), integers=True)
        return self._reputation("hyperball", scores, model, method)

    def _reputation(self, kind: str, scores: npt.NDArray[Any], model: ErrorModel, method: dict[str, Any]) -> Reputation:
        rows, names = self.graph.in_links.indptr, self.graph.names
        return Reputation(kind, scores, error_model=model, in_indptr=rows, names=names, method=method)

    def __repr__(self) -> str:
        state = "complete" if self.complete else "not complete"
        return f"Balls({self.graph.pages:,} domains, {self.levels} levels, {state})"


def hyperball(
    graph: GraphLike,
    depth: int | None = None,
    *,
    registers: int = 64,
    keep: Sequence[int] = (),
    rng: int = 7,
    resources: Resources = DEFAULT_RESOURCES,
) -> Balls:
    """Grow the ball of every domain, level by level, until none changes or for `depth` levels.

    Parameters
    ----------
    registers : per counter, a power of two from 16 to 1024; four times as many halve the error. With a limit
        `resources.memory` on the bytes of all counters, as many as fit are used instead.
    keep : levels whose estimates to keep, for `Balls.supporters`; 8 bytes per domain each.

    >>> graph = Graph.from_edges([("a", "b"), ("b", "c"), ("c", "d")])
    >>> balls = hyperball(graph, registers=1024, keep=[2])
    >>> balls.levels, balls.complete, round(balls.harmonic().score("d"), 1), round(balls.supporters(2).score("c"))
    (3, True, 1.8, 1)
    """
    graph = simple_graph(graph)
    registers = _checked_registers(graph, registers, resources.memory)
    check_range("depth", depth, "[1, inf)", hint="None grows all levels")
    if wrong := [level for level in keep if level < 1 or (depth is not None and level > depth)]:
        raise UsageError(
            f"keep must hold levels in [1, {depth or 'last'}], got {wrong[0]}", hint="raise depth, or keep other levels"
        )
    kept = {}
    with ThreadPool(resources.threads) as pool:
        counters = _BallCounters(graph, registers, rng, pool)
        while counters.changes and (depth is None or counters.level < depth):
            resources.progress("growing balls", counters.level, depth or 0, "levels")
            counters.grow()
            if counters.level in keep:
                kept[counters.level] = counters.newest()
        for level in sorted(set(keep) - {1, *kept}):
            kept[level] = counters.empty_level(level)
    totals, variance = counters.found.harmonic, counters.found.variance
    dispersion = np.divide(variance, totals, out=np.zeros(graph.pages), where=totals > 0).astype(np.float32)
    levels = len(counters.reach) - 1 - (not counters.changes)
    return Balls(
        graph=graph,
        levels=levels,
        complete=not counters.changes,
        reach=tuple(counters.reach[: levels + 1]),
        totals=totals,
        dispersion=dispersion,
        kept=kept,
        method={"registers": registers, "rng": rng},
    )


def harmonic(
    graph: GraphLike,
    depth: int | None = None,
    *,
    registers: int = 64,
    rng: int = 7,
    resources: Resources = DEFAULT_RESOURCES,
) -> Reputation:
    """Estimate the harmonic centrality of every domain: the sum of 1 / distance over all domains that reach it.

    >>> graph = Graph.from_edges([("a", "b"), ("b", "c"), ("c", "d")])
    >>> score = harmonic(graph, registers=1024)
    >>> score.name(score.top(1)[0]), round(score.score("d"), 1)
    ('d', 1.8)
    """
    return hyperball(graph, depth, registers=registers, rng=rng, resources=resources).harmonic()


class _BallCounters:
    """The counters of all domains, double-buffered."""

    def __init__(self, graph: Graph, registers: int, rng: int, pool: ThreadPool) -> None:
        from surveyor.kernels import sketches as kernels

        rows, domains = graph.in_links, graph.pages
        self.kernels, self.pool = kernels, pool
        self.links: Adjacency = kernels.Adjacency(rows.indptr.view(np.uint64), rows.indices.view(np.uint32))
        self.blocks = blocks(rows.indptr)
        seed, bits = np.uint64(rng % 2**64), registers.bit_length() - 1
        hashes = kernels.DomainHashes(np.empty(domains, np.uint16), np.empty(domains, np.uint8))
        self.before, self.after = _aligned_zeros(domains * registers), _aligned_zeros(domains * registers)
        self.changed, self.fresh = np.zeros(domains, np.uint8), np.zeros(domains, np.uint8)
        self._each(kernels.init_registers, seed, hashes, bits=bits)
        self.level = 1
        self.changes = self._each(kernels.first_level, self.links, hashes, self.before, self.changed, registers)
        degrees = rows.degrees()
        none = np.zeros(domains, np.float32)
        self.found: LevelEstimates = kernels.LevelEstimates(
            none, none.copy(), degrees.astype(np.float64), np.zeros(domains)
        )
        self.reach = [float(domains), float(degrees.sum())]

    def grow(self) -> None:
        """Grow all balls by one level."""
        self.level += 1
        self.found.newest.fill(0)
        self.found.grain.fill(-1)
        buffers = self.kernels.CounterBuffers(self.before, self.after, self.changed, self.fresh)
        self.changes = self._each(self.kernels.grow_counters, self.links, buffers, self.found, self.level)
        self.before, self.after = self.after, self.before
        self.changed, self.fresh = self.fresh, self.changed
        self.reach.append(float(self.found.newest.sum(dtype=np.float64)))

    def newest(self) -> Estimates:
        """Return the estimates of the last level."""
        self._each(self.kernels.bound_unseen_growth, self.links, self.before, self.found.grain, self.level)
        return self.found.newest.copy(), self.found.grain.copy()

    def empty_level(self, level: int) -> Estimates:
        """Return the estimates of a level beyond the last one with any domain."""
        self.level = level
        self.found.newest.fill(0)
        self.found.grain.fill(-1)
        return self.newest()

    def _each(self, kernel: Any, *arguments: Any, **last: Any) -> int:
        results = self.pool.imap(kernel, [(*arguments, a, b, *last.values()) for a, b in self.blocks])
        return sum(result or 0 for result in results)


def _aligned_zeros(size: int) -> ByteArray:
    """Return zeros aligned to a cache line: a counter of 64 bytes is then one line, not parts of two."""
    buffer = np.zeros(size + CACHE_LINE, np.uint8)
    start = -buffer.ctypes.data % CACHE_LINE
    return buffer[start : start + size]


def _checked_registers(graph: Graph, registers: int, memory: int | None) -> int:
    """Check the number of registers, or compute how many fit in the memory."""
    if memory is not None:
        registers = MAX_REGISTERS
        while registers > MIN_REGISTERS and 2 * registers * graph.pages > memory:
            registers //= 2
        if 2 * registers * graph.pages > memory:
            least = 2 * MIN_REGISTERS * graph.pages
            raise UsageError(
                f"memory must be at least {least:,} bytes for {graph.pages:,} domains, got {memory:,}",
                hint="raise memory, or use a score that reads links sequentially",
            )
    if not MIN_REGISTERS <= registers <= MAX_REGISTERS or registers & (registers - 1):
        raise UsageError(
            f"registers must be a power of two in [{MIN_REGISTERS}, {MAX_REGISTERS}], got {registers}",
            hint="64 registers have a relative error of 13 %",
        )
    return registers


def bit_vectors(
    graph: GraphLike,
    depth: int = 2,
    *,
    rounds: int | None = None,
    top: int | None = None,
    words: int = 1,
    rng: int = 7,
    resources: Resources = DEFAULT_RESOURCES,
) -> Reputation:
    """Estimate the number of domains at exactly this distance from every domain, along in-links.

    Parameters
    ----------
    rounds : maximum number of densities, from the smallest; all by default. Small counts need the large ones.
    top : stop as soon as this many of the best domains have had their best round; the others are less precise.
    words : number of 64-bit words in each round; four times as many halve the error.

    >>> graph = Graph.from_edges([("a", "b"), ("b", "c"), ("c", "d")])
    >>> round(bit_vectors(graph).score("c"))
    1
    """
    graph = simple_graph(graph)
    for name, value in (("depth", depth), ("rounds", rounds), ("top", top), ("words", words)):
        check_range(name, value, "[1, inf)", hint=f"pass {name} as an integer from 1")
    densities = max(graph.pages - 1, 1).bit_length() + 1
    levels = [level for level in range(densities - 1, -1, -1)[:rounds] for _ in range(words)]
    with ThreadPool(resources.threads) as pool:
        vectors = _BitVectors(graph, densities, rng, pool)
        done = 0
        while done < len(levels):
            resources.progress("bit vectors", done, len(levels), "rounds")
            batch = levels[done : done + vectors.lanes]
            vectors.run(batch, depth)
            done += len(batch)
            if top is not None and vectors.precise(min(top, graph.pages), batch[-1]):
                break
        vectors.solve()
    method = {"depth": depth, "rounds": -(-done // words), "words": words, "rng": rng} | ({"top": top} if top else {})
    model = PoissonCount(vectors.dispersion, maximum=max(graph.pages - 1.0, 0.0), integers=True)
    rows = graph.in_links.indptr
    return Reputation("bv", vectors.estimate, error_model=model, in_indptr=rows, names=graph.names, method=method)


class _BitVectors:
    """The bit vectors of all domains, and the counts of the rounds so far."""

    def __init__(self, graph: Graph, densities: int, rng: int, pool: ThreadPool) -> None:
        from surveyor.kernels import sketches as kernels
        from surveyor.kernels.sketches import Adjacency

        rows, domains = graph.in_links, graph.pages
        self.kernels, self.pool, self.lanes = kernels, pool, kernels.LANES
        self.links: Adjacency = Adjacency(rows.indptr.view(np.uint64), rows.indices.view(np.uint32))
        self.seed, self.turn = np.uint64(rng % 2**64), 0
        self.blocks = blocks(rows.indptr)
        size = domains * self.lanes * 8
        self.inner, self.outer = (_aligned_zeros(size).view(np.uint64) for _ in range(2))
        self.counts, self.slope = np.zeros((domains, densities), np.uint16), np.zeros(domains)
        self.estimate, self.dispersion = np.zeros(domains, np.float32), np.zeros(domains, np.float32)

    def run(self, levels: list[int], depth: int) -> None:
        """Run a round in each lane; its level determines its density."""
        self._each(self.kernels.init_bit_vectors, self.seed, self._probabilities(levels), self.turn, self.outer)
        for _ in range(depth):
            self.inner, self.outer = self.outer, self.inner
            self._each(self.kernels.grow_bit_vectors, self.links, self.inner, self.outer)
        lanes = np.array(levels, np.int64)
        self._each(self.kernels.count_new_bits, self.inner, self.outer, lanes, self.counts, self.slope)
        self.turn += 1

    def solve(self) -> None:
        """Estimate from all rounds so far."""
        self._each(self.kernels.estimate_from_bits, self.counts, self.slope, self.estimate, self.dispersion)

    def precise(self, top: int, level: int) -> bool:
        """Return whether `top` domains have had their best round, `level` being the densest."""
        self.solve()
        least = np.partition(self.estimate, -top)[-top] if top else 0.0
        return bool(least * math.ldexp(self.kernels.UNIT, -level) >= MOST_INFORMATIVE)

    def _probabilities(self, levels: list[int]) -> KeyArray:
        """Return the probability of a bit in each lane, in units of 2**-64; lanes without a level stay empty."""
        shares = [-math.expm1(-math.ldexp(self.kernels.UNIT, -level)) for level in levels]
        units = [int(share * 2**64) for share in shares]
        return np.array(units + [0] * (self.lanes - len(levels)), np.uint64)

    def _each(self, kernel: Any, *arguments: Any) -> None:
        for _ in self.pool.imap(kernel, [(*arguments, first, last) for first, last in self.blocks]):
            pass
