"""Groups of pages with nearly the same text, by bottom-k sketches of word shingles.

The shingles of a text are its runs of four words; in scripts without spaces, each character is a word. Its *sketch* is
the 128 smallest of their hashes. The smallest 128 hashes of two sketches together are a random sample of the shingles
in either text; the fraction of them that both have estimates the Jaccard similarity (Broder 1997), with a standard
error of at most 0.045, and 0.027 at 0.9. All words of a text count;
a long text is read in blocks, so that memory is bounded.

Only pages that share one of their eight smallest hashes are compared. At a similarity of 0.9, a pair is compared with a
probability above 0.999, unless more than `MOST_COMPARED` earlier groups share that hash.

Pages are added in order of preference: the first page of a group represents it, and each other page is similar to it.
Memory is 1 KB per group.

    >>> texts = ["one two three four five six", "one two three four five six", "quite another text of six words"]
    >>> groups([sketch(text) for text in texts])
    [[0, 1]]
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeAlias
from zlib import crc32

import numpy as np

from surveyor.arrays import IntArray, read_only

SHINGLE = 4  # words
SIZE = 128  # of a sketch
KEYS = 8  # smallest hashes by which pages are compared
SIMILAR = 0.9
MOST_COMPARED = 200  # groups that a page is compared with, by one hash
BLOCK = 50_000  # words that are hashed at once
LONG = 300_000  # characters of a text with other than ASCII that is read in blocks
MOST_KEPT, LONGEST_KEPT = 50_000, 40  # words whose hashes are kept, and characters of them: about 6 MB
Unsigned: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint64]]
EMPTY: IntArray = read_only(np.empty(0, np.int64))
_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff"  # Thai, Han, Kana, …
_WORD = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")


class _Hashes(dict[str, int]):
    """Hashes of words, of which the first ones are kept: most words of a text are in others, too."""

    def __missing__(self, word: str) -> int:
        number = crc32(word.encode("utf-8", "replace"))
        if len(self) < MOST_KEPT and len(word) <= LONGEST_KEPT:
            self[word] = number
        return number


_hashes = _Hashes()


def sketch(text: str) -> IntArray:
    """Return the sketch of a text; empty if it has fewer words than a shingle."""
    own, before = np.empty(0, np.uint64), list[int]()
    for words in _blocks(text.lower()):
        hashes = [*before, *map(_hashes.__getitem__, words)]
        if len(hashes) >= SHINGLE:
            own = _smallest(own, _shingles(hashes))
        before = hashes[1 - SHINGLE :]  # shingles that begin here end in the next block
    found: IntArray = own.astype(np.int64)
    found.flags.writeable = False
    return found


def _blocks(lower: str) -> Iterator[list[str]]:
    """Yield the words of a text, those of a long one in blocks."""
    if lower.isascii():
        while lower:
            words = lower.split(None, BLOCK)
            lower = words.pop() if len(words) > BLOCK else ""
            yield words
    elif len(lower) <= LONG:
        yield _WORD.findall(lower)
    else:
        found = (match[0] for match in _WORD.finditer(lower))
        while block := [*islice(found, BLOCK)]:
            yield block


def _shingles(hashes: list[int]) -> Unsigned:
    """Return the hashes of the shingles of a block, below 2 ** 63."""
    rows = np.lib.stride_tricks.sliding_window_view(np.array(hashes, np.uint64), SHINGLE)
    mixed = np.zeros(rows.shape[0], np.uint64)
    for column in range(SHINGLE):
        mixed = _mixed(mixed + rows[:, column] + np.uint64(0x9E3779B97F4A7C15))
    return mixed >> np.uint64(1)


def _smallest(own: Unsigned, more: Unsigned) -> Unsigned:
    """Return the distinct smallest hashes of a sketch and a block."""
    if own.size:
        more = np.concatenate([own, more if own.size < SIZE else more[more < own[-1]]])
    more.sort()  # `np.unique` hashes first, which takes longer
    is_new = np.concatenate([[True], more[1:] != more[:-1]])
    found: Unsigned = more[is_new][:SIZE].copy()  # not a view of all shingles
    return found


def _mixed(values: Unsigned) -> Unsigned:
    """Return the finalizer of SplitMix64."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def similarity(first: IntArray, second: IntArray) -> float:
    """Return the estimated Jaccard similarity of two texts; exact if each has at most 128 shingles in all."""
    from surveyor.kernels.shingle_sketches import jaccard

    return float(jaccard(first, second, SIZE))


class NearDuplicates:
    """Finds, for each text in turn, the first earlier one that is nearly the same."""

    def __init__(self) -> None:
        self._count = 0  # of texts
        self._numbers: list[int] = []  # of the first text of each group
        self._rows, self._sizes = np.zeros((64, SIZE), np.int64), np.zeros(64, np.int64)  # their sketches
        self._by_key: defaultdict[int, list[int]] = defaultdict(list)  # groups by each of their smallest hashes

    def add(self, own: IntArray) -> int:
        """Add the sketch of a text; return the number of the text that represents it, which may be its own."""
        number, self._count = self._count, self._count + 1
        if not own.size:
            return number
        keys = own[:KEYS].tolist()
        candidates = dict.fromkeys(group for key in keys for group in self._by_key.get(key, ())[:MOST_COMPARED])
        if candidates:
            from surveyor.kernels.shingle_sketches import first_similar

            order = np.fromiter(sorted(candidates), np.int64, len(candidates))
            found = first_similar(self._rows, self._sizes, order, own, SIZE, SIMILAR)
            if found >= 0:
                return self._numbers[found]
        self._begin(number, own, keys)
        return number

    def _begin(self, number: int, own: IntArray, keys: list[int]) -> None:
        group = len(self._numbers)
        if group == self._sizes.size:
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
            self._sizes = np.concatenate([self._sizes, np.zeros_like(self._sizes)])
        self._numbers.append(number)
        self._rows[group, : own.size], self._sizes[group] = own, own.size
        for key in keys:
            if len(self._by_key[key]) < MOST_COMPARED:
                self._by_key[key].append(group)


def groups(sketches: Iterable[IntArray]) -> list[list[int]]:
    """Return groups of similar texts, in order of their first members; each is similar to the first of its group."""
    index, found = NearDuplicates(), defaultdict[int, list[int]](list)
    for number, own in enumerate(sketches):
        found[index.add(own)].append(number)
    return [members for members in found.values() if len(members) > 1]
