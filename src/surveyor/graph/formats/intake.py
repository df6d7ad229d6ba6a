"""Collects the output of every reader: links, names, notes and malformed lines.

Numbers in files are often sparse (SNAP). There are three ways to map them to page ids:

    given      the number of pages is known: ids are used unchanged, 0..nodes-1
    seen       ids that occur are marked; at the end they are renumbered in the same order, and the old
               numbers become names, unless they were 0..n-1 already
    listed     ids too large or too sparse for that (beyond int32, or fewer than one in two of 16 million
               numbers can occur): the file is read once to list its ids and once more to map them
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.arrays import MAX_PAGES, AnyIntArray, BoolArray, ByteArray, IntArray
from surveyor.errors import InputError, UsageError
from surveyor.graph.build import Builder
from surveyor.graph.names import Interner, Names
from surveyor.stopping import ProgressCallback, silent

SHOWN = 5  # malformed lines kept for the report
SPARSE = 1 << 24  # ids below this are always marked in a table


class TooSparse(Exception):
    """The ids of a file cannot be marked in a table: read it again (internal)."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options for reading a file of links."""

    nodes: int | None = None  # number of pages
    strict: bool = False  # raise an error at the first malformed line
    memory: int | None = None  # bytes for links; None: no limit
    threads: int | None = None


