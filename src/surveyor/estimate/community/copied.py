"""How the survey of a community begins: with what another survey has read, under numbers of its own.

The local pages that were read come first (0 to n - 1), then all other pages of which the outcome is known, then pages
that these link to. The last visit counts that settled a page; what could not be read may be tried again. Links are
judged under the scope of the new survey, which is wider. Where answers lie in the archive of the other is not copied.
What hosts asked for, their robots.txt and to be left alone, holds here too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from surveyor.arrays import IdArray, IntArray
from surveyor.crawler.replay import DELETED, scope_of, urls_of
from surveyor.errors import UsageError
from surveyor.estimate.community.local import Given, Local, local_pages
from surveyor.fetch.responses import LEFT, Reader
from surveyor.outcome import NO_LINKS, Event, RobotsFile, Visit
from surveyor.web.urls import Urls

if TYPE_CHECKING:
    from surveyor.store.directory import SurveyFolder
    from surveyor.store.journal import Journal
    from surveyor.store.manifest import Manifest

Start = Literal["all", "local"]
AT_ONCE = 1000  # visits in one commit
KINDS = {"fetched": 1, "gone": 2, "redirected": 3, "blocked": 4}
LISTS = ("links", "out_of_scope", "nofollow")


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """What is taken over from a survey."""

    urls: Urls  # of the survey
    pages: IdArray  # of the survey, by their new numbers
    visits: IntArray  # that count, ascending
    local: Local
    read: int  # pages that count as read
    journal: str  # what names the journal
    position: int  # where it ended

    @property
    def size(self) -> int:
        """How many pages are local."""
        return int(self.local.places.size)


def choose(base: SurveyFolder, given: Given, start: Start = "all") -> Choice:
    """Choose what is taken over: all that was read, or of pages read the local ones alone."""
    if start not in ("all", "local"):
        raise UsageError(f"no start from {start!r}", hint="begin with all pages read, or with the local ones")
    journal, urls = base.journal, urls_of(base)
    latest: IntArray = np.zeros(len(urls), np.int64)
    kind = np.zeros(len(urls), np.uint8)
    for number, outcome in enumerate(islice(journal.outcomes(), journal.position), 1):
        if outcome.kind != "blocked" or outcome.reason in (LEFT, DELETED):  # others leave a page as it was
            latest[outcome.page], kind[outcome.page] = number, KINDS[outcome.kind]
    read = np.flatnonzero(kind == KINDS["fetched"]).astype(np.int32)
    local = _local(base, urls, read, given)
    first = read[local.places]
    others = (kind > 0) & (kind != KINDS["fetched"]) if start == "local" else kind > 0
    others[first] = False
    pages: IdArray = np.concatenate([first, np.flatnonzero(others)]).astype(np.int32)
    taken = int((kind[pages] == KINDS["fetched"]).sum())
    return Choice(urls, pages, np.sort(latest[pages]), local, taken, journal.identity, journal.position)


def _local(base: SurveyFolder, urls: Urls, read: IdArray, given: Given) -> Local:
    from surveyor.graph.names import Names

    name = base.folder.name
    if not read.size:
        raise UsageError(f"{name} has read no page yet", hint=f"go on with it: surveyor crawl --out {base.folder}")
    names = Names.of(urls[page] for page in read.tolist())
    what = f"the {read.size:,} pages read in {name}"
    return local_pages(given, names, read.size, numbers=read, what=what, may_be_all=True)


class Copy:
    """Writes what was chosen into the journal of a new survey."""

    def __init__(self, base: SurveyFolder, choice: Choice, manifest: Manifest) -> None:
        """Copy from a survey into one with this manifest."""
        self._base, self._choice, self._urls = base, choice, Urls(choice.pages.size + 1024)
        follows = bool(manifest.settings.get("follow_nofollow", False))
        self._reader = Reader(self._urls, scope_of(manifest), (), follow_nofollow=follows)
        self._number: IdArray = np.full(len(choice.urls), -1, np.int32)  # by number in the survey: the new one
        self._outside: IntArray = np.empty(0, np.int64)
        self._meet(choice.pages)

    def into(self, journal: Journal, about: Mapping[str, Any], at: float) -> None:
        """Write visits, what hosts asked for, and an event that tells all about it."""
        for batch in self._batches():
            self._meet(np.concatenate([ids for visit in batch for ids in _named(visit)]))
            visits = [self._renumbered(visit) for visit in batch]
            self._note_outside(visits)
            journal.commit(visits, self._urls.added(journal.url_count))
        told = {**about, "outside": int(self._outside.size)}
        journal.commit([], robots=self._robots(), events=[*self._waits(), Event("community", at, told)])

    def _batches(self) -> Iterator[list[Visit]]:
        wanted = np.zeros(self._choice.position + 1, np.bool_)
        wanted[self._choice.visits] = True
        every = enumerate(islice(self._base.journal.visits(), self._choice.position), 1)
        kept = (visit for number, visit in every if wanted[number])
        while batch := list(islice(kept, AT_ONCE)):
            yield batch

    def _meet(self, pages: IdArray) -> None:
        """Give pages that are new the next numbers, in this order."""
        new = pages[self._number[pages] < 0]
        new = new[np.sort(np.unique(new, return_index=True)[1])]
        self._number[new] = self._urls.ids([self._choice.urls[page] for page in new.tolist()])

    def _renumbered(self, visit: Visit) -> Visit:
        lists = {name: self._number[getattr(visit, name)] for name in LISTS}
        target = -1 if visit.target < 0 else int(self._number[visit.target])
        page = int(self._number[visit.page])
        judged = self._reader.judged(replace(visit, page=page, target=target, warc=None, size=0, **lists))
        self._reader.recall(judged)
        return judged

    def _note_outside(self, visits: list[Visit]) -> None:
        """Remember pages that are linked to, or stand behind an address that moved, and of which nothing is known."""
        targets = np.array([visit.target for visit in visits], np.int64)
        goals = np.concatenate([targets, *(visit.links for visit in visits)])
        self._outside = np.union1d(self._outside, goals[goals >= self._choice.pages.size])

    def _robots(self) -> Iterator[RobotsFile]:
        journal = self._base.journal
        return (kept for origin in [*journal.answered()] if (kept := journal.robots(origin)) is not None)

    def _waits(self) -> list[Event]:
        return list({event.detail.get("host"): event for event in self._base.journal.events("backoff")}.values())


def _named(visit: Visit) -> list[IdArray]:
    target = NO_LINKS if visit.target < 0 else np.array([visit.target], np.int32)
    return [target, visit.links, visit.out_of_scope, visit.nofollow]
