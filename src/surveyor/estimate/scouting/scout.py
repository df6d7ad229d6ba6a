"""Scout a site before a crawl: `sv.scout(seeds, contact=…)`.

A few hundred polite fetches give what can be known without a crawl: shares of importance by host and folder, of broken
links and of pages that need JavaScript, each with an exact interval; the unseen mass; a lower bound of the size; and
forecasts. The statistics are in `walk_statistics.py`, the walks in `crawler/scout_walks.py`.

The pages are ordinary visits of an ordinary survey: a crawl of the same seeds continues from them. Repeating a scout
resumes it, or only reports it if it has ended; another number of walks or of sampled URLs starts another scout.

The intervals assume what the walks assume: the answer of a page does not depend on which pages were requested before.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.crawler.replay import scope_of
from surveyor.crawler.seeds import ListLimits, gather_seeds
from surveyor.crawler.session import Run, Watch, run
from surveyor.crawler.sources.live import REAL, Connection
from surveyor.errors import UsageError
from surveyor.estimate.scouting.forecasts import CrawlForecast, ScoutedSite, forecasts
from surveyor.estimate.scouting.walk_statistics import (
    CONFIDENCE,
    ShareEstimate,
    UnseenMass,
    coverage_curve,
    members_at_least,
    share_estimate,
    unseen_mass,
)
from surveyor.fetch.event_loops import in_thread, run_sync
from surveyor.frames import Tabular, draw_bars
from surveyor.stopping import CRAWL, Minutes, Rule, Scouted, parse_limits
from surveyor.store.validation import MOST_WALKS
from surveyor.survey.cell_display import CellDisplay
from surveyor.survey.crawl import nothing_fetched, open_to_crawl
from surveyor.survey.survey import Survey
from surveyor.web.javascript import NEEDS_JAVASCRIPT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from surveyor.config import Settings
    from surveyor.crawler.session import Result
    from surveyor.outcome import Outcome
    from surveyor.store.directory import SurveyFolder

WALKS, SAMPLE = 200, 30
UNTIL = "requests=1000,minutes=60"
LIMITS = {name: CRAWL[name] for name in ("requests", "minutes")}
SITEMAPS, SITEMAPS_SHARE = 50, 0.1  # requests for sitemaps, and their part of the limits, at most
TOP = 10  # hosts and folders
PAUSE = 60.0  # seconds: longer intervals between two visits are interruptions


@dataclass(frozen=True, slots=True)
class SizeBound:
    """A lower bound of the number of pages of a site."""

    at_least: int
    fetched: int
    unfetched: int  # known URLs, of which a sample was drawn
    sampled: int
    pages: int  # of the sample: those that are pages of their own
    is_complete: bool  # every known URL was requested, and none is blocked
    reason: str = ""  # why the bound is only the number of fetched pages
    confidence: float = CONFIDENCE


@dataclass(frozen=True, slots=True)
class Scout(Tabular):
    """Estimates about a site from random walks."""

    survey: Path
    seeds: tuple[str, ...]
    damping: float
    walks: int
    finished: int
    requests: int
    pages_fetched: int
    pages_known: int
    hosts: dict[str, ShareEstimate]  # largest first
    folders: dict[str, ShareEstimate]
    broken_clicks: ShareEstimate
    javascript: ShareEstimate
    unseen: UnseenMass
    size: SizeBound
    sitemap_pages: int | None  # listed in the sitemaps read, and in scope; None if there is no sitemap
    sitemaps_unread: int  # known sitemaps that were not requested because of a limit
    forecasts: tuple[CrawlForecast, ...]
    pages_per_second: float | None
    ending: str = "reached"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict; hosts and folders as lists."""
        rows = {
            name: [{"name": key, **share.to_dict()} for key, share in getattr(self, name).items()]
            for name in ("hosts", "folders")
        }
        plain = {**asdict(self), "survey": str(self.survey), "seeds": list(self.seeds), **rows}
        return {**plain, "forecasts": [one.to_dict() for one in self.forecasts]}

    def _columns(self) -> dict[str, Any]:
        kinds = {"host": self.hosts, "folder": self.folders}
        rows = [{"kind": kind, "name": name, **one.to_dict()} for kind, of in kinds.items() for name, one in of.items()]
        return {name: [row[name] for row in rows] for name in (rows[0] if rows else ("kind", "name"))}

    def _draw(self, axes: Axes) -> None:
        shares = self.folders if len(self.hosts) < 2 else self.hosts
        found = list(shares.values())
        bounds = [one.at_least for one in found], [one.at_most for one in found]
        draw_bars(axes, list(shares), [one.share or 0.0 for one in found], "share of random walks", bounds)

    def __repr__(self) -> str:
        pages = f"at least {self.size.at_least:,} pages"
        return f"Scout({self.survey.name}, {self.finished:,} of {self.walks:,} walks ended, {pages})"


