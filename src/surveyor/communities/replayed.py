"""A survey plays the web: what it holds, in scope or not, is the graph, and pages it never read cannot be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from surveyor.arrays import BoolArray, IdArray
from surveyor.graph.csr import Graph
from surveyor.graph.names import Names

if TYPE_CHECKING:
    from surveyor.crawling.survey import Survey


@dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    """All links of a survey but those marked nofollow, and which pages it has read."""

    graph: Graph
    read: BoolArray
    gone: BoolArray


def replayed(survey: Survey) -> Replayed:
    """Take the links of each page as they were last read; addresses of one page are put together."""
    urls: list[str] = []
    sources: list[IdArray] = []
    targets: list[IdArray] = []
    kinds: list[str] = []
    final: list[int] = []
    for page, url, visit in survey.pages():
        urls.append(url)
        kinds.append("" if visit is None else visit.kind)
        final.append(page if visit is None or visit.kind != "moved" else visit.target)
        if visit is not None and visit.kind == "read":
            goals = np.concatenate([visit.links, visit.out_of_scope])
            sources.append(np.full(goals.size, page, np.int32))
            targets.append(goals)
    stands_for = _last(np.array(final, np.int64))
    nothing = np.empty(0, np.int32)
    goals = stands_for[np.concatenate([nothing, *targets])]
    graph = Graph.from_arrays(np.concatenate([nothing, *sources]), goals, len(urls), Names.of(urls))
    return Replayed(graph, np.array([kind == "read" for kind in kinds]), np.array([kind == "gone" for kind in kinds]))


def _last(final: np.ndarray) -> np.ndarray:
    """Follow each page to where it leads in the end; who walks in a circle stays within it."""
    for _ in range(16):
        final = final[final]
    return final
