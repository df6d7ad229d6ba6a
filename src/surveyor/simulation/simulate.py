"""Compare crawl strategies on a known graph: the fetches each needs and the coverage it can guarantee.

Each strategy crawls the same web from the same seeds through the same loop as a live crawl (`loop.py`), with a
graph in place of the network. Strategies that need only the ledger run in one kernel on a static web
(`kernels/compiled_crawl.py`), which fetches the same pages with the same results, hundreds of times faster.

    >>> from surveyor.graph.synthetic.generate import synthetic_web
    >>> race = simulate(synthetic_web("small").graph, ["breadth", "rankmass"], Coverage(0.9), rng=7)
    >>> [run.strategy for run in race.runs if run.reached]
    ['breadth', 'rankmass']
"""

from __future__ import annotations

import time
from collections.abc import Coroutine, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from surveyor.arrays import FloatArray
from surveyor.crawler.coverage_walks import CoverageWalks
from surveyor.crawler.frontier import Frontier
from surveyor.crawler.ledger import Ledger
from surveyor.crawler.loop import Crawl, Ending, Source, Tally, crawl, strategy_errors
from surveyor.crawler.sources.graph import STEPS, ChangingSource, ChangingWeb, GraphSource
from surveyor.crawler.strategies import by_name, check
from surveyor.crawler.strategies.breadth import Breadth, plan
from surveyor.crawler.strategies.opic import Opic
from surveyor.crawler.strategies.random import Random
from surveyor.crawler.strategies.rankmass import RankMass
from surveyor.crawler.strategies.strategy import Strategy, name_of, rereads
from surveyor.crawler.strategies.windowed import Sweep, Windowed
from surveyor.errors import StrategyError, UsageError
from surveyor.graph.adapters import GraphLike, simple_graph
from surveyor.graph.csr import Graph
from surveyor.graph.growing import GrowingGraph
from surveyor.outcome import FetchResults, Outcome
from surveyor.simulation.race import Race, Run
from surveyor.simulation.scenario import (
    Accuracy,
    RaceSetup,
    Scenario,
    Seeds,
    SimulationOptions,
    describe_stop,
    optimal_coverage,
    set_up,
    with_final,
)
from surveyor.stopping import (
    Bytes,
    Coverage,
    Either,
    Pages,
    Progress,
    ProgressCallback,
    Rule,
    contains,
    coverage_goal,
    sampled_goal,
    silent,
)

Result = TypeVar("Result")
GOAL = Coverage(0.9)
STRATEGIES = ("breadth", "rankmass", "windowed", "opic")
DEFAULTS = SimulationOptions()
ORDERS = {
    Breadth: "depth",
    Random: "random",
    RankMass: "mass",
    Windowed: "rounds",
    Sweep: "rounds",
}  # not their subclasses
CHUNK = 200_000  # fetches between progress reports
ENDINGS: tuple[Ending, ...] = ("reached", "exhausted", "unreachable")


def simulate(
    graph: GraphLike,
    strategies: str | Strategy | Sequence[str | Strategy] = STRATEGIES,
    until: Rule = GOAL,
    *,
    seeds: Seeds | None = None,
    rng: int | None = None,
    options: SimulationOptions = DEFAULTS,
    progress: ProgressCallback = silent,
) -> Race:
    """Crawl a known graph with each strategy; return the pages each fetched and the coverage it could guarantee.

    Parameters
    ----------
    graph : a `Graph`, or any other as in `as_graph`; weights, self-links and duplicate links are ignored.
    strategies : names, or objects (a new one per race, as a strategy keeps its state).
    seeds : trusted pages, by id or name, or a mapping from them to weights (0: a page that is known in advance, but
        that no jump leads to); by default the ten of highest PageRank.
    rng : random seed; drawn and recorded in the result by default.
    options : failures, budgets, changes of the web, batch size and measurements.
    """
    options.check()
    graph = simple_graph(graph)
    options = replace(options, batch=min(int(options.batch), max(graph.pages, 1)))
    if not isinstance(until, Rule):
        raise UsageError(
            f"until must be a stopping rule, got {until!r}", hint="for example sv.Coverage(0.9) or sv.Pages(5000)"
        )
    if contains(until, Bytes):
        raise UsageError(
            f"until must not limit bytes, got {until}: a simulation receives none",
            hint="use coverage, pages or minutes",
        )
    if rng is not None and (not isinstance(rng, int | np.integer) or rng < 0):
        raise UsageError(f"rng must be an integer of at least 0, got {rng}", hint="for example rng=7")
    listed = strategies if isinstance(strategies, list | tuple) else [strategies]
    chosen = [by_name(one) if isinstance(one, str) else check(one, _class_name(one)) for one in listed]
    if not chosen:
        raise UsageError("strategies must not be empty", hint='for example "breadth" and "rankmass"')
    seed = int(np.random.SeedSequence().entropy) % 2**32 if rng is None else int(rng)  # type: ignore[arg-type]
    scenario = set_up(graph, seeds, options, np.random.default_rng([seed, 0]))
    truth = scenario.truth(progress=progress)
    setup = RaceSetup(scenario, truth.scores, until, options, seed, progress)
    return Race(
        runs=tuple(_run(strategy, setup) for strategy in chosen),
        optimal=optimal_coverage(truth.scores, scenario.outcomes),
        pages=graph.pages,
        links=graph.links,
        seeds=scenario.seeds,
        weights=scenario.weights,
        damping=options.damping,
        until=str(until),
        rng=seed,
        truth_error=truth.error,
        notes=(*scenario.notes, *filter(None, (plan(one, options.damping) for one in chosen)), *_notes(graph, options)),
        goal=coverage_goal(until),
        changing=any(options.changes),
        confidence=(sampled_goal(until) or (0.0, None))[1],
        seed_names=tuple(graph.name(page) for page in scenario.seeds[:10].tolist()) if graph.names is not None else (),
    )


