"""Compiled random walks over a stored graph, at millions of steps per second.

Neighbours come from the graph: all in-links, or only a part of them, to measure the effect of an incomplete in-link
source. In the latter case neighbour lists are frozen as in a live walk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surveyor.arrays import BoolArray, ByteArray, IdArray, IntArray, marked, read_only
from surveyor.errors import UsageError
from surveyor.estimate.sampling.walk_methods import UNLIMITED, WalkPlan, method_named
from surveyor.estimate.sampling.walk_trace import WalkTrace
from surveyor.graph.csr import Graph

OUT, IN, REPORTED = 1, 2, 4  # bits of a neighbour: the page links to it, it links to the page, a source reports that


@dataclass(frozen=True, slots=True, eq=False)
class NeighbourLists:
    """Neighbours of each page in either direction as CSR rows, each once and ascending, with their directions."""

    starts: IntArray
    pages: IdArray
    links: ByteArray  # bits OUT, IN and REPORTED
    complete: bool  # all in-links are reported

    @classmethod
    def of(cls, graph: Graph, in_links: float | Graph = 1.0, *, rng: int = 7) -> NeighbourLists:
        """Build the neighbour lists of all pages.

        Parameters
        ----------
        in_links : in-links that the simulated source reports: a share of them, drawn at random, or the links of a
            graph.
        """
        from surveyor.kernels.random_walks import merge_directions

        starts: IntArray = np.zeros(graph.pages + 1, np.int64)
        back = graph.in_links
        rows = graph.indptr, graph.indices, back.indptr, back.indices
        merge_directions(*rows, starts, np.empty(0, np.int32), np.empty(0, np.uint8))
        pages, links = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.uint8)
        if pages.size:
            merge_directions(*rows, starts, pages, links)
        complete = not isinstance(in_links, Graph) and in_links >= 1
        lists = cls(starts, pages, links, complete)
        links[_reported(lists, in_links, rng)] |= REPORTED
        return lists


def _reported(lists: NeighbourLists, in_links: float | Graph, rng: int) -> BoolArray:
    """Mark the neighbours whose link to the page is reported by the source."""
    incoming: BoolArray = lists.links & IN != 0
    if not isinstance(in_links, Graph):
        if not 0 <= in_links <= 1:
            raise UsageError(f"in_links must be a share from 0 to 1, got {in_links:g}", hint="for example 0.3")
        return incoming if in_links >= 1 else incoming & (np.random.default_rng(rng).random(incoming.size) < in_links)
    size = np.int64(lists.starts.size - 1)
    if in_links.pages != size:
        raise UsageError(
            f"the graph of in_links has {in_links.pages:,} pages, but the sampled graph has {size:,}",
            hint="use the same page ids in both graphs",
        )
    known = np.unique(np.repeat(np.arange(size), in_links.out_degrees) * size + in_links.indices)
    links = lists.pages * size + np.repeat(np.arange(size), np.diff(lists.starts))
    return incoming & np.isin(links, known)


class CompiledWalks:
    """Walks over a graph; each call of `advance` continues them."""

    def __init__(
        self,
        neighbours: NeighbourLists,
        topic: IntArray | BoolArray | ByteArray,
        starts: Sequence[int] | IdArray | IntArray,
        plan: WalkPlan | None = None,
        *,
        kind_from_url: bool = False,
        hosts: IdArray | None = None,
    ) -> None:
        """Place one walk on each start page.

        Parameters
        ----------
        topic : pages on topic, or the kind of each page: 0 off topic, 1 on topic, 2 cannot be fetched.
        plan : method and random seed; the number of walks is that of `starts`.
        kind_from_url : whether the URL decides the topic, so that pages off topic need no fetch.
        hosts : host number of each page; required if the plan has a window.
        """
        from surveyor.kernels import random_walks

        plan = plan or WalkPlan()
        size, count = neighbours.starts.size - 1, len(starts)
        method = method_named(plan.method)
        kind: ByteArray = (topic if topic.dtype == np.uint8 else marked(topic, size)).astype(np.uint8, copy=False)
        marked(np.asarray(starts, np.int64), size)  # raises for ids out of range
        if plan.window and hosts is None:
            raise UsageError(f"window={plan.window} needs the hosts of pages", hint="pass hosts, or set window=0")
        reach = method.reach if plan.reach is None else plan.reach
        no_hosts = np.empty(0, np.int32)
        self._graph = random_walks.UndirectedGraph(
            neighbours.starts, neighbours.pages, neighbours.links, kind, no_hosts if hosts is None else hosts
        )
        self._parameters = random_walks.WalkParameters(
            method.code,
            plan.rng,
            reach,
            int(kind_from_url),
            plan.window,
            plan.jump_hosts,
            plan.search_limit,
            plan.radius,
        )

        def each(value: int) -> IntArray:
            return np.full(count, value, np.int64)

        def table(width: int, value: int) -> IdArray:
            return np.full((count, max(width, 1)), value, np.int32)

        self._states = random_walks.WalkStates(
            mode=each(random_walks.SEARCH),
            current=each(-1),
            candidate=np.array(starts, np.int64),
            via=each(-1),
            steps=each(0),
            request=each(random_walks.PAGE),
            segment=each(0),
            weight=each(1),
            moves=each(0),
            probes=table(reach, 0),
            recent=table(plan.window, -1),
            last_host=table(plan.jump_hosts, -1),
            last_page=table(plan.jump_hosts, -1),
        )
        degree = np.diff(neighbours.starts).astype(np.int32) if neighbours.complete else np.full(size, -1, np.int32)
        lists = neighbours.pages if neighbours.complete else np.empty_like(neighbours.pages)
        self._shared = random_walks.SharedState(
            np.zeros(size, np.uint8), degree, lists, np.full(size, -1, np.int32), np.zeros(2, np.int64)
        )
        self._parts = [_empty_trace(0)]

    @property
    def count(self) -> int:
        """Number of walks."""
        return int(self._states.mode.size)

    @property
    def fetches(self) -> int:
        """Distinct pages fetched so far."""
        return int(self._shared.tally[0])

    @property
    def fetched(self) -> BoolArray:
        """Whether each page was fetched."""
        fetched: BoolArray = self._shared.fetched.astype(np.bool_)
        return fetched

    @property
    def lost(self) -> IntArray:
        """Walks that never found the topic."""
        from surveyor.kernels import random_walks

        return np.flatnonzero(self._states.mode == random_walks.LOST)

    @property
    def degrees(self) -> IdArray:
        """The frozen degree of each page, or -1."""
        frozen: IdArray = read_only(self._shared.degree)
        return frozen

    def list_of(self, page: int) -> IdArray:
        """Return the frozen neighbour list of a page."""
        first = self._graph.starts[page]
        near: IdArray = self._shared.lists[first : first + max(self._shared.degree[page], 0)]
        return near

    def advance(self, rounds: int, fetches: int = UNLIMITED) -> bool:
        """Walk this many rounds; return whether the limit of fetches ended them early."""
        from surveyor.kernels import random_walks

        space = _empty_trace(rounds * self.count)
        rows = random_walks.StepRows(space.walk, space.segment, space.page, space.on_topic, space.degree, space.fetches)
        written, full = random_walks.advance(
            self._graph, self._parameters, self._states, self._shared, rows, rounds, fetches
        )
        self._parts.append(WalkTrace(**{name: column[:written].copy() for name, column in rows._asdict().items()}))
        return bool(full)

    def trace(self) -> WalkTrace:
        """Return all steps so far."""
        if len(self._parts) > 1:
            self._parts = [WalkTrace.concatenate(self._parts)]
        return self._parts[0]


def _empty_trace(rows: int) -> WalkTrace:
    """Return a trace with uninitialised rows."""
    walk, segment, page = np.empty((3, rows), np.int32)
    return WalkTrace(
        walk, segment, page, np.empty(rows, np.bool_), np.empty(rows, np.float64), np.empty(rows, np.int64)
    )
