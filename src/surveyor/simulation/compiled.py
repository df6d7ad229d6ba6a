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
from surveyor.simulation.course import Accuracy, Course, in_words, with_end
from surveyor.simulation.race import Run

ORDERS = {Breadth: "depth", Random: "chance", RankMass: "mass", Windowed: "rounds"}  # not their subclasses
CHUNK = 200_000  # reads between progress reports
ENDINGS: tuple[Ending, ...] = ("reached", "exhausted", "unreachable")


def fits(strategy: Strategy, course: Course) -> bool:
    """Return whether kernels can run this strategy on this course."""
    plain = course.until.limits() is not None and course.scenario.budgets is None and course.changes is None
    return plain and type(strategy) in ORDERS and getattr(strategy, "levels", None) is None


def run(strategy: Any, course: Course) -> Run:
    """Run the course; pages, bounds and accounts are the same as with objects."""
    from surveyor.kernels import compiled_crawl as kernels
    from surveyor.kernels.mass import Rows, settle

    graph, most = course.scenario.graph, course.most
    ledger = course.ledger(strategy, GrowingGraph(1, 1))
    rows = Rows(graph.indptr[:-1], graph.indptr[1:], graph.indices)
    trace = kernels.Trace(
        np.empty(most, np.int32),
        np.empty(most),
        np.empty(most),
        np.zeros(2, np.int64),
        np.empty(course.batch, np.int32),
    )
    coverage, reads = course.until.limits() or (0.0, 0)
    accuracy = Accuracy.of(course, most)
    stretch = _rounds if ORDERS[type(strategy)] == "rounds" else _stretches
    seconds, why = 0.0, -1
    pieces = stretch(strategy, course, ledger, rows, trace)
    next(pieces)
    while why < 0 or why == kernels.PAUSED:
        pause = min(accuracy.next, int(trace.counts[0]) + CHUNK)
        began = time.perf_counter()
        why = pieces.send(kernels.Goal(coverage, reads, pause, course.batch))
        seconds += time.perf_counter() - began
        done = int(trace.counts[0])
        course.progress(f"racing {name_of(strategy)}", done, most, "pages")
        if done >= accuracy.next:
            accuracy.take(done, ledger.importance())
    if why == kernels.EMPTY:
        settle(ledger.mass, rows)
        why = int(kernels.DONE) if ledger.coverage().at_least >= coverage else why
    count = int(trace.counts[0])
    order = trace.pages[:count]
    return Run(
        strategy=name_of(strategy),
        order=order,
        at_least=with_end(trace.at_least[:count], ledger.coverage().at_least),
        at_most=with_end(trace.at_most[:count], ledger.coverage().at_most),
        true=np.cumsum(course.truth[order]),
        coverage=ledger.coverage(),
        reached=ENDINGS[why] == "reached",
        why=in_words(ENDINGS[why], ledger.coverage()),
        requests=int(trace.counts[1]),
        link_updates=ledger.link_updates,
        seconds=seconds,
        compiled=True,
        samples=tuple(accuracy.taken),
    )


def _stretches(strategy: Any, course: Course, ledger: Ledger, rows: Any, trace: Any) -> Any:
    """Crawl until each goal that is sent; yield why it stopped."""
    from surveyor.kernels import compiled_crawl as kernels
    from surveyor.kernels.priority_queues import new_queue, update_priorities

    first = strategy.begin(ledger, ledger.graph, course.generator())
    queue = new_queue(ledger.capacity)
    update_priorities(queue, ledger.mass.state, first.pages, first.priorities, np.int64(1))
    kind = {"mass": kernels.BY_MASS, "depth": kernels.BY_DEPTH, "chance": kernels.BY_RANDOM}[ORDERS[type(strategy)]]
    order = kernels.CrawlOrder(kind, np.uint64(getattr(strategy, "seed", 0)))
    goal = yield -1
    while True:
        goal = yield int(kernels.crawl(ledger.mass, rows, queue, course.scenario.fates, trace, goal, order))


def _rounds(strategy: Any, course: Course, ledger: Ledger, rows: Any, trace: Any) -> Any:
    """Crawl in rounds, until each goal that is sent; yield why it stopped."""
    from surveyor.kernels import compiled_crawl as kernels
    from surveyor.kernels.mass import bounds, settle, sweep

    goal = yield -1
    pages = strategy.choose(ledger)
    while pages.size:
        done, why = 0, -1
        while done < pages.size:
            read, why = kernels.crawl_pages(ledger.mass, rows, pages[done:], course.scenario.fates, trace, goal)
            done += read
            if why >= 0:
                goal = yield int(why)
        (sweep if strategy.sweeps else settle)(ledger.mass, rows)
        strategy.rounds += 1
        if (
            course.scenario.fates[pages[-1]] == kernels.OUTCOME_FETCHED
        ):  # the bounds after the round are those of its last page
            last = trace.counts[0] - 1
            trace.at_least[last], trace.at_most[last] = bounds(ledger.mass)
        pages = strategy.choose(ledger)
    while True:
        why = kernels.stop_reason(ledger.mass, goal, int(trace.counts[0]))
        goal = yield int(kernels.EMPTY) if why < 0 else why
