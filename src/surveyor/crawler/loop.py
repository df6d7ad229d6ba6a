"""The crawl loop: take the best pages, fetch them, commit the outcomes, and update the state.

A crawl is a log of outcomes. The graph, the ledger and the priorities are functions of that log: `replay` restores the
same state from the log alone. An outcome has no effect before the journal has committed it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from surveyor.arrays import IdArray
from surveyor.crawler.coverage_walks import CoverageWalks
from surveyor.crawler.frontier import Frontier
from surveyor.crawler.ledger import Ledger
from surveyor.crawler.queues import Batch
from surveyor.crawler.request_gate import PATIENCE, RequestGate
from surveyor.crawler.sampling_plan import SamplingPlan
from surveyor.crawler.scout_walks import ScoutPlan, ScoutWalks
from surveyor.crawler.strategies.focused import Focused
from surveyor.crawler.strategies.strategy import Reorder, Strategy, begin, name_of
from surveyor.errors import StrategyError, SurveyorError
from surveyor.graph.growing import GrowingGraph
from surveyor.outcome import DISCARDING, Event, FetchResults, Outcome, was_requested
from surveyor.stopping import (
    NO_LIMIT,
    Bytes,
    Minutes,
    Pages,
    Progress,
    Requests,
    Rule,
    contains,
    coverage_goal,
    sampled_goal,
    scouting_rule,
)

if TYPE_CHECKING:
    from surveyor.store.cash import CashChanges

PAUSE_CHECK = 1.0  # seconds between two looks at a paused crawl
SOME_LISTED = 1_000  # listed pages that are preferred at a time, once the goal is reached
Ending = Literal["reached", "unreachable", "exhausted", "fruitless"]
Watch = Callable[[Outcome], None]


class Source(Protocol):
    """A source of pages."""

    @property
    def in_progress(self) -> int:
        """Number of requests in progress or pending."""

    @property
    def pending(self) -> int:
        """Number of pending requests, which use no slot yet."""

    @property
    def held(self) -> int:
        """Number of fetched pages that are reported after other pages."""

    def start(self, batch: Batch) -> None:
        """Start to fetch."""

    async def results(self, until: float) -> FetchResults:
        """Return finished results; wait for one, but not beyond a time. A failure is an outcome."""


class Journal(Protocol):
    """Storage of results."""

    def commit(self, results: FetchResults) -> None:
        """Store results durably."""


@dataclass(frozen=True, slots=True)
class Crawl:
    """The state of a crawl, derived from its journal."""

    graph: GrowingGraph
    ledger: Ledger
    strategy: Strategy
    frontier: Frontier
    walks: CoverageWalks
    scout: ScoutWalks | None = None  # only surveys can be scouted

    def to_commit(self, outcomes: Sequence[Outcome]) -> tuple[Sequence[Outcome], CashChanges | None]:
        """Return outcomes as they are stored, and changes of cash to commit with them: none, as they are replayed."""
        return outcomes, None

    def apply(self, outcome: Outcome) -> None:
        """Update the state for an outcome. A second fetch of a page is a revisit; a failed one changes no links."""
        keeps = outcome.kind == "blocked"
        old = self.graph.links_of(outcome.page) if keeps else self.graph.put(outcome.page, outcome.links)
        changed = self.ledger.observe(outcome, old)
        self.frontier.settle(outcome)
        with strategy_errors(self.strategy, f"after page {outcome.page}"):
            self.frontier.update(self.massless_last(self.strategy.observe(outcome, old)))
        self.walks.observe(outcome, changed=changed)
        if self.scout is not None:
            self.scout.observe(outcome, changed=changed)
        self.frontier.prefer(self.walks.wanted)

    def apply_event(self, event: Event) -> None:
        """Update the state for an event that changes it."""
        if event.kind == "settled":
            self.ledger.close()
        elif event.kind == "pushed":
            self.ledger.deepen(event.detail["threshold"])
        elif event.kind == "epoch":
            self.walks.freeze(event.detail)
        elif event.kind == "walks":
            self.walks.launch(event.detail)
            self.frontier.prefer(self.walks.wanted)
        elif event.kind == "topic":
            self._judge(event)
        elif event.kind in DISCARDING:
            self.walks.discard()
        if self.scout is not None:
            self.scout.apply_event(event)

    def _judge(self, event: Event) -> None:
        """Pass on which of the pages just fetched are on topic, if the crawl is focused."""
        if isinstance(self.strategy, Focused):
            on, off = event.detail["on"], event.detail["off"]
            scores = np.repeat([1.0, 0.0], [len(on), len(off)])
            self.frontier.update(self.massless_last(self.strategy.judge(np.array([*on, *off], np.int32), scores)))

    def close(self) -> None:
        """Push the mass that is moving until it is settled."""
        self.ledger.close()

    def begin(self, rng: np.random.Generator) -> None:
        """Let the strategy rank the seeds; queue the listed pages after them."""
        with strategy_errors(self.strategy, "at the start"):
            self.frontier.update(self.massless_last(begin(self.strategy, self.ledger, self.graph, rng)))
        if not self.frontier.rereads and self.ledger.residual.size:
            self.frontier.update(Reorder(self.ledger.listed, np.full(self.ledger.listed.size, -np.inf)))

    def massless_last(self, change: Reorder) -> Reorder:
        """In a survey with listed pages, put pages without mass behind all others: listed pages, then those they found.

        Ties go to the smaller id, and listed pages have the smallest. A page in turn, whatever its mass, stays first,
        and a strategy that fetches pages repeatedly takes all pages in its own order.
        """
        if not self.ledger.listed.size or self.frontier.rereads or not self.ledger.residual.size:
            return change
        pages = np.asarray(change.pages)
        known = pages[(pages >= 0) & (pages < self.ledger.capacity)]
        if known.size != pages.size:
            return change  # an error that the frontier reports
        massless = (self.ledger.residual[pages] == 0) & np.isfinite(change.priorities)
        return Reorder(change.pages, np.where(massless, -np.inf, change.priorities))

    def can_gain(self, until: Rule) -> bool:
        """Return whether more fetches can help: if no page is queued, revisits do not increase coverage."""
        limited = any(contains(until, kind) for kind in (Pages, Requests, Minutes, Bytes))
        return not self.frontier.rereads or limited or self.ledger.coverage().waiting > 0

    def progress(self, tally: Tally) -> Progress:
        """Return the progress of the crawl."""
        now = self.ledger.coverage()
        return Progress(
            pages=tally.pages,
            seconds=time.monotonic() - tally.started,
            bytes=tally.bytes,
            at_least=now.at_least,
            best_possible=1 - now.blocked - now.lost,
            in_motion=now.waiting + now.moving,
            requests=tally.requests,
            proves=self.walks.proves,
            scout=lambda: None if self.scout is None else self.scout.progress(tally.requests),
            listed=lambda: int(self.queued_lists().size),
        )

    def queued_lists(self) -> IdArray:
        """Return the listed pages that are queued."""
        from surveyor.kernels.mass import STATUS, WAITING

        listed = self.ledger.listed
        return listed[self.ledger.state[listed] & STATUS == WAITING] if listed.size else listed

    def push_depth(self, goal: float | None) -> float:
        """Return the threshold of a push that may prove the goal without a fetch; 0 if there is none."""
        from surveyor.kernels.mass import goal_threshold

        return 0.0 if goal is None else float(goal_threshold(self.ledger.mass, goal))


@dataclass(slots=True)
class Tally:
    """The cost of a crawl so far, and its callbacks."""

    pages: int = 0  # fetched
    bytes: int = 0
    requests: int = 0  # sent, robots.txt and retries included
    fruitless: int = 0  # requests since the last fetched page
    most_fruitless: int = 0  # at which the crawl ends; 0: no limit
    started: float = field(default_factory=time.monotonic)
    watch: Watch = lambda _: None
    checkpoint: Callable[[], None] = lambda: None  # called between two batches
    abandon: Callable[[float], FetchResults | None] = lambda _: None  # abandons pages instead of waiting until a time
    patience: float = PATIENCE  # seconds without requests rather than requests that the goal does not need
    paused: Callable[[], bool] = lambda: False  # whether no request may start now
    exact: bool = False  # never exceed the page limit of the rule by a batch
    clock: Callable[[], float] = time.time  # of events
    secret: Callable[[], str] = lambda: token_hex(16)  # key of the random numbers of walks

    @property
    def is_fruitless(self) -> bool:
        """Whether more consecutive requests fetched no page than the limit, and than pages were fetched."""
        return 0 < self.most_fruitless <= self.fruitless and self.fruitless >= self.pages

    def count(self, requests: int, *, read: bool) -> None:
        """Count requests, the last of which fetched a page or not."""
        self.requests += requests
        self.fruitless = 0 if read else self.fruitless + requests


async def crawl(
    state: Crawl, source: Source, journal: Journal, until: Rule, *, batch: int = 1, tally: Tally | None = None
) -> Ending:
    """Crawl until the rule is met or unreachable, or no page is left, with up to `batch` requests in progress.

    It also ends, *fruitless*, when many consecutive requests fetched no page: only redirects, errors and traps.
    """
    tally = tally or Tally()
    goal, plan = coverage_goal(until), _plan_of(until, state, tally)
    gate = RequestGate(state.ledger, state.frontier, goal, plan, patience=tally.patience)
    while not until.done(progress := state.progress(tally)):
        if until.unreachable(progress):
            return "unreachable"
        if tally.is_fruitless:
            return "fruitless"
        tally.checkpoint()
        if tally.paused():
            gate.pause()
            await _pause(state, source, journal, tally)
            continue
        only_lists = state.ledger.listed.size > 0 and until.done(replace(progress, listed=lambda: 0))
        if only_lists:
            state.frontier.prefer(state.queued_lists()[:SOME_LISTED])
        if (depth := state.push_depth(goal)) > 0:
            record(state, FetchResults(events=[Event("pushed", tally.clock(), {"threshold": depth})]), journal, tally)
            continue
        if plan is not None and not only_lists and (events := plan.next_events(tally.clock())):
            record(state, FetchResults(events=events), journal, tally)
            continue
        leased, again_at = Batch(), math.inf
        if state.can_gain(until):
            left = until.remaining(progress) if tally.exact else NO_LIMIT
            if source.pending or source.held:  # they come first, and count towards the rule as well
                busy = source.in_progress - source.pending
                source.start(Batch(room=min(left - busy, batch - busy + source.held)))
            rest = left - source.pending - source.held
            free = min(batch, rest) - (source.in_progress - source.pending - source.held)
            taken = state.frontier.take(free, math.inf) if only_lists else gate.take(free, busy=source.in_progress > 0)
            leased = replace(taken, room=None)
            again_at = state.frontier.again_at
        if not (leased or source.in_progress or gate.holds) and (given_up := tally.abandon(again_at)) is not None:
            record(state, given_up, journal, tally)
            continue
        if not (leased or source.in_progress or again_at < math.inf):
            record(state, FetchResults(closes=True), journal, tally)
            return "reached" if until.done(state.progress(tally)) else "exhausted"
        source.start(leased)
        results = await source.results(0.0 if leased.refused else again_at)
        results.outcomes[:0] = leased.refused
        record(state, results, journal, tally)
    return "reached"


async def _pause(state: Recorded, source: Source, journal: Journal, tally: Tally) -> None:
    """Record what finishes in the next second of a pause, which does not count as time of the crawl."""
    began = time.monotonic()
    record(state, await source.results(tally.clock() + PAUSE_CHECK), journal, tally)
    tally.started += time.monotonic() - began


def _plan_of(until: Rule, state: Crawl, tally: Tally) -> SamplingPlan | ScoutPlan | None:
    """Return the plan of the walks that a rule needs; None if it needs none."""
    if (scouting := scouting_rule(until)) is not None:
        return ScoutPlan(scouting, state, tally)
    sampled = sampled_goal(until)
    return None if sampled is None else SamplingPlan(*sampled, state, tally.secret)


class Recorded(Protocol):
    """A state that outcomes and events are applied to."""

    @property
    def frontier(self) -> Frontier:
        """The queue from which the pages were leased."""

    def apply(self, outcome: Outcome) -> None:
        """Update the state for an outcome."""

    def apply_event(self, event: Event) -> None:
        """Update the state for an event that changes it."""

    def close(self) -> None:
        """Push the mass that is moving until it is settled."""


def record(state: Recorded, results: FetchResults, journal: Journal, tally: Tally) -> None:
    """Commit results, then update the state in journal order, so that a replay is identical."""
    journal.commit(results)
    for page, until in results.retries:
        state.frontier.hold(page, until)
    for outcome in results.outcomes:
        state.apply(outcome)
        tally.pages += outcome.kind == "fetched"
        tally.count(was_requested(outcome), read=outcome.kind == "fetched")
        tally.bytes += getattr(outcome, "size", 0)
        tally.watch(outcome)
    for event in results.events:
        if event.kind == "requests":
            tally.count(event.detail["count"], read=False)
        else:
            state.apply_event(event)
    if results.closes:
        state.close()


def replay(state: Crawl, outcomes: Iterable[Outcome]) -> None:
    """Apply a log to a new state."""
    for outcome in outcomes:
        state.apply(outcome)


class strategy_errors:  # noqa: N801  # reads as a statement
    """Convert exceptions of a strategy into a StrategyError that names it."""

    def __init__(self, strategy: Strategy, when: str) -> None:
        self._name, self._when = name_of(strategy), when

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, StrategyError):
            raise StrategyError(f"strategy {self._name} failed {self._when}: {error.problem}") from error
        if isinstance(error, Exception) and not isinstance(error, SurveyorError):
            problem = f"strategy {self._name} failed {self._when}: {type(error).__name__}: {error}"
            raise StrategyError(problem) from error
