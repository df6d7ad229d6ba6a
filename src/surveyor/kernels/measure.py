"""Counts and sweeps that describe the shape of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surveyor.kernels._jit import kernel

if TYPE_CHECKING:
    from surveyor.arrays import BoolArray, FloatArray, IdArray, IntArray


@kernel
def count_mutual(indptr: IntArray, indices: IdArray, in_indptr: IntArray, in_indices: IdArray) -> int:
    """Count the links whose target links back: pages present in both of a page's rising rows."""
    mutual = 0
    for page in range(indptr.shape[0] - 1):
        link, back = indptr[page], in_indptr[page]
        while link < indptr[page + 1] and back < in_indptr[page + 1]:
            if indices[link] == in_indices[back]:
                mutual += 1
            if indices[link] <= in_indices[back]:
                link += 1
            else:
                back += 1
    return mutual


@kernel
def count_near(indptr: IntArray, indices: IdArray, distance: int) -> int:
    """Count the links between pages whose ids differ by less than `distance`."""
    near = 0
    for page in range(indptr.shape[0] - 1):
        for link in range(indptr[page], indptr[page + 1]):
            if abs(indices[link] - page) < distance:
                near += 1
    return near


@kernel
def count_inside(indptr: IntArray, indices: IdArray, group: IntArray) -> int:
    """Count the links between pages of the same group."""
    inside = 0
    for page in range(indptr.shape[0] - 1):
        for link in range(indptr[page], indptr[page + 1]):
            if group[indices[link]] == group[page]:
                inside += 1
    return inside


@kernel
def count_into(indptr: IntArray, indices: IdArray, inside: BoolArray) -> IntArray:
    """Count the links of each page to pages that are inside."""
    counts = np.zeros(indptr.shape[0] - 1, np.int64)
    for page in range(counts.shape[0]):
        for link in range(indptr[page], indptr[page + 1]):
            counts[page] += inside[indices[link]]
    return counts


@kernel
def gather_sweep(in_indptr: IntArray, in_indices: IdArray, share: FloatArray, base: float, out: FloatArray) -> float:
    """Write `base` plus the shares of all in-links of each page; return the L1 change of `out`."""
    change = 0.0
    for page in range(in_indptr.shape[0] - 1):
        score = base
        for link in range(in_indptr[page], in_indptr[page + 1]):
            score += share[in_indices[link]]
        change += abs(score - out[page])
        out[page] = score
    return change
