"""Push tracking of a changing web: objects and kernel agree."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.kernels import Seen, track

from oracles import dense_pagerank
from surveyor import Graph, GrowingGraph, Ledger, Outcome, Tracking, pagerank
from surveyor.arrays import read_only
from surveyor.crawler.coverage_walks import CoverageWalks
from surveyor.crawler.frontier import Frontier
from surveyor.crawler.loop import Crawl
from surveyor.crawler.sources.graph import ChangingWeb
from surveyor.crawler.strategies.tracking import pace
from surveyor.kernels.mass import Rows
from surveyor.kernels.priority_queues import new_queue, set_priority
from webs import random_web

PAGES = 400


def webs(rate: float) -> ChangingWeb:
    return ChangingWeb(random_web(PAGES, 3_000, 2), np.random.default_rng(5), changed=rate)


def tracker() -> Crawl:
    graph = GrowingGraph(PAGES)
    ledger = Ledger(graph, np.arange(PAGES, dtype=np.int32), pages=PAGES)
    state = Crawl(graph, ledger, Tracking(), Frontier(ledger, rereads=True), CoverageWalks(ledger))
    state.begin(np.random.default_rng(1))
    return state


def read(state: Crawl, web: ChangingWeb, reads: int) -> None:
    for _ in range(reads):
        page = state.frontier.take().pages[0]
        state.apply(Outcome(page, "fetched", web.links_of(page).copy()))


def test_one_kernel_takes_the_same_steps() -> None:
    state, web = tracker(), webs(0.2)
    for _ in range(8):
        read(state, web, 100)
        web.step()

    web = webs(0.2)
    ledger, queue = Ledger(GrowingGraph(1), np.arange(PAGES, dtype=np.int32), pages=PAGES), new_queue(PAGES)
    clock = np.array([0.0, pace(ledger)])
    end, targets = web.rows.start.copy(), np.zeros_like(web.rows.targets)
    seen = Seen(Rows(read_only(web.rows.start), read_only(end), read_only(targets)), end, targets)
    for page in range(PAGES):
        set_priority(queue, page, ledger.residual[page])
    for _ in range(8):
        track(ledger.mass, seen, Rows(*(read_only(array) for array in web.rows)), queue, clock, 100)
        clock[1] = pace(ledger)
        web.step()
    for array in ("residual", "settled", "state", "totals", "counts"):
        assert getattr(state.ledger.mass, array).tobytes() == getattr(ledger.mass, array).tobytes()


def test_on_a_static_web_it_is_pagerank_up_to_the_precision() -> None:
    state, web = tracker(), webs(0.0)
    read(state, web, PAGES)
    even = np.full(PAGES, 1 / PAGES)
    assert np.abs(state.ledger.importance() - dense_pagerank(web.graph(), 0.85, even, even)).sum() < 2e-4


@pytest.mark.parametrize("rate", [0.05, 0.5])
def test_after_refetching_every_page_it_is_pagerank_of_the_current_web(rate: float) -> None:
    state, web = tracker(), webs(rate)
    read(state, web, PAGES)
    for _ in range(3):
        web.step()
    stale = np.abs(state.ledger.importance() - pagerank(web.graph(), tolerance=1e-9).scores).sum()
    for page in range(PAGES):
        state.apply(Outcome(page, "fetched", web.links_of(page).copy()))
    state.ledger.close()
    fresh = np.abs(state.ledger.importance() - pagerank(web.graph(), tolerance=1e-9).scores).sum()
    assert fresh < 5e-4 < 0.05 * rate < stale


def test_important_pages_are_fetched_more_often() -> None:
    star = Graph.from_arrays(np.arange(1, 100), np.zeros(99, np.int64), 100)
    graph = GrowingGraph()
    ledger = Ledger(graph, np.arange(100, dtype=np.int32))
    state = Crawl(graph, ledger, Tracking(), Frontier(ledger, rereads=True), CoverageWalks(ledger))
    state.begin(np.random.default_rng(1))
    seen = []
    for _ in range(3_000):
        page = state.frontier.take().pages[0]
        seen.append(page)
        state.apply(Outcome(page, "fetched", star.links_of(page)))
    visits = np.bincount(seen[1_000:], minlength=100)
    expected = np.sqrt(ledger.importance())
    assert visits[0] == pytest.approx(2_000 * expected[0] / expected.sum(), rel=0.2)
    assert visits.min() > 0
