"""OPIC: cash is conserved, estimates converge to PageRank, bounds hold, both paths agree."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiments import opic as experiment
from hypothesis import given, settings
from hypothesis import strategies as st

from opic_fixtures import (
    MAKERS,
    POLICIES,
    TELEPORTS,
    Maker,
    beginning,
    begun,
    distance,
    everywhere,
    holdings,
    jumps_of,
    rows_of,
)
from oracles import dense_pagerank
from surveyor import Graph
from surveyor.arrays import FloatArray, IdArray
from surveyor.crawler.strategies.adaptive import AdaptiveOpic
from surveyor.crawler.strategies.opic import Opic, Policy, Teleport
from surveyor.errors import UsageError
from surveyor.kernels import opic_cash as kernels
from surveyor.kernels.opic_visits import visit
from surveyor.kernels.priority_queues import new_queue, pop_best, remove, set_priority
from surveyor.outcome import NO_LINKS, Outcome
from webs import chain, cycle, graphs, random_web, star

EVENT = st.tuples(
    st.sampled_from(["fetched", "fetched", "fetched", "gone", "blocked", "redirected"]),
    st.integers(0, 14),
    st.lists(st.integers(0, 30), max_size=5, unique=True),
)


@settings(deadline=None, max_examples=150)
@given(
    st.sampled_from(MAKERS),
    st.sampled_from(POLICIES),
    st.sampled_from(TELEPORTS),
    st.lists(st.integers(0, 14), min_size=1, max_size=4, unique=True),
    st.lists(EVENT, max_size=40),
)
def test_cash_is_conserved(
    make: Maker, policy: Policy, teleport: Teleport, seeds: list[int], events: list[tuple[Any, int, list[int]]]
) -> None:
    strategy = begun(make(policy, teleport), beginning(seeds, 15))
    for kind, page, links in events:
        target = links[0] if links else 3
        outcome = Outcome(page, kind, np.array(links if kind == "fetched" else [], np.int32), target=target)
        reorder = strategy.observe(outcome, NO_LINKS)
        held, totals = holdings(strategy), strategy.cash.totals
        assert abs(held.sum() + totals[kernels.VIRTUAL] - 1) <= 1e-12
        assert held.min() >= 0
        living = strategy.cash.weight[strategy.cash.state & kernels.OUT == 0].sum()
        assert totals[kernels.WEIGHTS] == pytest.approx(living, abs=1e-12)
        if policy == "greedy" and teleport == "trusted":
            promoted = np.isinf(reorder.priorities)
            assert np.array_equal(reorder.priorities[~promoted], held[reorder.pages[~promoted]])
    estimate = strategy.importance()
    assert estimate.min() >= 0
    assert estimate.sum() == pytest.approx(1)
    order = strategy.cash.order[: strategy.cash.counts[kernels.PAGES]]
    assert sorted(order) == np.flatnonzero(strategy.cash.state).tolist()


def test_a_link_to_itself_keeps_its_share() -> None:
    strategy = begun(Opic(), beginning([0], 2))
    strategy.observe(Outcome(0, "fetched", np.array([0, 1], np.int32)), NO_LINKS)
    held = holdings(strategy)
    assert held[0] == pytest.approx(0.425 + 0.15)  # its own link, and all jumps
    assert held.sum() + strategy.cash.totals[kernels.VIRTUAL] == pytest.approx(1, abs=1e-15)


def test_an_audit_corrects_rounding_on_the_virtual_page() -> None:
    strategy = begun(Opic(), everywhere(cycle(5)))
    strategy.cash.cash[3] += 1e-9
    strategy.cash.counts[kernels.FETCHES] = kernels.AUDIT - 1
    strategy.run(rows_of(cycle(5)), 1)
    assert holdings(strategy).sum() + strategy.cash.totals[kernels.VIRTUAL] == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("teleport", TELEPORTS)
def test_converges_to_pagerank(policy: Policy, teleport: Teleport) -> None:
    graph = random_web(60, 300, 5)
    start = everywhere(graph) if teleport == "uniform" else beginning([3, 40, 41], 60)
    strategy = begun(Opic(policy, teleport=teleport), start)
    strategy.run(rows_of(graph), 60 * 150)
    jumps = jumps_of(start, 60)
    truth = dense_pagerank(graph, 0.85, jumps, jumps)
    assert distance(strategy.importance(), truth) < 0.01
    assert distance(strategy.importance(), truth) <= strategy.certificate() < 0.2


@settings(deadline=None, max_examples=150)
@given(
    graphs(),
    st.sampled_from(TELEPORTS),
    st.floats(0.05, 0.95),
    st.lists(st.integers(0, 23), max_size=60),
    st.lists(st.sampled_from(["fetched"] * 3 + ["gone", "blocked", "redirected"]), min_size=24, max_size=24),
)
def test_the_certificate_bounds_the_true_error(
    graph: Graph, teleport: Teleport, damping: float, visits: list[int], kinds: list[str]
) -> None:
    """Any order of visits, a partly known web, pages gone, blocked and redirected."""
    start = beginning([0], 1)
    strategy = begun(Opic("cycle", damping, teleport), start)
    stands_for = np.arange(graph.pages)
    links: dict[int, IdArray] = {}
    for page in (page for page in visits if page < graph.pages):
        kind: Any = kinds[page]
        target = (page + 1) % graph.pages
        row = graph.links_of(page) if kind == "fetched" else NO_LINKS
        if kind == "redirected" and stands_for[page] == page and stands_for[target] != page:
            stands_for[stands_for == page] = stands_for[target]
        links[page] = row
        strategy.observe(Outcome(page, kind, row, target=target), NO_LINKS)
        truth = merged_pagerank(strategy, links, stands_for, damping)
        assert distance(strategy.importance(), truth) <= strategy.certificate() + 1e-12


def merged_pagerank(strategy: Opic, links: dict[int, IdArray], stands_for: Any, damping: float) -> FloatArray:
    """PageRank of the known graph: redirected pages merged, a page that linked to both has both links."""
    known = strategy.cash.state > 0
    pages = known.size
    weight = np.where(strategy.cash.state & kernels.OUT, 0.0, strategy.cash.weight)
    if not weight.any():
        return strategy.importance()
    jumps = weight / weight.sum()
    matrix = np.tile(jumps, (pages, 1))
    for page, row in links.items():
        if row.size:
            matrix[page] = np.bincount(stands_for[row], minlength=pages) / row.size
    ranks = np.linalg.solve(np.eye(pages) - damping * matrix.T, (1 - damping) * jumps)
    return np.asarray(ranks / ranks.sum())


@pytest.mark.parametrize("graph", [star(5), chain(6), cycle(4)])
def test_the_certificate_decreases_as_cash_moves(graph: Graph) -> None:
    strategy = begun(Opic(), everywhere(graph))
    assert strategy.certificate() == 2
    strategy.run(rows_of(graph), 1000)
    moved = strategy.cash.totals[kernels.TIME]
    assert strategy.certificate() <= 2 * 0.85 / (0.15 * moved) + 1e-9
    assert begun(AdaptiveOpic(), everywhere(graph)).certificate() == 2


def test_before_the_first_fetch_importance_is_the_teleport_vector() -> None:
    strategy = begun(Opic(), beginning([2, 5], 8))
    assert strategy.importance().tolist() == [0, 0, 0.5, 0, 0, 0.5, 0, 0][:8]


@pytest.mark.compiled
def test_greedy_is_better_than_cycle_and_cycle_than_random() -> None:
    graph = random_web(1500, 12_000, 11)
    jumps = jumps_of(everywhere(graph), graph.pages)
    truth = dense_pagerank(graph, 0.85, jumps, jumps)
    errors = []
    for policy in POLICIES:
        strategy = begun(Opic(policy, teleport="uniform"), everywhere(graph))
        strategy.run(rows_of(graph), 6 * graph.pages)
        errors.append(distance(strategy.importance(), truth))
    assert errors[0] < 0.7 * errors[1]
    assert errors[1] < 0.9 * errors[2]


@pytest.mark.parametrize("teleport", TELEPORTS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("make", MAKERS)
def test_one_visit_at_a_time_equals_the_whole_crawl(make: Maker, policy: Policy, teleport: Teleport) -> None:
    """The same order, the same bytes: both call the same step."""
    graph, fetches = random_web(40, 160, 7), 300
    dead = np.arange(40) % 11 == 10
    indptr = np.concatenate([[0], np.cumsum(np.where(dead, 0, graph.out_degrees))])
    graph = Graph(indptr, graph.indices[~np.repeat(dead, graph.out_degrees)])
    whole = begun(make(policy, teleport), beginning([0, 20], 40))
    taken = whole.run(rows_of(graph), fetches, dead)
    single = make(policy, teleport)
    queue, order = new_queue(40), []
    reorder = single.begin(beginning([0, 20], 4 if policy == "cycle" else 40), None, np.random.default_rng(1))
    for _ in range(fetches):
        for page, priority in zip(reorder.pages, reorder.priorities, strict=True):
            set_priority(queue, page, priority)
        page = pop_best(queue)
        order.append(page)
        gone = Outcome(page, "gone")
        reorder = single.observe(gone if dead[page] else Outcome(page, "fetched", graph.links_of(page)), NO_LINKS)
    assert order == taken.tolist()
    for name in ("cash", "weight", "settled", "given", "state", "order"):
        one, other = getattr(single.cash, name), getattr(whole.cash, name)
        assert one[: other.size].tobytes() == other.tobytes(), name
    assert single.cash.totals.tobytes() == whole.cash.totals.tobytes()
    assert single.cash.earnings.history[:40].tobytes() == whole.cash.earnings.history.tobytes()
    assert single.importance()[:40].tobytes() == whole.importance().tobytes()


@pytest.mark.parametrize("policy", POLICIES)
def test_same_seed_same_bytes(policy: Policy) -> None:
    graph = random_web(100, 500, 2)
    runs = [begun(Opic(policy), beginning([0, 7], 100), seed) for seed in (4, 4, 5)]
    orders = [run.run(rows_of(graph), 700).tobytes() for run in runs]
    assert orders[0] == orders[1]
    assert runs[0].cash.cash.tobytes() == runs[1].cash.cash.tobytes()
    assert (orders[0] == orders[2]) == (policy != "random")


def test_cycle_fetches_in_turn_and_random_fetches_uniformly() -> None:
    graph = cycle(10)
    taken = begun(Opic("cycle"), everywhere(graph)).run(rows_of(graph), 30)
    assert taken.tolist() == [*range(10)] * 3
    taken = begun(Opic("random"), everywhere(graph)).run(rows_of(graph), 5000)
    counts = np.array(list(Counter(taken.tolist()).values()))
    assert ((counts - 500) ** 2 / 500).sum() < 27.9  # chi-square of 9 degrees, 1 in 1,000
    assert np.mean(taken[1:] == taken[:-1]) == pytest.approx(0.1, abs=0.02)  # with repetition


def test_fairness_fetches_pages_that_never_get_cash() -> None:
    graph = Graph.from_arrays(np.array([0, 1, 2]), np.array([1, 0, 0]), 3)  # nothing leads to page 2
    unfair, fair = (begun(Opic(fairness=share), beginning([0, 2], 3)) for share in (0.0, 0.1))
    for strategy in (unfair, fair):  # a page that links to 2, once; then 2 has nothing but its place
        strategy.observe(Outcome(2, "gone"), NO_LINKS)
    assert Counter(unfair.run(rows_of(graph), 500).tolist())[2] == 0
    assert Counter(fair.run(rows_of(graph), 500).tolist())[2] >= 20


def test_a_gone_page_has_no_weight_and_loses_half_its_history_per_visit() -> None:
    graph = cycle(4)
    strategy = begun(Opic(teleport="uniform"), everywhere(graph))
    strategy.run(rows_of(graph), 400)
    before = strategy.importance()[2]
    gone = Outcome(2, "gone")
    strategy.observe(gone, NO_LINKS)
    assert strategy.cash.totals[kernels.WEIGHTS] == 3
    found = []
    for _ in range(3):
        strategy.observe(gone, NO_LINKS)
        found.append(strategy.importance()[2])
    assert found == pytest.approx([before / 2, before / 4, before / 8], rel=0.35)
    strategy.observe(Outcome(2, "fetched", graph.links_of(2)), NO_LINKS)
    assert strategy.cash.totals[kernels.WEIGHTS] == 4


def test_the_teleport_weight_follows_a_redirected_seed() -> None:
    strategy = begun(Opic(), beginning([0, 1], 2))
    reorder = strategy.observe(Outcome(0, "redirected", target=9), NO_LINKS)
    assert dict(zip(reorder.pages.tolist(), reorder.priorities.tolist(), strict=True)) == {9: 0.5, 0: 0.0}
    assert strategy.cash.weight[[0, 1, 9]].tolist() == [0, 0.5, 0.5]
    reorder = strategy.observe(Outcome(1, "fetched"), NO_LINKS)  # without links: all of its cash jumps
    assert dict(zip(reorder.pages.tolist(), reorder.priorities.tolist(), strict=True)) == {1: 0.25, 9: 0.75}
    strategy.observe(Outcome(1, "fetched", np.array([0, 9], np.int32)), NO_LINKS)  # links to both reach one page
    assert holdings(strategy)[0] == 0
    strategy.observe(Outcome(9, "redirected", target=0), NO_LINKS)  # in a circle: there is no page to read
    assert holdings(strategy).sum() + strategy.cash.totals[kernels.VIRTUAL] == pytest.approx(1)


def test_a_seed_may_redirect_to_another_seed_or_a_gone_page() -> None:
    strategy = begun(Opic(), beginning([0, 1, 2], 4))
    strategy.observe(Outcome(0, "redirected", target=1), NO_LINKS)
    assert strategy.cash.weight.tolist() == pytest.approx([0, 2 / 3, 1 / 3, 0])
    strategy.observe(Outcome(3, "gone"), NO_LINKS)
    strategy.observe(Outcome(2, "redirected", target=3), NO_LINKS)
    assert strategy.cash.totals[kernels.WEIGHTS] == pytest.approx(2 / 3)
    assert holdings(strategy).sum() + strategy.cash.totals[kernels.VIRTUAL] == pytest.approx(1)


def test_a_crawl_ends_when_the_queue_is_empty() -> None:
    strategy = begun(Opic(), beginning([0], 1))
    rows = rows_of(chain(1))
    assert strategy.run(rows, 2).tolist() == [0, 0]
    assert strategy._queue is not None
    remove(strategy._queue, 0)
    assert strategy.run(rows, 2).size == 0


def test_a_redirect_transfers_the_history() -> None:
    graph = star(4)
    for make in MAKERS:
        strategy = begun(make("greedy", "trusted"), beginning([0], 5))
        strategy.run(rows_of(graph), 200)
        before = strategy.importance()[2]
        strategy.observe(Outcome(2, "redirected", target=7), NO_LINKS)
        assert strategy.importance()[[2, 7]] == pytest.approx([0, before])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Opic("best"),  # type: ignore[arg-type]
        lambda: Opic(teleport="some"),  # type: ignore[arg-type]
        lambda: Opic(damping=1.0),
        lambda: Opic(fairness=1.0),
        lambda: AdaptiveOpic("round"),  # type: ignore[arg-type]
        lambda: AdaptiveOpic("bao", 0),
        lambda: AdaptiveOpic("variable", 1),
    ],
)
def test_invalid_parameters_are_rejected(make: Any) -> None:
    with pytest.raises(UsageError):
        make()


def test_names() -> None:
    strategies = [Opic(), Opic("cycle"), AdaptiveOpic(), AdaptiveOpic("fixed"), AdaptiveOpic("variable")]
    assert [s.name for s in strategies] == ["opic", "opic:cycle", "adaptive", "adaptive:fixed", "adaptive:variable"]


def test_importing_the_strategies_does_not_load_numba() -> None:
    modules = "surveyor.crawler.strategies.adaptive, surveyor.crawler.sources.graph"
    code = f"import sys, {modules}; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.compiled
@pytest.mark.slow
def test_the_experiment_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment.main(["--quick", "--out", str(tmp_path)])
    result = capsys.readouterr().out
    assert result.count("| greedy |") >= 1
    assert "bao" in result
    assert len(list(tmp_path.glob("*.svg"))) >= 2


def test_the_step_can_be_called_by_itself() -> None:
    strategy = begun(Opic(), beginning([0], 3))
    links = np.array([1, 2], np.int32)
    link_set = np.uint64(kernels.link_set_of(links, 0, 2))
    visit(strategy.cash, strategy.changes, 0, links, (0, 2), kernels.KNOWN, link_set)
    assert holdings(strategy)[1:].tolist() == [0.425, 0.425]
