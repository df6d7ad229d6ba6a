from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surveyor import Graph, Names, Ranking, UsageError, pagerank


def ranking(scores: list[float], names: list[str] | None = None) -> Ranking:
    known = None if names is None else Names.of(names)
    return Ranking(np.array(scores), 1e-9, 3, 0.85, 1e-6, "power", "teleport", names=known)


@given(st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.3]), max_size=60), st.integers(0, 70))
def test_top_sorts_by_score_then_id(scores: list[float], count: int) -> None:
    expected = sorted(range(len(scores)), key=lambda page: (-scores[page], page))[:count]
    assert ranking(scores).top(count).tolist() == expected


def test_shares_and_positions() -> None:
    result = ranking([0.2, 0.5, 0.2, 0.1], ["a", "b", "c", "d"])
    assert (result.share("b"), result.share(3)) == (0.5, 0.1)
    assert [result.position(page) for page in range(4)] == [2, 1, 2, 4]


@pytest.mark.parametrize("page", [4, -1, "unknown"])
def test_unknown_pages_are_rejected(page: int | str) -> None:
    with pytest.raises(UsageError):
        ranking([0.25] * 4, ["a", "b", "c", "d"]).share(page)
    with pytest.raises(UsageError):
        ranking([0.25] * 4).share(page)


def test_log_scores_range_from_0_to_100_on_a_log_scale() -> None:
    assert ranking([0.001, 0.01, 0.1, 0.0]).log_scores().round(9).tolist() == [0.0, 50.0, 100.0, 0.0]
    assert ranking([0.5, 0.5]).log_scores().tolist() == [100.0, 100.0]
    assert ranking([0.0, 0.0]).log_scores().tolist() == [0.0, 0.0]


def test_a_ranking_is_plain_values_and_tables() -> None:
    result = ranking([0.7, 0.3], ["a", "<b>"])
    plain = json.loads(json.dumps(result.to_dict(top=1)))
    assert plain["pages"] == [{"id": 0, "name": "a", "share": 0.7, "score": 100.0}]
    assert plain["error"] == 1e-9
    assert result.to_polars()["name"].to_list() == ["a", "<b>"]
    assert ranking([1.0]).to_polars().columns == ["id", "share"]
    assert repr(result) == "Ranking(2 pages, error at most 1.0e-09, 3 sweeps, power)"
    assert "&lt;b&gt;" in result._repr_html_()
    assert "<b>" not in result._repr_html_()


def test_scores_cannot_be_changed() -> None:
    result = pagerank(Graph.from_edges([("a", "b")]))
    with pytest.raises(ValueError, match="read-only"):
        result.scores[0] = 1.0
