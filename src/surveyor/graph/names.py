"""Names of pages (URLs, hosts, domains): one UTF-8 blob and offsets, so that it can be memory-mapped.

Lookup of an id by name uses a table of sorted hashes that is built on first use (16 bytes per name).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from surveyor.arrays import ByteArray, IntArray, KeyArray, read_only
from surveyor.errors import InputError, SurveyorError, UsageError
from surveyor.web.interning import StringTable, key_words

AnyArray: TypeAlias = npt.NDArray[Any]
AT_ONCE = 1 << 20  # offsets compared at a time
BLOCK = 1 << 16  # names extracted from the blob at a time
WORD = 8  # bytes of a name compared at a time


class Names(Sequence[str]):
    """An immutable list of names, one per page id."""

    def __init__(self, offsets: IntArray, blob: ByteArray) -> None:
        self.offsets: IntArray = read_only(offsets)
        self.blob: ByteArray = read_only(blob)
        self._index: tuple[KeyArray, IntArray, KeyArray] | None = None

    @classmethod
    def of(cls, names: Iterable[str]) -> Names:
        """Build a name table from strings."""
        encoded = [name.encode("utf-8", "surrogateescape") for name in names]
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(name) for name in encoded], out=offsets[1:])
        return cls(offsets, np.frombuffer(b"".join(encoded), np.uint8))

    @classmethod
    def checked(cls, offsets: AnyArray, blob: AnyArray, source: Path, error: type[SurveyorError] = InputError) -> Names:
        """Build a table from an untrusted file; reject offsets outside the blob."""
        fits = (
            (offsets.ndim, blob.ndim) == (1, 1)
            and (offsets.dtype, blob.dtype) == (np.dtype(np.int64), np.dtype(np.uint8))
            and offsets.size > 0
            and offsets[0] == 0
            and offsets[-1] == blob.size
            and all(_ascending(offsets[at : at + AT_ONCE + 1]) for at in range(0, offsets.size - 1, AT_ONCE))
        )
        if not fits:
            raise error(f"the table of names in {source} is damaged", hint="download, copy or write it again")
        return cls(offsets, blob)

    def __len__(self) -> int:
        return int(self.offsets.size - 1)

    def __getitem__(self, page: int) -> str:  # type: ignore[override]  # no slices: names are looked up one by one
        if not -len(self) <= page < len(self):
            raise IndexError(page)
        page %= len(self)
        return self.blob[self.offsets[page] : self.offsets[page + 1]].tobytes().decode("utf-8", "surrogateescape")

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), BLOCK):
            ends = self.offsets[start : start + BLOCK + 1].tolist()
            text = self.blob[ends[0] : ends[-1]].tobytes()
            for first, last in pairwise(ends):
                yield text[first - ends[0] : last - ends[0]].decode("utf-8", "surrogateescape")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Names)
            and np.array_equal(self.offsets, other.offsets)
            and np.array_equal(self.blob, other.blob)
        )

    def __hash__(self) -> int:
        return hash((len(self), int(self.blob.size)))

    def __repr__(self) -> str:
        return f"Names({len(self):,})"

    def find(self, name: str) -> int | None:
        """Return the id of a name, or None."""
        from surveyor.kernels.string_table import hash_all, hash_bytes

        if self._index is None:
            hashes = np.empty(len(self), np.uint64)
            key = key_words()
            hash_all(self.blob, self.offsets, key, hashes)
            order = np.argsort(hashes, kind="stable")
            self._index = hashes[order], order, key
        text = np.frombuffer(name.encode("utf-8", "surrogateescape"), np.uint8)
        hashes, order, key = self._index
        value = np.uint64(hash_bytes(text, 0, text.size, key))
        place = int(np.searchsorted(hashes, value))
        while place < hashes.size and hashes[place] == value:
            page = int(order[place])
            if self[page] == name:
                return page
            place += 1
        return None

    def id_of(self, name: str) -> int:
        """Return the id of a name; raise an error if it is unknown."""
        page = self.find(name)
        if page is None:
            raise UsageError(
                f"no page named {name!r} in this graph",
                hint="names are matched exactly, as `top` prints them",
            )
        return page

    def repeats(self) -> int:
        """Count the names that are duplicates of earlier ones; empty names are not counted."""
        from surveyor.kernels.string_table import hash_all
        from surveyor.kernels.text_parsing import names_are_sorted

        if names_are_sorted(self.blob, self.offsets):
            return 0
        hashes = np.empty(len(self), np.uint64)
        hash_all(self.blob, self.offsets, key_words(), hashes)
        hashes = hashes[np.diff(self.offsets) > 0]
        hashes.sort()
        return int(np.count_nonzero(hashes[1:] == hashes[:-1]))

    def take(self, pages: IntArray) -> Names:
        """Return the names of some pages, in the given order."""
        from surveyor.kernels.text_parsing import copy_spans

        spans = np.column_stack([self.offsets[pages], self.offsets[np.asarray(pages) + 1]])
        offsets = np.zeros(len(pages) + 1, np.int64)
        np.cumsum(spans[:, 1] - spans[:, 0], out=offsets[1:])
        blob = np.empty(int(offsets[-1]), np.uint8)
        copy_spans(self.blob, spans, blob)
        return Names(offsets, blob)

    def reversed_labels(self) -> Names:
        """Return the names with reversed labels: org.example for example.org."""
        from surveyor.kernels.text_parsing import reverse_labels

        blob = np.empty_like(self.blob)
        reverse_labels(self.blob, self.offsets, blob)
        return Names(self.offsets, blob)

    def order(self) -> IntArray:
        """Return the ids sorted by name, byte by byte as C compares them; equal names by id.

        Names are compared eight bytes at a time, and only those still equal are compared further.
        """
        rank: IntArray = np.zeros(len(self), np.int64)  # number of names certain to come before
        tied: IntArray = np.arange(len(self))
        depth = 0
        while tied.size:
            words, left = self._words(tied, depth)
            by = np.lexsort((left, words, rank[tied]))
            tied, words, left = tied[by], words[by], left[by]
            ranks, here = rank[tied], np.arange(tied.size)
            group, like = np.ones((2, tied.size), np.bool_)
            group[1:] = ranks[1:] != ranks[:-1]
            like[1:] = group[1:] | (words[1:] != words[:-1]) | (left[1:] != left[:-1])
            before, first = (np.maximum.accumulate(np.where(starts, here, 0)) for starts in (group, like))
            rank[tied] = ranks + np.where(left > WORD, first, here) - before  # names that end here are equal: by id
            alone = like & np.append(like[1:], True)
            tied = tied[~alone & (left > WORD)]
            depth += WORD
        order = np.empty(len(self), np.int64)
        order[rank] = np.arange(len(self))
        return order

    def _words(self, pages: IntArray, depth: int) -> tuple[KeyArray, ByteArray]:
        """Return the eight bytes of each name at `depth` as a number, and the bytes left from there, at most nine."""
        first, last = self.offsets[pages] + depth, self.offsets[pages + 1]
        words = np.zeros(pages.size, np.uint64)
        for step in range(WORD):
            within = np.flatnonzero(first + step < last)
            words[within] |= self.blob[first[within] + step].astype(np.uint64) << np.uint64(8 * (WORD - 1 - step))
        return words, np.minimum(last - first, WORD + 1).astype(np.uint8)


def _ascending(values: AnyArray) -> bool:
    return bool((values[1:] >= values[:-1]).all())


class Interner(StringTable):
    """Assigns ids to names in the order of first appearance; grows as needed."""

    def names(self) -> Names:
        """Return the table of all names so far."""
        offsets = self.offsets.copy()
        return Names(offsets, self.blob[: offsets[-1]].copy())


def labels(page: int, name: Any) -> dict[str, Any]:
    """Return the fields that name a page in output: id, name, and url if the name is one.

    >>> labels(3, "b"), labels(0, "https://example.org/")["url"]
    ({'id': 3, 'name': 'b'}, 'https://example.org/')
    """
    return {"id": page, "name": name, **({"url": name} if "://" in str(name) else {})}
