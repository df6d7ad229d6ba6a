"""The experiments of the OPIC paper (Abiteboul, Preda and Cobena 2003, section 4), in one command.

    python -m experiments.opic [--pages 100000] [--web web] [--parts policies,first,windows,changes] [--out FOLDER]
    python -m experiments.opic --quick

1. *Policies*: the L1 error of estimated importance by fetches per page for greedy, cycle and random, and for the
   offline power method, where a sweep counts as one fetch per page. Also the error of the estimate of the paper,
   (history + cash) / (G + 1), which is a power step behind ours, and the mean relative error of the most important
   hundredth of the pages; the correlation of the number of fetches of a page with its importance; and the slope of the
   error over the fetches, both as logarithms, in the second half of the table.
   The same after one fetch per page for other webs, all policies and both teleport vectors, relative to the estimate
   of the paper, with and without the prior of ours.
2. *Windows*: their size, on a static web.
3. *Change*: windows, plain OPIC and push tracking on webs in which a share of the pages gets new links in each
   epoch, an epoch being one fetch per page on average; changes come in five parts, so that no crawl order sees
   all of them in time. The error is relative to PageRank of the web at the end of the epoch, averaged over the second
   half of the epochs.

All pages are known at the start and jumps are uniform, as in the paper. The output is Markdown; with --out
the curves of 1 and 3 are drawn too. A window of size T reaches T units of moved cash back: greedy moves about 2
units in an epoch. Same arguments, same tables.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import numpy as np

from surveyor.arrays import BoolArray, FloatArray, IdArray, read_only
from surveyor.crawler.ledger import Ledger, PushOptions
from surveyor.crawler.sources.graph import ChangingWeb
from surveyor.crawler.strategies.adaptive import AdaptiveOpic, Window
from surveyor.crawler.strategies.opic import Opic, Policy
from surveyor.crawler.strategies.tracking import pace
from surveyor.graph.csr import Graph
from surveyor.graph.growing import GrowingGraph
from surveyor.graph.synthetic.generate import PRESETS, rmat, synthetic_web
from surveyor.kernels.thread_pool import ThreadPool
from surveyor.rank.pagerank import pagerank

if TYPE_CHECKING:
    from surveyor.kernels.mass import Rows

DAMPING = 0.85
RNG = 7
PARTS = 5  # of an epoch, each with its part of the changes
PRECISION = 1e-3  # of push tracking: mass that is not worth a push
TOLERANCE = 1e-6  # of the true importance
EXPERIMENTS = ("policies", "first", "windows", "changes")
WINDOWS: dict[Window, tuple[int, ...]] = {"fixed": (4, 8, 16), "variable": (2, 4, 8, 16), "bao": (4, 8, 16)}
ADAPTIVE: dict[Window, tuple[int, ...]] = {"fixed": (4, 8), "variable": (4, 16), "bao": (2, 4, 8, 16)}

Series = dict[str, tuple[Sequence[float], Sequence[float]]]


@dataclass(frozen=True)
class Plan:
    """How much to do."""

    pages: int = 100_000
    fetches: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)  # per page, when errors are taken
    rates: tuple[float, ...] = (0.0, 0.01, 0.02, 0.05, 0.1)  # pages that change in an epoch
    epochs: int = 16


QUICK = Plan(pages=1_000, fetches=(1, 3, 6), rates=(0.0, 0.1), epochs=6)


@dataclass(frozen=True)
class Start:
    """A beginning at which all pages are known."""

    seeds: IdArray
    teleport: FloatArray
    capacity: int
    damping: float = DAMPING


@dataclass(frozen=True)
class Errors:
    """How far an estimate is from the truth."""

    l1: float
    paper: float  # L1 of the paper's estimate
    top: float  # mean relative error of the most important hundredth
    proven: float  # bound on l1
    correlation: float  # of the fetches of each page with its importance; NaN if all have the same number


def begun(strategy: Opic, pages: int) -> Opic:
    """Start a strategy with all pages known."""
    start = Start(np.arange(pages, dtype=np.int32), np.full(pages, 1 / pages), pages)
    strategy.begin(start, None, np.random.default_rng(RNG))
    return strategy


def l1(estimate: FloatArray, truth: FloatArray) -> float:
    """Return the distance of an estimate from the truth; it may have room for more pages."""
    return float(np.abs(estimate[: truth.size] - truth).sum())


def opic_curve(strategy: Opic, web: ChangingWeb, truth: FloatArray, fetches: Sequence[int]) -> list[Errors]:
    """Run OPIC on a static web; return the errors by fetches per page."""
    begun(strategy, web.pages)
    top = np.argsort(-truth)[: max(truth.size // 100, 1)]
    curve, done, counts = [], 0, np.zeros(web.pages, np.int64)
    for each in fetches:
        counts += np.bincount(strategy.run(web.rows, (each - done) * web.pages), minlength=web.pages)
        alike = float(np.corrcoef(counts, truth)[0, 1]) if np.ptp(counts) else math.nan
        done, estimate = each, strategy.importance()
        relative = float(np.abs(estimate[top] / truth[top] - 1).mean())
        printed = l1(paper_estimate(strategy), truth)
        curve.append(Errors(l1(estimate, truth), printed, relative, strategy.certificate(), alike))
    return curve


def paper_estimate(strategy: Opic) -> FloatArray:
    """Return (history + cash) / (G + 1), over real pages only."""
    from surveyor.kernels.opic_cash import BETA

    cash = strategy.cash
    earned: FloatArray = cash.earnings.history + cash.cash + cash.weight * (cash.totals[BETA] - cash.settled)
    return earned / float(earned.sum())


def power_curve(graph: Graph, truth: FloatArray, fetches: Sequence[int]) -> list[float]:
    """Return the errors of the power method after so many sweeps."""
    from experiments.kernels import gather_sweep

    rows, share, errors = graph.in_links, DAMPING * graph.share_per_link, []
    rank, dangling = np.full(graph.pages, 1 / graph.pages), graph.out_degrees == 0
    for sweep in range(1, max(fetches) + 1):
        base = (1 - DAMPING + DAMPING * float(rank[dangling].sum())) / graph.pages
        gather_sweep(rows.indptr, rows.indices, rank * share, base, rank)
        if sweep in fetches:
            errors.append(l1(rank, truth))
    return errors


@dataclass(frozen=True)
class Part:
    """A web as it is during a part of an epoch."""

    rows: Rows
    dead: BoolArray
    truth: FloatArray | None  # its PageRank, at the end of an epoch

    @property
    def fetches(self) -> int:
        """How many pages are read in this time."""
        return int(self.dead.size) // PARTS


def history_of(graph: Graph, rate: float, epochs: int) -> list[Part]:
    """Let a web change all the time, in parts of epochs."""
    web = ChangingWeb(graph, np.random.default_rng(RNG), changed=rate / PARTS)
    found: list[Part] = []
    start: FloatArray | None = None
    for part in range(1, epochs * PARTS + 1):
        web.step()
        rows = web.rows
        rows = rows._replace(start=rows.start.copy(), end=rows.end.copy(), targets=rows.targets.copy())
        if part % PARTS == 0:
            start = pagerank(web.graph(), DAMPING, TOLERANCE, start=start).scores
        found.append(Part(rows, web.dead.copy(), start if part % PARTS == 0 else None))
    return found


def opic_errors(strategy: Opic, history: list[Part]) -> list[float]:
    """Read a web that changes, one read per page in each epoch; return the L1 error after each epoch."""
    begun(strategy, history[0].dead.size)
    errors = []
    for part in history:
        strategy.run(part.rows, part.fetches, part.dead)
        if part.truth is not None:
            errors.append(l1(strategy.importance(), part.truth))
    return errors


def tracking_errors(history: list[Part]) -> list[float]:
    """Do the same with push tracking."""
    from experiments.kernels import Seen, track
    from surveyor.kernels.mass import Rows
    from surveyor.kernels.priority_queues import new_queue, set_priority

    pages, first = history[0].dead.size, history[0].rows
    ledger = Ledger(
        GrowingGraph(1),
        np.arange(pages, dtype=np.int32),
        damping=DAMPING,
        push=PushOptions(precision=PRECISION),
        pages=pages,
    )
    end, targets = first.start.copy(), np.zeros_like(first.targets)
    seen = Seen(Rows(read_only(first.start), read_only(end), read_only(targets)), end, targets)
    queue, clock, errors = new_queue(pages), np.array([0.0, pace(ledger)]), []
    for page in range(pages):
        set_priority(queue, page, ledger.residual[page])
    for part in history:
        rows = Rows(*(read_only(array) for array in part.rows))
        for fetches in np.diff(np.linspace(0, part.fetches, 3).astype(np.int64)).tolist():
            track(ledger.mass, seen, rows, queue, clock, fetches)
            clock[1] = pace(ledger)
        if part.truth is not None:
            errors.append(l1(ledger.importance(), part.truth))
    return errors


def policies(graph: Graph, truth: FloatArray, plan: Plan, pool: ThreadPool) -> Series:
    """Print the first experiment; return its curves."""
    methods = {
        "greedy": Opic("greedy", DAMPING, "uniform", 0.0),
        "greedy, fairness 5 %": Opic("greedy", DAMPING, "uniform", 0.05),
        "cycle": Opic("cycle", DAMPING, "uniform"),
        "random": Opic("random", DAMPING, "uniform"),
    }
    curves = _curves(methods, graph, truth, plan, pool)
    power = power_curve(graph, truth, plan.fetches)
    rows = {name: [point.l1 for point in curve] for name, curve in curves.items()}
    rows["power method"] = power
    heads = [f"{fetches}" for fetches in plan.fetches]
    _print_table("L1 error by fetches per page", "policy", heads, rows)
    proven = {f"{name}, proven": [point.proven for point in curve] for name, curve in curves.items()}
    _print_table("Bound that OPIC gives on that error", "policy", heads, proven)
    paper = {name: [point.paper for point in curve] for name, curve in curves.items()}
    _print_table("L1 error of the paper's estimate, (history + cash) / (G + 1)", "policy", heads, paper)
    top = {name: [point.top for point in curve] for name, curve in curves.items()}
    _print_table("Mean relative error of the most important hundredth", "policy", heads, top)
    alike = {name: [point.correlation for point in curve] for name, curve in curves.items()}
    _print_table("Correlation of fetches with importance", "policy", heads, alike)
    late = len(plan.fetches) // 2
    slopes = {name: np.polyfit(np.log(plan.fetches[late:]), np.log(row[late:]), 1)[0] for name, row in rows.items()}
    print("\nSlope of log error over log fetches: " + ", ".join(f"{name} {one:.2f}" for name, one in slopes.items()))
    return {name: (plan.fetches, errors) for name, errors in rows.items()}


def first_fetches(plan: Plan) -> None:
    """Print the errors after one fetch per page relative to the paper's estimate, on several webs."""
    pages = min(plan.pages, 5_000)
    webs = {
        f"web {rng}": synthetic_web(replace(PRESETS["web"], pages=pages), rng=rng, names=False).graph
        for rng in range(RNG, RNG + 3)
    }
    webs["R-MAT"] = rmat((pages - 1).bit_length(), 8, rng=RNG)
    rows: dict[str, list[float]] = {}
    for graph in webs.values():
        for uniform in (True, False):
            seeds = np.arange(graph.pages) if uniform else np.sort(pagerank(graph, tolerance=1e-4).top(10))
            jumps = np.bincount(seeds, minlength=graph.pages) / seeds.size
            start = Start(seeds.astype(np.int32), np.full(seeds.size, 1 / seeds.size), graph.pages)
            truth = pagerank(graph, DAMPING, TOLERANCE, jumps).scores
            web = ChangingWeb(graph, np.random.default_rng(RNG), changed=0.0)
            for policy in get_args(Policy):
                strategy = Opic(policy, DAMPING, "uniform" if uniform else "trusted")
                strategy.begin(start, None, np.random.default_rng(RNG))
                strategy.run(web.rows, int(np.count_nonzero(truth)))
                printed, ahead = l1(paper_estimate(strategy), truth), strategy.ahead()
                without = {", no prior": ahead / ahead.sum()} if policy == "greedy" else {}
                for name, estimate in {"": strategy.importance(), **without}.items():
                    label = f"{policy}, {'uniform' if uniform else 'trusted'}{name}"
                    rows.setdefault(label, []).append(l1(estimate, truth) / printed)
    title = "L1 error after one fetch per page, relative to the paper's estimate"
    _print_table(title, "policy and teleport", list(webs), rows)


