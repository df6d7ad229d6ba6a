"""`sv.sample`: a uniform sample of the pages of a topic, by random walks over a graph, a survey or the live web."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.arrays import AnyIntArray, BoolArray
from surveyor.config import Settings
from surveyor.crawler.seed_pages import clean_seeds
from surveyor.crawler.sources.live import Connection
from surveyor.crawler.start import allow_named_hosts
from surveyor.crawler.topics.page_content import SampledPage
from surveyor.crawler.topics.rules import Topic
from surveyor.errors import UsageError
from surveyor.estimate.sampling.diagnostics import drop_stuck_walks
from surveyor.estimate.sampling.in_links import UNKNOWN, InLinkCoverage, correct_weights
from surveyor.estimate.sampling.sample_goals import OnProgress, SampleGoal, WalkLimits
from surveyor.estimate.sampling.sample_result import Sample
from surveyor.estimate.sampling.sample_survey import SampleOptions, check_options, open_sample_survey
from surveyor.estimate.sampling.walk_methods import DEFAULT_METHOD, DEFAULT_WALKS, UNIFORM, WalkPlan, method_named
from surveyor.estimate.sampling.walk_scheduler import WalkResult
from surveyor.estimate.sampling.walks import walk_graph, walk_live, walk_survey
from surveyor.fetch.event_loops import in_thread, run_sync
from surveyor.graph.adapters import GraphLike, is_graph, page_ids, simple_graph
from surveyor.graph.csr import Graph
from surveyor.graph.formats import read_graph
from surveyor.store.layout import is_survey
from surveyor.survey.cell_display import CellDisplay
from surveyor.survey.survey import Survey

Source = GraphLike | Survey | Sequence[str]
TopicLike = str | Topic | Callable[[SampledPage], Any] | AnyIntArray | BoolArray | Sequence[int]
WALK_OPTIONS = ("walks", "start", "in_links", "reach", "window", "radius")
CONNECTION = ("client", "resolver")  # options of a live sample that are not settings


def _ignore(*_: object) -> None:
    """Ignore progress."""


@dataclass(frozen=True, slots=True)
class WalkOptions:
    """Keyword options of `sample` about the walks."""

    walks: int | None = None
    start: Any = None
    in_links: Any = None
    reach: int | None = None
    window: int | None = None
    radius: int | None = None
    progress: OnProgress = _ignore
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class _Request:
    """The checked arguments of `sample` that all modes share."""

    method: str | None
    goal: SampleGoal
    tracked: tuple[str, ...]
    rng: int
    walk: WalkOptions
    settings: Mapping[str, Any]  # of the crawler, for a live sample

    @property
    def plan(self) -> WalkPlan:
        """The walks over stored pages; without an option about walks, pages are drawn independently."""
        walk = self.walk
        given = {name: getattr(walk, name) for name in WALK_OPTIONS if getattr(walk, name) is not None}
        if self.method == UNIFORM.name and given:
            raise UsageError(
                f"{next(iter(given))} is an option of walks, and method uniform does not walk",
                hint="leave it out, or name a method such as trial",
            )
        method = self.method or (DEFAULT_METHOD if given else UNIFORM.name)
        walks = DEFAULT_WALKS if walk.walks is None else walk.walks
        return WalkPlan(
            method, walks, self.rng, walk.reach, walk.window or 0, radius=1 if walk.radius is None else walk.radius
        )

    @property
    def limits(self) -> WalkLimits:
        return WalkLimits.of(self.goal, self.tracked, self.walk.progress)


def sample(
    where: Source,
    topic: TopicLike = "everything",
    *,
    method: str | None = None,
    until: str | SampleGoal = "ess=400",
    of: str | Sequence[str] = (),
    rng: int = 7,
    **options: Any,
) -> Sample:
    """Sample the pages of a topic uniformly, and estimate shares and means over them with confidence intervals.

    Parameters
    ----------
    where : a graph or its path, or any other of `as_graph` (weights, self-links and duplicate links are ignored); a
        survey or its folder; or seed URLs of the live web.
    topic : a rule such as "solar power" (words on the page), "host:example.org" or "model:topics/solar.json"; a
        function of a page; for a graph also page ids or a boolean array.
    method : uniform (pages of a graph or survey are drawn independently; the default there, unless an option about
        walks is given); walks: trial (the default of the live web), mixture, hard, nonbacktracking, webwalker; or as
        published, with known bias: hard-paper, neighbourhood-paper, trial-paper.
    until : stopping rules such as "ess=400", "width=3%", "fetches=2000" or "steps=100k", separated by commas; the
        first one met ends the sample.
    of : properties that `until` applies to: rules such as "word:buy" (shares of pages), or names such as "out_degree".
    rng : random seed.
    walks : number of walks (default 8); with fewer than four, intervals miss most of the between-walk variance.
    start : start pages in a graph or survey, by name or id (default: pages on topic, drawn at random).
    in_links : source of in-links: a graph, a survey, a file of links, or an object with a method
        `in_links(url, limit)`; for a graph, the share of in-links that walks know.
    reach : steps off topic (trial), draws from a page in between (mixture), probes (neighbourhood-paper).
    radius : links between the topic and the pages that count as near it (neighbourhood-paper; default 1).
    window : number of moves of which one host may have at most half; beyond that the walk jumps to another host, which
        escapes traps but changes the stationary distribution. 0: no limit. Default: 100 for unfocused walks of the
        live web, otherwise 0.
    progress : called at each check of the goal with the steps so far, the number of fetches and the tracked properties.
    quiet : show no live progress of a live sample in a notebook.
    options : for a live sample also the settings of `crawl`: contact, delay, scope, out, …
    """
    request = _request(method, until, of, rng, options)
    if isinstance(where, (str, Path)) and "://" not in str(where) and not is_survey(where):
        where = read_graph(where)
    if isinstance(where, Iterator):
        where = list(where)
    if not isinstance(where, Survey) and not is_graph(where):
        raise UsageError(f"where must be a graph, a survey or seed URLs, got {where!r}", hint='for example "web.graph"')
    if not (isinstance(where, Survey | str | Path) or _are_urls(where)):
        return _sample_graph(simple_graph(where), topic, request)  # type: ignore[arg-type]  # no survey, no URLs
    rule = Topic.of(topic)
    if isinstance(where, Survey):
        return _sample_survey(where.folder, rule, request)
    if isinstance(where, (str, Path)):
        return _sample_survey(where, rule, request) if is_survey(where) else _sample_live([str(where)], rule, request)
    return _sample_live([str(seed) for seed in where], rule, request)  # type: ignore[union-attr]  # a list of URLs


def _are_urls(where: object) -> bool:
    """Return whether this is a list of URLs, and not one of edges."""
    return isinstance(where, list | tuple | set | frozenset) and all(isinstance(entry, str) for entry in where)


async def sample_async(where: Source, topic: TopicLike = "everything", **options: Any) -> Sample:
    """Sample as `sample` does, in a thread, so that the event loop of the caller stays free; cancelling it saves."""
    return await in_thread(partial(sample, where, topic, **options))


def _sample_graph(graph: Graph, topic: TopicLike, request: _Request) -> Sample:
    """Sample a graph."""
    _reject_settings("a graph", request.settings)
    result = walk_graph(
        graph,
        _graph_topic(page_ids(graph, topic)),
        request.plan,
        starts=page_ids(graph, _starts(request.walk.start)),
        in_links=_graph_in_links(request.walk.in_links),
        limits=request.limits,
    )
    return sample_of(result, request.goal, request.tracked)


def _sample_survey(folder: Path | str, topic: Topic, request: _Request) -> Sample:
    """Sample the fetched pages of a survey."""
    in_links = {} if request.walk.in_links is None else {"in_links": request.walk.in_links}
    _reject_settings("a survey", {**request.settings, **in_links})
    start = _starts(request.walk.start)
    starts = None if start is None else [str(page) for page in start]
    result = walk_survey(folder, topic, request.plan, starts=starts, limits=request.limits)
    return sample_of(result, request.goal, request.tracked)


def _sample_live(seeds: Sequence[str], topic: Topic, request: _Request) -> Sample:
    """Sample the live web; pages are fetched into a survey, and the same call resumes it."""
    settings = {name: value for name, value in request.settings.items() if name not in ("out", *CONNECTION)}
    connection = Connection(request.settings.get("client"), request.settings.get("resolver"))
    given = dict.fromkeys([*settings, "rng"], "argument")
    chosen, origins = allow_named_hosts(Settings(**settings, rng=request.rng), given, clean_seeds(list(seeds)))
    walk, goal = request.walk, request.goal
    if request.method == UNIFORM.name:
        raise UsageError(
            "method uniform draws stored pages, and the live web has no list of them",
            hint="leave the method out, or sample a graph or a survey",
        )
    options = SampleOptions(
        request.method,
        walk.walks,
        walk.reach,
        walk.window,
        in_links=walk.in_links,
        until=str(goal),
        fetches=goal.fetches,
        radius=walk.radius,
    )
    out = request.settings.get("out")
    with open_sample_survey(seeds, topic, options, out=out, settings=chosen, origins=origins) as survey:
        display = CellDisplay(shown=not walk.quiet, goal=str(goal))
        work = walk_live(
            survey, request.limits, watch=lambda _scheduler, run, _outcome: display.crawl(run), connection=connection
        )
        result = run_sync(work)
        display.end(result.ending)
        return sample_of(result, goal, request.tracked)


def sample_of(result: WalkResult, goal: SampleGoal, tracked: tuple[str, ...] = ()) -> Sample:
    """Make a sample from the result of walks."""
    plan, weighted, in_links = result.plan, result.trace, InLinkCoverage(result.in_link_source)
    if result.observations is not None:
        in_links = InLinkCoverage(result.in_link_source, UNKNOWN, UNKNOWN)
        if method_named(plan.method).exact and weighted.on_topic.any():
            observed = result.observations()
            weighted = correct_weights(result.trace, observed)
            in_links = InLinkCoverage.estimate(observed, result.in_link_source, result.truncated)
    rows = slice(goal.steps)  # the last round may exceed the limit
    result = replace(result, trace=result.trace.rows(rows))
    weighted = weighted.rows(rows) if result.weighted is None else result.weighted
    goal_met = result.ending in ("ess", "width")
    return Sample(
        trace=drop_stuck_walks(result.trace),
        weighted=drop_stuck_walks(weighted),
        source=result.pages,
        topic=result.topic,
        method=plan.method,
        walks=plan.walks,
        rng=plan.rng,
        fetches=result.requested.size,
        ending="missed" if goal_met and not result.reach.conclusive else result.ending,
        goal=goal,
        in_links=in_links,
        lost_walks=tuple(result.lost.tolist()),
        tracked=tracked,
        remarks=(*result.remarks, *result.reach.warnings, *in_links.warnings),
        location=result.source,
        reach=result.reach,
        counted=result.size,
        check=result.check,
    )


def _request(method: str | None, until: object, of: object, rng: int, options: Mapping[str, Any]) -> _Request:
    """Check the arguments of `sample`, and separate options of the walks from settings of the crawler."""
    goal, tracked = _goal(until), _tracked(of)
    if goal.width is not None and not tracked:
        raise UsageError("until has a width, but of names no property", hint='name one, such as of="word:buy"')
    own = {field.name for field in fields(WalkOptions)}
    known = {*(field.name for field in fields(Settings)), *CONNECTION, "out"}
    if unknown := next((name for name in options if name not in own | known), None):
        raise UsageError(f"sample has no option {unknown}", hint="help(surveyor.sample) lists its options")
    walk = WalkOptions(**{name: value for name, value in options.items() if name in own})
    settings = {name: value for name, value in options.items() if name not in own}
    given = {name: getattr(walk, name) for name in ("walks", "reach", "window", "radius")}
    check_options({"method": method, "rng": rng, **given})
    return _Request(method, goal, tracked, rng, walk, settings)


def _graph_topic(topic: TopicLike) -> Topic | AnyIntArray | BoolArray:
    if isinstance(topic, (str, Topic)) or callable(topic):
        return Topic.of(topic)
    pages = np.asarray(topic)
    if pages.ndim == 0 or pages.dtype == np.object_:
        got = f"a {type(topic).__name__}" if pages.dtype == np.object_ else repr(topic)
        raise UsageError(
            f"topic must be a rule, a Topic, a function or a list of page ids, got {got}",
            hint='for example topic="solar power" or topic=[1, 2, 3]',
        )
    return pages


def _graph_in_links(in_links: object) -> float | Graph:
    """Return which in-links of a graph the walks know."""
    if in_links is None or isinstance(in_links, (int, float, Graph)):
        return 1.0 if in_links is None else in_links
    raise UsageError(
        f"in_links of a graph must be a share or a graph, got a {type(in_links).__name__}",
        hint="leave in_links out to use all in-links of the graph",
    )


def _reject_settings(source: str, settings: Mapping[str, object]) -> None:
    for name in settings:
        raise UsageError(f"{name} is an option of live samples only", hint=f"leave it out when {source} is sampled")


def _goal(until: object) -> SampleGoal:
    if isinstance(until, SampleGoal):
        return until
    return SampleGoal.parse(until if isinstance(until, str) else repr(until))


def _tracked(of: object) -> tuple[str, ...]:
    names = (of,) if isinstance(of, str) else tuple(of) if isinstance(of, (list, tuple)) else (of,)
    for name in names:
        if not isinstance(name, str):
            hint = 'for example of="word:buy"; pass functions and arrays to the methods of the sample'
            raise UsageError(f"of must be a string or a list of strings, got {name!r}", hint=hint)
    return names


def _starts(start: object) -> Sequence[str | int] | None:
    if start is None:
        return None
    if isinstance(start, np.integer):
        start = int(start)
    return [start] if isinstance(start, (str, int)) else list(start)  # type: ignore[call-overload]
