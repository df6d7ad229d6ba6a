"""Top Supporters Estimation (TSE): level-D supporters counted over a sample of the domains.

Each domain is in the sample Z with probability p. The count c of the sampled supporters of a domain with S of them is
Binomial(S, p), so c / p is unbiased, with a relative standard deviation of √((1 - p) / (p · S)): more supporters give a
better estimate, and budgets depend on the top of the list. Confidence intervals: `BinomialCount`.

**Sampling** is by hash: a domain is in the sample if the hash of its id and the random seed is below p · 2⁶⁴. So a
sample with a larger p contains every smaller one, parts can be counted separately and added, and both methods use the
same sample.

**In memory** a walk of D levels follows links forward from each sampled domain and adds one to all domains at the last
level. It does a fraction p of the work of the exact count, and nothing else: it does not even read all links once.

**Choosing p.** For a relative standard deviation of ε at rank R, p = 1 / (1 + ε² · S_R). S_R is not known in advance,
so a pilot with the smallest p that may do (S_R is at most the number of domains) estimates it, and the sample grows
until the error at rank R is as small as requested; each step aims at no more than is needed (`next_p`).

**Comparing two domains.** Their errors come from the same sample, so those of shared supporters cancel: Var(ĉ_a - ĉ_b)
= |A △ B| · p (1 - p), with A and B their supporters. Domains with many supporters in common are distinguished far
better than their confidence intervals suggest (`order_confidence`).

    >>> graph = Graph.from_edges([(f"fan{k}", "hub") for k in range(300)] + [("hub", "star"), ("fan0", "niche")])
    >>> estimate = sampled_supporters(graph, p=0.5)
    >>> low, high = estimate.interval("star")
    >>> low < 300 < high, sampled_supporters(graph, p=1.0).score("star")
    (True, 300.0)

**Streamed**, for a graph larger than memory: two sequential passes over its files, with a share p of them in memory.
Pass 1 reads the links and keeps those of sampled domains (where few are sampled, it reads only theirs). Pass 2 reads
the in-links in blocks of rows: a sampled domain z supports x at level 2 if it links to a domain that links to x, and
neither is x nor links to x itself. The counts are written to a file as they are computed. They are bit-identical to
those in memory: the same domains are sampled and counted.

It uses 16 bytes for each link of a sampled domain, a bit and a half for each domain, and work buffers: 4 MB per piece,
or the longest row. Files are read with plain reads, not mapped, so what was read does not stay in the memory of the
process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from queue import Empty, SimpleQueue
from statistics import NormalDist
from typing import Any

import numpy as np

from surveyor.errors import UsageError, check_range
from surveyor.graph.adapters import GraphLike, simple_graph
from surveyor.graph.csr import Graph, Rows
from surveyor.graph.folder import describe, open_folder
from surveyor.graph.formats.streams import atomic_write
from surveyor.kernels.thread_pool import ThreadPool
from surveyor.rank.domains.link_counts import Ids, LevelSearch, check_depth
from surveyor.rank.domains.reputation import (
    DEFAULT_RESOURCES,
    BinomialCount,
    ErrorModel,
    Exact,
    Reputation,
    Resources,
)
from surveyor.rank.domains.streams import check_disk, open_stream, sample_counts

ENOUGH = 100  # sampled supporters at rank R from which S_R is known to a tenth
FEW = 5000  # one in this many domains
SMALLEST = 2.0**-32  # p: no graph has more domains
ALL = 0.9  # p from which an exact count costs little more
LEAST_GROWTH, MOST_GROWTH = 1.05, 10.0  # of a sample in a step towards the requested error
TOP, ERROR = 1000, 0.01
BYTES_PER_LINK = 16  # of a sampled domain, while the sample is read


@dataclass(slots=True, eq=False)
class SupporterSample:
    """Counts over the domains whose hash is below p; the sample can grow, and its counts are kept."""

    graph: Graph
    depth: int = 2
    rng: int = 7
    resources: Resources = DEFAULT_RESOURCES
    p: float = 0.0
    sampled: int = 0  # domains in the sample
    followed: int = 0  # links of the last level: nearly all of the work
    counts: Ids = field(init=False)

    def __post_init__(self) -> None:
        check_depth(self.depth)
        self.counts = np.zeros(self.graph.pages, np.uint32)

    def grow(self, p: float) -> None:
        """Count over the domains that a larger sample adds."""
        from surveyor.kernels.supporter_counts import credit_supported

        search = LevelSearch(Rows(self.graph.indptr, self.graph.indices))
        nodes = sampled_domains(self.graph.pages, self.rng, self.p, p)
        rows = self.graph.indptr
        sources = nodes[rows[nodes.astype(np.int64) + 1] > rows[nodes]]  # the others support no domain
        few = sources.size < self.graph.pages // FEW  # too few for a second thread: summing its counts costs more
        free: SimpleQueue[Ids] = SimpleQueue()  # counts that no thread is using
        free.put(self.counts)
        partial: list[Ids] = []

        def count(first: int, last: int) -> int:
            try:
                counts = free.get_nowait()
            except Empty:
                partial.append(counts := np.zeros_like(self.counts))
            with search.marks() as (seen, queue):
                walk = search.links, sources[first:last], self.depth, first + 1
                followed = int(credit_supported(*walk, seen, queue, counts))
            free.put(counts)
            return followed

        with ThreadPool(1 if few else self.resources.threads) as pool:
            step = max(1, -(-sources.size // (8 * pool.threads)))
            edges = [*range(0, sources.size, step), sources.size]
            for done, followed in enumerate(pool.imap(count, pairwise(edges)), 1):
                self.followed += followed
                finished = min(done * step, sources.size)
                self.resources.progress("counting supporters", finished, sources.size, "domains")
        for counts in partial:
            self.counts += counts
        self.p, self.sampled = p, self.sampled + nodes.size

    def score_at(self, rank: int) -> float:
        """Return the estimate of the domain at this rank; 0 if there are fewer."""
        positive = self.counts[self.counts > 0]
        return float(np.partition(positive, -rank)[-rank]) / self.p if 0 < rank <= positive.size else 0.0

    def reputation(self, **method: Any) -> Reputation:
        """Return the estimates."""
        return Reputation(
            kind="tse",
            raw=self.counts,
            scale=1 / self.p,
            error_model=error_model_of(self.p),
            in_indptr=self.graph.in_links.indptr,
            names=self.graph.names,
            method={
                "p": self.p,
                "depth": self.depth,
                "rng": self.rng,
                "sampled": self.sampled,
                "mode": "in memory",
                **method,
            },
        )


def sampled_supporters(
    graph: GraphLike,
    p: float | None = None,
    *,
    top: int = TOP,
    error: float = ERROR,
    depth: int = 2,
    rng: int = 7,
    resources: Resources = DEFAULT_RESOURCES,
) -> Reputation:
    """Estimate the level-`depth` supporters of every domain.

    Parameters
    ----------
    p : the sampling probability of each domain; chosen for `error` at rank `top` by default.
    error : requested relative standard deviation at rank `top`; `method["error"]` is the one reached.
    """
    graph = simple_graph(graph)
    sample = SupporterSample(graph, depth, rng, resources)
    if not graph.pages:
        sample.p = 1.0
        return sample.reputation()
    for step in [check_p(p)] if p is not None else growth(sample.score_at, graph.pages, top, error):
        sample.grow(step)
    reached = BinomialCount(sample.p).relative_error(sample.score_at(top)) if sample.p < 1 else 0.0
    return sample.reputation(top=min(top, graph.pages), error=reached)


def growth(score_at: Callable[[int], float], domains: int, top: int, error: float) -> Iterator[float]:
    """Yield the p to grow a sample to, until its error at rank `top` is as small as requested."""
    check_target(top, error)
    p, following = 0.0, p_for(error, domains)
    while following > p:
        p = following
        yield p
        following = next_p(p, score_at(top) * p, error)


def next_p(p: float, count: float, error: float) -> float:
    """Return the p to count with next, given the count at the requested rank: p itself if that is enough.

    A pilot is the smallest p that any graph of this size can need. A small count then gives an upper limit of the
    supporters at this rank, and so a p that is not too large; from `ENOUGH` on, the estimate is used. Stopping at a
    count that happens to be high stops too early, so it has to be one standard deviation higher than the error needs.
    """
    error /= math.sqrt(1 + error)
    if p >= 1 or (count > 0 and 1 - p <= error**2 * count):
        return p
    if count >= ENOUGH:
        return max(p_for(error, count / p), round_up(LEAST_GROWTH * p))
    most = (count + 2 * math.sqrt(count) + 2) / p  # supporters, with a margin of two standard deviations
    return round_up(p * min(max(p_for(error, most) / p, LEAST_GROWTH), MOST_GROWTH))


def p_for(error: float, score: float) -> float:
    """Return the p that estimates a score of this size with this relative standard deviation."""
    return round_up(1 / (1 + error**2 * score))


def round_up(p: float) -> float:
    """Return p, or 1 where an exact count costs little more."""
    return p if p < ALL else 1.0


def order_confidence(graph: GraphLike, estimate: Reputation, one: Hashable, other: Hashable) -> float:
    """Return the confidence, from 0 to 1, that one domain has more supporters than another, given a TSE estimate.

    It compares only sampled supporters that the two do not share, with a normal approximation. The cost is that of
    counting the supporters of both.
    """
    if estimate.kind != "tse":
        raise UsageError(f"estimate must be a tse score, got {estimate.kind}", hint="use sampled_supporters()")
    from surveyor.kernels.supporter_counts import domains_at_depth

    graph = simple_graph(graph)
    p, depth, rng = (estimate.method[key] for key in ("p", "depth", "rng"))
    in_sample = np.zeros(graph.pages, np.bool_)
    in_sample[sampled_domains(graph.pages, rng, 0.0, p)] = True
    search = LevelSearch(graph.in_links)
    supporters = []
    with search.marks() as (seen, queue):
        for stamp, domain in enumerate((one, other), 1):
            node = estimate.id_of(domain)
            first, last = domains_at_depth(search.links, node, depth, stamp, seen, queue)
            supporters.append(queue[first:last][in_sample[queue[first:last]]].copy())
    distinct = np.setxor1d(supporters[0], supporters[1], assume_unique=True).size
    lead = supporters[0].size - supporters[1].size
    if not distinct or p >= 1:
        return 0.5 + math.copysign(0.5, lead) if lead else 0.5
    return NormalDist().cdf(lead / math.sqrt(distinct * (1 - p)))


def sampled_domains(domains: int, rng: int, above: float, p: float) -> Ids:
    """Return the domains that are in a sample of p but not in one of `above`, ascending."""
    from surveyor.kernels.supporter_counts import sample_domains

    seed, first, last = sample_seed(rng), hash_threshold(above), hash_threshold(p)
    if first >= last:
        return np.empty(0, np.uint32)
    ids = np.empty(min(domains, int(domains * (p - above) * 1.2) + 1000), np.uint32)
    with np.errstate(over="ignore"):  # hashes wrap on purpose; only uncompiled kernels would warn
        count = sample_domains(0, domains, seed, np.uint64(first), np.uint64(last - 1), ids)
    return ids[:count]


def sample_seed(rng: int) -> np.uint64:
    """Return the seed of the hashes that samples are drawn by."""
    return np.uint64(np.random.SeedSequence(int(rng) % 2**64).generate_state(1, np.uint64)[0])


def hash_threshold(p: float) -> int:
    """Return the hash threshold of a sample of p: hashes below it are in the sample."""
    return 1 << 64 if p >= 1 else int(math.ldexp(p, 64))


def error_model_of(p: float) -> ErrorModel:
    """Return the error model of counts over a sample of p."""
    return Exact() if p >= 1 else BinomialCount(p)


def check_p(p: float) -> float:
    """Reject a sampling probability outside [SMALLEST, 1]."""
    if not SMALLEST <= p <= 1:
        raise UsageError(f"p must be in (0, 1], got {p:g}", hint="p is the sampling probability, such as 0.001")
    return p


def check_target(top: int, error: float) -> None:
    """Reject a rank below 1 or an error outside (0, 1)."""
    check_range("top", top, "[1, inf)", hint="the error is reached at this rank")
    check_range("error", error, "(0, 1)", hint="use a value such as 0.01 or 1%")


def streamed_supporters(
    folder: str | Path,
    p: float | None = None,
    *,
    out: str | Path,
    top: int = TOP,
    error: float = ERROR,
    rng: int = 7,
    resources: Resources = DEFAULT_RESOURCES,
) -> Reputation:
    """Estimate the level-2 supporters of every domain of a graph folder; write the counts to `out`, a `.npy` file.

    p is chosen as in memory: a pilot pass estimates the supporters at rank `top`, further passes reach the error. A p
    whose sample takes more than `resources.memory` bytes is rejected.
    """
    folder, out = Path(folder), Path(out)
    description = describe(folder)
    domains = description["pages"]
    graph = open_folder(folder)  # verifies all files, in one additional pass
    if p is None:
        check_target(top, error)
    current = check_p(p) if p is not None else p_for(error, domains)
    while True:
        check_disk(out, 4 * domains)
        _check_memory(current, description["links"], resources.memory)
        with atomic_write(out) as draft:
            sampled = _count(folder, current, rng, draft, resources)
        method = {"p": current, "depth": 2, "rng": rng, "sampled": sampled, "mode": "streamed"}
        counts = np.load(out, mmap_mode="r") if domains else np.empty(0, np.uint32)
        rows, names = graph.in_links.indptr, graph.names
        estimate = Reputation("tse", counts, 1 / current, error_model_of(current), rows, names, method)
        count = estimate.score_at(min(top, domains)) * current
        needed = current if p is not None else next_p(current, count, error)
        if needed <= current:
            reached = BinomialCount(current).relative_error(count / current) if current < 1 else 0.0
            method.update(top=min(top, domains), error=reached)
            return estimate
        current = needed


def _count(folder: Path, p: float, rng: int, out: Path, resources: Resources) -> int:
    """Write the counts of all domains; return the number of sampled domains."""
    with open_stream(folder) as stream, out.open("wb") as file:
        header = {"descr": "<u4", "fortran_order": False, "shape": (stream.domains,)}
        np.lib.format.write_array_header_1_0(file, header)
        sample = sampled_domains(stream.domains, rng, 0.0, p)
        done = 0
        for counts in sample_counts(stream, sample, resources):
            file.write(counts.data)
            done += counts.size
            resources.progress("counting supporters", done, stream.domains, "domains")
    return int(sample.size)


def _check_memory(p: float, links: int, memory: int | None) -> None:
    """Reject a sample that does not fit in memory."""
    if memory is not None and BYTES_PER_LINK * p * links > memory:
        largest, size = memory / (BYTES_PER_LINK * links), BYTES_PER_LINK * p * links
        raise UsageError(
            f"a sample with p = {p:.2g} needs {size / 1e6:,.0f} MB, and memory is limited to {memory / 1e6:,.0f} MB",
            hint=f"p = {largest:.1g} fits: raise memory or error, or lower top",
        )
