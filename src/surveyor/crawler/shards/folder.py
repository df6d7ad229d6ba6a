"""The folder of a sharded crawl: an ordinary survey, with a survey for each shard inside it.

    NAME.survey/               a survey like any other: its journal has all visits of all shards, for reading
    NAME.survey/shards/        one survey per shard, which crawls
      crawl.json               number of shards, identity of the crawl, and a digest of the seeds and settings
      lock                     the process that drives the crawl
      000/ 001/ …              the shards
      replaced/                responses (WARC) of shards that were divided in another way

The shards are what counts. `merge.py` copies their visits into the journal above them, which every command can read as
that of a crawl by one process; its certificate is that of one ledger over the same pages. The shards can be built again
from it (`build`): each visit goes to the shard of its page, and all mass starts from the seeds again. That is done when
the number of shards, the seeds, the scope or another setting changes on which the mass depends.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shlex
import shutil
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from surveyor.arrays import IdArray
from surveyor.crawler.replay import DELETED, SCOPE, listed_in_scope, tried_again, urls_of
from surveyor.crawler.shards.placement import MOST_SHARDS, UrlPlacement, shard_of
from surveyor.errors import UsageError, check_range
from surveyor.outcome import Event, RobotsFile, Visit
from surveyor.store import layout
from surveyor.store.directory import SurveyFolder
from surveyor.store.disk import damaged, disk_errors, sync_folder
from surveyor.store.journal import Journal
from surveyor.web.urls import Urls, domain, host

ABOUT = layout.SHARDS_FILE
REPLACED = "replaced"
VERSION = 1
AT_ONCE = 500  # visits of one commit
LINK_LISTS = ("links", "out_of_scope", "nofollow")


@dataclass(frozen=True, slots=True)
class Shards:
    """The shards of a survey."""

    folder: Path  # of the survey
    count: int
    crawl: str  # identity
    terms: str  # digest of what the mass depends on

    @property
    def paths(self) -> list[Path]:
        """Folders of the shards."""
        return [path_of(self.folder, index) for index in range(self.count)]

    def to_json(self) -> str:
        """Return the file that describes the shards."""
        about = {"version": VERSION, "shards": self.count, "crawl": self.crawl, "terms": self.terms}
        return json.dumps(about, indent=1) + "\n"


def path_of(folder: Path, index: int) -> Path:
    """Return the folder of a shard."""
    return folder / layout.SHARDS / f"{index:03d}"


def is_sharded(folder: Path | str) -> bool:
    """Return whether a survey has shards."""
    return (Path(folder) / layout.SHARDS / ABOUT).is_file()


def read_shards(folder: Path) -> Shards | None:
    """Return the shards of a survey; None if it has none."""
    if not is_sharded(folder):
        return None
    path = folder / layout.SHARDS / ABOUT
    try:
        about = json.loads(layout.read_inside(folder / layout.SHARDS, ABOUT))
        count, crawl, terms = about["shards"], about["crawl"], about["terms"]
        sound = about["version"] == VERSION and type(count) is int and 1 <= count <= MOST_SHARDS
        if not (sound and type(crawl) is str and type(terms) is str):
            raise ValueError("it has invalid values")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise damaged(path, error) from error
    return Shards(folder, count, crawl, terms)


def check_count(count: int) -> int:
    """Reject a number of shards out of range."""
    check_range("shards", count, f"[1, {MOST_SHARDS}]", hint="one or two per core of the cluster")
    return count


def terms_of(folder: SurveyFolder) -> str:
    """Return a digest of the seeds and settings that the mass of all pages depends on."""
    manifest = folder.manifest
    settings = {name: manifest.settings.get(name) for name in ("strategy", "damping", *SCOPE)}
    trust = [list(manifest.seeds), manifest.seed_weights, list(manifest.listed)]
    terms = [trust, settings, tried_again(folder)[0]]
    return hashlib.blake2b(json.dumps(terms, sort_keys=True, default=list).encode(), digest_size=16).hexdigest()


def build(folder: SurveyFolder, count: int) -> Shards:
    """Build the shards of an open survey from its journal, in place of earlier ones; all mass starts from the seeds."""
    check_count(count)
    if not folder.manifest.authentic:  # the shards get its settings, signed
        raise UsageError(
            f"{folder.folder} was made elsewhere or edited since, so it cannot be divided",
            hint=f"if it is yours, run `surveyor config trust {shlex.quote(str(folder.folder))}` first",
        )
    shards = Shards(folder.folder, count, secrets.token_hex(16), terms_of(folder))
    place, draft = folder.folder / layout.SHARDS, folder.folder / f"{layout.SHARDS}.draft-{os.getpid()}"
    before = folder.folder / f"{layout.SHARDS}.before"
    with disk_errors(place):
        _recover(place, before)
        try:
            draft.mkdir()
            _add_seeds(folder)
            positions = _write(folder, shards, draft)
            (draft / ABOUT).write_text(shards.to_json(), "utf-8")
            if place.exists():
                _keep_responses(place, draft)
                place.rename(before)
            draft.rename(place)
            sync_folder(folder.folder)
            folder.note("shards_merged", crawl=shards.crawl, positions=positions)
            shutil.rmtree(before, ignore_errors=True)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return shards


def join(folder: SurveyFolder) -> None:
    """Remove the shards of an open survey whose journal has all of their visits; responses are kept."""
    place = folder.folder / layout.SHARDS
    with disk_errors(place):
        before = folder.folder / f"{layout.SHARDS}.before"
        _recover(place, before)
        draft = folder.folder / f"{layout.SHARDS}.draft-{os.getpid()}"
        draft.mkdir()
        _keep_responses(place, draft)
        place.rename(before)
        if any((draft / REPLACED).iterdir()):
            draft.rename(place)
        shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(before, ignore_errors=True)


def _recover(place: Path, before: Path) -> None:
    """Finish an interrupted replacement of the shards."""
    if before.exists():
        if place.exists():
            shutil.rmtree(before, ignore_errors=True)
        else:
            before.rename(place)


def _keep_responses(place: Path, draft: Path) -> None:
    """Move the responses of shards that are about to be replaced, which no journal refers to any more."""
    kept = draft / REPLACED
    if (place / REPLACED).is_dir():
        (place / REPLACED).rename(kept)
    kept.mkdir(exist_ok=True)
    number = sum(1 for _ in kept.iterdir())
    for path in sorted(place.glob("[0-9][0-9][0-9]*")):
        warc = path / layout.WARC
        if warc.is_dir() and any(warc.iterdir()):
            warc.rename(kept / f"{number:03d}-{path.name}")


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
    with ExitStack() as stack:
        opened = []
        for index in range(shards.count):
            detail = {"crawl": shards.crawl, "shard": index, "shards": shards.count, "incarnation": 0}
            made = SurveyFolder.create(
                draft / f"{index:03d}",
                manifest,
                keep=archives,
                fill=partial(_begin, Event("shard_start", 0.0, detail)),
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


def renumbered(visit: Visit, new: IdArray) -> Visit:
    """Return a visit under new ids, without its place in the archive."""
    target = -1 if visit.target < 0 else int(new[visit.target])
    links, out, nofollow = new[visit.links], new[visit.out_of_scope], new[visit.nofollow]
    page = int(new[visit.page])
    return replace(visit, page=page, target=target, warc=None, links=links, out_of_scope=out, nofollow=nofollow)
