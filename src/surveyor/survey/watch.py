"""Watch a survey from Python: `sv.watch(survey, rate="500/day")` keeps its pages fresh."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surveyor.config import from_arguments
from surveyor.crawler.request_budget import parse_rate
from surveyor.crawler.sources.live import Connection
from surveyor.crawler.start import start
from surveyor.crawler.watching import TRACKING, Ending, Report, WatchOptions
from surveyor.crawler.watching import Watch as RunningWatch
from surveyor.crawler.watching import watch as run_watch
from surveyor.errors import SurveyError, UsageError
from surveyor.fetch.event_loops import in_thread, run_sync
from surveyor.frames import Tabular, draw_bars
from surveyor.store.layout import is_survey
from surveyor.survey.cell_display import CellDisplay
from surveyor.survey.changes import Changes, PageChange, changes
from surveyor.web.urls import normalise

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from surveyor.config import Settings
    from surveyor.crawler.revisit_plan import Finding
    from surveyor.fetch.addresses import Resolver
    from surveyor.fetch.http import Client
    from surveyor.outcome import Outcome
    from surveyor.store.directory import SurveyFolder


@dataclass(frozen=True, slots=True)
class WatchResult(Tabular):
    """What a watch did, from its start to its end."""

    survey: Path
    ending: Ending  # done: nothing is due; budget: no request is left today; interrupted
    rate: int  # requests per day
    requests: int  # sent, including robots.txt files and retries
    bytes: int
    found: Mapping[str, int] = field(default_factory=dict)  # number of pages by finding: changed, new, gone, …
    fresh: float = 0.0  # share of importance that is expected to be fresh now
    fresh_error: float = 0.0  # its standard error
    unavailable: int = 0  # pages that are gone or blocked
    lying: Mapping[str, str] = field(default_factory=dict)  # hosts whose validators are wrong, and why
    signals: int = 0  # changes that sitemaps and feeds reported
    unread_feeds: Mapping[str, str] = field(default_factory=dict)  # feeds that were named, and why they were not read
    importance: str = TRACKING  # the estimate by which pages were weighed
    started: float = 0.0  # seconds since 1970

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict."""
        return {**asdict(self), "survey": str(self.survey)}

    def _columns(self) -> dict[str, Any]:
        return {"finding": list(self.found), "pages": list(self.found.values())}

    def _draw(self, axes: Axes) -> None:
        draw_bars(axes, list(self.found), list(self.found.values()), "pages")

    def __repr__(self) -> str:
        found = ", ".join(f"{count:,} {kind}" for kind, count in self.found.items()) or "no change"
        return f"WatchResult({self.ending}, {self.requests:,} requests, {found}, {100 * self.fresh:.1f} % fresh)"


