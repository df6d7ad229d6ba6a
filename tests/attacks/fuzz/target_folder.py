"""Graph folders: sizes and checksums are made right again after each change, so that the arrays are reached."""

from __future__ import annotations

import json
import random
from typing import Any

from mutation import Mutator
from reading import PARTS, check, numbered, rows_fit, sample, write_parts
from scratch import scratch

from surveyor.graph import folder as folders
from surveyor.graph.csr import Graph
from surveyor.graph.folder_files import checksum

NAME = "folder"
FILES = ["graph.json", *folders.ARRAYS, *folders.NAME_FILES]
TOKENS = [
    PARTS,
    *(b"'<i8'", b"'<i4'", b"'|O'", b"'>i8'", b"(1000000000000,)", b"(-1,)", b"True", b"\x93NUMPY\x01\x00"),
    *(b'"pages": ', b'"links": ', b'"../indptr.npy"', b'"crc32"', b'"bytes"', b"Infinity", b"NaN", b"[" * 2000),
]


def seeds() -> list[bytes]:
    made = []
    for number, graph in enumerate((sample(), numbered())):
        place = graph.save(scratch() / f"seed-{number}", replace=True)
        made.append(PARTS.join((place / name).read_bytes() for name in FILES if (place / name).exists()))
    return made


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Change one of the files."""
    parts = data.split(PARTS)
    place = rng.randrange(len(parts))
    parts[place] = Mutator(rng, TOKENS).mutate(parts[place], rng.choice(parts))
    return PARTS.join(parts)


def run(data: bytes) -> None:
    place = write_parts(data, FILES, "folder")
    about = _read(data.split(PARTS)[0])
    if isinstance(about, dict) and isinstance(about.get("files"), dict):
        for name in FILES[1:]:
            if (place / name).exists() and name in about["files"]:
                size = (place / name).stat().st_size
                about["files"][name] = {"bytes": size, "crc32": checksum(place / name)}
        about.pop("checksum", None)
        (place / "graph.json").write_text(json.dumps(about))
    graph = Graph.open(place)
    check(graph)
    rows_fit(graph.in_links)


def _read(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
