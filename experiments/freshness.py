"""Simulate revisits of changing pages, with known change rates and with rates learnt during the run.

    python -m experiments.freshness

Pages of Zipf importance change by Poisson processes, with log-normal rates over four orders of magnitude; all have been
fetched once at the start. The measure is the share of importance that is fresh, compared with the optimum Σ μ ρ/(ρ + λ)
computed with the true rates. All policies have the same number of visits per unit of time:

- *optimal*: the closed form of `revisits.optimal_rates`, with the true change rates;
- *learnt*: the same with rates estimated from its own visits. It starts with a guessed typical rate and replans at
  equal times; each plan gives a share of the visits (`EXPLORE`) to all pages uniformly, because a page that is never
  fetched again is never found to be slower than assumed. Estimates are shrunk towards the typical rate, which has the
  weight of one visit and is itself learnt, as the geometric mean of the estimates;
- *uniform*; *by importance*: rates proportional to it; *by change*: proportional to the change rate.

The visits of a page have random intervals (exponential, as the formula assumes), or regular ones, due 1/ρ after the
last visit with a random phase at the start. Regular intervals are at least as fresh, (ρ/λ)(1 - e^(-λ/ρ)) instead of
ρ/(ρ + λ), so random intervals are the stricter test of learning.

A Poisson process is memoryless, so one exponential draw per visit, the time of the next change, is an exact simulation:
all visits up to the next plan are drawn at once.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from surveyor.arrays import BoolArray, FloatArray, IntArray
from surveyor.crawler.revisits import change_rates as estimate_rates
from surveyor.crawler.revisits import due_times, freshness, optimal_rates

EXPLORE = 0.1  # share of the visits that is uniform over all pages while rates are learnt
PRIOR_VISITS = 1.0  # weight of the typical rate
PLANS = 20  # number of plans from learnt rates

Spacing = Literal["random", "regular"]
SPACINGS: tuple[Spacing, ...] = ("random", "regular")


@dataclass(frozen=True, slots=True)
class Visits:
    """Visits to pages: the time since the previous one, and whether the page had changed."""

    page: IntArray
    interval: FloatArray
    changed: BoolArray


Planner = Callable[[list[Visits]], FloatArray]  # the visits so far -> re-visit rates


@dataclass(frozen=True, slots=True)
class Simulated:
    """The measurements of one run."""

    fresh: float  # share of importance, over the second half of the time
    at_first: float  # the same over the first half, in which rates are learnt and all pages start fresh
    visits: float  # per unit of time


def simulate_freshness(
    importance: npt.ArrayLike,
    change_rates: npt.ArrayLike,
    total: float,
    *,
    horizon: float,
    known_rates: bool,
    rng: int | np.random.Generator,
    spacing: Spacing = "random",
) -> Simulated:
    """Revisit pages by the optimal plan, with true or learnt change rates."""
    weight, change = np.asarray(importance, np.float64), np.asarray(change_rates, np.float64)
    plan = _fixed(optimal_rates(weight, change, total)) if known_rates else _Learner(weight, total)
    return simulate(plan, weight, change, horizon=horizon, rng=rng, spacing=spacing)


def simulate(
    plan: Planner,
    importance: FloatArray,
    change_rates: FloatArray,
    *,
    horizon: float,
    rng: int | np.random.Generator,
    spacing: Spacing = "random",
) -> Simulated:
    """Revisit pages by a planner, which is called at equal times with all visits so far."""
    rng = np.random.default_rng(rng)
    pages = importance.size
    last = np.zeros(pages)
    stale_from = _lives(change_rates, rng)
    seen: list[Visits] = []
    fresh = []
    edges = np.linspace(0, horizon, PLANS + 1)
    for begin, end in pairwise(edges.tolist()):
        rates = plan(seen)
        if spacing == "random":
            page, time = _at_random(rates, begin, end, rng)
        else:
            due = due_times(last, rates)
            page, time = _when_due(due if begin else due * (1 - rng.random(pages)), rates, begin, end)
        repeated = np.append(False, page[1:] == page[:-1])[: page.size]
        before = np.where(repeated, np.roll(time, 1), last[page])
        renewed = time + _lives(change_rates[page], rng)
        stale = np.where(repeated, np.roll(renewed, 1), stale_from[page])
        kept = importance[page] @ np.maximum(0, np.minimum(stale, time) - np.maximum(before, begin))
        closing = np.flatnonzero(np.append(page[1:] != page[:-1], True)[: page.size])  # each page's last visit
        last[page[closing]], stale_from[page[closing]] = time[closing], renewed[closing]
        kept += importance @ np.maximum(0, np.minimum(stale_from, end) - np.maximum(last, begin))
        fresh.append(kept / (end - begin) / importance.sum())
        seen.append(Visits(page, time - before, stale < time))
    half = PLANS // 2
    visits = sum(some.page.size for some in seen) / horizon
    return Simulated(float(np.mean(fresh[half:])), float(np.mean(fresh[:half])), visits)


class _Learner:
    """Plan with the change rates that the visits so far suggest."""

    def __init__(self, importance: FloatArray, total: float) -> None:
        self.importance, self.total = importance, total
        self.typical = total / importance.size  # the mean visit rate

    def __call__(self, seen: list[Visits]) -> FloatArray:
        pages = self.importance.size
        rates = np.full(pages, self.typical)
        if seen:
            page = np.concatenate([visits.page for visits in seen])
            interval = np.concatenate([visits.interval for visits in seen])
            changed = np.concatenate([visits.changed for visits in seen])
            rates = estimate_rates(page, interval, changed, pages, prior=(self.typical, PRIOR_VISITS)).rate
            self.typical = float(np.exp(np.log(rates[np.unique(page)]).mean())) if page.size else self.typical
        return optimal_rates(self.importance, rates, self.total, at_least=EXPLORE * self.total / pages)


def _fixed(rates: FloatArray) -> Planner:
    return lambda _: rates


def _lives(change_rates: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw the times until pages change."""
    with np.errstate(divide="ignore"):
        return np.asarray(rng.standard_exponential(change_rates.size) / change_rates)


