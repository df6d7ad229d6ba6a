"""TSV of names or ids."""

from __future__ import annotations

from reading import read

NAME = "tsv"
TOKENS = [
    b"source\ttarget\n",
    b"src\tweight\tdst\n",
    b"# links between names, without a header\n",
    b"a\tb\n",
    b"1\t2\n",
]


def seeds() -> list[bytes]:
    return [
        b"source\ttarget\nhttp://a.example/\thttp://b.example/\nx\ty\n",
        b"weight\tto\tfrom\n0.5\t1\t2\n0.25\t3\t1\n",
        b"# Nodes: 5\n1\t2\n2\t3\n",
        b"\xef\xbb\xbf\xc3\xa4 b c\tsecond\r\nx\ty\tz\r\n",
    ]


def run(data: bytes) -> None:
    read(data, "links.tsv", "tsv")
