"""Random-walk methods over a topic, in plain Python: live samples run these, and tests compare the compiled walks.

**Stationary distribution.** The exact methods visit each reachable page on topic in proportion to its degree (number
of neighbours), so weights of 1/degree give a uniform sample. Links between frozen pages are symmetric (`WalkGraph`), so
a uniform draw of a neighbour is reversible with respect to the degree. Rejecting a draw and staying (`hard`), two hops
through any page (`mixture`) and excursions off topic whose returns are counted (`trial`) keep detailed balance among
the pages on topic. `nonbacktracking` keeps it on links instead of pages, with the same marginal distribution.

The `-paper` methods are implemented as published, for comparison; `experiments.focused` measures the bias of each. It
also shows why `trial` is the default: of the exact methods it has the smallest error at equal fetches.

**Rounds.** A walk is a generator that yields the pages it needs and resumes when they are known: one micro-step. All
pages needed in a round are fetched together, then the walks act in order. Random numbers depend on (seed, walk, round)
only, not on the order in which pages arrive, so a sample that is stopped and resumed takes the same steps.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from surveyor.arrays import IntArray
from surveyor.errors import UsageError
from surveyor.estimate.sampling.walk_trace import WalkTrace
from surveyor.kernels import random_walks
from surveyor.kernels.random_walks import COIN_DRAW, JUMP_DRAW, random_below

DEFAULT_METHOD = "trial"
DEFAULT_WALKS = 8
DEFAULT_JUMP_HOSTS = 50
UNLIMITED = 1 << 62
OFF, ON, DEAD = random_walks.OFF, random_walks.ON, random_walks.DEAD  # off topic, on topic, cannot be fetched

Needs = Generator[list[int], None, None]
Row = tuple[int, int, int, bool, int]  # walk, segment, page, on topic, degree


@dataclass(frozen=True, slots=True)
class Method:
    """One random-walk method."""

    name: str
    code: int  # in kernels/random_walks.py
    about: str
    exact: bool = True  # its stationary distribution on the topic is known
    reach: int = 0  # default of WalkPlan.reach


METHODS = {
    method.name: method
    for method in (
        Method("trial", random_walks.TRIAL, "short excursions off topic that return to the topic", reach=2),
        Method("mixture", random_walks.MIXTURE, "one hop within the topic, or two hops through any page", reach=4),
        Method("hard", random_walks.HARD, "one hop within the topic, or stay (lazy hard focus)"),
        Method("nonbacktracking", random_walks.NONBACKTRACKING, "like hard, but never straight back"),
        Method("webwalker", random_walks.WEBWALKER, "unfocused: walks over all pages, pages on topic are kept"),
        Method(
            "hard-paper",
            random_walks.HARD_PAPER,
            "hard focus with all neighbours classified, as published",
            exact=False,
        ),
        Method(
            "neighbourhood-paper",
            random_walks.NEIGHBOURHOOD_PAPER,
            "the topic and pages near it, as published",
            exact=False,
            reach=10,
        ),
        Method("trial-paper", random_walks.TRIAL_PAPER, "trial and error, as published", exact=False, reach=2),
    )
}

#: Not a walk: pages of a graph or survey are drawn independently (`independent_draws`).
UNIFORM = Method("uniform", -1, "independent uniform draws of stored pages on topic")


@dataclass(frozen=True, slots=True)
class WalkPlan:
    """Method, number and random seed of the walks."""

    method: str = DEFAULT_METHOD
    walks: int = DEFAULT_WALKS
    rng: int = 7
    reach: int | None = None  # steps off topic, draws from a page in between, or probes; None: the method's default
    window: int = 0  # moves of which one host may have at most half; 0: no limit
    jump_hosts: int = DEFAULT_JUMP_HOSTS  # recent hosts that a walk over that limit may jump to
    search_limit: int = 1000  # steps that a walk may take to find the topic
    radius: int = 1  # links between the topic and the pages that count as near it (neighbourhood-paper)


def method_named(name: str) -> Method:
    """Return a method by name.

    >>> method_named("hard").exact, method_named("trial-paper").exact
    (True, False)
    """
    if name == UNIFORM.name:
        return UNIFORM
    if name not in METHODS:
        names = ", ".join((UNIFORM.name, *METHODS))
        raise UsageError(f"method must be one of {names}, got {name!r}", hint="leave it out for the default")
    return METHODS[name]


def _by_id(page: int) -> int | str:
    return page


@dataclass(slots=True)
class WalkGraph:
    """The part of the graph that walks know: kinds, links and frozen neighbour lists of pages, by id.

    The neighbour list of a page is frozen when a walk first draws from it: its out-links, the in-links reported by an
    in-link source, and the pages fetched before that link to it. If the other page was frozen earlier, its list
    decides: both pages list each other or neither does. So links between frozen pages are symmetric at any time, which
    the stationary distribution of the walks requires.
    """

    in_links: Callable[[int], Iterable[int]]  # in-links of a page, as reported by an in-link source
    order: Callable[[int], int | str] = _by_id  # sort key of neighbour lists: must not depend on when pages were found
    url_kind: Callable[[int], int] | None = None  # kind of a page that was not fetched, if the URL decides the topic
    host: Callable[[int], int | str] | None = None
    kinds: dict[int, int] = field(default_factory=dict)  # of fetched pages
    links: dict[int, frozenset[int]] = field(default_factory=dict)
    lists: dict[int, list[int]] = field(default_factory=dict)  # frozen neighbour lists
    probe_hits: dict[int, int] = field(default_factory=dict)  # probes of a page that were on topic
    round: int = 0
    _linked_from: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    _listed_by: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    _reported: dict[int, frozenset[int]] = field(default_factory=dict)

    @property
    def kind_from_url(self) -> bool:
        """Whether the URL decides the topic."""
        return self.url_kind is not None

    def learn(self, page: int, kind: int, links: Iterable[int] = ()) -> None:
        """Add a page that was fetched, or that cannot be."""
        self.kinds[page] = kind
        self.links[page] = frozenset(links) - {page}
        for target in self.links[page]:
            self._linked_from[target].append(page)

    def has(self, page: int) -> bool:
        """Return whether a page was fetched, or a fetch failed."""
        return page in self.kinds

    def kind(self, page: int) -> int:
        """Return the kind of a page that was fetched, or whose URL decides it."""
        known = self.kinds.get(page)
        if known is None and self.url_kind is not None:
            return self.url_kind(page)
        return self.kinds[page]

    def in_links_of(self, page: int) -> frozenset[int]:
        """Return the in-links reported for a page; the source is queried once per page."""
        if page not in self._reported:
            self._reported[page] = frozenset(self.in_links(page)) - {page}
        return self._reported[page]

    def freeze(self, page: int) -> list[int]:
        """Return the neighbour list of a page, fixed at the first call."""
        if page not in self.lists:
            near = self.links[page] | self.in_links_of(page) | set(self._linked_from[page])
            known = {other for other in near if other not in self.lists} | set(self._listed_by[page])
            self.lists[page] = sorted(known, key=self.order)
            for other in known:
                self._listed_by[other].append(page)
        return self.lists[page]

    def directed_links(self, page: int, other: int) -> int:
        """Count the known directions of the link between two neighbours, which is how the paper counts degrees."""
        back = other in self.in_links_of(page) or page in self.links.get(other, ())
        return (other in self.links[page]) + back


@dataclass(slots=True)
class Walk:
    """One walk; `run` is its generator."""

    number: int
    start: int
    graph: WalkGraph
    plan: WalkPlan
    record: Callable[[Row], int]  # returns the number of the row
    note: Callable[[int, int], None]  # receives that number and the first neighbour drawn after the step
    current: int = -1  # page
    segment: int = 0
    lost: bool = False
    method: Method = field(init=False)
    reach: int = field(init=False)
    recent_hosts: deque[int | str] = field(init=False)
    has_stepped: bool = False  # since it last drew from its page
    row: int = -1  # of the last step
    last_pages: dict[int | str, int] = field(default_factory=dict)  # by host, most recent host last

    def __post_init__(self) -> None:
        self.method = method_named(self.plan.method)
        self.reach = self.method.reach if self.plan.reach is None else self.plan.reach
        self.recent_hosts = deque(maxlen=self.plan.window or 1)

    def run(self) -> Iterator[list[int]]:
        """Walk; yield the pages needed for each micro-step."""
        unfocused = self.method.name == "webwalker"
        at, via = self.start, -1
        for _ in range(self.plan.search_limit + 1):
            yield [at]
            kind = self.graph.kind(at)
            if kind == ON or (unfocused and kind != DEAD):
                yield from getattr(self, "_" + self.method.name.replace("-", "_"))(at)
            via = via if kind == DEAD else at
            if via < 0 or not self.graph.freeze(via):
                break
            at = self._draw(via)
        self.lost = True

    def _webwalker(self, at: int) -> Needs:
        while True:
            if self.graph.kind(at) != DEAD:
                self._move(at)
            self._step()
            at = self._draw(self.current)
            yield [at]

    def _hard(self, at: int) -> Needs:
        while True:
            if self.graph.kind(at) == ON:
                self._move(at)
            self._step()
            at = self._draw(self.current)
            yield self._kind_needs(at)

    def _nonbacktracking(self, at: int) -> Needs:
        while True:
            before = at
            if self.graph.kind(at) == ON:
                before = self.current
                before = -1 if self._move(at) else before
            self._step()
            at = self._draw(self.current, exclude=before)
            yield self._kind_needs(at)

    def _mixture(self, at: int) -> Needs:
        while True:
            if self.graph.kind(at) == ON:
                self._move(at)
            while True:
                self._step()
                at = self._draw(self.current)
                if self._random_below(2, COIN_DRAW) == 0:
                    yield self._kind_needs(at)
                    break
                yield [at]
                between = at
                if self.graph.kind(between) == DEAD:
                    continue
                self.graph.freeze(between)
                for _ in range(self.reach):
                    at = self._draw(between)
                    yield self._kind_needs(at)
                    if self.graph.kind(at) == ON:
                        break
                break

    def _trial(self, at: int) -> Needs:
        counted = self.method.exact
        excursion = 0
        while True:
            kind = self.graph.kind(at)
            if kind == ON:
                self._move(at)
            if kind != ON and kind != DEAD and excursion < self.reach:
                self.graph.freeze(at)
                via, excursion = at, excursion + 1
            else:
                if kind == ON or counted:
                    self._step(None if counted else 1)
                via, excursion = self.current, 0
            at = self._draw(via)
            yield [at] if excursion < self.reach else self._kind_needs(at)

    _trial_paper = _trial

    def _hard_paper(self, at: int) -> Needs:
        while True:
            self._move(at)
            near = self.graph.freeze(self.current)
            yield [] if self.graph.kind_from_url else near
            on = [other for other in near if self.graph.kind(other) == ON]
            degree = sum(self.graph.directed_links(self.current, other) for other in on)
            self._step(max(degree, 1))
            at = on[self._random_below(len(on), 0)] if on else self.current
            yield [at]

    def _neighbourhood_paper(self, at: int) -> Needs:
        graph, hits = self.graph, self.graph.probe_hits
        while True:
            if at not in hits and graph.kind(at) != DEAD:
                graph.freeze(at)
                probes = [self._draw(at, index) for index in range(self.reach)]
                yield [] if graph.kind_from_url and self.plan.radius == 1 else probes
                for link in range(2, self.plan.radius + 1):
                    if at in hits:  # another walk has probed the page in the meantime
                        break
                    for index, probe in enumerate(probes):
                        if graph.kind(probe) == OFF:
                            graph.freeze(probe)
                            probes[index] = self._draw(probe, index)
                    yield [] if graph.kind_from_url and link == self.plan.radius else probes
                hits.setdefault(at, sum(graph.kind(probe) == ON for probe in probes))
            if hits.get(at, 0) or graph.kind(at) == ON:
                self._move(at)
                self._step(max(hits[self.current], 1))
            at = self._draw(self.current, self.reach)
            yield [at]

    def _random_below(self, count: int, index: int) -> int:
        """Return the random integer below `count` of one draw of this walk in this round."""
        return int(random_below(count, self.plan.rng, self.number, self.graph.round, index))

    def _draw(self, page: int, index: int = 0, exclude: int = -1) -> int:
        """Draw a neighbour of a frozen page, not `exclude` if there are others; a page without any is returned."""
        drawn = self._draw_any(page, index, exclude)
        if self.has_stepped and page == self.current:
            self.has_stepped = False
            if exclude < 0 and index == 0:  # uniform among the neighbours
                self.note(self.row, drawn)
        return drawn

    def _draw_any(self, page: int, index: int, exclude: int) -> int:
        near = self.graph.lists[page]
        if exclude in near and len(near) > 1:
            place = self._random_below(len(near) - 1, index)
            return near[place + (place >= near.index(exclude))]
        return near[self._random_below(len(near), index)] if near else page

    def _kind_needs(self, page: int) -> list[int]:
        """Return what must be fetched to know a page's kind: nothing if its URL says that it is off topic."""
        return [] if self.graph.kind_from_url and self.graph.kind(page) != ON else [page]

    def _step(self, degree: int | None = None) -> None:
        """Record a step at the current page."""
        near = self.graph.freeze(self.current)
        on_topic = self.graph.kind(self.current) == ON
        self.has_stepped = True
        self.row = self.record((self.number, self.segment, self.current, on_topic, degree or max(len(near), 1)))

    def _move(self, page: int) -> bool:
        """Move to a page; if its host had half of the last moves, jump to another host and return True."""
        if page == self.current:
            return False
        if self.plan.window and self.graph.host is not None:
            host = self.graph.host(page)
            if 2 * (self.recent_hosts.count(host) + 1) > self.plan.window and len(self.last_pages) > 1:
                latest_first = list(reversed(self.last_pages.values()))
                self.current = latest_first[self._random_below(len(latest_first), JUMP_DRAW)]
                self.segment += 1
                return True
            self.recent_hosts.append(host)
            self.last_pages.pop(host, None)
            if len(self.last_pages) >= self.plan.jump_hosts:
                self.last_pages.pop(next(iter(self.last_pages)))
            self.last_pages[host] = page
        self.current = page
        return False