def windows(graph: Graph, truth: FloatArray, plan: Plan, pool: ThreadPool) -> None:
    """Print the second experiment."""
    methods = dict(_adaptive(WINDOWS))
    curves = _curves(methods, graph, truth, plan, pool)
    rows = {name: [point.l1 for point in curve] for name, curve in curves.items()}
    heads = [f"{fetches}" for fetches in plan.fetches]
    _print_table("L1 error of windows by fetches per page, static web", "window", heads, rows)


def changes(graph: Graph, plan: Plan, pool: ThreadPool) -> Series:
    """Print the third experiment; return the error by rate of change."""
    rows: dict[str, list[float]] = {}
    for rate in plan.rates:
        history = history_of(graph, rate, plan.epochs)
        methods = {"OPIC": Opic(teleport="uniform"), **dict(_adaptive(ADAPTIVE))}
        found = dict(zip(methods, pool.imap(opic_errors, [(each, history) for each in methods.values()]), strict=True))
        found["push tracking"] = tracking_errors(history)
        for name, errors in found.items():
            rows.setdefault(name, []).append(float(np.mean(errors[plan.epochs // 2 :])))
    heads = [f"{100 * rate:g} %" for rate in plan.rates]
    title = f"L1 error while so many pages change per epoch (mean of epochs {plan.epochs // 2 + 1} to {plan.epochs})"
    _print_table(title, "method", heads, rows)
    best_bao = [min(rows[name][column] for name in rows if name.startswith("bao")) for column in range(len(heads))]
    ratios = [f"{mine / theirs:.2f}" for mine, theirs in zip(rows["push tracking"], best_bao, strict=True)]
    print("Push tracking's error as a part of the best bao's: " + ", ".join(ratios))
    for window in ADAPTIVE:
        sizes = [name for name in rows if name.startswith(window)]
        best = [min(sizes, key=lambda name: rows[name][column]) for column in range(len(heads))]
        print(f"Best {window}: " + ", ".join(f"{name} at {head}" for name, head in zip(best, heads, strict=True)))
    return {name: ([100 * rate for rate in plan.rates], errors) for name, errors in rows.items()}


def _adaptive(sizes: dict[Window, tuple[int, ...]]) -> Iterator[tuple[str, AdaptiveOpic]]:
    for window, choices in sizes.items():
        for size in choices:
            yield f"{window} {size}", AdaptiveOpic(window, size, damping=DAMPING, teleport="uniform")


def _curves(
    methods: dict[str, Opic] | dict[str, AdaptiveOpic], graph: Graph, truth: FloatArray, plan: Plan, pool: ThreadPool
) -> dict[str, list[Errors]]:
    web = ChangingWeb(graph, np.random.default_rng(RNG), changed=0.0)
    tasks = [(strategy, web, truth, plan.fetches) for strategy in methods.values()]
    return dict(zip(methods, pool.imap(opic_curve, tasks), strict=True))


def _print_table(title: str, name: str, heads: Sequence[str], rows: dict[str, list[float]]) -> None:
    print(f"\n### {title}\n\n| {name} | " + " | ".join(heads) + " |\n|---|" + "--:|" * len(heads))
    for label, values in rows.items():
        print(f"| {label} | " + " | ".join(f"{value:.4f}" for value in values) + " |", flush=True)


def plot(path: Path, series: Series, across: str, up: str, *, log: bool) -> None:
    """Draw named lines into a file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for mark, (name, (x, y)) in zip("os^DvPX*<>pH" * 2, series.items(), strict=False):
        axes.plot(x, y, marker=mark, markersize=4, label=name)
    if log:
        axes.set_yscale("log")
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right upper", fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def main(arguments: Sequence[str] | None = None) -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description="OPIC: policies, windows, and webs that change.")
    parser.add_argument("--pages", type=int, help="pages of the web; 100,000 by default")
    parser.add_argument("--web", choices=["web", "rmat"], default="web", help="a web of sites, or an R-MAT graph")
    parser.add_argument("--parts", default=",".join(EXPERIMENTS), help="experiments to run; all by default")
    parser.add_argument("--out", type=Path, help="folder for the plots")
    parser.add_argument("--threads", type=int, help="all cores by default")
    parser.add_argument("--quick", action="store_true", help="a small web, in seconds")
    given = parser.parse_args(arguments)
    plan = QUICK if given.quick else Plan()
    plan = replace(plan, pages=given.pages or plan.pages)
    if given.web == "web":
        graph = synthetic_web(replace(PRESETS["web"], pages=plan.pages), rng=RNG, names=False).graph
    else:
        graph = rmat(max(plan.pages - 1, 1).bit_length(), 8, rng=RNG)
    print(f"{graph!r} ({given.web}), damping {DAMPING:g}, uniform jumps")
    truth = pagerank(graph, DAMPING, TOLERANCE).scores
    with ThreadPool(given.threads) as pool:
        chosen = given.parts.split(",")
        first = policies(graph, truth, plan, pool) if "policies" in chosen else {}
        if "first" in chosen:
            first_fetches(plan)
        if "windows" in chosen:
            windows(graph, truth, plan, pool)
        third = changes(graph, plan, pool) if "changes" in chosen else {}
    if given.out is None:
        return
    given.out.mkdir(parents=True, exist_ok=True)
    try:
        if first:
            plot(given.out / "opic-policies.svg", first, "fetches per page", "L1 error", log=True)
        if third:
            plot(given.out / "opic-changes.svg", third, "pages that change per epoch, %", "L1 error", log=False)
    except ImportError:
        print("no plots: matplotlib is not installed; pip install 'surveyor[report]'", file=sys.stderr)


if __name__ == "__main__":
    main()
