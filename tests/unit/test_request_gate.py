"""The request gate: how long it holds pages back while requests get no response."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from crawl_states import fresh
from surveyor.crawler import request_gate
from surveyor.crawler.frontier import Frontier
from surveyor.crawler.ledger import Ledger
from surveyor.crawler.loop import Crawl
from surveyor.crawler.request_gate import PATIENCE, SLOW, RequestGate
from surveyor.crawler.strategies import by_name
from surveyor.crawler.strategies.strategy import Reorder
from surveyor.graph.growing import GrowingGraph
from surveyor.outcome import Outcome

PAGES = 20


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(request_gate, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def gate_of_walks(wanted: list[int]) -> tuple[RequestGate, Frontier]:
    """Return the gate of a crawl whose walks wait for some of its pages, and its frontier."""
    ledger = Ledger(GrowingGraph(), list(range(PAGES)))
    frontier = Frontier(ledger)
    frontier.update(Reorder(ledger.waiting, np.ones(PAGES)))
    frontier.prefer(ledger.waiting[wanted])
    plan = SimpleNamespace(walking=True, exclusive=False)
    return RequestGate(ledger, frontier, 0.9, cast(Any, plan)), frontier


def test_a_page_that_never_answers_does_not_hold_back_all_others(clock: SimpleNamespace) -> None:
    gate, _ = gate_of_walks([4])
    assert gate.take(5, busy=False).pages == [4]
    for _ in range(math.ceil(SLOW + PATIENCE)):
        assert gate.take(4, busy=True).pages == []
        clock.now += 1
    clock.now += 1
    gate.take(4, busy=True)
    assert len(gate.take(4, busy=True).pages) == 4


def test_responses_within_a_normal_time_use_no_patience(clock: SimpleNamespace) -> None:
    gate, frontier = gate_of_walks([])
    for page in range(PAGES):
        frontier.prefer(np.array([page], np.int32))
        assert gate.take(5, busy=False).pages == [page]
        for _ in range(3):
            clock.now += SLOW / 4
            assert gate.take(4, busy=True).pages == []
        frontier.settle(Outcome(page, "blocked", reason="x"))
    assert PAGES * SLOW * 3 / 4 > PATIENCE
    assert gate.holds


def test_waits_without_requests_end_after_patience(clock: SimpleNamespace) -> None:
    gate, frontier = gate_of_walks([])
    frontier._queues.again_at = clock.now + 1e9  # type: ignore[misc]  # a retry in many years
    assert gate.take(3, busy=False).pages == []
    clock.now += PATIENCE - 1
    assert gate.take(3, busy=False).pages == []
    clock.now += 2
    gate.take(3, busy=False)
    assert len(gate.take(3, busy=False).pages) == 3


def near_the_goal() -> tuple[Crawl, float]:
    """Return a crawl whose seed links to many pages, and a goal that four of them reach."""
    crawl = fresh(by_name("rankmass"), (0,))
    crawl.frontier.take(1)
    crawl.apply(Outcome(0, "fetched", np.arange(1, PAGES + 1, dtype=np.int32)))
    now = crawl.ledger.coverage()
    return crawl, now.captured + now.moving + 1.9 * now.waiting / PAGES


def test_nothing_is_requested_while_what_is_in_progress_may_suffice() -> None:
    crawl, goal = near_the_goal()
    gate = RequestGate(crawl.ledger, crawl.frontier, goal, None)
    assert len(gate.take(PAGES, busy=False).pages) == 4
    assert not gate.take(PAGES, busy=True).pages
    assert gate.holds


def test_only_what_the_goal_needs_is_requested_if_a_page_never_returns() -> None:
    crawl, goal = near_the_goal()
    gate = RequestGate(crawl.ledger, crawl.frontier, goal, None)
    crawl.frontier.take(4)  # they are leased, and never finish
    assert len(gate.take(PAGES - 4, busy=False).pages) == 4
    assert not gate.holds


def test_without_patience_nothing_is_held_back() -> None:
    crawl, goal = near_the_goal()
    gate = RequestGate(crawl.ledger, crawl.frontier, goal, None, patience=0)
    assert len(gate.take(10, busy=True).pages) == 10
    assert not gate.holds