@dataclass(frozen=True, slots=True)
class ScoutOptions:
    """Numbers of walks and of sampled URLs, and limits."""

    walks: int = WALKS
    sample: int = SAMPLE
    until: str = UNTIL
    sitemaps: bool = True  # count the pages in sitemaps

    def __post_init__(self) -> None:
        for name, value, least in (("walks", self.walks, 2), ("sample", self.sample, 0)):
            if not isinstance(value, int) or not least <= value <= MOST_WALKS:
                raise UsageError(
                    f"{name} must be from {least} to {MOST_WALKS:,}, got {value}", hint=f"for example {WALKS}"
                )
        parse_limits(self.until, LIMITS)

    @property
    def rule(self) -> Rule:
        """The stopping rule of the scout."""
        return self.rule_after(0)

    def rule_after(self, requests: int) -> Rule:
        """Return the stopping rule after some of the requests were sent."""
        limits = parse_limits(self.until, LIMITS)
        scouted = Scouted(self.walks, self.sample, max(1, int(limits.get("requests", 2**53)) - requests))
        return scouted | Minutes(limits["minutes"]) if "minutes" in limits else scouted

    @property
    def sitemap_limits(self) -> ListLimits:
        """The limits of reading sitemaps."""
        limits = parse_limits(self.until, LIMITS)
        requests, minutes = limits.get("requests", math.inf), limits.get("minutes", math.inf)
        return ListLimits(min(SITEMAPS, SITEMAPS_SHARE * requests), 60 * SITEMAPS_SHARE * minutes)


def scout(
    seeds: str | Sequence[str],
    *,
    walks: int = WALKS,
    sample: int = SAMPLE,
    until: str = UNTIL,
    sitemaps: bool = True,
    out: Path | str | None = None,
    **options: Any,
) -> Scout:
    """Scout a site by random walks from seeds, and report shares, size and forecasts.

    `sample` is the number of known unfetched URLs that are requested for the size, `until` limits requests and minutes.
    The other options are those of `crawl`: contact, scope, delay, allow, fresh, … The survey is the one that `crawl`
    uses for the same seeds, so a crawl does not fetch these pages again.
    """
    chosen = ScoutOptions(walks, sample, until, sitemaps)
    check_links(keeps=options.get("graph", True))
    folder, settings, run_options = open_to_crawl(seeds, out, options)
    connection = Connection(run_options.client, run_options.resolver)
    display = CellDisplay(shown=not run_options.quiet)
    with folder:
        check_links(keeps=folder.journal.keeps_graph, place=folder.folder)
        run_sync(count_sitemaps(folder, settings, chosen, connection=connection))
        ending, last = run_sync(
            walk(folder, settings, chosen, connection=connection, watch=lambda now, _: display.crawl(now))
        )
        display.end(ending)
    with Survey(folder.folder) as survey:
        if ending != "interrupted" and not survey.pages_fetched:
            raise nothing_fetched(survey)
        return summarise(survey, last, ending)


async def scout_async(seeds: str | Sequence[str], **options: Any) -> Scout:
    """Scout as `scout` does, in a thread, so that the event loop of the caller stays free; cancelling it saves."""
    return await in_thread(partial(scout, seeds, **options))


def check_links(*, keeps: bool, place: Path | None = None) -> None:
    """Reject, before any request, a scout that stores no links, or one of a survey that has none."""
    if keeps:
        return
    if place is None:
        raise UsageError("a scout follows links, which --no-graph does not store", hint="leave out --no-graph")
    raise UsageError(
        f"{place} was crawled with --no-graph: it stores no links, which a scout follows",
        hint="scout into another survey with --fresh",
    )


async def walk(
    folder: SurveyFolder,
    settings: Settings,
    options: ScoutOptions,
    *,
    connection: Connection = REAL,
    watch: Watch = lambda _run, _outcome: None,
) -> tuple[Result, Run | None]:
    """Fetch the pages of the walks and of the sample; return how that ended, and the run."""
    last: list[Run] = []

    def keep(now: Run, outcome: Outcome | None) -> None:
        last[:] = [now]
        watch(now, outcome)

    spent = sum(int(event.detail.get("requests") or 0) for event in folder.journal.events("scout_sitemaps"))
    ending = await run(folder, settings, options.rule_after(spent), connection=connection, watch=keep)
    return ending, last[0] if last else None


