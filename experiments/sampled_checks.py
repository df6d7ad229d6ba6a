"""Simulated crawls whose sampled bound is compared with the true coverage at every moment.

A crawl is watched at several confidences at once: the bounds are functions of the same walks. Beside the largest excess
of each bound over the truth there are two sharper tests of what the bound is built on:

- *evidence*: at the true coverage its mean over crawls is at most 1, whenever they end;
- *bias*: Σ (Y − E[Y]) over all walks, with E[Y] from the true coverage when their epoch began, is 0 on average. Its
  standard error follows from the same walks. It is known only where no page is blocked, and where
  no walk is cut off because the goal is proven.

`ForcedPlan` makes walks as often as possible, because the bound must be valid for any plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from experiments.sampled_webs import DAMPING, Web, scenario
from surveyor.arrays import FloatArray
from surveyor.crawler import loop
from surveyor.crawler.coverage_walks import CoverageWalks
from surveyor.crawler.loop import Crawl, Source, Tally, crawl
from surveyor.crawler.sampled_bound import log_evidence
from surveyor.crawler.strategies import by_name
from surveyor.outcome import Event, Outcome
from surveyor.simulation.scenario import BLOCKED, RaceSetup, SimulationOptions
from surveyor.simulation.simulate import NullJournal, RunRecorder, finish
from surveyor.stopping import Coverage, Progress, Rule, silent

CONFIDENCES = (0.95, 0.8, 0.5)
ROUNDING = 1e-6  # of the true importance
Sources = Callable[[Web, CoverageWalks], Source]


class Forced(NamedTuple):
    """How often walks are made."""

    first: int = 5  # pages
    growth: float = 1.1  # of the pages, from one epoch to the next
    walks: int = 40  # of an epoch
    group: int = 5  # walks at a time


class ForcedPlan:
    """A plan with an epoch whenever the pages have grown by a tenth, and always all of its walks."""

    forced = Forced()
    latest: ForcedPlan | None = None
    exclusive = False

    def __init__(self, _goal: float, _confidence: float, state: Crawl, secret: Callable[[], str]) -> None:
        self._ledger, self._walks, self._frontier, self._secret = state.ledger, state.walks, state.frontier, secret
        self._due = self.forced.first
        self.walking = False
        ForcedPlan.latest = self

    def next_events(self, now: float) -> list[Event]:
        """Return the events that start an epoch or walks."""
        if not self.walking:
            if self._ledger.read < self._due:
                return []
            self.walking = True
            launch = Event("walks", now, {"count": self.forced.group, "bounds": []})
            return [
                Event("epoch", now, self._walks.draw(self._secret(), self.forced.walks, self._frontier.failing)),
                launch,
            ]
        if self._walks.active_without(self._frontier.held):
            return []
        if not self._walks.epochs or not self._walks.left:
            self.walking, self._due = False, math.ceil(self.forced.growth * self._ledger.read) + 1
            return []
        bounds = [[CONFIDENCES[0], self._walks.at_least(CONFIDENCES[0])]]
        return [Event("walks", now, {"count": self.forced.group, "bounds": bounds})]


@contextmanager
def forced_walks(forced: Forced) -> Iterator[None]:
    """Let crawls make walks as often as this, instead of where they pay."""
    with patch.object(loop, "SamplingPlan", ForcedPlan), patch.object(ForcedPlan, "forced", forced):
        try:
            yield
        finally:
            ForcedPlan.latest = None


class Until(Coverage):
    """A sampled goal that ends a crawl after so many pages, once no walk is in progress, and never earlier."""

    __slots__ = ()

    def done(self, progress: Progress) -> bool:
        """Return whether enough pages are fetched; the share is the number of pages in millions."""
        walking = ForcedPlan.latest is not None and ForcedPlan.latest.walking
        return progress.pages >= 1e6 * self.share and not walking

    def unreachable(self, progress: Progress) -> bool:  # noqa: ARG002
        """Return False."""
        return False


@dataclass(frozen=True, slots=True)
class Watched:
    """What a crawl showed, compared with the truth."""

    fetches: int
    walks: int
    epochs: int
    moments: int
    excess: dict[float, float]  # by confidence: the largest excess of the bound over the true coverage
    frozen: dict[float, float]  # the same over the true coverage when the last epoch began: a sharper test
    certified: float  # the same for the certified bound
    evidence: float  # at the true coverage, at the end; NaN if there is none
    bias: float  # sum of Y − E[Y]; NaN if it is unknown
    square: float  # sum of their squares
    true: float  # coverage at the end
    at_least: tuple[float, float]  # certified and sampled bound at the end
    order: tuple[int, ...]  # pages as fetched

    def violates(self, confidence: float) -> bool:
        """Return whether the bound was ever above the truth."""
        return bool(self.excess[confidence] > ROUNDING)


class Watcher:
    """Compares the bounds of a crawl with the truth after each outcome, and between them."""

    def __init__(self, state: Crawl, truth: FloatArray) -> None:
        self._state, self._truth = state, truth
        self.order: dict[int, None] = {}  # pages as fetched
        self.true = [0.0]  # coverage after each of them
        self.moments = 0
        self.excess = dict.fromkeys(CONFIDENCES, -math.inf)
        self.frozen = dict.fromkeys(CONFIDENCES, -math.inf)
        self.certified = -math.inf

    def look(self) -> None:
        """Compare now; a bound is computed only if there is enough evidence that it is above the truth."""
        self.moments += 1
        self.certified = max(self.certified, self._state.ledger.coverage().at_least - self.true[-1])
        epochs = self._state.walks.epochs
        if epochs and self._state.walks.proves(self.true[epochs[-1].pages] + ROUNDING / 2, CONFIDENCES[-1]):
            self.compare()

    def compare(self) -> None:
        """Compare all bounds."""
        epochs = self._state.walks.epochs
        for confidence in CONFIDENCES:
            bound = self._state.walks.at_least(confidence)
            self.excess[confidence] = max(self.excess[confidence], bound - self.true[-1])
            if epochs:
                self.frozen[confidence] = max(self.frozen[confidence], bound - self.true[epochs[-1].pages])

    def outcome(self, outcome: Outcome) -> None:
        """Record an outcome, and compare."""
        if outcome.kind == "fetched" and outcome.page not in self.order:
            self.order[outcome.page] = None
            self.true.append(self.true[-1] + float(self._truth[outcome.page]))
        self.look()


def watch(web: Web, truth: FloatArray, until: Rule, *, rng: int, damping: float = DAMPING, **other: Any) -> Watched:
    """Crawl a web; `other` may be `strategy`, a name, and `source`, which makes a source of the web and the walks."""
    setup = RaceSetup(scenario(web, damping), truth, until, SimulationOptions(samples=0), rng, silent)
    recorder = RunRecorder(by_name(other.get("strategy", "rankmass")), setup)
    state, secrets = recorder.state, iter(range(1 << 40))
    watcher = Watcher(state, truth)
    tally = Tally(
        watch=watcher.outcome,
        checkpoint=watcher.look,
        clock=lambda: 0.0,
        secret=lambda: f"{rng}:{next(secrets)}",
    )
    state.begin(setup.generator())
    source: Sources | None = other.get("source")
    pages = recorder.source() if source is None else source(web, state.walks)
    finish(crawl(state, pages, NullJournal(), until, tally=tally))
    watcher.compare()
    bias, square = _bias(watcher, state.walks, web) if source is None else (math.nan, 0.0)
    return Watched(
        fetches=len(watcher.order),
        walks=state.walks.count,
        epochs=len(state.walks.epochs),
        moments=watcher.moments,
        excess=watcher.excess,
        frozen=watcher.frozen,
        certified=watcher.certified,
        evidence=_evidence(watcher, state.walks),
        bias=bias,
        square=square,
        true=watcher.true[-1],
        at_least=(state.ledger.coverage().at_least, state.walks.at_least(CONFIDENCES[0])),
        order=tuple(watcher.order),
    )


def _evidence(watcher: Watcher, walks: CoverageWalks) -> float:
    """Return the evidence at the true coverage of the last epoch; NaN if the certified bound is as close."""
    true = watcher.true[walks.epochs[-1].pages] if walks.epochs else 0.0
    if not walks.epochs or true - max(epoch.captured for epoch in walks.epochs) < 1e-4:
        return math.nan
    return math.exp(log_evidence(true, walks.epochs, walks.values, walks.used))


def _bias(watcher: Watcher, walks: CoverageWalks, web: Web) -> tuple[float, float]:
    if ForcedPlan.latest is None or not walks.epochs or walks.unfinished or (web.outcomes == BLOCKED).any():
        return math.nan, 0.0
    ends = [epoch.first for epoch in walks.epochs[1:]] + [walks.count]
    differences = [
        walks.values[epoch.first : end] - (watcher.true[epoch.pages] - epoch.captured) / epoch.unsettled
        for epoch, end in zip(walks.epochs, ends, strict=True)
        if epoch.unsettled > 1e-4
    ]
    all_of_them = np.concatenate(differences) if differences else np.zeros(1)
    return float(all_of_them.sum()), float((all_of_them**2).sum())


def binomial_interval(found: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact (Clopper–Pearson) interval of a probability.

    >>> tuple(round(limit, 4) for limit in binomial_interval(2, 200))
    (0.0012, 0.0357)
    """
    tail = (1 - confidence) / 2

    def at_most(count: int, share: float) -> float:
        terms = (math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(count + 1))
        return math.fsum(terms)

    low = 0.0 if found == 0 else _root(lambda share: tail - (1 - at_most(found - 1, share)))
    high = 1.0 if found == trials else _root(lambda share: at_most(found, share) - tail)
    return low, high