def _notes(graph: Graph, options: SimulationOptions) -> list[str]:
    """Describe batches and changes of the web."""
    notes = []
    if options.batch > 1:
        notes.append(f"batches of {options.batch:,} pages")
    if any(options.changes):
        kinds = zip(options.changes, ("change", "are added", "are removed"), strict=True)
        shares = ", ".join(f"{100 * share:.3g} % {what}" for share, what in kinds if share)
        notes.append(f"per {graph.pages:,} requests, of the pages: {shares}; bounds are those of the web as fetched")
        notes.append("the best order is that of the web at the start")
    return notes


def _run(strategy: Strategy, setup: RaceSetup) -> Run:
    compilable, compiled = can_compile(strategy, setup), setup.options.compiled
    if compiled and not compilable:
        raise UsageError(
            f"compiled=True is not possible for strategy {name_of(strategy)} with this web and goal",
            hint="compiled crawls exist for breadth, rankmass, windowed, sweep and random, without budgets and changes",
        )
    run = run_compiled if compilable and compiled is not False else run_objects
    built_in = type(strategy).__module__.startswith("surveyor.")
    run(deepcopy(strategy) if built_in else RankMass(), _trial(setup))  # compile kernels before timing
    return run(strategy, setup)


def _trial(setup: RaceSetup) -> RaceSetup:
    """Return a setup of three pages."""
    graph = Graph(np.array([0, 2, 3, 3]), np.array([1, 2, 0], np.int32))
    scenario = Scenario(graph, np.zeros(1, np.int32), setup.scenario.damping, np.zeros(3, np.uint8))
    options = replace(setup.options, samples=1, change_rate=0.0, birth_rate=0.0, death_rate=0.0)
    return replace(setup, scenario=scenario, truth=np.full(3, 1 / 3), options=options, progress=silent, until=Pages(3))


def _class_name(strategy: object) -> str:
    return strategy.__name__ if isinstance(strategy, type) else type(strategy).__name__


def run_objects(strategy: Strategy, setup: RaceSetup) -> Run:
    """Simulate the crawl page by page, with the loop of a live crawl and a graph in place of the network."""
    recorder = RunRecorder(strategy, setup)
    started = time.process_time()
    recorder.state.begin(setup.generator())
    source = recorder.source()
    batch = setup.options.batch
    tally = Tally(watch=recorder.record, clock=lambda: 0.0, secret=lambda: f"{setup.rng}:{len(recorder.order)}")
    rule = SamplingRule((setup.until,), recorder)
    ending = finish(crawl(recorder.state, source, NullJournal(), rule, batch=batch, tally=tally))
    recorder.compare(last=True)
    seconds = time.process_time() - started - recorder.measuring
    ledger, order = recorder.state.ledger, np.array(recorder.order, np.int32)
    return Run(
        strategy=name_of(strategy),
        order=order,
        at_least=with_final(recorder.at_least, ledger.coverage().at_least),
        at_most=with_final(recorder.at_most, ledger.coverage().at_most),
        true=np.array(recorder.true),
        coverage=ledger.coverage(),
        reached=ending == "reached",
        stop_reason=describe_stop(ending, ledger.coverage()),
        requests=recorder.requests,
        link_updates=ledger.link_updates,
        seconds=seconds,
        compiled=False,
        samples=tuple(recorder.accuracy.taken),
        sampled=recorder.final_bounds(),
        walks=recorder.state.walks.count,
    )


