"""Links of WAT files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from surveyor import Graph, InputError, read_graph
from surveyor.cluster.building import build_pieces
from surveyor.graph.pieces.split import join

SITE = {
    "http://a.example/": [
        {"path": "A@/href", "url": "/x?b=1#top"},
        {"path": "A@/href", "url": "HTTP://B.example"},
        {"path": "IMG@/src", "url": "/picture.png"},
        {"path": "A@/href", "url": "http://c.example/", "rel": "nofollow noopener"},
        {"path": "AREA@/href", "url": "mailto:someone@a.example"},
    ],
    "http://b.example/": [{"path": "AREA@/href", "url": "http://a.example/"}],
}


def record(about: bytes, kind: str = "metadata") -> bytes:
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nContent-Type: application/json\r\nContent-Length: {len(about)}\r\n\r\n"
    return head.encode() + about + b"\r\n\r\n"


def page(address: str, links: object, **head: str) -> bytes:
    html = {"Head": head, "Links": links}
    return record(
        json.dumps(
            {
                "Envelope": {
                    "WARC-Header-Metadata": {"WARC-Target-URI": address},
                    "Payload-Metadata": {"HTTP-Response-Metadata": {"HTML-Metadata": html}},
                }
            }
        ).encode()
    )


def links_of(graph: Graph) -> set[tuple[str, str]]:
    sources = np.repeat(np.arange(graph.pages), graph.out_degrees).tolist()
    return {(graph.name(a), graph.name(b)) for a, b in zip(sources, graph.indices.tolist(), strict=True)}


EXPECTED = {
    ("http://a.example/", "http://a.example/x?b=1"),
    ("http://a.example/", "http://b.example/"),
    ("http://b.example/", "http://a.example/"),
}


def test_links_of_a_file_and_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "wat").mkdir()
    for place, (address, links) in enumerate(SITE.items()):
        data = record(b"software: test", "warcinfo") + page(address, links)
        (tmp_path / "wat" / f"part-{place}.warc.wat.gz").write_bytes(gzip.compress(data))
    (tmp_path / "all.wat").write_bytes(b"".join(page(address, links) for address, links in SITE.items()))
    for source in ("wat", "all.wat"):
        graph = read_graph(tmp_path / source)
        assert links_of(graph) == EXPECTED
        assert graph.provenance["notes"] == ["1 links marked nofollow, ugc or sponsored are left out"]
        pieces = build_pieces(tmp_path / source, tmp_path / f"{source}.pieces", 3)
        assert links_of(join(pieces)) == EXPECTED


def test_a_base_element_and_records_without_links(tmp_path: Path) -> None:
    other = record(json.dumps({"Envelope": {"WARC-Header-Metadata": {}}}).encode())
    data = other + page("http://a.example/", [{"path": "A@/href", "url": "y"}], Base="http://b.example/d/")
    (tmp_path / "x.wat").write_bytes(data)
    assert links_of(read_graph(tmp_path / "x.wat")) == {("http://a.example/", "http://b.example/d/y")}


def test_damage(tmp_path: Path) -> None:
    good = page("http://a.example/", SITE["http://a.example/"])
    bad = record(b"{") + record(b"[]") + record(b"[" * 100_000)
    (tmp_path / "x.wat").write_bytes(bad[: len(record(b"{"))] + good)
    assert read_graph(tmp_path / "x.wat").provenance["malformed"]["count"] == 1
    (tmp_path / "y.wat").write_bytes(bad)
    with pytest.raises(InputError, match="all 3 of its data lines are malformed"):
        read_graph(tmp_path / "y.wat")
    (tmp_path / "z.wat").write_bytes(b"hello\n")
    with pytest.raises(InputError, match="cannot be read as WAT"):
        read_graph(tmp_path / "z.wat")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no WAT files"):
        read_graph(tmp_path / "empty", format="wat")
    (tmp_path / "t.wat.gz").write_bytes(gzip.compress(good)[:-20])
    with pytest.raises(InputError):
        read_graph(tmp_path / "t.wat.gz")
