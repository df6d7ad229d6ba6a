"""`sv.sample`: a uniform sample of the pages of a topic, by random walks over a graph, a survey or the live web."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import AnyIntArray, BoolArray
from surveyor.config import Settings
from surveyor.crawler.start import clean_seeds, named
from surveyor.errors import UsageError
from surveyor.estimate.sampling.diagnostics import drop_stuck_walks
from surveyor.estimate.sampling.in_link_coverage import UNKNOWN, InLinkCoverage, correct_weights
from surveyor.estimate.sampling.live import run
from surveyor.estimate.sampling.of_graph import walk_graph
from surveyor.estimate.sampling.of_survey import walk_survey
from surveyor.estimate.sampling.page import SampledPage
from surveyor.estimate.sampling.properties import check_known
from surveyor.estimate.sampling.sample_goals import SampleGoal, Say, goal_check
from surveyor.estimate.sampling.sample_result import Sample
from surveyor.estimate.sampling.sample_survey import SampleOptions, check_options, open_sample_survey
from surveyor.estimate.sampling.topics import Topic
from surveyor.estimate.sampling.walk_methods import DEFAULT_METHOD, WALKS, WalkPlan, method_named
from surveyor.estimate.sampling.walked import WalkResult
from surveyor.fetch.http import run_sync
from surveyor.graph.csr import Graph
from surveyor.graph.formats import read_graph
from surveyor.survey.survey import Survey

if TYPE_CHECKING:
    from surveyor.fetch.addresses import Resolver
    from surveyor.fetch.http import Client

Source = Graph | Survey | Path | str | Sequence[str]
About = str | Topic | Callable[[SampledPage], Any] | AnyIntArray | BoolArray | Sequence[int]


def _nothing(*_: object) -> None:
    """Watch nothing."""


def sample(
    where: Source,
    topic: About = "everything",
    *,
    method: str = DEFAULT_METHOD,
    until: str | SampleGoal = "ess=400",
    of: str | Sequence[str] = (),
    walks: int = WALKS,
    start: Sequence[str | int] | None = None,
    in_links: Any = None,
    rng: int = 7,
    reach: int | None = None,
    window: int | None = None,
    say: Say = _nothing,
    **settings: Any,
) -> Sample:
    """Sample the pages of a topic uniformly, and tell shares and means over them with intervals.

    Parameters
    ----------
    where : a graph, or the path of one; a survey, or its folder; or URLs of the live web to begin at.
    topic : a rule such as "solar power" (words on the page), "host:example.org" or "model:topics/solar.json"; a
        function of a page; on a graph also ids or one truth value per page.
    method : trial, mixture, hard, nonbacktracking, webwalker; or as published: hard-paper, neighbourhood-paper,
        trial-paper, which have known faults.
    until : such as "ess=400", "width=3%", "fetches=2000", "steps=100k", or several with commas.
    of : properties that are watched: shares of pages by rules such as "word:buy", or "out_degree" and the like.
    walks : how many, from different pages; with fewer than four, intervals know little of what walks missed.
    start : pages of a graph to begin at, by name or id; by default pages on topic chosen by chance.
    in_links : where links into a page are known from: a graph, a survey, a file of back-links, or whatever has a method
        `in_links(url, limit)`; on a graph, which share of them is known, to see what that does.
    reach : steps off topic (trial), draws from a page between (mixture), probes (neighbourhood-paper).
    window : of so many moves no host may have more than half, else the walk jumps to another one, which leaves traps
        and spoils the law; 0 for any. By default 100 for unfocused walks of the live web, else 0.
    say : is told now and then how far walks are: the steps, the pages fetched, and the properties that are watched.
    settings : of a live sample, as for `crawl`: contact, delay, scope, out, …
    """
    goal, watched, start = _goal(until), _watched(of), _starts(start)
    if goal.width is not None and not watched:
        raise UsageError("nothing says which interval is to be narrow", hint='name it, such as of="word:buy"')
    check_options({"method": method, "walks": walks, "reach": reach, "window": window, "rng": rng})
    if isinstance(where, (str, Path)) and "://" not in str(where) and not _is_survey(where):
        where = read_graph(where)
    plan = WalkPlan(method, walks, rng, reach, window or 0)
    if isinstance(where, Graph):
        _refuse("a graph", settings)
        told, done = _told(in_links), goal_check(goal, watched, say)
        walked = walk_graph(where, _on_graph(topic), plan=plan, starts=start, told=told, done=done, **goal.limits)
        return sample_of(walked, goal, watched)
    about = Topic.of(topic)
    check_known(watched, free=about.free)
    if isinstance(where, Survey) or (isinstance(where, (str, Path)) and _is_survey(where)):
        _refuse("a survey", settings | ({} if in_links is None else {"in_links": in_links}))
        folder = where.folder if isinstance(where, Survey) else where
        starts = None if start is None else [str(page) for page in start]
        done = goal_check(goal, watched, say)
        return sample_of(walk_survey(folder, about, plan=plan, starts=starts, done=done, **goal.limits), goal, watched)
    if not isinstance(where, Iterable):
        raise UsageError(f"{where!r} is nothing to walk in", hint="give a graph, a survey, or URLs to begin at")
    seeds = [str(where)] if isinstance(where, (str, Path)) else where
    options = SampleOptions(method, walks, reach, window, in_links=in_links, until=str(goal), fetches=goal.fetches)
    return _live(seeds, about, goal, watched, say, options, rng, **settings)


def _live(
    seeds: Sequence[str], topic: Topic, until: SampleGoal, watched: tuple[str, ...], say: Say, options: SampleOptions,
    rng: int, *, out: Path | str | None = None, client: Client | None = None, resolver: Resolver | None = None,
    **settings: Any,
) -> Sample:  # fmt: skip
    """Sample the live web; what is fetched goes to a survey of its own, which is gone on with when asked again."""
    _check_settings(settings)
    given = dict.fromkeys([*settings, "rng"], "argument")
    chosen, origins = named(Settings(**settings, rng=rng), given, clean_seeds(list(seeds)))
    with open_sample_survey(seeds, topic, options, out=out, settings=chosen, origins=origins) as survey:
        done = goal_check(until, watched, say)
        work = run(survey, **until.limits, done=done, client=client, resolver=resolver)
        return sample_of(run_sync(work), until, watched)


def sample_of(walked: WalkResult, until: SampleGoal, watched: tuple[str, ...] = ()) -> Sample:
    """Make a sample of what walks have come to."""
    plan, weights, known = walked.plan, walked.trace, InLinkCoverage(walked.how)
    if walked.seen is not None:
        known = InLinkCoverage(walked.how, UNKNOWN, UNKNOWN)
        if method_named(plan.method).exact and weights.on_topic.any():
            observed = walked.seen()
            weights = correct_weights(walked.trace, observed)
            known = InLinkCoverage.estimate(observed, walked.how, walked.capped)
    some = slice(until.steps)  # a round may have gone beyond
    walked = replace(walked, trace=walked.trace.rows(some))
    trace, weights = drop_stuck_walks(walked.trace), drop_stuck_walks(weights.rows(some))
    return Sample(
        trace, weights, walked.pages, walked.topic, plan.method, plan.walks, plan.rng,
        walked.asked.size, walked.ending, until, known, tuple(walked.lost.tolist()), watched,
        (*walked.remarks, *known.warnings), walked.where,
    )  # fmt: skip


def _on_graph(topic: About) -> Topic | AnyIntArray | BoolArray:
    if isinstance(topic, (str, Topic)) or callable(topic):
        return Topic.of(topic)
    pages = np.asarray(topic)
    if pages.dtype == np.object_:
        raise UsageError(f"a {type(topic).__name__} is no topic", hint="give a rule, a function, or a list of page ids")
    return pages


def _told(in_links: object) -> float | Graph:
    """Return which in-links of a graph walks know."""
    if in_links is None or isinstance(in_links, (int, float, Graph)):
        return 1.0 if in_links is None else in_links
    raise UsageError(
        "who links to a page of a graph is known from the graph",
        hint="leave in-links out, or say which share of them is to be known",
    )


def _refuse(what: str, settings: Mapping[str, object]) -> None:
    _check_settings(settings, "out", "in_links")
    for name in settings:
        raise UsageError(f"{name} is a setting of a live sample", hint=f"leave it out where {what} is sampled")


def _check_settings(settings: Mapping[str, object], *more: str) -> None:
    for name in settings:
        if name not in (one.name for one in fields(Settings)) and name not in more:
            raise UsageError(f"a sample has nothing called {name}", hint="help(surveyor.sample) tells what it takes")


def _goal(until: object) -> SampleGoal:
    if isinstance(until, SampleGoal):
        return until
    return SampleGoal.parse(until if isinstance(until, str) else repr(until))


def _watched(of: object) -> tuple[str, ...]:
    names = (of,) if isinstance(of, str) else tuple(of) if isinstance(of, (list, tuple)) else (of,)
    if not all(isinstance(name, str) for name in names):
        raise UsageError(
            "what is watched has a name", hint='such as of="word:buy"; ask the sample itself about functions and arrays'
        )
    return names


def _starts(start: object) -> Sequence[str | int] | None:
    if start is None:
        return None
    if isinstance(start, np.integer):
        start = int(start)
    return [start] if isinstance(start, (str, int)) else list(start)  # type: ignore[call-overload]


def _is_survey(path: Path | str) -> bool:
    return (Path(path) / "survey.toml").exists()