class NullJournal:
    """A journal that discards everything, because a simulation can be repeated."""

    def commit(self, results: FetchResults) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class SamplingRule(Either):
    """The stopping rule of the race; it measures accuracy when it is evaluated, between batches."""

    recorder: RunRecorder

    def done(self, progress: Progress) -> bool:
        """Measure accuracy if due, then evaluate the rule."""
        self.recorder.compare()
        return Either.done(self, progress)


class RunRecorder:
    """Sets up a crawl and records its progress."""

    def __init__(self, strategy: Strategy, setup: RaceSetup) -> None:
        graph = GrowingGraph(setup.scenario.graph.pages)
        ledger = setup.ledger(strategy, graph)
        frontier = Frontier(ledger, budgets=setup.scenario.budgets, rereads=rereads(strategy, setup.until))
        self.state = Crawl(graph, ledger, strategy, frontier, CoverageWalks(ledger))
        self.confidence = (sampled_goal(setup.until) or (0.0, None))[1]
        self.accuracy = Accuracy.of(setup)
        self.order: list[int] = []
        self.at_least: list[float] = []
        self.at_most: list[float] = []
        self.sampled: list[float] = []
        self.true: list[float] = []
        self.requests = 0
        self.measuring = 0.0  # processor time of measurements, not of the strategy
        self.setup = setup
        self._estimate: Any = getattr(strategy, "importance", ledger.importance)
        self._fetched = np.zeros(setup.truth.size, np.bool_)
        self._covered = 0.0

    def final_bounds(self) -> FloatArray | None:
        """Return the sampled lower bound after each fetch; None if the goal needs none."""
        if self.confidence is None:
            return None
        last = max(self.state.ledger.coverage().at_least, self.state.walks.at_least(self.confidence))
        return with_final(self.sampled, last)

    def source(self) -> Source:
        """Return the source of pages: a fixed or a changing web."""
        scenario, changes = self.setup.scenario, self.setup.options.changes
        if not any(changes):
            return GraphSource(scenario.graph, scenario.outcomes)
        rng = np.random.default_rng([self.setup.rng, 2])
        self._web = ChangingWeb(scenario.graph, rng, *(share / STEPS for share in changes))
        return ChangingSource(self._web, scenario.outcomes, self.renew)

    def renew(self) -> None:
        """Compute the true importance after the web has changed."""
        started = time.process_time()
        truth = self.setup.scenario.truth(self._web.graph()).scores
        self.accuracy.truth = truth
        self._fetched = np.append(self._fetched, np.zeros(truth.size - self._fetched.size, np.bool_))
        self._covered = float(truth[self._fetched].sum())
        self.measuring += time.process_time() - started

    def compare(self, *, last: bool = False) -> None:
        """Compare estimated with true importance, if due or at the end."""
        done, taken = len(self.order), self.accuracy.taken
        if done >= self.accuracy.next or (last and self.setup.options.samples and taken and taken[-1].fetches < done):
            started = time.process_time()
            with strategy_errors(self.state.strategy, "in `importance`"):
                estimate = np.asarray(self._estimate(), np.float64)
                if estimate.ndim != 1 or not np.isfinite(estimate).all():
                    raise StrategyError("`importance` must return one finite number per page")
            bound = self.state.strategy.bound().error if isinstance(self.state.strategy, Opic) else None
            self.accuracy.compare(done, estimate, bound)
            self.measuring += time.process_time() - started

    def record(self, outcome: Outcome) -> None:
        """Record one outcome."""
        started = time.process_time()
        self.requests += outcome.kind != "blocked"
        if outcome.kind == "fetched":
            self._record_fetch(outcome.page)
        self.measuring += time.process_time() - started

    def _record_fetch(self, page: int) -> None:
        from surveyor.kernels.mass import bounds

        low, high = bounds(self.state.ledger.mass)
        if not self._fetched[page]:
            self._fetched[page] = True
            self._covered += self.accuracy.truth[page]
        self.order.append(page)
        self.at_least.append(low)
        self.at_most.append(high)
        if self.confidence is not None:
            self.sampled.append(max(low, self.state.walks.at_least(self.confidence)))
        self.true.append(self._covered)
        if len(self.order) % 1000 == 0:
            stage = f"racing {name_of(self.state.strategy)}"
            self.setup.progress(stage, len(self.order), self.setup.max_fetches, "pages")


def finish(work: Coroutine[None, None, Result]) -> Result:
    """Run a coroutine that never waits, also if an event loop is already running (notebooks)."""
    try:
        work.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    work.close()
    raise RuntimeError("a simulated crawl must not wait")


def can_compile(strategy: Strategy, setup: RaceSetup) -> bool:
    """Return whether kernels can run this strategy in this setup."""
    static = setup.scenario.budgets is None and not setup.scenario.listed.size and not any(setup.options.changes)
    return (
        static
        and setup.until.limits() is not None
        and type(strategy) in ORDERS
        and getattr(strategy, "levels", None) is None
        and getattr(strategy, "coverage", None) is None
    )


