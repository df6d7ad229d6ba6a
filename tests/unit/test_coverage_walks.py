"""Walks against dense solves: their mean is the coverage, on webs with gone, blocked, redirected and changed pages."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from oracles import Array
from surveyor.crawler.coverage_walks import CoverageWalks
from surveyor.crawler.frontier import Frontier
from surveyor.crawler.ledger import Ledger, PushOptions
from surveyor.crawler.loop import Crawl, Tally, crawl
from surveyor.crawler.sampled_bound import MOST_EPOCHS
from surveyor.crawler.sampling_plan import SamplingPlan
from surveyor.crawler.sources.graph import GraphSource
from surveyor.crawler.strategies import by_name
from surveyor.graph.csr import Graph
from surveyor.graph.growing import GrowingGraph
from surveyor.kernels import mass
from surveyor.outcome import NO_LINKS, Outcome
from surveyor.simulation.simulate import NullJournal, finish
from surveyor.stopping import Coverage, Pages
from webs import random_web

DAMPING = 0.85


class KnownWeb:
    """A web whose pages are fetched in the order of a test; some are gone or redirect."""

    def __init__(self, graph: Graph, seeds: list[int], gone: set[int], targets: dict[int, int], closure: float) -> None:
        self.graph, self.seeds, self.gone, self.targets = graph, seeds, gone, targets
        self.growing = GrowingGraph()
        self.ledger = Ledger(self.growing, seeds, damping=DAMPING, push=PushOptions(closure))
        self.walks = CoverageWalks(self.ledger)

    def fetch(self, page: int) -> None:
        if page in self.targets:
            outcome = Outcome(page, "redirected", target=self.targets[page])
        elif page in self.gone:
            outcome = Outcome(page, "gone")
        else:
            outcome = Outcome(page, "fetched", self.graph.links_of(page))
        self.apply(outcome)

    def apply(self, outcome: Outcome) -> None:
        old = self.growing.put(outcome.page, outcome.links) if outcome.kind != "blocked" else NO_LINKS
        self.walks.observe(outcome, changed=self.ledger.observe(outcome, old))

    def crawl(self, pages: int) -> None:
        """Fetch the pages of most mass."""
        for _ in range(pages):
            waiting = self.ledger.waiting
            if waiting.size:
                self.fetch(int(waiting[self.ledger.residual[waiting].argmax()]))

    def walk(self, count: int, secret: str) -> None:
        """Start walks in a new epoch, and fetch what they need."""
        self.walks.freeze(self.walks.draw(secret, count, NO_LINKS))
        self.walks.launch({"count": count, "bounds": []})
        while (wanted := self.walks.wanted).size:
            self.fetch(int(wanted[0]))

    def coverage(self, pages: set[int]) -> float:
        """Solve for the importance of pages in the alias-merged multigraph."""
        size = self.graph.pages
        final = [self.targets.get(page, page) for page in range(size)]
        jumps: Array = np.zeros(size)
        for seed in self.seeds:
            jumps[final[seed]] += 1 / len(self.seeds)
        steps = np.zeros((size, size))
        for page in range(size):
            links = [] if page in self.gone or page in self.targets else self.graph.links_of(page).tolist()
            for link in links:
                steps[page, final[link]] += 1 / len(links)
            if not links:
                steps[page] = jumps
        ranks = np.linalg.solve(np.eye(size) - DAMPING * steps.T, (1 - DAMPING) * jumps)
        return float(ranks[list(pages)].sum())

    @property
    def fetched(self) -> set[int]:
        state = self.ledger.state & mass.STATUS
        return set(np.flatnonzero(state == mass.FETCHED).tolist())


def some_web(rng: int, closure: float = 0.1) -> KnownWeb:
    draw = np.random.default_rng(rng)
    graph = random_web(60, 200, rng)
    pages = draw.permutation(60)
    gone = set(pages[:6].tolist())
    targets = {int(page): int(goal) for page, goal in zip(pages[6:12], pages[20:26], strict=True)}
    return KnownWeb(graph, pages[30:33].tolist(), gone, targets, closure)


@pytest.mark.parametrize("closure", [0.01, 10.0])
@pytest.mark.parametrize("rng", range(3))
def test_the_mean_of_many_walks_is_the_coverage(rng: int, closure: float) -> None:
    web = some_web(rng, closure)
    web.crawl(12)
    frozen, count = web.fetched, 3_000
    web.walk(count, "a secret")
    (epoch,) = web.walks.epochs
    values = epoch.captured + epoch.unsettled * web.walks.values
    assert web.walks.unfinished == 0
    assert abs(values.mean() - web.coverage(frozen)) < 4.5 * values.std() / np.sqrt(count) + 1e-9
    assert ((web.walks.values >= 0) & (web.walks.values <= 1 + 1e-12)).all()


def test_the_accounts_of_an_epoch_sum_to_one() -> None:
    web = some_web(1)
    web.crawl(12)
    detail = web.walks.draw("key", 10, NO_LINKS)
    coverage = web.ledger.coverage()
    assert detail["captured"] == pytest.approx(coverage.captured)
    assert detail["captured"] + detail["unsettled"] + coverage.lost + coverage.blocked == pytest.approx(1, abs=1e-9)
    assert detail["pages"] == web.ledger.read
    failing = web.ledger.waiting[:3]
    without = web.walks.draw("key", 10, failing)
    assert without["unsettled"] == pytest.approx(detail["unsettled"] - web.ledger.residual[failing].sum())
    assert not set(without["starts"]) & set(failing.tolist())


def test_walks_depend_on_the_secret_and_on_nothing_else() -> None:
    webs = [some_web(4) for _ in range(3)]
    for web, secret in zip(webs, ("one", "one", "two"), strict=True):
        web.crawl(10)
        web.walk(50, secret)
    one, same, other = (web.walks.values for web in webs)
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_the_order_in_which_pages_are_fetched_does_not_change_a_walk() -> None:
    first, second = some_web(6), some_web(6)
    for web in (first, second):
        web.crawl(10)
        web.walks.freeze(web.walks.draw("key", 40, NO_LINKS))
        web.walks.launch({"count": 40, "bounds": []})
    while first.walks.wanted.size:
        first.fetch(int(first.walks.wanted[0]))
    while second.walks.wanted.size:
        second.fetch(int(second.walks.wanted[-1]))
    assert np.array_equal(first.walks.values, second.walks.values)


def test_a_larger_read_set_does_not_change_earlier_walks() -> None:
    web = some_web(2)
    web.crawl(8)
    web.walk(40, "key")
    before = web.walks.values
    web.crawl(40)
    assert np.array_equal(web.walks.values, before)


def test_a_walk_on_a_blocked_page_counts_what_is_certain_and_moves_when_the_page_is_fetched_later() -> None:
    web = some_web(3)
    web.crawl(8)
    web.walks.freeze(web.walks.draw("key", 30, NO_LINKS))
    web.walks.launch({"count": 30, "bounds": []})
    page = int(web.walks.wanted[0])
    web.apply(Outcome(page, "blocked", reason="robots"))
    assert page not in web.walks.wanted
    while (wanted := web.walks.wanted).size:
        web.fetch(int(wanted[0]))
    stuck, before = web.walks.unfinished, web.walks.values
    assert stuck > 0
    web.fetch(page)
    while (wanted := web.walks.wanted).size:
        web.fetch(int(wanted[0]))
    assert web.walks.unfinished < stuck
    assert (web.walks.values >= before).all()


def test_a_changed_page_discards_all_walks_and_their_bounds() -> None:
    web = some_web(5)
    web.crawl(12)
    web.walk(60, "key")
    assert web.walks.at_least(0.95) > 0
    page = next(page for page in sorted(web.fetched) if web.graph.links_of(page).size)
    web.apply(Outcome(page, "fetched", web.graph.links_of(page)))  # unchanged
    assert web.walks.count == 60
    web.apply(Outcome(page, "fetched", NO_LINKS))
    assert (web.walks.count, web.walks.at_least(0.95), web.walks.used) == (0, 0.0, 1)
    assert web.walks.summary(0.95) is None
    web.walk(60, "another key")
    assert (web.walks.count, len(web.walks.epochs)) == (60, 1)


def test_an_epoch_of_another_damping_is_ignored() -> None:
    web = some_web(5)
    web.crawl(12)
    detail = web.walks.draw("key", 20, NO_LINKS)
    web.walks.freeze({**detail, "damping": 0.5})
    web.walks.launch({"count": 20, "bounds": [[0.95, 0.99]]})
    assert (web.walks.count, web.walks.at_least(0.95)) == (0, 0.0)


def test_bounds_shown_earlier_remain() -> None:
    web = some_web(5)
    web.crawl(12)
    web.walks.freeze(web.walks.draw("key", 20, NO_LINKS))
    web.walks.launch({"count": 1, "bounds": [[0.95, 0.4]]})
    assert web.walks.at_least(0.95) >= 0.4
    assert web.walks.proves(0.4, 0.95)
    assert not web.walks.proves(0.4, 0.99)


def test_starts_that_are_no_known_page_never_move() -> None:
    web = some_web(5)
    web.crawl(12)
    detail = web.walks.draw("key", 3, NO_LINKS)
    web.walks.freeze({**detail, "starts": [2**31 - 2, 59_000, 3]})
    web.walks.launch({"count": 3, "bounds": []})
    assert web.walks.count == 3
    assert web.walks.values.tolist()[:2] == [0.0, 0.0]
    assert max(web.walks.wanted.tolist(), default=0) < 60


def test_no_epoch_starts_once_the_stakes_are_worthless() -> None:
    web = some_web(5)
    web.crawl(12)
    for _ in range(MOST_EPOCHS):
        assert not web.walks.is_full
        web.walk(1, "key")
    web.walk(5, "another key")
    assert (web.walks.is_full, web.walks.count, len(web.walks.epochs)) == (True, MOST_EPOCHS, MOST_EPOCHS)


def test_the_sampled_bound_never_exceeds_the_certified_upper_bound() -> None:
    web = some_web(5)
    web.crawl(12)
    web.walks.freeze(web.walks.draw("key", 20, NO_LINKS))
    web.walks.launch({"count": 1, "bounds": [[0.95, 0.9999]]})  # a rare error, or a journal of someone else
    summary = web.walks.summary(0.95)
    assert summary is not None
    assert summary.at_least == web.ledger.coverage().at_most < 0.9999


def test_outcomes_of_other_pages_do_not_look_at_walks_that_are_stuck() -> None:
    web = some_web(3)
    web.crawl(8)
    web.walks.freeze(web.walks.draw("key", 60, NO_LINKS))
    web.walks.launch({"count": 60, "bounds": []})
    while (wanted := web.walks.wanted).size:
        web.apply(Outcome(int(wanted[0]), "blocked", reason="robots"))
    assert web.walks.unfinished > 0
    assert web.walks.active_without(()) == 0
    assert not web.walks._waiting  # the pages that are looked at after each outcome


def plan_of(web: KnownWeb, failing: set[int]) -> SamplingPlan:
    """Return the plan of a crawl in which these pages are failing."""
    frontier = SimpleNamespace(failing=NO_LINKS, held=set(), failing_of=lambda pages: failing & set(pages.tolist()))
    crawl = SimpleNamespace(ledger=web.ledger, walks=web.walks, frontier=frontier)
    return SamplingPlan(0.99, 0.95, cast(Any, crawl), lambda: "key")


def test_walks_on_hosts_in_backoff_do_not_hold_back_others() -> None:
    web = some_web(5)
    web.crawl(12)
    web.walks.freeze(web.walks.draw("key", 40, NO_LINKS))
    web.walks.launch({"count": 5, "bounds": []})
    wanted = set(web.walks.wanted.tolist())
    assert len(wanted) > 1
    assert plan_of(web, wanted - {min(wanted)}).next_events(0.0) == []
    assert [event.kind for event in plan_of(web, wanted).next_events(0.0)] == ["walks"]


def test_a_plan_starts_no_epoch_beyond_the_last_one() -> None:
    web = some_web(5)
    web.crawl(12)
    for _ in range(MOST_EPOCHS):
        web.walk(1, "key")
    plan = plan_of(web, set())
    plan.walking = True
    assert (plan.next_events(0.0), plan.walking) == ([], False)
    web.crawl(30)
    assert plan.next_events(0.0) == []


def fetches_until_sampled(graph: Graph, stops: Sequence[int]) -> tuple[int, int]:
    """Crawl to 90 %, sampled, with a new plan after each of these numbers of pages; return the fetches and walks."""
    strategy, growing = by_name("rankmass"), GrowingGraph(graph.pages)
    ledger = Ledger(growing, [0])
    state = Crawl(growing, ledger, strategy, Frontier(ledger), CoverageWalks(ledger))
    state.begin(np.random.default_rng(0))
    secrets = (f"key {number}" for number in range(100))
    source, tally = GraphSource(graph, np.zeros(graph.pages, np.uint8)), Tally(secret=lambda: next(secrets))
    for until in (*map(Pages, stops), Coverage(0.9, confidence=0.95)):
        finish(crawl(state, source, NullJournal(), until, tally=tally))
    return tally.pages, state.walks.count


def test_a_resumed_crawl_samples_as_if_it_had_not_been_stopped() -> None:
    draw = np.random.default_rng(5)
    starts = np.repeat(np.arange(900), 3 + np.minimum(draw.pareto(1.2, 900) + 1, 57).astype(int))
    graph = Graph.from_arrays(starts, (900 * draw.random(starts.size) ** 3).astype(int))
    straight, resumed = fetches_until_sampled(graph, []), fetches_until_sampled(graph, [330])
    assert min(straight[1], resumed[1]) > 0
    assert resumed[0] < 1.1 * straight[0]
