"""Quantiles of Student's law (also skewed), chi-square and beta, and tails of chi-square and F; SciPy is not needed."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from surveyor.arrays import FloatArray

SURE = 1e7  # degrees of freedom from which Student's law is the normal one to seven digits
NEAR = 1e-12
EVEN = 1e-6  # skewness that changes nothing in the sixth digit
STEPS = 100_000  # of a series, which needs about the root of its argument


def two_sided(level: float) -> float:
    """Return the normal quantile between whose signs lies so much."""
    return NormalDist().inv_cdf(0.5 + level / 2)


@lru_cache(maxsize=1024)
def student(level: float, freedom: float) -> float:
    """Return the quantile of Student's law between whose signs lies so much.

    >>> round(student(0.95, 3), 3)
    3.182
    """
    if freedom >= SURE:
        return two_sided(level)
    # P(|T| > t) is the share of Beta(ν/2, 1/2) below ν / (ν + t²).
    place = beta_quantile(1 - level, freedom / 2, 0.5)
    return math.sqrt(freedom * (1 - place) / place) if place > 0 else math.inf


def unskewed(quantile: float, skew: float) -> float:
    """Return the quantile of a mean over its standard error, given that of its law without skewness (Hall 1992).

    Hall's T(x) = x + g x²/3 + g² x³/27 + g/6 takes most of a skewness g out of x, a mean over its standard error that
    was estimated from the same rows; this is where T has the given value.

    >>> [round(unskewed(end, 0.3), 2) for end in (-2, 2)]
    [-2.73, 1.66]
    """
    if abs(skew) < EVEN:
        return quantile
    return 3 / skew * (float(np.cbrt(1 + skew * (quantile - skew / 6))) - 1)


@lru_cache(maxsize=4096)
def beta_quantile(chance: float, a: float, b: float) -> float:
    """Return where so much of Beta(a, b) lies below; all of it lies at 0 if a is 0, and at 1 if b is 0."""
    from surveyor.kernels.binomial import beta_share

    if a <= 0 or b <= 0:
        return 0.0 if a <= 0 else 1.0
    return _where(lambda x: beta_share(a, b, x), chance, 0.0, 1.0)


def proportion(share: float, trials: float, level: float) -> tuple[float, float]:
    """Return Clopper and Pearson's interval of a share of so many trials, which need not be a whole number."""
    hits, tail = share * trials, (1 - level) / 2
    low, high = beta_quantile(tail, hits, trials - hits + 1), beta_quantile(1 - tail, hits + 1, trials - hits)
    return min(low, share), max(high, share)  # a share that is 1 but for rounding lies within, too


def wilson(share: float, trials: float, level: float) -> tuple[float, float]:
    """Return Wilson's interval of a share of so many trials.

    >>> [round(bound, 3) for bound in wilson(0.8, 10, 0.95)]
    [0.49, 0.943]
    """
    z = two_sided(level)
    square = z * z / trials
    middle, half = share + square / 2, z * math.sqrt(share * (1 - share) / trials + square / trials / 4)
    low, high = (middle - half) / (1 + square), (middle + half) / (1 + square)
    return max(0.0, min(low, share)), min(1.0, max(high, share))


def poisson(count: float, level: float) -> tuple[float, float]:
    """Return Garwood's interval of what is expected where so many were counted, which need not be a whole number."""
    tail = (1 - level) / 2
    low = chi_square_quantile(tail, 2 * count) / 2 if count > 0 else 0.0
    return low, chi_square_quantile(1 - tail, 2 * (count + 1)) / 2


def chi_square_quantile(chance: float, freedom: float) -> float:
    """Return where so much of chi-square lies below."""
    most = 1.0
    while 1 - chi_square_tail(most, freedom) < chance:
        most *= 2
    return _where(lambda x: 1 - chi_square_tail(x, freedom), chance, 0.0, most)


def chi_square_tail(x: float, freedom: float) -> float:
    """Return the chance that chi-square is larger.

    >>> round(chi_square_tail(3.841459, 1), 6)
    0.05
    """
    a, x = freedom / 2, x / 2
    if x <= 0:
        return 1.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        for k in range(1, STEPS):
            term *= x / (a + k)
            total += term
            if term < total * 1e-16:
                break
        return max(0.0, 1 - front * total)
    return front * _upper(a, x)


def f_tail(x: float, freedom: float, below: float) -> float:
    """Return the chance that a ratio of Fisher's law, with such degrees of freedom above and below, is larger."""
    from surveyor.kernels.binomial import beta_share

    if x <= 0:
        return 1.0
    if below >= SURE:
        return chi_square_tail(x * freedom, freedom)
    return float(beta_share(below / 2, freedom / 2, below / (below + freedom * x)))


def normal_scores(values: FloatArray) -> FloatArray:
    """Return the normal quantile at the rank of each value, equal values at their mean rank (Blom's places)."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return normal_quantiles((ranks - 0.375) / (values.size + 0.25))[inverse]


def normal_quantiles(chances: FloatArray) -> FloatArray:
    """Return the normal quantile of each chance, to nine digits (Acklam's rational approximations)."""
    near = np.minimum(chances, 1 - chances)
    tail = near < 0.02425
    q = np.where(tail, 0.0, chances - 0.5)
    r = q * q
    middle = q * np.polyval(_MIDDLE, r) / np.polyval((*_MIDDLE_BELOW, 1.0), r)
    far = np.sqrt(-2 * np.log(np.where(tail, near, 0.01)))
    outer = np.polyval(_TAIL, far) / np.polyval((*_TAIL_BELOW, 1.0), far)
    return np.where(tail, np.where(chances < 0.5, outer, -outer), middle)


_MIDDLE = (-3.969683028665376e01, 2.209460984245205e02, -2.759285104469687e02, 1.383577518672690e02,
           -3.066479806614716e01, 2.506628277459239e00)  # fmt: skip
_MIDDLE_BELOW = (-5.447609879822406e01, 1.615858368580409e02, -1.556989798598866e02, 6.680131188771972e01,
                 -1.328068155288572e01)  # fmt: skip
_TAIL = (-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e00, -2.549732539343734e00,
         4.374664141464968e00, 2.938163982698783e00)  # fmt: skip
_TAIL_BELOW = (7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e00, 3.754408661907416e00)


def _upper(a: float, x: float) -> float:
    """Evaluate the continued fraction of the upper incomplete gamma function by Lentz's method."""
    tiny = 1e-300
    b = x + 1 - a
    c, d = 1 / tiny, 1 / b
    value = d
    for k in range(1, STEPS):
        part, b = -k * (k - a), b + 2
        d = part * d + b
        c = b + part / c
        d = 1 / (d if abs(d) > tiny else tiny)
        c = c if abs(c) > tiny else tiny
        value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value


def _where(rising: Callable[[float], float], chance: float, low: float, high: float) -> float:
    """Find by bisection where a rising function gets to a chance."""
    while high - low > NEAR * high and high > 1e-300:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if rising(middle) < chance else (low, middle)
    return (low + high) / 2
