from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surveyor import Graph
from surveyor.graph import build
from surveyor.graph.build import Builder, transpose
from surveyor.graph.folder import build_folder
from webs import random_web


@given(st.integers(0, 2**32), st.integers(1, 300), st.integers(0, 5_000), st.sampled_from([1, 3]))
@settings(max_examples=40, deadline=None)
def test_external_sort_equals_a_set_of_pairs(seed: int, pages: int, links: int, threads: int) -> None:
    rng = np.random.default_rng(seed)
    sources, targets = rng.integers(0, pages, links), (pages * rng.random(links) ** 2).astype(np.int64)
    with Builder(memory=1 << 12, threads=threads) as builder:
        for first in range(0, links, 700):
            builder.add(sources[first : first + 700], targets[first : first + 700])
        graph = builder.finish(pages)
    pairs = sorted({(a, b) for a, b in zip(sources.tolist(), targets.tolist(), strict=True) if a != b})
    assert [(page, int(t)) for page in range(pages) for t in graph.links_of(page)] == pairs


@pytest.mark.parametrize("order", ["sorted", "reversed", "shuffled", "one hub"])
def test_the_order_of_links_does_not_matter(order: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    links = np.unique(rng.integers(0, 500, (20_000, 2)), axis=0)
    links = links[links[:, 0] != links[:, 1]]
    if order == "one hub":
        links[:, 0] = 0
        links = np.unique(links[links[:, 1] > 0], axis=0)
    expected = Graph.from_arrays(links[:, 0], links[:, 1], 500)
    given_links = {"reversed": links[::-1], "shuffled": rng.permutation(links)}.get(order, links)
    with Builder(memory=1 << 13, scratch=tmp_path) as builder:
        builder.add(given_links[:, 0].copy(), given_links[:, 1].copy())
        assert builder._spilled or order == "one hub"  # the memory allowed was too small for all keys
        graph = build_folder(builder, tmp_path / "graph", nodes=500)
    assert graph == expected
    assert np.array_equal(graph.in_links.indices, expected.in_links.indices)
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]


def test_same_bytes_on_any_number_of_threads() -> None:
    graphs = []
    for threads in (1, 2, 5):
        rng = np.random.default_rng(7)
        graphs.append(Graph.from_arrays(rng.integers(0, 999, 50_000), rng.integers(0, 999, 50_000), threads=threads))
    assert graphs[0] == graphs[1] == graphs[2]


@pytest.mark.parametrize("at_once", [1, 100, 10**6])
def test_turning_round_in_ranges_equals_turning_round_at_once(at_once: int) -> None:
    graph = random_web(200, 2_000, seed=4)
    written: list[np.ndarray] = []
    rows = transpose(graph.indptr, graph.indices, write=written.append, at_once=at_once)
    assert np.array_equal(np.concatenate(written), graph.in_links.indices)
    assert np.array_equal(rows.indptr, graph.in_links.indptr)


def test_a_failure_while_spilling_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(build, "_merged", full_disk)
    with pytest.raises(OSError, match="No space"), Builder(memory=1 << 12, scratch=tmp_path) as builder:
        builder.add(np.arange(5_000), np.arange(5_000) + 1)
    assert not list(tmp_path.iterdir())
