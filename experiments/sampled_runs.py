"""Many samples of a topic at equal cost, and the errors of their estimates.

All methods have the same budget of distinct fetches; classifying a page costs a fetch. The first tenth of each walk is
discarded, as in the paper (1,000 of up to 10,000 steps). Runs that end without a sample are counted and excluded, which
favours methods that spend their fetches on the neighbours of a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.topic_webs import TopicWeb
from surveyor.arrays import BoolArray, FloatArray, IntArray
from surveyor.estimate.sampling.compiled_walks import CompiledWalks
from surveyor.estimate.sampling.standard_errors import after_burn_in
from surveyor.estimate.sampling.walk_methods import METHODS, WalkPlan
from surveyor.estimate.sampling.walk_trace import WalkTrace
from surveyor.kernels.thread_pool import ThreadPool

WALKS = 8
BURN_IN = 0.1
MAX_STEPS_PER_FETCH = 60  # a walk that has visited all of a small topic would never end
OURS = tuple(name for name, method in METHODS.items() if method.exact)
PAPERS = tuple(name for name in METHODS if name not in OURS)
SETTINGS = tuple((name, WALKS) for name in (*OURS, *PAPERS)) + tuple((name, 1) for name in PAPERS)
RESAMPLES = 1000
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Runs:
    """Estimates of many runs of one method: one entry per run, NaN for runs without a sample."""

    method: str
    walks: int
    fetches: int
    values: dict[str, FloatArray]
    truth: dict[str, float]
    visited_on_topic: FloatArray  # share of the visited pages that is on topic
    fetched_on_topic: FloatArray  # share of the fetched pages that is on topic
    steps: float  # mean

    @property
    def name(self) -> str:
        """The method and its walks."""
        return self.method if self.walks == WALKS else f"{self.method}, {self.walks} walk"

    @property
    def empty(self) -> int:
        """The number of runs without a sample."""
        return int(np.isnan(self.visited_on_topic).sum())

    def errors(self, name: str) -> FloatArray:
        """Return the errors of the runs with a sample."""
        errors: FloatArray = self.values[name] - self.truth[name]
        return errors[~np.isnan(errors)]

    def bias(self, name: str) -> float:
        """Return the mean error."""
        errors = self.errors(name)
        return float(errors.mean()) if errors.size else float("nan")

    def rmse(self, name: str) -> float:
        """Return the root mean squared error."""
        return _root_mean_square(self.errors(name))


def sample(
    web: TopicWeb, method: str, fetches: int, seed: int, *, walks: int = WALKS, among: BoolArray | None = None
) -> tuple[WalkTrace, BoolArray]:
    """Walk until the budget of fetches is spent; return the trace and the mask of fetched pages."""
    starts = web.starts(walks, np.random.default_rng(1_000 + seed), among)
    compiled = CompiledWalks(web.neighbours, web.topic, starts, WalkPlan(method, rng=seed))
    while not compiled.advance(max(64, 2 * fetches // walks), fetches=fetches):
        if len(compiled.trace()) > MAX_STEPS_PER_FETCH * fetches:
            break
    return compiled.trace(), compiled.fetched


def without_burn_in(trace: WalkTrace) -> WalkTrace:
    """Discard the first tenth of each walk; the rows stay in time order."""
    return trace.rows(np.sort(after_burn_in(trace, BURN_IN)))


def weighted_mean(trace: WalkTrace, values: FloatArray) -> float:
    """Return the weighted mean of page values; NaN if none is known."""
    row_values = values[trace.page]
    weight = np.where(np.isnan(row_values), 0.0, trace.weight)
    return float((weight * np.nan_to_num(row_values)).sum() / weight.sum()) if weight.any() else float("nan")


def run_samples(web: TopicWeb, method: str, walks: int, fetches: int, runs: int, pool: ThreadPool) -> Runs:
    """Take many samples with one method."""
    truth = {name: web.truth(values) for name, values in web.properties.items()}

    def one(seed: int) -> tuple[list[float], float, float, int]:
        trace, fetched = sample(web, method, fetches, seed, walks=walks)
        rest = without_burn_in(trace)
        estimates = [weighted_mean(rest, values) for values in web.properties.values()]
        fetched_share = float(web.topic[fetched].mean())
        if not len(trace):
            visited_share = float("nan")
        elif method.startswith("trial"):  # visits each fetched page, but has rows only for returns to the topic
            visited_share = fetched_share
        else:
            visited_share = float(trace.on_topic.mean())
        return estimates, visited_share, fetched_share, len(trace)

    estimates, visited, fetched, steps = zip(*pool.imap(one, ((seed,) for seed in range(runs))), strict=True)
    by_name = dict(zip(web.properties, np.array(estimates).T, strict=True))
    return Runs(method, walks, fetches, by_name, truth, np.array(visited), np.array(fetched), float(np.mean(steps)))


def best(candidates: Sequence[Runs], name: str) -> Runs:
    """Return the runs with the smallest RMSE, preferably among those of which most have a sample."""
    frequent = [runs for runs in candidates if 2 * runs.errors(name).size >= runs.visited_on_topic.size]
    return min(frequent or [runs for runs in candidates if runs.errors(name).size], key=lambda runs: runs.rmse(name))


def rmse_ratios(ours: Runs, others: Sequence[Runs], name: str) -> FloatArray:
    """Return our RMSE divided by the smallest of theirs, followed by the bootstrap replicates of this ratio."""
    theirs = best(others, name)
    rng = np.random.default_rng(7)
    our_replicates, their_replicates = (
        np.sqrt((errors[rng.integers(errors.size, size=(RESAMPLES, errors.size))] ** 2).mean(axis=1))
        for errors in (ours.errors(name), theirs.errors(name))
    )
    ratio = ours.rmse(name) / max(theirs.rmse(name), TINY)
    return np.array([ratio, *(our_replicates / np.maximum(their_replicates, TINY))])


def geometric_mean(ratios: Iterable[FloatArray]) -> FloatArray:
    """Return the geometric mean of ratios, and of each bootstrap replicate."""
    mean: FloatArray = np.exp(np.mean([np.log(np.maximum(one, TINY)) for one in ratios], axis=0))
    return mean


def bootstrap_interval(ratios: FloatArray) -> tuple[float, float, float]:
    """Return a ratio and its 95 % bootstrap interval."""
    low, high = np.quantile(ratios[1:], (0.025, 0.975))
    return float(ratios[0]), float(low), float(high)


def finite(value: float) -> float | None:
    """Return a finite number, or None, for JSON."""
    return value if np.isfinite(value) else None


def _root_mean_square(errors: FloatArray | IntArray) -> float:
    return float(np.sqrt(np.mean(errors**2))) if errors.size else float("nan")
