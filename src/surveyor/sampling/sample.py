"""`sv.sample`: a uniform sample of the pages of a topic, by random walks over a graph, a survey or the live web."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import AnyIntArray, BoolArray, FloatArray
from surveyor.config import Settings
from surveyor.crawling.crawl import finished
from surveyor.crawling.survey import Survey
from surveyor.errors import UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.formats import read_graph
from surveyor.sampling import of_graph
from surveyor.sampling.beginning import SampleFolder, begin, check
from surveyor.sampling.compiled import CompiledWalks, Neighbours
from surveyor.sampling.course import Plan
from surveyor.sampling.coverage import Coverage, Seen, corrected, in_link_coverage, neighbour_coverage
from surveyor.sampling.diagnostics import moving, stuck
from surveyor.sampling.in_links import InLinks
from surveyor.sampling.live import Watch, run
from surveyor.sampling.methods import DEFAULT, method_named
from surveyor.sampling.neighbours import name_of
from surveyor.sampling.of_survey import walk_survey
from surveyor.sampling.page import SampledPage
from surveyor.sampling.properties import Pages, Property, property_of
from surveyor.sampling.result import Sample
from surveyor.sampling.seen import seen_live, seen_on_graph
from surveyor.sampling.topics import Topic
from surveyor.sampling.trail import Trail
from surveyor.sampling.until import LONGEST, Until
from surveyor.sampling.walked import MetPages, Walked
from surveyor.sampling.walking import MANY

if TYPE_CHECKING:
    from surveyor.hosts import Hosts
    from surveyor.sources.addresses import Resolver
    from surveyor.sources.http import Client

Source = Graph | Survey | Path | str | Sequence[str]
About = str | Topic | Callable[[SampledPage], Any] | AnyIntArray | BoolArray | Sequence[int]
Say = Callable[[Trail, int], None]  # the steps so far, and the pages fetched
WALKS = 8
ALL = InLinks("the graph: all of them")
OF_SURVEY = InLinks("the survey: all links of the pages that it has read")
NOTHING = Coverage(0.0, 0.0, 1.0, 0)


def sample(
    where: Source,
    topic: About = "everything",
    *,
    method: str = DEFAULT,
    until: str | Until = "ess=400",
    of: str | Sequence[str] = (),
    walks: int = WALKS,
    start: Sequence[str | int] | None = None,
    in_links: Any = None,
    rng: int = 7,
    reach: int | None = None,
    window: int | None = None,
    say: Say = lambda _trail, _fetches: None,
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
    settings : of a live sample, as for `crawl`: contact, delay, scope, out, …
    """
    goal, watched, start = _goal(until), _watched(of), _starts(start)
    check({"method": method, "walks": walks, "reach": reach, "window": window, "rng": rng})
    if isinstance(where, (str, Path)) and "://" not in str(where) and not _is_survey(where):
        where = read_graph(where)
    plan = Plan(method, walks, rng, reach, window or 0)
    if isinstance(where, Graph):
        _refuse("a graph", settings)
        return _of_graph(where, topic, plan, goal, watched, start, in_links, say)
    about = Topic.of(topic)
    if isinstance(where, Survey) or (isinstance(where, (str, Path)) and _is_survey(where)):
        _refuse("a survey", settings | ({} if in_links is None else {"in_links": in_links}))
        return _of_survey(where.folder if isinstance(where, Survey) else where, about, plan, goal, watched, start, say)
    return live_sample(
        [str(where)] if isinstance(where, (str, Path)) else where, about, goal, watched, say=say, method=method,
        walks=walks, reach=reach, window=window, in_links=in_links, rng=rng, **settings,
    )  # fmt: skip


