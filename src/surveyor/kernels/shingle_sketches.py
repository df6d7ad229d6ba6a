"""Compare bottom-k sketches: ascending arrays of the smallest hashes of a set."""

from __future__ import annotations

from surveyor.arrays import IntArray
from surveyor.kernels._jit import kernel


@kernel
def jaccard(first: IntArray, second: IntArray, size: int) -> float:
    """Return the share of the `size` smallest hashes of either sketch that both have."""
    left, right, seen, both = 0, 0, 0, 0
    while seen < size and (left < first.shape[0] or right < second.shape[0]):
        if right >= second.shape[0] or (left < first.shape[0] and first[left] < second[right]):
            left += 1
        elif left >= first.shape[0] or second[right] < first[left]:
            right += 1
        else:
            both += 1
            left += 1
            right += 1
        seen += 1
    return both / seen if seen > 0 else 0.0


@kernel
def first_similar(
    rows: IntArray, sizes: IntArray, candidates: IntArray, own: IntArray, size: int, threshold: float
) -> int:
    """Return the first candidate row whose similarity to a sketch is at least the threshold; -1 if there is none."""
    for place in range(candidates.shape[0]):
        row = candidates[place]
        if jaccard(rows[row, : sizes[row]], own, size) >= threshold:
            return int(row)
    return -1
