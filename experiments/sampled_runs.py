"""Many samples of a topic at equal cost, and how far what they tell is from the truth.

All methods get the same number of unique fetches; to judge a page costs a fetch. The first tenth of each walk is
discarded, as in the paper (1,000 of up to 10,000 steps). A run that ends before it has a sample is counted and left
out, which flatters methods that spend their fetches on the neighbours of a page.
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
DISCARDED = 0.1
MOST = 60  # steps for each fetch: a walk that has seen all of a small topic would never end
OURS = tuple(name for name, method in METHODS.items() if method.exact)
PAPERS = tuple(name for name in METHODS if name not in OURS)
SETTINGS = tuple((name, WALKS) for name in (*OURS, *PAPERS)) + tuple((name, 1) for name in PAPERS)
RESAMPLES = 1000
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Runs:
    """What runs of one method came to: one entry each, NaN where there was no sample."""

    method: str
    walks: int
    fetches: int
    values: dict[str, FloatArray]
    truth: dict[str, float]
    stood: FloatArray  # share of the pages that the walks stood on that is on topic
    fetched: FloatArray  # share of the fetched pages that is on topic
    steps: float  # on average

    @property
    def name(self) -> str:
        """The method and its walks."""
        return self.method if self.walks == WALKS else f"{self.method}, {self.walks} walk"

    @property
    def empty(self) -> int:
        """How many runs had no sample."""
        return int(np.isnan(self.stood).sum())

    def errors(self, what: str) -> FloatArray:
        """Return the errors of the runs that had a sample."""
        errors: FloatArray = self.values[what] - self.truth[what]
        return errors[~np.isnan(errors)]

    def bias(self, what: str) -> float:
        """Return the mean error."""
        errors = self.errors(what)
        return float(errors.mean()) if errors.size else float("nan")

    def rmse(self, what: str) -> float:
        """Return the root of the mean squared error."""
        return _root(self.errors(what))


def sample(
    web: TopicWeb, method: str, fetches: int, seed: int, *, walks: int = WALKS, among: BoolArray | None = None
) -> tuple[WalkTrace, BoolArray]:
    """Walk until so many pages were fetched; return the steps and which pages those were."""
    starts = web.starts(walks, np.random.default_rng(1_000 + seed), among)
    going = CompiledWalks(web.neighbours, web.topic, starts, WalkPlan(method, rng=seed))
    while not going.advance(max(64, 2 * fetches // walks), fetches=fetches):
        if len(going.trace()) > MOST * fetches:
            break
    return going.trace(), going.fetched


def later(trace: WalkTrace) -> WalkTrace:
    """Return the steps of a trace without the first tenth of each walk, in the order of time."""
    return trace.rows(np.sort(after_burn_in(trace, DISCARDED)))


def estimate(trace: WalkTrace, values: FloatArray) -> float:
    """Return the weighted mean of what pages have; NaN if there is none."""
    of_row = values[trace.page]
    weight = np.where(np.isnan(of_row), 0.0, trace.weight)
    return float((weight * np.nan_to_num(of_row)).sum() / weight.sum()) if weight.any() else float("nan")


def measured(web: TopicWeb, method: str, walks: int, fetches: int, runs: int, pool: ThreadPool) -> Runs:
    """Sample many times."""
    numbers, truth = web.numbers, {name: web.truth(values) for name, values in web.numbers.items()}

    def one(seed: int) -> tuple[list[float], float, float, int]:
        trace, fetched = sample(web, method, fetches, seed, walks=walks)
        rest = later(trace)
        told = [estimate(rest, values) for values in numbers.values()]
        share = float(web.topic[fetched].mean())
        # A wandering walk stands on each page that it fetches; rows are its returns to the topic only.
        stood = share if method.startswith("trial") else float(trace.on_topic.mean()) if len(trace) else float("nan")
        return told, stood if len(trace) else float("nan"), share, len(trace)

    found = list(pool.imap(one, ((seed,) for seed in range(runs))))
    table = np.array([told for told, *_ in found])
    return Runs(
        method, walks, fetches, dict(zip(numbers, table.T, strict=True)), truth, np.array([one[1] for one in found]),
        np.array([one[2] for one in found]), float(np.mean([one[3] for one in found])),
    )  # fmt: skip


def best(several: Sequence[Runs], what: str) -> Runs:
    """Return the runs with the least RMSE among those of which most had a sample, if there are such."""
    most = [one for one in several if 2 * one.errors(what).size >= one.stood.size]
    return min(most or [one for one in several if one.errors(what).size], key=lambda one: one.rmse(what))


def ratio(ours: Runs, others: Sequence[Runs], what: str) -> FloatArray:
    """Return our RMSE as a part of the least of theirs, then the same for runs drawn anew."""
    theirs = best(others, what)
    first, second = ours.errors(what), theirs.errors(what)
    rng = np.random.default_rng(7)
    ours_anew, theirs_anew = (
        np.sqrt((each[rng.integers(each.size, size=(RESAMPLES, each.size))] ** 2).mean(axis=1))
        for each in (first, second)
    )
    value = ours.rmse(what) / max(theirs.rmse(what), TINY)
    return np.array([value, *(ours_anew / np.maximum(theirs_anew, TINY))])


def together(ratios: Iterable[FloatArray]) -> FloatArray:
    """Return the geometric mean of ratios, then those for runs drawn anew."""
    mean: FloatArray = np.exp(np.mean([np.log(np.maximum(one, TINY)) for one in ratios], axis=0))
    return mean


def interval(ratios: FloatArray) -> tuple[float, float, float]:
    """Return a ratio and its 95 % interval."""
    low, high = np.quantile(ratios[1:], (0.025, 0.975))
    return float(ratios[0]), float(low), float(high)


def finite(value: float) -> float | None:
    """Return a number as JSON has it."""
    return value if np.isfinite(value) else None


def _root(errors: FloatArray | IntArray) -> float:
    return float(np.sqrt(np.mean(errors**2))) if errors.size else float("nan")
