"""Trust and spam mass against dense solutions of both rankings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_distances import dense, graphs
from surveyor.errors import UsageError
from surveyor.graph.csr import Graph
from surveyor.rank.domains.trust import trust


def exact(graph: Graph, jump: np.ndarray) -> np.ndarray:
    """Solve PageRank densely; who stands on a domain without links jumps."""
    links = dense(graph).astype(float)
    step = np.where(links.sum(1, keepdims=True) > 0, links / np.maximum(links.sum(1, keepdims=True), 1), jump)
    return np.asarray(np.linalg.solve(np.eye(graph.pages) - 0.85 * step.T, 0.15 * jump))


@given(graphs(), st.data())
def test_the_mass_lies_where_it_is_said_to(graph: Graph, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, graph.pages - 1), min_size=1, max_size=4))
    tolerance = data.draw(st.sampled_from([0.5, 1e-2, 1e-9]))
    told = trust(graph, np.array(chosen), tolerance=tolerance)
    jump = np.zeros(graph.pages)
    jump[chosen] = 1
    popularity = exact(graph, np.full(graph.pages, 1 / graph.pages))
    true = np.maximum(0, 1 - 0.85 * exact(graph, jump / jump.sum()) / popularity)
    low, high = told.intervals()
    assert np.all((low <= true + 1e-12) & (true <= high + 1e-12))
    assert np.all((low - 1e-12 <= told.masses()) & (told.masses() <= high + 1e-12))
    if tolerance < 1e-8:
        assert np.allclose(told.masses(), true, atol=1e-6)
    low, high = told.reputation().intervals()
    assert np.all(low <= exact(graph, jump / jump.sum()) + 1e-12)


def test_a_farm_has_all_the_mass_and_the_trusted_have_none() -> None:
    farm = [(f"booster{k}.test", "spam.test") for k in range(20)]
    web = [("a.example", "b.example"), ("b.example", "c.example"), ("c.example", "a.example")]
    told = trust(Graph.from_edges([*web, *farm]), ["a.example", "unknown.example"])
    assert told.known == 1
    page = told.graph.page
    assert told.mass(page("spam.test")) == 1.0
    assert told.mass(page("b.example")) == 0.0
    assert told.reputation().top(1).tolist() == [page("a.example")]


def test_wrong_lists() -> None:
    graph = Graph.from_edges([("a.example", "b.example")])
    with pytest.raises(UsageError, match="none of the 1 trusted domains"):
        trust(graph, ["c.example"])
    with pytest.raises(UsageError, match="cannot be good"):
        trust(graph, ["a.example"], good=0.0)
