"""Sample topics of an embedded web over HTTP, and compare the estimated share of a property with the true one.

    python -m experiments.focused_live
    python -m experiments.focused_live --quick

A topic is a word on the page (`word:…`) that about 2 % of the pages contain; the property is another word, which some
pages of the topic contain. Walks start at the eight pages of the topic with the most in-links, as a search engine would
list them, without an in-link source. The web has robots.txt files that disallow folders, hosts that fail at first,
redirects, gone pages and an infinite calendar. The goal is a margin of 3 percentage points, with a tenth of the fetches
of a full crawl as the budget.

The truth comes from all pages that a perfect crawler would fetch (`web.truth()`), by the same rules. One sample is
killed (SIGKILL) repeatedly; it must produce the same steps as an uninterrupted one.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.crawler.topics.page_content import PageContent, SampledPage
from surveyor.crawler.topics.rules import Topic
from surveyor.estimate.sampling.sample import sample
from surveyor.estimate.sampling.sample_result import Sample
from surveyor.graph.synthetic.generate import PRESETS, TOPICS
from surveyor.testing.web_plan import WebSettings
from surveyor.testing.web_server import EmbeddedWeb, Request, running
from surveyor.web.html import read_page

FAULTS = {
    "moved": 0.05,
    "robots_rules": 0.1,
    "robots_missing": 0.5,
    "flaky": 0.02,
    "down": 0.01,
    "calendar": 0.005,
    "printed": 0.03,
    "canonical": 0.3,
    "based": 0.1,
}
PAGES, QUICK = 60_000, 8_000
SHARE = 0.02  # of the pages on a topic
PROPERTY = "word:about"
POINTS = 0.03  # margin
BUDGET = 0.1  # of the fetches of a full crawl
SEEDS, KILLS = 8, 5


@dataclass(frozen=True, slots=True)
class Figures:
    """Result for one topic."""

    topic: str
    pages: int  # on topic that a perfect crawler would fetch
    share: float  # of all pages
    truth: float  # share of the property
    value: float
    low: float
    high: float
    fetches: int
    full: int  # fetches of a full crawl
    distinct: int  # distinct pages on topic
    ending: str
    disallowed: int  # requests that robots.txt disallows
    seconds: float

    @property
    def error(self) -> float:
        """Estimate minus truth."""
        return self.value - self.truth


def all_pages(web: EmbeddedWeb) -> dict[str, SampledPage]:
    """Return all pages that a perfect crawler would fetch, by URL."""
    truth = web.truth()
    fine = np.flatnonzero(truth.statuses == 0).tolist()
    return {truth.urls[page]: _page(web, truth.urls[page]) for page in fine}


def _page(web: EmbeddedWeb, url: str) -> SampledPage:
    def load() -> PageContent:
        content = web.pages.content(web.pages.place(url))
        page = read_page(web.pages.body(content), url, content_type="text/html", headers={})
        return PageContent(page.title, page.language, page.text)

    return SampledPage(url, load=load)


def topics_of(web: EmbeddedWeb, pages: Mapping[str, SampledPage], count: int) -> list[tuple[str, list[str]]]:
    """Return the topics whose share of all pages is nearest to 2 %, each with the pages that its rule selects."""
    by_topic: dict[str, list[str]] = {}
    for url in pages:
        by_topic.setdefault(TOPICS[web.pages.content(web.pages.place(url)).topic % len(TOPICS)], []).append(url)
    near = sorted(by_topic, key=lambda name: abs(len(by_topic[name]) / len(pages) - SHARE))[:count]
    rules = {name: Topic.parse(f"word:{name}") for name in near}
    selected: dict[str, list[str]] = {name: [] for name in near}
    for url, page in pages.items():
        for name, rule in rules.items():
            if rule(page):
                selected[name].append(url)
        page.__dict__.pop("content", None)  # the texts of all pages do not fit in memory
    return [(rules[name].text, urls) for name, urls in selected.items()]


def seeds_of(web: EmbeddedWeb, urls: Sequence[str]) -> list[str]:
    """Return the pages of a topic with the most in-links."""
    truth = web.truth()
    in_degree = np.bincount(truth.graph.indices, minlength=truth.graph.pages)
    return sorted(urls, key=lambda url: (-int(in_degree[truth.ids[url]]), url))[:SEEDS]


def take_sample(
    web: EmbeddedWeb | _Port, topic: str, seeds: Sequence[str], fetches: int, out: Path, rng: int
) -> Sample:
    """Take one sample."""
    return sample(
        seeds,
        topic,
        of=PROPERTY,
        until=f"width={POINTS}, fetches={fetches}",
        rng=rng,
        out=out,
        proxy=f"http://127.0.0.1:{web.port}",
        contact="me@example.org",
        delay=0.0,
        domain_delay=0.0,
        backoff=0.1,
    )


def measure(
    web: EmbeddedWeb, topic: str, urls: Sequence[str], pages: Mapping[str, SampledPage], folder: Path, rng: int
) -> Figures:
    """Sample one topic, and compare the estimate with the truth."""
    rule, started = Topic.parse(PROPERTY), time.monotonic()
    truth = float(np.mean([rule(pages[url]) for url in urls]))
    seeds, full = seeds_of(web, urls), len(pages)
    web.reset()
    found = take_sample(web, topic, seeds, int(BUDGET * full), folder / f"{topic.partition(':')[2]}.survey", rng)
    estimate = found.share(PROPERTY)
    return Figures(
        topic,
        len(urls),
        len(urls) / full,
        truth,
        estimate.value,
        estimate.low,
        estimate.high,
        found.fetches,
        full,
        found.distinct_pages,
        found.ending,
        sum(_is_disallowed(web, one) for one in web.log),
        time.monotonic() - started,
    )


def _is_disallowed(web: EmbeddedWeb, request: Request) -> bool:
    return request.path != "/robots.txt" and not web.plan.robots_of(request.host).allows("surveyor", request.path)


def survives_kills(
    web: EmbeddedWeb, topic: str, seeds: Sequence[str], fetches: int, folder: Path, rng: int
) -> tuple[bool, int]:
    """Kill a sample repeatedly; return whether its steps equal those of an uninterrupted one, and their number."""
    web.reset()
    whole = take_sample(web, topic, seeds, fetches, folder / "whole.survey", rng)
    web.reset()
    out, spawn = folder / "killed.survey", multiprocessing.get_context("spawn")
    for kill in range(KILLS):
        child = spawn.Process(target=take_sample, args=(_Port(web.port), topic, list(seeds), fetches, out, rng))
        child.start()
        child.join(4.0 + 1.5 * kill)
        if child.is_alive():
            os.kill(child.pid or 0, signal.SIGKILL)
        child.join()
    resumed = take_sample(web, topic, seeds, fetches, out, rng)
    names = [[one.source.url(page) for page in one.trace.page.tolist()] for one in (whole, resumed)]
    return names[0] == names[1] and np.array_equal(whole.trace.degree, resumed.trace.degree), len(whole.trace)


@dataclass(frozen=True, slots=True)
class _Port:
    """The port of a web, for a sample in another process."""

    port: int


def table(figures: Sequence[Figures]) -> list[str]:
    """Return the figures as lines."""
    head = "topic            pages  of all   truth  estimate  interval      error   fetches  of full      pages  end"
    lines = [
        f"{one.topic:15} {one.pages:6,} {one.share:7.1%} {one.truth:7.1%} {one.value:9.1%}"
        f"  {one.low:6.1%} to {one.high:5.1%} {one.error:+7.3f} {one.fetches:8,} {one.fetches / one.full:8.1%}"
        f" {one.distinct:10,}  {one.ending}, {one.seconds:.0f} s"
        for one in figures
    ]
    inside = sum(abs(one.error) <= POINTS for one in figures)
    covered = sum(one.low <= one.truth <= one.high for one in figures)
    disallowed = sum(one.disallowed for one in figures)
    lines.append(
        f"within {100 * POINTS:g} points: {inside} of {len(figures)}; intervals that contain the truth: {covered}; "
        f"disallowed requests: {disallowed}"
    )
    return [head, *lines]


def main(arguments: Sequence[str] | None = None) -> list[Figures]:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=6)
    parser.add_argument("--rng", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="two topics of a small web, without kills")
    options = parser.parse_args(arguments)
    shape = replace(PRESETS["web"], pages=QUICK if options.quick else PAGES)
    figures: list[Figures] = []
    faults: dict[str, Any] = FAULTS
    with (
        running(WebSettings.plain(web=shape, rng=options.rng, seeds=3, **faults)) as web,
        tempfile.TemporaryDirectory() as folder,
    ):
        pages = all_pages(web)
        chosen = topics_of(web, pages, 2 if options.quick else options.topics)
        print(f"{len(pages):,} pages that a full crawl would fetch", flush=True)
        for topic, urls in chosen:
            figures.append(measure(web, topic, urls, pages, Path(folder), options.rng))
            print(table(figures[-1:])[1], flush=True)
        print("\n".join(table(figures)), flush=True)
        if not options.quick:
            topic, urls = chosen[0]
            same, steps = survives_kills(
                web, topic, seeds_of(web, urls), int(BUDGET * len(pages)), Path(folder), options.rng
            )
            print(f"killed {KILLS} times: {'the same' if same else 'DIFFERENT'} {steps:,} steps")
    return figures


if __name__ == "__main__":
    main()
