"""Matrix Market text."""

from __future__ import annotations

from reading import read

NAME = "matrixmarket"
KINDS = ("pattern", "real", "integer", "complex")
SHAPES = ("general", "symmetric", "skew-symmetric", "hermitian")
TOKENS = [
    b"%%MatrixMarket matrix coordinate pattern general\n",
    *(f"%%MatrixMarket matrix coordinate {kind} {shape}\n3 3 2\n".encode() for kind in KINDS for shape in SHAPES),
    *(word.encode() for word in (*KINDS, *SHAPES, "array", "coordinate", "vector", "1e309", "0x1p3", "1.5", "-0.0")),
]


def seeds() -> list[bytes]:
    return [
        b"%%MatrixMarket matrix coordinate pattern general\n% made by hand\n3 3 3\n1 2\n2 3\n3 1\n",
        b"%%MatrixMarket matrix coordinate real symmetric\n4 4 3\n2 1 0.5\n3 3 1e-3\n4 2 0\n",
        b"%%MatrixMarket matrix coordinate integer skew-symmetric\n3 3 1\n3 1 -7\n",
        b"%%MatrixMarket matrix coordinate complex hermitian\n2 2 2\n1 1 1 0\n2 1 0 1\n",
        b"%%MatrixMarket matrix array real general\n2 2\n0\n1.5\n0\n-2\n",
    ]


def run(data: bytes) -> None:
    read(data, "matrix.mtx", "matrixmarket")
