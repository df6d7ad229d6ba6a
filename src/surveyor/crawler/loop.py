"""The only loop: take the best pages, fetch them, write down what happened, and learn from it.

A crawl is a log of outcomes. Everything else, the graph, the ledger, the priorities, is a function of that log:
`replay` makes the same state from the log alone. Nothing counts before the journal has it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

import numpy as np

from surveyor.crawler.frontier import Frontier
from surveyor.crawler.ledger import Ledger
from surveyor.crawler.queues import Batch
from surveyor.crawler.strategies.strategy import Strategy, begin, name_of
from surveyor.errors import StrategyError, SurveyorError
from surveyor.graph.growing import GrowingGraph
from surveyor.outcome import FetchResults, Outcome, was_asked
from surveyor.stopping import NO_LIMIT, Progress, Rule

Ending = Literal["reached", "unreachable", "exhausted", "fruitless"]
Watch = Callable[[Outcome], None]


class Source(Protocol):
    """Where pages come from."""

    @property
    def under_way(self) -> int:
        """How many fetches have begun and not ended, or are to begin."""

    @property
    def to_begin(self) -> int:
        """How many of them are to begin, and take no place yet."""

    @property
    def held(self) -> int:
        """How many of them were fetched, and are reported after other pages."""

    def begin(self, batch: Batch) -> None:
        """Begin to fetch."""

    async def results(self, until: float) -> FetchResults:
        """Return what has ended; wait for it, but not longer than until that time. A failure is an outcome."""


class Journal(Protocol):
    """What remembers."""

    def commit(self, results: FetchResults) -> None:
        """Keep it for good; it counts from now on."""


@dataclass(frozen=True, slots=True)
class Crawl:
    """The state of a crawl: all that is derived from its journal."""

    graph: GrowingGraph
    ledger: Ledger
    strategy: Strategy
    frontier: Frontier

    def learn(self, outcome: Outcome) -> None:
        """Take in one outcome. A second reading of a page is a re-visit; one that fails changes no links."""
        keeps = outcome.kind == "blocked"
        old = self.graph.links_of(outcome.page) if keeps else self.graph.put(outcome.page, outcome.links)
        self.ledger.observe(outcome, old)
        self.frontier.settle(outcome)
        with blame(self.strategy, f"after page {outcome.page}"):
            self.frontier.update(self.strategy.observe(outcome, old))

    def begin(self, rng: np.random.Generator) -> None:
        """Let the strategy rank the seeds."""
        with blame(self.strategy, "at the start"):
            self.frontier.update(begin(self.strategy, self.ledger, self.graph, rng))

    def can_gain(self, until: Rule) -> bool:
        """Say whether reading on can help: where no page waits, reading again raises no coverage."""
        only_coverage = (until.limits() or (0.0, 0))[1] == NO_LIMIT
        return not (self.frontier.rereads and only_coverage) or self.ledger.coverage().waiting > 0

    def progress(self, tally: Tally) -> Progress:
        """Say how far the crawl has come."""
        now = self.ledger.coverage()
        return Progress(
            pages=tally.pages,
            seconds=time.monotonic() - tally.began,
            bytes=tally.bytes,
            at_least=now.at_least,
            best_possible=1 - now.blocked - now.lost,
            in_motion=now.waiting + now.moving,
            requests=tally.requests,
        )


@dataclass(slots=True)
class Tally:
    """What a crawl has cost so far, and whom to tell of each outcome."""

    pages: int = 0  # read
    bytes: int = 0
    requests: int = 0  # sent, robots.txt and retries included
    fruitless: int = 0  # requests since the last page that was read
    most_fruitless: int = 0  # with so many the crawl ends; 0 for no limit
    began: float = field(default_factory=time.monotonic)
    watch: Watch = lambda _: None
    between: Callable[[], None] = lambda: None  # called when nothing is half done
    give_up: Callable[[float], FetchResults | None] = lambda _: None  # what is not waited for until that time
    exact: bool = False  # never read more pages than asked for, though a batch has room for more

    @property
    def is_fruitless(self) -> bool:
        """Whether more requests in a row fetched no page than the limit, and than pages were read before."""
        return 0 < self.most_fruitless <= self.fruitless and self.fruitless >= self.pages

    def count(self, requests: int, *, read: bool) -> None:
        """Count requests, the last of which fetched a page or not."""
        self.requests += requests
        self.fruitless = 0 if read else self.fruitless + requests


async def crawl(
    state: Crawl, source: Source, journal: Journal, until: Rule, *, batch: int = 1, tally: Tally | None = None
) -> Ending:
    """Crawl until the rule is met, can no longer be met, or no page is left; up to `batch` fetches are under way.

    It also ends, *fruitless*, when many requests in a row fetched no page: redirects, errors and traps alone.
    """
    tally = tally or Tally()
    while not until.done(progress := state.progress(tally)):
        if until.unreachable(progress):
            return "unreachable"
        if tally.is_fruitless:
            return "fruitless"
        tally.between()
        leased, again_at = Batch(), math.inf
        if state.can_gain(until):
            left = until.remaining(progress) if tally.exact else NO_LIMIT
            if source.to_begin or source.held:  # they come first, and need a place within the rule as well
                busy = source.under_way - source.to_begin
                source.begin(Batch(room=min(left - busy, batch - busy + source.held)))
            rest = left - source.to_begin - source.held
            leased = state.frontier.take(min(batch, rest) - (source.under_way - source.to_begin - source.held))
            leased = replace(leased, room=None)
            again_at = state.frontier.again_at
        if not leased and not source.under_way and (given_up := tally.give_up(again_at)) is not None:
            take_in(state, given_up, journal, tally)
            continue
        if not (leased or source.under_way or again_at < math.inf):
            take_in(state, FetchResults(closes=True), journal, tally)
            return "reached" if until.done(state.progress(tally)) else "exhausted"
        source.begin(leased)
        results = await source.results(0.0 if leased.refused else again_at)
        results.outcomes[:0] = leased.refused
        take_in(state, results, journal, tally)
    return "reached"


def take_in(state: Crawl, results: FetchResults, journal: Journal, tally: Tally) -> None:
    """Keep what happened, then learn from it: in journal order, so that a replay is identical."""
    journal.commit(results)
    for page, until in results.retries:
        state.frontier.hold(page, until)
    for outcome in results.outcomes:
        state.learn(outcome)
        tally.pages += outcome.kind == "fetched"
        tally.count(was_asked(outcome), read=outcome.kind == "fetched")
        tally.bytes += getattr(outcome, "size", 0)
        tally.watch(outcome)
    for event in results.events:
        if event.kind == "requests":
            tally.count(event.detail["count"], read=False)
    if results.closes:
        state.ledger.close()


def replay(state: Crawl, outcomes: Iterable[Outcome]) -> None:
    """Bring a fresh state to where the log ends."""
    for outcome in outcomes:
        state.learn(outcome)


class blame:  # noqa: N801  # reads as a statement
    """Turn whatever goes wrong inside a strategy into an error that names it."""

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
