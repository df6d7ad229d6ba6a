"""The value of a visit, and the moment at which it reaches a price.

A page changes unannounced at rate α (a Poisson process) and gets signals at rate θα, each of which is right with
probability w. After a time τ and n signals since its last visit it is fresh with probability e^(-y), where

    y = ατ + n b,    b = -ln(1 - w):

a signal counts like a time b/α without one. Visits at a threshold of y give in each cycle the fresh time Ψ and the
length W, both as multiples of 1/α:

    Ψ(y) = Σ_n (1 - w)^n θ^n / (1 + θ)^(n+1) P(n + 1, (1 + θ)(y - n b))        W(y) = Σ_n P(n + 1, θ (y - n b)) / θ

with P the distribution function of the gamma distribution and n from 0 to y/b (Busa-Fekete et al. 2025). The threshold
is optimal for the price μ/α G(y) per visit, G(y) = Ψ(y) - e^(-y) W(y), and G' = e^(-y) W. Without signals W = y and
G = 1 - e^(-y)(1 + y). For y to infinity G tends to 1/(1 + wθ): the value of a page that is certainly stale is μ/λ.
"""

from __future__ import annotations

import math

import numpy as np

from surveyor.arrays import FloatArray
from surveyor.kernels._jit import kernel

TERMS = 40  # signals within an interval that are considered
CLOSE = 1e-7  # relative error of a threshold


@kernel
def gain(y: float, theta: float, b: float) -> tuple[float, float]:
    """Return G and W at a threshold."""
    if y <= 0.0:
        return 0.0, 0.0
    if theta <= 0.0 or b <= 0.0:
        if y < 1e-3:
            return y * y * (0.5 - y * (1 / 3 - y / 8)), y
        return -math.expm1(-y) - y * math.exp(-y), y
    fresh, length, share = 0.0, 0.0, 1.0 / (1.0 + theta)
    step = math.exp(-b) * theta / (1.0 + theta)
    for n in range(TERMS):
        rest = y - n * b
        if rest <= 0.0:
            break
        fresh += share * _gamma(n, (1.0 + theta) * rest)
        length += _gamma(n, theta * rest) / theta
        share *= step
    return fresh - math.exp(-y) * length, length


@kernel
def _gamma(n: int, x: float) -> float:
    """Return the probability of more than n events of a Poisson distribution of mean x."""
    if x < 0.05 and n < 4:  # the sum below would cancel
        term = 1.0
        for k in range(1, n + 2):
            term *= x / k
        total, factor = 0.0, 1.0
        for k in range(6):
            total += factor / (n + 1 + k)
            factor *= -x / (k + 1)
        return term * (n + 1) * total
    term = math.exp(-x)
    less = term
    for k in range(1, n + 1):
        term *= x / k
        less += term
    return max(1.0 - less, 0.0)


@kernel
def threshold(q: float, theta: float, b: float) -> float:
    """Return the y with G(y) = q; infinity if there is none."""
    most = 1.0
    if theta > 0.0 and b > 0.0:
        most = 1.0 / (1.0 - math.expm1(-b) * theta)
    if not q < most * (1 - 1e-12):
        return math.inf
    if q <= 0.0:
        return 0.0
    low, high = 0.0, math.inf
    y = math.sqrt(2.0 * q / most)
    for _ in range(100):
        value, length = gain(y, theta, b)
        if value > q:
            high = y
        else:
            low = y
        slope = math.exp(-y) * length
        # Newton's step on -ln(G(∞) - G), which is close to linear for large y
        new = y - (most - value) * math.log((most - value) / (most - q)) / -slope if slope > 0 and value < most else low
        if not low < new < high:
            new = 2.0 * y if high == math.inf else 0.5 * (low + high)
        if abs(new - y) <= CLOSE * y:
            return float(new)
        y = new
    return float(y)


@kernel
def values(y: FloatArray, theta: FloatArray, b: FloatArray, scale: FloatArray, out: FloatArray) -> None:
    """Write the value scale·G(y) of a visit to each page; `scale` is μ/α."""
    for page in range(y.shape[0]):
        if y[page] == math.inf:
            most = 1.0
            if theta[page] > 0.0 and b[page] > 0.0:
                most = 1.0 / (1.0 - math.expm1(-b[page]) * theta[page])
            out[page] = scale[page] * most
        else:
            out[page] = scale[page] * gain(y[page], theta[page], b[page])[0]


@kernel
def thresholds(price: float, theta: FloatArray, b: FloatArray, scale: FloatArray, out: FloatArray) -> None:
    """Write the y at which a visit to each page has a value equal to the price."""
    for page in range(scale.shape[0]):
        out[page] = threshold(price / scale[page], theta[page], b[page]) if scale[page] > 0.0 else np.inf


@kernel
def lengths(y: FloatArray, theta: FloatArray, b: FloatArray, out: FloatArray) -> None:
    """Write the mean time between visits at these thresholds, as a multiple of 1/α."""
    for page in range(y.shape[0]):
        out[page] = np.inf if y[page] == np.inf else gain(y[page], theta[page], b[page])[1]
