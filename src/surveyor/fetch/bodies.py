"""Headers and decoded body of a response as archived; of a broken or oversized body, the part before the fault."""

from __future__ import annotations

from typing import NamedTuple

from surveyor.fetch.encodings import TooLarge, Unreadable, decoder_of
from surveyor.fetch.responses import joined
from surveyor.outcome import Exchange

MAX_DECODED = 20_000_000
CHUNK = 1 << 16
LENGTH, CODING = "length", "coding"  # why the end of a body is missing, beside those of the archive


class Decoded(NamedTuple):
    """A body without its content encoding, the headers by name in lower case, and why its end is missing."""

    body: bytes
    headers: dict[str, str]
    cut: str = ""  # "length", "time", "disconnect", "coding"; empty if nothing is missing


def decoded(exchange: Exchange) -> Decoded:
    """Return the body of a response without its content encoding, and its headers by name in lower case."""
    lines = [line.partition(b":") for line in exchange.response.split(b"\r\n")[1:] if line]
    headers = joined(tuple((name, value.strip()) for name, _, value in lines))
    body, cut = decode_body(exchange.body, headers.get("content-encoding", ""))
    return Decoded(body, headers, exchange.truncated or cut)


def decode_body(body: bytes, encoding: str) -> tuple[bytes, str]:
    """Undo content encodings chunk by chunk, so that the part before a fault is kept; also return the fault."""
    chunks: list[bytes] = []
    remaining = MAX_DECODED
    try:
        decoder = decoder_of(encoding)
        if decoder is None:
            return body, ""
        for start in range(0, len(body), CHUNK):
            chunks.append(decoder.feed(body[start : start + CHUNK], remaining))
            remaining -= len(chunks[-1])
            if remaining < 0:
                return b"".join(chunks), LENGTH
        decoder.finish()
    except TooLarge:
        return b"".join(chunks), LENGTH
    except Unreadable:
        return b"".join(chunks), CODING
    return b"".join(chunks), ""
