"""Common Crawl's files: pairs of vertices and edges, lists of parts, and the two known traps."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from surveyor.errors import InputError, UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.formats import build_graph, detect, read_graph, read_ranks, write_graph, write_ranks
from surveyor.graph.formats.ranks import java_float

VERTICES = "0\tcom.example\t2\n1\tcom.example.www\t1\n2\torg.other\t1\n"
EDGES = "0\t1\n0\t2\n2\t0\n"


def pack(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()))
    return path


def a_release(folder: Path, vertices: str = VERTICES, edges: str = EDGES) -> Path:
    pack(folder / "cc-domain-vertices.txt.gz", vertices)
    return pack(folder / "cc-domain-edges.txt.gz", edges)


def test_a_folder_or_either_file_is_the_graph(tmp_path: Path) -> None:
    edges = a_release(tmp_path)
    for source in (tmp_path, edges, tmp_path / "cc-domain-vertices.txt.gz"):
        assert detect(source).name == "commoncrawl"
        graph = read_graph(source)
        assert graph == Graph.from_arrays(
            np.array([0, 0, 2]), np.array([1, 2, 0]), 3, ["example.com", "www.example.com", "other.org"]
        )
        assert graph.provenance["notes"] == ["names keep www. (1 of 3)"]
    assert build_graph(tmp_path, tmp_path / "built", memory=1 << 16) == graph


def test_the_traps_are_noted(tmp_path: Path) -> None:
    a_release(tmp_path, "0\torg.b\n1\torg.a\n2\torg.www\n")
    assert read_graph(tmp_path).provenance["notes"] == [
        "vertices were not sorted",
        "names keep www. (1 of 3)",
    ]


def test_edges_alone_are_a_list_of_ids(tmp_path: Path) -> None:
    path = pack(tmp_path / "x-edges.txt.gz", EDGES)
    assert detect(path).name == "snap"
    assert read_graph(path).names is None


@pytest.mark.parametrize("where", ["beside", "below", "above"])
def test_lists_of_parts(tmp_path: Path, where: str) -> None:
    folder = tmp_path / "a" / "b"
    base = {"beside": folder, "below": folder, "above": tmp_path}[where]
    prefix = {"beside": "", "below": "host/", "above": "projects/host/"}[where]
    listed = {}
    for kind, text in (("vertices", VERTICES), ("edges", EDGES)):
        lines = text.splitlines(keepends=True)
        listed[kind] = [f"{prefix}{kind}/part-{number}.gz" for number in range(3)]
        for line, part in zip(lines, listed[kind], strict=True):
            pack(base / part, line)
        pack(folder / f"cc-host-{kind}.paths.gz", "\n".join(listed[kind]) + "\n")
    graph = read_graph(folder)
    assert (graph.pages, graph.links, graph.name(2)) == (3, 3, "other.org")
    (base / listed["edges"][1]).unlink()
    with pytest.raises(InputError, match=r"edges\.paths\.gz:2: the part .*edges/part-1\.gz is missing"):
        read_graph(folder)


def test_malformed_and_misnumbered_vertices(tmp_path: Path) -> None:
    edges = a_release(tmp_path, "0\tcom.a\nnonsense\n2\tcom.c\n")
    graph = read_graph(edges)
    assert graph.provenance["malformed"]["count"] == 1
    assert [graph.name(page) for page in range(3)] == ["a.com", "", "c.com"]
    with pytest.raises(InputError, match=r"vertices\.txt\.gz:2: not a link"):
        read_graph(edges, strict=True)
    a_release(tmp_path, "0\tcom.a\n2\tcom.c\n")
    with pytest.raises(InputError, match="comes id 2 instead of 1"):
        read_graph(tmp_path)
    a_release(tmp_path, VERTICES, "0\t1\n0\t3\n")
    assert read_graph(tmp_path).provenance["malformed"]["first"][0]["line"] == 2


def test_half_a_graph_and_two_graphs_are_rejected(tmp_path: Path) -> None:
    path = pack(tmp_path / "x-vertices.txt.gz", VERTICES)
    with pytest.raises(InputError, match="has a vertices and an edges file"):
        read_graph(path, format="commoncrawl")
    pack(tmp_path / "x-edges.txt.gz", EDGES)
    a_release(tmp_path)
    with pytest.raises(InputError, match="several graphs"):
        read_graph(tmp_path)
    assert read_graph(path).pages == 3


def test_written_files_are_sorted_and_reversed(tmp_path: Path) -> None:
    graph = Graph.from_edges([("www.z.org", "a.com"), ("a.com", "b.com")])
    write_graph(graph, tmp_path / "out", format="commoncrawl")
    vertices = gzip.decompress((tmp_path / "out" / "out-vertices.txt.gz").read_bytes())
    assert vertices == b"0\tcom.a\n1\tcom.b\n2\torg.z.www\n"
    assert gzip.decompress((tmp_path / "out" / "out-edges.txt.gz").read_bytes()) == b"0\t1\n2\t0\n"
    again = read_graph(tmp_path / "out")
    write_graph(again, tmp_path / "two-edges.txt.gz")
    assert gzip.decompress((tmp_path / "two-vertices.txt.gz").read_bytes()) == vertices
    with pytest.raises(UsageError, match="needs names"):
        write_graph(Graph(graph.indptr, graph.indices), tmp_path / "out", format="commoncrawl")


def test_ranks_are_read_as_published(tmp_path: Path) -> None:
    text = (
        "#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev\t#n_hosts\n"
        "1\t2.9799486E7\t1\t0.01626\tcom.googleapis\t2920\n---\t---\t2\t1.2E-9\torg.x\t1\n"
    )
    ranks = read_ranks(pack(tmp_path / "r.txt.gz", text))
    assert list(ranks.names) == ["googleapis.com", "x.org"]
    assert ranks.harmonic_position.tolist() == [1, 0]
    assert ranks.harmonic[0] == 29799486
    assert np.isnan(ranks.harmonic[1])
    assert ranks.pagerank.tolist() == [0.01626, 1.2e-9]
    assert ranks.hosts is not None
    assert ranks.hosts.tolist() == [2920, 1]
    with pytest.raises(InputError, match=r"bad\.txt\.gz:2: not a line of ranks"):
        read_ranks(pack(tmp_path / "bad.txt.gz", "#\n1\t2\n"))
    with pytest.raises(InputError, match="contains no ranks"):
        read_ranks(pack(tmp_path / "bad.txt.gz", "#\n"))


def test_ranks_come_back(tmp_path: Path) -> None:
    pagerank, harmonic = np.array([0.25, 0.5, 1e-9]), np.array([3.0, 1e7, 12345678.5])
    write_ranks(tmp_path / "r.txt", ["a.com", "b.com", "c.org"], pagerank=pagerank, harmonic=harmonic)
    assert (tmp_path / "r.txt").read_text() == (
        "#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev\n"
        "1\t1.23456785E7\t3\t1.0E-9\torg.c\n2\t1.0E7\t1\t0.5\tcom.b\n3\t3.0\t2\t0.25\tcom.a\n"
    )
    ranks = read_ranks(tmp_path / "r.txt")
    assert ranks.pagerank.tolist() == [1e-9, 0.5, 0.25]
    assert ranks.hosts is None
    write_ranks(tmp_path / "r.txt.gz", ["a.com", "b.com"], pagerank=np.array([0.1, 0.9]), hosts=np.array([1, 2]))
    assert list(read_ranks(tmp_path / "r.txt.gz").names) == ["b.com", "a.com"]
    with pytest.raises(UsageError, match="1 values for 2 names"):
        write_ranks(tmp_path / "r.txt", ["a", "b"], pagerank=np.array([1.0]))


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0.0"), (1.0, "1.0"), (0.001, "0.001"), (9.99e-4, "9.99E-4"), (1e21, "1.0E21")]
)
def test_numbers_as_java_writes_them(value: float, text: str) -> None:
    assert java_float(value) == text
