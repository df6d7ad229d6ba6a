"""Archives of arrays: by SciPy, or ours with names; packed anew after changes to an array, so that they are reached."""

from __future__ import annotations

import io
import random
import zipfile
from typing import Any

import numpy as np
from mutation import Mutator
from reading import numbered, read, sample
from scratch import scratch

from surveyor.graph.formats import write_graph

NAME = "npz"
TOKENS = [
    *(b"indptr.npy", b"indices.npy", b"data.npy", b"row.npy", b"col.npy", b"shape.npy", b"format.npy"),
    *(b"'<i8'", b"'|O'", b"'>i4'", b"'<f8'", b"'<M8[s]'", b"'<U3'", b"(1000000000000,)", b"(-1,)", b"()", b"True"),
    *(b"csr", b"csc", b"coo", b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"\x93NUMPY\x01\x00", b"\x93NUMPY\x03\x00"),
]
ENDS = np.array([0, 1])


def seeds() -> list[bytes]:
    return [
        _written(sample()),
        _written(numbered()),
        _packed(format=np.array("coo"), row=ENDS, col=ENDS[::-1], shape=np.array([3, 3]), data=np.ones(2)),
        _packed(indptr=np.array([0, 1, 2]), indices=np.array([1, 0], np.uint32)),
        _packed(
            format=np.array(b"csc"),
            indptr=np.array([0, 2, 2], np.int32),
            indices=ENDS.astype(np.int32),
            shape=np.array([2, 2]),
            data=np.array([0.0, 2.0]),
        ),
    ]


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Change the arrays inside an archive, and close it again."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {info.filename: archive.read(info) for info in archive.infolist() if info.file_size < 1 << 16}
    except Exception:  # what was broken before stays so
        return data
    if not members:
        return data
    name, mutator = rng.choice(list(members)), Mutator(rng, TOKENS)
    members[name] = mutator.mutate(members[name], rng.choice(list(members.values())))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for member, text in members.items():
            archive.writestr(member, text)
    return out.getvalue()


def run(data: bytes) -> None:
    read(data, "matrix.npz", "npz")


def _written(graph: Any) -> bytes:
    path = scratch() / "seed.npz"
    write_graph(graph, path)
    return path.read_bytes()


def _packed(**arrays: Any) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()
