"""Condensing pieces: the graph, counts and names of condensing one graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surveyor import Graph, UsageError
from surveyor.graph.condense import condense
from surveyor.graph.hosts_and_domains import Level
from surveyor.graph.names import Names
from surveyor.graph.pieces import condense as condensing
from surveyor.graph.pieces.condense import CondensedPieces, condense_with
from surveyor.graph.pieces.folder import Pieces
from surveyor.graph.pieces.split import join, split_graph
from surveyor.graph.pieces.write import WriteOptions
from webs import graphs, random_web, star

HOSTS = ["a.org", "www.a.org", "b.co.uk", "x.b.co.uk", "joe.github.io", "db.intern", "192.0.2.1", "WWW.A.org:80"]
LEVELS: tuple[Level, ...] = ("hosts", "domains")
STRANGE = ["no host at all", "ftp://a.org/", "http://"]


def with_names(graph: Graph, rng: int, hosts: int = 40) -> Graph:
    """The same graph with URLs of random hosts, some without any."""
    random = np.random.default_rng(rng)
    pool = [*HOSTS, *(f"h{host % 7}.d{host}.com" for host in range(hosts))]
    names = [
        STRANGE[page % 3] + str(page) if random.random() < 0.05 else f"http://{pool[random.integers(len(pool))]}/{page}"
        for page in range(graph.pages)
    ]
    return Graph(graph.indptr, graph.indices, names=Names.of(names), provenance={"source": "test"})


def assert_same(made: CondensedPieces, graph: Graph, level: Level) -> None:
    whole = condense(graph, level)
    joined = join(made.pieces)
    assert joined == whole.graph
    assert list(joined.names or ()) == list(whole.graph.names or ())
    fields = made.to_dict()
    assert fields.pop("pieces") == len(made.pieces)
    assert fields == whole.to_dict()


@given(graphs(), st.tuples(st.integers(1, 5), st.integers(1, 5)), st.integers(0, 99), st.sampled_from(LEVELS))
@settings(max_examples=20, deadline=None)
@pytest.mark.slow
def test_pieces_condense_as_one_graph(tmp_path_factory, graph: Graph, cuts: Any, rng: int, level: Level) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path_factory.mktemp("pieces")
    graph = with_names(graph, rng, hosts=6)
    made = condense_with(split_graph(graph, folder / "pages", cuts[0]), folder / "sites", cuts[1], level=level)
    assert_same(made, graph, level)
    Pieces.open(folder / "sites")
    assert sorted(path.name for path in folder.iterdir()) == ["pages", "sites"]


def test_runs_and_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = with_names(random_web(3000, 30_000, 5), 3)
    pieces = split_graph(graph, tmp_path / "pages", 6)
    one = condense_with(pieces, tmp_path / "one")
    assert len(one.pieces) == 6
    assert_same(one, graph, "domains")
    small = condense_with(pieces, tmp_path / "small", options=WriteOptions(memory=1 << 16, threads=1))
    assert small.pieces.checksum == one.pieces.checksum
    monkeypatch.setattr(condensing, "RUN", 500)
    monkeypatch.setattr(condensing, "READ", 64)
    monkeypatch.setattr("surveyor.graph.pieces.folder.LINKS", 100)
    assert_same(condense_with(pieces, tmp_path / "many", 3), graph, "domains")


def test_pieces_without_sites_or_links(tmp_path: Path) -> None:
    graph = Graph(star(3).indptr, star(3).indices, names=Names.of(["x y", "ftp://a/", "http://a.org/", ""]))
    made = condense_with(split_graph(graph, tmp_path / "pages", 9), tmp_path / "sites", 4)
    assert_same(made, graph, "domains")
    nothing = Graph.from_arrays(np.empty(0, int), np.empty(0, int), 0, names=[])
    made = condense_with(split_graph(nothing, tmp_path / "nothing", 2), tmp_path / "none", 3)
    assert (made.pieces.pages, len(made.pieces)) == (0, 3)


def test_rejections(tmp_path: Path) -> None:
    pieces = split_graph(star(5), tmp_path / "pages", 2)
    with pytest.raises(UsageError, match="has no names, so the hosts of its pages are unknown"):
        condense_with(pieces, tmp_path / "sites")
    with pytest.raises(UsageError, match=r"pieces must be in \[1, 4096\], got 0"):
        condense_with(pieces, tmp_path / "sites", 0)
    with pytest.raises(UsageError, match="already exists"):
        condense_with(pieces, tmp_path / "pages")
