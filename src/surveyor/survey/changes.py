"""Pages that have changed since a time, within one survey.

The last visit of a page before the time is compared with its last visit; blocked visits (no response, robots.txt, …)
show nothing and are skipped. Only pages visited since then can appear.

- **new**: fetched now, not before;
- **gone**, **redirected**: fetched before;
- **back**: gone or redirected before, fetched now;
- **changed**: another main text; **perhaps changed**: other bytes, but the main texts are not comparable (setting
  `main_text`), so that it may be a timestamp;
- **links only**: the same content with other links in scope.

A page that changed and changed back is not listed. `at` is the time of the first visit that found the current state.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.errors import UsageError
from surveyor.frames import Tabular, draw_bars
from surveyor.outcome import Visit, has_changed
from surveyor.store.journal import Journal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = {  # and their meanings
    "new": "fetched for the first time",
    "changed": "another main text",
    "perhaps changed": "other bytes; the main texts are not comparable",
    "links only": "other links, the same content",
    "gone": "HTTP 404 or 410",
    "redirected": "redirects to another page now",
    "back": "fetched again after it was gone or redirected",
}
UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
RELATIVE = re.compile(rf"(\d{{1,6}}(?:\.\d{{1,6}})?)\s*({'|'.join(UNITS)})")
SINCE_HINT = "pass a date (2026-11-18), a time (2026-11-18T20:00), or an age such as 12h, 7d or 2w"


@dataclass(frozen=True, slots=True)
class PageChange:
    """One page that has changed."""

    kind: str
    url: str
    at: float  # time of the visit that found it, in seconds since 1970
    importance: float | None = None  # share of all importance now; None if it is not known
    old_title: str = ""
    title: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, repr=False)
class Changes(Tabular):
    """The pages that have changed since a time, most important first."""

    since: float
    visited: int  # pages visited since then
    pages: tuple[PageChange, ...]

    def counts(self) -> dict[str, int]:
        """Count the pages of each kind, in the order of `KINDS`."""
        found = [change.kind for change in self.pages]
        return {kind: found.count(kind) for kind in KINDS if kind in found}

    def _columns(self) -> dict[str, Any]:
        return {name: [getattr(change, name) for change in self.pages] for name in PageChange.__slots__}

    def _draw(self, axes: Axes) -> None:
        counts = self.counts()
        draw_bars(axes, list(counts), list(counts.values()), "pages")

    def to_dict(self, count: int | None = None) -> dict[str, Any]:
        """Return all fields as a dict, with at most `count` pages."""
        pages = [change.to_dict() for change in self.pages[:count]]
        return {"since": self.since, "visited": self.visited, "counts": self.counts(), "changes": pages}

    def __repr__(self) -> str:
        counts = ", ".join(f"{number:,} {kind}" for kind, number in self.counts().items())
        return f"Changes({counts or 'none'}; {self.visited:,} pages visited)"


def changes(
    journal: Journal, since: float, importance: Mapping[str, float] | None = None, *, each: bool = False
) -> Changes:
    """Return the pages of a journal that have changed since a time, with their importance by URL.

    With `each`, return every change that a visit found: a page is compared with its visit before, not with its last
    visit before the time.
    """
    shares, compare = importance or {}, _each_change if each else _net_change
    histories = _histories(journal, since)
    urls = _urls(journal, histories)
    found = [
        PageChange(kind, urls[page], at, shares.get(urls[page]), old_title, title)
        for page, history in histories.items()
        for kind, at, old_title, title in compare(history)
    ]
    found.sort(key=lambda change: (-(change.importance or 0.0), -change.at, change.url))
    return Changes(since, len(histories), tuple(found))


def since_time(text: str, now: float) -> float:
    """Return the time that a text names, as seconds since 1970; a date without a zone is in UTC.

    >>> since_time("2h", 10_000.0), since_time("1970-01-02", 0.0)
    (2800.0, 86400.0)
    """
    if match := RELATIVE.fullmatch(text.strip().lower()):
        return max(0.0, now - float(match[1]) * UNITS[match[2]])
    try:
        time = datetime.fromisoformat(text.strip())
        at = (time.replace(tzinfo=UTC) if time.tzinfo is None else time).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(f"since must be a time, got {text!r:.100}", hint=SINCE_HINT) from None
    if not 0 <= at < math.inf:
        raise UsageError(f"since must be 1970 or later, got {text!r:.100}", hint=SINCE_HINT)
    return at


@dataclass(slots=True)
class _History:
    """The visits of a page: the last one before the time, and those since then."""

    before: Visit | None
    since: list[Visit]


def _histories(journal: Journal, since: float) -> dict[int, _History]:
    """Return the histories of the pages visited since a time, without blocked visits."""
    found: dict[int, _History] = {}
    start = journal.position_at(since)
    for number, visit in enumerate(journal.visits(start), start + 1):
        if visit.kind == "blocked" or visit.fetched_at < since:
            continue
        if visit.page not in found:
            found[visit.page] = _History(journal.last_result(visit.page, before=number), [])
        found[visit.page].since.append(visit)
    return found


def _urls(journal: Journal, pages: Mapping[int, object]) -> dict[int, str]:
    return {page: url for page, url in enumerate(journal.urls()) if page in pages}


def _net_change(history: _History) -> Iterator[tuple[str, float, str, str]]:
    """Yield the kind, time, old and new title of the change of a page, if there is one."""
    before, last = history.before, history.since[-1]
    kind = _kind(before, last)
    if kind:
        at = last.fetched_at
        for visit in reversed(history.since):
            if _kind(visit, last):
                break
            at = visit.fetched_at
        yield kind, at, before.title if before is not None else "", last.title


def _each_change(history: _History) -> Iterator[tuple[str, float, str, str]]:
    """Yield the same of each visit that found a change."""
    before = history.before
    for visit in history.since:
        if kind := _kind(before, visit):
            yield kind, visit.fetched_at, before.title if before is not None else "", visit.title
        before = visit


def _kind(before: Visit | None, after: Visit) -> str:
    """Return the kind of change between two visits, "" if there is none."""
    if after.kind != "fetched":
        moved = before is not None and before.kind == "redirected" == after.kind and before.target != after.target
        return after.kind if moved or (before is not None and before.kind == "fetched") else ""
    if before is None:
        return "new"
    if before.kind != "fetched":
        return "back"
    different = has_changed(before, after)
    if different is None:
        return "perhaps changed"
    if different:
        return "changed"
    return "" if np.array_equal(before.links, after.links) else "links only"
