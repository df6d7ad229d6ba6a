"""URL ids without the URLs: only a hash of each URL is in memory, and the text is read from the journal.

It replaces `Urls` in a survey without a link graph, where the memory per known URL is bounded whatever its length: 8
bytes for the hash and 6 to 12 bytes for the slots of the index. A URL that was just discovered is kept until the
journal has it. Two URLs with the same hash count as one page; `kernels/hash_index.py` states how unlikely that is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from surveyor.arrays import IdArray, IntArray, KeyArray
from surveyor.web.interning import StringTable, key_words
from surveyor.web.urls import Urls
from surveyor.web.urls import host as host_of

if TYPE_CHECKING:
    from surveyor.kernels.hash_index import HashIndex

AT_ONCE = 1 << 16  # URLs read at a time
LARGE = 1 << 17  # ids above which hashes grow by a quarter instead of doubling
Read = Callable[[int, int], Sequence[str]]


class StoredUrls(Urls):
    """Normalised URLs with dense ids, and their aliases; the text of a URL is read when it is needed."""

    def __init__(self, read: Read, stored: Callable[[], int], key: bytes | None = None) -> None:
        """`read(first, end)` returns stored URLs, `stored()` their number; `key` is the hash key of the survey."""
        super().__init__(1, key)
        self._read, self._stored, self._key = read, stored, key_words(key)
        self._known = 0
        self._slots: IdArray = np.full(1 << 10, -1, np.int32)
        self._hashes: KeyArray = np.empty(1 << 9, np.uint64)
        self._first, self._new = 0, list[str]()  # URLs from an id on that the journal may not have yet
        self._host_names = StringTable(1 << 8, key)

    def __len__(self) -> int:
        return self._known

    def __getitem__(self, page: int) -> str:
        if not 0 <= page < self._known:
            raise IndexError(page)
        return self._between(page, page + 1)[0]

    def find(self, url: str) -> int | None:
        """Return the id of a URL, or None."""
        from surveyor.kernels.hash_index import find_hash

        number = int(find_hash(self._index, np.frombuffer(url.encode("utf-8", "surrogatepass"), np.uint8)))
        return number if number >= 0 else None

    def host_ids(self, pages: IdArray) -> IdArray:
        """Return the host id of each page; hosts are numbered in order of first appearance in these calls."""
        self._check(pages)
        ids = [self._hosts_of(self.texts(pages[at : at + AT_ONCE])) for at in range(0, pages.size, AT_ONCE)]
        return np.concatenate([np.empty(0, np.int32), *ids])

    def _hosts_of(self, urls: Sequence[str]) -> IdArray:
        names = [host_of(url) for url in urls]
        ends = np.cumsum([len(name) for name in names])
        spans = np.stack([np.concatenate([[0], ends[:-1]]), ends], 1)
        return self._host_names.intern(np.frombuffer("".join(names).encode("ascii"), np.uint8), spans)

    def restore(self, pages: int) -> None:
        """Add the URLs of the journal, each under its id there; raise ValueError if that is not possible."""
        self._reserve(pages)
        for first in range(0, pages, AT_ONCE):
            end = min(first + AT_ONCE, pages)
            if self.ids(self._read(first, end)).tolist() != list(range(first, end)):
                raise ValueError(f"some pages after {first:,} have no URLs of their own")

    def _intern(self, text: str, spans: IntArray) -> IdArray:
        from surveyor.kernels.hash_index import intern_hashes

        before, done = self._known, 0
        ids, raw = np.empty(spans.shape[0], np.int32), np.frombuffer(text.encode("ascii"), np.uint8)
        while done < spans.shape[0]:
            count, self._known = intern_hashes(self._index, self._known, raw, spans[done:], ids[done:])
            done += count
            if done < spans.shape[0]:
                self._reserve(self._known + 1)
        self._drop_stored()
        if self._known > before:
            found, places = np.unique(ids, return_index=True)
            for start, end in spans[places[found >= max(before, self._first)]].tolist():
                self._new.append(text[start:end])
        return ids

    def _between(self, first: int, end: int) -> list[str]:
        self._drop_stored()
        stored = min(end, self._first)
        old = self._read(first, stored) if first < stored else ()
        return [*old, *self._new[max(first - self._first, 0) : max(end - self._first, 0)]]

    def _drop_stored(self) -> None:
        """Forget the URLs that the journal has by now."""
        if (stored := self._stored()) > self._first:
            del self._new[: stored - self._first]
            self._first = stored

    @property
    def _index(self) -> HashIndex:
        from surveyor.kernels.hash_index import HashIndex

        return HashIndex(self._slots, self._hashes, self._key)

    def _reserve(self, pages: int) -> None:
        """Make room for `pages` URLs, and some more."""
        from surveyor.kernels.string_table import rehash

        if pages > self._hashes.size:
            hashes: KeyArray = np.empty(pages + max(pages // 4, min(pages, LARGE)) + 16, np.uint64)
            hashes[: self._known] = self._hashes[: self._known]
            self._hashes = hashes
        if 3 * pages > 2 * self._slots.size:
            self._slots = np.full(1 << int(1.5 * pages).bit_length(), -1, np.int32)
            rehash(self._hashes, self._known, self._slots)
