"""Count inversions while merging sorted runs of doubling length: the heart of Kendall's tau."""

from __future__ import annotations

from surveyor.arrays import IntArray
from surveyor.kernels._jit import kernel


@kernel
def count_inversions(values: IntArray, spare: IntArray) -> int:
    """Return how many pairs stand in falling order (equal ones do not); both arrays, of one length, are overwritten."""
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
