"""Copy the visits of all shards into the journal of the survey that they belong to.

A merged journal is an ordinary journal: its replay is a crawl by one process, so every command reads it. Its order is
that of the times of the visits, and is fixed once they are copied; copying again adds only what is new. The certificate
that results is that of one ledger over the pages that all shards have fetched.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path

import numpy as np

from surveyor.arrays import IdArray
from surveyor.crawler.replay import urls_of
from surveyor.crawler.shards.director import LEAST_MOVING
from surveyor.crawler.shards.folder import AT_ONCE, Shards, mentioned, read_shards, renumbered
from surveyor.errors import SurveyError
from surveyor.outcome import Event, RobotsFile, Visit
from surveyor.store import layout
from surveyor.store.directory import SurveyFolder
from surveyor.store.disk import damaged
from surveyor.store.journal import Journal
from surveyor.web.urls import Urls

EVENT = "shards_merged"


def refresh(folder: Path) -> str:
    """Bring the journal of a sharded survey up to date; return a notice if that is not possible now."""
    shards = read_shards(folder)
    if shards is None:
        return ""
    try:
        if not _is_behind(folder, shards):
            return ""
        with SurveyFolder.open(folder) as opened:
            merge(opened, shards)
    except (SurveyError, OSError) as error:
        why = getattr(error, "problem", None) or error
        return f"{folder} is read without the latest visits of its shards: {why}"
    return ""


def _is_behind(folder: Path, shards: Shards) -> bool:
    with SurveyFolder.open(folder, write=False) as opened, ExitStack() as stack:
        return merged_positions(opened, shards) != [one.position for one in _opened(shards, stack)]


def _opened(shards: Shards, stack: ExitStack) -> list[Journal]:
    return [stack.enter_context(SurveyFolder.open(path, write=False)).journal for path in shards.paths]


def merged_positions(folder: SurveyFolder, shards: Shards) -> list[int]:
    """Return how many visits of each shard were copied."""
    positions = [0] * shards.count
    for event in folder.journal.events(EVENT):
        if event.detail["crawl"] == shards.crawl:
            positions = list(event.detail["positions"])
    if len(positions) != shards.count:
        raise damaged(folder.journal.path, "it was merged from another number of shards")
    return positions


def merge(folder: SurveyFolder, shards: Shards) -> int:
    """Append the new visits of all shards to the journal of an open survey; return their number."""
    with ExitStack() as stack:
        journals = _opened(shards, stack)
        since = merged_positions(folder, shards)
        ends = [journal.position for journal in journals]
        if any(end < first for first, end in zip(since, ends, strict=True)):
            raise SurveyError(
                f"a shard of {folder.folder} has lost visits that were copied before",
                hint="`surveyor cluster reshard` builds the shards again from the copies",
            )
        copies = [_Copies(index, *one) for index, one in enumerate(zip(journals, since, strict=True))]
        urls = urls_of(folder)
        visits = heapq.merge(*(copy.visits(end) for copy, end in zip(copies, ends, strict=True)), key=_key)
        while some := list(islice(visits, AT_ONCE)):
            written = [copies[index].translated(visit, urls) for _, index, _, visit in some]
            positions = [copy.position for copy in copies]
            events = [Event(EVENT, written[-1].fetched_at, {"crawl": shards.crawl, "positions": positions})]
            folder.journal.commit(written, urls.added(folder.journal.url_count), events=events)
        others = sum(int(event.detail["count"]) for journal in journals for event in journal.events("requests"))
        if sum(ends) > sum(since):  # the shards have pushed as far, together
            depth = LEAST_MOVING / 2 / folder.journal.url_count
            folder.journal.commit([], events=[Event("pushed", 0.0, {"threshold": depth})])
        if (count := others - _requests(folder, shards)) > 0:
            event = Event(EVENT, 0.0, {"crawl": shards.crawl, "positions": ends, "requests": others})
            folder.journal.commit([], events=[Event("requests", 0.0, {"count": count}), event])
        folder.journal.commit([], robots=_new_robots(folder.journal, journals))
        return sum(ends) - sum(since)


def _key(entry: tuple[float, int, int, Visit]) -> tuple[float, int, int]:
    return entry[:3]


def _requests(folder: SurveyFolder, shards: Shards) -> int:
    """Return the requests without a visit, such as for robots.txt, that were copied."""
    mine = (event.detail for event in folder.journal.events(EVENT) if event.detail["crawl"] == shards.crawl)
    return max((int(detail.get("requests") or 0) for detail in mine), default=0)


def _new_robots(before: Journal, journals: Sequence[Journal]) -> Iterable[RobotsFile]:
    for journal in journals:
        for origin in [*journal.answered()]:
            file, known = journal.robots(origin), before.robots(origin)
            if file is not None and (known is None or known.fetched_at < file.fetched_at):
                yield file


class _Copies:
    """The new visits of one shard."""

    def __init__(self, index: int, journal: Journal, since: int) -> None:
        self._index, self._journal, self.position = index, journal, since
        self._new: IdArray = np.full(1 << 12, -1, np.int32)

    def visits(self, end: int) -> Iterator[tuple[float, int, int, Visit]]:
        """Yield time, shard, position and visit, in order; a visit without a time has that of the one before."""
        now = 0.0
        visits = islice(self._journal.visits(self.position), end - self.position)
        for position, visit in enumerate(visits, self.position + 1):
            now = max(now, visit.fetched_at)
            yield now, self._index, position, visit

    def translated(self, visit: Visit, urls: Urls) -> Visit:
        """Return the next visit under the ids of the merged journal."""
        self.position += 1
        named = np.unique(np.concatenate(mentioned(visit)))
        if int(named[-1]) >= self._new.size:
            room = np.full(2 * (int(named[-1]) + 1), -1, np.int32)
            room[: self._new.size] = self._new
            self._new = room
        new = named[self._new[named] < 0]
        if new.size:
            first, last = int(new[0]), int(new[-1]) + 1
            texts = self._journal.urls_between(first, last)
            self._new[new] = urls.ids([texts[page - first] for page in new.tolist()])
        return renumbered(visit, self._new)


def lost_shards(shards: Shards) -> list[Path]:
    """Return the folders of shards that are missing."""
    found = []
    for path in shards.paths:
        with suppress(OSError):
            if layout.is_survey(path):
                continue
        found.append(path)
    return found
