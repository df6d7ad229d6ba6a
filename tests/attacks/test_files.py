"""Files from elsewhere that are no graphs, or that lie: each is rejected in one sentence, within bounds."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tracemalloc
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attack import attack
from scipy import io as scipy_io
from scipy import sparse

import surveyor as sv
from console import CommandResult
from surveyor.arrays import map_npy, read_npy
from surveyor.errors import GraphError, InputError, SurveyorError
from surveyor.graph.csr import Graph
from surveyor.graph.formats import read_graph, read_ranks, write_graph
from surveyor.graph.formats.registry import file_type
from surveyor.store import checkpoint, signing
from surveyor.store.snapshot import restore, snapshot

AREA = "files from elsewhere"
ONE = "one sentence that names the file"
HEAD = "%%MatrixMarket matrix coordinate "


def rejected(path: Path, data: bytes, match: str | None = None, **options: Any) -> str:
    path.write_bytes(data)
    with pytest.raises(SurveyorError, match=match) as caught:
        read_graph(path, **options)
    assert str(path) in caught.value.problem
    assert "\n" not in caught.value.problem
    return caught.value.problem


GARBAGE = {
    "the 63 bytes that crash SciPy": b"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2 junk",
    "a value that ends in a letter": f"{HEAD}complex hermitian\n2 2 2\n1 1 1 0\n2 1 0 1k".encode(),
    "a value too many": f"{HEAD}real general\n2 2 1\n1 2 1.5 7\n".encode(),
    "no value": f"{HEAD}real general\n2 2 1\n1 2\n".encode(),
    "a fraction among integers": f"{HEAD}integer general\n2 2 1\n1 2 1.5\n".encode(),
    "an index beyond the size": f"{HEAD}pattern general\n2 2 1\n3 1\n".encode(),
    "index 0": f"{HEAD}pattern general\n2 2 1\n0 1\n".encode(),
    "an index of 20 digits": f"{HEAD}pattern general\n2 2 1\n99999999999999999999 1\n".encode(),
    "fewer entries than stated": f"{HEAD}pattern general\n2 2 2\n1 2\n".encode(),
    "more entries than stated": f"{HEAD}pattern general\n2 2 1\n1 2\n2 1\n".encode(),
    "10**18 entries stated": f"{HEAD}pattern general\n2000000000 2000000000 1000000000000000000\n1 2\n".encode(),
    "two thousand million pages without links": f"{HEAD}pattern general\n2147483647 2147483647 0\n".encode(),
    "negative sizes": f"{HEAD}pattern general\n-2 -2 1\n1 2\n".encode(),
    "no sizes": f"{HEAD}pattern general\n".encode(),
    "an unknown field": f"{HEAD}quaternion general\n2 2 1\n1 2\n".encode(),
    "a rectangle": f"{HEAD}pattern general\n2 3 1\n1 2\n".encode(),
    "too few values of a dense matrix": b"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n",
}


@attack("Matrix Market files that lie or end in garbage", area=AREA, must_hold=ONE)
@pytest.mark.parametrize("case", GARBAGE)
def test_matrix_market_files_that_lie(tmp_path: Path, case: str) -> None:
    rejected(tmp_path / "m.mtx", GARBAGE[case], r"m\.mtx")


@pytest.mark.parametrize("field", ["pattern", "real", "integer", "complex"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric", "hermitian"])
def test_valid_matrix_market_is_read_as_scipy_reads_it(tmp_path: Path, field: str, symmetry: str) -> None:
    rng = np.random.default_rng(1)
    for form in ("coordinate", "array"):
        if form == "array" and field == "pattern":
            continue
        size = int(rng.integers(1, 12))
        cells = [(row, column) for column in range(size) for row in range(size)]
        if symmetry != "general":
            cells = [(row, column) for row, column in cells if row >= column + (symmetry == "skew-symmetric")]
        if form == "coordinate":
            cells = [cells[at] for at in sorted(rng.permutation(len(cells))[: len(cells) // 2])]
        lines = [f"%%MatrixMarket matrix {form} {field} {symmetry}", "% a comment", f"{size} {size}"]
        lines[-1] += f" {len(cells)}" if form == "coordinate" else ""
        for row, column in cells:
            values = [str(rng.choice(["0", "7", "-3"])) for _ in range(1 + (field == "complex"))]
            values = ["1.5e-3" if value == "7" and field in ("real", "complex") else value for value in values]
            if symmetry == "hermitian" and row == column and field == "complex":
                values[1] = "0"
            shown = [] if field == "pattern" else values
            place = [str(row + 1), str(column + 1)] if form == "coordinate" else []
            lines.append("  ".join(place + shown))
        path = tmp_path / "m.mtx"
        path.write_text("\n".join(lines) + "\n")
        matrix = sparse.coo_matrix(scipy_io.mmread(path))
        links = {(int(a), int(b)) for a, b, c in zip(matrix.row, matrix.col, matrix.data, strict=True) if c and a != b}
        graph = read_graph(path)
        assert graph.pages == size
        assert {(page, int(other)) for page in range(size) for other in graph.links_of(page)} == links


def npy(header: str, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    text = header.encode("latin-1") + b"\n"
    length = len(text).to_bytes(2 if version == b"\x01\x00" else 4, "little")
    return b"\x93NUMPY" + version + length + text + data


ARRAYS = {
    "objects": npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"cos\nsystem\n"),
    "records": npy("{'descr': [('a', '<i8')], 'fortran_order': False, 'shape': (1,), }", bytes(8)),
    "a negative shape": npy("{'descr': '<i8', 'fortran_order': False, 'shape': (-1,), }", bytes(8)),
    "a shape that overflows": npy(
        "{'descr': '<i8', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4), }", bytes(8)
    ),
    "10**15 numbers": npy("{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000000,), }", bytes(8)),
    "one byte too few": npy("{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }", bytes(7)),
    "one byte too many": npy("{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }", bytes(9)),
    "code as a shape": npy("{'descr': '<i8', 'fortran_order': False, 'shape': (10**9,), }", bytes(8)),
    "deep nesting": npy("{'descr': '<i8', 'fortran_order': False, 'shape': " + "(" * 3000 + ")" * 3000 + "}"),
    "a header of 4 GB": b"\x93NUMPY\x02\x00\xff\xff\xff\xff{",
    "version 9": npy("{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }", bytes(8), b"\x09\x00"),
    "raw bytes": npy("{'descr': '|V8', 'fortran_order': False, 'shape': (1,), }", bytes(8)),
    "nothing": b"",
}


@attack("arrays (.npy) that lie, hold objects or code", area=AREA, must_hold="rejected before anything is allocated")
@pytest.mark.parametrize("case", ARRAYS)
def test_arrays_that_lie(tmp_path: Path, case: str) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(ARRAYS[case])
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"npy|array|type"):
            read_npy(ARRAYS[case])
        with pytest.raises(ValueError, match=r"npy|array|type"):
            map_npy(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(5),
        np.arange(6, dtype=">i4").reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array(b"csr"),
        np.array("coo"),
        np.empty(0, np.int32),
        np.ones((2, 0)),
        np.array([True, False]),
        np.array([1 + 2j]),
        np.array(["2020-01-01"], "M8[D]"),
    ],
)
def test_arrays_come_back_as_numpy_wrote_them(tmp_path: Path, array: Any) -> None:
    path = tmp_path / "a.npy"
    np.save(path, array)
    for found in (read_npy(path.read_bytes()), map_npy(path)):
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)


def packed(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def saved(array: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


LINKS = {"indptr.npy": saved(np.array([0, 1, 2])), "indices.npy": saved(np.array([1, 0]))}
ARCHIVES = {
    "indptr that falls": packed({**LINKS, "indptr.npy": saved(np.array([0, 2, 1, 2]))}),
    "indices beyond the pages": packed({**LINKS, "indices.npy": saved(np.array([1, 2**31 - 1]))}),
    "negative indices": packed({**LINKS, "indices.npy": saved(np.array([-1, 0]))}),
    "floating point indices": packed({**LINKS, "indices.npy": saved(np.array([1.0, 0.0]))}),
    "an array that is no array": packed({**LINKS, "indices.npy": b"text"}),
    "a header that Python's tokenizer rejects": packed(
        {**LINKS, "indices.npy": npy("{'descr': '<i8', 'fortran_order': False, 'shape': (((2,), }", bytes(16))}
    ),
    "a member without .npy": packed({**LINKS, "format": b"csr"}),
    "pickled objects": packed({**LINKS, "data.npy": ARRAYS["objects"]}),
    "text as data": packed({**LINKS, "data.npy": saved(np.array(["a", "b"]))}),
    "two thousand million pages without links": packed(
        {
            "format.npy": saved(np.array("coo")),
            "row.npy": saved(np.empty(0, np.int64)),
            "col.npy": saved(np.empty(0, np.int64)),
            "shape.npy": saved(np.array([2**31 - 1, 2**31 - 1])),
        }
    ),
}


@attack("npz archives whose arrays do not fit each other", area=AREA, must_hold=ONE)
@pytest.mark.parametrize("case", ARCHIVES)
def test_archives_of_arrays_that_lie(tmp_path: Path, case: str) -> None:
    rejected(tmp_path / "g.npz", ARCHIVES[case], r"g\.npz", format="npz")


@attack("an npz whose directory understates a member", area=AREA, must_hold="no more is unpacked than stated")
def test_a_member_that_unpacks_to_more_than_stated(tmp_path: Path) -> None:
    data = packed({**LINKS, "data.npy": saved(np.zeros(1 << 20))})
    size = len(saved(np.zeros(1 << 20))).to_bytes(4, "little")
    rejected(tmp_path / "g.npz", data.replace(size, (128).to_bytes(4, "little")), format="npz")


@attack("an npz that unpacks to 1,000 times its size", area=AREA, must_hold="rejected before anything is unpacked")
def test_an_archive_of_zeros_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = packed({**LINKS, "indices.npy": saved(np.zeros(1 << 20))})
    monkeypatch.setattr("surveyor.graph.formats.matrices.FREE", 1 << 16)
    monkeypatch.setattr("zipfile.ZipFile.open", lambda *_, **__: pytest.fail("a member was opened"))
    rejected(tmp_path / "g.npz", data, "expand to", format="npz")


def test_a_graph_of_few_patterns_is_read_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surveyor.graph.formats.matrices.FREE", 1 << 16)
    pages, links = 20_000, 80  # every page links to the same ones
    graph = sv.Graph(
        np.maximum(np.arange(pages + 1) - links, 0) * links, np.tile(np.arange(links, dtype=np.int32), pages - links)
    )
    sv.write_graph(graph, tmp_path / "g.npz")
    assert np.array_equal(sv.read_graph(tmp_path / "g.npz").indices, graph.indices)


LAUGHS = "".join(f'<!ENTITY e{n + 1} "' + f"&e{n};" * 10 + '">' for n in range(9))
GRAPH = '<graph edgedefault="directed"><node id="a"/><node id="b"/><edge source="a" target="b"/></graph>'
NETWORKS = {
    "a thousand million laughs": f'<!DOCTYPE x [<!ENTITY e0 "ha">{LAUGHS}]><graphml><node id="&e9;"/></graphml>',
    "an entity that is a file": '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><graphml>&e;</graphml>',
    "a parameter entity": '<!DOCTYPE x [<!ENTITY % p SYSTEM "http://127.0.0.1/x"> %p;]><graphml/>',
    "an undeclared node": "<graphml>" + GRAPH.replace('<node id="b"/>', "") + "</graphml>",
    "an edge without an end": "<graphml>" + GRAPH.replace('target="b"', "") + "</graphml>",
    "a thousand elements deep": f"<graphml>{'<x>' * 1000}{'</x>' * 1000}</graphml>",
    "an attribute of 2 MB": '<graphml><graph><node id="' + "x" * 2_000_000 + '"/></graph></graphml>',
    "an unknown encoding": f'<?xml version="1.0" encoding="UTF-88"?><graphml>{GRAPH}</graphml>',
    "no end": f"<graphml>{GRAPH}",
    "no graph": "<graphml/>",
    "another kind of XML": f"<x>{GRAPH}</x>",
}


@attack("GraphML and GEXF with entities, without nodes, nested", area=AREA, must_hold=ONE + ", and no entity expanded")
@pytest.mark.parametrize("kind", ["graphml", "gexf"])
@pytest.mark.parametrize("case", NETWORKS)
def test_networks_that_attack(tmp_path: Path, case: str, kind: str) -> None:
    tracemalloc.start()
    try:
        rejected(tmp_path / f"g.{kind}", NETWORKS[case].replace("graphml", kind).encode(), format=kind)
        assert tracemalloc.get_traced_memory()[1] < 1 << 25
    finally:
        tracemalloc.stop()


PACKERS: dict[str, Any] = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


@attack("files that unpack to 300 MB from a few kilobytes", area=AREA, must_hold="refused while reading, in 100 MB")
@pytest.mark.parametrize("kind", PACKERS)
def test_bombs_are_not_unpacked(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from surveyor.graph.formats import streams

    monkeypatch.setattr(streams, "FREE", 1 << 22)
    data = b"1 2\n" + b"% " + b" " * (1 << 24) + b"\n" + b"2 3\n"
    problem = rejected(tmp_path / "links.txt", PACKERS[kind](data))
    assert "times its size" in problem


def test_a_packed_file_that_shrinks_well_is_still_read(tmp_path: Path) -> None:
    path = tmp_path / "links.txt.gz"
    path.write_bytes(gzip.compress(b"1 2\n" * 100_000))
    assert read_graph(path).links == 1


BITS = {
    "10**15 pages": b"nodes=1000000000000000\narcs=1\n",
    "more pages than bits": b"nodes=2147483000\narcs=1\n",
    "negative pages": b"nodes=-5\narcs=1\n",
    "a window of 2**40": b"nodes=3\narcs=1\nwindowsize=1099511627776\n",
    "other links than stated": b"nodes=3\narcs=7\n",
    "a number of 10,000 digits": b"nodes=" + b"9" * 10_000 + b"\narcs=1\n",
}


@attack("BVGraph properties that do not fit the stream", area=AREA, must_hold=ONE + ", nothing allocated")
@pytest.mark.parametrize("case", BITS)
def test_bvgraphs_that_lie(tmp_path: Path, case: str) -> None:
    (tmp_path / "web.graph").write_bytes(b"\xff" * 8)
    (tmp_path / "web.properties").write_bytes(BITS[case])
    with pytest.raises(InputError, match="web") as caught:
        read_graph(tmp_path / "web.graph", format="bvgraph")
    assert "\n" not in caught.value.problem


@attack("lists of parts that lead out of their folder", area=AREA, must_hold="no file elsewhere is opened")
@pytest.mark.parametrize("line", ["/etc/passwd", "../../../etc/passwd", "a/../../b", "x\0y"])
def test_lists_of_parts_stay_in_their_folder(tmp_path: Path, line: str) -> None:
    (tmp_path / "x-vertices.paths").write_text(line + "\n")
    (tmp_path / "x-edges.txt").write_text("0\t1\n")
    with pytest.raises(InputError, match="is not a valid path of a part"):
        read_graph(tmp_path)


WARC = b"WARC/1.1\r\nWARC-Type: response\r\nContent-Length: 10\r\n\r\nsome words here\r\n"
TYPES = {
    "WARC": WARC,
    "gzip'd WARC": gzip.compress(WARC),
    "ARC": b"filedesc://a.arc 0.0.0.0 20080430204825 text/plain 76\n1 0 Alexa\n",
    "PDF": b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n",
    "HTML": b"<!doctype html>\n<html><body>a b\nc d</body></html>",
    "HTML without a type": b"\xef\xbb\xbf\n<HTML lang=en>\na b\n",
    "HTML after a comment": b"<!-- saved from url -->\n<html>\na b\n",
    "sitemap": b'<?xml version="1.0"?>\n<urlset xmlns="x">\n<url> <loc>a</loc>\n</urlset>',
    "SVG": b'<?xml version="1.0"?><svg xmlns="x"> </svg>',
    "PNG": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "JPEG": b"\xff\xd8\xff\xe0\0\x10JFIF",
    "GIF": b"GIF89a\x01\0\x01\0",
    "WebP": b"RIFF\x24\0\0\0WEBPVP8 ",
    "MP4": b"\0\0\0\x18ftypmp42\0\0\0\0",
    "ZIP": packed({"notes.txt": b"a b"}),
    "WACZ": packed({"archive/data.warc.gz": b"x", "datapackage.json": b"{}"}, zipfile.ZIP_STORED),
    "DOCX": packed({"[Content_Types].xml": b"x", "word/document.xml": b"x"}),
    "SQLite": b"SQLite format 3\0" + bytes(84),
    "ELF": b"\x7fELF\x02\x01\x01" + bytes(9),
    "JSON": json.dumps({"links": [["a", "b"]]}).encode(),
    "tar": b"name".ljust(257, b"\0") + b"ustar\x0000" + bytes(248),
    "7z": b"7z\xbc\xaf\x27\x1c\0\x04",
}
NAMES = ("thing", "thing.txt", "thing.csv", "thing.mtx")


@attack(
    "documents, images, archives, programs instead of a graph", area=AREA, must_hold="its type is named, exit code 2"
)
@pytest.mark.parametrize("kind", TYPES)
def test_other_files_are_named_for_what_they_are(tmp_path: Path, kind: str) -> None:
    for name in NAMES:
        problem = rejected(tmp_path / name, TYPES[kind])
        assert "not a graph" in problem, problem
    word = kind.split()[-1] if kind.startswith("gzip") else kind.split()[0]
    named = {"DOCX": "Office", "ELF": "program"}.get(word, word)
    assert named.lower() in problem.lower()


@pytest.mark.parametrize("command", [["top"], ["rank"], ["graph", "info"], ["domains"], ["simulate"]])
def test_commands_name_the_type_and_the_command_to_use(
    tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    hints = {"gzip'd WARC": "cannot be imported yet", "HTML": "surveyor crawl URL", "PDF": "graph build"}
    for kind, hint in hints.items():
        path = tmp_path / "thing"
        path.write_bytes(TYPES[kind])
        done = CommandResult(capsys, *command, str(path))
        assert done.code == 2
        assert f"{path} is a" in done.err
        assert hint in done.err


@pytest.mark.parametrize(
    "text",
    [
        b"0 1\n1 2\n",
        b"%PDF 1\n1 2\n2 3\n",
        b"BM MZ\nID3 x\n",
        b"{a} {b}\n[c] d\n",
        b"html head\nbody html\n",
        b"source,target\na,b\n",
    ],
)
def test_texts_of_links_are_no_other_files(text: bytes) -> None:
    assert file_type(text) is None


@attack("prose with fewer links than other lines", area=AREA, must_hold="refused with both counts and an example")
@pytest.mark.parametrize("name", ["prose.tsv", "prose.csv", "prose.txt"])
def test_text_with_more_malformed_lines_than_links_is_refused(tmp_path: Path, name: str) -> None:
    mark = "," if name.endswith("csv") else "\t"
    lines = [f"a{number}{mark}b" for number in range(120)] + ["word"] * 121
    problem = rejected(tmp_path / name, "\n".join(lines).encode(), "more malformed lines")
    assert "(121)" in problem
    assert "(120)" in problem
    assert f"{name}:121: 'word'" in problem
    (tmp_path / name).write_text("\n".join(lines[:-1]))
    assert read_graph(tmp_path / name).provenance["malformed"]["count"] == 120


def test_a_survey_is_named_as_one(tmp_path: Path) -> None:
    (tmp_path / "survey.toml").write_text("")
    with pytest.raises(InputError, match="is a survey, not a graph"):
        read_graph(tmp_path)


@attack("Parquet files cut short or changed", area=AREA, inputs=200, must_hold="read, or one sentence; never a crash")
def test_parquet_files_that_are_damaged(tmp_path: Path) -> None:
    path = tmp_path / "g.parquet"
    write_graph(Graph.from_edges([("a", "b"), ("b", "c")]), path)
    whole, rng = path.read_bytes(), np.random.default_rng(1)
    for turn in range(200):
        data = bytearray(whole)
        if turn % 2:
            data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        else:
            del data[int(rng.integers(len(data))) :]
        path.write_bytes(data)
        with suppress(SurveyorError):
            read_graph(path, format="parquet")


@attack("a Parquet file whose column names are not UTF-8", area=AREA, must_hold=ONE)
def test_parquet_columns_with_names_that_are_no_text(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "g.parquet"
    pq.write_table(pa.table({"source": [1], "target": [2]}), path, store_schema=False)
    rejected(path, path.read_bytes().replace(b"source", b"so\xf2rce"), r"g\.parquet", format="parquet")


LIES: dict[str, Any] = {
    "a path elsewhere": {"files": {"../other/indptr.npy": {"bytes": 1, "crc32": "0"}}},
    "a file left out": {"files": {}},
    "endless pages": {"pages": float("inf")},
    "other pages": {"pages": 10**15},
    "negative links": {"links": -1},
    "no object": {"provenance": 5},
}


@attack("graph.json that lies or names other files", area=AREA, must_hold=ONE + "; no other file is opened")
@pytest.mark.parametrize("case", LIES)
def test_descriptions_of_graphs_that_lie(tmp_path: Path, case: str) -> None:
    folder = Graph.from_edges([("a", "b")]).save(tmp_path / "g")
    about = json.loads((folder / "graph.json").read_text())
    about.pop("checksum", None)
    (folder / "graph.json").write_text(json.dumps({**about, **LIES[case]}))
    with pytest.raises(GraphError) as caught:
        Graph.open(folder)
    assert str(folder) in caught.value.problem


@attack("graph folders with right checksums and wrong arrays", area=AREA, must_hold="refused before a kernel runs")
@pytest.mark.parametrize("name", ["indptr.npy", "in_indptr.npy", "indices.npy", "in_indices.npy", "names.npy"])
@pytest.mark.parametrize("value", [-1, 2**31 - 1])
def test_arrays_of_a_folder_that_lead_nowhere(tmp_path: Path, name: str, value: int) -> None:
    from surveyor.graph.folder_files import checksum

    place = Graph.from_edges([("a", "b"), ("b", "c"), ("c", "a")]).save(tmp_path / "g")
    array = np.load(place / name)
    array[1] = value
    np.save(place / name, array)
    about = json.loads((place / "graph.json").read_text())
    about.pop("checksum", None)
    about["files"][name] = {"bytes": (place / name).stat().st_size, "crc32": checksum(place / name)}
    (place / "graph.json").write_text(json.dumps(about))
    with pytest.raises(GraphError):
        Graph.open(place)


class Kept:
    """Something that a checkpoint keeps."""

    def __init__(self) -> None:
        self.inner = [1, 2]


CLASSES = ["tempfile:_TemporaryFileCloser", "subprocess:Popen", "builtins:object", "surveyor.errors:annotations"]


@attack("checkpoints that name classes of other packages", area="surveys from elsewhere", must_hold="none is made")
@pytest.mark.parametrize("name", CLASSES)
def test_checkpoints_make_no_foreign_objects(name: str) -> None:
    kept = Kept()
    frozen = snapshot({"kept": kept})
    assert frozen is not None
    arrays, about = frozen
    about["things"] = [["plain", name, {"name": "/nowhere", "delete": True}]]
    with pytest.raises(ValueError, match="not a saved state"):
        restore({"kept": kept}, arrays, about)
    assert kept.inner == [1, 2]


@attack("checkpoints with types that NumPy would evaluate", area="surveys from elsewhere", must_hold="refused")
@pytest.mark.parametrize("kind", ["(2,)i8,(", "i8,,", "O", "|O8", "V8", "<i8 ", 5, None])
def test_checkpoints_with_strange_types(kind: Any) -> None:
    kept = Kept()
    kept.inner = np.arange(3)  # type: ignore[assignment]
    frozen = snapshot({"kept": kept})
    assert frozen is not None
    arrays, about = frozen
    place = next(thing for thing in about["things"] if thing[0] == "array")
    place[5] = kind
    with pytest.raises(ValueError, match="not a saved state"):
        restore({"kept": kept}, arrays, about)


@attack("checkpoints whose arrays lie elsewhere or are none", area="surveys from elsewhere", must_hold="passed over")
@pytest.mark.parametrize("name", ["../../elsewhere", "/etc/passwd", "numbers"])
def test_checkpoints_with_other_arrays_are_passed_over(tmp_path: Path, name: str) -> None:
    assert checkpoint.save(tmp_path, {"numbers": np.arange(3)}, position=5, key="k")
    assert checkpoint.load(tmp_path, position=5, key="k") is not None
    place = tmp_path / f"{5:012d}"
    (tmp_path.parent / "elsewhere.npy").write_bytes((place / "numbers.npy").read_bytes())
    data = ARRAYS["objects"] if name == "numbers" else (place / "numbers.npy").read_bytes()
    (place / "numbers.npy").write_bytes(data)
    result = json.loads((place / "header.json").read_text())
    result.pop("signature")
    result["arrays"] = {name: checkpoint._sum(data)}
    result["signature"] = signing.sign(checkpoint.PURPOSE, checkpoint._plain(result))
    (place / "header.json").write_text(json.dumps(result))
    assert checkpoint.load(tmp_path, position=5, key="k") is None


@attack(
    "positions of ranks beyond any number of pages", area="files from elsewhere", must_hold="rejected in one sentence"
)
@pytest.mark.parametrize("position", ["1" + 30 * "0", "inf", "-1e300"])
def test_positions_of_ranks(tmp_path: Path, position: str) -> None:
    path = tmp_path / "ranks.txt"
    path.write_text(f"{position}\t2.9E7\t1\t0.01\tcom.example\n", "utf-8")
    with pytest.raises(InputError, match="a position or a count above"):
        read_ranks(path)
