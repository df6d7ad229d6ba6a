"""Distributions that samples tell beside the true ones: out-degrees and domains, as in the paper's figures 1 and 2.

Each method samples a topic many times. A table says how often chi-square (after Rao and Scott, at 5 %) takes the sample
for one of another distribution, which should happen to one in twenty, and how far the share of the largest domain is
off, on average over the runs and in how many runs by at most 16 %, the paper's largest deviation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.community_tables import table
from experiments.sampled_runs import PAPERS, finite, later, sample
from experiments.topic_webs import EDGES, TopicWeb
from surveyor.arrays import FloatArray
from surveyor.errors import UsageError
from surveyor.estimate.sampling.goodness_of_fit import goodness_of_fit
from surveyor.kernels.thread_pool import ThreadPool

METHODS = ("trial", "mixture", "hard", *PAPERS)
LEVEL, DEVIATION = 0.05, 0.16


@dataclass(frozen=True, eq=False)
class Fitted:
    """A true distribution, and those that samples of each method tell."""

    web: TopicWeb
    of: str
    names: list[str]
    truth: FloatArray
    shares: dict[str, FloatArray]  # method -> one row a run; no row where there was no sample
    p_values: dict[str, FloatArray]

    def rejected(self, method: str) -> float:
        """Return the share of the runs that chi-square takes for another distribution."""
        p_values = self.p_values[method]
        return float((p_values < LEVEL).mean()) if p_values.size else float("nan")

    def deviations(self, method: str) -> FloatArray:
        """Return by how much the share of the largest category is off, as a part of it."""
        largest = int(np.argmax(self.truth))
        off: FloatArray = np.abs(self.shares[method][:, largest] / self.truth[largest] - 1)
        return off

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "topic": self.web.name, "of": self.of, "names": self.names, "truth": self.truth.tolist(),
            "methods": {
                name: {
                    "mean": shares.mean(axis=0).tolist() if len(shares) else None,
                    "rejected": finite(self.rejected(name)),
                }
                for name, shares in self.shares.items()
            },
        }  # fmt: skip


def fitted(web: TopicWeb, runs: int, pool: ThreadPool) -> list[Fitted]:
    """Sample a topic with each method, and compare distributions."""
    asked = {"out-degree": web.out_degree_bins, "domain": web.labels}
    known = {what: np.unique(labels[web.target], return_counts=True) for what, labels in asked.items()}
    codes = {}
    for what, labels in asked.items():
        names = known[what][0]
        place = np.minimum(np.searchsorted(names, labels), names.size - 1)
        codes[what] = np.where(names[place] == labels, place, np.nan)

    def one(method: str, seed: int) -> dict[str, tuple[FloatArray, float]]:
        trace, told = later(sample(web, method, web.fetches[-1], seed)[0]), {}
        for what, of_page in codes.items():
            of_row, (names, counts) = of_page[trace.page], known[what]
            there = ~np.isnan(of_row)
            weight = np.bincount(of_row[there].astype(np.int64), trace.weight[there], names.size)
            if not weight.any():
                continue
            try:
                p_value = goodness_of_fit(trace, of_row, dict(enumerate(counts.tolist())), burn_in=0.0).p_value
            except UsageError:  # too small a sample for a test
                p_value = float("nan")
            told[what] = weight / weight.sum(), p_value
        return told

    found = {method: list(pool.imap(one, ((method, seed) for seed in range(runs)))) for method in METHODS}
    told = []
    for what, (names, counts) in known.items():
        kept = {method: [each[what] for each in several if what in each] for method, several in found.items()}
        shares = {method: np.array([one for one, _ in several]) for method, several in kept.items()}
        p_values = {method: np.array([p for _, p in several if p == p]) for method, several in kept.items()}
        words = [_bin(int(name)) for name in names] if what == "out-degree" else [str(name) for name in names]
        told.append(Fitted(web, what, words, counts / counts.sum(), shares, p_values))
    return told


def fit_table(found: list[Fitted]) -> str:
    """Tell how well samples fit."""
    rows = []
    for one in found:
        for method, p_values in one.p_values.items():
            if not len(one.shares[method]):
                rows.append([one.web.name, one.of, method, "no sample", "–", "–"])
                continue
            off = one.deviations(method)
            largest = [f"{off.mean():.1%}", f"{(off <= DEVIATION).mean():.0%}"] if one.of == "domain" else ["–", "–"]
            rejected = f"{one.rejected(method):.0%}" if p_values.size else "too few pages"
            rows.append([one.web.name, one.of, method, rejected, *largest])
    header = ["topic", "of", "method", "rejected at 5 %", "largest domain off by", "within 16 %"]
    return table(header, rows, 3)


def _bin(number: int) -> str:
    low, high = EDGES[number], EDGES[number + 1]
    return f"{low:g}" if high == low + 1 else f"{low:g}+" if np.isinf(high) else f"{low:g}–{high - 1:g}"
