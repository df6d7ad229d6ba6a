"""Estimate how many domains reach each domain, level by level, with HyperLogLog (HyperBall, Boldi and Vigna 2013).

The ball of level t holds the domains from which a domain can be reached in t links or fewer. Each domain keeps a
counter of m one-byte registers; the counter of its next ball is the maximum over those of its in-neighbours, and
domains whose in-neighbours did not change are skipped. The harmonic centrality, the sum of 1 / distance over all
domains that reach it, is the sum of S_t / t where S_t domains are at exactly level t.

**Estimate.** S_1 is the in-degree: exact. HyperBall takes each further S_t as the difference of two estimated balls,
each with a standard error of 1.04 / √m of the whole ball. Here S_t is estimated from the registers that changed, given
the previous ones (`kernels/sketches.py`), so the known part of the ball adds no noise. The errors of different levels
are then uncorrelated, and their variances add up; the sd of S_t is about √(1.39 S_t · B_t / m) while S_t is a
small part of the ball B_t, and 1.04 / √m of S_t where it is nearly all of it.

Cost: a level reads the in-links once, sequentially, and a counter for each link from a domain that changed; memory is
2 m + 27 bytes per domain. Levels are grown until no counter changes: as many as the longest shortest path.
The same seed gives the same bytes on any number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from surveyor.arrays import ByteArray, FloatArray, read_only
from surveyor.errors import UsageError
from surveyor.graph.csr import Graph
from surveyor.kernels.thread_pool import ThreadPool
from surveyor.rank.domains.intervals import Grained
from surveyor.rank.domains.reputation import Reputation
from surveyor.rank.sweeps import blocks
from surveyor.stopping import ProgressCallback, silent

if TYPE_CHECKING:
    from surveyor.kernels.sketches import InLinks, LevelEstimates

Estimates = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]  # and their grains
LEAST, MOST = 16, 1024  # registers
LINE = 64  # bytes of a cache line, to which counters are aligned


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Balls:
    """The number of domains that reach each domain, at the requested levels and as harmonic centrality."""

    graph: Graph
    levels: int  # number of levels grown
    complete: bool  # no counter would change at a further level
    reach: tuple[float, ...]  # pairs of domains at a distance of 0, 1, 2, … up to the last level
    totals: FloatArray  # harmonic centrality of each domain
    grain: npt.NDArray[np.float32]
    kept: dict[int, Estimates] = field(default_factory=dict)
    method: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "totals", read_only(self.totals))

    def harmonic(self) -> Reputation:
        """Return the sum of 1 / distance over the domains that reach each domain, up to the last level grown."""
        law = Grained(self.grain, most=max(self.graph.pages - 1.0, 0.0))
        how = {**self.method, "levels": self.levels, "complete": self.complete}
        return self._reputation("harmonic", self.totals, law, how)

    def supporters(self, depth: int) -> Reputation:
        """Return the number of domains at exactly this distance; the level must have been kept."""
        if depth == 1:
            degrees = self.graph.in_links.degrees()
            return self._reputation("hyperball", degrees, None, {**self.method, "depth": 1})
        if depth not in self.kept:
            raise UsageError(f"level {depth} was not kept", hint=f"hyperball(graph, keep=[{depth}])")
        scores, grain = self.kept[depth]
        law = Grained(grain, most=max(self.graph.pages - 1.0, 0.0), whole=True)
        return self._reputation("hyperball", scores, law, {**self.method, "depth": depth})

    def _reputation(self, kind: str, scores: Any, law: Grained | None, how: dict[str, Any]) -> Reputation:
        rest: dict[str, Any] = {} if law is None else {"certainty": law}
        return Reputation(
            kind, scores, in_indptr=self.graph.in_links.indptr, names=self.graph.names, method=how, **rest
        )

    def __repr__(self) -> str:
        ended = "complete" if self.complete else "not complete"
        return f"Balls({self.graph.pages:,} domains, {self.levels} levels, {ended})"


def hyperball(
    graph: Graph,
    depth: int | None = None,
    *,
    registers: int = 64,
    memory: int | None = None,
    keep: Sequence[int] = (),
    rng: int = 7,
    threads: int | None = None,
    progress: ProgressCallback = silent,
) -> Balls:
    """Grow the ball of every domain, level by level, until none changes or for `depth` levels.

    Parameters
    ----------
    registers : per counter, a power of two from 16 to 1024; four times as many halve the error.
    memory : maximum bytes of all counters; as many registers as fit, instead of `registers`.
    keep : levels whose estimates to keep, for `Balls.supporters`; 8 bytes per domain each.

    >>> graph = Graph.from_edges([("a", "b"), ("b", "c"), ("c", "d")])
    >>> balls = hyperball(graph, registers=1024, keep=[2])
    >>> balls.levels, balls.complete, round(balls.harmonic().score("d"), 1), round(balls.supporters(2).score("c"))
    (3, True, 1.8, 1)
    """
    registers = _registers(graph, registers, memory)
    if depth is not None and depth < 1:
        raise UsageError(f"depth {depth} is no level", hint="1 is the in-links, 2 what links to those; None is all")
    if wrong := [level for level in keep if level < 1 or (depth is not None and level > depth)]:
        raise UsageError(f"level {wrong[0]} cannot be kept", hint=f"levels go from 1 to {depth or 'the last'}")
    kept = {}
    with ThreadPool(threads) as pool:
        growing = _Growing(graph, registers, rng, pool)
        while growing.moved and (depth is None or growing.level < depth):
            progress("growing balls", growing.level, depth or 0, "levels")
            growing.grow()
            if growing.level in keep:
                kept[growing.level] = growing.newest()
        for level in sorted(set(keep) - {1, *kept}):
            kept[level] = growing.nothing(level)
    totals, variance = growing.found.harmonic, growing.found.variance
    grain = np.divide(variance, totals, out=np.zeros(graph.pages), where=totals > 0).astype(np.float32)
    levels = len(growing.reach) - 1 - (not growing.moved)
    how = {"registers": registers, "rng": rng}
    return Balls(graph, levels, not growing.moved, tuple(growing.reach[: levels + 1]), totals, grain, kept, how)


def harmonic(
    graph: Graph,
    depth: int | None = None,
    *,
    registers: int = 64,
    memory: int | None = None,
    rng: int = 7,
    threads: int | None = None,
    progress: ProgressCallback = silent,
) -> Reputation:
    """Estimate the harmonic centrality of every domain: the sum of 1 / distance over all domains that reach it.

    >>> graph = Graph.from_edges([("a", "b"), ("b", "c"), ("c", "d")])
    >>> score = harmonic(graph, registers=1024)
    >>> score.name(score.top(1)[0]), round(score.score("d"), 1)
    ('d', 1.8)
    """
    return hyperball(
        graph, depth, registers=registers, memory=memory, rng=rng, threads=threads, progress=progress
    ).harmonic()


def ball_supporters(
    graph: Graph,
    depth: int = 2,
    *,
    registers: int = 64,
    memory: int | None = None,
    rng: int = 7,
    threads: int | None = None,
    progress: ProgressCallback = silent,
) -> Reputation:
    """Estimate the number of domains at exactly this distance from every domain, along in-links.

    >>> graph = Graph.from_edges([("a", "b"), ("b", "c"), ("c", "d")])
    >>> round(ball_supporters(graph, 3).score("d"))
    1
    """
    return hyperball(
        graph, depth, registers=registers, memory=memory, keep=[depth], rng=rng, threads=threads, progress=progress
    ).supporters(depth)


class _Growing:
    """The counters of all domains, double-buffered."""

    def __init__(self, graph: Graph, registers: int, rng: int, pool: ThreadPool) -> None:
        from surveyor.kernels import sketches as kernels

        rows, domains = graph.in_links, graph.pages
        self.kernels, self.pool = kernels, pool
        self.links: InLinks = kernels.InLinks(rows.indptr.view(np.uint64), rows.indices.view(np.uint32))
        self.blocks = blocks(rows.indptr)
        seed, bits = np.uint64(rng % 2**64), registers.bit_length() - 1
        hashes = kernels.DomainHashes(np.empty(domains, np.uint16), np.empty(domains, np.uint8))
        self.before, self.after = counters(domains * registers), counters(domains * registers)
        self.changed, self.fresh = np.zeros(domains, np.uint8), np.zeros(domains, np.uint8)
        self._each(kernels.init_registers, seed, hashes, bits=bits)
        self.level = 1
        self.moved = self._each(kernels.first_level, self.links, hashes, self.before, self.changed, registers)
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
        self.moved = self._each(self.kernels.grow_counters, self.links, buffers, self.found, self.level)
        self.before, self.after = self.after, self.before
        self.changed, self.fresh = self.fresh, self.changed
        self.reach.append(float(self.found.newest.sum(dtype=np.float64)))

    def newest(self) -> Estimates:
        """Return the estimates of the last level."""
        self._each(self.kernels.bound_unseen_growth, self.links, self.before, self.found.grain, self.level)
        return self.found.newest.copy(), self.found.grain.copy()

    def nothing(self, level: int) -> Estimates:
        """Return the estimates of a level after one that found nothing."""
        self.level = level
        self.found.newest.fill(0)
        self.found.grain.fill(-1)
        return self.newest()

    def _each(self, kernel: Any, *arguments: Any, **last: Any) -> int:
        results = self.pool.imap(kernel, [(*arguments, a, b, *last.values()) for a, b in self.blocks])
        return sum(result or 0 for result in results)


def counters(size: int) -> ByteArray:
    """Return zeros aligned to a cache line: a counter of 64 bytes is then one line, not parts of two."""
    room = np.zeros(size + LINE, np.uint8)
    start = -room.ctypes.data % LINE
    return room[start : start + size]


def _registers(graph: Graph, registers: int, memory: int | None) -> int:
    """Check the number of registers, or compute how many fit in the memory."""
    if memory is not None:
        registers = MOST
        while registers > LEAST and 2 * registers * graph.pages > memory:
            registers //= 2
        if 2 * registers * graph.pages > memory:
            least = 2 * LEAST * graph.pages
            raise UsageError(
                f"{memory:,} bytes are too few for {graph.pages:,} domains", hint=f"the least is {least:,} bytes"
            )
    if not LEAST <= registers <= MOST or registers & (registers - 1):
        raise UsageError(
            f"{registers} registers are not a power of two from {LEAST} to {MOST}", hint="64 registers err by 13 %"
        )
    return registers
