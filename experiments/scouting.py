"""Check `surveyor scout` on embedded webs of known truth: `python -m experiments.scouting --sites 24`.

Each web is served over HTTP and scouted. Printed are how often the intervals of weighted shares contain the truth, how
often the lower bound of the size exceeds it (an endless calendar makes a web infinite), how often the bound of the
unseen mass is exceeded, and the forecasts beside the pages that a crawl from there then took.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.estimate.scouting.scout import Scout, first_folder, scout
from surveyor.estimate.scouting.walk_statistics import ShareEstimate
from surveyor.graph.synthetic.generate import WebShape
from surveyor.survey.crawl import crawl
from surveyor.survey.survey import Survey
from surveyor.testing.web_plan import WebSettings
from surveyor.testing.web_server import EmbeddedWeb, running
from surveyor.testing.web_truth import FETCHED, GONE, PerfectCrawler, Truth
from surveyor.web.urls import normalise

GOALS = (0.8, 0.9, 0.95)
SAMPLED = 0.9
MOST_PAGES = 3_000
HURRY: dict[str, Any] = {"slow_seconds": 0.02, "pace": 0.05, "crawl_delay": 0.02, "huge_bytes": 300_000}


@dataclass(frozen=True, slots=True)
class Result:
    """What one scout estimated, and what was true."""

    rng: int
    finished: int
    walks: int
    fetched: int
    covered: Counter[str]  # intervals that contain the truth, by kind
    shares: Counter[str]
    size: int
    true_size: float
    unseen: tuple[float | None, float | None, float]  # estimate, bound, truth
    forecasts: dict[float, tuple[int | None, int | None]]  # certified, and what the crawl took
    sampled: tuple[int | None, int | None]
    seconds: float


def settings_of(rng: int) -> WebSettings:
    """Draw a web; every second one has an endless calendar."""
    draw = np.random.default_rng(rng)
    shape = WebShape(
        pages=int(draw.integers(300, 1500)),
        largest_site=int(draw.integers(40, 300)),
        topics=4,
        dead=float(draw.uniform(0.02, 0.15)),
        farms=0.05,
        exchanges=0.05,
        unlinked=0.1,
    )
    calendar = 0.005 * (rng % 2)
    return WebSettings(web=shape, rng=rng, seeds=int(draw.integers(3, 9)), calendar=calendar, dying=0.0, **HURRY)


def place_of(url: str) -> str:
    """Return a URL without its scheme."""
    return url.partition("://")[2]


def true_shares(truth: Truth) -> dict[str, dict[str, float]]:
    """Return the importance by host and by folder."""
    shares: dict[str, dict[str, float]] = {"host": {}, "folder": {}}
    for url, score in zip(truth.urls, truth.importance.scores.tolist(), strict=True):
        place = place_of(url)
        for kind, name in (("host", place.partition("/")[0]), ("folder", first_folder(place))):
            shares[kind][name] = shares[kind].get(name, 0.0) + score
    return shares


def broken_clicks(truth: Truth) -> float:
    """Return the share of random clicks that lead to pages gone."""
    graph, scores = truth.graph, truth.importance.scores
    degrees = np.diff(graph.indptr)
    per_link = np.repeat(scores / np.maximum(degrees, 1), degrees)
    gone = truth.statuses[graph.indices] == GONE
    return float(per_link[gone].sum() / per_link.sum())


def contains(estimate: ShareEstimate, true: float) -> bool:
    """Return whether an interval contains the truth, up to the error of the truth."""
    return estimate.at_least - 1e-6 <= true <= estimate.at_most + 1e-6


def compare(found: Scout, truth: Truth) -> tuple[Counter[str], Counter[str]]:
    """Count the intervals shown that contain the truth, and all of them, by kind."""
    shares = true_shares(truth)
    rows = [("host", estimate, shares["host"].get(name, 0.0)) for name, estimate in found.hosts.items()]
    rows += [("folder", estimate, shares["folder"].get(name, 0.0)) for name, estimate in found.folders.items()]
    rows += [("broken clicks", found.broken_clicks, broken_clicks(truth)), ("JavaScript", found.javascript, 0.0)]
    return Counter(kind for kind, one, true in rows if contains(one, true)), Counter(kind for kind, _, _ in rows)


def unseen_truth(path: Path, truth: Truth) -> float:
    """Return the importance of pages that no walk of a survey has visited."""
    with Survey(path) as survey:
        seen = {survey.url(page) for walk in survey.scout_walks.walks for page in walk.pages}
    pages = {int(truth.alias_of[truth.ids[url]]) for url in seen if url in truth.ids}
    return 1 - float(truth.importance.scores[sorted(pages)].sum())


def one_site(rng: int) -> Result:
    """Scout a web, compare with its truth, and crawl it from there."""
    began = time.monotonic()
    with running(settings_of(rng)) as web, tempfile.TemporaryDirectory() as folder:
        truth = web.truth(crawler=PerfectCrawler(normalise=lambda url: normalise(url) or url, longest=10_000_000))
        path = Path(folder) / "web.survey"
        options = crawl_options(web, rng)
        found = scout(web.seeds, out=path, sitemaps=False, **options)
        covered, shares = compare(found, truth)
        unseen = found.unseen.estimate, found.unseen.at_most, unseen_truth(path, truth)
        twin = Path(folder) / "twin.survey"
        shutil.copytree(path, twin)
        web.reset()
        taken = pages_taken(path, web, options)
        sampled = pages_sampled(twin, web, options)
        true_size = math.inf if not truth.exact else float((truth.statuses == FETCHED).sum())
        forecasts = {
            one.coverage: (one.certified_pages, taken[one.coverage]) for one in found.forecasts if one.coverage in GOALS
        }
        predicted = next(one.sampled_pages for one in found.forecasts if one.coverage == SAMPLED)
    return Result(
        rng,
        found.finished,
        found.walks,
        found.pages_fetched,
        covered,
        shares,
        found.size.at_least,
        true_size,
        unseen,
        forecasts,
        (predicted, sampled),
        time.monotonic() - began,
    )


def crawl_options(web: EmbeddedWeb, rng: int) -> dict[str, Any]:
    """Return the settings of a fast crawl of an embedded web."""
    return {
        "resolver": web.resolver,
        "allow": web.hosts,
        "scope": "any",
        "delay": 0,
        "backoff": 0.02,
        "archive": False,
        "max_bytes": 10_000_000,
        "contact": "scouting@surveyor.example",
        "rng": rng,
    }


def pages_taken(path: Path, web: EmbeddedWeb, options: dict[str, Any]) -> dict[float, int | None]:
    """Crawl on in a survey; return the pages at which each goal was certified, or None."""
    with crawl(web.seeds, out=path, until=f"coverage={GOALS[-1]},pages={MOST_PAGES}", **options) as survey:
        at_least = survey.history().at_least
    return {goal: int(np.argmax(at_least >= goal)) + 1 if (at_least >= goal).any() else None for goal in GOALS}


def pages_sampled(path: Path, web: EmbeddedWeb, options: dict[str, Any]) -> int | None:
    """Crawl on in a survey until a sampled coverage; return the pages fetched, or None."""
    web.reset()
    with crawl(web.seeds, out=path, until=f"coverage={SAMPLED}@95%,pages={MOST_PAGES}", **options) as survey:
        reached = survey.ending == "reached" and survey.pages_fetched < MOST_PAGES
        return survey.pages_fetched if reached else None


def table(done: Sequence[Result]) -> Iterator[str]:
    """Yield the lines of a Markdown table, a row per web."""
    goals = " | ".join(f"{100 * goal:g} %: forecast, taken" for goal in GOALS)
    head = "walks ended | pages | shares covered | size ≥ | true | unseen: estimate, ≤, true"
    yield f"| web | {head} | {goals} | sampled 90 % |"
    yield "|--:|" + "--:|" * (7 + len(GOALS))
    for one in done:
        unseen = ", ".join("–" if value is None else f"{value:.3f}" for value in one.unseen)
        cells = [str(one.rng), f"{one.finished}/{one.walks}", str(one.fetched)]
        cells += [f"{one.covered.total()}/{one.shares.total()}", str(one.size), f"{one.true_size:g}", unseen]
        cells += [_pair(*one.forecasts[goal]) for goal in GOALS]
        yield "| " + " | ".join([*cells, _pair(*one.sampled)]) + " |"


def _pair(forecast: int | None, taken: int | None) -> str:
    return ", ".join("–" if value is None else f"{value:,}" for value in (forecast, taken))


def summary(done: Sequence[Result]) -> Iterator[str]:
    """Yield the counts over all webs."""
    covered = sum((one.covered for one in done), Counter[str]())
    shares = sum((one.shares for one in done), Counter[str]())
    parts = ", ".join(f"{kind} {covered[kind]}/{shares[kind]}" for kind in shares)
    yield f"intervals that contain the truth: {covered.total() / shares.total():.1%} ({parts})"
    yield f"size bound above the truth: {sum(one.size > one.true_size for one in done)} of {len(done)}"
    bounds = [(bound, true) for _, bound, true in (one.unseen for one in done) if bound is not None]
    yield f"unseen mass above its bound: {sum(true > bound for bound, true in bounds)} of {len(bounds)}"
    pairs = {f"{100 * goal:g} % certified": [one.forecasts[goal] for one in done] for goal in GOALS}
    for name, both in (pairs | {f"{100 * SAMPLED:g} % sampled": [one.sampled for one in done]}).items():
        ratios = [taken / forecast for forecast, taken in both if forecast and taken]
        refused = sum(forecast is None for forecast, _ in both)
        middle = "–" if not ratios else ", ".join(f"{np.quantile(ratios, part):.2f}" for part in (0.1, 0.5, 0.9))
        counts = f"{len(ratios)} webs; {refused} refused"
        yield f"{name}: pages taken / forecast, quantiles 10, 50, 90 %: {middle} ({counts})"


def main() -> int:
    """Scout the webs, print a line per web on stderr, then the table; fail if a guarantee was missed too often."""
    parser = argparse.ArgumentParser(description="Check scouting on embedded webs of known truth.")
    parser.add_argument("--sites", type=int, default=24)
    parser.add_argument("--rng", type=int, default=7)
    given = parser.parse_args()
    done: list[Result] = []
    for number in range(given.sites):
        done.append(one_site(1000 * given.rng + number))
        print(f"web {done[-1].rng}: {done[-1].seconds:.1f} s", file=sys.stderr, flush=True)
    print(*table(done), "", *summary(done), sep="\n")
    covered, shares = (sum(getattr(one, name).total() for one in done) for name in ("covered", "shares"))
    return int(covered < 0.95 * shares or sum(one.size > one.true_size for one in done) > 0.05 * len(done))


if __name__ == "__main__":
    sys.exit(main())
