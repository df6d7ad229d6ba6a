"""Every format: what is written is read again; what is malformed is counted, shown or refused."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from surveyor.errors import InputError, MissingExtra, UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.formats import FORMATS, build_graph, detect, read_graph, streams, write_graph
from surveyor.graph.names import Names

quick = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
pages_and_links = st.integers(0, 12).flatmap(
    lambda pages: st.tuples(
        st.just(pages),
        st.lists(st.tuples(st.integers(0, max(pages - 1, 0)), st.integers(0, max(pages - 1, 0))), max_size=30)
        if pages
        else st.just([]),
    )
)
any_name = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=12).filter(
    lambda name: name == name.strip() and name[0] not in "#%"
)


def make(pages: int, links: list[tuple[int, int]], names: list[str] | None = None) -> Graph:
    ends = np.array(links, np.int64).reshape(-1, 2)
    return Graph.from_arrays(ends[:, 0], ends[:, 1], pages, names)


def named_links(graph: Graph) -> set[tuple[str, str]]:
    return {(graph.name(a), graph.name(int(b))) for a in range(graph.pages) for b in graph.links_of(a)}


def write_text(path: Path, text: str | bytes) -> Path:
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize(
    "name", ["g.npz", "g.mtx", "g.mtx.gz", "g.parquet", "g.txt", "g.txt.gz", "g.gexf", "g.graphml"]
)
@quick
@given(drawn=pages_and_links)
def test_a_graph_without_names_comes_back(tmp_path: Path, name: str, drawn: tuple[int, list[tuple[int, int]]]) -> None:
    graph = make(*drawn)
    if name == "g.mtx" and not graph.pages:
        return
    write_graph(graph, tmp_path / name)
    assert read_graph(tmp_path / name) == graph
    assert [file.name for file in tmp_path.iterdir()] == [name], "no drafts are left behind"


@pytest.mark.parametrize("name", ["g.tsv", "g.csv", "g.tsv.zst", "g.tsv.bz2", "g.csv.xz"])
@quick
@given(drawn=pages_and_links)
def test_lists_of_ids_come_back_with_the_number_of_pages(
    tmp_path: Path, name: str, drawn: tuple[int, list[tuple[int, int]]]
) -> None:
    graph = make(*drawn)
    write_graph(graph, tmp_path / name)
    assert read_graph(tmp_path / name, nodes=graph.pages) == graph


@pytest.mark.parametrize("name", ["g.npz", "g.gexf", "g.graphml"])
@quick
@given(names=st.lists(any_name, min_size=2, max_size=6, unique=True), data=st.data())
def test_names_and_lonely_pages_come_back(tmp_path: Path, name: str, names: list[str], data: st.DataObject) -> None:
    ids = st.integers(0, len(names) - 1)
    graph = make(len(names), data.draw(st.lists(st.tuples(ids, ids), max_size=10)), names)
    write_graph(graph, tmp_path / name)
    again = read_graph(tmp_path / name)
    if names != [str(page) for page in range(len(names))]:
        assert again == graph


@pytest.mark.parametrize("name", ["g.tsv", "g.csv", "g.csv.gz", "g.parquet", "graph-edges.txt.gz"])
@quick
@given(names=st.lists(any_name, min_size=2, max_size=6, unique=True), data=st.data())
def test_links_between_names_come_back(tmp_path: Path, name: str, names: list[str], data: st.DataObject) -> None:
    names = [f"{name}/é" for name in names]  # never a number
    ids = st.integers(0, len(names) - 1)
    graph = make(len(names), data.draw(st.lists(st.tuples(ids, ids), max_size=10)), names)
    write_graph(graph, tmp_path / name)
    assert named_links(read_graph(tmp_path / name)) == named_links(graph)


def test_names_or_ids_can_be_chosen(tmp_path: Path) -> None:
    graph = Graph.from_edges([("a", "b"), ("b", "c")])
    write_graph(graph, tmp_path / "g.parquet", names=False)
    assert read_graph(tmp_path / "g.parquet") == Graph(graph.indptr, graph.indices)


def test_bytes_that_are_no_utf8_stay_as_they_are(tmp_path: Path) -> None:
    path = write_text(tmp_path / "g.tsv", b"caf\xe9\tb\nb\tcaf\xe9\n")
    graph = read_graph(path)
    assert graph.names is not None
    assert bytes(graph.names.blob[:4]) == b"caf\xe9"
    write_graph(graph, tmp_path / "again.tsv")
    assert (tmp_path / "again.tsv").read_bytes() == path.read_bytes()
    write_graph(graph, tmp_path / "g.parquet")
    assert named_links(read_graph(tmp_path / "g.parquet")) == named_links(graph)


@pytest.mark.parametrize(
    "text",
    [
        "0\t1\n1\t2\n2\t0\n",
        "0 1\r\n1 2\r\n2 0",
        "\ufeff0,1\n1,2\n\n2,0\n",
        "# a comment\n%another\n0  1  \n 1 2\n\n2\t0\t\n",
        "source,target\n0,1\n1,2\n2,0\n",
        "FromNodeId ToNodeId\n0 1\n1 2\n2 0\n",
        "0;1\n1;2\n2;0\n",
        "0\t1\t0.5\tx\n1\t2\t1\ty\n2\t0\t3\tz\n",
    ],
)
def test_the_many_shapes_of_an_edge_list(tmp_path: Path, text: str) -> None:
    expected = make(3, [(0, 1), (1, 2), (2, 0)])
    for name in ("g.txt", "g.csv", "g.txt.gz"):
        graph = read_graph(write_text(tmp_path / name, text))
        assert graph == expected
        assert graph.provenance["malformed"]["count"] == 0
        notes = " ".join(graph.provenance["notes"])
        assert ("header" in notes) == ("arget" in text or "From" in text)
        assert ("columns" in notes) == ("0.5" in text)


@pytest.mark.parametrize(
    "bad", ["7", "a b", "-1 2", "1 -2", "1.5 2", "9223372036854775808 1", "1 123456789012345678901", "1x 2"]
)
def test_malformed_lines_are_counted_shown_and_fatal_if_strict(tmp_path: Path, bad: str) -> None:
    path = write_text(tmp_path / "g.txt", f"# c\n0 1\n{bad}\n1 2\n{bad}\n")
    graph = read_graph(path)
    assert graph == make(3, [(0, 1), (1, 2)])
    malformed = graph.provenance["malformed"]
    assert malformed["count"] == 2
    assert malformed["first"] == [{"file": str(path), "line": line, "text": bad} for line in (3, 5)]
    with pytest.raises(InputError, match=r"g\.txt:3: not a link"):
        read_graph(path, strict=True)


def test_only_the_first_malformed_lines_are_kept_but_all_are_counted(tmp_path: Path) -> None:
    path = write_text(tmp_path / "g.tsv", "a\tb\n" * 60 + f"alone{'!' * 300}\n" * 50)
    malformed = read_graph(path).provenance["malformed"]
    assert malformed["count"] == 50
    assert [shown["line"] for shown in malformed["first"]] == [61, 62, 63, 64, 65]
    assert all(len(shown["text"]) <= 80 for shown in malformed["first"])


def test_line_numbers_continue_over_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "BLOCK", 64)
    lines = [f"{number} {number + 1}" for number in range(500)]
    lines[400] = "oops"
    for name in ("g.txt", "g.txt.gz"):
        graph = read_graph(write_text(tmp_path / name, "\n".join(lines)))
        assert graph.links == 499
        assert graph.provenance["malformed"]["first"][0]["line"] == 401


def test_quoted_fields(tmp_path: Path) -> None:
    text = 'source,target\n"a, b","say ""hi"""\n"a, b" , plain\n"a"b,c\n,c\n'
    graph = read_graph(write_text(tmp_path / "g.csv", text))
    assert named_links(graph) == {("a, b", 'say "hi"'), ("a, b", "plain")}
    assert graph.provenance["malformed"]["count"] == 2


