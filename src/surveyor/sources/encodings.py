"""Content encodings, undone in pieces and within bounds: gzip, deflate, and where their libraries are there br, zstd.

A few kilobytes can decode to gigabytes, so no decoder is let to produce more than there is room for. Further members
of gzip and frames of zstd are read, what else follows the end is dropped.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Literal

from isal import isal_zlib


class Unreadable(Exception):
    """A body that is not read to its end, in one of our words."""

    error: Literal["decode", "too-large"] = "decode"


class TooLarge(Unreadable):
    """A body of more bytes than there is room for."""

    error = "too-large"


class Decoder:
    """Undoes one content encoding, a piece at a time; a body may be several streams of it, one after the other."""

    def __init__(self, encoding: str) -> None:
        self._encoding, self._is_begun = encoding, False
        self._stream: Any = None

    def feed(self, data: bytes, room: int) -> bytes:
        """Decode a piece; stop soon after more than `room` bytes have come of it."""
        pieces: list[bytes] = []
        while data and room >= 0:
            if self._stream is None:
                if self._is_begun and not data.startswith(MAGIC.get(self._encoding, b"\n\n")):
                    break  # what follows the end means nothing
                self._stream, self._is_begun = OPENERS[self._encoding](data), True
            step = max(64, room >> 15) if self._encoding == "zstd" else len(data)
            try:
                pieces.append(self._stream.decompress(data[:step], room + 1))
            except BROKEN as error:
                raise Unreadable(f"the {self._encoding} of the body is broken: {error}") from error
            room -= len(pieces[-1])
            data = data[step:]
            if self._stream.eof:
                data, self._stream = self._stream.unused_data + data, None
        return b"".join(pieces)

    def finish(self) -> None:
        """Raise if the data ended too early."""
        if self._stream is not None:
            raise Unreadable(f"the {self._encoding} of the body ends too early")


class Chain:
    """Undoes several encodings, the last one first."""

    def __init__(self, encodings: list[str]) -> None:
        self._decoders = [Decoder(encoding) for encoding in reversed(encodings)]

    def feed(self, data: bytes, room: int) -> bytes:
        """Decode a piece; what comes between the decoders is limited too."""
        for decoder in self._decoders:
            if len(data) > room and decoder is not self._decoders[0]:
                raise TooLarge(f"the body decodes to more than {room:,} bytes before it is decoded again")
            data = decoder.feed(data, room)
        return data

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
    """A frame with no larger a window than RFC 9659 allows.

    Its library cannot be told where to stop: it gets pieces so small that they cannot become much too large, as four
    bytes become 2^17 at most.
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
    "deflate": lambda data: isal_zlib.decompressobj(15 if data[0] & 0x8F == 8 else -15),  # some leave the wrapping out
    "br": _Brotli,
    "zstd": _Zstd,
}
MAGIC = {"gzip": b"\x1f", "zstd": b"\x28"}  # how a further stream begins
IS_BOUNDED = hasattr(getattr(BROTLI, "Decompressor", None), "can_accept_more_data")  # older ones cannot be stopped
ENCODINGS = ["gzip", "deflate", *["br"] * IS_BOUNDED, *["zstd"] * (ZSTD is not None)]
BROKEN = (isal_zlib.error, *([BROTLI.error] if BROTLI else []), *([ZSTD.ZstdError] if ZSTD else []))
REAL = {*OPENERS, "compress", "dcb", "dcz", "exi", "pack200-gzip"}  # other words, such as "utf-8", mean no encoding


def decoder_of(content_encoding: str) -> Chain | None:
    """Return what decodes a body, None if that is not needed; raise for an encoding that cannot be undone here."""
    names = [name.strip().lower().removeprefix("x-") for name in content_encoding.split(",")]
    names = [name for name in names if name in REAL]
    if unknown := [name for name in names if name not in ENCODINGS]:
        raise Unreadable(f"the body is encoded as {unknown[0]}, which was not asked for")
    if len(names) > 3:
        raise Unreadable(f"the body is encoded {len(names)} times")
    return Chain(names) if names else None
