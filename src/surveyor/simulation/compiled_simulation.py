"""Compiled simulation of strategies whose order needs only the ledger: the whole crawl in one kernel."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from surveyor.crawler.ledger import Ledger
from surveyor.crawler.loop import Ending
from surveyor.crawler.strategies.breadth import Breadth
from surveyor.crawler.strategies.random import Random
from surveyor.crawler.strategies.rankmass import RankMass
from surveyor.crawler.strategies.strategy import Strategy, name_of
from surveyor.crawler.strategies.windowed import Windowed
from surveyor.graph.growing import GrowingGraph
from surveyor.simulation.race import Run
from surveyor.simulation.scenario import Accuracy, RaceSetup, describe_stop, with_final

ORDERS = {Breadth: "depth", Random: "random", RankMass: "mass", Windowed: "rounds"}  # not their subclasses
CHUNK = 200_000  # fetches between progress reports
ENDINGS: tuple[Ending, ...] = ("reached", "exhausted", "unreachable")


def can_compile(strategy: Strategy, setup: RaceSetup) -> bool:
    """Return whether kernels can run this strategy in this setup."""
    static = setup.scenario.budgets is None and not any(setup.options.changes)
    return (
        static
        and setup.until.limits() is not None
        and type(strategy) in ORDERS
        and getattr(strategy, "levels", None) is None
    )


def run_compiled(strategy: Any, setup: RaceSetup) -> Run:
    """Simulate the crawl in one kernel; pages, bounds and accounts are the same as those of the object loop."""
    from surveyor.kernels import compiled_crawl as kernels
    from surveyor.kernels.mass import Rows, settle

    graph, most, batch = setup.scenario.graph, setup.max_fetches, setup.options.batch
    ledger = setup.ledger(strategy, GrowingGraph(1, 1))
    rows = Rows(graph.indptr[:-1], graph.indptr[1:], graph.indices)
    trace = kernels.Trace(
        np.empty(most, np.int32),
        np.empty(most),
        np.empty(most),
        np.zeros(2, np.int64),
        np.empty(batch, np.int32),
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
        why = kernels.stop_reason(ledger.mass, goal, int(trace.counts[0]))
        goal = yield int(kernels.EMPTY) if why < 0 else why
