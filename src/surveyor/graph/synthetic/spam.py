"""Plant spam in a domain graph, so that the bad domains are known.

Each function returns a new graph and the ids of the planted domains; existing domains keep their ids, new ones
follow. Attacks, by what they cost:

- *clique*: k domains that all link to each other: k - 1 in-links each, no domain at distance two;
- *exchange*: each of k domains swaps links with some others: few in-links each, but all the others at distance two;
- *farm*: domains that link to one target; or, to gain supporters at distance two, to intermediaries that link to it;
- *bought links*: links to a target from domains that are honest otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surveyor.arrays import AnyIntArray, IntArray
from surveyor.errors import UsageError, check_range
from surveyor.graph.csr import Graph
from surveyor.graph.names import Names

LOW = 0.5  # share of domains, by in-degree, that count as low


def plant_clique(graph: Graph, count: int, rng: np.random.Generator, *, new: bool = True) -> tuple[Graph, IntArray]:
    """Make this many domains, new or existing low ones, all link to each other."""
    members = _members(graph, count, rng, new=new)
    one, other = np.nonzero(~np.eye(members.size, dtype=np.bool_))
    return _with_links(graph, members[one], members[other], "clique"), members


def plant_exchange(
    graph: Graph, count: int, partners: int, rng: np.random.Generator, *, new: bool = True
) -> tuple[Graph, IntArray]:
    """Make each of this many domains swap links with `partners` others, the same number for each, drawn at random."""
    if not 0 < partners < count or partners % 2:
        raise UsageError(
            f"partners must be even and below the {count} members, got {partners}", hint="each link is mutual"
        )
    members = _members(graph, count, rng, new=new)
    # Steps round a circle of members in random order: all members have the same number of partners.
    steps = 1 + rng.choice((count - 1) // 2, partners // 2, replace=False)
    one = np.tile(np.arange(count), steps.size)
    other = (one + np.repeat(steps, count)) % count
    sources, targets = np.concatenate([one, other]), np.concatenate([other, one])
    return _with_links(graph, members[sources], members[targets], "exchange"), members


def plant_farm(graph: Graph, boosters: int, target: int | None = None, *, through: int = 0) -> tuple[Graph, IntArray]:
    """Add new domains that link to a target, a new one by default; the target is the first planted domain.

    With `through`, that many of the new domains are intermediaries: the others link to all of them, and they link to
    the target.
    """
    if not 0 <= through < boosters:
        raise UsageError(
            f"through must be from 0 up to the {boosters} boosters, got {through}",
            hint="other boosters must link to the intermediaries",
        )
    goal = graph.pages if target is None else target
    check_range("target", target, f"[0, {graph.pages - 1}]", hint="give the id of a domain")
    start = graph.pages + (target is None)
    farm = np.arange(start, start + boosters)
    middle, outer = farm[:through], farm[through:]
    if through:
        sources = np.concatenate([np.repeat(outer, through), middle])
        targets = np.concatenate([np.tile(middle, outer.size), np.full(through, goal)])
    else:
        sources, targets = outer, np.full(outer.size, goal)
    return _with_links(graph, sources, targets, "farm"), np.concatenate([[goal], farm])


def buy_links(graph: Graph, sellers: Sequence[AnyIntArray]) -> tuple[Graph, IntArray]:
    """Add one new target for each group of sellers, existing domains that link to it; the targets are the planted."""
    targets = np.arange(graph.pages, graph.pages + len(sellers))
    sources = np.concatenate([np.empty(0, np.int64), *sellers])
    return _with_links(graph, sources, np.repeat(targets, [len(group) for group in sellers]), "bought"), targets


def low_domains(graph: Graph) -> IntArray:
    """Return the domains with few in-links: the lower half."""
    degrees = graph.in_links.degrees()
    return np.flatnonzero(degrees <= np.quantile(degrees, LOW, method="lower")) if degrees.size else np.arange(0)


def _members(graph: Graph, count: int, rng: np.random.Generator, *, new: bool) -> IntArray:
    check_range("count", count, "[2, inf)", hint="the planted domains link to each other")
    if new:
        return rng.permutation(np.arange(graph.pages, graph.pages + count))
    low = low_domains(graph)
    if low.size < count:
        raise UsageError(
            f"count must be at most {low.size:,}, the low domains of the graph, got {count:,}", hint="or use new=True"
        )
    return rng.choice(low, count, replace=False)


def _with_links(graph: Graph, sources: IntArray, targets: IntArray, kind: str) -> Graph:
    """Return a graph with additional links; new domains are named by kind and id."""
    pages = 1 + int(max(graph.pages - 1, sources.max(initial=-1), targets.max(initial=-1)))
    names = None
    if graph.names is not None:
        names = Names.of([*graph.names, *(f"{kind}{page}.test" for page in range(graph.pages, pages))])
    old = np.repeat(np.arange(graph.pages), graph.out_degrees)
    return Graph.from_arrays(np.concatenate([old, sources]), np.concatenate([graph.indices, targets]), pages, names)
