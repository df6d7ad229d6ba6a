"""Watch changing webs under a request budget: freshness of learned schedules, and importance while links change.

    python -m experiments.watching [--seeds 5] [--out FOLDER] [--million]

1. *Freshness* (`watched_webs.py`): pages with unknown change rates, some periodic or bursty. The budget is 0.3 of
   the sum of all change rates. All rows use the same budget; freshness is measured after the learning horizon:
   - *optimum, formula*: `optimal_intervals` with the true rates, freshness as for Poisson processes;
   - *known rates, regular*: the same intervals on the web itself, from random phases;
   - *known rates, schedule*: `Schedule` with the true rates;
   - *learned*: `Schedule`, which sees only its own visits; *with signals* also the signals of half of the pages;
   - *known, with signals*: the true rates, precision and recall; its formula is the optimum of policies with signals;
   - *by importance*, *uniform*: regular visits at rates that ignore changes.
2. *What is learned*: how often the 95 % intervals of change rates contain the true ones, by kind of page, and
   the precision of signals. Standardised errors of the forecast of freshness.
3. *Importance*: the L1 error of push tracking, and of BAO relative to the paper's fixed window, while links change,
   at equal requests, each in its own order (`experiments/opic.py`).
4. With --million: the time of a plan for a million pages.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from experiments.opic import Series, history_of, opic_errors, plot, tracking_errors
from experiments.watched_webs import (
    POISSON,
    Recipe,
    Visits,
    WatchedWeb,
    fresh_importance,
    is_fresh,
    regular_visits,
    watch,
    watched_web,
)
from surveyor.arrays import FloatArray
from surveyor.crawler.change_learning import Estimate, Learned, SignalQuality
from surveyor.crawler.revisits import freshness, optimal_intervals
from surveyor.crawler.schedule import DAY, Schedule, ScheduleOptions
from surveyor.crawler.strategies.adaptive import AdaptiveOpic, Window
from surveyor.graph.synthetic.generate import PRESETS, synthetic_web

BUDGET = 0.3  # of the sum of all change rates
LEARNING = 2 / 3  # of the time
POINTS = 30  # of the curves
RATES = (0.02, 0.05, 0.1)  # pages whose links change per epoch
EPOCHS = 12
WINDOWS: tuple[Window, ...] = ("fixed", "bao")
SIZES = (4, 6, 8)  # of windows


class Knowing(Schedule):
    """A schedule that knows the true rates, precision and recall."""

    truth: tuple[FloatArray, FloatArray, FloatArray]  # unannounced changes, signals, precision

    def _learn(self, now: float) -> Learned:  # noqa: ARG002
        size = self._history.last.size
        missed, signals, precision = (np.zeros(size) for _ in range(3))
        missed += 1e-12
        for mine, true in zip((missed, signals, precision), self.truth, strict=True):
            mine[: true.size] = true
        nothing = Estimate(0.0, 0.0, 0.0)
        quality = SignalQuality(nothing, 0.0)
        return Learned(missed, np.zeros(size), missed, missed, signals, precision, np.zeros(size), quality)


@dataclass
class Found:
    """The results of all webs."""

    fresh: dict[str, list[float]] = field(default_factory=dict)
    used: dict[str, list[float]] = field(default_factory=dict)
    curves: dict[str, list[FloatArray]] = field(default_factory=dict)
    covered: dict[str, list[float]] = field(default_factory=dict)
    quality: list[SignalQuality] = field(default_factory=list)
    forecast: list[float] = field(default_factory=list)

    def add(self, name: str, web: WatchedWeb, visits: Visits, rate: float) -> None:
        """Judge the visits of one run."""
        curve = fresh_importance(web, visits, np.linspace(0, web.end, POINTS + 1))
        self.curves.setdefault(name, []).append(curve)
        self.fresh.setdefault(name, []).append(float(curve[round(LEARNING * POINTS) :].mean()))
        self.used.setdefault(name, []).append((visits.page.size - web.pages) / (rate * web.end))


def watch_one(recipe: Recipe, seed: int, found: Found) -> None:
    """Run all policies on one web."""
    web = watched_web(recipe, seed)
    rate, rng = BUDGET * float(web.rates.sum()), np.random.default_rng(seed)
    none = np.zeros(web.pages)
    intervals = optimal_intervals(web.importance, web.rates, rate)
    best = freshness(web.importance, web.rates, 1 / intervals, spacing="regular") / web.importance.sum()
    found.fresh.setdefault("optimum, formula", []).append(best)
    found.add("known rates, regular", web, regular_visits(web, intervals, rng), rate)
    for name, share in (("by importance", web.importance), ("uniform", none + 1)):
        found.add(name, web, regular_visits(web, share.sum() / (rate * share), rng), rate)
    options = ScheduleOptions(shortest=1.0)
    missed = np.where(web.listed, (1 - recipe.recall) * web.rates, web.rates)
    signals = np.where(web.listed, recipe.recall * web.rates / recipe.precision, 0.0)
    precision = np.where(web.listed, recipe.precision, 0.0)
    found.fresh.setdefault("optimum with signals, formula", []).append(
        best_with_signals(web.importance, missed, signals, precision, rate)
    )
    for name, truth in (
        ("known rates, schedule", (web.rates, none, none)),
        ("known, with signals", (missed, signals, precision)),
    ):
        knowing = Knowing(rate, start=0.0, options=replace(options, explore=0.0))
        knowing.truth = truth
        found.add(name, web, watch(web, knowing, signals="signals" in name), rate)
    for name in ("learned", "learned, with signals"):

        def planned(now: float, schedule: Schedule, last: FloatArray) -> None:
            forecast = schedule.forecast(now)
            if now > LEARNING * web.end and forecast.error > 0:
                true = float(web.importance @ is_fresh(web, last, now)) / float(web.importance.sum())
                found.forecast.append((true - forecast.fresh) / forecast.error)

        schedule = Schedule(rate, start=0.0, options=options)
        heard = "signals" in name
        found.add(name, web, watch(web, schedule, signals=heard, planned=planned), rate)
        learned = schedule.rates()
        inside = (learned.low[: web.pages] <= web.rates) & (web.rates <= learned.high[: web.pages])
        for kind, pages in (("Poisson", web.kind == POISSON), ("periodic or bursty", web.kind != POISSON)):
            found.covered.setdefault(f"{name}: {kind}", []).append(float(inside[pages].mean()))
        if heard:
            found.quality.append(schedule.signal_quality())


def best_with_signals(
    importance: FloatArray, missed: FloatArray, signals: FloatArray, precision: FloatArray, rate: float
) -> float:
    """Return the largest freshness of threshold policies with known parameters (`kernels/revisit_index.py`)."""
    from surveyor.kernels.revisit_index import gain, lengths, thresholds

    worth, theta, evidence = importance / missed, signals / missed, -np.log1p(-precision)
    level, length = np.empty(missed.size), np.empty(missed.size)
    low, high = 1e-12 * float(worth.max()), float(worth.max())
    for _ in range(80):
        price = math.sqrt(low * high)
        thresholds(price, theta, evidence, worth, level)
        lengths(level, theta, evidence, length)
        low, high = (price, high) if float((missed / length).sum()) > rate else (low, price)
    total = 0.0
    for page in np.flatnonzero(np.isfinite(level)).tolist():
        value, cycle = gain(level[page], theta[page], evidence[page])
        total += importance[page] * (value + math.exp(-level[page]) * cycle) / cycle
    return total / float(importance.sum())


def importance_errors(pages: int, seed: int) -> dict[str, list[float]]:
    """Return the L1 error of each method for each rate of change, on one web."""
    graph = synthetic_web(replace(PRESETS["web"], pages=pages), rng=seed, names=False).graph
    rows: dict[str, list[float]] = {}
    for rate in RATES:
        history = history_of(graph, rate, EPOCHS)
        errors = {"push tracking": tracking_errors(history)}
        for size in SIZES:
            for window in WINDOWS:
                strategy = AdaptiveOpic(window, size, damping=0.85, teleport="uniform")
                errors[f"{window} {size}"] = opic_errors(strategy, history)
        for name, curve in errors.items():
            rows.setdefault(name, []).append(float(np.mean(curve[EPOCHS // 2 :])))
    return rows


def plan_times(pages: int) -> None:
    """Print the time of learning and planning for many pages."""
    rng, schedule = np.random.default_rng(1), Schedule(pages / (10 * DAY), start=0.0)
    rates, every = rng.lognormal(0, 1.5, pages) / (10 * DAY), np.arange(pages)
    for visit in range(4):
        at = 10 * DAY * (visit + rng.random(pages))
        changed = rng.random(pages) < -np.expm1(-rates * 10 * DAY)
        schedule.observe_all(every, at, np.where(visit == 0, -1, changed))
    weight = rng.pareto(1.2, pages) + 0.1
    for name in ("plan, first call (compiles)", "plan"):
        began, used = time.perf_counter(), time.process_time()
        schedule.plan(40 * DAY, weight)
        print(f"{name}: {time.perf_counter() - began:.2f} s, {time.process_time() - used:.2f} s of processor time")
    began = time.perf_counter()
    schedule.due(40 * DAY, 100)
    print(f"due: {1e3 * (time.perf_counter() - began):.1f} ms; {schedule.bytes_per_page:.0f} bytes per page")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description="Watch changing webs under a request budget.")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--days", type=float, default=30.0)
    parser.add_argument("--odd", type=float, default=0.3, help="share of pages that do not change at random")
    parser.add_argument("--listed", type=float, default=0.5, help="share of pages with signals")
    parser.add_argument("--spread", type=float, default=1.5, help="standard deviation of log change rates")
    parser.add_argument("--out", type=Path, help="folder for the plots")
    parser.add_argument("--million", action="store_true", help="time plans of a million pages")
    parser.add_argument("--only", choices=["freshness", "importance", "speed"])
    given = parser.parse_args(arguments)
    recipe = Recipe(pages=given.pages, days=given.days, odd=given.odd, listed=given.listed, spread=given.spread)
    found = Found()
    if given.only in (None, "freshness"):
        for seed in range(given.seeds):
            watch_one(recipe, seed, found)
            print(f"web {seed} done", file=sys.stderr, flush=True)
        print_freshness(recipe, found, given.seeds)
        print_learned(recipe, found)
    rows: dict[str, list[list[float]]] = {}
    if given.only in (None, "importance"):
        for seed in range(given.seeds):
            for name, errors in importance_errors(given.pages, seed).items():
                rows.setdefault(name, []).append(errors)
        print_importance(rows)
    if given.million or given.only == "speed":
        plan_times(1_000_000)
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        try:
            draw(given.out, recipe, found, rows)
        except ImportError:
            print("no plots: matplotlib is not installed; pip install 'surveyor[report]'", file=sys.stderr)


def print_freshness(recipe: Recipe, found: Found, seeds: int) -> None:
    """Print the first table."""
    horizon = LEARNING * recipe.days
    print(f"{recipe.pages:,} pages, {recipe.days:g} days, {seeds} webs; change rates log-normal, median 1 per day,")
    print(f"σ {recipe.spread:g}; {recipe.odd:.0%} periodic or bursty; budget {BUDGET:g} of all changes; measured after")
    print(
        f"{horizon:g} days. Signals on {recipe.listed:.0%} of the pages, precision {recipe.precision:g}, "
        f"recall {recipe.recall:g}.\n"
    )
    print("| policy | fresh importance | relative to known rates, regular | requests used |\n|---|--:|--:|--:|")
    base = np.array(found.fresh["known rates, regular"])
    for name, values in sorted(found.fresh.items(), key=lambda row: -float(np.mean(row[1]))):
        used = f"{np.mean(found.used[name]):.3f}" if name in found.used else "–"
        print(f"| {name} | {shown(values)} | {shown(np.array(values) / base)} | {used} |")
    gain = 100 * (np.array(found.fresh["learned, with signals"]) - np.array(found.fresh["learned"]))
    most = 100 * (np.array(found.fresh["optimum with signals, formula"]) - np.array(found.fresh["optimum, formula"]))
    print(f"\nSignals add {shown(gain)} percentage points; with known parameters {shown(most)} are possible.")


def print_learned(recipe: Recipe, found: Found) -> None:
    """Print the second table."""
    print("\n| 95 % intervals of change rates | contain the true rate |\n|---|--:|")
    for name, values in found.covered.items():
        print(f"| {name} | {shown(values)} |")
    each = [quality.precision for quality in found.quality]
    inside = sum(one.low <= recipe.precision <= one.high for one in each)
    print(f"\nprecision, true {recipe.precision:g}: {shown([one.value for one in each])};", end=" ")
    print(f"{inside} of {len(each)} intervals contain it")
    errors = np.array(found.forecast)
    print(f"\nStandardised errors of {errors.size} forecasts: mean {errors.mean():.2f}, deviation {errors.std():.2f}")


def print_importance(rows: dict[str, list[list[float]]]) -> None:
    """Print the third table."""
    print("\n| L1 error of importance | " + " | ".join(f"{rate:.0%} change per epoch" for rate in RATES) + " |")
    print("|---|" + "--:|" * len(RATES))
    mean = {name: np.array(errors) for name, errors in rows.items()}
    for name, errors in mean.items():
        print(f"| {name} | " + " | ".join(shown(column) for column in errors.T) + " |")
    fixed, bao = (np.min([mean[f"{window} {size}"] for size in SIZES], axis=0) for window in WINDOWS)
    for name, errors in (("push tracking", mean["push tracking"]), ("bao, best size", bao)):
        print(f"| {name} / fixed, best size | " + " | ".join(shown(column) for column in (errors / fixed).T) + " |")


def draw(folder: Path, recipe: Recipe, found: Found, rows: dict[str, list[list[float]]]) -> None:
    """Draw freshness over time, and the error of importance by rate of change."""
    days = (np.arange(POINTS) + 0.5) * recipe.days / POINTS
    if found.curves:
        curves: Series = {name: (days.tolist(), np.mean(each, axis=0).tolist()) for name, each in found.curves.items()}
        for ending in ("svg", "png"):
            plot(folder / f"watching-freshness.{ending}", curves, "days", "fresh importance", log=False)
    if rows:
        lines: Series = {
            name: ([100 * rate for rate in RATES], np.mean(each, axis=0).tolist()) for name, each in rows.items()
        }
        for ending in ("svg", "png"):
            plot(
                folder / f"watching-importance.{ending}", lines, "pages that change per epoch, %", "L1 error", log=False
            )


def shown(values: Sequence[float] | FloatArray) -> str:
    """Return mean ± standard error."""
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{np.mean(values):.3f} ± {error:.3f}"


if __name__ == "__main__":
    main()