def _at_random(rates: FloatArray, begin: float, end: float, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """Draw the visits of an interval, ordered by page and time."""
    page = np.repeat(np.arange(rates.size), rng.poisson(rates * (end - begin)))
    time = rng.uniform(begin, end, page.size)
    return page, time[np.lexsort((time, page))]


def _when_due(due: FloatArray, rates: FloatArray, begin: float, end: float) -> tuple[IntArray, FloatArray]:
    """List the visits of an interval, ordered by page and time; overdue pages are fetched immediately."""
    due = np.maximum(due, begin)
    counts = np.zeros(rates.size, np.int64)
    soon = due < end
    counts[soon] = np.ceil((end - due[soon]) * rates[soon])
    page = np.repeat(np.arange(rates.size), counts)
    turn = np.arange(page.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return page, due[page] + turn / rates[page]


def changing_pages(pages: int, rng: int | np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Generate importance (Zipf, exponent 0.8, sum 1) and change rates (log-normal, median 1, σ 1.5)."""
    weight = np.arange(1, pages + 1) ** -0.8
    return weight / weight.sum(), np.random.default_rng(rng).lognormal(0, 1.5, pages)


def table(pages: int, visits: float, horizon: float, runs: int, rng: int) -> Iterator[str]:
    """Yield the lines of a Markdown table: the freshness of each policy relative to the optimum, ± standard error."""
    weight, change = changing_pages(pages, rng)
    total = visits * pages
    best = optimal_rates(weight, change, total)
    optimum = freshness(weight, change, best)
    policies: dict[str, FloatArray | None] = {
        "optimal, true rates": best,
        "optimal, learnt rates": None,
        "by importance": total * weight,
        "uniform": np.full(pages, total / pages),
        "by change": total * change / change.sum(),
    }
    yield f"{pages:,} pages, {visits:g} visits per page and unit of time (median change rate 1), time {horizon:g},"
    yield f"{runs} runs, rng {rng}. Optimum Σ μ ρ/(ρ + λ): {optimum:.4f} of all importance. Shares of it:"
    yield ""
    yield "| policy | formula | random spacing | its first half | regular spacing | visits used |"
    yield "|---|--:|--:|--:|--:|--:|"
    for name, rates in policies.items():
        formula = "–" if rates is None else f"{freshness(weight, change, rates) / optimum:.3f}"
        random, regular = (
            [
                simulate(
                    _Learner(weight, total) if rates is None else _fixed(rates),
                    weight,
                    change,
                    horizon=horizon,
                    rng=seed,
                    spacing=spacing,
                )
                for seed in np.random.default_rng(rng).spawn(runs)
            ]
            for spacing in SPACINGS
        )
        cells = [
            _mean([run.fresh / optimum for run in random]),
            _mean([run.at_first / optimum for run in random]),
            _mean([run.fresh / optimum for run in regular]),
            _mean([run.visits / total for run in random]),
        ]
        yield f"| {name} | {formula} | " + " | ".join(cells) + " |"


def _mean(values: list[float]) -> str:
    error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{np.mean(values):.3f} ± {error:.3f}"


def main() -> None:
    """Print a table for each number of visits."""
    parser = argparse.ArgumentParser(description="Compare re-visit policies on pages that change.")
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--visits", type=float, nargs="+", default=[0.3, 1.0], help="per page and unit of time")
    parser.add_argument("--horizon", type=float, default=40.0, help="in units of the median time between changes")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rng", type=int, default=7)
    given = parser.parse_args()
    for visits in given.visits:
        for line in table(given.pages, visits, given.horizon, given.runs, given.rng):
            print(line, flush=True)
        print()


if __name__ == "__main__":
    main()
