"""Pages that name another page as canonical, held until it is known whether that page can be read.

A page that names a canonical page becomes an alias of it, and that cannot be undone. So the canonical page is fetched
first, after robots.txt and with all delays and limits, and reported like any other page if it could be read. Then the
page that names it is reported: as an alias if the canonical page was fetched, else as itself. A canonical page that
redirects counts as the page at the end of its redirects.

What is held is bounded in number, bytes and time. Beyond these limits, where a canonical page could not be fetched at
once, and where pages name each other in a circle or in a long chain, a page is reported as itself: no page is lost
because of another one. In crawls with a depth limit or budgets no page is fetched for that reason: a canonical page
counts there if it was fetched before.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from surveyor.fetch.http import MOST_REDIRECTS
from surveyor.fetch.responses import PageResponse, Reader
from surveyor.web.html import Page

MOST, MOST_BYTES, PER_LINK = 64, 16_000_000, 256  # answers that are held, and bytes of their bodies and links
LONGEST = 60.0  # seconds
REMEMBERED = 10_000  # canonical pages that could not be fetched


@dataclass(slots=True)
class _Held:
    """An answer, and the canonical page that it names: first as named, then at the end of its redirects."""

    answer: PageResponse
    goal: str
    since: float
    depth: int  # of the chain of pages and redirects that wait for it, itself included

    @property
    def size(self) -> int:
        """Bytes of memory, roughly."""
        links = len(self.answer.parsed.links) if isinstance(self.answer.parsed, Page) else 0
        return len(self.answer.fetched.body) + len(self.answer.fetched.raw) + PER_LINK * links


class Canonicals:
    """The answers that are held."""

    def __init__(self, reader: Reader, is_readable: Callable[[int], bool | None], *, fetches: bool = True) -> None:
        """Hold answers; `is_readable` is None for pages that were not fetched yet.

        If not `fetches`, no canonical page is fetched first: only those that were fetched before count.
        """
        self._fetches = fetches and not reader.counts_depth  # how deep an unknown page is depends on who names it
        self.wanted: dict[str, None] = {}  # canonical pages to fetch, in this order
        self._reader, self._is_readable = reader, is_readable
        self._held: dict[str, _Held] = {}  # by URL
        self._failed: set[str] = set()  # canonical pages that could not be fetched

    def __len__(self) -> int:
        return len(self._held)

    def take(self, answer: PageResponse, now: float) -> list[PageResponse]:
        """Return an answer that can be reported now; hold it if not."""
        goal, url = self._reader.canonical(answer.page, answer.parsed), answer.fetched.url
        self.wanted.pop(url, None)
        if goal is None:
            return [answer]
        depth = 1 + max((held.depth for held in self._held.values() if held.goal == url), default=0)
        held = _Held(answer, goal, now, depth)
        if not self._fetches:
            return [answer if self._look(held) else _as_itself(answer)]
        if self._is_circle(held) or depth > MOST_REDIRECTS or not self._has_room(held):
            return [_as_itself(answer)]
        self._held[url] = held
        self._want(goal)
        return self._decided(held, now)

    def released(self, now: float, *, everything: bool = False) -> list[PageResponse]:
        """Return the answers that need not be held any longer; with `everything`, all of them."""
        found: list[PageResponse] = []
        for held in list(self._held.values()):
            found += self._decided(held, math.inf if everything else now)
        return found

    def clear(self) -> int:
        """Forget all answers, as their pages are fetched again; return the requests that they took."""
        requests = sum(held.answer.fetched.requests for held in self._held.values())
        self._held.clear()
        self.wanted.clear()
        return requests

    def is_settled(self, url: str) -> bool:
        """Return whether a canonical page was fetched meanwhile; then it is wanted no more."""
        page = self._reader.find(url)
        settled = page is not None and self._is_readable(page) is not None
        if settled:
            self.wanted.pop(url, None)
        return settled

    def fail(self, url: str) -> None:
        """Note that a canonical page could not be fetched."""
        if len(self._failed) >= REMEMBERED:
            self._failed.clear()
        self._failed.add(url)
        self.wanted.pop(url, None)

    def lease(self, url: str) -> bool:
        """Note that the frontier leased a page; return whether its answer is held, so that no request is needed."""
        if (held := self._held.get(url)) is not None:
            held.answer.leased = True
        return held is not None

    def _decided(self, held: _Held, now: float) -> list[PageResponse]:
        url, exists = held.answer.fetched.url, self._look(held)
        if exists is None and now - held.since < LONGEST:
            return []
        del self._held[url]
        self._prune(held.goal)
        return [held.answer if exists else _as_itself(held.answer)]

    def _look(self, held: _Held) -> bool | None:
        """Return whether a canonical page can be read, None if that is not known yet; follow its redirects."""
        page = self._reader.find(held.goal)
        if page is not None and (end := self._reader.end_of(page)) != page:
            named, held.goal, held.depth = held.goal, self._reader.url(end), held.depth + 1
            self._want(held.goal)
            self._prune(named)
            page = end
            if self._is_circle(held):
                return False
        if page == held.answer.page:
            return False
        exists = None if page is None else self._is_readable(page)
        return False if exists is None and held.goal in self._failed else exists

    def _is_circle(self, held: _Held) -> bool:
        """Return whether this page, or one that it leads to, is part of a circle of pages that name each other."""
        goal, seen = held.goal, {held.answer.fetched.url}
        while goal in self._held and goal not in seen:
            seen.add(goal)
            goal = self._held[goal].goal
        return goal in seen

    def _want(self, url: str) -> None:
        if self._fetches and url not in self._held:  # else it was fetched
            self.wanted[url] = None

    def _prune(self, url: str) -> None:
        """Want a canonical page no more, unless another answer is held for it."""
        if not any(held.goal == url for held in self._held.values()):
            self.wanted.pop(url, None)

    def _has_room(self, held: _Held) -> bool:
        return len(self._held) < MOST and held.size + sum(one.size for one in self._held.values()) <= MOST_BYTES


def _as_itself(answer: PageResponse) -> PageResponse:
    return replace(answer, ignores_canonical=True)
