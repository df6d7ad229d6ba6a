"""Results as tables, pictures and pickles."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surveyor as sv
from surveyor.frames import BARS, Tabular, arrow_column, draw_bars

EDGES = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "b"), ("d", "a")]
WEB = sv.synthetic_web("small").graph


def sampled() -> Any:
    return sv.sample(WEB, "host:www.site1.example", until="steps=200", walks=4, of=["out_degree"])


RESULTS: dict[str, Callable[[], Any]] = {
    "Ranking": lambda: sv.pagerank(sv.Graph.from_edges(EDGES)),
    "Ranking of labels": lambda: sv.pagerank([(1, "x"), ("x", (2,)), ((2,), 1)]),
    "Ranking of ids": lambda: sv.pagerank(np.array([[0, 1], [1, 0]])),
    "weighted": lambda: sv.pagerank(sv.as_graph([("a", "b", 2.0), ("b", "a", 1.0)], weights=True)),
    "Reputation": lambda: sv.supporters(sv.Graph.from_edges(EDGES)),
    "bit vectors": lambda: sv.bit_vectors(WEB, top=10),
    "harmonic": lambda: sv.harmonic(EDGES),
    "Domains": lambda: sv.domains(EDGES, "all", trusted=["a"]),
    "Trust": lambda: sv.trust(EDGES, ["a"]),
    "Comparison": lambda: sv.compare_ranks([0.4, 0.3, 0.2, 0.1], [0.4, 0.3, 0.1, 0.2]),
    "Explanation": lambda: sv.explain(WEB, sv.pagerank(WEB), 3),
    "Race": lambda: sv.simulate(WEB, ["breadth", "opic"], sv.Pages(50), rng=1),
    "Run": lambda: sv.simulate(WEB, "breadth", sv.Pages(50), rng=1).runs[0],
    "CommunityRank": lambda: sv.community(WEB, "domain:site41.example"),
    "Sample": sampled,
}


def values(columns: dict[str, Any]) -> dict[str, list[Any]]:
    """Return columns as lists, with integers and numbers of NumPy as those of Python."""
    return {
        name: column.tolist() if isinstance(column, np.ndarray) else list(column) for name, column in columns.items()
    }


def same(one: Any, two: Any) -> bool:
    return one == two or (one != one and two != two) or str(one) == str(two)


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_is_a_table_in_every_library(name: str) -> None:
    result = RESULTS[name]()
    assert isinstance(result, Tabular)
    expected = values(dict(result._columns()))
    rows = len(next(iter(expected.values())))
    assert rows > 0
    pandas, polars, arrow = result.to_pandas(), result.to_polars(), result.to_arrow()
    tables: list[dict[str, list[Any]]] = [
        {column: pandas[column].tolist() for column in pandas},
        {column: polars[column].to_list() for column in polars.columns},
        {column: arrow[column].to_pylist() for column in arrow.column_names},
    ]
    for table in tables:
        assert table.keys() == expected.keys()
        for column, numbers in expected.items():
            got = table[column]
            assert len(got) == rows
            missing = [value for value, number in zip(got, numbers, strict=True) if number is None]
            assert all(value is None or value != value for value in missing)
            pairs = [(value, number) for value, number in zip(got, numbers, strict=True) if number is not None]
            assert all(same(value, number) for value, number in pairs), column


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_draws_and_displays(name: str) -> None:
    from matplotlib import pyplot
    from matplotlib.figure import Figure

    pyplot.switch_backend("agg")

    result = RESULTS[name]()
    axes: Any = Figure().subplots()
    assert result.plot(axes) is axes
    assert axes.has_data()
    assert result.plot().has_data()
    pyplot.close("all")
    html = result._repr_html_()
    assert '<img alt="' in html
    assert "base64," in html


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_pickles(name: str) -> None:
    result = RESULTS[name]()
    again = pickle.loads(pickle.dumps(result))  # noqa: S301  # our own
    assert type(again) is type(result)
    one, two = (values(dict(each._columns())) for each in (result, again))
    assert one.keys() == two.keys()
    assert all(same(a, b) for key in one for a, b in zip(one[key], two[key], strict=True))


def test_a_result_over_a_graph_folder_pickles(tmp_path: Path) -> None:
    graph = sv.Graph.open(WEB.save(tmp_path / "graph"))
    ranking = pickle.loads(pickle.dumps(sv.pagerank(graph)))  # noqa: S301
    assert ranking.names == graph.names
    domains = pickle.loads(pickle.dumps(sv.domains(graph, "in")))  # noqa: S301
    assert domains.graph == graph
    assert ranking.scores.flags.writeable is False


@pytest.mark.parametrize(
    ("method", "package", "extra"),
    [
        ("to_pandas", "pandas", "frames"),
        ("to_polars", "polars", "frames"),
        ("to_arrow", "pyarrow", "formats"),
        ("plot", "matplotlib.pyplot", "report"),
    ],
)
def test_a_missing_library_names_its_extra(
    method: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    ranking = sv.pagerank(EDGES)
    with pytest.raises(sv.MissingExtra, match=rf"{method}\(\) needs {package.split('.')[0]}\n.*\[{extra}\]"):
        getattr(ranking, method)()


@pytest.mark.parametrize(
    ("method", "package"), [("to_networkx", "networkx"), ("to_scipy", "scipy.sparse"), ("to_arrow", "pyarrow")]
)
def test_a_missing_library_of_a_graph(method: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(sv.MissingExtra, match=r"\[formats\]"):
        getattr(sv.Graph.from_edges(EDGES), method)()


def test_without_matplotlib_a_display_has_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surveyor.frames.find_spec", lambda _: None)
    html = sv.pagerank(EDGES)._repr_html_()
    assert "<table>" in html
    assert "<img" not in html


def test_names_of_a_display_are_escaped() -> None:
    html = sv.pagerank([("<script>", "$a_b$"), ("$a_b$", "<script>")])._repr_html_()
    assert "<script>" not in html


def test_bars_are_limited_and_names_shortened() -> None:
    from matplotlib.figure import Figure

    axes: Any = Figure().subplots()
    draw_bars(axes, ["x" * 100] * 40, [1.0] * 40, "value", ([0.0] * 40, [np.inf] * 40))
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert len(labels) == BARS
    assert max(map(len, labels)) <= 40


def test_mixed_columns_of_arrow_are_text() -> None:
    import pyarrow as pa

    assert arrow_column(pa, ["a", 1, None, (2,)]).to_pylist() == ["a", "1", None, "(2,)"]
    assert arrow_column(pa, [1, 2.5, None]).to_pylist() == [1, 2.5, None]
