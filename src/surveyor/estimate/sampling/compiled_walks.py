"""Walks on a stored graph, compiled: millions of steps a second.

Neighbours are known from the graph: all of them, or only as many as a source of back-links would tell, to see what
that does to a sample. Then lists are frozen as in a live walk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surveyor.arrays import BoolArray, ByteArray, IdArray, IntArray, marked, read_only
from surveyor.errors import UsageError
from surveyor.estimate.sampling.walk_methods import DEFAULT_METHOD, HOSTS, PATIENCE, method_named
from surveyor.estimate.sampling.walk_trace import WalkTrace
from surveyor.graph.csr import Graph


@dataclass(frozen=True, slots=True, eq=False)
class NeighbourLists:
    """Who is linked with whom, in either direction: each once, ascending; bits say which way, and who was told."""

    starts: IntArray
    pages: IdArray
    links: ByteArray  # 1: links to it, 2: is linked from it, 4: a source of back-links tells so
    complete: bool

    @classmethod
    def of(cls, graph: Graph, told: float | Graph = 1.0, *, rng: int = 7) -> NeighbourLists:
        """Gather the neighbours of all pages.

        Parameters
        ----------
        told : which in-links a source of back-links tells: a share of them, chosen by a hash, or the links of a graph.
        """
        from surveyor.kernels.random_walks import merge_directions

        starts: IntArray = np.zeros(graph.pages + 1, np.int64)
        back = graph.in_links
        rows = graph.indptr, graph.indices, back.indptr, back.indices
        merge_directions(*rows, starts, np.empty(0, np.int32), np.empty(0, np.uint8))
        pages, links = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.uint8)
        if pages.size:
            merge_directions(*rows, starts, pages, links)
        complete = not isinstance(told, Graph) and told >= 1
        links[_told(graph, starts, pages, links, told, rng)] |= 4
        return cls(starts, pages, links, complete)


def _told(graph: Graph, starts: IntArray, pages: IdArray, links: ByteArray, told: float | Graph, rng: int) -> BoolArray:
    """Say for each neighbour whether a source of back-links tells that it links to the page."""
    into: BoolArray = links & 2 != 0
    if not isinstance(told, Graph):
        if not 0 <= told <= 1:
            raise UsageError(f"{told:g} is no share of in-links", hint="give a number from 0 to 1")
        return into if told >= 1 else into & (np.random.default_rng(rng).random(pages.size) < told)
    if told.pages != graph.pages:
        raise UsageError(
            f"back-links of {told.pages:,} pages do not fit a graph of {graph.pages:,}", hint="use the same ids in both"
        )
    size = np.int64(graph.pages)
    known = np.unique(np.repeat(np.arange(size), told.out_degrees) * size + told.indices)
    asked = pages * size + np.repeat(np.arange(size), np.diff(starts))
    return into & np.isin(asked, known)


class CompiledWalks:
    """Walks over a graph; each call of `advance` takes them further."""

    def __init__(
        self,
        neighbours: NeighbourLists,
        topic: IntArray | BoolArray | ByteArray,
        starts: Sequence[int] | IdArray | IntArray,
        *,
        method: str = DEFAULT_METHOD,
        rng: int = 7,
        reach: int | None = None,
        free: bool = False,
        hosts: IdArray | None = None,
        window: int = 0,
        patience: int = PATIENCE,
    ) -> None:
        """Set walks on their first pages.

        Parameters
        ----------
        topic : pages on topic, or the kind of each page: 0 off topic, 1 on topic, 2 cannot be read.
        starts : where each walk begins.
        reach : steps off topic (trial), draws from a page between (mixture) or probes (neighbourhood-paper).
        free : the topic is told by the URL: pages off topic need no fetch.
        hosts, window : the host of each page, and the steps in which none may have more than half; 0 for any.
        """
        from surveyor.kernels import random_walks

        size, count = neighbours.starts.size - 1, len(starts)
        chosen = method_named(method)
        kind: ByteArray = (topic if topic.dtype == np.uint8 else marked(topic, size)).astype(np.uint8, copy=False)
        marked(np.asarray(starts, np.int64), size)  # refuses ids that are none
        if window and hosts is None:
            raise UsageError("a window needs the hosts of pages", hint="give hosts, or window=0")
        reach = chosen.reach if reach is None else reach
        self._land = random_walks.UndirectedGraph(
            neighbours.starts, neighbours.pages, neighbours.links, kind,
            np.empty(0, np.int32) if hosts is None else hosts,
        )  # fmt: skip
        self._plan = random_walks.WalkParameters(chosen.code, rng, reach, int(free), window, HOSTS, patience)

        def each(value: int) -> IntArray:
            return np.full(count, value, np.int64)

        self._walkers = random_walks.WalkStates(
            mode=each(random_walks.SEARCH),
            current=each(-1),
            candidate=np.array(starts, np.int64),
            via=each(-1),
            steps=each(0),
            request=each(random_walks.PAGE),
            segment=each(0),
            weight=each(1),
            moves=each(0),
            probes=np.zeros((count, max(reach, 1)), np.int32),
            recent=np.full((count, max(window, 1)), -1, np.int32),
            last_host=np.full((count, HOSTS), -1, np.int32),
            last_page=np.full((count, HOSTS), -1, np.int32),
        )
        degree = np.diff(neighbours.starts).astype(np.int32) if neighbours.complete else np.full(size, -1, np.int32)
        lists = neighbours.pages if neighbours.complete else np.empty_like(neighbours.pages)
        self._memory = random_walks.SharedState(
            np.zeros(size, np.uint8), degree, lists, np.full(size, -1, np.int32), np.zeros(2, np.int64)
        )
        self._parts: list[WalkTrace] = []

    @property
    def count(self) -> int:
        """How many walks there are."""
        return int(self._walkers.mode.size)

    @property
    def fetches(self) -> int:
        """Pages fetched so far, each once."""
        return int(self._memory.tally[0])

    @property
    def fetched(self) -> BoolArray:
        """Which pages were fetched."""
        fetched: BoolArray = self._memory.fetched.astype(np.bool_)
        return fetched

    @property
    def lost(self) -> IntArray:
        """The walks that never found the topic."""
        from surveyor.kernels import random_walks

        return np.flatnonzero(self._walkers.mode == random_walks.LOST)

    @property
    def degrees(self) -> IdArray:
        """The frozen degree of each page, or -1."""
        frozen: IdArray = read_only(self._memory.degree)
        return frozen

    def list_of(self, page: int) -> IdArray:
        """Return the frozen neighbours of a page."""
        first = self._land.starts[page]
        near: IdArray = self._memory.lists[first : first + max(self._memory.degree[page], 0)]
        return near

    def advance(self, rounds: int, fetches: int = 1 << 62) -> bool:
        """Walk so many rounds; true if the limit of fetches ended them early."""
        from surveyor.kernels import random_walks

        room = rounds * self.count
        rows = random_walks.StepRows(
            np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.bool_),
            np.empty(room, np.float64), np.empty(room, np.int64),
        )  # fmt: skip
        written, full = random_walks.advance(self._land, self._plan, self._walkers, self._memory, rows, rounds, fetches)
        self._parts.append(WalkTrace(**{name: column[:written].copy() for name, column in rows._asdict().items()}))
        return bool(full)

    def trace(self) -> WalkTrace:
        """Return all steps so far."""
        if len(self._parts) != 1:
            columns = ("walk", "segment", "page", "on_topic", "degree", "fetches")
            empty = WalkTrace(
                *(np.empty(0, kind) for kind in (np.int32, np.int32, np.int32, np.bool_, float, np.int64))
            )
            parts = self._parts or [empty]
            self._parts = [WalkTrace(*(np.concatenate([getattr(part, name) for part in parts]) for name in columns))]
        return self._parts[0]
