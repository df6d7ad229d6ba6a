"""Surveys derived from other data: create the survey of a community or of a sample, or resume it.

A derived survey is a survey like any other; in addition an event in its journal records the options that it was created
with (`community`, `sample`). Repeating the command resumes it. Changed options are rejected, because they would make it
a different community or sample. Some settings follow from the kind of survey and cannot be set by the user.

A derived survey may start with outcomes copied from a base survey, under new page ids (`CopiedOutcomes`). Links are
evaluated again under the scope of the new survey. Locations in the WARC archive of the base are not copied; robots.txt
files and backoffs of hosts are, because they still apply.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import numpy as np

from surveyor.arrays import IdArray, IntArray
from surveyor.config import Settings
from surveyor.crawler.replay import DELETED, scope_of
from surveyor.crawler.seed_pages import SeedPages
from surveyor.crawler.start import shortened
from surveyor.crawler.start import start as start_survey
from surveyor.errors import SurveyError, UsageError
from surveyor.fetch.responses import LEFT, Reader
from surveyor.outcome import NO_LINKS, Event, Outcome, RobotsFile, Visit
from surveyor.store.directory import SurveyFolder
from surveyor.store.manifest import Manifest
from surveyor.web import link_context
from surveyor.web.urls import Urls

if TYPE_CHECKING:
    from surveyor.store.journal import Journal

BUDGETS = {"budget": "--budget", "budget_file": "--budget-file"}  # settings that are never inherited
AT_ONCE = 1000  # visits in one commit
LINK_LISTS = ("links", "out_of_scope", "nofollow")

Record = TypeVar("Record", bound=Any)


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedSurvey(Generic[Record]):
    """An open derived survey: its folder, effective settings and recorded options."""

    folder: SurveyFolder
    settings: Settings
    record: Record
    is_new: bool
    warnings: tuple[str, ...] = ()

    def close(self) -> None:
        """Close the files of the survey."""
        self.folder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def recorded(folder: SurveyFolder, event: str, record: type[Record]) -> Record | None:
    """Return the options in the last event with this name; None if the survey has no such event."""
    details = [entry.detail for entry in folder.journal.events(event)]
    if not details:
        return None
    try:
        options: Record = record(**{field.name: details[-1][field.name] for field in fields(record)})
    except KeyError as error:
        raise SurveyError(
            f"the event {event!r} in {folder.journal.path} has no field {error}",
            hint=f"it was written by an older surveyor: run `surveyor {event}` again, into another folder with --out",
        ) from error
    return options


def required_record(folder: SurveyFolder, event: str, record: type[Record]) -> Record:
    """Return the recorded options; reject a survey of another kind."""
    options = recorded(folder, event, record)
    if options is None:
        raise UsageError(f"{folder.folder} is a survey, but not a {event}", hint="choose another folder with --out")
    return options


def create(
    path: Path,
    seeds: Sequence[str] | SeedPages,
    settings: Settings,
    origins: Mapping[str, str],
    event: str,
    fill: Callable[[Journal], Mapping[str, Any]],
) -> tuple[SurveyFolder, Settings]:
    """Create a derived survey atomically: `fill` writes the first outcomes and returns the options to record."""

    def filled(journal: Journal) -> None:
        journal.commit([], events=[Event(event, time.time(), dict(fill(journal)))])

    return start_survey(path, seeds, settings, origins, fill=filled)


def update_record(folder: SurveyFolder, event: str, record: Any) -> None:
    """Record changed options in a new event."""
    folder.note(event, **asdict(record))


def fixed_settings(
    settings: Settings, origins: Mapping[str, str], event: str, fixed: Mapping[str, Any]
) -> tuple[Settings, dict[str, str]]:
    """Set the settings that follow from the kind of survey; drop budgets that are not options of this command."""
    values = dict(fixed)
    for name, flag in BUDGETS.items():
        if origins.get(name, "default") not in (flag, "argument"):
            values[name] = ""
    return replace(settings, **values), {**origins, **dict.fromkeys(values, event)}


def if_set(settings: Settings, origins: Mapping[str, str], name: str) -> Any:
    """Return a setting that the user has set; None for a default."""
    return getattr(settings, name) if origins.get(name, "default") != "default" else None


def reject_changes(path: Path, options: Iterable[tuple[str, Any, Any]]) -> None:
    """Raise an error if an option (name, value, recorded value) differs; None leaves it as recorded."""
    for name, value, before in options:
        if value is not None and value != before:
            was = f"without {name}" if before in (None, 0, "", []) else f"with {name} {before}"
            raise UsageError(
                f"{path} was created {was}, got {value}",
                hint=f"omit {name} to resume it, or choose another folder with --out",
            )


def folder_name(stem: str, event: str, label: str) -> str:
    """Return the default name of a derived survey: what it is derived from, its kind, and what it is about.

    >>> folder_name("example.org", "sample", "solar power")
    'example.org-sample-solar-power.survey'
    """
    words = shortened(re.sub(r"[^\w.-]+", "-", label).strip("-."), label)
    return f"{stem}-{event}{'-' * bool(words)}{words}.survey"


def is_final(outcome: Outcome | Visit) -> bool:
    """Return whether an outcome replaces the earlier ones of its page; a temporary block leaves them valid."""
    return outcome.kind != "blocked" or outcome.reason in (LEFT, DELETED)


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Outcomes of a base survey to copy."""

    urls: Urls  # of the base survey
    pages: IdArray  # ids in the base survey, in the order of their new ids
    visits: IntArray  # numbers of the visits to copy, ascending
    position: int  # last visit of the journal of the base survey


