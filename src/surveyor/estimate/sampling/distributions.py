"""Quantiles, tail probabilities and confidence intervals of standard distributions, without SciPy.

Covers the normal, Student t, chi-square, F and beta distributions, Hall's transformation for skewed means, and the
Clopper-Pearson, Wilson and Garwood intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from surveyor.arrays import FloatArray

NORMAL_FROM_DF = 1e7  # degrees of freedom from which t equals normal to seven digits
RELATIVE_TOLERANCE = 1e-12  # of quantiles found by bisection
NEGLIGIBLE_SKEWNESS = 1e-6  # changes nothing in the sixth digit
MAX_TERMS = 100_000  # of a series or continued fraction, which needs about the square root of its argument


def normal_two_sided(level: float) -> float:
    """Return z such that a standard normal variable lies in [-z, z] with probability `level`."""
    return NormalDist().inv_cdf(0.5 + level / 2)


@lru_cache(maxsize=1024)
def student_two_sided(level: float, df: float) -> float:
    """Return t such that a Student t variable with `df` degrees of freedom lies in [-t, t] with probability `level`.

    >>> round(student_two_sided(0.95, 3), 3)
    3.182
    """
    if df >= NORMAL_FROM_DF:
        return normal_two_sided(level)
    # P(|T| > t) = P(Beta(df/2, 1/2) < df / (df + t²)).
    x = beta_quantile(1 - level, df / 2, 0.5)
    return math.sqrt(df * (1 - x) / x) if x > 0 else math.inf


def hall_quantile(quantile: float, skewness: float) -> float:
    """Return the quantile of a studentised mean with skewness, given the quantile without skewness (Hall 1992).

    Hall's transformation T(x) = x + g x²/3 + g² x³/27 + g/6 removes most of the skewness g of a mean divided by a
    standard error that was estimated from the same data. This is its inverse.

    >>> [round(hall_quantile(end, 0.3), 2) for end in (-2, 2)]
    [-2.73, 1.66]
    """
    if abs(skewness) < NEGLIGIBLE_SKEWNESS:
        return quantile
    return 3 / skewness * (float(np.cbrt(1 + skewness * (quantile - skewness / 6))) - 1)


@lru_cache(maxsize=4096)
def beta_quantile(probability: float, a: float, b: float) -> float:
    """Return a quantile of Beta(a, b), which is a point mass at 0 if a is 0, and at 1 if b is 0."""
    from surveyor.kernels.binomial import regularized_beta

    if a <= 0 or b <= 0:
        return 0.0 if a <= 0 else 1.0
    return _bisect(lambda x: regularized_beta(a, b, x), probability, 0.0, 1.0)


def clopper_pearson(share: float, trials: float, level: float) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of a proportion; `trials` may be fractional."""
    successes, tail = share * trials, (1 - level) / 2
    low = beta_quantile(tail, successes, trials - successes + 1)
    high = beta_quantile(1 - tail, successes + 1, trials - successes)
    return min(low, share), max(high, share)  # contains a share that equals 1 up to rounding


def difference_interval(one: tuple[float, float, float], other: tuple[float, float, float]) -> tuple[float, float]:
    """Return the interval of the difference of the shares of two classes of the same pages.

    Each is given as its value, low and high. The distances from the values to the ends are added as variances are, with
    the correlation of multinomial counts (Zou and Donner 2008). If neither class was drawn, both may still exist.

    >>> [round(end, 3) for end in difference_interval((0.0, 0.0, 0.01), (0.0, 0.0, 0.01))]
    [-0.01, 0.01]
    """
    (p, low, high), (q, least, most) = one, other
    odds = p * q / ((1 - p) * (1 - q)) if p < 1 and q < 1 else 1.0
    correlation = -math.sqrt(min(odds, 1.0))

    def length(a: float, b: float) -> float:
        return math.sqrt(a * a + b * b - 2 * correlation * a * b)

    return p - q - length(p - low, most - q), p - q + length(high - p, q - least)


@lru_cache(maxsize=4096)
def hypergeometric_interval(found: int, draws: int, population: int, level: float) -> tuple[int, int]:
    """Return how many of a population have a property, if `found` of so many draws without replacement have it.

    Both tails are inverted, as in the Clopper-Pearson interval, which it approaches in a large population.

    >>> hypergeometric_interval(0, 50, 100, 0.95), hypergeometric_interval(3, 10, 10, 0.95)
    ((0, 5), (3, 3))
    """
    log_factorial = _log_factorials(population)

    def choose(total: Any, chosen: Any) -> FloatArray:
        logarithm: FloatArray = log_factorial[total] - log_factorial[chosen] - log_factorial[total - chosen]
        return logarithm

    def tail(having: int, first: int, last: int) -> float:
        """Return the probability of `first` to `last` draws with the property."""
        counts = np.arange(max(first, draws - (population - having)), min(last, having, draws) + 1)
        ways = choose(having, counts) + choose(population - having, draws - counts) - choose(population, draws)
        return float(np.exp(ways).sum())

    def smallest(holds: Callable[[int], bool], low: int, high: int) -> int:
        """Return the smallest number for which a monotone condition holds; `high` if none below."""
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) else (middle + 1, high)
        return low

    least, most, side = found, population - (draws - found), (1 - level) / 2
    low = smallest(lambda having: tail(having, found, draws) > side, least, most)
    high = smallest(lambda having: tail(having, 0, found) <= side, least, most + 1) - 1
    return min(low, most), max(high, least)


