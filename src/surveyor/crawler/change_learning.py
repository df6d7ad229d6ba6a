"""Change rates of all pages and the reliability of signals, learned from the histories of visits.

`kernels/change_history.py` has the model. Three things are estimated:

1. The *prior*: the distribution of rates over pages, on a grid, by expectation maximisation with smoothing from up to
   SAMPLE pages. Pages with a source of signals have a log-normal prior of their own, on their rate divided by the rate
   of their signals: it is narrow if changes are announced, and wide if signals are noise. The prior is what a page
   without visits is assumed to be, and it holds estimates of pages with few visits near the others (empirical Bayes).
2. The *precision* of the signals of each source: the value of largest marginal likelihood, the unknown rates of the
   pages integrated out. Sources with few checked signals are held near the average of all. Its interval are the
   values whose log-likelihood is within 1.92 of the largest.
3. The *posterior* of the rate of each page, from which its estimate (the mean of the logarithm) and 95 % interval are.

The rate at which a page gets signals is counted, with half a signal more at the mean rate of all.
Changes that were announced are (signals × precision); the change rate of a page is the sum of both kinds of changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from surveyor.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from surveyor.kernels.change_history import History

SAMPLE = 2048  # pages from which priors and precisions are estimated
ROUNDS = 40  # of expectation maximisation
SMOOTH = 0.05  # weight of each neighbour on the grid
NARROWEST = 0.4  # standard deviation of a log-normal prior, in doublings
SHARED = 4.0  # weight of the first prior in pages, and of the average precision in signals
TYPICAL = 1 / (14 * 86400.0)  # the first prior: one change in two weeks,
SPREAD = 3.0  # with a standard deviation of this many doublings
PRECISIONS = np.concatenate([[1e-3, 0.01, 0.03], np.arange(0.1, 0.96, 0.05), [0.98, 0.995]])
LEAST_PRECISION = 0.2  # signals of sources below it do not make a page due
COUNTED = 0.5  # signals at the mean rate that are added to those of a page
UNIT = 2.0**16  # of the rates of pages with a source, as a multiple of its rate of signals: 1 is the middle of the grid
MISSED = 0.02  # the least share of changes that is assumed to be unannounced
LIKELY = 1.92  # half the 95 % point of chi-square with one degree of freedom


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SignalQuality:
    """How reliable change signals were."""

    precision: Estimate  # share of the signals that announced a change
    checked: float  # signals that a later visit checked; older ones count less


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """What is known about the changes of each page; rates are per second."""

    missed: FloatArray  # rate of changes without a signal
    error: FloatArray  # standard error of its logarithm
    missed_low: FloatArray
    missed_high: FloatArray
    signals: FloatArray  # rate of signals; 0 without a source
    precision: FloatArray  # of the source of the page; 0 without one
    counting: FloatArray  # half the 95 % interval of the change rate that is due to the counted signals
    quality: SignalQuality

    @property
    def rate(self) -> FloatArray:
        """The change rates."""
        return self.missed + self.precision * self.signals

    @property
    def low(self) -> FloatArray:
        """Lower ends of 95 % intervals of the change rates."""
        return np.maximum(self.rate - np.hypot(self.missed - self.missed_low, self.counting), 0.0)

    @property
    def high(self) -> FloatArray:
        """Upper ends."""
        return np.asarray(self.rate + np.hypot(self.missed_high - self.missed, self.counting))


def learn(history: History, now: float) -> Learned:
    """Estimate everything from the histories."""
    from surveyor.kernels.change_history import posteriors

    pages = history.last.size
    source, sources = history.source, int(history.source.max(initial=-1)) + 1
    checked = history.quiet + (history.finds * history.announced).sum(axis=1)
    signals = _signal_rates(history, now)
    unit = np.where(source >= 0, signals * UNIT, 1.0)
    prior = np.vstack([first_prior(TYPICAL), first_prior(1 / UNIT)])
    precision = np.full(sources + 1, 0.5)  # the last entry: pages without a source
    precision[-1] = 0.0
    samples = [_sample(np.flatnonzero((history.visits > 0) & kind)) for kind in (source < 0, source >= 0)]
    prior[0] = fit_prior(history, samples[0], np.zeros(samples[0].size), unit, prior[0])
    pooled = Estimate(0.5, 0.0, 1.0)
    first = prior[1]
    for _ in range(2 if sources else 0):
        prior[1] = fit_prior(history, samples[1], _evidence(precision)[source[samples[1]]], unit, first, normal=True)
        asked = _sample(np.flatnonzero((checked > 0) & (source >= 0)))
        if not asked.size:
            break
        precision[:-1], pooled = fit_precisions(history, asked, prior[1], unit, checked)
    result, everything = np.empty((pages, 4)), np.arange(pages)
    posteriors(history, everything, _evidence(precision)[source], unit, np.log(prior), result)
    missed = np.exp(result[:, 0])
    announced = precision[source] * signals
    spread = np.sqrt(1 / (history.signals + COUNTED)) * (precision[source] > 0)
    missed = np.maximum(missed, MISSED * announced)
    return Learned(
        missed,
        result[:, 1],
        np.minimum(np.exp(result[:, 2]), missed),
        np.maximum(np.exp(result[:, 3]), missed),
        signals,
        precision[source],
        1.96 * (missed + announced) * spread,  # the rate of missed changes is held near that of signals, too
        SignalQuality(pooled, float(checked.sum())),
    )


def first_prior(usual: float) -> FloatArray:
    """Return the weights of the grid before any visit."""
    from surveyor.kernels.change_history import FIRST, GRID

    doublings = FIRST + np.arange(GRID) - np.log2(usual)
    weights: FloatArray = np.exp(-0.5 * (doublings / SPREAD) ** 2)
    return weights / float(weights.sum())


def fit_prior(
    history: History, pages: IntArray, b: FloatArray, unit: FloatArray, first: FloatArray, *, normal: bool = False
) -> FloatArray:
    """Return the distribution of the rates of pages on the grid: any smooth one, or a log-normal one."""
    from surveyor.kernels.change_history import GRID, log_likelihoods

    if not pages.size:
        return first
    found = np.empty((pages.size, GRID))
    log_likelihoods(history, pages, b, unit[pages], found)
    likelihood, grid = np.exp(found - found.max(axis=1, keepdims=True)), np.arange(GRID)
    weights = first
    for _ in range(2 * ROUNDS if normal else ROUNDS):
        weights = weights * ((1 / np.maximum(likelihood @ weights, 1e-300)) @ likelihood)
        weights = (weights + SHARED * first) / (pages.size + SHARED)
        if normal:
            mean = float(weights @ grid) / float(weights.sum())
            spread = max(float(weights @ (grid - mean) ** 2) / float(weights.sum()), NARROWEST**2)
            weights = np.exp(-((grid - mean) ** 2) / (2 * spread)) + 1e-12
        else:
            padded = np.pad(weights, 1, mode="edge")
            weights = SMOOTH * (padded[:-2] + padded[2:]) + (1 - 2 * SMOOTH) * weights
        weights /= weights.sum()
    return weights


def fit_precisions(
    history: History, pages: IntArray, prior: FloatArray, unit: FloatArray, checked: FloatArray
) -> tuple[FloatArray, Estimate]:
    """Return the precision of each source and that of all signals together."""
    from surveyor.kernels.change_history import signal_evidence

    found = np.empty((pages.size, PRECISIONS.size))
    signal_evidence(history, pages, unit[pages], np.log(prior), PRECISIONS, found)
    source = history.source[pages]
    sources = int(history.source.max()) + 1
    total = found.sum(axis=0)
    curves = np.zeros((sources, PRECISIONS.size))
    np.add.at(curves, source, found)
    curves += total * (SHARED / max(float(checked[pages].sum()), SHARED))
    best = np.array([_peak(curve).value for curve in curves])
    return best, _peak(total)


def _peak(curve: FloatArray) -> Estimate:
    """Return where a log-likelihood is largest, and the interval where it is close to that."""
    fine = np.linspace(PRECISIONS[0], PRECISIONS[-1], 997)
    between = np.interp(fine, PRECISIONS, curve)
    top = int(curve.argmax())
    value = float(PRECISIONS[top])
    if 0 < top < curve.size - 1:
        x, y = PRECISIONS[top - 1 : top + 2], curve[top - 1 : top + 2]
        left, right = (y[1] - y[0]) / (x[1] - x[0]), (y[2] - y[1]) / (x[2] - x[1])
        bend = (right - left) / (x[2] - x[0])
        if bend < 0:
            value = float(np.clip((x[0] + x[1]) / 2 - left / (2 * bend), x[0], x[2]))
    near = fine[between >= curve.max() - LIKELY]
    low, high = (float(near[0]), float(near[-1])) if near.size else (value, value)
    return Estimate(value, min(low if low > fine[0] else 0.0, value), max(high if high < fine[-1] else 1.0, value))


def _signal_rates(history: History, now: float) -> FloatArray:
    """Return the rate of signals of each page, held near the mean of all where few were counted."""
    listed = history.source >= 0
    span = np.where(listed, np.maximum(now - np.where(listed, history.covered, 0.0), 0.0), 0.0)
    mean = (float(history.signals[listed].sum()) + 0.5) / (float(span.sum()) + 0.5 / TYPICAL)
    rates: FloatArray = np.where(listed, (history.signals + COUNTED) / (span + COUNTED / mean), 0.0)
    return rates


def _evidence(precision: FloatArray) -> FloatArray:
    """Return b for each source; the last entry is for pages without one."""
    return -np.log1p(-precision)


def _sample(pages: IntArray) -> IntArray:
    """Return at most SAMPLE of the pages, evenly spaced."""
    if pages.size <= SAMPLE:
        return pages
    return pages[np.linspace(0, pages.size - 1, SAMPLE).astype(np.int64)]