def _of_graph(
    graph: Graph, topic: About, plan: Plan, until: Until, watched: tuple[str, ...],
    start: Sequence[str | int] | None, in_links: object, say: Say,
) -> Sample:  # fmt: skip
    about = Topic.of(topic) if isinstance(topic, (str, Topic)) or callable(topic) else np.asarray(topic)
    if isinstance(about, np.ndarray) and about.dtype == np.object_:
        raise UsageError(f"a {type(topic).__name__} is no topic", hint="give a rule, a function, or a list of page ids")
    kind = of_graph.kinds(graph, about)
    text = about.text if isinstance(about, Topic) else f"{int(kind.sum()):,} pages"
    if not kind.any():
        raise UsageError(f"no page of the graph is on topic: {text}", hint="try a wider rule, or look at the names")
    if not (in_links is None or isinstance(in_links, (int, float, Graph))):
        raise UsageError(
            "who links to a page of a graph is known from the graph",
            hint="leave in-links out, or say which share of them is to be known",
        )
    pages = of_graph.GraphPages(graph, kind)
    neighbours = Neighbours.of(graph, 1.0 if in_links is None else in_links, rng=plan.rng)
    walks = CompiledWalks(
        neighbours, kind, of_graph.starts_of(graph, kind, plan.walks, start, plan.rng), method=plan.method,
        rng=plan.rng, reach=plan.reach, free=isinstance(about, Topic) and about.free, window=plan.window,
        hosts=_hosts(graph, plan.window) if plan.window else None,
    )  # fmt: skip
    ending = of_graph.walk(walks, until, _values(watched, pages), say)
    trail = walks.trail()
    weighed, known = trail, ALL
    if not neighbours.complete and walks.method.exact:
        weighed, known = _weighed(trail, lambda: seen_on_graph(neighbours, walks), "a part of the graph")
    trail, weighed = trail.rows(slice(until.steps)), weighed.rows(slice(until.steps))
    notes = (*_remarks(ending, trail, walks.lost.size, plan.walks, text), *known.warnings)
    trail, weighed = moving(trail), moving(weighed)
    return Sample(
        trail, weighed, pages, text, plan.method, plan.walks, plan.rng, walks.fetches, ending, until, known,
        tuple(walks.lost.tolist()), watched, notes, repr(graph),
    )  # fmt: skip


def _of_survey(
    folder: Path | str, topic: Topic, plan: Plan, until: Until, watched: tuple[str, ...],
    start: Sequence[str | int] | None, say: Say,
) -> Sample:  # fmt: skip
    walked = walk_survey(
        folder, topic, plan=plan, starts=None if start is None else [str(page) for page in start],
        fetches=until.fetches or MANY, steps=until.steps or MANY, done=done_when(until, watched, say),
    )  # fmt: skip
    return _sample(walked, walked.trail, topic, plan, until, watched, OF_SURVEY, f"survey {Path(folder).name}")


def live_sample(
    seeds: Sequence[str],
    topic: Topic,
    until: Until,
    watched: tuple[str, ...] = (),
    *,
    say: Say = lambda _trail, _fetches: None,
    settings: Settings | None = None,
    origins: Mapping[str, str] | None = None,
    method: str | None = None,
    walks: int | None = None,
    reach: int | None = None,
    window: int | None = None,
    in_links: object = None,
    out: Path | str | None = None,
    rng: int = 7,
    client: Client | None = None,
    resolver: Resolver | None = None,
    hosts: Hosts | None = None,
    watch: Watch = lambda _course, _run, _outcome: None,
    **more: Any,
) -> Sample:
    """Sample the live web; what is fetched goes to a survey of its own, which is gone on with when asked again."""
    chosen = settings or Settings(**more, rng=rng)
    told = origins if origins is not None else dict.fromkeys([*more, "rng"], "argument")
    with begin(
        seeds, topic, method=method, walks=walks, reach=reach, window=window, in_links=in_links, until=str(until),
        fetches=until.fetches, out=out, settings=chosen, origins=told,
    ) as begun:  # fmt: skip
        work = run(
            begun, fetches=until.fetches or MANY, steps=until.steps or MANY, done=done_when(until, watched, say),
            client=client, resolver=resolver, hosts=hosts, watch=watch,
        )  # fmt: skip
        walked = finished(work)
    return of_walked(begun, walked, topic, until, watched)


def of_walked(
    begun: SampleFolder, walked: Walked, topic: Topic, until: Until, watched: tuple[str, ...] = ()
) -> Sample:  # fmt: skip
    """Make a sample of what walks over the live web have come to."""
    how = name_of(begun.in_links) or "the walks themselves"
    trail, ground = walked.trail, walked.pages.ground
    capped = sum(len(ground.told_of(page)) >= begun.terms.limit for page in np.unique(trail.page).tolist())
    weighed, known = trail, InLinks(how, NOTHING, NOTHING)
    if method_named(begun.plan.method).exact:
        weighed, known = _weighed(trail, lambda: seen_live(ground, trail), how, capped)
    return _sample(walked, weighed, topic, begun.plan, until, watched, known, str(begun.folder.folder))


