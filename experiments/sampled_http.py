"""Sampled coverage over HTTP: embedded webs with all that can go wrong, watched at every moment.

The webs, their truth and the witness are those of `guarantee.py` and `witness.py`. After every outcome both bounds are
compared with the true coverage, in the web as a perfect crawler sees it and in the one in which pages behind robots.txt
have their real links. The certified bound must never be wrong. The sampled one may be wrong in one crawl of twenty.

Half of the webs change links on the way, which breaks the assumption of the sampled bound where the change is not
noticed: a page that was not fetched before it changed. They are counted apart.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.guarantee import Plan
from experiments.sampled_checks import CONFIDENCES, ROUNDING, Forced, binomial_interval, forced_walks
from experiments.witness import Moment, Witness, trespasses
from surveyor.crawler.session import Run
from surveyor.outcome import Outcome
from surveyor.survey.crawl import crawl
from surveyor.testing.web_server import EmbeddedWeb, running
from surveyor.testing.web_truth import Truth

GOALS = (0.5, 0.7, 0.8, 0.9)
STRATEGIES = ("rankmass", "rankmass", "breadth", "opic", "adaptive")


@dataclass(frozen=True, slots=True)
class Crawled:
    """What one crawl showed, and what was true."""

    kind: str
    moments: int
    walks: int
    discarded: int  # epochs
    excess: dict[float, float]  # by confidence: the largest excess of the sampled bound over the true coverage
    violations: tuple[str, ...]  # of the certified bound, and everything else that the witness checks


class SampledWitness(Witness):
    """A witness that looks at the sampled bound, too."""

    def __init__(self, web: EmbeddedWeb, moments: Sequence[Moment], advance_at: int | None) -> None:
        super().__init__(web, moments, advance_at)
        self._webs = moments
        self.excess = dict.fromkeys(CONFIDENCES, -1.0)
        self.walks = self.discarded = 0

    def look(self, run: Run, *, thorough: bool) -> None:
        """Compare both bounds with the truth."""
        super().look(run, thorough=thorough)
        walks = run.state.crawl.walks
        self.walks, self.discarded = max(self.walks, walks.count), walks.used
        highest = min(moment.interval()[1] for moment in self._webs)
        if walks.count and (walks.proves(highest + ROUNDING, CONFIDENCES[-1]) or thorough):
            for confidence in CONFIDENCES:
                self.excess[confidence] = max(self.excess[confidence], walks.at_least(confidence) - highest)


def crawled(plan: Plan, web: EmbeddedWeb, truths: Sequence[Sequence[Truth]], number: int) -> Crawled:
    """Crawl a web and watch; every other crawl changes the web, two of four make many walks."""
    draw = np.random.default_rng([plan.rng, number, 5])
    changes, many = number % 2 == 1, number % 4 >= 2
    advance_at = int(draw.integers(20, 300)) if changes else None
    witness = SampledWitness(web, [Moment(truth) for truth in truths], advance_at)
    last: list[Run] = []

    def watch(run: Run, outcome: Outcome | None) -> None:
        last[:] = [run]
        witness(run, outcome)

    goal, pages = 0.999 if many else float(draw.choice(GOALS)), int(draw.integers(150, 500))
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        if many:
            stack.enter_context(forced_walks(Forced(int(draw.integers(10, 80)), walks=int(draw.choice([20, 60])))))
        survey = crawl(
            web.seeds,
            until=f"coverage={goal}@95%,pages={pages}",
            out=Path(folder) / "web.survey",
            resolver=web.resolver,
            watch=watch,
            strategy=str(draw.choice(STRATEGIES)),
            scope=plan.scope,
            damping=plan.damping,
            follow_nofollow=plan.follow_nofollow,
            max_bytes=plan.max_bytes,
            concurrency=int(2 ** draw.integers(0, 6)),
            allow=web.hosts,
            delay=0,
            backoff=0.02,
            archive=False,
            contact="sampled@surveyor.example",
            rng=number,
        )
        witness.look(last[0], thorough=True)
        survey.close()
    kind = f"{'links change' if changes else 'constant'}, {'many walks' if many else 'goals'}"
    violations = (*witness.violations, *trespasses(web))
    web.reset()
    return Crawled(kind, witness.looks, witness.walks, witness.discarded, witness.excess, violations)


def crawls(count: int, rng: int) -> Iterator[Crawled]:
    """Crawl webs, each four times."""
    for first in range(0, count, 4):
        plan = Plan.draw(1000 * rng + first)
        with running(plan.web) as web:
            truths = plan.truths(web)
            for number in range(first, min(first + 4, count)):
                yield crawled(plan, web, truths, number)


def table(done: Sequence[Crawled]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    shares = " | ".join(f"violated at {confidence:.0%}" for confidence in CONFIDENCES)
    yield f"| webs | crawls | with walks | moments | walks | epochs discarded | {shares} | certified violated |"
    yield "|---|" + "--:|" * (6 + len(CONFIDENCES))
    for kind in (*sorted({one.kind for one in done}), "constant", "**all**"):
        mine = [one for one in done if kind in one.kind or kind == "**all**"]
        counts = [sum(bool(one.excess[confidence] > ROUNDING) for one in mine) for confidence in CONFIDENCES]
        numbers = [len(mine), sum(one.walks > 0 for one in mine)]
        numbers += [sum(getattr(one, what) for one in mine) for what in ("moments", "walks", "discarded")]
        cells = [f"{number:,}" for number in (*numbers, *counts, sum(bool(one.violations) for one in mine))]
        yield f"| {kind} | {' | '.join(cells)} |"
        if kind in ("constant", "**all**") and mine:
            low, high = binomial_interval(counts[0], len(mine))
            last = f"{kind}: {counts[0]} of {len(mine)} at {CONFIDENCES[0]:.0%}, {low:.2%} to {high:.2%}"
    yield f"\n{last} (exact 95 % interval)."
