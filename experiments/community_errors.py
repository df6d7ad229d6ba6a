"""Errors of the estimated ranks of a local domain while pages around it are fetched.

A local domain of n pages is expanded by 4 % of n in each of fifty rounds; its ranks are estimated before the first
round and after n/4, n and 2n extra pages (at the nearest end of a round; if the frontier is exhausted earlier, the
last estimate is used). A run is one selector and one random seed, which breaks ties.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from experiments.chosen_domains import DAMPING, Web
from experiments.local_domains import Domain
from surveyor.arrays import FloatArray, IdArray, IntArray
from surveyor.estimate.community.estimators import Method, estimate
from surveyor.estimate.community.known_graph import ExpansionPlan, Round, expand, rows_of
from surveyor.kernels.crawled_graph import CrawledGraph
from surveyor.kernels.crawled_graph import build_crawled_graph as known_of
from surveyor.rank.comparison import kendall_a, l1, l_inf
from surveyor.rank.expansion import Expansion, Select

SELECTORS: tuple[Select, ...] = ("complement", "flow", "cho", "outlinks", "random")
ESTIMATORS = ("crawled", "frontier", "auto")  # that of the paper first
SHARES = (0.0, 0.1, 0.3, 1.0)  # of the pages that link to local ones
AT = (0.0, 0.25, 1.0, 2.0)  # extra pages, as multiples of the local pages
CURVE = (0, 1, 3, 6, 10, 15, 20, 25, 30, 35, 40, 45, 50)  # rounds whose error is plotted
EXACT = 1e-9  # L1 error of the solver, far below the measured errors
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)  # 97.5 % quantiles, 1 degree of freedom up


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of an estimate."""

    l1: float
    l_inf: float
    kendall: float | None  # tau-a


