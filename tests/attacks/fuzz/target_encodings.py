"""Content encodings: whatever is fed, the output stays within the room, and only Unreadable is raised."""

from __future__ import annotations

import gzip
import random
import zlib
from importlib import import_module
from typing import Any

from surveyor.fetch.encodings import ENCODINGS, Unreadable, decoder_of

NAME = "encodings"
ROOM = 100_000
NAMES = (*sorted(ENCODINGS), "gzip, gzip", "deflate, gzip")
TOKENS = [b"\x1f\x8b\x08\x00", b"\x78\x9c", b"\x28\xb5\x2f\xfd", b"\x00\x00\xff\xff", b"\x03\x00", bytes(200)]


def packed(name: str, body: bytes) -> bytes:
    if name == "zstd":
        library: Any = import_module("zstandard")
        return bytes(library.compress(body))
    if name == "br":
        library = import_module("brotli")
        return bytes(library.compress(body))
    if ", " in name:
        first, second = name.split(", ")
        return packed(second, packed(first, body))
    return gzip.compress(body, mtime=0) if name == "gzip" else zlib.compress(body)


def seeds() -> list[bytes]:
    bodies = [b"<p>hello</p>" * 20, bytes(300_000), random.Random(7).randbytes(500)]  # noqa: S311
    return [bytes([number]) + packed(name, body) for number, name in enumerate(NAMES) for body in bodies]


def run(data: bytes) -> None:
    name = NAMES[(data[0] if data else 0) % len(NAMES)]
    decoder = decoder_of(name)
    assert decoder is not None
    whole, room = 0, ROOM
    step = max(1, len(data) // (1 + len(data) % 5))
    try:
        for start in range(1, len(data), step):
            piece = decoder.feed(data[start : start + step], room)
            whole += len(piece)
            assert whole <= ROOM + 9_000_000
            room -= len(piece)
            if room < 0:
                return
        decoder.finish()
    except Unreadable:
        return
