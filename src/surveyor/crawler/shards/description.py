"""Which shards a survey has, by `shards/crawl.json`, and whether the folders there are these shards.

A folder may have been lost, copied from another survey or restored from an old copy. The journal of each
shard begins with the crawl and the number of the shard (`shard_start`), and its manifest has the seeds and settings of
the crawl. What does not fit is never copied into the journal of the survey and never crawled with.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surveyor.crawler.replay import SCOPE, tried_again
from surveyor.crawler.shards.placement import MOST_SHARDS
from surveyor.errors import SurveyError
from surveyor.store import layout
from surveyor.store.directory import SurveyFolder
from surveyor.store.manifest import Manifest
from surveyor.store.validation import MOST_FOLDERS

ABOUT = layout.SHARDS_FILE
VERSION = 2
MERGED = "shards_merged"  # event: visits were copied
STARTED = "shard_start"  # event in a shard: a process starts


@dataclass(frozen=True, slots=True)
class Shards:
    """The shards of a survey."""

    folder: Path  # of the survey
    count: int
    crawl: str  # identity
    terms: str  # what the mass depends on, as `terms_of` has it; empty if it is not known
    first: int = 0  # number of the folder of the first shard

    @property
    def paths(self) -> list[Path]:
        """Folders of the shards."""
        return [path_of(self.folder, self.first + index) for index in range(self.count)]

    def to_json(self) -> str:
        """Return the file that describes the shards."""
        about = {"version": VERSION, "shards": self.count, "first": self.first, "crawl": self.crawl}
        return json.dumps({**about, "terms": self.terms}, indent=1) + "\n"


def path_of(folder: Path, number: int) -> Path:
    """Return a numbered folder of a shard."""
    return folder / layout.SHARDS / f"{number:03d}"


def is_sharded(folder: Path | str) -> bool:
    """Return whether a survey has shards, even if the file that describes them is lost."""
    return (Path(folder) / layout.SHARDS / ABOUT).is_file() or bool(layout.shard_surveys(Path(folder)))


def read_shards(folder: Path) -> Shards | None:
    """Return the shards of a survey; None if it has none."""
    if not is_sharded(folder):
        return None
    path = folder / layout.SHARDS / ABOUT
    if not path.is_file():
        left = max(1, len(layout.shard_surveys(folder)))
        raise SurveyError(f"{path} is missing", hint=advice(folder, left, "builds the shards again"))
    try:
        about = json.loads(layout.read_inside(folder / layout.SHARDS, ABOUT))
        if not isinstance(about, dict) or about.get("version") != VERSION:
            raise ValueError(f"it is not of version {VERSION}")
        for name, kind in (("shards", int), ("first", int), ("crawl", str), ("terms", str)):
            if type(about.get(name)) is not kind:
                raise ValueError(f"it has no {name}" if name not in about else f"its {name} is invalid")
        shards = Shards(folder, about["shards"], about["crawl"], about["terms"], about["first"])
        if not (1 <= shards.count <= MOST_SHARDS and 0 <= shards.first <= MOST_FOLDERS):
            raise ValueError("it has numbers out of range")
    except (ValueError, RecursionError) as error:
        left = max(1, len(layout.shard_surveys(folder)))
        raise SurveyError(
            f"{path} is damaged: {error}", hint=advice(folder, left, "builds the shards again")
        ) from error
    return shards


def advice(folder: Path, count: int, what: str = "builds the shards again from the copies of their visits") -> str:
    """Return a hint to reshard."""
    words = ["surveyor", "cluster", "reshard", str(folder), "--shards", str(count)]
    return f"`{shlex.join(words)}` {what}"


def resume_words(folder: Path | str) -> list[str]:
    """Return the command that resumes a sharded survey on this machine."""
    workers = min(len(layout.shard_surveys(Path(folder))), os.cpu_count() or 1)
    return ["surveyor", "crawl", str(folder), "--cluster", f"local:{max(workers, 1)}"]


def terms_of(folder: SurveyFolder) -> str:
    """Return what the mass of all pages depends on: a digest of seeds and settings, and what the journal changes."""
    deleted = sum(1 for _ in folder.journal.events("host_deleted"))
    return f"{trust_of(folder.manifest)}-{tried_again(folder)[0]}-{deleted}"


def trust_of(manifest: Manifest) -> str:
    """Return a digest of the seeds and settings that the mass of all pages depends on."""
    settings = {name: manifest.settings.get(name) for name in ("strategy", "damping", *SCOPE)}
    trust = [list(manifest.seeds), manifest.seed_weights, list(manifest.listed), settings]
    return hashlib.blake2b(json.dumps(trust, sort_keys=True, default=list).encode(), digest_size=16).hexdigest()


def crawls_of(folder: SurveyFolder) -> dict[str, int]:
    """Return the identities of all sharded crawls of a survey, in order, and the number of the first folder of each."""
    details = (event.detail for event in folder.journal.events(MERGED))
    return {str(detail["crawl"]): int(detail.get("first") or 0) for detail in details}


def misfit(shards: Shards, index: int, shard: SurveyFolder) -> str:
    """Return why an open folder is not the shard of a crawl that it should be; an empty string if it is."""
    starts = [event.detail for event in shard.journal.events(STARTED)]
    if not starts:
        return f"{shard.folder} is not a shard"
    for detail in starts:
        if detail["crawl"] != shards.crawl:
            return f"{shard.folder} is a shard of another crawl"
        if (detail["shard"], detail["shards"]) != (index, shards.count):
            return (
                f"{shard.folder} is shard {detail['shard']} of {detail['shards']}, not shard {index} of {shards.count}"
            )
    if shards.terms and trust_of(shard.manifest) != shards.terms.partition("-")[0]:
        return f"{shard.folder} has other seeds or settings than the crawl"
    return ""


def opened_shard(shards: Shards, index: int) -> SurveyFolder:
    """Open a shard for reading; raise SurveyError if it is not the one that it should be."""
    path = shards.paths[index]
    if not layout.is_survey(path):
        raise SurveyError(f"{path} is missing", hint=advice(shards.folder, shards.count))
    opened = SurveyFolder.open(path, write=False)
    try:
        if why := misfit(shards, index, opened):
            raise SurveyError(why, hint=advice(shards.folder, shards.count))
    except BaseException:
        opened.close()
        raise
    return opened


def check_shards(shards: Shards) -> None:
    """Raise SurveyError unless all shards are there, and are those of the crawl."""
    for index in range(shards.count):
        opened_shard(shards, index).close()


def lost_shards(shards: Shards) -> dict[int, str]:
    """Return which shards are missing, damaged or those of another crawl, and why."""
    found = {}
    for index in range(shards.count):
        try:
            opened_shard(shards, index).close()
        except SurveyError as error:
            found[index] = error.problem
    return found


def recovered(folder: SurveyFolder) -> Shards | None:
    """Return the shards of an open survey by what they say themselves; None if there are none of this survey."""
    crawls, found = crawls_of(folder), dict[str, Shards]()
    for path in layout.shard_surveys(folder.folder):
        if (start := start_of(path)) is not None and is_shard_of(crawls, path, start):
            crawl, count = str(start["crawl"]), int(start["shards"])
            if 1 <= count <= MOST_SHARDS:
                found.setdefault(crawl, Shards(folder.folder, count, crawl, "", crawls[crawl]))
    return next((found[crawl] for crawl in reversed(crawls) if crawl in found), None)


def is_shard_of(crawls: Mapping[str, int], path: Path, start: Mapping[str, Any]) -> bool:
    """Return whether a folder that has started like this is a shard of one of these crawls, in its own place."""
    return start["crawl"] in crawls and int(path.name) == crawls[start["crawl"]] + start["shard"]


def start_of(path: Path) -> Mapping[str, Any] | None:
    """Return which shard a folder says that it is (`shard_start`); None if it is no shard, or cannot be read."""
    with suppress(SurveyError), SurveyFolder.open(path, write=False) as shard:
        return next((event.detail for event in shard.journal.events(STARTED)), None)
    return None
