"""WARC records of a survey: a changed one is rejected in one sentence, whatever it says about itself."""

from __future__ import annotations

import gzip
import random
import zlib

from scratch import scratch

from surveyor.outcome import Exchange, Place
from surveyor.store.warc import Archive

NAME = "archive"
FOLDER = scratch() / "warc"
FILE = "00000.warc.gz"
TOKENS = [
    *(b"WARC/1.1\r\n", b"WARC-Type: response\r\n", b"Content-Length: ", b"\r\n\r\n", b"\x1f\x8b\x08\x00", b"-1"),
    *(b"9" * 20, b"WARC-Target-URI: ", b"WARC-Date: ", b"WARC-Truncated: ", b"HTTP/1.1 200 OK\r\n", b"WARC-Type: "),
    *(b"2030-01-01T00:00:00Z", b"0001-01-01T00:00:00+23:59", b"filedesc://", b"WARC/0.0", b"\xff\xfe", b"\0" * 40),
]


def seeds() -> list[bytes]:
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.iterdir():
        old.unlink()
    archive = Archive.open(FOLDER)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\n"
    places = []
    for number, url in enumerate(("https://example.org/a", "https://example.org/b?c")):
        exchange = Exchange(
            url, b"GET / HTTP/1.1\r\n\r\n", head, b"hello" * number, 1e9, "1.2.3.4", "length"[: 6 * number]
        )
        places.append(archive.write(exchange))
    archive.close()
    data = (FOLDER / places[0].file).read_bytes()
    return [data[place.offset : place.offset + place.length] for place in places]


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Change a record inside its compression, so that only its content is wrong."""
    records: list[bytearray] = []
    while data[:2] == b"\x1f\x8b" and len(records) < 5:
        member = zlib.decompressobj(31)
        try:
            records.append(bytearray(member.decompress(data, 1 << 16)))
        except zlib.error:
            break
        data = member.unused_data
    if not records:
        return data
    chosen = rng.choice(records)
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(chosen))
        chosen[at : at + rng.choice([0, 1, 5, 40])] = rng.choice([*TOKENS, b"", rng.randbytes(3)])
    return b"".join(gzip.compress(bytes(record), 1, mtime=0) for record in records)


def run(data: bytes) -> None:
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / FILE).write_bytes(data)
    exchange = Archive.open(FOLDER, write=False).read(Place(FILE, 0, len(data)))
    assert isinstance(exchange.url, str), exchange.url
    assert isinstance(exchange.body, bytes)
