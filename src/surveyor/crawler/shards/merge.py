"""Copy the visits of all shards into the journal of the survey that they belong to.

A merged journal is an ordinary journal: its replay is a crawl by one process, so every command reads it. Its order is
that of the times of the visits, and is fixed once they are copied; copying again adds only what is new. The certificate
that results is that of one ledger over the pages that all shards have fetched.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.arrays import IdArray
from surveyor.crawler.replay import urls_of
from surveyor.crawler.shards.description import MERGED, Shards, advice, opened_shard, read_shards
from surveyor.crawler.shards.director import LEAST_MOVING
from surveyor.crawler.shards.folder import AT_ONCE, mentioned, renumbered
from surveyor.errors import SurveyError
from surveyor.outcome import Event, RobotsFile, Visit
from surveyor.store import layout
from surveyor.store.directory import SurveyFolder
from surveyor.store.journal import Journal
from surveyor.web.urls import Urls


def refresh(folder: Path) -> str:
    """Bring the journal of a sharded survey up to date; return a notice if that is not possible now."""
    try:
        shards = read_shards(folder)
        if shards is None or not _is_behind(folder, shards):
            return ""
        with SurveyFolder.open(folder) as opened:
            merge(opened, shards)
    except (SurveyError, OSError) as error:
        why = getattr(error, "problem", None) or error
        hint = getattr(error, "hint", None)
        return f"{folder} is read without the latest visits of its shards: {why}" + (f"; {hint}" if hint else "")
    return ""


def _is_behind(folder: Path, shards: Shards) -> bool:
    with SurveyFolder.open(folder, write=False) as opened, ExitStack() as stack:
        positions, journals = merged_positions(opened, shards), _opened(shards, stack)
        return positions != [journal.position for journal in journals.values()]


def _opened(shards: Shards, stack: ExitStack, without: Collection[int] = ()) -> dict[int, Journal]:
    """Return the open journals of the shards; each is one of this crawl."""
    wanted = [index for index in range(shards.count) if index not in without]
    return {index: stack.enter_context(opened_shard(shards, index)).journal for index in wanted}


def merged_positions(folder: SurveyFolder, shards: Shards) -> list[int]:
    """Return how many visits of each shard were copied."""
    positions = [0] * shards.count
    for event in folder.journal.events(MERGED):
        if event.detail["crawl"] == shards.crawl:
            positions = list(event.detail["positions"])
    if len(positions) != shards.count:
        raise SurveyError(
            f"{folder.folder} has copies of {len(positions)} shards, and its crawl.json names {shards.count}",
            hint=advice(folder.folder, len(positions)),
        )
    return positions


def merge(folder: SurveyFolder, shards: Shards, without: Collection[int] = ()) -> int:
    """Append the new visits of all shards, except `without`, to the journal of a survey; return their number."""
    with ExitStack() as stack:
        positions, journals = merged_positions(folder, shards), _opened(shards, stack, without)
        since = {index: positions[index] for index in journals}
        ends = {index: journal.position for index, journal in journals.items()}
        for index, end in ends.items():
            if end < since[index]:
                raise lost_visits(shards, index)
        copies = {
            index: _Copies(index, shards.paths[index].name, journal, since[index])
            for index, journal in journals.items()
        }
        urls = urls_of(folder)
        visits = heapq.merge(*(copy.visits(ends[index]) for index, copy in copies.items()), key=_key)
        while some := list(islice(visits, AT_ONCE)):
            written = [copies[index].translated(visit, urls) for _, index, _, visit in some]
            for index, copy in copies.items():
                positions[index] = copy.position
            events = [Event(MERGED, written[-1].fetched_at, _detail(shards, positions))]
            folder.journal.commit(written, urls.added(folder.journal.url_count), events=events)
        others = sum(int(event.detail["count"]) for own in journals.values() for event in own.events("requests"))
        copied = sum(ends.values()) - sum(since.values())
        if copied:  # the shards have pushed as far, together
            depth = LEAST_MOVING / 2 / folder.journal.url_count
            folder.journal.commit([], events=[Event("pushed", 0.0, {"threshold": depth})])
        if (count := others - _requests(folder, shards)) > 0:
            event = Event(MERGED, 0.0, {**_detail(shards, positions), "requests": others})
            folder.journal.commit([], events=[Event("requests", 0.0, {"count": count}), event])
        folder.journal.commit([], robots=_new_robots(folder.journal, journals.values()))
        return copied


def _detail(shards: Shards, positions: Sequence[int]) -> dict[str, Any]:
    return {"crawl": shards.crawl, "positions": list(positions), "first": shards.first}


def lost_visits(shards: Shards, index: int) -> SurveyError:
    """Return the error for a shard that is older than its copies."""
    return SurveyError(
        f"{shards.paths[index]} has lost visits that were copied before",
        hint=advice(shards.folder, shards.count),
    )


def behind_copies(folder: SurveyFolder, shards: Shards, without: Collection[int]) -> dict[int, str]:
    """Return which shards have lost visits that were copied before, and why nothing can be copied from them."""
    with ExitStack() as stack:
        positions = merged_positions(folder, shards)
        journals = _opened(shards, stack, without)
        return {
            index: lost_visits(shards, index).problem
            for index, journal in journals.items()
            if journal.position < positions[index]
        }


def _key(entry: tuple[float, int, int, Visit]) -> tuple[float, int, int]:
    return entry[:3]


def _requests(folder: SurveyFolder, shards: Shards) -> int:
    """Return the requests without a visit, such as for robots.txt, that were copied."""
    mine = (event.detail for event in folder.journal.events(MERGED) if event.detail["crawl"] == shards.crawl)
    return max((int(detail.get("requests") or 0) for detail in mine), default=0)


def _new_robots(before: Journal, journals: Iterable[Journal]) -> Iterable[RobotsFile]:
    for journal in journals:
        for origin in [*journal.answered()]:
            file, known = journal.robots(origin), before.robots(origin)
            if file is not None and (known is None or known.fetched_at < file.fetched_at):
                yield file


class _Copies:
    """The new visits of one shard."""

    def __init__(self, index: int, name: str, journal: Journal, since: int) -> None:
        self._index, self._name, self._journal, self.position = index, name, journal, since
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
        place = visit.warc
        if place is not None:
            place = place._replace(file=layout.warc_of_shard(self._name, place.file))
        return renumbered(visit, self._new, place)
