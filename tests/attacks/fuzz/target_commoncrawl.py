"""Common Crawl graphs: vertices and edges."""

from __future__ import annotations

import gzip

from reading import PARTS, check, write_parts

from surveyor.graph.formats import read_graph

NAME = "commoncrawl"
TOKENS = [PARTS, b"0\tcom.example\n", b"1\tcom.example.www\t5\n", b"0\t1\n", b"\t", b"com.www."]
VERTICES = b"0\tcom.example\n1\tcom.example.www\n2\torg.x\n"
EDGES = b"0\t1\n1\t2\n2\t0\n"


def seeds() -> list[bytes]:
    return [
        VERTICES + PARTS + EDGES,
        gzip.compress(VERTICES, mtime=0) + PARTS + gzip.compress(EDGES, mtime=0),
        b"0\tcom.a\t3\n1\tcom.b\t4\n" + PARTS + b"0\t1\n",
    ]


def run(data: bytes) -> None:
    folder = write_parts(data, ["x-vertices.txt", "x-edges.txt"], "commoncrawl")
    check(read_graph(folder, threads=1))
