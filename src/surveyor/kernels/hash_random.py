"""Random numbers as hashes of (seed, index, stream), instead of the next number of a generator.

Any number can be drawn at any time, in any order and on any thread, with the same result. `index` identifies the item
that the number belongs to, `stream` the decision that it is used for.
"""

from __future__ import annotations

import numpy as np

from surveyor.arrays import AnyInt, FloatArray, IdArray
from surveyor.kernels._jit import kernel, kernel_without_refcounts

PAGE_ORDER = np.int64(0)  # the stream of a random order of pages


@kernel
def random_bits(seed: AnyInt, index: AnyInt, stream: AnyInt) -> np.uint64:
    """Return 64 random bits (the finaliser of SplitMix64)."""
    value = np.uint64(seed) + np.uint64(index) * np.uint64(0x9E3779B97F4A7C15)
    value ^= np.uint64(stream) * np.uint64(0xD1B54A32D192ED03)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@kernel
def random_unit(seed: AnyInt, index: AnyInt, stream: AnyInt) -> float:
    """Return a uniform random number in (0, 1]."""
    return (np.float64(random_bits(seed, index, stream) >> np.uint64(11)) + 1.0) * 2.0**-53


@kernel
def fill_random_units(seed: AnyInt, stream: AnyInt, out: FloatArray) -> None:
    """Write the random unit of each index of `out`."""
    for index in range(out.shape[0]):
        out[index] = random_unit(seed, index, stream)


@kernel_without_refcounts
def random_units_of_pages(seed: np.uint64, pages: IdArray, out: FloatArray) -> None:
    """Write a random unit for each page, which depends on the seed and the page only."""
    for entry in range(pages.shape[0]):
        out[entry] = random_unit(seed, np.int64(pages[entry]), PAGE_ORDER)
