"""GEXF: XML."""

from __future__ import annotations

from reading import read, sample
from scratch import scratch

from surveyor.graph.formats import write_graph

NAME = "gexf"
TOKENS = [
    b'<!DOCTYPE g [<!ENTITY a "b">]>',
    b'<!ENTITY % p SYSTEM "file:///etc/passwd">',
    b"&a;",
    b"&#0;",
    b"<![CDATA[x]]>",
    b'<node id="c"/>',
    b'<edge source="c" target="d"/>',
    b'edgedefault="undirected"',
    b"<graph>",
    b"</graph>",
    b"<x>" * 100,
    b'<?xml version="1.0" encoding="UTF-16"?>',
    b'<?xml version="1.0" encoding="x-unknown"?>',
]


def seeds() -> list[bytes]:
    path = scratch() / "seed.gexf"
    write_graph(sample(), path)
    return [path.read_bytes(), *MORE]


def run(data: bytes) -> None:
    read(data, "graph.gexf", "gexf")


MORE = [
    b'<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2"><graph defaultedgetype="directed"><nodes>'
    b'<node id="0" label="a"/><node id="1" label="b"/></nodes><edges><edge id="0" source="0" target="1" weight="2"/>'
    b"</edges></graph></gexf>",
]