async def count_sitemaps(
    folder: SurveyFolder,
    settings: Settings,
    options: ScoutOptions,
    *,
    connection: Connection = REAL,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Count the pages in the sitemaps of the seeds, and record the number; once per survey."""
    limits = options.sitemap_limits
    if not options.sitemaps or limits.requests < 2 or any(True for _ in folder.journal.events("scout_sitemaps")):
        return
    sites = folder.manifest.seeds
    found = await gather_seeds([], settings, sitemaps_of=sites, connection=connection, say=say, limits=limits)
    scope = scope_of(folder.manifest)
    pages = sum(scope.admits(url) for url in found.urls)
    for host, until in found.waits.items():
        folder.note("backoff", host=host, until=until, why="Retry-After")
    lists = len(found.kinds) if found.urls else 0
    folder.note("scout_sitemaps", lists=lists, pages=pages, unread=found.unread, requests=found.requests)
    folder.note("requests", count=found.requests)


def summarise(survey: Survey, last: Run | None = None, ending: str = "reached") -> Scout:
    """Return the estimates of the last scout of a survey; the time of a crawl needs its last run."""
    found = survey.scout_walks
    walks, unfinished = found.walks, found.unfinished
    ends = [walk.pages[-1] for walk in walks if walk.ended]
    places = [survey.url(page).partition("://")[2] for page in ends]
    scripted = set(survey.journal.read_for(NEEDS_JAVASCRIPT))
    clicks = [walk.pages[-1] for walk in walks if walk.ended and walk.clicked]
    broken = sum(not found.is_fetched(page) for page in clicks)
    listed = [event.detail for event in survey.journal.events("scout_sitemaps")]
    rate = _pages_per_second(survey, last)
    coverage = survey.coverage
    site = ScoutedSite(
        fetched=survey.pages_fetched,
        certified=survey.history().at_least[: None if found.drawn is None else found.drawn.fetched],
        curve=coverage_curve(walks),
        best_possible=1 - coverage.blocked - coverage.lost,
        rate=rate,
        is_complete=not survey.pages_queued,
        now=coverage.at_least,
    )
    return Scout(
        survey=survey.folder,
        seeds=tuple(survey.manifest.seeds),
        damping=survey.damping,
        walks=len(walks),
        finished=len(ends),
        requests=survey.journal.cost()[2],
        pages_fetched=survey.pages_fetched,
        pages_known=survey.pages_known,
        hosts=_shares([place.partition("/")[0] for place in places], unfinished, len(walks)),
        folders=_shares([first_folder(place) for place in places], unfinished, len(walks)),
        broken_clicks=share_estimate(broken, unfinished, len(clicks) + unfinished),
        javascript=share_estimate(sum(page in scripted for page in ends), unfinished, len(walks)),
        unseen=unseen_mass(walks, is_half_done=not found.is_walking(len(walks) // 2)),
        size=_size(survey),
        sitemap_pages=int(listed[-1]["pages"]) if listed and listed[-1]["lists"] else None,
        sitemaps_unread=int(listed[-1].get("unread") or 0) if listed else 0,
        forecasts=tuple(forecasts(site)),
        pages_per_second=rate,
        ending=ending,
    )


def first_folder(place: str) -> str:
    """Return the host and first folder of a URL without its scheme.

    >>> first_folder("example.org/docs/start.html"), first_folder("example.org/about?x=/y/")
    ('example.org/docs/', 'example.org/')
    """
    host, _, path = place.partition("?")[0].partition("/")
    folder, slash, _ = path.partition("/")
    return f"{host}/{folder}/" if slash else f"{host}/"


def _shares(names: Sequence[str], unfinished: int, walks: int) -> dict[str, ShareEstimate]:
    most = sorted(Counter(names).items(), key=lambda entry: (-entry[1], entry[0]))[:TOP]
    return {name: share_estimate(count, unfinished, walks) for name, count in most}


def _size(survey: Survey) -> SizeBound:
    """Return the lower bound of the size: the fetched pages, and a part of the unfetched URLs."""
    found, fetched = survey.scout_walks, survey.pages_fetched
    drawn = found.drawn
    blocked = sum(row["pages"] for row in survey.blocked())
    complete = not survey.pages_queued and not blocked
    if drawn is None or not drawn.pages:
        reason = "no unfetched URL was sampled" if drawn is not None else "the scout ended before the sample"
        if not survey.pages_queued:
            reason = f"{blocked:,} known URL{'s are' if blocked != 1 else ' is'} blocked"
        return SizeBound(fetched, fetched, survey.pages_queued, 0, 0, complete, "" if complete else reason)
    pages = sum(map(found.is_fetched, drawn.pages))
    more = members_at_least(drawn.unfetched, len(drawn.pages), pages)
    bound = max(fetched, drawn.fetched + more)
    return SizeBound(bound, drawn.fetched, drawn.unfetched, len(drawn.pages), pages, complete)


def _pages_per_second(survey: Survey, last: Run | None) -> float | None:
    """Return the rate that crawl delays allow; without delays, that of the visits so far; None if neither is known."""
    allowed = 0.0 if last is None else last.forecast().rate
    if 0 < allowed < math.inf:
        return allowed
    times = np.sort([visit.fetched_at for visit in survey.journal.visits() if visit.fetched_at])
    seconds = float(np.minimum(np.diff(times), PAUSE).sum())
    return (times.size - 1) / seconds if seconds > 0 else None
