from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import chance_to_stop
from surveyor import Graph, UsageError, explain, pagerank
from surveyor.rank.explain import BACKWARD_TOLERANCE, rank_without_links, remove_links
from webs import graphs


@given(graphs(), st.data(), st.booleans(), st.sampled_from(["teleport", "uniform", "custom"]))
@settings(max_examples=150, deadline=None)
def test_contributions_sum_to_the_score(graph, data, personal, dangling):  # type: ignore[no-untyped-def]
    page = data.draw(st.integers(0, graph.pages - 1))
    teleport = np.zeros(graph.pages)
    teleport[0] = 1.0
    jump = teleport if personal else None
    rule = np.eye(graph.pages)[-1] if dangling == "custom" else dangling
    ranking = pagerank(graph, tolerance=1e-12, teleport=jump, dangling=rule)
    why = explain(graph, ranking, page, top=3)
    if why.share > 1e-6:
        whole = sum(part.fraction for part in why.links) + why.other_links + why.dangling + why.teleport
        assert whole == pytest.approx(1.0, abs=1e-12 / why.share)
        assert sum(part.fraction for part in why.origins) + why.other_origins == pytest.approx(1.0, abs=1e-9)


@given(graphs(), st.data())
@settings(max_examples=100, deadline=None)
def test_origins_are_close_lower_bounds(graph, data):  # type: ignore[no-untyped-def]
    page = data.draw(st.integers(0, graph.pages - 1))
    ranking = pagerank(graph, tolerance=1e-12)
    why = explain(graph, ranking, page, top=graph.pages)
    dangling = 0.85 * ranking.scores[graph.out_degrees == 0].sum()
    starts = (0.15 + dangling) / graph.pages
    truth = starts * chance_to_stop(graph, 0.85, page) / (0.15 * why.share)
    slack = starts * BACKWARD_TOLERANCE / (0.15 * why.share)
    for part in why.origins:
        assert truth[part.page] - slack - 1e-9 <= part.fraction <= truth[part.page] + 1e-9


@given(graphs(), st.data())
@settings(max_examples=100, deadline=None)
def test_weighted_links_are_explained(graph, data):  # type: ignore[no-untyped-def]
    """Against dense solves; with equal weights, as without."""
    page = data.draw(st.integers(0, graph.pages - 1))
    weights = data.draw(st.lists(st.sampled_from([1e-6, 0.5, 1.0, 30.0]), min_size=graph.links, max_size=graph.links))
    ends = np.repeat(np.arange(graph.pages), graph.out_degrees), graph.indices
    weighted = Graph.from_arrays(*ends, graph.pages, weights=np.array(weights))
    ranking = pagerank(weighted, tolerance=1e-12)
    why = explain(weighted, ranking, page, top=graph.pages)
    dense = np.zeros((graph.pages, graph.pages))
    dense[ends] = weights
    moves = dense / np.maximum(dense.sum(axis=1, keepdims=True), 1e-300)
    for link in why.links:
        expected = 0.85 * ranking.scores[link.page] * moves[link.page, page] / why.share
        assert link.fraction == pytest.approx(expected, rel=1e-9)
    assert {link.page for link in why.links} == set(np.flatnonzero(dense[:, page]).tolist())
    whole = sum(link.fraction for link in why.links) + why.other_links + why.dangling + why.teleport
    assert whole == pytest.approx(1.0, abs=1e-12 / why.share)
    dangling = 0.85 * ranking.scores[graph.out_degrees == 0].sum()
    starts = (0.15 + dangling) / graph.pages
    reached = 0.15 * np.linalg.inv(np.eye(graph.pages) - 0.85 * moves)[:, page]
    truth, slack = starts * reached / (0.15 * why.share), starts * BACKWARD_TOLERANCE / (0.15 * why.share)
    for part in why.origins:
        assert truth[part.page] - slack - 1e-9 <= part.fraction <= truth[part.page] + 1e-9
    equal = Graph.from_arrays(*ends, graph.pages, weights=np.full(graph.links, 0.1))
    plain = pagerank(graph, tolerance=1e-12)
    for one, two in zip(explain(equal, plain, page).links, explain(graph, plain, page).links, strict=True):
        assert (one.page, one.links) == (two.page, two.links)
        assert one.fraction == pytest.approx(two.fraction, rel=1e-12)


def test_links_are_removed_with_their_weights() -> None:
    edges = [(0, 1, 2.0), (0, 2, 1.0), (1, 0, 5.0), (2, 1, 1.0), (2, 2, 7.0), (1, 2, 0.5)]
    sources, targets, weights = (np.array(column) for column in zip(*edges, strict=True))
    graph = Graph.from_arrays(sources, targets, weights=weights, self_links=True)
    kept = ~((targets == 1) & (sources == 2))
    expected = Graph.from_arrays(sources[kept], targets[kept], weights=weights[kept], self_links=True)
    smaller = remove_links(graph, 1, np.array([2], np.int32))
    assert smaller == expected
    assert np.array_equal(smaller.in_links.indices, expected.in_links.indices)
    without = rank_without_links(graph, pagerank(graph, tolerance=1e-10), 1, np.array([2], np.int32))
    assert without.share == pytest.approx(pagerank(expected, tolerance=1e-10).share(1), abs=1e-8)


def test_explains_by_name_and_rejects_unknown_names() -> None:
    graph = Graph.from_edges([("a", "b"), ("c", "b"), ("b", "a")])
    ranking = pagerank(graph)
    why = explain(graph, ranking, "b")
    assert (why.name, why.position, why.in_links) == ("b", 1, 2)
    assert {part.name for part in why.links} == {"a", "c"}
    assert why.to_dict()["links"][0]["name"] in {"a", "c"}
    with pytest.raises(UsageError, match="ranking has 3 pages, and graph has 2"):
        explain(Graph.from_edges([("a", "b")]), ranking, "b")
    with pytest.raises(UsageError, match="unknown"):
        explain(graph, ranking, "unknown")
