"""The loosest accuracy of a tool whose true error is small enough.

Accuracies form a ladder of quarters of a decade. What a tool calls its tolerance is not believed: each rung
tried is compared with the exact ranks.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

LOWEST, HIGHEST = 3, 60  # 10 ** -0.75 to 10 ** -15
BUDGET = 300.0  # seconds


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to."""

    accuracy: float | None  # None: not reached
    error: float  # true error at that accuracy, or the best one seen
    answer: dict[str, Any]


def accuracy_of(rung: int) -> float:
    return float(10.0 ** (-rung / 4))


def loosest(rank: Callable[[float], dict[str, Any]], target: float, *, one_accuracy: bool) -> Found:
    """Try rungs until one is good enough and the next looser one is not."""
    if one_accuracy:
        answer = rank(target)
        error = answer.get("error", math.inf)
        return Found(target if error <= target else None, error, answer)
    too_loose, tight = LOWEST, HIGHEST + 1  # rungs known to miss the target, and to reach it or to fail
    best: Found | None = None
    seen = math.inf
    rung = math.ceil(-4 * math.log10(target))
    until = time.monotonic() + BUDGET
    while tight - too_loose > 1 and time.monotonic() < until:
        answer = rank(accuracy_of(rung))
        error = answer.get("error", math.inf)
        seen = min(seen, error)
        # Errors are nearly proportional to tolerances, so one result predicts the next tolerance to try.
        away = 4 * math.log10(error / target) if 0 < error < math.inf else 0.0
        if error <= target:
            tight, best = rung, Found(accuracy_of(rung), error, answer)
            rung = max(too_loose + 1, rung - max(1, math.floor(-away)))
        elif "failed" in answer:
            tight = rung
            rung = max(too_loose + 1, rung - 1)
        else:
            too_loose = rung
            rung = min(tight - 1, rung + max(1, math.ceil(away)))
    return best or Found(None, seen, {})
