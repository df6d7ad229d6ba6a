"""Which domains are the best, by what a survey has read so far: those with most supporters at level 2.

Who links to whom is taken from all links of the pages read, in the scope or not, but for those marked nofollow, with
which a site does not vouch. A domain that nobody links to has no rank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surveyor.graph.csr import Graph
from surveyor.graph.names import Names
from surveyor.urls import domain, host

if TYPE_CHECKING:
    from surveyor.store.survey import Folder


def best_domains(folder: Folder, count: int) -> list[str]:
    """Return the best domains, best first, at most so many."""
    from surveyor.rank.supporters import supporters

    graph = domains_of(folder)
    reputation, into = supporters(graph, depth=2), graph.in_links.degrees()
    return [graph.name(one) for one in reputation.top(count).tolist() if into[one]]


def domains_of(folder: Folder) -> Graph:
    """Return the graph of the domains that a survey knows."""
    numbers: dict[str, int] = {}
    of = np.array([numbers.setdefault(domain(host(url)), len(numbers)) for url in folder.journal.urls()], np.int64)
    sources, targets = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for visit in folder.journal.visits():
        targets.append(np.unique(of[np.concatenate([visit.links, visit.out_of_scope])]))
        sources.append(np.full(targets[-1].size, of[visit.page]))
    return Graph.from_arrays(np.concatenate(sources), np.concatenate(targets), len(numbers), Names.of(numbers))
