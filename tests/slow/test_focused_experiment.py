"""The experiment on focused sampling: components of topics, errors at equal fetches, and tables."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from experiments import focused
from experiments.focused_fits import fit_distributions, fit_table
from experiments.focused_report import Comparison, error_table, overall_table
from experiments.sampled_runs import (
    Runs,
    best,
    bootstrap_interval,
    rmse_ratios,
    run_samples,
    sample,
    weighted_mean,
    without_burn_in,
)
from experiments.topic_webs import (
    TopicWeb,
    largest_component,
    reachable,
    synthetic_topics,
    without_bridges,
    without_cross_links,
)

from surveyor.estimate.sampling.compiled_walks import NeighbourLists
from surveyor.estimate.sampling.walk_trace import WalkTrace
from surveyor.graph.csr import Graph
from surveyor.kernels.thread_pool import ThreadPool

pytestmark = pytest.mark.compiled  # walks of many steps


@pytest.fixture(scope="module")
def webs() -> dict[str, TopicWeb]:
    return {web.name.removeprefix("synthetic: "): web for web in synthetic_topics(8_000)}


def chain(pages: int) -> Graph:
    return Graph.from_arrays(np.arange(pages - 1), np.arange(1, pages), pages)


@pytest.mark.slow
def test_components_are_connected_over_a_limited_number_of_pages_off_topic() -> None:
    topic = np.array([1, 0, 1, 0, 0, 1, 0, 0, 0, 1], np.bool_)
    near = NeighbourLists.of(chain(10))
    for off, reached in ((0, [0]), (1, [0, 2]), (2, [0, 2, 5]), (3, [0, 2, 5, 9])):
        assert np.flatnonzero(reachable(near, topic, 0, off)).tolist() == reached
    assert np.flatnonzero(largest_component(near, topic, 2)).tolist() == [0, 2, 5]


@pytest.mark.slow
def test_a_page_reached_by_a_shorter_path_later_is_expanded_again() -> None:
    """From page 0, the path over 1 and 2 is too long to reach 3, the path over 4 is not."""
    graph = Graph.from_arrays(np.array([0, 1, 0, 4, 2]), np.array([1, 2, 4, 2, 3]), 5)
    topic = np.array([1, 0, 0, 1, 1], np.bool_)
    assert reachable(NeighbourLists.of(graph), topic, 0, 1).tolist() == [True, False, False, True, True]


@pytest.mark.slow
def test_camps_are_connected_only_off_topic(webs: dict[str, TopicWeb]) -> None:
    web = webs["camps"]
    camp = web.shares["camp"]
    hard, soft = web.component("hard"), web.target
    assert len(set(camp[hard])) == 1
    assert len(set(camp[soft])) == 2
    assert without_cross_links(web.graph, web.topic, camp).links == web.graph.links


@pytest.mark.slow
def test_pages_with_cross_links_are_removed_from_the_topic() -> None:
    graph = Graph.from_arrays(np.array([0, 1, 2, 2]), np.array([1, 2, 3, 4]), 5)
    camp = np.array([0, 0, 1, 0, 0], np.bool_)
    assert without_bridges(graph, camp).tolist() == [True, True, False, True, True]


@pytest.mark.slow
def test_the_first_tenth_of_each_walk_is_discarded() -> None:
    walk = np.tile(np.arange(2, dtype=np.int32), 20)
    column = np.ones(40)
    page = np.repeat(np.arange(20, dtype=np.int32), 2)
    trace = WalkTrace(walk, np.zeros_like(walk), page, column > 0, column, column.astype(np.int64))
    assert without_burn_in(trace).page.tolist() == np.repeat(np.arange(2, 20), 2).tolist()
    assert len(without_burn_in(trace.rows(slice(0, 2)))) == 2  # a single step remains


@pytest.mark.slow
def test_weighted_means_use_inverse_degrees_and_ignore_unknown_values() -> None:
    page, degree = np.arange(3, dtype=np.int32), np.array([1.0, 2.0, 4.0])
    trace = WalkTrace(page, page, page, degree > 0, degree, page.astype(np.int64))
    assert weighted_mean(trace, np.array([1.0, 0.0, 0.0])) == pytest.approx(4 / 7)
    assert weighted_mean(trace, np.array([1.0, 0.0, np.nan])) == pytest.approx(2 / 3)
    assert np.isnan(weighted_mean(trace, np.full(3, np.nan)))


@pytest.mark.slow
def test_samples_keep_to_the_budget(webs: dict[str, TopicWeb]) -> None:
    for method in ("trial", "hard-paper", "neighbourhood-paper"):
        trace, fetched = sample(webs["pages"], method, 300, 1)
        assert fetched.sum() <= 300
        assert trace.fetches.max(initial=0) <= 300


@pytest.mark.slow
def test_our_walks_are_unbiased_by_degree_and_the_papers_are_biased(webs: dict[str, TopicWeb]) -> None:
    web = webs["sites"]
    with ThreadPool() as pool:
        ours, theirs = (run_samples(web, method, 8, 150, 40, pool) for method in ("trial", "trial-paper"))
    name = "log out-degree"
    error = ours.errors(name).std() / np.sqrt(40)
    assert abs(ours.bias(name)) < 4 * error + 0.05
    assert theirs.bias(name) > 0.3
    value, low, high = bootstrap_interval(rmse_ratios(ours, [theirs], name))
    assert low <= value <= high < 1


@pytest.mark.slow
def test_rmse_ratios_and_best_ignore_methods_with_few_samples() -> None:
    def runs(errors: list[float]) -> Runs:
        found = np.array(errors)
        return Runs("hard-paper", 1, 10, {"x": found}, {"x": 0.0}, found, found, 1.0)

    one, twice, lucky = runs([1.0, -1.0] * 5), runs([2.0, -2.0] * 5), runs([0.0] + [np.nan] * 9)
    assert rmse_ratios(one, [twice], "x").tolist() == [0.5] * 1001
    assert best([twice, lucky], "x") is twice
    assert best([lucky], "x") is lucky
    assert lucky.empty == 9


@pytest.mark.slow
def test_a_method_without_samples_is_ignored_in_ratios(webs: dict[str, TopicWeb]) -> None:
    def runs(method: str, *errors: float) -> Runs:
        found = np.array(errors)
        return Runs(method, 8, 10, {"camp": found + 0.5}, {"camp": 0.5}, found, found, 1.0)

    none, some = runs("hard-paper", np.nan, np.nan), runs("trial-paper", 0.2, -0.2)
    found = Comparison(webs["sites"], 10, (runs("trial", 0.1, -0.1), none, some))
    assert bootstrap_interval(found.ratios("trial", ("hard-paper", "trial-paper"))["camp"]) == pytest.approx(
        (0.5, 0.5, 0.5)
    )
    assert found.ratios("trial", ("hard-paper",)) == {}


@pytest.mark.slow
def test_tables_have_all_methods(webs: dict[str, TopicWeb]) -> None:
    web = webs["sites"]
    with ThreadPool() as pool:
        found = focused.compare(web, 100, 3, pool)
        fits = fit_distributions(web, 3, pool)
    assert isinstance(found, Comparison)
    lines = error_table(found).splitlines()
    assert len(lines) == 4 + 11
    assert overall_table([found]).count("\n") == 2 + 5
    assert {one.of for one in fits} == {"out-degree", "domain"}
    assert all(one.truth.sum() == pytest.approx(1) for one in fits)
    assert "trial" in fit_table(fits)
    json.dumps([found.to_dict(), *(one.to_dict() for one in fits)], allow_nan=False)


@pytest.mark.slow
def test_figures_are_drawn(webs: dict[str, TopicWeb], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    web = webs["sites"]
    with ThreadPool() as pool:
        found, fits = focused.compare(web, web.fetches[-1], 2, pool), fit_distributions(web, 2, pool)
    focused._draw(tmp_path, fits, [found])
    drawn = sorted(path.name for path in tmp_path.iterdir())
    assert drawn == [
        "focused-subtopics.svg",
        "focused-synthetic-sites-domain.svg",
        "focused-synthetic-sites-out-degree.svg",
    ]
    assert "truth" in (tmp_path / drawn[0]).read_text("utf-8")