@dataclass(frozen=True, slots=True)
class Run:
    """The errors of one selector with one random seed."""

    select: Select
    seed: int
    extra: int  # pages requested around the domain in total
    seconds: float  # without measurements
    at: Mapping[str, Sequence[Errors]]  # by estimator: after each of `AT`
    curve: Mapping[str, Sequence[tuple[float, float]]]  # by estimator: extra pages / local pages, and L1

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values."""
        at = {name: [[one.l1, one.l_inf, one.kendall] for one in found] for name, found in self.at.items()}
        curve = {name: [list(point) for point in found] for name, found in self.curve.items()}
        plain = {name: getattr(self, name) for name in ("select", "seed", "extra", "seconds")}
        return {**plain, "at": at, "curve": curve}


class _Watch:
    """Records the errors at the ends of selected rounds."""

    def __init__(self, web: Web, domain: Domain, full: Iterable[int], drawn: Iterable[int]) -> None:
        self.local, self.truth = domain.pages, web.truth(domain)
        self.batch_of = np.full(web.graph.pages, -1, np.int64)  # by id: the round in which a page was fetched
        self.full, self.drawn = set(full), set(drawn)  # rounds
        self.number = -1
        self.spent = 0.0  # seconds of measuring
        self.errors: dict[str, dict[int, Errors]] = {}
        self.curve: dict[str, dict[float, float]] = {}

    def __call__(self, _expansion: Expansion, known: CrawledGraph, _now: Round) -> None:
        began = time.perf_counter()
        self.number += 1
        self.batch_of[known.pages[self.batch_of[known.pages] < 0]] = self.number
        if self.number in self.full or self.number in self.drawn:
            self.measure(known)
        self.spent += time.perf_counter() - began

    def measure(self, known: CrawledGraph) -> None:
        """Estimate the ranks from the known links; record the errors."""
        places = np.searchsorted(known.pages, self.local).astype(np.int32)
        for name, scores in estimates(known, places, self.batch_of[known.pages]).items():
            tau = kendall_a(scores, self.truth) if self.number in self.full else None
            found = Errors(l1(scores, self.truth), l_inf(scores, self.truth), tau)
            self.errors.setdefault(name, {})[self.number] = found
            self.curve.setdefault(name, {})[known.pages.size / places.size - 1] = found.l1


def run(web: Web, domain: Domain, select: Select, seed: int, draws: bool = False) -> Run:  # noqa: FBT001, FBT002  # a pool passes it by place
    """Expand a local domain and measure the errors; with `draws`, more often."""
    local = domain.pages.size
    plan = ExpansionPlan(extra=int(AT[-1] * local), select=select, damping=DAMPING, seed=seed)
    last = -(-plan.extra // plan.batch_size(local))
    ends = [min(round(at * local / plan.batch_size(local)), last) for at in AT]
    watch = _Watch(web, domain, ends, CURVE if draws else ())
    began = time.perf_counter()
    expanded = expand(web.graph, domain.pages, plan, watch=watch)
    seconds = time.perf_counter() - began - watch.spent
    if watch.number < last:  # the frontier was exhausted
        watch.full.add(watch.number)
        watch.measure(expanded.known)
    at = {name: tuple(found[min(end, watch.number)] for end in ends) for name, found in watch.errors.items()}
    curve = {name: tuple(points.items()) for name, points in watch.curve.items()} if draws else {}
    return Run(select, seed, expanded.extra.size, seconds, at, curve)


def estimates(known: CrawledGraph, local: IdArray, batch_of: IntArray) -> dict[str, FloatArray]:
    """Return each estimate of the ranks of the local pages, summing to 1."""
    methods: tuple[Method, ...] = get_args(Method)
    return {
        method: estimate(known, local, batch_of, method, damping=DAMPING, tolerance=EXACT).scores
        for method in sorted(methods, key=ESTIMATORS.index)
    }


def back_links(web: Web, domain: Domain, seed: int) -> dict[str, list[tuple[float, float]]]:
    """Return L1, for each estimator, if shares of the pages that link to local ones are known by back-links.

    For each of `SHARES`: with no extra page, and with n extra pages selected by stochastic complementation.
    """
    graph, local, truth = web.graph, domain.pages, web.truth(domain)
    into, rows = graph.in_links, rows_of(graph)
    outside = np.unique(np.concatenate([into.indices[into.indptr[page] : into.indptr[page + 1]] for page in local]))
    linking = np.random.default_rng(seed).permutation(np.setdiff1d(outside, local))
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ESTIMATORS}
    grown = [expand(graph, local, ExpansionPlan(extra, damping=DAMPING, seed=seed)) for extra in (0, local.size)]
    for share in SHARES:
        given, errors = linking[: round(share * linking.size)], dict[str, list[float]]()
        for one in grown:
            pages = np.union1d(one.known.pages, given).astype(np.int32)
            batch_of = np.zeros(pages.size, np.int64)
            batch_of[np.searchsorted(pages, one.known.pages)] = one.batch_of
            known = known_of(rows, pages)
            for name, scores in estimates(known, np.searchsorted(pages, local).astype(np.int32), batch_of).items():
                errors.setdefault(name, []).append(l1(scores, truth))
        for name, (before, after) in errors.items():
            found[name].append((before, after))
    return found


def mean(values: Iterable[float]) -> tuple[float, float]:
    """Return the mean and the half-width of Student's 95 % interval; nan for a single value.

    >>> [round(number, 4) for number in mean([1.0, 2.0, 3.0])]
    [2.0, 2.4843]
    """
    kept = list(values)
    if len(kept) < 2:
        return (kept[0] if kept else math.nan), math.nan
    student = STUDENT[min(len(kept) - 2, len(STUDENT) - 1)]
    return statistics.fmean(kept), student * statistics.stdev(kept) / math.sqrt(len(kept))


def ratio(pairs: Sequence[tuple[float, float]], draws: int = 10_000) -> tuple[float, float, float]:
    """Return Σ first / Σ second and its bootstrap 95 % interval over pairs."""
    values = np.array(pairs).reshape(-1, 2)
    drawn = values[np.random.default_rng(7).integers(0, len(values), (draws, len(values)))].sum(axis=1)
    shares = drawn[:, 0] / drawn[:, 1]
    first, second = values.sum(axis=0)
    return float(first / second), float(np.quantile(shares, 0.025)), float(np.quantile(shares, 0.975))
