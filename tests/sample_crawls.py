"""Samples of an embedded web without sockets, time or chance, and the walks they must be: shared by their tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crash_recovery import Hook, Setting, calm, hook, rough
from surveyor.config import Settings
from surveyor.estimate.sampling.live_walks import walk_live
from surveyor.estimate.sampling.page_content import SampledPage
from surveyor.estimate.sampling.sample_goals import WalkLimits
from surveyor.estimate.sampling.sample_pages import SurveyPages
from surveyor.estimate.sampling.sample_survey import SampleOptions, open_sample_survey
from surveyor.estimate.sampling.topics import Topic
from surveyor.estimate.sampling.walk_methods import DEAD, OFF, ON, PythonWalks, WalkGraph, WalkPlan
from surveyor.estimate.sampling.walk_scheduler import WalkResult, WalkScheduler
from surveyor.fetch.politeness.hosts import Hosts
from surveyor.graph.csr import Graph
from surveyor.graph.names import Names
from surveyor.graph.synthetic.shapes import WebShape
from surveyor.testing.web_truth import Truth
from surveyor.web.urls import host

SHAPE = WebShape(
    pages=400, smallest_site=10, largest_site=60, topics=2, external=0.5, mutual=0.5, dangling=0.1, dead=0.2,
    farms=0.0, exchanges=0.0,
)  # fmt: skip
CALM, ROUGH = calm(SHAPE), rough(SHAPE)
Row = tuple[int, int, str, bool, float, int]


def half(url: str) -> bool:
    """Say whether a URL belongs to a half of the web that is anywhere."""
    return sum(url.partition("//")[2].partition("/")[2].encode()) % 2 == 0


@Topic.of
def halves(page: SampledPage) -> bool:
    """A topic that is told from what pages say, and lies wherever URLs say: that they say something is part of it."""
    return bool(page.text) and half(page.url)


FREE = Topic("half", url_only=True, predicate=lambda page: half(page.url))  # the same, told from URLs alone


@Topic.of
def everything(page: SampledPage) -> bool:
    """All pages that can be read."""
    return bool(page.url)


class Links:
    """A source of back-links that knows the links of a web."""

    name = "truth"

    def __init__(self, truth: Truth, tell: Callable[[str, str], bool] = lambda _url, _source: True) -> None:
        self.graph = Graph(truth.graph.indptr, truth.graph.indices, names=Names.of(truth.urls))
        self.names, self.tell = list(truth.urls), tell
        self.place = {url: place for place, url in enumerate(self.names)}
        self.asked: list[str] = []

    def in_links(self, url: str, limit: int) -> Iterable[str]:
        self.asked.append(url)
        if url not in self.place:
            return []
        into, page = self.graph.in_links, self.place[url]
        found = (self.names[other] for other in into.indices[into.indptr[page] : into.indptr[page + 1]].tolist())
        return [source for source in found if self.tell(url, source)][:limit]


@dataclass
class Sampled(Setting):
    """A web, and samples of it."""

    def sample(
        self,
        out: Path,
        topic: Topic = halves,
        *,
        before: Hook | None = None,
        after: Hook | None = None,
        watch: Callable[[WalkScheduler], None] = lambda _: None,
        seeds: list[str] | None = None,
        **wish: Any,
    ) -> WalkResult:
        """Begin a sample or go on with it; the hooks are called around each commit."""
        chosen = {
            "delay": 0.0, "backoff": 10.0, "contact": "me@example.org", "rng": 5, "concurrency": self.concurrency,
            **self.options,
        }  # fmt: skip
        limits = {name: wish.pop(name) for name in ("fetches", "done") if name in wish}
        given = {
            "settings": Settings(**chosen),
            "origins": dict.fromkeys(chosen, "argument"),
            "out": out,
        }
        options = SampleOptions(**{"window": 100, **wish})
        start = self.web.seeds[: self.seeds] if seeds is None else seeds
        with open_sample_survey(start, topic, options, **given) as sample:
            hook(sample.folder, before, after)
            self.hosts = Hosts(sample.settings.delay, clock=self.clock, stored=sample.folder.journal.robots)
            return asyncio.run(
                walk_live(
                    sample,
                    WalkLimits(**limits),
                    client=self.client,
                    hosts=self.hosts,
                    wait=self.client.wait,
                    patience=0.0,
                    watch=lambda scheduler, _run, outcome: None if outcome is None else watch(scheduler),
                )
            )


def ground_of(done: WalkResult) -> WalkGraph:
    """Return what walks over a survey or the web know of pages."""
    assert isinstance(done.pages, SurveyPages)
    return done.pages.graph


def by_url(done: WalkResult) -> list[Row]:
    """Return the steps of a sample, with URLs, which do not depend on the order of answers."""
    trace = done.trace
    columns = [trace.walk, trace.segment, trace.page, trace.on_topic, trace.degree, trace.fetches]
    return [(w, s, done.pages.url(p), o, d, f) for w, s, p, o, d, f in zip(*(c.tolist() for c in columns), strict=True)]


def plain_walk(
    truth: Truth,
    seeds: list[str],
    topic: Callable[[str], bool],
    *,
    free: bool = False,
    told: Links | None = None,
    fetches: int = 1 << 62,
    rounds: int = 1 << 62,
    walks: int = 8,
    **how: Any,
) -> list[Row]:
    """Walk over the links as they are, as far as a sample would; each page is known by its place in the truth."""
    place = {url: page for page, url in enumerate(truth.urls)}

    def kind(url: str) -> int:
        return DEAD if truth.status(url) != "fetched" else ON if topic(url) else OFF

    def links(page: int) -> np.ndarray:
        return truth.graph.indices[truth.graph.indptr[page] : truth.graph.indptr[page + 1]]

    ground = WalkGraph(
        lambda page: [place[url] for url in told.in_links(truth.urls[page], 1 << 30)] if told else (),
        lambda page: truth.urls[page],
        (lambda page: ON if topic(truth.urls[page]) else OFF) if free else None,
        lambda page: host(truth.urls[page]),
    )
    starts = [place[seeds[walk % len(seeds)]] for walk in range(walks)]
    walking = PythonWalks(ground, starts, WalkPlan(**{"rng": 5, "window": 100, **how}))
    while not walking.over_budget and ground.round < rounds:
        for page in walking.missing(fetches):
            there = kind(truth.urls[page])
            ground.learn(page, there, () if there == DEAD else links(page).tolist())
        if not walking.over_budget:
            walking.round()
    trace = walking.trace()
    columns = [trace.walk, trace.segment, trace.page, trace.on_topic, trace.degree, trace.fetches]
    return [(w, s, truth.urls[p], o, d, f) for w, s, p, o, d, f in zip(*(c.tolist() for c in columns), strict=True)]
