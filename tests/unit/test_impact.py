from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surveyor import Graph
from surveyor.errors import UsageError
from surveyor.estimate.community.impact import impact
from webs import cycle, graphs


@settings(deadline=None)
@given(graphs(), st.data())
def test_impact_is_the_probability_to_enter_by_a_link(graph: Graph, data: st.DataObject) -> None:
    ranks = np.array([data.draw(st.floats(0, 1)) for _ in range(graph.pages)])
    inside = np.array([data.draw(st.booleans()) for _ in range(graph.pages)])
    found = impact(graph, ranks, np.flatnonzero(inside))
    for page in range(graph.pages):
        links = graph.links_of(page)
        ways = sum(bool(inside[goal]) for goal in links)
        slow = 0.0 if inside[page] or not links.size else ranks[page] * ways / links.size
        assert found[page] == pytest.approx(slow, rel=1e-12)
    assert np.array_equal(found, impact(graph, ranks, inside))


@pytest.mark.parametrize(
    ("ranks", "local", "problem"),
    [
        ([0.5, 0.5], [0], "ranks must have one value for each of 3 pages"),
        ([0.5, 0.5, np.nan], [0], "ranks must be finite"),
        ([0.5, 0.25, 0.25], [3], "no page 3\n  hint: ids go from 0 to 2"),
        ([0.5, 0.25, 0.25], [-1], "no page -1"),
        ([0.5, 0.25, 0.25], [0.0], "float64 is no type of page ids"),
        ([0.5, 0.25, 0.25], [True], "1 truth values for 3 pages"),
    ],
)
def test_invalid_input_is_rejected(ranks: list[float], local: list[int], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        impact(cycle(3), ranks, np.array(local))


def test_no_local_pages_and_all() -> None:
    assert not impact(cycle(3), [1, 1, 1], np.array([])).any()
    assert not impact(cycle(3), [1, 1, 1], np.arange(3)).any()
