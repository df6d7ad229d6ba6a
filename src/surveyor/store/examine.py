"""Integrity check of a survey: what `surveyor doctor SURVEY` reports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from surveyor.errors import SurveyError, SurveyorError
from surveyor.store import checkpoint
from surveyor.store.directory import Manifest
from surveyor.store.files import check_survey
from surveyor.store.head import head_path, read_heads
from surveyor.store.journal import Journal
from surveyor.store.rescue import extent
from surveyor.store.warc import Archive

SHOWN = 3  # damaged records listed by name


@dataclass(frozen=True, slots=True)
class Check:
    """The result for one part of a survey."""

    name: str
    value: str
    fine: bool | None = True  # None: damaged or missing, but not needed
    advice: str = ""


def examine(folder: Path) -> Iterator[Check]:
    """Read a whole survey and verify all checksums; damage is a finding, not an error.

    A survey that is not made of plain files is not opened: SQLite would write to the targets of links.
    """
    try:
        check_survey(folder)
    except SurveyError as error:
        yield Check("files", error.problem, fine=False, advice=error.hint)
        return
    yield _manifest(folder)
    journal = folder / "journal.sqlite"
    sound = _journal(journal)
    yield sound
    yield _head(journal)
    yield from _checkpoints(folder / "checkpoint")
    if sound.fine and (folder / "warc").is_dir():
        yield _archive(folder)


def _manifest(folder: Path) -> Check:
    try:
        manifest = Manifest.read(folder / "survey.toml")
    except (SurveyorError, OSError) as error:
        return Check("survey.toml", str(error).partition("\n")[0], fine=False, advice="restore it from a copy")
    return Check("survey.toml", f"{len(manifest.seeds):,} seeds, {len(manifest.settings):,} settings")


def _journal(path: Path) -> Check:
    """Verify all pages and commits; report the last good commit."""
    problem = ""
    try:
        with closing(Journal.open(path, write=False)) as journal:
            journal.check()
            last = journal.last_commit
            return Check(path.name, f"{last.number:,} commits, {last.visit:,} visits and {last.url:,} URLs verified")
    except SurveyorError as error:
        problem = error.problem
        if "surveyor (version" in problem:
            return Check(path.name, problem, fine=False, advice=error.hint)
    found = extent(path)
    good = found.last_good
    if not found.readable:
        return Check(path.name, problem, fine=False, advice="no commit is good: restore a copy or start again")
    lost = f"{found.lost:,} of {found.recorded:,} commits are lost" if found.lost else "no commit is lost"
    value = f"{problem}; last good commit {good.number:,} (visit {good.visit:,}); {lost}"
    advice = "repeat the `surveyor crawl` that made it with --from-last-good, or restore a copy"
    return Check(path.name, value, fine=False, advice=advice)


def _head(journal: Path) -> Check:
    path = head_path(journal)
    heads = read_heads(path)
    if not heads:
        return Check(path.name, "missing or damaged", fine=False, advice="--from-last-good writes it again")
    if len(heads) == 1:
        return Check(path.name, "one of two slots is damaged", None, "the next commit writes it again")
    return Check(path.name, f"commit {max(head.number for head in heads):,}")


def _checkpoints(folder: Path) -> Iterator[Check]:
    for place, intact in checkpoint.verify(folder):
        name = f"checkpoint/{place.name}"
        if intact:
            yield Check(name, "verified")
        else:
            yield Check(name, "damaged, so it is not used", None, "the journal is replayed instead")


def _archive(folder: Path) -> Check:
    """Read every record that the journal refers to."""
    read, gone, bad = 0, 0, list[str]()
    with closing(Journal.open(folder / "journal.sqlite", write=False)) as journal:
        archive = Archive.open(folder / "warc", journal.archived, write=False)
        for visit in journal.visits():
            if visit.warc is None:
                continue
            if not (folder / "warc" / visit.warc.file).is_file():
                gone += 1
                continue
            try:
                archive.read(visit.warc)
                read += 1
            except SurveyorError:
                bad.append(f"{visit.warc.file} at {visit.warc.offset:,}")
    missing = f"; {gone:,} lie in files that are not there" if gone else ""
    if bad:
        more = f" and {len(bad) - SHOWN:,} more" if len(bad) > SHOWN else ""
        value = f"{len(bad):,} damaged records: {', '.join(bad[:SHOWN])}{more}{missing}"
        return Check("warc", value, fine=False, advice="restore the files from a copy; the journal does not need them")
    return Check("warc", f"{read:,} records verified{missing}", None if gone else True)
