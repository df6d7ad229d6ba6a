"""Supporters and paths counted in bounded memory: the same numbers as in memory, whatever the blocks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_distances import at_distance, graphs
from surveyor.errors import GraphError, UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.synthetic.generate import rmat
from surveyor.rank.domains import external, scores, streams
from surveyor.rank.domains.external import least_memory, streamed_exact_supporters, streamed_paths
from surveyor.rank.domains.link_counts import supporters, two_link_paths
from surveyor.rank.domains.reputation import Resources
from surveyor.rank.domains.scores import DomainOptions, domains


def limited(graph: Graph, room: int, threads: int = 1) -> Resources:
    """Return resources that leave so much room for a block."""
    least = least_memory(graph.pages, threads) - external.SMALLEST_BLOCK
    return Resources(threads=threads, memory=least + room)


@given(graph=graphs(), room=st.sampled_from([64, 300, 1 << 20]))
def test_the_same_as_in_memory_on_any_graph(tmp_path_factory: pytest.TempPathFactory, graph: Graph, room: int) -> None:
    place = tmp_path_factory.mktemp("external")
    graph.save(place / "graph")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(external, "SMALLEST_BLOCK", 64)
        resources = limited(graph, room)
        counts = streamed_exact_supporters(place / "graph", out=place / "supp.npy", resources=resources)
        paths = streamed_paths(place / "graph", out=place / "qvs.npy", resources=resources)
    assert counts.raw.tolist() == at_distance(graph, 2).sum(0).tolist()
    assert counts.raw.dtype == supporters(graph).raw.dtype
    assert paths.raw.tobytes() == two_link_paths(graph).raw.tobytes()


@pytest.mark.compiled
@pytest.mark.parametrize("threads", [1, 3])
def test_many_blocks_and_pieces_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    graph = rmat(12, 12, rng=4)
    graph.save(tmp_path / "graph")
    monkeypatch.setattr(external, "SMALLEST_BLOCK", 64)
    for module in (streams, external):
        monkeypatch.setattr(module, "ROWS", 700)
    resources = limited(graph, 200_000, threads)
    counts = streamed_exact_supporters(tmp_path / "graph", out=tmp_path / "supp.npy", resources=resources)
    assert counts.method["passes"] > 5
    assert np.array_equal(counts.raw, supporters(graph).raw)
    assert np.array_equal(counts.top(50), supporters(graph).top(50))
    resources = limited(graph, 16 * 500, threads)
    paths = streamed_paths(tmp_path / "graph", out=tmp_path / "qvs.npy", resources=resources)
    assert paths.method["passes"] == -(-graph.pages // 500)
    assert paths.raw.tobytes() == two_link_paths(graph).raw.tobytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph", "qvs.npy", "supp.npy"]


def test_scores_stream_when_memory_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = rmat(9, 8, rng=2)
    graph.save(tmp_path / "graph")
    monkeypatch.setattr(scores, "needed_memory", lambda *_: 1 << 40)
    found = domains(tmp_path / "graph", "supp,qvs", options=DomainOptions(threads=1, memory=1 << 28))
    assert found.mode == "streamed"
    assert np.array_equal(found.scores["supp"].raw, supporters(graph).raw)
    assert np.array_equal(found.scores["qvs"].raw, two_link_paths(graph).raw)


def test_too_little_memory_and_damaged_files(tmp_path: Path) -> None:
    rmat(8, 4).save(tmp_path / "graph")
    for count in (streamed_exact_supporters, streamed_paths):
        with pytest.raises(UsageError, match=r"needs at least .* MB, and memory is limited to 0 MB"):
            count(tmp_path / "graph", out=tmp_path / "out.npy", resources=Resources(memory=1000))
    links = np.load(tmp_path / "graph" / "in_indices.npy")
    links[-5:] = 1 << 20
    np.save(tmp_path / "graph" / "in_indices.npy", links)
    for count in (streamed_exact_supporters, streamed_paths):
        with pytest.raises(GraphError, match="corrupt"):
            count(tmp_path / "graph", out=tmp_path / "out.npy")
    assert not (tmp_path / "out.npy").exists()


def test_graphs_without_links_or_domains(tmp_path: Path) -> None:
    for size in (0, 5):
        Graph.from_arrays(np.empty(0, np.int64), np.empty(0, np.int64), size).save(tmp_path / f"{size}.graph")
        for number, count in enumerate((streamed_exact_supporters, streamed_paths)):
            found = count(tmp_path / f"{size}.graph", out=tmp_path / f"{size}-{number}.npy")
            assert found.scores.tolist() == [0.0] * size
