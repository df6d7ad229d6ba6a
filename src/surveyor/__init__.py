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
    "Explanation": "rank.explain",
    "Graph": "graph.csr",
    "GraphError": "errors",
    "InputError": "errors",
    "MissingExtra": "errors",
    "Names": "graph.names",
    "NotConverged": "errors",
    "Ranking": "rank.ranking",
    "SurveyorError": "errors",
    "SyntheticWeb": "graph.synthetic",
    "UsageError": "errors",
    "build_graph": "graph.formats",
    "explain": "rank.explain",
    "pagerank": "rank.pagerank",
    "read_graph": "graph.formats",
    "rmat": "graph.synthetic",
    "synthetic_web": "graph.synthetic",
    "write_graph": "graph.formats",
}

__all__ = [
    "Explanation",
    "Graph",
    "GraphError",
    "InputError",
    "MissingExtra",
    "Names",
    "NotConverged",
    "Ranking",
    "SurveyorError",
    "SyntheticWeb",
    "UsageError",
    "build_graph",
    "explain",
    "pagerank",
    "read_graph",
    "rmat",
    "synthetic_web",
    "write_graph",
]

if TYPE_CHECKING:
    from surveyor.errors import GraphError, InputError, MissingExtra, NotConverged, SurveyorError, UsageError
    from surveyor.graph.csr import Graph
    from surveyor.graph.formats import build_graph, read_graph, write_graph
    from surveyor.graph.names import Names
    from surveyor.graph.synthetic import SyntheticWeb, rmat, synthetic_web
    from surveyor.rank.explain import Explanation, explain
    from surveyor.rank.pagerank import pagerank
    from surveyor.rank.ranking import Ranking


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'surveyor' has no attribute {name!r}")
    value = getattr(import_module(f"surveyor.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