class Intake:
    """Collects one source; use it in a `with` statement."""

    most_pages = MAX_PAGES

    def __init__(
        self,
        source: Path,
        *,
        format_name: str,
        copy: Path | None = None,
        options: ReadOptions | None = None,
        progress: ProgressCallback = silent,
    ) -> None:
        options = options or ReadOptions()
        nodes = options.nodes
        if nodes is not None and not 0 <= nodes <= self.most_pages:
            raise UsageError(
                f"nodes must be from 0 to {self.most_pages:,}, got {nodes:,}", hint="omit it to use all ids"
            )
        self.source, self.format_name, self._copy = source, format_name, copy
        self.wanted, self.strict = nodes, options.strict
        self.memory, self.threads, self.progress = options.memory, options.threads, progress
        self._listed: IntArray | None = None
        self._listing: list[IntArray] | None = None
        self.builder = self._start()

    def __enter__(self) -> Intake:
        return self

    def __exit__(self, *_: object) -> None:
        self.builder.__exit__()

    def _start(self) -> Builder:
        self.nodes: int | None = self.wanted
        self.names: Names | None = None
        self._expected, self._declared = 0, False
        self.notes: list[str] = []
        self.bad_count, self.bad_first = 0, list[dict[str, Any]]()
        self._used: BoolArray | None = None
        self._interner: Interner | None = None
        return Builder(memory=self.memory, threads=self.threads)

    def read_again(self, *, listing: bool) -> None:
        """Reset for another pass: one that lists ids, then one that maps them."""
        self.builder.__exit__()
        if listing:
            self._listing = []
        else:
            self._listed, self._listing = self._merge_lists(), None
        self.builder = self._start()

    @property
    def id_type(self) -> type[np.signedinteger[Any]]:
        """The type for numbers from the file."""
        return np.int32 if self._listed is None and self._listing is None else np.int64

    @property
    def limit(self) -> int:
        """The number that ids from the file must stay below."""
        return self.nodes if self._declared and self.nodes is not None else 2**63 - 1

    @property
    def fits(self) -> int:
        """The number above which ids cannot be marked in a table."""
        return MAX_PAGES if self.id_type is np.int32 else 2**63 - 1

    def note(self, text: str) -> None:
        """Record a note for the user, once."""
        if text not in self.notes:
            self.notes.append(text)

    def malformed(self, file: Path, line: int, text: bytes) -> None:
        """Count a malformed line and keep the first ones; with `strict`, raise an error."""
        shown = text[:200].decode("utf-8", "replace").strip()
        shown = shown if len(shown) <= 80 else shown[:79] + "…"
        if self.strict:
            raise InputError(
                f"{file}:{line}: not a link: {shown!r}",
                hint="correct the line, choose another format, or omit --strict to skip such lines",
            )
        self.bad_count += 1
        if len(self.bad_first) < SHOWN:
            named = self.source if file == self._copy else file
            self.bad_first.append({"file": str(named), "line": line, "text": shown})

    def declare(self, nodes: int, names: Names | None = None) -> None:
        """Set the number of pages stated in the file, and their names; links then contain page ids."""
        if nodes > MAX_PAGES:
            raise InputError(f"{self.source} has {nodes:,} pages", hint=f"at most {MAX_PAGES:,} are possible")
        if self.wanted is not None and (self.wanted < nodes or (names and self.wanted != nodes)):
            raise InputError(
                f"{self.source} has {nodes:,} pages, got nodes {self.wanted:,}",
                hint="omit the number of pages",
            )
        self.nodes, self.names = nodes if self.wanted is None else self.wanted, names
        self._declared = True

    def check_filled(self, nodes: int, links: int) -> None:
        """Reject a stated number of pages that would take gigabytes with hardly any links."""
        if nodes > max(SPARSE, 64 * links):
            raise InputError(
                f"{self.source} states {nodes:,} pages but has {links:,} links",
                hint="number the pages that have links from 0, without gaps",
            )

    def note_repeats(self, names: Names) -> None:
        """Record a note if several pages have the same name: only one of them is found by name."""
        if repeats := names.repeats():
            self.note(f"{repeats:,} names occur more than once: {self.source.name} has pages that share a name")

    def expect(self, nodes: int) -> None:
        """Set the number of pages that a file claims: used if no id contradicts it and it is plausible."""
        self._expected = nodes

    def links(self, sources: AnyIntArray, targets: AnyIntArray) -> None:
        """Add links between page ids of a declared graph."""
        self.builder.add(sources, targets)

    def ids(self, sources: AnyIntArray, targets: AnyIntArray, largest: int) -> None:
        """Add links between numbers, which may be sparse."""
        if self._listing is not None:
            self._listing.append(np.unique(np.concatenate([sources, targets])))
            if len(self._listing) > 64:
                self._listing = [self._merge_lists()]
        elif self._listed is not None:
            self.builder.add(np.searchsorted(self._listed, sources), np.searchsorted(self._listed, targets))
        elif self.nodes is not None:
            if largest >= self.nodes:
                raise InputError(
                    f"{self.source} has a link of page {largest:,}, outside 0..{self.nodes - 1:,}",
                    hint=f"set --nodes to at least {largest + 1:,}, or omit it: ids are then renumbered",
                )
            self.builder.add(sources, targets)
        elif largest >= MAX_PAGES:
            raise TooSparse
        elif sources.size:
            self._mark(sources, targets, largest)
            self.builder.add(sources, targets)

    def pairs(self, text: ByteArray, spans: IntArray) -> None:
        """Add links between names, given as spans of a text: source, target, source, target, ..."""
        ids = self.intern(text, spans).reshape(-1, 2)
        self.builder.add(np.ascontiguousarray(ids[:, 0]), np.ascontiguousarray(ids[:, 1]))

    def intern(self, text: ByteArray, spans: IntArray) -> AnyIntArray:
        """Return the page id of each name."""
        if self.wanted is not None:
            raise UsageError(
                f"{self.source} contains names, not ids", hint="omit the number of pages: names are counted"
            )
        if self._interner is None:
            self._interner = Interner()
        return self._interner.intern(text, spans)

    def _mark(self, sources: AnyIntArray, targets: AnyIntArray, largest: int) -> None:
        from surveyor.kernels.text_parsing import mark_ids

        used = np.zeros(1 << 16, np.bool_) if self._used is None else self._used
        if largest >= used.size:
            grown = np.zeros(min(MAX_PAGES, 1 << (int(largest).bit_length() + 1)), np.bool_)
            grown[: used.size] = used  # the rest takes no memory before it is marked
            used = grown
        mark_ids(sources, used)
        mark_ids(targets, used)
        self._used = used

    def _merge_lists(self) -> IntArray:
        lists = self._listing or [np.empty(0, np.int64)]
        return np.unique(np.concatenate(lists))

    def settle(self) -> None:
        """Fix the number of pages and their names after the last link; read again if ids are too sparse."""
        if self._listing is not None:
            return
        self.check_malformed()
        if self._interner is not None:
            self.names = self._interner.names()
            self.nodes = len(self.names)
        elif self._listed is not None:
            self._name_by(self._listed)
        elif self.nodes is None:
            self._compact()

    def check_malformed(self) -> None:
        """Reject a source with more malformed lines than links."""
        if self.bad_count and not self.builder.links_seen:
            first = self.bad_first[0]
            raise InputError(
                f"{self.source} has no links that can be read as {self.format_name}: all {self.bad_count:,} "
                f"of its data lines are malformed, the first at {first['file']}:{first['line']}: "
                f"{first['text']!r}",
                hint="it is probably in another format: name it with --input-format",
            )
        if self.bad_count > self.builder.links_seen:
            first = self.bad_first[0]
            raise InputError(
                f"{self.source} has more malformed lines ({self.bad_count:,}) than links "
                f"({self.builder.links_seen:,}) when read as {self.format_name}; the first is at "
                f"{first['file']}:{first['line']}: {first['text']!r}",
                hint="it is probably not a file of links, or in another format: name it with --input-format",
            )

    def _compact(self) -> None:
        used = self._used if self._used is not None else np.zeros(0, np.bool_)
        size = self.builder.largest + 1
        if size <= self._expected <= max(SPARSE, 16 * self.builder.links_seen):
            self.nodes = self._expected
            return
        if size > SPARSE and size > 2 * self.builder.links_seen:
            raise TooSparse
        used = used[:size]
        if used.all():
            self.nodes = used.size
            return
        new_ids = np.cumsum(used, dtype=np.int32)
        new_ids -= 1
        self.builder.rename(new_ids)
        self._name_by(np.flatnonzero(used))

    def _name_by(self, ids: IntArray) -> None:
        self.nodes, self.names = ids.size, numbered(ids)
        if ids.size:
            self.note(f"ids from {ids[0]} to {ids[-1]} are renumbered from 0; the old ids are kept as names")

    def provenance(self) -> dict[str, Any]:
        """Return the provenance of the links: source, format, malformed lines and notes."""
        return {
            "source": str(self.source),
            "format": self.format_name,
            "malformed": {"count": self.bad_count, "first": self.bad_first},
            "notes": self.notes,
        }


def numbered(ids: IntArray) -> Names:
    """Return names that are numbers."""
    from surveyor.kernels.text_writing import write_numbers

    powers = 10 ** np.arange(1, 19, dtype=np.int64)
    offsets = np.zeros(ids.size + 1, np.int64)
    np.cumsum(np.searchsorted(powers, ids, side="right") + 1, out=offsets[1:])
    blob = np.empty(offsets[-1], np.uint8)
    write_numbers(ids, offsets, blob)
    return Names(offsets, blob)
