"""The survey of a sample: begun, or gone on with.

A sample of a live web is a survey of its own: repeating the command goes on with it, a goal that is farther away asks
for more. Whoever looks at it sees a survey like any other, breadth first, of the pages that walks asked for. An event
`sample` in the journal keeps what it was begun with: another topic, method or number of walks is another sample.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.config import Settings
from surveyor.crawler.naming import shortened, site_name
from surveyor.crawler.replay import SCOPE
from surveyor.crawler.start import clean_seeds, start
from surveyor.errors import UsageError
from surveyor.estimate.sampling.in_link_sources import LIMIT, InLinkSource, in_link_source, source_name
from surveyor.estimate.sampling.topics import Topic
from surveyor.estimate.sampling.walk_methods import DEFAULT_METHOD, HOSTS, WALKS, WalkPlan, method_named
from surveyor.estimate.sampling.walking import UNLIMITED
from surveyor.outcome import Event
from surveyor.store.directory import Manifest, SurveyFolder, damaged

if TYPE_CHECKING:
    from surveyor.store.journal import Journal

EVENT = "sample"
WINDOW = 100  # steps of an unfocused walk in which no host may have more than half
SPENDING = {"budget": "--budget", "budget_file": "--budget-file"}  # that it has only if asked for
MOST = 1_000_000  # pages that the manifest names as a goal if there is no limit
RANGES = {"walks": (1, 100_000), "reach": (1, 10_000), "window": (0, 100_000), "hosts": (2, 100_000),
          "limit": (1, 10**9), "rng": (0, UNLIMITED - 1)}  # fmt: skip
HINT = "leave it as it was, or begin another in another folder"


@dataclass(frozen=True, slots=True)
class Terms:
    """What a sample was begun with, as its journal keeps it."""

    topic: str
    digest: str  # of a model that tells the topic
    method: str
    walks: int
    reach: int | None
    window: int  # steps in which no host may have more than half; 0 for any
    hosts: int  # hosts to jump back to
    in_links: str  # the name of the source of back-links
    limit: int  # in-links to ask it for
    until: str  # as the user wrote it; the last word counts


def terms_of(folder: SurveyFolder) -> Terms | None:
    """Return what a sample was begun with, and what it was last to come to; None if a survey is none."""
    told = [event.detail for event in folder.journal.events(EVENT)]
    if not told:
        return None
    try:
        return Terms(**{one.name: told[-1][one.name] for one in fields(Terms)})
    except KeyError as error:
        raise damaged(folder.journal.path, f"an event that means nothing: {error!r}") from error


@dataclass(frozen=True, slots=True)
class SampleFolder:
    """The survey of a sample, open to be gone on with."""

    folder: SurveyFolder
    settings: Settings
    terms: Terms
    topic: Topic
    in_links: InLinkSource
    is_new: bool

    @property
    def plan(self) -> WalkPlan:
        """How walks go."""
        terms = self.terms
        return WalkPlan(terms.method, terms.walks, self.folder.manifest.rng, terms.reach, terms.window, terms.hosts)

    def close(self) -> None:
        """Close its files."""
        self.folder.close()

    def __enter__(self) -> SampleFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def begin(
    seeds: Sequence[str] | str,
    topic: Topic,
    *,
    method: str | None = None,
    walks: int | None = None,
    reach: int | None = None,
    window: int | None = None,
    hosts: int | None = None,
    in_links: object = None,
    limit: int | None = None,
    until: str = "",
    fetches: int | None = None,
    out: Path | str | None = None,
    settings: Settings | None = None,
    origins: Mapping[str, str] | None = None,
) -> SampleFolder:
    """Begin a sample of the pages on topic that walks from the seeds come to, or go on with one.

    What is None is as usual, or as the sample was begun with; whoever goes on need not name the seeds. Links
    are followed wherever they lead, unless the settings say which scope they are to stay in.

    Parameters
    ----------
    in_links : who tells which pages link to a page (see `in_link_source`), and `limit` how many at most.
    until : the goal in words, which the journal keeps; `fetches` is the limit of pages, for those who look at it.
    """
    source = in_link_source(in_links)
    given = {
        "topic": topic.text, "digest": topic.digest, "method": method, "walks": walks,
        "reach": reach, "window": window, "hosts": hosts, "in_links": source_name(source), "limit": limit,
        "until": until or None,
    }  # fmt: skip
    check(given)
    chosen, told = _own(settings or Settings(), origins or {}, fetches)
    if not (chosen.archive or topic.free):
        raise UsageError(
            f"whether a page is on topic ({given['topic']}) is told from what it says, which would not be kept",
            hint="keep what servers answer (archive), or choose a topic that URLs tell",
        )
    start_at = clean_seeds(seeds) if seeds or out is None else []
    path = folder_for(start_at, str(given["topic"])) if out is None else Path(out)
    is_new = not (path / "survey.toml").is_file()
    if is_new and not start_at:
        raise UsageError(f"{path} is no sample to go on with", hint="name pages to begin at")
    folder, now, terms = (_make if is_new else _go_on)(path, start_at, given, chosen, told)
    if not (now.archive or topic.free):
        folder.close()
        raise UsageError(f"{path} keeps nothing of what pages say", hint=HINT)
    return SampleFolder(folder, now, terms, topic, source, is_new)


def folder_for(seeds: Sequence[str], topic: str) -> Path:
    """Return where the sample of a topic lies, unless the user says so."""
    words = shortened(re.sub(r"[^\w.-]+", "-", topic).strip("-."), topic)
    return Path(f"{site_name(seeds[0])}-sample{'-' * bool(words)}{words}.survey")


def check(given: Mapping[str, Any]) -> None:
    """Refuse what would fail later."""
    method_named(given["method"] or DEFAULT_METHOD)
    for name, (lowest, highest) in RANGES.items():
        value: Any = given.get(name, lowest)
        if value is None and name != "rng":
            continue
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not lowest <= value <= highest:
            raise UsageError(
                f"{name} must be a whole number from {lowest} to {highest:,}, not {value!r}", hint="such as 8"
            )


def _own(settings: Settings, origins: Mapping[str, str], fetches: int | None) -> tuple[Settings, dict[str, str]]:
    """Set what a sample has of itself, wherever settings come from."""
    mine: dict[str, Any] = {"strategy": "breadth", "until": f"pages={fetches or MOST}"}
    if origins.get("scope", "default") == "default":
        mine["scope"] = "any"
    for name, flag in SPENDING.items():
        if origins.get(name, "default") not in (flag, "argument"):
            mine[name] = ""
    return replace(settings, **mine), {**origins, **dict.fromkeys(mine, EVENT)}


def _make(
    path: Path, seeds: Sequence[str], given: Mapping[str, Any], settings: Settings, origins: Mapping[str, str]
) -> tuple[SurveyFolder, Settings, Terms]:
    unfocused = given["method"] == "webwalker" or given["topic"] == "everything"
    usual: dict[str, Any] = {  # a topic keeps walks out of most traps, and jumps would spoil their law
        "method": DEFAULT_METHOD, "walks": WALKS, "window": WINDOW if unfocused else 0, "hosts": HOSTS, "limit": LIMIT,
        "until": "",
    }  # fmt: skip
    terms = Terms(**{**dict.fromkeys(given), **usual, **{k: v for k, v in given.items() if v is not None}})

    def fill(journal: Journal) -> None:
        journal.commit([], events=[Event(EVENT, time.time(), asdict(terms))])

    folder, settings = start(path, seeds, settings, origins, fill=fill)
    return folder, settings, terms


def _go_on(
    path: Path, seeds: Sequence[str], given: Mapping[str, Any], settings: Settings, origins: Mapping[str, str]
) -> tuple[SurveyFolder, Settings, Terms]:
    with SurveyFolder.open(path, write=False) as before:
        terms, manifest = terms_of(before), before.manifest
    if terms is None:
        raise UsageError(f"{path} is a survey, but no sample", hint="choose another folder")
    _same(path, seeds, given, terms, manifest)
    if origins.get("rng", "default") != "default" and settings.rng not in (None, manifest.rng):
        hint = "leave --rng out, or name another folder with --out"
        raise UsageError(f"{path} was begun with --rng {manifest.rng}", hint=hint)
    kept = {name: value for name, value in origins.items() if name not in SCOPE or value != EVENT}
    for name in SCOPE:
        if kept.get(name, "default") != "default" and _plain(getattr(settings, name)) != manifest.settings.get(name):
            raise UsageError(f"{path} was begun with another {name}", hint=HINT)
    folder, settings = start(path, (), settings, kept)
    if given["until"] is not None and given["until"] != terms.until:
        terms = replace(terms, until=given["until"])
        folder.note(EVENT, **asdict(terms))
    return folder, settings, terms


def _same(path: Path, seeds: Sequence[str], given: Mapping[str, Any], terms: Terms, manifest: Manifest) -> None:
    """Refuse to go on with another sample than was begun."""
    if seeds and tuple(seeds) != manifest.seeds:
        raise UsageError(f"{path} was begun at {', '.join(manifest.seeds[:3])}", hint=HINT)
    words = {
        "topic": f"the topic {terms.topic}", "digest": "another model", "method": f"method {terms.method}",
        "walks": f"{terms.walks} walks", "reach": f"reach {terms.reach or 'as usual'}",
        "window": f"a window of {terms.window}", "hosts": f"{terms.hosts} hosts to jump to",
        "in_links": f"back-links of {terms.in_links or 'nobody'}", "limit": f"at most {terms.limit} in-links of a page",
    }  # fmt: skip
    for name, told in words.items():
        if given[name] is not None and given[name] != getattr(terms, name):
            raise UsageError(f"{path} was begun with {told}", hint=HINT)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
