"""Parquet tables of links."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from reading import numbered, read, sample
from scratch import scratch

from surveyor.graph.formats import write_graph

NAME = "parquet"
TOKENS = [b"PAR1", b"source", b"target", b"surveyor.pages", b"\x15\x00", b"\x15\x02", b"\x16\xff\xff\xff\xff\x0f"]


def seeds() -> list[bytes]:
    path = scratch() / "seed.parquet"
    written = []
    for graph in (sample(), numbered()):
        write_graph(graph, path)
        written.append(path.read_bytes())
    return [
        *written,
        _table({"from": ["a", "b", None], "to": ["b", "c", ""]}, compression="snappy"),
        _table({"src": [1, 2, None], "dst": [2, 3, 4]}, compression="none", use_dictionary=False),
        _table({"a": pa.array([1, 2], pa.uint64()), "b": pa.array([2, 1], pa.uint64())}, data_page_version="2.0"),
        _table({"a": pa.array(["x", "y"], pa.large_binary()), "b": ["y", "x"], "c": [[1], [2, 3]]}, compression="gzip"),
    ]


def run(data: bytes) -> None:
    read(data, "links.parquet", "parquet")


def _table(columns: dict[str, Any], **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, **options)
    return out.getvalue()
