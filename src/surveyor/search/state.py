"""Which page of which segment is current, and the links whose texts are indexed with their targets.

A page is indexed with at most `MOST_ANCHORS` different texts of links to it, those of most pages first. A text counts
once, however many pages have it, so that a menu of every page is not the description of its targets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.arrays import IntArray, map_npy, save
from surveyor.search.segment import Segment
from surveyor.web.near_duplicates import NearDuplicates

MOST_ANCHORS = 64
PAGES = {"page": "int32", "segment": "int32", "doc": "int32", "fetched_at": "float64", "content": "uint64"}
LINKS = {"source": "int32", "target": "int32", "anchor": "int32"}
OTHERS = {"group": "int32", "pair": "int64", "texts": "uint8"}
Values = np.ndarray[Any, Any]


@dataclass(slots=True)
class Indexed:
    """The current pages of an index, in the order of their ids."""

    page: Values
    segment: Values  # number of the segment
    doc: Values  # place in it
    fetched_at: Values  # time of the latest fetch
    content: Values  # digest of what the page was made from
    group: Values  # row of the first page with nearly the same text

    @classmethod
    def read(cls, folder: Path) -> Indexed:
        """Read the pages of a state."""
        return cls(*(map_npy(folder / f"{name}.npy") for name in (*PAGES, "group")))


@dataclass(slots=True)
class State:
    """A state that an update changes."""

    entries: dict[int, tuple[int, int, float, int]] = field(default_factory=dict)  # page -> the other columns
    links: dict[str, Values] = field(default_factory=lambda: {name: np.empty(0, kind) for name, kind in LINKS.items()})
    texts: dict[str, int] = field(default_factory=dict)  # of links
    pair: Values = field(default_factory=lambda: np.empty(0, np.int64))  # target << 32 | text, as indexed

    @classmethod
    def read(cls, folder: Path) -> State:
        """Read a state."""
        columns = [map_npy(folder / f"{name}.npy").tolist() for name in PAGES]
        entries = {page: tuple(rest) for page, *rest in zip(*columns, strict=True)}
        links = {name: np.array(map_npy(folder / f"{name}.npy")) for name in LINKS}
        texts = map_npy(folder / "texts.npy").tobytes().decode("utf-8", "replace").split("\n")
        numbers = {text: number for number, text in enumerate(texts[:-1])}
        return cls(entries, links, numbers, np.array(map_npy(folder / "pair.npy")))

    def write(self, folder: Path, segments: Sequence[Segment], *, groups: bool) -> None:
        """Write the state into a new folder, with groups of near-duplicates if asked for."""
        folder.mkdir()
        pages = sorted(self.entries)
        rows = [(page, *self.entries[page]) for page in pages]
        columns = zip(*rows, strict=True) if rows else [[]] * len(PAGES)
        arrays: dict[str, Any] = dict(zip(PAGES, columns, strict=True))
        whole = np.arange(len(pages))
        arrays["group"] = self._groups(rows, segments) if groups else whole
        arrays |= {**self.links, "pair": self.pair}
        joined = "".join(f"{text}\n" for text in self.texts)
        arrays["texts"] = np.frombuffer(joined.encode("utf-8", "replace"), np.uint8)
        for name, kind in (PAGES | LINKS | OTHERS).items():
            save(folder / f"{name}.npy", np.array(arrays[name], kind))

    def _groups(self, rows: Sequence[Any], segments: Sequence[Segment]) -> list[int]:
        """Return for each page the row of the first page with nearly the same text."""
        index = NearDuplicates()
        found = []
        for _, segment, doc, *_ in rows:
            own = segments[segment].sketch[doc]
            found.append(index.add(np.array(own[own >= 0])))
        return found

    def set_links(self, found: Mapping[int, Sequence[tuple[int, str]]]) -> None:
        """Replace the links of some pages, given by target and text."""
        others = np.isin(self.links["source"], np.array(list(found), np.int32), invert=True)
        kept = {name: values[others] for name, values in self.links.items()}
        texts = self.texts
        rows = [
            (source, target, texts.setdefault(text, len(texts)))
            for source, links in found.items()
            for target, text in links
        ]
        new = np.array(rows, np.int32).reshape(-1, len(LINKS))
        self.links = {name: np.concatenate([kept[name], new[:, at]]) for at, name in enumerate(LINKS)}

    def choose(self, canonical: Any) -> tuple[Values, IntArray]:
        """Return the texts to be indexed with each target, and the targets whose texts have changed."""
        target = canonical(self.links["target"]).astype(np.int64)
        source = canonical(self.links["source"]).astype(np.int64)
        own = target != source
        key, source = target[own] << 32 | self.links["anchor"][own].astype(np.int64), source[own]
        order = np.lexsort((source, key))
        key, source = key[order], source[order]
        is_new = np.ones(key.size, np.bool_)  # a page counts once for each text
        is_new[1:] = (key[1:] != key[:-1]) | (source[1:] != source[:-1])
        keys, counts = np.unique(key[is_new], return_counts=True)
        chosen = self._most_frequent(keys, counts)
        changed = np.unique(np.setxor1d(chosen, self.pair, assume_unique=True) >> 32)
        return chosen, changed.astype(np.int64)

    def _most_frequent(self, keys: Values, counts: Values) -> Values:
        """Return the pairs of a target and one of its `MOST_ANCHORS` most frequent texts, in order."""
        _, rows, sizes = np.unique(keys >> 32, return_inverse=True, return_counts=True)
        is_many = (sizes > MOST_ANCHORS)[rows]
        many, counts = keys[is_many], counts[is_many]
        targets, anchors = many >> 32, many & 0xFFFFFFFF
        names = list(self.texts) if many.size else []
        used, places = np.unique(anchors, return_inverse=True)
        marks = np.fromiter((_digest(names[one]) for one in used.tolist()), np.uint64, used.size)
        order = np.lexsort((marks[places], -counts, targets))
        first = np.searchsorted(targets, targets[order])  # `targets` is sorted
        kept = many[order][np.arange(many.size) - first < MOST_ANCHORS]
        return np.sort(np.concatenate([keys[~is_many], kept]))

    def texts_of(self, chosen: Values, pages: Collection[int]) -> dict[int, list[str]]:
        """Return the texts of links to some pages."""
        names, found = list(self.texts), dict[int, list[str]]()
        wanted = np.isin(chosen >> 32, np.fromiter(pages, np.int64, len(pages)))
        for key in chosen[wanted].tolist():
            found.setdefault(key >> 32, []).append(names[key & 0xFFFFFFFF])
        return {page: sorted(texts) for page, texts in found.items()}


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "little")
