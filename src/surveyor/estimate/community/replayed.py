"""A survey plays the web: what it holds, in scope or not, is the graph, and pages it never read cannot be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from surveyor.arrays import BoolArray, IdArray
from surveyor.crawler.replay import DELETED
from surveyor.fetch.responses import LEFT
from surveyor.graph.csr import Graph
from surveyor.graph.names import Names

if TYPE_CHECKING:
    from surveyor.outcome import Visit
    from surveyor.survey.survey import Survey


@dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    """All links of a survey but those marked nofollow, and which pages it has read."""

    graph: Graph
    read: BoolArray
    gone: BoolArray
    stands_for: IdArray  # the page that each is another address of


def replayed(survey: Survey) -> Replayed:
    """Take the links of each page as they were last read; addresses of one page are put together."""
    latest: dict[int, Visit] = {}
    for visit in survey.journal.visits():
        if visit.kind != "blocked" or visit.reason in (LEFT, DELETED):  # others leave a page as it was
            latest[visit.page] = visit
    urls = [url for _, url, _ in survey.pages()]
    kinds, final = [""] * len(urls), list(range(len(urls)))
    sources: list[IdArray] = []
    targets: list[IdArray] = []
    for page, visit in latest.items():
        kinds[page] = visit.kind
        if visit.kind == "redirected":
            final[page] = visit.target
        elif visit.kind == "fetched":
            goals = np.concatenate([visit.links, visit.out_of_scope])
            sources.append(np.full(goals.size, page, np.int32))
            targets.append(goals)
    stands_for = _last(np.array(final, np.int64))
    nothing = np.empty(0, np.int32)
    goals = stands_for[np.concatenate([nothing, *targets])]
    graph = Graph.from_arrays(np.concatenate([nothing, *sources]), goals, len(urls), Names.of(urls))
    read, gone = (np.array([kind == what for kind in kinds], np.bool_) for what in ("fetched", "gone"))
    return Replayed(graph, read, gone, stands_for.astype(np.int32))


def _last(final: np.ndarray) -> np.ndarray:
    """Follow each page to where it leads in the end; who walks in a circle stays within it."""
    for _ in range(16):
        final = final[final]
    return final
