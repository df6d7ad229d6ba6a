"""Decode content encodings incrementally and within limits: gzip, deflate, and br and zstd if their libraries exist.

A few kilobytes can decode to gigabytes, so the output of every decoder is limited. Further gzip members and zstd frames
are decoded, up to `MOST_STREAMS`; other trailing data is dropped.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Literal

from isal import isal_zlib


class Unreadable(Exception):
    """A body that could not be decoded to its end; `error` is one of `http.Trouble`."""

    error: Literal["decode", "too-large"] = "decode"


class TooLarge(Unreadable):
    """A body above the size limit."""

    error = "too-large"


class Decoder:
    """Incremental decoder of one content encoding; a body may be several concatenated streams.

    The cost is linear in the size of the body: the rest of a piece is not copied for each stream in it, and a body has
    at most `MOST_STREAMS` streams.
    """

    def __init__(self, encoding: str) -> None:
        self._encoding, self._streams = encoding, 0
        self._stream: Any = None

    def feed(self, data: bytes, room: int) -> bytes:
        """Decode a piece; stop soon after the output exceeds `room` bytes."""
        pieces: list[bytes] = []
        rest = memoryview(data)
        while rest and room >= 0:
            if self._stream is None and not self._begin(rest):
                break
            part = rest[: self._step(room)]
            try:
                pieces.append(self._stream.decompress(part, room + 1))
            except BROKEN as error:
                raise Unreadable(f"the {self._encoding} of the body is broken: {error}") from error
            room -= len(pieces[-1])
            rest = rest[len(part) :]
            if self._stream.eof:
                unused = len(self._stream.unused_data)
                rest = memoryview(data)[len(data) - len(rest) - unused :]
                self._stream = None
        return b"".join(pieces)

    def _begin(self, rest: memoryview) -> bool:
        """Open the next stream; return False if the rest does not begin one."""
        first = bytes(rest[:1])
        if self._streams and first != MAGIC.get(self._encoding):
            return False
        if self._streams >= MOST_STREAMS:
            raise Unreadable(f"the body has more than {MOST_STREAMS:,} {self._encoding} {NAMES[self._encoding]}")
        self._stream = OPENERS[self._encoding](first)
        self._streams += 1
        return True

    def _step(self, room: int) -> int | None:
        """Return how many bytes to decode at once, None for all: a stream that ends copies the unused rest."""
        if self._encoding == "zstd":
            return max(SHORTEST_STEP, room >> 15)
        return LONGEST_STEP if self._encoding in MAGIC else None

    def finish(self) -> None:
        """Raise if the data ended too early."""
        if self._stream is not None:
            raise Unreadable(f"the {self._encoding} of the body ends too early")


class Chain:
    """Decoder of several encodings, the last one first."""

    def __init__(self, encodings: list[str]) -> None:
        self._decoders = [Decoder(encoding) for encoding in reversed(encodings)]
        self._between = self._most_between = 0

    def feed(self, data: bytes, room: int) -> bytes:
        """Decode a piece; the total intermediate output between decoders is limited too."""
        self._most_between = max(self._most_between, room)
        for decoder in self._decoders[:-1]:
            data = decoder.feed(data, self._most_between - self._between)
            self._between += len(data)
            if self._between > self._most_between:
                raise TooLarge(f"the body decodes to more than {self._most_between:,} bytes before it is decoded again")
        return self._decoders[-1].feed(data, room)

    def finish(self) -> None:
        """Raise if the data ended too early."""
        for decoder in self._decoders:
            decoder.finish()


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


ZSTD, BROTLI = _library("zstandard"), _library("brotli")


class _Zstd:
    """A zstd frame, with the maximum window size of RFC 9659.

    The library has no output limit, so it gets small pieces: four bytes decode to at most 2^17.
    """

    def __init__(self, _: bytes) -> None:
        self._stream = ZSTD.ZstdDecompressor(max_window_size=2**23).decompressobj()

    def decompress(self, data: bytes, _: int) -> Any:
        return self._stream.decompress(data)

    def __getattr__(self, name: str) -> Any:  # eof, unused_data
        return getattr(self._stream, name)


class _Brotli:
    unused_data = b""

    def __init__(self, _: bytes) -> None:
        self._stream = BROTLI.Decompressor()

    def decompress(self, data: bytes, limit: int) -> Any:
        return self._stream.process(data, output_buffer_limit=limit)

    @property
    def eof(self) -> bool:
        return bool(self._stream.is_finished())


OPENERS: dict[str, Callable[[bytes], Any]] = {
    "gzip": lambda _: isal_zlib.decompressobj(31),
    "deflate": lambda data: isal_zlib.decompressobj(15 if data[0] & 0x8F == 8 else -15),  # some omit the zlib wrapper
    "br": _Brotli,
    "zstd": _Zstd,
}
MAGIC = {"gzip": b"\x1f", "zstd": b"\x28"}  # first byte of a further stream
IS_BOUNDED = hasattr(getattr(BROTLI, "Decompressor", None), "can_accept_more_data")  # older ones have no output limit
ENCODINGS = ["gzip", "deflate", *["br"] * IS_BOUNDED, *["zstd"] * (ZSTD is not None)]
BROKEN = (isal_zlib.error, *([BROTLI.error] if BROTLI else []), *([ZSTD.ZstdError] if ZSTD else []))
NAMES = {"gzip": "members", "zstd": "frames"}
MOST_STREAMS = 1_000  # per body: files compressed in blocks have hundreds; each costs an object
SHORTEST_STEP, LONGEST_STEP = 128, 1 << 14  # bytes decoded at once, so that little is copied when a stream ends
REAL = {*OPENERS, "compress", "dcb", "dcz", "exi", "pack200-gzip"}  # other values, such as "utf-8", are ignored


def decoder_of(content_encoding: str) -> Chain | None:
    """Return a decoder for a Content-Encoding header, None if none is needed; raise for an unsupported encoding."""
    names = [name.strip().lower().removeprefix("x-") for name in content_encoding.split(",")]
    names = [name for name in names if name in REAL]
    if unknown := [name for name in names if name not in ENCODINGS]:
        raise Unreadable(f"the body is encoded as {unknown[0]}, which was not asked for")
    if len(names) > 3:
        raise Unreadable(f"the body is encoded {len(names)} times")
    return Chain(names) if names else None
