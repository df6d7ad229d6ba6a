"""The only loop: take the best pages, fetch them, write down what happened, and learn from it.

A crawl is a log of outcomes. Everything else, the graph, the ledger, the priorities, is a function of that log:
`replay` makes the same state from the log alone. Nothing counts before the journal has it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from surveyor.errors import StrategyError, SurveyorError
from surveyor.frontier import Batch, Frontier
from surveyor.graph.growing import GrowingGraph
from surveyor.ledger import Ledger
from surveyor.outcome import Outcome
from surveyor.stopping import ENDLESS, Rule, Standing
from surveyor.strategies.strategy import Strategy, begin, name_of

Ending = Literal["reached", "hopeless", "empty"]
Watch = Callable[[Outcome], None]


class Source(Protocol):
    """Where pages come from."""

    def fetch(self, pages: Sequence[int]) -> AsyncIterator[Outcome]:
        """Fetch pages; a failure is an outcome."""


class Journal(Protocol):
    """What remembers."""

    def commit(self, outcomes: Sequence[Outcome]) -> None:
        """Keep outcomes for good; they count from now on."""


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
        self.frontier.drop(outcome.page)
        with blame(self.strategy, f"after page {outcome.page}"):
            self.frontier.update(self.strategy.observe(outcome, old))

    def begin(self, rng: np.random.Generator) -> None:
        """Let the strategy rank the seeds."""
        with blame(self.strategy, "at the start"):
            self.frontier.update(begin(self.strategy, self.ledger, self.graph, rng))

    def can_gain(self, until: Rule) -> bool:
        """Say whether reading on can help: where no page waits, reading again raises no coverage."""
        only_coverage = (until.limits() or (0.0, 0))[1] == ENDLESS
        return not (self.frontier.rereads and only_coverage) or self.ledger.coverage().waiting > 0

    def standing(self, reads: int, began: float) -> Standing:
        """Say how far the crawl has come."""
        now = self.ledger.coverage()
        return Standing(
            pages=reads,
            seconds=time.monotonic() - began,
            at_least=now.at_least,
            best_possible=1 - now.blocked - now.lost,
            in_motion=now.waiting + now.moving,
        )


async def crawl(
    state: Crawl, source: Source, journal: Journal, until: Rule, *, batch: int = 1, watch: Watch = lambda _: None
) -> Ending:
    """Crawl until the rule is met, can no longer be met, or no page is left."""
    began, reads = time.monotonic(), 0
    while not until.done(standing := state.standing(reads, began)):
        if until.hopeless(standing):
            return "hopeless"
        leased = state.frontier.take(batch) if state.can_gain(until) else Batch([], [])
        if not leased.pages and not leased.refused:
            state.ledger.close()
            return "reached" if until.done(state.standing(reads, began)) else "empty"
        outcomes = [*leased.refused, *[outcome async for outcome in source.fetch(leased.pages)]]
        journal.commit(outcomes)
        for outcome in outcomes:
            state.learn(outcome)
            reads += outcome.kind == "read"
            watch(outcome)
    return "reached"


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
            raise StrategyError(f"strategy {self._name} failed {self._when}: {error.problem}", hint=HINT) from error
        if isinstance(error, Exception) and not isinstance(error, SurveyorError):
            problem = f"strategy {self._name} failed {self._when}: {type(error).__name__}: {error}"
            raise StrategyError(problem, hint=HINT) from error


HINT = "mend the strategy; docs/how-to/own-strategy.md tells what it must return"
