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

_HOME = {
    "AdaptiveOpic": "strategies.adaptive",
    "Balls": "rank.hyperball",
    "Breadth": "strategies.breadth",
    "Bytes": "stopping",
    "ChangeRate": "revisits",
    "Cho": "strategies.cho",
    "CommunityRank": "communities.result",
    "Comparison": "compare.ranks",
    "Condensed": "graph.condense",
    "Coverage": "stopping",
    "CoverageInterval": "ledger",
    "Domain": "rank.domains",
    "Domains": "rank.domains",
    "Explanation": "rank.explain",
    "Graph": "graph.csr",
    "GraphError": "errors",
    "GrowingGraph": "graph.growing",
    "InputError": "errors",
    "Ledger": "ledger",
    "Minutes": "stopping",
    "MissingExtra": "errors",
    "Names": "graph.names",
    "NotConverged": "errors",
    "NothingFetched": "errors",
    "Opic": "strategies.opic",
    "Outcome": "outcome",
    "Outlinks": "strategies.outlinks",
    "Pages": "stopping",
    "Race": "race",
    "Random": "strategies.random",
    "RankMass": "strategies.rankmass",
    "Ranking": "rank.ranking",
    "Reorder": "strategies.strategy",
    "Reputation": "rank.reputation",
    "Requests": "stopping",
    "Run": "race",
    "Sample": "sampling.result",
    "SampledPage": "sampling.page",
    "Strategy": "strategies.strategy",
    "StrategyError": "errors",
    "Suffixes": "suffixes",
    "Survey": "crawling.survey",
    "SurveyError": "errors",
    "SurveyorError": "errors",
    "SyntheticWeb": "graph.synthetic",
    "Topic": "sampling.topics",
    "Tracking": "strategies.tracking",
    "Trust": "rank.trust",
    "UsageError": "errors",
    "Windowed": "strategies.windowed",
    "ball_supporters": "rank.hyperball",
    "bit_vectors": "rank.bits",
    "build_graph": "graph.formats",
    "change_rate": "revisits",
    "community": "communities.community",
    "compare_ranks": "compare.ranks",
    "condense": "graph.condense",
    "crawl": "crawling.crawl",
    "domains": "rank.domains",
    "due_times": "revisits",
    "explain": "rank.explain",
    "freshness": "revisits",
    "harmonic": "rank.hyperball",
    "hyperball": "rank.hyperball",
    "look": "crawling.look",
    "open": "crawling.survey",
    "optimal_rates": "revisits",
    "outranks": "rank.sampled",
    "pagerank": "rank.pagerank",
    "read_graph": "graph.formats",
    "read_seeds": "crawling.seeds",
    "rmat": "graph.synthetic",
    "sample": "sampling.sample",
    "sampled_supporters": "rank.sampled",
    "simulate": "simulation.simulate",
    "streamed_supporters": "rank.streamed",
    "supporters": "rank.supporters",
    "synthetic_web": "graph.synthetic",
    "trust": "rank.trust",
    "write_graph": "graph.formats",
    "write_report": "report.survey_html",
}

__all__ = [
    "AdaptiveOpic",
    "Balls",
    "Breadth",
    "Bytes",
    "ChangeRate",
    "Cho",
    "CommunityRank",
    "Comparison",
    "Condensed",
    "Coverage",
    "CoverageInterval",
    "Domain",
    "Domains",
    "Explanation",
    "Graph",
    "GraphError",
    "GrowingGraph",
    "InputError",
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
    "Race",
    "Random",
    "RankMass",
    "Ranking",
    "Reorder",
    "Reputation",
    "Requests",
    "Run",
    "Sample",
    "SampledPage",
    "Strategy",
    "StrategyError",
    "Suffixes",
    "Survey",
    "SurveyError",
    "SurveyorError",
    "SyntheticWeb",
    "Topic",
    "Tracking",
    "Trust",
    "UsageError",
    "Windowed",
    "ball_supporters",
    "bit_vectors",
    "build_graph",
    "change_rate",
    "community",
    "compare_ranks",
    "condense",
    "crawl",
    "domains",
    "due_times",
    "explain",
    "freshness",
    "harmonic",
    "hyperball",
    "look",
    "open",
    "optimal_rates",
    "outranks",
    "pagerank",
    "read_graph",
    "read_seeds",
    "rmat",
    "sample",
    "sampled_supporters",
    "simulate",
    "streamed_supporters",
    "supporters",
    "synthetic_web",
    "trust",
    "write_graph",
    "write_report",
]

if TYPE_CHECKING:
    from surveyor.communities.community import community
    from surveyor.communities.result import CommunityRank
    from surveyor.compare.ranks import Comparison, compare_ranks
    from surveyor.crawling.crawl import crawl
    from surveyor.crawling.look import look
    from surveyor.crawling.seeds import read_seeds
    from surveyor.crawling.survey import Survey, open  # noqa: A004
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
    from surveyor.graph.condense import Condensed, condense
    from surveyor.graph.csr import Graph
    from surveyor.graph.formats import build_graph, read_graph, write_graph
    from surveyor.graph.growing import GrowingGraph
    from surveyor.graph.names import Names
    from surveyor.graph.synthetic import SyntheticWeb, rmat, synthetic_web
    from surveyor.ledger import CoverageInterval, Ledger
    from surveyor.outcome import Outcome
    from surveyor.race import Race, Run
    from surveyor.rank.bits import bit_vectors
    from surveyor.rank.domains import Domain, Domains, domains
    from surveyor.rank.explain import Explanation, explain
    from surveyor.rank.hyperball import Balls, ball_supporters, harmonic, hyperball
    from surveyor.rank.pagerank import pagerank
    from surveyor.rank.ranking import Ranking
    from surveyor.rank.reputation import Reputation
    from surveyor.rank.sampled import outranks, sampled_supporters
    from surveyor.rank.streamed import streamed_supporters
    from surveyor.rank.supporters import supporters
    from surveyor.rank.trust import Trust, trust
    from surveyor.report.survey_html import write_report
    from surveyor.revisits import ChangeRate, change_rate, due_times, freshness, optimal_rates
    from surveyor.sampling.page import SampledPage
    from surveyor.sampling.result import Sample
    from surveyor.sampling.sample import sample
    from surveyor.sampling.topics import Topic
    from surveyor.simulation.simulate import simulate
    from surveyor.stopping import Bytes, Coverage, Minutes, Pages, Requests
    from surveyor.strategies.adaptive import AdaptiveOpic
    from surveyor.strategies.breadth import Breadth
    from surveyor.strategies.cho import Cho
    from surveyor.strategies.opic import Opic
    from surveyor.strategies.outlinks import Outlinks
    from surveyor.strategies.random import Random
    from surveyor.strategies.rankmass import RankMass
    from surveyor.strategies.strategy import Reorder, Strategy
    from surveyor.strategies.tracking import Tracking
    from surveyor.strategies.windowed import Windowed
    from surveyor.suffixes import Suffixes


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'surveyor' has no attribute {name!r}")
    value = getattr(import_module(f"surveyor.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