def _sample(
    walked: Walked, weighed: Trail, topic: Topic, plan: Plan, until: Until, watched: tuple[str, ...], known: InLinks,
    where: str,
) -> Sample:  # fmt: skip
    trail, lost = walked.trail.rows(slice(until.steps)), walked.lost
    about = _remarks(walked.ending, trail, lost.size, plan.walks, topic.text)
    return Sample(
        moving(trail), moving(weighed.rows(slice(until.steps))), walked.pages, topic.text, plan.method, plan.walks,
        plan.rng, int(walked.asked.size), walked.ending, until, known, tuple(lost.tolist()), watched,
        (*about, *known.warnings), where,
    )  # fmt: skip


def done_when(until: Until, watched: tuple[str, ...], say: Say) -> Callable[[Trail, MetPages], str]:
    """Return what says that walks over a survey or the live web are done."""
    values: dict[str, Property] = {}

    def done(trail: Trail, pages: MetPages) -> str:
        say(trail, int(trail.fetches[-1]) if len(trail) else 0)
        for name in watched:
            values.setdefault(name, property_of(name, pages))
        met = until.met(trail, {name: one.numbers(trail) for name, one in values.items()})
        return met or ("longest" if len(trail) >= LONGEST and until.steps is None else "")

    return done


def _refuse(what: str, settings: Mapping[str, object]) -> None:
    for name in settings:
        if name not in (one.name for one in fields(Settings)) and name not in ("out", "in_links"):
            raise UsageError(f"a sample has nothing called {name}", hint="help(surveyor.sample) tells what it takes")
        raise UsageError(f"{name} is a setting of a live sample", hint=f"leave it out where {what} is sampled")


def _goal(until: object) -> Until:
    if isinstance(until, Until):
        return until
    return Until.parse(until if isinstance(until, str) else repr(until))


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
    return [start] if isinstance(start, (str, int)) else list(start)  # type: ignore[call-overload]


def _values(watched: Sequence[str], pages: Pages) -> Callable[[Trail], Mapping[str, FloatArray]]:
    asked = {name: property_of(name, pages) for name in watched}
    return lambda trail: {name: one.numbers(trail) for name, one in asked.items()}


def _weighed(trail: Trail, seen: Callable[[], Seen], how: str, capped: int = 0) -> tuple[Trail, InLinks]:
    """Return the trail with weights that make up for in-links not known, as far as they can, and how many were."""
    if not trail.on_topic.any():
        return trail, InLinks(how, NOTHING, NOTHING)
    met = seen()
    told, known = in_link_coverage(met), neighbour_coverage(met)
    return corrected(trail, met), InLinks(how, told, known, capped=capped, corrected=True)


def _remarks(ending: str, trail: Trail, lost: int, walks: int, topic: str) -> tuple[str, ...]:
    """Say what went wrong with the walks themselves."""
    told = []
    if lost:
        who = "no walk" if lost == walks else f"{lost} of {walks} walks never"
        told.append(f"{who} found a page on topic ({topic}): begin at pages that are, or try a wider rule")
    found = np.unique(trail.walk).size
    if searching := walks - lost - found:
        who = f"{searching} of {walks} walks {'has' if searching == 1 else 'have'}"
        told.append(f"{who} not found the topic so far: walk longer, or begin at pages on it")
    if (still := len(stuck(trail))) and still < found:
        who = "a walk was" if still == 1 else f"{still} walks were"
        told.append(f"{who} left out that never moved: no neighbour of the first page is on topic; use other seeds")
    if ending == "longest":
        told.append(f"the goal was not reached in {len(trail):,} steps: the topic may be too small, or in parts")
    if ending == "exhausted":
        told.append("walks came to no new page for a long time: what can be reached is smaller than the goal asks for")
    if jumps := sum(int(trail.segment[trail.walk == walk].max()) for walk in np.unique(trail.walk).tolist()):
        told.append(
            f"walks jumped {jumps:,} times away from hosts that had half of the last moves, so that pages there count"
            " too little: leave the window out (--window 0) if these hosts are no traps"
        )
    return tuple(told)


def _hosts(graph: Graph, window: int) -> Any:
    names = graph.names
    if names is None:
        raise UsageError(f"a window of {window} needs hosts, and the graph has no names", hint="leave --window out")
    hosts = [SampledPage(name).host for name in names]
    return np.unique(hosts, return_inverse=True)[1].astype(np.int32)


def _is_survey(path: Path | str) -> bool:
    return (Path(path) / "survey.toml").exists()
