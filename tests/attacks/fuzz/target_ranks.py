"""Common Crawl's ranks."""

from __future__ import annotations

from scratch import scratch

from surveyor.graph.formats import read_ranks

NAME = "ranks"
TOKENS = [b"#harmonicc_pos\t", b"---", b"2.9799486E7", b"\t", b"com.example", b"1e400"]


def seeds() -> list[bytes]:
    head = b"#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev\t#n_hosts\n"
    rows = b"1\t2.9799486E7\t1\t0.01\tcom.example\t5\n2\t1.5\t---\t---\torg.x\t1\n"
    return [head + rows, b"1\t2.5\t1\t0.5\tcom.example\n"]


def run(data: bytes) -> None:
    path = scratch() / "ranks.txt"
    path.write_bytes(data)
    ranks = read_ranks(path)
    assert len(ranks.names) == ranks.pagerank.size == ranks.harmonic_position.size
