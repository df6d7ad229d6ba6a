"""Requests that the goal does not need are held back, also once the crawl has waited in vain."""

from __future__ import annotations

import numpy as np
import pytest

from crawl_states import fresh
from surveyor.crawler.loop import Crawl
from surveyor.crawler.request_gate import RequestGate
from surveyor.crawler.strategies import by_name
from surveyor.outcome import Outcome

PAGES = 20


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


@pytest.mark.parametrize("patience", [0.0, 20.0])
def test_only_what_the_goal_needs_is_requested_if_a_page_never_returns(patience: float) -> None:
    crawl, goal = near_the_goal()
    gate = RequestGate(crawl.ledger, crawl.frontier, goal, None, patience=patience)
    crawl.frontier.take(4)  # they are leased, and never finish
    assert len(gate.take(PAGES - 4, busy=False).pages) == 4
    assert not gate.holds
