"""The survey of a live sample: create it, or resume it.

A sample of the live web is stored as a survey. Repeating the command resumes it; a larger goal continues the walks. The
survey can be read like any other: its pages are those that the walks requested. An event `sample` in the journal
records the options: another topic, method or number of walks is another sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.config import Settings
from surveyor.crawler.replay import SCOPE
from surveyor.crawler.seed_pages import clean_seeds
from surveyor.crawler.start import site_name
from surveyor.crawler.start import start as start_survey
from surveyor.crawler.topics.rules import Topic
from surveyor.errors import UsageError
from surveyor.estimate.sampling.in_links import DEFAULT_LIMIT, InLinkSource, in_link_source, source_name
from surveyor.estimate.sampling.walk_methods import (
    DEFAULT_JUMP_HOSTS,
    DEFAULT_METHOD,
    DEFAULT_WALKS,
    UNLIMITED,
    WalkPlan,
    method_named,
)
from surveyor.store.directory import SurveyFolder
from surveyor.store.layout import is_survey
from surveyor.store.manifest import Manifest
from surveyor.survey import derived_survey
from surveyor.survey.derived_survey import DerivedSurvey, folder_name, if_set, reject_changes

EVENT = "sample"
WINDOW = 100  # steps of an unfocused walk in which no host may have more than half
MAX_PAGES = 1_000_000  # the stop rule in the manifest if there is no limit of fetches
RANGES = {
    "walks": (1, 100_000),
    "reach": (1, 10_000),
    "window": (0, 100_000),
    "radius": (1, 100),
    "hosts": (2, 100_000),
    "limit": (1, 10**9),
    "rng": (0, UNLIMITED - 1),
}


@dataclass(frozen=True, slots=True)
class SampleRecord:
    """The options that a sample was created with, as recorded in its journal."""

    topic: str
    digest: str  # of the classifier that defines the topic
    method: str
    walks: int
    reach: int | None
    window: int  # steps in which no host may have more than half; 0: no limit
    hosts: int  # hosts to jump back to
    in_links: str  # name of the source of back-links
    limit: int  # in-links requested per page
    until: str  # the stop rule as given; the last one recorded applies
    radius: int = 1  # links between the topic and pages that count as near it


@dataclass(frozen=True, slots=True)
class SampleOptions:
    """Options of a live sample; None is the default, or for an existing sample the recorded value."""

    method: str | None = None
    walks: int | None = None
    reach: int | None = None
    window: int | None = None
    hosts: int | None = None
    in_links: object = None  # source of back-links (see `in_link_source`)
    limit: int | None = None  # in-links requested per page
    until: str = ""  # the stop rule, recorded in the journal
    fetches: int | None = None  # limit of fetches, for the manifest
    radius: int | None = None

    def check(self) -> None:
        """Raise an error for a value that is out of range."""
        check_options({field.name: getattr(self, field.name) for field in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSurvey(DerivedSurvey[SampleRecord]):
    """The open survey of a sample."""

    topic: Topic
    in_links: InLinkSource

    @property
    def plan(self) -> WalkPlan:
        """The method, number and limits of the walks."""
        record = self.record
        rng = self.folder.manifest.rng
        return WalkPlan(
            record.method, record.walks, rng, record.reach, record.window, record.hosts, radius=record.radius
        )


def open_sample_survey(
    seeds: Sequence[str] | str,
    topic: Topic,
    options: SampleOptions | None = None,
    *,
    out: Path | str | None = None,
    settings: Settings | None = None,
    origins: Mapping[str, str] | None = None,
) -> SampleSurvey:
    """Create the survey of a sample of the pages on topic, or resume it.

    An existing sample can be resumed without seeds. Links are followed into any scope unless the settings restrict it.
    """
    options = options or SampleOptions()
    options.check()
    source = in_link_source(options.in_links)
    given = {
        name: getattr(options, name) for name in ("method", "walks", "reach", "window", "hosts", "limit", "radius")
    }
    given |= {
        "topic": topic.text,
        "digest": topic.digest,
        "in_links": source_name(source),
        "until": options.until or None,
    }
    chosen, known = _fixed(settings or Settings(), origins or {}, options.fetches)
    _check_archive("archive is off", chosen, topic)
    start_at = clean_seeds(seeds) if seeds or out is None else []
    path = sample_folder(start_at, topic.text) if out is None else Path(out)
    is_new = not is_survey(path)
    if is_new and not start_at:
        raise UsageError(f"{path} is not a sample to resume", hint="give seed URLs to create one")
    folder, now, record = (_create if is_new else _resume)(path, start_at, given, chosen, known)
    try:
        _check_archive(f"{path} stores no responses", now, topic)
    except UsageError:
        folder.close()
        raise
    return SampleSurvey(folder=folder, settings=now, record=record, topic=topic, in_links=source, is_new=is_new)


def sample_folder(seeds: Sequence[str], topic: str) -> Path:
    """Return the default folder of a sample."""
    return Path(folder_name(site_name(seeds[0]), EVENT, topic))


def check_options(options: Mapping[str, Any]) -> None:
    """Raise an error for an option that is out of range."""
    method_named(options["method"] or DEFAULT_METHOD)
    for name, (lowest, highest) in RANGES.items():
        value: Any = options.get(name, lowest)
        if value is None and name != "rng":
            continue
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not lowest <= value <= highest:
            raise UsageError(
                f"{name} must be an integer from {lowest} to {highest:,}, got {value!r}", hint=f"for example {name}=8"
            )


def _check_archive(problem: str, settings: Settings, topic: Topic) -> None:
    if not (settings.archive or topic.url_only):
        raise UsageError(
            f"the topic {topic.text!r} depends on the text of pages, and {problem}",
            hint="store responses (archive), or choose a topic that depends on URLs only",
        )


def _fixed(settings: Settings, origins: Mapping[str, str], fetches: int | None) -> tuple[Settings, dict[str, str]]:
    fixed = {"strategy": "breadth", "topic": "", "until": f"pages={fetches or MAX_PAGES}"}
    if origins.get("scope", "default") == "default":
        fixed["scope"] = "any"
    return derived_survey.fixed_settings(settings, origins, EVENT, fixed)


def _create(
    path: Path, seeds: Sequence[str], given: Mapping[str, Any], settings: Settings, origins: Mapping[str, str]
) -> tuple[SurveyFolder, Settings, SampleRecord]:
    unfocused = given["method"] == "webwalker" or given["topic"] == "everything"
    defaults: dict[str, Any] = {
        "method": DEFAULT_METHOD,
        "walks": DEFAULT_WALKS,
        "window": WINDOW if unfocused else 0,  # a topic avoids most traps; jumps would change the distribution
        "hosts": DEFAULT_JUMP_HOSTS,
        "limit": DEFAULT_LIMIT,
        "until": "",
        "radius": 1,
    }
    record = SampleRecord(
        **{**dict.fromkeys(given), **defaults, **{name: value for name, value in given.items() if value is not None}}
    )
    folder, settings = derived_survey.create(path, seeds, settings, origins, EVENT, lambda _journal: asdict(record))
    return folder, settings, record


def _resume(
    path: Path, seeds: Sequence[str], given: Mapping[str, Any], settings: Settings, origins: Mapping[str, str]
) -> tuple[SurveyFolder, Settings, SampleRecord]:
    with SurveyFolder.open(path, write=False) as before:
        record, manifest = derived_survey.required_record(before, EVENT, SampleRecord), before.manifest
    chosen = {name: value for name, value in origins.items() if name not in SCOPE or value != EVENT}
    reject_changes(path, _options(seeds, given, record, manifest))
    reject_changes(path, _settings(settings, chosen, manifest))
    folder, settings = start_survey(path, (), settings, chosen)
    if given["until"] is not None and given["until"] != record.until:
        record = replace(record, until=given["until"])
        derived_survey.update_record(folder, EVENT, record)
    return folder, settings, record


def _options(
    seeds: Sequence[str], given: Mapping[str, Any], record: SampleRecord, manifest: Manifest
) -> list[tuple[str, Any, Any]]:
    names = ("method", "walks", "reach", "window", "hosts", "in_links", "limit", "radius")
    return [
        ("seeds", ", ".join(seeds) or None, ", ".join(manifest.seeds)),
        ("--topic", given["topic"], record.topic),
        ("the classifier", given["digest"], record.digest),
        *((f"--{name.replace('_', '-')}", given[name], getattr(record, name)) for name in names),
    ]


def _settings(settings: Settings, origins: Mapping[str, str], manifest: Manifest) -> list[tuple[str, Any, Any]]:
    given = {name: if_set(settings, origins, name) for name in SCOPE}
    scope = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
    return [
        ("--rng", if_set(settings, origins, "rng"), manifest.rng),
        *((f"--{name.replace('_', '-')}", value, manifest.settings.get(name)) for name, value in scope.items()),
    ]
