"""Map names to their hosts or domains, numbered in the order of first appearance; vectorised over names.

Names may be URLs or host names. URLs are parsed some thousand at a time, and only a host and port that was not seen
before is normalised and looked up in the public suffix list. In a host graph every name is a host, so each is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np

from surveyor.arrays import IdArray, IntArray
from surveyor.errors import UsageError
from surveyor.graph.names import Interner, Names
from surveyor.graph.sites import NOWHERE, authorities
from surveyor.web.suffixes import Suffixes, spelt

Level = Literal["hosts", "domains"]
_QUERY = re.compile(r"[?#\\]")  # ends the host of a URL that has no path


class Places:
    """Hosts or registrable domains of names that come in blocks."""

    def __init__(
        self, to: Level = "domains", suffixes: Suffixes | None = None, aliases: Mapping[str, str] | None = None
    ) -> None:
        """Give each place in `aliases` the number of the place that it maps to."""
        if to not in get_args(Level):
            raise UsageError(f"no graph of {to!r}", hint=f"choose {' or '.join(get_args(Level))}")
        self.to: Level = to
        self.suffixes = (suffixes or Suffixes()) if to == "domains" else None
        self._aliases = {self._place(spelt(a) or a): self._place(spelt(b) or b) for a, b in (aliases or {}).items()}
        self._authorities, self._places = Interner(), Interner()
        self._of_authority: IdArray = np.empty(0, np.int32)
        self._strange: list[IntArray] = []  # places under no known suffix, with duplicates

    def __len__(self) -> int:
        return self._places.known

    def of(self, names: Names) -> IdArray:
        """Return the place number of each name; -1 for a name without a host."""
        spans = authorities(names)
        at = np.full(len(names), NOWHERE, np.int32)
        urls, others = np.flatnonzero(spans[:, 0] < spans[:, 1]), np.flatnonzero(spans[:, 0] == 0)
        known = self._authorities.known
        ids = self._authorities.intern(names.blob, spans[urls])
        fresh, where = np.unique(ids[ids >= known], return_index=True)
        rows = urls[np.flatnonzero(ids >= known)[where]]
        if fresh.size:
            texts = [names.blob[first:last].tobytes() for first, last in spans[rows].tolist()]
            hosts = [_QUERY.split(text.decode("utf-8", "surrogateescape"), 1)[0].rpartition("@")[2] for text in texts]
            self._of_authority = np.concatenate([self._of_authority, self._numbers(hosts)])
        at[urls] = self._of_authority[ids]
        if others.size:
            text, ends = names.blob.tobytes(), names.offsets.tolist()
            hosts = [text[ends[page] : ends[page + 1]].decode("utf-8", "surrogateescape") for page in others.tolist()]
            at[others] = self._numbers(hosts)
        return at

    def names(self) -> Names:
        """Return the names of the places."""
        return self._places.names()

    def in_order(self, kept: IntArray | None = None) -> tuple[Names, IdArray]:
        """Return names in Common Crawl order (by `org.example`), and new numbers by old number; -1 if not kept.

        The array of new numbers ends with an additional -1, the entry of pages without a host.
        """
        names = self.names()
        names = names if kept is None else names.take(kept)
        order = names.reversed_labels().order()
        new: IdArray = np.full(len(self) + 1, NOWHERE, np.int32)
        new[order if kept is None else kept[order]] = np.arange(order.size)
        return names.take(order), new

    @property
    def without_suffix(self) -> IntArray:
        """The places under no known suffix: hosts that are used as their own domain."""
        return np.unique(np.concatenate([np.empty(0, np.int64), *self._strange]))

    def _numbers(self, hosts: list[str]) -> IdArray:
        """Return the place number of each host."""
        spelling = [spelt(host) for host in hosts]
        places = [self._place(host) if host else "" for host in spelling]
        found = Names.of(self._aliases.get(place, place) for place in places)
        numbers = np.full(len(hosts), NOWHERE, np.int32)
        some = np.flatnonzero(np.diff(found.offsets))
        spans = np.column_stack([found.offsets[some], found.offsets[some + 1]])
        numbers[some] = self._places.intern(found.blob, spans)
        if (suffixes := self.suffixes) is not None:
            own = [at for at in some.tolist() if places[at] == spelling[at] and places[at] not in self._aliases]
            self._strange.append(numbers[[at for at in own if not suffixes.knows(spelling[at])]].astype(np.int64))
        return numbers

    def _place(self, host: str) -> str:
        return host if self.suffixes is None else self.suffixes.domain_of(host)
