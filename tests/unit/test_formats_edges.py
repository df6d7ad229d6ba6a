"""The edges of the formats: pipes, headers, names that look like numbers, and untrusted files."""

from __future__ import annotations

import io
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from attack import attack
from hypothesis import HealthCheck, given, settings

from oracles import first_bad_row
from surveyor.errors import GraphError, InputError, UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.formats import FORMATS, build_graph, detect, read_graph, write_graph
from surveyor.graph.names import Names

quick = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
TRIANGLE = Graph.from_arrays(np.array([0, 1, 2]), np.array([1, 2, 0]))


def write_text(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def named_links(graph: Graph) -> set[tuple[str, str]]:
    return {(graph.name(a), graph.name(int(b))) for a in range(graph.pages) for b in graph.links_of(a)}


class Piped:
    """A pipe with some text in it."""

    def __init__(self, path: Path, text: bytes) -> None:
        os.mkfifo(path)
        self.path, self.thread = path, threading.Thread(target=path.write_bytes, args=(text,))

    def __enter__(self) -> Path:
        self.thread.start()
        return self.path

    def __exit__(self, *_: object) -> None:
        self.thread.join()


def test_a_pipe_is_read_once_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Piped(tmp_path / "links.csv", b"to,from\n1,0\nx\n2,1\n0,2\n") as pipe:
        graph = read_graph(pipe)
    assert graph == TRIANGLE
    assert graph.provenance["source"] == str(pipe)
    assert graph.provenance["malformed"]["first"] == [{"file": str(pipe), "line": 3, "text": "x"}]
    assert list(tmp_path.iterdir()) == [pipe]
    with Piped(tmp_path / "two", b"0 1\n" * 9 + f"{2**40} 0\n".encode()) as pipe:  # ids so wide are read three times
        assert build_graph(pipe, tmp_path / "built").pages == 3
    with Piped(tmp_path / "bad", b"\0\1\2") as pipe, pytest.raises(InputError, match=f"^{pipe} is"):
        read_graph(pipe)
    with pytest.raises(InputError, match="is a device"):
        read_graph("/dev/null")


def test_the_standard_input_is_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"0 1\n1 2\n2 0\n")))
    graph = read_graph("-")
    assert graph == TRIANGLE
    assert graph.provenance["source"] == "-"


@pytest.mark.parametrize("separator", [",", "\t", ";"])
@pytest.mark.parametrize(
    "header",
    [
        "source target",
        "target source",
        "To From",
        "weight source target",
        "target weight source",
        "dst_id dst_name src_name src_id",
        "FromNodeId ToNodeId weight",
    ],
)
@pytest.mark.parametrize("ends", [("0", "1", "2"), ("a", "b", "c")])
def test_the_header_selects_the_columns(
    tmp_path: Path, separator: str, header: str, ends: tuple[str, str, str]
) -> None:
    columns = header.split()
    source = next(column for column in columns if column.lower() in ("source", "from", "src_id", "fromnodeid"))
    target = next(column for column in columns if column.lower() in ("target", "to", "dst_id", "tonodeid"))
    rows = [columns]
    for number in range(3):
        cells = {source: ends[number], target: ends[(number + 1) % 3]}
        rows.append([cells.get(column, f"{number}.5") for column in columns])
    rows.append(["?"])
    text = "".join(separator.join(row) + "\n" for row in rows)
    for name in ("g.csv", "g.tsv", "g.txt"):
        if name != "g.csv" and separator != "\t" and ends[0] == "a":
            continue  # names between commas are CSV
        graph = read_graph(write_text(tmp_path / name, text))
        assert named_links(graph) == {(ends[0], ends[1]), (ends[1], ends[2]), (ends[2], ends[0])}
        assert graph.provenance["malformed"]["first"] == [{"file": str(tmp_path / name), "line": 5, "text": "?"}]


def test_bad_numbers_in_other_columns_are_malformed(tmp_path: Path) -> None:
    text = "w,target,source\n1,2,7\n1,2,x\n1,2\n1,-1,3\n1,2,3,4\n9,2,7\n"
    graph = read_graph(write_text(tmp_path / "g.csv", text))
    assert named_links(graph) == {("7", "2"), ("3", "2")}
    assert [bad["line"] for bad in graph.provenance["malformed"]["first"]] == [3, 4, 5]
    assert graph.provenance["malformed"]["first"][0]["text"] == "1,2,x"
    wide = read_graph(write_text(tmp_path / "h.csv", f"w,source,target\n1,{2**40},7\n"))
    assert named_links(wide) == {(str(2**40), "7")}


