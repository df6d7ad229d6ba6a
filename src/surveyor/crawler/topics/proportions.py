"""Confidence interval of a proportion."""

from __future__ import annotations

import math
from statistics import NormalDist


def wilson(share: float, trials: float, level: float) -> tuple[float, float]:
    """Return the Wilson score interval of a proportion.

    >>> [round(bound, 3) for bound in wilson(0.8, 10, 0.95)]
    [0.49, 0.943]
    """
    z = NormalDist().inv_cdf(0.5 + level / 2)
    square = z * z / trials
    middle, half = share + square / 2, z * math.sqrt(share * (1 - share) / trials + square / trials / 4)
    low, high = (middle - half) / (1 + square), (middle + half) / (1 + square)
    return max(0.0, min(low, share)), min(1.0, max(high, share))
