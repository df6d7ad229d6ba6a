"""surveyor crawls the part of the web that matters, knows how much of it you have, and ranks it.

    >>> import surveyor as sv
    >>> graph = sv.Graph.from_edges([("a", "b"), ("b", "c"), ("c", "a"), ("c", "b")])
    >>> sv.pagerank(graph, tolerance=1e-9).share("b") > 0.39
    True

Public names are loaded when first used, so that importing the package is instant and free of Numba.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_MODULES = {  # module -> its public names
    "cluster.building": "build_pieces",
    "cluster.crawling": "crawl crawl_async",
    "cluster.domains": "condense_pieces score_pieces",
    "cluster.ranking": "rank_pieces",
    "crawler.ledger": "CoverageInterval Ledger PushOptions",
    "crawler.preview": "preview",
    "crawler.revisits": "ChangeRate change_rate due_times freshness optimal_intervals optimal_rates",
    "crawler.seeds": "read_seeds",
    "crawler.strategies.adaptive": "AdaptiveOpic",
    "crawler.strategies.breadth": "Breadth",
    "crawler.strategies.cho": "Cho",
    "crawler.strategies.focused": "Focused",
    "crawler.strategies.opic": "Opic",
    "crawler.strategies.outlinks": "Outlinks",
    "crawler.strategies.printed": "PrintedRankMass",
    "crawler.strategies.random": "Random",
    "crawler.strategies.rankmass": "RankMass",
    "crawler.strategies.strategy": "Reorder Strategy",
    "crawler.strategies.tracking": "Tracking",
    "crawler.strategies.windowed": "Sweep Windowed",
    "errors": "GraphError InputError MissingExtra NotConverged NothingFetched StrategyError SurveyError SurveyorError "
    "UsageError",
    "estimate.community.community": "community community_async",
    "estimate.community.community_rank": "CommunityRank",
    "crawler.topics.page_content": "SampledPage",
    "estimate.sampling.sample": "sample sample_async",
    "estimate.sampling.sample_result": "Sample",
    "crawler.topics.rules": "Topic",
    "estimate.scouting.scout": "Scout scout scout_async",
    "graph.adapters": "as_graph",
    "graph.condense": "CondensedGraph condense",
    "graph.csr": "Graph",
    "graph.formats": "build_graph read_graph write_graph",
    "graph.growing": "GrowingGraph",
    "graph.labels": "Labels",
    "graph.names": "Names",
    "graph.pieces.folder": "Pieces",
    "graph.pieces.split": "split_graph",
    "graph.synthetic.generate": "SyntheticWeb rmat synthetic_web",
    "outcome": "Outcome",
    "rank.comparison": "Comparison compare_ranks",
    "rank.domains.link_counts": "supporters",
    "rank.domains.reach_sketches": "Balls bit_vectors harmonic hyperball",
    "rank.domains.external": "streamed_exact_supporters streamed_paths",
    "rank.domains.reputation": "Reputation Resources",
    "rank.domains.scores": "Domain DomainOptions Domains domains",
    "rank.domains.trust": "Trust trust",
    "rank.domains.tse": "order_confidence sampled_supporters streamed_supporters",
    "rank.explain": "Explanation explain",
    "rank.pagerank": "Ranking SolverOptions pagerank",
    "rank.pieces.ranking": "PieceOptions PiecesRanking",
    "report.survey_html": "write_report",
    "search.result": "SearchResult",
    "search.search": "search_survey",
    "simulation.race": "Race Run",
    "simulation.scenario": "SimulationOptions",
    "simulation.simulate": "simulate",
    "stopping": "Bytes Coverage Minutes Pages Requests",
    "survey.importance": "Importance",
    "survey.survey": "Survey open",
    "survey.watch": "WatchResult watch watch_async",
    "web.suffixes": "Suffixes",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "AdaptiveOpic",
    "Balls",
    "Breadth",
    "Bytes",
    "ChangeRate",
    "Cho",
    "CommunityRank",
    "Comparison",
    "CondensedGraph",
    "Coverage",
    "CoverageInterval",
    "Domain",
    "DomainOptions",
    "Domains",
    "Explanation",
    "Focused",
    "Graph",
    "GraphError",
    "GrowingGraph",
    "Importance",
    "InputError",
    "Labels",
    "Ledger",
    "Minutes",
    "MissingExtra",
    "Names",
    "NotConverged",
    "NothingFetched",
    "Opic",
    "Outcome",
    "Outlinks",
    "Pages",
    "PieceOptions",
    "Pieces",
    "PiecesRanking",
    "PrintedRankMass",
    "PushOptions",
    "Race",
    "Random",
    "RankMass",
    "Ranking",
    "Reorder",
    "Reputation",
    "Requests",
    "Resources",
    "Run",
    "Sample",
    "SampledPage",
    "Scout",
    "SearchResult",
    "SimulationOptions",
    "SolverOptions",
    "Strategy",
    "StrategyError",
    "Suffixes",
    "Survey",
    "SurveyError",
    "SurveyorError",
    "Sweep",
    "SyntheticWeb",
    "Topic",
    "Tracking",
    "Trust",
    "UsageError",
    "WatchResult",
    "Windowed",
    "as_graph",
    "bit_vectors",
    "build_graph",
    "build_pieces",
    "change_rate",
    "community",
    "community_async",
    "compare_ranks",
    "condense",
    "condense_pieces",
    "crawl",
    "crawl_async",
    "domains",
    "due_times",
    "explain",
    "freshness",
    "harmonic",
    "hyperball",
    "open",
    "optimal_intervals",
    "optimal_rates",
    "order_confidence",
    "pagerank",
    "preview",
    "rank_pieces",
    "read_graph",
    "read_seeds",
    "rmat",
    "sample",
    "sample_async",
    "sampled_supporters",
    "score_pieces",
    "scout",
    "scout_async",
    "search_survey",
    "simulate",
    "split_graph",
    "streamed_exact_supporters",
    "streamed_paths",
    "streamed_supporters",
    "supporters",
    "synthetic_web",
    "trust",
    "watch",
    "watch_async",
    "write_graph",
    "write_report",
]

if TYPE_CHECKING:
    from surveyor.cluster.building import build_pieces
    from surveyor.cluster.crawling import crawl, crawl_async
    from surveyor.cluster.domains import condense_pieces, score_pieces
    from surveyor.cluster.ranking import rank_pieces
    from surveyor.crawler.ledger import CoverageInterval, Ledger, PushOptions
    from surveyor.crawler.preview import preview
    from surveyor.crawler.revisits import (
        ChangeRate,
        change_rate,
        due_times,
        freshness,
        optimal_intervals,
        optimal_rates,
    )
    from surveyor.crawler.seeds import read_seeds
    from surveyor.crawler.strategies.adaptive import AdaptiveOpic
    from surveyor.crawler.strategies.breadth import Breadth
    from surveyor.crawler.strategies.cho import Cho
    from surveyor.crawler.strategies.focused import Focused
    from surveyor.crawler.strategies.opic import Opic
    from surveyor.crawler.strategies.outlinks import Outlinks
    from surveyor.crawler.strategies.printed import PrintedRankMass
    from surveyor.crawler.strategies.random import Random
    from surveyor.crawler.strategies.rankmass import RankMass
    from surveyor.crawler.strategies.strategy import Reorder, Strategy
    from surveyor.crawler.strategies.tracking import Tracking
    from surveyor.crawler.strategies.windowed import Sweep, Windowed
    from surveyor.crawler.topics.page_content import SampledPage
    from surveyor.crawler.topics.rules import Topic
    from surveyor.errors import (
        GraphError,
        InputError,
        MissingExtra,
        NotConverged,
        NothingFetched,
        StrategyError,
        SurveyError,
        SurveyorError,
        UsageError,
    )
    from surveyor.estimate.community.community import community, community_async
    from surveyor.estimate.community.community_rank import CommunityRank
    from surveyor.estimate.sampling.sample import sample, sample_async
    from surveyor.estimate.sampling.sample_result import Sample
    from surveyor.estimate.scouting.scout import Scout, scout, scout_async
    from surveyor.graph.adapters import as_graph
    from surveyor.graph.condense import CondensedGraph, condense
    from surveyor.graph.csr import Graph
    from surveyor.graph.formats import build_graph, read_graph, write_graph
    from surveyor.graph.growing import GrowingGraph
    from surveyor.graph.labels import Labels
    from surveyor.graph.names import Names
    from surveyor.graph.pieces.folder import Pieces
    from surveyor.graph.pieces.split import split_graph
    from surveyor.graph.synthetic.generate import SyntheticWeb, rmat, synthetic_web
    from surveyor.outcome import Outcome
    from surveyor.rank.comparison import Comparison, compare_ranks
    from surveyor.rank.domains.external import streamed_exact_supporters, streamed_paths
    from surveyor.rank.domains.link_counts import supporters
    from surveyor.rank.domains.reach_sketches import Balls, bit_vectors, harmonic, hyperball
    from surveyor.rank.domains.reputation import Reputation, Resources
    from surveyor.rank.domains.scores import Domain, DomainOptions, Domains, domains
    from surveyor.rank.domains.trust import Trust, trust
    from surveyor.rank.domains.tse import order_confidence, sampled_supporters, streamed_supporters
    from surveyor.rank.explain import Explanation, explain
    from surveyor.rank.pagerank import Ranking, SolverOptions, pagerank
    from surveyor.rank.pieces.ranking import PieceOptions, PiecesRanking
    from surveyor.report.survey_html import write_report
    from surveyor.search.result import SearchResult
    from surveyor.search.search import search_survey
    from surveyor.simulation.race import Race, Run
    from surveyor.simulation.scenario import SimulationOptions
    from surveyor.simulation.simulate import simulate
    from surveyor.stopping import Bytes, Coverage, Minutes, Pages, Requests
    from surveyor.survey.importance import Importance
    from surveyor.survey.survey import Survey, open  # noqa: A004
    from surveyor.survey.watch import WatchResult, watch, watch_async
    from surveyor.web.suffixes import Suffixes


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'surveyor' has no attribute {name!r}")
    value = getattr(import_module(f"surveyor.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
