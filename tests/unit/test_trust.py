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
    """Solve PageRank densely; surfers jump from a domain without links."""
    links = dense(graph).astype(float)
    step = np.where(links.sum(1, keepdims=True) > 0, links / np.maximum(links.sum(1, keepdims=True), 1), jump)
    return np.asarray(np.linalg.solve(np.eye(graph.pages) - 0.85 * step.T, 0.15 * jump))


@given(graphs(), st.data())
def test_the_spam_mass_is_within_its_bounds(graph: Graph, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, graph.pages - 1), min_size=1, max_size=4))
    tolerance = data.draw(st.sampled_from([0.5, 1e-2, 1e-9]))
    result = trust(graph, np.array(chosen), tolerance=tolerance)
    jump = np.zeros(graph.pages)
    jump[chosen] = 1
    popularity = exact(graph, np.full(graph.pages, 1 / graph.pages))
    true = np.maximum(0, 1 - 0.85 * exact(graph, jump / jump.sum()) / popularity)
    low, high = result.intervals()
    assert np.all((low <= true + 1e-12) & (true <= high + 1e-12))
    assert np.all((low - 1e-12 <= result.spam_masses()) & (result.spam_masses() <= high + 1e-12))
    if tolerance < 1e-8:
        assert np.allclose(result.spam_masses(), true, atol=1e-6)
    low, high = result.reputation().intervals()
    assert np.all(low <= exact(graph, jump / jump.sum()) + 1e-12)


def test_a_farm_has_all_the_mass_and_the_trusted_have_none() -> None:
    farm = [(f"booster{k}.test", "spam.test") for k in range(20)]
    web = [("a.example", "b.example"), ("b.example", "c.example"), ("c.example", "a.example")]
    result = trust(Graph.from_edges([*web, *farm]), ["a.example", "unknown.example"])
    assert result.trusted == 1
    page = result.graph.page
    assert result.spam_mass(page("spam.test")) == 1.0
    assert result.spam_mass(page("b.example")) == 0.0
    assert result.reputation().top(1).tolist() == [page("a.example")]


def test_invalid_arguments() -> None:
    graph = Graph.from_edges([("a.example", "b.example")])
    with pytest.raises(UsageError, match="none of the 1 trusted domains"):
        trust(graph, ["c.example"])
    with pytest.raises(UsageError, match=r"gamma must be in \(0, 1\], got 0"):
        trust(graph, ["a.example"], gamma=0.0)
