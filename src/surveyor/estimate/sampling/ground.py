"""What walks over a live web know together: pages that were read, and lists of neighbours that were frozen.

A list is fixed when a walk first draws from it. The neighbours of a page are those it links to, those that a source of
back-links tells, and pages read before that link to it. But if the other page was frozen before, its list decides:
either both list each other or neither does. So the links between frozen pages are the same in both directions at any
time, which the known law of a walk rests on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

OFF, ON, DEAD = 0, 1, 2  # kinds of pages: off topic, on topic, cannot be read (as in kernels/random_walks.py)


def _by_id(page: int) -> int | str:
    return page


@dataclass(slots=True)
class WalkGraph:
    """Pages and their neighbours, as far as they are known; pages are numbers."""

    told: Callable[[int], Iterable[int]]  # pages that link to a page, by a source of back-links
    order: Callable[[int], int | str] = _by_id  # that lists are in: must not depend on when pages were met
    guess: Callable[[int], int] | None = None  # the kind of a page that was not read, if its URL tells it
    host: Callable[[int], int | str] | None = None
    kind_of: dict[int, int] = field(default_factory=dict)  # of pages that were read
    links: dict[int, frozenset[int]] = field(default_factory=dict)
    lists: dict[int, list[int]] = field(default_factory=dict)
    landed: dict[int, int] = field(default_factory=dict)  # probes that met the topic
    round: int = 0
    _linked_from: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    _holders: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))  # who lists a page
    _told: dict[int, frozenset[int]] = field(default_factory=dict)

    @property
    def free(self) -> bool:
        """Whether the URL tells the topic."""
        return self.guess is not None

    def learn(self, page: int, kind: int, links: Iterable[int] = ()) -> None:
        """Take in a page that was read, or that cannot be."""
        self.kind_of[page] = kind
        self.links[page] = frozenset(links) - {page}
        for target in self.links[page]:
            self._linked_from[target].append(page)

    def has(self, page: int) -> bool:
        """Say whether a page was read, or tried."""
        return page in self.kind_of

    def kind(self, page: int) -> int:
        """Return the kind of a page that was read, or whose URL tells it."""
        known = self.kind_of.get(page)
        if known is None and self.guess is not None:
            return self.guess(page)
        return self.kind_of[page]

    def told_of(self, page: int) -> frozenset[int]:
        """Return the pages that are told to link to a page; each is asked about once."""
        if page not in self._told:
            self._told[page] = frozenset(self.told(page)) - {page}
        return self._told[page]

    def freeze(self, page: int) -> list[int]:
        """Return the neighbours of a page; they are fixed from the first time on."""
        if page not in self.lists:
            near = self.links[page] | self.told_of(page) | set(self._linked_from[page])
            known = {other for other in near if other not in self.lists} | set(self._holders[page])
            self.lists[page] = sorted(known, key=self.order)
            for other in known:
                self._holders[other].append(page)
        return self.lists[page]

    def links_both_ways(self, page: int, other: int) -> int:
        """Count the directions in which two neighbours are known to be linked, as the paper counts degrees."""
        back = other in self.told_of(page) or page in self.links.get(other, ())
        return (other in self.links[page]) + back