def garwood(count: float, level: float) -> tuple[float, float]:
    """Return Garwood's interval of a Poisson mean, given an observed count, which may be fractional."""
    tail = (1 - level) / 2
    low = chi_square_quantile(tail, 2 * count) / 2 if count > 0 else 0.0
    return low, chi_square_quantile(1 - tail, 2 * (count + 1)) / 2


def chi_square_quantile(probability: float, df: float) -> float:
    """Return a quantile of the chi-square distribution."""
    upper = 1.0
    while 1 - chi_square_tail(upper, df) < probability:
        upper *= 2
    return _bisect(lambda x: 1 - chi_square_tail(x, df), probability, 0.0, upper)


def chi_square_tail(x: float, df: float) -> float:
    """Return the probability that a chi-square variable exceeds x.

    >>> round(chi_square_tail(3.841459, 1), 6)
    0.05
    """
    a, x = df / 2, x / 2
    if x <= 0:
        return 1.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        for k in range(1, MAX_TERMS):
            term *= x / (a + k)
            total += term
            if term < total * 1e-16:
                break
        return max(0.0, 1 - front * total)
    return front * _upper_gamma_fraction(a, x)


def f_tail(x: float, numerator_df: float, denominator_df: float) -> float:
    """Return the probability that an F variable exceeds x."""
    from surveyor.kernels.binomial import regularized_beta

    if x <= 0:
        return 1.0
    if denominator_df >= NORMAL_FROM_DF:
        return chi_square_tail(x * numerator_df, numerator_df)
    ratio = denominator_df / (denominator_df + numerator_df * x)
    return float(regularized_beta(denominator_df / 2, numerator_df / 2, ratio))


def normal_scores(values: FloatArray) -> FloatArray:
    """Return the normal quantile at the rank of each value (Blom scores); ties get their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return normal_quantiles((ranks - 0.375) / (values.size + 0.25))[inverse]


def normal_quantiles(probabilities: FloatArray) -> FloatArray:
    """Return normal quantiles to nine digits (Acklam's rational approximations)."""
    near = np.minimum(probabilities, 1 - probabilities)
    in_tail = near < 0.02425
    q = np.where(in_tail, 0.0, probabilities - 0.5)
    r = q * q
    central = q * np.polyval(_CENTRAL_NUMERATOR, r) / np.polyval((*_CENTRAL_DENOMINATOR, 1.0), r)
    far = np.sqrt(-2 * np.log(np.where(in_tail, near, 0.01)))
    tail = np.polyval(_TAIL_NUMERATOR, far) / np.polyval((*_TAIL_DENOMINATOR, 1.0), far)
    return np.where(in_tail, np.where(probabilities < 0.5, tail, -tail), central)


@lru_cache(maxsize=2)
def _log_factorials(largest: int) -> FloatArray:
    """Return the logarithms of the factorials from 0 on."""
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, largest + 1)))])


_CENTRAL_NUMERATOR = (
    -3.969683028665376e01,
    2.209460984245205e02,
    -2.759285104469687e02,
    1.383577518672690e02,
    -3.066479806614716e01,
    2.506628277459239e00,
)
_CENTRAL_DENOMINATOR = (
    -5.447609879822406e01,
    1.615858368580409e02,
    -1.556989798598866e02,
    6.680131188771972e01,
    -1.328068155288572e01,
)
_TAIL_NUMERATOR = (
    -7.784894002430293e-03,
    -3.223964580411365e-01,
    -2.400758277161838e00,
    -2.549732539343734e00,
    4.374664141464968e00,
    2.938163982698783e00,
)
_TAIL_DENOMINATOR = (7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e00, 3.754408661907416e00)


def _upper_gamma_fraction(a: float, x: float) -> float:
    """Evaluate the continued fraction of the upper incomplete gamma function by Lentz's method."""
    tiny = 1e-300
    b = x + 1 - a
    c, d = 1 / tiny, 1 / b
    value = d
    for k in range(1, MAX_TERMS):
        part, b = -k * (k - a), b + 2
        d = part * d + b
        c = b + part / c
        d = 1 / (d if abs(d) > tiny else tiny)
        c = c if abs(c) > tiny else tiny
        value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value


def _bisect(increasing: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Return where an increasing function reaches a target."""
    while high - low > RELATIVE_TOLERANCE * high and high > 1e-300:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if increasing(middle) < target else (low, middle)
    return (low + high) / 2
