"""What the targets of graph formats share: reading bytes as one format, checking the graph that comes of it."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
from scratch import scratch

from surveyor.graph.csr import Graph, Rows
from surveyor.graph.formats import read_graph

PARTS = b"\n=====\n"  # between the files of a format that has several
MOST = 1 << 20  # pages of a graph that is looked at closely


def read(data: bytes, name: str, format_name: str | None = None) -> Graph:
    """Read bytes as a file of some name."""
    path = scratch() / name
    path.write_bytes(data)
    graph = read_graph(path, format=format_name, threads=1)
    check(graph)
    return graph


def write_parts(data: bytes, names: list[str], folder: str) -> Path:
    """Write the parts of an input as files of a folder; missing ones are left out."""
    place = scratch() / folder
    place.mkdir(exist_ok=True)
    for file in place.iterdir():
        file.unlink()
    for name, part in zip(names, data.split(PARTS), strict=False):
        (place / name).write_bytes(part)
    return place


def check(graph: Graph) -> None:
    """Check all that kernels rely on."""
    rows_fit(Rows(graph.indptr, graph.indices))
    if graph.pages > MOST:
        return
    if graph.names is not None:
        assert len(graph.names) == graph.pages
        assert graph.names.offsets[0] == 0
        assert graph.names.offsets[-1] == graph.names.blob.size
        assert (np.diff(graph.names.offsets) >= 0).all()
        assert sum(1 for _ in graph.names) == graph.pages


def rows_fit(rows: Rows) -> None:
    """Check one direction."""
    assert rows.indptr.dtype == np.int64
    assert rows.indices.dtype == np.int32
    assert rows.indptr[0] == 0
    assert rows.indptr[-1] == rows.indices.size
    assert (rows.indptr[1:] >= rows.indptr[:-1]).all()
    assert rows.indices.min(initial=0) >= 0
    assert rows.indices.max(initial=-1) < rows.indptr.size - 1


def sample() -> Graph:
    """Return a small graph with names."""
    return Graph.from_edges(
        [("http://a.example/", "http://b.example/x"), ("http://b.example/x", "c"), ("c", "ä"), ("ä", "c")]
    )


def numbered(pages: int = 20, links: int = 60) -> Graph:
    """Return a small graph without names."""
    rng = random.Random(1)  # noqa: S311
    ends = np.array([[rng.randrange(pages) for _ in range(links)] for _ in range(2)])
    return Graph.from_arrays(ends[0], ends[1], pages)