class Meter:
    """The costs of one watch, and its last state."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self.last: RunningWatch | None = None
        self._requests = self._bytes = self._base_requests = self._base_bytes = 0

    def __call__(self, run: RunningWatch, outcome: Outcome | None, finding: str) -> None:
        """Record a report, and pass it on."""
        if self.last is None or self.last.state is not run.state:  # a new leg counts from the journal again
            self._base_requests, self._base_bytes = run.state.tally.requests, run.state.tally.bytes
            self._requests, self._bytes = self.requests, self.bytes
        self.last = run
        self._report(run, outcome, finding)  # type: ignore[arg-type]

    @property
    def requests(self) -> int:
        """Number of requests sent."""
        return self._requests + (self.last.state.tally.requests - self._base_requests if self.last else 0)

    @property
    def bytes(self) -> int:
        """Number of bytes received."""
        return self._bytes + (self.last.state.tally.bytes - self._base_bytes if self.last else 0)

    def result(self, ending: Ending) -> WatchResult | None:
        """Return the result; None if the watch did not start."""
        run = self.last
        if run is None:
            return None
        watched, forecast = run.watched, run.watched.plan.schedule.forecast(run.now)
        return WatchResult(
            run.folder.folder,
            ending,
            run.budget.per_day,
            self.requests,
            self.bytes,
            dict(watched.found),
            forecast.fresh,
            forecast.error,
            watched.plan.failed(),
            watched.audits.lying,
            0 if watched.lists is None else watched.lists.found,
            {} if watched.lists is None else watched.lists.unread_feeds(),
            run.importance_name,
            run.started,
        )


def changes_found(run: RunningWatch, since: float, *, each: bool = False) -> Changes:
    """Return the pages that have changed since a time, or with `each` every change; most important first."""
    found, urls, shares = changes(run.folder.journal, since, each=each), run.state.urls, run.importance()

    def share(change: PageChange) -> float:
        page = urls.find(change.url)
        return 0.0 if page is None or page >= shares.size else float(shares[page])

    pages = [replace(change, importance=share(change)) for change in found.pages]
    pages.sort(key=lambda change: -(change.importance or 0.0))
    return replace(found, pages=tuple(pages))


@dataclass(frozen=True, slots=True)
class RevisitOptions:
    """Options of `watch` that are not settings of the survey."""

    audit_days: float = 7.0  # between two downloads of an unchanged page to check its validator, at least
    importance: str = (
        TRACKING  # the estimate by which pages are weighed: tracking, or an OPIC strategy ("adaptive:bao")
    )
    feeds: Sequence[str] = ()  # URLs of feeds that are read for signals of change
    lists: bool = True  # read the sitemaps of the sites, and the feeds
    quiet: bool = False  # no live progress in a notebook
    client: Client | None = None
    resolver: Resolver | None = None


def watch(
    survey: Path | str,
    *,
    rate: str | int | None = None,
    once: bool = False,
    report: Report = lambda _watch, _outcome, _finding: None,
    **options: Any,
) -> WatchResult:
    """Re-visit the pages of a survey when they are due, within a number of requests per day.

    `rate` is a number of requests per day, or a text such as "500/day" or "20/hour"; by default one per page and week,
    at least 10 a day and at most 1,000 a day per host. With `once` it ends when no page is due or the requests of the
    day are used up; otherwise it runs until it is interrupted (Ctrl-C), and returns what it did.

    `report(watch, outcome, finding)` is called with each outcome and what it found ("" if nothing has changed), and
    periodically without an outcome. The options are the settings of the command line, and those of `RevisitOptions`:
    audit_days, importance, feeds, lists, quiet, client, resolver.
    """
    path, names = Path(survey), [field.name for field in fields(RevisitOptions)]
    own = RevisitOptions(**{name: value for name, value in options.items() if name in names})
    given = {name: value for name, value in options.items() if name not in names}
    chosen = from_arguments(given, ("rate", "once", "report", *names))
    per_day = None if rate is None else parse_rate(rate)
    asked = WatchOptions(per_day, once, own.audit_days, own.importance, feed_urls(own.feeds), own.lists)
    folder, settings = open_to_watch(path, chosen, dict.fromkeys(given, "argument"))
    for notice in folder.notices:
        warnings.warn(notice, stacklevel=2)
    display = CellDisplay(shown=not own.quiet)

    def show(run: RunningWatch, outcome: Outcome | None, finding: Finding) -> None:
        display.watch(run)
        report(run, outcome, finding)

    meter = Meter(show)
    with folder:
        connection = Connection(own.client, own.resolver)
        ending = run_sync(run_watch(folder, settings, asked, connection=connection, report=meter))
        display.end(ending)
        result = meter.result(ending)
    if result is None:
        raise SurveyError(f"{path} was interrupted before the watch started", hint="run it again")
    return result


async def watch_async(
    survey: Path | str,
    *,
    rate: str | int | None = None,
    once: bool = False,
    report: Report = lambda _watch, _outcome, _finding: None,
    **options: Any,
) -> WatchResult:
    """Watch as `watch` does, in a thread, so that the event loop of the caller stays free; cancelling it saves."""
    return await in_thread(partial(watch, survey, rate=rate, once=once, report=report, **options))


def open_to_watch(path: Path, chosen: Settings, origins: Mapping[str, str]) -> tuple[SurveyFolder, Settings]:
    """Open an existing survey for writing; return it with the settings in effect.

    Main texts are hashed unless that was switched off: most bodies differ at every visit, by a time or a counter.
    """
    if not is_survey(path):
        problem = f"{path} is not a survey" if path.exists() else f"{path} does not exist"
        raise SurveyError(problem, hint="create one with `surveyor crawl URL --out FOLDER`, then watch it")
    folder, settings = start(path, [], chosen, origins)
    stored = folder.manifest
    if stored.origins.get("main_text", "default") == "default" and not settings.main_text:
        folder.close()
        return start(path, [], replace(chosen, main_text=True), {**origins, "main_text": "watch"})
    return folder, settings


def feed_urls(given: Iterable[str]) -> tuple[str, ...]:
    """Return the normalised URLs of feeds; raise UsageError if one is no URL."""
    found = []
    for text in given:
        url = normalise(text)
        if url is None:
            raise UsageError(f"feed must be a URL, got {text!r}", hint="for example https://example.org/feed.xml")
        found.append(url)
    return tuple(found)
