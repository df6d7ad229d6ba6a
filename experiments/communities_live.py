"""Read around communities of an embedded web over HTTP, and see how near their ranks come to the true global ones.

    python -m experiments.communities_live
    python -m experiments.communities_live --quick

A community is a host. It is crawled until no page of it is left, which is all that its owner knows; then twice as many
pages outside are fetched (`surveyor community SURVEY --local host:HOST --extra 2n`), as politely as in any crawl. The
web has robots.txt files that forbid folders, hosts that fail at first, addresses that redirect, and pages that are
gone.

The truth is the PageRank, with jumps to all pages, of the graph that a perfect crawler would see from the home pages of
all hosts (`web_truth`), on the pages of the community, put to sum 1. `L1` is the distance from it: of the rank that the
links among local pages give, and of each estimate afterwards. From the log of the server come the requests, those that
a robots.txt forbids (there must be none), and how soon after one request a host was asked again at the soonest.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from surveyor.arrays import FloatArray
from surveyor.config import Settings
from surveyor.estimate.community.community import rank_crawled
from surveyor.estimate.community.community_options import CommunityOptions
from surveyor.estimate.community.community_survey import crawl_community, open_community_survey
from surveyor.fetch.event_loops import run_sync
from surveyor.graph.csr import Graph
from surveyor.graph.synthetic.generate import WebShape
from surveyor.rank.pagerank import pagerank
from surveyor.survey.crawl import crawl
from surveyor.testing.web_plan import WebSettings
from surveyor.testing.web_server import EmbeddedWeb, Request, running
from surveyor.testing.web_truth import REDIRECTED

DELAY = 0.02  # seconds between two requests to a host
TOLERANCE = 1e-10
TROUBLES = {"moved": 0.05, "robots_rules": 0.3, "robots_agents": 0.05, "robots_missing": 0.3, "flaky": 0.05}
WEB = WebShape(pages=4_000, smallest_site=120, largest_site=300, topics=6, external=0.3, mutual=0.3, dead=0.05)
SMALL = WebShape(pages=700, smallest_site=40, largest_site=60, topics=3, external=0.3, mutual=0.3, dead=0.05)
METHODS = ("local", "crawled", "frontier", "auto")


@dataclass(frozen=True, slots=True)
class Figures:
    """The measurements of one community."""

    host: str
    pages: int  # local
    requested: int  # outside
    fetched: int
    blocked: int  # by robots.txt, so that they were not requested
    requests: int  # received by the server, with robots.txt files and retries
    forbidden: int  # of these, those that robots.txt disallows
    shortest_gap: float  # seconds between two requests to one host
    l1: Mapping[str, float]  # distance from the true rank, by method


def true_ranks(web: EmbeddedWeb) -> dict[str, float]:
    """Return the global rank of all pages that can be reached from home pages, by URL."""
    homes = [web.pages.url(f"{host}/") for host in web.hosts]
    truth = web.truth([home for home in homes if home in set(web.urls)])
    kept = np.flatnonzero(truth.statuses != REDIRECTED)
    number = np.full(truth.graph.pages, -1, np.int64)
    number[kept] = np.arange(kept.size)
    sources = np.repeat(np.arange(truth.graph.pages), np.diff(truth.graph.indptr))
    inside = (number[sources] >= 0) & (number[truth.graph.indices] >= 0)
    graph = Graph.from_arrays(number[sources[inside]], number[truth.graph.indices[inside]], nodes=kept.size)
    scores = pagerank(graph, 0.85, TOLERANCE).scores
    return {truth.urls[page]: float(score) for page, score in zip(kept.tolist(), scores.tolist(), strict=True)}


def measure(web: EmbeddedWeb, host: str, truth: Mapping[str, float], folder: Path, *, rng: int = 7) -> Figures:
    """Crawl a host, then a community around it; compare with the true rank."""
    given: dict[str, Any] = {
        "contact": "me@example.org",
        "proxy": f"http://127.0.0.1:{web.port}",
        "delay": DELAY,
        "domain_delay": 0.0,
        "backoff": 0.1,
        "archive": False,
        "rng": rng,
    }
    base = folder / f"{host}.survey"
    crawl(web.pages.url(f"{host}/"), until="pages=1000000", scope="host", out=base, **given).close()
    web.log.clear()
    where = dict.fromkeys(given, "argument")
    options, settings = CommunityOptions(extra="2n"), Settings(**given)
    with open_community_survey(base, f"host:{host}", options, settings=settings, origins=where) as community:
        done = run_sync(crawl_community(community))
        outcomes = list(community.folder.journal.outcomes(community.record.start))
        found = rank_crawled(done, options, rng)
    true = np.array([truth[found.name(page)] for page in found.pages.tolist()])
    scores: dict[str, FloatArray] = {"local": found.local_scores}
    scores |= {name: estimate.scores for name, estimate in found.estimates.items()}
    log = list(web.log)
    return Figures(
        host=host,
        pages=int(found.pages.size),
        requested=int(done.requested.size),
        fetched=int(done.fetched.size),
        blocked=sum(outcome.reason.startswith("robots") for outcome in outcomes),
        requests=len(log),
        forbidden=sum(_is_forbidden(web, one) for one in log),
        shortest_gap=_shortest_gap(log),
        l1={name: float(np.abs(scores[name] - true / true.sum()).sum()) for name in METHODS},
    )


def _is_forbidden(web: EmbeddedWeb, request: Request) -> bool:
    return request.path != "/robots.txt" and not web.plan.robots_of(request.host).allows("surveyor", request.path)


def _shortest_gap(log: Iterable[Request]) -> float:
    times: dict[str, list[float]] = {}
    for request in log:
        times.setdefault(request.host, []).append(request.time)
    return min(then - first for each in times.values() for first, then in pairwise(each))


def communities(web: WebSettings, count: int) -> list[Figures]:
    """Measure so many communities: hosts that answer, the largest first."""
    with running(web) as served, tempfile.TemporaryDirectory() as folder:
        truth = true_ranks(served)
        pages = {host: sum(place.partition("/")[0] == host for place in served.plan.places) for host in served.hosts}
        able = [host for host in served.hosts if not served.plan.role(host) and f"{host}/" in served.plan.page_of]
        hosts = sorted(able, key=lambda host: (-pages[host], host))[:count]
        return [measure(served, host, truth, Path(folder)) for host in hosts]


def table(figures: Sequence[Figures]) -> list[str]:
    """Return the figures as lines, with medians and ranges."""
    lines = [
        "community              pages   req.   read  blocked  requests  forbidden  gap (s)"
        "   L1: local  crawled  frontier     auto"
    ]
    for one in figures:
        shown = f"{one.host:20} {one.pages:7,} {one.requested:6,} {one.fetched:6,} {one.blocked:8,} {one.requests:9,}"
        distances = "".join(f"{one.l1[name]:{10 if name == 'frontier' else 9}.4f}" for name in METHODS)
        lines.append(f"{shown} {one.forbidden:10,} {one.shortest_gap:8.3f}   {distances}")
    for name in METHODS:
        values = [one.l1[name] for one in figures]
        lines.append(f"{name:8}  L1 median {median(values):.4f}, from {min(values):.4f} to {max(values):.4f}")
    ratios = [one.l1["auto"] / one.l1["local"] for one in figures]
    summary = f"{median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}"
    lines.append(f"auto / local  median {summary}; better in {sum(ratio < 1 for ratio in ratios)} of {len(ratios)}")
    return lines


def settings(shape: WebShape, rng: int) -> WebSettings:
    """Return the web with its troubles."""
    return WebSettings.plain(web=shape, rng=rng, seeds=3, **TROUBLES)


def main(arguments: Sequence[str] | None = None) -> list[Figures]:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--communities", type=int, default=12)
    parser.add_argument("--rng", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="two communities of a small web")
    given = parser.parse_args(arguments)
    began = time.monotonic()
    figures = communities(settings(SMALL if given.quick else WEB, given.rng), 2 if given.quick else given.communities)
    print("\n".join([*table(figures), f"{time.monotonic() - began:.0f} s"]))
    return figures


if __name__ == "__main__":
    main()
