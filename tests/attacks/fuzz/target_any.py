"""Files of no stated format: detected by their first bytes, packed or not."""

from __future__ import annotations

import bz2
import gzip
import lzma

from reading import read

NAME = "any"
TOKENS = [
    b"WARC/1.1\r\n",
    b"%PDF-1.7",
    b"<!DOCTYPE html>",
    b"\x89PNG\r\n",
    b"PAR1",
    b"PK\x03\x04",
    b"%%MatrixMarket",
    b"0 1\n",
]


def seeds() -> list[bytes]:
    links = b"0 1\n1 2\n2 0\n"
    return [
        links,
        b"a.example\tb.example\nb.example\tc.example\n",
        gzip.compress(links, mtime=0) + gzip.compress(links, mtime=0),
        bz2.compress(links),
        lzma.compress(links),
        b"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n",
        b'<graphml><graph edgedefault="directed"><node id="a"/></graph></graphml>',
    ]


def run(data: bytes) -> None:
    read(data, "links")
