"""Ranking of domains during a crawl, by the number of supporters at level 2.

The domain graph has all links of the pages read, in or out of scope, except nofollow links, which are no endorsement.
A domain without in-links has no rank.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from surveyor.crawler.domain_graph import DomainGraph

if TYPE_CHECKING:
    from surveyor.graph.csr import Graph
    from surveyor.rank.domains.reputation import Reputation
    from surveyor.store.directory import SurveyFolder


def by_supporters(graph: Graph) -> Reputation:
    """Count supporters at level 2; ties are broken by in-links."""
    from surveyor.rank.domains.supporters import supporters

    return supporters(graph, depth=2)


class BestDomains:
    """Ranks the domains of a survey repeatedly; each call reads only the new visits."""

    def __init__(self, score: Callable[[Graph], Reputation] = by_supporters) -> None:
        self._domains, self._score = DomainGraph(), score

    def __call__(self, folder: SurveyFolder, count: int) -> list[str]:
        """Return at most `count` domains, best first."""
        self._domains.catch_up(folder.journal)
        graph = self._domains.snapshot().graph
        into = graph.in_links.degrees()
        return [graph.name(one) for one in self._score(graph).top(count).tolist() if into[one]]
