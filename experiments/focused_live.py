"""Sample topics of an embedded web over HTTP, and see how near the share of a property comes to the truth.

    python -m experiments.focused_live
    python -m experiments.focused_live --quick

A topic is a word on the page (`word:…`), for topics that about 2 % of the pages speak of; the property is another word,
which some pages of the topic use. Walks begin at the eight pages of the topic that most pages link to, as a search
would give them, and nobody tells them who links to a page. The web has robots.txt files that forbid folders, hosts that
fail at first, addresses that redirect, pages that are gone, and a calendar without end. The goal is an interval of 3
points to each side, with a tenth of the pages that a full crawl would fetch as budget.

The truth comes from all pages that a perfect crawler would read (`web_truth`), read by the same rules. One sample is
killed (SIGKILL) again and again while it is taken; it must come to the same steps as without.
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

from surveyor.estimate.sampling.sample import sample
from surveyor.estimate.sampling.sample_result import Sample
from surveyor.estimate.sampling.sampled_page import PageContent, SampledPage
from surveyor.estimate.sampling.topics import Topic
from surveyor.graph.synthetic.shapes import PRESETS
from surveyor.graph.synthetic.sites import TOPICS
from surveyor.testing.web_plan import WebSettings
from surveyor.testing.web_server import EmbeddedWeb, Request, running
from surveyor.web.html import read_page

TROUBLES = {
    "moved": 0.05, "robots_rules": 0.1, "robots_missing": 0.5, "flaky": 0.02, "down": 0.01, "calendar": 0.005,
    "printed": 0.03, "canonical": 0.3, "based": 0.1,
}  # fmt: skip
PAGES, QUICK = 60_000, 8_000
SHARE = 0.02  # of the pages that a topic is about
PROPERTY = "word:about"
POINTS = 0.03  # to each side
BUDGET = 0.1  # of the fetches of a full crawl
SEEDS, KILLS = 8, 5


@dataclass(frozen=True, slots=True)
class Figures:
    """What came of one topic."""

    topic: str
    pages: int  # on topic that a perfect crawler would read
    share: float  # of all pages
    truth: float  # the share of the property
    value: float
    low: float
    high: float
    fetches: int
    full: int  # fetches of a full crawl
    met: int  # different pages on topic
    ending: str
    forbidden: int  # requests that a robots.txt forbids
    seconds: float

    @property
    def off(self) -> float:
        """How far the estimate is from the truth."""
        return self.value - self.truth


def all_pages(web: EmbeddedWeb) -> dict[str, SampledPage]:
    """Return all pages that a perfect crawler would read, by URL."""
    truth = web.truth()
    fine = np.flatnonzero(truth.statuses == 0).tolist()
    return {truth.urls[page]: _page(web, truth.urls[page]) for page in fine}


def _page(web: EmbeddedWeb, url: str) -> SampledPage:
    def read() -> PageContent:
        content = web.pages.content(web.pages.place(url))
        page = read_page(web.pages.body(content), url, content_type="text/html", headers={})
        return PageContent(page.title, page.language, page.text)

    return SampledPage(url, load=read)


def topics_of(web: EmbeddedWeb, pages: Mapping[str, SampledPage], count: int) -> list[tuple[str, list[str]]]:
    """Return the topics whose share of all pages is nearest to 2 %, each with its pages as its rule tells them."""
    said: dict[str, list[str]] = {}
    for url in pages:
        said.setdefault(TOPICS[web.pages.content(web.pages.place(url)).topic % len(TOPICS)], []).append(url)
    near = sorted(said, key=lambda name: abs(len(said[name]) / len(pages) - SHARE))[:count]
    rules = {name: Topic.parse(f"word:{name}") for name in near}
    held: dict[str, list[str]] = {name: [] for name in near}
    for url, page in pages.items():
        for name, rule in rules.items():
            if rule(page):
                held[name].append(url)
        page.__dict__.pop("said", None)  # texts of all pages would fill the memory
    return [(rules[name].text, urls) for name, urls in held.items()]


def seeds_of(web: EmbeddedWeb, urls: Sequence[str]) -> list[str]:
    """Return the pages of a topic that most pages link to."""
    truth = web.truth()
    into = np.bincount(truth.graph.indices, minlength=truth.graph.pages)
    return sorted(urls, key=lambda url: (-int(into[truth.ids[url]]), url))[:SEEDS]


def asked(web: EmbeddedWeb | _Port, topic: str, seeds: Sequence[str], fetches: int, out: Path, rng: int) -> Sample:
    """Take one sample."""
    return sample(
        seeds, topic, of=PROPERTY, until=f"width={POINTS}, fetches={fetches}", rng=rng, out=out,
        proxy=f"http://127.0.0.1:{web.port}", contact="me@example.org", delay=0.0, domain_delay=0.0, backoff=0.1,
    )  # fmt: skip


def measure(
    web: EmbeddedWeb, topic: str, urls: Sequence[str], pages: Mapping[str, SampledPage], folder: Path, rng: int
) -> Figures:
    """Sample one topic, and compare with the truth."""
    rule, began = Topic.parse(PROPERTY), time.monotonic()
    truth = float(np.mean([rule(pages[url]) for url in urls]))
    seeds, full = seeds_of(web, urls), len(pages)
    web.reset()
    found = asked(web, topic, seeds, int(BUDGET * full), folder / f"{topic.partition(':')[2]}.survey", rng)
    told = found.share(PROPERTY)
    return Figures(
        topic, len(urls), len(urls) / full, truth, told.value, told.low, told.high, found.fetches, full,
        found.distinct_pages, found.ending, sum(_is_forbidden(web, one) for one in web.log), time.monotonic() - began,
    )  # fmt: skip


def _is_forbidden(web: EmbeddedWeb, request: Request) -> bool:
    return request.path != "/robots.txt" and not web.plan.robots_of(request.host).allows("surveyor", request.path)


def killed(
    web: EmbeddedWeb, topic: str, seeds: Sequence[str], fetches: int, folder: Path, rng: int
) -> tuple[bool, int]:
    """Kill a sample again and again; say whether its steps are those of one that was left alone, and how many."""
    web.reset()
    whole = asked(web, topic, seeds, fetches, folder / "whole.survey", rng)
    web.reset()
    out, spawn = folder / "killed.survey", multiprocessing.get_context("spawn")
    for turn in range(KILLS):
        child = spawn.Process(target=asked, args=(_Port(web.port), topic, list(seeds), fetches, out, rng))
        child.start()
        child.join(4.0 + 1.5 * turn)
        if child.is_alive():
            os.kill(child.pid or 0, signal.SIGKILL)
        child.join()
    again = asked(web, topic, seeds, fetches, out, rng)
    names = [[one.source.url(page) for page in one.trace.page.tolist()] for one in (whole, again)]
    return names[0] == names[1] and np.array_equal(whole.trace.degree, again.trace.degree), len(whole.trace)


@dataclass(frozen=True, slots=True)
class _Port:
    """All that a sample in another process needs of a web."""

    port: int


def table(figures: Sequence[Figures]) -> list[str]:
    """Return the figures as lines."""
    head = "topic            pages  of all   truth  estimate  interval        off   fetches  of full  pages met  end"
    lines = [
        f"{one.topic:15} {one.pages:6,} {one.share:7.1%} {one.truth:7.1%} {one.value:9.1%}"
        f"  {one.low:6.1%} to {one.high:5.1%} {one.off:+7.3f} {one.fetches:8,} {one.fetches / one.full:8.1%}"
        f" {one.met:10,}  {one.ending}, {one.seconds:.0f} s"
        for one in figures
    ]
    inside = sum(abs(one.off) <= POINTS for one in figures)
    held = sum(one.low <= one.truth <= one.high for one in figures)
    forbidden = sum(one.forbidden for one in figures)
    lines.append(
        f"within {100 * POINTS:g} points: {inside} of {len(figures)}; the interval holds the truth: {held}; "
        f"forbidden requests: {forbidden}"
    )
    return [head, *lines]


def main(arguments: Sequence[str] | None = None) -> list[Figures]:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=6)
    parser.add_argument("--rng", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="two topics of a small web, and no kills")
    given = parser.parse_args(arguments)
    shape = replace(PRESETS["web"], pages=QUICK if given.quick else PAGES)
    figures: list[Figures] = []
    troubles: dict[str, Any] = TROUBLES
    with running(WebSettings.plain(web=shape, rng=given.rng, seeds=3, **troubles)) as web, \
            tempfile.TemporaryDirectory() as folder:  # fmt: skip
        pages = all_pages(web)
        chosen = topics_of(web, pages, 2 if given.quick else given.topics)
        print(f"{len(pages):,} pages that a full crawl would read", flush=True)
        for topic, urls in chosen:
            figures.append(measure(web, topic, urls, pages, Path(folder), given.rng))
            print(table(figures[-1:])[1], flush=True)
        print("\n".join(table(figures)), flush=True)
        if not given.quick:
            topic, urls = chosen[0]
            same, steps = killed(web, topic, seeds_of(web, urls), int(BUDGET * len(pages)), Path(folder), given.rng)
            print(f"killed {KILLS} times: {'the same' if same else 'OTHER'} {steps:,} steps")
    return figures


if __name__ == "__main__":
    main()
