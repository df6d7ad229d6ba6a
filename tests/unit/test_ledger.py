"""The ledger against dense solves, whatever happens to the pages and wherever unread pages may lead."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger_histories import (
    Crawl,
    Event,
    check_accounts,
    check_closed,
    check_levels,
    check_lives,
    check_touched,
    check_truth,
    lives,
    new_crawl,
    read,
)
from oracles import importance_from_each, merged_links
from surveyor import Graph
from surveyor.crawler import ledger as ledger_module
from surveyor.crawler.ledger import Ledger
from surveyor.kernels import mass as accounts
from surveyor.kernels import mass as closing
from webs import graphs


@settings(deadline=None, max_examples=150)
@given(lives(), st.integers(0, 2**32 - 1))
def test_every_bound_holds_whatever_happens(life: tuple[int, Ledger, list[Event]], seed: int) -> None:
    size, ledger, events = life
    crawl, rng = Crawl(ledger), np.random.default_rng(seed)
    for event in [Event("sweep"), *events]:
        crawl.happen(event)
        check_lives(crawl, size + 1)
        check_accounts(crawl)
        check_levels(crawl)
        check_truth(crawl, size + 1, rng)


@settings(deadline=None, max_examples=200)
@given(lives())
def test_accounts_and_levels_hold_whatever_happens(life: tuple[int, Ledger, list[Event]]) -> None:
    size, ledger, events = life
    crawl = Crawl(ledger)
    for event in events:
        crawl.happen(event)
        check_lives(crawl, size)
        check_accounts(crawl)
        check_levels(crawl)


@settings(deadline=None, max_examples=200)
@given(lives(), st.sampled_from([1 << 16, 0, 1, 3]))
def test_touched_names_every_waiting_page_that_changed(life: tuple[int, Ledger, list[Event]], room: int) -> None:
    _, ledger, events = life
    ledger.mass = ledger.mass._replace(touched=np.empty(room, np.int32))
    ledger.mass.counts[accounts.COUNT] = 0
    ledger.mass.state[:] &= np.uint8(255 - accounts.TOUCHED)
    crawl = Crawl(ledger)
    for event in events:
        before, known = crawl.ledger.residual.copy(), set(crawl.life)
        crawl.happen(event)
        check_touched(crawl, before, known)


def test_touched_overflows_into_all_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "TOUCHED", 2)
    crawl = new_crawl([0])
    assert crawl.ledger.touched.tolist() == [0]
    read(crawl.ledger, 0, 1, 2, 3)
    assert crawl.ledger.touched.tolist() == [1, 2, 3]
    read(crawl.ledger, 1, 4)
    assert crawl.ledger.touched.tolist() == [4]
    read(crawl.ledger, 2)
    read(crawl.ledger, 3, 0)
    assert crawl.ledger.touched.tolist() == [4]


def test_touched_is_a_copy() -> None:
    crawl = new_crawl([0])
    read(crawl.ledger, 0, 1, 2)
    touched = crawl.ledger.touched
    read(crawl.ledger, 1, 3, 4)
    assert sorted(touched.tolist()) == [1, 2]


@settings(deadline=None, max_examples=150)
@given(lives())
def test_closure_leaves_nothing_above_its_threshold(life: tuple[int, Ledger, list[Event]]) -> None:
    _, ledger, events = life
    ledger.mass.rules[accounts.EAGER] = 1.0
    ledger.mass.rules[accounts.EFFORT] = math.inf
    crawl = Crawl(ledger)
    mass = ledger.mass
    for event in events:
        ignored = crawl.life.get(event.page) == "alias" or event.kind in ("blocked", "sweep")
        circle = event.kind == "redirected" and crawl.stands_for(event.target) == event.page
        work, threshold = mass.counts[accounts.WORK], mass.rules[accounts.THRESHOLD]
        crawl.happen(event)
        if (ignored or circle) and event.kind != "close":
            continue
        check_closed(ledger)
        largest = max((ledger.residual[page] for page in crawl.pages("waiting")), default=0.0)
        wanted = max(mass.rules[accounts.CLOSURE] * largest, mass.rules[accounts.PRECISION] / ledger.known)
        late = closing.SCAN_EVERY * work < mass.counts[accounts.SETTLED] and threshold == mass.rules[accounts.THRESHOLD]
        if not (crawl.corrected or late):  # only corrections lower what waits while pages are closed
            assert mass.rules[accounts.THRESHOLD] * closing.SLACK <= wanted
    ledger.close()
    check_closed(ledger)
    if not crawl.corrected:
        largest = max((ledger.residual[page] for page in crawl.pages("waiting")), default=0.0)
        wanted = max(mass.rules[accounts.CLOSURE] * largest, mass.rules[accounts.PRECISION] / ledger.known)
        assert mass.rules[accounts.THRESHOLD] <= wanted


@settings(deadline=None, max_examples=100)
@given(lives())
def test_a_lazy_ledger_pushes_nothing_by_itself(life: tuple[int, Ledger, list[Event]]) -> None:
    _, ledger, events = life
    ledger.mass.rules[accounts.EAGER] = 0.0
    crawl = Crawl(ledger)
    for event in events:
        if event.kind not in ("sweep", "close"):
            crawl.happen(event)
    assert crawl.ledger.coverage().captured == 0.0
    assert crawl.ledger.coverage().lost == math.fsum(crawl.ledger.residual[crawl.pages("dead")])


@settings(deadline=None, max_examples=60)
@given(lives())
def test_the_lower_bound_is_reached_when_all_unread_pages_are_traps(life: tuple[int, Ledger, list[Event]]) -> None:
    size, ledger, events = life
    crawl = Crawl(ledger)
    for event in events:
        crawl.happen(event)
    for _ in range(300):  # at damping 0.95: what moves is below 1e-6
        ledger.sweep()
    stands_for = [crawl.stands_for(page) for page in range(size)]
    teleport = np.zeros(size)
    for seed, share in zip(ledger.seeds, ledger.teleport, strict=True):
        teleport[stands_for[seed]] += share
    traps = {page: [page] for page in range(size) if page not in crawl.links and crawl.life.get(page) != "dead"}
    exact = teleport @ importance_from_each(merged_links(crawl.links | traps, stands_for), ledger.damping, teleport)
    at_least = ledger.coverage().at_least
    assert exact[crawl.pages("fetched")].sum() == pytest.approx(at_least, abs=2e-5)
    assert ledger.coverage().moving == pytest.approx(0.0, abs=2e-6)


@settings(deadline=None, max_examples=100)
@given(graphs(), st.sampled_from([1e-4, 1e-8]))
def test_a_web_read_to_the_end_leaves_no_more_than_precision(web: Graph, precision: float) -> None:
    """FAILS on 0 -> 1, both read: the pass that the fallen threshold needs is put off for ever."""
    crawl = new_crawl([0], precision=precision)
    while crawl.pages("waiting"):
        page = crawl.pages("waiting")[0]
        crawl.happen(Event("fetched", page, tuple(web.links_of(page).tolist())))
    assert crawl.ledger.coverage().moving <= 2 * precision  # half on pages, half in the pool
    assert crawl.ledger.coverage().at_least >= 1 - 2 * precision


@settings(deadline=None, max_examples=50)
@given(graphs(), st.sampled_from([1e-4, 1e-8]), st.booleans(), st.sampled_from([math.inf, 3.0]))
def test_closing_a_web_read_to_the_end_leaves_precision(
    web: Graph, precision: float, eager: bool, effort: float
) -> None:
    crawl = new_crawl([0], precision=precision, eager=eager, effort=effort)
    while crawl.pages("waiting"):
        page = crawl.pages("waiting")[0]
        crawl.happen(Event("fetched", page, tuple(web.links_of(page).tolist())))
    crawl.ledger.close()
    assert crawl.ledger.coverage().moving <= 2 * precision


# --- closed forms ---
