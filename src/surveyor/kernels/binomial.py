"""Exact confidence intervals of the number of trials, given the successes and their probability, by bisection."""

from __future__ import annotations

import math

from surveyor.arrays import FloatArray, IntArray
from surveyor.kernels._jit import kernel

MANY = 1000  # successes from which the score interval is as accurate
STEPS = 20_000  # of the continued fraction, which needs about the square root of its larger argument


@kernel
def regularized_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function: P(Binomial(a + b - 1, x) ≥ a)."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x > (a + 1) / (a + b + 2):
        return 1.0 - front * _fraction(b, a, 1 - x) / b
    return front * _fraction(a, b, x) / a


@kernel
def _fraction(a: float, b: float, x: float) -> float:
    """Evaluate the continued fraction by Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > tiny else tiny)
    value = d
    for m in range(1, STEPS):
        for half in range(2):
            if half == 0:
                part = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
            else:
                part = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
            d = 1 + part * d
            c = 1 + part / c
            d = 1 / (d if abs(d) > tiny else tiny)
            c = c if abs(c) > tiny else tiny
            value *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return value


@kernel
def _trials_for(count: int, p: float, probability: float) -> tuple[float, float]:
    """Return bounds (low, high) of the real number of trials at which P(successes ≥ count) is `probability`."""
    low, high = float(count), count / p + 10.0
    while regularized_beta(count, high - count + 1, p) < probability:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        if regularized_beta(count, middle - count + 1, p) < probability:
            low = middle
        else:
            high = middle
        if high - low < 1e-9 * high:
            break
    return low, high


@kernel
def trial_intervals(counts: IntArray, p: float, tail: float, z: float, low: FloatArray, high: FloatArray) -> None:
    """Write the interval of each count; `tail` is the error probability of each side, z its normal quantile."""
    for place in range(counts.size):
        count = counts[place]
        if count > MANY and count * (1 - p) > MANY * p:
            middle, spread = count + z * z * (1 - p) / 2, z * math.sqrt((1 - p) * (count + z * z * (1 - p) / 4))
            low[place], high[place] = (middle - spread) / p, (middle + spread) / p
            continue
        # Below the lower end, this many successes have probability < `tail`; above the upper end, this few.
        low[place] = _trials_for(count, p, tail)[0] if count > 0 else 0.0
        high[place] = _trials_for(count + 1, p, 1 - tail)[1]
