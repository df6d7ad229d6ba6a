"""Which domains are the best, by what a survey has read so far: those with most supporters at level 2.

Who links to whom is taken from all links of the pages read, in the scope or not, but for those marked nofollow, with
which a site does not vouch. A domain that nobody links to has no rank.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from surveyor.crawler.domain_graph import DomainGraph

if TYPE_CHECKING:
    from surveyor.graph.csr import Graph
    from surveyor.rank.domains.reputation import Reputation
    from surveyor.store.directory import Folder


def by_supporters(graph: Graph) -> Reputation:
    """Count supporters at level 2; in-links break ties."""
    from surveyor.rank.domains.supporters import supporters

    return supporters(graph, depth=2)


class BestDomains:
    """Ranks the domains of a survey again and again; only what was read since is looked at."""

    def __init__(self, score: Callable[[Graph], Reputation] = by_supporters) -> None:
        self._domains, self._score = DomainGraph(), score

    def __call__(self, folder: Folder, count: int) -> list[str]:
        """Return the best domains, best first, at most so many."""
        self._domains.catch_up(folder.journal)
        graph = self._domains.snapshot().graph
        into = graph.in_links.degrees()
        return [graph.name(one) for one in self._score(graph).top(count).tolist() if into[one]]
