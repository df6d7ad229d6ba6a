"""Bodies that would cost more than their size to decode: very many streams, encoded once or several times."""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from typing import Any

import pytest
from attack import attack

from surveyor.fetch import encodings
from surveyor.fetch.encodings import LONGEST_STEP, MOST_STREAMS, TooLarge, Unreadable, decoder_of

ROOM = 20_000_000
MEMBER = gzip.compress(b"", mtime=0)
FRAME = bytes.fromhex("28b52ffd2000010000")  # of zstd: no content
MANY = 30_000
needs_zstd = pytest.mark.skipif(encodings.ZSTD is None, reason="needs zstandard")


class Counted:
    """A stream that counts what it is given, and what it copies when it ends."""

    def __init__(self, stream: Any, work: Counter[str]) -> None:
        self._stream, self._work = stream, work
        work["streams"] += 1

    def decompress(self, data: Any, limit: int) -> Any:
        self._work["steps"] += 1
        self._work["read"] += len(data)
        return self._stream.decompress(data, limit)

    @property
    def eof(self) -> bool:
        return bool(self._stream.eof)

    @property
    def unused_data(self) -> bytes:
        self._work["copied"] += len(self._stream.unused_data)
        return bytes(self._stream.unused_data)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    counts: Counter[str] = Counter()

    def counting(opener: Any) -> Any:
        return lambda data: Counted(opener(data), counts)

    for name, opener in list(encodings.OPENERS.items()):
        monkeypatch.setitem(encodings.OPENERS, name, counting(opener))
    return counts


BODIES = [
    pytest.param("gzip", MEMBER * MANY, "gzip members", id="gzip"),
    pytest.param("gzip, gzip", gzip.compress(MEMBER * MANY), "gzip members", id="gzip twice"),
    pytest.param(
        "gzip, gzip, gzip", gzip.compress(gzip.compress(MEMBER * MANY)), "gzip members", id="gzip three times"
    ),
    pytest.param("zstd", FRAME * MANY, "zstd frames", id="zstd", marks=needs_zstd),
    pytest.param("zstd, gzip", gzip.compress(FRAME * MANY), "zstd frames", id="zstd in gzip", marks=needs_zstd),
]


@attack(
    "bodies of 30,000 empty gzip members or zstd frames, also encoded two and three times",
    area="headers and bodies",
    must_hold="decoding stops after 1,000 of them; what is read and copied is bounded by that",
)
@pytest.mark.parametrize(("encoding", "body", "what"), BODIES)
def test_a_body_of_very_many_streams(work: Counter[str], encoding: str, body: bytes, what: str) -> None:
    decoder = decoder_of(encoding)
    assert decoder is not None
    with pytest.raises(Unreadable, match=f"the body has more than {MOST_STREAMS:,} {what}"):
        decoder.feed(body, ROOM)
    assert work["streams"] <= MOST_STREAMS + encoding.count(",")
    assert work["copied"] <= MOST_STREAMS * LONGEST_STEP
    assert work["read"] <= MOST_STREAMS * LONGEST_STEP + 2 * MANY * len(MEMBER)


@attack(
    "a gzip body that decodes to 100 MB of empty blocks for the next decoder, a chunk at a time",
    area="headers and bodies",
    must_hold="what passes between the decoders is limited over all chunks of the body together",
)
def test_what_passes_between_decoders_is_limited_over_the_whole_body(work: Counter[str]) -> None:
    blocks = b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + b"\0\0\0\xff\xff" * 20_000_000  # no content, no end
    wire, room = gzip.compress(blocks, 1), 1_000_000
    decoder = decoder_of("gzip, gzip")
    assert decoder is not None
    chunks = (wire[start : start + 100] for start in range(0, len(wire), 100))
    with pytest.raises(TooLarge, match="1,000,000 bytes before it is decoded again"):
        assert not any(decoder.feed(chunk, room) for chunk in chunks)
    assert work["read"] < 2 * room


@pytest.mark.parametrize("size", [1, 7, 1000, 10**6])
def test_a_body_of_several_members_is_read_whole(work: Counter[str], size: int) -> None:
    parts = [bytes([number % 256]) * (number * 97) for number in range(MOST_STREAMS // 2)]
    body = b"".join(gzip.compress(part, 1) for part in parts) + b"\n\ntrailing"
    decoder = decoder_of("gzip")
    assert decoder is not None
    pieces = [decoder.feed(body[start : start + size], 10**8) for start in range(0, len(body), size)]
    decoder.finish()
    assert b"".join(pieces) == b"".join(parts)
    assert work["streams"] == len(parts)


def test_what_follows_a_deflate_body_is_dropped() -> None:
    decoder = decoder_of("deflate")
    assert decoder is not None
    assert decoder.feed(zlib.compress(b"text") + b"\n\n\n\n", ROOM) == b"text"
    decoder.finish()
