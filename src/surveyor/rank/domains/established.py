"""Established domains: those that trusted domains reach through independent links.

Supporters of a domain are hard to forge in a graph of millions of domains. In a small crawl they are not: a farm whose
fetched domains outnumber the others has more supporters than any of them. So budgets need to know first which domains
count. A *flow* starts at the trusted domains (those of the seeds) and follows links, each page splitting its vote among
its links. Unlike in PageRank, a domain does not count the largest contribution that it receives, unless that comes from
at least two pages of a trusted domain: f = d · (received − largest) + (1 − d) · start. Its *trust* is what it receives
without the largest contribution, whoever makes that: a trusted domain may be hacked, too.

- The flow is unique, because a step is a contraction in L1 with factor d: leaving out the largest of a list of numbers
  is monotone, and changes the sum by no more than the numbers change.
- **Domains that the rest of the web reaches only through one page, or through one domain that is not trusted, have no
  trust**, however many they are and however they link to each other: f = 0 for all of them satisfies the equation,
  which has one solution.
- In general the flow in any set F without trusted domains is at most d / (1 − d) times what F receives from outside,
  without the largest outside contribution to each of its domains. A farm gains nothing from more domains.

The established domains are the fewest, highest first, that together hold `SHARE` of the trust outside the trusted
domains. Every other domain belongs to the *group* of a page of an established or trusted domain: the first page that
links to it, of the domain with the strongest link, or the page of the domain that it is known through.

    >>> names = ["seed", "a", "b", "c", "farm", "fan"]  # seed -> a, b; a and b -> c; only c -> farm; farm <-> fan
    >>> sources, targets = np.array([0, 0, 1, 2, 3, 4, 5]), np.array([1, 2, 3, 3, 4, 5, 4])
    >>> first = np.array([10, 10, 20, 30, 40, 50, 60])  # page 40 of c links to the farm
    >>> links = VotedLinks.of(sources, targets, np.ones(7, np.int64), (first, first + 1), 6)
    >>> found = establish(links, np.array([0]))
    >>> [names[domain] for domain in found.established.tolist()], found.via[[4, 5]].tolist()
    (['c'], [40, 40])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surveyor.arrays import AnyIntArray, BoolArray, FloatArray, IdArray, IntArray
from surveyor.kernels.thread_pool import ThreadPool
from surveyor.rank.sweeps import blocks

DAMPING = 0.85
SHARE = 0.995  # of the trust outside the trusted domains, held by the established ones
TOLERANCE = 1e-5  # L1 change of a step, where all trust is at most 1
MAX_STEPS = 100  # d ** 100 < 1e-7
MAX_HOPS = 64  # links from the established domains within which others are grouped


class VotedLinks(NamedTuple):
    """Links between domains by target, and the votes of each: of every page of the source, split among its links."""

    indptr: IntArray
    sources: IdArray
    votes: IntArray
    first: IdArray  # of the pages of the source that have the link
    last: IdArray

    @classmethod
    def of(
        cls, sources: IntArray, targets: IntArray, votes: IntArray, pages: tuple[AnyIntArray, AnyIntArray], domains: int
    ) -> VotedLinks:
        """Group links by target, given the first and last page of each; the votes of equal links are added."""
        keys = targets.astype(np.uint64) << np.uint64(32) | sources.astype(np.uint64)
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: keys.size])
        merged, (first, last) = votes, pages
        if starts.size:
            merged = np.add.reduceat(votes[order], starts)
            first, last = np.minimum.reduceat(first[order], starts), np.maximum.reduceat(last[order], starts)
        keys = keys[starts]
        counts = np.bincount((keys >> np.uint64(32)).astype(np.int64), minlength=domains)
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        into = (keys & np.uint64(0xFFFFFFFF)).astype(np.int32)
        return cls(indptr, into, merged.astype(np.int64), first.astype(np.int32), last.astype(np.int32))

    @property
    def domains(self) -> int:
        """The number of domains."""
        return int(self.indptr.size) - 1

    @property
    def targets(self) -> IdArray:
        """The target of each link."""
        return np.repeat(np.arange(self.domains, dtype=np.int32), np.diff(self.indptr))


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """The trust of domains, which of them are established, and through which pages the others are known."""

    trust: FloatArray
    established: IntArray  # ids, most trusted first; without the trusted domains
    via: IdArray  # a page of an established or trusted domain for each domain that is neither; -1 if there is none


def establish(
    links: VotedLinks,
    trusted: IntArray,
    most: int | None = None,
    masses: FloatArray | None = None,
    least: float = 0.0,
    *,
    threads: int | None = None,
) -> Standing:
    """Find the established domains, given the ids of the trusted ones: at most `most`, each with this mass at least.

    `masses` are of domains, equal by default. They also decide which link to a domain without trust is the strongest.
    """
    masses = np.ones(links.domains) if masses is None else masses
    known = np.zeros(links.domains, np.bool_)
    known[trusted] = True
    given = np.maximum(np.bincount(links.sources, links.votes, links.domains), 1.0)
    with ThreadPool(threads) as pool:
        flow = _flow(links, given, known, pool)
        trust = _received(links, flow / given, np.zeros(links.domains, np.bool_), pool)
        order = np.flatnonzero((trust > 0) & ~known)
        order = order[np.argsort(-trust[order], kind="stable")]
        held = np.cumsum(trust[order])
        established = order[: int(np.searchsorted(held, SHARE * held[-1])) + 1] if order.size else order
        established = established[masses[established] >= least][:most]
        known[established] = True
        return Standing(trust, established, _grouped(links, flow / given, masses / given, known, pool))


def _flow(links: VotedLinks, given: FloatArray, trusted: BoolArray, pool: ThreadPool) -> FloatArray:
    """Iterate the flow of trust until it changes by less than `TOLERANCE`."""
    start = trusted / max(int(trusted.sum()), 1)
    flow = start.copy()
    for _ in range(MAX_STEPS):
        after = DAMPING * _received(links, flow / given, trusted, pool) + (1 - DAMPING) * start
        change = float(np.abs(after - flow).sum())
        flow = after
        if change < TOLERANCE:
            break
    return flow


def _received(links: VotedLinks, per_vote: FloatArray, vouched: BoolArray, pool: ThreadPool) -> FloatArray:
    """Return what each domain receives without the largest contribution, unless two pages vouched for make that."""
    from surveyor.kernels.independent_links import pass_trust

    received = np.empty(links.domains)
    every = ((tuple(links), vouched, per_vote, first, last, received) for first, last in blocks(links.indptr))
    list(pool.imap(pass_trust, every))
    return received


def _grouped(
    links: VotedLinks, per_vote: FloatArray, afterwards: FloatArray, known: BoolArray, pool: ThreadPool
) -> IdArray:
    """Return the page of a known domain through which each other domain is known, along the strongest links.

    Known domains are compared by what they give, others, which have no trust, by their mass per vote.
    """
    from surveyor.kernels.independent_links import strongest_link

    group = np.full(links.domains, -1, np.int32)
    best = np.empty(links.domains, np.int64)
    for _ in range(MAX_HOPS):
        usable = known | (group >= 0)
        every = ((tuple(links), usable, per_vote, first, last, best) for first, last in blocks(links.indptr))
        list(pool.imap(strongest_link, every))
        new = np.flatnonzero(~usable & (best >= 0))
        if not new.size:
            break
        link = best[new]
        source = links.sources[link]
        group[new] = np.where(known[source], links.first[link], group[source])
        per_vote = afterwards
    return group
