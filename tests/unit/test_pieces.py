"""Graphs in pieces: every link exactly once, in the piece of its target; damaged folders are rejected."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surveyor import Graph, GraphError, UsageError
from surveyor.graph.folder_files import checksum, seal
from surveyor.graph.pieces.folder import ARRAYS, DESCRIPTION, NAME_FILES, NUMBERS, Piece, Pieces, global_ids, split_ids
from surveyor.graph.pieces.split import join, split_graph
from surveyor.graph.pieces.write import WriteOptions
from surveyor.rank.pieces.sweeps import PieceSweeps, RunOptions
from webs import chain, graphs, random_web, star


def links_of(pieces: Pieces) -> list[tuple[int, int]]:
    """All links as page numbers, read obviously: row by row through the global ids."""
    opened = list(pieces)
    found = []
    for piece in opened:
        for page in range(piece.pages):
            row = piece.indices[piece.indptr[page] : piece.indptr[page + 1]]
            assert (np.diff(row) > 0).all(), "ascending and distinct"
            for source in piece.global_ids(row).tolist():
                owner, local = opened[source >> 32], source & 0xFFFFFFFF
                assert 0 <= local < owner.pages
                found.append(
                    (int(owner.page_numbers(np.array([local]))[0]), int(piece.page_numbers(np.array([page]))[0]))
                )
    return found


def check(pieces: Pieces, graph: Graph) -> None:
    """Compare a folder of pieces with its graph, by the definitions of the format."""
    sources = np.repeat(np.arange(graph.pages), graph.out_degrees)
    found = links_of(pieces)
    assert len(found) == len(set(found)) == graph.links == pieces.links
    assert set(found) == set(zip(sources.tolist(), graph.indices.tolist(), strict=True))
    opened = list(pieces)
    numbers = np.concatenate([piece.page_numbers(np.arange(piece.pages)) for piece in opened])
    assert sorted(numbers.tolist()) == list(range(graph.pages))
    for piece in opened:
        here = piece.page_numbers(np.arange(piece.pages))
        assert piece.out_degrees.tolist() == graph.out_degrees[here].tolist()
        assert piece.counts.dangling == np.count_nonzero(piece.out_degrees == 0)
        for other in opened:
            assert piece.sends_to(other.number).tolist() == other.ghosts_of(piece.number).tolist()
        assert piece.ghosts_of(piece.number).size == 0
        used = np.unique(piece.indices[piece.indices >= piece.pages]) - piece.pages
        assert used.tolist() == list(range(piece.counts.ghosts)), "every ghost has a link"
        if graph.names is not None:
            assert [piece.name(page) for page in range(piece.pages)] == [graph.name(page) for page in here.tolist()]


@given(graphs(), st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_every_link_is_once_in_the_piece_of_its_target(tmp_path_factory, graph: Graph, count: int) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path_factory.mktemp("pieces") / "pieces"
    check(split_graph(graph, folder, count), graph)
    pieces = Pieces.open(folder)
    check(pieces, graph)
    assert join(pieces) == graph


@given(graphs(), st.integers(1, 5), st.lists(st.integers(0, 4), min_size=24, max_size=24))
@settings(max_examples=40, deadline=None)
@pytest.mark.slow
def test_hosts_are_not_divided(tmp_path_factory, graph: Graph, count: int, hosts: list[int]) -> None:  # type: ignore[no-untyped-def]
    names = [f"https://h{hosts[page]}.example/{page}" for page in range(graph.pages)]
    named = Graph.from_arrays(
        np.repeat(np.arange(graph.pages), graph.out_degrees), graph.indices, graph.pages, names=names
    )
    pieces = split_graph(named, tmp_path_factory.mktemp("pieces") / "pieces", count)
    check(pieces, named)
    assert join(pieces) == named
    where: dict[str, set[int]] = {}
    for piece in pieces:
        for page in range(piece.pages):
            where.setdefault(piece.name(page).split("/")[2], set()).add(piece.number)
    assert all(len(found) == 1 for found in where.values())
    for page, name in enumerate(names):
        found = pieces.find(name)
        assert found is not None
        owner, local = split_ids(np.array([found]))
        assert pieces[int(owner[0])].page_numbers(local).tolist() == [page]
    assert pieces.find("https://nowhere.example/") is None


def test_pieces_have_similar_work(tmp_path: Path) -> None:
    graph = random_web(4000, 40_000, 5)
    pieces = split_graph(graph, tmp_path / "pieces", 5)
    work = [piece.links + 4 * piece.pages for piece in pieces.counts]
    assert max(work) < 1.1 * sum(work) / 5
    assert pieces.find("17") is not None
    assert pieces.find("4000") is None


def test_one_giant_host_leaves_pieces_empty(tmp_path: Path) -> None:
    names = [f"https://giant.example/{page}" for page in range(50)] + ["https://small.example/"]
    graph = Graph.from_arrays(np.arange(50), np.arange(1, 51), names=names)
    pieces = split_graph(graph, tmp_path / "pieces", 7)
    assert sorted(piece.pages for piece in pieces.counts) == [0, 0, 0, 0, 0, 1, 50]
    check(pieces, graph)


def test_little_memory_gives_the_same_bytes(tmp_path: Path) -> None:
    graph = random_web(3000, 60_000, 2)
    big = split_graph(graph, tmp_path / "big", 4)
    small = split_graph(graph, tmp_path / "small", 4, WriteOptions(memory=1 << 16, threads=1))
    assert big.checksum == small.checksum
    check(small, graph)


def test_global_ids_reach_beyond_the_limit_of_one_graph() -> None:
    ids = global_ids(4095, np.array([2**31 - 2]))
    assert [part.tolist() for part in split_ids(ids)] == [[4095], [2**31 - 2]]


def _change(**changes: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "pieces.json"
        about = json.loads(path.read_text()) | changes
        del about["checksum"]
        path.write_text(json.dumps({**about, "checksum": seal(about)}))

    return change


def _counts(**changes: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        counts = json.loads((folder / "pieces.json").read_text())["pieces"]
        _change(pieces=[{**counts[0], **changes}, *counts[1:]])(folder)

    return change


def _rewrite(name: str, array: object, kind: str) -> Callable[[Path], None]:
    """Replace an array, with its right size and checksum in the description."""

    def change(folder: Path) -> None:
        np.save(folder / name, np.array(array, kind))
        files = json.loads((folder / "pieces.json").read_text())["files"]
        files[name] = {"bytes": (folder / name).stat().st_size, "crc32": checksum(folder / name)}
        _change(files=files)(folder)

    return change


def _flip(folder: Path) -> None:
    data = bytearray((folder / "00001/indices.npy").read_bytes())
    data[-1] ^= 1
    (folder / "00001/indices.npy").write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda folder: (folder / "00000/indptr.npy").unlink(), "is missing"),
        (lambda folder: (folder / "00000/indptr.npy").write_bytes(b""), "has 0 bytes instead of"),
        (_flip, "checksum differs"),
        (lambda folder: (folder / "pieces.json").write_text("{}"), "is damaged"),
        (lambda folder: (folder / "pieces.json").write_text("[" * 10**5), "is damaged"),
        (_change(version=99), "newer surveyor"),
        (_change(format="recipe"), "describes a 'recipe'"),
        (_change(files={}), "is damaged"),
        (_change(pieces=[]), "is damaged"),
        (_counts(pages=-1), "impossible counts"),
        (_counts(ghosts=2**31), "impossible counts"),
        (_counts(pages=3), "its totals are not those of its pieces"),
        (_counts(ghosts=3), "does not contain"),
        (_rewrite("00000/indices.npy", [0, 1, 2, 3, 99], "int32"), "pages that do not exist"),
        (_rewrite("00000/indices.npy", [0, 1, 2, 3, -1], "int32"), "pages that do not exist"),
        (_rewrite("00000/indptr.npy", [0, 9, 1, 2, 3, 4, 5], "int64"), "pages that do not exist"),
        (_rewrite("00001/ghosts.npy", [77], "int32"), "pages that do not exist"),
        (_rewrite("00000/sends.npy", [3], "int32"), "pages that do not exist"),
        (_rewrite("00000/ghost_starts.npy", [0, 5, 0], "int64"), "pages that do not exist"),
        (_rewrite("00000/out_degrees.npy", [1, 1, 1, 1, 1, 1], "float64"), "does not contain"),
        (_rewrite("00000/out_degrees.npy", [1, 1, 1, 1, 1, 2], "uint32"), "9 links, but out-degrees of 10"),
        (_rewrite("00000/out_degrees.npy", [1, 1, 1, 1, 2, 0], "uint32"), "another number of pages without links"),
        (_rewrite("00000/out_degrees.npy", [1, 1, 1, 2, 1, 1], "uint32"), "out-degrees of 10"),
        (_counts(dangling=1), "another number of pages without links"),
        (_counts(links=4), "its totals are not those of its pieces"),
        (_change(pages=10**18), "its totals are not those of its pieces"),
        (_change(links="x"), "its totals are not those of its pieces"),
        (_change(version=-5), "its version is -5"),
        (_change(version=True), "its version is True"),
    ],
)
def test_damaged_folders_are_rejected(tmp_path: Path, damage: Callable[[Path], None], problem: str) -> None:
    folder = tmp_path / "pieces"
    split_graph(chain(10), folder, 2)
    damage(folder)
    with pytest.raises(GraphError, match=problem):
        Pieces.open(folder)


def _altered(folder: Path, name: str, change: Callable[[np.ndarray[Any, Any]], object]) -> None:
    """Change an array, with its right checksum in the description."""
    array = np.load(folder / name)
    change(array)
    _rewrite(name, array, str(array.dtype))(folder)


def test_links_that_no_graph_has_are_rejected(tmp_path: Path) -> None:
    graph = random_web(300, 3000, 4)
    whole = split_graph(graph, tmp_path / "whole", 3)
    piece = whole[1]
    rows = np.flatnonzero(np.diff(piece.indptr) > 2)
    first = int(piece.indptr[rows[0]])
    row = piece.indices[first : int(piece.indptr[rows[0] + 1])].tolist()
    other = next(page for page in range(row[0] + 1, row[1]) if page != rows[0])  # it has another out-degree then
    degrees = piece.out_degrees
    low, high = int(np.argmin(np.where(degrees == 0, 99, degrees))), int(degrees.argmax())
    cases: list[tuple[str, Callable[[np.ndarray[Any, Any]], object], str]] = [
        ("indices", lambda ids: ids.__setitem__(slice(first, first + 2), row[1]), "twice, out of order"),
        ("indices", lambda ids: ids.__setitem__(slice(first, first + 2), [row[1], row[0]]), "twice, out of order"),
        ("indices", lambda ids: ids.__setitem__(first, rows[0]), "from a page to itself|out of order"),
        ("indices", lambda ids: ids.__setitem__(first, other), "out-degrees that are not those of its links"),
        (
            "out_degrees",
            lambda ids: ids.__setitem__([low, high], [ids[high], ids[low]]),
            "out-degrees that are not those of its links",
        ),
    ]
    for number, (name, change, problem) in enumerate(cases):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "whole", folder)
        _altered(folder, f"00001/{name}.npy", change)
        with pytest.raises(GraphError, match=problem):
            Pieces.open(folder)


@pytest.mark.parametrize("at_once", [1, 2, 3, 1 << 21])
def test_rows_are_checked_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    folder = tmp_path / "pieces"
    split_graph(Graph.from_arrays(np.array([0, 1, 2, 3, 1]), np.array([4, 4, 4, 4, 0]), 5), folder, 1)
    links = Piece.links
    monkeypatch.setattr(Piece, "links", lambda piece: links(piece, at_once))
    Pieces.open(folder)
    _altered(folder, "00000/indices.npy", lambda ids: ids.__setitem__(3, ids[2]))
    with pytest.raises(GraphError, match="has a link twice"):
        Pieces.open(folder)


@pytest.mark.parametrize("total", [0.0, -1.0, float("nan"), float("inf")])
def test_ranks_without_a_sum_are_damage(tmp_path: Path, total: float) -> None:
    """Links that out-degrees do not count make the sum of ranks grow or vanish; folders may be opened unverified."""

    class Sums:
        def run(self, _name: str, _arguments: object = None) -> list[list[float]]:
            return [[total, 0.0]]

    pieces = split_graph(chain(10), tmp_path / "pieces", 1)
    options = RunOptions(0.85, "uniform", False, 1e-6, 10)
    with pytest.raises(GraphError, match="is damaged: the ranks of its pages sum to"):
        PieceSweeps(pieces, options, Sums())  # type: ignore[arg-type]


def test_a_flipped_byte_in_any_file_is_found(tmp_path: Path) -> None:
    names = [f"https://{page % 5}.example/{page}" for page in range(40)]
    graph = Graph.from_arrays(np.arange(39), np.arange(1, 40), names=names)
    folder = tmp_path / "pieces"
    pieces = split_graph(graph, folder, 3)
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    assert {path.name for path in files} == {*ARRAYS, *NAME_FILES, NUMBERS, DESCRIPTION}
    assert len(files) == 1 + len(pieces) * (len(ARRAYS) + len(NAME_FILES) + 1)
    for path in files:
        data = path.read_bytes()
        for place in {0, len(data) // 2, len(data) - 1}:
            changed = bytearray(data)
            changed[place] ^= 1
            path.write_bytes(changed)
            with pytest.raises(GraphError, match=r"checksum differs|is damaged"):
                Pieces.open(folder)
        path.write_bytes(data)
    Pieces.open(folder)


@pytest.mark.parametrize("name", ["numbers.npy", "names.npy", "names.utf8"])
def test_files_without_a_checksum_are_rejected(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "pieces"
    split_graph(chain(10), folder, 2)
    other = folder / "00001" / name
    assert not other.exists()
    np.save(other.with_suffix(".npy"), np.zeros(5, np.int64))
    other.with_suffix(".npy").rename(other)
    with pytest.raises(GraphError, match=f"{name} is not part of the graph"):
        Pieces.open(folder)


def test_folders_in_use_are_kept(tmp_path: Path) -> None:
    graph = star(5)
    split_graph(graph, tmp_path / "pieces", 2)
    with pytest.raises(UsageError, match="already exists"):
        split_graph(graph, tmp_path / "pieces", 2)
    replaced = split_graph(graph, tmp_path / "pieces", 3, WriteOptions(replace=True))
    assert len(replaced) == 3
    (tmp_path / "pieces" / "00000" / "diary").touch()
    with pytest.raises(UsageError, match="contains 00000"):
        split_graph(graph, tmp_path / "pieces", 2, WriteOptions(replace=True))
    with pytest.raises(UsageError, match="not a graph in pieces"):
        split_graph(graph, tmp_path, 2)
    with pytest.raises(UsageError, match=r"pieces must be in \[1, 4096\], got 0"):
        split_graph(graph, tmp_path / "other", 0)
    with pytest.raises(GraphError, match="does not exist"):
        Pieces.open(tmp_path / "none")
    assert [path.name for path in tmp_path.iterdir()] == ["pieces"]