@pytest.mark.parametrize("wide", [2**31 - 1, 2**31, 2**40, 2**62])
def test_ids_beyond_int32_become_names_in_numeric_order(tmp_path: Path, wide: int) -> None:
    path = write_text(tmp_path / "g.txt", f"5 {wide}\n{wide} 3\nx\n")
    for graph in (read_graph(path), build_graph(path, tmp_path / "folder")):
        assert graph.names is not None
        assert list(graph.names) == ["3", "5", str(wide)]
        assert named_links(graph) == {("5", str(wide)), (str(wide), "3")}
        assert graph.provenance["malformed"]["count"] == 1


def test_sparse_ids_are_numbered_anew_and_kept_as_names(tmp_path: Path) -> None:
    path = write_text(tmp_path / "g.txt", "10 30\n30 20\n40 40\n")
    for graph in (read_graph(path), build_graph(path, tmp_path / "folder", memory=1 << 16)):
        assert graph.names == Names.of(["10", "20", "30", "40"])
        assert named_links(graph) == {("10", "30"), ("30", "20")}
    with pytest.raises(InputError, match=r"page 40, outside 0\.\.2"):
        read_graph(path, nodes=3)
    assert read_graph(path, nodes=41).pages == 41
    write_graph(graph, tmp_path / "again.txt")
    assert read_graph(tmp_path / "again.txt").name(0) == "10"


