"""OPIC with pages that are fetched repeatedly: frequencies, rate of convergence, bounds on adverse graphs, changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from experiments.opic import paper_estimate
from hypothesis import given, settings
from hypothesis import strategies as st

from opic_fixtures import POLICIES, TELEPORTS, beginning, begun, distance, everywhere, holdings, jumps_of, rows_of
from oracles import dense_pagerank
from surveyor import Graph
from surveyor.arrays import FloatArray, IdArray
from surveyor.crawler.strategies import by_name
from surveyor.crawler.strategies.adaptive import AdaptiveOpic
from surveyor.crawler.strategies.opic import Opic, Policy, Teleport
from surveyor.crawler.strategies.strategy import rereads
from surveyor.errors import UsageError
from surveyor.graph.synthetic.generate import PRESETS, rmat, synthetic_web
from surveyor.kernels import opic_cash as kernels
from surveyor.outcome import NO_LINKS, Outcome
from webs import random_web

PAGES = 9
KIND = st.sampled_from(["fetched"] * 6 + ["gone", "blocked", "blocked", "redirected"])
LINKS = st.lists(st.integers(0, PAGES - 1), max_size=4, unique=True)


class Web:
    """The links of a small web as last fetched, with its PageRank by a dense solve."""

    def __init__(self) -> None:
        self.links: dict[int, IdArray] = {}
        self.stands_for = np.arange(PAGES)
        self.changed = False

    def observe(self, page: int, kind: str, row: IdArray, target: int) -> None:
        if kind == "redirected" and self.stands_for[page] == page and self.stands_for[target] != page:
            self.changed |= page in self.links
            self.stands_for[self.stands_for == page] = self.stands_for[target]
        elif kind in ("fetched", "gone"):
            old = self.links.get(page)
            self.changed |= old is not None and set(old.tolist()) != set(row.tolist())
            self.links[page] = row

    def pagerank(self, strategy: Opic) -> FloatArray:
        weight = np.where(strategy.cash.state & kernels.OUT, 0.0, strategy.cash.weight)
        jumps = weight / weight.sum()
        matrix = np.tile(jumps, (weight.size, 1))
        for page, row in self.links.items():
            if row.size and self.stands_for[page] == page:
                matrix[page] = np.bincount(self.stands_for[row], minlength=weight.size) / row.size
        ranks = np.linalg.solve(np.eye(weight.size) - 0.85 * matrix.T, 0.15 * jumps)
        return np.asarray(ranks / ranks.sum())


@settings(deadline=None, max_examples=200)
@given(
    st.sampled_from(POLICIES),
    st.sampled_from(TELEPORTS),
    st.lists(LINKS, min_size=PAGES, max_size=PAGES),
    st.lists(st.tuples(st.integers(0, PAGES - 1), KIND, st.booleans(), LINKS), max_size=60),
)
def test_the_bound_holds_until_a_link_set_changes(
    policy: Policy, teleport: Teleport, graph: list[list[int]], visits: list[tuple[int, Any, bool, list[int]]]
) -> None:
    """Self-links, pages without links, parts that are not connected, failures after a fetch, deaths, redirects."""
    strategy, web = begun(Opic(policy, teleport=teleport), beginning([0, 5], PAGES)), Web()
    for page, kind, other, links in visits:
        if web.stands_for[page] != page:
            continue  # a crawl does not request it again
        row = np.array(links if other and len(visits) > 40 else graph[page], np.int32)
        row = row if kind == "fetched" else NO_LINKS
        target = (page + 1) % PAGES
        web.observe(page, kind, row, target)
        strategy.observe(Outcome(page, kind, row, target=target), NO_LINKS)
        error, reason = strategy.bound()
        assert (error is None) == web.changed
        assert reason.startswith("no bound: links have changed") == web.changed
        if error is not None and strategy.cash.totals[kernels.WEIGHTS] > kernels.LEAST:
            assert distance(strategy.importance(), web.pagerank(strategy)) <= error + 1e-12


def test_the_order_of_links_is_no_change() -> None:
    strategy = begun(Opic(), beginning([0], 4))
    for links in ([1, 2, 3], [3, 1, 2]):
        strategy.observe(Outcome(0, "fetched", np.array(links, np.int32)), NO_LINKS)
        assert strategy.bound().error is not None
    strategy.observe(Outcome(1, "redirected", target=2), NO_LINKS)  # an alias changes no link of page 0
    strategy.observe(Outcome(0, "fetched", np.array([1, 2, 3], np.int32)), NO_LINKS)
    assert strategy.bound().error is not None
    strategy.observe(Outcome(0, "fetched", np.array([2, 3], np.int32)), NO_LINKS)
    assert strategy.bound() == (None, "no bound: links have changed (1 page)")
    assert strategy.certificate() == 2.0


def test_no_cash_stays_on_pages_that_cannot_be_fetched() -> None:
    """Two of three links of the seed lead to pages that a crawl never requests again."""
    strategy = begun(Opic(), beginning([0], 4))
    links = np.array([1, 2, 3], np.int32)
    strategy.observe(Outcome(0, "fetched", links), NO_LINKS)
    strategy.observe(Outcome(1, "gone"), NO_LINKS)
    strategy.observe(Outcome(2, "blocked", reason="robots"), NO_LINKS)
    for _ in range(60):
        strategy.observe(Outcome(0, "fetched", links), NO_LINKS)
        strategy.observe(Outcome(3, "fetched", np.array([0], np.int32)), NO_LINKS)
    assert holdings(strategy)[[1, 2]].tolist() == [0, 0]
    graph = Graph.from_arrays(np.array([0, 0, 0, 3]), np.array([1, 2, 3, 0]), 4)
    jumps = np.array([1.0, 0, 0, 0])
    assert distance(strategy.importance(), dense_pagerank(graph, 0.85, jumps, jumps)) <= strategy.certificate() < 0.2


@pytest.mark.parametrize("fairness", [0.0, 0.05])
def test_greedy_fetches_pages_in_proportion_to_their_importance(fairness: float) -> None:
    graph = random_web(60, 300, 5)
    strategy = begun(Opic(teleport="uniform", fairness=fairness), everywhere(graph))
    counts = np.bincount(strategy.run(rows_of(graph), 50 * 60), minlength=60)
    jumps = jumps_of(everywhere(graph), 60)
    truth = dense_pagerank(graph, 0.85, jumps, jumps)
    assert np.corrcoef(counts, truth)[0, 1] > 0.99
    counts = np.bincount(begun(Opic("cycle", teleport="uniform"), everywhere(graph)).run(rows_of(graph), 3000))
    assert np.ptp(counts) == 0


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("teleport", TELEPORTS)
def test_the_error_decreases_as_one_over_the_fetches(policy: Policy, teleport: Teleport) -> None:
    graph = random_web(200, 1000, 5)
    start = everywhere(graph) if teleport == "uniform" else beginning([0, 3], 200)
    jumps = jumps_of(start, 200)
    truth = dense_pagerank(graph, 0.85, jumps, jumps)
    strategy, done, points = begun(Opic(policy, teleport=teleport), start), 0, []
    for fetches in np.geomspace(8, 256, 40).astype(int) * 200:
        strategy.run(rows_of(graph), fetches - done)
        done = fetches
        points.append((fetches, distance(strategy.importance(), truth), strategy.certificate()))
    fetches, errors, bounds = np.log(np.array(points)).T
    assert np.all(errors <= bounds)
    assert np.polyfit(fetches, errors, 1)[0] == pytest.approx(-1, abs=0.15)
    assert np.polyfit(fetches, bounds, 1)[0] == pytest.approx(-1, abs=0.15)


@pytest.mark.compiled
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("teleport", TELEPORTS)
@pytest.mark.slow
def test_after_one_fetch_per_page_the_estimate_is_no_worse_than_the_printed_one(
    policy: Policy, teleport: Teleport
) -> None:
    sites = [synthetic_web(PRESETS["small"], rng=rng, names=False).graph for rng in range(4)]
    for graph in [*sites, random_web(1500, 12_000, 11), rmat(11, 8, rng=7)]:
        pages = graph.pages
        linked = np.sort(np.argsort(-np.diff(graph.in_links.indptr), kind="stable")[:10])
        start = everywhere(graph) if teleport == "uniform" else beginning(linked, pages)
        jumps = jumps_of(start, pages)
        truth = dense_pagerank(graph, 0.85, jumps, jumps)
        strategy = begun(Opic(policy, teleport=teleport), start)
        strategy.run(rows_of(graph), int((truth > 0).sum()))
        error = distance(strategy.importance(), truth)
        assert error <= distance(paper_estimate(strategy), truth)
        assert error <= strategy.certificate()


def test_windows_and_policies_are_selected_by_name() -> None:
    one = by_name("adaptive:window=fixed,size=4,policy=cycle,fairness=0,teleport=uniform,damping=0.8")
    assert isinstance(one, AdaptiveOpic)
    assert (one.window, one.size, one.policy, one.fairness) == ("fixed", 4.0, "cycle", 0.0)
    assert (one.teleport, one.damping) == ("uniform", 0.8)
    for text in ("opic", "opic:cycle", "opic:policy=random,fairness=0.1", "adaptive", "adaptive:static",
                 "adaptive:variable", "adaptive:window=bao,size=16", "adaptive:policy=cycle"):  # fmt: skip
        name = getattr(by_name(text), "name", "")
        assert getattr(by_name(name), "name", "") == name
    assert getattr(by_name("adaptive:window=bao,size=16"), "name", "") == "adaptive:size=16"
    for text in ("opic:policy=best", "opic:size=3", "adaptive:size=some", "adaptive:window=variable,size=1"):
        with pytest.raises(UsageError):
            by_name(text)


def test_a_static_window_is_plain_opic() -> None:
    graph = random_web(40, 160, 7)
    plain, static = (begun(one, beginning([0], 40)) for one in (Opic(), AdaptiveOpic("static")))
    for one in (plain, static):
        one.run(rows_of(graph), 300)
    assert plain.importance().tobytes() == static.importance().tobytes()
    assert plain.bound() == static.bound()
    assert begun(AdaptiveOpic("fixed"), beginning([0], 40)).bound().reason.startswith("no bound")


@pytest.mark.parametrize(
    ("until", "repeats"),
    [("requests=200", True), ("minutes=1", True), ("pages=10", False), ("coverage=0.9", False), ("bytes=1MB", False),
     ("coverage=0.9, requests=200", False), ("pages=10 & requests=20", True)],
)  # fmt: skip
def test_the_goal_decides_whether_pages_are_fetched_repeatedly(until: str, repeats: bool) -> None:
    assert rereads(by_name("opic"), until) == repeats
    assert rereads(by_name("adaptive:fixed"), until) == repeats
    assert rereads(by_name("tracking"), until)
    assert not rereads(by_name("rankmass"), until)
