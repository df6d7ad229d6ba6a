"""The simulator: compiled and object crawls agree page for page, bounds hold, logs replay, errors are reported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surveyor as sv
from fake_web import MemoryJournal
from oracles import paper_rankmass
from slow_cases import one_in
from surveyor import Coverage, Graph, Outcome, Pages, Reorder, Requests, StrategyError, UsageError
from surveyor.crawler.coverage_walks import CoverageWalks
from surveyor.crawler.frontier import Frontier
from surveyor.crawler.ledger import Ledger, PushOptions
from surveyor.crawler.loop import Crawl, crawl, replay
from surveyor.crawler.sources.graph import GraphSource
from surveyor.crawler.strategies import NAMES, by_name
from surveyor.crawler.strategies.breadth import levels_needed
from surveyor.graph.growing import GrowingGraph
from surveyor.kernels.mass import FETCHED, STATUS
from surveyor.report.race import importance_table, repeats
from surveyor.simulation.simulate import finish
from webs import chain, graphs, random_web

COMPILED = ["breadth", "rankmass", "rankmass:1", "windowed", "windowed:0.5", "sweep", "random"]
ALL = [*NAMES, "opic:cycle", "opic:random", "adaptive:fixed", "adaptive:variable", "rankmass:1", "windowed:0.03"]
WEB = random_web(3_000, 24_000, 3)


def simulate(graph: Graph, *arguments: Any, **given: Any) -> sv.Race:
    """Simulate with keyword conditions that become `SimulationOptions`."""
    own = {name: given.pop(name) for name in ("strategies", "until", "seeds", "rng") if name in given}
    return sv.simulate(graph, *arguments, **own, options=sv.SimulationOptions(**given))


@st.composite
def scenes(draw: st.DrawFn) -> dict[str, Any]:
    """Random webs with gone and blocked pages, seeds, batches and goals."""
    graph = draw(graphs(max_pages=40, max_links=160))
    page = st.integers(0, graph.pages - 1)
    seeds = draw(st.lists(page, min_size=1, max_size=4))
    outcomes = draw(st.lists(st.sampled_from([0, 0, 0, 0, 1, 2]), min_size=graph.pages, max_size=graph.pages))
    goal = draw(st.one_of(st.builds(Coverage, st.floats(0.05, 0.99)), st.builds(Pages, st.integers(1, 40))))
    return {
        "graph": graph,
        "until": goal,
        "seeds": seeds,
        "gone": np.array(outcomes) == 1,
        "block": np.array(outcomes) == 2,
        "batch": draw(st.integers(1, 4)),
        "damping": draw(st.sampled_from([0.5, 0.85, 0.95])),
        "rng": draw(st.integers(0, 99)),
        "samples": 3,
    }


@settings(deadline=None, max_examples=60)
@given(scenes())
@pytest.mark.slow
def test_kernels_and_objects_agree_page_for_page(scene: dict[str, Any]) -> None:
    fast, slow = (simulate(strategies=COMPILED, compiled=way, **scene) for way in (True, False))
    for one, other in zip(fast.runs, slow.runs, strict=True):
        assert one.compiled
        assert not other.compiled
        assert one.order.tobytes() == other.order.tobytes()
        assert one.at_least.tobytes() == other.at_least.tobytes()
        assert one.at_most.tobytes() == other.at_most.tobytes()
        assert one.coverage == other.coverage
        assert (one.reached, one.stop_reason, one.requests, one.link_updates) == (
            other.reached,
            other.stop_reason,
            other.requests,
            other.link_updates,
        )
        assert one.samples == other.samples


@settings(deadline=None, max_examples=40)
@given(scenes(), st.sampled_from(ALL))
def test_true_coverage_is_between_the_bounds_after_every_fetch(scene: dict[str, Any], name: str) -> None:
    run = simulate(strategies=[name], **scene).runs[0]
    assert (run.at_least <= run.true + 1e-6).all()
    assert (run.true <= run.at_most + 1e-6).all()
    if name != "tracking":  # which reads pages again
        assert np.unique(run.order).size == run.order.size
        assert (np.diff(run.at_least) >= -1e-12).all()


@pytest.mark.compiled
@pytest.mark.parametrize("name", one_in(2, ALL))
@pytest.mark.slow
def test_every_strategy_finally_fetches_the_whole_web(name: str) -> None:
    race = simulate(WEB, [name], Coverage(0.999), rng=1, samples=4)
    run = race.runs[0]
    assert run.reached, run.stop_reason
    assert race.optimal_fetches_for(0.9) <= (run.fetches_for(0.9, "true") or 0)  # type: ignore[operator]
    assert [sample.fetches for sample in run.samples] == sorted(sample.fetches for sample in run.samples)


@pytest.mark.parametrize("name", ["rankmass", "random", "opic:random", "tracking"])
def test_the_same_seed_gives_the_same_bytes(name: str) -> None:
    one, other = (simulate(WEB, [name], Pages(500), rng=5, gone=0.1).runs[0] for _ in range(2))
    assert one.order.tobytes() == other.order.tobytes()
    assert one.at_least.tobytes() == other.at_least.tobytes()
    assert one.samples == other.samples
    if name in ("random", "opic:random"):
        assert one.order.tobytes() != simulate(WEB, [name], Pages(500), rng=6, gone=0.1).runs[0].order.tobytes()


def fresh(strategy: str, seeds: list[int], rng: int = 3) -> Crawl:
    graph = GrowingGraph()
    made = by_name(strategy)
    ledger = Ledger(graph, seeds, push=PushOptions(getattr(made, "closure", 0.1), getattr(made, "eager", True)))
    state = Crawl(
        graph, ledger, made, Frontier(ledger, rereads=getattr(made, "rereads", False) is True), CoverageWalks(ledger)
    )
    state.begin(np.random.default_rng(rng))
    return state


@pytest.mark.parametrize("name", ALL)
def test_a_replay_of_the_log_gives_the_same_state_and_continuation(name: str) -> None:
    outcomes = (np.arange(WEB.pages) % 9 == 4).astype(np.uint8) + 2 * (np.arange(WEB.pages) % 11 == 7).astype(np.uint8)
    outcomes[0] = 0
    source, journal, first, second = GraphSource(WEB, outcomes % 3), MemoryJournal(), fresh(name, [0]), fresh(name, [0])
    finish(crawl(first, source, journal, Pages(300), batch=3))
    replay(second, journal.outcomes)
    for array in ("residual", "settled", "state", "totals", "counts"):
        assert getattr(first.ledger.mass, array).tobytes() == getattr(second.ledger.mass, array).tobytes()
    assert first.graph.to_graph() == second.graph.to_graph()
    assert len(first.frontier) == len(second.frontier)
    more = MemoryJournal(), MemoryJournal()
    for state, log in zip((first, second), more, strict=True):
        finish(crawl(state, source, log, Pages(100), batch=2))
    assert more[0].outcomes == more[1].outcomes


def test_the_loop_counts_nothing_before_the_commit() -> None:
    state = fresh("rankmass", [0])

    class Full:
        def commit(self, results: Any) -> None:  # noqa: ARG002
            raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        finish(crawl(state, GraphSource(WEB), Full(), Pages(5)))
    assert state.ledger.read == 0
    assert state.graph.read == 0


def test_plain_rankmass_needs_at_most_the_fetches_of_the_paper_and_closure_a_fifth_fewer() -> None:
    graph = sv.synthetic_web("site", names=False).graph
    seeds = list(range(0, graph.pages, graph.pages // 20))
    race = simulate(graph, ["rankmass:1", "rankmass"], Coverage(0.95), seeds=seeds, rng=1, samples=0)
    for level in (0.5, 0.8, 0.9):
        paper = paper_rankmass(graph, seeds, 0.85, level)
        plain, closed = (run.fetches_for(level) for run in race.runs)
        assert plain is not None
        assert closed is not None
        assert plain <= paper
        assert closed <= 0.85 * paper


def test_l_neighbor_is_not_one_level_short() -> None:
    assert levels_needed(0.9) == 15  # the loop as printed stops after 14: 0.8972
    run = simulate(chain(400), ["breadth:15"], Pages(400), seeds=[0], rng=1).runs[0]
    assert run.order.tolist() == list(range(15))
    assert run.true[-1] >= 0.9 > run.true[-2]


def test_windows_of_the_whole_frontier_are_breadth_first() -> None:
    window, breadth = simulate(WEB, ["windowed:1", "breadth"], Pages(2_000), seeds=[0], rng=1).runs
    depth = {page: place for place, page in enumerate(breadth.order.tolist())}
    assert set(window.order.tolist()[:500]) == set(breadth.order.tolist()[:500]) or len(depth) == len(breadth.order)


def test_budgets_are_gates_and_blocked_mass_is_reported() -> None:
    domains = np.arange(WEB.pages) % 7
    race = simulate(WEB, ["rankmass", "breadth"], Coverage(0.9), seeds=[0], budget=100, domains=domains, rng=1)
    for run in race.runs:
        assert np.bincount(domains[run.order]).max() == 100
        assert run.coverage.blocked > 0.05
        assert not run.reached
        assert "cannot be fetched" in run.stop_reason
        assert (run.at_least <= run.true + 1e-6).all()


def test_hosts_are_blocked_and_budgeted_by_name() -> None:
    graph = sv.synthetic_web("small").graph
    assert graph.names is not None
    host = graph.name(0).split("/")[2]
    run = simulate(graph, ["breadth"], Coverage(0.5), block=[host], rng=1).runs[0]
    assert not any(graph.name(page).split("/")[2] == host for page in run.order.tolist())
    capped = simulate(graph, ["breadth"], Pages(200), budget=3, rng=1).runs[0]
    hosts = [graph.name(page).split("/")[2] for page in capped.order.tolist()]
    assert max(map(hosts.count, hosts)) == 3


def test_an_unreachable_goal_ends_a_crawl_early_and_is_reported() -> None:
    run = simulate(WEB, ["rankmass"], Coverage(0.95), gone=0.3, rng=2).runs[0]
    assert not run.reached
    assert run.coverage.waiting + run.coverage.moving <= 0.01
    assert "so at most 8" in run.stop_reason


class Newest:
    """Follow the links seen last: a minimal strategy."""

    clock = 0.0

    def observe(self, outcome: Outcome, old_links: Any) -> Reorder:  # noqa: ARG002
        self.clock += 1
        return Reorder(outcome.links, np.full(outcome.links.size, self.clock))


def test_a_user_defined_strategy_needs_one_method() -> None:
    run = simulate(WEB, [Newest()], Coverage(0.5), rng=1).runs[0]
    assert run.strategy == "Newest"
    assert run.reached


class Broken(Newest):
    def __init__(self, how: str) -> None:
        self.how = how

    def observe(self, outcome: Outcome, old_links: Any) -> Reorder:  # noqa: ARG002
        links = outcome.links
        if self.how == "raises":
            raise ZeroDivisionError("division by zero")
        pages: Any = {"far": [10**6], "negative": [-1], "unheard": [WEB.pages - 1], "text": ["a"], "huge": [2**40]}
        if self.how in pages:
            return Reorder(np.array(pages[self.how]), np.ones(1))
        if self.how == "nan":
            return Reorder(links, np.full(links.size, np.nan))
        return Reorder(links, np.ones(links.size + 1)) if self.how == "lengths" else None  # type: ignore[return-value]


@pytest.mark.parametrize("how", ["raises", "far", "negative", "unheard", "text", "huge", "nan", "lengths", "nothing"])
def test_a_broken_strategy_is_named_and_nothing_is_returned(how: str) -> None:
    lonely = Graph.from_arrays(WEB.indptr[:1], WEB.indptr[:1], WEB.pages) if how == "unheard" else WEB
    with pytest.raises(StrategyError, match="strategy Broken failed after page") as caught:
        simulate(lonely, [Broken(how)], Pages(50), seeds=[0], rng=1)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"seeds": [WEB.pages]}, "from 0 to 2999, got 3000"),
        ({"seeds": ["absent"]}, "'absent'"),
        ({"seeds": []}, "seeds must not be empty"),
        ({"damping": 0.0}, "damping"),
        ({"damping": 1.0}, "damping"),
        ({"strategies": []}, "strategies must not be empty"),
        ({"strategies": ["rankmas"]}, "unknown strategy 'rankmas'"),
        ({"strategies": ["sweap:0.1"]}, "unknown strategy 'sweap:0.1'"),
        ({"strategies": ["windowed:0"]}, "window .* got 0"),
        ({"strategies": ["random:3"]}, "takes no argument, got '3'"),
        ({"strategies": ["no.such:Thing"]}, "cannot be imported"),
        ({"strategies": ["math:pi"]}, "cannot be created"),
        ({"strategies": ["builtins:dict"]}, "no method `observe`"),
        ({"gone": 1.0}, "gone .* got 1.0"),
        ({"gone": np.zeros(3, bool)}, "gone must be a boolean mask of 3,000"),
        ({"budget": 0, "domains": np.zeros(WEB.pages, int)}, "budget .* at least 1 page, got 0"),
        ({"budget": 5}, "the graph has no names"),
        ({"budget": 5, "domains": np.zeros(4, int)}, "domains .* got 4"),
        ({"batch": 0}, "batch .* at least 1, got 0"),
        ({"change_rate": -0.1}, "change_rate .* got -0.1"),
        ({"birth_rate": 1.0}, "birth_rate .* got 1.0"),
        ({"strategies": ["opic"], "compiled": True}, "compiled=True .* opic"),
    ],
)
def test_invalid_arguments_are_rejected_with_a_hint(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        simulate(WEB, **{"strategies": ["rankmass"], "until": Pages(10), **wrong})
    assert caught.value.hint


def test_a_graph_without_pages_is_rejected() -> None:
    with pytest.raises(sv.InputError, match="no pages"):
        simulate(Graph.from_edges([]))


def test_the_ledger_counts_fetched_pages() -> None:
    state = fresh("rankmass", [0])
    finish(crawl(state, GraphSource(WEB), MemoryJournal(), Pages(50)))
    assert int((state.ledger.state & STATUS == FETCHED).sum()) == state.ledger.read == state.graph.read == 50


@pytest.mark.slow
@pytest.mark.compiled
def test_a_changing_web_is_tracked_by_strategies_that_refetch() -> None:
    graph = random_web(1_000, 8_000, 5)
    race = simulate(
        graph,
        ["tracking", "rankmass"],
        Pages(4_000),
        seeds=list(range(0, 1_000, 10)),
        change_rate=0.1,
        birth_rate=0.01,
        death_rate=0.01,
        rng=4,
        samples=12,
    )
    again, once = race.runs
    assert again.order.size == 4_000
    assert once.order.size < 1_200  # every page once
    assert again.order.max() >= 1_000  # also pages added meanwhile
    late = [sample.l1 for sample in again.samples if sample.fetches >= 2_000]
    assert max(late) < 0.5 * once.samples[-1].l1 or max(late) < 0.2
    assert "bounds are those of the web as fetched" in race.notes[-2]


def test_added_pages_fit_into_budgets_and_outcomes() -> None:
    graph, domains = random_web(600, 4_000, 5), np.arange(600) % 5
    for more in ({"budget": 50, "domains": domains}, {"gone": 0.1}):
        run = simulate(graph, ["rankmass"], Pages(700), change_rate=0.1, birth_rate=0.5, rng=7, samples=2, **more).runs[
            0
        ]
        assert run.order.max() >= 600


def test_a_blocked_seed_stays_blocked_even_if_drawn_as_gone() -> None:
    blocked = np.zeros(WEB.pages, bool)
    blocked[[0, 1, 2]] = True
    run = simulate(WEB, ["rankmass"], Pages(50), seeds=[0, 1, 2, 700], block=blocked, gone=0.5, rng=7).runs[0]
    assert not np.isin([0, 1, 2], run.order).any()


@pytest.mark.parametrize("name", ["rankmass", "windowed", "opic", "breadth"])
def test_a_reached_goal_has_a_number_of_fetches(name: str) -> None:
    for seed in range(8):
        run = simulate(WEB, [name], Coverage(0.7), gone=0.3, rng=seed, samples=0).runs[0]
        if run.reached:
            assert run.fetches_for(0.7) == run.order.size


def test_refetching_ends_when_nothing_can_be_gained() -> None:
    run = simulate(random_web(200, 900, 3), ["tracking"], Coverage(0.999999), seeds=[0], rng=1).runs[0]
    assert not run.reached
    assert run.order.size < 1_000


def test_seeds_are_fetched_first_by_other_orders() -> None:
    seeds = list(range(0, WEB.pages, 300))
    for run in simulate(WEB, ["cho", "outlinks"], Pages(100), seeds=seeds, rng=1).runs:
        assert sorted(run.order[: len(seeds)].tolist()) == seeds


def test_a_subclass_of_a_built_in_strategy_is_not_compiled() -> None:
    class Mine(sv.RankMass):
        def observe(self, outcome: Outcome, old_links: Any) -> Reorder:  # noqa: ARG002
            raise ZeroDivisionError

    with pytest.raises(StrategyError, match="ZeroDivisionError"):
        simulate(WEB, [Mine()], Pages(5), rng=1)


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("closure", "a", "closure .* got 'a'"),
        ("closure", -1, "closure .* got -1"),
        ("eager", "no", "eager .* 'no'"),
        ("importance", lambda: None, "one finite number"),
        ("importance", lambda: np.ones((3, 2)), "one finite number"),
        ("importance", lambda: [np.nan], "one finite number"),
    ],
)
def test_invalid_attributes_of_a_strategy_are_reported_as_its_error(attribute: str, value: Any, message: str) -> None:
    newest = Newest()
    setattr(newest, attribute, value)
    with pytest.raises(StrategyError, match=message) as caught:
        simulate(WEB, [newest], Pages(30), rng=1)
    assert "Newest" in caught.value.problem


def test_seeds_may_be_a_mask_and_blocked_pages_numbers() -> None:
    mask = np.zeros(WEB.pages, bool)
    mask[[3, 9]] = True
    race = simulate(WEB, sv.RankMass(), Pages(20), seeds=mask, block=[9], rng=1)
    assert race.seeds.tolist() == [3, 9]
    assert 9 not in race.runs[0].order
    for wrong in ({"seeds": [1.7]}, {"block": ["absent"]}, {"rng": "7"}, {"gone": "0.1"}, {"until": 0.9}):
        with pytest.raises(UsageError):
            simulate(WEB, ["rankmass"], **{"until": Pages(5), **wrong})
    with pytest.raises(UsageError, match="bytes"):
        simulate(WEB, ["rankmass"], Pages(5) | sv.Bytes(7))
    with pytest.raises(UsageError, match="guarantee"):
        race.runs[0].fetches_for(0.9, "guarantee")


@pytest.mark.slow
def test_windows_differ_on_a_changing_web() -> None:
    """Greedy fetches the same pages for each window, which estimate importance differently."""
    names = ["adaptive:static", "adaptive:fixed", "adaptive:variable", "adaptive:bao", "opic:cycle", "opic:random"]
    race = simulate(WEB, names, Requests(3 * WEB.pages), rng=5, change_rate=0.2)
    assert all(run.fetches > run.pages for run in race.runs)
    errors = [run.importance_error for run in race.runs]
    assert len(set(errors)) == len(names)
    assert len({run.order.tobytes() for run in race.runs}) == 3
    assert race.runs[0].samples[-1].bound is None  # links have changed
    assert race.runs[0].samples[-1].fetches == race.runs[0].fetches
    still = simulate(WEB, ["opic"], Requests(3 * WEB.pages), rng=5).runs[0]
    assert all(sample.bound is not None and sample.l1 <= sample.bound for sample in still.samples)
    assert errors[0] is not None
    assert still.importance_error is not None
    assert still.importance_error < 0.7 * errors[0]
    assert simulate(WEB, ["opic"], Pages(100), rng=5).runs[0].pages == 100


@pytest.mark.slow
def test_the_table_of_errors_of_importance() -> None:
    race = simulate(WEB, ["opic", "rankmass"], Requests(2 * WEB.pages), rng=5)
    table = importance_table(race)
    assert repeats(race)
    assert table.cells[0][2:] == ("2.0000" if (table.records[0][2] or 0) >= 2 else f"{table.records[0][2]:.4f}",
                                  f"{race.runs[0].fetches / race.runs[0].pages:.2f}", "opic")  # fmt: skip
    assert table.cells[1][2] == "–"  # rankmass gives no bound
    assert not repeats(simulate(WEB, ["opic"], Pages(100), rng=5))