def test_thin_ids_take_no_memory_of_their_size(tmp_path: Path) -> None:
    graph = read_graph(write_text(tmp_path / "g.txt", f"0 {2**31 - 2}\n"))
    assert graph.pages == 2
    graph = read_graph(write_text(tmp_path / "h.txt", "# Nodes: 2000000000 Edges: 1\n0 1\n"))
    assert graph.pages == 2, "a claim out of proportion is not believed"


@pytest.mark.parametrize("wide", [7, 2**40])
def test_ids_beyond_the_given_number_of_pages_are_rejected(tmp_path: Path, wide: int) -> None:
    path = write_text(tmp_path / "g.txt", f"0 1\n1 {wide}\n")
    with pytest.raises(InputError, match=rf"page {wide:,}, outside 0\.\.2(?s:.*)at least {wide + 1:,}"):
        read_graph(path, nodes=3)
    with pytest.raises(InputError, match="at least 3"):
        read_graph(write_text(tmp_path / "g.csv", "w,source,target\n9,1,2\n"), nodes=2)


def test_building_in_bounded_memory_gives_the_same_graph(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    graph = Graph.from_arrays(rng.integers(0, 3000, 60_000), rng.integers(0, 3000, 60_000))
    for name in ("g.txt.gz", "g.parquet", "g.npz", "g.tsv"):
        write_graph(graph, tmp_path / name)
        built = build_graph(tmp_path / name, tmp_path / f"{name}.folder", memory=1 << 16, threads=1)
        assert built == graph
        assert built.provenance["source"] == str(tmp_path / name)
    with pytest.raises(UsageError, match="already exists"):
        build_graph(tmp_path / "missing.txt", tmp_path / "g.tsv.folder")
    assert read_graph(tmp_path / "g.tsv.folder") == graph
    assert build_graph(tmp_path / "g.tsv.folder", tmp_path / "copy") == graph


def test_gzip_of_many_members(tmp_path: Path) -> None:
    path = tmp_path / "g.txt.gz"
    path.write_bytes(gzip.compress(b"0 1\n1 ") + gzip.compress(b"2\n") + gzip.compress(b"2 0\n"))
    assert read_graph(path) == make(3, [(0, 1), (1, 2), (2, 0)])


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".bz2", ".xz"])
def test_a_truncated_archive_is_rejected(tmp_path: Path, suffix: str) -> None:
    rng = np.random.default_rng(1)
    graph = Graph.from_arrays(rng.integers(0, 9999, 90_000), rng.integers(0, 9999, 90_000))
    path = tmp_path / f"g.txt{suffix}"
    write_graph(graph, path)
    assert read_graph(path) == graph
    path.write_bytes(path.read_bytes()[:-3000])
    with pytest.raises(InputError, match="truncated or damaged"):
        read_graph(path)


