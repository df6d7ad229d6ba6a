"""Crawl embedded webs over HTTP, and check that what is shown is true at every moment.

    python -m experiments.guarantee --webs 200

Each web is another one, with all that can go wrong: pages that are gone, die or come back, redirects in chains and
loops, robots.txt files of all styles, hosts that fail, drop connections or want to be left alone, a calendar without
end, session ids, soft 404s, print versions, huge and garbled pages. Crawls differ in damping, seeds, scope, number of
requests at once and in whether nofollow is obeyed; half of them see the links of some pages change on the way.
Strategies take turns, each on another web, `--crawls` to a web. `witness.py` says what is checked.

The table has, for each strategy, the mean number of pages read until the guarantee was 0.5, 0.8 and 0.9 (of the crawls
that came so far; how many, in brackets), and how close the true coverage, and that of webs made up against the bounds,
ever came to them. Webs differ from strategy to strategy, so the means are no race; that is `surveyor simulate`.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from experiments.witness import GOALS, Moment, Witness, trespasses
from surveyor.crawler.session import Run
from surveyor.crawler.strategies import NAMES
from surveyor.graph.synthetic.generate import WebShape
from surveyor.outcome import Outcome
from surveyor.survey.crawl import crawl
from surveyor.testing.web_plan import CALENDAR, WebSettings
from surveyor.testing.web_server import EmbeddedWeb, running
from surveyor.testing.web_truth import PerfectCrawler, Truth
from surveyor.web.scope import Kind, Scope
from surveyor.web.urls import domain, host, normalise

OPTIONS = ("breadth:3", "rankmass:1", "windowed:0.5", "opic:random", "opic:cycle", "adaptive:variable")
STRATEGIES = (*NAMES, *OPTIONS)
HUGE, CUT = 300_000, 100_000  # bytes of huge pages, and what some crawls read at most
SCOPES: tuple[Kind, ...] = ("any", "any", "any", "any", "any", "any", "host", "domain")


@dataclass(frozen=True, slots=True)
class Plan:
    """One web, and what all crawls of it have in common."""

    rng: int
    damping: float
    scope: Kind
    follow_nofollow: bool
    max_bytes: int
    web: WebSettings

    @classmethod
    def draw(cls, rng: int) -> Plan:
        """Make up a web."""
        draw = np.random.default_rng(rng)
        shape = WebShape(
            pages=int(draw.integers(150, 700)),
            largest_site=int(draw.integers(30, 120)),
            topics=4,
            dead=float(draw.uniform(0.02, 0.12)),
            farms=0.05,
            exchanges=0.05,
            unlinked=0.1,
        )
        much = float(draw.choice([1.0, 3.0]))  # of what goes wrong
        web = WebSettings(
            web=shape,
            rng=rng,
            seeds=int(draw.integers(1, 6)),
            moved=0.05 * much,
            printed=0.03 * much,
            dying=0.02 * much,
            flaky=0.03 * much,
            strict=0.02,
            robots_rules=0.1 * much,
            slow_seconds=0.02,
            pace=0.05,
            crawl_delay=0.02,
            huge_bytes=HUGE,
        )
        return cls(
            rng,
            damping=float(draw.choice([0.5, 0.7, 0.85, 0.85, 0.95])),
            scope=SCOPES[int(draw.integers(len(SCOPES)))],
            follow_nofollow=bool(draw.random() < 0.25),
            max_bytes=CUT if draw.random() < 0.25 else 10_000_000,
            web=web,
        )

    def truths(self, web: EmbeddedWeb) -> list[list[Truth]]:
        """Return the truth about a web as it can be seen, and with what is behind robots.txt; both in all versions."""
        scope = Scope(self.scope, tuple(web.seeds), domain=domain)
        crawler = PerfectCrawler(
            scope=scope.admits,
            normalise=lambda url: normalise(url) or url,
            nofollow=self.follow_nofollow,
            longest=self.max_bytes,
        )
        return [versions(web, replace(crawler, behind=behind), self.damping) for behind in (False, True)]


def versions(web: EmbeddedWeb, crawler: PerfectCrawler, damping: float) -> list[Truth]:
    """Return the truth about a web, then about both versions of all that a crawl can meet while it changes."""
    web.reset()
    first = web.truth(crawler=crawler, damping=damping)
    met: dict[str, None] = dict.fromkeys([*web.seeds, *_finite(first)])
    while True:
        known, both = len(met), []
        for version in (0, 1):
            web.version = version
            both.append(web.truth(list(met), crawler, damping=damping))
            met.update(dict.fromkeys(_finite(both[-1])))
        if len(met) == known:
            web.reset()
            return [first, *both]


def _finite(truth: Truth) -> list[str]:
    return [url for url in truth.urls if host(url) != CALENDAR]


@dataclass(frozen=True, slots=True)
class Crawled:
    """What one crawl showed, and what was true."""

    rng: int
    strategy: str
    ending: str
    reads: int
    kinds: Counter[str]  # of outcomes
    moments: int
    shown: tuple[float, float]
    true: tuple[float, float]
    margins: tuple[float, float]  # between coverage and at_least, at_most
    extremes: tuple[float, float]  # the same in webs made up against the bounds
    reached: dict[float, int]
    violations: tuple[str, ...]
    seconds: float

    def __str__(self) -> str:
        result = f"web {self.rng}, {self.strategy}: {self.reads:,} reads, {self.ending}"
        return f"{result}, {self.shown[0]:.4f} ≤ {self.true[0]:.4f} ≤ {self.shown[1]:.4f}, {self.seconds:.1f} s"


def crawled(plan: Plan, web: EmbeddedWeb, truths: Sequence[Sequence[Truth]], strategy: str, *, rng: int) -> Crawled:
    """Crawl a web and watch."""
    draw = np.random.default_rng([plan.rng, rng])
    pages = int(draw.integers(100, 700))
    until = f"pages={pages}" if draw.random() < 0.5 else f"coverage=0.97,pages={pages}"
    concurrency = int(2 ** draw.integers(0, 7))
    witness = Witness(
        web, [Moment(truth) for truth in truths], int(draw.integers(20, 400)) if draw.random() < 0.5 else None
    )
    last: list[Run] = []

    def watch(run: Run, outcome: Outcome | None) -> None:
        last[:] = [run]
        witness(run, outcome)

    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        survey = crawl(
            web.seeds,
            until=until,
            out=Path(folder) / "web.survey",
            resolver=web.resolver,
            watch=watch,
            strategy=strategy,
            scope=plan.scope,
            damping=plan.damping,
            follow_nofollow=plan.follow_nofollow,
            max_bytes=plan.max_bytes,
            concurrency=concurrency,
            allow=web.hosts,
            delay=0,
            backoff=0.02,
            archive=False,
            contact="guarantee@surveyor.example",
            rng=rng,
        )
        witness.look(last[0], thorough=True)
        ending = str(survey.ending)
        survey.close()
    violations = *witness.violations, *trespasses(web)
    web.reset()
    return Crawled(
        plan.rng,
        strategy,
        ending,
        witness.reads,
        witness.kinds,
        witness.looks,
        witness.shown,
        witness.true,
        witness.margins["coverage"],
        witness.margins["an extreme"],
        witness.reached,
        violations,
        time.monotonic() - began,
    )


def crawls(webs: int, strategies: Sequence[str], *, each: int = 2, rng: int = 7) -> Iterator[Crawled]:
    """Crawl so many webs, each with some of the strategies, which take turns."""
    turn = 0
    for number in range(webs):
        plan = Plan.draw(1000 * rng + number)
        with running(plan.web) as web:
            truths = plan.truths(web)
            for _ in range(each):
                yield crawled(plan, web, truths, strategies[turn % len(strategies)], rng=turn)
                turn += 1


def table(done: Sequence[Crawled]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    goals = " | ".join(f"reads to {goal:g}" for goal in GOALS)
    sides = "at_least | at_most | against: at_least | at_most"
    yield f"| strategy | crawls | pages read | {goals} | margin to {sides} | violations |"
    yield "|---|" + "--:|" * (7 + len(GOALS))
    for strategy in dict.fromkeys(one.strategy for one in done):
        mine = [one for one in done if one.strategy == strategy]
        cells = [strategy, str(len(mine)), f"{sum(one.reads for one in mine):,}"]
        for goal in GOALS:
            reads = [one.reached[goal] for one in mine if goal in one.reached]
            cells.append(f"{np.mean(reads):.0f} ({len(reads)})" if reads else "–")
        cells += [f"{min(one.margins[side] for one in mine):.1e}" for side in (0, 1)]
        cells += [f"{min(one.extremes[side] for one in mine):.1e}" for side in (0, 1)]
        yield "| " + " | ".join([*cells, str(sum(len(one.violations) for one in mine))]) + " |"


def summary(done: Sequence[Crawled]) -> str:
    """Count it all."""
    webs, moments = len({one.rng for one in done}), sum(one.moments for one in done)
    violations = sum(len(one.violations) for one in done)
    widths = [one.shown[1] - one.shown[0] for one in done]
    kinds = sum((one.kinds for one in done), Counter[str]())
    result = f"{webs} webs, {len(done)} crawls, " + ", ".join(
        f"{count:,} {kind}" for kind, count in kinds.most_common()
    )
    return f"{result}, {moments:,} moments, median width at the end {np.median(widths):.3f}, {violations} violations"


def main() -> int:
    """Crawl, print a line per crawl on stderr, then the table; fail if anything was not true."""
    parser = argparse.ArgumentParser(description="Check the coverage interval at every moment of crawls over HTTP.")
    parser.add_argument("--webs", type=int, default=200)
    parser.add_argument("--crawls", type=int, default=2, help="of each web, by different strategies")
    parser.add_argument("--strategies", default="all", help="separated by commas")
    parser.add_argument("--rng", type=int, default=7)
    given = parser.parse_args()
    strategies = STRATEGIES if given.strategies == "all" else tuple(given.strategies.split(","))
    done: list[Crawled] = []
    began = time.monotonic()
    for one in crawls(given.webs, strategies, each=given.crawls, rng=given.rng):
        done.append(one)
        print(one, *one.violations[:5], sep="\n  ", file=sys.stderr, flush=True)
    print(*table(done), "", f"{summary(done)}, {math.ceil(time.monotonic() - began):,} s", sep="\n")
    return int(any(one.violations for one in done))


if __name__ == "__main__":
    sys.exit(main())
