"""Scheduling of walks over pages that must be fetched: which pages are needed next, and when the walks end.

First the start pages are fetched; a redirect is followed to its target. A start page that cannot be fetched is replaced
by the next seed, and the walks are dealt to the start pages in turn. Then rounds are walked until pages are missing,
and continue when all of these are known. The goal is checked after fixed numbers of rounds, so that a resumed sample
ends where an uninterrupted one would.

| outcome | page seen by a walk |
|---|---|
| fetched | on or off topic, with its links |
| redirected | off topic with one link, so that walks that leave the topic for a step or two pass through |
| gone, blocked | cannot be fetched |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from surveyor.arrays import IdArray, IntArray, read_only
from surveyor.crawler.topics.page_content import SampledPage
from surveyor.crawler.topics.rules import Topic
from surveyor.errors import NothingFetched
from surveyor.estimate.sampling.diagnostics import count_jumps, stuck_walks
from surveyor.estimate.sampling.properties import PageSource
from surveyor.estimate.sampling.reach import Reach
from surveyor.estimate.sampling.sample_goals import WalkLimits, check_intervals
from surveyor.estimate.sampling.sample_pages import SurveyPages, is_on_topic
from surveyor.estimate.sampling.walk_methods import DEAD, OFF, ON, UNIFORM, PythonWalks, WalkGraph, WalkPlan
from surveyor.estimate.sampling.walk_trace import WalkTrace
from surveyor.web.urls import host

if TYPE_CHECKING:
    from surveyor.estimate.sampling.estimates import Estimate
    from surveyor.estimate.sampling.in_links import LinkObservations
    from surveyor.web.urls import Urls

MAX_IDLE_ROUNDS = 10_000  # rounds without a new page, after which walks are exhausted
MAX_REDIRECTS = 20  # of a start page


@dataclass(frozen=True, slots=True)
class PageRecord:
    """A page as seen by walks."""

    kind: int  # OFF, ON or DEAD
    links: Sequence[int] = ()
    redirect: int = -1  # target page

    @classmethod
    def fetched(cls, links: Sequence[int], *, on_topic: bool) -> PageRecord:
        """Return the record of a fetched page."""
        return cls(ON if on_topic else OFF, links)

    @classmethod
    def redirected(cls, target: int) -> PageRecord:
        """Return the record of a redirect."""
        return cls(OFF, (target,), target)


UNREADABLE = PageRecord(DEAD)


class WalkScheduler:
    """Walks that request pages and continue when these are known."""

    def __init__(
        self,
        graph: WalkGraph,
        seeds: Sequence[int],
        plan: WalkPlan,
        limits: WalkLimits,
        pages: SurveyPages,
    ) -> None:
        """Start walks at the seeds in turn; a string returned by `limits.done` becomes the ending."""
        self.graph, self.plan, self.limits, self.pages = graph, plan, limits, pages
        distinct = list(dict.fromkeys(seeds))
        self._starts = min(plan.walks, len(distinct))
        self.seeds, self._spare_seeds = distinct[: self._starts], distinct[self._starts :]
        self.ending: str | None = None  # the result of `done`; fetches, steps, exhausted or lost
        self.walks: PythonWalks | None = None
        self.pending: set[int] = set()  # requested pages that are not known yet
        self._first: dict[int, None] = {}  # pages requested before the walks started
        self._redirects: dict[int, int] = {}
        self._intervals = check_intervals()
        self._last_new = 0, 0  # pages requested, and the round of the last one
        self._next_check = next(self._intervals)

    @property
    def requested(self) -> dict[int, None]:
        """The pages requested so far, in order."""
        return self._first if self.walks is None else self.walks.requested

    @property
    def unreadable_seeds(self) -> list[int]:
        """Start pages that cannot be fetched."""
        return [seed for seed in self.seeds if self.graph.kinds.get(self._resolve(seed), OFF) == DEAD]

    def start(self) -> list[int]:
        """Return the pages needed to start the walks; if all are known, start and return the pages needed next."""
        starts = list(dict.fromkeys(self._resolve(seed) for seed in self.seeds))
        missing = [page for page in starts if not self.graph.has(page)]
        if len(self._first) + len(missing) > self.limits.fetches:
            self.ending = "fetches"
            return []
        self._first.update(dict.fromkeys(missing))
        self.pending = set(missing)
        if missing:
            return missing
        alive = [page for page in starts if self.graph.kinds[page] != DEAD]
        if len(alive) < self._starts and self._spare_seeds and len(self._first) < self.limits.fetches:
            self.seeds.append(self._spare_seeds.pop(0))  # replaces one that cannot be fetched
            return self.start()
        if not alive:
            self.ending = "lost"
            return []
        dealt = [alive[turn % len(alive)] for turn in range(self.plan.walks)]
        self.walks = PythonWalks(self.graph, dealt, self.plan)
        self.walks.requested.update(self._first)
        return self._continue(self.walks)

    def learn(self, page: int, record: PageRecord) -> list[int]:
        """Add a requested page; return the pages needed next if it was the last one pending."""
        self.graph.learn(page, record.kind, record.links)
        self.pending.discard(page)
        if self.walks is None and record.redirect >= 0:
            self._redirects[page] = record.redirect
        if self.pending or self.ending is not None:
            return []
        return self.start() if self.walks is None else self._continue(self.walks)

    def trace(self) -> WalkTrace:
        """Return all steps so far."""
        return (self.walks or PythonWalks(self.graph, [], self.plan)).trace()

    def _resolve(self, page: int) -> int:
        """Follow known redirects."""
        for _ in range(MAX_REDIRECTS):
            page = self._redirects.get(page, page)
        return page

    def _continue(self, walks: PythonWalks) -> list[int]:
        """Walk until pages are missing, or to the end."""
        while self.ending is None:
            missing = walks.missing(self.limits.fetches)
            self.ending = self._end(walks)
            if missing:
                self.pending = set(missing)
                return missing
            if self.ending is None:
                walks.round()
                self._check(walks)
        return []

    def _check(self, walks: PythonWalks) -> None:
        """Check the goal if it is due."""
        if self.graph.round >= self._next_check:
            self._next_check += next(self._intervals)
            if met := self.limits.done(walks.trace(), self.pages):
                self.ending = met if isinstance(met, str) else "done"

    def _end(self, walks: PythonWalks) -> str | None:
        """Return why the walks cannot continue, or None."""
        if walks.over_budget:
            return "fetches"
        if walks.steps >= self.limits.steps:
            return "steps"
        if self.limits.expired():
            return "minutes"
        if all(walk.lost for walk in walks.walks):
            return "lost"
        requested = len(walks.requested)
        if requested > self._last_new[0]:
            self._last_new = requested, self.graph.round
        return "exhausted" if self.graph.round - self._last_new[1] > MAX_IDLE_ROUNDS else None


@dataclass(frozen=True, slots=True, eq=False)
class WalkResult:
    """The outcome of walks over a graph, a survey or the live web."""

    trace: WalkTrace
    ending: str  # the result of `done`; fetches, steps, exhausted, lost or interrupted
    requested: IdArray  # distinct pages
    lost: IntArray  # walks that never found the topic
    pages: PageSource
    plan: WalkPlan
    topic: str
    source: str  # where the walks went
    in_link_source: str
    unreadable_seeds: tuple[str, ...] = ()
    observations: Callable[[], LinkObservations] | None = None  # of in-links; None if all are known
    truncated: int = 0  # pages for which the in-link source returned as many in-links as requested
    reach: Reach = field(default_factory=Reach)  # what the walks could not reach, as far as it is known
    weighted: WalkTrace | None = None  # of independent draws: the trace with equal weights
    size: Estimate | None = None  # number of pages on topic, if it is not estimated from collisions
    check: WalkTrace | None = None  # independent draws that estimates of walks are compared with
    unreadable: int = 0  # pages examined whose content could not be read

    @property
    def remarks(self) -> tuple[str, ...]:
        """Warnings about the walks."""
        trace, walks, lost, remarks = self.trace, self.plan.walks, self.lost.size, list[str]()
        if count := len(self.unreadable_seeds):
            names = ", ".join(self.unreadable_seeds[:3]) + (", …" if count > 3 else "")
            remarks.append(f"seeds that could not be fetched were replaced: {names}")
        if lost:
            who = "no walk" if lost == walks else f"{lost} of {walks} walks never"
            remarks.append(f"{who} found a page on topic ({self.topic}): use seeds on topic, or a wider rule")
        found = np.unique(trace.walk).size
        if searching := walks - lost - found:
            who = f"{searching} of {walks} walks {'has' if searching == 1 else 'have'}"
            remarks.append(f"{who} not found the topic yet: walk longer, or use seeds on topic")
        if (still := stuck_walks(trace)) and len(still) < found:
            who = "a walk was" if len(still) == 1 else f"{len(still)} walks were"
            steps = int(np.isin(trace.walk, still).sum())
            remarks.append(
                f"{who} left out that never moved ({steps:,} steps): no neighbour of the start page is on topic; use"
                " other seeds"
            )
        if self.plan.method == UNIFORM.name and not len(trace):
            return (f"none of the {self.requested.size:,} pages examined is on topic ({self.topic}): use a wider rule",)
        if self.unreadable:
            remarks.append(
                f"{self.unreadable:,} pages have no content that could be read, and were taken as off topic: they were"
                " not archived, or are no text"
            )
        if self.ending == "longest":
            remarks.append(
                f"the goal was not reached in {len(trace):,} steps: the walks still disagree, or hardly move; use more"
                " starts, a larger reach, or a lower goal"
            )
        if self.ending == "exhausted":
            remarks.append("walks found no new page for a long time: the reachable part is too small for the goal")
        if jumped := count_jumps(trace):
            remarks.append(
                f"walks jumped {jumped:,} times away from hosts that had half of the last moves, so pages there are"
                " under-weighted: use --window 0 if these hosts are not traps"
            )
        return tuple(remarks)


def walk_result(scheduler: WalkScheduler, topic: Topic, source: str, in_links: str) -> WalkResult:
    """Return the result of scheduled walks; raise if no start page could be fetched."""
    pages = scheduler.pages
    if scheduler.walks is None and scheduler.ending == "lost":
        names = ", ".join(pages.url(page) for page in scheduler.seeds[:3])
        raise NothingFetched(
            f"no walk could start: {names} could not be fetched", hint="check the URL in a browser, or use other seeds"
        )
    lost = np.empty(0, np.int64) if scheduler.walks is None else scheduler.walks.lost
    requested: IdArray = read_only(np.fromiter(scheduler.requested, np.int32))
    return WalkResult(
        scheduler.trace(),
        scheduler.ending or "interrupted",
        requested,
        lost,
        pages,
        scheduler.plan,
        topic.text,
        source,
        in_links,
        tuple(pages.url(page) for page in scheduler.unreadable_seeds),
    )


def walk_graph_of(urls: Urls, topic: Topic, in_links: Callable[[int], Iterable[int]]) -> WalkGraph:
    """Return an empty graph for walks over URLs; if URLs decide the topic, each URL is classified once."""
    verdicts: dict[int, int] = {}

    def url_kind(page: int) -> int:
        if page not in verdicts:
            verdicts[page] = ON if is_on_topic(topic, SampledPage(urls[page])) else OFF
        return verdicts[page]

    return WalkGraph(in_links, urls.__getitem__, url_kind if topic.url_only else None, lambda page: host(urls[page]))
