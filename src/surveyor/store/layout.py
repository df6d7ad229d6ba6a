"""File names of a survey folder, and safe access to its files; no other module spells these names.

    survey.toml       seeds, settings and their origins, versions, random seed (`manifest.py`)
    journal.sqlite    every outcome (`journal.py`); everything else in the folder is derived from it
    journal.head      the last commit of the journal, so that missing commits are detected (`commits.py`)
    warc/             server responses, if they are kept (`warc.py`)
    checkpoint/       arrays that avoid a replay from the start (`checkpoint.py`); may be deleted at any time
    topics/           trained topics
    lock              the process that is writing to the survey
    crawl.log         errors of this program that did not stop the crawl
    report.html       the report
    answers.json      answers of external sites to `check --external`; may be deleted at any time
    changes.atom      the changes of the last month that a watch found
    view/             tables for `surveyor serve` (`serve/view/`); may be deleted at any time
    search/           the full-text index (`search/`); may be deleted at any time
    shards/           the parts of a sharded crawl, each a survey; the journal above them has all of their visits, and
                      names their server responses as shards/NNN/warc/NAME
    live/             the state of a running crawl, and commands for it (`published.py`); may be deleted at any time

An archive from elsewhere may contain symbolic links, pipes and devices under the file names of a survey. Opening one
could truncate a file outside the folder, read a private file, or block forever. Therefore all entries of a survey are
checked before it is opened (`check_survey`), and files that surveyor writes in place are opened without following
links, and only if they have a single name (a hard link would share its content). SQLite opens its files itself and
maps the index of its log into memory even for reading: a survey in which one of these has another name is rejected
for reading as well.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from surveyor.config import SURVEY_FILE
from surveyor.errors import SurveyError

if TYPE_CHECKING:
    from surveyor.arrays import ByteArray

MANIFEST = SURVEY_FILE
JOURNAL = "journal.sqlite"
HEAD = "journal.head"
WARC = "warc"
CHECKPOINT = "checkpoint"
TOPICS = "topics"
LOCK = "lock"
LOG = "crawl.log"
REPORT = "report.html"
FEED = "changes.atom"
ANSWERS = "answers.json"
SHARDS = "shards"  # folder of the shards of a sharded crawl, each a survey
LIVE = "live"  # not checked when a survey is opened: what is wrong there is ignored
SHARDS_FILE = "crawl.json"  # in it: how many there are, and of which crawl
SHARD = re.compile("[0-9]{3,10}")  # folder of a shard in it; what is left of an earlier one is its `warc`
SHARD_FILE = re.compile(rf"{SHARDS}/{SHARD.pattern}/{WARC}/[0-9]{{5,12}}\.warc\.gz")  # a file of responses
SHARD_FILES = f"{SHARDS}/[0-9]*/{WARC}/[0-9]*.warc.gz"  # a pattern (GLOB) that matches all of them
VIEW = "view"
SEARCH = "search"
RESCUED = "journal.rescued"  # a recovered journal that is not in place yet
RESCUED_DRAFT = f"{RESCUED}-draft"
FILES = frozenset({MANIFEST, JOURNAL, f"{JOURNAL}-wal", f"{JOURNAL}-shm", HEAD, LOCK, REPORT, FEED, ANSWERS})
FOLDERS = {
    WARC: 1,
    TOPICS: 1,
    CHECKPOINT: 2,
    RESCUED: 1,
    RESCUED_DRAFT: 1,
    SHARDS: 4,
    VIEW: 3,
    SEARCH: 2,
}  # folder -> levels of files in it
WRITTEN = ("journal.", LOG, LOCK, REPORT)  # name prefixes of files that are written in place
NOT_FOLLOWED = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # opening a pipe must not block
BINARY = getattr(os, "O_BINARY", 0)
LONGEST = 100_000_000  # bytes of a text file that is read whole
SHARED = "has another name (a hard link): writing to it would change both"


def is_survey(folder: Path | str) -> bool:
    """Return whether a path is a survey folder."""
    return (Path(folder) / MANIFEST).is_file()


def numbered_shards(folder: Path) -> list[Path]:
    """Return the numbered folders of the shards of a survey, and of earlier ones of which responses are left."""
    found = [path for path in _entries(folder / SHARDS) if SHARD.fullmatch(path.name) and path.is_dir()]
    return sorted(found, key=lambda path: int(path.name))


def warc_of_shard(shard: str, file: str) -> str:
    """Return the name of a WARC file of a shard in the survey above it; `shard` is the name of its folder."""
    return f"{SHARDS}/{shard}/{WARC}/{file}"


def shard_surveys(folder: Path) -> list[Path]:
    """Return the numbered folders of shards that are surveys, whether `crawl.json` names them or not."""
    return [path for path in numbered_shards(folder) if is_survey(path)]


def check_survey(folder: Path) -> None:
    """Raise SurveyError unless a survey has only plain files and folders, and no hard links to files it writes."""
    for path, kind in _used(folder):
        try:
            about = path.lstat()
        except FileNotFoundError:  # another process has just removed it
            continue
        mode = about.st_mode
        if stat.S_ISLNK(mode):
            raise _rejected(path, "is a symbolic link")
        fits = {"folder": stat.S_ISDIR(mode), "file": stat.S_ISREG(mode)}
        if not fits.get(kind, any(fits.values())):
            raise _rejected(path, f"is not a plain {kind}")
        written = path.relative_to(folder).parts[0].startswith(WRITTEN)
        if written and stat.S_ISREG(mode) and about.st_nlink > 1:
            raise _rejected(path, SHARED)
    rest = folder / f"{JOURNAL}-journal"
    if os.path.lexists(rest):  # SQLite would obey it, and may remove a file that it names, anywhere
        raise _rejected(rest, "is a rollback journal, which surveyor never writes")


def open_inside(folder: Path, name: str, mode: str = "rb") -> IO[Any]:
    """Open a plain file of a folder, never a link target.

    Modes: `rb`, `xb` (must be new), `r+b` (must exist) and `a+b`; modes that write reject a file with hard links.
    """
    flags = {
        "rb": os.O_RDONLY,
        "xb": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
        "r+b": os.O_RDWR,
        "a+b": os.O_RDWR | os.O_CREAT | os.O_APPEND,
    }[mode]
    path = folder / name
    if not name or name in (".", "..") or os.path.basename(name) != name or "\0" in name:  # noqa: PTH119
        raise _rejected(path, "is not a valid file name in a survey")
    if not NOT_FOLLOWED and path.is_symlink():
        raise _rejected(path, "is a symbolic link")
    try:
        handle = os.open(path, flags | NOT_FOLLOWED | BINARY, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise _rejected(path, "is a symbolic link or a pipe") from error
        raise
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise _rejected(path, "is not a plain file")
        if mode != "rb" and about.st_nlink > 1:
            raise _rejected(path, SHARED)
        return os.fdopen(handle, mode.replace("x", "w"))
    except BaseException:
        os.close(handle)
        raise


def read_inside(folder: Path, name: str, longest: int = LONGEST) -> bytes:
    """Return the contents of a plain file of a folder."""
    return load_inside(folder, name, longest).tobytes()


def load_inside(folder: Path, name: str, longest: int) -> ByteArray:
    """Return the contents of a plain file of a folder in writable memory."""
    import numpy as np

    with open_inside(folder, name) as file:
        size = os.fstat(file.fileno()).st_size
        if size > longest:
            raise _rejected(folder / name, f"is larger than {longest:,} bytes")
        data: ByteArray = np.fromfile(file, np.uint8, size)
        return data


def _used(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield each entry of a survey and of its own folders, with the type it must have."""
    for path in _entries(folder):
        if path.name in FOLDERS:
            yield path, "folder"
            yield from _below(path, FOLDERS[path.name])
        else:
            yield path, "file" if path.name in FILES else "file or folder"


def _below(folder: Path, levels: int) -> Iterator[tuple[Path, str]]:
    if folder.is_symlink() or not folder.is_dir():
        return  # the caller rejects it
    for path in _entries(folder):
        inner = levels > 1 and path.is_dir()  # links are not followed: the link itself is rejected
        yield path, "folder" if inner else "file"
        if inner:
            yield from _below(path, levels - 1)


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:  # another process has just removed it
        return []


def _rejected(path: Path, why: str) -> SurveyError:
    return SurveyError(
        f"{path} {why}; a survey must contain only plain files and folders",
        hint="if the survey is yours, replace it by the file itself; if it came from elsewhere, do not use it",
    )
