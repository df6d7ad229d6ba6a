"""Trust from a list of trusted domains, and spam mass: the fraction of a domain's rank that trust does not explain.

    popularity   PageRank with uniform teleport
    trust        PageRank with teleport to the trusted domains only (TrustRank)
    spam mass    1 - γ · trust / popularity, at least 0: the fraction of the popularity that trust does not explain

γ is the fraction of the web that is good: trusted domains represent all good ones, so their jumps count γ of all. With
the default of 0.85 a domain that is exactly as popular in the trusted web as in the whole has a spam mass of 0.15. A
high mass means that the domain depends on links from domains that trust does not reach: a farm, or a part of the web
that is missing from the list. It is a reason to investigate, not a verdict.

Both ranks carry a proven error e, so the mass lies between 1 - γ (t + e) / (p - e) and 1 - γ (t - e) / (p + e).

    >>> links = [("good", "fine"), ("fine", "good"), ("farm1", "spam"), ("farm2", "spam"), ("spam", "farm1")]
    >>> result = trust(Graph.from_edges(links), ["good"])
    >>> round(result.spam_mass(result.graph.page("fine")), 2), round(result.spam_mass(result.graph.page("spam")), 2)
    (0.0, 1.0)
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import AnyIntArray, FloatArray
from surveyor.errors import UsageError, check_range
from surveyor.frames import Tabular
from surveyor.graph.adapters import GraphLike, simple_graph
from surveyor.graph.csr import Graph
from surveyor.rank.domains.link_counts import check_ids
from surveyor.rank.domains.reputation import DEFAULT_RESOURCES, BoundedError, Interval, Reputation, Resources
from surveyor.rank.pagerank import Ranking, SolverOptions, pagerank

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAMMA = 0.85
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Trust(Tabular):
    """Trust, popularity and spam mass of the domains of one graph."""

    graph: Graph
    popularity: Ranking
    trust: Ranking
    gamma: float  # assumed fraction of good domains
    trusted: int  # number of trusted domains in the graph

    def spam_mass(self, domain: Hashable) -> float:
        """Return the spam mass of a domain, from 0 to 1."""
        return float(self.spam_masses(np.array([self.graph.page(domain)]))[0])

    def _columns(self) -> dict[str, Any]:
        columns = self.trust._columns()
        masses = {"trust": columns.pop("share"), "popularity": self.popularity.scores, "spam_mass": self.spam_masses()}
        return {**columns, **masses}

    def _draw(self, axes: Axes) -> None:
        some = (self.popularity.scores > 0) & (self.trust.scores > 0)
        axes.loglog(self.popularity.scores[some], self.trust.scores[some], ".", markersize=3)
        axes.set_xlabel("popularity")
        axes.set_ylabel("trust")

    def spam_masses(self, domains: AnyIntArray | None = None) -> FloatArray:
        """Return the spam mass of some domains, or of all."""
        trust, popularity = self._scores(domains)
        return np.maximum(0.0, 1 - self.gamma * trust / popularity)

    def intervals(self, domains: AnyIntArray | None = None) -> Interval:
        """Return proven bounds of the spam mass."""
        trust, popularity = self._scores(domains)
        high = 1 - self.gamma * np.maximum(trust - self.trust.error, 0) / (popularity + self.popularity.error)
        least = np.maximum(popularity - self.popularity.error, np.finfo(np.float64).tiny)
        low = 1 - self.gamma * (trust + self.trust.error) / least
        return np.clip(low, 0, 1), np.clip(high, 0, 1)

    def reputation(self) -> Reputation:
        """Return trust as a score."""
        return as_reputation("trust", self.graph, self.trust)

    def _scores(self, domains: AnyIntArray | None) -> tuple[FloatArray, FloatArray]:
        which = slice(None) if domains is None else domains
        return self.trust.scores[which], self.popularity.scores[which]


def trust(
    graph: GraphLike,
    trusted: Sequence[Hashable] | AnyIntArray,
    *,
    gamma: float = GAMMA,
    popularity: Ranking | None = None,
    tolerance: float = TOLERANCE,
    resources: Resources = DEFAULT_RESOURCES,
) -> Trust:
    """Rank from trusted domains, by name, id or node; those that are not in the graph are ignored.

    The graph may be any of `as_graph`; weights, self-links and duplicate links are ignored.
    """
    graph = simple_graph(graph)
    check_range("gamma", gamma, "(0, 1]", hint="it is the assumed fraction of good domains")
    weights = np.zeros(graph.pages)
    trusted = [trusted] if isinstance(trusted, str) else list(trusted)
    if not graph.labelled:
        check_ids(np.array([one for one in trusted if not isinstance(one, str)], np.int64), graph.pages)
    for one in trusted:
        named = isinstance(one, str) or graph.labelled
        node = (graph.names.find(one) if graph.names is not None else None) if named else int(one)  # type: ignore[call-overload, arg-type]
        if node is not None:
            weights[node] = 1.0
    known = int(weights.sum())
    if not known:
        raise UsageError(
            f"none of the {len(trusted):,} trusted domains is in the graph",
            hint="name domains as the graph does: example.org, not https://www.example.org/",
        )
    options = SolverOptions(threads=resources.threads, progress=resources.progress)
    if popularity is None:
        popularity = pagerank(graph, tolerance=tolerance, options=options)
    return Trust(
        graph, popularity, pagerank(graph, tolerance=tolerance, teleport=weights, options=options), gamma, known
    )


def as_reputation(kind: str, graph: Graph, ranking: Ranking) -> Reputation:
    """Return a ranking as a domain score."""
    method = {"damping": ranking.damping, "error": ranking.error, "sweeps": ranking.sweeps}
    rows = graph.in_links.indptr
    return Reputation(kind, ranking.scores, 1.0, BoundedError(ranking.error), rows, graph.names, method)