def _root(falling: Callable[[float], float]) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return low


def table(results: Mapping[str, Sequence[Watched]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    shares = " | ".join(f"violated at {confidence:.0%}" for confidence in CONFIDENCES)
    sharp = "frozen, at 95% / 80% / 50%"
    yield f"| web | crawls | moments | walks | epochs | {shares} | {sharp} | certified | mean evidence | bias, z |"
    yield "|---|" + "--:|" * (8 + len(CONFIDENCES))
    everything = [one for some in results.values() for one in some]
    for name, some in {**results, "**all**": everything}.items():
        counts = [sum(one.violates(confidence) for one in some) for confidence in CONFIDENCES]
        evidence = [one.evidence for one in some if not math.isnan(one.evidence)]
        error = np.std(evidence) / math.sqrt(len(evidence)) if evidence else math.nan
        known = [one for one in some if not math.isnan(one.bias)]
        square = sum(one.square for one in known)
        z = f"{sum(one.bias for one in known) / math.sqrt(square):+.2f}" if square > 0 else "–"
        cells = [name, len(some), *(sum(getattr(one, what) for one in some) for what in ("moments", "walks", "epochs"))]
        sharper = [sum(one.frozen[confidence] > ROUNDING for one in some) for confidence in CONFIDENCES]
        cells += [*counts, " / ".join(map(str, sharper)), sum(bool(one.certified > ROUNDING) for one in some)]
        shown = [f"{cell:,}" if isinstance(cell, int) else cell for cell in cells]
        mean = f"{np.mean(evidence):.2f} ± {2 * error:.2f}" if evidence else "–"
        yield "| " + " | ".join([*shown, mean, z]) + " |"
    for confidence in CONFIDENCES:
        found = sum(one.violates(confidence) for one in everything)
        low, high = binomial_interval(found, len(everything))
        interval = f"{low:.2%} to {high:.2%} (exact 95 % interval)"
        yield f"\nViolated at {confidence:.0%}: {found} of {len(everything)} crawls, {interval}."