class CopiedOutcomes:
    """Copies outcomes of a base survey into the journal of a new one."""

    def __init__(self, base: SurveyFolder, selection: Selection, manifest: Manifest) -> None:
        """Copy from `base` into a survey with this manifest, which determines the scope."""
        self._base, self._selection, self._urls = base, selection, Urls(selection.pages.size + 1024)
        follows = bool(manifest.settings.get("follow_nofollow", False))
        self._reader = Reader(self._urls, scope_of(manifest), (), follow_nofollow=follows)
        self._new_id: IdArray = np.full(len(selection.urls), -1, np.int32)  # by id in the base survey
        self._frontier: IntArray = np.empty(0, np.int64)
        self._number(selection.pages)

    def write(self, journal: Journal) -> int:
        """Write visits, robots.txt files and backoffs; return the number of pages linked to without an outcome."""
        for batch in self._batches():
            self._number(np.concatenate([ids for visit in batch for ids in _mentioned(visit)]))
            visits = [self._renumbered(visit) for visit in batch]
            self._add_frontier(visits)
            journal.commit(visits, self._urls.added(journal.url_count))
        journal.commit([], robots=self._robots(), events=self._waits())
        return int(self._frontier.size)

    def _batches(self) -> Iterator[list[Visit]]:
        wanted = np.zeros(self._selection.position + 1, np.bool_)
        wanted[self._selection.visits] = True
        numbered = enumerate(islice(self._base.journal.visits(), self._selection.position), 1)
        copied = (visit for number, visit in numbered if wanted[number])
        while batch := list(islice(copied, AT_ONCE)):
            yield batch

    def _number(self, pages: IdArray) -> None:
        """Give pages without a new id the next ones, in this order."""
        new = pages[self._new_id[pages] < 0]
        new = new[np.sort(np.unique(new, return_index=True)[1])]
        self._new_id[new] = self._urls.ids([self._selection.urls[page] for page in new.tolist()])

    def _renumbered(self, visit: Visit) -> Visit:
        lists = {name: self._new_id[getattr(visit, name)] for name in LINK_LISTS}
        target = -1 if visit.target < 0 else int(self._new_id[visit.target])
        page = int(self._new_id[visit.page])
        before = link_context.order(visit.page, [getattr(visit, name) for name in LINK_LISTS])
        contexts = link_context.renumbered(visit.contexts, page, before, self._new_id[before])
        fields = {"page": page, "target": target, "contexts": contexts, **lists}
        judged = self._reader.judged(replace(visit, warc=None, size=0, **fields))
        self._reader.recall(judged)
        return judged

    def _add_frontier(self, visits: list[Visit]) -> None:
        """Collect the pages without an outcome that are linked to or redirected to."""
        targets = np.array([visit.target for visit in visits], np.int64)
        goals = np.concatenate([targets, *(visit.links for visit in visits)])
        self._frontier = np.union1d(self._frontier, goals[goals >= self._selection.pages.size])

    def _robots(self) -> Iterator[RobotsFile]:
        journal = self._base.journal
        return (file for origin in [*journal.answered()] if (file := journal.robots(origin)) is not None)

    def _waits(self) -> list[Event]:
        return list({event.detail.get("host"): event for event in self._base.journal.events("backoff")}.values())


def _mentioned(visit: Visit) -> list[IdArray]:
    target = NO_LINKS if visit.target < 0 else np.array([visit.target], np.int32)
    return [target, visit.links, visit.out_of_scope, visit.nofollow]