def test_damage_inside_an_archive_is_rejected(tmp_path: Path) -> None:
    path = write_text(tmp_path / "g.txt.gz", "".join(f"{i} {i * 7 % 9999}\n" for i in range(9999)))
    data = bytearray(path.read_bytes())
    data[5000:5100] = bytes(100)
    path.write_bytes(data)
    with pytest.raises(InputError, match="truncated or damaged"):
        read_graph(path)


@pytest.mark.parametrize("name", ["g.npz", "g.parquet", "g.mtx", "g.graphml", "g.gexf"])
@pytest.mark.parametrize("content", [b"", b"nonsense\n", b"<xml", b"PK\x03\x04", b"PAR1", b"%%MatrixMarket matrix\n"])
def test_wrong_content_is_one_sentence(tmp_path: Path, name: str, content: bytes) -> None:
    with pytest.raises(InputError, match=name):
        read_graph(write_text(tmp_path / name, content))


@pytest.mark.parametrize("name", ["g.npz", "g.parquet", "g.mtx", "g.graphml", "g.gexf"])
def test_truncated_binary_files_are_rejected(tmp_path: Path, name: str) -> None:
    graph = make(50, [(i, (i * 7 + 1) % 50) for i in range(50)])
    write_graph(graph, tmp_path / name)
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError):
        read_graph(tmp_path / name)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_graph(tmp_path / "none.txt")
    with pytest.raises(InputError, match="folder without a graph"):
        read_graph(tmp_path)
    with pytest.raises(InputError, match="is empty"):
        read_graph(write_text(tmp_path / "g.txt", ""))
    with pytest.raises(InputError, match=r"no known format(?s:.*)commoncrawl"):
        read_graph(write_text(tmp_path / "g.what", b"\0\1\2" * 100))
    with pytest.raises(InputError, match="no known format"):
        read_graph(write_text(tmp_path / "words.txt", "one\ntwo\nthree\n"))
    with pytest.raises(InputError, match="all 3 of its data lines"):
        read_graph(write_text(tmp_path / "words.txt", "one\ntwo\nthree\n"), format="tsv")
    with pytest.raises(InputError, match="UTF-8"):
        read_graph(write_text(tmp_path / "g.csv", "a,b\n".encode("utf-16")))
    with pytest.raises(UsageError, match="contains names"):
        read_graph(write_text(tmp_path / "g.tsv", "a\tb\n"), nodes=5)
    with pytest.raises(UsageError, match="unknown format 'xlsx'"):
        read_graph(tmp_path / "g.tsv", format="xlsx")
    with pytest.raises(UsageError, match="no suffix of a known format"):
        write_graph(make(1, []), tmp_path / "g.what")
    with pytest.raises(UsageError, match="not written"):
        write_graph(make(1, []), tmp_path / "g", format="bvgraph")
    with pytest.raises(UsageError, match="cannot be written"):
        write_graph(make(1, []), tmp_path / "no" / "folder.txt")


@pytest.mark.parametrize("name", ["tab\tin", "line\nin", " space", "#hash", ""])
def test_names_that_a_format_cannot_hold(tmp_path: Path, name: str) -> None:
    graph = make(2, [(0, 1)], [name, "b"])
    with pytest.raises(UsageError, match="cannot be written as TSV"):
        write_graph(graph, tmp_path / "g.tsv")
    assert not list(tmp_path.iterdir())
    write_graph(graph, tmp_path / "g.npz")
    assert read_graph(tmp_path / "g.npz") == graph


def test_viewer_formats_refuse_large_graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surveyor.graph.formats.networks.MOST_LINKS", 1)
    with pytest.raises(UsageError, match="too many for gexf"):
        write_graph(make(3, [(0, 1), (1, 2)]), tmp_path / "g.gexf")


