"""The experiment on focused sampling: parts of topics, errors at equal fetches, and what the tables say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from experiments import focused
from experiments.focused_fits import fit_table, fitted
from experiments.focused_tables import Compared, error_table, target_table
from experiments.sampled_runs import Runs, best, estimate, interval, later, measured, ratio, sample
from experiments.topic_data import without_bridges
from experiments.topic_webs import TopicWeb, joined, largest_part, made_up, parted

from surveyor.estimate.sampling.compiled_walks import NeighbourLists
from surveyor.estimate.sampling.walk_trace import WalkTrace
from surveyor.graph.csr import Graph
from surveyor.kernels.thread_pool import ThreadPool

pytestmark = pytest.mark.compiled  # walks of many steps


@pytest.fixture(scope="module")
def webs() -> dict[str, TopicWeb]:
    return {web.name.removeprefix("made up: "): web for web in made_up(8_000)}


def chain(pages: int) -> Graph:
    return Graph.from_arrays(np.arange(pages - 1), np.arange(1, pages), pages)


@pytest.mark.slow
def test_parts_are_joined_by_so_many_pages_off_topic() -> None:
    topic = np.array([1, 0, 1, 0, 0, 1, 0, 0, 0, 1], np.bool_)
    near = NeighbourLists.of(chain(10))
    for off, reached in ((0, [0]), (1, [0, 2]), (2, [0, 2, 5]), (3, [0, 2, 5, 9])):
        assert np.flatnonzero(joined(near, topic, 0, off)).tolist() == reached
    assert np.flatnonzero(largest_part(near, topic, 2)).tolist() == [0, 2, 5]


@pytest.mark.slow
def test_a_page_that_is_reached_nearer_later_is_gone_on_from() -> None:
    """From page 0 the way over 1 and 2 is too long for 3, and that over 4 is not."""
    graph = Graph.from_arrays(np.array([0, 1, 0, 4, 2]), np.array([1, 2, 4, 2, 3]), 5)
    topic = np.array([1, 0, 0, 1, 1], np.bool_)
    assert joined(NeighbourLists.of(graph), topic, 0, 1).tolist() == [True, False, False, True, True]


@pytest.mark.slow
def test_camps_are_joined_off_topic_only(webs: dict[str, TopicWeb]) -> None:
    web = webs["camps"]
    camp = web.shares["camp"]
    hard, soft = web.part("hard"), web.target
    assert len(set(camp[hard])) == 1
    assert len(set(camp[soft])) == 2
    assert parted(web.graph, web.topic, camp).links == web.graph.links


@pytest.mark.slow
def test_blogs_that_cross_leave_the_topic() -> None:
    graph = Graph.from_arrays(np.array([0, 1, 2, 2]), np.array([1, 2, 3, 4]), 5)
    camp = np.array([0, 0, 1, 0, 0], np.bool_)
    assert without_bridges(graph, camp).tolist() == [True, True, False, True, True]


@pytest.mark.slow
def test_the_first_tenth_of_each_walk_goes() -> None:
    walk = np.tile(np.arange(2, dtype=np.int32), 20)
    column = np.ones(40)
    page = np.repeat(np.arange(20, dtype=np.int32), 2)
    trace = WalkTrace(walk, np.zeros_like(walk), page, column > 0, column, column.astype(np.int64))
    assert later(trace).page.tolist() == np.repeat(np.arange(2, 20), 2).tolist()
    assert len(later(trace.rows(slice(0, 2)))) == 2  # a single step stays


@pytest.mark.slow
def test_estimates_weight_by_degree_and_leave_out_what_is_not_known() -> None:
    page, degree = np.arange(3, dtype=np.int32), np.array([1.0, 2.0, 4.0])
    trace = WalkTrace(page, page, page, degree > 0, degree, page.astype(np.int64))
    assert estimate(trace, np.array([1.0, 0.0, 0.0])) == pytest.approx(4 / 7)
    assert estimate(trace, np.array([1.0, 0.0, np.nan])) == pytest.approx(2 / 3)
    assert np.isnan(estimate(trace, np.full(3, np.nan)))


@pytest.mark.slow
def test_samples_cost_what_they_may(webs: dict[str, TopicWeb]) -> None:
    for method in ("trial", "hard-paper", "neighbourhood-paper"):
        trace, fetched = sample(webs["pages"], method, 300, 1)
        assert fetched.sum() <= 300
        assert trace.fetches.max(initial=0) <= 300


@pytest.mark.slow
def test_our_walks_are_not_biased_by_degree_and_the_papers_are(webs: dict[str, TopicWeb]) -> None:
    web = webs["sites"]
    with ThreadPool() as pool:
        ours, theirs = (measured(web, method, 8, 150, 40, pool) for method in ("trial", "trial-paper"))
    what = "log out-degree"
    error = ours.errors(what).std() / np.sqrt(40)
    assert abs(ours.bias(what)) < 4 * error + 0.05
    assert theirs.bias(what) > 0.3
    value, low, high = interval(ratio(ours, [theirs], what))
    assert low <= value <= high < 1


@pytest.mark.slow
def test_ratios_are_of_errors_and_few_runs_are_not_the_best() -> None:
    def runs(errors: list[float]) -> Runs:
        found = np.array(errors)
        return Runs("hard-paper", 1, 10, {"x": found}, {"x": 0.0}, found, found, 1.0)

    one, twice, lucky = runs([1.0, -1.0] * 5), runs([2.0, -2.0] * 5), runs([0.0] + [np.nan] * 9)
    assert ratio(one, [twice], "x").tolist() == [0.5] * 1001
    assert best([twice, lucky], "x") is twice
    assert best([lucky], "x") is lucky
    assert lucky.empty == 9


@pytest.mark.slow
def test_a_method_without_a_sample_does_not_hide_the_others(webs: dict[str, TopicWeb]) -> None:
    def runs(method: str, *errors: float) -> Runs:
        found = np.array(errors)
        return Runs(method, 8, 10, {"camp": found + 0.5}, {"camp": 0.5}, found, found, 1.0)

    none, some = runs("hard-paper", np.nan, np.nan), runs("trial-paper", 0.2, -0.2)
    found = Compared(webs["sites"], 10, (runs("trial", 0.1, -0.1), none, some))
    assert interval(found.against("trial", ("hard-paper", "trial-paper"))["camp"]) == pytest.approx((0.5, 0.5, 0.5))
    assert found.against("trial", ("hard-paper",)) == {}


@pytest.mark.slow
def test_tables_tell_all_methods(webs: dict[str, TopicWeb]) -> None:
    web = webs["sites"]
    with ThreadPool() as pool:
        found = focused.compared(web, 100, 3, pool)
        fits = fitted(web, 3, pool)
    assert isinstance(found, Compared)
    lines = error_table(found).splitlines()
    assert len(lines) == 4 + 11
    assert target_table([found]).count("\n") == 2 + 5
    assert {one.of for one in fits} == {"out-degree", "domain"}
    assert all(one.truth.sum() == pytest.approx(1) for one in fits)
    assert "trial" in fit_table(fits)
    json.dumps([found.to_dict(), *(one.to_dict() for one in fits)], allow_nan=False)


@pytest.mark.slow
def test_figures_are_drawn(webs: dict[str, TopicWeb], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    web = webs["sites"]
    with ThreadPool() as pool:
        found, fits = focused.compared(web, web.fetches[-1], 2, pool), fitted(web, 2, pool)
    focused._draw(tmp_path, fits, [found])
    drawn = sorted(path.name for path in tmp_path.iterdir())
    assert drawn == [
        "focused-made-up-sites-domain.svg",
        "focused-made-up-sites-out-degree.svg",
        "focused-subtopics.svg",
    ]
    assert "truth" in (tmp_path / drawn[0]).read_text("utf-8")
