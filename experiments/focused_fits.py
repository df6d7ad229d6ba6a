"""Sampled distributions of out-degrees and domains next to the true ones, as in the paper's figures 1 and 2.

Each method samples a topic many times. A table gives the share of samples that the chi-square test (Rao and Scott, at
5 %) rejects, which should be one in twenty, and the relative error of the share of the largest domain: its mean over
the runs, and the share of runs with at most 16 %, the largest deviation in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.community_tables import table
from experiments.sampled_runs import PAPERS, finite, sample, without_burn_in
from experiments.topic_webs import OUT_DEGREE_EDGES, TopicWeb
from surveyor.arrays import FloatArray
from surveyor.errors import UsageError
from surveyor.estimate.sampling.goodness_of_fit import goodness_of_fit
from surveyor.kernels.thread_pool import ThreadPool

METHODS = ("trial", "mixture", "hard", *PAPERS)
LEVEL, PAPER_DEVIATION = 0.05, 0.16


@dataclass(frozen=True, eq=False)
class DistributionFits:
    """A true distribution, and the sampled distributions of each method."""

    web: TopicWeb
    of: str
    names: list[str]
    truth: FloatArray
    shares: dict[str, FloatArray]  # by method, one row per run with a sample
    p_values: dict[str, FloatArray]

    def rejected(self, method: str) -> float:
        """Return the share of runs that the test rejects."""
        p_values = self.p_values[method]
        return float((p_values < LEVEL).mean()) if p_values.size else float("nan")

    def deviations(self, method: str) -> FloatArray:
        """Return the relative errors of the share of the largest category."""
        largest = int(np.argmax(self.truth))
        deviations: FloatArray = np.abs(self.shares[method][:, largest] / self.truth[largest] - 1)
        return deviations

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        methods = {
            name: {
                "mean": shares.mean(axis=0).tolist() if len(shares) else None,
                "rejected": finite(self.rejected(name)),
            }
            for name, shares in self.shares.items()
        }
        about = {"topic": self.web.name, "of": self.of, "names": self.names, "truth": self.truth.tolist()}
        return {**about, "methods": methods}


def fit_distributions(web: TopicWeb, runs: int, pool: ThreadPool) -> list[DistributionFits]:
    """Sample a topic with each method, and compare the distributions."""
    labels_of = {"out-degree": web.out_degree_bins, "domain": web.labels}
    known = {what: np.unique(labels[web.target], return_counts=True) for what, labels in labels_of.items()}
    codes = {}
    for what, labels in labels_of.items():
        names = known[what][0]
        index = np.minimum(np.searchsorted(names, labels), names.size - 1)
        codes[what] = np.where(names[index] == labels, index, np.nan)

    def one(method: str, seed: int) -> dict[str, tuple[FloatArray, float]]:
        trace, results = without_burn_in(sample(web, method, web.fetches[-1], seed)[0]), {}
        for what, page_codes in codes.items():
            row_codes, (names, counts) = page_codes[trace.page], known[what]
            valid = ~np.isnan(row_codes)
            weight = np.bincount(row_codes[valid].astype(np.int64), trace.weight[valid], names.size)
            if not weight.any():
                continue
            try:
                expected = dict(enumerate(counts.tolist()))
                p_value = goodness_of_fit(trace, row_codes, expected, burn_in=0.0).p_value
            except UsageError:  # the sample is too small for a test
                p_value = float("nan")
            results[what] = weight / weight.sum(), p_value
        return results

    results = {method: list(pool.imap(one, ((method, seed) for seed in range(runs)))) for method in METHODS}
    fits = []
    for what, (names, counts) in known.items():
        pairs = {method: [each[what] for each in several if what in each] for method, several in results.items()}
        shares = {method: np.array([share for share, _ in several]) for method, several in pairs.items()}
        p_values = {method: np.array([p for _, p in several if p == p]) for method, several in pairs.items()}
        titles = [_bin_name(int(name)) for name in names] if what == "out-degree" else [str(name) for name in names]
        fits.append(DistributionFits(web, what, titles, counts / counts.sum(), shares, p_values))
    return fits


def fit_table(fits: list[DistributionFits]) -> str:
    """Return a table of rejections and deviations."""
    rows = []
    for fit in fits:
        for method, p_values in fit.p_values.items():
            if not len(fit.shares[method]):
                rows.append([fit.web.name, fit.of, method, "no sample", "–", "–"])
                continue
            errors = fit.deviations(method)
            largest = ["–", "–"]
            if fit.of == "domain":
                largest = [f"{errors.mean():.1%}", f"{(errors <= PAPER_DEVIATION).mean():.0%}"]
            rejected = f"{fit.rejected(method):.0%}" if p_values.size else "too few pages"
            rows.append([fit.web.name, fit.of, method, rejected, *largest])
    header = ["topic", "of", "method", "rejected at 5 %", "error of the largest domain", "within 16 %"]
    return table(header, rows, 3)


def _bin_name(number: int) -> str:
    low, high = OUT_DEGREE_EDGES[number], OUT_DEGREE_EDGES[number + 1]
    return f"{low:g}" if high == low + 1 else f"{low:g}+" if np.isinf(high) else f"{low:g}–{high - 1:g}"
