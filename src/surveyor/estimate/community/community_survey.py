"""The survey of a community: create it from a base survey, resume it, and fetch pages around the local ones.

A new community survey starts with all outcomes of the base survey; the local pages get the first ids. Repeating the
command resumes it, and a larger `extra` requests more pages. The base survey is never changed. An event `community` in
the journal records the options and the state of the base survey.

Fetching is a crawl like any other, with robots.txt, delays, retries, archive and resume. Its strategy works in rounds
(`strategies/rounds.py`): except for ties, the selected pages do not depend on response times, and they are the same as
in a simulation over a known graph (`known_graph.py`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import FloatArray, IdArray, IntArray, read_only
from surveyor.config import Settings
from surveyor.crawler import session
from surveyor.crawler.replay import Derived, derive, require_graph, urls_of
from surveyor.crawler.seed_pages import SeedPages
from surveyor.crawler.sources.live import REAL, Connection
from surveyor.crawler.start import KEPT, honoured, notice
from surveyor.crawler.start import start as start_survey
from surveyor.crawler.strategies.rounds import PART, Rounds, is_stable
from surveyor.errors import UsageError
from surveyor.estimate.community.community_options import (
    CommunityOptions,
    LocalPages,
    LocalPagesLike,
    LocalRule,
    check_size,
    list_digest,
    local_pages,
)
from surveyor.estimate.community.community_rank import Ending
from surveyor.estimate.community.known_graph import Expanded, Round
from surveyor.graph.names import Names
from surveyor.kernels import mass
from surveyor.outcome import Outcome, was_requested
from surveyor.rank.expansion import Expansion, Select
from surveyor.stopping import parse_rule
from surveyor.store.directory import SurveyFolder
from surveyor.store.layout import is_survey
from surveyor.store.manifest import Manifest
from surveyor.survey import derived_survey
from surveyor.survey.derived_survey import CopiedOutcomes, DerivedSurvey, Selection, if_set, is_final

if TYPE_CHECKING:
    from surveyor.store.journal import Journal

EVENT = "community"
FIXED = ("strategy", "topic", "until", "scope", "include", "depth")  # settings that follow from the community
KINDS = {"fetched": 1, "gone": 2, "redirected": 3, "blocked": 4}


@dataclass(frozen=True, slots=True)
class CommunityRecord:
    """The options that a community was created with, as recorded in its journal."""

    base: str  # name of the base survey
    journal: str  # identity of its journal
    position: int  # last visit of its journal
    rule: str  # that selects the local pages
    digest: str  # of the list of local pages, if the rule is a list
    select: Select
    rounds: int  # in which all extra pages are requested; 0 for rounds of 4 % of the local pages
    local: int  # number of local pages: they have the first ids
    start: int  # number of copied outcomes
    fetched: int  # pages fetched among them
    frontier: int  # pages without an outcome that they link to

    def strategy(self, extra: int, batch: int = 0, stable: float = 0.0) -> str:
        """Return the strategy that requests so many pages, `batch` per round."""
        batch = batch or max(1, math.ceil(extra / self.rounds if self.rounds else PART * self.local))
        text = f"rounds:select={self.select},local={self.local},start={self.start},batch={batch},extra={extra}"
        return f"{text},stable={stable!r}" if stable else text

    def until(self, extra: int) -> str:
        """Return the stop rule for so many extra pages."""
        return f"pages={self.fetched + extra}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunitySurvey(DerivedSurvey[CommunityRecord]):
    """The open survey of a community."""

    extra: int  # pages to request in total

    @property
    def requested(self) -> int:
        """The number of extra pages requested so far, fetched or not; pages blocked by robots.txt do not count."""
        return int(self.folder.journal.asked(self.record.start).size)


def community_record(folder: SurveyFolder) -> CommunityRecord | None:
    """Return the recorded options of a community; None if the survey is not a community."""
    return derived_survey.recorded(folder, EVENT, CommunityRecord)


def community_folder(base: Path, local: LocalPagesLike) -> Path:
    """Return the default folder of a community of a survey."""
    label = (local.partition(":")[2] or local) if isinstance(local, str) else list_digest(local)
    return base.with_name(derived_survey.folder_name(base.name.removesuffix(".survey"), EVENT, label))


def open_community_survey(
    base: Path | str,
    local: LocalPagesLike | None = None,
    options: CommunityOptions | None = None,
    *,
    settings: Settings | None = None,
    origins: Mapping[str, str] | None = None,
) -> CommunitySurvey:
    """Resume the community survey in `options.out`, or create it from the survey `base`.

    Settings with the origin "default" are inherited from the base. Without `local`, `base` must be a community survey,
    which is resumed.
    """
    options = options or CommunityOptions()
    options.check()
    chosen, known = settings or Settings(), origins or {}
    fixed = {
        "scope": "any",
        "include": (),
        "depth": None,
        "strategy": chosen.strategy,
        "topic": "",
        "until": chosen.until,
    }
    chosen, known = derived_survey.fixed_settings(chosen, known, EVENT, fixed)
    with SurveyFolder.open(Path(base), write=False) as other:
        require_graph(other)
        path = Path(base) if options.out is None else Path(options.out)
        if local is None and (options.out is not None or community_record(other) is None):
            raise UsageError("the local pages are not specified", hint="select them with --local, such as host:HOST")
        if local is not None and options.out is None:
            path = community_folder(Path(base), local)
        if is_survey(path):
            return _resume(path, other, local, options, chosen, known)
        return _create(path, other, "all" if local is None else local, options, chosen, known)


@dataclass(frozen=True, slots=True, eq=False)
class BasePages:
    """The pages of a base survey that a community starts with."""

    selection: Selection
    local: LocalPages
    fetched: int  # pages fetched among them
    journal: str  # identity of the journal of the base

    @property
    def local_count(self) -> int:
        """The number of local pages."""
        return int(self.local.indices.size)

    def local_urls(self) -> list[str]:
        """Return the URLs of the local pages."""
        pages = self.selection.pages[: self.local_count]
        return [self.selection.urls[page] for page in pages.tolist()]


def select_pages(base: SurveyFolder, local: LocalPagesLike, *, only_local: bool = False) -> BasePages:
    """Select the outcomes of a base survey: all of them, or of the fetched pages only the local ones."""
    journal, urls = base.journal, urls_of(base)
    latest: IntArray = np.zeros(len(urls), np.int64)
    kind = np.zeros(len(urls), np.uint8)
    for number, outcome in enumerate(islice(journal.outcomes(), journal.position), 1):
        if is_final(outcome):
            latest[outcome.page], kind[outcome.page] = number, KINDS[outcome.kind]
    fetched = np.flatnonzero(kind == KINDS["fetched"]).astype(np.int32)
    chosen = _local_pages(base, [urls[page] for page in fetched.tolist()], fetched, local)
    first = fetched[chosen.indices]
    others = (kind > 0) & (kind != KINDS["fetched"]) if only_local else kind > 0
    others[first] = False
    pages: IdArray = np.concatenate([first, np.flatnonzero(others)]).astype(np.int32)
    count = int((kind[pages] == KINDS["fetched"]).sum())
    selection = Selection(urls, pages, np.sort(latest[pages]), journal.position)
    return BasePages(selection, chosen, count, journal.identity)


def _local_pages(base: SurveyFolder, urls: list[str], ids: IdArray, local: LocalPagesLike) -> LocalPages:
    name = base.folder.name
    if not urls:
        raise UsageError(f"{name} has no fetched page", hint=f"resume it: surveyor crawl --out {base.folder}")
    what = f"the {len(urls):,} pages fetched in {name}"
    return local_pages(local, Names.of(urls), len(urls), ids=ids, what=what, allow_all=True, archive=base)


def _create(
    path: Path,
    base: SurveyFolder,
    local: LocalPagesLike,
    options: CommunityOptions,
    settings: Settings,
    origins: Mapping[str, str],
) -> CommunitySurvey:
    manifest = base.manifest
    stored, ignored = honoured(manifest, [name for name in KEPT if origins.get(name, "default") != "default"])
    pages = select_pages(base, local, only_local=options.known == "local")
    check_size(pages.local_count, pages.local.rule)
    extra = options.extra_pages(pages.local_count)
    record = CommunityRecord(
        base=base.folder.name,
        journal=pages.journal,
        position=pages.selection.position,
        rule=pages.local.rule,
        digest=list_digest(local),
        select=options.selector,
        rounds=options.rounds or 0,
        local=pages.local_count,
        start=int(pages.selection.visits.size),
        fetched=pages.fetched,
        frontier=0,  # counted while copying
    )
    settings = replace(
        settings,
        **stored,
        rng=manifest.rng if settings.rng is None else settings.rng,
        strategy=record.strategy(extra, stable=options.stable),
        until=record.until(extra),
    )
    scope = {name: getattr(settings, name) for name in ("scope", "exclude", "follow_nofollow")}
    scoped = Manifest(seeds=manifest.seeds, rng=0, settings=scope, origins=manifest.foreign_origins(scope))
    copied = CopiedOutcomes(base, pages.selection, scoped)

    def fill(journal: Journal) -> dict[str, Any]:
        nonlocal record
        record = replace(record, frontier=copied.write(journal))
        return asdict(record)

    seeds = SeedPages(dict(zip(manifest.seeds, manifest.seed_weights, strict=True)))
    inherited = dict.fromkeys(stored, base.folder.name) | manifest.foreign_origins(stored)
    known = {**inherited, **{name: origin for name, origin in origins.items() if origin != "default"}}
    folder, settings = derived_survey.create(path, seeds, settings, known, EVENT, fill)
    missing = pages.local.missing
    warnings = (f"{missing:,} of the local pages were not fetched in {base.folder.name}",) * bool(missing)
    warnings += (notice(base.folder, ignored),) * bool(ignored)
    return CommunitySurvey(folder=folder, settings=settings, record=record, extra=extra, is_new=True, warnings=warnings)


def _resume(
    path: Path,
    base: SurveyFolder,
    local: LocalPagesLike | None,
    options: CommunityOptions,
    settings: Settings,
    origins: Mapping[str, str],
) -> CommunitySurvey:
    with SurveyFolder.open(path, write=False) as before:
        record = derived_survey.required_record(before, EVENT, CommunityRecord)
        manifest, requested = before.manifest, int(before.journal.asked(record.start).size)
    rule = str(LocalRule.parse(local)) if isinstance(local, str) else None
    damping = float(manifest.settings.get("damping", 0.85))
    derived_survey.reject_changes(
        path,
        [
            ("--local", rule, record.rule),
            ("the list or model of local pages", None if local is None else list_digest(local), record.digest),
            ("--select", options.select, record.select),
            ("--rounds", options.rounds, record.rounds),
            ("--damping", if_set(settings, origins, "damping"), damping),
            ("--rng", if_set(settings, origins, "rng"), manifest.rng),
        ],
    )
    strategy = str(manifest.settings.get("strategy", ""))
    numbers = {name: int(number) for name, number in re.findall(r"(batch|extra)=(\d+)", strategy)}
    wanted = numbers.get("extra", 0) if options.extra is None else options.extra_pages(record.local)
    extra = max(wanted, requested)
    settings = replace(
        settings,
        strategy=record.strategy(extra, numbers.get("batch", 0), options.stable),
        until=record.until(extra),
    )
    folder, settings = start_survey(path, (), settings, origins)
    warnings = (*folder.notices, *_base_changes(path, base, record))
    return CommunitySurvey(
        folder=folder, settings=settings, record=record, extra=extra, is_new=False, warnings=warnings
    )


def _base_changes(path: Path, base: SurveyFolder, record: CommunityRecord) -> tuple[str, ...]:
    """Return a warning if the base survey has changed since the community was created."""
    journal = base.journal
    unchanged = (journal.identity, journal.position) == (record.journal, record.position)
    if unchanged or base.folder.resolve() == path.resolve():
        return ()
    grown = journal.identity == record.journal and journal.position > record.position
    change = f"has {journal.position - record.position:,} more visits" if grown else "was replaced"
    return (
        f"{base.folder.name} {change} since {path.name} was created; they are not included: "
        "create another community with --out to include them",
    )


@dataclass(frozen=True, slots=True, eq=False)
class CrawledCommunity:
    """The state of a community survey after a crawl."""

    state: Derived
    record: CommunityRecord
    ending: Ending
    requested: IdArray  # extra pages, in the order of their outcomes
    fetched: IdArray  # those of them that were fetched
    times: FloatArray  # of the requested pages, in seconds since the first

    @property
    def local(self) -> IdArray:
        """The local pages: those with the first ids."""
        return np.arange(self.record.local, dtype=np.int32)

    @property
    def remark(self) -> str:
        """The reason why fewer pages were requested than planned; empty if all were."""
        remarks = {
            "no_frontier": f"no page of {self.record.rule} links to a page that was not fetched: "
            "there is no page outside to fetch",
            "exhausted": f"no page is left to request outside after {self.requested.size:,} pages",
        }
        return remarks.get(self.ending, "")

    def expanded(self, *, tolerance: float = 1e-6) -> Expanded:
        """Return the fetched pages as a simulation would; pages that are gone count as pages without links."""
        ledger, graph, record = self.state.crawl.ledger, self.state.crawl.graph, self.record
        status = ledger.state & mass.STATUS
        expansion = Expansion(self.local, record.select, damping=ledger.damping, tolerance=tolerance)
        pages = np.flatnonzero((status == mass.FETCHED) | (status == mass.GONE)).astype(np.int32)
        known = expansion.update(graph.rows, pages, ledger.capacity, ledger.stands_for())
        strategy = self.state.crawl.strategy
        rows = strategy.rounds if isinstance(strategy, Rounds) else []
        since = np.append(0.0, self.times)
        rounds = tuple(
            Round(fetched, requested, change, error, float(since[requested]))
            for fetched, requested, change, error in rows
        )
        batch: IntArray = np.zeros(ledger.capacity, np.int64)
        starts = [one.requested for one in rounds]
        batch[self.requested] = np.searchsorted(starts, np.arange(self.requested.size), side="right")
        return Expanded(known, expansion, batch[known.pages], self.requested, rounds)


async def crawl_community(
    community: CommunitySurvey,
    *,
    connection: Connection = REAL,
    watch: session.Watch = lambda _run, _outcome: None,
) -> CrawledCommunity:
    """Request the remaining extra pages; cancel the task to stop cleanly."""
    folder, record = community.folder, community.record
    if not record.frontier or community.requested >= community.extra:
        return _crawled(community, derive(folder), "complete" if record.frontier else "no_frontier")
    latest: list[session.Run] = []

    def both(now: session.Run, outcome: Outcome | None) -> None:
        latest[:] = [now]
        watch(now, outcome)

    rule = parse_rule(community.settings.until)
    ending = await session.run(folder, community.settings, rule, connection=connection, watch=both)
    state = latest[-1].state
    if ending == "interrupted":
        return _crawled(community, state, ending)
    strategy = state.crawl.strategy
    stable = isinstance(strategy, Rounds) and is_stable([row[2] for row in strategy.rounds], strategy.stable)
    complete = community.requested >= community.extra
    return _crawled(community, state, "complete" if complete else "stable" if stable else "exhausted")


def _crawled(community: CommunitySurvey, state: Derived, ending: Ending) -> CrawledCommunity:
    visits = [visit for visit in community.folder.journal.visits(community.record.start) if was_requested(visit)]
    times = np.array([visit.fetched_at - visits[0].fetched_at for visit in visits])
    fetched = np.array([visit.page for visit in visits if visit.kind == "fetched"], np.int32)
    requested = np.array([visit.page for visit in visits], np.int32)
    return CrawledCommunity(state, community.record, ending, read_only(requested), read_only(fetched), read_only(times))
