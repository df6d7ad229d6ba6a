"""The folder of a sharded crawl: an ordinary survey, with a survey for each shard inside it.

    NAME.survey/               a survey like any other: its journal has all visits of all shards, for reading
    NAME.survey/shards/        one survey per shard, which crawls
      crawl.json               number of shards, identity of the crawl, and a digest of the seeds and settings
      lock                     the process that drives the crawl
      000/ 001/ …              the shards; of shards that were divided in another way, the responses only (`warc/`)

The shards are what counts. `merge.py` copies their visits into the journal above them, which every command can read as
that of a crawl by one process; its certificate is that of one ledger over the same pages. The shards can be built again
from it (`build`): each visit goes to the shard of its page, and all mass starts from the seeds again. That is done when
the number of shards, the seeds, the scope or another setting changes on which the mass depends.
"""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from surveyor.arrays import IdArray
from surveyor.crawler.replay import DELETED, listed_in_scope, tried_again, urls_of
from surveyor.crawler.shards.description import (
    ABOUT,
    MERGED,
    STARTED,
    Shards,
    crawls_of,
    is_shard_of,
    start_of,
    terms_of,
)
from surveyor.crawler.shards.placement import MOST_SHARDS, UrlPlacement, shard_of
from surveyor.errors import UsageError, check_range
from surveyor.outcome import Event, Place, RobotsFile, Visit
from surveyor.store import layout
from surveyor.store.directory import SurveyFolder
from surveyor.store.disk import disk_errors, sync_folder, write_atomically
from surveyor.store.journal import Journal
from surveyor.web.urls import Urls, domain, host

AT_ONCE = 500  # visits of one commit
LINK_LISTS = ("links", "out_of_scope", "nofollow")


def check_count(count: int) -> int:
    """Reject a number of shards out of range."""
    check_range("shards", count, f"[1, {MOST_SHARDS}]", hint="one or two per core of the cluster")
    return count


def build(folder: SurveyFolder, count: int) -> Shards:
    """Build the shards of an open survey from its journal, in place of earlier ones; all mass starts from the seeds.

    Folders of shards are never named again, and the server responses of earlier ones stay where they are, because the
    journal names them. The new shards count once `crawl.json` names them.
    """
    check_count(count)
    if not folder.manifest.authentic:  # the shards get its settings, signed
        raise UsageError(
            f"{folder.folder} was made elsewhere or edited since, so it cannot be divided",
            hint=f"if it is yours, run `surveyor config trust {shlex.quote(str(folder.folder))}` first",
        )
    shards = Shards(folder.folder, count, secrets.token_hex(16), terms_of(folder), _first_unused(folder))
    place, draft = folder.folder / layout.SHARDS, folder.folder / f"{layout.SHARDS}.draft-{os.getpid()}"
    with disk_errors(place):
        try:
            draft.mkdir()
            _add_seeds(folder)
            detail = {"crawl": shards.crawl, "positions": _write(folder, shards, draft), "first": shards.first}
            folder.note(MERGED, **detail)  # first: shards without it would be copied again
            place.mkdir(exist_ok=True)
            for path in shards.paths:
                (draft / path.name).rename(path)
            sync_folder(place)
            write_atomically(place / ABOUT, shards.to_json())
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        _remove_shards(folder, but=shards.paths)
    return shards


def join(folder: SurveyFolder) -> None:
    """Remove the shards of an open survey whose journal has all of their visits; responses are kept."""
    place = folder.folder / layout.SHARDS
    with disk_errors(place):
        (place / ABOUT).unlink(missing_ok=True)
        sync_folder(place)
        _remove_shards(folder, but=[])
        if {path.name for path in place.iterdir()} <= {layout.LOCK}:
            shutil.rmtree(place, ignore_errors=True)


def _first_unused(folder: SurveyFolder) -> int:
    """Return the first number that no folder of a shard has had, as responses in it may be named by the journal."""
    events = [event.detail for event in folder.journal.events(MERGED)]
    named = [int(detail.get("first") or 0) + len(detail["positions"]) for detail in events]
    return max([0, *named, *(int(path.name) + 1 for path in layout.numbered_shards(folder.folder))])


def _remove_shards(folder: SurveyFolder, *, but: Sequence[Path]) -> None:
    """Remove all that is left of earlier shards except server responses.

    What is no shard of this survey is set aside with its responses, and what cannot be read as a shard without them.
    """
    crawls = crawls_of(folder)
    for path in layout.numbered_shards(folder.folder):
        if path in but:
            continue
        start = start_of(path)
        is_mine = not layout.is_survey(path) or (start is not None and is_shard_of(crawls, path, start))
        warc = path / layout.WARC
        keeps = warc.is_dir() and any(warc.iterdir()) and (is_mine or start is None)
        if not is_mine:
            aside = _aside(path)
            folder.notices.append(f"{path} is now {aside.name}: it is no shard of this crawl that can be read")
            path.rename(aside)
            if keeps:
                path.mkdir()
                (aside / layout.WARC).rename(warc)
            continue
        (path / layout.MANIFEST).unlink(missing_ok=True)  # first: from here on it is no shard
        for entry in path.iterdir():
            if entry != warc or not keeps:
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        if not keeps:
            path.rmdir()


