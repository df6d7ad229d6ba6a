"""Pieces built directly from files: the same graph as `read_graph` reads, in bounded memory."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surveyor import Graph, InputError, UsageError, read_graph, write_graph
from surveyor.cluster.building import build_pieces
from surveyor.graph.formats import streams
from surveyor.graph.formats.intake import ReadOptions
from surveyor.graph.pieces import build
from surveyor.graph.pieces.folder import Pieces
from surveyor.graph.pieces.shuffle import Buckets
from surveyor.graph.pieces.split import join
from surveyor.graph.pieces.write import WriteOptions
from surveyor.web.interning import key_words
from webs import graphs, random_web

SMALL = WriteOptions(memory=1 << 14, threads=1)


def named_links(pieces: Pieces) -> set[tuple[str, str]]:
    graph = join(pieces)
    sources = np.repeat(np.arange(graph.pages), graph.out_degrees)
    return {(graph.name(a), graph.name(b)) for a, b in zip(sources.tolist(), graph.indices.tolist(), strict=True)}


def links_of(graph: Graph) -> set[tuple[str, str]]:
    sources = np.repeat(np.arange(graph.pages), graph.out_degrees)
    return {(graph.name(a), graph.name(b)) for a, b in zip(sources.tolist(), graph.indices.tolist(), strict=True)}


PAGES = st.sampled_from(["http://a.example/", "http://A.example/x", "https://b.example/", "c.example", "é", "x"])


@given(st.lists(st.tuples(PAGES, PAGES), min_size=1, max_size=40), st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_names(tmp_path_factory, links: list[tuple[str, str]], count: int) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path_factory.mktemp("build")
    source = folder / "links.tsv"
    source.write_text("".join(f"{a}\t{b}\n" for a, b in links), "utf-8")
    pieces = build_pieces(source, folder / "pieces", count, format="tsv", options=SMALL)
    graph = read_graph(source, format="tsv")
    assert named_links(pieces) == links_of(graph)
    assert sorted(piece.name(page) for piece in pieces for page in range(piece.pages)) == sorted(graph.names or ())
    assert Pieces.open(folder / "pieces").checksum == pieces.checksum
    for name in ("links_read", "self_links_dropped", "repeats_merged"):
        assert pieces.provenance[name] == graph.provenance[name]
    hosts: dict[str, set[int]] = {}
    for piece in pieces:
        assert piece.names is not None
        assert list(piece.names) == sorted(piece.names, key=str.encode)
        for name in piece.names:
            hosts.setdefault(name.lower().partition("//")[2].partition("/")[0] or name, set()).add(piece.number)
    assert all(len(where) == 1 for where in hosts.values())


@pytest.mark.parametrize("suffix", [".csv.gz", ".parquet", ".graphml", ".npz"])
@pytest.mark.parametrize("count", [1, 4])
def test_formats_with_names(tmp_path: Path, suffix: str, count: int) -> None:
    web = random_web(300, 2000, 1)
    names = [f"http://{page % 17}.example/{page}" for page in range(web.pages)]
    graph = Graph(web.indptr, web.indices, names=Graph.from_edges([(name, name) for name in names]).names)
    write_graph(graph, tmp_path / f"links{suffix}")
    pieces = build_pieces(tmp_path / f"links{suffix}", tmp_path / "pieces", count, options=SMALL)
    assert named_links(pieces) == links_of(graph)
    assert pieces.named
    assert Pieces.open(tmp_path / "pieces").links == graph.links


def test_the_order_of_the_lines_does_not_matter(tmp_path: Path) -> None:
    lines = [f"http://{i * 7 % 13}.example/{i % 40}\thttp://{i * 5 % 11}.example/{i % 30}\n" for i in range(500)]
    (tmp_path / "a.tsv").write_text("".join(lines))
    (tmp_path / "b.tsv").write_text("".join(reversed(lines)))
    built = [build_pieces(tmp_path / f"{name}.tsv", tmp_path / name, 4) for name in "ab"]
    for one, other in zip(*built, strict=True):
        assert one.names == other.names
        assert one.indices.tobytes() == other.indices.tobytes()


@given(graphs(), st.integers(1, 5))
@settings(max_examples=20, deadline=None)
def test_a_known_number_of_pages(tmp_path_factory, graph: Graph, count: int) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path_factory.mktemp("build")
    write_graph(graph, folder / "links.mtx")
    assert join(build_pieces(folder / "links.mtx", folder / "pieces", count, options=SMALL)) == graph
    write_graph(graph, folder / "links.txt")  # states the number of pages
    pieces = build_pieces(folder / "links.txt", folder / "more", count, options=SMALL)
    assert join(pieces) == graph
    assert all(piece.numbers is None for piece in pieces)


@pytest.mark.parametrize("count", [1, 3])
def test_numbers_beyond_the_ids_of_one_graph_with_gaps(tmp_path: Path, count: int) -> None:
    rng = np.random.default_rng(5)
    ids = np.unique(rng.integers(0, 2**61, 400))
    links = {(int(a), int(b)) for a, b in rng.choice(ids, (3000, 2)) if a != b}
    (tmp_path / "links.txt").write_text("".join(f"{a} {b}\n" for a, b in links))
    pieces = build_pieces(tmp_path / "links.txt", tmp_path / "pieces", count, options=SMALL)
    assert not pieces.named
    numbers = np.concatenate([piece.page_numbers(np.arange(piece.pages)) for piece in pieces])
    assert numbers.tolist() == sorted({page for link in links for page in link})
    found = set()
    opened = list(pieces)
    for piece in opened:
        for sources, targets in piece.links():
            owners = piece.global_ids(sources)
            for owner, target in zip(owners.tolist(), targets.tolist(), strict=True):
                source = opened[owner >> 32].page_numbers(np.array([owner & 0xFFFFFFFF]))
                found.add((int(source[0]), int(piece.page_numbers(np.array([target]))[0])))
    assert found == links
    work = [piece.links for piece in pieces.counts]
    assert max(work) < 1.3 * sum(work) / count


def test_ids_beyond_the_limit_with_a_stated_number_of_pages(tmp_path: Path) -> None:
    pages = 2**31 + 5000
    (tmp_path / "links.txt").write_text(f"0 {pages - 1}\n{pages - 1} 7\n")
    pages_of: list[int] = []

    def record(_folder: Path, pages: list[int], *_: object) -> None:
        pages_of.extend(pages)

    with pytest.MonkeyPatch.context() as patch:  # writing 2**31 pages would take 50 GB
        patch.setattr(build, "write_pieces", record)
        build_pieces(tmp_path / "links.txt", tmp_path / "pieces", 4, ReadOptions(nodes=pages))
    assert sum(pages_of) == pages
    assert max(pages_of) < 2**31


def test_little_memory_spills_and_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spilled: list[int] = []
    close = Buckets.__exit__

    def watched(buckets: Any, *error: object) -> None:
        spilled.append(buckets.spilled)
        close(buckets, *error)

    monkeypatch.setattr(Buckets, "__exit__", watched)
    rng = np.random.default_rng(1)
    text = "".join(
        f"http://{a % 97}.example/{a}\thttp://{b % 97}.example/{b}\n" for a, b in rng.integers(0, 9000, (60_000, 2))
    )
    with gzip.open(tmp_path / "links.tsv.gz", "wt") as file:
        file.write(text)
    large = build_pieces(tmp_path / "links.tsv.gz", tmp_path / "large", 5)
    assert sum(spilled) == 0
    small = build_pieces(tmp_path / "links.tsv.gz", tmp_path / "small", 5, options=SMALL)
    assert sum(spilled) > 2_000_000
    assert small.checksum == large.checksum
    assert not list(tmp_path.glob("surveyor-*"))


def test_a_graph_folder_is_split(tmp_path: Path) -> None:
    graph = random_web(200, 1000, 1)
    graph.save(tmp_path / "graph")
    assert join(build_pieces(tmp_path / "graph", tmp_path / "pieces", 3)) == graph


@pytest.mark.parametrize(
    ("text", "reading", "problem"),
    [
        ("0 1\n1 99\n", ReadOptions(nodes=5), "outside 0..4"),
        ("a\tb\nb\tc\n", ReadOptions(nodes=5), "contains names, not ids"),
        ("0 1\n", ReadOptions(nodes=-1), "nodes must be from 0"),
        ("0 1\n2 x\n3 y\n4 z\n", ReadOptions(), "more malformed lines"),
        ("0 1\n2 x\n", ReadOptions(strict=True), "not a link"),
    ],
)
def test_wrong_sources(tmp_path: Path, text: str, reading: ReadOptions, problem: str) -> None:
    source = tmp_path / ("links.tsv" if "\t" in text else "links.txt")
    source.write_text(text)
    with pytest.raises((InputError, UsageError), match=problem):
        build_pieces(source, tmp_path / "pieces", 2, reading, format="snap" if "x" in text else None)
    assert [path.name for path in tmp_path.iterdir()] == [source.name]


def test_names_with_the_same_hash_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from surveyor.kernels import string_table

    real, name_key = string_table.hash_spans, key_words()

    def weak(text: Any, spans: Any, key: Any, hashes: Any) -> None:
        real(text, spans, key, hashes)
        if np.array_equal(key, name_key):
            hashes %= np.uint64(100)

    monkeypatch.setattr(string_table, "hash_spans", weak)
    for block in (1, 10**6):  # in different blocks of text, and in the same
        monkeypatch.setattr(streams, "BLOCK", block)
        (tmp_path / "links.tsv").write_text("".join(f"h{i}.example\th{i + 1}.example\n" for i in range(60)))
        with pytest.raises(InputError, match="same hash"):
            build_pieces(tmp_path / "links.tsv", tmp_path / "pieces", 2)
    with pytest.raises(InputError, match="same hash"):
        build_pieces(tmp_path / "links.tsv", tmp_path / "pieces", 2)
