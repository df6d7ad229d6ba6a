"""Crawls of every strategy that can be stopped at any outcome and compared."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from surveyor import Outcome, Reorder
from surveyor.crawler.coverage_walks import CoverageWalks
from surveyor.crawler.frontier import Frontier
from surveyor.crawler.ledger import Ledger, PushOptions
from surveyor.crawler.loop import Crawl
from surveyor.crawler.strategies import NAMES, by_name
from surveyor.crawler.strategies.adaptive import AdaptiveOpic
from surveyor.crawler.strategies.opic import Opic
from surveyor.crawler.strategies.windowed import Sweep
from surveyor.graph.growing import GrowingGraph
from webs import random_web

WEB = random_web(1_500, 9_000, 3)  # more pages than the initial capacity
END = 260  # outcomes


class Own:
    """User-defined strategy with every kind of plain attribute."""

    clock = 0.0

    def __init__(self, taste: float = 0.5) -> None:
        self.taste, self.best, self.lazy = taste, -math.inf, None
        self.counts: dict[int, int] = {}
        self.pairs: list[tuple[int, float]] = [(1, math.nan)]
        self.again = self.pairs
        self.inner: Any = by_name("rankmass")
        self.bits = 1

    def begin(self, ledger: Ledger, graph: GrowingGraph, rng: np.random.Generator) -> Reorder:
        self.ledger, self.rng, self.same = ledger, rng, rng
        first: Reorder = self.inner.begin(ledger, graph, rng)
        self.first = first
        return first

    def observe(self, outcome: Outcome, old_links: Any) -> Reorder:
        self.clock += 1
        for link in outcome.links.tolist():
            self.counts[link] = self.counts.get(link, 0) + 1
            self.bits |= 1 << link
        self.pairs.append((outcome.page, self.same.random()))
        self.best, self.last = max(self.best, self.pairs[-1][1]), (outcome, old_links)
        found = self.inner.observe(outcome, old_links)
        chance = self.rng.random(found.pages.size) + [self.counts.get(page, 0) for page in found.pages.tolist()]
        return Reorder(found.pages, found.priorities * (chance + len(self.again)) * self.bits.bit_count())


OPTIONS = [
    "rankmass:1", "windowed:0.03", "breadth:3", "opic:cycle", "opic:random", "adaptive:fixed", "adaptive:variable",
    "adaptive:window=static,policy=cycle",
]  # fmt: skip
MADE: dict[str, Callable[[], Any]] = {
    **{name: partial(by_name, name) for name in [*NAMES, *OPTIONS]},
    "sweep": partial(Sweep, 0.2),
    "uniform opic": partial(Opic, teleport="uniform", damping=0.7),
    "uniform adaptive": partial(AdaptiveOpic, "fixed", 3, policy="random", teleport="uniform"),
    "own": Own,
}


def fresh(strategy: Any, seeds: tuple[int, ...] = (0, 7), rng: int = 3, **options: Any) -> Crawl:
    graph = GrowingGraph(16, 32)
    rules = {name: getattr(strategy, name) for name in ("closure", "eager") if hasattr(strategy, name)}
    ledger = Ledger(graph, list(seeds), pages=16, push=PushOptions(**rules))
    frontier = Frontier(ledger, rereads=getattr(strategy, "rereads", False), **options)
    state = Crawl(graph, ledger, strategy, frontier, CoverageWalks(ledger))
    state.begin(np.random.default_rng(rng))
    return state


def objects(state: Crawl) -> dict[str, object]:
    return {name: getattr(state, name) for name in ("graph", "ledger", "strategy", "frontier")}


def answer(page: int, when: int) -> Outcome:
    """Return a deterministic outcome of a page: fetched, gone, blocked or redirected; links may change on revisits."""
    if page % 13 == 4:
        return Outcome(page, "gone")
    if page % 11 == 9:
        return Outcome(page, "blocked", reason="robots")
    if page % 17 == 5:
        return Outcome(page, "redirected", target=(page * 7 + 1) % WEB.pages)
    links = WEB.links_of(page)
    return Outcome(page, "fetched", links[: -1 - when % 3] if when % 5 == 0 else links)


def resume_crawl(state: Crawl, done: int, end: int) -> tuple[list[Outcome], list[Any]]:
    """Continue a crawl to outcome `end`; return the outcomes and the coverage after each."""
    happened: list[Outcome] = []
    coverage = []
    while done + len(happened) < end:
        batch = state.frontier.take(min(3, end - done - len(happened)))
        if not (batch.pages or batch.refused):
            break
        outcomes = batch.refused + [answer(page, done + len(happened) + n) for n, page in enumerate(batch.pages)]
        for outcome in outcomes:
            state.apply(outcome)
            coverage.append(state.ledger.coverage())
        happened += outcomes
    return happened, coverage


def assert_same_state(one: Crawl, other: Crawl) -> None:
    assert one.ledger.coverage() == other.ledger.coverage()
    for array in ("residual", "settled", "state", "totals", "rules", "counts", "levels"):
        mine, its = getattr(one.ledger.mass, array), getattr(other.ledger.mass, array)
        assert mine.tobytes() == its.tobytes(), array
    assert one.ledger.touched.tobytes() == other.ledger.touched.tobytes()
    assert one.graph.to_graph() == other.graph.to_graph()
    assert (one.graph.links, one.graph.read, one.graph.size) == (other.graph.links, other.graph.read, other.graph.size)
    assert len(one.frontier) == len(other.frontier)
    if hasattr(one.strategy, "importance"):
        assert one.strategy.importance().tobytes() == other.strategy.importance().tobytes()  # type: ignore[attr-defined]