class PythonWalks:
    """Several walks, advanced round by round over pages that are fetched as needed."""

    def __init__(self, graph: WalkGraph, starts: Sequence[int], plan: WalkPlan) -> None:
        self.graph, self.over_budget = graph, False
        self._rows: list[Row] = []
        self._fetches: list[int] = []
        self.requested: dict[int, None] = {}  # pages that were needed, in order
        self._drawn: list[int] = []  # of each row: the neighbour that was drawn first
        self.walks = [
            Walk(number, start, graph, plan, self._add, self._drawn.__setitem__) for number, start in enumerate(starts)
        ]
        self._running = [walk.run() for walk in self.walks]
        self._needs = [next(walk) for walk in self._running]

    @property
    def lost(self) -> IntArray:
        """Walks that never found the topic."""
        return np.array([walk.number for walk in self.walks if walk.lost], np.int64)

    @property
    def steps(self) -> int:
        """Steps taken by all walks."""
        return len(self._rows)

    def missing(self, fetches: int = UNLIMITED) -> list[int]:
        """Return the pages to fetch before the next round; sets `over_budget` if they exceed the limit of fetches."""
        new = [
            page
            for page in dict.fromkeys(page for needs in self._needs for page in needs)
            if page not in self.requested
        ]
        if len(self.requested) + len(new) > fetches:
            self.over_budget = True
            return []
        self.requested.update(dict.fromkeys(new))
        return [page for page in new if not self.graph.has(page)]

    def round(self) -> None:
        """Advance each walk by one micro-step; all pages it needs are known."""
        self._needs = [next(walk, []) for walk in self._running]
        self._fetches += [len(self.requested)] * (len(self._rows) - len(self._fetches))
        self.graph.round += 1

    def trace(self) -> WalkTrace:
        """Return all steps so far."""
        table = np.array(self._rows, np.int64).reshape(-1, 5).T
        walk, segment, page = table[:3].astype(np.int32)
        on_topic, degree = table[3].astype(np.bool_), table[4].astype(np.float64)
        fetches, drawn = np.array(self._fetches, np.int64), np.array(self._drawn, np.int32)
        return WalkTrace(walk, segment, page, on_topic, degree, fetches, drawn)

    def _add(self, row: Row) -> int:
        self._rows.append(row)
        self._drawn.append(-1)
        return len(self._rows) - 1
