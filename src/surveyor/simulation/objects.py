"""Simulation of any strategy: the loop of a live crawl, with a graph in place of the network."""

from __future__ import annotations

import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import numpy as np

from surveyor.crawler.frontier import Frontier
from surveyor.crawler.loop import Crawl, Source, Tally, blame, crawl
from surveyor.crawler.sources.graph import STEPS, ChangingSource, ChangingWeb, GraphSource
from surveyor.crawler.strategies.strategy import Strategy, name_of
from surveyor.errors import StrategyError
from surveyor.graph.growing import GrowingGraph
from surveyor.outcome import FetchResults, Outcome
from surveyor.simulation.course import Accuracy, Course, in_words, with_end
from surveyor.simulation.race import Run
from surveyor.stopping import Progress, Rule

Result = TypeVar("Result")


def run(strategy: Strategy, course: Course) -> Run:
    """Run the course page by page."""
    watcher = Watcher(strategy, course)
    began = time.process_time()
    watcher.state.begin(course.generator())
    source = watcher.source()
    tally = Tally(watch=watcher.note)
    ending = finish(crawl(watcher.state, source, Forgetful(), Sampled(watcher), batch=course.batch, tally=tally))
    seconds = time.process_time() - began - watcher.measuring
    ledger, order = watcher.state.ledger, np.array(watcher.order, np.int32)
    return Run(
        strategy=name_of(strategy),
        order=order,
        at_least=with_end(watcher.at_least, ledger.coverage().at_least),
        at_most=with_end(watcher.at_most, ledger.coverage().at_most),
        true=np.array(watcher.true),
        coverage=ledger.coverage(),
        reached=ending == "reached",
        why=in_words(ending, ledger.coverage()),
        requests=watcher.requests,
        link_updates=ledger.link_updates,
        seconds=seconds,
        compiled=False,
        samples=tuple(watcher.accuracy.taken),
    )


class Forgetful:
    """A journal that discards everything: a simulation can be repeated."""

    def commit(self, results: FetchResults) -> None:
        """Do nothing."""


class Sampled(Rule):
    """The rule of the race; accuracy is measured when it is evaluated, between batches."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher, self._until = watcher, watcher.course.until

    def done(self, progress: Progress) -> bool:
        """Measure accuracy if due, then delegate to the wrapped rule."""
        self._watcher.compare()
        return self._until.done(progress)

    def unreachable(self, progress: Progress) -> bool:
        """Delegate to the wrapped rule."""
        return self._until.unreachable(progress)

    def remaining(self, progress: Progress) -> int:
        """Delegate to the wrapped rule."""
        return self._until.remaining(progress)

    def limits(self) -> tuple[float, int] | None:
        """Delegate to the wrapped rule."""
        return self._until.limits()


class Watcher:
    """Sets up a crawl and records its progress."""

    def __init__(self, strategy: Strategy, course: Course) -> None:
        graph = GrowingGraph(course.scenario.graph.pages)
        ledger = course.ledger(strategy, graph)
        frontier = Frontier(ledger, budgets=course.scenario.budgets, rereads=getattr(strategy, "rereads", False))
        self.state = Crawl(graph, ledger, strategy, frontier)
        self.accuracy = Accuracy.of(course, course.most)
        self.order: list[int] = []
        self.at_least: list[float] = []
        self.at_most: list[float] = []
        self.true: list[float] = []
        self.requests = 0
        self.measuring = 0.0  # processor time of measurements, not of the strategy
        self.course = course
        self._estimate: Any = getattr(strategy, "importance", ledger.importance)
        self._held = np.zeros(course.truth.size, np.bool_)
        self._covered = 0.0

    def source(self) -> Source:
        """Return the source of pages: a fixed or a changing web."""
        scenario, changes = self.course.scenario, self.course.changes
        if changes is None:
            return GraphSource(scenario.graph, scenario.fates)
        rng = np.random.default_rng([self.course.rng, 2])
        self._web = ChangingWeb(scenario.graph, rng, *(share / STEPS for share in changes))
        return ChangingSource(self._web, scenario.fates, self.renew)

    def renew(self) -> None:
        """Compute the true importance after the web has changed."""
        began = time.process_time()
        truth = self.course.scenario.truth(self._web.graph()).scores
        self.accuracy.truth = truth
        self._held = np.append(self._held, np.zeros(truth.size - self._held.size, np.bool_))
        self._covered = float(truth[self._held].sum())
        self.measuring += time.process_time() - began

    def compare(self) -> None:
        """Compare estimated with true importance, if due."""
        if len(self.order) >= self.accuracy.next:
            began = time.process_time()
            with blame(self.state.strategy, "when asked for importance"):
                estimate = np.asarray(self._estimate(), np.float64)
                if estimate.ndim != 1 or not np.isfinite(estimate).all():
                    raise StrategyError("it did not return one finite number per page")
            self.accuracy.take(len(self.order), estimate)
            self.measuring += time.process_time() - began

    def note(self, outcome: Outcome) -> None:
        """Record one outcome."""
        began = time.process_time()
        self.requests += outcome.kind != "blocked"
        if outcome.kind == "fetched":
            self._note_read(outcome.page)
        self.measuring += time.process_time() - began

    def _note_read(self, page: int) -> None:
        from surveyor.kernels.mass import bounds

        low, high = bounds(self.state.ledger.mass)
        if not self._held[page]:
            self._held[page] = True
            self._covered += self.accuracy.truth[page]
        self.order.append(page)
        self.at_least.append(low)
        self.at_most.append(high)
        self.true.append(self._covered)
        if len(self.order) % 1000 == 0:
            stage = f"racing {name_of(self.state.strategy)}"
            self.course.progress(stage, len(self.order), self.course.most, "pages")


def finish(work: Coroutine[None, None, Result]) -> Result:
    """Run a coroutine that never waits, also if an event loop is already running (notebooks)."""
    try:
        work.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    work.close()
    raise RuntimeError("a simulated crawl waited for something")