def run_compiled(strategy: Any, setup: RaceSetup) -> Run:
    """Simulate the crawl in one kernel; pages, bounds and accounts are the same as those of the object loop."""
    from surveyor.kernels import compiled_crawl as kernels
    from surveyor.kernels.mass import Rows, settle

    graph, most, batch = setup.scenario.graph, setup.max_fetches, setup.options.batch
    ledger = setup.ledger(strategy, GrowingGraph(1, 1))
    rows = Rows(graph.indptr[:-1], graph.indptr[1:], graph.indices)
    trace = kernels.Trace(
        np.empty(most, np.int32), np.empty(most), np.empty(most), np.zeros(2, np.int64), np.empty(batch, np.int32)
    )
    coverage, fetches = setup.until.limits() or (0.0, 0)
    accuracy = Accuracy.of(setup)
    segments = _rounds if ORDERS[type(strategy)] == "rounds" else _segments
    seconds, why = 0.0, -1
    pieces = segments(strategy, setup, ledger, rows, trace)
    next(pieces)
    while why < 0 or why == kernels.PAUSED:
        pause = min(accuracy.next, int(trace.counts[0]) + CHUNK)
        started = time.perf_counter()
        why = pieces.send(kernels.Goal(coverage, fetches, pause, batch))
        seconds += time.perf_counter() - started
        done = int(trace.counts[0])
        setup.progress(f"racing {name_of(strategy)}", done, most, "pages")
        if done >= accuracy.next:
            accuracy.compare(done, ledger.importance())
    if why == kernels.EMPTY:
        settle(ledger.mass, rows)
        why = int(kernels.DONE) if ledger.coverage().at_least >= coverage else why
    count = int(trace.counts[0])
    order = trace.pages[:count]
    return Run(
        strategy=name_of(strategy),
        order=order,
        at_least=with_final(trace.at_least[:count], ledger.coverage().at_least),
        at_most=with_final(trace.at_most[:count], ledger.coverage().at_most),
        true=np.cumsum(setup.truth[order]),
        coverage=ledger.coverage(),
        reached=ENDINGS[why] == "reached",
        stop_reason=describe_stop(ENDINGS[why], ledger.coverage()),
        requests=int(trace.counts[1]),
        link_updates=ledger.link_updates,
        seconds=seconds,
        compiled=True,
        samples=tuple(accuracy.taken),
    )


def _segments(strategy: Any, setup: RaceSetup, ledger: Ledger, rows: Any, trace: Any) -> Any:
    """Crawl until each goal that is sent; yield the stop reason."""
    from surveyor.kernels import compiled_crawl as kernels
    from surveyor.kernels.priority_queues import new_queue, update_priorities

    first = strategy.begin(ledger, ledger.graph, setup.generator())
    queue = new_queue(ledger.capacity)
    update_priorities(queue, ledger.mass.state, first.pages, first.priorities, np.int64(1))
    kind = {"mass": kernels.BY_MASS, "depth": kernels.BY_DEPTH, "random": kernels.BY_RANDOM}[ORDERS[type(strategy)]]
    order = kernels.CrawlOrder(kind, np.uint64(getattr(strategy, "seed", 0)))
    goal = yield -1
    while True:
        goal = yield int(kernels.crawl(ledger.mass, rows, queue, setup.scenario.outcomes, trace, goal, order))


def _rounds(strategy: Any, setup: RaceSetup, ledger: Ledger, rows: Any, trace: Any) -> Any:
    """Crawl in rounds until each goal that is sent; yield the stop reason."""
    from surveyor.kernels import compiled_crawl as kernels
    from surveyor.kernels.mass import bounds, settle, sweep

    goal = yield -1
    pages = strategy.choose(ledger)
    while pages.size:
        done, why = 0, -1
        while done < pages.size:
            fetched, why = kernels.crawl_pages(ledger.mass, rows, pages[done:], setup.scenario.outcomes, trace, goal)
            done += fetched
            if why >= 0:
                goal = yield int(why)
        (sweep if strategy.sweeps else settle)(ledger.mass, rows)
        strategy.rounds += 1
        # The bounds after the round belong to its last page.
        if setup.scenario.outcomes[pages[-1]] == kernels.OUTCOME_FETCHED:
            last = trace.counts[0] - 1
            trace.at_least[last], trace.at_most[last] = bounds(ledger.mass)
        pages = strategy.choose(ledger)
    while True:
        kernels.push_for_goal(ledger.mass, rows, goal.coverage)
        why = kernels.stop_reason(ledger.mass, goal, int(trace.counts[0]))
        goal = yield int(kernels.EMPTY) if why < 0 else why
