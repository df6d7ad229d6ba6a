"""How many domains were added to a sketch, from what they changed in it: maximum likelihood.

Bits of a vector and registers of a HyperLogLog counter obey one law. S domains that are added leave a cell unchanged
with probability exp(-x), and change a cell in the way that has level k with a probability proportional to
1 - exp(-x) at that level, where x = S · unit · 2^-k. With `changed[k]` such cells, and `slope` the sum of
unit · 2^-k over the cells which tell of what did not happen, the logarithm of the likelihood is

    sum over k of changed[k] · ln(1 - exp(-S · unit · 2^-k))  -  slope · S

Its derivative times S falls and is convex, so Newton's method from below comes to the one root without leaving it
(Ertl 2017, "New cardinality estimation algorithms for HyperLogLog sketches"). The root does not depend on what the
sketch held before except through the cells that were left to change: domains known before do not blur it.
"""

from __future__ import annotations

import math

from surveyor.arrays import IntArray
from surveyor.kernels._jit import kernel
from surveyor.kernels.synthetic import Whole

CLOSE = 0.01  # step after which Newton is done: what is left is near its square, and the error far larger
STEPS = 30  # of Newton's method, which needs two to five


@kernel
def added(changed: IntArray, lowest: Whole, highest: Whole, slope: float, unit: float) -> tuple[float, float]:
    """Return the likeliest number of domains, and its weight: the estimate is as sure as a count of so many.

    The relative variance is one over the weight (the observed information times the square of the estimate).
    """
    cells, linear = 0.0, 0.0
    for level in range(lowest, highest + 1):
        cells += changed[level]
        linear += changed[level] * math.ldexp(0.5 * unit, -level)
    if cells == 0 or slope <= 0:
        return 0.0, 0.0
    least = math.ldexp(unit, -highest)
    guess = cells / (slope + linear)
    weight = cells
    for _ in range(STEPS):
        x = guess * least
        grown = math.expm1(x)
        value, turn = 0.0, 0.0
        for level in range(highest, lowest - 1, -1):
            part = changed[level] * (x / grown)
            value += part
            turn += part * (x + x / grown)
            grown *= grown + 2.0  # exp(2 x) - 1
            x *= 2.0
            if grown > 1e100:  # what is left changes nothing
                break
        weight = turn
        # The value is convex in the guess; its derivative times the guess is `value - turn`.
        step = (value - slope * guess) / (turn - value + slope * guess)
        guess *= 1.0 + step
        if abs(step) < CLOSE:
            break
    return guess, weight
