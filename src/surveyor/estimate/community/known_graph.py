"""FindGlobalPR over a web that is known: the same rounds as a live crawl, with a graph in place of the network.

The rule is that of `strategies/rounds.py`: in each round the best pages of the frontier are read; one that is gone
counts as asked for and as a page without links, and the next of the ranking takes its place.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from surveyor.arrays import BoolArray, IdArray, IntArray, read_only
from surveyor.crawler.strategies.rounds import PART, SPARE, is_still
from surveyor.graph.csr import Graph
from surveyor.kernels.crawled_graph import CrawledGraph
from surveyor.kernels.mass import Rows
from surveyor.rank.expansion import TOLERANCE, Expansion, Select


@dataclass(frozen=True, slots=True)
class Plan:
    """How a local domain grows."""

    extra: int  # pages to ask for in all
    select: Select = "complement"
    batch: int = 0  # pages of a round; 0 for 4 % of the local pages
    damping: float = 0.85
    tolerance: float = TOLERANCE
    seed: int = 7
    still: float = 0.0  # end when three rounds in a row move the ranks by less

    def size(self, local: int) -> int:
        """Return the pages of a round."""
        return self.batch or max(1, math.ceil(PART * local))


@dataclass(frozen=True, slots=True)
class Round:
    """How far it was when a round began."""

    read: int  # extra pages read so far
    asked: int  # and asked for
    moved: float  # L1 distance from the ranks of the local pages a round before
    error: float  # proven, of the ranks of the pages read: of the solving, not of the estimate
    seconds: float  # since the start


@dataclass(frozen=True, slots=True, eq=False)
class Expanded:
    """A local domain and what was read around it."""

    known: CrawledGraph
    expansion: Expansion
    batch_of: IntArray  # by place: the round in which each page was read, 0 for the start
    extra: IdArray  # pages asked for, in order
    rounds: tuple[Round, ...]


def rows_of(graph: Graph) -> Rows:
    """Return the links of a graph as kernels take them."""
    return Rows(read_only(graph.indptr[:-1]), read_only(graph.indptr[1:]), read_only(graph.indices))


Watch = Callable[[Expansion, CrawledGraph, Round], None]


def expand(
    graph: Graph,
    local: IdArray,
    plan: Plan,
    *,
    start: IdArray | None = None,
    gone: BoolArray | None = None,
    shut: BoolArray | None = None,
    watch: Watch = lambda _expansion, _known, _round: None,
) -> Expanded:
    """Read around local pages until as many were asked for as planned, ranks stand still, or nothing is left.

    `start` are the pages read before (the local ones by default); pages that are `gone` count as asked for, those that
    are `shut` are not asked for. `watch` sees each round begin.
    """
    began = time.perf_counter()
    rows = rows_of(graph)
    pages = np.unique(local if start is None else np.concatenate([local, start])).astype(np.int32)
    lost = np.zeros(graph.pages, np.bool_) if gone is None else gone
    waits = None if shut is None else ~shut
    expansion = Expansion(local, plan.select, damping=plan.damping, tolerance=plan.tolerance, seed=plan.seed)
    rounds: list[Round] = []
    order: list[IdArray] = [np.empty(0, np.int32)]
    asked = read = 0
    while True:
        known = expansion.learn(rows, pages, graph.pages)
        rounds.append(Round(read, asked, expansion.moved, expansion.error, time.perf_counter() - began))
        watch(expansion, known, rounds[-1])
        if asked >= plan.extra or is_still([one.moved for one in rounds], plan.still):
            break
        count = plan.size(local.size)
        ranking = expansion.best(known, SPARE * count, waits)
        enough = np.searchsorted(np.cumsum(~lost[ranking]), count) + 1
        chosen = ranking[: min(enough, plan.extra - asked)]
        if not chosen.size:
            break
        asked, read = asked + chosen.size, read + int((~lost[chosen]).sum())
        order.append(chosen)
        pages = np.sort(np.concatenate([pages, chosen]), kind="stable")
    extra = np.concatenate(order)
    batch_of = np.zeros(pages.size, np.int64)
    batch_of[np.searchsorted(pages, extra)] = np.repeat(np.arange(len(order)), [part.size for part in order])
    return Expanded(known, expansion, batch_of, extra, tuple(rounds))
