"""Headers and decoded body of a response as archived; of a broken or oversized body, the part before the fault."""

from __future__ import annotations

from surveyor.fetch.encodings import Unreadable, decoder_of
from surveyor.fetch.responses import joined
from surveyor.outcome import Exchange

MAX_DECODED = 20_000_000
CHUNK = 1 << 16


def decoded(exchange: Exchange) -> tuple[bytes, dict[str, str]]:
    """Return the body of a response without its content encoding, and its headers by name in lower case."""
    lines = [line.partition(b":") for line in exchange.response.split(b"\r\n")[1:] if line]
    headers = joined(tuple((name, value.strip()) for name, _, value in lines))
    return decode_body(exchange.body, headers.get("content-encoding", "")), headers


def decode_body(body: bytes, encoding: str) -> bytes:
    """Undo content encodings chunk by chunk, so that the part before a fault is kept."""
    chunks: list[bytes] = []
    remaining = MAX_DECODED
    try:
        decoder = decoder_of(encoding)
        if decoder is None:
            return body
        for start in range(0, len(body), CHUNK):
            chunks.append(decoder.feed(body[start : start + CHUNK], remaining))
            remaining -= len(chunks[-1])
            if remaining < 0:
                break
    except Unreadable:
        pass
    return b"".join(chunks)
