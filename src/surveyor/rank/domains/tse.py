"""Top Supporters Estimation (TSE): level-D supporters counted over a sample of the domains.

Each domain is in the sample Z with probability p. The count c of the sampled supporters of a domain with S of them is
Binomial(S, p), so c / p is unbiased, with a relative standard deviation of √((1 - p) / (p · S)): the more supporters,
the better, and the top of the list is what budgets ask for. Intervals: `rank/domains/intervals.py`.

**Sampling** is by hash: a domain is in the sample if the hash of its id and the seed lies below p · 2⁶⁴. So a sample
with a larger p holds all of a smaller one, parts can be counted apart and added, and both ways to count see the same.

**In memory** a walk of D levels goes forward from each sampled domain and adds one to all that it finds at the last.
It touches p of what the exact count does, and nothing else: not even all links once. `streamed_tse.py` reads graphs
that are larger than memory instead, as two sequential streams, and counts the same.

**Choosing p.** For a relative standard deviation of ε at rank R, p = 1 / (1 + ε² · S_R). S_R is not known before, so a
pilot with a small p estimates it, and the sample grows until the error at rank R is as small as asked for.

**Who is ahead.** Errors of two domains come from the same sample, so what they share cancels:
Var(ĉ_a - ĉ_b) = |A △ B| · p (1 - p), with A and B their supporters. Domains with many supporters in common are told
apart far better than their intervals suggest (`outranks`).

    >>> graph = Graph.from_edges([(f"fan{k}", "hub") for k in range(300)] + [("hub", "star"), ("fan0", "niche")])
    >>> estimate = sampled_supporters(graph, p=0.5)
    >>> low, high = estimate.interval("star")
    >>> low < 300 < high, sampled_supporters(graph, p=1.0).score("star")
    (True, 300.0)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from queue import Empty, SimpleQueue
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from surveyor.errors import UsageError
from surveyor.graph.csr import Graph, Rows
from surveyor.kernels.crew import Crew
from surveyor.rank.domains.intervals import Certainty, Counted, Exact
from surveyor.rank.domains.reputation import Reputation
from surveyor.rank.domains.supporters import Walks, check_depth
from surveyor.stopping import Progress, silent

PILOT = 1e-4
ENOUGH = 100  # sampled supporters at rank R that a pilot must find: it knows S_R to a tenth then
FEW = 5000  # one in so many domains
SMALLEST = 2.0**-32  # p: no graph has more domains
ALL = 0.9  # p from which to count all costs little more
PATIENCE = 4  # times that a sample grows towards the error asked for
TOP, ERROR = 1000, 0.01
Ids = npt.NDArray[np.uint32]


@dataclass(slots=True, eq=False)
class Sample:
    """Counts over the domains whose hash is below p; it can grow, and what was counted stays."""

    graph: Graph
    depth: int = 2
    rng: int = 7
    threads: int | None = None
    progress: Progress = silent
    p: float = 0.0
    drawn: int = 0  # domains in the sample
    followed: int = 0  # links of the last level, which is nearly all of the work
    counts: Ids = field(init=False)

    def __post_init__(self) -> None:
        check_depth(self.depth)
        self.counts = np.zeros(self.graph.pages, np.uint32)

    def grow(self, p: float) -> None:
        """Count over the domains that a larger sample has and this one has not."""
        from surveyor.kernels.supporters import sponsor

        walks = Walks(Rows(self.graph.indptr, self.graph.indices))
        nodes = drawn_by(self.graph.pages, self.rng, self.p, p)
        rows = self.graph.indptr
        sources = nodes[rows[nodes.astype(np.int64) + 1] > rows[nodes]]  # others support nobody
        few = sources.size < self.graph.pages // FEW  # to add up counts of its own is all that a second thread would do
        free: SimpleQueue[Ids] = SimpleQueue()  # counts that no thread is adding to now
        free.put(self.counts)
        more: list[Ids] = []

        def count(first: int, last: int) -> int:
            try:
                counts = free.get_nowait()
            except Empty:
                more.append(counts := np.zeros_like(self.counts))
            with walks.marks() as (seen, queue):
                numbered = walks.indptr, walks.indices, sources[first:last], self.depth, first + 1
                followed = int(sponsor(*numbered, seen, queue, counts))
            free.put(counts)
            return followed

        with Crew(1 if few else self.threads) as crew:
            step = max(1, -(-sources.size // (8 * crew.threads)))
            edges = [*range(0, sources.size, step), sources.size]
            for done, followed in enumerate(crew.each(count, pairwise(edges)), 1):
                self.followed += followed
                self.progress("counting supporters", min(done * step, sources.size), sources.size, "domains")
        for counts in more:
            self.counts += counts
        self.p, self.drawn = p, self.drawn + nodes.size

    def at_rank(self, rank: int) -> float:
        """Return the estimate of the domain at this rank; 0 if there are not so many."""
        found = self.counts[self.counts > 0]
        return float(np.partition(found, -rank)[-rank]) / self.p if 0 < rank <= found.size else 0.0

    def reputation(self, **method: Any) -> Reputation:
        """Return the estimates."""
        graph = self.graph
        told = {"p": self.p, "depth": self.depth, "seed": self.rng, "sampled": self.drawn, "memory": "in RAM"}
        return Reputation(
            "tse", self.counts, 1 / self.p, certainty_of(self.p), graph.in_links.indptr, graph.names,
            {**told, **method},
        )  # fmt: skip


def sampled_supporters(
    graph: Graph,
    p: float | None = None,
    *,
    top: int = TOP,
    error: float = ERROR,
    depth: int = 2,
    rng: int = 7,
    threads: int | None = None,
    progress: Progress = silent,
) -> Reputation:
    """Estimate the level-`depth` supporters of every domain.

    Parameters
    ----------
    p : the chance of each domain to be sampled; chosen for `error` at rank `top` unless given.
    error : relative standard deviation wanted at rank `top`; `method["error"]` tells what was reached.
    """
    sample = Sample(graph, depth, rng, threads, progress)
    if not graph.pages:
        sample.p = 1.0
        return sample.reputation()
    for step in [check_p(p)] if p is not None else chosen(sample, top, error):
        sample.grow(step)
    reached = Counted(sample.p).relative(sample.at_rank(top)) if sample.p < 1 else 0.0
    return sample.reputation(top=min(top, graph.pages), error=reached)


def chosen(sample: Sample, top: int, error: float) -> Iterator[float]:
    """Yield the p to grow a sample to, until its error at rank `top` is as small as wanted."""
    check_wanted(top, error)
    p = PILOT
    yield p
    while p < 1 and (count := sample.at_rank(top) * p) < ENOUGH:  # too few to tell how many there are
        p = whole(p * min(10.0, 2 * ENOUGH / max(count, 1.0)))
        yield p
    for _ in range(PATIENCE):
        wanted = chance_for(error, sample.at_rank(top))
        if wanted <= p:
            return
        p = wanted
        yield p


def chance_for(error: float, score: float) -> float:
    """Return the p that estimates so large a score with this relative standard deviation."""
    return whole(1 / (1 + error**2 * score))


def whole(p: float) -> float:
    """Return p, or 1 where the rest costs little and makes the count exact."""
    return p if p < ALL else 1.0


def outranks(graph: Graph, estimate: Reputation, one: int | str, other: int | str) -> float:
    """Return how sure it is that one domain has more supporters than another, from 0 to 1, given a TSE estimate.

    The count behind it compares only supporters that the two do not share (see above); the normal law takes over
    from there. It costs as much as counting the supporters of both.
    """
    if estimate.kind != "tse":
        raise UsageError(f"a {estimate.kind} score has no sample to compare in", hint="estimate with TSE")
    from surveyor.kernels.supporters import level

    p, depth, seed = (estimate.method[key] for key in ("p", "depth", "seed"))
    sampled = np.zeros(graph.pages, np.bool_)
    sampled[drawn_by(graph.pages, seed, 0.0, p)] = True
    walks = Walks(graph.in_links)
    found = []
    with walks.marks() as (seen, queue):
        for stamp, domain in enumerate((one, other), 1):
            node = estimate.id_of(domain)
            first, last = level(walks.indptr, walks.indices, node, depth, stamp, seen, queue)
            found.append(queue[first:last][sampled[queue[first:last]]].copy())
    apart = np.setxor1d(found[0], found[1], assume_unique=True).size
    lead = found[0].size - found[1].size
    if not apart or p >= 1:
        return 0.5 + math.copysign(0.5, lead) if lead else 0.5
    return NormalDist().cdf(lead / math.sqrt(apart * (1 - p)))


def drawn_by(domains: int, rng: int, above: float, p: float) -> Ids:
    """Return the domains that a sample of p has and one of `above` has not, rising."""
    from surveyor.kernels.supporters import sample

    seed = np.random.SeedSequence(int(rng) % 2**64).generate_state(1, np.uint64)[0]
    least, most = threshold(above), threshold(p)
    if least >= most:
        return np.empty(0, np.uint32)
    found = np.empty(min(domains, int(domains * (p - above) * 1.2) + 1000), np.uint32)
    with np.errstate(over="ignore"):  # hashes wrap on purpose; only uncompiled kernels would warn
        count = sample(0, domains, seed, np.uint64(least), np.uint64(most - 1), found)
    return found[:count]


def threshold(p: float) -> int:
    """Return the hashes of a sample of p: all below this."""
    return 1 << 64 if p >= 1 else int(math.ldexp(p, 64))


def certainty_of(p: float) -> Certainty:
    """Return how sure counts over a sample of p are."""
    return Exact() if p >= 1 else Counted(p)


def check_p(p: float) -> float:
    """Refuse a chance that is none."""
    if not SMALLEST <= p <= 1:
        raise UsageError(f"p = {p:g} is no chance to be sampled", hint="choose p above 0 and up to 1, such as 0.001")
    return p


def check_wanted(top: int, error: float) -> None:
    """Refuse an error that cannot be had."""
    if top < 1:
        raise UsageError(f"the best {top} domains are none", hint="ask for 1 or more")
    if not 0 < error < 1:
        raise UsageError(
            f"an error of {error:g} cannot be asked for", hint="choose one from 0 to 1, such as 0.01 or 1%"
        )
