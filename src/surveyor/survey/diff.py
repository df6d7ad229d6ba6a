"""Differences between two surveys, and whether they are certain.

Pages are matched by URL. A survey is incomplete, so a difference is certain only if it exceeds the error of both:

- **risen, fallen**: the shares differ by more than `margin`. The share of a page in a complete survey is at least the
  mass settled on it, and at most that plus all mass not settled yet: waiting, blocked or moving. The reported share
  lies between these bounds. So shares that differ by more than the unsettled mass of both surveys (and the errors of
  both rankings) truly differ. Smaller differences are *perhaps risen* and *perhaps fallen*.
- **new**: read in the new survey, and unknown in the old one although no page was waiting or blocked in it. If some
  were, it is *first seen*: it may have existed.
- **gone**: read in the old survey, and reported gone in the new one. *Not seen*: unknown in the new one; *unlinked* if
  no page is waiting or blocked there, so that no link leads to it.
- **moved**, **blocked**: read in the old survey; in the new one an alias of another page (redirect or canonical URL),
  or blocked.
- **broken link**, **repaired link**: a URL that fetched pages link to is gone now, and was not; or the other way round.
- **retitled**, **other canonical**: read in both, with another title; an alias of another page than before.
- **changed**: read in both, with different bytes (by hash). Pages that show the time of day always change.

Surveys with different seeds, damping or scope measure different things; `differing` lists these settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.crawler.replay import SCOPE
from surveyor.frames import BARS, Tabular, draw_bars
from surveyor.rank.comparison import kendall, l1, overlap
from surveyor.survey.tables import STATUSES, positions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from surveyor.survey.survey import Survey

MEASURED = (*SCOPE, "damping")  # settings that change what is measured
BEST = 100  # pages whose overlap and order are compared
KINDS = {  # and their meanings
    "new": "fetched now; the old survey was complete and did not know it",
    "first seen": "fetched now; the old survey did not know it, but was not complete",
    "gone": "HTTP 404, 410 or similar",
    "redirected": "redirects to another page now",
    "blocked": "cannot be fetched now",
    "unlinked": "no link to it; the new survey is complete",
    "not seen": "no link to it yet; the new survey is not complete",
    "risen": "by more than the error bound of both surveys",
    "fallen": "by more than the error bound of both surveys",
    "perhaps risen": "on the links as fetched, within the error bound of both surveys",
    "perhaps fallen": "on the links as fetched, within the error bound of both surveys",
    "broken link": "linked to and gone now; it was not gone before",
    "repaired link": "gone before; it can be fetched, or no page links to it any more",
    "retitled": "another title",
    "other canonical": "redirects to another page than before, or names another one as canonical",
    "changed": "different content",
}


@dataclass(frozen=True, slots=True)
class Change:
    """One page that differs; shares and positions are None where a survey does not rank it."""

    kind: str
    url: str
    old_share: float | None = None
    new_share: float | None = None
    old_position: int | None = None
    new_position: int | None = None

    @property
    def weight(self) -> float:
        """Importance of the change: the difference of the shares; for a changed page, the larger share."""
        old, new = self.old_share or 0.0, self.new_share or 0.0
        return max(old, new) if self.kind == "changed" else abs(new - old)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, repr=False)
class Difference(Tabular):
    """Differences between two surveys."""

    differing: dict[str, tuple[Any, Any]]  # settings that define what is measured: name -> old, new
    changes: dict[str, list[Change]]  # by kind, largest weight first
    margin: float  # smaller differences of shares may be due to importance that was not captured
    both: int  # pages ranked in both
    best: int  # pages at the top of both rankings whose overlap and order are compared
    overlap: float  # share of the best pages that is in both lists
    kendall: float  # Kendall's tau over the pages in either list, from -1 to 1
    l1: float  # the sum of all differences of shares, from 0 to 2

    def _columns(self) -> dict[str, Any]:
        rows = [change.to_dict() for found in self.changes.values() for change in found]
        return {name: [row[name] for row in rows] for name in Change.__slots__}

    def _draw(self, axes: Axes) -> None:
        found = sorted((one for rows in self.changes.values() for one in rows), key=lambda one: -one.weight)[:BARS]
        moved = [(one.new_share or 0.0) - (one.old_share or 0.0) for one in found]
        draw_bars(axes, [f"{one.kind}: {one.url}" for one in found], moved, "change of the share")

    def to_dict(self, count: int | None = None) -> dict[str, Any]:
        """Return all fields as a dict, with at most `count` pages of each kind."""
        return {
            "differing": {name: list(values) for name, values in self.differing.items()},
            "margin": self.margin,
            "pages_in_both": self.both,
            "best": self.best,
            "overlap": self.overlap,
            "kendall": self.kendall,
            "l1": self.l1,
            "counts": {kind: len(found) for kind, found in self.changes.items()},
            "changes": {kind: [one.to_dict() for one in found[:count]] for kind, found in self.changes.items()},
        }

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(found):,} {kind}" for kind, found in self.changes.items() if found)
        return f"Difference({counts or 'none'}; margin {self.margin:.2g})"


def compare(old: Survey, new: Survey) -> Difference:
    """Return the differences between a survey and a later one."""
    before, after = _Side(old), _Side(new)
    margin = before.unsure + after.unsure
    changes: dict[str, list[Change]] = {kind: [] for kind in KINDS}
    for url in dict.fromkeys([*before.read, *after.read, *before.number, *after.number, *before.known, *after.known]):
        for kind in _kinds(before, after, url, margin):
            changes[kind].append(_change(kind, before, after, url))
    for found in changes.values():
        found.sort(key=lambda change: (-change.weight, change.url))
    return Difference(_differing(old, new), changes, margin, *_alike(before, after))


class _Side:
    """One of the two surveys, by URL."""

    def __init__(self, survey: Survey) -> None:
        ranked, ranking = survey.as_graph(), survey.ranking
        self.scores, self.positions = ranking.scores, positions(ranking.scores)
        self.number = {url: page for page, url in enumerate(ranked.graph.names or ())}
        self.finished = survey.pages_queued == 0 and not survey.blocked()  # no link can have been missed
        self.unsure = survey.unsettled + ranking.error
        self.error = ranking.error
        hashes = survey.tables.hashes()
        every = [*zip(ranked.pages.tolist(), ranked.read.tolist(), self.number, strict=True)]
        self.read = {url: hashes.get(page, b"") for page, read, url in every if read}
        self._urls, self._statuses = survey.tables.urls, survey.tables.statuses
        titles = survey.tables.titles()
        self.titles = {url: titles.get(page, "") for page, read, url in every if read}
        self.known = [*self._urls.added(0)]

    def end(self, url: str) -> str:
        """Return the page at the end of the redirects and canonical URLs of a known page."""
        page = self._urls.find(url)
        return "" if page is None else self._urls[int(self._urls.canonical(np.array([page], np.int32))[0])]

    def share(self, url: str) -> float | None:
        page = self.number.get(url)
        return None if page is None else float(self.scores[page])

    def position(self, url: str) -> int | None:
        page = self.number.get(url)
        return None if page is None else int(self.positions[page])

    def kind(self, url: str) -> str:
        """Return the status of a page, "" if it is unknown."""
        page = self._urls.find(url)
        return "" if page is None else STATUSES[self._statuses[page]]


def _kinds(before: _Side, after: _Side, url: str, margin: float) -> list[str]:
    """Return the kinds of differences of a page."""
    now, was = after.kind(url), before.kind(url)
    if now == "gone" and was != "gone" and url not in before.read:
        return ["broken link"]
    if was == "gone" and (now in ("fetched", "redirected") or (not now and after.finished)):
        return ["repaired link"]
    if now == was == "redirected" and before.end(url) != after.end(url):
        return ["other canonical"]
    if url in after.read and not before.kind(url):
        return ["new" if before.finished else "first seen"]
    if url in before.read and not now:
        return ["unlinked" if after.finished else "not seen"]
    if url in before.read and now in ("gone", "redirected", "blocked"):
        return [now]
    kinds = []
    old, new = before.share(url), after.share(url)
    if old is not None and new is not None and abs(new - old) > before.error + after.error:
        sure = "" if abs(new - old) > margin else "perhaps "
        kinds.append(sure + ("risen" if new > old else "fallen"))
    if url in before.read and url in after.read:
        kinds += ["retitled"] if before.titles[url] != after.titles[url] else []
        kinds += ["changed"] if before.read[url] != after.read[url] else []
    return kinds


def _change(kind: str, before: _Side, after: _Side, url: str) -> Change:
    return Change(kind, url, before.share(url), after.share(url), before.position(url), after.position(url))


def _alike(before: _Side, after: _Side) -> tuple[int, int, float, float, float]:
    """Compare the rankings over the pages of both; a page missing from one has share 0 there."""
    urls = list(dict.fromkeys([*before.number, *after.number]))
    old, new = (np.array([side.share(url) or 0.0 for url in urls]) for side in (before, after))
    both = sum(url in after.number for url in before.number)
    best = max(1, min(BEST, len(before.number), len(after.number)))  # at most the pages of the smaller survey
    listed = np.union1d(np.argsort(-old, kind="stable")[:best], np.argsort(-new, kind="stable")[:best])
    return both, best, overlap(old, new, best), kendall(old[listed], new[listed]), l1(old, new)


def _differing(old: Survey, new: Survey) -> dict[str, tuple[Any, Any]]:
    """Return the differing settings that define what is measured, seeds first."""
    found: dict[str, tuple[Any, Any]] = {}
    if set(old.manifest.written_seeds) != set(new.manifest.written_seeds):
        found["seeds"] = sorted(old.manifest.written_seeds), sorted(new.manifest.written_seeds)
    for name in MEASURED:
        values = [_plain(survey.manifest.settings.get(name)) for survey in (old, new)]
        if values[0] != values[1]:
            found[name] = values[0], values[1]
    return found


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value or None
