"""GRAPHML: XML."""

from __future__ import annotations

from reading import read, sample
from scratch import scratch

from surveyor.graph.formats import write_graph

NAME = "graphml"
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
    path = scratch() / "seed.graphml"
    write_graph(sample(), path)
    return [path.read_bytes(), *MORE]


def run(data: bytes) -> None:
    read(data, "graph.graphml", "graphml")


MORE = [
    b'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    b'<key id="w" for="edge" attr.name="weight" attr.type="double">'
    b'<default>1.0</default></key><graph edgedefault="undirected"><node id="a"/><node id="b"/>'
    b'<edge id="e1" source="a" target="b"><data key="w">0.5</data></edge></graph></graphml>',
]
