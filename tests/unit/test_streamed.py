"""Supporters estimated from files that are read sequentially: the same counts as in memory, no leftover files."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_distances import at_distance, graphs
from surveyor.errors import GraphError, UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.synthetic.generate import rmat
from surveyor.rank.domains import streams as streamed
from surveyor.rank.domains.reputation import Resources
from surveyor.rank.domains.tse import sampled_supporters, streamed_supporters

ALONE = Resources(threads=1)


@given(graph=graphs(), p=st.sampled_from([0.01, 0.3, 0.7, 1.0]), seed=st.integers(0, 5))
def test_the_same_counts_as_in_memory_on_any_graph(
    tmp_path_factory: pytest.TempPathFactory, graph: Graph, p: float, seed: int
) -> None:
    place = tmp_path_factory.mktemp("streamed")
    graph.save(place / "graph")
    result = streamed_supporters(place / "graph", p, rng=seed, out=place / "counts.npy")
    assert result.raw.tolist() == sampled_supporters(graph, p, rng=seed).raw.tolist()
    if p == 1:
        assert result.scores.tolist() == at_distance(graph, 2).sum(0).tolist()


@pytest.mark.compiled
@pytest.mark.parametrize("piece", [64, 1 << 20])
@pytest.mark.parametrize("p", [1e-3, 0.05, 0.6])
@pytest.mark.slow
def test_pieces_rows_and_threads_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int, p: float
) -> None:
    monkeypatch.setattr(streamed, "PIECE", piece)  # shorter than the longest row
    monkeypatch.setattr(streamed, "ROWS", 700)
    graph = rmat(12, 12, rng=4)
    graph.save(tmp_path / "graph")
    expected = sampled_supporters(graph, p, rng=9)
    for threads in (1, 3):
        for sparse in (0, 1 << 30):  # every list by itself, and all of the file
            monkeypatch.setattr(streamed, "SPARSE", sparse)
            resources = Resources(threads=threads)
            result = streamed_supporters(tmp_path / "graph", p, rng=9, out=tmp_path / "counts.npy", resources=resources)
            assert np.array_equal(result.raw, expected.raw)
            assert result.method["sampled"] == expected.method["sampled"]
            assert np.array_equal(result.top(50), expected.top(50))


@pytest.mark.compiled
def test_p_is_chosen_for_the_requested_error(tmp_path: Path) -> None:
    graph = rmat(12, 12, rng=4)
    graph.save(tmp_path / "graph")
    result = streamed_supporters(tmp_path / "graph", top=100, error=0.05, out=tmp_path / "counts.npy")
    assert result.method["error"] == pytest.approx(0.05, rel=0.03)
    assert result.method["mode"] == "streamed"
    assert [path.name for path in tmp_path.iterdir() if path.name != "graph"] == ["counts.npy"]


def test_a_graph_without_links_or_domains(tmp_path: Path) -> None:
    for size in (0, 5):
        Graph.from_arrays(np.empty(0, np.int64), np.empty(0, np.int64), size).save(tmp_path / f"{size}.graph")
        result = streamed_supporters(tmp_path / f"{size}.graph", 0.5, out=tmp_path / f"{size}.npy")
        assert result.scores.tolist() == [0.0] * size


def test_a_full_disk_is_reported_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rmat(4, 2).save(tmp_path / "graph")

    class Usage:
        free = 3

    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage)
    with pytest.raises(UsageError, match="the counts need"):
        streamed_supporters(tmp_path / "graph", 0.5, out=tmp_path / "counts.npy")


def test_a_disk_that_fills_up_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rmat(10, 4).save(tmp_path / "graph")
    (tmp_path / "out").mkdir()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("surveyor.kernels.supporter_counts.count_level_two", full)
    with pytest.raises(UsageError, match="No space"):
        streamed_supporters(tmp_path / "graph", 0.5, out=tmp_path / "out" / "counts.npy", resources=ALONE)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_truncated_graph(tmp_path: Path) -> None:
    rmat(8, 4).save(tmp_path / "graph")
    path = tmp_path / "graph" / "in_indices.npy"
    path.write_bytes(path.read_bytes()[:-64])
    with pytest.raises(GraphError, match=r"in_indices\.npy has .* bytes instead of"):
        streamed_supporters(tmp_path / "graph", 0.5, out=tmp_path / "counts.npy")
    assert not (tmp_path / "counts.npy").exists()


def test_invalid_arguments(tmp_path: Path) -> None:
    rmat(4, 2).save(tmp_path / "graph")
    with pytest.raises(UsageError, match=r"p must be in \(0, 1\], got 2"):
        streamed_supporters(tmp_path / "graph", 2.0, out=tmp_path / "counts.npy")
    with pytest.raises(UsageError, match=r"error must be in \(0, 1\), got 0"):
        streamed_supporters(tmp_path / "graph", error=0.0, out=tmp_path / "counts.npy")
    with pytest.raises(GraphError, match="does not exist"):
        streamed_supporters(tmp_path / "none", 0.5, out=tmp_path / "counts.npy")


@pytest.mark.parametrize("file", ["in_indices.npy", "indices.npy", "in_indptr.npy", "indptr.npy"])
def test_a_corrupt_graph_is_detected(tmp_path: Path, file: str) -> None:
    rmat(8, 4).save(tmp_path / "graph")
    array = np.load(tmp_path / "graph" / file)
    array[array.size // 2 :] = -5
    np.save(tmp_path / "graph" / file, array)
    with pytest.raises(GraphError, match="is corrupt"):
        streamed_supporters(tmp_path / "graph", 0.9, out=tmp_path / "counts.npy")
    assert not (tmp_path / "counts.npy").exists()


def test_a_sample_that_exceeds_the_memory_limit_is_rejected(tmp_path: Path) -> None:
    rmat(8, 4).save(tmp_path / "graph")
    with pytest.raises(UsageError, match=r"a sample with p = 0\.5 needs"):
        streamed_supporters(tmp_path / "graph", 0.5, out=tmp_path / "counts.npy", resources=Resources(memory=1000))
