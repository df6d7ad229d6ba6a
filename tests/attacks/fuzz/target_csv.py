"""CSV of names or ids, with quotes."""

from __future__ import annotations

from reading import read

NAME = "csv"
TOKENS = [b"source,target\n", b"src;weight;dst\n", b'""', b'","', b'"a,b"', b'"a"";b"', b"1,2\n"]


def seeds() -> list[bytes]:
    return [
        b'source,target\n"http://a.example/?x=1,2","b ""quoted"""\nx,y\n',
        b"weight;to;from\n0.5;1;2\n0.25;3;1\n",
        b"1,2\n2,3\n",
        b"a,b,c\nx,y\n",
    ]


def run(data: bytes) -> None:
    read(data, "links.csv", "csv")
