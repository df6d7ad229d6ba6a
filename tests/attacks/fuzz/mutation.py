"""Random changes to bytes: the input generator of every fuzz target."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence

LONGEST = 1 << 16
EDGES = (7, 8, 15, 16, 31, 32, 63, 64)
INTERESTING = (0, 1, 2, *(value for bits in EDGES for value in (2**bits - 1, 2**bits)))
LARGE = (-1, -(2**63), 10**18, 10**19, 10**30, "1e308", "nan", "inf")
NUMBERS = tuple(str(value).encode() for value in (*INTERESTING, *LARGE))
TEXT = (
    *(bytes([byte]) for byte in b"\0\n\t \"'<>&%#,;:=/\\{}[]()\xff\x80"),
    *(b"\r\n", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80"),
)


class Mutator:
    """Makes inputs from seeds: flips, blocks moved, numbers, tokens, two inputs joined."""

    def __init__(self, rng: random.Random, tokens: Sequence[bytes] = ()) -> None:
        self.rng, self.tokens = rng, (*TEXT, *NUMBERS, *tokens, *tokens, *tokens)
        self._changes = (
            *(self._flip, self._byte, self._delete, self._repeat, self._insert, self._overwrite),
            *(self._number, self._digits, self._token, self._token, self._truncate, self._swap),
        )

    def mutate(self, data: bytes, other: bytes) -> bytes:
        """Change an input in one to eight places; sometimes continue it with the end of another."""
        text = bytearray(data)
        if self.rng.random() < 0.1 and other:
            cut = self.rng.randrange(len(other))
            text[self.rng.randint(0, len(text)) :] = other[cut:]
        for _ in range(1 << self.rng.randrange(4)):
            self.rng.choice(self._changes)(text)
        return bytes(text[:LONGEST])

    def _span(self, text: bytearray) -> tuple[int, int]:
        first = self.rng.randint(0, len(text))
        return first, min(len(text), first + self.rng.choice((1, 1, 2, 4, 8, 16, 64, 1024)))

    def _flip(self, text: bytearray) -> None:
        if text:
            text[self.rng.randrange(len(text))] ^= 1 << self.rng.randrange(8)

    def _byte(self, text: bytearray) -> None:
        if text:
            text[self.rng.randrange(len(text))] = self.rng.randrange(256)

    def _delete(self, text: bytearray) -> None:
        first, last = self._span(text)
        del text[first:last]

    def _repeat(self, text: bytearray) -> None:
        first, last = self._span(text)
        text[first:first] = text[first:last] * self.rng.choice((1, 1, 2, 3, 16))

    def _insert(self, text: bytearray) -> None:
        place = self.rng.randint(0, len(text))
        text[place:place] = self.rng.randbytes(self.rng.choice((1, 2, 4, 8, 32)))

    def _overwrite(self, text: bytearray) -> None:
        first, last = self._span(text)
        source = self.rng.randint(0, len(text))
        text[first:last] = text[source : source + last - first]

    def _number(self, text: bytearray) -> None:
        """Write an interesting integer, of one to eight bytes in either order, over the input."""
        code = self.rng.choice(("B", "<H", ">H", "<I", ">I", "<Q", ">Q"))
        size = struct.calcsize(code)
        if len(text) >= size:
            place = self.rng.randint(0, len(text) - size)
            text[place : place + size] = struct.pack(code, self.rng.choice(INTERESTING) % (1 << 8 * size))

    def _digits(self, text: bytearray) -> None:
        """Replace a run of decimal digits by another number."""
        starts = [at for at, byte in enumerate(text) if 48 <= byte <= 57 and not (at and 48 <= text[at - 1] <= 57)]
        if not starts:
            return
        first = last = self.rng.choice(starts)
        while last < len(text) and 48 <= text[last] <= 57:
            last += 1
        small = str(self.rng.randrange(20)).encode()
        text[first:last] = self.rng.choice((small, self.rng.choice(NUMBERS)))

    def _token(self, text: bytearray) -> None:
        first, last = self._span(text)
        text[first : self.rng.choice((first, last))] = self.rng.choice(self.tokens)

    def _truncate(self, text: bytearray) -> None:
        if self.rng.random() < 0.3:
            del text[self.rng.randint(0, len(text)) :]

    def _swap(self, text: bytearray) -> None:
        if len(text) > 1:
            a, b = self.rng.randrange(len(text)), self.rng.randrange(len(text))
            text[a], text[b] = text[b], text[a]
