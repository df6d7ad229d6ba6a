"""Deterministic samples of an embedded web without sockets, and the same walks over its true graph."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crash_recovery import Hook, Setting, calm, hook, rough
from surveyor.config import Settings
from surveyor.crawler.sources.live import Connection
from surveyor.crawler.topics.page_content import SampledPage
from surveyor.crawler.topics.rules import Topic
from surveyor.estimate.sampling.sample_goals import WalkLimits
from surveyor.estimate.sampling.sample_pages import SurveyPages
from surveyor.estimate.sampling.sample_survey import SampleOptions, open_sample_survey
from surveyor.estimate.sampling.walk_methods import DEAD, OFF, ON, PythonWalks, WalkGraph, WalkPlan
from surveyor.estimate.sampling.walk_scheduler import WalkResult, WalkScheduler
from surveyor.estimate.sampling.walks import walk_live
from surveyor.fetch.politeness.hosts import Hosts
from surveyor.graph.csr import Graph
from surveyor.graph.names import Names
from surveyor.graph.synthetic.generate import WebShape
from surveyor.testing.web_truth import Truth
from surveyor.web.urls import host

SHAPE = WebShape(
    pages=400,
    smallest_site=10,
    largest_site=60,
    topics=2,
    external=0.5,
    mutual=0.5,
    dangling=0.1,
    dead=0.2,
    farms=0.0,
    exchanges=0.0,
)
CALM, ROUGH = calm(SHAPE), rough(SHAPE)
Row = tuple[int, int, str, bool, float, int]


def half(url: str) -> bool:
    """Return whether a URL belongs to a fixed half of the web."""
    return sum(url.partition("//")[2].partition("/")[2].encode()) % 2 == 0


@Topic.of
def halves(page: SampledPage) -> bool:
    """Return whether a page has text and its URL is in the half: a topic that needs content."""
    return bool(page.text) and half(page.url)


FREE = Topic("half", url_only=True, predicate=lambda page: half(page.url))  # the same, by URL only


@Topic.of
def everything(page: SampledPage) -> bool:
    """Return True for all pages."""
    return bool(page.url)


class Links:
    """An in-link source with the true links of a web."""

    name = "truth"

    def __init__(self, truth: Truth, reports: Callable[[str, str], bool] = lambda _url, _source: True) -> None:
        self.graph = Graph(truth.graph.indptr, truth.graph.indices, names=Names.of(truth.urls))
        self.names, self.reports = list(truth.urls), reports
        self.place = {url: place for place, url in enumerate(self.names)}
        self.asked: list[str] = []

    def in_links(self, url: str, limit: int) -> Iterable[str]:
        self.asked.append(url)
        if url not in self.place:
            return []
        into, page = self.graph.in_links, self.place[url]
        found = (self.names[other] for other in into.indices[into.indptr[page] : into.indptr[page + 1]].tolist())
        return [source for source in found if self.reports(url, source)][:limit]


@dataclass
class Sampled(Setting):
    """An embedded web and its samples."""

    def sample(
        self,
        out: Path,
        topic: Topic = halves,
        *,
        before: Hook | None = None,
        after: Hook | None = None,
        watch: Callable[[WalkScheduler], None] = lambda _: None,
        seeds: list[str] | None = None,
        **options_: Any,
    ) -> WalkResult:
        """Create or resume a sample; the hooks are called around each commit."""
        chosen = {
            "delay": 0.0,
            "backoff": 10.0,
            "contact": "me@example.org",
            "rng": 5,
            "concurrency": self.concurrency,
            **self.options,
        }
        limits = {name: options_.pop(name) for name in ("fetches", "done") if name in options_}
        arguments: dict[str, Any] = {
            "settings": Settings(**chosen),
            "origins": dict.fromkeys(chosen, "argument"),
            "out": out,
        }
        options = SampleOptions(**{"window": 100, **options_})
        start = self.web.seeds[: self.seeds] if seeds is None else seeds
        with open_sample_survey(start, topic, options, **arguments) as sample:
            hook(sample.folder, before, after)
            self.hosts = Hosts(sample.settings.delay, clock=self.clock, stored=sample.folder.journal.robots)
            return asyncio.run(
                walk_live(
                    sample,
                    WalkLimits(**limits),
                    connection=Connection(client=self.client, hosts=self.hosts, wait=self.client.wait, patience=0.0),
                    watch=lambda scheduler, _run, outcome: None if outcome is None else watch(scheduler),
                )
            )


def graph_of(done: WalkResult) -> WalkGraph:
    """Return the graph known to walks over a survey or the web."""
    assert isinstance(done.pages, SurveyPages)
    return done.pages.graph


def by_url(done: WalkResult) -> list[Row]:
    """Return the steps of a sample with URLs, which do not depend on the order of responses."""
    trace = done.trace
    columns = [trace.walk, trace.segment, trace.page, trace.on_topic, trace.degree, trace.fetches]
    return [(w, s, done.pages.url(p), o, d, f) for w, s, p, o, d, f in zip(*(c.tolist() for c in columns), strict=True)]


def plain_walk(
    truth: Truth,
    seeds: list[str],
    topic: Callable[[str], bool],
    *,
    free: bool = False,
    in_links: Links | None = None,
    fetches: int = 1 << 62,
    rounds: int = 1 << 62,
    walks: int = 8,
    **how: Any,
) -> list[Row]:
    """Walk over the true graph as a sample would; page ids are positions in the ground truth."""
    place = {url: page for page, url in enumerate(truth.urls)}

    def kind(url: str) -> int:
        return DEAD if truth.status(url) != "fetched" else ON if topic(url) else OFF

    def links(page: int) -> np.ndarray:
        return truth.graph.indices[truth.graph.indptr[page] : truth.graph.indptr[page + 1]]

    graph = WalkGraph(
        lambda page: [place[url] for url in in_links.in_links(truth.urls[page], 1 << 30)] if in_links else (),
        lambda page: truth.urls[page],
        (lambda page: ON if topic(truth.urls[page]) else OFF) if free else None,
        lambda page: host(truth.urls[page]),
    )
    starts = [place[seeds[walk % len(seeds)]] for walk in range(walks)]
    python_walks = PythonWalks(graph, starts, WalkPlan(**{"rng": 5, "window": 100, **how}))
    while not python_walks.over_budget and graph.round < rounds:
        for page in python_walks.missing(fetches):
            there = kind(truth.urls[page])
            graph.learn(page, there, () if there == DEAD else links(page).tolist())
        if not python_walks.over_budget:
            python_walks.round()
    trace = python_walks.trace()
    columns = [trace.walk, trace.segment, trace.page, trace.on_topic, trace.degree, trace.fetches]
    return [(w, s, truth.urls[p], o, d, f) for w, s, p, o, d, f in zip(*(c.tolist() for c in columns), strict=True)]
