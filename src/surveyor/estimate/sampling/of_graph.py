"""A sample from a stored graph: the walks run compiled, and nothing is fetched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from surveyor.arrays import AnyIntArray, BoolArray, ByteArray, IdArray, IntArray, marked
from surveyor.errors import UsageError
from surveyor.estimate.sampling.compiled_walks import CompiledWalks, NeighbourLists
from surveyor.estimate.sampling.in_link_coverage import LinkObservations
from surveyor.estimate.sampling.page import SampledPage
from surveyor.estimate.sampling.sample_goals import check_intervals
from surveyor.estimate.sampling.topics import Topic
from surveyor.estimate.sampling.walk_methods import WalkPlan
from surveyor.estimate.sampling.walk_trace import WalkTrace
from surveyor.estimate.sampling.walked import Done, WalkResult, is_on
from surveyor.estimate.sampling.walking import UNLIMITED
from surveyor.graph.csr import Graph


@dataclass(frozen=True)
class GraphPages:
    """The pages of a graph, which have names and links but say nothing."""

    graph: Graph
    kind: ByteArray
    speaking: ClassVar[bool] = False

    @property
    def count(self) -> int:
        """How many pages there are."""
        return self.graph.pages

    def url(self, page: int) -> str:
        """Return the name of a page."""
        return str(page) if self.graph.names is None else self.graph.names[page]

    def page(self, page: int) -> SampledPage:
        """Return a page."""
        return SampledPage(self.url(page), out_degree=int(self._out_degrees[page]))

    def intra(self, page: int) -> float:
        """Return the share of a page's links that lead to pages on topic; NaN if it has none."""
        links = np.unique(self.graph.links_of(page))
        return float((self.kind[links] == 1).mean()) if links.size else float("nan")

    @cached_property
    def _out_degrees(self) -> IntArray:
        return self.graph.out_degrees


def kinds(graph: Graph, topic: Topic | AnyIntArray | BoolArray) -> ByteArray:
    """Return the kind of each page: 1 on topic, 0 off topic."""
    if not isinstance(topic, Topic):
        return marked(topic, graph.pages).astype(np.uint8)
    if topic.text == "everything":
        return np.ones(graph.pages, np.uint8)
    if graph.names is None:
        raise UsageError(
            f"pages of this graph have no names that {topic.text} could be about",
            hint="give names with the graph, or ids or truth values from Python",
        )
    if topic.among is not None:
        return topic.matches(graph.names).astype(np.uint8)
    if topic.reads:
        topic.matches(graph.names)  # refuses, and says why
    pages = GraphPages(graph, np.zeros(0, np.uint8))
    return np.array([is_on(topic, pages.page(page)) for page in range(graph.pages)], np.uint8)


def starts_of(graph: Graph, kind: ByteArray, walks: int, start: Sequence[str | int] | None, rng: int) -> IdArray:
    """Return where each walk begins: at the given pages in turn, or at pages on topic chosen by chance."""
    if start is None:
        linked = np.zeros(graph.pages, np.bool_)
        linked[graph.indices] = True
        linked |= graph.out_degrees > 0
        found = np.flatnonzero(kind == 1)
        found = found[linked[found]] if linked[found].any() else found
        return np.random.default_rng(rng).choice(found, walks, replace=found.size < walks).astype(np.int32)
    pages = [graph.page(page) if isinstance(page, str) else _id(page) for page in start]
    if not pages:
        raise UsageError("walks need a page to begin at", hint="give one or more, or none to let chance choose")
    marked(np.array(pages, np.int64), graph.pages)
    return np.resize(np.array(pages, np.int32), walks)


def _id(page: object) -> int:
    if isinstance(page, bool) or not isinstance(page, (int, np.integer)):
        raise UsageError(f"{page!r} is no page to begin at", hint="give names, or ids as whole numbers")
    return int(page)


def walk_graph(
    graph: Graph,
    topic: Topic | AnyIntArray | BoolArray,
    *,
    plan: WalkPlan,
    starts: Sequence[str | int] | None = None,
    told: float | Graph = 1.0,
    fetches: int = UNLIMITED,
    steps: int = UNLIMITED,
    done: Done = lambda _trace, _pages: False,
) -> WalkResult:
    """Walk over a graph until it is done, or has met so many pages; `told` are the in-links that walks know."""
    kind = kinds(graph, topic)
    text = topic.text if isinstance(topic, Topic) else f"{int(kind.sum()):,} pages"
    if not kind.any():
        raise UsageError(f"no page of the graph is on topic: {text}", hint="try a wider rule, or look at the names")
    neighbours = NeighbourLists.of(graph, told, rng=plan.rng)
    walks = CompiledWalks(
        neighbours, kind, starts_of(graph, kind, plan.walks, starts, plan.rng), method=plan.method, rng=plan.rng,
        reach=plan.reach, free=isinstance(topic, Topic) and topic.free, window=plan.window,
        hosts=_hosts(graph, plan.window) if plan.window else None, patience=plan.patience,
    )  # fmt: skip
    pages = GraphPages(graph, kind)
    ending = _walk(walks, fetches, steps, lambda trace: done(trace, pages))
    return WalkResult(
        walks.trace(), ending, np.flatnonzero(walks.fetched).astype(np.int32), walks.lost, pages, plan, text,
        repr(graph), how="the graph: all of them" if neighbours.complete else "a part of the graph",
        seen=None if neighbours.complete else lambda: LinkObservations.from_compiled(neighbours, walks),
    )  # fmt: skip


def _walk(walks: CompiledWalks, fetches: int, steps: int, done: Callable[[WalkTrace], object]) -> str:
    """Walk to the end; return what it is."""
    for rounds in check_intervals():
        full = walks.advance(min(rounds, -(-(steps - len(walks.trace())) // walks.count)), fetches)
        if met := done(walks.trace()):
            return str(met)
        if full:
            return "fetches"
        if walks.lost.size == walks.count:
            return "lost"
        if len(walks.trace()) >= steps:
            return "steps"
    raise AssertionError  # pragma: no cover  # looks never end


def _hosts(graph: Graph, window: int) -> IdArray:
    names = graph.names
    if names is None:
        raise UsageError(f"a window of {window} needs hosts, and the graph has no names", hint="leave --window out")
    hosts = [SampledPage(name).host for name in names]
    return np.unique(hosts, return_inverse=True)[1].astype(np.int32)
