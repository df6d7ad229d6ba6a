"""`sv.sample`: a uniform sample of the pages of a topic, by random walks over a graph, a survey or the live web."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.arrays import AnyIntArray, BoolArray, FloatArray
from surveyor.crawling.survey import Survey
from surveyor.errors import UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.formats import read_graph
from surveyor.sampling import of_graph
from surveyor.sampling.compiled import CompiledWalks, Neighbours
from surveyor.sampling.methods import DEFAULT, method_named
from surveyor.sampling.page import SampledPage
from surveyor.sampling.properties import Pages, property_of
from surveyor.sampling.result import InLinks, Sample
from surveyor.sampling.topics import Topic
from surveyor.sampling.trail import Trail
from surveyor.sampling.until import Until

Source = Graph | Survey | Path | str | Sequence[str]
About = str | Topic | Callable[[SampledPage], Any] | AnyIntArray | BoolArray | Sequence[int]
Say = Callable[[Trail, int], None]  # the steps so far, and the pages fetched
WALKS = 8
ALL = InLinks(1.0, 1.0, 1.0, "the graph: all of them")


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
    window : of so many moves no host may have more than half; 0 for any.
    settings : of a live sample, as for `crawl`: contact, delay, scope, out, …
    """
    goal = until if isinstance(until, Until) else Until.parse(until)
    watched = (of,) if isinstance(of, str) else tuple(of)
    method_named(method)
    if walks < 1:
        raise UsageError(f"{walks} walks cannot walk", hint="take eight, or at least four")
    if isinstance(where, (str, Path)) and _is_graph(Path(where)):
        where = read_graph(Path(where))
    if not isinstance(where, Graph):
        raise UsageError(f"{where!r} is nothing to sample", hint="give a graph")
    if settings:
        raise UsageError(
            f"{next(iter(settings))} is a setting of a live sample", hint="leave it out where a graph is sampled"
        )
    return _of_graph(where, topic, method, goal, watched, walks, start, in_links, rng, reach, window or 0, say)


def _of_graph(
    graph: Graph, topic: About, method: str, until: Until, watched: tuple[str, ...], count: int,
    start: Sequence[str | int] | None, in_links: Any, rng: int, reach: int | None, window: int, say: Say,
) -> Sample:  # fmt: skip
    about = Topic.of(topic) if isinstance(topic, (str, Topic)) or callable(topic) else np.asarray(topic)
    kind = of_graph.kinds(graph, about)
    text = about.text if isinstance(about, Topic) else f"{int(kind.sum()):,} pages"
    if not kind.any():
        raise UsageError(f"no page of the graph is on topic: {text}", hint="try a wider rule, or look at the names")
    pages = of_graph.GraphPages(graph, kind)
    neighbours = of_graph.neighbours_of(graph, in_links, rng)
    walks = CompiledWalks(
        neighbours, kind, of_graph.starts_of(graph, kind, count, start, rng), method=method, rng=rng, reach=reach,
        free=isinstance(about, Topic) and about.free, window=window,
        hosts=_hosts(graph, window) if window else None,
    )  # fmt: skip
    ending = of_graph.walk(walks, until, _values(watched, pages), say)
    trail = walks.trail()
    return Sample(
        trail, pages, text, method, count, rng, walks.fetches, ending, str(until), _known(neighbours, walks),
        tuple(walks.lost.tolist()), watched, _remarks(ending, trail, walks.lost.size, count, text), repr(graph),
    )  # fmt: skip


def _values(watched: Sequence[str], pages: Pages) -> Callable[[Trail], Mapping[str, FloatArray]]:
    asked = {name: property_of(name, pages) for name in watched}
    return lambda trail: {name: one.numbers(trail) for name, one in asked.items()}


def _known(neighbours: Neighbours, walks: CompiledWalks) -> InLinks:
    """Return how many in-links of the pages met were in the lists; on a graph that is known, not estimated."""
    if neighbours.complete:
        return ALL
    frozen = np.flatnonzero(walks.degrees >= 0)
    true = (neighbours.starts[frozen + 1] - neighbours.starts[frozen]).sum()
    share = float(walks.degrees[frozen].sum() / true) if true else 1.0
    return InLinks(share, share, share, "a part of the graph; counted, not estimated")


def _remarks(ending: str, trail: Trail, lost: int, walks: int, topic: str) -> tuple[str, ...]:
    """Say what went wrong with the walks themselves."""
    told = []
    if lost:
        who = "no walk" if lost == walks else f"{lost} of {walks} walks never"
        told.append(f"{who} found a page on topic ({topic}): begin at pages that are, or try a wider rule")
    if ending == "longest":
        told.append(f"the goal was not reached in {len(trail):,} steps: the topic may be too small, or in parts")
    return tuple(told)


def _hosts(graph: Graph, window: int) -> Any:
    names = graph.names
    if names is None:
        raise UsageError(f"a window of {window} needs hosts, and the graph has no names", hint="leave --window out")
    hosts = [SampledPage(name).host for name in names]
    return np.unique(hosts, return_inverse=True)[1].astype(np.int32)


def _is_graph(path: Path) -> bool:
    return path.exists() and not (path / "survey.toml").exists()
