"""Count or weight inversions by merge sort, for Kendall's tau."""

from __future__ import annotations

from surveyor.arrays import FloatArray, IntArray
from surveyor.kernels._jit import kernel


@kernel
def count_inversions(values: IntArray, spare: IntArray) -> int:
    """Return the number of strictly descending pairs; both arrays, of equal length, are overwritten."""
    size = values.shape[0]
    inversions, width = 0, 1
    source, target = values, spare
    while width < size:
        for first in range(0, size, 2 * width):
            middle, last = min(first + width, size), min(first + 2 * width, size)
            left, right = first, middle
            for place in range(first, last):
                if left < middle and (right >= last or source[left] <= source[right]):
                    target[place] = source[left]
                    left += 1
                else:
                    target[place] = source[right]
                    right += 1
                    inversions += middle - left
        source, target = target, source
        width *= 2
    return inversions


@kernel
def weigh_inversions(values: IntArray, weights: FloatArray, spare: IntArray, spare_weights: FloatArray) -> float:
    """Return the sum over all descending pairs of both weights; all arrays, of equal length, are overwritten."""
    size = values.shape[0]
    total, width = 0.0, 1
    source, target = values, spare
    weight, moved = weights, spare_weights
    while width < size:
        for first in range(0, size, 2 * width):
            middle, last = min(first + width, size), min(first + 2 * width, size)
            left, right = first, middle
            waiting = 0.0  # weight of the rest of the left run
            for place in range(first, middle):
                waiting += weight[place]
            for place in range(first, last):
                if left < middle and (right >= last or source[left] <= source[right]):
                    target[place], moved[place] = source[left], weight[left]
                    waiting -= weight[left]
                    left += 1
                else:
                    target[place], moved[place] = source[right], weight[right]
                    if left < middle:
                        total += waiting + (middle - left) * weight[right]
                    right += 1
        source, target = target, source
        weight, moved = moved, weight
        width *= 2
    return total