def test_matrices_of_other_programs(tmp_path: Path) -> None:
    path = write_text(
        tmp_path / "g.mtx", "%%MatrixMarket matrix coordinate real symmetric\n%\n3 3 2\n2 1 0.5\n3 1 0.0\n"
    )
    graph = read_graph(path)
    assert graph == make(3, [(0, 1), (1, 0)])
    assert "stored zeros" in graph.provenance["notes"][0]
    with pytest.raises(InputError, match="2 × 3"):
        read_graph(write_text(tmp_path / "h.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 3 1\n1 3\n"))
    np.savez(tmp_path / "bare.npz", indptr=np.array([0, 2, 2, 3]), indices=np.array([1, 2, 0]))
    assert read_graph(tmp_path / "bare.npz") == make(3, [(0, 1), (0, 2), (2, 0)])
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.coo_matrix((np.ones(2), ([0, 1], [1, 2])), shape=(3, 3))
    for form in ("coo", "csc", "csr"):
        sparse.save_npz(tmp_path / "scipy.npz", matrix.asformat(form))
        assert read_graph(tmp_path / "scipy.npz") == make(3, [(0, 1), (1, 2)])
    write_graph(graph, tmp_path / "ours.npz")
    assert sparse.load_npz(tmp_path / "ours.npz").nnz == 2


def test_parquet_of_other_programs(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "g.parquet"
    ends = {"weight": [1.0, 2.0, 3.0], "src": ["a", "b", None], "dst": ["b", "c", "a"]}
    for text in (pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int8(), pa.string())):
        table = pa.table(
            {"weight": ends["weight"], "src": pa.array(ends["src"], text), "dst": pa.array(ends["dst"], text)}
        )
        parquet.write_table(table, path)
        graph = read_graph(path)
        assert named_links(graph) == {("a", "b"), ("b", "c")}
        assert graph.provenance["malformed"]["first"][0]["line"] == 3
    parquet.write_table(pa.table({"a": pa.array([0, 2**64 - 1, -0], pa.uint64()), "b": [1, 1, 2]}), path)
    assert read_graph(path).provenance["malformed"]["count"] == 1
    parquet.write_table(pa.table({"a": [2**40, 7], "b": [7, 9]}), path)
    assert named_links(read_graph(path)) == {(str(2**40), "7"), ("7", "9")}
    parquet.write_table(pa.table({"a": [1.5], "b": [1]}), path)
    with pytest.raises(InputError, match="double and int64"):
        read_graph(path)
    parquet.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(InputError, match="fewer than two"):
        read_graph(path)


def test_a_missing_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingExtra, match=r"surveyor\[formats\]"):
        write_graph(make(1, []), tmp_path / "g.gexf")


def test_undirected_graphs_link_both_ways(tmp_path: Path) -> None:
    networkx = pytest.importorskip("networkx")
    networkx.write_graphml_xml(networkx.Graph([("a", "b")]), tmp_path / "g.graphml")
    graph = read_graph(tmp_path / "g.graphml")
    assert named_links(graph) == {("a", "b"), ("b", "a")}
    assert "undirected" in graph.provenance["notes"][0]


def test_detection_by_content(tmp_path: Path) -> None:
    graph = make(3, [(0, 1), (1, 2)])
    for name, kind in (
        ("npz", "npz"),
        ("parquet", "parquet"),
        ("mtx", "matrixmarket"),
        ("gexf", "gexf"),
        ("txt", "snap"),
    ):
        write_graph(graph, tmp_path / f"g.{name}")
        (tmp_path / f"g.{name}").rename(tmp_path / "mystery")
        assert detect(tmp_path / "mystery") is FORMATS[kind]
        assert read_graph(tmp_path / "mystery") == graph
    assert detect(write_text(tmp_path / "names.txt", "a b\nb c\n")) is FORMATS["tsv"]


def test_importing_formats_loads_no_heavy_package() -> None:
    heavy = ["numba", "scipy", "pyarrow", "networkx"]
    code = f"import sys, surveyor.graph.formats; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
