"""Links with weights: sorting links together with their weights, and the probability of following each of them."""

from __future__ import annotations

import numpy as np

from surveyor.arrays import AnyIntArray, BoolArray, FloatArray, IdArray, IntArray
from surveyor.kernels._jit import kernel


@kernel
def count_ids(ids: AnyIntArray, counts: IntArray) -> None:
    """Count how often each id occurs."""
    for place in range(ids.shape[0]):
        counts[ids[place]] += 1


@kernel
def place_by(ids: AnyIntArray, before: IntArray, cursor: IntArray, order: IntArray) -> None:
    """Write the stable order of links by an id; `before` is their order so far, `cursor` the start of each id."""
    for place in range(before.shape[0]):
        link = before[place]
        page = ids[link]
        order[cursor[page]] = link
        cursor[page] += 1


@kernel
def merge_links(
    sources: AnyIntArray, targets: AnyIntArray, weights: FloatArray, order: IntArray, out: IdArray, sums: FloatArray
) -> int:
    """Write the targets of links in this order and the summed weights of equal links; return the number of links.

    `sources` is overwritten with the sources of the merged links.
    """
    count = 0
    before, last = -1, -1
    merged = sources.copy()
    for place in range(order.shape[0]):
        link = order[place]
        source, target = merged[link], targets[link]
        if source == before and target == last:
            sums[count - 1] += weights[link]
        else:
            out[count], sums[count] = target, weights[link]
            sources[count] = source
            before, last = source, target
            count += 1
    return count


@kernel
def link_probabilities(indptr: IntArray, weights: FloatArray, probabilities: FloatArray) -> None:
    """Write the probability of following each link of a page: its weight over the sum of all.

    Weights are first divided by the largest of the page, which avoids overflow. The sum is compensated (Neumaier), so
    that its error does not grow with the number of links; a probability is within six units of rounding.
    """
    for page in range(indptr.shape[0] - 1):
        first, last = indptr[page], indptr[page + 1]
        largest = 0.0
        for link in range(first, last):
            largest = max(largest, weights[link])
        total, lost = 0.0, 0.0
        for link in range(first, last):
            weight = weights[link] / largest
            probabilities[link] = weight
            after = total + weight
            lost += (total - after) + weight if total >= weight else (weight - after) + total
            total = after
        total += lost
        for link in range(first, last):
            probabilities[link] /= total


@kernel
def transpose_values(
    indptr: IntArray, indices: IdArray, values: FloatArray, cursor: IntArray, transposed: FloatArray
) -> None:
    """Write the value of each link in the order of the in-links; `cursor` is the start of the in-links of each page."""
    for page in range(indptr.shape[0] - 1):
        for link in range(indptr[page], indptr[page + 1]):
            target = indices[link]
            transposed[cursor[target]] = values[link]
            cursor[target] += 1


@kernel
def mark_ids(ids: AnyIntArray, occurs: BoolArray) -> tuple[int, bool]:
    """Mark the ids that occur; return the largest of them, and whether one is negative or beyond the marks."""
    size = np.uint64(occurs.shape[0])
    largest, beyond = np.uint64(0), False
    for place in range(ids.shape[0]):
        page = np.uint64(ids[place])  # huge if it is negative
        if page < size:
            occurs[page] = True
            largest = max(largest, page)
        else:
            beyond = True
    return largest, beyond  # type: ignore[return-value]  # uint64


@kernel
def renumber(ids: AnyIntArray, new: IdArray, out: IdArray) -> None:
    """Write the new number of each id."""
    for place in range(ids.shape[0]):
        out[place] = new[ids[place]]