def test_parquet_columns_in_any_case(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"Weight": [1], "TARGET": ["b"], "Source": ["a"]}), tmp_path / "g.parquet")
    assert named_links(read_graph(tmp_path / "g.parquet")) == {("a", "b")}


@pytest.mark.parametrize("dictionary", [False, True])
def test_empty_and_missing_names_in_parquet_are_no_pages(tmp_path: Path, dictionary: bool) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = [pa.array(["a", "", None, "b"]), pa.array(["b", "c", "d", "a"])]
    columns = [column.dictionary_encode() for column in columns] if dictionary else columns
    parquet.write_table(pa.table(columns, ["source", "target"]), tmp_path / "g.parquet")
    graph = read_graph(tmp_path / "g.parquet")
    assert sorted(graph.names or ()) == ["a", "b"]
    assert [bad["line"] for bad in graph.provenance["malformed"]["first"]] == [2, 3]


odd_names = st.lists(
    st.sampled_from(["0", "1", "7", "007", "00", "a", "source", "target", "page", "link", "2001", str(2**63), "²"]),
    min_size=2,
    max_size=5,
    unique=True,
)


@pytest.mark.parametrize("name", ["g.csv", "g.tsv", "g.parquet", "g.npz"])
@quick
@given(names=odd_names, data=st.data())
def test_names_that_look_like_numbers_or_headers_come_back(
    tmp_path: Path, name: str, names: list[str], data: st.DataObject
) -> None:
    ids = st.integers(0, len(names) - 1)
    links = np.array(data.draw(st.lists(st.tuples(ids, ids), max_size=8)), np.int64).reshape(-1, 2)
    graph = Graph.from_arrays(links[:, 0], links[:, 1], len(names), names)
    write_graph(graph, tmp_path / name)
    assert named_links(read_graph(tmp_path / name)) == named_links(graph)


def test_csv_quotes_names_that_are_digits(tmp_path: Path) -> None:
    write_graph(Graph.from_edges([("007", "7"), ("7", "a")]), tmp_path / "g.csv")
    assert (tmp_path / "g.csv").read_text() == 'source,target\n"007","7"\n"7",a\n'