def _aside(path: Path) -> Path:
    """Return an unused name for the folder of a shard that is set aside."""
    names = (path.with_name(f"aside-{path.name}{again or ''}") for again in range(1 << 20))
    return next(name for name in names if not os.path.lexists(name))


def _add_seeds(folder: SurveyFolder) -> None:
    """Add the URLs of all seeds and listed pages to the journal of a survey, as a crawl by one process does first.

    Its shards copy only the URLs that their visits name.
    """
    urls = urls_of(folder)
    urls.ids([*folder.manifest.seeds, *listed_in_scope(folder.manifest)])
    folder.journal.commit([], urls.added(folder.journal.url_count))


def _write(folder: SurveyFolder, shards: Shards, draft: Path) -> list[int]:
    """Write the journals of all shards; return their positions."""
    manifest = replace(folder.manifest, signature="", authentic=True)
    archives = bool(manifest.setting("archive"))
    if archives:  # through it, the responses of the shards are read
        (folder.folder / layout.WARC).mkdir(exist_ok=True)
    with ExitStack() as stack:
        opened = []
        for index in range(shards.count):
            detail = {"crawl": shards.crawl, "shard": index, "shards": shards.count, "incarnation": 0}
            made = SurveyFolder.create(
                draft / shards.paths[index].name,
                manifest,
                keep=archives,
                fill=partial(_begin, Event(STARTED, 0.0, detail)),
            )
            opened.append(stack.enter_context(made))
        writers = [_Writer(one, shards.count, index) for index, one in enumerate(opened)]
        urls, again = urls_of(folder), tried_again(folder)[0]
        visits = enumerate(folder.journal.visits())
        while some := list(islice(visits, AT_ONCE)):
            kept = [
                visit
                for position, visit in some
                if not (position < again and visit.kind == "blocked" and visit.reason != DELETED)
            ]
            by_shard: list[list[Visit]] = [[] for _ in writers]
            for visit in kept:
                by_shard[shard_of(domain(host(urls[visit.page])), shards.count)].append(visit)
            for writer, own in zip(writers, by_shard, strict=True):
                if own:
                    writer.write(own, urls)
        robots = (
            file for origin in [*folder.journal.answered()] if (file := folder.journal.robots(origin)) is not None
        )
        waits = list({event.detail.get("host"): event for event in folder.journal.events("backoff")}.values())
        for file in robots:
            writers[shard_of(domain(host(f"{file.origin}/")), shards.count)].robots.append(file)
        for event in waits:
            writers[shard_of(domain(str(event.detail["host"])), shards.count)].events.append(event)
        for writer in writers:
            writer.finish()
        return [one.journal.position for one in opened]


def _begin(start: Event, journal: Journal) -> None:
    """Write the first event of a shard."""
    journal.commit([], events=[start])


class _Writer:
    """Copies visits from one journal into another, under new ids."""

    def __init__(self, folder: SurveyFolder, shards: int, index: int) -> None:
        self._folder, self._urls = folder, Urls(1 << 12)
        self._place = UrlPlacement(self._urls, index, shards)
        self._new: IdArray = np.full(1 << 12, -1, np.int32)
        self.robots: list[RobotsFile] = []
        self.events: list[Event] = []

    def write(self, visits: list[Visit], urls: Urls) -> None:
        """Write visits; `urls` are those of their ids."""
        named = np.unique(np.concatenate([ids for visit in visits for ids in mentioned(visit)]))
        if named.size and int(named[-1]) >= self._new.size:
            room = np.full(2 * (int(named[-1]) + 1), -1, np.int32)
            room[: self._new.size] = self._new
            self._new = room
        new = named[self._new[named] < 0]
        self._new[new] = self._urls.ids([urls[page] for page in new.tolist()])
        journal = self._folder.journal
        journal.commit([renumbered(visit, self._new) for visit in visits], self._urls.added(journal.url_count))

    def finish(self) -> None:
        """Write robots.txt files and waits."""
        self._folder.journal.commit([], robots=self.robots, events=self.events)


def mentioned(visit: Visit) -> list[IdArray]:
    """Return all pages that a visit names, in lists."""
    ends = [visit.page] if visit.target < 0 else [visit.page, visit.target]
    return [np.array(ends, np.int32), *(getattr(visit, name) for name in LINK_LISTS)]


def renumbered(visit: Visit, new: IdArray, warc: Place | None = None) -> Visit:
    """Return a visit under new ids, with another place in the archive or none."""
    target = -1 if visit.target < 0 else int(new[visit.target])
    links, out, nofollow = new[visit.links], new[visit.out_of_scope], new[visit.nofollow]
    page = int(new[visit.page])
    return replace(visit, page=page, target=target, warc=warc, links=links, out_of_scope=out, nofollow=nofollow)
