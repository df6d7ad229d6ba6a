"""A segment of the index: the words of some pages in arrays that never change once they are written.

    terms.npy       the distinct words, sorted (40 bytes each)
    term_start.npy  first posting of each word
    doc.npy         page of each posting, as the place of the page in the segment
    weight.npy      weighted frequency: the sum of the weights of the fields in which the word occurs
    count.npy       plain frequency
    place_start.npy first place of each word
    place.npy       places of the occurrences: position * 8 + field
    length.npy      weighted number of words of each page
    page.npy, language.npy, sketch.npy, text.npy, text_start.npy   each page, and its compressed texts

Positions run through all fields of a page with a gap between two texts, so a phrase never spans two of them.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surveyor.arrays import AnyInt, FloatArray, IntArray, map_npy, save
from surveyor.search.words import LONGEST, words
from surveyor.web.near_duplicates import SIZE, sketch

FIELDS = ("title", "anchors", "headings", "body", "url")
WEIGHTS = (5, 3, 2, 1, 2)  # of an occurrence in each field
MOST_WORDS = (2_000, 2_000, 2_000, 40_000, 2_000)  # of each field, so that a weighted frequency has 16 bits
MOST_TEXT = 400_000  # characters of a main text that are indexed and stored
ARRAYS = {
    "terms": f"S{LONGEST}",
    "term_start": "int64",
    "doc": "int32",
    "weight": "uint16",
    "count": "uint16",
    "place_start": "int64",
    "place": "uint32",
    "length": "int64",
    "page": "int32",
    "language": "S3",
    "sketch": "int64",
    "text": "uint8",
    "text_start": "int64",
}
Values = np.ndarray[Any, Any]


class Texts(NamedTuple):
    """What is indexed of a page."""

    page: int
    url: str
    language: str
    title: str
    anchors: tuple[str, ...]
    headings: tuple[str, ...]
    body: str
    path: str  # the words of the URL

    def fields(self) -> tuple[Sequence[str], ...]:
        """Return the texts of each field, in the order of `FIELDS`."""
        return (self.title,), self.anchors, self.headings, (self.body,), (self.path,)

    def packed(self) -> bytes:
        """Return the stored form."""
        parts = [self.page, self.url, self.language, self.title, self.anchors, self.headings, self.body]
        return zlib.compress(json.dumps([*parts, self.path], ensure_ascii=False).encode("utf-8", "replace"), 1)

    @classmethod
    def unpacked(cls, data: bytes) -> Texts:
        """Return the texts of a stored form."""
        page, url, language, title, anchors, headings, body, path = json.loads(zlib.decompress(data))
        return cls(page, url, language, title, tuple(anchors), tuple(headings), body, path)


@dataclass(slots=True)
class Occurrences:
    """Words of pages, in the order of pages and positions."""

    vocabulary: dict[bytes, int]
    term: list[IntArray]
    doc: list[IntArray]
    place: list[Values]


class Draft:
    """The pages of a segment that is not written yet."""

    def __init__(self) -> None:
        self.pages: list[int] = []
        self.tokens = 0
        self._languages: list[bytes] = []
        self._sketches: list[IntArray] = []
        self._packed: list[bytes] = []
        self._found = Occurrences({}, [], [], [])

    def add(self, texts: Texts) -> None:
        """Add a page; what is indexed of it is stored, so that it can be indexed again from that."""
        texts = texts._replace(body=texts.body[:MOST_TEXT])
        vocabulary, doc, position = self._found.vocabulary, len(self.pages), 0
        for field, parts in enumerate(texts.fields()):
            left = MOST_WORDS[field]
            for part in parts:
                own = words(part, texts.language)[:left]
                if not own:
                    continue
                ids = np.fromiter((vocabulary.setdefault(word, len(vocabulary)) for word in own), np.int64, len(own))
                places = np.arange(position, position + ids.size, dtype=np.uint32) * 8 + field
                self._found.term.append(ids)
                self._found.place.append(places.astype(np.uint32))
                self._found.doc.append(np.full(ids.size, doc, np.int64))
                position += ids.size + 1
                left -= ids.size
                self.tokens += ids.size
        self.pages.append(texts.page)
        self._languages.append(texts.language.encode()[:3])
        self._sketches.append(sketch(texts.body))
        self._packed.append(texts.packed())

    def write(self, folder: Path) -> None:
        """Write the segment into a new folder."""
        found = self._found
        names = np.array(list(found.vocabulary), f"S{LONGEST}")
        order = np.argsort(names)
        rank = np.empty(names.size, np.int64)
        rank[order] = np.arange(names.size)
        empty = np.empty(0, np.int64)
        term = rank[np.concatenate([empty, *found.term])]
        arrays = inverted(
            names[order], term, np.concatenate([empty, *found.doc]), np.concatenate([empty, *found.place])
        )
        sketches = np.full((len(self.pages), SIZE), -1, np.int64)
        for row, own in enumerate(self._sketches):
            sketches[row, : own.size] = own
        arrays |= pages_of(self.pages, self._languages, sketches, self._packed)
        write_arrays(folder, arrays)


def inverted(terms: Values, term: Values, doc: Values, place: Values) -> dict[str, Values]:
    """Return the postings of occurrences that are in the order of pages and positions."""
    order = np.argsort(term, kind="stable")
    term, doc, place = term[order], doc[order], place[order]
    begins = np.ones(term.size, np.bool_)
    begins[1:] = (term[1:] != term[:-1]) | (doc[1:] != doc[:-1])
    starts = np.flatnonzero(begins)
    weights = np.array([*WEIGHTS, 0, 0, 0], np.int64)[(place & 7).astype(np.int64)]
    counts = np.diff(np.append(starts, term.size))
    weight = np.add.reduceat(weights, starts) if starts.size else starts
    edges = np.arange(terms.size + 1)
    return {
        "terms": terms,
        "term_start": np.searchsorted(term[starts], edges),
        "doc": doc[starts],
        "weight": weight,
        "count": counts,
        "place_start": np.searchsorted(term, edges),
        "place": place,
        "length_parts": np.stack([doc, weights]),
    }


def pages_of(
    pages: Sequence[int], languages: Sequence[bytes], sketches: Values, packed: Sequence[bytes]
) -> dict[str, Values]:
    """Return the arrays of a segment that have an entry per page."""
    sizes = np.fromiter(map(len, packed), np.int64, len(packed))
    return {
        "page": np.array(pages, np.int32),
        "language": np.array(languages, "S3"),
        "sketch": sketches,
        "text": np.frombuffer(b"".join(packed), np.uint8),
        "text_start": np.concatenate([[0], np.cumsum(sizes)]),
    }


def write_arrays(folder: Path, arrays: dict[str, Values]) -> None:
    """Write all arrays of a segment."""
    doc, weights = arrays.pop("length_parts")
    size = arrays["page"].size
    arrays["length"] = np.bincount(doc, weights, minlength=size).astype(np.int64) if size else doc
    folder.mkdir()
    for name, kind in ARRAYS.items():
        save(folder / f"{name}.npy", np.ascontiguousarray(arrays[name].astype(kind)))


class Segment:
    """A segment on disk, mapped into memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._arrays: dict[str, Values] = {name: map_npy(folder / f"{name}.npy") for name in ARRAYS}

    def __getattr__(self, name: str) -> Values:
        try:
            return self._arrays[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def size(self) -> int:
        """Number of pages."""
        return int(self.page.size)

    def find(self, names: Sequence[bytes]) -> list[int]:
        """Return the numbers of those of some words that the segment has."""
        wanted = np.array(sorted(set(names)), f"S{LONGEST}")
        at = np.searchsorted(self.terms, wanted)
        inside = at < self.terms.size
        at, wanted = at[inside], wanted[inside]
        found: list[int] = at[self.terms[at] == wanted].tolist()
        return found

    def postings(self, term: int) -> tuple[Values, Values]:
        """Return the pages with a word, and its weighted frequencies."""
        first, end = int(self.term_start[term]), int(self.term_start[term + 1])
        return self.doc[first:end], self.weight[first:end]

    def occurrences(self, term: int) -> tuple[Values, Values]:
        """Return page and place of each occurrence of a word."""
        first, end = int(self.term_start[term]), int(self.term_start[term + 1])
        begin, stop = int(self.place_start[term]), int(self.place_start[term + 1])
        return np.repeat(self.doc[first:end], self.count[first:end]), self.place[begin:stop]

    def places(self, term: int, doc: int) -> Values:
        """Return the places of a word in one page."""
        first, end = int(self.term_start[term]), int(self.term_start[term + 1])
        at = first + int(np.searchsorted(self.doc[first:end], doc))
        if at == end or self.doc[at] != doc:
            return self.place[:0]
        begin = int(self.place_start[term]) + int(self.count[first:at].sum(dtype=np.int64))
        return self.place[begin : begin + int(self.count[at])]

    def texts(self, doc: AnyInt) -> Texts:
        """Return the stored texts of a page."""
        first, end = int(self.text_start[doc]), int(self.text_start[doc + 1])
        return Texts.unpacked(self.text[first:end].tobytes())

    def packed(self, doc: AnyInt) -> bytes:
        """Return the stored texts of a page as they are on disk."""
        first, end = int(self.text_start[doc]), int(self.text_start[doc + 1])
        return bytes(self.text[first:end].tobytes())


def merge(parts: Iterable[tuple[Segment, Values]], folder: Path) -> IntArray:
    """Write the pages of several segments that are still current into one; return their ids."""
    chosen = list(parts)
    terms = np.unique(np.concatenate([segment.terms for segment, _ in chosen]))
    term, doc, place = zip(*_kept(chosen, terms), strict=True)
    whole, docs, places = (np.concatenate(values) for values in (term, doc, place))
    order = np.lexsort((places, docs))
    used, own = np.unique(whole[order], return_inverse=True)
    arrays = inverted(terms[used], own, docs[order], places[order])
    keep = [(segment, np.flatnonzero(is_live)) for segment, is_live in chosen]
    pages = np.concatenate([segment.page[rows] for segment, rows in keep]).astype(np.int64)
    packed = [segment.packed(row) for segment, rows in keep for row in rows.tolist()]
    languages = [bytes(one) for segment, rows in keep for one in segment.language[rows]]
    sketches = np.concatenate([segment.sketch[rows] for segment, rows in keep])
    write_arrays(folder, arrays | pages_of(pages.tolist(), languages, sketches, packed))
    return pages


def _kept(parts: Sequence[tuple[Segment, Values]], terms: Values) -> Iterator[tuple[Values, Values, Values]]:
    """Yield the occurrences on current pages of each segment, by the numbers of a common vocabulary."""
    first = 0
    for segment, is_live in parts:
        number = np.searchsorted(terms, segment.terms)
        own = np.repeat(number, np.diff(segment.place_start))
        doc = np.repeat(segment.doc, segment.count).astype(np.int64)
        renumbered = np.cumsum(is_live) - 1 + first
        kept = is_live[doc]
        yield own[kept], renumbered[doc[kept]], segment.place[:][kept].astype(np.int64)
        first += int(is_live.sum())


def mean_length(lengths: FloatArray | IntArray) -> float:
    """Return the mean weighted length of pages; 1 if all are empty."""
    return float(lengths.mean()) or 1.0 if lengths.size else 1.0
