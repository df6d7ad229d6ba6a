from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import chance_to_stop
from surveyor import Graph, UsageError, explain, pagerank
from surveyor.rank.explain import BACKWARD_TOLERANCE
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
