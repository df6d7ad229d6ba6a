"""SNAP edge lists: two numbers a line."""

from __future__ import annotations

from reading import read

NAME = "snap"
TOKENS = [
    b"# Nodes: 5 Edges: 3\n",
    b"# FromNodeId\tToNodeId\n",
    b"0\t1\n",
    b"2147483647 0\n",
    b"9223372036854775806 1\n",
    b"%",
]


def seeds() -> list[bytes]:
    return [
        b"# Nodes: 4 Edges: 3\n# FromNodeId\tToNodeId\n0\t1\n1\t2\n3\t0\n",
        b"0 1\n1 2 0.5\n2,0\n",
        b"5000000000 1\n1 5000000000\n",
    ]


def run(data: bytes) -> None:
    read(data, "links.txt", "snap")