@pytest.mark.parametrize("name", ["", "line\nin"])
def test_csv_refuses_names_that_no_line_holds(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be written as CSV"):
        write_graph(Graph.from_edges([(name, "b")]), tmp_path / "g.csv")


@pytest.mark.parametrize("names", [["007", "7"], [str(2**63 - 1), "1"], ["7", "7"]])
def test_snap_refuses_numbers_that_would_not_come_back(tmp_path: Path, names: list[str]) -> None:
    with pytest.raises(UsageError, match="cannot be written as SNAP"):
        write_graph(Graph(np.array([0, 1, 1]), np.array([1], np.int32), names=Names.of(names)), tmp_path / "g.txt")


def test_snap_reports_pages_without_links(tmp_path: Path) -> None:
    graph = Graph.from_arrays(np.array([0]), np.array([1]), 3, ["0", "1", "100"])
    write_graph(graph, tmp_path / "g.txt")
    assert "# 1 pages without links are not stored\n" in (tmp_path / "g.txt").read_text()
    assert read_graph(tmp_path / "g.txt").pages == 2, "and no page is taken for another"
    write_graph(Graph.from_arrays(np.array([2]), np.array([0]), 3, ["2", "1", "0"]), tmp_path / "g.txt")
    again = read_graph(tmp_path / "g.txt")
    assert (again.pages, named_links(again)) == (3, {("0", "2")})


@pytest.mark.parametrize(
    "text",
    [
        '"a","b\nc,d"\ne,f\n',
        'a,b,"text\nc,d"\ne,f\n',
        '1,2\n"3\n4,5\n6",7\n',
        '1,2\n3,4,"x\n5,6\n"\n',
        'a,"say ""hi"""\na,"b ""c""\nd",e\n',
        'w,source,target\n"1\n",3,4\n',
    ],
)
def test_a_quote_over_the_end_of_a_line_is_rejected(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"g\.csv:[12]: a quote is not closed"):
        read_graph(write_text(tmp_path / "g.csv", text))


def test_quotes_that_open_no_field_are_text(tmp_path: Path) -> None:
    text = '1,2,5" disk\n# say "\n2,3,"a ""b"", c"\n3,1,""\n'
    graph = read_graph(write_text(tmp_path / "g.csv", text))
    assert (graph.links, graph.provenance["malformed"]["count"]) == (3, 0)
    graph = read_graph(write_text(tmp_path / "g.tsv", '"a\tb\n1,"\tc\n'))
    assert named_links(graph) == {('"a', "b"), ('1,"', "c")}


@pytest.mark.parametrize("text", ["# only\n% comments\n", "\n \n\n", "\ufeff# c\n"])
def test_nothing_but_comments_is_empty(tmp_path: Path, text: str) -> None:
    for name in ("g.txt", "g.tsv", "g.csv"):
        with pytest.raises(InputError, match="contains only comments"):
            read_graph(write_text(tmp_path / name, text))
    assert read_graph(tmp_path / "g.tsv", nodes=4).pages == 4


@pytest.mark.parametrize(("wide", "good"), [(2**63 - 2, True), (2**63 - 1, False), (2**63, False), (10**19, False)])
def test_the_largest_id(tmp_path: Path, wide: int, good: bool) -> None:
    graph = read_graph(write_text(tmp_path / "g.txt", f"1 2\n1 {wide}\n"))
    assert (graph.links, graph.provenance["malformed"]["count"]) == ((2, 0) if good else (1, 1))


GOOD: dict[str, Any] = {
    "indptr": np.array([0, 1, 2]),
    "indices": np.array([1, 0]),
    "name_offsets": np.array([0, 1, 2]),
    "name_bytes": np.frombuffer(b"ab", np.uint8),
}
BAD: list[dict[str, Any]] = [
    {"name_offsets": np.array([0, 2**40, 2])},
    {"name_offsets": np.array([0, 1, 2**40])},
    {"name_offsets": np.array([-5, 1, 2])},
    {"name_offsets": np.array([0, 1, 1])},
    {"name_offsets": np.array([0.0, 1, 2])},
    {"name_offsets": np.array(0)},
    {"name_offsets": np.array([], np.int64)},
    {"name_offsets": np.array([0, 2])},
    {"name_bytes": np.array([1, 2])},
    {"name_bytes": np.array(b"ab")},
    {"name_bytes": np.array([{}], object)},
    {"indptr": np.array([0, 5, 2])},
    {"indptr": np.array([0.0, 1, 2])},
    {"indptr": np.array(2)},
    {"indices": np.array([1, 2])},
    {"indices": np.array([1, -1])},
    {"indices": np.array([1, 2**63], np.uint64)},
    {"indices": np.array([[1, 0]])},
    {"indices": np.array([0.5, 1])},
    {"indices": np.array([1, None], object)},
    {"shape": np.array(2)},
    {"shape": np.array([3, 3])},
    {"data": np.array(0)},
    {"format": np.array(["csr", "csc"])},
    {"format": np.array(b"coo"), "row": np.array([0]), "col": np.array([0, 1]), "shape": np.array([2, 2])},
    {"format": np.array(b"coo"), "row": np.array([0]), "col": np.array([5]), "shape": np.array([2, 2])},
]


@attack("NumPy arrays whose headers lie", area="files from elsewhere", must_hold="rejected in one sentence")
def test_inconsistent_arrays_are_rejected(tmp_path: Path) -> None:
    np.savez(tmp_path / "g.npz", **GOOD)
    assert named_links(read_graph(tmp_path / "g.npz")) == {("a", "b"), ("b", "a")}
    for wrong in BAD:
        np.savez(tmp_path / "g.npz", **{**GOOD, **wrong})
        with pytest.raises(InputError, match=r"g\.npz"):
            read_graph(tmp_path / "g.npz")
    with (tmp_path / "g.npz").open("wb") as file:
        np.save(file, np.arange(3))
    with pytest.raises(InputError, match="a NumPy array"):
        read_graph(tmp_path / "g.npz")


@attack("damaged graph archives", area="files from elsewhere", must_hold="rejected, or the same graph")
@quick
@given(data=st.data())
def test_a_damaged_archive_is_rejected_or_harmless(tmp_path: Path, data: st.DataObject) -> None:
    write_graph(Graph.from_edges([("a", "b"), ("b", "c")]), tmp_path / "g.npz")
    content = bytearray((tmp_path / "g.npz").read_bytes())
    for _ in range(3):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        graph = read_graph(write_text(tmp_path / "g.npz", bytes(content)))
    except InputError:
        return
    assert first_bad_row(graph.indptr, graph.indices) == -1  # what was read can be walked


def test_the_caller_chooses_the_error_of_a_table_of_names(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="table of names"):
        Names.checked(np.array([0, 9]), np.empty(2, np.uint8), tmp_path, GraphError)
    assert list(Names.checked(np.array([0, 1]), np.array([97], np.uint8), tmp_path)) == ["a"]


def test_repeated_names_are_noted(tmp_path: Path) -> None:
    np.savez(tmp_path / "g.npz", **{**GOOD, "name_bytes": np.frombuffer(b"aa", np.uint8)})
    assert "1 names occur more than once" in read_graph(tmp_path / "g.npz").provenance["notes"][0]
    write_text(tmp_path / "x-vertices.txt", "0\tcom.a\n1\tcom.a\n")
    write_text(tmp_path / "x-edges.txt", "0\t1\n")
    assert "1 names occur more than once" in " ".join(read_graph(tmp_path / "x-edges.txt").provenance["notes"])


@attack("random bytes as a Matrix Market file", area="files from elsewhere", must_hold="rejected in one sentence")
@pytest.mark.parametrize(
    "start",
    [
        b"",
        b"%%MatrixMarket matrix coordinate pattern general\n",
        b"%%MatrixMarket matrix coordinate pattern general\n5 5 4\n",
        b"%%MatrixMarket matrix array real general\n9 9\n",
    ],
)
@quick
@given(body=st.binary(min_size=30, max_size=300))
def test_random_bytes_are_no_matrix(tmp_path: Path, start: bytes, body: bytes) -> None:
    with pytest.raises(InputError, match=r"g\.mtx cannot be read"):
        read_graph(write_text(tmp_path / "g.mtx", start + b"\xff" + body))


@attack("impossible sizes of a matrix", area="files from elsewhere", must_hold="rejected in one sentence")
@pytest.mark.parametrize("sizes", ["9 9", "9 9 1 1", "2147483648 2147483648 1", "9 9 99999999999", "3 3 10", "-1 2 3"])
def test_impossible_sizes_of_a_matrix(tmp_path: Path, sizes: str) -> None:
    banner = "%%MatrixMarket matrix coordinate pattern general\n%\n\n"
    with pytest.raises(InputError, match=r"g\.mtx cannot be read"):
        read_graph(write_text(tmp_path / "g.mtx", f"{banner}{sizes}\n1 2\n"))


def test_a_graph_folder_is_written_under_its_usual_suffix(tmp_path: Path) -> None:
    assert detect(tmp_path / "out.graph", writing=True) is FORMATS["surveyor"]
    write_graph(TRIANGLE, tmp_path / "out.graph")
    assert read_graph(tmp_path / "out.graph") == TRIANGLE
    with pytest.raises(UsageError, match="set the format with --format"):
        write_graph(TRIANGLE, tmp_path / "out.what")


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_the_hint_names_the_tool_of_the_archive(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"g.txt{suffix}"
    write_graph(TRIANGLE, path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError) as caught:
        read_graph(path)
    assert ("gzip -t" in caught.value.hint) == (suffix == ".gz")


PROSE = [
    "A crawler that reads pages\nin order of importance until it is\ncertain that enough is captured.\n",
    "the quick fox\nthe lazy dog\nboth are here\n",
    "import os\n\ndef main(argv):\n    x = os.getcwd()\n    return x + 1\n\nif x == 1:\n    main(None)\n",
    "- first point\n- second point\n- third\n",
    "Dear all,\nthanks; bye\n",
]


@pytest.mark.parametrize("text", PROSE)
@pytest.mark.parametrize("name", ["README.md", "x.py", "links.txt", "links.tsv"])
def test_prose_and_code_are_not_links(text: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as caught:
        read_graph(tmp_path / name)
    assert len(str(caught.value).splitlines()) == 2


LISTS = [
    "a b\nb c\nc a\n",
    "# a comment\na b 0.5\nb c 1e-3\n",
    "a b 3 2026-01-02T10:00:00Z\nb c 4 2026-01-03\n",
    "a b {'weight': 3}\nb c {}\n",
    "http://a.org/?x=(1) http://b.org/;\nhttp://b.org/ http://a.org/?q=a,b\n",
    "a.org. b.org.\nb.org. c.org.\n",
    "source target kind\na b friend of\nb c colleague\n",
    "1 2 x y\n2 3 z w\n",
]


@pytest.mark.parametrize("text", LISTS)
def test_lists_of_links_with_more_columns_are_read(text: str, tmp_path: Path) -> None:
    (tmp_path / "links.txt").write_text(text)
    assert read_graph(tmp_path / "links.txt").links >= 2


def test_a_fragment_of_html_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("<p>Some text <a href='/'>home</a>\n")
    with pytest.raises(InputError, match="an HTML page"):
        read_graph(tmp_path / "a.txt")
